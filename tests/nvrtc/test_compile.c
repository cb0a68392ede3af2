/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of compiling with the libnvrtc that this machine has; skipped (77) when it has none. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/env.h"
#include "base/error_build.h"
#include "compile/compile.h"
#include "compile/cubin.h"

#define NUM_THREADS 4

static gj_compiler *compiler;

static const char plain_unit[] =
    "extern \"C\" __global__ void __launch_bounds__(128, 1) k(float *p, float x)\n"
    "{\n"
    "    __shared__ float s[128];\n"
    "    s[threadIdx.x] = x;\n"
    "    __syncthreads();\n"
    "    p[threadIdx.x] = s[threadIdx.x ^ 5];\n"
    "}\n";

/* The same wgmma with pieces missing or added: what the remarks are about. */
#define WGMMA_UNIT(before, after)                                                                            \
    "typedef unsigned long long u64;\n"                                                                      \
    "extern \"C\" __device__ int printf(const char *, ...);\n"                                               \
    "__device__ __forceinline__ void mma(float (&d)[4], u64 a, u64 b)\n"                                     \
    "{\n"                                                                                                    \
    "    asm volatile(R\"ptx(\n"                                                                             \
    "        // ptx_snippets/wgmma.cuh wgmma_m64n8k16\n"                                                     \
    "        wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {%0, %1, %2, %3}, %4, %5, 1, 1, 1, 0, 0;\n" \
    "    )ptx\" : \"+f\"(d[0]), \"+f\"(d[1]), \"+f\"(d[2]), \"+f\"(d[3]) : \"l\"(a), \"l\"(b));\n"           \
    "}\n"                                                                                                    \
    "extern \"C\" __global__ void __launch_bounds__(128, 1) k(float *p, u64 a, u64 b)\n"                     \
    "{\n"                                                                                                    \
    "    float d[4] = {0, 0, 0, 0};\n"                                                                       \
    "    asm volatile(\"wgmma.fence.sync.aligned;\" ::: \"memory\");\n"                                      \
    "    mma(d, a, b);\n"                                                                                    \
    "    asm volatile(\"wgmma.commit_group.sync.aligned;\" ::: \"memory\");\n"                               \
    "    " before "\n"                                                                                       \
    "    p[threadIdx.x] = d[0] + d[1] + d[2] + d[3];\n"                                                      \
    "    " after "\n"                                                                                        \
    "}\n"
#define WAIT "asm volatile(\"wgmma.wait_group.sync.aligned 0;\" ::: \"memory\");"

static const char local_unit[] = "extern \"C\" __global__ void __launch_bounds__(128, 1) k(float *p, int i)\n"
                                 "{\n"
                                 "    float d[64];\n"
                                 "#pragma unroll 1\n"
                                 "    for (int j = 0; j < 64; j++)\n"
                                 "        d[(j * i) & 63] = p[j];\n"
                                 "    p[i] = d[i & 63];\n"
                                 "}\n";

static const char bad_ptx_unit[] = "__device__ __forceinline__ int bad()\n"
                                   "{\n"
                                   "    int x;\n"
                                   "    asm volatile(R\"ptx(\n"
                                   "        // ptx_snippets/mbarrier.cuh mbarrier_wait\n"
                                   "        mov.b32 %0, 1;\n"
                                   "        bogus.op %0;\n"
                                   "    )ptx\" : \"=r\"(x));\n"
                                   "    return x;\n"
                                   "}\n"
                                   "extern \"C\" __global__ void k(int *p) { p[0] = bad(); }\n";

/* A map that says: line n of the unit is line n + 1000 of templates/fake.cuh, except line 4. */
static bool find_line(const void *map, int unit_line, struct gj_location *location)
{
    if (unit_line == 4)
        return false;
    location->file = map;
    location->line = unit_line + 1000;
    location->excerpt = "from the map";
    return true;
}

