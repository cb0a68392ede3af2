# SPDX-License-Identifier: Apache-2.0
"""cache, run and doctor."""
import glob
import os
import time

from cli_case import CliCase, NO_DRIVER, NO_NVRTC, NO_NVRTC_MESSAGE, OTHER, SMALL


class Cache(CliCase):
    def test_actions(self):
        self.refused("cache", message="cache needs an action: allowed is stat, list, clear")
        self.refused("cache", "verify", message="cache verify: allowed is stat, list, clear")
        self.refused("cache", "stat", "--no-cache", message="cache stat contradicts --no-cache")

    def test_empty(self):
        self.assertEqual(self.gemmjit("cache", "stat", err="").out,
                         f"root     {self.cache}\nentries  0\nbytes    0\ndamaged  0\n")
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
                         {"root": self.cache, "entries": 2, "bytes": sizes, "damaged": 0})
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
        self.assertIn("GEMMJIT_NVRTC      yes  path of the libnvrtc to use, and no other: /nonexistent/", text)

    def test_cache_off(self):
        env = {"GEMMJIT_CACHE_DIR": None, "HOME": None, **NO_DRIVER}
        told = self.gemmjit("doctor", "--json", status=3, env={**env, **NO_NVRTC}).json()
        self.assertFalse(told["cache"]["ok"])
        self.assertIn("kernels are kept in memory only", told["cache"]["why"])
        told = self.gemmjit("doctor", "--json", "--no-cache", status=3, env={**env, **NO_NVRTC}).json()
        self.assertEqual(told["cache"], {"ok": False, "why": "off by --no-cache"})
