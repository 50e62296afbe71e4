/* foreign.cuh: what a source of CUDA-L2 needs of PyTorch, so that it becomes a kernel without it.
 *
 * Every header of PyTorch's, and <iostream>, is this file for such a source
 * (harness/inspect/foreign). What is translated here is what PyTorch's process gives a kernel and a
 * recording does not:
 *
 * - tensors: sizes and an address
 * - the null stream: a recording has one stream, to which launches, memsets and copies go
 * - memory from cudaMalloc: part of the scratch that launch is given; freeing it does nothing
 * - variables that outlive a call: launch finds them as they were loaded. It is recorded twice,
 *   with other addresses; a source that keeps its memory would use the first recording's again
 * - the stack below the source's functions: zeros, at the start and after each call of CUDA's.
 *   CUTLASS leaves gaps in its kernels' parameters as it finds them, and both recordings must have
 *   the same there
 * - waiting for the device, which launch need not, as what comes next is on the same stream
 * - failed checks: what throws aborts; nothing is printed
 *
 * All else is compiled as it stands, and what the gate or the recorder refuses stays refused. */
#ifndef KP_FOREIGN_CUH
#define KP_FOREIGN_CUH

#include <algorithm>
#include <array>
#include <atomic>
#include <cassert>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <iomanip>
#include <limits>
#include <map>
#include <locale>
#include <memory>
#include <mutex>
#include <numeric>
#include <ostream>
#include <sstream>
#include <stdexcept>
#include <string>
#include <tuple>
#include <type_traits>
#include <unordered_map>
#include <utility>
#include <vector>
#include <cuda.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>
#include <elf.h>

#ifndef KP_FOREIGN_SCRATCH
#define KP_FOREIGN_SCRATCH 0 /* bytes; the source asks for memory where it is more */
#endif

namespace kp {
static cudaStream_t stream; /* the recording's */
static char *scratch;
static size_t scratch_used;

static inline cudaStream_t on(cudaStream_t asked) {
    return asked ? asked : stream;
}

/* Part of the scratch, as aligned as cudaMalloc's memory; cudaErrorMemoryAllocation if it is full.
 */
template <class T> inline cudaError_t take(T **to, size_t bytes, cudaStream_t = 0) {
    const size_t whole = (bytes + 255) & ~(size_t)255;
    if (whole > KP_FOREIGN_SCRATCH - scratch_used) return cudaErrorMemoryAllocation;
    *to = (T *)(scratch + scratch_used);
    scratch_used += whole;
    return cudaSuccess;
}

/* Make all variables of this library what they were at the first call. They are its writable
 * segment, without what the loader protects; the library's first page, which says where that is,
 * lies a few pages before its code. */
__attribute__((noinline)) static void forget() {
    static char *kept;
    const uintptr_t page = 4096;
    uintptr_t file = (uintptr_t)&forget & -page, first = 0, last = 0, fixed = 0;
    while (memcmp((const char *)file, ELFMAG, SELFMAG)) file -= page;
    const Elf64_Ehdr *header = (const Elf64_Ehdr *)file;
    const Elf64_Phdr *p = (const Elf64_Phdr *)(file + header->e_phoff);
    for (int i = 0; i < header->e_phnum; i++, p++) {
        const uintptr_t begin = file + p->p_vaddr, end = begin + p->p_memsz;
        if (p->p_type == PT_LOAD && p->p_flags & PF_W) first = begin, last = end;
        if (p->p_type == PT_GNU_RELRO) fixed = (end + page - 1) & -page;
    }
    if (first < fixed) first = fixed;
    char *copy = kept ? kept : new char[last - first];
    if (kept)
        memcpy((char *)first, copy, last - first);
    else
        memcpy(copy, (const char *)first, last - first);
    kept = copy; /* it is one of these variables */
    asm volatile("" ::: "memory");
}

/* Fill with zeros what the next call's variables and those of its callees lie in. */
__attribute__((noinline)) static void clear_stack() {
    char below[1 << 17];
    memset(below, 0, sizeof below);
    asm volatile("" ::"r"(below) : "memory");
}

/* Call a function, and clear what it left. */
template <class Function> inline auto cleared(Function f) {
    const auto result = f();
    clear_stack();
    return result;
}

/* The driver's function that makes tensor maps, found at run time; and the same, cleared. */
static decltype(&cuTensorMapEncodeTiled) encode_tiled;
template <class... T> inline CUresult encode_and_clear(T... arguments) {
    return cleared([&] { return encode_tiled(arguments...); });
}
inline cudaError_t instead(cudaError_t e, const char *name, void **found) {
    if (e || strcmp(name, "cuTensorMapEncodeTiled")) return e;
    const decltype(encode_tiled) ours = encode_and_clear;
    encode_tiled = (decltype(encode_tiled))*found;
    *found = (void *)ours;
    return e;
}

template <class Kernel>
inline cudaError_t launch_cooperative(Kernel *kernel, dim3 grid, dim3 block, void **args,
                                      size_t shared = 0, cudaStream_t asked = 0) {
    return cudaLaunchCooperativeKernel((const void *)kernel, grid, block, args, shared, on(asked));
}

static inline cudaError_t set(void *to, int x, size_t bytes, cudaStream_t asked = 0) {
    return cudaMemsetAsync(to, x, bytes, on(asked));
}

static inline cudaError_t launch_config(const cudaLaunchConfig_t *asked, const void *kernel,
                                        void **args) {
    cudaLaunchConfig_t config = *asked;
    config.stream = on(config.stream);
    return cudaLaunchKernelExC(&config, kernel, args);
}

struct Silent { /* std::cout */
    template <class T> const Silent &operator<<(const T &) const { return *this; }
    const Silent &operator<<(std::ostream &(*)(std::ostream &)) const { return *this; }
    const Silent &operator<<(std::ios_base &(*)(std::ios_base &)) const { return *this; }
};
template <class... T> __host__ __device__ inline int silent(T...) {
    return 0;
}
} // namespace kp

