/* SPDX-License-Identifier: Apache-2.0 */
/* --shard I/N: which keys are this process's part. The sorted list of all keys is dealt out one by one, so
 * that neither the machine nor the order in which keys were given matters, and neighbours in the list, which
 * compile about as long, come to different shards. */
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "prewarm.h"

#define SHARDS_MAX 1000000

/* Reads digits up to `end`. Returns 0, which no part of I/N may be, when there is anything else. */
static int64_t read_number(const char *text, const char *end)
{
    int64_t number = 0;
    for (const char *at = text; at < end; at++) {
        if (*at < '0' || *at > '9' || number > SHARDS_MAX)
            return 0;
        number = number * 10 + (*at - '0');
    }
    return number;
}

enum gj_status prewarm_shard_read(const struct cli *cli, struct prewarm_shard *shard, gj_error **error)
{
    *shard = (struct prewarm_shard){1, 1};
    const char *const text = cli->options.text[CLI_SHARD];
    if (text == NULL)
        return GJ_OK;
    const char *const slash = strchr(text, '/');
    const int64_t number = slash ? read_number(text, slash) : 0;
    const int64_t count = slash ? read_number(slash + 1, text + strlen(text)) : 0;
    if (number < 1 || count < number || count > SHARDS_MAX)
        GJ_FAIL(error, GJ_ERR_ARGUMENT, GJ_STAGE_NONE,
                "--shard %s: allowed is I/N with I from 1 to N and N up to %d",
                gj_utf8_quote(text, strlen(text)).text, SHARDS_MAX);
    *shard = (struct prewarm_shard){number, count};
    return GJ_OK;
}

static int compare_texts(const void *left, const void *right)
{
    const struct prewarm_item *const a = left, *const b = right;
    return strcmp(a->text, b->text);
}

void prewarm_shard_cut(struct prewarm *prewarm)
{
    prewarm->num_all = prewarm->num_items;
    if (prewarm->shard.count == 1)
        return;
    qsort(prewarm->items, prewarm->num_items, sizeof(*prewarm->items), compare_texts);
    size_t kept = 0;
    for (size_t i = (size_t)prewarm->shard.number - 1; i < prewarm->num_all;
         i += (size_t)prewarm->shard.count)
        prewarm->items[kept++] = prewarm->items[i];
    prewarm->num_items = kept;
}
