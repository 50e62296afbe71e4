/* mma_f16.cuh: the product of a warp (sm_80), for kernels that load operands themselves. */
#pragma once
#include <stdint.h>

namespace kp {

/* d (16 x 8, fp32) += a (16 x 16) * b (16 x 8), both f16, two in a word. A lane has, with g = lane
 * / 4 and t = lane % 4: d[2 h + e] is row g + 8 h, column 2 t + e; a[h + 2 u] is row g + 8 h,
 * depths 2 t + 8 u and the next; b[u] is column g, the same depths. */
__device__ __forceinline__ void mma_f16(float (&d)[4], const uint32_t (&a)[4],
                                        const uint32_t (&b)[2]) {
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, "
                 "{%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

} // namespace kp
