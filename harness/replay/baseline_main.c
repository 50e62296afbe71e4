/* baseline_main.c: a baseline's runner, started by time, which says of which task and arithmetic.
 * It runs the reference as a captured graph, in the same loop as the candidate's runner.  It may
 * serve one cell after another. */
#include "replay/runner.h"
#include "gpu/device.h"
#include "task/taskfile.h"
#include "cuda/exec.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct baseline {
    const struct kp_task *task;
    struct kp_exec *exec;
    void *workspace;
};

static void run(struct baseline *b, const struct kp_span *at, cudaStream_t stream) {
    const void *tensors[KP_MAX_BUFFERS];
    void *outputs[KP_MAX_OUTPUTS];
    for (int i = 0; i < b->task->ntensors; i++) tensors[i] = span_data(&at[i]);
    for (int i = 0; i < b->task->noutputs; i++) outputs[i] = span_data(&at[b->task->ntensors + i]);
    kp_exec_run(b->exec, tensors, outputs, b->workspace, stream);
}

static bool enqueue(void *self, const struct kp_span *at, CUstream s, CUevent start, CUevent stop,
                    char *message) {
    (void)message;
    if (start) KP_CU(cu.cuEventRecordWithFlags(start, s, CU_EVENT_RECORD_EXTERNAL));
    run(self, at, (cudaStream_t)s);
    if (stop) KP_CU(cu.cuEventRecordWithFlags(stop, s, CU_EVENT_RECORD_EXTERNAL));
    return true;
}

/* Serve one cell, and give back all that it took. */
static void serve(const struct runner_baseline *what) {
    enum kp_math math = !strcmp(what->math, "fp32")   ? KP_MATH_FP32
                        : !strcmp(what->math, "tf32") ? KP_MATH_TF32
                                                      : KP_MATH_HALF;
    struct runner_setup setup;
    struct kp_region region;
    struct kp_span *at;
    size_t n = runner_receive(&setup, &region, &at);
    struct kp_task *task = task_load(what->task);
    kp_vendor_choose(what->choices);
    struct baseline b = {.task = task, .exec = kp_exec_create(task, math)};
    size_t bytes = kp_exec_workspace(b.exec);
    if (bytes)
        device_check(cudaMalloc(&b.workspace, bytes), "memory for the baseline's intermediates");
    /* Run once outside a capture: libraries load their kernels when they are first used. */
    cudaStream_t stream;
    device_check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "stream");
    run(&b, at, stream);
    device_check(cudaDeviceSynchronize(), "first run of the baseline");
    const struct runner_contestant who = {.self = &b, .enqueue = enqueue};
    runner_serve(&setup, at, &who);
    for (size_t i = 0; i < n; i++) buffer_free(&at[i]);
    region_free(&region);
    device_check(cudaFree(b.workspace), "closing the baseline");
    device_check(cudaStreamDestroy(stream), "closing the baseline");
    kp_exec_destroy(b.exec);
    task_free(task);
    free(at);
}

int main(int argc, char **argv) {
    (void)argv;
    kp_program("baseline");
    if (argc != 1) die(KP_USAGE, "usage: baseline (run by time)");
    int nothing = open("/dev/null", O_WRONLY | O_CLOEXEC);
    driver_open();
    for (;;) {
        struct runner_baseline what;
        if (!runner_told(&what, sizeof what)) return KP_MACHINE;
        what.task[sizeof what.task - 1] = what.math[sizeof what.math - 1] = 0;
        what.choices[sizeof what.choices - 1] = 0;
        serve(&what);
        /* Who waits for the end of what a cell says must not wait for this. */
        runner_say_to(nothing);
        runner_reply(RUNNER_OK, 0, 0, NULL, NULL);
    }
}
