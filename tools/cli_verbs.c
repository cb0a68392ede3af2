/* SPDX-License-Identifier: Apache-2.0 */
/* The verbs of this release, with the words of their help. */
#include "cli.h"

const struct cli_verb cli_verbs[] = {
    {
        .name = "show",
        .usage = "[--key TEXT | field flags] --emit WHAT [--json] [-o FILE]",
        .summary = "print a stage of one key: source, PTX, SASS, plan, resources",
        .details =
            "WHAT is one of\n"
            "  key        the key with every field spelt out, also of a key that is refused\n"
            "  plan       the numbers that follow from the key: stages, registers, shared memory\n"
            "  source     the generated CUDA unit\n"
            "  ptx        what NVRTC makes of it\n"
            "  sass       the cubin as nvdisasm prints it (needs nvdisasm)\n"
            "  resources  registers, shared memory, spills and counts of instructions of the cubin\n"
            "\n"
            "sass and resources take the cubin from the cache, or compile it into the cache.\n"
            "Without --key and field flags the default key is shown. The flags below take every value\n"
            "that a key can spell; this release has kernels for fewer. gemmjit keys lists the accepted\n"
            "keys of a problem, and --emit plan gives every reason why one is refused.\n"
            "\n"
            "--act-source compiles a function of yours into the kernel: float f(float x) for op=act,\n"
            "float f(float gate, float up) for op=gated; docs/epilogues.md has all.\n",
        .options = CLI_BIT(CLI_KEY) | CLI_BIT(CLI_ACT_SOURCE) | CLI_BIT(CLI_ACT_NAME) | CLI_BIT(CLI_EMIT) |
                   CLI_BIT(CLI_JSON) | CLI_BIT(CLI_OUTPUT),
        .fields = CLI_FIELDS_ALL,
        .run = cli_show,
    },
    {
        .name = "keys",
        .usage = "[problem flags] [--json]",
        .summary = "list every key that is accepted for a problem",
        .details = "One key a line. With --json the document is a manifest for gemmjit prewarm.\n",
        .options = CLI_BIT(CLI_JSON),
        .fields = CLI_FIELDS_PROBLEM,
        .run = cli_keys,
    },
    {
        .name = "prewarm",
        .usage = "(--key TEXT ... | --manifest FILE | --model FILE) [options]",
        .summary = "compile keys into the disk cache",
        .details =
            "A manifest is {\"version\": 1, \"keys\": [\"TEXT\", ...]} and has no other member. Every key "
            "is\n"
            "checked before the first compile; keys that are equal are compiled once. A key that is in\n"
            "the cache already is not compiled again, and where the cache cannot be written nothing is\n"
            "compiled. A cubin that does not reach the disk counts as a failure. --key may be given several\n"
            "times.\n"
            "\n"
            "--model reads the config.json of a Hugging Face model, lists the GEMM problems that one of "
            "--tp\n"
            "ranks has, and compiles each key that gj_gemm would choose for them with 1 to --m-max rows on "
            "a\n"
            "GPU with --sms SMs. --dry-run shows the problems and where each comes from, then the keys. The\n"
            "other model flags are --dtype and --fp8.\n"
            "\n"
            "The N shards of a list of keys are disjoint and together all of it, on every machine and in\n"
            "whatever order the keys were given.\n",
        .options = CLI_BIT(CLI_KEY) | CLI_BIT(CLI_ACT_SOURCE) | CLI_BIT(CLI_ACT_NAME) |
                   CLI_BIT(CLI_MANIFEST) | CLI_BIT(CLI_MODEL) | CLI_BIT(CLI_TP) | CLI_BIT(CLI_DTYPE) |
                   CLI_BIT(CLI_FP8) | CLI_BIT(CLI_M_MAX) | CLI_BIT(CLI_SMS) | CLI_BIT(CLI_SHARD) |
                   CLI_BIT(CLI_DRY_RUN) | CLI_BIT(CLI_JOBS) | CLI_BIT(CLI_JSON),
        .run = cli_prewarm,
    },
    {
        .name = "cache",
        .usage = "stat | list | verify | trim --max-size SIZE [--dry-run] | why --key TEXT |\n"
                 "                     pack FILE | unpack FILE | clear [--json]",
        .summary = "look into the disk cache, make it smaller, pack or empty it",
        .details =
            "  stat    number of entries and their bytes, of damaged and of temporary files\n"
            "  list    each entry with its key, and each damaged one with the reason\n"
            "  verify  read every entry in full and name the damaged ones; exit status 1 if there are any\n"
            "  trim    remove what was used least recently, until at most SIZE bytes of entries are left\n"
            "  why     whether a key is in the cache, and if not (exit status 1) in which fields the "
            "nearest\n"
            "          entry differs\n"
            "  pack    write all that is sound into one FILE, to be shipped; the same entries give the same\n"
            "          bytes; a FILE that is there is replaced, whole or not at all\n"
            "  unpack  add what a FILE of pack holds to the cache, each member after a check; what the\n"
            "          cache has already stays\n"
            "  clear   remove every entry; nothing but files of the cache is touched\n"
            "\n"
            "When a directory of the cache cannot be read, stat, list, verify, why and pack go on with the\n"
            "rest, print a warning, and end with exit status 1; so do pack and unpack when they leave out\n"
            "something that is damaged. A load sets the time of an entry's file anew once a day; trim goes\n"
            "by it. What a process has loaded stays with it.\n",
        .options = CLI_BIT(CLI_KEY) | CLI_BIT(CLI_ACT_SOURCE) | CLI_BIT(CLI_ACT_NAME) |
                   CLI_BIT(CLI_MAX_SIZE) | CLI_BIT(CLI_DRY_RUN) | CLI_BIT(CLI_JSON),
        .has_action = true,
        .has_file = true,
        .run = cli_cache,
    },
    {
        .name = "run",
        .usage = "[problem flags | --key TEXT] --m M --n N --k K [--batch L] [--check] [--json]",
        .summary = "run one GEMM on the GPU and time it",
        .details = "With --key that config runs, else the one that gj_gemm chooses for the problem and its "
                   "extents.\n"
                   "A and B hold small integers, so that with --check sampled rows and elements of D must\n"
                   "equal a CPU reference exactly; all of D must have been written, and nothing around it.\n"
                   "--batch is the number of matrices here; the field batch of a key is set with --key.\n",
        .options = CLI_BIT(CLI_KEY) | CLI_BIT(CLI_M) | CLI_BIT(CLI_N) | CLI_BIT(CLI_K) | CLI_BIT(CLI_BATCH) |
                   CLI_BIT(CLI_CHECK) | CLI_BIT(CLI_JSON),
        .fields = CLI_FIELDS_PROBLEM,
        .run = cli_run,
    },
    {
        .name = "bench",
        .usage = "[problem flags] (--shapes FILE | --m M --n N --k K [--batch L]) [options]",
        .summary = "time configs on the GPU, also against cuBLASLt",
        .details =
            "For each shape the config that gj_gemm chooses, those that --candidates adds, those of --key\n"
            "(tile=128x192,cluster=2x1 ...: the problem comes from the flags) and with --vs cublas the first "
            "8\n"
            "algorithms that cuBLASLt's heuristic offers are timed in one run. Operands are standard normal "
            "and\n"
            "take turns over 200 MB, so that L2 is cold. Each config is a CUDA graph of up to 200 launches; "
            "a\n"
            "round runs all of them in random order. Told are medians and quartiles over the rounds, ratios\n"
            "paired by round.\n"
            "\n"
            "--overlap and --b-constant launch with GJ_LAUNCH_OVERLAP and GJ_LAUNCH_B_CONSTANT, as a chain "
            "of\n"
            "layers does. cuBLASLt's launches stay as they are.\n"
            "\n"
            "Every result is compared with the first one's. No ratio is printed for a shape where one "
            "differs,\n"
            "and the exit status is then 1. --train 250 times under the power limit instead of below it.\n",
        .options = CLI_BIT(CLI_KEY) | CLI_BIT(CLI_M) | CLI_BIT(CLI_N) | CLI_BIT(CLI_K) | CLI_BIT(CLI_BATCH) |
                   CLI_BIT(CLI_SHAPES) | CLI_BIT(CLI_VS) | CLI_BIT(CLI_CANDIDATES) | CLI_BIT(CLI_SECONDS) |
                   CLI_BIT(CLI_TRAIN) | CLI_BIT(CLI_OVERLAP) | CLI_BIT(CLI_B_CONSTANT) | CLI_BIT(CLI_PLOT) |
                   CLI_BIT(CLI_JSON) | CLI_BIT(CLI_OUTPUT),
        .fields = CLI_FIELDS_PROBLEM,
        .run = cli_bench,
    },
    {
        .name = "tune",
        .usage = "[problem flags] (--shapes FILE | --m M --n N --k K [--batch L]) -o TABLE [options]\n"
                 "       gemmjit tune merge TABLE ... -o TABLE",
        .summary = "measure which configs are fastest, and write them into a tuning table",
        .details =
            "For each shape the config that the model chooses, those that rank behind it as long as the "
            "model\n"
            "takes them for at most 1.5 times slower, those of --key, and what the table has already, are\n"
            "timed in one run as gemmjit bench does. After every 5 rounds those go that cannot win any more. "
            "A\n"
            "config whose median is faster by 0.5 % and whose quartiles are apart from the model's choice\n"
            "becomes the entry of the GPU, the problem, N, K, batch and class of M; else there is none.\n"
            "\n"
            "A TABLE that is there keeps its other entries. It is replaced, whole or not at all, after each\n"
            "shape. Configs whose results differ from those of the model's choice are never written; the "
            "exit\n"
            "status is then 1.\n"
            "\n"
            "merge puts tables into one and needs no GPU; of equal entries that of the first table stays.\n"
            "GEMMJIT_TUNING names the tables that the library reads; docs/tuning.md has the format.\n",
        .options = CLI_BIT(CLI_KEY) | CLI_BIT(CLI_M) | CLI_BIT(CLI_N) | CLI_BIT(CLI_K) | CLI_BIT(CLI_BATCH) |
                   CLI_BIT(CLI_SHAPES) | CLI_BIT(CLI_CANDIDATES) | CLI_BIT(CLI_SECONDS) | CLI_BIT(CLI_TRAIN) |
                   CLI_BIT(CLI_ALL) | CLI_BIT(CLI_JSON) | CLI_BIT(CLI_OUTPUT),
        .fields = CLI_FIELDS_PROBLEM,
        .has_action = true,
        .has_files = true,
        .run = cli_tune,
    },
    {
        .name = "doctor",
        .usage = "[--json]",
        .summary = "say what of toolchain, driver, GPU and cache is there",
        .details =
            "Exit status 0 when libnvrtc can be used, else 3. A missing GPU is told, but is no failure:\n"
            "only running kernels needs one. Compiles nothing.\n",
        .options = CLI_BIT(CLI_JSON),
        .run = cli_doctor,
    },
    {
        .name = "help",
        .usage = "[VERB]",
        .summary = "print the help of a verb, or this",
        .details = "The same as gemmjit VERB --help.\n",
        .has_action = true,
        .run = cli_help,
    },
};
const size_t cli_num_verbs = sizeof(cli_verbs) / sizeof(cli_verbs[0]);
