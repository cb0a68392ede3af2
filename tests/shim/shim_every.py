# SPDX-License-Identifier: Apache-2.0
"""Every file call of a run fails once, with each error of its list; what must hold holds."""
import collections
import os
import shutil

from shim_case import ShimCase, tree

# What each kind of call may answer on network, user-space and full file systems.
ERRORS = {
    "open": ("ESTALE", "ENOENT", "EIO", "EINTR", "EDQUOT"),
    "fstat": ("ESTALE", "EIO"),
    "stat": ("ESTALE", "EIO", "ENOENT"),
    "access": ("EIO", "EROFS"),
    "mkdir": ("EDQUOT", "EIO", "EIO/late"),
    "chmod": ("EPERM", "EOPNOTSUPP", "EIO"),
    "utime": ("EROFS", "EIO"),
    "read": ("ESTALE", "EIO", "EINTR", "short"),
    "write": ("EDQUOT", "ENOSPC", "EIO", "EINTR", "short"),
    "fsync": ("EDQUOT", "ENOSPC", "EIO", "ESTALE", "EINTR", "EINVAL"),
    "close": ("EDQUOT", "EIO", "EINTR"),
    "dup": ("EMFILE",),
    "seek": ("EIO",),
    "rename": ("EBUSY", "ESTALE", "EIO", "EIO/late", "EDQUOT"),
    "unlink": ("EBUSY", "ESTALE", "EIO", "EIO/late", "silly"),
    "lock": ("ENOLCK", "ENOSYS", "EOPNOTSUPP", "EIO", "EINTR"),
    "unlock": ("ENOLCK", "EIO", "EINTR"),
    "flock": ("ENOLCK", "ENOSYS", "EOPNOTSUPP", "EIO", "EINTR", "nfs"),
    "readdir": ("EIO", "ESTALE", "unknown"),
    "opendir": ("EIO",),
    "closedir": ("EIO",),
    "realpath": ("ESTALE", "EIO"),
    "mmap": ("ENODEV", "EIO", "unshared"),
}
# What makes no difference at all, met once.
UNHARMED = {"open": ("EINTR", "ESTALE"), "read": ("ESTALE", "EINTR", "short"), "write": ("EINTR", "short"),
            "fsync": ("EINTR", "EINVAL"), "close": ("EINTR",), "lock": ERRORS["lock"], "unlock": ERRORS["unlock"],
            "flock": ERRORS["flock"], "chmod": ("EPERM", "EOPNOTSUPP"), "readdir": ("unknown",), "mmap": ("ENODEV", "unshared")}


class EachCall(ShimCase):
    def each_call(self, prepare, run):
        """Yields (rule, whether it must make no difference) for each call of a run and each of its errors."""
        prepare()
        run("")
        counts = collections.Counter(kind for kind, _, _ in self.calls())
        num_rules = 0
        for kind, count in counts.items():
            for error in ERRORS[kind]:
                for number in range(1, count + 1):
                    num_rules += 1
                    yield f"{kind}:{error}:{number}", error in UNHARMED.get(kind, ())
        print(f"{sum(counts.values())} calls, {num_rules} rules", flush=True)

    def met(self, rules):
        """The one call that the rule met."""
        (call,) = [call for call in self.calls() if call[1] == "!"]
        self.assertEqual(call[0], rules.split(":")[0])
        return call


class Prewarm(EachCall):
    def check_unharmed(self, run, rules, is_warm, files=None):
        told, err, status = run
        self.assertEqual((status, self.warnings(err)), (0, []), rules)
        self.assertEqual((told["disk"], told["compiled"]), (1, 0) if is_warm else (0, 1), rules)
        self.assertEqual(told["stats"]["damaged_entries"], 0, rules)
        self.assertEqual(tree(self.cache), self.whole if files is None else files, rules)

    def test_cold(self):
        for rules, is_unharmed in self.each_call(self.empty, self.prewarm):
            self.empty()
            run = self.prewarm(rules, status=None)
            self.met(rules)
            self.assertLessEqual(len(self.warnings(run[1])), 1, rules)
            if is_unharmed:
                self.check_unharmed(run, rules, False)
            self.check(run, rules)

    def test_cold_for_good(self):
        """From the n-th call of a kind on all fail."""
        for rules, _ in self.each_call(self.empty, self.prewarm):
            kind, error, number = rules.split(":")
            if error in ("EINTR", "nfs", "unknown") or error not in ERRORS[kind][:2]:
                continue
            self.empty()
            self.check(self.prewarm(rules + "+", status=None), rules + "+")
            if int(number) == 1:  # and no temporary file can be removed
                self.empty()
                more = rules + "+ unlink:EBUSY"
                self.check(self.prewarm(more, status=None), more, may_have=(".tmp-",))

    def test_warm(self):
        for rules, is_unharmed in self.each_call(self.fill, self.prewarm):
            self.fill()
            run = self.prewarm(rules, status=None)
            self.met(rules)
            if is_unharmed:
                self.check_unharmed(run, rules, True)
            self.check(run, rules)
            self.assertEqual(tree(self.cache), self.whole, rules)

    def test_layers(self):
        """Behind an empty root, a directory and then a pack have what is looked for."""
        self.fill()
        pack, directory = self.path("x.gjp"), self.path("directory")
        self.gemmjit("cache", "pack", pack)
        shutil.copytree(self.cache, directory)

        def prepare(layer):
            self.empty()
            there = os.path.join(self.place, "layer")
            self.more = {"GEMMJIT_CACHE_LAYERS": there}
            return shutil.copytree(layer, there) if os.path.isdir(layer) else shutil.copy(layer, there)
        for layer in (directory, pack):
            for rules, is_unharmed in self.each_call(lambda: prepare(layer), self.prewarm):
                prepare(layer)
                run = self.prewarm(rules, status=None)
                self.met(rules)
                if is_unharmed:
                    self.check_unharmed(run, rules, True, files={})
                self.check(run, rules)
