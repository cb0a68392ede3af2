/* SPDX-License-Identifier: Apache-2.0 */
/* cJSON with a latched lack of memory, and with texts that are UTF-8 whatever bytes a path or a key had. */
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "cli.h"

/* The text with U+FFFD for each byte that belongs to no UTF-8 sequence. NULL when memory runs out. */
static char *valid_text(const char *text)
{
    struct gj_strbuf valid = {0};
    for (const char *at = text; *at;) {
        const size_t length = gj_utf8_length(at);
        if (length > 0)
            gj_strbuf_add(&valid, at, length);
        else
            gj_strbuf_puts(&valid, "\xef\xbf\xbd");
        at += length ? length : 1;
    }
    return gj_strbuf_take(&valid);
}

static cJSON *text_item(const char *text)
{
    char *const valid = valid_text(text);
    cJSON *const item = valid ? cJSON_CreateString(valid) : NULL;
    free(valid);
    return item;
}

cJSON *cli_json_object(struct cli *cli)
{
    cJSON *const object = cJSON_CreateObject();
    cli->no_memory |= object == NULL;
    return object;
}

void cli_json_add(struct cli *cli, cJSON *object, const char *name, cJSON *item)
{
    if (item == NULL || !cJSON_AddItemToObject(object, name, item)) {
        cli->no_memory = true;
        cJSON_Delete(item);
    }
}

void cli_json_append(struct cli *cli, cJSON *array, cJSON *item)
{
    if (item == NULL || !cJSON_AddItemToArray(array, item)) {
        cli->no_memory = true;
        cJSON_Delete(item);
    }
}

void cli_json_text(struct cli *cli, cJSON *object, const char *name, const char *text)
{
    cli_json_add(cli, object, name, text_item(text));
}

void cli_json_append_text(struct cli *cli, cJSON *array, const char *text)
{
    cli_json_append(cli, array, text_item(text));
}

void cli_json_number(struct cli *cli, cJSON *object, const char *name, double number)
{
    cli_json_add(cli, object, name, cJSON_CreateNumber(number));
}

void cli_json_ms(struct cli *cli, cJSON *object, const char *name, double ms)
{
    cli_json_number(cli, object, name, (double)(int64_t)(ms * 1000 + 0.5) / 1000);
}

void cli_json_bool(struct cli *cli, cJSON *object, const char *name, bool value)
{
    cli_json_add(cli, object, name, cJSON_CreateBool(value));
}

cJSON *cli_json_array(struct cli *cli, cJSON *object, const char *name)
{
    cJSON *const array = cJSON_AddArrayToObject(object, name);
    cli->no_memory |= array == NULL;
    return array;
}

enum gj_status cli_json_finish(struct cli *cli, cJSON *document, gj_error **error)
{
    char *const text = cli->no_memory ? NULL : cJSON_Print(document);
    cJSON_Delete(document);
    if (text == NULL)
        GJ_FAIL(error, GJ_ERR_NO_MEMORY, GJ_STAGE_NONE, "no memory for the JSON document");
    gj_strbuf_puts(&cli->out, text);
    gj_strbuf_puts(&cli->out, "\n");
    cJSON_free(text);
    return GJ_OK;
}
