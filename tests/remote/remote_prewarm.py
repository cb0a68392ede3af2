# SPDX-License-Identifier: Apache-2.0
"""prewarm over a remote store, a real nginx: remote_prewarm.py GEMMJIT

Exit status 77 without nginx or libnvrtc."""
import glob
import json
import os
import subprocess
import sys
import time
import unittest

import remote_store

GEMMJIT = None
KEYS = ("tile=64x16,cluster=1x1", "tile=64x32,cluster=1x1", "tile=64x16,cluster=1x1,sched=coop")


class Prewarm(remote_store.RemoteStore):
    def prewarm(self, cache, status=0, upload=False, credentials="", keys=KEYS, more=None):
        url = f"http://{credentials}127.0.0.1:{self.port}/team/v1"
        environment = {name: value for name, value in self.environment.items() if not name.startswith("GEMMJIT_CACHE")}
        environment |= {"GEMMJIT_CACHE_REMOTE": url, "GEMMJIT_CACHE_UPLOAD": str(int(upload))} | (more or {})
        command = [GEMMJIT, "prewarm", "-q", "--json", "--cache-dir", self.path(cache)]
        for key in keys:
            command += ["--key", key]
        done = subprocess.run(command, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              timeout=remote_store.TIMEOUT, check=False)
        self.assertEqual(done.returncode, status, done.stderr)
        return json.loads(done.stdout), done.stderr

    def counts(self, told):
        return told["compiled"], told["disk"], told["remote"], told["failed"]

    def stored(self):
        return sorted(os.listdir(self.path("root/team/v1")))

    def fill(self):
        told, err = self.prewarm("first", upload=True, credentials=remote_store.CREDENTIALS)
        self.assertEqual((self.counts(told), err), ((3, 0, 0, 0), ""))
        self.assertEqual((told["stats"]["uploads"], told["stats"]["upload_failures"]), (3, 0))

    def test_one_compiles_for_all(self):
        self.start()
        self.fill()
        entries = {os.path.basename(path): path for path in glob.glob(self.path("first/v1/*/*.gjc"))}
        self.assertEqual(self.stored(), sorted(entries))
        told, err = self.prewarm("second")
        self.assertEqual((self.counts(told), err), ((0, 0, 3, 0), ""))
        self.assertEqual((told["stats"]["remote_hits"], told["stats"]["compiles"]), (3, 0))
        for name, path in entries.items():  # what was fetched is kept, byte by byte
            with open(path, "rb") as one, open(self.path("second/v1", name[:2], name), "rb") as other:
                self.assertEqual(one.read(), other.read())
        told, err = self.prewarm("second")  # and found on disk from then on
        self.assertEqual((self.counts(told), err), ((0, 3, 0, 0), ""))
        self.assertEqual((told["stats"]["remote_hits"] + told["stats"]["remote_misses"], told["stats"]["nvrtc_opens"]),
                         (0, 0))

    def test_damage_in_the_store(self):
        """Truncated, altered and swapped entries are refused, compiled, and replaced by who may upload."""
        self.start()
        self.fill()
        paths = [self.path("root/team/v1", name) for name in self.stored()]
        whole = [open(path, "rb").read() for path in paths]
        for path, data in zip(paths, (whole[0][:-1], whole[1][:5000] + b"\x5a" + whole[1][5001:], whole[0])):
            with open(path, "wb") as file:
                file.write(data)
        told, err = self.prewarm("second")
        self.assertEqual(self.counts(told), (3, 0, 0, 0))
        self.assertEqual(told["stats"]["damaged_entries"], 3)
        told, err = self.prewarm("third", upload=True, credentials=remote_store.CREDENTIALS)
        self.assertEqual(self.counts(told), (3, 0, 0, 0))
        self.assertEqual([open(path, "rb").read() for path in paths], whole)

    def test_a_dead_store_costs_one_warning(self):
        start = time.monotonic()
        told, err = self.prewarm("cache", keys=KEYS, more={"GEMMJIT_CACHE_UPLOAD": "0"})
        self.assertEqual(self.counts(told), (3, 0, 0, 0))
        self.assertEqual(err, "")  # -q; the warning is below that
        self.assertEqual(told["stats"]["remote_failures"], 3)
        self.assertLess(time.monotonic() - start, 20)
        told, err = self.prewarm("other", status=1, upload=True)
        self.assertEqual(self.counts(told), (3, 0, 0, 0))
        self.assertEqual(err, "gemmjit: 3 cubins could not be sent to the remote cache\n")

    def test_a_store_that_cannot_be_used(self):
        told, _ = self.prewarm("cache", more={"GEMMJIT_CACHE_REMOTE": "ftp://example.org/"})
        self.assertEqual(self.counts(told), (3, 0, 0, 0))
        self.assertEqual(told["stats"]["remote_failures"], 0)
        doctor = subprocess.run([GEMMJIT, "doctor"], env=self.environment | {"GEMMJIT_CACHE_REMOTE": "ftp://example.org/"},
                                capture_output=True, text=True, check=False)
        self.assertRegex(doctor.stdout, r"(?m)^remote    no   .*http")


def main():
    global GEMMJIT
    GEMMJIT = os.path.abspath(sys.argv.pop(1))
    if not remote_store.NGINX or subprocess.run([remote_store.NGINX, "-v"], stderr=subprocess.DEVNULL,
                                                check=False).returncode != 0:
        print("no nginx here that runs: skipped")
        sys.exit(77)
    doctor = subprocess.run([GEMMJIT, "doctor", "--json"], capture_output=True, text=True, check=False)
    if not json.loads(doctor.stdout)["libnvrtc"]["ok"]:
        print("no libnvrtc: skipped")
        sys.exit(77)
    names = [name for name in dir(Prewarm) if name.startswith("test_") and name not in dir(remote_store.RemoteStore)]
    suite = unittest.TestSuite(Prewarm(name) for name in names)
    sys.exit(not unittest.TextTestRunner(verbosity=2).run(suite).wasSuccessful())


if __name__ == "__main__":
    main()
