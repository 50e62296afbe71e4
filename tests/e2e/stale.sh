#!/bin/bash
# What was measured of other sources than those in the tree is stale: no published result may be, and
# each kind of change is seen, where it can alter a number, and nowhere else.
# uses: build/report build/inputs build/task
# shellcheck disable=SC2016,SC2154  # sed's $; root and scratch are lib.sh's
. tests/e2e/lib.sh
out=$scratch/out
# stale - which recorded results are stale, and why.
stale() { "$root/build/report" --failed none 2> "$out" | sed -n 's/^h200\/\(.*\) stale: /\1: /p'; }

# Those without hashes are known to be unknown: their page says so.
check 'no published result is stale' is "$("$root/build/report" --failed none | grep ' stale: ')" ''

# Those that are said to be of another commit are not stale there.
for tree in results/*/tree; do
    [ -e "$tree" ] || continue
    gpu=$(basename "${tree%/tree}")
    families=$(awk 'NF == 2 { print "/" $2 "_" }' "$tree")
    while read -r commit family; do
        there=$scratch/$gpu.$commit
        if git cat-file -e "$commit" 2> /dev/null; then
            mkdir "$there" && git archive "$commit" | tar -xf - -C "$there"
            rm -r "$there"/results/* && cp -r "results/$gpu" "$there/results/" && rm "$there/$tree"
            found=$(cd "$there" && "$root/build/report" --failed none | grep ' stale: ')
            if [ -n "$family" ]; then found=$(grep "/${family}_" <<< "$found"); elif [ -n "$families" ]; then found=$(grep -vF "$families" <<< "$found"); fi
            check "no result of the $gpu${family:+, $family,} is stale in the tree that it is of" is "$found" ''
        else
            skip "the tree of the results of the $gpu" "no commit $commit in this repository"
        fi
    done < "$tree"
done

cd "$scratch" || exit
mkdir -p results/h200 plots
cp -r "$root"/{harness,reference,optimized,tasks} .
cp "$root"/plots/*.gp plots
# kernel TASK - the kernel of a task, or of its family, on an H200.
kernel() {
    local k
    for k in optimized/{h200,sm_90a,portable}/{"$1","${1%%_*}"}.cu; do [ ! -e "$k" ] || { echo "$k" && return; }; done
}
# measured SUITE/TASK - a result of the tree as it is.
measured() {
    local task=${1#*/}
    if [ -e "tasks/$1.json" ]; then cp "tasks/$1.json" task.json; else "$root/build/task" expand "tasks/${1%/*}/template.json" "$task" > task.json; fi
    jq --argjson inputs "$("$root/build/inputs" task.json "$(kernel "$task")")" --arg task "$task" --arg suite "${1%/*}" \
        '.inputs = $inputs | .task = $task | .suite = $suite' "$root/results/h200/l1_019_relu.json" > "results/h200/$task.json"
}
for cell in level1/l1_019_relu level1/l1_023_softmax level1/l1_001_square_matmul hgemm/hgemm_64_64_64; do measured "$cell"; done
jq "del(.inputs)" "$root/results/h200/l1_026_gelu.json" > results/h200/l1_026_gelu.json # from before there were hashes

# changed WHAT EXPECTED FILE SED - with FILE edited by SED, these are stale; then it is put back.
changed() {
    cp "$3" was
    sed -i -E "$4" "$3"
    check "$1: the edit is made" not cmp -s "$3" was
    check "$1" is "$(stale | paste -sd';')" "$2"
    cp was "$3"
}
check 'what was measured of the tree as it is is not stale' is "$(stale)" ''
check 'which is said without complaint' [ ! -s "$out" ]
if [ -e /dev/full ]; then
    "$root/build/inputs" task.json > /dev/full 2> "$out"
    check 'hashes that cannot be written are an error' is "$? $(cat "$out")" '5 inputs: cannot write standard output; is the disk full?'
fi
all='hgemm_64_64_64: harness;l1_001_square_matmul: harness;l1_019_relu: harness;l1_023_softmax: harness'

