# SPDX-License-Identifier: Apache-2.0
"""What the lint scripts share: the project's files and C text without comments and strings."""
import os
import re
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
TOP = (".ci", "docs", "examples", "include", "ptx_snippets", "python", "src", "templates", "tests", "tools")
SKIPPED = re.compile(r"(\..*|__pycache__|.*\.egg-info)$")

COMMENT_OR_STRING = re.compile(
    r'//[^\n]*|/\*.*?\*/|R"(\w*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.DOTALL)


def project_files(*top):
    """Paths below the root, sorted, in the given top-level folders; all, and the files beside them, when none
    is given."""
    found = []
    for folder, folders, names in os.walk(ROOT):
        if folder == ROOT:
            folders[:] = [name for name in TOP if name in folders and (not top or name in top)]
            names = [] if top else names
        else:
            folders[:] = sorted(name for name in folders if not SKIPPED.match(name))
        for name in sorted(names):
            full = os.path.join(folder, name)
            if os.path.isfile(full):
                found.append(os.path.relpath(full, ROOT))
    return found


def read_bytes(path):
    with open(os.path.join(ROOT, path), "rb") as file:
        return file.read()


def read_text(path):
    return read_bytes(path).decode("utf-8")


def code_only(text):
    """The text with comments and literals blanked; line numbers stay as they are."""
    return COMMENT_OR_STRING.sub(lambda m: re.sub(r"[^\n]", " ", m.group()), text)


def report(problems):
    """Prints `path:line: sentence` for each problem and ends the process: 1 when there was one, else 0."""
    for path, line, sentence in problems:
        print(f"{path}:{line}: {sentence}")
    if problems:
        print(f"{len(problems)} problem(s)")
    sys.exit(1 if problems else 0)
