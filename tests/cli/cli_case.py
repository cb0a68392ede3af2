# SPDX-License-Identifier: Apache-2.0
"""The base of the command's tests: each test has a folder, a cache and a clean environment of its own."""
import json
import os
import shutil
import subprocess
import tempfile
import unittest

# Set by run_cli.
GEMMJIT = None
MODEL_LOOKUP = None  # model_lookup.c
IDLE_GPU = None  # idle_gpu.c
FAKE_NVRTC = {}  # "empty": every compile gives an empty cubin; "old": version 11.8; "logging": as empty, with a log

DEFAULT_KEY = ("op=gemm,a=bf16.k,b=bf16.k,c=none,d=bf16.n,acc=f32,act=none,alpha=one,beta=none,batch=dense,"
               "gather=none,tile=128x192,cluster=2x1,sched=pingpong,tiles=static,swap_ab=no")
SMALL = "tile=64x64,cluster=1x1"
OTHER = "tile=64x32,cluster=1x1"
NO_DRIVER = {"GEMMJIT_CUDA": "/nonexistent/libcuda.so.1"}
NO_NVRTC = {"GEMMJIT_NVRTC": "/nonexistent/libnvrtc.so"}
NO_NVRTC_MESSAGE = "GEMMJIT_NVRTC names /nonexistent/libnvrtc.so, which is not a file"


class Result:
    def __init__(self, process):
        self.status = process.returncode
        self.out = process.stdout
        self.err = process.stderr

    def json(self):
        return json.loads(self.out)


class CliCase(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="gemmjit-cli.")
        self.addCleanup(shutil.rmtree, self.folder)
        self.cache = os.path.join(self.folder, "cache")

    def path(self, name):
        return os.path.join(self.folder, name)

    def write(self, name, text):
        with open(self.path(name), "w", encoding="utf-8") as file:
            file.write(text)
        return self.path(name)

    def write_table(self, name, *entries):
        """A tuning table; an entry differs from the usual one in the members that it gives."""
        usual = {"gpu": "Idle GPU", "num_sms": 132, "problem": DEFAULT_KEY.partition(",tile=")[0], "n": 512, "k": 512,
                 "batch": 1, "m_class": 512, "config": SMALL, "us": 9, "default_us": 10, "measured": "2026-12-01"}
        table = {"format": "gemmjit-tuning", "version": 1, "entries": [{**usual, **entry} for entry in entries]}
        return self.write(name, json.dumps(table))

    def environment(self, changes):
        dropped = ("GEMMJIT_CUDA", "XDG_CACHE_HOME")
        environment = {name: value for name, value in os.environ.items()
                       if name not in dropped and not name.startswith("GEMMJIT_CACHE")}
        environment.update(GEMMJIT_CACHE_DIR=self.cache, GEMMJIT_TUNING="", LC_ALL="C")  # the model alone chooses
        for name, value in (changes or {}).items():
            if value is None:
                environment.pop(name, None)
            else:
                environment[name] = value
        return environment

    def gemmjit(self, *arguments, status=0, err=None, env=None, stdout=subprocess.PIPE, program=None):
        """Runs the command; checks its status and, when given, its exact stderr."""
        process = subprocess.run([program or GEMMJIT, *arguments], env=self.environment(env), stdin=subprocess.DEVNULL,
                                 stdout=stdout, stderr=subprocess.PIPE, encoding="utf-8", errors="replace", timeout=120,
                                 check=False, cwd=self.folder)
        result = Result(process)
        if status is not None:
            self.assertEqual(result.status, status, f"{arguments}: {result.err}")
        if err is not None:
            self.assertEqual(result.err, err)
        return result

    def refused(self, *arguments, message, status=2, reasons=(), env=None):
        """The command fails with exactly this on stderr and nothing on stdout; with --json it tells the same."""
        lines = [f"gemmjit: {message}"] + [f"    {reason}" for reason in reasons]
        plain = self.gemmjit(*arguments, status=status, err="".join(line + "\n" for line in lines), env=env)
        self.assertEqual(plain.out, "")
        told = self.gemmjit(*arguments, "--json", status=status, env=env)
        error = told.json()["error"]
        self.assertEqual(error["message"], message)
        self.assertEqual(error["reasons"], list(reasons))
        self.assertEqual(error["exit_status"], status)
        return error

    def shell(self, script, *arguments, env=None):
        """Runs a line of sh in which "$0" is the command; for redirections and limits."""
        return subprocess.run(["sh", "-c", script, GEMMJIT, *arguments], env=self.environment(env), encoding="utf-8",
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=120,
                              check=False, cwd=self.folder)

    def need_nvrtc(self):
        if self.gemmjit_status("doctor") != 0:
            self.skipTest("no libnvrtc here")

    def gemmjit_status(self, *arguments):
        return subprocess.run([GEMMJIT, *arguments], env=self.environment(None), stdout=subprocess.DEVNULL,
                              stderr=subprocess.DEVNULL, check=False).returncode
