/* SPDX-License-Identifier: Apache-2.0 */
/* Contexts over caches with invented cubins. */
#include "kernel_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "compile/compile.h"
#include "generate/unit.h"

void kernels_open(struct kernels *kernels)
{
    scratch_make(&kernels->scratch);
    setenv("GEMMJIT_NVRTC", "/nonexistent/libnvrtc.so", 1);
    const struct gj_context_params params = {.cache_dir = kernels->scratch.root.text};
    kernels->context = NULL;
    assert_int_equal(gj_context_open(&params, &kernels->context, NULL), GJ_OK);
}

void kernels_close(struct kernels *kernels)
{
    gj_context_close(&kernels->context);
    assert_null(kernels->context);
    scratch_remove(&kernels->scratch);
}

struct gj_key key_of(const char *text)
{
    struct gj_key key;
    assert_int_equal(gj_key_parse(text, &key, NULL), GJ_OK);
    return key;
}

struct gj_plan plan_of(const char *text)
{
    const struct gj_key key = key_of(text);
    struct gj_plan plan;
    gj_plan_make(&key, &plan);
    return plan;
}

void kernels_add(struct kernels *kernels, const struct gj_key *key)
{
    char text[GJ_KEY_TEXT_MAX], cubin[GJ_KEY_TEXT_MAX + 16];
    struct gj_plan plan;
    struct gj_unit unit = {0};
    gj_key_format(key, text, sizeof text);
    gj_plan_make(key, &plan);
    assert_int_equal(gj_unit_make(&plan, NULL, NULL, &unit, NULL), GJ_OK);
    const int cubin_bytes = snprintf(cubin, sizeof cubin, "cubin of %s", text);
    const struct gj_cache_entry entry = {
        .key_text = text,
        .unit_hash = gj_hash_bytes(unit.text, unit.length),
        .compiler = FIXTURE_COMPILER,
        .arch = GJ_COMPILE_ARCH,
        .options = gj_compile_options(),
        .entry_name = plan.entry_name,
        .registers = 168,
        .threads = plan.threads,
        .smem_bytes = plan.smem_bytes,
        .stages = plan.stages,
        .cubin = cubin,
        .cubin_bytes = (size_t)cubin_bytes,
    };
    gj_unit_free(&unit);
    const struct gj_cache_name name =
        gj_cache_name_make(&entry.unit_hash, entry.compiler, entry.arch, entry.options);
    assert_true(gj_cache_store(kernels->scratch.cache, &name, &entry) > 0);
    gj_cache_compiler_put(kernels->scratch.cache, "", FIXTURE_COMPILER);
}

gj_kernel *kernels_get(struct kernels *kernels, const char *key_text)
{
    const struct gj_key key = key_of(key_text);
    gj_kernel *kernel = NULL;
    kernels_add(kernels, &key);
    assert_int_equal(gj_kernel_get(kernels->context, &key, 0, &kernel, NULL), GJ_OK);
    assert_non_null(kernel);
    return kernel;
}

void check_error(enum gj_status status, enum gj_status expected, gj_error **error, ...)
{
    if (status != expected)
        fail_msg("%s: %s", gj_status_name(status), *error ? (*error)->message : "");
    assert_non_null(*error);
    assert_int_equal((*error)->status, expected);
    va_list words;
    va_start(words, error);
    for (const char *word; (word = va_arg(words, const char *)) != NULL;)
        if (strstr((*error)->message, word) == NULL)
            fail_msg("\"%s\" is not in \"%s\"", word, (*error)->message);
    va_end(words);
    gj_error_free(error);
}
