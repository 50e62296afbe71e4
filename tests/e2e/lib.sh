# lib.sh: what the end-to-end tests share.  Sourced by each tests/e2e/*.sh, from the root
# of the tree.
#
# A test makes a small tree of its own (`tree`), with pretend tasks, kernels, toolkit
# and GPUs, runs the real Makefile and scripts in it (`mk`), and looks at what was run:
# each pretend program leaves a line in steps.log.  `check` prints one line a check.
# shellcheck shell=bash disable=SC2034

root=$PWD
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
# The toolkit of this machine, as the make that runs the tests found it; trees of tests have
# a pretend one.
real_cuda=${CUDA_HOME-} real_nvcc=${NVCC-}
if [ -z "${MAKELEVEL-}" ]; then { read -r _ _ real_cuda && read -r _ _ real_nvcc; } < <(make -s print-CUDA_HOME print-NVCC); fi
# So are the packages that `make deps` unpacked for it.
PREFIX=$(realpath -m "${PREFIX:-deps}")
export PREFIX
unset V ROUNDS WIDTH WAYS NAMES GPUS TASKS SUITE ARCHS RUN NVCC NVCCFLAGS CUDA_HOME CUDA_LIB CUDA_VISIBLE_DEVICES MAKEFLAGS MAKELEVEL MFLAGS KP_GPU KP_STAY CFLAGS CXX CC

# check WHAT COMMAND... - one check: COMMAND succeeds.  passed and failed count them.  CASE chooses
# those whose name it is part of.
passed=0 failed=0
check() {
    local what=$1 ended
    shift
    "$@" > "$scratch/check" 2>&1
    ended=$?
    case $what in *"${CASE-}"*) ;; *) return ;; esac
    if [ $ended = 0 ]; then
        passed=$((passed + 1)) && echo "ok   $what"
    else
        failed=$((failed + 1)) && echo "FAIL $what"
        sed 's/^/       | /' "$scratch/check" | tail -n 5
        [ ! -e "$out" ] || sed 's/^/       > /' "$out" | tail -n 15
    fi
}
skip() { echo "skip $1: $2"; }

# comma_locale - make the locale in which "${comma[@]}" COMMAND... runs, where a decimal has a comma; or fail.
comma=(env LOCPATH="$scratch" LC_ALL=de_DE.UTF-8)
comma_locale() {
    localedef -i de_DE -f UTF-8 "$scratch/de_DE.UTF-8" > /dev/null 2>&1
    [ "$("${comma[@]}" locale decimal_point 2> /dev/null)" = , ]
}

# What trees compile: see gcc-once.  tests/run has one folder for all tests.
export KP_TEST_CACHE=${KP_TEST_CACHE-$scratch/cache}
cache=$KP_TEST_CACHE
mkdir -p "$cache"
sed "s|^cache=.*|cache='$cache' gcc='$(command -v gcc)' gxx='$(command -v g++)'|" tests/e2e/gcc-once > "$scratch/gcc-once"
chmod +x "$scratch/gcc-once"
if [ ! -e "$cache/libcudart.so" ]; then
    echo 'void launch(void) {}' | gcc -fPIC -c -x c -o "$scratch/launch.o" - && echo | gcc -shared -x c -o "$scratch/libcudart.so" - &&
        mv "$scratch/launch.o" "$scratch/libcudart.so" "$cache/" || exit
fi

# tree - a fresh tree (in the empty folder $tree_in, where that is set) with three tasks and one GPU, an
# H200; becomes the current folder.
tree() {
    cd "${tree_in-$(mktemp -d "$scratch/XXXXXX")}" || exit
    out=$PWD/out
    cp -rp "$root/Makefile" "$root/make" .
    mkdir -p tests/e2e tasks/level1 tasks/crfm optimized/portable optimized/include results
    (cd "$root" && find harness -type f '(' -perm -u+x -o -name '*.jq' -o -name '*.list' ')' -exec cp -p --parents {} "$OLDPWD" \;)
    for program in "$root"/harness/*/*_main.c; do
        program=${program#"$root/"}
        mkdir -p "${program%/*}" && cp -p "$root/tests/e2e/stub.c" "$program"
    done
    for t in level1/l1_001_matmul level1/l1_019_relu crfm/crfm_softmax; do
        echo '{}' > "tasks/$t.json"
        echo "// kernel of ${t#*/}" > "optimized/portable/${t#*/}.cu"
    done
    toolkit
    gpus 'NVIDIA H200, 9.0'
    sleep 0.02
}

