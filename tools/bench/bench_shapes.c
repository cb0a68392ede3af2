/* SPDX-License-Identifier: Apache-2.0 */
/* Reads a list of shapes. */
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "bench.h"
#include "cuda/args.h"

#define FAIL_SHAPES(error, ...) GJ_FAIL(error, GJ_ERR_ARGUMENT, GJ_STAGE_NONE, __VA_ARGS__)

static const char *const names[] = {"m", "n", "k", "batch"};
enum { NUM_NAMES = sizeof(names) / sizeof(names[0]) };

static int64_t *extent_of(struct bench_shape *shape, int i)
{
    int64_t *const extents[NUM_NAMES] = {&shape->m, &shape->n, &shape->k, &shape->batch};
    return extents[i];
}

static enum gj_status read_member(const char *path, int index, const cJSON *member, struct bench_shape *shape,
                                  gj_error **error)
{
    int i = 0;
    while (i < NUM_NAMES && strcmp(member->string, names[i]) != 0)
        i++;
    if (i == NUM_NAMES)
        FAIL_SHAPES(error, "%s: shape %d: unknown member \"%s\": the members are m, n, k, batch", path, index,
                    gj_utf8_quote(member->string, strlen(member->string)).text);
    int64_t *const extent = extent_of(shape, i);
    const double value = member->valuedouble;
    if (*extent != 0)
        FAIL_SHAPES(error, "%s: shape %d: member %s is given twice", path, index, names[i]);
    if (!cJSON_IsNumber(member) || !(value >= 1 && value <= GJ_EXTENT_MAX) || (double)(int64_t)value < value)
        FAIL_SHAPES(error, "%s: shape %d: %s is not a whole number from 1 to %d", path, index, names[i],
                    GJ_EXTENT_MAX);
    *extent = (int64_t)value;
    return GJ_OK;
}

static enum gj_status read_shape(const char *path, int index, const cJSON *item, struct bench_shape *shape,
                                 gj_error **error)
{
    if (!cJSON_IsObject(item))
        FAIL_SHAPES(error, "%s: shape %d is not an object with the members m, n and k", path, index);
    for (const cJSON *member = item->child; member; member = member->next)
        GJ_TRY(read_member(path, index, member, shape, error));
    if (shape->batch == 0)
        shape->batch = 1;
    for (int i = 0; i < NUM_NAMES; i++)
        if (*extent_of(shape, i) == 0)
            FAIL_SHAPES(error, "%s: shape %d: member %s is missing", path, index, names[i]);
    return GJ_OK;
}

static enum gj_status read_shapes(const char *path, const cJSON *document, struct bench_shape *shapes,
                                  gj_error **error)
{
    int index = 0;
    for (const cJSON *item = document->child; item; item = item->next, index++)
        GJ_TRY(read_shape(path, index, item, &shapes[index], error));
    return GJ_OK;
}

enum gj_status bench_shapes_read(const char *path, struct bench_shape **shapes, size_t *num_shapes,
                                 gj_error **error)
{
    cJSON *document = NULL;
    struct bench_shape *read = NULL;
    enum gj_status status = cli_json_read(path, &document, error);
    if (status == GJ_OK && (!cJSON_IsArray(document) || document->child == NULL))
        status = gj_error_make(error, GJ_ERR_ARGUMENT, GJ_STAGE_NONE, 0, "",
                               "%s: the document is not an array with at least one shape", path);
    const size_t count = status == GJ_OK ? (size_t)cJSON_GetArraySize(document) : 0;
    if (status == GJ_OK && (read = calloc(count, sizeof(*read))) == NULL)
        status =
            gj_error_make(error, GJ_ERR_NO_MEMORY, GJ_STAGE_NONE, 0, "", "no memory for %zu shapes", count);
    if (status == GJ_OK)
        status = read_shapes(path, document, read, error);
    cJSON_Delete(document);
    if (status != GJ_OK) {
        free(read);
        return status;
    }
    *shapes = read;
    *num_shapes = count;
    return GJ_OK;
}
