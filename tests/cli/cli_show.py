# SPDX-License-Identifier: Apache-2.0
"""show and keys: stages of a key, and where they are written."""
import os
import stat
import subprocess

import cli_case
from cli_case import CliCase, DEFAULT_KEY, FAKE_NVRTC, NO_NVRTC, NO_NVRTC_MESSAGE

STAGES = "allowed is source, ptx, sass, plan, key, resources"
NO_DISASSEMBLER = ("no nvdisasm in PATH, CUDA_HOME/bin, CUDA_PATH/bin or /usr/local/cuda/bin: install the CUDA "
                   "toolkit's package cuda-nvdisasm, or put the one that tools/quickstart fetches into PATH")


class Stages(CliCase):
    def test_emit(self):
        self.refused("show", message=f"--emit is needed: {STAGES}")
        self.refused("show", "--emit", "tree", message=f"--emit tree: {STAGES}")

    def test_key(self):
        self.assertEqual(self.gemmjit("show", "--emit", "key", err="").out, DEFAULT_KEY + "\n")

    def test_plan(self):
        text = self.gemmjit("show", "--emit", "plan", err="").out
        self.assertRegex(text, r"(?m)^shared memory +\d+ bytes")
        plan = self.gemmjit("show", "--emit", "plan", "--json", err="").json()
        self.assertEqual(plan["key"], DEFAULT_KEY)
        self.assertIn(f"shared memory    {plan['plan']['smem_bytes']} bytes", text)
        self.assertLessEqual(plan["plan"]["smem_bytes"], 232448)

    def test_source_is_deterministic(self):
        first = self.gemmjit("show", "--emit", "source", err="").out
        self.assertEqual(self.gemmjit("show", "--emit", "source", env={"LC_ALL": "C.UTF-8", "TZ": "Asia/Tokyo"},
                                      err="").out, first)
        self.assertIn(DEFAULT_KEY, first)
        self.assertNotRegex(first, r"(?m)^ *#include")
        self.assertEqual(self.gemmjit("show", "--emit", "source", "--json").json()["source"], first)
        self.assertFalse(os.path.exists(self.cache), "showing a source touches no cache")

    def test_no_nvrtc(self):
        for stage in ("ptx", "resources", "sass"):
            error = self.refused("show", "--emit", stage, message=NO_NVRTC_MESSAGE, status=3, env=NO_NVRTC)
            self.assertEqual(error["status"], "GJ_ERR_NO_COMPILER")
        self.gemmjit("show", "--emit", "source", env=NO_NVRTC, err="")

    def test_old_nvrtc(self):
        if "old" not in FAKE_NVRTC:
            self.skipTest("no fake libnvrtc was built")
        path = os.path.realpath(FAKE_NVRTC["old"])
        self.refused("show", "--emit", "ptx", status=3, env={"GEMMJIT_NVRTC": path},
                     message=f"{path} is too old: found NVRTC 11.8, needed 12.3 or later")

    def test_failed_compile(self):
        if "empty" not in FAKE_NVRTC:
            self.skipTest("no fake libnvrtc was built")
        result = self.gemmjit("show", "--emit", "resources", "--json", status=1,
                              env={"GEMMJIT_NVRTC": FAKE_NVRTC["empty"]})
        self.assertEqual(result.json()["error"]["status"], "GJ_ERR_COMPILE")
        self.assertTrue(result.err.startswith("gemmjit: "))

    def test_ptx(self):
        self.need_nvrtc()
        text = self.gemmjit("show", "--emit", "ptx", err="").out
        self.assertIn(".target sm_90a", text)
        self.assertEqual(self.gemmjit("show", "--emit", "ptx", "--json").json()["ptx"], text)

    def test_resources(self):
        self.need_nvrtc()
        text = self.gemmjit("show", "--emit", "resources", err="").out
        found = self.gemmjit("show", "--emit", "resources", "--json").json()["resources"]
        plan = self.gemmjit("show", "--emit", "plan", "--json").json()["plan"]
        for name in ("threads", "stages", "smem_bytes"):
            self.assertEqual(found[name], plan[name])
        self.assertEqual((found["spill_bytes"], found["local_load"], found["local_store"]), (0, 0, 0))
        self.assertGreater(found["mma"], 0)
        for name, value in found.items():
            if name not in ("entry_name", "compiler"):
                self.assertRegex(text, rf"(?m)^{name} +{value}$")


class Sass(CliCase):
    """A script stands for nvdisasm, so that the test needs none."""

    def disassembler(self, body):
        os.mkdir(self.path("bin"))
        script = self.write("bin/nvdisasm", "#!/bin/sh\n" + body)
        os.chmod(script, 0o755)
        return {"PATH": self.path("bin") + ":" + os.environ["PATH"]}

    def test_sass(self):
        self.need_nvrtc()
        env = self.disassembler('[ "$1" = -c ] || exit 9\nhead -c 4 "$2" | tr -d "\\177"\necho " HGMMA ;"\n')
        self.assertEqual(self.gemmjit("show", "--emit", "sass", env=env, err="").out, "ELF HGMMA ;\n")
        self.assertEqual(self.gemmjit("show", "--emit", "sass", "--json", env=env).json()["sass"],
                         "ELF HGMMA ;\n")

    def test_failing_disassembler(self):
        self.need_nvrtc()
        env = self.disassembler("echo half\necho cannot do it >&2\nexit 5\n")
        path = self.path("bin/nvdisasm")
        self.gemmjit("show", "--emit", "sass", env=env, status=1,
                     err=f"gemmjit: {path} failed with exit status 5\n    (-v shows the log)\n")
        told = self.gemmjit("show", "--emit", "sass", "-v", env=env, status=1).err
        self.assertIn("\n    cannot do it\n", told)

    def test_closed_stdout(self):
        self.need_nvrtc()
        env = self.disassembler('head -c 4 "$2" | tr -d "\\177"\necho " one"; echo two >&2\n')
        for closed in (">&-", "<&- >&- 2>&-"):
            result = self.shell(f'exec "$0" show --emit sass -o sass.txt {closed}', env=env)
            self.assertEqual((result.returncode, result.stderr), (0, ""))
            with open(self.path("sass.txt"), encoding="utf-8") as file:
                self.assertEqual(file.read(), "ELF one\n")
        result = self.shell('exec "$0" show --emit sass >&-', env=env)
        self.assertEqual((result.returncode, result.stderr),
                         (1, "gemmjit: standard output cannot be written: Bad file descriptor\n"))

    def test_no_disassembler(self):
        self.need_nvrtc()
        doctor = self.gemmjit("doctor", "--json", env={"PATH": "/nonexistent"}).json()
        env = {"PATH": "/nonexistent"}
        if doctor["nvdisasm"]["ok"]:
            self.skipTest(f"{doctor['nvdisasm']['path']} cannot be hidden")
        self.refused("show", "--emit", "sass", env=env, status=3, message=NO_DISASSEMBLER)


