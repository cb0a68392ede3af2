/* SPDX-License-Identifier: Apache-2.0 */
/* Reads a JSON document that a user wrote. */
#include "base/json.h"

#include "cli.h"

#define JSON_BYTES_MAX (16 << 20)

enum gj_status cli_json_read(const char *path, cJSON **document, gj_error **error)
{
    return gj_json_read(path, JSON_BYTES_MAX, document, error);
}
