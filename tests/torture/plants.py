# SPDX-License-Identifier: Apache-2.0
"""What may stand in an entry's place: plants.py all GEMMJIT ONE_KERNEL LOUD_CUDA. A program that finds it there gets the right
kernel, soon and without much memory, says so once, and the next one finds the entry healed."""
import os
import random
import stat
import struct

import torture_case
from torture_case import TortureCase, entries, leftovers

MEMORY_KIB = 1 << 20  # more than a compile may take, on top of that of a sound run
UNKNOWN = 1002700000
NUM_STRAYS = 1000


class Plants(TortureCase):
    def setUp(self):
        super().setUp()
        self.cache = self.path("cache")
        self.environment["GEMMJIT_CACHE_DIR"] = self.cache
        self.cubin, told, warnings = self.kernel()
        self.assertEqual((told["compiles"], warnings), (1, []))
        self.peak_kib = told["peak_kib"]
        self.sound = entries(self.cache)
        name, = self.sound
        self.entry = os.path.join(self.cache, "v1", name[:2], name)

    def kernel(self, **more):
        return self.finish_kernel(self.start([torture_case.ONE_KERNEL], binary=True, **more))

    def check(self, damaged, warnings, **more):
        """The kernel is right; returns the counters."""
        cubin, told, lines = self.kernel(**more)
        self.assertEqual(cubin, self.cubin)
        self.assertEqual((told["damaged"], told["compiles"], len(lines)), (damaged, damaged, warnings), lines)
        self.assertLess(told["peak_kib"], self.peak_kib + MEMORY_KIB)
        return told

    def check_healed(self, **more):
        self.check(1, 1, **more)
        self.assertEqual((entries(self.cache), leftovers(self.cache)), (self.sound, []))
        self.assertEqual(self.check(0, 0, **more)["disk_hits"], 1)

    def plant(self, make):
        os.unlink(self.entry)
        make(self.entry)

    def test_directory(self):
        self.plant(os.mkdir)
        self.check_healed()

    def test_full_directory(self):
        """It is not ours to remove: the kernel is right each time, and each time compiled."""
        self.plant(os.mkdir)
        os.mkdir(os.path.join(self.entry, "precious"))
        for _ in range(2):
            told = self.check(1, 2)  # it was not read, and it was not replaced
            self.assertEqual((told["stored"], told["write_failures"]), (0, 1))
        self.assertEqual(os.listdir(self.entry), ["precious"])
        self.assertEqual(leftovers(self.cache), [])

    def test_links(self):
        aside = self.path("aside")
        os.rename(self.entry, aside)
        for target in (os.path.basename(self.entry), "/dev/zero", "/nonexistent", aside):  # the first: a loop
            os.symlink(target, self.entry)
            self.check_healed()
            self.assertTrue(stat.S_ISREG(os.lstat(self.entry).st_mode))
            os.unlink(self.entry)
        self.assertTrue(os.path.exists(aside))

    def test_fifo(self):
        self.plant(os.mkfifo)
        self.check_healed()

    def test_sparse_file(self):
        """10 GiB that nobody wrote, and a length in the head that promises as much."""
        for head in (b"", self.sound[os.path.basename(self.entry)][:16] + struct.pack("<Q", 10 << 30)):
            with open(self.entry, "wb") as file:
                file.write(head)
                file.truncate(10 << 30)
            self.check_healed()

    def test_promised_length(self):
        """A short file whose head promises 10 GiB of cubin, or fields of 4 GiB."""
        for at, number in ((16, struct.pack("<Q", 10 << 30)), (12, b"\xff" * 4), (16, b"\xff" * 8)):
            with open(self.entry, "r+b") as file:
                file.seek(at)
                file.write(number)
            self.check_healed()

    def test_no_mode(self):
        more = self.as_user(UNKNOWN) if os.geteuid() == 0 else {}  # root reads anything
        if more:
            for folder, _, names in os.walk(self.cache):
                for path in [folder] + [os.path.join(folder, name) for name in names]:
                    os.chown(path, UNKNOWN, UNKNOWN)
        os.chmod(self.entry, 0)
        self.check_healed(**more)

    def test_foreign_owner(self):
        self.need_root()
        os.chown(self.entry, UNKNOWN, UNKNOWN)
        self.check_healed()
        self.assertEqual(os.lstat(self.entry).st_uid, 0)

    def test_writable_by_others(self):
        os.chmod(self.entry, 0o666)
        self.check_healed()
        self.assertEqual(stat.S_IMODE(os.lstat(self.entry).st_mode), 0o600)

    def test_strays(self):
        """Temporary files of others beside the entry change nothing, whether it is there or not."""
        folder = os.path.dirname(self.entry)
        for i in range(NUM_STRAYS):
            with open(os.path.join(folder, (".tmp-1-%x-%016x", "x.tmp.%d.%d")[i % 2] % (i, i)), "wb") as file:
                file.write(b"stray")
        self.assertEqual(self.check(0, 0)["disk_hits"], 1)
        os.unlink(self.entry)
        cubin, told, lines = self.kernel()
        self.assertEqual((cubin, told["compiles"], told["stored"], lines), (self.cubin, 1, 1, []))
        self.assertEqual(entries(self.cache), self.sound)
        self.assertEqual(len(leftovers(self.cache)), NUM_STRAYS)

    def test_damage_through_the_library(self):
        """every_byte.c changes and cuts every byte for the reader; here some of that for a whole program."""
        data = self.sound[os.path.basename(self.entry)]
        places = random.Random(self.seed)
        for _ in range(6):
            at = places.randrange(len(data))
            for damaged in (data[:at], data[:at] + bytes([data[at] ^ 1 << places.randrange(8)]) + data[at + 1:]):
                with open(self.entry, "wb") as file:
                    file.write(damaged)
                self.check_healed()


if __name__ == "__main__":
    torture_case.run(Plants)
