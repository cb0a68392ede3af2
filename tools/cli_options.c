/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the command line: one table of options, a set of them per verb, and the fields of a key as flags. */
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "cli.h"
#include "key/key_tables.h"

const struct cli_option_row cli_option_rows[CLI_NUM_OPTIONS] = {
    [CLI_KEY] = {"--key", "TEXT", "the key as text, name=value separated by commas"},
    [CLI_ACT_SOURCE] = {"--act-source", "FILE", "CUDA source of an own activation: act=own"},
    [CLI_ACT_NAME] = {"--act-name", "NAME", "name of the function in it (default: f)"},
    [CLI_EMIT] = {"--emit", "WHAT", "source, ptx, sass, plan, key or resources"},
    [CLI_OUTPUT] = {"-o", "FILE", "write to FILE instead of stdout: whole or not at all"},
    [CLI_MANIFEST] = {"--manifest", "FILE", "read the keys from a JSON file"},
    [CLI_MODEL] = {"--model", "FILE", "take the keys of a model, from its Hugging Face config.json"},
    [CLI_TP] = {"--tp", "N", "tensor-parallel degree of the model (default: 1)"},
    [CLI_DTYPE] = {"--dtype", "bf16|f16", "type of the model (default: that of its config, else bf16)"},
    [CLI_FP8] = {"--fp8", NULL, "weights and activations are e4m3, but for the router and the head"},
    [CLI_M_MAX] = {"--m-max", "N", "the most tokens of one call (default: 16384)"},
    [CLI_SMS] = {"--sms", "N", "SMs of the GPU (default: 132, those of an H100 SXM and an H200)"},
    [CLI_SHARD] = {"--shard", "I/N", "compile part I of N of the keys, I from 1 to N"},
    [CLI_MAX_SIZE] = {"--max-size", "SIZE", "bytes that may stay: a number, with K, M, G or T behind it"},
    [CLI_DRY_RUN] = {"--dry-run", NULL, "print what would be compiled, and compile nothing"},
    [CLI_JOBS] = {"-j", "N", "compile in N threads, 1 to 256 (default: by processors, memory and keys)"},
    [CLI_M] = {"--m", "M", "rows of A and D"},
    [CLI_N] = {"--n", "N", "rows of B, columns of D"},
    [CLI_K] = {"--k", "K", "columns of A and B"},
    [CLI_BATCH] = {"--batch", "L", "number of matrices (default: 1)"},
    [CLI_CHECK] = {"--check", NULL, "compare with a CPU reference and look for writes outside of D"},
    [CLI_SHAPES] = {"--shapes", "FILE",
                    "read the extents from a JSON file: [{\"m\": M, \"n\": N, \"k\": K}, ...]"},
    [CLI_VS] = {"--vs", "cublas", "measure against cuBLASLt, its first algorithm and the best of 8"},
    [CLI_CANDIDATES] = {"--candidates", "N",
                        "measure the N configs that rank first, 1 to 32 (default: 1, of tune 24)"},
    [CLI_SECONDS] = {"--seconds", "S",
                     "time for the rounds of one shape, of which there are 11 to 64 (default: 2)"},
    [CLI_TRAIN] = {"--train", "MS", "milliseconds of launches of each config in a round (default: 3)"},
    [CLI_OVERLAP] = {"--overlap", NULL,
                     "launches may start before the one in front has ended (sched=single)"},
    [CLI_B_CONSTANT] = {"--b-constant", NULL, "with --overlap: B is loaded before that end"},
    [CLI_PLOT] = {"--plot", "FILE", "draw the ratios over the shapes, as SVG"},
    [CLI_ALL] = {"--all", NULL, "write an entry also where the model's choice stays"},
    [CLI_JSON] = {"--json", NULL, "print one JSON document, also on failure"},
    [CLI_CACHE_DIR] = {"--cache-dir", "DIR", "root of the disk cache"},
    [CLI_NO_CACHE] = {"--no-cache", NULL, "neither read nor write a disk cache"},
    [CLI_QUIET] = {"-q", NULL, "on stderr errors only"},
    [CLI_VERBOSE] = {"-v", NULL, "more on stderr: logs of a failed compile, what is done; -vv for all"},
    [CLI_HELP] = {"--help", NULL, "print this help (also -h)"},
    [CLI_VERSION] = {"--version", NULL, "print the version"},
};

#define FAIL_USAGE(error, ...) GJ_FAIL(error, GJ_ERR_ARGUMENT, GJ_STAGE_NONE, __VA_ARGS__)

