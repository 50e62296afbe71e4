#!/bin/bash
# Every kernel of optimized/ compiles and passes the gates, and every specimen gets the
# verdict it should where that needs no GPU.  Needs nvcc.
# shellcheck disable=SC2154  # out is lib.sh's
. tests/e2e/lib.sh

out=$scratch/out
export CUDA_HOME=$real_cuda NVCC=$real_nvcc
if ! make -s print-LACKS | grep -qw -e nvcc; then
    make -k -j"$(nproc)" build ARCHS="${ARCHS_TESTED:-90}" > "$out" 2>&1
    check 'the kernels are compiled without an error of the machine' [ $? = 0 ]
    for kernel in optimized/*/*.cu; do
        name=${kernel#optimized/}
        result=build/archs/${name%.cu}.build.json
        check "$name compiles" is "$(jq -r '.verdict, .reason // empty' "$result" | tr '\n' ' ')" 'ok '
    done
    tests=()
    for file in tests/gpu/test_*.cu; do tests+=("build/tests/gpu/$(basename "$file" .cu)"); done
    make -s -j"$(nproc)" "${tests[@]}" > "$out" 2>&1
    check 'so are the tests of optimized/include' [ $? = 0 ]
    # Several architectures in one call of nvcc, which then names what it keeps differently.
    make -s build TASKS='l1_019_relu crfm_softmax' ARCHS=all > "$out" 2>&1
    check 'and so they are for all architectures' [ $? = 0 ]
    for name in l1_019_relu crfm_softmax; do
        check "$name compiles for every architecture" is "$(jq -r '.verdict, .kernel.arch, ([.kernel.resources[].arch] | unique | length)' \
            "build/archs/portable/$name.build.json" | tr '\n' ' ')" 'ok sm_80 sm_86 sm_89 sm_90 sm_100 sm_120 6 '
    done
    find tests/specimens -name '*.cu' -print0 | xargs -0 -n1 basename -s .cu | sort | xargs -P2 -n8 tests/specimens/compile 90
else
    skip 'kernels and specimens' 'no CUDA Toolkit 12.4 or newer here'
fi
