#!/bin/bash
# Which cells are chosen, on which machine; what becomes of their results.
# uses: build/compare
# shellcheck disable=SC2012,SC2016  # names are tame; what is quoted is for another shell
. tests/e2e/lib.sh

tree
mk time TASKS=l1_019
check 'a unique prefix is one task' ran 'nvcc l1_019_relu;peaks build/h200/peaks.json;time h200/l1_019_relu;verify h200/l1_019_relu;'
mk time TASKS=l1
check 'an ambiguous prefix is an error' [ $? != 0 ]
check 'of one line, which names both' says "^Makefile:[0-9]+: \*\*\* TASKS: 'l1' could be l1_001_matmul l1_019_relu\. "
check 'one' lines 1 .
mk time TASKS=l7
check 'an unknown task is an error of one line' lines 1 "no task begins with 'l7'"
mk print-tasks TASKS='l1_%'
check 'a pattern is all that match' says '^tasks = l1_001_matmul l1_019_relu$'
mk print-tasks SUITE=crfm
check 'SUITE is all of a suite' says '^tasks = crfm_softmax$'
mk print-tasks SUITE=level9
check 'an unknown suite is an error of one line' lines 1 "no suite 'level9'"
mk tasks SUITE=crfm TASKS=l1_019
check 'so is a task of another suite' lines 1 "TASKS: none of 'l1_019' is in SUITE 'crfm'"
mk tasks
check 'make tasks lists them' lines 3 '^(crfm|level1) [a-z0-9_]+$'
mk help
check 'help is the manual' says '^Usage: make'
mk print-gpus
check 'print-VAR prints' says '^gpus = h200$'
cp tasks/level1/l1_019_relu.json tasks/crfm/
mk tasks
check 'two tasks of one name are refused' says 'same name: l1_019_relu in tasks/crfm tasks/level1'
rm tasks/crfm/l1_019_relu.json
for wrong in TASK:TASKS TASKSS:TASKS GPU:GPUS SUITES:SUITE ARCH:ARCHS gpus:GPUS BUDGET_USDD:BUDGET_USD KP_DEADLIN:KP_DEADLINE; do
    mk -n time "${wrong%:*}=1"
    check "a misspelt variable fails: ${wrong%:*}" is $? 2
    check 'and is one line, which names the nearest' is "$(grep -c . "$out") $(grep -c "no variable '${wrong%:*}'; the nearest is ${wrong#*:}\." "$out")" '1 1'
done
mk -n time MODEL=x
check 'a model has another name' lines 1 "no variable 'MODEL'; a model is named in LLM"
mk -n time XYZZY=x
check 'one that is like no other is told where they are' lines 1 'make help. and REPRODUCE.md name them'
mk -n time TASKS=l1_019 arch.odd=90 RUN.odd='env A=b' CFLAGS=-O1 KP_STAY=0 MINE= LLM_KEY_ENV=MINE
check 'variables by kind of GPU, of compilers and of the key are known' [ $? = 0 ]
TASKSS=1 mk -n time TASKS=l1_019
check 'and of the environment any' [ $? = 0 ]
{
    (cd "$root" && grep -ohE '\b[A-Z][A-Z0-9_]+=' Makefile README.md REPRODUCE.md CONTRIBUTING.md METHOD.md | grep -v -e QKP -e KP_INPUTS -e KP_GPU -e '^KEY='
        grep -ohE '`[A-Z][A-Z0-9_]+`' REPRODUCE.md harness/export/README.md | grep -vxF -e '`PATH`' -e '`COMMIT`' -e '`KP_RACECHECK`' # a file; a macro
        grep -rhoE '\$\{KP_[A-Z_]+:-[0-9]' harness | sed 's/:-.*//; s/..//')
} | tr -d '`=' | sort -u > documented
# shellcheck disable=SC2046  # names
mk help $(sed 's/$/=/' documented)
check 'every variable that the documents name is known' [ $? = 0 ]
check 'which are not few' [ "$(wc -l < documented)" -gt 60 ]

# The scripts by themselves.
for script in compile/compile compile/compile-attempt gen/estimate-cost inspect/profile promote/promote inspect/sanitize inspect/shrink; do
    name=${script#*/}
    "$root/harness/$script" > "$out" 2>&1
    check "$name without arguments is a wrong command line" is "$?" 2
    check 'which is one line' is "$(grep -c "^$name: usage: $name " "$out") $(wc -l < "$out")" '1 1'
done
harness/record/record-results al > "$out" 2>&1
check 'so is a mode that record-results does not have' is "$? $(cat "$out")" '2 record-results: usage: record-results all|new|compare|attempts [GPU/TASK...]'
"$root/build/compare" build results h200 l1_001_matmul > "$out"
check 'one cell is one' is "$(cat "$out")" 'h200: 1 cell, 1 not measured here'
"$root/build/compare" build results h200 l1_001_matmul crfm_softmax > "$out"
check 'two are some' is "$(cat "$out")" 'h200: 2 cells, 2 not measured here'
if [ -e /dev/full ]; then
    "$root/build/compare" build results h200 l1_001_matmul > /dev/full 2> "$out"
    check 'what cannot be written is exit 5' is "$? $(cat "$out")" '5 compare: cannot write standard output; is the disk full?'
fi

# GPUs and their names.
tree
for pair in 'NVIDIA H200, 9.0=h200' 'NVIDIA A100-SXM4-80GB, 8.0=a100' 'NVIDIA A100 80GB PCIe, 8.0=a100' \
    'NVIDIA GeForce RTX 4090, 8.9=rtx4090' 'NVIDIA H100 80GB HBM3, 9.0=h100' 'NVIDIA GeForce RTX 4070 Ti SUPER, 8.9=rtx4070tisuper' \
    'NVIDIA L40S, 8.9=l40s' 'NVIDIA RTX 6000 Ada Generation, 8.9=rtx6000ada' 'NVIDIA GH200 480GB, 9.0=gh200' 'NVIDIA B200, 10.0=b200'; do
    gpus "${pair%=*}"
    mk print-gpus
    check "${pair%,*} is ${pair#*=}" says "^gpus = ${pair#*=}\$"
done
gpus 'NVIDIA Strange 9, 9.0'
mk time
check 'a GPU unknown to the table has the architecture it says' is "$(jq -r .kernel.arch build/strange9/l1_019_relu.build.json)" sm_90
mk time GPUS=odd
check 'an unknown GPU by hand is an error' says "unknown GPU 'odd': known are a10 .* h200 "
gpus
mk build GPUS=odd arch.odd=86
check 'unless its architecture is said; no GPU is needed to build' is "$(jq -r .kernel.arch build/odd/l1_019_relu.build.json)" sm_86
mk time TASKS=l1_019 GPUS=h200 RUN=env
steps > /dev/null
mk time TASKS=l1_019 GPUS='a100 h200' RUN=env
check 'another GPU leaves the cells of the first alone' ran 'nvcc l1_019_relu;peaks build/a100/peaks.json;time a100/l1_019_relu;verify a100/l1_019_relu;'
check 'several GPUs have each their cell' is "$(jq -r .kernel.arch build/a100/l1_019_relu.build.json build/h200/l1_019_relu.build.json | tr '\n' ' ')" 'sm_80 sm_90 '

for wrong in x 0 5m -3; do
    mk build TASKS=l1_001 GPUS=h200 KP_COMPILE_SECONDS=$wrong
    check "KP_COMPILE_SECONDS=$wrong is one line" is "$(grep -c "^compile: KP_COMPILE_SECONDS is a positive whole number, not '$wrong'$" "$out") $(grep -c '^compile' "$out") $(grep -c 'Error 2$' "$out")" '1 1 1'
done
mk build TASKS=l1_001 GPUS=h200 NVCC=/bin/false
check 'an nvcc that says nothing is said to' lines 1 '^compile: /bin/false cannot compile a trivial kernel: it ends with 1 and says nothing: NVCC names another$'
mk build NVCC=/no/such/nvcc GPUS=h200
check 'an NVCC that is not there is not replaced by another' lines 1 '^deps: NVCC=/no/such/nvcc: no such command: '
CUDA_HOME_HERE='' mk build NVCC=/bin/false GPUS=h200
check 'nor is one without a toolkit' lines 1 '^deps: NVCC=/bin/false: no CUDA Toolkit 12.4 or newer is around it'
touch harness/*/*_main.c
for wrong in CC CXX; do
    mk build GPUS=h200 $wrong=/no/such/cc
    check "a $wrong that is not there is named" lines 1 "^deps: $wrong=/no/such/cc: no such command"
done
for wrong in 'ARCHS=77' 'ARCHS=80 abc' 'ARCHS=sm_90' 'ARCHS=9'; do
    mk build GPUS=h200 "$wrong"
    check "$wrong is a wrong command line" is "$? $(grep -c "\*\*\* $wrong: 'all', or numbers of at least 80" "$out") $(grep -c . "$out")" '2 1 1'
done
for wrong in abc 75 90a 9 '80 90'; do
    mk build GPUS=foo arch.foo="$wrong"
    check "so is arch.foo=$wrong" is "$? $(grep -c "\*\*\* arch.foo=$wrong: an architecture is a number of at least 80" "$out") $(grep -c . "$out")" '2 1 1'
done
for right in ARCHS=90a 'ARCHS=80 100f 120' ARCHS=all 'ARCHS= all 90a'; do
    mk -n build TASKS=l1_019 GPUS=h200 "$right"
    check "$right is none" [ $? = 0 ]
done
for wrong in RUN RUN.h200; do
    mk verify GPUS=h200 $wrong='A=b nosuchcmd -x'
    check "a $wrong that is not there is named" is "$? $(grep -c "\*\*\* $wrong: no command 'nosuchcmd' here: RUN is " "$out") $(grep -c . "$out")" '2 1 1'
done
mk verify GPUS=h200 RUN=nosuchcmd RUN.h200=env
check 'but for one that nothing uses' not says nosuchcmd
mk pytorch GPUS=h200 PYTHON=/nonexistent
check 'so is a PYTHON' is "$? $(grep -c "\*\*\* PYTHON: no command '/nonexistent' here: PYTHON names " "$out") $(grep -c . "$out")" '2 1 1'

# No GPU, a wrong one, an old one, an old driver.
tree
gpus
mk time
check 'without a GPU there is nothing to time' [ $? != 0 ]
check 'which is said in one line' lines 1 'no NVIDIA GPU here'
check 'and is no output' is "$(PATH=$PWD/bin:$PATH KP_LOCKS=$PWD CUDA_HOME=$PWD/toolkit make "${stubs[@]}" time 2> /dev/null)" ''
mk reproduce
check 'reproduce without a GPU succeeds' [ $? = 0 ]
check 'says so' lines 1 'no NVIDIA GPU here'
check 'and only draws' ran 'report -;'
mk
check 'so does make by itself' ran 'report -;'
mk time GPUS=h200
check 'a GPU step without a GPU is an error' [ $? != 0 ]
check 'of one line' lines 1 '^with-gpu: no GPU here'
gpus 'NVIDIA A100-SXM4-80GB, 8.0'
mk time GPUS=h200
check 'so is one on another GPU' lines 1 '^with-gpu: no h200 to run on: this machine has 1 x a100'
gpus 'Tesla V100-SXM2-16GB, 7.0'
mk time
check 'a GPU older than sm_80 is an error' [ $? != 0 ]
check 'of one line' lines 1 'Tesla V100-SXM2-16GB is sm_70'
DRIVER=550.54 gpus 'NVIDIA H200, 9.0'
mk time
check 'a driver older than the toolkit is an error' lines 1 '^with-gpu: driver 550 is older'

# No GPU.
tree
gpus
for goal in 'time ARCHS=80' 'aa ARCHS=all' test-gpu; do
    # shellcheck disable=SC2086  # words
    mk $goal
    check "$goal without a GPU says so" says '^no NVIDIA GPU here'
    check 'and nothing is compiled before' not says '^  (CC|LD|CXX|NVCC) '
done

# A prefix of one's own, by GPU.
tree
mk time TASKS=l1_019 RUN.h200='env PREFIXED=h200' RUN=false
check 'RUN.GPU is the prefix of that GPU' ran 'nvcc l1_019_relu;peaks build/h200/peaks.json;time h200/l1_019_relu;verify h200/l1_019_relu;'

# One command to a GPU.
tree
gpus 'NVIDIA H200, 9.0' 'NVIDIA H200, 9.0'
cat > hold << 'HOLD'
#!/bin/sh
mkdir "held.$CUDA_VISIBLE_DEVICES" || echo overlap >> overlaps
sleep 0.05
rmdir "held.$CUDA_VISIBLE_DEVICES"
echo "$CUDA_VISIBLE_DEVICES" >> held
HOLD
chmod +x hold
for _ in $(seq 12); do PATH=$PWD/bin:$PATH KP_LOCKS=$PWD CUDA_HOME=$PWD/toolkit KP_GPU=h200 harness/gpu/with-gpu ./hold & done
wait
check 'twelve commands on two GPUs never overlap' [ ! -e overlaps ]
check 'and all run' is "$(wc -l < held)" 12
check 'on both' is "$(sort -u held | wc -l)" 2
one() { PATH=$PWD/bin:$PATH KP_LOCKS=$PWD CUDA_HOME=$PWD/toolkit harness/gpu/with-gpu "$@"; }
export CUDA_VISIBLE_DEVICES=1
check 'CUDA_VISIBLE_DEVICES is honoured' is "$(one sh -c 'echo $CUDA_VISIBLE_DEVICES')" "GPU-11-$$"
unset CUDA_VISIBLE_DEVICES
one sh -c 'exit 7'
check 'the exit status is passed through' [ $? = 7 ]
one sh -c 'echo heard >&2' 2> "$out"
check 'and so is what it says' is "$(cat "$out")" heard
check 'a list of GPUs that cannot be kept costs nothing' is "$(KP_GPU_LIST=none/list one echo ran 2>&1)" ran
check 'one that is kept is used' is "$(echo '7 GPU-77 h200 90 580.1 NVIDIA H200' > list && KP_GPU_LIST=list one sh -c 'echo $CUDA_VISIBLE_DEVICES')" GPU-77
PATH=$PWD/bin:$PATH KP_LOCKS=none harness/gpu/with-gpu true > "$out" 2>&1
check 'a folder for locks that is not there is an error of the machine' [ $? = 4 ]
check 'of one line' is "$(grep -c '^with-gpu: cannot open none/' "$out") $(wc -l < "$out")" '1 1'

# Which GPUs may be used, CUDA_VISIBLE_DEVICES says, to make as to with-gpu.
gpus 'NVIDIA H200, 9.0' 'NVIDIA A100-SXM4-80GB, 8.0' 'NVIDIA H200, 9.0'
for visible in "0=h200 GPU-00-$$" "1=a100 GPU-11-$$" "2,0=h200 GPU-00-$$" "GPU-11=a100 GPU-11-$$" 'MIG-5=h200 MIG-5' "MIG-5,1=a100 h200 GPU-11-$$"; do
    export CUDA_VISIBLE_DEVICES=${visible%%=*}
    mk print-gpus
    check "CUDA_VISIBLE_DEVICES=$CUDA_VISIBLE_DEVICES are these kinds" is "$(sed -n 's/^gpus = //p' "$out") $(one sh -c 'echo $CUDA_VISIBLE_DEVICES')" "${visible#*=}"
done
for visible in '' 7 GPU-9; do
    export CUDA_VISIBLE_DEVICES=$visible
    mk time
    check "and '$visible' none" lines 1 "^no NVIDIA GPU here \(nvidia-smi finds none that is in CUDA_VISIBLE_DEVICES=$visible\)"
done
export CUDA_VISIBLE_DEVICES=1
mk time GPUS=h200 TASKS=l1_019
check 'nor is there one of another kind' lines 1 '^with-gpu: no h200 to run on: this machine has 1 x a100 \(CUDA_VISIBLE_DEVICES=1\)'
unset CUDA_VISIBLE_DEVICES

# What a make asks nvidia-smi it asks once: that would disturb what is timed.
tree
echo 'echo asked >> asked' >> bin/nvidia-smi
mk time GPUS=h200
check 'three cells are measured' is "$(steps | grep -c '^time')" 3
check 'and nvidia-smi is asked once' is "$(grep -c . asked)" 1
check 'but each time of another machine' is "$(rm asked build/h200/*.time.json; mk time GPUS=h200 RUN='env harness/gpu/with-gpu'; grep -c . asked)" 3
gpus 'NVIDIA A100-SXM4-80GB, 8.0'
rm build/h200/l1_019_relu.time.json
mk time GPUS=h200 TASKS=l1_019
check 'the next make asks again' lines 1 '^with-gpu: no h200 to run on: this machine has 1 x a100'

# Results.
tree
mk reproduce
cp steps.log steps.all
check 'reproduce measures, compares, records and reports' is "$(steps | grep -v -e nvcc -e time -e verify | tr '\n' ';')" 'compare build;peaks build/h200/peaks.json;report -;'
check 'it measures after it has compiled' is "$(sed -n '/time h200/,$p' steps.all | grep -c nvcc)" 0
check 'all is recorded' is "$(ls results/h200 | wc -l)" 3
echo '{"verdict":"recorded"}' > results/h200/l1_019_relu.json
rm results/h200/crfm_softmax.json
mk reproduce
check 'reproduce records where nothing is' [ -e results/h200/crfm_softmax.json ]
check 'and overwrites no evidence' grep -q recorded results/h200/l1_019_relu.json
echo '{}' > tasks/level1/l1_005_scalar.json
steps > /dev/null
mk reproduce
check 'it leaves a task without a kernel alone' is "$(steps | grep -c l1_005)" 0
mk reproduce TASKS=l1_005
check 'unless that is named' is "$(steps | grep -c 'time h200/l1_005')" 1
rm tasks/level1/l1_005_scalar.json
mk record TASKS=l1_019
check 'record does' is "$(jq -S . results/h200/l1_019_relu.json)" "$(harness/record/thin.jq -S build/h200/l1_019_relu.time.json)"
check 'and says what it did' says '^record-results: 1 recorded, 0 recorded before'

# A run is a row of a table, which may have been edited, or cut short by a full disk.
table=results/reruns/h200.csv
ran_at() { # DATE
    jq -n --arg date "$1" '{task: "l1_019_relu", gpu: "h200", verdict: "ok", inputs: {kernel: "k", reference: "r", harness: "h"}, machine: {uuid_hash: "abcdef"}, harness: {$date}}' > build/h200/l1_019_relu.time.json
    mk record TASKS=l1_019
}
rm -rf results/reruns
ran_at one
truncate -s -1 $table
ran_at two
check 'a run is added to a table whose last line has no end' is "$(cut -d, -f1,4 $table | paste -sd' ')" 'task,run l1_019_relu,one l1_019_relu,two'
: > $table
ran_at three
check 'and to one that was left empty' is "$(cut -d, -f1,4 $table | paste -sd' ')" 'task,run l1_019_relu,three'
echo 'task,other' > $table
ran_at four
check 'not to one with other columns' is "$(cat $table) $(grep -c '^record-results: results/reruns/h200.csv has other columns' "$out")" 'task,other 1'
rm -r results/reruns

# What was built since of other sources, but to the same code, says what a result is of.
same() { # CODE
    jq '.task = "l1_019_relu" | .gpu = "h200" | .kernel.code_sha256 = "c" | .inputs = {task: "t", kernel: "then"}' build/h200/l1_019_relu.time.json > measured.json
    jq -n --arg code "$1" '{task: "l1_019_relu", gpu: "h200", kernel: {code_sha256: $code, sha256: "now"}, inputs: {kernel: "now"}}' > today.build.json
    harness/record/thin.jq -c today.build.json measured.json | jq -c '[.inputs, .kernel.sha256 == "now"]'
}
check 'a result of the same code is of the sources of today' is "$(same c)" '[{"task":"t","kernel":"now"},true]'
check 'one of other code is not' is "$(same d)" '[{"task":"t","kernel":"then"},false]'

# One cell fails as a machine does.
tree
mkdir -p fault/h200 && : > fault/h200/crfm_softmax
mk reproduce
check 'a machine that fails on one cell fails reproduce' [ $? != 0 ]
check 'and costs the others nothing' is "$(ls results/h200 | tr '\n' ' ')" 'l1_001_matmul.json l1_019_relu.json '
check 'which is said' says 'the machine failed on some cells'
rm fault/h200/crfm_softmax
steps > /dev/null
mk reproduce
check 'the next reproduce tries just that one' is "$(steps | grep -c '^time')" 1
check 'and succeeds' [ -e results/h200/crfm_softmax.json ]

# A result in build/ that cannot be read.
rm -r results/h200
: > build/h200/crfm_softmax.time.json
mkdir -p pretend && printf '#!/bin/sh\nexit 3\n' > pretend/compare && chmod +x pretend/compare
steps > /dev/null
mk reproduce
check 'a file that cannot be read fails reproduce as REPRODUCE says' says '^make: .* Error 3$'
check 'is named, with what to do' lines 1 '^record-results: build/h200/crfm_softmax.time.json is no JSON object .*: not recorded; remove it and run make again$'
check 'and costs the others nothing' is "$(ls results/h200 | tr '\n' ' ')$(steps | grep report)" 'l1_001_matmul.json l1_019_relu.json report -'
mk compare
check 'compare ends with the same' says '^make: .* Error 3$'
rm -r pretend build/h200/crfm_softmax.time.json
mk reproduce
check 'without it, all is well' [ -e results/h200/crfm_softmax.json ]
rm -r results/h200
steps > /dev/null
for ask in n q t; do
    mk -$ask reproduce
    check "make -$ask reproduce compares, records and draws nothing" is "$(steps)$(ls results)" reruns
done
mk gen
check 'gen without a model fails' [ $? != 0 ]
check 'and says what to set' lines 1 '^not configured: set LLM='
mk build ARCHS=all TASKS=l1_019
check 'ARCHS=all compiles for each architecture' is "$(jq -r .kernel.arch build/archs/portable/l1_019_relu.build.json)" 'sm_80 sm_86 sm_89 sm_90 sm_100 sm_120'
steps > /dev/null
mk time TASKS=l1_019
check 'and is no part of any result' ran ''
mk clean
check 'clean removes build/' [ ! -e build ]
mk gen OPENAI_API_KEY=sk-everyone
check 'a key on the command line is refused' lines 1 'OPENAI_API_KEY on the command line of make is for everyone to read'
OPENAI_API_KEY=sk-secret mk print-OPENAI_API_KEY
check 'and one of the environment is not printed' not grep -q sk-secret "$out"
