/* SPDX-License-Identifier: Apache-2.0 */
/* What prewarm says at its end: a table or a document, and the exit status. */
#include <stdio.h>

#include "prewarm.h"

static const char *const origin_words[] = {
    [GJ_ORIGIN_COMPILED] = "compiled", [GJ_ORIGIN_DISK] = "disk", [GJ_ORIGIN_REMOTE] = "remote"};

struct tally {
    size_t compiled, disk, remote, failed, not_stored, no_toolchain;
};

static struct tally count_items(const struct prewarm *prewarm)
{
    struct tally tally = {0};
    for (size_t i = 0; i < prewarm->num_items; i++) {
        const struct prewarm_item *const item = &prewarm->items[i];
        if (item->status != GJ_OK) {
            tally.failed++;
            tally.no_toolchain += cli_exit_status(item->status) == CLI_EXIT_MISSING;
        } else if (item->info.origin == GJ_ORIGIN_COMPILED) {
            tally.compiled++;
            tally.not_stored += !item->info.stored;
        } else if (item->info.origin == GJ_ORIGIN_REMOTE) {
            tally.remote++;
            tally.not_stored += !item->info.stored;
        } else {
            tally.disk++;
        }
    }
    return tally;
}

static void print_table(const struct prewarm *prewarm)
{
    struct gj_strbuf *const out = &prewarm->cli->out;
    gj_strbuf_puts(out, "registers   smem  compile ms  origin    key\n");
    for (size_t i = 0; i < prewarm->num_items; i++) {
        const struct prewarm_item *const item = &prewarm->items[i];
        char compile_ms[32] = "-";
        if (item->status != GJ_OK) {
            gj_strbuf_printf(out, "%9s %6s  %10s  %-8s  %s\n", "-", "-", "-", "failed", item->label);
            continue;
        }
        if (item->info.origin == GJ_ORIGIN_COMPILED)
            snprintf(compile_ms, sizeof(compile_ms), "%.1f", item->info.compile_ms);
        gj_strbuf_printf(out, "%9d %6d  %10s  %-8s  %s\n", item->info.registers, item->info.smem_bytes,
                         compile_ms, origin_words[item->info.origin], item->label);
    }
}

static cJSON *item_object(struct cli *cli, const struct prewarm_item *item)
{
    cJSON *const object = cli_json_object(cli);
    const struct gj_kernel_info *const info = &item->info;
    cli_json_text(cli, object, "key", item->text);
    if (item->status != GJ_OK) {
        cli_json_text(cli, object, "origin", "failed");
        cli_json_bool(cli, object, "stored", false);
        cli_json_add(cli, object, "error", cli_error_object(cli, item->status, item->error));
        return object;
    }
    cli_json_text(cli, object, "origin", origin_words[info->origin]);
    cli_json_bool(cli, object, "stored", info->stored);
    cli_json_text(cli, object, "entry_name", info->entry_name);
    cli_json_text(cli, object, "compiler", info->compiler);
    cli_json_number(cli, object, "registers", info->registers);
    cli_json_number(cli, object, "threads", info->threads);
    cli_json_number(cli, object, "smem_bytes", info->smem_bytes);
    cli_json_number(cli, object, "stages", info->stages);
    cli_json_number(cli, object, "spill_bytes", info->spill_bytes);
    cli_json_number(cli, object, "cubin_bytes", (double)info->cubin_bytes);
    cli_json_ms(cli, object, "generate_ms", info->generate_ms);
    cli_json_ms(cli, object, "compile_ms", info->compile_ms);
    cli_json_ms(cli, object, "load_ms", info->load_ms);
    return object;
}

