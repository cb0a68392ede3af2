/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the gemmjit command share.
 *
 * A verb is a function that fills cli->out and returns a status; main writes the output, reports the error
 * and chooses the exit status. Nothing reaches stdout before a verb has ended, so a failure never leaves half
 * a result. */
#ifndef GJ_TOOLS_CLI_H
#define GJ_TOOLS_CLI_H

#include <cjson/cJSON.h>
#include <gemmjit/gemmjit.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error_build.h"
#include "base/strbuf.h"

/* Exit status; fixed. */
enum cli_exit {
    CLI_EXIT_DONE = 0,
    CLI_EXIT_FAILED = 1,  /* the work failed */
    CLI_EXIT_USAGE = 2,   /* bad usage or input */
    CLI_EXIT_MISSING = 3, /* no GPU or toolchain */
};

/* -- Options (cli_options.c) --------------------------------------------------------------------------- */

enum cli_option {
    CLI_KEY,
    CLI_ACT_SOURCE,
    CLI_ACT_NAME,
    CLI_EMIT,
    CLI_OUTPUT,
    CLI_MANIFEST,
    CLI_MODEL,
    CLI_TP,
    CLI_DTYPE,
    CLI_FP8,
    CLI_M_MAX,
    CLI_SMS,
    CLI_SHARD,
    CLI_MAX_SIZE,
    CLI_DRY_RUN,
    CLI_JOBS,
    CLI_M,
    CLI_N,
    CLI_K,
    CLI_BATCH,
    CLI_CHECK,
    CLI_SHAPES,
    CLI_VS,
    CLI_CANDIDATES,
    CLI_SECONDS,
    CLI_TRAIN,
    CLI_OVERLAP,
    CLI_B_CONSTANT,
    CLI_PLOT,
    CLI_ALL,
    CLI_JSON,
    CLI_CACHE_DIR,
    CLI_NO_CACHE,
    CLI_QUIET,
    CLI_VERBOSE,
    CLI_HELP,
    CLI_VERSION,
    CLI_NUM_OPTIONS
};
#define CLI_BIT(option) (UINT64_C(1) << (option))
#define CLI_COMMON                                                                                \
    (CLI_BIT(CLI_CACHE_DIR) | CLI_BIT(CLI_NO_CACHE) | CLI_BIT(CLI_QUIET) | CLI_BIT(CLI_VERBOSE) | \
     CLI_BIT(CLI_HELP) | CLI_BIT(CLI_VERSION))

struct cli_option_row {
    const char *name;  /* as typed, e.g. "--key" */
    const char *value; /* name of its value in help; NULL: it has none */
    const char *help;
};
extern const struct cli_option_row cli_option_rows[CLI_NUM_OPTIONS];

/* Which fields of a key a verb takes as flags. */
enum cli_fields { CLI_FIELDS_NONE, CLI_FIELDS_PROBLEM, CLI_FIELDS_ALL };

struct cli;
struct cli_verb {
    const char *name;
    const char *usage;   /* what follows the name */
    const char *summary; /* one line */
    const char *details; /* paragraphs of --help */
    uint64_t options;    /* besides CLI_COMMON */
    enum cli_fields fields;
    bool has_action; /* one word follows the verb */
    bool has_file;   /* and one more may follow that */
    bool has_files;  /* or any number */
    enum gj_status (*run)(struct cli *cli, gj_error **error);
};
extern const struct cli_verb cli_verbs[];
extern const size_t cli_num_verbs;

/* What the command line said. Strings are those of argv. */
struct cli_options {
    int count[CLI_NUM_OPTIONS];
    const char *text[CLI_NUM_OPTIONS]; /* last value */
    const char **keys;                 /* every --key */
    size_t num_keys;
    struct gj_strbuf fields; /* field flags as key text */
    const char *action;      /* word after the verb */
    const char *file;        /* word after the action */
    const char **files;      /* words after the action, of a verb that has files */
    size_t num_files;
};

