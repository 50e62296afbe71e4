/* conv_gemm.cu: the convolution's own kernels: patches for im2col, their way back, the direct
 * depthwise convolution, and the bias. */
#include "cuda_products/conv_parts.h"
#include "cuda_base/device.cuh"

namespace {

using namespace kp;

constexpr int BLOCK = 256, MAX_GRID = 65535;
constexpr int SHARE = 16, MANY_BLOCKS = 8192; /* outputs a thread, where that leaves many blocks */

/* Grid: x over positions, y over patch rows (channel and tap), z over images. */
template <class T>
__global__ void __launch_bounds__(BLOCK)
    patches(struct kp_conv g, const T *__restrict__ x, T *__restrict__ out, int images, int rows,
            unsigned first, unsigned count) {
    unsigned p = blockIdx.x * BLOCK + threadIdx.x;
    if (p >= count) return;
    unsigned o = first + p, line = o / (unsigned)g.out[2], plane = line / (unsigned)g.out[1];
    int64_t ox = o - line * (unsigned)g.out[2], oy = line - plane * (unsigned)g.out[1];
    int64_t oz = plane, size = g.in[0] * g.in[1] * g.in[2];
    int taps = (int)(g.kernel[0] * g.kernel[1] * g.kernel[2]);

    for (int n = blockIdx.z; n < images; n += gridDim.z)
        for (int row = blockIdx.y; row < rows; row += gridDim.y) {
            int channel = row / taps, tap = row % taps;
            int kx = tap % (int)g.kernel[2], ky = tap / (int)g.kernel[2] % (int)g.kernel[1];
            int kz = tap / (int)(g.kernel[2] * g.kernel[1]);
            int64_t iz = oz * g.stride[0] - g.pad[0] + kz * g.dilation[0];
            int64_t iy = oy * g.stride[1] - g.pad[1] + ky * g.dilation[1];
            int64_t ix = ox * g.stride[2] - g.pad[2] + kx * g.dilation[2];
            bool inside =
                iz >= 0 && iz < g.in[0] && iy >= 0 && iy < g.in[1] && ix >= 0 && ix < g.in[2];
            T v = narrow<T>(0);
            if (inside)
                v = x[(n * g.in_channels + channel) * size + (iz * g.in[1] + iy) * g.in[2] + ix];
            out[((int64_t)n * rows + row) * count + p] = v;
        }
}

/* The same in float64, where all taps of a channel at a position are a thread's, which then divides
 * once.  Image n is number n % batch of world n / batch.  Grid: x over channels and positions, y
 * over images. */
__global__ void __launch_bounds__(BLOCK)
    patches_f64(struct kp_conv g, const double *__restrict__ x, double *__restrict__ out,
                int64_t apart, int64_t from, int images, unsigned channels, unsigned first,
                unsigned count) {
    unsigned id = blockIdx.x * BLOCK + threadIdx.x, channel = id / count, p = id - channel * count;
    if (channel >= channels) return;
    unsigned o = first + p, line = o / (unsigned)g.out[2], plane = line / (unsigned)g.out[1];
    int nz = (int)g.in[0], ny = (int)g.in[1], nx = (int)g.in[2];
    int kz = (int)g.kernel[0], ky = (int)g.kernel[1], kx = (int)g.kernel[2];
    int dx = (int)g.dilation[2], iz = (int)plane * (int)g.stride[0] - (int)g.pad[0];
    int iy = (int)(line - plane * (unsigned)g.out[1]) * (int)g.stride[1] - (int)g.pad[1];
    int ix = (int)(o - line * (unsigned)g.out[2]) * (int)g.stride[2] - (int)g.pad[2];
    int64_t size = (int64_t)nz * ny * nx, taps = (int64_t)kz * ky * kx;

    for (int n = blockIdx.y; n < images; n += gridDim.y) {
        int64_t image = from + n, world = image / g.batch;
        const double *in =
            x + world * apart + ((image - world * g.batch) * g.in_channels + channel) * size;
        double *to = out + ((int64_t)n * channels + channel) * taps * count + p;
        for (int a = 0; a < kz; a++)
            for (int b = 0; b < ky; b++) {
                int z = iz + a * (int)g.dilation[0], v = iy + b * (int)g.dilation[1];
                bool inside = (unsigned)z < (unsigned)nz && (unsigned)v < (unsigned)ny;
                const double *row = in + ((int64_t)z * ny + v) * nx;
#pragma unroll 4
                for (int c = 0; c < kx; c++, to += count) {
                    int u = ix + c * dx;
                    *to = inside && (unsigned)u < (unsigned)nx ? row[u] : 0;
                }
            }
    }
}

/* Grid: x over (image, output channel), y over positions.  KY, KX: filter size in
 * the last two axes when known (then the first is 1), else 0. */
template <class T, int KY, int KX>
__global__ void __launch_bounds__(BLOCK)
    depthwise(struct kp_conv g, const T *__restrict__ x, const T *__restrict__ w,
              const T *__restrict__ bias, T *__restrict__ y) {
    unsigned channel = blockIdx.x % (unsigned)g.out_channels;
    int64_t image = blockIdx.x / (unsigned)g.out_channels;
    unsigned source = channel / (unsigned)(g.out_channels / g.in_channels);
    int nz = (int)g.in[0], ny = (int)g.in[1], nx = (int)g.in[2];
    int kz = KX ? 1 : (int)g.kernel[0], ky = KY ? KY : (int)g.kernel[1];
    int kx = KX ? KX : (int)g.kernel[2];
    unsigned size = (unsigned)(g.out[0] * g.out[1] * g.out[2]);

    x += (image * g.in_channels + source) * (g.in[0] * g.in[1] * g.in[2]);
    w += (int64_t)channel * kz * ky * kx;
    y += (int64_t)blockIdx.x * size;
    Acc<T> start = bias ? widen(bias[channel]) : Acc<T>(0);
    for (unsigned o = blockIdx.y * blockDim.x + threadIdx.x; o < size;
         o += gridDim.y * blockDim.x) {
        unsigned line = o / (unsigned)g.out[2], plane = line / (unsigned)g.out[1];
        int ix = (int)(o - line * (unsigned)g.out[2]) * (int)g.stride[2] - (int)g.pad[2];
        int iy = (int)(line - plane * (unsigned)g.out[1]) * (int)g.stride[1] - (int)g.pad[1];
        int iz = (int)plane * (int)g.stride[0] - (int)g.pad[0];
        Acc<T> sum = start;
        for (int a = 0; a < kz; a++)
#pragma unroll
            for (int b = 0; b < ky; b++)
#pragma unroll
                for (int c = 0; c < kx; c++) {
                    int z = iz + a * (int)g.dilation[0], v = iy + b * (int)g.dilation[1];
                    int u = ix + c * (int)g.dilation[2];
                    if ((unsigned)z < (unsigned)nz && (unsigned)v < (unsigned)ny &&
                        (unsigned)u < (unsigned)nx)
                        sum += widen(w[(a * ky + b) * kx + c]) *
                               widen(x[(unsigned)((z * ny + v) * nx + u)]);
                }
        y[o] = narrow<T>(sum);
    }
}

/* y += bias of its channel; a channel is `packs` packs.  I: unsigned if it can
 * count them all, else 64-bit. */
template <class T, int V, class I>
__global__ void __launch_bounds__(BLOCK)
    add_bias(const T *__restrict__ bias, T *__restrict__ y, I count, I packs, I channels) {
    I id = (I)blockIdx.x * BLOCK + threadIdx.x;
    if (id >= count) return;
    Acc<T> b = widen(bias[id / packs % channels]);
    Pack<T, V> p = load<V>(y + (int64_t)id * V);
#pragma unroll
    for (int e = 0; e < V; e++) p.v[e] = narrow<T>(widen(p.v[e]) + b);
    store<V>(y + (int64_t)id * V, p);
}

/* The place along an axis that adds to place `o` of a transposed convolution's result by tap k, or
 * -1. */
__device__ inline int source(const struct kp_conv &g, int axis, int o, int k) {
    int at = o + (int)g.pad[axis] - k * (int)g.dilation[axis], stride = (int)g.stride[axis];
    int i = at / stride;
    return at >= 0 && i * stride == at && i < (int)g.in[axis] ? i : -1;
}

/* Grid: x over places of the result, y over channels, z over images. */
template <class T>
__global__ void __launch_bounds__(BLOCK)
    gather(struct kp_conv g, const T *__restrict__ columns, T *__restrict__ y, int images,
           int channels, unsigned places) {
    unsigned o = blockIdx.x * BLOCK + threadIdx.x;
    if (o >= places) return;
    unsigned line = o / (unsigned)g.out[2], plane = line / (unsigned)g.out[1];
    int ox = (int)(o - line * (unsigned)g.out[2]), oy = (int)(line - plane * (unsigned)g.out[1]);
    int64_t in = g.in[0] * g.in[1] * g.in[2], taps = g.kernel[0] * g.kernel[1] * g.kernel[2];

    for (int n = blockIdx.z; n < images; n += gridDim.z)
        for (int channel = blockIdx.y; channel < channels; channel += gridDim.y) {
            const T *row = columns + ((int64_t)n * channels + channel) * taps * in;
            Acc<T> sum = 0;
            for (int a = 0; a < (int)g.kernel[0]; a++) {
                int z = source(g, 0, (int)plane, a);
                for (int b = 0; b < (int)g.kernel[1]; b++) {
                    int v = z < 0 ? -1 : source(g, 1, oy, b);
                    for (int c = 0; c < (int)g.kernel[2]; c++, row += in) {
                        int u = v < 0 ? -1 : source(g, 2, ox, c);
                        if (u >= 0) sum += widen(row[(z * g.in[1] + v) * g.in[2] + u]);
                    }
                }
            }
            y[(n * g.out_channels + channel) * places + o] = narrow<T>(sum);
        }
}

/* The taps along an axis that add to a place of a transposed convolution's result: from `tap` on,
 * so many taps apart, by the operand's place `at`, which then goes down by `down`. */
struct Taps {
    int tap, step, at, down;
};
__device__ inline Taps taps_of(const struct kp_conv &g, int axis, int o) {
    int stride = (int)g.stride[axis], by = (int)g.dilation[axis], kernel = (int)g.kernel[axis];
    int at = o + (int)g.pad[axis], tap = 0, step = 1;
    while (step * by % stride) step++;
    while (tap < kernel && (at - tap * by) % stride) tap++;
    return {tap, step, (at - tap * by) / stride, step * by / stride};
}

/* The same as gather in float64: a thread divides for each axis once, not for each tap. */
__global__ void __launch_bounds__(BLOCK)
    gather_f64(struct kp_conv g, const double *__restrict__ columns, double *__restrict__ y,
               int images, int channels, unsigned places) {
    unsigned o = blockIdx.x * BLOCK + threadIdx.x;
    if (o >= places) return;
    unsigned line = o / (unsigned)g.out[2], plane = line / (unsigned)g.out[1];
    Taps z = taps_of(g, 0, (int)plane), v = taps_of(g, 1, (int)(line - plane * (unsigned)g.out[1]));
    Taps u = taps_of(g, 2, (int)(o - line * (unsigned)g.out[2]));
    int nz = (int)g.in[0], ny = (int)g.in[1], nx = (int)g.in[2];
    int kz = (int)g.kernel[0], ky = (int)g.kernel[1], kx = (int)g.kernel[2];
    int64_t in = (int64_t)nz * ny * nx, taps = (int64_t)kz * ky * kx;
    int64_t next = u.step * in - u.down; /* from one tap's number along a row to the next's */

    for (int n = blockIdx.z; n < images; n += gridDim.z)
        for (int channel = blockIdx.y; channel < channels; channel += gridDim.y) {
            const double *own = columns + ((int64_t)n * channels + channel) * taps * in;
            double sum = 0;
            for (int a = z.tap, iz = z.at; a < kz; a += z.step, iz -= z.down) {
                if ((unsigned)iz >= (unsigned)nz) continue;
                for (int b = v.tap, iy = v.at; b < ky; b += v.step, iy -= v.down) {
                    if ((unsigned)iy >= (unsigned)ny) continue;
                    const double *at = own + ((int64_t)(a * ky + b) * kx + u.tap) * in +
                                       ((int64_t)iz * ny + iy) * nx + u.at;
#pragma unroll 4
                    for (int c = u.tap, ix = u.at; c < kx; c += u.step, ix -= u.down, at += next)
                        if ((unsigned)ix < (unsigned)nx) sum += *at;
                }
            }
            y[(n * g.out_channels + channel) * places + o] = sum;
        }
}

/* Grid: an output channel each.  Filters of a convolution are [out, in/groups, taps], of a
 * transposed one [in, out/groups, taps]. */
__global__ void __launch_bounds__(BLOCK)
    unknown_channels(struct kp_conv g, const double *__restrict__ w, double *__restrict__ y) {
    int64_t taps = g.kernel[0] * g.kernel[1] * g.kernel[2], size = g.out[0] * g.out[1] * g.out[2];
    int64_t in = g.in_channels / g.groups, out = g.out_channels / g.groups, channel = blockIdx.x;
    bool infinite = false;
    for (int64_t k = threadIdx.x; k < in * taps; k += BLOCK) {
        int64_t source = channel / out * in + k / taps;
        int64_t at = g.transposed ? (source * out + channel % out) * taps + k % taps
                                  : channel * in * taps + k;
        infinite |= isinf(w[at]);
    }
    if (!__syncthreads_or(infinite)) return;
    for (int64_t k = threadIdx.x; k < g.batch * size; k += BLOCK)
        y[(k / size * g.out_channels + channel) * size + k % size] = (double)NAN;
}

/* Launch add_bias in packs of V. */
template <class T, int V>
void launch_bias(const struct kp_conv *g, const void *bias, void *y, cudaStream_t stream) {
    int64_t packs = kp_conv_out(g) / V, count = g->batch * g->out_channels * packs;
    unsigned blocks = (unsigned)((count + BLOCK - 1) / BLOCK);
    if (count <= INT32_MAX)
        add_bias<T, V, unsigned><<<blocks, BLOCK, 0, stream>>>(
            (const T *)bias, (T *)y, (unsigned)count, (unsigned)packs, (unsigned)g->out_channels);
    else
        add_bias<T, V, uint64_t><<<blocks, BLOCK, 0, stream>>>(
            (const T *)bias, (T *)y, (uint64_t)count, (uint64_t)packs, (uint64_t)g->out_channels);
    KP_CUDA(cudaGetLastError());
}

/* Launch the depthwise kernel, with the filter size that it knows or any. */
template <class T>
void launch_depthwise(const struct kp_conv *g, const void *x, const void *w, const void *bias,
                      void *y, cudaStream_t stream) {
    int64_t size = kp_conv_out(g), planes = g->batch * g->out_channels;
    if (planes > INT32_MAX || size > INT32_MAX || kp_conv_in(g) > INT32_MAX)
        die(KP_INPUT, "depthwise convolution: an axis has more than 2^31 elements");
    int threads = size >= BLOCK ? BLOCK : (int)((size + 31) / 32 * 32);
    int64_t tiles = (size + threads - 1) / threads;
    if (planes * tiles / SHARE >= MANY_BLOCKS) tiles = (tiles + SHARE - 1) / SHARE;
    dim3 grid((unsigned)planes, (unsigned)(tiles < MAX_GRID ? tiles : MAX_GRID));
    const T *px = (const T *)x, *pw = (const T *)w, *pb = (const T *)bias;
    if (g->kernel[0] == 1 && g->kernel[1] == 3 && g->kernel[2] == 3)
        depthwise<T, 3, 3><<<grid, threads, 0, stream>>>(*g, px, pw, pb, (T *)y);
    else
        depthwise<T, 0, 0><<<grid, threads, 0, stream>>>(*g, px, pw, pb, (T *)y);
    KP_CUDA(cudaGetLastError());
}

} // namespace

