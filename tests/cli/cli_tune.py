# SPDX-License-Identifier: Apache-2.0
"""tune: what it refuses, tables that are merged, and on a GPU that does nothing what it finds."""
import json
import os

import cli_case
from cli_case import CliCase, DEFAULT_KEY, NO_DRIVER

SHAPE = ("--m", "504", "--n", "512", "--k", "512")
FAST = "tile=64x80,cluster=1x2,sched=coop,tiles=dynamic,swap_ab=no"
FAST_NAME = "_dynamic"


class TuneCase(CliCase):
    def entries(self, name="out.json"):
        with open(self.path(name), encoding="utf-8") as file:
            table = json.load(file)
        self.assertEqual((table["format"], table["version"]), ("gemmjit-tuning", 1))
        return table["entries"]


class Refused(TuneCase):
    def test_usage(self):
        self.refused("tune", *SHAPE, message="-o is needed: the table that is written")
        self.refused("tune", "measure", "-o", "out.json", message='unknown action "measure": tune has merge only')
        self.refused("tune", "--m", "1", "--n", "8", "-o", "out.json", message="--k is needed, or --shapes")
        self.refused("tune", *SHAPE, "-o", "out.json", "--op", "act", "--act", "relu", "--p", "bf16.n",
                     message="tune measures op=gemm only")
        self.refused("tune", *SHAPE, "-o", "out.json", "--candidates", "33",
                     message="--candidates 33: allowed is a whole number from 1 to 32")
        self.assertEqual(os.listdir(self.folder), [])

    def test_shapes_of_one_class(self):
        shapes = self.write("shapes.json", '[{"m":65,"n":8,"k":8},{"m":129,"n":8,"k":8},{"m":128,"n":8,"k":8}]')
        self.refused("tune", "--shapes", shapes, "-o", "out.json",
                     message="m = 65 and 128 with n = 8, k = 8 are of one class, that of m = 128")

    def test_a_broken_table_stays(self):
        path = self.write("out.json", "{}")
        self.refused("tune", *SHAPE, "-o", path, message=f"{path}: member format is missing")
        with open(path, encoding="utf-8") as file:
            self.assertEqual(file.read(), "{}")

    def test_no_gpu(self):
        result = self.gemmjit("tune", *SHAPE, "-o", "out.json", status=3, env=NO_DRIVER)
        self.assertRegex(result.err, r"\Agemmjit: the CUDA driver cannot be loaded: .*/nonexistent/.*\n\Z")
        self.assertFalse(os.path.exists(self.path("out.json")))


class Merge(TuneCase):
    def test_the_first_wins(self):
        first = self.write_table("first.json", {"m_class": 64, "us": 1}, {"m_class": 128, "us": 2})
        second = self.write_table("second.json", {"m_class": 64, "us": 3}, {"m_class": 8, "us": 4, "gpu": "A"},
                                  {"m_class": 8, "us": 5})
        told = self.gemmjit("tune", "merge", first, second, "-o", "out.json", err="", env=NO_DRIVER)
        self.assertEqual(told.out, "out.json: 4 entries of 2 tables; left out, as an earlier table has them: 1\n")
        self.assertEqual([(entry["gpu"], entry["m_class"], entry["us"]) for entry in self.entries()],
                         [("A", 8, 4), ("Idle GPU", 8, 5), ("Idle GPU", 64, 1), ("Idle GPU", 128, 2)])
        told = self.gemmjit("tune", "merge", "out.json", "-o", "again.json", "--json").json()
        self.assertEqual(told, {"table": "again.json", "entries": 4, "tables": 1, "left_out": 0})
        with open(self.path("out.json"), "rb") as out, open(self.path("again.json"), "rb") as again:
            text = out.read()
            self.assertEqual(again.read(), text)
        self.assertNotIn(b"\t", text)
        self.assertEqual(text.count(b"\n"), 4 + 6)
        whole = self.entries()[0]
        self.assertEqual(whole["problem"], DEFAULT_KEY.partition(",tile=")[0])
        self.assertEqual(whole["config"], "tile=64x64,cluster=1x1,sched=pingpong,tiles=static,swap_ab=no")
        self.assertEqual((whole["default_us"], whole["measured"]), (10, "2026-12-01"))

    def test_no_entries(self):
        self.gemmjit("tune", "merge", self.write_table("first.json"), "-o", "out.json")
        self.assertEqual(self.entries(), [])

    def test_refused(self):
        good = self.write_table("good.json", {})
        broken = self.write_table("broken.json", {}, {"m_class": 63})
        self.refused("tune", "merge", "-o", "out.json", message="tune merge needs the names of tables")
        self.refused("tune", "merge", good, message="-o is needed: the table that is written")
        self.refused("tune", "merge", good, "-o", "out.json", "--m", "8", message="--m does not go with tune merge")
        self.refused("tune", "merge", good, "-o", "out.json", "--a", "f16.k",
                     message="flags of a problem do not go with tune merge")
        self.refused("tune", "merge", good, broken, "-o", "out.json",
                     message=f"{broken}: entries[1]: m_class 63 is no class: the next one is 64")
        self.refused("tune", "merge", good, "none.json", "-o", "out.json",
                     message="none.json cannot be read: No such file or directory")
        self.assertFalse(os.path.exists(self.path("out.json")))


