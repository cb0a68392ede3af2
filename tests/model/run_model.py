# SPDX-License-Identifier: Apache-2.0
"""Explores pipeline.pml and epilogue.pml with spin for small sizes: run_model.py MODEL_PARAMS [--mutations] [--deep] [--only TEXT]

MODEL_PARAMS is the program built from model_params.c. --mutations also breaks the model in ways that must be found;
--deep explores larger sizes instead. One line per configuration. Exit status 77 without spin, 1 when an expectation failed."""
import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
TIMEOUT, DEEP_TIMEOUT = 100, 600  # seconds of one exploration
MEMORY, DEEP_MEMORY = 1500, 6000  # MiB of one exploration

# Keys, without their cluster.
COOP, PINGPONG = "tile=128x128,sched=coop", "tile=128x128,sched=pingpong"
ONE_GROUP, THREE_GROUPS = "tile=64x128,sched=coop", "tile=192x128,sched=coop"
DYNAMIC = ",tiles=dynamic"
BY_2X1, BY_1X2, BY_2X2 = ",cluster=2x1", ",cluster=1x2", ",cluster=2x2"
BY_4X1, BY_1X4 = ",cluster=4x1", ",cluster=1x4"
PROMOTED = "a=e4m3.k,b=e4m3.k,fp8acc=promoted,"


def size(stages, tiles, k_tiles, asynchronous=1, warps=1, clusters=1, first=0, merge=0):
    return {"STAGES": stages, "TILES": tiles, "K_TILES": k_tiles, "ASYNC": asynchronous, "WARPS": warps,
            "CLUSTERS": clusters, "FIRST": first, "MERGE": merge}


# Key and size. The larger ones are as large as finishes in seconds.
CONFIGURATIONS = [
    (COOP, size(2, 3, 3)),
    (COOP, size(3, 3, 2)),
    (THREE_GROUPS, size(2, 3, 2)),
    (PINGPONG, size(2, 3, 3)),
    (PINGPONG, size(3, 3, 2)),
    (PINGPONG, size(3, 4, 1)),
    (PINGPONG, size(2, 3, 2, warps=2)),
    (COOP, size(2, 2, 2, warps=2)),
    (PROMOTED + "tile=128x128,sched=coop", size(2, 3, 3)),
    (PROMOTED + "tile=128x192,sched=coop", size(2, 3, 3)),
    (PROMOTED + "tile=64x128,sched=pingpong", size(2, 3, 3)),
    (PROMOTED + "tile=64x192,sched=pingpong", size(2, 3, 3)),
    (PINGPONG, size(2, 1, 2, clusters=2, first=1)),
    (COOP + DYNAMIC, size(2, 3, 2, clusters=2)),
    (COOP + DYNAMIC, size(2, 1, 2, clusters=2, first=1)),
    (PINGPONG + DYNAMIC, size(2, 4, 2)),
    (PINGPONG + DYNAMIC, size(2, 3, 2, clusters=2)),
    (PINGPONG + DYNAMIC, size(2, 3, 2, clusters=2, first=1)),
    (COOP + BY_2X1, size(2, 2, 2)),
    (COOP + BY_1X2, size(2, 2, 2)),
    (PINGPONG + BY_2X1, size(2, 2, 2)),
    (PINGPONG + BY_1X2, size(2, 3, 3, 0)),
    (ONE_GROUP + BY_2X1 + DYNAMIC, size(2, 1, 2)),
    (COOP + BY_2X1 + DYNAMIC, size(2, 3, 2, 0, clusters=2)),
    (PINGPONG + BY_2X1 + DYNAMIC, size(2, 2, 2, 0)),
    (ONE_GROUP + BY_2X2, size(2, 2, 2, 0)),
    (ONE_GROUP + BY_2X2 + DYNAMIC, size(2, 2, 1, 0)),
    (ONE_GROUP + BY_4X1, size(2, 2, 2, 0)),
    (ONE_GROUP + BY_4X1 + DYNAMIC, size(2, 2, 1, 0)),
    (COOP + BY_2X2, size(2, 1, 2, 0)),
    (PINGPONG + BY_2X2, size(2, 2, 2, 0)),
    (PINGPONG + BY_2X1, size(2, 2, 2, 0, merge=1)),
    (PINGPONG + BY_2X1 + DYNAMIC, size(2, 2, 2, 0, merge=1)),
    (PINGPONG + BY_2X2, size(2, 2, 2, 0, merge=1)),
    (PINGPONG + BY_4X1, size(2, 2, 2, 0, merge=1)),
    (PINGPONG + BY_1X4, size(2, 2, 2, 0, merge=1)),
    (PINGPONG + BY_1X4 + DYNAMIC, size(2, 1, 2, 0, merge=1)),
    (PINGPONG + BY_2X2 + DYNAMIC, size(2, 2, 1, 0, merge=1)),
    (PINGPONG + BY_4X1 + DYNAMIC, size(2, 1, 2, 0, merge=1)),
]

