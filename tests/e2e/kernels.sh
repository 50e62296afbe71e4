#!/bin/bash
# Kernels and specimens compile, or do not, as they should.  Needs nvcc.  A kernel that was measured as
# it is was compiled: of the others sixteen are, others for each commit, only their device code, not
# optimised.  Of the specimens there is one for each way to be refused.
# KERNELS=all compiles every kernel as users do, for each architecture that it is for, a family's for three of its
# shapes, and sees that it passes the gates and that its result has the hash of its headers; then every specimen
# that needs no GPU to get its verdict, and the tests of optimized/include.  KERNELS=4, as continuous integration
# has it, does so for 4 kernels, first those that were not measured, and 4 specimens, others for each commit.
# uses: build/gate build/confine build/task
# shellcheck disable=SC2154  # out, root, scratch are lib.sh's
. tests/e2e/lib.sh

# The headers that each kernel includes, by its lines and theirs: #include "x.cuh", or a #define that an #include names.
declare -A included
while read -r kernel headers; do included[$kernel]=${headers// /$'\n'}; done < <(awk '
    /^#(include|define [A-Z_]+) ".*\.cuh"/ { split($0, part, "\""); own[FILENAME] = own[FILENAME] " " part[2] }
    function walk(file, n, name, i) {
        n = split(own[file], name, " ")
        for (i = 1; i <= n; i++) if (!seen[name[i]]++) { all = all " " name[i]; walk("optimized/include/" name[i]) }
    }
    END { for (i = 1; i < ARGC; i++) if (ARGV[i] ~ /\.cu$/) { delete seen; all = ""; walk(ARGV[i]); print ARGV[i] all } }
' optimized/include/*.cuh optimized/*/*.cu tests/gpu/*.cu)
# The hash of headers, given by name.
sums() { (cd optimized/include && sha256sum "$@") | sha256sum | cut -d' ' -f1; }
# hash_of < NAMES - the hash of these headers, or null.
hash_of() {
    local names
    mapfile -t names < <(LC_ALL=C sort -u)
    if [ ${#names[@]} = 0 ]; then echo null; else sums "${names[@]}"; fi
}
# seen_of FILE.d - the headers that the compiler saw: not those of an #if that holds for none of its passes.
seen_of() { grep -oE '[^ /]+\.cuh' "$1"; }
# covers LEAST NAMES MOST - lists of which each holds the one before.
covers() { [ -z "$(comm -23 <(sort -u <<< "$1") <(sort -u <<< "$2"))$(comm -23 <(sort -u <<< "$2") <(sort -u <<< "$3"))" ]; }

# tasks_of NAME - the task of this name, or three of this family.
tasks_of() {
    local shapes
    [ -e "tasks/$1/shapes" ] || { echo "$1" && return; }
    mapfile -t shapes < "tasks/$1/shapes"
    printf "$1_%s\n" "${shapes[0]}" "${shapes[${#shapes[@]} / 2]}" "${shapes[-1]}"
}

# as_users_do N - so many kernels and specimens, and the tests of the headers.
as_users_do() {
    local kernel name result kernels tests=() archs='sm_80 sm_86 sm_89 sm_90 sm_100 sm_120 '
    mapfile -t kernels < <({ unmeasured; shuffled optimized/*/*.cu; } | awk '!seen[$0]++' | head -n "$1")
    for kernel in "${kernels[@]}"; do
        name=${kernel#optimized/}
        tasks_of "$(basename "$kernel" .cu)" | sed "s|.*|build/archs/${name%/*}/&.build.json|"
    done | xargs make -k -j"$(nproc)" ARCHS=all > "$out" 2>&1
    check 'the kernels are compiled without an error of the machine' [ $? = 0 ]
    for kernel in "${kernels[@]}"; do
        name=${kernel#optimized/}
        result=build/archs/${name%/*}/$(tasks_of "$(basename "$kernel" .cu)" | head -n 1).build.json
        check "$name compiles" is "$(jq -r '.verdict, .reason // empty' "$result" | tr '\n' ' ')" 'ok '
        check "$name: the hash of the headers that the compiler saw" is "$(jq -r .kernel.headers_sha256 "$result")" \
            "$(seen_of "${result%.build.json}.d" | hash_of)"
        check "$name: all that its own lines include, and nothing that no line does" covers \
            "$(sed -n 's/^#include "\(.*\.cuh\)".*/\1/p' "$kernel")" "$(seen_of "${result%.build.json}.d")" "${included[$kernel]}"
        [[ $kernel != */portable/* ]] || check "$name has code for every architecture" is \
            "$(jq -j '.kernel.arch, " ", ([.kernel.resources[].arch] | unique | length)' "$result")" "${archs}6"
    done
    for kernel in tests/gpu/test_*.cu; do tests+=("build/tests/compiled/$(basename "$kernel" .cu)"); done
    make -s -j"$(nproc)" "${tests[@]}" > "$out" 2>&1
    check 'so are the tests of optimized/include' [ $? = 0 ]
    shuffled tests/specimens/*.cu | head -n "$1" | xargs -n1 basename -s .cu | sort | xargs -P"$(nproc)" -n8 tests/specimens/compile 90
}

# unmeasured - the kernels that no result is of, as they are with their headers: what was measured was compiled.
unmeasured() {
    local results kernel name hash
    local -A sum
    results=$(jq -r 'select(.kernel.cubin_bytes > 0) | .kernel | .sha256 + " " + (.headers_sha256 // "null")' results/*/*.json*)
    while read -r hash name; do sum[$name]=$hash; done < <(sha256sum optimized/*/*.cu && cd optimized/include && sha256sum -- *.cuh)
    for kernel in $(shuffled optimized/*/*.cu); do
        hash=null
        # shellcheck disable=SC2013  # names without spaces: what sums() hashes, of which each line is known
        [ -z "${included[$kernel]}" ] ||
            hash=$(for name in $(LC_ALL=C sort <<< "${included[$kernel]}"); do echo "${sum[$name]}  $name"; done | sha256sum | cut -d' ' -f1)
        [[ $results == *"${sum[$kernel]} $hash"* ]] || echo "$kernel"
    done
}
# Some kernels that were not measured, and one specimen for each way to be refused.
few() {
    unmeasured | head -n 16 | sed 's|optimized/\(.*\)\.cu|build/tests/compiled/\1|' | xargs -r make -k -s -j"$(nproc)" > "$out" 2>&1
    check 'kernels that were not measured compile' [ $? = 0 ]
    printf '%s\n' include_system fork printf_device grid_id ok_scary_comments ok_layout grid_id_layout | xargs -P"$(nproc)" -n1 tests/specimens/compile 90
}
# Each header but a table is run by a test of tests/gpu, by a kernel that was measured and is right, or by one that the
# emulator runs.
tested() {
    local kernel name
    local -A run
    while read -r kernel; do
        for name in ${included[$kernel]-}; do run[$name]=1; done
    done < <(ls tests/gpu/*.cu; grep -o 'optimized/[^ ]*\.cu' tests/e2e/emulate.sh; jq -r '(.of // .) | select((.verdict // "ok") == "ok") | .kernel.path // empty' results/*/*.json* | sort -u)
    check 'each header is run by a GPU test, the emulator or a kernel whose recorded verdict is ok' is \
        "$(for name in optimized/include/*.cuh; do [[ $name == *_table* ]] || [ -n "${run[${name##*/}]-}" ] || echo "${name##*/}"; done)" ''
}
# The headers of the library, but for tables and the two ways of a product, in one file.  Templates are not instantiated.
together() {
    local arch
    # shellcheck disable=SC2046  # names without spaces
    printf '#include "%s"\n' $(cd optimized/include && printf '%s\n' *.cuh | grep -v -e '_table' -e 'product_\(fma\|hopper\)') > "$scratch/all.cu"
    for arch in 80 90a; do
        check "the headers of the library compile in one file for sm_$arch" \
            "$NVCC" -std=c++17 -Ioptimized/include -gencode "arch=compute_$arch,code=sm_$arch" -cubin -o "$scratch/all.cubin" "$scratch/all.cu"
    done
}
# Headers that not every pass of the compiler sees, and that it takes for those of the system.
seen() {
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
}
# judged TEXT [CODE] - the verdict and the reason of a kernel with this text, and this code in launch.
judged() {
    printf '%s\n' '#include "task.h"' "$1" '__global__ void nothing() {}' \
        'extern "C" void launch(const struct Inputs *, const struct Outputs *, void *, cudaStream_t) {' "${2-}" '}' > kernel.cu
    "$root/harness/compile/compile" l1_019_relu.json build/out 90 kernel.cu > "$out" 2>&1 || return
    jq -r '"\(.verdict) \(.reason)"' build/out.build.json
}
# far SECTION NUMBER - $far becomes a text with the distance of two places, one in that section, and a number.
far() { far=$(printf 'asm(".section %s\\nzz: .long 0xc3\\n.text\\nsc: .long zz - . + %d\\n ret\\n");' "$1" "$2"); }
# missing VALUE - what that number was to be for the linker to have written VALUE.
missing() {
    local at
    at=$(nm build/out.so) || return
    echo $(($1 - 0x$(sed -n 's/ [a-z] zz$//p' <<< "$at") + 0x$(sed -n 's/ [a-z] sc$//p' <<< "$at")))
}
# What the assembler can be asked for.
assembled() {
    cd "$scratch/tree" || exit
    check 'an object that cannot be read is the fault of the kernel' is \
        "$(judged 'asm(".section .x,\"\",%0x2\n.quad 0\n.text\n");')" 'gate object: malformed: two symbol tables'
    [ "$(uname -m)" = x86_64 ] || { cd "$root" && return || exit; }
    # The linker writes the distance of two places, so a kernel can have it write an instruction.
    local call='asm volatile("call sc" : : "a"(39) : "rcx", "r11");' number
    far '.text.zz,\"ax\"' 0
    check 'a distance is none' is "$(judged "$far" "$call")" 'ok null'
    far '.text.zz,\"ax\"' "$(missing 0xc3050f)"
    check 'an instruction that the linker writes is seen' is \
        "$(judged "$far" "$call" | grep -o '^gate library\|holds syscall' | paste -sd' ')" 'gate library holds syscall'
    far .data 0
    judged "$far" "$call" > "$scratch/found"
    number=$(missing 0xc3050f)
    far .data "$number"
    check 'one by chance is none in another layout' is "$(judged "$far" "$call")" 'ok null'
    check 'which it was linked in' not is "$(missing 0xc3050f)" "$number"
    check 'the loader writes none' is \
        "$(judged 'asm(".weak __cudaGetKernel\nsc: .quad __cudaGetKernel + 0xc3050f\n");' "$call" | grep -o '^build link\|in read-only section' | paste -sd' ')" \
        'build link in read-only section'
    cd "$root" || exit
}

out=$scratch/out
export CUDA_HOME=$real_cuda NVCC=$real_nvcc
if make -s print-lacks | grep -qw -e nvcc; then
    skip 'kernels and specimens' 'no CUDA Toolkit 12.4 or newer here'
    exit
fi
case ${KERNELS-} in
    '') few ;;
    all) as_users_do 9999 ;;
    *) as_users_do "$KERNELS" ;;
esac
tested
together
seen
assembled
