# SPDX-License-Identifier: Apache-2.0
"""The same for the verbs that walk over a cache, write packs and read them."""
import os
import shutil

from shim_case import is_temporary, read, tree, without
from shim_every import EachCall


class Verbs(EachCall):
    """The verbs that walk over a cache, one damaged by a dead writer's file."""

    def prepare(self):
        self.fill()
        with open(os.path.join(os.path.dirname(os.path.join(self.cache, self.entry)), ".tmp-1-0-1"), "w",
                  encoding="utf-8") as file:
            file.write("left")

    def kept(self):
        return without(tree(self.cache), ".tmp-", ".nfs")

    def each_run(self, *arguments):
        """Yields (rule, status) after each run."""
        for rules, is_unharmed in self.each_call(self.prepare, lambda rules: self.under(rules, *arguments, status=0)):
            self.prepare()
            result = self.under(rules, *arguments)
            self.met(rules)
            if is_unharmed:
                self.assertEqual(result.status, 0, (rules, result.err))
            is_told = "gemmjit: " in result.err or "damaged  1\n" in result.out
            self.assertEqual(result.status != 0, is_told, (rules, result.err))
            yield rules, result.status
            if self.entry in tree(self.cache):
                self.check_files(rules, may_have=(".tmp-", ".nfs"))
            self.check_next(rules, may_have=(".tmp-", ".nfs"))

    def test_reading_verbs(self):
        for verb in ("stat", "verify"):
            for rules, _ in self.each_run("cache", verb):
                self.assertEqual(self.kept(), self.whole, rules)

    def test_trim(self):
        for rules, status in self.each_run("cache", "trim", "--max-size=0"):
            if status == 0 and "ENOENT" not in rules:
                self.assertNotIn(self.entry, self.kept(), rules)

    def test_clear(self):
        for rules, status in self.each_run("cache", "clear"):
            if status == 0 and "ENOENT" not in rules:
                self.assertEqual(self.kept(), {}, rules)

    def test_pack(self):
        pack = os.path.join(self.place, "x.gjp")
        self.prepare()
        self.under("", "cache", "pack", pack, status=0)
        whole = read(pack)
        for rules, status in self.each_run("cache", "pack", pack):
            self.assertEqual(self.kept(), self.whole, rules)
            self.assertEqual([name for name in os.listdir(self.place) if is_temporary(name)], [], rules)
            if status == 0 and "ENOENT" not in rules:
                self.assertEqual(read(pack), whole, rules)
            elif os.path.exists(pack):
                self.check_part(pack, rules)

    def check_part(self, pack, rules):
        """A pack that was written although something was left out is sound."""
        part = self.path("part")
        self.gemmjit("cache", "unpack", pack, "--cache-dir", part, err="")
        for name, data in tree(part).items():
            self.assertEqual(data, self.whole[name], rules)
        shutil.rmtree(part)

    def test_unpack(self):
        pack = os.path.join(self.place, "x.gjp")
        self.fill()
        self.gemmjit("cache", "pack", pack)
        whole = read(pack)

        def prepare():
            self.empty()
            with open(pack, "wb") as file:
                file.write(whole)
        for rules, is_unharmed in self.each_call(prepare, lambda rules: self.under(rules, "cache", "unpack", pack)):
            prepare()
            result = self.under(rules, "cache", "unpack", pack, status=None)
            self.met(rules)
            self.check_files(rules)
            if is_unharmed or result.status == 0:
                self.assertEqual((result.status, tree(self.cache)), (0, self.whole), (rules, result.err))
            self.gemmjit("cache", "unpack", pack, err="")
            self.assertEqual(tree(self.cache), self.whole, rules)