# Larger ones, for --deep.
DEEP = [
    (PINGPONG + BY_4X1 + DYNAMIC, size(2, 3, 1, 0, merge=1)),
    (PINGPONG + BY_4X1 + DYNAMIC, size(2, 2, 1, 0, merge=1)),
    (PINGPONG + BY_1X4 + DYNAMIC, size(2, 2, 1, 0, merge=1)),
    (PINGPONG + BY_2X2, size(2, 4, 3, 0, merge=1)),
    (PINGPONG + BY_2X2 + DYNAMIC, size(2, 1, 2, 0, merge=1)),
    (PINGPONG + BY_2X2 + DYNAMIC, size(2, 2, 2, 0, merge=1)),
]

PRODUCER_WAITS = "STAGE_FREE -> arrive("
RELEASE_LATE = "!SIMPLE && k > 0 && warp == 0 -> finish_stage(cta, previous); release_stage(cta, previous)"
RELEASE_EARLY = ("!SIMPLE && warp == 0 -> if :: k > 0 -> finish_stage(cta, previous) :: else fi; "
                 "release_stage(cta, stage)")
RELEASE_LAST = "!SIMPLE -> finish_stage(cta, previous); release_stage(cta, previous)"

# What is wrong, key, size, (text of the model, what it becomes)... Each must be found.
MUTATIONS = [
    ("one arrival too few per stage", COOP, size(2, 2, 2), ("EMPTY_ARRIVALS 2", "EMPTY_ARRIVALS 1")),
    ("one arrival too many per stage", PINGPONG + BY_2X1, size(2, 2, 2, 0), (" EMPTY_ARRIVALS 2", " EMPTY_ARRIVALS 3")),
    ("one arrival too few per ticket", COOP + DYNAMIC, size(2, 3, 1),
     ("QUEUE_EMPTY_ARRIVALS 8", "QUEUE_EMPTY_ARRIVALS 7")),
    ("one arrival too many per ticket", COOP + DYNAMIC, size(2, 3, 1),
     ("QUEUE_EMPTY_ARRIVALS 8", "QUEUE_EMPTY_ARRIVALS 9")),
    ("too few bytes announced", COOP, size(2, 2, 2), ("A_SLICES + B_SLICES, FULL", "A_SLICES, FULL")),
    ("stages released one step early", COOP, size(2, 2, 2), (RELEASE_LATE, RELEASE_EARLY),
     (RELEASE_LAST, "!SIMPLE -> finish_stage(cta, previous)")),
    ("last stage of a tile not released", COOP, size(2, 2, 2),
     (RELEASE_LAST, "!SIMPLE -> finish_stage(cta, previous)")),
    ("stages released to the own CTA only", COOP + BY_2X1, size(2, 2, 2, 0),
     (":: EXCHANGE(cta, other) ->", ":: cta == other ->")),
    ("no producer tail", COOP + BY_2X1, size(2, 2, 2, 0), ("k < STAGES ->", "k < 0 ->")),
    ("a producer tail one stage short", COOP + BY_2X1, size(2, 2, 2, 0), ("k < STAGES ->", "k < STAGES - 1 ->")),
    ("no producer tail", PINGPONG + BY_2X2, size(2, 2, 2, 0, merge=1),
     ("        STAGE_FREE && OTHER_STAGE_FREE ->\n", "        true ->\n")),
    ("a producer tail one stage short", PINGPONG + BY_4X1, size(2, 2, 2, 0, merge=1),
     ("        STAGE_FREE && OTHER_STAGE_FREE ->\n", "        STAGE_FREE ->\n")),
    ("nobody waits for the tickets to be read", PINGPONG + BY_4X1 + DYNAMIC, size(2, 2, 1, 0, merge=1),
     (" && (cta != 0 || (SLOT_FREE(count) && SLOT_FREE(count + 1)))", "")),
    ("a ticket is sent before the last one is read", PINGPONG + BY_2X1 + DYNAMIC, size(2, 4, 1, 0, merge=1),
     ("PART { !MERGE || SLOT_FREE(count) -> take", "PART { true -> take"),
     ("PART { SLOT_FREE(count) -> send_words", "PART { true -> send_words")),
    ("no turns", PINGPONG + BY_2X2, size(2, 2, 2, 0, merge=1), ("PASSES(turn[me], turn_parity)", "true")),
    ("one arrival too few per stage", PINGPONG + BY_2X2, size(2, 2, 2, 0, merge=1),
     ("EMPTY_ARRIVALS 3", "EMPTY_ARRIVALS 2")),
    ("nobody waits for the tickets to be read", ONE_GROUP + BY_2X1 + DYNAMIC, size(2, 2, 1, 0),
     ("k < STAGES + QUEUE_SLOTS ->", "k < STAGES ->")),
    ("a ticket is sent before the last one is read", COOP + DYNAMIC, size(2, 3, 1),
     ("PART { SLOT_FREE(count) -> send_words", "PART { true -> send_words")),
    ("a ticket is announced before it is stored", COOP + DYNAMIC, size(2, 3, 1),
     ("PART { SLOT_FREE(count) -> send_words(work, count) }",
      "PART { SLOT_FREE(count) -> arrive(queue_full[SLOT(count)], 1, 0, 1) }"),
     ("arrive(queue_full[SLOT(count)], 1, 0, 1);\n#endif", "send_words(work, count);\n#endif")),
    ("a ticket is released before it is read", COOP + DYNAMIC, size(2, 3, 1),
     ("PART { TICKET(cta, count) -> read_ticket(cta, work, count, n) }\n        PART { release_ticket(count, n) }",
      "PART { TICKET(cta, count) -> release_ticket(count, n) }\n"
      "        PART { count--; read_ticket(cta, work, count, n); count++ }")),
    ("no turns", PINGPONG, size(2, 2, 2), ("PASSES(turn[me], turn_parity)", "true")),
    ("turns begin with the other group", PINGPONG, size(2, 2, 2), ("turn_parity = 1 - group", "turn_parity = group")),
    ("a group does not pass the other's stages", PINGPONG, size(2, 3, 3),
     ("ring_advance(stage, parity, K_TILES) // the other", "skip // the other")),
    ("producer waits for the wrong parity", COOP, size(2, 2, 2),
     (PRODUCER_WAITS, "PASSES(stage_empty[AT(cta, stage)], parity) -> arrive(")),
    ("producer waits for nothing", COOP, size(2, 2, 2), (PRODUCER_WAITS, "true -> arrive(")),
    ("MMA warps wait for the wrong parity", COOP, size(2, 2, 2),
     ("PASSES(stage_full[AT(cta, stage)], parity)", "PASSES(stage_full[AT(cta, stage)], 1 - parity)")),
    ("the parity never changes", COOP, size(2, 2, 2), ("stage = 0; parity = 1 - parity\n", "stage = 0\n")),
    # What the protocol needs and somebody else provides.
    ("wgmma is not one operation of a warp group", COOP, size(2, 2, 2, warps=2),
     ("#if WARPS == 4", "#if WARPS == 2\n#define COMPLETE(n) true\n#elif WARPS == 4")),
    ("more clusters than tiles", PINGPONG + DYNAMIC, size(2, 1, 2, clusters=2, first=1)),
]


