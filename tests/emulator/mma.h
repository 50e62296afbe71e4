/* mma.h: CUDA's header for tests/emulate. Of a factor each lane has all elements, of sums eight:
 * row lane / 2, half lane % 2. Kernels may not know who has what. */
#pragma once

namespace nvcuda::wmma {
struct matrix_a;
struct matrix_b;
struct accumulator;
struct row_major;
struct col_major;
enum layout_t { mem_row_major, mem_col_major };
namespace precision {
struct tf32;
}
template <class T> struct Stored { using Type = T; };
template <> struct Stored<precision::tf32> { using Type = float; };

template <class Use, int M, int N, int K, class T, class Layout = void> struct fragment {
    static_assert(M == 16 && N == 16, "");
    using Element = typename Stored<T>::Type;
    static constexpr int num_elements = 16 * K;
    Element x[num_elements]; /* row by row of a; column by column of b */
};
template <int M, int N, int K, class T, class Layout>
struct fragment<accumulator, M, N, K, T, Layout> {
    static constexpr int num_elements = 8;
    T x[8];
};

template <class F, class T> void fill_fragment(F &f, T v) {
    for (int i = 0; i < F::num_elements; i++) f.x[i] = v;
}
inline float __float_to_tf32(float v) {
    uint32_t bits;
    memcpy(&bits, &v, 4);
    bits = (bits + 0x1000) & 0xffffe000;
    memcpy(&v, &bits, 4);
    return v;
}

template <class Use, int M, int N, int K, class T, class Layout, class E>
void load_matrix_sync(fragment<Use, M, N, K, T, Layout> &f, const E *from, unsigned pitch) {
    constexpr bool ALONG = std::is_same_v<Use, matrix_a> == std::is_same_v<Layout, row_major>;
    if ((uintptr_t)from % 32 || pitch * sizeof(E) % 16) emulator::fail("a matrix is not aligned");
    __syncwarp();
    for (int i = 0; i < 16; i++)
        for (int k = 0; k < K; k++) f.x[i * K + k] = from[ALONG ? i * pitch + k : k * pitch + i];
}
template <int K, class T, class L, class R>
void mma_sync(fragment<accumulator, 16, 16, K, float> &d,
              const fragment<matrix_a, 16, 16, K, T, L> &a,
              const fragment<matrix_b, 16, 16, K, T, R> &b,
              const fragment<accumulator, 16, 16, K, float> &c) {
    const int row = threadIdx.x % 32 / 2, first = threadIdx.x % 2 * 8;
    __syncwarp();
    for (int j = 0; j < 8; j++) {
        double sum = c.x[j];
        for (int k = 0; k < K; k++)
            sum += (double)(float)a.x[row * K + k] * (double)(float)b.x[(first + j) * K + k];
        d.x[j] = (float)sum;
    }
}
template <int K, class T>
void store_matrix_sync(T *to, const fragment<accumulator, 16, 16, K, T> &f, unsigned pitch,
                       layout_t layout) {
    const int row = threadIdx.x % 32 / 2, first = threadIdx.x % 2 * 8;
    for (int j = 0; j < 8; j++)
        to[layout == mem_row_major ? row * pitch + first + j : (first + j) * pitch + row] = f.x[j];
}
} // namespace nvcuda::wmma
