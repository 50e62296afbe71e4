/* replay_main.c: `replay TASK.json PREFIX` replays a recorded kernel once, under a profiler.
 *
 * It judges nothing and writes nothing.  It is a program of its own, so that verify and time have
 * no second mode.  Memory, inputs and tape are as in verify, but in one process and at one
 * placement, as profilers need it.  The profiler is on during the replay only.
 * harness/inspect/profile runs it.
 *
 * With KP_REPLAY=exact in the environment each buffer is an allocation of exactly its size, only
 * inputs are filled, and the kernel may be wrong: harness/inspect/sanitize needs that. */
#include "base/hash.h"
#include "base/json.h"
#include "measure/referee.h"
#include "replay/tape_graph.h"
#include "replay/tensor_map.h"

#include <cuda_profiler_api.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The path of PREFIX.KIND.  Ends the program unless it is the file that was verified. */
static char *verified(const char *prefix, const char *kind, const cJSON *json, const char *key) {
    char *path = text_format("%s.%s", prefix, kind), sha[65];
    file_sha256(path, sha);
    if (strcmp(sha, json_text(json, key, "")))
        die(KP_INPUT, "%s: not the file that was verified: verify it again", path);
    return path;
}

/* Move every buffer into an allocation of exactly its size, so that compute-sanitizer knows where
 * it ends.  Inputs keep their values.  What a kernel should write stays unwritten. */
static void move_to_exact(struct referee *r) {
    for (int i = 0; i < r->nbuffers; i++) {
        struct kp_span *s = &r->at[i];
        void *p;
        if (!s->bytes) continue;
        device_check(cudaMalloc(&p, s->bytes), "memory of exactly a buffer's size");
        if (i < r->task->ntensors)
            device_check(
                cudaMemcpyAsync(p, span_data(s), s->bytes, cudaMemcpyDeviceToDevice, r->stream),
                "copying the inputs");
        *s = (struct kp_span){(CUdeviceptr)(uintptr_t)p, s->bytes, 0, s->bytes};
    }
}

/* The tape, with the addresses of the referee's buffers. */
static struct tape *placed_tape(const char *path, const struct referee *r) {
    char message[KP_TAPE_MESSAGE] = "", *text = file_read(path, NULL);
    struct tape_span at[KP_MAX_BUFFERS];
    struct tape *merged = tape_parse(text, message), *raw = NULL;
    for (int i = 0; i < r->nbuffers; i++)
        at[i] = (struct tape_span){r->at[i].base + r->at[i].offset, r->at[i].bytes};
    if (merged) raw = tape_place(merged, at, r->nbuffers, message);
    if (!raw || !tensor_maps_make(raw, message)) die(KP_INPUT, "%s: %s", path, message);
    tape_free(merged);
    free(text);
    return raw;
}

/* The tape as an executable graph, made as the candidate's runner makes it. */
static CUgraphExec graph_of(const struct tape *raw, const char *cubin_path, CUstream stream) {
    char message[KP_TAPE_MESSAGE] = "", *cubin = file_read(cubin_path, NULL);
    CUmodule module;
    CUgraph graph;
    CUgraphExec exec;
    CUgraphNode events[2];
    CUevent start, stop;
    KP_CU(cu.cuModuleLoadData(&module, cubin));
    KP_CU(cu.cuEventCreate(&start, CU_EVENT_DEFAULT));
    KP_CU(cu.cuEventCreate(&stop, CU_EVENT_DEFAULT));
    KP_CU(cu.cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
    if (!tape_capture(raw, module, stream, start, stop, events, message))
        die(KP_INPUT, "%s: %s", cubin_path, message);
    KP_CU(cu.cuStreamEndCapture(stream, &graph));
    KP_CU(cu.cuGraphInstantiate(&exec, graph, 0));
    KP_CU(cu.cuGraphUpload(exec, stream));
    free(cubin);
    return exec;
}

int main(int argc, char **argv) {
    kp_program("replay");
    if (argc != 3)
        die(KP_USAGE, "usage: replay TASK.json PREFIX (harness/inspect/profile runs it)");
    const struct kp_task *task = task_load(argv[1]);
    char *path = text_format("%s.verify.json", argv[2]);
    cJSON *json = json_read(path);
    const char *how = getenv("KP_REPLAY");
    bool exact = how && !strcmp(how, "exact");
    if (!exact && strcmp(json_text(json, "verdict", ""), "ok"))
        die(KP_INPUT, "%s: the kernel is not right: there is nothing to profile", path);
    char *tape = verified(argv[2], "tape", json, "tape_sha256");
    char *cubin = verified(argv[2], "cubin", json, "cubin_sha256");
    size_t scratch = (size_t)json_number(json, "scratch_bytes", 0), needed;
    struct referee r;
    uint64_t seed = random_seed();
    CUstream stream;
    driver_open();
    device_check(cudaFree(0), "starting the CUDA runtime");
    if (!referee_open(&r, task, 1, scratch, 0, seed, &needed))
        die(KP_MACHINE, "%s needs %.1f GB of GPU memory, which is not free", task->name,
            (double)needed * 1e-9);
    referee_fill(&r, 0, KP_DIST_DECLARED, seed);
    if (exact)
        move_to_exact(&r);
    else
        referee_poison(&r, 0, seed);
    KP_CU(cu.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    CUgraphExec exec = graph_of(placed_tape(tape, &r), cubin, stream);
    referee_wait(&r);
    KP_CU(cu.cuCtxSynchronize());
    device_check(cudaProfilerStart(), "switching the profiler on");
    KP_CU(cu.cuGraphLaunch(exec, stream));
    KP_CU(cu.cuCtxSynchronize());
    device_check(cudaProfilerStop(), "switching the profiler off");
    return KP_OK;
}
