# SPDX-License-Identifier: Apache-2.0
"""bench: what it refuses, and on a GPU that does nothing what it does."""
import os
import re

import cli_case
from cli_case import CliCase, NO_DRIVER

SHAPE = ("--m", "512", "--n", "512", "--k", "512")
CONFIG = "tile=64x64,cluster=1x1,sched=coop"


class Refused(CliCase):
    def test_extents(self):
        self.refused("bench", "--m", "1", "--n", "8", message="--k is needed, or --shapes")
        self.refused("bench", *SHAPE, "--shapes", "x", message="--m contradicts --shapes")
        self.refused("bench", "--shapes", "x", "--batch", "2", message="--batch contradicts --shapes")
        self.refused("bench", "--m", "8", "--n", "8", "--k", "0",
                     message="--k 0: allowed is a whole number from 1 to 2147479551")
        self.refused("bench", "--shapes=", message="--shapes is given an empty value")

    def test_options(self):
        self.refused("bench", *SHAPE, "--vs", "cutlass", message="--vs cutlass: allowed is cublas")
        self.refused("bench", *SHAPE, "--candidates", "33", message="--candidates 33: allowed is a whole number from 1 to 32")
        self.refused("bench", *SHAPE, "--seconds", "1.5", message="--seconds 1.5: allowed is a whole number from 1 to 600")
        self.refused("bench", *SHAPE, "--op", "act", "--act", "relu", "--p", "bf16.n", message="bench measures op=gemm only")
        self.refused("bench", *SHAPE, "--vs", "cublas", "--d", "bf16.m",
                     message="--vs cublas needs an n-major D, and an n-major C if there is one")
        self.refused("bench", *SHAPE, "--alpha", "device",
                     message="bench has no scalars in device memory: only alpha=one, and beta=one or host")
        self.refused("bench", *SHAPE, "--key", "a=f16.k,b=f16.k,d=f16.n,tile=64x64",
                     message="--key a=f16.k,b=f16.k,d=f16.n,tile=64x64: is of another problem than the flags; a config "
                             "has the fields tile, cluster, sched, tiles, swap_ab, split_k, ctas_per_sm")
        self.refused("bench", *SHAPE, *(["--key", CONFIG] * 25),
                     message="--key is given 25 times: at most 24 configs are measured")
        error = self.gemmjit("bench", *SHAPE, "--key", "tile=512x512", "--json", status=2, env=NO_DRIVER).json()["error"]
        self.assertEqual(error["status"], "GJ_ERR_UNSUPPORTED")

    def test_shapes(self):
        for text, message in (
                ("[]", "the document is not an array with at least one shape"),
                ("{}", "the document is not an array with at least one shape"),
                ("[1]", "shape 0 is not an object with the members m, n and k"),
                ('[{"m":1,"n":1,"k":1},{"m":1,"n":1}]', "shape 1: member k is missing"),
                ('[{"m":1,"n":1,"k":1,"l":1}]', 'shape 0: unknown member "l": the members are m, n, k, batch'),
                ('[{"m":1,"m":1}]', "shape 0: member m is given twice"),
                ('[{"m":1.5}]', "shape 0: m is not a whole number from 1 to 2147479551"),
                ('[{"m":0}]', "shape 0: m is not a whole number from 1 to 2147479551"),
                ('[{"m":"1"}]', "shape 0: m is not a whole number from 1 to 2147479551"),
                ('[{"m":2147479552}]', "shape 0: m is not a whole number from 1 to 2147479551")):
            self.refused("bench", "--shapes", self.write("shapes.json", text),
                         message=f"{self.path('shapes.json')}: {message}")
        self.refused("bench", "--shapes", self.write("shapes.json", "[{]"),
                     message=f"{self.path('shapes.json')}:1:4: this is not JSON")

    def test_no_gpu(self):
        result = self.gemmjit("bench", *SHAPE, status=3, env=NO_DRIVER)
        self.assertRegex(result.err, r"\Agemmjit: the CUDA driver cannot be loaded: .*/nonexistent/.*\n\Z")
        self.assertEqual(result.out, "")


