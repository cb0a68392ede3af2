/* SPDX-License-Identifier: Apache-2.0 */
/* Opening a GPU for tests and benchmarks. */
#include "rig.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "../../tools/bench/bench_kernels.h"
#include "compile/compile.h"

void must_status(enum gj_status status, gj_error *error, const char *what)
{
    if (status == GJ_OK)
        return;
    fprintf(stderr, "%s: %s: %s\n%s\n", what, gj_status_name(status), error ? error->message : "",
            error ? error->detail : "");
    exit(status == GJ_ERR_NO_DRIVER || status == GJ_ERR_NO_DEVICE ? EXIT_SKIP : 1);
}

void must_cuda(const struct rig *rig, CUresult result, const char *what)
{
    gj_error *error = NULL;
    if (result != CUDA_SUCCESS)
        must(gj_driver_fail(rig->driver, result, GJ_STAGE_LAUNCH, &error, "%s", what), error, what);
}

/* Appends a file to text, which has room for capacity bytes. */
static void append_file(const char *path, char *text, size_t capacity)
{
    FILE *const file = fopen(path, "rb");
    const size_t length = strlen(text);
    const size_t got = file ? fread(text + length, 1, capacity - length - 1, file) : 0;
    if (file == NULL || got == 0 || length + got == capacity - 1) {
        fprintf(stderr, "%s cannot be read, or is too long\n", path);
        exit(1);
    }
    fclose(file);
    text[length + got] = '\0';
}

CUlibrary rig_load(struct rig *rig, const char *path, const char *first_entry)
{
    const size_t capacity = 131072;
    char *const text = calloc(1, capacity);
    gj_error *error = NULL;
    gj_compiler *compiler = NULL;
    CUlibrary library = NULL;
    if (text == NULL)
        exit(1);
    memcpy(text, bench_kernels_text, strlen(bench_kernels_text));
    append_file(rig->reference, text, capacity);
    if (path != NULL)
        append_file(path, text, capacity);
    must(gj_compiler_open(&compiler, &error), error, "libnvrtc");
    const struct gj_compile_request request = {.unit = text,
                                               .name = "reference",
                                               .entry_name = first_entry,
                                               .kind = GJ_IMAGE_CUBIN,
                                               .max_spill_bytes = 4096};
    struct gj_compile_result result = {0};
    must(gj_compiler_run(compiler, &request, &result, &error), error, "reference kernels");
    must_cuda(rig, rig->driver->cuLibraryLoadData_fn(&library, result.image, NULL, NULL, 0, NULL, NULL, 0),
              "loading the reference kernels");
    free(result.image);
    free(result.log);
    free(text);
    gj_compiler_close(&compiler);
    return library;
}

CUkernel rig_kernel(struct rig *rig, CUlibrary library, const char *name)
{
    CUkernel kernel = NULL;
    must_cuda(rig, rig->driver->cuLibraryGetKernel_fn(&kernel, library, name), name);
    return kernel;
}

static void load_reference(struct rig *rig)
{
    const struct {
        const char *name;
        CUkernel *kernel;
    } kernels[] = {{"fill", &rig->fill},
                   {"fill_matrix", &rig->fill_matrix},
                   {"multiply", &rig->multiply},
                   {"compare", &rig->compare},
                   {"distance", &rig->distance},
                   {"make_positive", &rig->make_positive},
                   {"exact_error", &rig->exact_error},
                   {"differing_words", &rig->differing_words}};
    rig->library = rig_load(rig, NULL, "fill");
    for (size_t i = 0; i < sizeof kernels / sizeof kernels[0]; i++)
        *kernels[i].kernel = rig_kernel(rig, rig->library, kernels[i].name);
}

static void log_line(void *user, enum gj_log_level level, const char *message)
{
    (void)user;
    if (level <= GJ_LOG_WARNING)
        fprintf(stderr, "log: %s\n", message);
}

void rig_open(struct rig *rig, const char *reference, const char *cache_dir)
{
    gj_error *error = NULL;
    memset(rig, 0, sizeof *rig);
    must(gj_driver_open(&rig->driver, &error), error, "driver");
    must(gj_gpu_info_get(rig->driver, 0, &rig->gpu, &error), error, "device 0");
    if (rig->gpu.major != 9 || rig->gpu.minor != 0) {
        fprintf(stderr, "device 0 has compute capability %d.%d, not 9.0\n", rig->gpu.major, rig->gpu.minor);
        exit(EXIT_SKIP);
    }
    must(gj_device_open(rig->driver, 0, &rig->device, &error), error, "device 0");
    rig->stream = gj_device_stream(rig->device);
    const struct gj_context_params params = {.cache_dir = cache_dir, .log = log_line};
    must(gj_context_open(&params, &rig->context, &error), error, "context");
    rig->reference = reference;
    load_reference(rig);
}

void rig_close(struct rig *rig)
{
    gj_context_close(&rig->context);
    rig->driver->cuLibraryUnload_fn(rig->library);
    gj_device_close(&rig->device);
    gj_driver_close(&rig->driver);
}

void *rig_alloc(struct rig *rig, size_t bytes)
{
    void *memory = NULL;
    gj_error *error = NULL;
    must(gj_device_alloc(rig->device, bytes, &memory, &error), error, "device memory");
    return memory;
}

void rig_launch(struct rig *rig, CUkernel kernel, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                unsigned block_x, unsigned block_y, void **arguments)
{
    const CUlaunchConfig config = {.gridDimX = grid_x,
                                   .gridDimY = grid_y,
                                   .gridDimZ = grid_z,
                                   .blockDimX = block_x,
                                   .blockDimY = block_y,
                                   .blockDimZ = 1,
                                   .hStream = rig->stream};
    must_cuda(rig, rig->driver->cuLaunchKernelEx_fn(&config, (CUfunction)kernel, arguments, NULL),
              "a reference kernel");
}

void rig_fill(struct rig *rig, void *data, uint64_t count, enum gj_dtype dtype, int kind, uint32_t seed)
{
    int type = (int)dtype;
    void *arguments[] = {&data, &count, &type, &kind, &seed};
    rig_launch(rig, rig->fill, 1024, 1, 1, 256, 1, arguments);
}

void rig_print_setting(const struct rig *rig, const char *commit)
{
    char date[32];
    const time_t now = time(NULL);
    struct tm utc;
    strftime(date, sizeof date, "%Y-%m-%d", gmtime_r(&now, &utc));
    const int version = gj_driver_version(rig->driver);
    printf("%s, %s (%d SMs), driver for CUDA %d.%d, commit %s.\n\n", date, rig->gpu.name, rig->gpu.num_sms,
           version / 1000, version % 1000 / 10, commit);
}
