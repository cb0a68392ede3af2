# SPDX-License-Identifier: Apache-2.0
"""cache pack and unpack."""
import glob
import os
import stat

from cli_case import CliCase, NO_NVRTC, OTHER, SMALL

KEYS = ("--key", SMALL, "--key", OTHER)


def read(path):
    with open(path, "rb") as file:
        return file.read()


def tree(root):
    """{path below root: bytes} of every file but the lock, which only a cache that compiled has."""
    return {os.path.relpath(path, root): read(path) for path in glob.glob(root + "/**", recursive=True) +
            glob.glob(root + "/**/.*", recursive=True) if os.path.isfile(path) and not path.endswith("/v1/lock")}


def flip(path, at):
    with open(path, "r+b") as file:
        file.seek(at)
        byte = file.read(1)
        file.seek(at)
        file.write(bytes([byte[0] ^ 1]))


class Usage(CliCase):
    def test_file(self):
        for action in ("pack", "unpack"):
            self.refused("cache", action, message=f"cache {action} needs a FILE")
            self.refused("cache", action, "", message=f"cache {action} needs a FILE")
            self.refused("cache", action, "a", "b",
                         message='unexpected argument "b"; gemmjit cache --help says how to use it')
            self.refused("cache", action, "a", "--dry-run", message=f"cache {action} takes no --dry-run")
            self.refused("cache", action, "a", "--no-cache", message=f"cache {action} contradicts --no-cache")
        self.refused("cache", "stat", "a", message='unexpected argument "a"; gemmjit cache --help says how to use it')
        self.refused("help", "cache", "a", message='unexpected argument "a"; gemmjit help --help says how to use it')

    def test_empty_cache(self):
        self.refused("cache", "pack", "x.gjp", status=1,
                     message="x.gjp cannot be written: the cache has no sound entry, and an empty pack is none")
        self.assertEqual(os.listdir(self.folder), [])

    def test_no_pack(self):
        self.write("text", "This is a text and no pack at all.\n")
        os.mkfifo(self.path("fifo"))
        for name, reason in (("none", "cannot be opened: No such file or directory"),
                             ("text", "does not begin as a pack does"), (".", "is not a regular file"),
                             ("fifo", "is not a regular file"), ("/dev/null", "is not a regular file")):
            self.refused("cache", "unpack", name, message=f"{name} cannot be unpacked: the pack {reason}")
        os.chmod(self.path("text"), 0o666)
        told = self.gemmjit("cache", "unpack", "text", status=2).err
        self.assertRegex(told, r"^gemmjit: text cannot be unpacked: the pack is writable by its group or by others "
                               r"\(owner \d+, mode 0666; this process is user \d+\)\n$")
        self.assertFalse(os.path.exists(self.cache))


