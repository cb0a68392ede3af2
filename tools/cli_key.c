/* SPDX-License-Identifier: Apache-2.0 */
/* Keys on the command line: --key or one flag a field, and how keys are shown. */
#include <stdio.h>
#include <string.h>

#include "base/utf8.h"
#include "cli.h"
#include "key/key_tables.h"

enum gj_status cli_key_read(struct cli *cli, struct gj_key *key, gj_error **error)
{
    const struct cli_options *const options = &cli->options;
    if (options->num_keys > 1)
        GJ_FAIL(error, GJ_ERR_ARGUMENT, GJ_STAGE_NONE, "--key is given twice");
    if (options->num_keys == 1 && options->fields.length > 0)
        GJ_FAIL(error, GJ_ERR_ARGUMENT, GJ_STAGE_NONE,
                "--key and flags for its fields (%s) are both given: put all fields into one of them",
                gj_utf8_quote(options->fields.text, options->fields.length).text);
    const char *const flags = options->fields.text ? options->fields.text : "";
    return cli_key_parse(cli, options->num_keys == 1 ? options->keys[0] : flags, key, error);
}

/* Calls act with each `name=value` of a canonical text, which is cut into pieces. */
static void each_field(char *text, void (*act)(void *user, const char *name, const char *value), void *user)
{
    for (char *rest = text, *piece; (piece = strsep(&rest, ",")) != NULL;) {
        char *const equals = strchr(piece, '=');
        *equals = '\0';
        act(user, piece, equals + 1);
    }
}

/* Whether a canonical text has this name with this value. */
static bool has_field(const char *text, const char *name, const char *value)
{
    const size_t name_length = strlen(name), value_length = strlen(value);
    for (const char *at = text; at; at = strchr(at, ',')) {
        at += *at == ',';
        const char *const end = at + name_length + 1 + value_length;
        if (strncmp(at, name, name_length) == 0 && at[name_length] == '=' &&
            strncmp(at + name_length + 1, value, value_length) == 0 && (*end == ',' || *end == '\0'))
            return true;
    }
    return false;
}

struct shortening {
    char defaults[GJ_KEY_TEXT_MAX];
    char *text;
};

static void keep_field(void *user, const char *name, const char *value)
{
    const struct shortening *const shortening = user;
    const bool always =
        strcmp(name, "tile") == 0 || strcmp(name, "cluster") == 0 || strcmp(name, "sched") == 0;
    if (!always && has_field(shortening->defaults, name, value))
        return;
    const size_t length = strlen(shortening->text);
    snprintf(shortening->text + length, GJ_KEY_TEXT_MAX - length, "%s%s=%s", length ? "," : "", name, value);
}

void cli_key_short(const struct gj_key *key, char text[GJ_KEY_TEXT_MAX])
{
    struct shortening shortening = {.text = text};
    const struct gj_key defaults = gj_key_default();
    char whole[GJ_KEY_TEXT_MAX];
    gj_key_format(&defaults, shortening.defaults, sizeof(shortening.defaults));
    gj_key_format(key, whole, sizeof(whole));
    text[0] = '\0';
    each_field(whole, keep_field, &shortening);
}

struct field_list {
    struct cli *cli;
    cJSON *object;
};

static void add_field(void *user, const char *name, const char *value)
{
    const struct field_list *const list = user;
    cli_json_text(list->cli, list->object, name, value);
}

cJSON *cli_key_fields(struct cli *cli, const struct gj_key *key)
{
    struct field_list list = {cli, cli_json_object(cli)};
    char text[GJ_KEY_TEXT_MAX];
    gj_key_format(key, text, sizeof(text));
    each_field(text, add_field, &list);
    return list.object;
}