class Measured(TuneCase):
    """Launches take 10 us there, those of the kernels that IDLE_GPU_FAST names 8 us."""

    def setUp(self):
        super().setUp()
        self.need_nvrtc()

    def tune(self, *arguments, fast=None, env=None, **more):
        env = {"GEMMJIT_CUDA": cli_case.IDLE_GPU, **({"IDLE_GPU_FAST": fast} if fast else {}), **(env or {})}
        return self.gemmjit("tune", *SHAPE, "--seconds", "1", "--candidates", "4", "-o", "out.json", *arguments, env=env,
                            **more)

    def test_a_winner(self):
        told = self.tune("--key", FAST, "-q", fast=FAST_NAME, err="")
        self.assertRegex(told.out, r"(?m)^\| 504 x 512 x 512 \| 512 \| tile=\S+ \| 10\.00 \| tile=64x80,cluster=1x2,"
                                   r"sched=coop,tiles=dynamic \| 8\.00 \| 1\.250 \(1\.250 to 1\.250\) \| yes \|$")
        self.assertIn("\nout.json has 1 entries.\n", told.out)
        entry, = self.entries()
        self.assertRegex(entry.pop("measured"), r"\A\d{4}-\d\d-\d\d\Z")
        self.assertEqual(entry, {"gpu": "Idle GPU", "num_sms": 132, "problem": DEFAULT_KEY.partition(",tile=")[0],
                                 "n": 512, "k": 512, "batch": 1, "m_class": 512, "config": FAST, "us": 8,
                                 "default_us": 10})

    def test_the_library_takes_it(self):
        self.tune("--key", FAST, fast=FAST_NAME)
        env = {"GEMMJIT_CUDA": cli_case.IDLE_GPU, "GEMMJIT_TUNING": self.path("out.json")}
        told = self.gemmjit("bench", *SHAPE, "--seconds", "1", "--json", env=env).json()
        arm, = told["shapes"][0]["arms"]
        self.assertTrue(arm["chosen"])
        self.assertIn(FAST, arm["key"])
        told = self.gemmjit("bench", *SHAPE, "--seconds", "1", "--json", "--candidates", "2", env=env).json()
        self.assertEqual([arm["chosen"] for arm in told["shapes"][0]["arms"]], [True, False])

    def test_shapes(self):
        shapes = self.write("shapes.json", json.dumps([{"m": m, "n": n, "k": 64} for m, n in ((8, 64), (64, 64), (8, 64))]))
        env = {"GEMMJIT_CUDA": cli_case.IDLE_GPU}
        told = self.gemmjit("tune", "--shapes", shapes, "--seconds", "1", "--candidates", "2", "--all", "-o", "out.json",
                            "--json", env=env)
        self.assertEqual(len(told.json()["shapes"]), 2)
        self.assertEqual([entry["m_class"] for entry in self.entries()], [8, 64])
        self.assertRegex(told.err, r"\A\[1/2\] 8x64x64: 10\.00 us, the model's choice stays\n\[2/2\] 64x64x64: ")

    def test_no_winner(self):
        other = self.write_table("out.json", {"m_class": 64}, {"config": FAST})
        told = self.tune("--json", err=None).json()
        shape, = told["shapes"]
        self.assertEqual((shape["written"], shape["ratio"], shape["best"]), (False, 1, shape["chosen"]))
        self.assertEqual(shape["configs"], 4 + 1)  # what the table had, too
        self.assertEqual(shape["rounds"], 5)  # then nothing could win any more
        self.assertEqual([entry["m_class"] for entry in self.entries()], [64], other)

    def test_all(self):
        self.tune("--all", "-q", err="")
        entry, = self.entries()
        self.assertEqual((entry["us"], entry["default_us"]), (10, 10))

    def test_what_was_not_measured_stays(self):
        self.write_table("out.json", {"m_class": 64, "us": 3}, {"config": "tile=512x512", "us": 4}, {"k": 8, "us": 5})
        self.tune("--key", FAST, fast=FAST_NAME)
        self.assertEqual([(entry["k"], entry["m_class"], entry["us"]) for entry in self.entries()],
                         [(8, 512, 5), (512, 64, 3), (512, 512, 8)])

    def test_wrong_results(self):
        """A config that is fast and wrong."""
        told = self.tune("--key", FAST, "-q", env={"IDLE_GPU_WRONG": FAST_NAME}, status=1)
        self.assertIn("gemmjit: m = 504, n = 512, k = 512: 7 elements of D differ: op=gemm,", told.err)
        self.assertIn(" | stays | | | no |", told.out)
        self.assertEqual(self.entries(), [])

    def test_wrong_base(self):
        told = self.tune("-q", env={"IDLE_GPU_DIFFERENT": "3"}, status=1)
        self.assertIn("results differ", told.out)
        self.assertFalse(os.path.exists(self.path("out.json")))

    def test_other_problems(self):
        self.tune("--a", "f16.m", "--b", "f16.n", "--d", "f32.n", "--all", "-q", err="")
        entry, = self.entries()
        self.assertTrue(entry["problem"].startswith("op=gemm,a=f16.m,b=f16.n,c=none,d=f32.n,"))
