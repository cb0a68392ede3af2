/* SPDX-License-Identifier: Apache-2.0 */
/* The one writer of stderr: whole lines, and below them a progress bar when stderr is a terminal. */
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/utf8.h"
#include "cli.h"

#define BAR_CELLS 24

struct cli_progress {
    pthread_mutex_t lock;
    bool terminal, shown;
    size_t done, total; /* total 0: nothing is being counted */
    double started_ms;
    char item[GJ_KEY_TEXT_MAX]; /* the last that was done */
};

struct cli_progress *cli_progress_open(void)
{
    struct cli_progress *const progress = calloc(1, sizeof(*progress));
    if (progress == NULL)
        return NULL;
    pthread_mutex_init(&progress->lock, NULL);
    const char *const type = getenv("TERM");
    progress->terminal = isatty(STDERR_FILENO) && type && strcmp(type, "dumb") != 0;
    return progress;
}

void cli_progress_close(struct cli_progress **progress)
{
    pthread_mutex_destroy(&(*progress)->lock);
    free(*progress);
    *progress = NULL;
}

/* -- Called with the lock held ------------------------------------------------------------------------- */

static int terminal_columns(void)
{
    struct winsize size;
    return ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

static void hide_bar(struct cli_progress *progress)
{
    if (progress->shown)
        fputs("\r\033[K", stderr);
    progress->shown = false;
}

static void show_bar(struct cli_progress *progress)
{
    if (!progress->terminal || progress->total == 0)
        return;
    char cells[BAR_CELLS + 1];
    const size_t filled = progress->done * BAR_CELLS / progress->total;
    memset(cells, '.', BAR_CELLS);
    memset(cells, '#', filled);
    cells[BAR_CELLS] = '\0';
    char line[GJ_KEY_TEXT_MAX + 96];
    snprintf(line, sizeof(line), "[%s] %zu of %zu, %.1f s  %s", cells, progress->done, progress->total,
             (gj_clock_ms() - progress->started_ms) / 1000, progress->item);
    fprintf(stderr, "\r\033[K%.*s", terminal_columns() - 1, line);
    fflush(stderr);
    progress->shown = true;
}

/* Control characters of a path or a key must not drive the terminal: C0, DEL, C1, and bytes that are no
 * UTF-8, which an 8-bit terminal may take for C1. */
static void put_line(char *text)
{
    for (char *at = text; *at;) {
        const size_t length = gj_utf8_length(at);
        const bool is_shown = length > 0 && (*at == '\t' || !gj_utf8_is_control(at, length));
        for (char *const end = at + (length ? length : 1); at < end; at++)
            if (!is_shown)
                *at = '?';
    }
    fputs(text, stderr);
    fputc('\n', stderr);
}

/* -- For everybody ------------------------------------------------------------------------------------- */

void cli_say(struct cli *cli, const char *format, ...)
{
    struct gj_strbuf line = {0};
    va_list args;
    va_start(args, format);
    gj_strbuf_vprintf(&line, format, args);
    va_end(args);
    struct cli_progress *const progress = cli->terminal;
    pthread_mutex_lock(&progress->lock);
    hide_bar(progress);
    if (line.failed)
        fputs("gemmjit: no memory for a message\n", stderr);
    else
        put_line(line.text);
    show_bar(progress);
    pthread_mutex_unlock(&progress->lock);
    gj_strbuf_free(&line);
}

void cli_progress_begin(struct cli *cli, size_t total)
{
    struct cli_progress *const progress = cli->terminal;
    if (cli->options.count[CLI_QUIET])
        return;
    pthread_mutex_lock(&progress->lock);
    progress->done = 0;
    progress->total = total;
    progress->started_ms = gj_clock_ms();
    show_bar(progress);
    pthread_mutex_unlock(&progress->lock);
}

void cli_progress_step(struct cli *cli, const char *item, const char *outcome)
{
    struct cli_progress *const progress = cli->terminal;
    pthread_mutex_lock(&progress->lock);
    if (progress->total > 0) {
        progress->done++;
        snprintf(progress->item, sizeof(progress->item), "%s", item);
        if (!progress->terminal)
            fprintf(stderr, "[%zu/%zu] %s: %s\n", progress->done, progress->total, item, outcome);
        show_bar(progress);
    }
    pthread_mutex_unlock(&progress->lock);
}

void cli_progress_end(struct cli *cli)
{
    struct cli_progress *const progress = cli->terminal;
    pthread_mutex_lock(&progress->lock);
    hide_bar(progress);
    progress->total = 0;
    pthread_mutex_unlock(&progress->lock);
}
