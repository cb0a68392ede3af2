/* SPDX-License-Identifier: Apache-2.0 */
/* Help, made from the tables that also read the command line, so that the two cannot differ. */
#include <stdio.h>

#include "cli.h"
#include "key/key_tables.h"

/* Column in which the explanations begin. */
#define INDENT 20

static void add_row(struct gj_strbuf *out, const char *name, const char *value, const char *help)
{
    char left[64];
    snprintf(left, sizeof(left), "%s%s%s", name, value ? " " : "", value ? value : "");
    gj_strbuf_printf(out, "  %-*s%s\n", INDENT, left, help);
}

static void add_options(struct gj_strbuf *out, const char *title, uint64_t options)
{
    if (options == 0)
        return;
    gj_strbuf_printf(out, "\n%s:\n", title);
    for (int i = 0; i < CLI_NUM_OPTIONS; i++)
        if (options & CLI_BIT(i))
            add_row(out, cli_option_rows[i].name, cli_option_rows[i].value, cli_option_rows[i].help);
}

/* What a field may be, in the form of a usage line. */
static void add_allowed(struct gj_strbuf *out, const struct gj_field *field)
{
    const char *separator = "";
    switch (field->kind) {
    case GJ_FIELD_WORD:
        for (int i = 0; i < field->words.count; i++) {
            if (field->words.names[i] == NULL)
                continue;
            gj_strbuf_printf(out, "%s%s", separator, field->words.names[i]);
            separator = "|";
        }
        return;
    case GJ_FIELD_FORMAT:
        for (int i = GJ_DTYPE_NONE + 1; i < gj_dtype_words.count; i++) {
            if (!(field->dtypes & (1u << i)))
                continue;
            gj_strbuf_printf(out, "%s%s", separator, gj_dtype_words.names[i]);
            separator = "|";
        }
        gj_strbuf_printf(out, " dot %s|%s%s", gj_major_words.names[field->majors[0]],
                         gj_major_words.names[field->majors[1]],
                         field->dtypes & (1u << GJ_DTYPE_NONE) ? ", or none" : "");
        return;
    case GJ_FIELD_PAIR:
        gj_strbuf_puts(out, "MxN");
        return;
    case GJ_FIELD_ID:
        gj_strbuf_puts(out, "16 hexadecimal digits");
        return;
    }
}

static void add_fields(struct gj_strbuf *out, const struct cli_verb *verb)
{
    if (verb->fields == CLI_FIELDS_NONE)
        return;
    gj_strbuf_puts(out, verb->fields == CLI_FIELDS_ALL ? "\nField flags (as name=value of --key):\n"
                                                       : "\nProblem flags (as name=value of a key):\n");
    for (int i = 0; i < gj_num_fields; i++) {
        if (!cli_takes_field(verb, i))
            continue;
        gj_strbuf_printf(out, "  --%-*s", INDENT - 2, gj_fields[i].name);
        add_allowed(out, &gj_fields[i]);
        gj_strbuf_puts(out, "\n");
    }
    char text[GJ_KEY_TEXT_MAX];
    const struct gj_key key = gj_key_default();
    gj_key_format(&key, text, sizeof(text));
    gj_strbuf_printf(out, "Default: %s\n", text);
}

static void add_exit_status(struct gj_strbuf *out)
{
    gj_strbuf_puts(out,
                   "\nExit status: 0 done, 1 the work failed, 2 bad usage or input, 3 no GPU or toolchain.\n"
                   "Results go to stdout, everything else to stderr. With --json stdout has one document:\n"
                   "the result, or {\"error\": {\"status\", \"message\", \"reasons\", ...}}.\n");
}

enum gj_status cli_help(struct cli *cli, gj_error **error)
{
    const struct cli_verb *verb = NULL;
    if (cli->options.action) {
        verb = cli_verb_find(cli->options.action, error);
        if (verb == NULL)
            return GJ_ERR_ARGUMENT;
    }
    cli_help_add(&cli->out, verb);
    return GJ_OK;
}

void cli_help_add(struct gj_strbuf *out, const struct cli_verb *verb)
{
    if (verb) {
        gj_strbuf_printf(out, "usage: gemmjit %s %s\n\n%s", verb->name, verb->usage, verb->details);
        add_options(out, "Options", verb->options);
        add_fields(out, verb);
    } else {
        gj_strbuf_puts(out, "usage: gemmjit VERB [options]\n\n"
                            "Generates, compiles, caches and runs GEMM kernels for NVIDIA Hopper (sm_90a).\n"
                            "\nVerbs (gemmjit VERB --help says more):\n");
        for (size_t i = 0; i < cli_num_verbs; i++)
            add_row(out, cli_verbs[i].name, NULL, cli_verbs[i].summary);
    }
    add_options(out, "Common options", CLI_COMMON);
    add_exit_status(out);
}
