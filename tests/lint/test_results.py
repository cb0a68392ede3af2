# SPDX-License-Identifier: Apache-2.0
"""tools/test_results and tools/lint/check_links on small inputs: test_results.py TOOLS_DIR"""
import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

TOOLS = sys.argv.pop(1)

LOG = ({"name": "p:unit / a", "result": "OK", "stdout": "fine\n"},
       {"name": "p:unit / b", "result": "FAIL"},
       {"name": "p:gpu / c", "result": "SKIP", "stdout": "", "stderr": "first\nno GPU here\n\n"},
       {"name": "p:lint / d", "result": "SKIP", "stdout": ""},
       {"name": "p:unit / e", "result": "OK", "stdout": "[ RUN      ] m\n[  SKIPPED ] m\n[  SKIPPED ] 1 test(s)\n"},
       {"name": "p:cli / f", "result": "OK", "stderr": "test_x (f.F.test_x) ... ok\n"
                                                       "test_y (f.F.test_y) ... skipped 'no libnvrtc here'\n"},
       {"name": "p:cli / g", "result": "SKIP", "stderr": "test_z (g.G.test_z)\nSays what. ... skipped 'no such'\n"
                                                         "OK (skipped=1)\n"})
SUMMARY = """3 1 3
skipped: c: no GPU here
skipped: d: it gives no reason
skipped in e: m: see its source
skipped in f: test_y: no libnvrtc here
skipped: g: test_z: no such
"""


class Tools(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.folder)

    def write(self, name, text):
        path = os.path.join(self.folder, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        return path

    def run_python(self, script, *arguments):
        return subprocess.run([sys.executable, "-B", script, *arguments], stdout=subprocess.PIPE, text=True, check=False)

    def test_summary(self):
        log = self.write("log.json", "".join(json.dumps(test) + "\n" for test in LOG))
        self.assertEqual(self.run_python(os.path.join(TOOLS, "test_results"), log).stdout, SUMMARY)
        self.assertEqual(self.run_python(os.path.join(TOOLS, "test_results"), log + ".none").stdout, "0 0 0\n")

    def test_links(self):
        for name in ("check_links", "tree.py"):
            os.makedirs(os.path.join(self.folder, "tools/lint"), exist_ok=True)
            shutil.copy(os.path.join(TOOLS, "lint", name), os.path.join(self.folder, "tools/lint", name))
        script = os.path.join(self.folder, "tools/lint/check_links")
        self.write("docs/a.md", "# A b: c\n\n[up](../README.md) [own](#a-b-c) [web](https://nowhere.invalid/x)\n")
        self.write("README.md", "[a](docs/a.md#a-b-c) `[code](none.md)`\n\n    [code](none.md)\n")
        self.write("tests/t.c", "static void is_there(void)\n")
        self.write("tests/README.md", "`t.c: is_there`, `tests/t.c: is_there`\n")
        sound = self.run_python(script)
        self.assertEqual((sound.returncode, sound.stdout), (0, ""))
        self.write("docs/b.md", "\n[a](b/c.md), [b](a.md#d)\n[c](../../x)\n")
        self.write("tests/README.md", "`t.c: is_ther`, `tests/u.c: is_there`\n")
        broken = self.run_python(script)
        self.assertEqual(broken.returncode, 1)
        self.assertEqual(broken.stdout.splitlines()[:5],
                         ["docs/b.md:2: link to b/c.md, which is not there",
                          "docs/b.md:2: link to a.md#d, a heading that is not there",
                          "docs/b.md:3: link to ../../x, which is outside of the repository",
                          "tests/README.md:1: test is_ther, which is not in t.c",
                          "tests/README.md:1: test in tests/u.c, which is not there"])


if __name__ == "__main__":
    unittest.main()
