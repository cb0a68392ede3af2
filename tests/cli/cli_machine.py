# SPDX-License-Identifier: Apache-2.0
"""cache, run and doctor."""
import glob
import os
import shutil
import time

import cli_case
from cli_case import CliCase, FAKE_NVRTC, NO_DRIVER, NO_NVRTC, NO_NVRTC_MESSAGE, OTHER, SMALL


class Cache(CliCase):
    def test_actions(self):
        self.refused("cache", message="cache needs an action: allowed is stat, list, verify, trim, why, pack, unpack, clear")
        self.refused("cache", "shrink", message="cache shrink: allowed is stat, list, verify, trim, why, pack, unpack, clear")
        self.refused("cache", "stat", "--no-cache", message="cache stat contradicts --no-cache")

    def test_empty(self):
        self.assertEqual(self.gemmjit("cache", "stat", err="").out,
                         f"root       {self.cache}\nentries    0\nbytes      0\ndamaged    0\ntemporary  0\n")
        self.assertEqual(self.gemmjit("cache", "list", err="").out, "")
        self.assertEqual(self.gemmjit("cache", "clear", err="").out, "removed  0\n")
        self.assertFalse(os.path.exists(self.cache), "looking makes no directory")

    def test_entries(self):
        self.need_nvrtc()
        self.gemmjit("prewarm", "--key", SMALL, "--key", OTHER, "-q")
        entries = self.gemmjit("cache", "list", "--json", err="").json()["entries"]
        self.assertEqual(len(entries), 2)
        sizes = sum(os.path.getsize(entry["file"]) for entry in entries)
        self.assertEqual(self.gemmjit("cache", "stat", "--json").json(),
                         {"root": self.cache, "entries": 2, "bytes": sizes, "damaged": 0, "temporary": 0, "unread": 0})
        with open(entries[0]["file"], "r+b") as file:
            file.truncate(100)
        told = self.gemmjit("cache", "stat", "--json").json()
        self.assertEqual((told["entries"], told["damaged"]), (1, 1))
        self.assertRegex(self.gemmjit("cache", "list", err="").out, r"(?m)\.gjc +100  damaged  ")
        again = self.gemmjit("prewarm", "--key", SMALL, "--key", OTHER, "--json", "-q").json()
        self.assertEqual((again["compiled"], again["stats"]["damaged_entries"]), (1, 1))
        self.assertEqual(self.gemmjit("cache", "clear", "--json", err="").json(),
                         {"root": self.cache, "removed": 2})
        self.assertEqual(glob.glob(self.cache + "/**/*.gjc", recursive=True), [])


    def test_foreign_names(self):
        self.need_nvrtc()
        self.gemmjit("prewarm", "--key", SMALL, "--key", OTHER, "-q")
        files = [entry["file"] for entry in self.gemmjit("cache", "list", "--json").json()["entries"]]
        free = next(name for name in ("aa", "bb", "cc") if not os.path.exists(f"{self.cache}/v1/{name}"))
        foreign = f"{self.cache}/v1/{free}"
        with open(os.path.dirname(files[0]) + "/.tmp-1-2-3", "w", encoding="utf-8"):
            pass
        for plant, what in ((lambda: os.symlink("/tmp", foreign), "is a symbolic link"),
                            (lambda: os.mknod(foreign), "is not a directory")):
            plant()
            warning = (f"gemmjit: warning: the cache in {self.cache} is not listed in full: v1/{free}: the directory of "
                       f"the file {what}\n")
            listed = self.gemmjit("cache", "list", status=1, err=warning).out
            self.assertEqual(len(listed.splitlines()), 2)
            told = self.gemmjit("cache", "list", "--json", status=1, err=warning).json()
            self.assertEqual([entry["file"] for entry in told["entries"]], files)
            told = self.gemmjit("cache", "stat", "--json", "-q", status=1, err=warning).json()
            self.assertEqual((told["entries"], told["temporary"], told["unread"]), (2, 1, 1))
            self.assertEqual(told["unread_reason"], f"v1/{free}: the directory of the file {what}")
            doctor = self.gemmjit("doctor", env=NO_DRIVER, err="").out
            self.assertRegex(doctor, rf"(?m)^cache +yes .*, 2 entries, \d+ bytes; not read: v1/{free}: .* {what}$")
            os.unlink(foreign)
        os.symlink("/tmp", foreign)
        self.assertEqual(self.gemmjit("cache", "clear", err="").out, "removed  2\n")
        self.assertTrue(os.path.islink(foreign))

    def test_link_to_nothing(self):
        os.symlink("nowhere", self.cache)
        self.refused("cache", "stat", status=1, message=f"the disk cache cannot be used: {self.cache}: the root is a "
                                                        "symbolic link to what does not exist")


