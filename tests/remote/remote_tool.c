/* SPDX-License-Identifier: Apache-2.0 */
/* Drives src/remote by lines of its standard input: remote_tool URL UPLOAD(0|1) TOTAL_MS RETRY_MS
 *
 *   get NAME FILE   writes an entry that is a hit into FILE; prints `hit BYTES`, `miss` or `failed`
 *   put NAME FILE   queues a file; prints `queued`
 *   wait N          waits until N uploads were sent or dropped; prints `sent N dropped N`
 *   counts          prints `hits N misses N failures N`
 *
 * Messages of the log are lines `warning: ...` and `debug: ...`, before the line of the command in which they
 * came; at the end of the input the remote is closed and `closed` printed. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "remote/remote.h"

#define MAX_ENTRY ((size_t)64 << 20)

static void print_message(void *user, enum gj_log_level level, const char *message)
{
    (void)user;
    printf("%s: %s\n", level <= GJ_LOG_WARNING ? "warning" : "debug", message);
}

static void get(gj_remote *remote, const char *name, const char *path)
{
    static const char *const words[] = {
        [GJ_REMOTE_HIT] = "hit", [GJ_REMOTE_MISS] = "miss", [GJ_REMOTE_FAILED] = "failed"};
    void *data = NULL;
    size_t bytes = 0;
    const enum gj_remote_result result = gj_remote_get(remote, name, MAX_ENTRY, &data, &bytes);
    FILE *const file = result == GJ_REMOTE_HIT ? fopen(path, "wb") : NULL;
    if (file) {
        const size_t written = fwrite(data, 1, bytes, file);
        fclose(file);
        printf("hit %zu\n", written);
    } else {
        printf("%s\n", words[result]);
    }
    free(data);
}

static void put(gj_remote *remote, const char *name, const char *path)
{
    static unsigned char data[MAX_ENTRY];
    FILE *const file = fopen(path, "rb");
    if (!file)
        return;
    const size_t bytes = fread(data, 1, sizeof data, file);
    fclose(file);
    gj_remote_put(remote, name, data, bytes);
    printf("queued\n");
}

static void wait_for(const gj_remote *remote, unsigned long uploads)
{
    struct gj_remote_counts counts;
    for (int i = 0; i < 6000; i++) {
        gj_remote_counts(remote, &counts);
        if (counts.uploads + counts.upload_failures >= uploads)
            break;
        nanosleep(&(struct timespec){0, 5000000}, NULL);
    }
    printf("sent %lu dropped %lu\n", (unsigned long)counts.uploads, (unsigned long)counts.upload_failures);
}

static void obey(gj_remote *remote, const char *line)
{
    char name[256], path[2048];
    unsigned long number;
    if (sscanf(line, "get %255s %2047s", name, path) == 2) {
        get(remote, name, path);
    } else if (sscanf(line, "put %255s %2047s", name, path) == 2) {
        put(remote, name, path);
    } else if (sscanf(line, "wait %lu", &number) == 1) {
        wait_for(remote, number);
    } else {
        struct gj_remote_counts counts;
        gj_remote_counts(remote, &counts);
        printf("hits %lu misses %lu failures %lu\n", (unsigned long)counts.hits, (unsigned long)counts.misses,
               (unsigned long)counts.failures);
    }
}

int main(int argc, char **argv)
{
    if (argc != 5)
        return 2;
    setvbuf(stdout, NULL, _IOLBF, 0);
    const struct gj_remote_params params = {.url = argv[1],
                                            .upload = strcmp(argv[2], "1") == 0,
                                            .connect_ms = atoi(argv[3]),
                                            .total_ms = atoi(argv[3]),
                                            .retry_ms = atoi(argv[4])};
    const struct gj_log log = {print_message, NULL};
    char *reason = NULL;
    gj_remote *remote = gj_remote_open(&params, &log, &reason);
    if (!remote) {
        printf("%s\n", reason ? reason : "no memory");
        free(reason);
        return 1;
    }
    char line[4096];
    while (fgets(line, sizeof line, stdin))
        obey(remote, line);
    gj_remote_close(&remote);
    printf("closed\n");
    return 0;
}
