# SPDX-License-Identifier: Apache-2.0
"""Many processes on one cache directory, killed and uncalled for: torture.py NAME GEMMJIT ONE_KERNEL LOUD_CUDA.

GEMMJIT_TORTURE_ROUNDS (3), GEMMJIT_TORTURE_KILLS (60, or as many as 40 seconds allow) and GEMMJIT_TORTURE_SECONDS (5,
of clears) say how long it goes on, GEMMJIT_TORTURE_SEED repeats a run."""
import fcntl
import glob
import json
import os
import shutil
import signal
import struct
import subprocess
import time

import torture_case
from torture_case import KEYS, TIMEOUT, TortureCase, count_from_environment, entries, leftovers

PROCESSES = 16


def is_locked(cache):
    """Whether some process holds a byte of the cache's lock file."""
    try:
        with open(os.path.join(cache, "v1/lock"), "r+b", buffering=0) as file:
            asked = struct.pack("hhqqi4x", fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0)  # all of the file
            return struct.unpack("hhqqi4x", fcntl.fcntl(file, fcntl.F_OFD_GETLK, asked))[0] != fcntl.F_UNLCK
    except FileNotFoundError:
        return False


def has_locks(cache):
    try:
        is_locked(cache)
        return True
    except OSError as error:
        print(f"no locks here: {error}", flush=True)
        return False