def epilogue(slab_buffers, c_buffers, cut=0, both=0, tiles=3, slabs=3):
    return {"TILES": tiles, "SLABS": slabs, "SLAB_BUFFERS": slab_buffers, "C_BUFFERS": c_buffers, "CUT": cut, "BOTH": both}


EPILOGUES = [epilogue(slab_buffers, c_buffers) for slab_buffers in (1, 2, 3) for c_buffers in (0, 1, 2)] + [
    epilogue(slab_buffers, 2, cut, both) for slab_buffers, cut, both in
    ((1, 1, 0), (2, 1, 0), (3, 1, 0), (2, 1, 1), (1, 2, 0), (2, 2, 0), (3, 2, 0), (2, 2, 1))] + [
    epilogue(2, 2, 1, 0, 4, 1), epilogue(2, 2, 2, 0, 4, 2), epilogue(3, 2, 1, 0, 4, 4), epilogue(3, 2, 2, 1, 4, 4)]

WAIT_READ = "    HAVE_READ_BUT(SLAB_BUFFERS - 1);\n"
FIRST_BARRIER, SECOND_BARRIER = "    meet(); // begin\n", "    meet(); // end\n"
C_PARITY = "PASSES(c_full[used % C_BUFFERS], (used / C_BUFFERS) & 1)"
ADVANCE = "#if C_BUFFERS > 0\n            source_advance();\n#endif\n"
COMMIT = "d_step { committed++; count_read_groups() }"

