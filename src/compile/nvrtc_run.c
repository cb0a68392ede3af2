/* SPDX-License-Identifier: Apache-2.0 */
/* One compile: program, log, image, and the checks without which the image must not be used. */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/error_build.h"
#include "base/strbuf.h"
#include "compile/compile.h"
#include "compile/cubin.h"
#include "compile/diagnose.h"
#include "compile/nvrtc_api.h"

/* Every option with the first NVRTC that takes it; an older one refuses the whole compile. Those that came
 * later than GJ_NVRTC_MIN change no byte of the cubin: --minimal leaves out declarations that a unit without
 * headers does not use (3 to 5 ms), --no-cache keeps the driver's own result cache out of the way. So the
 * text of all of them names the result whichever version is installed. -default-device is for users' own
 * functions, which need no __device__. */
#define OPTION_LIST(X)                 \
    X("-arch=" GJ_COMPILE_ARCH, 12, 0) \
    X("-std=c++17", 12, 0)             \
    X("-default-device", 12, 0)        \
    X("--minimal", 12, 4)              \
    X("--ptxas-options=-v", 12, 0)     \
    X("--no-cache", 12, 9)

static const struct {
    const char *text;
    int major, minor;
} options[] = {
#define ROW(text, major, minor) {text, major, minor},
    OPTION_LIST(ROW)
#undef ROW
};
#define NUM_OPTIONS (sizeof(options) / sizeof(options[0]))

const char *gj_compile_options(void)
{
#define SPACED(text, major, minor) " " text
    static const char joined[] = OPTION_LIST(SPACED);
#undef SPACED
    return joined + 1;
}

/* A compile in progress. */
struct job {
    const gj_compiler *compiler;
    const struct gj_compile_request *request;
    const char *name; /* what NVRTC calls the unit */
    nvrtcProgram program;
    char *log;
};

static enum gj_status fail_call(const struct job *job, const char *call, nvrtcResult result, gj_error **error)
{
    const enum gj_status status = result == NVRTC_ERROR_OUT_OF_MEMORY ? GJ_ERR_NO_MEMORY : GJ_ERR_COMPILE;
    return gj_error_make(error, status, GJ_STAGE_COMPILE, (int)result,
                         job->compiler->api.nvrtcGetErrorString(result), "%s failed for %s", call, job->name);
}

static enum gj_status fail_memory(const struct job *job, gj_error **error)
{
    GJ_FAIL(error, GJ_ERR_NO_MEMORY, GJ_STAGE_COMPILE, "no memory for what NVRTC made of %s", job->name);
}

/* The log, the PTX and the cubin come by the same pair of calls. */
struct product {
    const char *size_call, *call;
    nvrtcResult (*size)(nvrtcProgram program, size_t *bytes);
    nvrtcResult (*get)(nvrtcProgram program, char *data);
};

/* *data is freed with free and has a zero behind its *bytes. */
static enum gj_status fetch(const struct job *job, const struct product *product, char **data, size_t *bytes,
                            gj_error **error)
{
    size_t size = 0;
    const nvrtcResult sized = product->size(job->program, &size);
    if (sized != NVRTC_SUCCESS)
        return fail_call(job, product->size_call, sized, error);
    char *const buffer = calloc(1, size + 1);
    if (!buffer)
        return fail_memory(job, error);
    const nvrtcResult got = size > 0 ? product->get(job->program, buffer) : NVRTC_SUCCESS;
    if (got != NVRTC_SUCCESS) {
        free(buffer);
        return fail_call(job, product->call, got, error);
    }
    *data = buffer;
    *bytes = size;
    return GJ_OK;
}

static struct product log_of(const gj_compiler *compiler)
{
    return (struct product){"nvrtcGetProgramLogSize", "nvrtcGetProgramLog",
                            compiler->api.nvrtcGetProgramLogSize, compiler->api.nvrtcGetProgramLog};
}

static struct product ptx_of(const gj_compiler *compiler)
{
    return (struct product){"nvrtcGetPTXSize", "nvrtcGetPTX", compiler->api.nvrtcGetPTXSize,
                            compiler->api.nvrtcGetPTX};
}

static struct product cubin_of(const gj_compiler *compiler)
{
    return (struct product){"nvrtcGetCUBINSize", "nvrtcGetCUBIN", compiler->api.nvrtcGetCUBINSize,
                            compiler->api.nvrtcGetCUBIN};
}