static struct gj_compile_request request_for(const char *unit, enum gj_image kind)
{
    return (struct gj_compile_request){
        .unit = unit,
        .name = "test_unit",
        .entry_name = "k",
        .kind = kind,
        .lines = {find_line, "templates/fake.cuh"},
    };
}

static struct gj_compile_result compile(const struct gj_compile_request *request)
{
    struct gj_compile_result result = {.image = NULL};
    gj_error *error = NULL;
    const enum gj_status status = gj_compiler_run(compiler, request, &result, &error);
    if (status != GJ_OK)
        fail_msg("%s: %s\n%s", gj_status_name(status), error->message, error->detail);
    assert_null(error);
    assert_non_null(result.image);
    assert_non_null(result.log);
    return result;
}

static void free_result(struct gj_compile_result *result)
{
    free(result->image);
    free(result->log);
}

/* Runs a compile that must fail and leave the result alone. */
static gj_error *refuse(const struct gj_compile_request *request)
{
    struct gj_compile_result result = {.bytes = 77};
    gj_error *error = NULL;
    assert_int_equal(gj_compiler_run(compiler, request, &result, &error), GJ_ERR_COMPILE);
    assert_non_null(error);
    assert_int_equal(error->status, GJ_ERR_COMPILE);
    assert_int_equal(error->stage, GJ_STAGE_COMPILE);
    assert_null(result.image);
    assert_int_equal(result.bytes, 77);
    assert_non_null(strstr(error->detail, gj_compile_options()));
    assert_int_equal(gj_compiler_run(compiler, request, &result, NULL), GJ_ERR_COMPILE);
    return error;
}

static void assert_contains(const char *text, const char *part)
{
    assert_non_null(text);
    if (!strstr(text, part))
        fail_msg("\"%s\" is not in \"%s\"", part, text);
}

/* -- What works ------------------------------------------------------------------------------------------ */

static void cubin_and_its_facts(void **state)
{
    (void)state;
    const struct gj_compile_request request = request_for(plain_unit, GJ_IMAGE_CUBIN);
    struct gj_compile_result result = compile(&request);
    assert_in_range(result.registers, 1, 255);
    assert_int_equal(result.spill_bytes, 0);
    assert_int_equal(result.max_threads, 128);
    assert_true(result.compile_ms > 0);
    assert_contains(result.log, "registers"); /* --ptxas-options=-v is in force */

    struct gj_cubin_facts facts;
    assert_int_equal(gj_cubin_read(result.image, result.bytes, "k", &facts, NULL), GJ_OK);
    assert_int_equal(facts.sm, 90);
    assert_int_equal(facts.num_entries, 1);
    assert_int_equal(facts.static_smem_bytes, 512);
    assert_int_equal(facts.param_bytes, 12);
    assert_int_equal(facts.num_barriers, 1);
    free_result(&result);
}

static void ptx_is_text(void **state)
{
    (void)state;
    const struct gj_compile_request request = request_for(plain_unit, GJ_IMAGE_PTX);
    struct gj_compile_result result = compile(&request);
    const char *const ptx = result.image;
    assert_int_equal(strlen(ptx), result.bytes);
    assert_contains(ptx, ".target sm_90a");
    assert_contains(ptx, ".entry k(");
    assert_int_equal(result.registers, 0);
    free_result(&result);
}

static void wgmma_is_counted(void **state)
{
    (void)state;
    struct gj_compile_request request = request_for(WGMMA_UNIT(WAIT, ""), GJ_IMAGE_CUBIN);
    request.mma_per_tile = 1;
    struct gj_compile_result result = compile(&request);
    struct gj_cubin_facts facts;
    assert_int_equal(gj_cubin_read(result.image, result.bytes, "k", &facts, NULL), GJ_OK);
    assert_int_equal(facts.census.mma, 1);
    free_result(&result);

    request.mma_per_tile = 2;
    gj_error *error = refuse(&request);
    assert_contains(error->message, "has 1 wgmma instructions, the plan needs at least 2");
    gj_error_free(&error);
}