/* A launch with <<<>>> asks for its stream here: this overload is a better match than the
 * runtime's. */
extern "C" cudaError_t CUDARTAPI __cudaPopCallConfiguration(dim3 *, dim3 *, size_t *, void *);
inline cudaError_t __cudaPopCallConfiguration(dim3 *grid, dim3 *block, size_t *shared,
                                              cudaStream_t *stream) {
    const cudaError_t e = __cudaPopCallConfiguration(grid, block, shared, (void *)stream);
    *stream = kp::on(*stream);
    return e;
}

namespace c10 {
enum class ScalarType { Half, Float };
struct Half {
    __half x;
};
struct Device {
    int index() const { return 0; }
    bool is_cuda() const { return true; }
};
struct Options {
    ScalarType type = ScalarType::Half;
    constexpr ScalarType dtype() const { return type; }
    constexpr Options dtype(ScalarType t) const { return {t}; }
    template <class T> constexpr Options device(T...) const { return *this; }
    Device device() const { return {}; }
};

/* A matrix of halves, or memory that was asked for. */
struct Tensor {
    void *data = nullptr;
    int64_t rows = 0, columns = 0;
    Options type;
    int64_t size(int i) const { return i == 0 || i == -2 ? rows : columns; }
    int64_t stride(int i) const { return i == 0 || i == -2 ? columns : 1; }
    int64_t dim() const { return 2; }
    int64_t numel() const { return rows * columns; }
    std::array<int64_t, 2> sizes() const { return {{rows, columns}}; }
    template <class T = void> T *data_ptr() const { return (T *)data; }
    Options options() const { return type; }
    ScalarType dtype() const { return type.type; }
    ScalarType scalar_type() const { return type.type; }
    Device device() const { return {}; }
    bool is_cuda() const { return true; }
    bool is_contiguous() const { return true; }
    bool defined() const { return data; }
};

struct Stream {
    cudaStream_t stream() const { return kp::stream; }
    operator cudaStream_t() const { return kp::stream; }
};
namespace cuda {
using CUDAStream = Stream;
static inline Stream getCurrentCUDAStream(int = 0) {
    return {};
}
} // namespace cuda
} // namespace c10
namespace at {
using namespace c10;
}
namespace torch {
using namespace c10;
using TensorOptions = Options;
using Dtype = ScalarType;
constexpr ScalarType kHalf = ScalarType::Half, kFloat16 = kHalf, kFloat = ScalarType::Float,
                     kFloat32 = kFloat;
constexpr int kCUDA = 0;
static inline Options dtype(ScalarType t) {
    return {t};
}
static inline Tensor empty(std::initializer_list<int64_t> sizes, Options type = {}) {
    Tensor t;
    t.columns = 1, t.type = type;
    for (int64_t n : sizes) t.rows = t.columns, t.columns = n; /* the last two */
    int64_t all = type.type == kHalf ? 2 : 4;
    for (int64_t n : sizes) all *= n;
    if (kp::take(&t.data, all)) abort();
    return t;
}
static inline Tensor zeros(std::initializer_list<int64_t> sizes, Options type = {}) {
    const Tensor t = empty(sizes, type);
    cudaMemsetAsync(t.data, 0, t.numel() * (type.type == kHalf ? 2 : 4), kp::stream);
    return t;
}
} // namespace torch

