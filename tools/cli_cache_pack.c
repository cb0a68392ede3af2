/* SPDX-License-Identifier: Apache-2.0 */
/* gemmjit cache pack and unpack: the cache as one file, and back. */
#include <inttypes.h>
#include <string.h>

#include "cache/cache_impl.h"
#include "cache/pack.h"
#include "cache_verb.h"

struct leaving {
    struct cli *cli;
    cJSON *list; /* NULL: lines on stderr alone */
};

/* What is left out is told in one line, in the exit status, and in the document. */
static void add_left_out(void *user, const char *name, const char *reason)
{
    const struct leaving *const leaving = user;
    struct cli *const cli = leaving->cli;
    cli->exit_status = CLI_EXIT_FAILED;
    cli_say(cli, "gemmjit: warning: %s is left out: %s", name, reason);
    if (!leaving->list)
        return;
    cJSON *const object = cli_json_object(cli);
    cli_json_text(cli, object, "file", name);
    cli_json_text(cli, object, "damaged", reason);
    cli_json_append(cli, leaving->list, object);
}

/* `what` is what was to be done with FILE. A FILE that is none for it is bad input. */
static enum gj_status fail_pack(const struct cli *cli, enum gj_pack_status outcome, const char *what,
                                const struct gj_fault *fault, gj_error **error)
{
    const enum gj_status status = outcome == GJ_PACK_REFUSED ? GJ_ERR_ARGUMENT : GJ_ERR_SYSTEM;
    struct gj_strbuf text = {0};
    gj_fault_describe(fault, &text);
    gj_error_make(error, status, GJ_STAGE_CACHE, fault->error,
                  fault->error ? strerrorname_np(fault->error) : "", "%s cannot be %s: %s", cli->options.file,
                  what, text.failed ? "no memory" : text.text);
    gj_strbuf_free(&text);
    return status;
}

/* The document of a result, with the list that the leaving fills; NULL when lines are asked for. */
static cJSON *begin_document(struct cli *cli, const gj_cache *cache, struct leaving *leaving)
{
    cJSON *const document = cli->json ? cli_json_object(cli) : NULL;
    if (document) {
        cli_json_text(cli, document, "root", gj_cache_root(cache));
        cli_json_text(cli, document, "file", cli->options.file);
        leaving->list = cli_json_array(cli, document, "left_out");
    }
    return document;
}

enum gj_status cache_pack(struct cli *cli, gj_cache *cache, gj_error **error)
{
    struct leaving leaving = {.cli = cli};
    const struct gj_pack_listener listener = {add_left_out, &leaving};
    struct gj_cache_packed packed;
    struct gj_fault fault = {0};
    cJSON *const document = begin_document(cli, cache, &leaving);
    const enum gj_pack_status outcome = gj_cache_pack(cache, cli->options.file, &listener, &packed, &fault);
    if (outcome != GJ_PACK_DONE) {
        cJSON_Delete(document);
        return fail_pack(cli, outcome, "written", &fault, error);
    }
    if (!document) {
        gj_strbuf_printf(&cli->out,
                         "packed    %" PRIu64 " entries, %" PRIu64 " stamps, %" PRIu64
                         " bytes\nleft out  %" PRIu64 "\n",
                         packed.entries, packed.stamps, packed.bytes, packed.left_out);
        return GJ_OK;
    }
    cli_json_number(cli, document, "entries", (double)packed.entries);
    cli_json_number(cli, document, "stamps", (double)packed.stamps);
    cli_json_number(cli, document, "bytes", (double)packed.bytes);
    return cli_json_finish(cli, document, error);
}

enum gj_status cache_unpack(struct cli *cli, gj_cache *cache, gj_error **error)
{
    struct leaving leaving = {.cli = cli};
    const struct gj_pack_listener listener = {add_left_out, &leaving};
    struct gj_cache_unpacked unpacked;
    struct gj_fault fault = {0};
    cJSON *const document = begin_document(cli, cache, &leaving);
    const enum gj_pack_status outcome =
        gj_cache_unpack(cache, cli->options.file, &listener, &unpacked, &fault);
    if (outcome != GJ_PACK_DONE) {
        cJSON_Delete(document);
        return fail_pack(cli, outcome, "unpacked", &fault, error);
    }
    if (!document) {
        gj_strbuf_printf(&cli->out,
                         "unpacked  %" PRIu64 " entries, %" PRIu64 " stamps, %" PRIu64
                         " bytes\nkept      %" PRIu64 "\nleft out  %" PRIu64 "\n",
                         unpacked.entries, unpacked.stamps, unpacked.bytes, unpacked.kept, unpacked.left_out);
        return GJ_OK;
    }
    cli_json_number(cli, document, "entries", (double)unpacked.entries);
    cli_json_number(cli, document, "stamps", (double)unpacked.stamps);
    cli_json_number(cli, document, "bytes", (double)unpacked.bytes);
    cli_json_number(cli, document, "kept", (double)unpacked.kept);
    return cli_json_finish(cli, document, error);
}
