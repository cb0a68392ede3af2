/* SPDX-License-Identifier: Apache-2.0 */
/* gemmjit doctor: toolchain, driver, GPU and cache, each with yes or no and why. Compiles nothing. */
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/env.h"
#include "base/log.h"
#include "cache/cache.h"
#include "cli.h"
#include "compile/compile.h"
#include "cuda/device.h"

struct report {
    struct cli *cli;
    cJSON *document; /* NULL: lines */
};

/* One finding: a line of text, and an object {"ok", "why"} to which the caller may add. */
static cJSON *add_finding(struct report *report, const char *name, bool ok, const char *why)
{
    struct cli *const cli = report->cli;
    if (report->document == NULL) {
        gj_strbuf_printf(&cli->out, "%-9s %-3s  %s\n", name, ok ? "yes" : "no", why);
        return NULL;
    }
    cJSON *const object = cli_json_object(cli);
    cli_json_bool(cli, object, "ok", ok);
    cli_json_text(cli, object, "why", why);
    cli_json_add(cli, report->document, name, object);
    return object;
}

static bool report_nvrtc(struct report *report)
{
    gj_compiler *compiler = NULL;
    gj_error *error = NULL;
    const enum gj_status status = gj_compiler_open(&compiler, &error);
    const bool ok = status == GJ_OK;
    char why[PATH_MAX + 64];
    if (ok)
        snprintf(why, sizeof(why), "%s, %s", gj_compiler_version(compiler), gj_compiler_path(compiler));
    cJSON *const object = add_finding(report, "libnvrtc", ok,
                                      ok      ? why
                                      : error ? error->message
                                              : gj_status_name(status));
    if (object && ok) {
        cli_json_text(report->cli, object, "version", gj_compiler_version(compiler));
        cli_json_text(report->cli, object, "path", gj_compiler_path(compiler));
    }
    gj_error_free(&error);
    gj_compiler_close(&compiler);
    return ok;
}

static void report_disassembler(struct report *report)
{
    char path[PATH_MAX];
    const bool ok = cli_disassembler_find(path, sizeof(path));
    cJSON *const object = add_finding(
        report, "nvdisasm", ok,
        ok ? path : "not in PATH nor in a CUDA toolkit; only `gemmjit show --emit sass` needs it");
    if (object && ok)
        cli_json_text(report->cli, object, "path", path);
}

static void add_gpu(struct report *report, cJSON *list, const gj_driver *driver, int device)
{
    struct cli *const cli = report->cli;
    struct gj_gpu_info info;
    gj_error *error = NULL;
    char why[512];
    if (gj_gpu_info_get(driver, device, &info, &error) != GJ_OK) {
        if (list == NULL)
            add_finding(report, "GPU", false, error ? error->message : "no memory");
        gj_error_free(&error);
        return;
    }
    const bool ok = info.major == 9 && info.minor == 0;
    const double gib = (double)info.memory_bytes / (1 << 30);
    if (list == NULL) {
        snprintf(why, sizeof(why), "%d: %s, compute capability %d.%d, %d SMs, %.1f GiB%s", device, info.name,
                 info.major, info.minor, info.num_sms, gib, ok ? "" : ": kernels need 9.0");
        add_finding(report, "GPU", ok, why);
        return;
    }
    cJSON *const object = cli_json_object(cli);
    cli_json_bool(cli, object, "ok", ok);
    cli_json_number(cli, object, "device", device);
    cli_json_text(cli, object, "name", info.name);
    snprintf(why, sizeof(why), "%d.%d", info.major, info.minor);
    cli_json_text(cli, object, "compute_capability", why);
    cli_json_number(cli, object, "num_sms", info.num_sms);
    cli_json_number(cli, object, "memory_bytes", (double)info.memory_bytes);
    cli_json_append(cli, list, object);
}

static void report_gpus(struct report *report)
{
    gj_driver *driver = NULL;
    gj_error *error = NULL;
    const enum gj_status status = gj_driver_open(&driver, &error);
    const char *const reason = error ? error->message : gj_status_name(status);
    const bool no_driver = status != GJ_OK && status != GJ_ERR_NO_DEVICE;
    char why[64] = "found";
    if (status == GJ_OK) {
        const int version = gj_driver_version(driver);
        snprintf(why, sizeof(why), "CUDA %d.%d", version / 1000, version % 1000 / 10);
    }
    add_finding(report, "libcuda", !no_driver, no_driver ? reason : why);
    cJSON *const list = report->document ? cli_json_array(report->cli, report->document, "gpus") : NULL;
    if (status != GJ_OK && list == NULL)
        add_finding(report, "GPU", false, no_driver ? "no driver; only running kernels needs one" : reason);
    const int count = status == GJ_OK ? gj_gpu_count(driver) : 0;
    for (int i = 0; i < count; i++)
        add_gpu(report, list, driver, i);
    gj_error_free(&error);
    gj_driver_close(&driver);
}

struct totals {
    uint64_t entries, bytes;
};

static bool count_entry(void *user, const char *path, uint64_t file_bytes, const struct gj_cache_entry *entry,
                        const char *reason)
{
    (void)path, (void)entry, (void)reason;
    struct totals *const totals = user;
    totals->entries++;
    totals->bytes += file_bytes;
    return true;
}