# What is wrong, size, changes.
EPILOGUE_MUTATIONS = [
    ("no wait for the stores", epilogue(2, 1), (WAIT_READ, "")),
    ("one store too many unread", epilogue(1, 0), (WAIT_READ, WAIT_READ.replace(" - 1", ""))),
    ("one store too many unread", epilogue(2, 1), (WAIT_READ, WAIT_READ.replace(" - 1", ""))),
    ("the wait for the stores behind the barrier", epilogue(1, 0), (WAIT_READ + FIRST_BARRIER, FIRST_BARRIER + WAIT_READ)),
    ("no barrier before a slab is filled", epilogue(1, 0), (FIRST_BARRIER, "")),
    ("no barrier before a slab is filled", epilogue(2, 2), (FIRST_BARRIER, "")),
    ("no barrier before a slab is filled", epilogue(3, 0), (FIRST_BARRIER, "")),
    ("no barrier before a slab is stored", epilogue(1, 0), (SECOND_BARRIER, "")),
    ("no barrier before a slab is stored", epilogue(2, 2), (SECOND_BARRIER, "")),
    ("C is loaded before the barrier", epilogue(2, 1), ("            slab_end();\n" + ADVANCE,
                                                        "            source_advance();\n            slab_end();\n")),
    ("C is loaded before the barrier", epilogue(2, 2), ("            slab_end();\n" + ADVANCE,
                                                        "            source_advance();\n            slab_end();\n")),
    ("C is waited for with the wrong parity", epilogue(2, 1), (C_PARITY, C_PARITY.replace("(used /", "1 - (used /"))),
    ("the parity of C never changes", epilogue(2, 2), (C_PARITY, C_PARITY.replace("(used / C_BUFFERS) & 1", "0"))),
    ("the parity of C changes with each slab", epilogue(2, 2), (C_PARITY, C_PARITY.replace("/ C_BUFFERS", "/ 1"))),
    ("nobody waits for C", epilogue(2, 2), (C_PARITY, "skip")),
    ("the slabs of C are counted from each tile's first", epilogue(2, 2),
     ("        source_begin();\n", "        source_begin();\n        used = 0;\n")),
    ("no wait before the exit", epilogue(2, 0), ("    HAVE_READ_BUT(0);\n", "")),
    ("one store too many unread at the exit", epilogue(2, 0), ("    HAVE_READ_BUT(0);\n", "    HAVE_READ_BUT(1);\n")),
    ("a cut slab closes no bulk group", epilogue(2, 0, 1),
     (COMMIT, "if\n        :: !COPIED || BOTH -> " + COMMIT + "\n        :: else\n        fi")),
    ("a cut slab is not copied", epilogue(2, 0, 2), ("CUT == 2 && slab > 0 -> copy_cut()", "false -> copy_cut()")),
]


class Failure(Exception):
    pass


def text(name):
    """A file beside this one with what it includes, but for params.h."""
    with open(os.path.join(HERE, name), encoding="utf-8") as file:
        return re.sub(r'#include "(\w+\.pml)"\n', lambda match: text(match.group(1)), file.read())


