/* flush.cu: see device.h.  What a run may find on the GPU: nothing in the L2, and on the
 * multiprocessors nothing that another run left. */
#include "gpu/device.h"
#include "base/error.h"

#include <cooperative_groups.h>

static const int kThreads = 256;
static const unsigned kScrub = 0x7bad7badu; /* what is left in shared and local memory */

static int attribute(enum cudaDeviceAttr which) {
    int dev = 0, x = 0;
    device_check(cudaGetDevice(&dev), "flush");
    device_check(cudaDeviceGetAttribute(&x, which, dev), "flush");
    return x;
}

/* ---- Scrub -------------------------------------------------------------------- */

/* A block of 256 threads with so many registers each has all of a multiprocessor's.  The first sum
 * needs every value, and the second needs the first and again every value: so all are held at once.
 * (They are zeros.) */
enum { HELD = 246 };
__global__ __launch_bounds__(kThreads, 1) void scrub_registers(const volatile unsigned *clean,
                                                               unsigned *never) {
    unsigned held[HELD], first = 1, second = 1;
#pragma unroll
    for (int i = 0; i < HELD; i++) held[i] = clean[i];
#pragma unroll
    for (int i = 0; i < HELD; i++) first += held[i];
#pragma unroll
    for (int i = 0; i < HELD; i++) second = second * first + held[i];
    if (second == 0x12345679u) *never = second; /* never, but the compiler cannot know that */
}

/* Every thread that fits writes a frame of local memory.  All wait for all, so that each has a
 * place of its own, and no place is left out. */
template <unsigned BYTES> __global__ void scrub_local() {
    volatile unsigned frame[BYTES / 4];
#pragma unroll 1 /* else it would be held in registers */
    for (unsigned i = 0; i < BYTES / 4; i++) frame[i] = kScrub;
    cooperative_groups::this_grid().sync();
}

static const struct {
    size_t bytes;
    const void *kernel;
} kFrames[] = {{1 << 10, (const void *)scrub_local<1 << 10>},
               {2 << 10, (const void *)scrub_local<2 << 10>},
               {4 << 10, (const void *)scrub_local<4 << 10>},
               {8 << 10, (const void *)scrub_local<8 << 10>},
               {16 << 10, (const void *)scrub_local<16 << 10>},
               {32 << 10, (const void *)scrub_local<32 << 10>},
               {KP_MOST_LOCAL, (const void *)scrub_local<KP_MOST_LOCAL>}};

void device_scrub(const void *clean, size_t local_bytes, cudaStream_t stream) {
    int sms = attribute(cudaDevAttrMultiProcessorCount), each = 0, k = 0;
    scrub_registers<<<sms, kThreads, 0, stream>>>((const volatile unsigned *)clean, NULL);
    device_check(cudaGetLastError(), "scrubbing registers");
    while (kFrames[k].bytes < local_bytes && kFrames[k].bytes < KP_MOST_LOCAL) k++;
    device_check(
        cudaOccupancyMaxActiveBlocksPerMultiprocessor(&each, kFrames[k].kernel, kThreads, 0),
        "scrubbing local memory");
    device_check(cudaLaunchCooperativeKernel(kFrames[k].kernel, dim3(sms * each), dim3(kThreads),
                                             NULL, 0, stream),
                 "scrubbing local memory");
}

/* ---- Flush and copy ----------------------------------------------------------- */

/* The sum decides nothing, but the compiler cannot know that.  A block takes all the shared memory
 * that it may have and overwrites it, so that no earlier kernel's survives. */
__global__ void flush_kernel(const uint4 *clean, size_t n, unsigned shared_words) {
    extern __shared__ unsigned scrub[];
    for (unsigned i = threadIdx.x; i < shared_words; i += blockDim.x) scrub[i] = kScrub;
    __syncthreads();
    unsigned s = scrub[threadIdx.x];
    for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < n;
         i += (size_t)gridDim.x * blockDim.x) {
        uint4 v = clean[i];
        s ^= v.x ^ v.y ^ v.z ^ v.w;
    }
    if (s == 0x12345679u) scrub[threadIdx.x] = s;
}

void device_flush(const void *clean, size_t bytes, cudaStream_t stream) {
    static int shared = 0;
    int sms = attribute(cudaDevAttrMultiProcessorCount);
    if (!shared) {
        shared = attribute(cudaDevAttrMaxSharedMemoryPerBlockOptin);
        device_check(cudaFuncSetAttribute((const void *)flush_kernel,
                                          cudaFuncAttributeMaxDynamicSharedMemorySize, shared),
                     "flush");
    }
    flush_kernel<<<2 * sms, 1024, (size_t)shared, stream>>>((const uint4 *)clean, bytes / 16,
                                                            (unsigned)shared / 4);
    device_check(cudaGetLastError(), "emptying the L2");
}

/* Every thread has eight loads in flight, past the L1, of a part that its block reads from end to
 * end, and writes nothing: the rate of reading alone. */
__global__ void read_kernel(const uint4 *from, size_t n, int times, unsigned *never) {
    const int loads = 8;
    size_t part = (size_t)loads * blockDim.x, all = n * (size_t)times;
    size_t wrap = times > 1 ? n - 1 : ~(size_t)0;
    unsigned s = 0;
    for (size_t i = blockIdx.x * part + threadIdx.x; i < all; i += gridDim.x * part) {
        uint4 v[loads];
        for (int k = 0; k < loads; k++)
            v[k] = i + k * blockDim.x < all ? __ldcg(from + (i + k * blockDim.x & wrap))
                                            : make_uint4(0, 0, 0, 0);
        for (int k = 0; k < loads; k++) s ^= v[k].x ^ v[k].y ^ v[k].z ^ v[k].w;
    }
    if (s == 0x12345679u) *never = s; /* never, but the compiler cannot know that */
}

/* Reading once, a block ends with its part; reading again, the blocks that fit go on. */
void device_read(const void *from, size_t bytes, int times, void *never, cudaStream_t stream) {
    const int sms = attribute(cudaDevAttrMultiProcessorCount);
    const size_t parts = bytes / 16 / (8 * kThreads) + 1;
    const unsigned blocks = times > 1 ? (unsigned)sms * 8 : (unsigned)parts;
    read_kernel<<<blocks, kThreads, 0, stream>>>((const uint4 *)from, bytes / 16, times,
                                                 (unsigned *)never);
    device_check(cudaGetLastError(), "reading");
}

__global__ void copy_kernel(const uint4 *from, uint4 *to, size_t n) {
    size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x;
    if (i < n) to[i] = from[i];
}

void device_copy(const void *from, void *to, size_t bytes, cudaStream_t stream) {
    copy_kernel<<<(unsigned)((bytes / 16 + kThreads - 1) / kThreads), kThreads, 0, stream>>>(
        (const uint4 *)from, (uint4 *)to, bytes / 16);
    device_check(cudaGetLastError(), "copying");
}