changed 'a comment in a kernel changes nothing' '' optimized/portable/l1_019_relu.cu '$a // a comment'
changed 'a kernel does' 'l1_019_relu: kernel' optimized/portable/l1_019_relu.cu '$a int more;'
header=optimized/include/$(sed -n 's/^#include "\(.*\.cuh\)".*/\1/p' "$(kernel l1_023_softmax)" | head -n 1)
changed 'so does a header that it includes' 'l1_023_softmax: kernel' "$header" '$a int more;'
table=optimized/include/half_table.cuh
changed "a table's line of another shape changes nothing" '' $table '$a {64, 64, 640, kp::HALF_DIRECT, 16, 16, 1, 1, 32},'
measured hgemm/hgemm_64_64_128
check 'two shapes of a kernel each have the hash of their own line' is "$(stale)" ''
changed 'that of its own does' 'hgemm_64_64_64: kernel' $table '0,/^\{/s/^\{/{64, 64, 64, kp::HALF_DIRECT, 32, 32, 1, 1, 32},\n{/'
rm results/h200/hgemm_64_64_128.json
# A kernel for one kind of GPU names a table of its own, which is kept as such.
mkdir optimized/h200 && sed 's|half_table_h100|half_table_h200|' optimized/h100/hgemm.cu > optimized/h200/hgemm.cu
table=optimized/include/half_table_h200.cuh
sed '$a {64, 64, 64, kp::HALF_DIRECT, 16, 16, 1, 1, 32},' optimized/include/half_table_h100.cuh > $table
measured hgemm/hgemm_64_64_64
changed "so does its line in a GPU's own table" 'hgemm_64_64_64: kernel' $table 's/^(\{64, 64, 64, .*) 16, 16,/\1 32, 32,/'
changed 'and no other' '' $table '$a {64, 64, 640, kp::HALF_DIRECT, 16, 16, 1, 1, 32},'
rm -r optimized/h200 $table && measured hgemm/hgemm_64_64_64
cp "$header" whole && echo 'int a;' > optimized/include/deeper.cuh
sed -i '1i #include "deeper.cuh"' "$header" && measured level1/l1_023_softmax
changed 'and one that a header includes' 'l1_023_softmax: kernel' optimized/include/deeper.cuh '$a int more;'
sed -i '1s/.*/#include <deeper.cuh>/' "$header" && measured level1/l1_023_softmax
changed 'however that is written' 'l1_023_softmax: kernel' optimized/include/deeper.cuh '$a int more;'
cp whole "$header" && measured level1/l1_023_softmax
changed 'what decides only whether it compiles changes nothing' '' "$header" '$a static_assert (sizeof(")") == 2 /* ); */,\n"two");'
changed 'what follows that does' 'l1_023_softmax: kernel' "$header" '$a static_assert(1); int more;'
mkdir -p tasks/my && jq '.task = "my_table" | .suite = "my"' tasks/level1/l1_019_relu.json > tasks/my/my_table.json
cp optimized/portable/l1_019_relu.cu optimized/portable/my_table.cu && measured my/my_table
changed 'a kernel that is named as a table is none' 'my_table: kernel' optimized/portable/my_table.cu '$a int more;'
printf '// \0\n' >> optimized/portable/my_table.cu
"$root/build/inputs" tasks/my/my_table.json optimized/portable/my_table.cu > "$out" 2>&1
check 'a kernel with a byte that hides what follows is refused' is "$? $(cat "$out")" '3 inputs: optimized/portable/my_table.cu: a NUL byte in it, which would hide what follows: remove it'
rm -r tasks/my optimized/portable/my_table.cu results/h200/my_table.json
mkdir optimized/h200 && echo 'int other;' > optimized/h200/l1_019_relu.cu
check 'a kernel that overrules it' is "$(stale)" 'l1_019_relu: kernel'
rm -r optimized/h200
echo 'int other;' > optimized/sm_90a/hgemm_64_64_64.cu
check "and one that overrules its family's" is "$(stale)" 'hgemm_64_64_64: kernel'
rm optimized/sm_90a/hgemm_64_64_64.cu

# Without a kernel the baselines were measured: a kernel that comes changes nothing of that.
cp results/h200/l1_019_relu.json measured.json
jq '.verdict = "missing" | .inputs.kernel = null' measured.json > results/h200/l1_019_relu.json
check 'a kernel that has come since changes no result without one' is "$(stale)" ''
printf '<!-- results:begin -->\n<!-- results:end -->\n' > README.md
"$root/build/report" > "$out" 2>&1
check 'whose row says that it is there' grep -q '^| l1_019_relu | missing .*| its kernel is newer, and not measured |$' results/h200/README.md
cp measured.json results/h200/l1_019_relu.json