# importer WHAT - a tree with the importer, and $python, which may have PyTorch; where there is no
# Python, WHAT is skipped and the test ends.
importer() {
    command -v python3 > /dev/null || { skip "$1" 'no python3'; exit; }
    tree
    cp -r "$root/harness/import" harness/
    export PYTHONDONTWRITEBYTECODE=1
    python=${PYTHON:-python3}
}

# toolkit - a pretend CUDA Toolkit 13.0: nvcc refuses sources that say BROKEN.  Its cubin is the
# source without comments, and -G where that was given.
toolkit() {
    mkdir -p toolkit/bin toolkit/include toolkit/lib64 bin
    ln -sf "$scratch/gcc-once" bin/gcc
    ln -sf "$scratch/gcc-once" bin/g++
    echo '#define CUDART_VERSION  13000' > toolkit/include/cuda_runtime_api.h
    cat > toolkit/bin/nvcc <<'NVCC'
#!/bin/sh
[ "$*" != --version ] || { echo 'Build pretend_13.0'; exit; }
while [ $# -gt 1 ]; do
    case $1 in --keep-dir) keep=$2 ;; -o) object=$2 ;; -gencode) archs="$archs $2" ;; -MF) depends=$2 ;; -G) debug=-G ;; -I*) folders="$folders $1" ;; esac
    shift
done
echo "nvcc $(basename "$1" .cu)$archs" >> steps.log
{ echo "cubin $debug" && gcc -E -P -x c $folders -MMD -MF "$depends" "$1"; } > "$keep/$(basename "$1" .cu).cubin" || { rm -f "$depends"; exit 1; }
if grep -q BROKEN "$1"; then echo "$1(1): error: broken"; exit 2; fi
cp "${0%/*}/../launch.o" "$object" || exit
echo "ptxas info    : Compiling entry function '_Z4reluv' for 'sm_90'
    8 bytes stack frame, 4 bytes spill stores, 12 bytes spill loads
ptxas info    : Used 10 registers, used 0 barriers, 128 bytes smem"
NVCC
    chmod +x toolkit/bin/nvcc
    cp "$cache/launch.o" toolkit/
    cp "$cache/libcudart.so" toolkit/lib64/
}

# gpus 'NAME, CAPABILITY'... - an nvidia-smi that lists these; none: no nvidia-smi works.
gpus() {
    { echo '#!/bin/sh'; [ $# -gt 0 ] || echo 'exit 9'; } > bin/nvidia-smi
    local i=0 g
    for g; do
        echo "echo '$i, GPU-$i$i-$$, ${g##*, }, ${DRIVER:-580.65.06}, ${g%, *}'" >> bin/nvidia-smi
        i=$((i + 1))
    done
    chmod +x bin/nvidia-smi
}

# Every program is the stub, and needs none of the libraries.
stubs=(JSON_LIBS='' CURL_LIBS='' CUDA_LIBS='')

# mk ARG... - run make here; its output goes to $out.
mk() {
    PATH=$PWD/bin:$PATH KP_LOCKS=$PWD CUDA_HOME=${CUDA_HOME_HERE-$PWD/toolkit} make "${stubs[@]}" "$@" > "$out" 2>&1
}

# shuffled ARG... - a line each, in an order that is another for each commit.
shuffled() { printf '%s\n' "$@" | shuf --random-source=<(while git -C "$root" rev-parse HEAD 2> /dev/null || date +%F; do :; done); }

# Steps that were run since the last call, sorted: "time h200/l1_019_relu" and so on.
steps() {
    [ ! -e steps.log ] || sort steps.log
    rm -f steps.log
}
# ran STEP... - those, and no others, were run; - for none.
ran() {
    local found
    found=$(steps | sed 's/ arch=.*//' | tr '\n' ';')
    [ "$found" = "$1" ] || { echo "expected: $1"; echo "ran:      $found"; return 1; }
}
says() { grep -qE -- "$1" "$out" || { echo "not said: $1"; return 1; }; }
not() { ! "$@"; }
lines() { [ "$(grep -cE -- "$2" "$out")" -eq "$1" ] || { echo "$(grep -cE -- "$2" "$out") lines match $2, not $1"; return 1; }; }
verdict() { jq -r '.verdict' "build/$1.$2.json"; }
is() { [ "$1" = "$2" ] || { echo "'$1' is not '$2'"; return 1; }; }
