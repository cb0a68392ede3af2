# SPDX-License-Identifier: Apache-2.0
"""Many processes on one cache directory, killed and uncalled for: torture.py NAME GEMMJIT.

NAME is a test method below without its test_. GEMMJIT_TORTURE_ROUNDS (3) and GEMMJIT_TORTURE_KILLS (60, or as many as
40 seconds allow) say how long it goes on, GEMMJIT_TORTURE_SEED repeats a run. Exit status 77 without libnvrtc."""
import glob
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

GEMMJIT = None
PROCESSES = 16
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


class Torture(unittest.TestCase):
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

    def command(self, cache, keys, *more):
        arguments = [GEMMJIT, "prewarm", "-q", "--json", "--cache-dir", cache, *more]
        for key in keys:
            arguments += ["--key", key]
        return arguments

    def start(self, arguments, **more):
        return subprocess.Popen(arguments, env=self.environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, text=True, **more)

    def finish(self, process, may_lose_stores=False):
        """The document of a process that must succeed and say nothing else."""
        try:
            out, err = process.communicate(timeout=TIMEOUT)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
            self.fail(f"{process.args} hangs")
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

    def test_processes(self):
        """All start at once on a directory that is not there; each has the keys in an order of its own."""
        expected = self.reference(KEYS)
        for number in range(count_from_environment("GEMMJIT_TORTURE_ROUNDS", 3)):
            cache = self.path(f"cache{number}")
            gate, opener = os.pipe()
            processes = []
            for i in range(PROCESSES):
                keys = self.random.sample(KEYS, len(KEYS))
                waiting = ["sh", "-c", 'read -r line <&"$0"; exec "$@"', str(gate),
                           *self.command(cache, keys, "-j", str(1 + i % 2))]
                processes.append(self.start(waiting, pass_fds=(gate,)))
            os.close(gate)
            time.sleep(0.2)  # all of them wait at the gate by now; if not, the start is only less even
            os.close(opener)
            told = [self.finish(process) for process in processes]
            self.assertEqual(entries(cache), expected)
            self.assertEqual(leftovers(cache), [])
            self.assertGreaterEqual(sum(one["stats"]["compiles"] for one in told), len(KEYS))
            self.check_warm(cache, KEYS)

    def test_kills(self):
        """Killed at any instant of a cold prewarm: the next process works as if nothing had happened."""
        keys = KEYS[:2]
        expected = self.reference(keys)
        start = time.monotonic()
        self.prewarm(self.path("timed"), keys, "-j", "2")
        span = time.monotonic() - start
        num_killed = num_kept = 0
        end = time.monotonic() + 40
        for number in range(count_from_environment("GEMMJIT_TORTURE_KILLS", 60)):
            if "GEMMJIT_TORTURE_KILLS" not in os.environ and time.monotonic() > end:
                break
            cache = self.path(f"cache{number}")
            process = self.start(self.command(cache, keys, "-j", "2"))
            # Files are written near the end: half of the kills come there.
            share = self.random.random() if number % 2 else self.random.uniform(0.6, 1.1)
            time.sleep(share * span)
            process.send_signal(signal.SIGKILL)
            process.communicate(timeout=TIMEOUT)
            self.assertIn(process.returncode, (0, -signal.SIGKILL))
            num_killed += process.returncode != 0
            found = entries(cache)
            num_kept += len(found)
            for name, data in found.items():  # what has its name is whole
                self.assertEqual(data, expected[name])
            told = self.prewarm(cache, keys)
            self.assertEqual(told["disk"], len(found))
            self.assertEqual(entries(cache), expected)
            shutil.rmtree(cache)
        print(f"{num_killed} killed, {num_kept} entries survived", flush=True)
        self.assertGreater(num_killed, 0)

    def test_clears(self):
        """While one process clears the cache again and again, others fill and use it. A store may be lost: a file that
        its writer has not locked yet looks like one without a writer (docs/cache_format.md). No kernel is."""
        cache = self.path("cache")
        expected = self.reference(KEYS[:2])
        clear = [GEMMJIT, "cache", "clear", "-q", "--cache-dir", cache]
        end = time.monotonic() + 5
        processes = [self.start(self.command(cache, KEYS[:2])) for _ in range(3)]
        while time.monotonic() < end:
            done = subprocess.run(clear, env=self.environment, capture_output=True, timeout=TIMEOUT, check=False)
            self.assertEqual((done.returncode, done.stderr), (0, b""))
            for i, process in enumerate(processes):
                if process.poll() is not None:
                    self.finish(process, may_lose_stores=True)
                    processes[i] = self.start(self.command(cache, KEYS[:2]))
        for process in processes:
            self.finish(process, may_lose_stores=True)
        self.prewarm(cache, KEYS[:2])
        self.assertEqual(entries(cache), expected)


def has_nvrtc():
    doctor = subprocess.run([GEMMJIT, "doctor", "--json", "--no-cache"], stdout=subprocess.PIPE, check=False)
    return json.loads(doctor.stdout)["libnvrtc"]["ok"]


def main():
    global GEMMJIT
    GEMMJIT = os.path.abspath(sys.argv[2])
    if not has_nvrtc():
        sys.exit(77)
    suite = unittest.TestSuite([Torture("test_" + sys.argv[1])])
    sys.exit(not unittest.TextTestRunner(verbosity=2).run(suite).wasSuccessful())


if __name__ == "__main__":
    main()