changed 'a title changes nothing' '' tasks/level1/l1_019_relu.json 's/"title": ".*"/"title": "other"/'
changed 'what a tensor is filled with does' 'l1_019_relu: task' tasks/level1/l1_019_relu.json 's/"fill": ".*"/"fill": "constant(1)"/'
changed 'so does the template of a family' 'hgemm_64_64_64: task' tasks/hgemm/template.json 's/"fill": "[^"]*"/"fill": "constant(1)"/'

changed 'an op changes the tasks that use it' 'l1_023_softmax: reference' reference/cuda_ops/softmax.cu '$a int more;'
jq '.graph[0] |= sub(" = "; "=")' tasks/level1/l1_023_softmax.json > tight.json
check 'however its line is written' is "$("$root/build/inputs" tight.json | jq -r .reference)" "$("$root/build/inputs" tasks/level1/l1_023_softmax.json | jq -r .reference)"
measured level3/l3_016_densenet201
changed 'the last op of a long graph, too' 'l3_016_densenet201: reference' reference/cuda_ops/pool_adaptive.cu '$a int more;'
rm results/h200/l3_016_densenet201.json
measured crfm/crfm_conv2d_relu_maxpool
for part in products/conv.c ops/pool.cu; do
    changed "each op of a graph: $part" 'crfm_conv2d_relu_maxpool: reference' "reference/cuda_$part" '$a int more;'
done
rm results/h200/crfm_conv2d_relu_maxpool.json
changed 'an expression those of expressions' 'l1_019_relu: reference' reference/define/elementwise.h '0,/ELEMENTWISE\(relu/s//FORM(more, 1, 0, x) ELEMENTWISE(relu/'
changed 'device code that it includes, too' 'l1_019_relu: reference' reference/cuda_ops/elementwise.cuh '$a int more;'
changed 'not others who include that' '' reference/cuda_ops/functions.cu '$a int more;'
changed 'nor their expressions' '' reference/define/functions.h '$a int more;'
changed 'what an op is helped by, too' 'hgemm_64_64_64: reference;l1_001_square_matmul: reference' reference/cuda_products/gemm.c '$a int more;'
changed 'the executor changes all' "${all//harness/reference}" reference/cuda/plan.c '$a int more;'
changed 'the noise, too' "${all//harness/reference}" reference/cuda_base/noise.cuh '$a int more;'
changed 'the row of an op its tasks' 'l1_019_relu: reference' harness/task/op_table.h 's/OP\(relu, UNARY\)/OP(relu, BINARY)/'
changed 'an op that is added none' '' harness/task/op_table.h 's/^(OP\(relu, UNARY\))/\1 OP(swoosh, UNARY)/'
echo 'KP_IMPL(swoosh, 0, 0, 0, 0);' > reference/cuda_ops/swoosh.cu
check 'nor does its implementation' is "$(stale)" ''

changed 'the clock changes all' "$all" harness/replay/timed_sample.c '$a int more;'
changed 'what an input holds, too' "$all" harness/gpu/values.c '$a int more;'
for part in base/{clock.h,stats.c,stats.h,tape.c,tape.h} measure/tolerance.c task/{cost,fill,graph,load,ops,slice,taskfile}.c; do
    changed "harness/$part, too" "$all" "harness/$part" '$a int more;'
done
changed 'a comment in them none' '' harness/measure/time_main.c '$a /* a comment */'
changed 'nor what writes pages' '' harness/report/page.c '$a int more;'

