/* baseline_main.c: a baseline's runner: `baseline TASK.json fp32|tf32|half`, started by time.  It
 * runs the reference as a captured graph, in the same loop as the candidate's runner. */
#include "replay/runner.h"
#include "gpu/device.h"
#include "task/taskfile.h"
#include "cuda/exec.h"

#include <stdio.h>
#include <string.h>

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
    KP_CU(cu.cuEventRecordWithFlags(start, s, CU_EVENT_RECORD_EXTERNAL));
    run(self, at, (cudaStream_t)s);
    KP_CU(cu.cuEventRecordWithFlags(stop, s, CU_EVENT_RECORD_EXTERNAL));
    return true;
}

int main(int argc, char **argv) {
    kp_program("baseline");
    if (argc != 3) die(KP_USAGE, "usage: baseline TASK.json fp32|tf32|half (run by time)");
    enum kp_math math = !strcmp(argv[2], "fp32")   ? KP_MATH_FP32
                        : !strcmp(argv[2], "tf32") ? KP_MATH_TF32
                                                   : KP_MATH_HALF;
    driver_open();
    struct runner_setup setup;
    struct kp_span *at;
    runner_receive(&setup, &at);
    struct baseline b = {.task = task_load(argv[1])};
    b.exec = kp_exec_create(b.task, math);
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
}
