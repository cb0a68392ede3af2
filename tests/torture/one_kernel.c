/* SPDX-License-Identifier: Apache-2.0 */
/* What a program gets from a cache in any state: one_kernel [KEY]. Writes the kernel's cubin to standard
 * output, and to standard error each warning as a line "warning: ..." and at last the counters as JSON. */
#include <gemmjit/gemmjit.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static void say(void *user, enum gj_log_level level, const char *message)
{
    (void)user;
    if (level <= GJ_LOG_WARNING)
        fprintf(stderr, "warning: %s\n", message);
}

/* The most address space that this process had, in KiB; 0 where nobody tells. */
static long peak_kib(void)
{
    FILE *const file = fopen("/proc/self/status", "re");
    char line[256];
    long kib = 0;
    while (file != NULL && fgets(line, sizeof line, file) != NULL)
        if (sscanf(line, "VmPeak: %ld", &kib) == 1)
            break;
    if (file != NULL)
        fclose(file);
    return kib;
}

int main(int argc, char **argv)
{
    const struct gj_context_params params = {.log = say};
    gj_context *context = NULL;
    gj_kernel *kernel = NULL;
    gj_error *error = NULL;
    struct gj_key key;
    struct gj_kernel_info info;
    struct gj_stats stats;
    enum gj_status status = gj_context_open(&params, &context, &error);
    if (status == GJ_OK)
        status = gj_key_parse(argc > 1 ? argv[1] : "tile=64x16,cluster=1x1", &key, &error);
    if (status == GJ_OK)
        status = gj_kernel_get(context, &key, 0, &kernel, &error);
    if (status != GJ_OK) {
        fprintf(stderr, "one_kernel: %s\n", error ? error->message : gj_status_name(status));
        return 1;
    }
    gj_kernel_info(kernel, &info);
    const int written =
        fwrite(info.cubin, 1, info.cubin_bytes, stdout) == info.cubin_bytes && fflush(stdout) == 0;
    gj_stats(context, &stats);
    fprintf(stderr,
            "{\"compiles\": %" PRIu64 ", \"disk_hits\": %" PRIu64 ", \"damaged\": %" PRIu64
            ", \"stored\": %d, "
            "\"write_failures\": %" PRIu64 ", \"nvrtc_opens\": %" PRIu64 ", \"peak_kib\": %ld}\n",
            stats.compiles, stats.disk_hits, stats.damaged_entries, info.stored, stats.disk_write_failures,
            stats.nvrtc_opens, peak_kib());
    gj_context_close(&context);
    return written ? 0 : 1;
}
