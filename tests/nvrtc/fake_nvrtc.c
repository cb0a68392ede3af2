/* SPDX-License-Identifier: Apache-2.0 */
/* A libnvrtc for tests, of version FAKE_MAJOR.FAKE_MINOR: every compile succeeds with an empty image, unless
 * it is given an option that came later. FAKE_LACKS_CUBIN leaves out nvrtcGetCUBIN; FAKE_LOG is
 * what every log says; with FAKE_REPLAYS the image is the file that the variable FAKE_NVRTC_CUBIN names. */
#include <nvrtc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifndef FAKE_LOG
#define FAKE_LOG ""
#endif

nvrtcResult nvrtcVersion(int *major, int *minor)
{
    *major = FAKE_MAJOR;
    *minor = FAKE_MINOR;
    return NVRTC_SUCCESS;
}

const char *nvrtcGetErrorString(nvrtcResult result)
{
    return result == NVRTC_SUCCESS ? "NVRTC_SUCCESS" : "NVRTC_ERROR_FAKE";
}

nvrtcResult nvrtcCreateProgram(nvrtcProgram *program, const char *source, const char *name, int num_headers,
                               const char *const *headers, const char *const *include_names)
{
    (void)source, (void)name, (void)num_headers, (void)headers, (void)include_names;
    *program = NULL;
    return NVRTC_SUCCESS;
}

nvrtcResult nvrtcDestroyProgram(nvrtcProgram *program)
{
    *program = NULL;
    return NVRTC_SUCCESS;
}

/* Refuses options that its version would refuse. */
nvrtcResult nvrtcCompileProgram(nvrtcProgram program, int num_options, const char *const *options)
{
    (void)program;
    for (int i = 0; i < num_options; i++) {
        if (strcmp(options[i], "--minimal") == 0 && FAKE_MAJOR * 100 + FAKE_MINOR < 1204)
            return NVRTC_ERROR_INVALID_OPTION;
        if (strcmp(options[i], "--no-cache") == 0 && FAKE_MAJOR * 100 + FAKE_MINOR < 1209)
            return NVRTC_ERROR_INVALID_OPTION;
    }
    return NVRTC_SUCCESS;
}

nvrtcResult nvrtcGetProgramLogSize(nvrtcProgram program, size_t *bytes)
{
    (void)program;
    *bytes = sizeof(FAKE_LOG);
    return NVRTC_SUCCESS;
}

nvrtcResult nvrtcGetProgramLog(nvrtcProgram program, char *log)
{
    (void)program;
    memcpy(log, FAKE_LOG, sizeof(FAKE_LOG));
    return NVRTC_SUCCESS;
}

nvrtcResult nvrtcGetPTXSize(nvrtcProgram program, size_t *bytes)
{
    (void)program;
    *bytes = 1;
    return NVRTC_SUCCESS;
}

nvrtcResult nvrtcGetPTX(nvrtcProgram program, char *ptx)
{
    (void)program;
    *ptx = '\0';
    return NVRTC_SUCCESS;
}

#ifdef FAKE_REPLAYS
/* Reads the file; its bytes go to `image` when that is not NULL. */
static nvrtcResult replay(char *image, size_t *bytes)
{
    const char *const path = getenv("FAKE_NVRTC_CUBIN");
    FILE *const file = path ? fopen(path, "rb") : NULL;
    if (!file)
        return NVRTC_ERROR_INTERNAL_ERROR;
    fseek(file, 0, SEEK_END);
    *bytes = (size_t)ftell(file);
    rewind(file);
    const size_t read = image ? fread(image, 1, *bytes, file) : *bytes;
    fclose(file);
    return read == *bytes ? NVRTC_SUCCESS : NVRTC_ERROR_INTERNAL_ERROR;
}
#else
static nvrtcResult replay(char *image, size_t *bytes)
{
    (void)image;
    *bytes = 0;
    return NVRTC_SUCCESS;
}
#endif

nvrtcResult nvrtcGetCUBINSize(nvrtcProgram program, size_t *bytes)
{
    (void)program;
    return replay(NULL, bytes);
}

#ifndef FAKE_LACKS_CUBIN
nvrtcResult nvrtcGetCUBIN(nvrtcProgram program, char *cubin)
{
    size_t bytes;
    (void)program;
    return replay(cubin, &bytes);
}
#endif
