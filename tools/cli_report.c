/* SPDX-License-Identifier: Apache-2.0 */
/* How a failure is told: sentences on stderr, an object on stdout with --json, an exit status. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli.h"

#define LOCATIONS_SHOWN 8 /* the later ones mostly follow from the first */

int cli_exit_status(enum gj_status status)
{
    switch (status) {
    case GJ_OK:
        return CLI_EXIT_DONE;
    case GJ_ERR_ARGUMENT:
    case GJ_ERR_KEY:
    case GJ_ERR_UNSUPPORTED:
        return CLI_EXIT_USAGE;
    case GJ_ERR_NO_COMPILER:
    case GJ_ERR_NO_DRIVER:
    case GJ_ERR_NO_DEVICE:
        return CLI_EXIT_MISSING;
    case GJ_ERR_NOT_CACHED:
    case GJ_ERR_NOT_PREPARED:
    case GJ_ERR_GENERATE:
    case GJ_ERR_COMPILE:
    case GJ_ERR_DRIVER:
    case GJ_ERR_SYSTEM:
    case GJ_ERR_NO_MEMORY:
    case GJ_ERR_INTERNAL:
        return CLI_EXIT_FAILED;
    }
    return CLI_EXIT_FAILED;
}

cJSON *cli_error_object(struct cli *cli, enum gj_status status, const gj_error *error)
{
    cJSON *const object = cli_json_object(cli);
    cli_json_text(cli, object, "status", gj_status_name(status));
    cli_json_text(cli, object, "stage", gj_stage_name(error ? error->stage : GJ_STAGE_NONE));
    cli_json_number(cli, object, "exit_status", cli_exit_status(status));
    cli_json_number(cli, object, "origin_code", error ? error->origin_code : 0);
    cli_json_text(cli, object, "origin_name", error ? error->origin_name : "");
    cli_json_text(cli, object, "message", error ? error->message : "no memory for the message");
    cJSON *const reasons = cli_json_array(cli, object, "reasons");
    for (size_t i = 0; error && i < error->num_reasons; i++)
        cli_json_append_text(cli, reasons, error->reasons[i]);
    cJSON *const locations = cli_json_array(cli, object, "locations");
    for (size_t i = 0; error && i < error->num_locations; i++) {
        const struct gj_location *const location = &error->locations[i];
        cJSON *const item = cli_json_object(cli);
        cli_json_text(cli, item, "file", location->file);
        cli_json_number(cli, item, "line", location->line);
        cli_json_number(cli, item, "unit_line", location->unit_line);
        cli_json_text(cli, item, "message", location->message);
        cli_json_text(cli, item, "excerpt", location->excerpt);
        cli_json_append(cli, locations, item);
    }
    cli_json_text(cli, object, "detail", error ? error->detail : "");
    return object;
}

/* A log, indented. */
static void say_detail(struct cli *cli, const char *detail)
{
    while (*detail) {
        const size_t length = strcspn(detail, "\n");
        cli_say(cli, "    %.*s", (int)length, detail);
        detail += length;
        if (*detail)
            detail++;
    }
}

static void say_error(struct cli *cli, enum gj_status status, const gj_error *error)
{
    if (error == NULL) {
        cli_say(cli, "gemmjit: %s", gj_status_name(status));
        return;
    }
    cli_say(cli, "gemmjit: %s", error->message);
    for (size_t i = 0; i < error->num_reasons; i++)
        cli_say(cli, "    %s", error->reasons[i]);
    const size_t shown = error->num_locations < LOCATIONS_SHOWN ? error->num_locations : LOCATIONS_SHOWN;
    for (size_t i = 0; i < shown; i++) {
        const struct gj_location *const location = &error->locations[i];
        cli_say(cli, "    %s:%d: %s", location->file, location->line, location->message);
        if (*location->excerpt)
            cli_say(cli, "        %s", location->excerpt);
    }
    if (shown < error->num_locations)
        cli_say(cli, "    (%zu more places)", error->num_locations - shown);
    if (cli->options.count[CLI_VERBOSE] == 0) {
        if (*error->detail)
            cli_say(cli, "    (-v shows the log)");
        return;
    }
    if (error->origin_code)
        cli_say(cli, "    %s in stage %s, from %s (%d)", gj_status_name(status), gj_stage_name(error->stage),
                error->origin_name, error->origin_code);
    else
        cli_say(cli, "    %s in stage %s", gj_status_name(status), gj_stage_name(error->stage));
    say_detail(cli, error->detail);
}

void cli_report_line(struct cli *cli, const char *subject, enum gj_status status, const gj_error *error)
{
    struct gj_strbuf line = {0};
    gj_strbuf_printf(&line, "%s: %s", subject, error ? error->message : gj_status_name(status));
    for (size_t i = 0; error && i < error->num_reasons; i++)
        gj_strbuf_printf(&line, "; %s", error->reasons[i]);
    if (error && error->num_locations > 0)
        gj_strbuf_printf(&line, "; %s:%d: %s", error->locations[0].file, error->locations[0].line,
                         error->locations[0].message);
    if (error && *error->detail && cli->options.count[CLI_VERBOSE] == 0)
        gj_strbuf_puts(&line, " (-v shows the log)");
    char *const text = gj_strbuf_take(&line);
    cli_say(cli, "gemmjit: %s", text ? text : subject);
    free(text);
    if (error && cli->options.count[CLI_VERBOSE] > 0)
        say_detail(cli, error->detail);
}

void cli_report_error(struct cli *cli, enum gj_status status, const gj_error *error)
{
    say_error(cli, status, error);
    if (!cli->json)
        return;
    cli->no_memory = false;
    gj_strbuf_free(&cli->out);
    cJSON *const document = cli_json_object(cli);
    cli_json_add(cli, document, "error", cli_error_object(cli, status, error));
    cli->options.text[CLI_OUTPUT] = NULL; /* the object of an error never replaces a file */
    if (cli_json_finish(cli, document, NULL) == GJ_OK)
        (void)cli_output_write(cli, NULL); /* stdout may be what failed; stderr has told */
}
