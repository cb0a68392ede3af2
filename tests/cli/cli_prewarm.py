# SPDX-License-Identifier: Apache-2.0
"""prewarm: manifests, compiles, and a second run that does nothing."""
import json
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

    def test_zero_in_a_text(self):
        self.check('{"version": 1,\n "keys": ["tile=64x64\\u0000,sched=pong"]}', r"FILE:2:22: a text has no \u0000 in it")
        self.check('{"version": 1, "keys": ["a"], "ver\\u0000": 1}', r"FILE:1:35: a text has no \u0000 in it")
        path = self.write("n.json", '{"version": 1, "keys": ["tile=64x64\\\\u0000"]}')  # a backslash, then u0000
        self.refused("prewarm", "--manifest", path, message="of 1 key these are refused:",
                     reasons=(path + r": keys[0]: tile=64x64\u0000: allowed is MxN with M and N from 1 to 9999",))

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
        self.refused("prewarm", message="no key is given: use --key TEXT, --manifest FILE or --model FILE")
        self.refused("prewarm", "--manifest", "x", "--key", "", message="--key and --manifest are both given")
        self.refused("prewarm", "--model", "x", "--key", "", message="--key and --model are both given")
        self.refused("prewarm", "--model", "x", "--manifest", "x", message="--manifest and --model are both given")


