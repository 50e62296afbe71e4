/* copy.cu: kp_copy, from any strided array to a dense one of any type.
 *
 * Between arrays of one type there are three forms: a plain copy where the bytes lie alike, wide
 * loads where the last axis lies alike, and tiles through shared memory where two axes change
 * places.  Between types, elements are converted one by one. */
#include "cuda_base/copy.h"
#include "cuda_base/check.h"
#include "cuda_base/strided.h"
#include "base/error.h"
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <type_traits>

enum { TILE = 32, TILE_ROWS = 8, TILE_MIN = 16 };

/* One value from one type to another; halves go through float. */
template <typename To, typename From> __device__ __forceinline__ To convert(From x) {
    if constexpr (std::is_same_v<To, From>)
        return x;
    else if constexpr (std::is_same_v<From, __half>)
        return convert<To>(__half2float(x));
    else if constexpr (std::is_same_v<From, __nv_bfloat16>)
        return convert<To>(__bfloat162float(x));
    else if constexpr (std::is_same_v<To, __half> && std::is_same_v<From, double>)
        return __double2half(x);
    else if constexpr (std::is_same_v<To, __half>)
        return __float2half_rn((float)x);
    else if constexpr (std::is_same_v<To, __nv_bfloat16> && std::is_same_v<From, double>)
        return __double2bfloat16(x);
    else if constexpr (std::is_same_v<To, __nv_bfloat16>)
        return __float2bfloat16_rn((float)x);
    else if constexpr (std::is_same_v<To, unsigned char>)
        return x != 0;
    else
        return (To)x;
}

/* Items of V elements, KP_UNROLL a thread, all loads before the stores. */
template <typename To, typename From, int V>
__global__ void __launch_bounds__(KP_THREADS)
    copy_kernel(To *out, const From *in, bool packed, struct kp_loop l, uint32_t items) {
    uint32_t first = blockIdx.x * (KP_THREADS * KP_UNROLL) + threadIdx.x;
    kp_pack<From, V> x[KP_UNROLL];
#pragma unroll
    for (int u = 0; u < KP_UNROLL; u++) {
        uint32_t i = first + u * KP_THREADS;
        if (i >= items) continue;
        int64_t at[KP_WALKERS];
        kp_loop_at(l, i, at);
        if (V > 1 && packed)
            x[u] = *(const kp_pack<From, V> *)(in + at[0]);
        else
            for (int j = 0; j < V; j++) x[u].v[j] = in[at[0]];
    }
#pragma unroll
    for (int u = 0; u < KP_UNROLL; u++) {
        uint32_t i = first + u * KP_THREADS;
        if (i >= items) continue;
        kp_pack<To, V> y;
        for (int j = 0; j < V; j++) y.v[j] = convert<To>(x[u].v[j]);
        *(kp_pack<To, V> *)(out + (int64_t)i * V) = y;
    }
}

/* Exchange axes: `in` runs evenly along rows, `out` along columns.  The other
 * axes are in `batch`: operand 0 is the input, operand 1 the result. */
template <typename T>
__global__ void __launch_bounds__(TILE *TILE_ROWS)
    tile_kernel(T *out, const T *in, int64_t rows, int64_t columns, int64_t in_stride,
                int64_t out_stride, struct kp_loop batch) {
    __shared__ T tile[TILE][TILE + 1];
    int64_t at[KP_WALKERS];
    kp_loop_at(batch, blockIdx.z, at);
    int64_t row = (int64_t)blockIdx.y * TILE, column = (int64_t)blockIdx.x * TILE;
    for (int i = threadIdx.y; i < TILE; i += TILE_ROWS)
        if (row + threadIdx.x < rows && column + i < columns)
            tile[i][threadIdx.x] = in[at[0] + row + threadIdx.x + (column + i) * in_stride];
    __syncthreads();
    for (int i = threadIdx.y; i < TILE; i += TILE_ROWS)
        if (row + i < rows && column + threadIdx.x < columns)
            out[at[1] + (row + i) * out_stride + column + threadIdx.x] = tile[threadIdx.x][i];
}

/* Try the tiled form: some outer axis must be the even one of the input.
 * Returns false, having done nothing, if it does not apply. */