static void local_memory_up_to_the_plan(void **state)
{
    (void)state;
    struct gj_compile_request request = request_for(local_unit, GJ_IMAGE_CUBIN);
    gj_error *error = refuse(&request);
    assert_contains(error->message, "256 bytes per thread in local memory");
    gj_error_free(&error);
    request.max_spill_bytes = 255;
    error = refuse(&request);
    gj_error_free(&error);
    request.max_spill_bytes = 256;
    struct gj_compile_result result = compile(&request);
    assert_int_equal(result.spill_bytes, 256);
    free_result(&result);
}

/* -- What NVRTC refuses ---------------------------------------------------------------------------------- */

static void front_end_error_is_mapped(void **state)
{
    (void)state;
    const struct gj_compile_request request = request_for("extern \"C\" __global__ void k(int *p)\n"
                                                          "{\n"
                                                          "    p[0] = nope;\n"
                                                          "    p[1] = neither;\n"
                                                          "}\n",
                                                          GJ_IMAGE_CUBIN);
    gj_error *error = refuse(&request);
    assert_int_equal(error->origin_code, 6);
    assert_string_equal(error->origin_name, "NVRTC_ERROR_COMPILATION");
    assert_contains(error->message, "test_unit");
    assert_contains(error->message, "unit line 3: identifier \"nope\" is undefined (first of 2 errors)");
    assert_contains(error->detail, "test_unit(4): error: identifier \"neither\" is undefined");
    assert_int_equal(error->num_locations, 2);
    assert_string_equal(error->locations[0].file, "templates/fake.cuh");
    assert_int_equal(error->locations[0].line, 1003);
    assert_int_equal(error->locations[0].unit_line, 3);
    assert_string_equal(error->locations[0].message, "identifier \"nope\" is undefined");
    assert_string_equal(error->locations[0].excerpt, "from the map");
    /* The map does not know line 4: the unit itself is named. */
    assert_string_equal(error->locations[1].file, "test_unit");
    assert_int_equal(error->locations[1].line, 4);
    assert_string_equal(error->locations[1].excerpt, "p[1] = neither;");
    gj_error_free(&error);
}

static void bad_ptx_is_mapped_to_its_snippet(void **state)
{
    (void)state;
    struct gj_compile_request request = request_for(bad_ptx_unit, GJ_IMAGE_CUBIN);
    gj_error *error = refuse(&request);
    assert_true(error->num_locations >= 1);
    assert_string_equal(error->locations[0].file, "templates/fake.cuh");
    assert_int_equal(error->locations[0].line, 1007);
    assert_int_equal(error->locations[0].unit_line, 7);
    assert_contains(error->locations[0].excerpt, "bogus.op %r");
    gj_error_free(&error);

    /* Without a map the signature alone names the file. */
    request.lines = (struct gj_line_lookup){NULL, NULL};
    error = refuse(&request);
    assert_string_equal(error->locations[0].file, "ptx_snippets/mbarrier.cuh");
    assert_int_equal(error->locations[0].unit_line, 7);
    gj_error_free(&error);
}

static void entry_must_exist(void **state)
{
    (void)state;
    struct gj_compile_request request = request_for(plain_unit, GJ_IMAGE_CUBIN);
    request.entry_name = "other";
    gj_error *error = refuse(&request);
    assert_contains(error->message, "no entry other; it has: k");
    gj_error_free(&error);
}

/* -- What NVRTC lets pass -------------------------------------------------------------------------------- */

static void remark_fails(const char *unit, const char *word)
{
    const struct gj_compile_request request = request_for(unit, GJ_IMAGE_CUBIN);
    gj_error *error = refuse(&request);
    assert_contains(error->message, "compiled, but with C75");
    assert_contains(error->message, word);
    assert_contains(error->detail, "(C75");
    gj_error_free(&error);
}

