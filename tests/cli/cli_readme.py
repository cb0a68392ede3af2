# SPDX-License-Identifier: Apache-2.0
"""The commands of README.md and docs/prewarm.md, as typed."""
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
        os.symlink(os.path.join(ROOT, "tests"), self.path("tests"))
        expected = {"refused": 2}
        ran = 0
        before = ""
        for line in block("A first tour of the command"):
            command, _, comment = line.strip().partition("#")
            if command.startswith("export "):
                before += command + "\n"
                continue
            if command.startswith(("gemmjit bench", "gemmjit tune")):
                continue  # needs a GPU, and minutes
            if command.startswith("gemmjit run") and self.gemmjit_status("run", "--m=8", "--n=8", "--k=8") == 3:
                continue
            status = next((expected[word] for word in expected if word in comment), 0)
            result = subprocess.run(["sh", "-c", before + command], env=self.environment(None), cwd=self.folder,
                                    stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False, timeout=120)
            self.assertEqual(result.returncode, status, f"{command}: {result.stderr}")
            ran += 1
        self.assertIn("export PATH=", before)
        self.assertGreater(ran, 5)


class Jobs(CliCase):
    """The job scripts of docs/prewarm.md, with the variables that a scheduler sets."""

    def setUp(self):
        super().setUp()
        with open(os.path.join(ROOT, "docs/prewarm.md"), encoding="utf-8") as file:
            self.text = file.read()
        script = self.write("gemmjit", f'#!/bin/sh\nexec "{cli_case.GEMMJIT}" "$@" --m-max 300 --dry-run\n')
        os.chmod(script, 0o755)
        model = os.path.join(ROOT, "tests/data/models/llama-3-8b.json")
        os.symlink(model, self.path("config.json"))
        self.all = self.gemmjit("prewarm", "--model", model, "--tp=8", "--m-max=300", "--dry-run", "--json").json()["keys"]

    def keys(self, script, **variables):
        env = self.environment({"PATH": self.folder + ":" + os.environ["PATH"], **variables})
        result = subprocess.run(["sh", "-c", script], env=env, cwd=self.folder, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, text=True, check=False, timeout=120)
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        return result.stdout.partition("\n\n")[2].splitlines()

    def test_slurm(self):
        script = re.search(r"```sh\n(.*?)```", self.text, re.DOTALL).group(1)
        first, last = map(int, re.search(r"--array=(\d+)-(\d+)", script).groups())
        found = []
        for task in range(first, last + 1):
            found += self.keys(script, SLURM_ARRAY_TASK_ID=str(task), SLURM_ARRAY_TASK_COUNT=str(last - first + 1),
                               SLURM_CPUS_PER_TASK="4", MODEL_DIR=self.folder, CACHE_DIR=self.cache)
        self.assertEqual(sorted(found), sorted(self.all))

    def test_kubernetes(self):
        job = re.search(r"```yaml\n(.*?)```", self.text, re.DOTALL).group(1)
        completions = int(re.search(r"completions: (\d+)", job).group(1))
        script = " ".join(re.search(r"args:\n +- (.*?)\n +resources:", job, re.DOTALL).group(1).split())
        script = script.replace("/model/config.json", self.path("config.json"))
        found = []
        for index in range(completions):
            found += self.keys(script, JOB_COMPLETION_INDEX=str(index))
        self.assertEqual(sorted(found), sorted(self.all))