/* -- The command --------------------------------------------------------------------------------------- */

struct cli_progress;
struct cli {
    struct cli_options options;
    const struct cli_verb *verb;   /* NULL until it is known */
    struct cli_progress *terminal; /* owner of stderr */
    struct gj_strbuf out;          /* what goes to stdout, or to the file of -o */
    bool json;
    bool no_memory;    /* latched by the cli_json_ calls */
    int exit_status;   /* of a verb that returned GJ_OK */
    struct gj_own own; /* --act-source; source NULL until it has been read */
    struct gj_own_id own_id;
    struct gj_strbuf own_text;
};

/* Reads argv. Stops at --help and --version (count tells).
 * Returns GJ_OK; GJ_ERR_ARGUMENT; GJ_ERR_NO_MEMORY. */
enum gj_status cli_options_read(struct cli *cli, int argc, char **argv, gj_error **error);
/* The verb of this name; NULL with an error when there is none. */
const struct cli_verb *cli_verb_find(const char *name, gj_error **error);
/* Whether a flag of a verb sets this field (index into gj_fields). */
bool cli_takes_field(const struct cli_verb *verb, int field_idx);
/* Reads the value of an option; *value keeps its default when the option was not given. */
enum gj_status cli_option_int(const struct cli *cli, enum cli_option option, int64_t least, int64_t most,
                              int64_t *value, gj_error **error);

/* Adds the help of a verb, or of the command when verb is NULL, to *out. (cli_help.c) */
void cli_help_add(struct gj_strbuf *out, const struct cli_verb *verb);

/* The key of --key or of the field flags. Parsed, not checked. (cli_key.c) */
enum gj_status cli_key_read(struct cli *cli, struct gj_key *key, gj_error **error);
/* The fields in which a key differs from the default one, and always tile, cluster and sched: what a person
 * needs to see. Parses to the same key. */
void cli_key_short(const struct gj_key *key, char text[GJ_KEY_TEXT_MAX]);
/* {name: value} of every field. */
cJSON *cli_key_fields(struct cli *cli, const struct gj_key *key);

/* Parses a key text; --act-source adds act=own and own=ID where the text leaves them out. (cli_own.c) */
enum gj_status cli_key_parse(struct cli *cli, const char *text, struct gj_key *key, gj_error **error);
/* Makes the function of --act-source known to a context. */
enum gj_status cli_own_add(struct cli *cli, gj_context *context, gj_error **error);

/* Opens a context as --cache-dir, --no-cache, -q and -v say. (cli_context.c) */
enum gj_status cli_context_open(struct cli *cli, gj_context **context, gj_error **error);
/* Why the disk cache that the options name cannot be used: GJ_ERR_SYSTEM; GJ_OK when it can. */
enum gj_status cli_cache_usable(struct cli *cli, gj_error **error);
/* Why it cannot be written now, as far as can be told without writing: GJ_ERR_SYSTEM; GJ_OK when it can. */
enum gj_status cli_cache_writable(struct cli *cli, gj_error **error);
/* A gj_log_fn whose user is the struct cli. */
void cli_log(void *user, enum gj_log_level level, const char *message);

/* -- Output -------------------------------------------------------------------------------------------- */

/* Writes cli->out to the file of -o, whole or not at all, else to stdout. (cli_output.c) */
enum gj_status cli_output_write(struct cli *cli, gj_error **error);
/* Writes a text to a file, whole or not at all. */
enum gj_status cli_output_file(const char *path, const struct gj_strbuf *text, gj_error **error);

/* Reports a failure: sentences on stderr, with --json also an object on stdout. (cli_report.c) */
void cli_report_error(struct cli *cli, enum gj_status status, const gj_error *error);
int cli_exit_status(enum gj_status status);
/* One line "SUBJECT: message; reason; reason" on stderr. */
void cli_report_line(struct cli *cli, const char *subject, enum gj_status status, const gj_error *error);
/* The members of an error's object; error may be NULL. */
cJSON *cli_error_object(struct cli *cli, enum gj_status status, const gj_error *error);