class Pack(CliCase):
    def setUp(self):
        super().setUp()
        self.need_nvrtc()
        self.gemmjit("prewarm", *KEYS)
        self.pack = self.path("x.gjp")
        self.other = self.path("other")

    def files(self):
        return sorted(glob.glob(os.path.join(self.cache, "v1/??/*.gjc")))

    def test_round_trip(self):
        size = None
        for name in ("x.gjp", "y.gjp"):
            told = self.gemmjit("cache", "pack", name, "--json", err="").json()
            size = os.path.getsize(self.path(name))
            self.assertEqual(told, {"root": self.cache, "file": name, "left_out": [], "entries": 2, "stamps": 2,
                                    "bytes": size})
        self.assertEqual(read(self.pack), read(self.path("y.gjp")))
        self.assertEqual(self.gemmjit("cache", "pack", "x.gjp", err="").out,
                         f"packed    2 entries, 2 stamps, {size} bytes\nleft out  0\n")
        files = tree(self.cache)
        moved = self.path("a folder")
        os.mkdir(moved)
        os.rename(self.pack, moved + "/pack")
        text = self.gemmjit("cache", "unpack", moved + "/pack", "--cache-dir", self.other, err="").out
        self.assertEqual(text, f"unpacked  2 entries, 2 stamps, {sum(map(len, files.values()))} bytes\nkept      0\n"
                               "left out  0\n")
        self.assertEqual(tree(self.other), files)
        self.assertEqual(self.gemmjit("cache", "verify", "--cache-dir", self.other).out, "sound    2\ndamaged  0\n")
        again = self.gemmjit("cache", "unpack", moved + "/pack", "--cache-dir", self.other, "--json", err="").json()
        self.assertEqual(again, {"root": self.other, "file": moved + "/pack", "left_out": [], "entries": 0, "stamps": 0,
                                 "bytes": 0, "kept": 4})

    def test_prewarm_from_a_pack(self):
        """Where it was unpacked nothing is compiled, and libnvrtc need not be there."""
        self.gemmjit("cache", "pack", self.pack)
        self.gemmjit("cache", "unpack", self.pack, "--cache-dir", self.other)
        for env in (None, NO_NVRTC):
            told = self.gemmjit("prewarm", *KEYS, "--cache-dir", self.other, "--json", env=env).json()
            self.assertEqual((told["compiled"], told["stats"]["disk_hits"]), (0, 2))
        log = self.gemmjit("prewarm", *KEYS, "--cache-dir", self.other, "-vv").err
        self.assertNotIn("libnvrtc", log)

    def test_mode_and_replacement(self):
        self.write("x.gjp", "old")
        os.chmod(self.pack, 0o400)
        os.symlink("x.gjp", self.path("link"))
        self.assertEqual(self.shell('umask 0; "$0" cache pack link').returncode, 0)
        self.assertTrue(os.path.islink(self.path("link")))
        self.assertEqual(stat.S_IMODE(os.stat(self.pack).st_mode), 0o644)
        self.assertEqual(self.shell('umask 077; "$0" cache pack other.gjp').returncode, 0)
        self.assertEqual(stat.S_IMODE(os.stat(self.path("other.gjp")).st_mode), 0o600)
        self.assertEqual(read(self.pack), read(self.path("other.gjp")))
        self.gemmjit("cache", "unpack", "link", "--cache-dir", self.other, err="")

    def test_odd_places(self):
        os.mkfifo(self.path("fifo"))
        for name, reason, status in (
                (".", "the pack is a directory; a pack is one file", 2),
                ("new/", "the pack is a directory; a pack is one file", 2),
                ("fifo", "the pack is there and is not a regular file", 2),
                ("cache/v1/x", "the pack would lie within the v1 of the cache itself", 2),
                ("cache/v1/compilers/default", "the pack would lie within the v1 of the cache itself", 2),
                ("none/x", "the directory of the pack cannot be opened: No such file or directory", 1)):
            self.refused("cache", "pack", name, message=f"{name} cannot be written: {reason}", status=status)
        self.gemmjit("cache", "pack", "cache/x.gjp", err="")

    def test_a_full_disk_leaves_the_old_file(self):
        self.write("x.gjp", "old")
        result = self.shell('ulimit -f 20; "$0" cache pack x.gjp')
        self.assertEqual((result.returncode, result.stderr),
                         (1, "gemmjit: x.gjp cannot be written: the pack cannot be written: File too large\n"))
        self.assertEqual(read(self.pack), b"old")
        self.assertEqual(sorted(os.listdir(self.folder)), ["cache", "x.gjp"])

    def test_damaged_entries_are_left_out(self):
        path = self.files()[0]
        flip(path, 300)
        warning = f"gemmjit: warning: {path} is left out: the entry has a wrong checksum\n"
        text = self.gemmjit("cache", "pack", self.pack, status=1, err=warning).out
        self.assertRegex(text, r"^packed    1 entries, 2 stamps, \d+ bytes\nleft out  1\n$")
        told = self.gemmjit("cache", "pack", self.pack, "--json", status=1, err=warning).json()
        self.assertEqual((told["entries"], told["left_out"]),
                         (1, [{"file": path, "damaged": "the entry has a wrong checksum"}]))
        self.gemmjit("cache", "unpack", self.pack, "--cache-dir", self.other, err="")

    def test_damaged_members_are_left_out(self):
        self.gemmjit("cache", "pack", self.pack)
        flip(self.pack, 500)
        name = os.path.basename(self.files()[0])
        warning = f"gemmjit: warning: {name} is left out: has a wrong checksum\n"
        told = self.gemmjit("cache", "unpack", self.pack, "--cache-dir", self.other, "--json", status=1,
                            err=warning).json()
        self.assertEqual((told["entries"], told["left_out"]), (1, [{"file": name, "damaged": "has a wrong checksum"}]))
        self.assertEqual(self.gemmjit("cache", "verify", "--cache-dir", self.other).out, "sound    1\ndamaged  0\n")
        flip(self.pack, os.path.getsize(self.pack) - 1)
        self.refused("cache", "unpack", self.pack,
                     message=f"{self.pack} cannot be unpacked: the pack has a wrong checksum of its index")

    def test_unpack_heals(self):
        self.gemmjit("cache", "pack", self.pack)
        files = tree(self.cache)
        flip(self.files()[1], 300)
        text = self.gemmjit("cache", "unpack", self.pack, err="").out
        self.assertRegex(text, r"^unpacked  1 entries, 0 stamps, \d+ bytes\nkept      3\nleft out  0\n$")
        self.assertEqual(tree(self.cache), files)

    def test_unpack_into_what_cannot_be_written(self):
        self.gemmjit("cache", "pack", self.pack)
        os.mkdir(self.other)
        result = self.shell('ulimit -f 1; "$0" cache unpack x.gjp --cache-dir other')
        self.assertEqual((result.returncode, result.stderr), (
            1, "gemmjit: x.gjp cannot be unpacked: the temporary file cannot be written: File too large\n"))
        self.assertEqual(tree(self.other), {})