class Shards(CliCase):
    KEYS = [f"tile={m}x{n},cluster=1x1" for m in (64, 128) for n in (16, 32, 48, 64, 80)]

    def listed(self, keys, *more):
        return self.gemmjit("prewarm", *[f"--key={key}" for key in keys], "--dry-run", *more, err="").out.splitlines()

    def test_partition(self):
        """Disjoint, complete, balanced, and the same whatever the order and the form of the keys."""
        everything = self.listed(self.KEYS)
        self.assertEqual(everything, self.listed(self.KEYS + self.KEYS[:3]))
        self.assertEqual(len(set(everything)), 10)
        turned = [",".join(reversed(key.split(","))) for key in reversed(self.KEYS)]
        manifest = self.write("m.json", json.dumps({"version": 1, "keys": turned}))
        for count in (1, 2, 3, 7, 10, 11, 1000000):
            found = []
            for number in range(1, min(count, 12) + 1):
                shard = f"{number}/{count}"
                part = self.listed(self.KEYS, "--shard", shard)
                self.assertIn(len(part) - 10 // count, (0, 1))
                other = self.gemmjit("prewarm", "--manifest", manifest, "--dry-run", "--shard", shard, "--json").json()
                self.assertEqual(other, {"shard": {"number": number, "count": count}, "num_all": 10,
                                         "keys": other["keys"]})
                self.assertEqual(sorted(other["keys"]), sorted(part))
                found += part
            self.assertEqual(sorted(found), sorted(everything), count)
        self.assertFalse(os.path.exists(self.cache), "a dry run touches no cache")

    def test_dealt_in_order_of_the_texts(self):
        keys = sorted(self.listed(self.KEYS))
        self.assertEqual(self.listed(self.KEYS, "--shard=2/4"), keys[1::4])

    def test_bad_shard(self):
        for text in ("", "1", "0/2", "3/2", "1/0", "-1/2", "1/2/3", "1/", "/2", "1 /2", "+1/2", "a/b", "1/1000001",
                     "18446744073709551617/18446744073709551618"):
            self.refused("prewarm", "--key", SMALL, "--shard", text,
                         message=f"--shard {text}: allowed is I/N with I from 1 to N and N up to 1000000")

    def test_compile_in_parts(self):
        """The parts fill one cache; what is there already is not compiled again; a shard may be empty."""
        self.need_nvrtc()
        keys = [f"--key={key}" for key in self.KEYS[:3]]
        first = self.gemmjit("prewarm", *keys, "--shard=1/2", "-j1")
        self.assertRegex(first.err, r"\nshard 1 of 2, 2 of 3 keys: 2 compiled, 0 on disk, 0 failed in ")
        again = self.gemmjit("prewarm", *keys, "--json", "-q", err="").json()
        self.assertEqual((again["compiled"], again["disk"]), (1, 2))
        empty = self.gemmjit("prewarm", *keys, "--shard=4/4")
        self.assertRegex(empty.err, r"\Ashard 4 of 4, 0 of 3 keys: 0 compiled, 0 on disk, 0 failed in ")
        self.assertEqual(len(empty.out.splitlines()), 1)


class Prewarm(CliCase):
    def test_twice(self):
        self.need_nvrtc()
        path = self.write("m.json", f'{{"version": 1, "keys": ["{SMALL}", "{OTHER}", "cluster=1x1,tile=64x64"]}}')
        first = self.gemmjit("prewarm", "--manifest", path, "--json", "-q", "-j", "2", err="").json()
        self.assertEqual((first["compiled"], first["disk"], first["failed"]), (2, 0, 0))
        self.assertEqual(first["stats"]["compiles"], 2)
        self.assertEqual([item["origin"] for item in first["keys"]], ["compiled", "compiled"])
        self.assertEqual(([item["stored"] for item in first["keys"]], first["not_stored"]), ([True, True], 0))
        second = self.gemmjit("prewarm", "--manifest", path, "--json", "-q", err="").json()
        self.assertEqual((second["compiled"], second["disk"], second["failed"]), (0, 2, 0))
        stats = second["stats"]
        self.assertEqual((stats["compiles"], stats["disk_hits"], stats["disk_misses"], stats["nvrtc_opens"]),
                         (0, 2, 0, 0))
        self.assertEqual([item["stored"] for item in second["keys"]], [True, True])
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
        self.refused("prewarm", "--key", SMALL, "--no-cache",
                     message="prewarm contradicts --no-cache: it fills the disk cache")

    def test_hint_at_the_log(self):
        if "logging" not in FAKE_NVRTC:
            self.skipTest("no fake libnvrtc was built")
        env = {"GEMMJIT_NVRTC": FAKE_NVRTC["logging"]}
        self.assertRegex(self.gemmjit("prewarm", "--key", SMALL, "-q", status=1, env=env).err,
                         r"\A[^\n]* \(-v shows the log\)\n\Z")
        told = self.gemmjit("prewarm", "--key", SMALL, "-q", "-v", status=1, env=env).err
        self.assertNotIn("-v shows the log", told)
        self.assertIn("\n    first line\n", told)

    def test_not_stored(self):
        """A file size limit stops every store; it neither ends the command nor goes unsaid."""
        self.need_nvrtc()
        result = self.shell('ulimit -f 4; exec "$0" prewarm --key "$1" --key "$2" -j 1 --json', SMALL, OTHER)
        self.assertEqual(result.returncode, 1, result.stderr)
        self.assertIn("\ngemmjit: 2 cubins could not be written to the disk cache\n", result.stderr)
        self.assertRegex(result.stderr, r"compiled in \d+ ms, not stored\n")
        self.assertRegex(result.stderr, r"\n2 compiled, 0 on disk, 0 failed, 2 not stored in ")
        told = json.loads(result.stdout)
        self.assertEqual(([item["stored"] for item in told["keys"]], told["not_stored"]), ([False, False], 2))

    def test_cache_that_cannot_be_written(self):
        """Nothing is compiled, and what is there is found. root may write anywhere: then on a read-only mount."""
        self.need_nvrtc()
        self.gemmjit("prewarm", "--key", SMALL, "-q")
        script = '"$0" prewarm --key "$1" --key "$2" --key "$3" -j 1 --json; echo $? >&2; "$0" doctor >&2'
        keys = (SMALL, OTHER, "tile=128x64,cluster=1x1")
        version = os.path.join(self.cache, "v1")
        if os.geteuid() == 0:
            script = f'mount --bind "{version}" "{version}" && mount -o remount,bind,ro "{version}" && {{ {script}; }}'
            if self.shell("exec unshare -m true").returncode != 0:
                self.skipTest("no mount namespace for a read-only directory")
            result = self.shell(f"exec unshare -m sh -c '{script}' \"$0\" \"$@\"", *keys)
        else:
            os.chmod(version, 0o500)
            self.addCleanup(os.chmod, version, 0o700)
            result = self.shell(script, *keys)
        told = json.loads(result.stdout)
        self.assertEqual([item["origin"] for item in told["keys"]], ["disk", "failed", "failed"], result.stderr)
        self.assertEqual((told["stats"]["compiles"], told["stats"]["nvrtc_opens"], told["failed"]), (0, 0, 2))
        self.assertRegex(result.stderr, r"not compiled: the disk cache cannot be written: [^\n]*/cache: the directory v1 "
                                        r"cannot be written: (Read-only file system|Permission denied)\n")
        self.assertIn("sched=pingpong: not compiled, as above\n", result.stderr)
        self.assertIn("with 1 thread\n1\n", result.stderr)
        self.assertRegex(result.stderr, r"(?m)^cache +yes .*, 1 entry, \d+ bytes, read-only: ")

    def test_closed_streams(self):
        """What is said on stderr never lands in an entry, whichever streams are closed."""
        self.need_nvrtc()
        keys = [f"--key=tile={m}x{n},cluster=1x1" for m in (64, 128) for n in (32, 64, 96, 128)]
        for closed in ("<&- 2>&-", "<&- >&- 2>&-", "2>&-"):
            self.gemmjit("cache", "clear")
            result = self.shell(f'exec "$0" prewarm -j 4 "$@" {closed}', *keys)
            self.assertEqual(result.returncode, 1 if " >&-" in closed else 0)
            told = self.gemmjit("cache", "stat", "--json").json()
            self.assertEqual((told["entries"], told["damaged"], told["temporary"]), (len(keys), 0, 0), closed)