/* -- Refusals -------------------------------------------------------------------------------------------- */

/* Adds what a person needs beside the sentence: who compiled, how, and all that NVRTC said. */
static void add_detail(const struct job *job, gj_error **error)
{
    struct gj_strbuf detail = {0};
    gj_strbuf_printf(&detail, "compiler: %s (%s)\noptions: %s\n", job->compiler->version, job->compiler->path,
                     gj_compile_options());
    gj_strbuf_printf(&detail, "log:\n%s", job->log && *job->log ? job->log : "(empty)\n");
    char *const text = gj_strbuf_take(&detail);
    gj_error_set_detail(error, text);
    free(text);
}

/* The log's line numbers below the front end are those of the PTX, which NVRTC gives after a failure too. */
static void add_locations(const struct job *job, gj_error **error)
{
    const struct product product = ptx_of(job->compiler);
    char *ptx = NULL;
    size_t bytes = 0;
    if (fetch(job, &product, &ptx, &bytes, NULL) != GJ_OK)
        ptx = NULL; /* a front-end error leaves none; its lines do not need it */
    gj_diagnose_locations(job->request, job->name, job->log, ptx, error);
    free(ptx);
}

/* NVRTC said no. */
static enum gj_status refuse(const struct job *job, nvrtcResult result, gj_error **error)
{
    const char *const result_name = job->compiler->api.nvrtcGetErrorString(result);
    enum gj_status status = GJ_ERR_COMPILE;
    if (result == NVRTC_ERROR_OUT_OF_MEMORY) {
        status = gj_error_make(error, GJ_ERR_NO_MEMORY, GJ_STAGE_COMPILE, (int)result, result_name,
                               "NVRTC ran out of memory while compiling %s", job->name);
    } else if (result == NVRTC_ERROR_BUILTIN_OPERATION_FAILURE) {
        status = gj_error_make(error, GJ_ERR_NO_COMPILER, GJ_STAGE_COMPILE, (int)result, result_name,
                               "%s cannot use its libnvrtc-builtins, which belongs beside it",
                               job->compiler->path);
    } else {
        struct gj_diagnosis diagnosis = gj_diagnose_log(job->log, job->name);
        const char *const sentence =
            diagnosis.sentence && *diagnosis.sentence ? diagnosis.sentence : result_name;
        struct gj_strbuf count = {0};
        if (diagnosis.num_errors > 1)
            gj_strbuf_printf(&count, " (first of %d errors)", diagnosis.num_errors);
        status = gj_error_make(error, GJ_ERR_COMPILE, GJ_STAGE_COMPILE, (int)result, result_name,
                               "NVRTC refused %s: %s%s", job->name, sentence, count.text ? count.text : "");
        gj_strbuf_free(&count);
        free(diagnosis.sentence);
    }
    add_detail(job, error);
    add_locations(job, error);
    return status;
}

/* NVRTC said yes, but its log says that the kernel is not what the template asked for. */
static enum gj_status check_log(const struct job *job, gj_error **error)
{
    struct gj_diagnosis diagnosis = gj_diagnose_log(job->log, job->name);
    enum gj_status status = GJ_OK;
    if (diagnosis.num_remarks + diagnosis.num_errors > 0) {
        status = gj_error_make(error, GJ_ERR_COMPILE, GJ_STAGE_COMPILE, 0, "", "%s compiled, but with %s",
                               job->name, diagnosis.sentence ? diagnosis.sentence : "a message");
        add_detail(job, error);
        add_locations(job, error);
    }
    free(diagnosis.sentence);
    return status;
}

/* The image itself is checked too: it does not depend on how a version of NVRTC words its log. */
static enum gj_status check_cubin(const struct job *job, const void *image, size_t bytes,
                                  struct gj_cubin_facts *facts, gj_error **error)
{
    const struct gj_compile_request *const request = job->request;
    GJ_TRY(gj_cubin_read(image, bytes, request->entry_name, facts, error));
    if (facts->sm != 90)
        GJ_FAIL(error, GJ_ERR_COMPILE, GJ_STAGE_COMPILE, "the cubin of %s is for sm_%d, not sm_90", job->name,
                facts->sm);
    if (facts->frame_bytes > request->max_spill_bytes)
        GJ_FAIL(error, GJ_ERR_COMPILE, GJ_STAGE_COMPILE,
                "%s keeps %d bytes per thread in local memory (%d loads, %d stores), the plan allows %d",
                job->name, facts->frame_bytes, facts->census.local_load, facts->census.local_store,
                request->max_spill_bytes);
    if (request->max_spill_bytes == 0 && facts->census.local_load + facts->census.local_store > 0)
        GJ_FAIL(error, GJ_ERR_COMPILE, GJ_STAGE_COMPILE,
                "%s has %d local loads and %d local stores, the plan allows none", job->name,
                facts->census.local_load, facts->census.local_store);
    if (facts->census.mma < request->mma_per_tile)
        GJ_FAIL(error, GJ_ERR_COMPILE, GJ_STAGE_COMPILE,
                "%s has %d wgmma instructions, the plan needs at least %d", job->name, facts->census.mma,
                request->mma_per_tile);
    return GJ_OK;
}

