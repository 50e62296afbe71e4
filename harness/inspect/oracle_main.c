/* oracle_main.c: `oracle TASK.json` computes a task's outputs in float64, from bytes that another
 * process gives it: the other side of harness/import/conformance.py.
 *
 * Standard input is a Unix socket.  What is said, in order:
 *     this process prints `NAME DTYPE OFFSET [SHAPE]` for each tensor, then for each output (f64),
 *     and `memory BYTES OFFSET`; it sends a descriptor of that much GPU memory, in which they
 *     lie behind OFFSET;
 *     a byte comes: the tensors are there.  It computes, and prints `done`;
 *     the socket is closed: it ends. */
#include "base/error.h"
#include "base/json.h"
#include "cuda/exec.h"
#include "gpu/buffers.h"
#include "gpu/device.h"
#include "gpu/driver.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static const size_t alignment = 256, workspace_limit = (size_t)8 << 30;

/* Say where a value lies, at *used of the memory, and go past it. */
static void place(const char *name, enum kp_dtype type, const struct kp_shape *shape,
                  size_t *used) {
    char text[KP_SHAPE_TEXT];
    printf("%s %s %zu %s\n", name, kp_dtype_name(type), *used, shape_text(shape, text));
    *used += (size_t)kp_shape_count(shape) * kp_dtype_size(type);
    *used = (*used + alignment - 1) / alignment * alignment;
}

/* Send a descriptor over standard input. */
static void send_descriptor(int fd) {
    char byte = 0;
    struct iovec data = {&byte, 1};
    union {
        struct cmsghdr head;
        char bytes[CMSG_SPACE(sizeof fd)];
    } control = {0};
    struct msghdr message = {.msg_iov = &data,
                             .msg_iovlen = 1,
                             .msg_control = &control,
                             .msg_controllen = sizeof control};
    struct cmsghdr *c = CMSG_FIRSTHDR(&message);
    c->cmsg_level = SOL_SOCKET;
    c->cmsg_type = SCM_RIGHTS;
    c->cmsg_len = CMSG_LEN(sizeof fd);
    memcpy(CMSG_DATA(c), &fd, sizeof fd);
    if (sendmsg(STDIN_FILENO, &message, 0) != 1)
        die(KP_USAGE, "standard input: %s; expected a Unix socket", strerror(errno));
}

/* Copy a slice of an output to its place. */
static void keep(void *context, int output, int64_t offset, int64_t count,
                 const struct kp_draws *values, cudaStream_t stream) {
    double *const *to = context;
    device_check(cudaMemcpyAsync(to[output] + offset, values->exact, (size_t)count * sizeof(double),
                                 cudaMemcpyDeviceToDevice, stream),
                 "copying a slice");
}

/* Compute all outputs.  The workspace is free again when it returns. */
static void compute(const struct kp_task *t, const void *const tensors[], double *outputs[]) {
    cudaStream_t stream;
    void *workspace = NULL;
    struct kp_exec *e = kp_exec_create_oracle(t, workspace_limit);
    size_t bytes = kp_exec_workspace_exact(e);
    device_check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "making a stream");
    char *taking = text_format("taking %zu bytes of memory for intermediates", bytes);
    if (bytes) device_check(cudaMalloc(&workspace, bytes), taking);
    free(taking);
    kp_exec_oracle(e, tensors, workspace, NULL, 0, keep, outputs, stream);
    device_check(cudaStreamSynchronize(stream), "computing in float64");
    device_check(cudaFree(workspace), "freeing memory");
    kp_exec_destroy(e);
}

int main(int argc, char **argv) {
    kp_program("oracle");
    if (argc != 2) die(KP_USAGE, "usage: oracle TASK.json, with a Unix socket as standard input");
    struct kp_task *t = task_load(argv[1]);
    driver_open();
    device_check(cudaFree(0), "starting the CUDA runtime");

    size_t used = 0, at[KP_MAX_OUTPUTS];
    size_t *offset = calloc((size_t)t->ntensors, sizeof *offset);
    const void **tensors = calloc((size_t)t->ntensors, sizeof *tensors);
    double *outputs[KP_MAX_OUTPUTS];
    if (!offset || !tensors) die(KP_MACHINE, "out of memory");
    for (int i = 0; i < t->ntensors; i++) {
        offset[i] = used;
        place(t->tensors[i].name, t->tensors[i].dtype, &t->tensors[i].shape, &used);
    }
    for (int k = 0; k < t->noutputs; k++) {
        const struct kp_value *v = &t->values[t->outputs[k]];
        at[k] = used;
        place(v->name, KP_F64, &v->shape, &used);
    }

    struct kp_region region;
    struct kp_span span;
    struct kp_shared shared;
    region_reserve(&region, used + 2 * buffer_granularity(), 1, 0);
    if (!buffer_create(&region, used, false, &span, &shared))
        die(KP_MACHINE,
            "%s: its tensors and float64 outputs need %zu bytes of GPU memory, more than is free",
            t->name, used);
    char *data = span_data(&span), byte;
    for (int i = 0; i < t->ntensors; i++) tensors[i] = data + offset[i];
    for (int k = 0; k < t->noutputs; k++) outputs[k] = (double *)(data + at[k]);
    printf("memory %zu %zu\n", span.mapped, span.offset);
    if (fflush(stdout)) die(KP_IO, "standard output: %s", strerror(errno));
    send_descriptor(shared.fd);

    if (read(STDIN_FILENO, &byte, 1) != 1) return KP_OK;
    compute(t, tensors, outputs);
    printf("done\n");
    if (fflush(stdout)) die(KP_IO, "standard output: %s", strerror(errno));
    while (read(STDIN_FILENO, &byte, 1) > 0) continue;
    return KP_OK;
}
