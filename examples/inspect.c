/* SPDX-License-Identifier: Apache-2.0 */
/* What a key leads to, without a GPU: resources, and the cubin in a file. Usage: inspect KEY [CUBIN_FILE] */
#include <stdio.h>
#include <stdlib.h>

#include <gemmjit/gemmjit.h>

static int fail(const gj_error *error)
{
    fprintf(stderr, "%s\n", error ? error->message : "out of memory");
    for (size_t i = 0; error && i < error->num_reasons; i++)
        fprintf(stderr, "  %s\n", error->reasons[i]);
    return EXIT_FAILURE;
}

int main(int argc, char **argv)
{
    gj_error *error = NULL;
    gj_context *context = NULL;
    gj_kernel *kernel = NULL;
    struct gj_key key;
    struct gj_kernel_info info;
    if (gj_key_parse(argc > 1 ? argv[1] : "", &key, &error) || gj_context_open(NULL, &context, &error) ||
        gj_kernel_get(context, &key, 0, &kernel, &error))
        return fail(error);
    gj_kernel_info(kernel, &info);
    printf("%s\n%d registers, %d bytes of shared memory, %zu bytes of cubin, %s\n", info.entry_name,
           info.registers, info.smem_bytes, info.cubin_bytes,
           info.origin == GJ_ORIGIN_DISK ? "from the cache" : "compiled now");
    if (argc > 2) {
        FILE *const file = fopen(argv[2], "wb");
        if (!file || fwrite(info.cubin, 1, info.cubin_bytes, file) != info.cubin_bytes || fclose(file)) {
            perror(argv[2]);
            return EXIT_FAILURE;
        }
    }
    gj_context_close(&context);
    return EXIT_SUCCESS;
}
