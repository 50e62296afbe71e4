# lib.sh: what the tests of verify and time on the pretend GPU share: tasks, cells, steps.
# Sourced after tests/e2e/lib.sh, from the root of the tree; a folder of its own becomes the current
# one.  Needs CUDA's headers: without them the test ends as one that is skipped.
# shellcheck shell=bash disable=SC2034,SC2119,SC2120,SC2154

bin=$root/build/fake
cuda=$real_cuda
if ! [ -x "$bin/time" ] || ! [ -e "$cuda/include/cuda.h" ]; then
    skip "$(basename "$0")" 'no CUDA headers here'
    exit
fi
cd "$scratch" || exit
out=$scratch/out
export KP_DEADLINE=20 LD_LIBRARY_PATH=$bin
mkdir -p tasks/fake build

# task NAME FLAGS OP TENSOR... - FLAGS is a JSON list, OP gives y, a tensor is
# NAME:SHAPE[:FILL[:DOMAIN]]; ids is one of integers.
declare -A elements # of a task's output
task() {
    local shape=${3%%]*}
    shape=${shape#*[} elements[$1]=$((${shape//,/*}))
    jq -n --arg name "$1" --argjson flags "$2" --arg op "$3" '{schema: 1, task: $name, suite: "fake", title: $name,
        source: "a test", parameters: [], graph: [$op], outputs: ["y"], notes: [], flags: $flags,
        inputs: [$ARGS.positional[] | split(":") | {name: .[0], shape: (.[1] | fromjson), fill: (.[2] // "uniform(0,1)"), domain: .[3]} |
            . + if .name == "ids" then {dtype: "i64", domain: "declared"} else {dtype: "f32", domain: (.domain // "real")} end]
        }' --args "${@:4}" > "tasks/fake/$1.json"
}
relu='y[64,64] = relu(x)' ids='ids:[64]:integers(0,4503599627370496)'
task relu64 '[]' "$relu" 'x:[64,64]'
task relu_ids '["unused: ids"]' "$relu" 'x:[64,64]' "$ids"
task relu10 '[]' 'y[10,10] = relu(x)' 'x:[10,10]'
task relu256 '[]' 'y[256,256] = relu(x)' 'x:[256,256]'
task relu_fixed '[]' "$relu" 'x:[64,64]:uniform(0,1):declared'
task matmul8 '[]' 'y[8,8] = matmul(a, b)' 'a:[8,8]' 'b:[8,8]'
task layer_norm '[]' 'y[4,16] = layer_norm(x, weight=w, bias=b; shape=[16], eps=1e-05)' 'x:[4,16]' 'w:[16]' 'b:[16]'
task argmax '[]' 'y[16]:i64 = argmax(x; dim=1)' 'x:[16,32]'

# field KEY KERNEL - what stands at the head of a kernel: expect, task or reason.
field() { sed -n "1,4s|^// $1: *||p" "$root/tests/fake/kernels/$2.c"; }

# compiled KERNEL TASK [-D...] - KERNEL.so, library and cubin at once, for a task; compiled once for all tests.
compiled() {
    local made="$cache/$1.${elements[$2]}${*:3}"
    [ -e "$made" ] || {
        gcc -std=gnu11 -O1 -shared -fPIC -DCOUNT="${elements[$2]}" "${@:3}" -iquote "$root/harness" -iquote "$root/reference" -isystem "$cuda/include" \
            -o "$made.$$" "$root/tests/fake/kernels/$1.c" -L"$bin" -lcudart -lm && mv "$made.$$" "$made"
    } || exit
    cp "$made" "$1.so"
}
# built KERNEL [TASK] [-D...] - what `build` leaves of a kernel; sets cell and json.
built() {
    local kernel=$1 task=${2:-$(field task "$1")}
    cell=build/$kernel/$task json=tasks/fake/$task.json
    mkdir -p "${cell%/*}"
    rm -f "$cell".*
    compiled "$kernel" "$task" "${@:3}" && cp "$kernel.so" "$cell.so" && mv "$kernel.so" "$cell.cubin"
    echo '{"schema":1,"verdict":"ok","reason":null,"kernel":{"path":"a.cu","sha256":"0"}}' > "$cell.build.json"
    peaks
}
# peaks [NAME=VALUE...] - what this machine can do.
peaks() {
    local of text='{"schema": 1'
    for of in "$@" read_gbs=4000 copy_gbs=4000 f16_tflops=700 tf32_tflops=300 fp32_tflops=50; do
        [[ $text == *" \"${of%=*}\":"* ]] || text+=", \"${of%=*}\": ${of#*=}"
    done
    echo "$text}" > "${cell%/*}/peaks.json"
}
# step verify|time [KNOB...] - run a step of the cell with these knobs; its output goes to $out.
step() { CUDA_VISIBLE_DEVICES=${*:2} "$bin/$1" "$json" "$cell" > "$out" 2>&1; }

of() { jq -r "$2" "$cell.$1.json"; } # of verify .class
reason() { of "$1" .reason | grep -qF -- "$2" || { of "$1" .reason; return 1; }; }
# ends STEP VERDICT [TEXT] - the step's verdict, and what its reason must hold.
ends() {
    local found
    found=$(of "$1" '"\(.verdict): \(.reason)"')
    [[ $found == "$2: "*"${3-}"* ]] || { echo "$found, not $2: ${3-}"; return 1; }
}
