/* SPDX-License-Identifier: Apache-2.0 */
/* The gemmjit command: reads the line, runs the verb, writes its output, ends with the fixed exit status. */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli.h"

/* Help and version come before any other check of the line. Returns whether one was asked for. */
static bool answer(struct cli *cli)
{
    if (cli->options.count[CLI_HELP])
        cli_help_add(&cli->out, cli->verb);
    else if (cli->options.count[CLI_VERSION])
        gj_strbuf_printf(&cli->out, "gemmjit %s\n", gj_version());
    else
        return false;
    return true;
}

static enum gj_status run(struct cli *cli, int argc, char **argv, gj_error **error)
{
    GJ_TRY(cli_options_read(cli, argc, argv, error));
    if (answer(cli))
        return GJ_OK;
    if (cli->verb == NULL)
        GJ_FAIL(error, GJ_ERR_ARGUMENT, GJ_STAGE_NONE, "no verb is given; gemmjit --help lists them");
    if (cli->options.count[CLI_NO_CACHE] && cli->options.count[CLI_CACHE_DIR])
        GJ_FAIL(error, GJ_ERR_ARGUMENT, GJ_STAGE_NONE, "--no-cache and --cache-dir contradict each other");
    return cli->verb->run(cli, error);
}

/* An error of the command line itself is told in JSON too, so --json is looked for before reading it. */
static bool wants_json(int argc, char **argv)
{
    for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++)
        if (strcmp(argv[i], "--json") == 0)
            return true;
    return false;
}

/* A standard stream that is closed would be the next file that is opened, and get what is said there. stdout
 * is opened for reading, so that writing a result there still fails. */
static bool open_standard_streams(void)
{
    static const int modes[] = {
        [STDIN_FILENO] = O_RDONLY, [STDOUT_FILENO] = O_RDONLY, [STDERR_FILENO] = O_WRONLY};
    for (int i = STDIN_FILENO; i <= STDERR_FILENO; i++)
        if (fcntl(i, F_GETFD) < 0 && open("/dev/null", modes[i]) != i)
            return false;
    return true;
}

int main(int argc, char **argv)
{
    if (!open_standard_streams())
        return CLI_EXIT_FAILED; /* there is nowhere to say it */
    signal(SIGXFSZ, SIG_IGN);   /* a file that may not grow is a failed write, not the end */
    cli_build_tree_use();
    struct cli cli = {.json = wants_json(argc, argv), .terminal = cli_progress_open()};
    if (cli.terminal == NULL) {
        fputs("gemmjit: no memory\n", stderr);
        return CLI_EXIT_FAILED;
    }
    gj_error *error = NULL;
    enum gj_status status = run(&cli, argc, argv, &error);
    int exit_status = cli.exit_status;
    if (status == GJ_OK)
        status = cli_output_write(&cli, &error);
    if (status != GJ_OK) {
        cli_report_error(&cli, status, error);
        exit_status = cli_exit_status(status);
    }
    gj_error_free(&error);
    gj_strbuf_free(&cli.out);
    gj_strbuf_free(&cli.options.fields);
    gj_strbuf_free(&cli.own_text);
    free(cli.options.keys);
    free(cli.options.files);
    cli_progress_close(&cli.terminal);
    return exit_status;
}