/* -- The compile ----------------------------------------------------------------------------------------- */

static nvrtcResult compile(const struct job *job)
{
    const gj_compiler *const compiler = job->compiler;
    const char *texts[NUM_OPTIONS];
    int num_texts = 0;
    for (size_t i = 0; i < NUM_OPTIONS; i++)
        if (compiler->major > options[i].major ||
            (compiler->major == options[i].major && compiler->minor >= options[i].minor))
            texts[num_texts++] = options[i].text;
    return compiler->api.nvrtcCompileProgram(job->program, num_texts, texts);
}

/* Takes the image out of a compiled program and checks it. */
static enum gj_status take_image(const struct job *job, struct gj_compile_result *result, gj_error **error)
{
    const bool is_ptx = job->request->kind == GJ_IMAGE_PTX;
    const struct product product = is_ptx ? ptx_of(job->compiler) : cubin_of(job->compiler);
    char *image = NULL;
    size_t bytes = 0;
    struct gj_cubin_facts facts = {0};
    GJ_TRY(fetch(job, &product, &image, &bytes, error));
    if (is_ptx)
        bytes = strlen(image); /* NVRTC counts the terminating zero */

    enum gj_status status = GJ_OK;
    if (bytes == 0)
        status = gj_error_make(error, GJ_ERR_COMPILE, GJ_STAGE_COMPILE, 0, "",
                               "NVRTC says that it compiled %s, but the image is empty", job->name);
    else if (!is_ptx)
        status = check_cubin(job, image, bytes, &facts, error);
    if (status != GJ_OK) {
        add_detail(job, error);
        free(image);
        return status;
    }
    result->image = image;
    result->bytes = bytes;
    result->registers = facts.registers;
    result->spill_bytes = facts.frame_bytes;
    result->max_threads = facts.max_threads;
    return GJ_OK;
}

enum gj_status gj_compiler_run(gj_compiler *compiler, const struct gj_compile_request *request,
                               struct gj_compile_result *result, gj_error **error)
{
    struct job job = {.compiler = compiler,
                      .request = request,
                      .name = request->name && *request->name ? request->name : request->entry_name};
    const struct product log_product = log_of(compiler);
    struct gj_compile_result made = {0};
    size_t log_bytes = 0;
    enum gj_status status = GJ_OK;

    const double start_ms = gj_clock_ms();
    const nvrtcResult created =
        compiler->api.nvrtcCreateProgram(&job.program, request->unit, job.name, 0, NULL, NULL);
    if (created != NVRTC_SUCCESS)
        return fail_call(&job, "nvrtcCreateProgram", created, error);
    const nvrtcResult compiled = compile(&job);
    /* After a failed compile a lost log must not hide the failure itself. */
    status = fetch(&job, &log_product, &job.log, &log_bytes, compiled == NVRTC_SUCCESS ? error : NULL);
    if (compiled != NVRTC_SUCCESS) {
        if (status != GJ_OK)
            job.log = strdup("");
        status = job.log ? refuse(&job, compiled, error) : fail_memory(&job, error);
        goto out;
    }
    if (status != GJ_OK)
        goto out;
    status = check_log(&job, error);
    if (status != GJ_OK)
        goto out;
    status = take_image(&job, &made, error);
    if (status != GJ_OK)
        goto out;
    made.compile_ms = gj_clock_ms() - start_ms;
    made.log = job.log;
    job.log = NULL;
    *result = made;
out:
    free(job.log);
    /* Its result tells nothing that could still be acted on. */
    (void)compiler->api.nvrtcDestroyProgram(&job.program);
    return status;
}
