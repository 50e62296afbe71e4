#!/bin/bash
# Warnings are errors here, though not for those who only build: C by gcc and clang,
# shell by shellcheck.  What was without fault is not looked at again until it changes.
. tests/e2e/lib.sh

cuda=$real_cuda
flags=(-std=gnu11 -O1 -Wall -Wextra -Werror -iquote harness -iquote reference -iquote tests/unit -isystem "$cuda/include")
read -ra packages < <(make -s print-DEPS_FLAGS)
flags+=("${packages[@]:2}")
mkdir -p build/tests/style

# What any of the sources may include, and what scripts source.
mapfile -t headers < <(find harness reference tests -name '*.h' | sort)
mapfile -t sources < <(find harness reference tests -name "*.c" | sort)
shared=(tests/e2e/lib.sh tests/mock/*.sh)
# shellcheck disable=SC2207  # names without spaces
scripts=($(grep -rlE '^#!/bin/(ba)?sh' make harness tests .ci) "${shared[@]}")

# The hash of each file.
declare -A sum
while read -r hash file; do sum[$file]=$hash; done < <(sha256sum "${sources[@]}" "${scripts[@]}")

# once TOOL FILE COMMAND... - a check, unless COMMAND found no fault in the same text before; `same`
# is the hash of what else it depends on.
once() {
    local seen=build/tests/style/$same.${sum[$2]} before=$failed
    if [ -e "$seen" ]; then check "$1 $2" true; else check "$1 $2" "${@:3}"; fi
    [ "$failed" -gt "$before" ] || : > "$seen"
}
hash_of() { sha256sum | cut -c 1-20; }

# Whether a file can be compiled here: what it includes of CUDA, however deep, is there.
compilable() {
    [ -e "$cuda/include/cuda.h" ] || ! gcc -M -MG "${flags[@]}" "$1" | tr ' ' '\n' | grep -qE '^(cuda|cublas|cudnn)[A-Za-z_]*\.h$'
}

# What gcc said of a file when make built it, with the same warnings, counts: built FILE succeeds where
# there is an object of this text.
# shellcheck disable=SC2012  # names without spaces
newest=$(ls -t "${headers[@]}" build/host.flags 2> /dev/null | head -n 1)
flags_of_make=$(cat build/host.flags 2> /dev/null)
case $flags_of_make in "$(command -v gcc):"*' -Wall -Wextra '*' -O'[123]*) ;; *) newest= ;; esac
case $flags_of_make in *' -w'* | *' -Wno-'*) newest= ;; esac
built() {
    local object=build/obj/${1%.c}.o
    [ -n "$newest" ] && [ "$object" -nt "$newest" ] && [ "$object" -nt "$1" ] && [ -e "${object%.o}.said" ]
}
said_nothing() { cat "$1" && [ ! -s "$1" ]; }

# faultless FILE... - whether clang, which takes longer to start than to read a file, has no fault to find in
# any of these, in one process: its own, without the driver, which starts one for each.
faultless() {
    local compiler
    mapfile -t compiler < <(clang -### "${flags[@]}" -fsyntax-only "$1" 2>&1 | tail -n 1 | grep -oE '"[^"]*"' | tr -d '"')
    "${compiler[@]:0:${#compiler[@]}-1}" "$@" > /dev/null 2>&1
}

for cc in gcc clang; do
    command -v $cc > /dev/null || { skip "$cc -Werror" "no $cc"; continue; }
    # gcc warns of some things only while it optimises, clang of none.
    case $cc in gcc) only=(-c -o /dev/null) ;; *) only=(-fsyntax-only) ;; esac
    same=$({ $cc --version; echo "${flags[@]}" "${only[@]}"; cat "${headers[@]}"; } | hash_of)
    files=() fresh=() none=
    for file in "${sources[@]}"; do
        compilable "$file" || continue
        files+=("$file")
        [ -e "build/tests/style/$same.${sum[$file]}" ] || fresh+=("$file")
    done
    [ $cc = gcc ] || [ ${#fresh[@]} = 0 ] || ! faultless "${fresh[@]}" || none=yes
    for file in "${files[@]}"; do
        if [ -n "$none" ]; then
            once "$cc" "$file" true
        elif [ $cc = gcc ] && built "$file"; then
            once "$cc" "$file" said_nothing "build/obj/${file%.c}.said"
        else
            once "$cc" "$file" "$cc" "${flags[@]}" "${only[@]}" "$file"
        fi
    done
done
if command -v shellcheck > /dev/null; then
    same=$({ shellcheck --version; cat "${shared[@]}"; } | hash_of)
    for file in "${scripts[@]}"; do once shellcheck "$file" shellcheck -x "$file"; done
else
    skip 'shell scripts' 'no shellcheck'
fi
