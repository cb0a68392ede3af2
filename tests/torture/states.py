# SPDX-License-Identifier: Apache-2.0
"""The cache on machines in every state: states.py all GEMMJIT ONE_KERNEL LOUD_CUDA. Each time the kernel is the right one, and
at most one warning says what is wrong. What needs root or mounts is skipped without them; mounts are made in a mount
namespace of this process's own and end with it."""
import ctypes
import os
import unittest

import torture_case
from torture_case import TortureCase, entries, leftovers

UNKNOWN = 1002700000  # no user has this number
OTHER_KEY = "tile=64x32,cluster=1x1"
CLONE_NEWNS = 0x20000
MS_RDONLY, MS_NOSUID, MS_REMOUNT, MS_BIND, MS_REC, MS_PRIVATE = 1, 2, 32, 4096, 16384, 1 << 18
LIBC = ctypes.CDLL(None, use_errno=True)


def call(function, *arguments):
    if function(*arguments) != 0:
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error))


def mount(source, target, kind, flags, data=None):
    """Mounts for the rest of this process's life; skips the test where that is refused."""
    texts = [None if text is None else text.encode() for text in (source, target, kind, data)]
    try:
        call(LIBC.mount, *texts[:3], ctypes.c_ulong(flags), texts[3])
    except OSError as error:
        raise unittest.SkipTest(f"mounting is refused: {error}") from error