/* See conv_parts.h. */
void kp_conv_unknown(const struct kp_conv *g, const double *w, double *y, cudaStream_t stream) {
    unknown_channels<<<(unsigned)g->out_channels, BLOCK, 0, stream>>>(*g, w, y);
    KP_CUDA(cudaGetLastError());
}

/* See conv_parts.h. */
void kp_conv_patches(const struct kp_conv *g, enum kp_dtype dtype, const void *x, int64_t images,
                     int64_t first, int64_t count, void *out, cudaStream_t stream) {
    int64_t rows = g->in_channels / g->groups * kp_conv_taps(g);
    if (rows > INT32_MAX || kp_conv_out(g) > INT32_MAX)
        die(KP_INPUT, "convolution: more than 2^31 positions or filter taps");
    dim3 grid((unsigned)((count + BLOCK - 1) / BLOCK),
              (unsigned)(rows < MAX_GRID ? rows : MAX_GRID),
              (unsigned)(images < MAX_GRID ? images : MAX_GRID));
    KP_BY_TYPE(dtype,
               patches<T><<<grid, BLOCK, 0, stream>>>(*g, (const T *)x, (T *)out, (int)images,
                                                      (int)rows, (unsigned)first, (unsigned)count))
    KP_CUDA(cudaGetLastError());
}