class BuildTree(CliCase):
    """A command in a Meson build tree uses the toolkit linked there; the same file elsewhere does not."""

    def test_toolkit(self):
        if "old" not in FAKE_NVRTC:
            self.skipTest("no fake libnvrtc was built")
        env = {"PATH": "/nonexistent", "GEMMJIT_NVRTC": None, **NO_DRIVER}
        for place in ("built/tools", "built/toolkit/lib", "built/toolkit/bin"):
            os.makedirs(self.path(place))
        program = shutil.copy(cli_case.GEMMJIT, self.path("built/tools/gemmjit"))
        library = shutil.copy(FAKE_NVRTC["old"], self.path("built/toolkit/lib/libnvrtc.so.13"))
        script = self.write("built/toolkit/bin/nvdisasm", "#!/bin/sh\n")
        os.chmod(script, 0o755)

        def doctor(status, **more):
            found = self.gemmjit("doctor", "--json", program=program, status=status, env={**env, **more}).json()
            return found["libnvrtc"]["why"], found["nvdisasm"].get("path")

        installed = self.gemmjit("doctor", "--json", status=None, program=program, env=env).json()
        self.assertNotIn(self.folder, installed["libnvrtc"]["why"])
        self.assertNotIn(self.folder, installed["nvdisasm"]["why"])
        os.mkdir(self.path("built/meson-private"))
        too_old = f"{library} is too old: found NVRTC 11.8, needed 12.3 or later"
        other = installed["nvdisasm"].get("path")
        self.assertEqual(doctor(3), (too_old, other or script))
        self.assertEqual(doctor(3, GEMMJIT_NVRTC=""), (too_old, other or script))
        self.assertEqual(doctor(3, **NO_NVRTC), (NO_NVRTC_MESSAGE, other or script))

    def test_no_path_of_the_source_tree(self):
        with open(cli_case.GEMMJIT, "rb") as file:
            self.assertNotIn(b"/.toolkit/bin", file.read())


class Run(CliCase):
    def test_extents(self):
        self.refused("run", "--m", "1", "--n", "8", message="--k is needed")
        self.refused("run", "--m", "0", "--n", "8", "--k", "8",
                     message="--m 0: allowed is a whole number from 1 to 2147479551")

    def test_bad_problem(self):
        error = self.gemmjit("run", "--m", "8", "--n", "8", "--k", "8", "--a", "f16.k", "--json", status=2,
                             env=NO_DRIVER).json()["error"]
        self.assertEqual(error["status"], "GJ_ERR_UNSUPPORTED")
        self.refused("run", "--m", "8", "--n", "8", "--k", "5000000", "--check", env=NO_DRIVER,
                     message="--check with --k 5000000: sums are exact up to a k of 4194304 only")

    def test_no_gpu(self):
        for more in ((), ("--key", SMALL), ("--check",)):
            result = self.gemmjit("run", "--m", "128", "--n", "128", "--k", "64", *more, status=3, env=NO_DRIVER)
            self.assertRegex(result.err, r"\Agemmjit: the CUDA driver cannot be loaded: .*/nonexistent/.*\n\Z")
            self.assertEqual(result.out, "")
        error = self.gemmjit("run", "--m", "1", "--n", "8", "--k", "8", "--json", status=3,
                             env=NO_DRIVER).json()["error"]
        self.assertEqual(error["status"], "GJ_ERR_NO_DRIVER")


class Doctor(CliCase):
    def test_all(self):
        self.need_nvrtc()
        start = time.monotonic()
        told = self.gemmjit("doctor", "--json", env=NO_DRIVER, err="").json()
        self.assertLess(time.monotonic() - start, 5)  # 10 ms when measured; libnvrtc may have to come from disk
        self.assertTrue(told["libnvrtc"]["ok"])
        self.assertFalse(told["libcuda"]["ok"])
        self.assertEqual(told["gpus"], [])
        self.assertEqual((told["cache"]["root"], told["cache"]["entries"]), (self.cache, 0))
        self.assertEqual(told["environment"]["GEMMJIT_CACHE_DIR"], self.cache)
        self.assertFalse(os.path.exists(self.cache))

    def test_lines(self):
        text = self.gemmjit("doctor", status=3, env={**NO_NVRTC, **NO_DRIVER}, err="").out
        self.assertIn(f"libnvrtc  no   {NO_NVRTC_MESSAGE}\n", text)
        self.assertIn("GPU       no   no driver; only running kernels needs one\n", text)
        self.assertIn(f"cache     yes  {self.cache}, 0 entries, 0 bytes\n", text)
        self.assertIn("GEMMJIT_NVRTC        yes  path of the libnvrtc to use, and no other: /nonexistent/", text)

    def test_cache_off(self):
        env = {"GEMMJIT_CACHE_DIR": None, "HOME": None, **NO_DRIVER}
        told = self.gemmjit("doctor", "--json", status=3, env={**env, **NO_NVRTC}).json()
        self.assertFalse(told["cache"]["ok"])
        self.assertIn("kernels are kept in memory only", told["cache"]["why"])
        told = self.gemmjit("doctor", "--json", "--no-cache", status=3, env={**env, **NO_NVRTC}).json()
        self.assertEqual(told["cache"], {"ok": False, "why": "off by --no-cache"})
