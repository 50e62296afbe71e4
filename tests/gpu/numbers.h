/* numbers.h: random numbers, and arrays of any task type as doubles. */
#ifndef KP_NUMBERS_H
#define KP_NUMBERS_H

#include "task/taskfile.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

/* A number in [0,1), from a generator that is the same everywhere. */
static inline double uniform(void) {
    static uint64_t state = 1;
    state += 0x9e3779b97f4a7c15;
    uint64_t z = state;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
    z = (z ^ z >> 27) * 0x94d049bb133111eb;
    return (double)((z ^ z >> 31) >> 11) * 0x1p-53;
}

/* The bits of a float rounded to f16: normal numbers, zeros, infinities, and
 * tiny ones to the nearest multiple of the smallest. */
static inline uint16_t to_half(float x) {
    uint32_t sign = signbit(x) ? 0x8000 : 0;
    double a = fabs((double)x);
    if (isnan(x)) return 0x7e00;
    if (a < 0x1p-14) return (uint16_t)(sign | (uint32_t)rint(a * 0x1p24));
    int e;
    frexp(a, &e);
    double m = rint(ldexp(a, 11 - e)); /* 1024 .. 2048 */
    if (m == 2048) m = 1024, e++;
    if (e > 16) return (uint16_t)(sign | 0x7c00);
    return (uint16_t)(sign | (uint32_t)((e + 14) << 10 | ((int)m - 1024)));
}

/* The value of f16 bits. */
static inline double from_half(uint16_t h) {
    int e = h >> 10 & 31, m = h & 1023;
    double a = e == 31 ? (m ? NAN : INFINITY) : e == 0 ? ldexp(m, -24) : ldexp(1024 + m, e - 25);
    return h & 0x8000 ? -a : a;
}

/* Element i of an array of type t. */
static inline double get(const void *data, enum kp_dtype t, int64_t i) {
    uint32_t bits;
    float f;
    switch (t) {
    case KP_F64: return ((const double *)data)[i];
    case KP_F32: return ((const float *)data)[i];
    case KP_F16: return from_half(((const uint16_t *)data)[i]);
    case KP_BF16:
        bits = (uint32_t)((const uint16_t *)data)[i] << 16;
        memcpy(&f, &bits, sizeof f);
        return f;
    case KP_I64: return (double)((const int64_t *)data)[i];
    case KP_I32: return ((const int32_t *)data)[i];
    case KP_BOOL: return ((const unsigned char *)data)[i];
    }
    return NAN;
}

/* Round x to type t and store it. */
static inline void put(void *data, enum kp_dtype t, int64_t i, double x) {
    uint32_t bits;
    float f = (float)x;
    switch (t) {
    case KP_F64: ((double *)data)[i] = x; return;
    case KP_F32: ((float *)data)[i] = f; return;
    case KP_F16: ((uint16_t *)data)[i] = to_half(f); return;
    case KP_BF16:
        memcpy(&bits, &f, sizeof bits);
        ((uint16_t *)data)[i] =
            isnan(f) ? 0x7fc0 : (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
        return;
    case KP_I64: ((int64_t *)data)[i] = (int64_t)x; return;
    case KP_I32: ((int32_t *)data)[i] = (int32_t)x; return;
    case KP_BOOL: ((unsigned char *)data)[i] = x != 0; return;
    }
}

#endif