class Output(CliCase):
    def test_file(self):
        text = self.gemmjit("show", "--emit", "source").out
        self.assertEqual(self.gemmjit("show", "--emit", "source", "-o", "unit.cu", err="").out, "")
        with open(self.path("unit.cu"), encoding="utf-8") as file:
            self.assertEqual(file.read(), text)
        self.assertEqual(os.listdir(self.folder), ["unit.cu"])

    def test_file_is_replaced(self):
        self.write("real", "old")
        os.chmod(self.path("real"), 0o640)
        os.symlink("real", self.path("link"))
        self.gemmjit("show", "--emit", "key", "-o", self.path("link"), err="")
        self.assertTrue(os.path.islink(self.path("link")))
        self.assertEqual(stat.S_IMODE(os.stat(self.path("real")).st_mode), 0o640)
        with open(self.path("real"), encoding="utf-8") as file:
            self.assertEqual(file.read(), DEFAULT_KEY + "\n")
        self.assertEqual(sorted(os.listdir(self.folder)), ["link", "real"])

    def test_failure_leaves_the_file(self):
        self.write("kept", "old")
        self.gemmjit("show", "--emit", "ptx", "-o", "kept", "--json", status=3, env=NO_NVRTC)
        with open(self.path("kept"), encoding="utf-8") as file:
            self.assertEqual(file.read(), "old")

    def test_unwritable_places(self):
        for path, reason in ((self.path("none/x"), "No such file or directory"),
                             (self.folder, "Is a directory"),
                             ("/proc/version/x", "Not a directory"),
                             ("/dev/full", "No space left on device")):
            self.refused("show", "--emit", "plan", "-o", path, status=1,
                         message=f"{path} cannot be written: {reason}")
        self.assertEqual(os.listdir(self.folder), [])

    def test_size_limit(self):
        result = self.shell('ulimit -f 1; exec "$0" show --emit source -o unit.cu')
        self.assertEqual((result.returncode, result.stderr), (1, "gemmjit: unit.cu cannot be written: File too large\n"))
        self.assertEqual(os.listdir(self.folder), [])

    def test_read_only_folder(self):
        if os.geteuid() == 0:
            self.skipTest("root may write anywhere")
        os.mkdir(self.path("locked"), 0o500)
        path = self.path("locked/x")
        self.refused("show", "--emit", "plan", "-o", path, status=1,
                     message=f"{path} cannot be written: Permission denied")
        self.assertEqual(os.listdir(self.path("locked")), [])

    def test_full_stdout(self):
        for arguments in (("keys",), ("doctor",), ("--help",), ("show", "--emit", "source"), ("cache", "stat")):
            with open("/dev/full", "w", encoding="utf-8") as full:
                self.gemmjit(*arguments, stdout=full, status=1,
                             err="gemmjit: standard output cannot be written: No space left on device\n")

    def test_closed_stdout(self):
        result = subprocess.run(["sh", "-c", 'exec "$0" show --emit key >&-', cli_case.GEMMJIT], check=False,
                                text=True, stderr=subprocess.PIPE, env=self.environment(None))
        self.assertEqual(result.returncode, 1)
        self.assertEqual(result.stderr, "gemmjit: standard output cannot be written: Bad file descriptor\n")


class List(CliCase):
    def test_lines_and_manifest(self):
        lines = self.gemmjit("keys", err="").out.splitlines()
        self.assertIn(DEFAULT_KEY, lines)
        self.assertEqual(len(set(lines)), len(lines))
        self.assertEqual(self.gemmjit("keys", "--json", err="").json(), {"version": 1, "keys": lines})

    def test_problem(self):
        lines = self.gemmjit("keys", "--a", "f16.k", "--b", "f16.k", "--d", "f32.n", err="").out.splitlines()
        self.assertGreater(len(lines), 0)
        for line in lines:
            self.assertIn("a=f16.k,b=f16.k,c=none,d=f32.n", line)

    def test_every_key_is_accepted(self):
        lines = self.gemmjit("keys").out.splitlines()
        for line in lines[::17] + lines[-1:]:
            self.gemmjit("show", "--emit", "plan", "--key", line, err="")

    def test_impossible_problem(self):
        error = self.gemmjit("keys", "--a", "f16.k", "--b", "bf16.k", "--json", status=2).json()["error"]
        self.assertIn("a=f16 and b=bf16 differ: 16-bit operands of wgmma have one type", error["reasons"])
