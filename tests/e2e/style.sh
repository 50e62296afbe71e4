#!/bin/bash
# Warnings are errors here, though not for those who only build: C by gcc and clang,
# shell by shellcheck.
. tests/e2e/lib.sh

cuda=$real_cuda

# Whether a file can be compiled here: what it includes of CUDA, however deep, is there.
compilable() {
    [ -e "$cuda/include/cuda.h" ] || ! gcc -M -MG -std=gnu11 -iquote harness -iquote reference -Ideps/usr/include "$1" |
        tr ' ' '\n' | grep -qE '^(cuda|cublas|cudnn)[A-Za-z_]*\.h$'
}
for cc in gcc clang; do
    command -v $cc > /dev/null || { skip "$cc -Werror" "no $cc"; continue; }
    for file in $(find harness reference tests -name '*.c' | sort); do
        if compilable "$file"; then
            check "$cc $file" $cc -std=gnu11 -O1 -Wall -Wextra -Werror -iquote harness -iquote reference -Ideps/usr/include \
                -isystem "$cuda/include" -c -o /dev/null "$file"
        fi
    done
done
if command -v shellcheck > /dev/null; then
    # shellcheck disable=SC2013
    for file in $(grep -rlE '^#!/bin/(ba)?sh' harness tests .ci); do check "shellcheck $file" shellcheck -x "$file"; done
else
    skip 'shell scripts' 'no shellcheck'
fi
