# SPDX-License-Identifier: Apache-2.0
"""The commands of README.md, as typed."""
import os
import re
import subprocess

import cli_case
from cli_case import CliCase

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../..")


def block(title):
    """The lines of the first code block below a heading."""
    with open(os.path.join(ROOT, "README.md"), encoding="utf-8") as file:
        text = file.read()
    section = re.search(rf"^## {re.escape(title)}\n(.*?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL).group(1)
    return re.search(r"(?:^    .*\n)+", section, re.MULTILINE).group().splitlines()


class Tour(CliCase):
    def test_commands(self):
        """Every line ends as its comment lets expect, in a shell that stands in the repository after quickstart."""
        self.need_nvrtc()
        os.makedirs(self.path("build"))
        os.symlink(os.path.dirname(cli_case.GEMMJIT), self.path("build/tools"))
        expected = {"refused": 2}
        ran = 0
        before = ""
        for line in block("A first tour of the command"):
            command, _, comment = line.strip().partition("#")
            if command.startswith("export "):
                before += command + "\n"
                continue
            if command.startswith("gemmjit run") and self.gemmjit_status("run", "--m=8", "--n=8", "--k=8") == 3:
                continue
            status = next((expected[word] for word in expected if word in comment), 0)
            result = subprocess.run(["sh", "-c", before + command], env=self.environment(None), cwd=self.folder,
                                    stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False, timeout=120)
            self.assertEqual(result.returncode, status, f"{command}: {result.stderr}")
            ran += 1
        self.assertIn("export PATH=", before)
        self.assertGreater(ran, 5)