/* What is in a cache that is on. False when it cannot be listed at all. */
static bool describe_cache(gj_cache *cache, struct totals *totals, bool writable, struct gj_strbuf *why)
{
    struct gj_cache_scan scan = {0};
    const bool ok = gj_cache_list(cache, count_entry, totals, &scan) >= 0;
    const int code = errno;
    gj_strbuf_puts(why, gj_cache_root(cache));
    if (!ok)
        gj_strbuf_printf(why, " cannot be read: %s", strerror(code));
    else
        gj_strbuf_printf(why, ", %" PRIu64 " entr%s, %" PRIu64 " bytes%s", totals->entries,
                         totals->entries == 1 ? "y" : "ies", totals->bytes,
                         writable ? "" : ", read-only: what is compiled is not kept");
    if (scan.unread > 0)
        gj_strbuf_printf(why, "; not read: %s%s", scan.first_unread.text ? scan.first_unread.text : "?",
                         scan.unread > 1 ? "; and others" : "");
    gj_strbuf_free(&scan.first_unread);
    return ok;
}

/* Lines of text, or a list of {"path", "ok", "why"}; nothing when there are no layers. */
static void report_layers(struct report *report, const gj_cache *cache)
{
    struct cli *const cli = report->cli;
    const size_t count = gj_cache_num_layers(cache);
    cJSON *const list =
        report->document && count > 0 ? cli_json_array(cli, report->document, "layers") : NULL;
    for (size_t i = 0; i < count; i++) {
        const char *why;
        const char *const path = gj_cache_layer(cache, i, &why);
        if (list == NULL) {
            gj_strbuf_printf(&cli->out, "%-9s %-3s  %s%s%s\n", "layer", why ? "no" : "yes", path,
                             why ? ": " : "", why ? why : "");
            continue;
        }
        cJSON *const object = cli_json_object(cli);
        cli_json_text(cli, object, "path", path);
        cli_json_bool(cli, object, "ok", why == NULL);
        cli_json_text(cli, object, "why", why ? why : "");
        cli_json_append(cli, list, object);
    }
}

/* Nothing when no store was named. */
static void report_remote(struct report *report, const gj_cache *cache)
{
    const char *why = NULL;
    const char *const url = cache ? gj_cache_remote(cache, &why) : NULL;
    if (url == NULL)
        return;
    cJSON *const object = add_finding(report, "remote", why == NULL, why ? why : url);
    if (object && why == NULL)
        cli_json_text(report->cli, object, "url", url);
}

static void report_cache(struct report *report)
{
    struct cli *const cli = report->cli;
    if (cli->options.count[CLI_NO_CACHE]) {
        add_finding(report, "cache", false, "off by --no-cache");
        return;
    }
    const struct gj_log silent = {0};
    gj_cache *cache = gj_cache_open(cli->options.text[CLI_CACHE_DIR], &silent);
    const char *const off = cache ? gj_cache_off_reason(cache) : "no memory";
    struct totals totals = {0};
    struct gj_strbuf why = {0}, reason = {0};
    bool ok = off == NULL;
    const bool writable = ok && gj_cache_is_writable(cache, &reason);
    if (ok)
        ok = describe_cache(cache, &totals, writable, &why);
    else
        gj_strbuf_printf(&why, "%s; kernels are kept in memory only", off);
    cJSON *const object = add_finding(report, "cache", ok, why.text ? why.text : "no memory");
    if (object && ok) {
        cli_json_text(cli, object, "root", gj_cache_root(cache));
        cli_json_number(cli, object, "entries", (double)totals.entries);
        cli_json_number(cli, object, "bytes", (double)totals.bytes);
        cli_json_bool(cli, object, "writable", writable);
    }
    gj_strbuf_free(&reason);
    gj_strbuf_free(&why);
    report_layers(report, cache);
    report_remote(report, cache);
    gj_cache_close(&cache);
}

static void report_environment(struct report *report)
{
    struct cli *const cli = report->cli;
    cJSON *const object = report->document ? cli_json_object(cli) : NULL;
    if (object == NULL)
        gj_strbuf_puts(&cli->out, "\nenvironment\n");
    for (int i = 0; i < GJ_ENV_COUNT; i++) {
        const char *const value = gj_env_get((enum gj_env)i);
        const char *const name = gj_env_name((enum gj_env)i);
        if (object == NULL)
            gj_strbuf_printf(&cli->out, "  %-20s %-3s  %s%s%s\n", name, value ? "yes" : "no",
                             gj_env_help((enum gj_env)i), value ? ": " : "", value ? value : "");
        else if (value)
            cli_json_text(cli, object, name, value);
        else
            cli_json_add(cli, object, name, cJSON_CreateNull());
    }
    if (object)
        cli_json_add(cli, report->document, "environment", object);
}

enum gj_status cli_doctor(struct cli *cli, gj_error **error)
{
    struct report report = {cli, cli->json ? cli_json_object(cli) : NULL};
    const bool compiles = report_nvrtc(&report);
    report_disassembler(&report);
    report_gpus(&report);
    report_cache(&report);
    report_environment(&report);
    cli->exit_status = compiles ? CLI_EXIT_DONE : CLI_EXIT_MISSING;
    return report.document ? cli_json_finish(cli, report.document, error) : GJ_OK;
}
