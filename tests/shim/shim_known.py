# SPDX-License-Identifier: Apache-2.0
"""The shim knows each file call that src/cache makes, and takes no rule that it does not understand."""
import re
import unittest

import shim_case

# What src/cache may import besides what the shim wraps: nothing of these reaches a file.
HARMLESS = re.compile(
    r"gj_\w+|_GLOBAL_OFFSET_TABLE_|__stack_chk_fail|__assert_fail|__errno_location|"
    r"(mem|str)\w+|__(mem|str)\w+|bcmp|bzero|qsort|munmap|[cm]alloc|realloc|free|v?snprintf|__v?snprintf_chk|"
    r"pthread_\w+|sig(add|empty|del|fill)set|sigismember|sigpending|sigtimedwait|nanosleep|time|clock_gettime|"
    r"get(pid|euid|random|cwd)|__getcwd_chk|environ|__(a|t|ub)san_\w+|__tls_get_addr|__gcov\w+|XXH\w+")


class Known(unittest.TestCase):
    def test_each_import(self):
        imports = shim_case.imported(shim_case.ARCHIVE)
        if not imports:
            self.skipTest("objects that tell no symbols: link-time optimisation")
        self.assertIn("renameat", imports, "not the objects of src/cache")
        known = shim_case.exported(shim_case.SHIM)
        unknown = {symbol: place for symbol, place in imports.items()
                   if symbol not in known and not HARMLESS.fullmatch(symbol)}
        self.assertEqual(unknown, {}, "wrap these in tests/shim, or name them in HARMLESS")


class Rules(shim_case.ShimCase):
    def test_bad_rules(self):
        for rule in ("open", "open:EWHAT", "open:EIO:0", "open:EIO:1x", "open:short/late", "open:EIO:1:2"):
            result = self.gemmjit("cache", "stat", status=-6, env=self.shimmed(rule))
            self.assertEqual(result.err, f"shim: the rule {rule} is none: see tests/shim/README.md\n")

    def test_elsewhere_nothing_happens(self):
        self.under("*:EIO", "cache", "stat", "--cache-dir", self.path("real"), status=0)
        self.assertEqual(self.calls(), [])
