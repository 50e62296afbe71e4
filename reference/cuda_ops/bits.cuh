/* bits.cuh: elements that are moved and not computed with: only their size matters. */
#ifndef KP_BITS_CUH
#define KP_BITS_CUH

#include "cuda_base/device.cuh"

#include <string.h>

namespace kp {

/* Run the statement list with U naming the unsigned type of `size` bytes. */
#define KP_BY_SIZE(size_, ...)                                                  \
    switch (size_) {                                                            \
    case 1: {                                                                   \
        using U = uint8_t;                                                      \
        __VA_ARGS__;                                                            \
        break;                                                                  \
    }                                                                           \
    case 2: {                                                                   \
        using U = uint16_t;                                                     \
        __VA_ARGS__;                                                            \
        break;                                                                  \
    }                                                                           \
    case 4: {                                                                   \
        using U = uint32_t;                                                     \
        __VA_ARGS__;                                                            \
        break;                                                                  \
    }                                                                           \
    case 8: {                                                                   \
        using U = uint64_t;                                                     \
        __VA_ARGS__;                                                            \
        break;                                                                  \
    }                                                                           \
    default: die(KP_BUG, "%s: no element of %d bytes", __func__, (int)(size_)); \
    }

/* Host: the bits of x in this type, in the low bytes. */
inline uint64_t bits_of(double x, enum kp_dtype type) {
    uint64_t bits = 0;
    float f = (float)x;
    __half h = __float2half_rn(f);
    __nv_bfloat16 b = __float2bfloat16_rn(f);
    switch (type) {
    case KP_F64: memcpy(&bits, &x, sizeof x); break;
    case KP_F32: memcpy(&bits, &f, sizeof f); break;
    case KP_F16: memcpy(&bits, &h, sizeof h); break;
    case KP_BF16: memcpy(&bits, &b, sizeof b); break;
    case KP_I64:
    case KP_I32: bits = (uint64_t)(int64_t)x; break;
    case KP_BOOL: bits = x != 0; break;
    }
    return bits;
}

} // namespace kp
#endif
