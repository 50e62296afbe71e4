#!/bin/bash
# Every kernel of optimized/ compiles and passes the gates, its result has the hash of its
# headers, and every specimen gets the verdict it should where that needs no GPU.  Needs nvcc.
# shellcheck disable=SC2154  # out, root, scratch are lib.sh's
. tests/e2e/lib.sh

# The headers that a source includes, by its lines.
included() {
    local name
    sed -n 's/^#include "\(.*\.cuh\)".*/\1/p' "$1" | while read -r name; do echo "$name"; included "optimized/include/$name"; done
}
# The hash of headers, given by name.
sums() { (cd optimized/include && sha256sum "$@") | sha256sum | cut -d' ' -f1; }

out=$scratch/out
export CUDA_HOME=$real_cuda NVCC=$real_nvcc
if ! make -s print-lacks | grep -qw -e nvcc; then
    make -k -j"$(nproc)" build ARCHS="${ARCHS_TESTED:-90}" > "$out" 2>&1
    check 'the kernels are compiled without an error of the machine' [ $? = 0 ]
    for kernel in optimized/*/*.cu; do
        name=${kernel#optimized/}
        result=build/archs/${name%.cu}.build.json
        check "$name compiles" is "$(jq -r '.verdict, .reason // empty' "$result" | tr '\n' ' ')" 'ok '
        mapfile -t headers < <(included "$kernel" | LC_ALL=C sort -u)
        hash=null
        [ ${#headers[@]} = 0 ] || hash=$(sums "${headers[@]}")
        check "$name: the hash of its headers" is "$(jq -r .kernel.headers_sha256 "$result")" "$hash"
    done
    tests=()
    for file in tests/gpu/test_*.cu; do tests+=("build/tests/compiled/$(basename "$file" .cu)"); done
    make -s -j"$(nproc)" "${tests[@]}" > "$out" 2>&1
    check 'so are the tests of optimized/include' [ $? = 0 ]
    # Several architectures in one call of nvcc, which then names what it keeps differently.
    for name in level1/l1_019_relu crfm/crfm_softmax; do
        harness/compile/compile "tasks/$name.json" "$scratch/${name#*/}" '80 86 89 90 100 120' "optimized/portable/${name#*/}.cu" > "$out" 2>&1
        check "${name#*/} compiles for every architecture" is "$(jq -r '.verdict, .kernel.arch, ([.kernel.resources[].arch] | unique | length)' \
            "$scratch/${name#*/}.build.json" | tr '\n' ' ')" 'ok sm_80 sm_86 sm_89 sm_90 sm_100 sm_120 6 '
    done
    # Headers that not every pass of the compiler sees, and that it takes for those of the system.
    mkdir -p "$scratch/tree/"{build/tasks,make,optimized/include}
    (
        cp -r build/{gate,confine} "$scratch/tree/build/" && cp make/identity "$scratch/tree/make/" && cp -r build/tasks/l1_019_relu "$scratch/tree/build/tasks/" && cd "$scratch/tree" || exit
        printf '#pragma GCC system_header\n#include "within.cuh"\n' > optimized/include/system.cuh
        touch optimized/include/{within,device,hopper,host,other}.cuh
        printf '%s\n' '#include "task.h"' '#include "system.cuh"' '#ifdef __CUDA_ARCH__' '#include "device.cuh"' '#else' '#include "host.cuh"' \
            '#endif' '#if __CUDA_ARCH__ == 900' '#include "hopper.cuh"' '#endif' '__global__ void nothing() {}' \
            'extern "C" void launch(const struct Inputs *, const struct Outputs *, void *, cudaStream_t) {}' > kernel.cu
        for arch in 80 90 '80 90'; do
            "$root/harness/compile/compile" l1_019_relu.json build/out "$arch" kernel.cu
            jq -r '.verdict, .kernel.headers_sha256' build/out.build.json
        done
        echo wrong >> kernel.cu
        "$root/harness/compile/compile" l1_019_relu.json build/out 80 kernel.cu 2> /dev/null
        jq -r '.verdict, .kernel.headers_sha256' build/out.build.json
        # Names of files that a kernel makes up are none, and nothing that make would read.
        # shellcheck disable=SC2016  # not for this shell
        printf '%s\n' '#include "task.h"' '#line 1 "optimized/include/$(shell touch pwned)x.cuh"' 'int a;' \
            "#line 1 \"optimized/include/other.cuh;touch pwned;'\"" 'int b;' '#line 1 "optimized/include/none.cuh"' 'int c;' \
            '__global__ void nothing() {}' 'extern "C" void launch(const struct Inputs *, const struct Outputs *, void *, cudaStream_t) {}' > kernel.cu
        "$root/harness/compile/compile" l1_019_relu.json build/out 80 kernel.cu
        jq -r '.kernel.headers_sha256' build/out.build.json
        cat build/out.d
        few=$(sums device.cuh host.cuh system.cuh within.cuh) most=$(sums device.cuh hopper.cuh host.cuh system.cuh within.cuh)
        printf '%s\n' ok "$few" ok "$most" ok "$most" build "$few" null 'build/out.build.json:' > expected
    ) > "$scratch/found" 2> "$out"
    check 'a header counts if one pass of the compiler includes it' cmp "$scratch/found" "$scratch/tree/expected"
    find tests/specimens -name '*.cu' -print0 | xargs -0 -n1 basename -s .cu | sort | xargs -P2 -n8 tests/specimens/compile 90
else
    skip 'kernels and specimens' 'no CUDA Toolkit 12.4 or newer here'
fi
