/* SPDX-License-Identifier: Apache-2.0 */
/* Source, PTX and cubin of a key, without a cache. */
#include <stdlib.h>

#include "api/context_private.h"
#include "base/error_build.h"

static enum gj_status make_unit(gj_context *context, const struct gj_key *key, struct gj_plan *plan,
                                struct gj_unit *unit, gj_error **error)
{
    GJ_TRY(gj_key_check(key, error));
    gj_plan_make(key, plan);
    return gj_context_unit(context, plan, unit, error);
}

enum gj_status gj_context_source(gj_context *context, const struct gj_key *key, char **source, size_t *bytes,
                                 gj_error **error)
{
    struct gj_plan plan;
    struct gj_unit unit = {0};
    GJ_TRY(make_unit(context, key, &plan, &unit, error));
    *source = unit.text;
    if (bytes != NULL)
        *bytes = unit.length;
    unit.text = NULL;
    gj_unit_free(&unit);
    return GJ_OK;
}

enum gj_status gj_source(const struct gj_key *key, char **source, size_t *bytes, gj_error **error)
{
    return gj_context_source(NULL, key, source, bytes, error);
}

static enum gj_status compile_unit(gj_compiler *compiler, const struct gj_plan *plan,
                                   const struct gj_unit *unit, enum gj_image kind, void **image,
                                   size_t *bytes, gj_error **error)
{
    struct gj_compile_result result = {0};
    GJ_TRY(gj_unit_compile(compiler, plan, unit, kind, &result, error));
    *image = result.image;
    *bytes = result.bytes;
    free(result.log);
    return GJ_OK;
}

enum gj_status gj_context_compile(gj_context *context, const struct gj_key *key, enum gj_image kind,
                                  void **image, size_t *bytes, gj_error **error)
{
    struct gj_plan plan;
    struct gj_unit unit = {0};
    gj_compiler *compiler = NULL;
    enum gj_status status = make_unit(context, key, &plan, &unit, error);
    if (status == GJ_OK)
        status = gj_context_compiler(context, &compiler, error);
    if (status == GJ_OK)
        status = compile_unit(compiler, &plan, &unit, kind, image, bytes, error);
    gj_unit_free(&unit);
    return status;
}

enum gj_status gj_compile(const struct gj_key *key, enum gj_image kind, void **image, size_t *bytes,
                          gj_error **error)
{
    struct gj_plan plan;
    struct gj_unit unit = {0};
    gj_compiler *compiler = NULL;
    enum gj_status status = make_unit(NULL, key, &plan, &unit, error);
    if (status == GJ_OK)
        status = gj_compiler_open(&compiler, error);
    if (status == GJ_OK)
        status = compile_unit(compiler, &plan, &unit, kind, image, bytes, error);
    gj_compiler_close(&compiler);
    gj_unit_free(&unit);
    return status;
}