/* JSON that latches a lack of memory in cli->no_memory; object may be NULL then. (cli_json.c) */
cJSON *cli_json_object(struct cli *cli);
void cli_json_text(struct cli *cli, cJSON *object, const char *name, const char *text);
void cli_json_number(struct cli *cli, cJSON *object, const char *name, double number);
void cli_json_ms(struct cli *cli, cJSON *object, const char *name, double ms); /* three decimals */
void cli_json_bool(struct cli *cli, cJSON *object, const char *name, bool value);
void cli_json_add(struct cli *cli, cJSON *object, const char *name, cJSON *item); /* takes item */
cJSON *cli_json_array(struct cli *cli, cJSON *object, const char *name);          /* borrowed */
void cli_json_append(struct cli *cli, cJSON *array, cJSON *item);                 /* takes item */
void cli_json_append_text(struct cli *cli, cJSON *array, const char *text);
/* Prints the document into cli->out and frees it. */
enum gj_status cli_json_finish(struct cli *cli, cJSON *document, gj_error **error);

/* -- stderr (cli_progress.c) --------------------------------------------------------------------------- */

struct cli_progress *cli_progress_open(void);
void cli_progress_close(struct cli_progress **progress);
/* A line on stderr, above the bar if there is one; thread-safe. */
void cli_say(struct cli *cli, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Starts to count to `total`: a bar on a terminal, else a line per item, nothing with -q. */
void cli_progress_begin(struct cli *cli, size_t total);
/* One item is done; thread-safe. */
void cli_progress_step(struct cli *cli, const char *item, const char *outcome);
void cli_progress_end(struct cli *cli);

/* -- The build tree (cli_build_tree.c) ----------------------------------------------------------------- */

/* A command that is run where it was built has the toolkit that tools/quickstart fetched beside it. Puts the
 * path of one of its files into *path; false with "" when there is none or the command is installed. */
bool cli_build_tree_find(const char *name, char *path, size_t capacity);
/* Has the library use that libnvrtc unless GEMMJIT_NVRTC is set. Before the first thread. */
void cli_build_tree_use(void);

/* -- Tools of the verbs -------------------------------------------------------------------------------- */

/* Where nvdisasm is; false with path "" when it is nowhere. (cli_disassemble.c) */
bool cli_disassembler_find(char *path, size_t capacity);
/* Adds the disassembly of a cubin to *text. GJ_ERR_NO_COMPILER: no nvdisasm. */
enum gj_status cli_disassemble(const void *cubin, size_t bytes, struct gj_strbuf *text, gj_error **error);

/* Reads a JSON document of at most 16 MiB; the caller deletes it. What is no JSON is told with line and
 * column. (cli_json_file.c) */
enum gj_status cli_json_read(const char *path, cJSON **document, gj_error **error);

/* Reads the keys of a manifest; each a malloc'ed text in a malloc'ed array. (cli_manifest.c) */
enum gj_status cli_manifest_read(const char *path, char ***keys, size_t *num_keys, gj_error **error);

/* -- Verbs --------------------------------------------------------------------------------------------- */

enum gj_status cli_show(struct cli *cli, gj_error **error);
enum gj_status cli_keys(struct cli *cli, gj_error **error);
enum gj_status cli_prewarm(struct cli *cli, gj_error **error);
enum gj_status cli_cache(struct cli *cli, gj_error **error);
enum gj_status cli_run(struct cli *cli, gj_error **error);
enum gj_status cli_bench(struct cli *cli, gj_error **error);
enum gj_status cli_tune(struct cli *cli, gj_error **error);
enum gj_status cli_doctor(struct cli *cli, gj_error **error);
enum gj_status cli_help(struct cli *cli, gj_error **error);

#endif
