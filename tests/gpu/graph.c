/* SPDX-License-Identifier: Apache-2.0 */
/* Launches captured into a graph and replayed, with alpha and beta in device memory that change between
 * replays. Every replay is compared exactly, poison around D included. Prints Markdown. */
#include <dlfcn.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>

#include "problem.h"

#define REPLAYS 40 /* compared ones; each is followed by as many that are not */

struct graph_api {
    CUresult(CUDAAPI *begin)(CUstream, CUstreamCaptureMode);
    CUresult(CUDAAPI *end)(CUstream, CUgraph *);
    CUresult(CUDAAPI *instantiate)(CUgraphExec *, CUgraph, unsigned long long);
    CUresult(CUDAAPI *launch)(CUgraphExec, CUstream);
    CUresult(CUDAAPI *exec_destroy)(CUgraphExec);
    CUresult(CUDAAPI *destroy)(CUgraph);
};

/* A function of libcuda; dlsym gives an object pointer. */
static void find(const struct rig *rig, const char *name, void *member)
{
    *(void **)member = dlsym(rig->driver->library, name);
    if (*(void **)member == NULL) {
        fprintf(stderr, "libcuda has no %s\n", name);
        exit(1);
    }
}

static struct graph_api open_api(const struct rig *rig)
{
    struct graph_api api;
    find(rig, "cuStreamBeginCapture_v2", &api.begin);
    find(rig, "cuStreamEndCapture", &api.end);
    find(rig, "cuGraphInstantiateWithFlags", &api.instantiate);
    find(rig, "cuGraphLaunch", &api.launch);
    find(rig, "cuGraphExecDestroy", &api.exec_destroy);
    find(rig, "cuGraphDestroy", &api.destroy);
    return api;
}

/* Captures with the variant `first` (odd: C in place), replays with the scalars of that and every second one
 * after it. Returns the number of wrong elements. */
static unsigned run(struct rig *rig, const struct graph_api *api, struct problem *problem, const char *text,
                    int first, unsigned *wrong)
{
    struct gj_key key;
    gj_kernel *kernel = NULL;
    gj_error *error = NULL;
    must(gj_key_parse(text, &key, &error), error, text);
    must(gj_kernel_get(rig->context, &key, 0, &kernel, &error), error, text);
    must(gj_kernel_prepare(kernel, 0, &error), error, text);
    CUgraph graph;
    CUgraphExec exec;
    must_cuda(rig, api->begin(rig->stream, CU_STREAM_CAPTURE_MODE_GLOBAL), "begin of the capture");
    problem_relaunch(rig, problem, &key, kernel, first, 1);
    must_cuda(rig, api->end(rig->stream, &graph), "end of the capture");
    must_cuda(rig, api->instantiate(&exec, graph, 0), "the graph");
    must(gj_device_fill(rig->device, wrong, 0, 4, &error), error, "counter");
    for (int i = 0; i < REPLAYS; i++) {
        const int variant = first + 2 * (i % 3);
        problem_set_scalars(rig, problem, first, variant);
        problem_prepare(rig, problem, &key, variant);
        must_cuda(rig, api->launch(exec, rig->stream), "a replay");
        problem_compare(rig, problem, &key, variant, wrong);
        for (int j = 0; j < REPLAYS; j++)
            must_cuda(rig, api->launch(exec, rig->stream), "a replay");
        must(gj_device_sync(rig->device, WATCHDOG_MS, &error), error, text);
    }
    problem_set_scalars(rig, problem, first, first);
    unsigned count = 1;
    must(gj_device_read(rig->device, &count, wrong, 4, &error), error, text);
    must_cuda(rig, api->exec_destroy(exec), "the graph");
    must_cuda(rig, api->destroy(graph), "the graph");
    printf("| %s | %s | %u |\n", text, first % 2 ? "C is D" : "", count);
    return count;
}

int main(int argc, char **argv)
{
    static const char *const keys[] = {
        "tiles=dynamic",
        "tiles=dynamic,cluster=1x1",
        "tiles=dynamic,cluster=1x1,sched=coop,tile=128x256",
        "tiles=dynamic,cluster=2x2,c=bf16.n,alpha=device,beta=device",
        "c=bf16.n,alpha=device,beta=device",
        "tiles=once,sched=coop,tile=128x256,c=f32.m,d=f32.m,alpha=device,beta=device"};
    static const struct option names[] = {{"reference", 1, NULL, 'r'},
                                          {"cache-dir", 1, NULL, 'c'},
                                          {"commit", 1, NULL, 'g'},
                                          {NULL, 0, NULL, 0}};
    const char *reference = "tests/gpu/reference.cu", *cache_dir = NULL, *commit = "unknown";
    const struct shape shape = {1900, 1160, 392, 3, false};
    struct rig rig;
    struct problem problem;
    unsigned wrong = 0;
    int c;
    while ((c = getopt_long(argc, argv, "", names, NULL)) != -1) {
        if (c == 'r')
            reference = optarg;
        else if (c == 'c')
            cache_dir = optarg;
        else if (c == 'g')
            commit = optarg;
        else
            return 2;
    }
    rig_open(&rig, reference, cache_dir);
    const struct graph_api api = open_api(&rig);
    problem_make(&rig, &shape, &problem);
    unsigned *const counter = rig_alloc(&rig, 4);
    rig_print_setting(&rig, commit);
    printf("| key | | wrong elements in %d replays of %d |\n|---|---|---|\n", REPLAYS,
           REPLAYS * (REPLAYS + 1));
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++)
        for (int first = 0; first < (i < 3 ? 1 : 2); first++)
            wrong += run(&rig, &api, &problem, keys[i], first, counter);
    problem_free(&rig, &problem);
    gj_device_free(rig.device, counter);
    rig_close(&rig);
    return wrong == 0 ? 0 : 1;
}
