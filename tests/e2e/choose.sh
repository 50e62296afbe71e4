#!/bin/bash
# choose: the choices of a kernel beside each other, on a pretend GPU.  Its times are what the kernel says.
# uses: build/fake/choose build/fake/contestant build/fake/time
# shellcheck disable=SC2154  # out, bin, scratch are the libraries'
. tests/e2e/lib.sh
. tests/fake/lib.sh

# choices TASK UNDER NAME - a library for a task: choice I takes what `us` says, and does what UNDER says.
choices() {
    local at=build/$3
    mkdir -p "${at%/*}"
    cat > choices.c << END
#include "kernel.h"
static const double us[] = {500, 300, 100, 290, 900};
#define RELU(i) KERNEL(relu##i, 8, 8) { relu_of(PARAM(0, const float *), PARAM(1, float *), i == 2 ? 1 : COUNT); }
RELU(0) RELU(1) RELU(2) RELU(3) RELU(4)
size_t scratch_bytes(void) { return 1000; }
LAUNCH {
    size_t choice = (size_t)in[1];
    $2
    struct CUfunc_st *const of[] = {&relu0, &relu1, &relu2, &relu3, &relu4};
    of[choice]->us = us[choice];
    start_usual(of[choice], in, out, stream);
}
END
    gcc -std=gnu11 -O1 -shared -fPIC -DCOUNT="${elements[$1]}" -iquote "$root/tests/fake/kernels" -iquote "$root/harness" -iquote "$root/reference" \
        -isystem "$cuda/include" -o "$at.so" choices.c -L"$bin" -lcudart -lm
    echo "code of $3" > "$at.code"
}
# chosen LINE... - what choose prints of these.
chosen() { printf '%s\n' "$@" | "$bin/choose" > printed 2> "$out"; }
column() { cut -f "$1" printed | paste -sd ' '; }

choices relu64 '' gpu/a
choices relu10 '' gpu/b
chosen "tasks/fake/relu64.json build/gpu/a 5" "tasks/fake/relu10.json build/gpu/b 2"
check 'it succeeds' is "$?" 0
check 'each choice that is right has a line' is "$(column 1) $(column 3)" 'build/gpu/a build/gpu/a build/gpu/a build/gpu/a build/gpu/b build/gpu/b 0 1 3 4 0 1'
check 'with what was compiled' is "$(cut -f 2 printed | uniq | paste -sd ,)" 'code of gpu/a,code of gpu/b'
check 'and the GPU' is "$(awk -F'\t' 'NF != 5 || $5 == ""' printed)" ''
near() { awk -v x="$1" -v y="$2" 'BEGIN { exit !(x > 0.8 * y && x < 1.25 * y) }'; }
for case in 1:500 2:300 3:290 4:900 5:500 6:300; do
    check "line ${case%:*} takes what its choice does" near "$(sed -n "${case%:*}p" printed | cut -f 4)" "${case#*:}"
done
check 'one that is wrong is said' grep -qx 'choose: build/gpu/a: choice 2 is wrong' "$out"
check 'each kernel is a line that says what is the fastest' is "$(grep -cE '^choose: build/gpu/(a: choice 3 of 5|b: choice 1 of 2), [0-9]+\.[0-9]+ us$' "$out")" 2
check 'where the time goes is said' grep -qE '^choose: 2 kernels; seconds: \{"start":' "$out"

choices relu64 'if (choice == 1) cudaLaunchKernel(NULL, (dim3){1, 1, 1}, (dim3){2048, 1, 1}, NULL, 0, stream);' gpu/c
choices relu64 '__builtin_trap();' gpu/d
chosen "tasks/fake/relu64.json build/gpu/c 2" "tasks/fake/relu64.json build/gpu/d 2" "tasks/fake/relu64.json build/gpu/a 2"
check 'a choice that cannot be launched costs its kernel' grep -q '^choose: build/gpu/c: ' "$out"
check 'so does one that crashes' grep -q '^choose: build/gpu/d: .*signal' "$out"
check 'and no other' is "$(column 1)" 'build/gpu/a build/gpu/a'
chosen "tasks/fake/relu64.json build/gpu/none 2"
check 'a library that is not there is one line' is "$? $(grep -c . "$out")" '3 1'
chosen "tasks/fake/relu64.json build/gpu/a 65"
check 'so are too many choices' is "$? $(cat "$out")" '3 choose: build/gpu/a: 65 choices'
check 'it takes no arguments' is "$("$bin/choose" more 2> /dev/null; echo $?)" 2