static void add_stats(struct cli *cli, cJSON *document, const struct gj_stats *stats)
{
    const struct {
        const char *name;
        uint64_t value;
    } rows[] = {
        {"compiles", stats->compiles},
        {"compile_failures", stats->compile_failures},
        {"memory_hits", stats->memory_hits},
        {"disk_hits", stats->disk_hits},
        {"disk_misses", stats->disk_misses},
        {"damaged_entries", stats->damaged_entries},
        {"waits", stats->waits},
        {"disk_bytes_read", stats->disk_bytes_read},
        {"disk_bytes_written", stats->disk_bytes_written},
        {"disk_write_failures", stats->disk_write_failures},
        {"nvrtc_opens", stats->nvrtc_opens},
        {"lock_waits", stats->lock_waits},
        {"layer_hits", stats->layer_hits},
        {"remote_hits", stats->remote_hits},
        {"remote_misses", stats->remote_misses},
        {"remote_failures", stats->remote_failures},
        {"uploads", stats->uploads},
        {"upload_failures", stats->upload_failures},
    };
    cJSON *const object = cli_json_object(cli);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        cli_json_number(cli, object, rows[i].name, (double)rows[i].value);
    cli_json_add(cli, document, "stats", object);
}

static enum gj_status print_document(const struct prewarm *prewarm, const struct tally *tally,
                                     gj_error **error)
{
    struct cli *const cli = prewarm->cli;
    cJSON *const document = cli_json_object(cli);
    prewarm_add_source(prewarm, document);
    cJSON *const keys = cli_json_array(cli, document, "keys");
    for (size_t i = 0; i < prewarm->num_items; i++)
        cli_json_append(cli, keys, item_object(cli, &prewarm->items[i]));
    cli_json_number(cli, document, "compiled", (double)tally->compiled);
    cli_json_number(cli, document, "disk", (double)tally->disk);
    cli_json_number(cli, document, "remote", (double)tally->remote);
    cli_json_number(cli, document, "failed", (double)tally->failed);
    cli_json_number(cli, document, "not_stored", (double)tally->not_stored);
    cli_json_number(cli, document, "workers", prewarm->num_workers);
    cli_json_ms(cli, document, "wall_ms", prewarm->wall_ms);
    add_stats(cli, document, &prewarm->stats);
    return cli_json_finish(cli, document, error);
}

/* A cubin that is not on disk afterwards, or that the store should have got, is a failure of prewarm, though
 * not of the library. */
static int exit_status(const struct prewarm *prewarm, const struct tally *tally)
{
    if (tally->no_toolchain > 0)
        return CLI_EXIT_MISSING;
    const bool is_done = tally->failed + tally->not_stored + prewarm->stats.upload_failures == 0;
    return is_done && !prewarm->is_unsent ? CLI_EXIT_DONE : CLI_EXIT_FAILED;
}

static void say_what_was_lost(const struct prewarm *prewarm, const struct tally *tally)
{
    const uint64_t unsent = prewarm->stats.upload_failures;
    if (tally->not_stored > 0)
        cli_say(prewarm->cli, "gemmjit: %zu cubin%s could not be written to the disk cache",
                tally->not_stored, tally->not_stored == 1 ? "" : "s");
    if (unsent > 0)
        cli_say(prewarm->cli, "gemmjit: %llu cubin%s could not be sent to the remote cache",
                (unsigned long long)unsent, unsent == 1 ? "" : "s");
}

enum gj_status prewarm_report(struct prewarm *prewarm, gj_error **error)
{
    struct cli *const cli = prewarm->cli;
    const struct tally tally = count_items(prewarm);
    cli->exit_status = exit_status(prewarm, &tally);
    char not_stored[48] = "", shard[96] = "", remote[48] = "";
    if (tally.not_stored > 0)
        snprintf(not_stored, sizeof(not_stored), ", %zu not stored", tally.not_stored);
    if (tally.remote > 0)
        snprintf(remote, sizeof(remote), ", %zu fetched", tally.remote);
    say_what_was_lost(prewarm, &tally);
    if (prewarm->shard.count > 1)
        snprintf(shard, sizeof(shard),
                 "shard %lld of %lld, %zu of %zu keys: ", (long long)prewarm->shard.number,
                 (long long)prewarm->shard.count, prewarm->num_items, prewarm->num_all);
    if (cli->options.count[CLI_QUIET] == 0)
        cli_say(cli, "%s%zu compiled, %zu on disk%s, %zu failed%s in %.2f s with %d thread%s", shard,
                tally.compiled, tally.disk, remote, tally.failed, not_stored, prewarm->wall_ms / 1000,
                prewarm->num_workers, prewarm->num_workers == 1 ? "" : "s");
    if (cli->json)
        return print_document(prewarm, &tally, error);
    print_table(prewarm);
    return GJ_OK;
}
