#!/bin/bash
# Warnings are errors here, though not for those who only build: C by gcc and clang,
# shell by shellcheck.  What was without fault is not looked at again until it changes.
. tests/e2e/lib.sh

cuda=$real_cuda
flags=(-std=gnu11 -O1 -Wall -Wextra -Werror -iquote harness -iquote reference -iquote tests/unit -Ideps/usr/include -isystem "$cuda/include")
mkdir -p build/tests/style

# What any of the sources may include.
headers=$(find harness reference tests -name '*.h' -print0 | sort -z | xargs -0 cat | sha256sum)

# once WHAT COMMAND... - a check, unless COMMAND found no fault in the same text (stdin) before.
once() {
    local seen before=$failed
    seen=build/tests/style/$({ echo "${*:2}" && cat; } | sha256sum | cut -c 1-40)
    if [ -e "$seen" ]; then check "$1" true; else check "$@"; fi
    [ "$failed" -gt "$before" ] || : > "$seen"
}

# Whether a file can be compiled here: what it includes of CUDA, however deep, is there.
compilable() {
    [ -e "$cuda/include/cuda.h" ] || ! gcc -M -MG "${flags[@]}" "$1" | tr ' ' '\n' | grep -qE '^(cuda|cublas|cudnn)[A-Za-z_]*\.h$'
}
compilers=()
for cc in gcc clang; do
    if command -v $cc > /dev/null; then compilers+=("$cc"); else skip "$cc -Werror" "no $cc"; fi
done
for file in $(find harness reference tests -name '*.c' | sort); do
    compilable "$file" || continue
    for cc in "${compilers[@]}"; do
        # gcc warns of some things only while it optimises, clang of none.
        case $cc in gcc) only=(-c -o /dev/null) ;; *) only=(-fsyntax-only) ;; esac
        once "$cc $file" "$cc" "${flags[@]}" "${only[@]}" "$file" < <("$cc" --version; echo "$headers"; cat "$file")
    done
done
if command -v shellcheck > /dev/null; then
    shared=(tests/e2e/lib.sh tests/mock/*.sh)
    # shellcheck disable=SC2013
    for file in $(grep -rlE '^#!/bin/(ba)?sh' make harness tests .ci) "${shared[@]}"; do
        once "shellcheck $file" shellcheck -x "$file" < <(shellcheck --version; cat "$file" "${shared[@]}")
    done
else
    skip 'shell scripts' 'no shellcheck'
fi