namespace std {
static const kp::Silent cout, cerr;
using kp::silent;
} // namespace std
using kp::silent;

#define throw ::abort(), (void)
#define TORCH_CHECK(ok, ...)        ((ok) ? (void)0 : ::abort())
#define printf                      silent
#define fprintf                     silent
#define cudaLaunchKernelExC         kp::launch_config
#define cudaLaunchCooperativeKernel kp::launch_cooperative
#define cudaMemsetAsync             kp::set
#define cudaMemset                  kp::set
#define cudaMalloc                  kp::take
#define cudaMallocAsync             kp::take
#define cudaFree(p)                 cudaSuccess
#define cudaFreeAsync(p, s)         cudaSuccess
#define cudaGetDriverEntryPoint(name, found, ...) \
    kp::instead(cudaGetDriverEntryPoint(name, found, __VA_ARGS__), name, found)
#define cudaGetDriverEntryPointByVersion(name, found, ...) \
    kp::instead(cudaGetDriverEntryPointByVersion(name, found, __VA_ARGS__), name, found)
#define KP_CLEARED(call)            kp::cleared([&] { return call; })
#define cudaGetDevice(...)          KP_CLEARED(cudaGetDevice(__VA_ARGS__))
#define cudaDeviceGetAttribute(...) KP_CLEARED(cudaDeviceGetAttribute(__VA_ARGS__))
#define cudaFuncSetAttribute(...)   KP_CLEARED(cudaFuncSetAttribute(__VA_ARGS__))
#define cudaFuncGetAttributes(...)  KP_CLEARED(cudaFuncGetAttributes(__VA_ARGS__))
#define cudaOccupancyMaxActiveBlocksPerMultiprocessor(...) \
    KP_CLEARED(cudaOccupancyMaxActiveBlocksPerMultiprocessor(__VA_ARGS__))
#define cudaOccupancyMaxActiveClusters(...) KP_CLEARED(cudaOccupancyMaxActiveClusters(__VA_ARGS__))
#define cudaDeviceSynchronize()             cudaSuccess
#define cudaStreamSynchronize(s)            cudaSuccess

/* Their function by the contract of a kernel.  Bt is what they call b_col_major, said to be K x N.
 * The call of it is not inlined: its variables would lie above the stack that is cleared. */
#define KP_FOREIGN(function)                                                                 \
    extern "C" size_t scratch_bytes(void) {                                                  \
        return KP_FOREIGN_SCRATCH;                                                           \
    }                                                                                        \
    __attribute__((noinline)) static void call(const struct Inputs *in,                      \
                                               const struct Outputs *out) {                  \
        function({(void *)in->A, A_DIM0, A_DIM1, {}}, {(void *)in->B, B_DIM0, B_DIM1, {}},   \
                 {(void *)in->Bt, B_DIM0, B_DIM1, {}},                                       \
                 {(void *)out->out, OUT_DIM0, OUT_DIM1, {}});                                \
    }                                                                                        \
    extern "C" void launch(const struct Inputs *in, const struct Outputs *out, void *memory, \
                           cudaStream_t stream) {                                            \
        kp::forget();                                                                        \
        kp::stream = stream, kp::scratch = (char *)memory, kp::scratch_used = 0;             \
        kp::clear_stack();                                                                   \
        call(in, out);                                                                       \
    }
#endif
