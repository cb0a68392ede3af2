/* SPDX-License-Identifier: Apache-2.0 */
/* Source, PTX and cubin of a key without a context. */
#include <stdlib.h>

#include "api/context_private.h"
#include "base/error_build.h"

static enum gj_status make_unit(const struct gj_key *key, struct gj_plan *plan, struct gj_unit *unit,
                                gj_error **error)
{
    GJ_TRY(gj_key_check(key, error));
    gj_plan_make(key, plan);
    return gj_unit_make(plan, NULL, unit, error);
}

enum gj_status gj_source(const struct gj_key *key, char **source, size_t *bytes, gj_error **error)
{
    struct gj_plan plan;
    struct gj_unit unit = {0};
    GJ_TRY(make_unit(key, &plan, &unit, error));
    *source = unit.text;
    if (bytes != NULL)
        *bytes = unit.length;
    unit.text = NULL;
    gj_unit_free(&unit);
    return GJ_OK;
}

enum gj_status gj_compile(const struct gj_key *key, enum gj_image kind, void **image, size_t *bytes,
                          gj_error **error)
{
    struct gj_plan plan;
    struct gj_unit unit = {0};
    gj_compiler *compiler = NULL;
    struct gj_compile_result result = {0};
    enum gj_status status = make_unit(key, &plan, &unit, error);
    if (status == GJ_OK)
        status = gj_compiler_open(&compiler, error);
    if (status == GJ_OK)
        status = gj_unit_compile(compiler, &plan, &unit, kind, &result, error);
    if (status == GJ_OK) {
        *image = result.image;
        *bytes = result.bytes;
        free(result.log);
    }
    gj_compiler_close(&compiler);
    gj_unit_free(&unit);
    return status;
}
