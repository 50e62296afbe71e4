#!/bin/bash
# make foreign: CUDA-L2's sources by the rules of a cell, on pretend GPUs; and what stands for PyTorch, compiled.
# uses: build/task build/gate build/confine
# shellcheck disable=SC2016,SC2154
. tests/e2e/lib.sh

# A checkout of the test's own, theirs/: sources of six shapes for two kinds of GPUs.  The pretend compiler
# refuses what says BROKEN, the pretend gate what says REFUSED, the pretend verify what says WRONG.
world() {
    tree
    rm -r tasks optimized/portable/*
    mkdir -p tasks/hgemm pretend theirs/kernels/{h100,a100}_F32F16F16F32 theirs/cutlass/{include/{cute,cutlass},tools/util/include}
    echo '{"title": "a"}' > tasks/hgemm/template.json
    printf '64_64_64\n1_1_1\n' > tasks/hgemm/shapes
    cp "$root"/tests/e2e/pretend/* pretend/
    printf '#!/bin/sh\n! grep -qs REFUSED "$2" || { echo "object: cudaMallocHost is called"; exit 1; }\n' > pretend/gate
    chmod +x pretend/gate
    : > harness/inspect/foreign.cuh
    touch theirs/cutlass/include/{cute/tensor.hpp,cutlass/version.h}
    local shape i=1
    for shape in 64_64_64 64_64_128 64_128_64 128_64_64 96_64_64 64_64_256; do
        echo "const double speed = $((i++));" > theirs/kernels/h100_F32F16F16F32/$shape.cu
    done
    cd theirs/kernels/h100_F32F16F16F32 || exit
    echo '#include <cute/tensor.hpp>' >> 64_64_64.cu
    echo 'const int WRONG, class = f16;' >> 64_64_128.cu
    echo 'BROKEN' >> 64_128_64.cu
    echo 'int REFUSED;' >> 128_64_64.cu
    printf 'auto BM = Int<64>{};\nauto BN = Int< 64>{};\nauto BK=Int<32>{};\n' | tee -a 96_64_64.cu >> 64_64_256.cu
    cp 64_64_64.cu ../a100_F32F16F16F32/
    cd ../../..
    echo 0123abc > theirs/COMMIT
}
mine() { mk foreign SUITE=hgemm CUDA_L2=theirs "$@"; }
rows() { cut -d, -f1,3,5-7 results/foreign/h200.csv | sed 's/^hgemm_//' | paste -sd' '; }
judged() { cut -d, -f1 results/foreign/h200.csv | grep -c hgemm; }

world
mine
check 'every source is judged by the steps of a cell' is "$(grep -c '^verify foreign/h200/hgemm_' steps.log) $(grep -c '^time foreign/h200/hgemm_' steps.log)" '5 5'
check 'each has its row: right, wrong, broken, refused, padded' is "$(rows)" \
    'task,verdict,candidate_us,baseline_us,ratio 64_64_64,ok,100,100,1 64_64_128,wrong,,, 64_64_256,ok,16.667,100,6 64_128_64,build,,, 96_64_64,skipped,,, 128_64_64,gate,,,'
check 'with the source, the reason' grep -q '^hgemm_128_64_64,h100_F32F16F16F32,gate,.*,"object: cudaMallocHost is called"$' results/foreign/h200.csv
check 'what would be padded' grep -q '"its benchmark pads to multiples of 64 x 64 x 32, outside of its time"' results/foreign/h200.csv
check 'and the commit of the checkout' is "$(grep -c ',0123abc,' results/foreign/h200.csv)" 6
check 'they are counted' says '^foreign: results/foreign/h200.csv: of 6 judged now 1 build, 1 gate, 2 ok, 1 skipped, 1 wrong$'
check 'a kernel is the source between foreign.cuh and launch' is "$(grep -c . build/foreign/h200/hgemm_64_64_128.cu) $(tail -n 1 build/foreign/h200/hgemm_64_64_128.cu)" '6 KP_FOREIGN(cuda_l2_h100_fp32)'
check 'each is a line that says how far it is' says '^\[[0-9]/5\] build/foreign/'
check 'nothing else of theirs is in the tree' is "$(find . -name '*.cu' -newer out ! -path './build/*' ! -path './theirs/*')" ''
rm steps.log
mine
check 'nothing is measured twice' not grep -qs '^time' steps.log
mv results/foreign kept
mine -n
check 'a dry run writes no row' not [ -e results/foreign ]
mv kept results/foreign
echo '// faster: speed = 8' > x && cat theirs/kernels/h100_F32F16F16F32/64_64_256.cu >> x && sed -i 's/speed = 6/speed = 8/' x && cp x theirs/kernels/h100_F32F16F16F32/64_64_256.cu
mine TASKS=hgemm_64_64_256
check 'TASKS names what is judged; what has changed is judged again' is "$(grep -c '^time' steps.log) $(rows | grep -o '64_64_256,ok,12.5,100,8')" '1 64_64_256,ok,12.5,100,8'
check 'and the other rows stay' is "$(judged)" 6

# ---- The draw ----------------------------------------------------------------------------------
drawn() {
    rm -rf results/foreign
    KP_FOREIGN_DRAWN=2 KP_FOREIGN_SEED=$1 mine
    cut -d' ' -f2 build/foreign/cells | paste -sd' '
}
one=$(drawn 1)
check 'the named shape and as many of the others as are asked for' is "$(wc -w <<< "$one") $(grep -o 'hgemm_64_64_64' <<< "$one")" '3 hgemm_64_64_64'
check 'a seed draws the same ones again' is "$(drawn 1)" "$one"
check 'another seed does not' not is "$(drawn 2) $(drawn 3) $(drawn 4)" "$one $one $one"

# ---- What cannot be judged: one line each ------------------------------------------------------
mk foreign SUITE=hgemm
check 'no checkout' lines 1 '\*\*\* foreign: say CUDA_L2=checkout, of github.com/deepreinforce-ai/CUDA-L2'
mk foreign SUITE=hgemm CUDA_L2=nowhere
check 'a checkout that is none' lines 1 '\*\*\* foreign: nowhere/kernels has no sources'
mine TASKS=hgemm_1_1_1
check 'a shape that the checkout lacks' lines 1 '^foreign: theirs/kernels/h100_F32F16F16F32 has no 1_1_1.cu$'
mine TASKS=hgemm_7_7_7
check 'a shape that nobody has' lines 1 "TASKS: no task begins with 'hgemm_7_7_7'"
KP_FOREIGN_KERNELS=b200 mine
check 'a folder that the checkout lacks' lines 1 '^foreign: theirs/kernels/b200: no such folder: KP_FOREIGN_KERNELS names one of a100_F32F16F16F32 h100_F32F16F16F32$'
KP_FOREIGN_KERNELS=a100_F32F16F16F32 mine
check 'another folder is taken where it is named' grep -q '^hgemm_64_64_64,a100_F32F16F16F32,ok,' results/foreign/h200.csv
KP_FOREIGN_DRAWN=x mine
check 'a number that is none' is "$(grep -c "^foreign: KP_FOREIGN_DRAWN is a whole number, not 'x'$" "$out") $(grep -c 'foreign\] Error 2$' "$out")" '1 1'
rm -r theirs/cutlass
mine
check 'no CUTLASS where a source includes it' lines 1 '^foreign: theirs/cutlass has no include/cute/tensor.hpp, .* say CUTLASS=checkout'
mine TASKS=hgemm_64_64_256
check 'a source that needs none is judged' says '^foreign: results/foreign/h200.csv: of 1 judged now 1 ok$'
gpus
mine
check 'without a GPU it says why' not says '^foreign:'

# ---- What stands for PyTorch -------------------------------------------------------------------
cd "$root" || exit
if [ ! -x "$real_nvcc" ]; then skip 'foreign.cuh' 'no nvcc'; exit; fi
export NVCC=$real_nvcc CUDA_HOME=$real_cuda KP_MAKE=: KP_FOREIGN_KERNELS=h100_F32F16F16F32
theirs=$scratch/theirs/kernels/h100_F32F16F16F32
mkdir -p "$theirs"
# source M_N_K SUM LAUNCH - in the style of theirs: SUM is what sums are kept in, LAUNCH host code.
source_of() {
    cat > "$theirs/$1.cu" << END_OF
#include <iostream>
#include <torch/extension.h>
#include <torch/types.h>
__global__ void product(const half *a, const half *b, half *c, int n, int k) {
    const int row = blockIdx.x, column = threadIdx.x;
    $2 sum = 0.0f;
    for (int i = 0; i < k; i++) sum += ($2)(a[row * k + i] * b[column * k + i]);
    c[row * n + column] = (half)sum;
}
#define CHECK_TORCH_TENSOR_DTYPE(T, th_type)                   \\
    if (((T).options().dtype() != (th_type))) {                \\
        std::cout << "Tensor Info:" << (T).options() << std::endl; \\
        throw std::runtime_error("values must be " #th_type);  \\
    }
void cuda_l2_h100_fp32(torch::Tensor a, torch::Tensor b, torch::Tensor b_col_major, torch::Tensor c) {
    CHECK_TORCH_TENSOR_DTYPE(a, torch::kHalf)
    const int M = a.size(0), K = a.size(1), N = b.size(1);
    if (M < 1) { printf("bad\\n"); throw std::runtime_error("no rows"); }
    $3
    product<<<M, N>>>((const half *)a.data_ptr(), reinterpret_cast<half *>(b_col_major.data_ptr<at::Half>()), (half *)c.data_ptr(), N, K);
    cudaDeviceSynchronize();
}
END_OF
}
source_of 64_64_64 float ''
source_of 64_64_128 half 'static void *x, *y;
    if (!x) cudaMalloc(&x, 100), cudaMalloc((float **)&y, 100);
    struct Gaps {
        __attribute__((noinline)) static size_t sum() {
            struct alignas(64) { int set; } gaps[64];
            size_t n = 0;
            for (auto &gap : gaps) gap.set = 0;
            for (size_t i = 0; i < sizeof gaps; i++) n += ((volatile unsigned char *)gaps)[i];
            return n;
        }
    };
    size_t found = 1 + Gaps::sum();
    int device = 0;
    cudaGetDevice(&device);
    cudaMemset(x, 0, found + Gaps::sum());
    void *encode;
    cudaDriverEntryPointQueryResult status;
    cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &encode, 12000, cudaEnableDefault, &status);
    ((decltype(&cuTensorMapEncodeTiled))encode)((CUtensorMap *)1, CU_TENSOR_MAP_DATA_TYPE_FLOAT16, 2, x, 0, 0, 0, 0, CU_TENSOR_MAP_INTERLEAVE_NONE,
        CU_TENSOR_MAP_SWIZZLE_NONE, CU_TENSOR_MAP_L2_PROMOTION_NONE, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
    cudaMemsetAsync(y, 0, 2 + Gaps::sum(), at::cuda::getCurrentCUDAStream()), cudaMemsetAsync(y, 0, 3, (cudaStream_t)9);'
source_of 64_128_64 float 'no_such_function();'
source_of 128_64_64 float 'cudaHostAlloc((void **)&a, 4, 0);'
mkdir -p "$scratch/run/build/foreign" "$scratch/run/results" && cd "$scratch/run" && ln -s "$root"/{harness,make,optimized,tasks} . && ln -s "$root"/build/{task,gate,confine} build/ || exit
for shape in 64_64_64 64_64_128 64_128_64 128_64_64; do
    mkdir -p "build/tasks/hgemm_$shape" build/tasks/hgemm
    build/task expand tasks/hgemm/template.json "hgemm_$shape" > "build/tasks/hgemm/hgemm_$shape.json" &&
        build/task header "build/tasks/hgemm/hgemm_$shape.json" > "build/tasks/hgemm_$shape/task.h"
    echo "h200 90 hgemm_$shape"
done > cells
check 'sources become kernels' env CUDA_L2="$scratch/theirs" harness/inspect/foreign --all cells
compiled() {
    NVCC=build/foreign/toolkit/nvcc harness/compile/compile "build/tasks/hgemm/hgemm_$1.json" "build/foreign/h200/hgemm_$1" 90a "build/foreign/h200/hgemm_$1.cu" > "$out" 2>&1
    jq -r '"\(.verdict) \(.reason)"' "build/foreign/h200/hgemm_$1.build.json"
}
check 'one without PyTorch passes the gate' is "$(compiled 64_64_64)" 'ok null'
check 'so does one that asks for memory' is "$(compiled 64_64_128)" 'ok null'
check 'one that does not compile is told why' is "$(compiled 64_128_64 | grep -oE '^build|no_such_function' | paste -sd' ')" 'build no_such_function'
check 'a call that cannot be recorded is refused' is "$(compiled 128_64_64)" 'gate object: cudaHostAlloc is called: declare scratch_bytes() and use the scratch that launch is given'

# What it enqueues, and where: these calls of the runtime are the test's.
cat > runtime.c << 'END_OF'
#include <cuda_runtime_api.h>
#include <stdio.h>
#include <string.h>
static dim3 asked[2];
static void *on;
static void leave_behind(void) { /* never the same */
    static unsigned char x;
    volatile char below[1 << 14];
    for (size_t i = 0; i < sizeof below; i++) below[i] = ++x + (i >> 8);
    x += 3;
}
cudaError_t cudaGetDevice(int *to) { return leave_behind(), *to = 0, cudaSuccess; }
static int encode(void *to, int type, unsigned rank, void *address) {
    return leave_behind(), printf("map %zu of %u dimensions at %zu\n", (size_t)to, rank, (size_t)address), 0;
}
cudaError_t cudaGetDriverEntryPointByVersion(const char *name, void **f, unsigned version, unsigned long long flags, enum cudaDriverEntryPointQueryResult *status) {
    return *f = encode, *status = 0, cudaSuccess;
}
unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared, void *stream) {
    asked[0] = grid, asked[1] = block, on = stream;
    return 0;
}
cudaError_t __cudaPopCallConfiguration(dim3 *grid, dim3 *block, size_t *shared, void **stream) {
    *grid = asked[0], *block = asked[1], *shared = 0, *stream = on;
    return cudaSuccess;
}
cudaError_t __cudaGetKernel(const void **to, const void *f) { return *to = f, cudaSuccess; }
cudaError_t __cudaLaunchKernel(const void *f, dim3 grid, dim3 block, void **args, size_t shared, cudaStream_t stream) {
    printf("launch on %zu:", (size_t)stream);
    for (int i = 0; i < 3; i++) printf(" %zu", *(size_t *)args[i]);
    return printf(" %d %d\n", *(int *)args[3], *(int *)args[4]), cudaSuccess;
}
cudaError_t cudaLaunchKernel(const void *f, dim3 grid, dim3 block, void **args, size_t shared, cudaStream_t stream) {
    return __cudaLaunchKernel(f, grid, block, args, shared, stream);
}
cudaError_t cudaMemsetAsync(void *to, int x, size_t n, cudaStream_t stream) {
    return printf("memset on %zu: %zu %zu\n", (size_t)stream, (size_t)to, n), cudaSuccess;
}
END_OF
cat > main.c << 'END_OF'
#include <dlfcn.h>
#include <stddef.h>
#include <stdio.h>
static void leave_behind(void) { /* what the stack has of others */
    volatile char below[1 << 16];
    for (size_t i = 0; i < sizeof below; i++) below[i] = 85;
}
int main(int n, char **path) {
    void *library = dlopen(path[1], RTLD_NOW);
    if (!library) return puts(dlerror());
    void *in[] = {(void *)1, (void *)2, (void *)3}, *out[] = {(void *)4};
    if (((size_t(*)(void))dlsym(library, "scratch_bytes"))() != 256 << 20) return 2;
    void (*launch)(void **, void **, void *, void *) = (void (*)(void **, void **, void *, void *))dlsym(library, "launch");
    launch(in, out, (void *)4096, (void *)7);
    leave_behind();
    launch(in, out, (void *)8192, (void *)7);
    return 0;
}
END_OF
gcc -w -shared -fPIC -isystem "$real_cuda/include" -o runtime.so runtime.c && gcc -w -o main main.c -ldl
LD_PRELOAD=$PWD/runtime.so ./main build/foreign/h200/hgemm_64_64_128.so > said 2>&1
check 'the null stream is that of the recording, memory is scratch' is "$(sed -n '1,5s/\(memset on 7: 4352\) .*/\1/;1,5p' said)" 'memset on 7: 4096 1
map 1 of 2 dimensions at 4096
memset on 7: 4352
memset on 9: 4352 3
launch on 7: 1 3 4 64 128'
check 'a second recording is as the first, elsewhere' is "$(sed '1,5d; s/4096\|4352/old/; s/8192/4096/; s/8448/4352/' said)" "$(head -n 5 said)"
