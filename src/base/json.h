/* SPDX-License-Identifier: Apache-2.0 */
/* JSON documents from outside, by cJSON. */
#ifndef GJ_BASE_JSON_H
#define GJ_BASE_JSON_H

#include <cjson/cJSON.h>
#include <stddef.h>

#include <gemmjit/error.h>

#include "base/strbuf.h"

/* Parses a text; name is what messages call it. What is no JSON is told with line and column; so is a zero
 * byte, also as \u0000. The caller deletes *document.
 * Returns GJ_OK; GJ_ERR_ARGUMENT. Lack of memory shows as a text that is no JSON. */
enum gj_status gj_json_parse(const char *name, const struct gj_strbuf *text, cJSON **document,
                             gj_error **error);

/* The same of a file of at most `most` bytes. Also returns as gj_file_text_read. */
enum gj_status gj_json_read(const char *path, size_t most, cJSON **document, gj_error **error);

#endif