class States(TortureCase):
    @classmethod
    def setUpClass(cls):
        cls.why_no_mounts = None if os.geteuid() == 0 else "only root mounts"
        if cls.why_no_mounts is None:
            try:
                call(LIBC.unshare, CLONE_NEWNS)
                mount(None, "/", None, MS_REC | MS_PRIVATE)
            except (OSError, unittest.SkipTest) as error:
                cls.why_no_mounts = f"no mount namespace: {error}"

    def setUp(self):
        super().setUp()
        for name in ("HOME", "USER", "LOGNAME", "TMPDIR"):
            self.environment.pop(name, None)
        # What a root that nobody disturbs gives; root may write and read anywhere else, too.
        self.cubin, told, warnings = self.kernel(GEMMJIT_CACHE_DIR=self.path("reference"))
        self.assertEqual((told["compiles"], warnings), (1, []))
        self.assertTrue(self.cubin.startswith(b"\x7fELF"))

    def need_mounts(self):
        if self.why_no_mounts:
            self.skipTest(self.why_no_mounts)

    def disk(self, data):
        """A small disk of its own. Returns its path."""
        self.need_mounts()
        path = self.path("disk")
        os.mkdir(path)
        mount("none", path, "tmpfs", MS_NOSUID, data)
        self.addCleanup(lambda: call(LIBC.umount2, path.encode(), 2))  # 2: whatever is still open there
        return path

    def kernel(self, key=None, more=None, **environment):
        """Cubin, counters and warnings of a program with this environment."""
        self.environment, kept = {**self.environment, **environment}, self.environment
        process = self.start([torture_case.ONE_KERNEL, *([key] if key else [])], binary=True, cwd="/", **(more or {}))
        self.environment = kept
        return self.finish_kernel(process)

    def check(self, warning=None, compiles=1, **more):
        """The kernel is right, and there is exactly this warning, or none. Returns the counters."""
        cubin, told, warnings = self.kernel(**more)
        self.assertEqual(cubin, self.cubin)
        self.assertEqual(told["compiles"], compiles)
        if warning is None:
            self.assertEqual(warnings, [])
        else:
            self.assertEqual(len(warnings), 1, warnings)
            self.assertRegex(warnings[0], warning)
        return told

    # ---- disks ----

    def test_full_disk(self):
        disk = self.disk("size=64k,mode=0700")
        with open(os.path.join(disk, "ballast"), "wb") as file:
            file.write(bytes(56 << 10))
        for _ in range(2):
            told = self.check("No space left on device", GEMMJIT_CACHE_DIR=disk + "/cache")
            self.assertEqual((told["stored"], told["write_failures"]), (0, 1))
            self.assertEqual((entries(disk), leftovers(disk)), ({}, []))
        os.unlink(os.path.join(disk, "ballast"))
        self.check(GEMMJIT_CACHE_DIR=disk + "/cache")
        self.check(GEMMJIT_CACHE_DIR=disk + "/cache", compiles=0)

    def test_quota(self):
        """A limit of one user on a disk that has room."""
        more = self.as_user(UNKNOWN)
        disk = self.disk("size=8m,mode=0777,usrquota,usrquota_block_hardlimit=32768")
        os.mkdir(disk + "/cache", 0o700)
        os.chown(disk + "/cache", UNKNOWN, UNKNOWN)
        told = self.check("Disk quota exceeded", more=more, GEMMJIT_CACHE_DIR=disk + "/cache")
        self.assertEqual((told["stored"], told["write_failures"]), (0, 1))
        self.assertEqual((entries(disk), leftovers(disk)), ({}, []))

    def test_read_only_root(self):
        """A container whose whole image is read-only and whose home is its root directory."""
        self.need_mounts()
        image = self.path("image")
        os.mkdir(image)
        self.addCleanup(lambda: call(LIBC.umount2, image.encode(), 2))
        mount("/", image, None, MS_BIND | MS_REC)
        mount(None, image, None, MS_REMOUNT | MS_BIND | MS_RDONLY)
        inside = {"preexec_fn": lambda: (os.chroot(image), os.chdir("/"))}
        told = self.check("/.cache/gemmjit: .*Read-only file system", more=inside, HOME="/")
        self.assertEqual((told["stored"], told["write_failures"]), (0, 1))
        # One that was filled when the image was made is read, and cannot take what it lacks.
        reference = self.path("reference")
        if os.statvfs(image + reference).f_flag & os.ST_RDONLY:
            self.check(more=inside, compiles=0, GEMMJIT_CACHE_DIR=reference)
            _, told, warnings = self.kernel(OTHER_KEY, inside, GEMMJIT_CACHE_DIR=reference)
            self.assertEqual((told["compiles"], told["stored"], len(warnings)), (1, 0, 1), warnings)
            self.assertRegex(warnings[0], "Read-only file system")

    # ---- homes and users ----

    def test_no_home(self):
        for environment in ({}, {"HOME": ""}, {"HOME": "relative", "XDG_CACHE_HOME": "relative"}):
            told = self.check("no cache directory: GEMMJIT_CACHE_DIR is not set", **environment)
            self.assertEqual((told["stored"], told["write_failures"]), (0, 1))

    def test_unknown_user(self):
        """A user without a line in /etc/passwd, without HOME and USER, or with the root directory as home."""
        more = self.as_user(UNKNOWN)
        self.check("no cache directory", more=more)
        if not os.path.exists("/.cache"):
            self.check("/.cache/gemmjit: the root does not exist and cannot be made: (Permission|Read-only)", more=more,
                       HOME="/")
        cache = self.path("cache")
        os.mkdir(cache)
        os.chown(cache, UNKNOWN, UNKNOWN)
        self.check(more=more, GEMMJIT_CACHE_DIR=cache)
        self.check(more=more, GEMMJIT_CACHE_DIR=cache, compiles=0)
        owners = {os.lstat(os.path.join(folder, name)).st_uid for folder, _, names in os.walk(cache) for name in names}
        self.assertEqual(owners, {UNKNOWN})

    def test_open_umask(self):
        home = self.path("home")
        os.mkdir(home)
        for more in ({"umask": 0}, {"umask": 0o777}):
            cache = os.path.join(home, str(more["umask"]))
            self.check(more=more, XDG_CACHE_HOME=cache)
            self.assertEqual(len(entries(cache)), 1)
            modes = {oct(os.lstat(folder).st_mode & 0o7777) for folder, _, _ in os.walk(cache)}
            self.assertEqual(modes, {"0o700"})
            modes = {oct(os.lstat(os.path.join(folder, name)).st_mode & 0o7777) for folder, _, names in os.walk(cache)
                     for name in names}
            self.assertEqual(modes, {"0o600"})

    def test_two_users(self):
        """Each has the default below the own home; in the home of the other nothing is read or written."""
        caches = []
        for uid in (UNKNOWN, UNKNOWN + 1):
            home = self.path(str(uid))
            os.mkdir(home, 0o755)
            more = self.as_user(uid)
            os.chown(home, uid, uid)
            self.check(more=more, HOME=home)
            self.check(more=more, HOME=home, compiles=0)
            caches.append(entries(home))
        self.assertEqual(caches[0], caches[1])
        for mode in (0o700, 0o755):  # closed, and opened by mistake: then it is still of another user
            for folder in (home, home + "/.cache", home + "/.cache/gemmjit"):
                os.chmod(folder, mode)
            told = self.check("belongs to another user|Permission denied", more=self.as_user(UNKNOWN), HOME=home)
            self.assertEqual(told["stored"], 0)
        self.assertEqual((entries(home), leftovers(home)), (caches[1], []))
        self.check("belongs to another user", HOME=home)  # root takes no other user's code either


if __name__ == "__main__":
    torture_case.run(States)
