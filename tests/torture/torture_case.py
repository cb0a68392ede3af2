# SPDX-License-Identifier: Apache-2.0
"""The base of the torture tests: a folder and a clean environment for each test, processes that must not hang."""
import glob
import json
import os
import pathlib
import random
import shutil
import stat
import subprocess
import sys
import tempfile
import unittest

GEMMJIT = None  # set by run
ONE_KERNEL = None  # one_kernel.c
LOUD_CUDA = None  # loud_cuda.c
KEYS = ["tile=64x16,cluster=1x1", "tile=64x32,cluster=1x1", "tile=64x16,cluster=1x1,sched=coop",
        "d=f32.n,tile=64x16,cluster=1x1"]
TIMEOUT = 100  # seconds: a process that takes as long hangs


def count_from_environment(name, default):
    value = os.environ.get(name, "")
    return int(value) if value else default


def entries(cache):
    """Names and bytes of all entries."""
    found = {}
    for path in glob.glob(cache + "/**/*.gjc", recursive=True):
        with open(path, "rb") as file:
            found[os.path.basename(path)] = file.read()
    return found


def leftovers(cache):
    return [name for _, _, names in os.walk(cache) for name in names if "tmp" in name]


class TortureCase(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="gemmjit-torture.")
        self.addCleanup(shutil.rmtree, self.folder)
        dropped = ("XDG_CACHE_HOME",)
        self.environment = {name: value for name, value in os.environ.items()
                            if name not in dropped and not name.startswith("GEMMJIT_CACHE")}
        self.seed = count_from_environment("GEMMJIT_TORTURE_SEED", random.SystemRandom().randrange(1 << 32))
        self.random = random.Random(self.seed)
        print(f"seed {self.seed}", flush=True)

    def path(self, name):
        return os.path.join(self.folder, name)

    def need_root(self):
        if os.geteuid() != 0:
            self.skipTest("only root becomes another user")

    def as_user(self, uid):
        """Skips the test when that user cannot run the program here."""
        self.need_root()
        for path in pathlib.Path(ONE_KERNEL).parents:
            if not os.stat(path).st_mode & stat.S_IXOTH:
                self.skipTest(f"another user has no access to {path}")
        os.chmod(self.folder, 0o711)
        return {"user": uid, "group": uid, "extra_groups": []}

    def command(self, cache, keys, *more):
        arguments = [GEMMJIT, "prewarm", "-q", "--json", "--cache-dir", cache, *more]
        for key in keys:
            arguments += ["--key", key]
        return arguments

    def start(self, arguments, binary=False, **more):
        process = subprocess.Popen(arguments, env=self.environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, text=not binary, **more)
        self.addCleanup(self.end, process)
        return process

    @staticmethod
    def end(process):
        """A test that failed leaves no process behind, and no stopped one."""
        if process.poll() is None:
            process.kill()
            process.communicate()

    def communicate(self, process):
        try:
            return process.communicate(timeout=TIMEOUT)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
            return self.fail(f"{process.args} hangs")

    def finish(self, process, may_lose_stores=False):
        """The document of a process that must succeed and say nothing else."""
        out, err = self.communicate(process)
        told = json.loads(out)
        if may_lose_stores and told["stats"]["disk_write_failures"] > 0:
            self.assertRegex(err, r"\Agemmjit: \d cubins? could not be written to the disk cache\n\Z")
            self.assertEqual((process.returncode, told["failed"]), (1, 0))
            return told
        self.assertEqual((process.returncode, err), (0, ""), process.args)
        self.assertEqual(told["failed"], 0)
        self.assertEqual(told["compiled"] + told["disk"], len(told["keys"]))
        self.assertEqual(told["stats"]["damaged_entries"] + told["stats"]["disk_write_failures"], 0)
        return told

    def finish_kernel(self, process):
        """Cubin, counters and warnings of an ONE_KERNEL that must succeed."""
        cubin, err = self.communicate(process)
        *lines, last = err.decode().splitlines() or [""]
        self.assertEqual(process.returncode, 0, err)
        for line in lines:
            self.assertTrue(line.startswith("warning: "), err)
        return cubin, json.loads(last), lines

    def prewarm(self, cache, keys, *more):
        return self.finish(self.start(self.command(cache, keys, *more)))

    def reference(self, keys):
        """What one undisturbed process makes of the keys."""
        cache = self.path("reference")
        self.prewarm(cache, keys)
        found = entries(cache)
        self.assertEqual(len(found), len(keys))
        self.assertEqual(leftovers(cache), [])
        return found

    def check_warm(self, cache, keys):
        """A later process finds everything and opens no libnvrtc."""
        told = self.prewarm(cache, keys)
        self.assertEqual((told["disk"], told["compiled"]), (len(keys), 0))
        self.assertEqual((told["stats"]["nvrtc_opens"], told["stats"]["disk_misses"]), (0, 0))


def has_nvrtc():
    doctor = subprocess.run([GEMMJIT, "doctor", "--json", "--no-cache"], stdout=subprocess.PIPE, check=False)
    return json.loads(doctor.stdout)["libnvrtc"]["ok"]


def run(case):
    """The main program of a file of tests, called as FILE NAME GEMMJIT ONE_KERNEL LOUD_CUDA. NAME is a test method
    without its test_, or all. Exit status 77 without libnvrtc, or when every test was skipped."""
    global GEMMJIT, ONE_KERNEL, LOUD_CUDA
    GEMMJIT, ONE_KERNEL, LOUD_CUDA = (os.path.abspath(path) for path in sys.argv[2:])
    if not has_nvrtc():
        print("skipped: no libnvrtc here")
        sys.exit(77)
    if sys.argv[1] == "all":
        suite = unittest.defaultTestLoader.loadTestsFromTestCase(case)
    else:
        suite = unittest.TestSuite([case("test_" + sys.argv[1])])
    result = unittest.TextTestRunner(verbosity=2).run(suite)
    if not result.wasSuccessful() or result.testsRun == 0:
        sys.exit(1)
    sys.exit(77 if len(result.skipped) == result.testsRun else 0)