template <typename T>
static bool tiled(T *out, const T *in, const struct kp_walk *w, cudaStream_t stream) {
    int last = w->n - 1, even = -1;
    for (int i = 0; i < last; i++)
        if (w->stride[0][i] == 1 && w->dim[i] >= TILE_MIN) even = i;
    if (even < 0 || w->stride[0][last] == 0 || w->dim[last] < TILE_MIN) return false;
    struct kp_walk batch = {};
    batch.count = 1;
    int64_t out_stride = w->dim[last], even_stride = 0;
    for (int i = last - 1; i >= 0; i--) {
        if (i == even) even_stride = out_stride;
        out_stride *= w->dim[i];
    }
    int64_t step = w->count;
    for (int i = 0; i < last; i++) {
        step /= w->dim[i];
        if (i == even) continue;
        batch.dim[batch.n] = w->dim[i];
        batch.stride[0][batch.n] = w->stride[0][i];
        batch.stride[1][batch.n++] = step;
        batch.count *= w->dim[i];
    }
    int64_t tall = (w->dim[even] + TILE - 1) / TILE, wide = (w->dim[last] + TILE - 1) / TILE;
    if (tall > 65535 || batch.count > 65535) return false;
    dim3 grid((unsigned)wide, (unsigned)tall, (unsigned)batch.count), block(TILE, TILE_ROWS);
    tile_kernel<T><<<grid, block, 0, stream>>>(out, in, w->dim[even], w->dim[last],
                                               w->stride[0][last], even_stride,
                                               kp_loop_make(&batch, 1));
    KP_CUDA(cudaGetLastError());
    return true;
}

/* Launch the plain form, in parts if 32 bits cannot count it. */
template <typename To, typename From>
static void walk(To *out, const From *in, struct kp_walk w, cudaStream_t stream) {
    constexpr int wide = std::is_same_v<To, From> ? 16 / sizeof(To) : 1;
    bool wide_ok = wide > 1 && w.dim[w.n - 1] % wide == 0 && (uintptr_t)out % 16 == 0 &&
                   kp_walk_packs(&w, 0, in, wide, sizeof(From));
    int64_t items = w.count / (wide_ok ? wide : 1);
    if (items > INT32_MAX) {
        int64_t at, shift[KP_WALKERS];
        struct kp_walk rest = kp_walk_split(&w, &at, shift);
        walk(out, in, w, stream);
        walk(out + at, in + shift[0], rest, stream);
        return;
    }
    bool packed = w.stride[0][w.n - 1] == 1;
    if (wide_ok)
        copy_kernel<To, From, wide><<<kp_blocks(items), KP_THREADS, 0, stream>>>(
            out, in, packed, kp_loop_make(&w, wide), (uint32_t)items);
    else
        copy_kernel<To, From, 1><<<kp_blocks(items), KP_THREADS, 0, stream>>>(
            out, in, packed, kp_loop_make(&w, 1), (uint32_t)items);
    KP_CUDA(cudaGetLastError());
}

/* Copy without conversion: only the size of an element matters. */
template <typename T>
static void same(void *out, const void *in, const struct kp_walk *w, cudaStream_t stream) {
    if (!tiled((T *)out, (const T *)in, w, stream)) walk((T *)out, (const T *)in, *w, stream);
}

/* Call f with a value of the C type of `t`. */
template <typename F> static void with_type(enum kp_dtype t, F f) {
    switch (t) {
    case KP_F64: f(double()); return;
    case KP_F32: f(float()); return;
    case KP_F16: f(__half()); return;
    case KP_BF16: f(__nv_bfloat16()); return;
    case KP_I64: f((long long)0); return;
    case KP_I32: f(0); return;
    case KP_BOOL: f((unsigned char)0); return;
    }
    die(KP_BUG, "no C type for dtype %d", (int)t);
}

/* See copy.h. */
extern "C" void kp_copy(const struct kp_array *from, const struct kp_array *to,
                        cudaStream_t stream) {
    const struct kp_array *x[KP_WALKERS] = {from, NULL};
    struct kp_walk w = kp_walk_make(to, x);
    if (from->dtype != to->dtype) {
        with_type(to->dtype, [&](auto out) {
            with_type(from->dtype, [&](auto in) {
                using To = decltype(out);
                using From = decltype(in);
                if constexpr (!std::is_same_v<To, From>)
                    walk((To *)to->data, (const From *)from->data, w, stream);
            });
        });
    } else if (w.n == 1 && (w.stride[0][0] == 1 || w.count == 1)) {
        KP_CUDA(cudaMemcpyAsync(to->data, from->data, kp_array_bytes(to), cudaMemcpyDeviceToDevice,
                                stream));
    } else {
        switch (kp_dtype_size(to->dtype)) {
        case 1: same<unsigned char>(to->data, from->data, &w, stream); return;
        case 2: same<unsigned short>(to->data, from->data, &w, stream); return;
        case 4: same<unsigned>(to->data, from->data, &w, stream); return;
        case 8: same<unsigned long long>(to->data, from->data, &w, stream); return;
        }
    }
}
