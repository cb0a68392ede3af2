/* SPDX-License-Identifier: Apache-2.0 */
/* Configs of models. What is read has numbers in their ranges, and for every degree of tensor parallelism
 * that divides it problems with extents in theirs; another member in it changes nothing. A refusal names the
 * file, and a place within it where it is no JSON. */
#include "fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "../../tools/model.h"
#include "cuda/args.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static void check_problems(struct model *model)
{
    gj_error *error = NULL;
    const enum gj_status status = model_list(model, &error);
    REQUIRE(status == GJ_OK || status == GJ_ERR_ARGUMENT); /* an extent that is too large */
    REQUIRE((status == GJ_OK) == (error == NULL));
    REQUIRE(status != GJ_OK || model->num_problems > 0);
    for (size_t i = 0; i < model->num_problems; i++) {
        const struct model_problem *const problem = &model->problems[i];
        REQUIRE(problem->n >= 1 && problem->n <= GJ_EXTENT_MAX);
        REQUIRE(problem->k >= 1 && problem->k <= GJ_EXTENT_MAX);
        REQUIRE(problem->n_formula[0] != '\0' && problem->k_formula[0] != '\0' && problem->weight[0] != '\0');
        const size_t length = strnlen(problem->place, sizeof problem->place);
        REQUIRE(length > 0 && length < sizeof problem->place);
        struct gj_key key;
        char text[GJ_KEY_TEXT_MAX];
        gj_key_format(&problem->problem, text, sizeof text);
        REQUIRE(gj_key_parse(text, &key, NULL) == GJ_OK && memcmp(&key, &problem->problem, sizeof key) == 0);
    }
    if (error)
        fuzz_check_error(error, status);
    gj_error_free(&error);
    model_free(model);
}

static void check_split(const struct model *read, int64_t tp, bool fp8)
{
    struct model model = *read;
    gj_error *error = NULL;
    model.tp = tp;
    model.fp8 = fp8;
    const enum gj_status status = model_split(&model, &error);
    REQUIRE(tp > 1 || status == GJ_OK);
    if (status == GJ_OK) {
        REQUIRE(error == NULL && model.heads * tp == model.values[MODEL_HEADS]);
        REQUIRE(model.vocab >= 1 && model.vocab * tp >= model.values[MODEL_VOCAB_SIZE]);
        REQUIRE(model.vocab * tp < model.values[MODEL_VOCAB_SIZE] + 64);
        check_problems(&model);
    } else {
        fuzz_check_error(error, GJ_ERR_ARGUMENT);
    }
    gj_error_free(&error);
}

static void check_accepted(const struct model *model)
{
    static const int64_t degrees[] = {1, 2, 3, 8, 1024};
    REQUIRE(model->architecture != NULL && model->parts != 0);
    REQUIRE(model->dtype == GJ_DTYPE_BF16 || model->dtype == GJ_DTYPE_F16);
    for (int i = 0; i < MODEL_NUM_MEMBERS; i++) {
        REQUIRE(model->values[i] >= 0 && model->values[i] <= INT32_MAX);
        REQUIRE(model->values[i] > 0 || !(model->architecture->required & (1u << i)) ||
                i == MODEL_FIRST_DENSE);
    }
    REQUIRE(model->first_experts <= model->values[MODEL_NUM_LAYERS]);
    for (size_t i = 0; i < COUNT(degrees); i++)
        check_split(model, degrees[i], i % 2);
}

/* Without a member head_dim the heads share the columns. */
static void check_heads(const struct model *model, const uint8_t *data, size_t size)
{
    const bool is_given = memmem(data, size, "head_dim", 8) || memchr(data, '\\', size);
    if (!is_given && (model->parts & (1u << MODEL_GQA)))
        REQUIRE(model->values[MODEL_HEAD_DIM] * model->values[MODEL_HEADS] ==
                model->values[MODEL_HIDDEN_SIZE]);
}

/* The bytes with a member more that does not count. */
static void check_more(const struct model *model, const uint8_t *data, size_t size)
{
    static const char more[] = "\"more\":[{\"hidden_size\":-1}],";
    uint8_t *const longer = malloc(size + sizeof more);
    const uint8_t *const open = memchr(data, '{', size);
    REQUIRE(longer != NULL && open != NULL);
    const size_t before = (size_t)(open - data) + 1;
    memcpy(longer, data, before);
    memcpy(longer + before, more, sizeof more - 1);
    memcpy(longer + before + sizeof more - 1, data + before, size - before);
    struct fuzz_file file = fuzz_file_make(longer, size + sizeof more - 1);
    struct model other = {.path = file.path};
    REQUIRE(model_read(&other, NULL) == GJ_OK);
    REQUIRE(other.architecture == model->architecture && other.parts == model->parts);
    REQUIRE(memcmp(other.values, model->values, sizeof other.values) == 0 && other.dtype == model->dtype);
    fuzz_file_close(&file);
    free(longer);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    gj_error *error = NULL;
    fuzz_memory_of_cjson();
    struct fuzz_file file = fuzz_file_make(data, size);
    struct model model = {.path = file.path};
    fuzz_memory_begin();
    const enum gj_status status = model_read(&model, &error);
    if (status == GJ_OK) {
        REQUIRE(error == NULL);
        check_accepted(&model);
        check_heads(&model, data, size);
        check_more(&model, data, size);
    } else {
        REQUIRE(status == GJ_ERR_ARGUMENT);
        fuzz_check_json_error(error, file.path, data, size);
    }
    gj_error_free(&error);
    REQUIRE(fuzz_memory_end() <= 192 * size + 65536); /* as of a manifest */
    fuzz_file_close(&file);
    return 0;
}

size_t fuzz_seed(size_t idx, uint8_t data[FUZZ_SEED_MAX])
{
    (void)idx, (void)data; /* tests/data/models has them */
    return 0;
}
