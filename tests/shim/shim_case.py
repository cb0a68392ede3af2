# SPDX-License-Identifier: Apache-2.0
"""The base of the tests below the shim: a folder whose file calls follow rules, and what must hold whatever they do."""
import hashlib
import os
import re
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../cli"))
from cli_case import CliCase, SMALL  # noqa: E402

# Set by run_shim.
SHIM = None
REPLAYING_NVRTC = None  # a libnvrtc whose every compile gives the file that FAKE_NVRTC_CUBIN names

OFF = re.compile(r"the disk cache cannot be (used|written): ")


def read(path):
    with open(path, "rb") as file:
        return file.read()


def contents(root):
    """{path below root: bytes} of every file but the lock."""
    found = {}
    for folder, _, names in os.walk(root):
        for name in names:
            path = os.path.join(folder, name)
            found[os.path.relpath(path, root)] = read(path)
    found.pop("v1/lock", None)
    return found


def tree(root):
    """The same with a hash for the bytes."""
    return {name: hashlib.sha256(data).hexdigest()[:16] for name, data in contents(root).items()}


def is_temporary(name):
    return os.path.basename(name).startswith(".tmp-")


def without(found, *parts):
    """The files of a tree whose names have none of the parts."""
    return {name: data for name, data in found.items() if not any(part in name for part in parts)}


