/* SPDX-License-Identifier: Apache-2.0 */
/* An activation of one's own, compiled into a kernel. Needs NVRTC, no GPU.
 * usage: own_activation */
#include <stdio.h>
#include <stdlib.h>

#include <gemmjit/gemmjit.h>

static const char source[] = "float slope(float x) { return x > 0 ? 1.0f : 0.01f; }\n"
                             "float leaky(float x) { return x * slope(x); }\n";

static int show(gj_context *context, gj_error **error)
{
    const struct gj_own own = {"leaky", source, "leaky.cu"};
    struct gj_own_id id;
    struct gj_key key;
    gj_kernel *kernel = NULL;
    struct gj_kernel_info info;
    if (gj_own_add(context, &own, &id, error) ||
        gj_key_parse("op=act,d=none,tile=128x256,sched=coop", &key, error))
        return EXIT_FAILURE;
    key.act = GJ_ACT_OWN;
    key.own = id;
    if (gj_kernel_get(context, &key, 0, &kernel, error))
        return EXIT_FAILURE;
    gj_kernel_info(kernel, &info);
    printf("%s\n%d registers, %d bytes of shared memory, %zu bytes of cubin\n", info.entry_name,
           info.registers, info.smem_bytes, info.cubin_bytes);
    return EXIT_SUCCESS;
}

int main(void)
{
    gj_context *context = NULL;
    gj_error *error = NULL;
    const int result = gj_context_open(NULL, &context, &error) ? EXIT_FAILURE : show(context, &error);
    if (result != EXIT_SUCCESS)
        fprintf(stderr, "%s\n", error ? error->message : "out of memory");
    for (size_t i = 0; error && i < error->num_locations; i++)
        fprintf(stderr, "%s:%d: %s\n", error->locations[i].file, error->locations[i].line,
                error->locations[i].message);
    gj_error_free(&error);
    gj_context_close(&context);
    return result;
}