static void missing_wait(void **state)
{
    (void)state;
    /* C7517 since 12.8; NVRTC 12.3 serialises instead (C7514) and names no line. */
    remark_fails(WGMMA_UNIT("", ""), "wgmma");
}

static void printf_in_the_kernel(void **state)
{
    (void)state;
    remark_fails(WGMMA_UNIT(WAIT, "if (p[0] == 3.f) printf(\"%d\", 3);"), "wgmma serialised");
}

static void setmaxnreg_without_bounds(void **state)
{
    (void)state;
    remark_fails("extern \"C\" __global__ void k(float *p)\n"
                 "{\n"
                 "    asm volatile(\"setmaxnreg.inc.sync.aligned.u32 240;\");\n"
                 "    p[0] = 1;\n"
                 "}\n",
                 "setmaxnreg ignored");
}

/* -- Threads --------------------------------------------------------------------------------------------- */

struct worker {
    pthread_t thread;
    enum gj_status good, bad;
    struct gj_compile_result result;
    gj_error *error;
};

/* No cmocka assertion in here: they belong to the main thread. */
static void *work(void *argument)
{
    struct worker *const worker = argument;
    const struct gj_compile_request good = request_for(plain_unit, GJ_IMAGE_CUBIN);
    const struct gj_compile_request bad = request_for(bad_ptx_unit, GJ_IMAGE_CUBIN);
    worker->good = gj_compiler_run(compiler, &good, &worker->result, NULL);
    struct gj_compile_result none;
    worker->bad = gj_compiler_run(compiler, &bad, &none, &worker->error);
    return NULL;
}

static void threads_share_a_compiler(void **state)
{
    (void)state;
    struct worker workers[NUM_THREADS] = {0};
    for (int i = 0; i < NUM_THREADS; i++)
        assert_int_equal(pthread_create(&workers[i].thread, NULL, work, &workers[i]), 0);
    for (int i = 0; i < NUM_THREADS; i++)
        assert_int_equal(pthread_join(workers[i].thread, NULL), 0);
    for (int i = 0; i < NUM_THREADS; i++) {
        assert_int_equal(workers[i].good, GJ_OK);
        assert_int_equal(workers[i].bad, GJ_ERR_COMPILE);
        assert_int_equal(workers[i].result.bytes, workers[0].result.bytes);
        assert_memory_equal(workers[i].result.image, workers[0].result.image, workers[0].result.bytes);
        assert_int_equal(workers[i].error->locations[0].unit_line, 7);
    }
    for (int i = 0; i < NUM_THREADS; i++) {
        free_result(&workers[i].result);
        gj_error_free(&workers[i].error);
    }
}

int main(void)
{
    /* Only a machine without the library skips: one that is found or named and cannot be used is a failure.
     */
    struct gj_compiler_identity identity;
    gj_error *error = NULL;
    const bool located = gj_compiler_locate(&identity) || gj_env_get(GJ_ENV_NVRTC);
    if (gj_compiler_open(&compiler, &error) != GJ_OK) {
        fprintf(stderr, "%s: %s\n", located ? "failed" : "skipped", error ? error->message : "no memory");
        gj_error_free(&error);
        return located ? 1 : 77;
    }
    printf("%s at %s\n", gj_compiler_version(compiler), gj_compiler_path(compiler));
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cubin_and_its_facts),       cmocka_unit_test(ptx_is_text),
        cmocka_unit_test(wgmma_is_counted),          cmocka_unit_test(local_memory_up_to_the_plan),
        cmocka_unit_test(front_end_error_is_mapped), cmocka_unit_test(bad_ptx_is_mapped_to_its_snippet),
        cmocka_unit_test(entry_must_exist),          cmocka_unit_test(missing_wait),
        cmocka_unit_test(printf_in_the_kernel),      cmocka_unit_test(setmaxnreg_without_bounds),
        cmocka_unit_test(threads_share_a_compiler),
    };
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    gj_compiler_close(&compiler);
    return failed;
}