class ShimCase(CliCase):
    """Everything lies in self.place; self.cache is filled by a compiler that replays what the real one gave."""
    KEYS = (SMALL,)

    def setUp(self):
        super().setUp()
        self.need_nvrtc()
        self.folder = os.path.realpath(self.folder)
        self.place = self.path("place")
        os.mkdir(self.place)
        self.cache = os.path.join(self.place, "cache")
        self.log = self.path("log")
        self.gemmjit("prewarm", "--key", SMALL, "-q", "--cache-dir", self.path("real"))
        (entry,) = [data for name, data in contents(self.path("real")).items() if name.endswith(".gjc")]
        with open(self.path("cubin"), "wb") as file:
            file.write(entry[-int.from_bytes(entry[16:24], "little"):])
        self.more = {}  # of the environment of what runs below the shim
        self.compiler = {"GEMMJIT_NVRTC": REPLAYING_NVRTC, "FAKE_NVRTC_CUBIN": self.path("cubin")}
        self.prewarm()
        self.contents = contents(self.cache)
        self.whole = tree(self.cache)
        self.assertEqual(len(self.whole), 3, "an entry, its stamp, the default stamp")
        (self.entry,) = [name for name in self.whole if name.endswith(".gjc")]

    def fill(self):
        """The cache as an undisturbed run leaves it."""
        self.empty()
        for name, data in self.contents.items():
            path = os.path.join(self.cache, name)
            os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
            with open(os.open(path, os.O_WRONLY | os.O_CREAT, 0o600), "wb") as file:
                file.write(data)

    def empty(self):
        shutil.rmtree(self.place)
        os.mkdir(self.place)

    # -- Running -----------------------------------------------------------------------------------------

    def shimmed(self, rules):
        return {"LD_PRELOAD": SHIM, "SHIM_DIR": self.place, "SHIM_LOG": self.log, "SHIM_RULES": rules, **self.compiler,
                **self.more}

    def calls(self):
        """(kind, whether a rule met it, path) of each call of the last run."""
        if not os.path.exists(self.log):
            return []
        with open(self.log, encoding="utf-8") as file:
            return [tuple(line.rstrip("\n").split(" ", 2)) for line in file]

    def under(self, rules, *arguments, status=None):
        """Runs the command below the shim. It ends by itself and never touches the lock's name."""
        if os.path.exists(self.log):
            os.unlink(self.log)
        result = self.gemmjit(*arguments, status=status, env=self.shimmed(rules))
        self.assertIn(result.status, (0, 1, 2) if "unpack" in arguments else (0, 1), (rules, result.err))
        for kind, _, path in self.calls():
            self.assertNotIn(kind, ("link", "renameat2"), (rules, path))
            self.assertFalse(kind in ("unlink", "rename") and path.endswith("/lock"), rules)
        return result

    def prewarm(self, rules=None, status=0):
        """The document of a prewarm, below the shim when there are rules, and what it wrote on stderr."""
        arguments = ["prewarm", "--json", "-j", "1"] + [f"--key={key}" for key in self.KEYS]
        if rules is None:
            result = self.gemmjit(*arguments, status=status, env=self.compiler)
        else:
            result = self.under(rules, *arguments, status=status)
        return result.json(), result.err, result.status

    # -- What must hold ----------------------------------------------------------------------------------

    def warnings(self, err):
        """The warnings without the names in them; each only once."""
        found = [re.sub(r"[0-9a-f]{32}|\.tmp-[-0-9a-f]+", "NAME", line) for line in err.splitlines() if "warning: " in line]
        found = [line.replace("default", "NAME") for line in found]
        self.assertEqual(len(found), len(set(found)), err)
        return found

    def check_prewarm(self, run, rules):
        """The kernel was obtained; what was not stored is counted, said and is the exit status. A cache that cannot
        be used at all is refused, before any compile."""
        told, err, status = run
        self.warnings(err)
        if "error" in told:
            self.assertRegex(told["error"]["message"], OFF, rules)
            self.assertEqual(status, 1)
            return
        (item,) = told["keys"]
        if item["origin"] == "failed":
            self.assertRegex(err, r"not compiled: the disk cache cannot be written: ", rules)
            self.assertEqual((status, told["stats"]["compiles"]), (1, 0), rules)
            return
        self.assertIn(item["origin"], ("compiled", "disk"), rules)
        self.assertEqual(status, 0 if item["stored"] else 1, (rules, err))
        self.assertEqual(told["not_stored"], 0 if item["stored"] else 1, rules)
        self.assertEqual(told["stats"]["disk_write_failures"], told["not_stored"], rules)
        self.assertEqual("gemmjit: 1 cubin could not be written to the disk cache\n" in err, not item["stored"], rules)
        if not item["stored"]:
            self.assertRegex(err, "not stored: |disk cache off: ", rules)

    def check_files(self, rules, may_have=()):
        """What has its name is whole; nothing else is there but files with these words in their names."""
        for name, data in without(tree(self.cache), *may_have).items():
            self.assertIn(name, self.whole, rules)
            self.assertEqual(data, self.whole[name], (rules, name))

    def check_next(self, rules, may_have=()):
        """A process without the shim finds a sound cache, uses what there is and completes it."""
        has_entry = self.entry in tree(self.cache)
        told, err, _ = self.prewarm()
        self.assertEqual(self.warnings(err), [], rules)
        self.assertEqual((told["disk"], told["compiled"]), (1, 0) if has_entry else (0, 1), rules)
        self.assertEqual(told["stats"]["damaged_entries"] + told["stats"]["disk_write_failures"], 0, rules)
        found = without(tree(self.cache), *may_have)
        if has_entry:  # only a store writes stamps
            self.assertEqual(found[self.entry], self.whole[self.entry], rules)
        else:
            self.assertEqual(found, self.whole, rules)

    def check(self, run, rules, may_have=()):
        self.check_prewarm(run, rules)
        self.check_files(rules, may_have)
        self.check_next(rules, may_have)


def imported(archive):
    """{symbol: object} that the objects of src/cache in the archive import."""
    text = subprocess.run(["nm", "-A", "--undefined-only", archive], stdout=subprocess.PIPE, check=True,
                          encoding="utf-8").stdout
    found = {}
    for line in text.splitlines():
        place, symbol = line.rsplit(" U ", 1)
        if "cache_" in os.path.basename(place):
            found[symbol] = os.path.basename(place.strip().rstrip(":"))
    return found


def exported(library):
    text = subprocess.run(["nm", "-D", "--defined-only", library], stdout=subprocess.PIPE, check=True,
                          encoding="utf-8").stdout
    return {line.split()[-1].split("@")[0] for line in text.splitlines()}
