/* device.h: what the referee and the runners do on the GPU: fill, poison, compare,
 * empty the L2.  Every call enqueues on `stream` and is checked by the caller
 * with device_check(), which names the step. */
#ifndef KP_DEVICE_H
#define KP_DEVICE_H

#include <cuda_runtime_api.h>
#include "task/taskfile.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Which values a sample holds.  DECLARED is the task's own fill; NORMAL is signed
 * and of the declared root mean square; SCALED varies over many powers of two.
 * The last two stay inside each tensor's domain. */
enum kp_distribution { KP_DIST_DECLARED, KP_DIST_NORMAL, KP_DIST_SCALED, KP_DIST_COUNT };
extern const char *const kp_distribution_name[KP_DIST_COUNT];

/* A well mixed 64-bit function of two numbers (splitmix64): seeds from seeds. */
uint64_t kp_mix(uint64_t seed, uint64_t index);

/* Fill tensor `index` of the task.  Every element is a function of (seed, tensor,
 * element) alone, so any sample can be remade from its seed on any machine. */
void device_fill(const struct kp_task *t, int index, void *data, enum kp_distribution d,
                 uint64_t seed, cudaStream_t stream);

/* Repeat a secret 32-bit word over `bytes` (any alignment of the end).  Words come
 * from device_poison_word: finite and huge in f32, f16 and bf16, huge in i64. */
uint32_t device_poison_word(uint64_t seed);
void device_poison(void *data, size_t bytes, uint32_t word, cudaStream_t stream);

/* Add to *mismatches (device memory) the bytes of [data, data+bytes) that are not the
 * poison word's. */
void device_poison_check(const void *data, size_t bytes, uint32_t word,
                         unsigned long long *mismatches, cudaStream_t stream);

/* What a comparison finds; accumulates over calls (slices).  y is compared with o,
 * d = y - o.  NaN against NaN and equal infinities are no difference; any other
 * non-finite difference counts as infinite. */
struct kp_compare {
    double sum_d2, sum_o2, sum_d;
    double max_rel;               /* largest |d| / (|o| + rms) */
    unsigned long long count;     /* elements compared */
    unsigned long long bad;       /* not (|d| <= tolerance * (|o| + rms)) */
    unsigned long long first_bad; /* its index, ~0 if none */
    unsigned long long unwritten; /* elements that still are poison, bit for bit, and differ */
    double first_expected, first_found;
};

/* Set *c (device memory) to nothing compared. */
void device_compare_reset(struct kp_compare *c, cudaStream_t stream);

/* Compare y (dtype ty) with o (dtype to), `count` elements, whose first is number
 * `offset` of the output.  Integer types compare exactly (d is 0 or infinite).
 * y and o may be of any dtype; c is device memory. */
void device_compare(const void *y, enum kp_dtype ty, const void *o, enum kp_dtype to,
                    int64_t offset, int64_t count, double rms, double tolerance, uint32_t poison,
                    struct kp_compare *c, cudaStream_t stream);

/* Add to *sum (device memory) the squares of x. */
void device_sum_squares(const void *x, enum kp_dtype type, int64_t count, double *sum,
                        cudaStream_t stream);

/* Add to *sum a position-dependent checksum of the bytes (a multiple of 4). */
void device_checksum(const void *data, size_t bytes, unsigned long long *sum, cudaStream_t stream);

/* Read `bytes` of clean memory, so that the L2 holds nothing of anybody's and has
 * no dirty lines to evict; also overwrites every multiprocessor's shared memory. */
void device_flush(const void *clean, size_t bytes, cudaStream_t stream);

/* Read all of it and write nothing (to `never`), for the peaks. */
void device_read(const void *from, size_t bytes, void *never, cudaStream_t stream);

/* Copy, for the sentinel and the peaks: 16-byte loads and stores. */
void device_copy(const void *from, void *to, size_t bytes, cudaStream_t stream);

/* Die with KP_MACHINE if `e` is an error, saying in which step. */
void device_check(cudaError_t e, const char *step);

#ifdef __cplusplus
}
#endif
#endif