/* These name a file, a directory or a stage, of which none has an empty name. Others read their value. */
#define NEVER_EMPTY                                                                              \
    (CLI_BIT(CLI_ACT_SOURCE) | CLI_BIT(CLI_EMIT) | CLI_BIT(CLI_OUTPUT) | CLI_BIT(CLI_MANIFEST) | \
     CLI_BIT(CLI_MODEL) | CLI_BIT(CLI_CACHE_DIR) | CLI_BIT(CLI_SHAPES) | CLI_BIT(CLI_PLOT))

#define QUOTE(input) gj_utf8_quote((input), strlen(input)).text

/* An argument taken apart: --name=value, --name, or one letter -x of it with what follows. */
struct argument {
    const char *name;
    size_t name_length;
    const char *value; /* NULL: none is attached */
};

static bool is_called(const struct argument *argument, const char *name)
{
    return strlen(name) == argument->name_length && memcmp(name, argument->name, argument->name_length) == 0;
}

static int find_option(const struct cli_verb *verb, const struct argument *argument)
{
    const uint64_t taken = CLI_COMMON | (verb ? verb->options : 0);
    if (is_called(argument, "-h"))
        return CLI_HELP;
    for (int i = 0; i < CLI_NUM_OPTIONS; i++)
        if ((taken & CLI_BIT(i)) && is_called(argument, cli_option_rows[i].name))
            return i;
    return -1;
}

bool cli_takes_field(const struct cli_verb *verb, int field_idx)
{
    const char *const name = gj_fields[field_idx].name;
    if ((verb->options & CLI_BIT(CLI_BATCH)) && strcmp(name, "batch") == 0)
        return false; /* --batch is the number of matrices there */
    if (verb->fields == CLI_FIELDS_PROBLEM)
        return !gj_fields[field_idx].is_config;
    return verb->fields == CLI_FIELDS_ALL;
}

static const struct gj_field *find_field(const struct cli_verb *verb, const struct argument *argument)
{
    for (int i = 0; verb && i < gj_num_fields; i++)
        if (cli_takes_field(verb, i) && argument->name_length == strlen(gj_fields[i].name) + 2 &&
            memcmp(argument->name, "--", 2) == 0 &&
            memcmp(argument->name + 2, gj_fields[i].name, argument->name_length - 2) == 0)
            return &gj_fields[i];
    return NULL;
}

/* Finds the value of an option that needs one: attached, else the next argument. */
static enum gj_status take_value(const struct argument *argument, int argc, char **argv, int *at,
                                 const char **value, gj_error **error)
{
    if (argument->value) {
        *value = argument->value;
    } else if (*at + 1 < argc) {
        *value = argv[++*at];
    } else {
        FAIL_USAGE(error, "%s needs a value", gj_utf8_quote(argument->name, argument->name_length).text);
    }
    return GJ_OK;
}

/* A field flag becomes a piece of key text, so that flags and --key have one reader and the same errors. */
static enum gj_status add_field(struct cli *cli, const struct gj_field *field, const char *value,
                                gj_error **error)
{
    if (strpbrk(value, ",="))
        FAIL_USAGE(error, "--%s %s: the value of one field has neither comma nor equals sign", field->name,
                   QUOTE(value));
    struct gj_strbuf *const fields = &cli->options.fields;
    gj_strbuf_printf(fields, "%s%s=%s", fields->length ? "," : "", field->name, value);
    return GJ_OK;
}

static enum gj_status add_option(struct cli *cli, int option, const struct argument *argument, int argc,
                                 char **argv, int *at, gj_error **error)
{
    struct cli_options *const options = &cli->options;
    const struct cli_option_row *const row = &cli_option_rows[option];
    if (row->value == NULL && argument->value)
        FAIL_USAGE(error, "%s takes no value", row->name);
    if (options->count[option]++ > 0 && option != CLI_KEY && option != CLI_QUIET && option != CLI_VERBOSE)
        FAIL_USAGE(error, "%s is given twice", row->name);
    if (row->value == NULL)
        return GJ_OK;
    GJ_TRY(take_value(argument, argc, argv, at, &options->text[option], error));
    if ((NEVER_EMPTY & CLI_BIT(option)) && *options->text[option] == '\0')
        FAIL_USAGE(error, "%s is given an empty value", row->name);
    if (option == CLI_KEY)
        options->keys[options->num_keys++] = options->text[option];
    return GJ_OK;
}

const struct cli_verb *cli_verb_find(const char *name, gj_error **error)
{
    for (size_t i = 0; i < cli_num_verbs; i++)
        if (strcmp(cli_verbs[i].name, name) == 0)
            return &cli_verbs[i];
    gj_error_make(error, GJ_ERR_ARGUMENT, GJ_STAGE_NONE, 0, "",
                  "unknown verb \"%s\"; gemmjit --help lists them", QUOTE(name));
    return NULL;
}