def plan_numbers(program, key):
    made = subprocess.run([program, key], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
    if made.returncode != 0:
        raise Failure(f"{program} {key}: {made.stderr.strip()}")
    return made.stdout


def run(command, folder, timeout):
    done = subprocess.run(command, cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, timeout=timeout, check=False)
    if done.returncode != 0:
        raise Failure(f"{' '.join(command)}: status {done.returncode}\n{done.stdout}")
    return done.stdout


def explore(model, deep):
    """Explores a model; (what was found or None, number of states, seconds)."""
    timeout, memory = (DEEP_TIMEOUT, DEEP_MEMORY) if deep else (TIMEOUT, MEMORY)
    begin = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        with open(os.path.join(folder, "pipeline.pml"), "w", encoding="utf-8") as file:
            file.write(model)
        run(["spin", "-a", "pipeline.pml"], folder, timeout)
        run(["gcc", "-O1", "-w", "-DSAFETY", "-DCOLLAPSE", f"-DMEMLIM={memory}", "-o", "pan", "pan.c"], folder, timeout)
        output = run(["./pan", "-m1000000"], folder, timeout)
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


def with_numbers(model, program, key, sizes):
    """The model with the sizes and, with a key, the plan's numbers in the place of params.h."""
    numbers = (plan_numbers(program, key) if key else "") + "".join(f"#define {name} {value}\n" for name, value in sizes.items())
    return mutate(model, [('#include "params.h"\n', numbers)])


def describe(key, sizes):
    if not key:
        return "epilogue " + " ".join(f"{name.lower()}={value}" for name, value in sizes.items())
    words = f"{key} stages={sizes['STAGES']} tiles={sizes['TILES']} k_tiles={sizes['K_TILES']}"
    for name in "WARPS", "CLUSTERS", "FIRST":
        if sizes[name] != (name != "FIRST"):
            words += f" {name.lower()}={sizes[name]}"
    return words + (" asynchronous" if sizes["ASYNC"] else "") + (" merged" if sizes["MERGE"] else "")


def check(name, expect_error, make_model, deep=False):
    """Explores, prints a line; whether it came out as expected."""
    try:
        found, states, seconds = explore(make_model(), deep)
        good = (found is not None) == expect_error
        result = "nothing found" if found is None else found
        print(f"{'ok  ' if good else 'FAIL'} {name}: {states:.0f} states, {seconds:.1f} s, {result}", flush=True)
        return good
    except (Failure, subprocess.TimeoutExpired) as error:
        print(f"FAIL {name}: {str(error)[-1500:]}", flush=True)
        return False


def mutate(model, changes):
    for old, new in changes:
        if model.count(old) != 1:
            raise Failure(f"'{old}' stands {model.count(old)} times in the model, not once")
        model = model.replace(old, new)
    return model


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model_params")
    parser.add_argument("--mutations", action="store_true")
    parser.add_argument("--deep", action="store_true")
    parser.add_argument("--only", default="", help="leave out what does not contain this text")
    options = parser.parse_args()
    if not shutil.which("spin") or not shutil.which("gcc"):
        print("spin and gcc are needed: skipped")
        return 77
    models = {False: text("epilogue.pml"), True: text("pipeline.pml")}
    good = True
    begin = time.monotonic()
    runs = [("", key, sizes) for key, sizes in (DEEP if options.deep else CONFIGURATIONS)]
    runs += [] if options.deep else [("", "", sizes) for sizes in EPILOGUES]
    if options.mutations:
        runs += MUTATIONS + [(what, "", *rest) for what, *rest in EPILOGUE_MUTATIONS]
    for what, key, sizes, *changes in runs:
        if key and "cluster=" not in key:
            key += ",cluster=1x1"
        name = f"{what + ': ' if what else ''}{describe(key, sizes)}"
        if options.only in name:
            good &= check(name, what != "", lambda key=key, sizes=sizes, changes=changes: mutate(
                with_numbers(models[bool(key)], options.model_params, key, sizes), changes), options.deep)
    print(f"{time.monotonic() - begin:.0f} s in all")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
