# SPDX-License-Identifier: Apache-2.0
"""Explores pipeline.pml with spin for small sizes: run_model.py MODEL_PARAMS [--mutations] [--only TEXT]

MODEL_PARAMS is the program built from model_params.c. --mutations also breaks the model in ways that must be found.
One line per configuration. Exit status 77 without spin, 1 when an expectation failed."""
import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time

MODEL = os.path.join(os.path.dirname(os.path.abspath(__file__)), "pipeline.pml")
TIMEOUT = 120  # seconds of one exploration
MEMORY = 2000  # MiB of one exploration

COOP, PINGPONG = "tile=128x128,sched=coop", "tile=128x128,sched=pingpong"
ONE_GROUP = "tile=64x128,sched=coop"
DYNAMIC = ",tiles=dynamic"
PROMOTED = "a=e4m3.k,b=e4m3.k,fp8acc=promoted,"


def size(stages, tiles, k_tiles, asynchronous=1, warps=1, clusters=1, first=0):
    return {"STAGES": stages, "TILES": tiles, "K_TILES": k_tiles, "ASYNC": asynchronous, "WARPS": warps,
            "CLUSTERS": clusters, "FIRST": first}


# Key and size.
CONFIGURATIONS = [
    (COOP + ",cluster=1x1", size(2, 3, 3)),
    (COOP + ",cluster=1x1", size(3, 3, 2)),
    (PINGPONG + ",cluster=1x1", size(2, 3, 3)),
    (PINGPONG + ",cluster=1x1", size(3, 3, 2)),
    (COOP + ",cluster=2x1", size(2, 2, 2)),
    (PINGPONG + ",cluster=2x1", size(2, 2, 2)),
]

# Name, key, size, text of the model, what it becomes. Each must be found.
MUTATIONS = [
]


class Failure(Exception):
    pass


def plan_numbers(program, key):
    made = subprocess.run([program, key], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
    if made.returncode != 0:
        raise Failure(f"{program} {key}: {made.stderr.strip()}")
    return made.stdout


def run(command, folder, timeout=TIMEOUT):
    done = subprocess.run(command, cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, timeout=timeout, check=False)
    if done.returncode != 0:
        raise Failure(f"{' '.join(command)}: status {done.returncode}\n{done.stdout}")
    return done.stdout


def explore(model, defines):
    """Explores a model; (what was found or None, number of states, seconds)."""
    begin = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        for name, text in ("pipeline.pml", model), ("params.h", defines):
            with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
                file.write(text)
        run(["spin", "-a", "pipeline.pml"], folder)
        run(["gcc", "-O1", "-w", "-DSAFETY", "-DCOLLAPSE", f"-DMEMLIM={MEMORY}", "-o", "pan", "pan.c"], folder)
        output = run(["./pan", "-m1000000"], folder)
    states = re.search(r"^ *([0-9.e+]+) states, stored", output, re.MULTILINE)
    errors = re.search(r"errors: (\d+)", output)
    if not states or not errors:
        raise Failure(output)
    found = re.search(r"^pan:\d+: (.*)", output, re.MULTILINE)
    if int(errors.group(1)) == 0:
        if found or "Search not completed" in output or "max search depth too small" in output:
            raise Failure(output)
        return None, float(states.group(1)), time.monotonic() - begin
    return (found.group(1) if found else "an error"), float(states.group(1)), time.monotonic() - begin


def defines_of(program, key, sizes):
    return plan_numbers(program, key) + "".join(f"#define {name} {value}\n" for name, value in sizes.items())


def describe(key, sizes):
    words = f"{key} stages={sizes['STAGES']} tiles={sizes['TILES']} k_tiles={sizes['K_TILES']}"
    for name in "WARPS", "CLUSTERS", "FIRST":
        if sizes[name] != (name != "FIRST"):
            words += f" {name.lower()}={sizes[name]}"
    return words + (" asynchronous" if sizes["ASYNC"] else "")


def check(name, expect_error, model, defines):
    """Explores, prints a line; whether it came out as expected."""
    try:
        found, states, seconds = explore(model, defines)
        good = (found is not None) == expect_error
        result = "nothing found" if found is None else found
        print(f"{'ok  ' if good else 'FAIL'} {name}: {states:.0f} states, {seconds:.1f} s, {result}", flush=True)
        return good
    except (Failure, subprocess.TimeoutExpired) as error:
        print(f"FAIL {name}: {error}", flush=True)
        return False


def mutate(model, old, new):
    if model.count(old) != 1:
        raise Failure(f"'{old}' stands {model.count(old)} times in the model, not once")
    return model.replace(old, new)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model_params")
    parser.add_argument("--mutations", action="store_true")
    parser.add_argument("--only", default="", help="leave out what does not contain this text")
    options = parser.parse_args()
    if not shutil.which("spin") or not shutil.which("gcc"):
        print("spin and gcc are needed: skipped")
        return 77
    with open(MODEL, encoding="utf-8") as file:
        model = file.read()
    good = True
    for key, sizes in CONFIGURATIONS:
        name = describe(key, sizes)
        if options.only in name:
            good &= check(name, False, model, defines_of(options.model_params, key, sizes))
    for what, key, sizes, old, new in MUTATIONS if options.mutations else []:
        name = f"mutation '{what}', {describe(key, sizes)}"
        if options.only in name:
            good &= check(name, True, mutate(model, old, new), defines_of(options.model_params, key, sizes))
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
