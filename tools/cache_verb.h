/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of gemmjit cache share: actions on an open cache. */
#ifndef GJ_TOOLS_CACHE_VERB_H
#define GJ_TOOLS_CACHE_VERB_H

#include "cache/cache.h"
#include "cli.h"

/* Fails with errno: the cache cannot be read, or `what` else. */
enum gj_status cache_fail(const gj_cache *cache, const char *what, int code, gj_error **error);
/* Tells what a listing could not read: a line, the exit status, and the document if there is one. Frees the
 * scan. */
void cache_report_scan(struct cli *cli, const gj_cache *cache, cJSON *document, struct gj_cache_scan *scan);

/* trim --max-size SIZE [--dry-run] (cli_cache_trim.c) */
enum gj_status cache_trim(struct cli *cli, gj_cache *cache, gj_error **error);
/* why --key TEXT (cli_cache_why.c) */
enum gj_status cache_why(struct cli *cli, gj_cache *cache, gj_error **error);
/* pack FILE and unpack FILE (cli_cache_pack.c) */
enum gj_status cache_pack(struct cli *cli, gj_cache *cache, gj_error **error);
enum gj_status cache_unpack(struct cli *cli, gj_cache *cache, gj_error **error);

#endif