# The page says it.
printf '<!-- results:begin -->\n<!-- results:end -->\n' > README.md
sed -i '$a int more;' optimized/portable/l1_019_relu.cu
"$root/build/report" > "$out" 2>&1
check 'the page says which is stale' grep -q '^| l1_019_relu .*| stale: kernel |$' results/h200/README.md
check 'and how many' grep -qF '**Stale**: what 1 result was measured of has changed since' results/h200/README.md
check 'README says it, too' grep -qF '**Stale: 1 of these results.**' README.md
check 'and how many cannot say' grep -qF '1 result was recorded before hashes of inputs were' results/h200/README.md
check 'and README does' grep -qF '**h200: 1 by earlier rules**' README.md
git -C "$root" rev-parse HEAD > results/h200/tree 2> /dev/null || echo 0123456789abcdef > results/h200/tree
"$root/build/report" > "$out" 2>&1
check 'of a GPU whose results are of another tree the page says so' grep -qE '^\*\*h200\*\*: measured at commit [0-9a-f]{12}. Since then the kernel or the task of 1 of these results$' results/h200/README.md
check 'README does, too, in the row and below' is "$(grep -cE '^\| h200 .*, of [0-9a-f]{7} \||^\*\*h200\*\*: measured at commit [0-9a-f]{12}. Since then the kernel or the task of 1 of its results$' README.md) $(grep -c 'Stale' README.md)" '2 0'
check 'and the row of that result' is "$(grep -c ' its kernel or task has changed since |$' results/h200/README.md) $(grep -c '^| l1_019_relu .* its kernel or task' results/h200/README.md)" '1 1'
check 'and none is listed' is "$(stale)" ''
of_tree() { "$root/build/report" --failed none 2> "$out" | sed -n 's/^\(h200.*\) of commit [0-9a-f]\{7\}, \(.*\): stale here$/\1: \2/p'; }
check 'but how many have changed since' is "$(of_tree)" 'h200: 5 results are: the sources of 1 has changed since'
commit=$(cat results/h200/tree)
sed -i '$a int more;' optimized/sm_90a/hgemm.cu
echo "$commit other" > results/h200/tree
check 'of another family none is' is "$(stale | paste -sd';')" 'hgemm_64_64_64: kernel;l1_019_relu: kernel'
echo "$commit hgemm" > results/h200/tree
"$root/build/report" > "$out" 2>&1
check "of those of a family it lists the others" is "$(stale)" 'l1_019_relu: kernel'
check 'and the page says of each how many' is "$(grep -cE '^\*\*hgemm\*\*: measured at commit [0-9a-f]{12}. Since then the kernel or the task of 1 of these results$|^\*\*Stale\*\*: what 1 result ' results/h200/README.md)" 2
check 'as README does' is "$(grep -cE '^\| h200, hgemm, of [0-9a-f]{7} \||^\*\*h200, hgemm\*\*: measured at commit [0-9a-f]{12}. Since then the kernel or the task of 1 of its results$|^\*\*Stale: 1 of' README.md) $(grep -c '^| h200 .*, of ' README.md)" '3 0'
check 'and make failed, too' is "$(of_tree)" 'h200, hgemm: 1 result is: the sources of 1 has changed since'
echo fedcba9876543210 >> results/h200/tree
"$root/build/report" > "$out" 2>&1
check 'the others may be of a third' is "$(stale)$(grep -cE '^\| h200.*, of [0-9a-f]{7} \||^\*\*h200.*: measured at commit [0-9a-f]{12}. Since then the kernel or the task of 1 of its results$' README.md)" 4
for wrong in '' e4e9abf 'e4e9abf73a7f and more' $'e4e9abf73a7f\ne4e9'; do
    echo "$wrong" > results/h200/tree
    check "a tree called '$(paste -sd' ' <<< "$wrong")' is refused in one line" is "$("$root/build/report" 2>&1 | tail -n 1)" 'report: results/h200/tree: expected up to 4 lines, each the hash of a commit, 12 to 40 hexadecimal digits, and perhaps the name of a family'
done
git -C "$root" rev-parse HEAD > results/h200/tree 2> /dev/null || echo 0123456789abcdef > results/h200/tree
cp "$root/optimized/portable/l1_019_relu.cu" optimized/portable/ && cp "$root/optimized/sm_90a/hgemm.cu" optimized/sm_90a/
"$root/build/report" > "$out" 2>&1
check 'where nothing has changed both pages say that' is "$(grep -chE '^\*\*h200\*\*: measured at commit [0-9a-f]{12}; nothing that (its|these) results depend on has changed since\.$' README.md results/h200/README.md | paste -sd' ')" '1 1'
check 'and make failed lists none' is "$(of_tree)" ''
rm results/h200/tree
rm reference/cuda_ops/swoosh.cu harness/replay/timed_sample.c reference/cuda_ops/softmax.cu
check 'a source that is gone is an error' eval "stale; grep -q 'no file of reference/cuda_ops or reference/cuda_products implements softmax' '$out'"
