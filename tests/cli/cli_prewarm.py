# SPDX-License-Identifier: Apache-2.0
"""prewarm: manifests, compiles, and a second run that does nothing."""
import os

from cli_case import CliCase, FAKE_NVRTC, NO_NVRTC, NO_NVRTC_MESSAGE, OTHER, SMALL


class Manifest(CliCase):
    def check(self, text, message, **more):
        path = self.write("m.json", text)
        self.refused("prewarm", "--manifest", path, message=message.replace("FILE", path), **more)
        self.assertFalse(os.path.exists(self.cache), "nothing may be compiled")

    def test_syntax(self):
        self.check('{"version": 1,\n "keys": ["tile=64x64" "x"]}\n', "FILE:2:24: this is not JSON")
        self.check("", "FILE:1:1: this is not JSON")
        self.check('{"version": 1, "keys": ["a"]} x', "FILE:1:31: this is not JSON")

    def test_members(self):
        self.check('{"version": 1, "keys": ["a"], "extra": 0}',
                   'FILE: unknown member "extra": the members are version, keys')
        self.check('{"version": 1, "keys": ["a"], "keys": []}', "FILE: member keys is given twice")
        self.check('[]', "FILE: the document is not an object with the members version and keys")

    def test_version(self):
        self.check('{"keys": ["a"]}', "FILE: no number in member version: 1 is the only version")
        self.check('{"version": 2, "keys": ["a"]}', "FILE: version 2 is unknown: 1 is the only version")

    def test_keys(self):
        self.check('{"version": 1}', "FILE: member keys is not an array with at least one key")
        self.check('{"version": 1, "keys": []}', "FILE: member keys is not an array with at least one key")
        self.check('{"version": 1, "keys": ["", 7]}', "FILE: keys[1] is not a string")

    def test_all_bad_keys_are_told(self):
        self.check('{"version": 1, "keys": ["tile=64x64", "tile=0", "cluster=3x1"]}',
                   "of 3 keys these are refused:",
                   reasons=("FILE: keys[1]: tile=0: allowed is MxN with M and N from 1 to 9999".replace(
                       "FILE", self.path("m.json")),
                            "FILE: keys[2]: cluster=3x1 is not generated: only 1x1, 2x1, 1x2, 2x2, 4x1 and 1x4 are".replace(
                                "FILE", self.path("m.json"))))

    def test_missing_file(self):
        self.refused("prewarm", "--manifest", "/nonexistent/m.json",
                     message="/nonexistent/m.json cannot be read: No such file or directory")
        self.refused("prewarm", "--manifest", "/tmp", message="/tmp cannot be read: Is a directory")

    def test_what_is_needed(self):
        self.refused("prewarm", message="no key is given: use --key TEXT or --manifest FILE")
        self.refused("prewarm", "--manifest", "x", "--key", "", message="--key and --manifest are both given")


class Prewarm(CliCase):
    def test_twice(self):
        self.need_nvrtc()
        path = self.write("m.json", f'{{"version": 1, "keys": ["{SMALL}", "{OTHER}", "cluster=1x1,tile=64x64"]}}')
        first = self.gemmjit("prewarm", "--manifest", path, "--json", "-q", "-j", "2", err="").json()
        self.assertEqual((first["compiled"], first["disk"], first["failed"]), (2, 0, 0))
        self.assertEqual(first["stats"]["compiles"], 2)
        self.assertEqual([item["origin"] for item in first["keys"]], ["compiled", "compiled"])
        second = self.gemmjit("prewarm", "--manifest", path, "--json", "-q", err="").json()
        self.assertEqual((second["compiled"], second["disk"], second["failed"]), (0, 2, 0))
        stats = second["stats"]
        self.assertEqual((stats["compiles"], stats["disk_hits"], stats["disk_misses"], stats["nvrtc_opens"]),
                         (0, 2, 0, 0))
        for one, two in zip(first["keys"], second["keys"]):
            for name in ("key", "entry_name", "registers", "smem_bytes", "threads", "stages", "cubin_bytes"):
                self.assertEqual(one[name], two[name])

    def test_table_and_lines(self):
        self.need_nvrtc()
        result = self.gemmjit("prewarm", "--key", SMALL, "--key", OTHER, "-j", "1")
        lines = result.out.splitlines()
        self.assertEqual(lines[0].split(), ["registers", "smem", "compile", "ms", "origin", "key"])
        self.assertRegex(lines[1], r"^ +\d+ +\d+ +\d+\.\d  compiled  tile=64x64,cluster=1x1,sched=pingpong$")
        self.assertRegex(result.err, r"\A\[1/2\] tile=64x64,cluster=1x1,sched=pingpong: compiled in \d+ ms\n"
                                     r"\[2/2\] tile=64x32,cluster=1x1,sched=pingpong: compiled in \d+ ms\n"
                                     r"2 compiled, 0 on disk, 0 failed in \d+\.\d\d s with 1 thread\n\Z")
        again = self.gemmjit("prewarm", "--key", SMALL, "-q", err="").out.splitlines()
        self.assertRegex(again[1], r"^ +\d+ +\d+ +-  disk      tile=64x64,")

    def test_single_bad_key(self):
        self.refused("prewarm", "--key", "tile=64x64,tile=64x64",
                     message="field tile is given twice, the second time as 64x64")

    def test_no_nvrtc(self):
        result = self.gemmjit("prewarm", "--key", SMALL, "--key", OTHER, "-q", "-j", "1", status=3, env=NO_NVRTC)
        self.assertEqual(result.err, f"gemmjit: {SMALL},sched=pingpong: {NO_NVRTC_MESSAGE}\n"
                                     f"gemmjit: {OTHER},sched=pingpong: no libnvrtc, as above\n")
        told = self.gemmjit("prewarm", "--key", SMALL, "--json", status=3, env=NO_NVRTC).json()
        self.assertEqual(told["failed"], 1)
        self.assertEqual(told["keys"][0]["error"]["message"], NO_NVRTC_MESSAGE)

    def test_failed_compile(self):
        if "empty" not in FAKE_NVRTC:
            self.skipTest("no fake libnvrtc was built")
        result = self.gemmjit("prewarm", "--key", SMALL, "--key", OTHER, "-q", "--json", status=1,
                              env={"GEMMJIT_NVRTC": FAKE_NVRTC["empty"]})
        self.assertEqual(len(result.err.splitlines()), 2)
        self.assertEqual(result.json()["stats"]["compile_failures"], 2)
        self.assertEqual(self.gemmjit("cache", "stat", "--json").json()["entries"], 0)

    def test_unusable_cache(self):
        self.write("file", "")
        result = self.gemmjit("prewarm", "--key", SMALL, "--cache-dir", self.path("file"), status=1)
        self.assertTrue(result.err.startswith("gemmjit: the disk cache cannot be used: "), result.err)
        self.assertEqual(len(result.err.splitlines()), 1)

    def test_without_cache(self):
        self.need_nvrtc()
        result = self.gemmjit("prewarm", "--key", SMALL, "--no-cache", "--json", "-q", err="").json()
        self.assertEqual((result["compiled"], result["stats"]["disk_bytes_written"]), (1, 0))
        self.assertFalse(os.path.exists(self.cache))