class Measured(CliCase):
    """Launches take 10 us there, those of cuBLASLt's three algorithms 12, 11 and 10 us."""

    def setUp(self):
        super().setUp()
        self.need_nvrtc()
        os.mkdir(self.path("lib"))
        os.symlink(cli_case.IDLE_GPU, self.path("lib/libcublasLt.so.13"))
        libraries = [self.path("lib")] + os.environ.get("LD_LIBRARY_PATH", "").split(":")
        self.env = {"GEMMJIT_CUDA": cli_case.IDLE_GPU, "LD_LIBRARY_PATH": ":".join(filter(None, libraries))}

    def bench(self, *arguments, **more):
        env = {**self.env, **more.pop("env", {})}
        return self.gemmjit("bench", "--seconds", "1", *arguments, env=env, **more)

    def test_table(self):
        shapes = self.write("shapes.json", '[{"m":512,"n":512,"k":512},{"m":64,"n":256,"k":128,"batch":3}]')
        result = self.bench("--shapes", shapes, "--vs", "cublas", "--candidates", "3", "--plot", "plot.svg", "-q", err="")
        self.assertRegex(result.out, r"(?m)^\| 512 x 512 x 512 \| 12\.00 \(22\) \| 1\.200 \| \*\*1\.200\*\* \(1\.200 to "
                                     r"1\.200\) \| tile=\S+ \| 1\.200 \| tile=\S+ \|$")
        self.assertRegex(result.out, r"(?m)^\| 64 x 256 x 128 x 3 \| 12\.00 ")
        self.assertIn("Geometric mean of 2: chosen 1.200, worst 1.200; ", result.out)
        with open(self.path("plot.svg"), encoding="utf-8") as file:
            svg = file.read()
        self.assertEqual(svg.count("<circle"), 2)
        self.assertIn(">64x256x128<", svg)

    def test_document(self):
        told = self.bench(*SHAPE, "--vs", "cublas", "--key", CONFIG, "--json", "-q", err="").json()
        self.assertEqual((told["gpu"], told["sms"], told["cublaslt"]), ("Idle GPU", 132, 130000))
        self.assertEqual(told["problem"], cli_case.DEFAULT_KEY.partition(",tile=")[0])
        shape, = told["shapes"]
        self.assertEqual([(arm.get("cublaslt"), arm["us"], arm["ratio"]) for arm in shape["arms"]],
                         [(0, 12, 1), (1, 11, 1.0909), (2, 10, 1.2), (None, 10, 1.2), (None, 10, 1.2)])
        self.assertEqual([arm.get("chosen") for arm in shape["arms"]], [None, None, None, True, False])
        self.assertIn(CONFIG, shape["arms"][4]["key"])
        self.assertGreaterEqual(shape["rounds"], 11)

    def test_without_reference(self):
        result = self.bench(*SHAPE, "--candidates", "2", "-o", "table.md", "-q", err="")
        self.assertEqual(result.out, "")
        with open(self.path("table.md"), encoding="utf-8") as file:
            self.assertRegex(file.read(), r"(?m)^\| 512 x 512 x 512 \| 10\.00 \(27\) \| tile=\S+ \| 1\.000 \| tile=\S+ \|$")

    def test_problems(self):
        for flags in (("--a", "f16.m", "--b", "f16.n", "--d", "f16.n"), ("--c", "bf16.n", "--beta", "host"),
                      ("--a", "e4m3.k", "--b", "e4m3.k", "--fp8acc", "fast"), ("--a", "f16.k", "--b", "f16.k", "--acc", "f16")):
            told = self.bench(*SHAPE, *flags, "--vs", "cublas", "--json", "-q", err="").json()
            self.assertEqual(told["shapes"][0]["arms"][0]["us"], 12, flags)

    def test_wrong_result(self):
        env = {"IDLE_GPU_DIFFERENT": "5"}
        result = self.bench(*SHAPE, "--vs", "cublas", "-q", status=1, env=env)
        self.assertIn("| 512 x 512 x 512 | results differ |", result.out)
        self.assertNotIn("Geometric", result.out)
        self.assertTrue(all(re.fullmatch(r"gemmjit: m = 512, n = 512, k = 512: 5 elements of D differ: .+", line)
                            for line in result.err.splitlines()))
        told = self.bench(*SHAPE, "--json", "-q", status=1, env=env).json()
        self.assertEqual([arm["different"] for arm in told["shapes"][0]["arms"]], [5])
        self.assertFalse(any("ratio" in arm for arm in told["shapes"][0]["arms"]))

    def test_no_cublas(self):
        env = {"GEMMJIT_CUDA": cli_case.IDLE_GPU, "LD_LIBRARY_PATH": "/nonexistent"}
        result = self.gemmjit("bench", *SHAPE, "--vs", "cublas", status=3, env=env)
        self.assertRegex(result.err, "cuBLASLt cannot be opened|libcublasLt cannot be loaded: ")  # the first: a real one
