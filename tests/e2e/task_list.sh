#!/bin/bash
# make tasks: what its columns say.  Which tasks are listed is choice.sh's.
# uses: build/report
. tests/e2e/lib.sh

mkdir -p "$scratch/tree" && cd "$scratch/tree" || exit
out=$scratch/out
mkdir -p tasks/my tasks/fam results/h200 optimized/{portable,sm_90a}
task() { # NAME FLAGS GRAPH
    jq -n --arg name "$1" --argjson flags "$2" --argjson graph "$3" '{schema: 1, task: $name, suite: "my", title: "t", source: "a test",
        parameters: [], notes: [], flags: $flags, graph: $graph, outputs: ["y"],
        inputs: [{name: "x", shape: [1024, 1024], dtype: "f32", fill: "uniform(0,1)", domain: "real"}]}' > "tasks/my/$1.json"
}
task chain '["no-influence: x", "degenerate: y"]' '["a[1024,1024] = relu(x)", "b[1048576] = view(a; shape=[1048576])", "c[1024,1024] = relu(x)", "d[1024,1024] = relu(c)", "e[1048576] = view(d; shape=[1048576])", "y[1048576] = add(b, e)"]'
task product '[]' '["y[1024,1024] = matmul(x, x)"]'
jq '.task = "fam_{N}" | .suite = "fam" | .shape = ["N"] | .inputs[0].shape = ["{N}", "{N}"] | .graph = ["y[{N},{N}] = relu(x)"]' tasks/my/product.json > tasks/fam/template.json
touch optimized/{portable,sm_90a}/product.cu optimized/portable/{fam,other}.cu
echo '{"machine": {"peaks": {"read_gbs": 2000, "copy_gbs": 1000, "f16_tflops": 300, "fp32_tflops": 10}}}' > results/h200/x.json
echo '{"schema": 1, "suite": "my", "gpu": "h200", "task": "product", "verdict": "wrong", "flags": ["cannot-tell: x", "noisy", "no-influence: a", "no-influence: b"]}' > results/h200/product.json
list() { "$root/build/report" --tasks-of "$1" > "$out" 2>&1; }
row() { awk -v task="$1" '$2 == task { for (i = 3; i <= NF; i++) printf "%s%s", $i, i < NF ? " " : "\n" }' "$out"; }

printf 'my chain\nmy product\nfam fam_2048\n' | list h200
check 'a heading, and a row a task' is "$(wc -l < "$out") $(head -n 1 "$out" | awk '{ print $1, $2 }')" '4 suite task'
# x stays, a and d live as long as their views, c is gone when y comes: x, a, d, and c or y.
check 'ops, bytes, flops, floor of bytes, memory, no result, no kernel, flags' is "$(row chain)" '6 8 MiB 4.19e+06 8.39 16 MiB - - no-influence,degenerate'
check 'the floor of products, the recorded verdict and its flags that count, each once, kernels of two folders' is "$(row product)" \
    '1 8 MiB 2.15e+09 21.5 8 MiB wrong portable,sm_90a cannot-tell,no-influence'
check 'a shape of a family, and the kernel of its suite' is "$(row fam_2048)" '1 32 MiB 4.19e+06 33.6 32 MiB - portable'
echo 'my product' | list l40
check 'without recorded peaks there is no floor' is "$(row product)" '1 8 MiB 2.15e+09 - 8 MiB - portable,sm_90a'
echo 'my product' | list ''
check 'nor without a GPU' is "$(row product | cut -d' ' -f5)" -
echo 'my none' | list h200
check 'a task that is none is an error' [ $? = 5 ]
check 'of one line' lines 1 '^report: tasks/my/template.json'
echo '{' > tasks/my/broken.json
echo 'my broken' | list h200
check 'so is a broken one, which one line names' lines 1 '^report: tasks/my/broken.json'

# What report prints for the terminal is there, or the disk is full.
rm tasks/my/broken.json
mkdir -p build/h200 && cp results/h200/product.json build/h200/product.build.json
onto() { "$root/build/report" "${@:2}" > "$1" 2> "$out"; }
onto said --failed build
check 'a cell that failed has a line' is "$? $(cut -d' ' -f1,2 said)" '0 h200/product wrong'
if [ -e /dev/full ]; then
    onto /dev/full --failed build
    check 'a list that cannot be written is exit 5' is "$? $(tail -n 1 "$out")" '5 report: cannot write standard output; is the disk full?'
    onto /dev/full --cell results/h200/product.json
    check 'so is the line of a cell' is "$? $(cat "$out")" '5 report: cannot write standard output; is the disk full?'
fi