static enum gj_status add_word(struct cli *cli, const char *word, gj_error **error)
{
    if (cli->verb == NULL) {
        cli->verb = cli_verb_find(word, error);
        if (cli->verb == NULL)
            return GJ_ERR_ARGUMENT;
    } else if (cli->verb->has_action && cli->options.action == NULL) {
        cli->options.action = word;
    } else if (cli->verb->has_file && cli->options.file == NULL) {
        cli->options.file = word;
    } else if (cli->verb->has_files) {
        cli->options.files[cli->options.num_files++] = word;
    } else {
        FAIL_USAGE(error, "unexpected argument \"%s\"; gemmjit %s --help says how to use it", QUOTE(word),
                   cli->verb->name);
    }
    return GJ_OK;
}

static enum gj_status fail_unknown(const struct cli *cli, const char *name, size_t length, gj_error **error)
{
    FAIL_USAGE(error, "unknown option %s; gemmjit%s%s --help lists the options",
               gj_utf8_quote(name, length).text, cli->verb ? " " : "", cli->verb ? cli->verb->name : "");
}

/* -x, -xvalue, or several that take no value in one: -vv, -qj4. */
static enum gj_status add_letters(struct cli *cli, int argc, char **argv, int *at, gj_error **error)
{
    const char *const text = argv[*at];
    for (size_t i = 1; text[i]; i++) {
        const char name[] = {'-', text[i], '\0'};
        const int option = find_option(cli->verb, &(struct argument){name, 2, NULL});
        if (option < 0)
            return fail_unknown(cli, text, strlen(text), error);
        const bool has_value = cli_option_rows[option].value != NULL;
        const struct argument argument = {name, 2, has_value && text[i + 1] ? text + i + 1 : NULL};
        GJ_TRY(add_option(cli, option, &argument, argc, argv, at, error));
        if (has_value)
            break;
    }
    return GJ_OK;
}

static enum gj_status add_flag(struct cli *cli, int argc, char **argv, int *at, gj_error **error)
{
    const char *const text = argv[*at];
    if (text[1] != '-')
        return add_letters(cli, argc, argv, at, error);
    const size_t length = strcspn(text, "=");
    const struct argument argument = {text, length, text[length] ? text + length + 1 : NULL};
    const int option = find_option(cli->verb, &argument);
    if (option >= 0)
        return add_option(cli, option, &argument, argc, argv, at, error);
    const struct gj_field *const field = find_field(cli->verb, &argument);
    if (field == NULL)
        return fail_unknown(cli, text, length, error);
    const char *value = NULL;
    GJ_TRY(take_value(&argument, argc, argv, at, &value, error));
    return add_field(cli, field, value, error);
}

enum gj_status cli_options_read(struct cli *cli, int argc, char **argv, gj_error **error)
{
    struct cli_options *const options = &cli->options;
    options->keys = calloc((size_t)argc + 1, sizeof(*options->keys));
    options->files = calloc((size_t)argc + 1, sizeof(*options->files));
    if (options->keys == NULL || options->files == NULL)
        GJ_FAIL(error, GJ_ERR_NO_MEMORY, GJ_STAGE_NONE, "no memory for the command line");
    bool words_only = false;
    for (int i = 1; i < argc && !options->count[CLI_HELP] && !options->count[CLI_VERSION]; i++) {
        if (!words_only && strcmp(argv[i], "--") == 0)
            words_only = true;
        else if (!words_only && argv[i][0] == '-' && argv[i][1] != '\0')
            GJ_TRY(add_flag(cli, argc, argv, &i, error));
        else
            GJ_TRY(add_word(cli, argv[i], error));
    }
    if (options->fields.failed)
        GJ_FAIL(error, GJ_ERR_NO_MEMORY, GJ_STAGE_NONE, "no memory for the command line");
    return GJ_OK;
}

enum gj_status cli_option_int(const struct cli *cli, enum cli_option option, int64_t least, int64_t most,
                              int64_t *value, gj_error **error)
{
    const char *const text = cli->options.text[option];
    if (text == NULL)
        return GJ_OK;
    int64_t number = 0;
    bool sound = *text != '\0';
    for (const char *at = text; sound && *at; at++) {
        sound = *at >= '0' && *at <= '9' && number <= (most - (*at - '0')) / 10;
        if (sound)
            number = number * 10 + (*at - '0');
    }
    if (!sound || number < least)
        FAIL_USAGE(error, "%s %s: allowed is a whole number from %lld to %lld", cli_option_rows[option].name,
                   QUOTE(text), (long long)least, (long long)most);
    *value = number;
    return GJ_OK;
}
