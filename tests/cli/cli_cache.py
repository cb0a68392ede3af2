# SPDX-License-Identifier: Apache-2.0
"""cache verify, trim and why."""
import glob
import os

from cli_case import CliCase, OTHER, SMALL

DAY = 24 * 3600


class Cache(CliCase):
    def setUp(self):
        super().setUp()
        self.need_nvrtc()
        self.gemmjit("prewarm", "--key", SMALL, "--key", OTHER)

    def files(self):
        """Entries, the one unused for longest first."""
        return sorted(glob.glob(os.path.join(self.cache, "v1/??/*.gjc")), key=lambda path: os.stat(path).st_mtime)

    def age(self, path, seconds):
        past = os.stat(path).st_mtime - seconds
        os.utime(path, (past, past))

    def test_verify(self):
        self.assertEqual(self.gemmjit("cache", "verify", err="").out, "sound    2\ndamaged  0\n")
        path = self.files()[0]
        with open(path, "r+b") as file:
            file.seek(300)
            byte = file.read(1)
            file.seek(300)
            file.write(bytes([byte[0] ^ 1]))
        text = self.gemmjit("cache", "verify", status=1, err="").out
        self.assertEqual(text, f"{path}: the entry has a wrong checksum\nsound    1\ndamaged  1\n")
        document = self.gemmjit("cache", "verify", "--json", status=1).json()
        self.assertEqual((document["sound"], [item["file"] for item in document["damaged"]]), (1, [path]))
        self.gemmjit("prewarm", "--key", SMALL, "--key", OTHER)  # heals
        self.assertEqual(self.gemmjit("cache", "verify").out, "sound    2\ndamaged  0\n")

    def test_trim_removes_the_oldest(self):
        first, second = self.files()
        self.age(first, 3 * DAY)
        bytes_of_second = os.stat(second).st_size
        told = self.gemmjit("cache", "trim", f"--max-size={bytes_of_second}", "--dry-run", "--json").json()
        self.assertEqual([item["file"] for item in told["removed"]], [os.path.basename(first)])
        self.assertEqual((told["dry_run"], told["entries_left"], told["bytes_left"]), (True, 1, bytes_of_second))
        self.assertEqual(len(self.files()), 2)
        self.gemmjit("cache", "trim", f"--max-size={bytes_of_second}", err="")
        self.assertEqual(self.files(), [second])
        self.assertIn("removed  0 entries", self.gemmjit("cache", "trim", "--max-size=1T").out)
        self.gemmjit("cache", "trim", "--max-size=0")
        self.assertEqual(self.files(), [])

    def test_use_keeps_an_entry(self):
        for path in self.files():
            self.age(path, 3 * DAY)
        self.age(self.files()[0], DAY)
        unused, used = self.files()
        key = next(item["key"] for item in self.gemmjit("cache", "list", "--json").json()["entries"]
                   if item["file"].endswith(os.path.basename(unused)))
        self.assertEqual(self.gemmjit("prewarm", "--key", key, "--json").json()["stats"]["disk_hits"], 1)
        self.assertEqual(self.files(), [used, unused], "the load has set the time")
        before = os.stat(unused).st_mtime
        self.gemmjit("prewarm", "--key", key)
        self.assertEqual(os.stat(unused).st_mtime, before, "once a day is enough")

    def bounded(self, size, *keys, jobs=1):
        arguments = [word for key in keys for word in ("--key", key)]
        return self.gemmjit("prewarm", "-q", "--json", "-j", str(jobs), *arguments, err="",
                            env={"GEMMJIT_CACHE_MAX_SIZE": size}).json()

    def test_bound(self):
        """A store removes what was used least recently, a lookup nothing."""
        for path in self.files():
            self.age(path, 3 * DAY)
        self.assertEqual(self.bounded("1", SMALL)["stats"]["disk_hits"], 1)
        unused, used = self.files()
        size = os.stat(unused).st_size + os.stat(used).st_size
        told = self.bounded(str(size), "tile=64x16,cluster=1x1")
        self.assertEqual((told["compiled"], told["not_stored"]), (1, 0))
        left = self.files()
        self.assertEqual((len(left), unused in left, used in left), (2, False, True))

    def test_bound_of_many(self):
        """Whatever is compiled, the bytes stay below the bound, and each kernel is had."""
        keys = [f"tile=64x{n},cluster=1x1{more}" for n in range(16, 129, 16) for more in ("", ",sched=coop")]
        told = self.bounded("64K", *keys, jobs=2)
        self.assertEqual((told["failed"], told["stats"]["disk_write_failures"]), (0, 0))
        self.assertLessEqual(sum(os.stat(path).st_size for path in self.files()), 65536)
        self.assertGreater(len(self.files()), 1)
        self.assertEqual(self.gemmjit("cache", "verify", err="").status, 0)

    def test_bad_bound(self):
        for size in ("1x", "-1", "1025T", "G"):
            told = self.gemmjit("prewarm", "--key", SMALL, "--json", env={"GEMMJIT_CACHE_MAX_SIZE": size})
            self.assertIn(f"gemmjit: warning: GEMMJIT_CACHE_MAX_SIZE={size} is left out: it must be a whole number",
                          told.err)

    def test_foreign_files_stay(self):
        shard = os.path.dirname(self.files()[0])
        for name in ("notes", "x.gjc"):
            with open(os.path.join(shard, name), "w", encoding="utf-8"):
                pass
        self.gemmjit("cache", "trim", "--max-size", "0")
        self.assertEqual(sorted(os.listdir(shard)), ["notes", "x.gjc"])

    def test_sizes(self):
        rule = ("allowed is a whole number of bytes up to 1024T, with K, M, G or T behind it for powers of 1024")
        for size in ("", "x", "-1", "1x", "1KB", "K", "1.5G", "2048T", "99999999999999999999"):
            self.refused("cache", "trim", f"--max-size={size}", message=f"--max-size {size}: {rule}")
        self.refused("cache", "trim", message="cache trim needs --max-size SIZE")
        for size in ("1K", "1M", "1G", "1024T"):
            self.gemmjit("cache", "trim", "--dry-run", f"--max-size={size}")

    def test_options_of_other_actions(self):
        for action, option in (("stat", "--dry-run"), ("list", "--max-size=1"), ("verify", "--key=x"), ("clear", "--dry-run"),
                               ("trim", "--key=x"), ("why", "--max-size=1")):
            self.refused("cache", action, option, message=f"cache {action} takes no {option.split('=')[0]}")

    def test_why(self):
        self.assertIn("in the cache: " + self.cache, self.gemmjit("cache", "why", "--key", SMALL, err="").out)
        text = self.gemmjit("cache", "why", "--key", SMALL + ",d=f32.n", status=1, err="").out
        self.assertRegex(text, r"(?s)^not in the cache; nearest: .*\nd: asked f32\.n, there bf16\.n\n$")
        found = self.gemmjit("cache", "why", "--key", "op=act,act=relu," + SMALL, "--json", status=1).json()
        self.assertEqual((found["cached"], found["differences"]), (False, [
            "op: asked act, there gemm", "p: asked bf16.n, there none", "act: asked relu, there none"]))
        self.gemmjit("cache", "clear")
        self.assertEqual(self.gemmjit("cache", "why", "--key", SMALL, status=1).out, "not in the cache, which has no entry\n")
        self.refused("cache", "why", message="cache why needs --key TEXT, once")
        self.gemmjit("cache", "why", "--key", "tile=1x1", status=2)