class Torture(TortureCase):
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
            if has_locks(cache):  # one process compiles, the others wait for it
                self.assertEqual(sum(one["stats"]["compiles"] for one in told), len(KEYS))
            self.check_warm(cache, KEYS)

    def test_kills(self):
        """Killed at any instant of a cold prewarm: the next process works as if nothing had happened."""
        keys = KEYS[:2]
        expected = self.reference(keys)
        start = time.monotonic()
        self.prewarm(self.path("timed"), keys, "-j", "2")
        span = time.monotonic() - start
        num_killed = num_kept = num_left = number = 0
        end = time.monotonic() + 40
        while num_killed < count_from_environment("GEMMJIT_TORTURE_KILLS", 60):
            if "GEMMJIT_TORTURE_KILLS" not in os.environ and time.monotonic() > end:
                break
            number += 1
            cache = self.path(f"cache{number}")
            process = self.start(self.command(cache, keys, "-j", "2"))
            moment = number % 3  # any; near the end, where files are written; when the first of them is seen
            if moment == 2:
                while process.poll() is None and not glob.glob(cache + "/v1/[0-9a-f][0-9a-f]/.*"):
                    time.sleep(0.0001)
            else:
                time.sleep(span * (self.random.uniform(0.6, 1.1) if moment == 1 else self.random.random()))
            process.send_signal(signal.SIGKILL)
            process.communicate(timeout=TIMEOUT)
            self.assertIn(process.returncode, (0, -signal.SIGKILL))
            num_killed += process.returncode != 0
            found = entries(cache)
            if moment == 1:  # follow what else the machine does
                span *= 1.02 if not found else 0.98 if process.returncode == 0 else 1
            num_kept += len(found)
            for name, data in found.items():  # what has its name is whole
                self.assertEqual(data, expected[name])
            told = self.prewarm(cache, keys)
            self.assertEqual(told["disk"], len(found))
            self.assertEqual(entries(cache), expected)
            num_left += len(leftovers(cache))
            clear = [torture_case.GEMMJIT, "cache", "clear", "-q", "--cache-dir", cache]
            done = subprocess.run(clear, env=self.environment, capture_output=True, timeout=TIMEOUT, check=False)
            self.assertEqual((done.returncode, done.stderr), (0, b""))
            self.assertEqual((entries(cache), leftovers(cache)), ({}, []))
            shutil.rmtree(cache)
        print(f"{num_killed} killed, {num_kept} entries survived, {num_left} temporary files were left", flush=True)
        self.assertGreater(num_killed, 0)

    def await_lock(self, cache, seconds):
        """Waits until some process holds a lock; returns how long that took."""
        start = time.monotonic()
        while not is_locked(cache):
            self.assertLess(time.monotonic() - start, seconds, "nobody took the lock")
            time.sleep(0.0005)
        return time.monotonic() - start

    def test_holder(self):
        """The process that holds the lock is killed while it compiles: another one that waits gets it at once."""
        expected = self.reference(KEYS[:1])
        if not has_locks(self.path("reference")):
            self.skipTest("the file system has no locks")
        num_killed = longest = 0
        for number in range(20):
            cache = self.path(f"cache{number}")
            holder = self.start(self.command(cache, KEYS[:1]))
            self.await_lock(cache, TIMEOUT)
            holder.send_signal(signal.SIGSTOP)
            if is_locked(cache) and not entries(cache):  # in time: it stays in its compile
                longest = max(longest, self.kill_holder(holder, cache))
                self.assertEqual((entries(cache), leftovers(cache)), (expected, []))
                num_killed += 1
            holder.send_signal(signal.SIGKILL)
            holder.communicate(timeout=TIMEOUT)
            if num_killed == 5:
                break
        print(f"the lock was had within {longest * 1000:.1f} ms, {num_killed} times", flush=True)
        self.assertGreater(num_killed, 0)

    def kill_holder(self, holder, cache):
        """Returns the seconds until the waiting process had the lock."""
        waiter = self.start(self.command(cache, KEYS[:1]))
        time.sleep(0.5)
        self.assertIsNone(waiter.poll(), "it waits")
        holder.send_signal(signal.SIGKILL)
        holder.communicate(timeout=TIMEOUT)
        self.assertEqual(holder.returncode, -signal.SIGKILL)
        seconds = self.await_lock(cache, 1)
        told = self.finish(waiter)
        self.assertEqual((told["compiled"], told["stats"]["lock_waits"]), (1, 1))
        return seconds

    def test_clears(self):
        """While one process clears the cache again and again, others fill and use it. A store may be lost: a file that
        its writer has not locked yet looks like one without a writer (docs/cache_format.md). No kernel is."""
        cache = self.path("cache")
        expected = self.reference(KEYS[:2])
        clear = [torture_case.GEMMJIT, "cache", "clear", "-q", "--cache-dir", cache]
        end = time.monotonic() + count_from_environment("GEMMJIT_TORTURE_SECONDS", 5)
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

    def test_no_gpu(self):
        """Filling a cache and reading it opens no driver, so neither needs a GPU nor takes memory of one."""
        self.environment["GEMMJIT_CUDA"] = torture_case.LOUD_CUDA
        run = [torture_case.GEMMJIT, "run", "--no-cache", "--m", "8", "--n", "8", "--k", "64"]
        process = self.start(run)
        self.communicate(process)
        self.assertEqual(process.returncode, -signal.SIGABRT, "who opens this driver dies")
        cache = self.path("cache")
        self.assertEqual(self.prewarm(cache, KEYS, "-j", "2")["compiled"], len(KEYS))
        self.check_warm(cache, KEYS)

    def test_moved(self):
        """The installation and its cache are moved, and nothing that a build does not depend on stays the same."""
        doctor = subprocess.run([torture_case.GEMMJIT, "doctor", "--json", "--no-cache"], env=self.environment,
                                stdout=subprocess.PIPE, check=False)
        self.environment["GEMMJIT_NVRTC"] = json.loads(doctor.stdout)["libnvrtc"]["path"]
        os.makedirs(self.path("a/bin"))
        program = shutil.copy(torture_case.GEMMJIT, self.path("a/bin/gemmjit"))
        arguments = self.command(self.path("a/cache"), KEYS)
        self.finish(self.start([program, *arguments[1:]]))
        found = entries(self.path("a/cache"))
        for data in found.values():
            self.assertNotIn(self.folder.encode(), data)
        os.rename(self.path("a"), self.path("b"))
        self.environment.update(TZ="Asia/Tokyo", LC_ALL="C.UTF-8", HOME="/nonexistent", USER="nobody", TMPDIR=self.folder)
        arguments = self.command(self.path("b/cache"), reversed(KEYS), "-j", "3")
        told = self.finish(self.start([self.path("b/bin/gemmjit"), *arguments[1:]], cwd=self.folder))
        self.assertEqual((told["disk"], told["compiled"], told["stats"]["nvrtc_opens"]), (len(KEYS), 0, 0))
        self.assertEqual(entries(self.path("b/cache")), found)


if __name__ == "__main__":
    torture_case.run(Torture)
