/* SPDX-License-Identifier: Apache-2.0 */
/* cJSON with a latched lack of memory, and with texts that are UTF-8 whatever bytes a path or a key had. */
#include <stdlib.h>
#include <string.h>

#include "cli.h"

/* Length of the UTF-8 sequence at `at`, 0 when it is not one. */
static size_t sequence_length(const unsigned char *at)
{
    static const struct {
        unsigned char low, high, second_low, second_high;
        size_t length;
    } forms[] = {
        {0x01, 0x7f, 0, 0, 1},       {0xc2, 0xdf, 0x80, 0xbf, 2}, {0xe0, 0xe0, 0xa0, 0xbf, 3},
        {0xe1, 0xec, 0x80, 0xbf, 3}, {0xed, 0xed, 0x80, 0x9f, 3}, {0xee, 0xef, 0x80, 0xbf, 3},
        {0xf0, 0xf0, 0x90, 0xbf, 4}, {0xf1, 0xf3, 0x80, 0xbf, 4}, {0xf4, 0xf4, 0x80, 0x8f, 4},
    };
    for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
        if (at[0] < forms[i].low || at[0] > forms[i].high)
            continue;
        if (forms[i].length > 1 && (at[1] < forms[i].second_low || at[1] > forms[i].second_high))
            return 0;
        for (size_t k = 2; k < forms[i].length; k++)
            if ((at[k] & 0xc0) != 0x80)
                return 0;
        return forms[i].length;
    }
    return 0;
}

/* The text with U+FFFD for each byte that belongs to no UTF-8 sequence. NULL when memory runs out. */
static char *valid_text(const char *text)
{
    struct gj_strbuf valid = {0};
    for (const char *at = text; *at;) {
        const size_t length = sequence_length((const unsigned char *)at);
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
