/* device.h: the harness's own work on the GPU: fill, poison, compare, empty the L2.  Every call
 * enqueues on `stream`, and ends the program with KP_MACHINE if the launch fails. */
#ifndef KP_DEVICE_H
#define KP_DEVICE_H

#include <cuda_runtime_api.h>
#include "gpu/values.h"

struct kp_draws; /* of the oracle: cuda_base/arithmetic.h */
struct kp_stray; /* this and the next four: stray.h */
struct kp_compare;
struct kp_suspects;
struct kp_spread;
struct kp_stray_rule;

#ifdef __cplusplus
extern "C" {
#endif

/* Fill tensor `index` of the task with the values of a distribution (values.h). */
void device_fill(const struct kp_task *t, int index, void *data, enum kp_distribution d,
                 uint64_t seed, cudaStream_t stream);

/* Repeat a secret 32-bit word over `bytes`, whatever the alignment of their end.  The words of
 * device_poison_word are finite and huge in f32, f16 and bf16, and huge in i64. */
uint32_t device_poison_word(uint64_t seed);
void device_poison(void *data, size_t bytes, uint32_t word, cudaStream_t stream);

/* Add to *mismatches (device memory) how many words of [data, data+bytes), and how many bytes after
 * the last word, are not the poison's. */
void device_poison_check(const void *data, size_t bytes, uint32_t word,
                         unsigned long long *mismatches, cudaStream_t stream);

/* A mapping, and where in it the buffer lies: all else is canary, up to the last byte. */
struct kp_guarded {
    unsigned char *base;
    size_t from, to, mapped; /* the buffer is [from, to); from is a multiple of 4 */
};

/* Repeat a secret word over the canaries of n mappings, a list in device memory, by one launch. */
void device_canaries(const struct kp_guarded *list, int n, uint32_t word, cudaStream_t stream);

/* Add to changed[i] (device memory) how many bytes of mapping i's canaries are not the word's. */
void device_canaries_check(const struct kp_guarded *list, int n, uint32_t word,
                           unsigned long long *changed, cudaStream_t stream);

/* Set *c (device memory) to what comparing `count` elements of y with a baseline's b finds. */
void device_compare(const void *y, const void *b, enum kp_dtype type, int64_t count,
                    const struct kp_stray_rule *rule, struct kp_compare *c, cudaStream_t stream);

/* Set these (device memory) to nothing compared. */
void device_stray_reset(struct kp_stray *s, struct kp_suspects *suspects, cudaStream_t stream);
void device_spread_reset(struct kp_spread *s, cudaStream_t stream);

/* Add to *s (device memory) how `count` elements of y, from element `offset` of an output of
 * `total` on, stray from the oracle; and to *own, unless it is NULL, what the oracle's draws do.
 * Suspects are noted instead, as far as there is room. */
void device_stray(const void *y, enum kp_dtype type, const struct kp_draws *oracle, int64_t offset,
                  int64_t count, int64_t total, const struct kp_stray_rule *rule,
                  struct kp_stray *s, struct kp_suspects *suspects, struct kp_spread *own,
                  cudaStream_t stream);

/* Add other draws of the oracle, of the elements from `offset` on, to the suspects among them. */
void device_redraw(const struct kp_draws *oracle, int64_t offset, int64_t count,
                   struct kp_suspects *suspects, cudaStream_t stream);

/* Round what a tensor holds to `bits` significant bits (f32 and f16 only; others are left). */
void device_cut(void *data, enum kp_dtype type, int64_t count, int bits, cudaStream_t stream);

/* The same against the largest of each `block` neighbours: what scaled integers keep. */
void device_cut_blocks(void *data, enum kp_dtype type, int64_t count, int block, int bits,
                       cudaStream_t stream);

/* Add to *sum (device memory) the squares of x. */
void device_sum_squares(const void *x, enum kp_dtype type, int64_t count, double *sum,
                        cudaStream_t stream);

/* Add to *sum a checksum of the bytes (a multiple of 4) that depends on their positions. */
void device_checksum(const void *data, size_t bytes, unsigned long long *sum, cudaStream_t stream);

/* Overwrite the registers of every multiprocessor, and the local memory of as many threads as fit
 * on them: local_bytes each, at least the 1 KB that any thread has and at most KP_MOST_LOCAL.
 * `clean` holds zeros. */
enum { KP_MOST_LOCAL = 64 << 10 };
void device_scrub(const void *clean, size_t local_bytes, cudaStream_t stream);

/* Empty the L2: read `bytes` of clean memory, which leaves no dirty lines to evict.  Also overwrite
 * every multiprocessor's shared memory. */
void device_flush(const void *clean, size_t bytes, cudaStream_t stream);

/* Read all of it so many times, for the peaks; if more than once, `bytes` is a power of two.
 * Nothing is ever written to `never`. */
void device_read(const void *from, size_t bytes, int times, void *never, cudaStream_t stream);

/* Copy by loads and stores of 16 bytes, for the sentinel and the peaks. */
void device_copy(const void *from, void *to, size_t bytes, cudaStream_t stream);

/* Die with KP_MACHINE if `e` is an error, saying in which step. */
void device_check(cudaError_t e, const char *step);

#ifdef __cplusplus
}
#endif
#endif
