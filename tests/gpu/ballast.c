/* Holds all memory of the GPU but so many GB, which another process then has: how a smaller GPU
 * looks.
 *
 *     ballast GB
 *
 * Prints what is free, in GB, once it holds the rest, and gives it back at the end of standard
 * input. */
#include "gpu/device.h"
#include "base/error.h"

#include <cuda_runtime_api.h>

#include <stdio.h>
#include <stdlib.h>

static const size_t least_piece = (size_t)1 << 21;

/* Bytes that are free. */
static size_t free_bytes(void) {
    size_t left, all;
    device_check(cudaMemGetInfo(&left, &all), "memory");
    return left;
}

int main(int argc, char **argv) {
    kp_program("ballast");
    if (argc != 2 || !(atof(argv[1]) > 0)) die(KP_INPUT, "usage: ballast GB");
    size_t left = (size_t)(atof(argv[1]) * 1e9);
    device_check(cudaFree(NULL), "context");
    /* In smaller and smaller pieces, as the last may not fit where memory is in pieces. */
    for (size_t most = free_bytes(); most >= least_piece && free_bytes() >= left + least_piece;) {
        size_t rest = free_bytes() - left, bytes = rest < most ? rest : most;
        void *piece;
        if (cudaMalloc(&piece, bytes)) most = bytes / 2, (void)cudaGetLastError();
    }
    printf("%.1f\n", (double)free_bytes() * 1e-9);
    if (fflush(stdout)) die(KP_IO, "cannot write standard output");
    while (getchar() != EOF) continue;
    return KP_OK;
}