/* See conv_parts.h. */
void kp_conv_patches_f64(const struct kp_conv *g, const double *x, int64_t apart, int64_t from,
                         int64_t images, int64_t first, int64_t count, double *out,
                         cudaStream_t stream) {
    int64_t channels = g->in_channels / g->groups;
    bool fits = channels * kp_conv_taps(g) <= INT32_MAX && kp_conv_out(g) <= INT32_MAX;
    fits = fits && channels * count <= INT32_MAX;
    for (int i = 0; i < 3; i++) fits = fits && g->in[i] + 2 * g->pad[i] <= INT32_MAX;
    if (!fits) die(KP_INPUT, "convolution: more than 2^31 positions or filter taps");
    dim3 grid((unsigned)((channels * count + BLOCK - 1) / BLOCK),
              (unsigned)(images < MAX_GRID ? images : MAX_GRID));
    patches_f64<<<grid, BLOCK, 0, stream>>>(*g, x, out, apart, from, (int)images,
                                            (unsigned)channels, (unsigned)first, (unsigned)count);
    KP_CUDA(cudaGetLastError());
}

/* See conv_parts.h.  Each place gathers what is its own, so the order of its sum is fixed. */
void kp_conv_gather(const struct kp_conv *g, enum kp_dtype dtype, const void *columns,
                    int64_t images, int64_t channels, void *y, cudaStream_t stream) {
    int64_t places = kp_conv_out(g);
    bool fits = places <= INT32_MAX;
    for (int i = 0; i < 3; i++) fits = fits && g->out[i] + 2 * g->pad[i] <= INT32_MAX;
    if (!fits) die(KP_INPUT, "transposed convolution: more than 2^31 places in a channel");
    dim3 grid((unsigned)((places + BLOCK - 1) / BLOCK),
              (unsigned)(channels < MAX_GRID ? channels : MAX_GRID),
              (unsigned)(images < MAX_GRID ? images : MAX_GRID));
    if (dtype == KP_F64)
        gather_f64<<<grid, BLOCK, 0, stream>>>(*g, (const double *)columns, (double *)y,
                                               (int)images, (int)channels, (unsigned)places);
    else
        KP_BY_TYPE(dtype, gather<T><<<grid, BLOCK, 0, stream>>>(*g, (const T *)columns, (T *)y,
                                                                (int)images, (int)channels,
                                                                (unsigned)places))
    KP_CUDA(cudaGetLastError());
}

/* See conv_parts.h. */
void kp_conv_depthwise(const struct kp_conv *g, enum kp_dtype dtype, const void *x, const void *w,
                       const void *bias, void *y, cudaStream_t stream) {
    KP_BY_TYPE(dtype, launch_depthwise<T>(g, x, w, bias, y, stream))
}

/* See conv_parts.h. */
void kp_conv_bias(const struct kp_conv *g, enum kp_dtype dtype, const void *bias, void *y,
                  cudaStream_t stream) {
    KP_BY_TYPE(dtype, {
        if (packs<T>(y, kp_conv_out(g)))
            launch_bias<T, kPack<T>>(g, bias, y, stream);
        else
            launch_bias<T, 1>(g, bias, y, stream);
    })
}
