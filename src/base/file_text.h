/* SPDX-License-Identifier: Apache-2.0 */
/* Reads a whole file of bounded size. */
#ifndef GJ_BASE_FILE_TEXT_H
#define GJ_BASE_FILE_TEXT_H

#include <gemmjit/error.h>

#include "base/strbuf.h"

/* Reads a file of at most `most` bytes to its end; a pipe is as good as a regular file. The text ends in a
 * zero and is freed by the caller, also on failure.
 * Returns GJ_OK; GJ_ERR_ARGUMENT: it cannot be read or is larger; GJ_ERR_NO_MEMORY. */
enum gj_status gj_file_text_read(const char *path, size_t most, struct gj_strbuf *text, gj_error **error);

#endif
