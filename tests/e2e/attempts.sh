#!/bin/bash
# The graph of attempts: what make gen and make search ask, measure and promote, and never twice;
# what they leave alone; and what they say where something is missing.
# uses: build/gen build/best
# shellcheck disable=SC2016,SC2154,SC2034  # out, root, scratch are lib.sh's
. tests/e2e/lib.sh
. tests/mock/lib.sh

needs 'attempts' gen best
. tests/mock/world.sh
cell=h200/$relu
attempt() { echo "build/attempts/$1/$cell"; }
# present SPEED FOLDER - a kernel that is there already.
present() {
    mkdir -p "optimized/$2"
    printf '// provenance: here before\n#include "task.h"\nconst double speed = %s;\nextern "C" void launch() {}\n' "$1" > "optimized/$2/$relu.cu"
}
measured() { grep -cE "^(verify|time) $1" steps.log; }

# ---- Words that are wrong -------------------------------------------------------------------

world
for wrong in ROUNDS=0 ROUNDS=x 'WIDTH=2 3' WIDTH=-1 SAMPLES=1001 'ROUNDS='; do
    ask_make search TASKS=l1_019 "$wrong"
    check "$wrong is one line" lines 1 "${wrong%%=*}=${wrong#*=}: expected a whole number"
done
ask_make search TASKS=l1_019 MODE=best_of_n ROUNDS=50 WIDTH=50
check 'more samples than are counted are not cut in silence' says 'ROUNDS x WIDTH is 2500'
ask_make gen search TASKS=l1_019
check 'gen and search at once is one line' lines 1 'one after the other'
mk -n search TASKS=l1_019
check 'make -n without a model fails' [ $? = 2 ]
check 'in one line, and plans nothing' is "$(grep -c '^not configured: set LLM=' "$out") $(grep -c '^plan:' "$out")" '1 0'
gpus
mk -n search TASKS=l1_019 LLM=openai:gpt-5.5
check 'make -n without a GPU fails' [ $? = 2 ]
check 'in one line, and plans nothing, either' is "$(grep -c '^no NVIDIA GPU here' "$out") $(grep -cE '^(plan|make/detect)' "$out")" '1 0'
gpus 'NVIDIA H200, 9.0'
for wrong in BUDGET_USD=five BUDGET_CALLS=-3 TASK_TOKENS=1k TASK_HOURS=inf; do
    mk -n search TASKS=l1_019 LLM=openai:gpt-5.5 "$wrong"
    check "a plan with $wrong fails" [ $? = 2 ]
    check 'in the words of the run itself' is "$(grep -c "^plan: $wrong is not a number of 0 or more" "$out") $(grep -c '^plan' "$out")" '1 1'
done
for wrong in LLM=foo:bar LLM=gpt-5.5 LLM=openai: LLM_TRIES=0 LLM_SECONDS=x LLM_SEED=1.5 TURNS=0 TAU=x; do
    mk -n search TASKS=l1_019 LLM=openai:gpt-5.5 "$wrong"
    check "a plan with $wrong fails" [ $? = 2 ]
    check 'in one line' is "$(grep -cE "^plan: $wrong: .*expected" "$out") $(grep -c '^plan' "$out")" '1 1'
done
mk -n search TASKS=l1_019 LLM=openai:own BUDGET_USD=5
check 'nor can money be capped without a price' is "$? $(grep -c '^plan: no price for own in' "$out") $(grep -c '^plan' "$out")" '2 1 1'
mk -n search TASKS=l1_019 LLM=openai:own BUDGET_TOKENS=1e6
check 'tokens can' says '^plan: .*no price is known, so a cap has to be in tokens .BUDGET_TOKENS.; BUDGET_TOKENS stops it at 1e6$'
mk -n search TASKS=l1_019 LLM=openai:gpt-5.5 BUDGET_CALLS=3 BUDGET_TOKENS=1000 TASK_CALLS=2
check 'caps of calls and tokens are named' says '; BUDGET_TOKENS stops it at 1000; BUDGET_CALLS stops it at 3; TASK_CALLS a cell at 2$'
mk -n gen-ready TASKS=l1_019
check 'before the first call the client is built, and nothing that measures' is "$(grep -oE 'LD build/[a-z]+' "$out" | sort -u | tr '\n' ' ')" 'LD build/best LD build/gen '
mk -n search TASKS=l1_019 LLM=openai:gpt-5.5 LLM_MAX_TOKENS=many
check 'a cap that is no number is one line' lines 1 '^plan: LLM_MAX_TOKENS=many: a whole number from 1 to 1e8 is expected'
mk -n search TASKS=l1_019 LLM=openai:gpt-5.5 OPENAI_BASE_URL=http://127.0.0.1:8080/v1
check 'a server on this machine costs nothing' says '^plan: 35 calls of gpt-5.5 on this machine .*cost nothing'
mk -n search TASKS=l1_019 LLM=openai:own OPENAI_BASE_URL=http://127.0.0.1:8080/v1 BUDGET_USD=5
check 'whatever the cap is, where its model has no price' says '^plan: 35 calls of own on this machine .*cost nothing'
mk -n search TASKS=l1_019 LLM=openai:openai/gpt-5.5 OPENAI_BASE_URL=http://127.0.0.1:8080/v1 BUDGET_USD=5
check 'else it may be a proxy, and names the maker, too' says '^plan: 35 calls of openai/gpt-5.5 .*BUDGET_USD stops it at 5$'
mk -n search TASKS=l1_019 LLM=openai:gpt-5.5 TASK_USD=2
check 'a cap of each cell is one' says '^plan: .*; TASK_USD a cell at 2$'
mk -n search TASKS=l1_019 LLM=openai:gpt-5.5
check 'the plan is short' is "$(wc -l < "$out")" 3
check 'the most is said, and what is expected, which comes last' is "$(grep -cE '^plan: 35 calls of gpt-5.5 .* at most [0-9.]+ USD' "$out") $(tail -n 1 "$out" | sed -E 's/about [0-9.]+/about N/')" \
    '1 plan: expected are about N USD: 14000 tokens in and 10000 out a call, as is usual'
check 'by the prices' is "$(tail -n 1 "$out" | grep -oE '[0-9.]+ USD')" \
    "$(jq -r '[.models[] | select(.model == "gpt-5.5")] | max_by(.valid_from) | 35 * (14000 * .input + 10000 * .output) / 1e6 * 100 | ceil / 100' harness/llm/prices.json) USD"
mkdir -p build/attempts/one_shot.r1a1/h200
echo '{"model":"gpt-5.5-2026-04-01","tokens":{"input":1000,"output":501}} {"model":"other","tokens":{"input":9,"output":9}}' > build/attempts/one_shot.r1a1/h200/x.gen.json
mk -n search TASKS=l1_019 LLM=openai:gpt-5.5
check 'as its calls were here' says '^plan: expected .*: 1000 tokens in and 501 out a call, as 1 calls of it here took on average$'
rm -r build/attempts
check 'and all that was a plan' is "$(find build -type f ! -name .make 2> /dev/null) $(requested)" ' 0'

# ---- What is asked is what was shown ----------------------------------------------------------

reply 9 relu "$(kernel 1.5)"
for index in 1 2; do
    mk prompt TASKS=l1_019 INDEX=$index
    sed '1,/^\[user\]$/d' "$out" > shown
    ask_make gen TASKS=l1_019
    tail -n 1 "$(attempt one_shot.r1a$index).jsonl" | jq -r '.request.messages[-1].content' > sent
    check "make prompt INDEX=$index prints what gen sends" cmp shown sent
done
mk prompt TASKS=l1_019 MODE='branching repair'
check 'several modes are several prompts' lines 2 '^\[user\]'

# ---- gen: gaps -----------------------------------------------------------------------------------

rm "$(attempt one_shot.r1a1)".{time,verify,build}.json
ask_make gen TASKS=l1_019
check 'an attempt that was not measured is, though a later one was' [ -e "$(attempt one_shot.r1a1).time.json" ]
check 'without another call' asked 2
ask_make gen TASKS=l1_019
check 'and then gen asks for the next' asked 3

# ---- No GPU, no toolkit ----------------------------------------------------------------------------

world
gpus
reply 9 relu "$(kernel 1.5)"
ask_make gen TASKS=l1_019 GPUS=h200
check 'without a GPU nothing is asked' asked 0
check 'which one line says' lines 1 '^with-gpu: no GPU here'
ask_make search TASKS=l1_019 GPUS=h200 MODE=repair
check 'nor does a search' asked 0
gpus 'NVIDIA H200, 9.0'
ask_make gen TASKS=l1_019 NVCC="$PWD/no-nvcc"
check 'without a compiler nothing is asked' asked 0
check 'which one line says, too' lines 1 '^deps: NVCC=.*no-nvcc: no such command'
printf '#!/bin/sh\n[ "$1" != --version ] || exec "%s" "$@"\necho "nvcc fatal   : no host compiler" >&2\nexit 1\n' "$PWD/toolkit/bin/nvcc" > broken && chmod +x broken
ask_make gen TASKS=l1_019 NVCC="$PWD/broken"
check 'nor with one that does not work' asked 0
check 'which is said with its own words' lines 1 'broken cannot compile an empty function: nvcc fatal   : no host compiler$'
check 'and none of that is an attempt' is "$(find build/attempts -name '*.gen.json')" ''

# A GPU that goes away after the first call.
printf '#!/bin/sh\n[ "$1" = true ] || { echo "lost: no GPU here" >&2; exit 4; }\n' > lost && chmod +x lost
ask_make gen TASKS=l1_019 RUN=./lost
status=$?
check 'where the GPU is lost the kernel is kept' grep -q 'speed = 1.5' "$(attempt one_shot.r1a1).cu"
check 'and built' is "$(jq -r .verdict "$(attempt one_shot.r1a1).build.json")" ok
check 'nothing is promoted' [ ! -e optimized/$cell.cu ]
check 'make says that it is not done' exits 2 $status
check 'and why' says '^lost: no GPU here'
ask_make gen TASKS=l1_019 RUN=./lost
check 'again, it asks for nothing' asked 1
ask_make gen TASKS=l1_019
check 'with a GPU it is measured and taken' grep -q 'speed = 1.5' optimized/$cell.cu
check 'and still was asked for once' asked 1

# ---- Published attempts ---------------------------------------------------------------------------------

cp results/search/$cell.csv published
rm -rf build/attempts
mk gen TASKS=l1_019 LLM=openai:model-x OPENAI_BASE_URL=https://example.invalid/v1
check 'a gen that comes to nothing leaves the published table' cmp published results/search/$cell.csv
check 'and makes none for other cells' is "$(find results/search -name '*.csv' | wc -l)" 1
ask_make gen TASKS=l1_019
check 'nor does one that promotes nothing' is "$(cmp published results/search/$cell.csv) $(says '^record-results:')" ' not said: ^record-results:'
mk record TASKS=l1_019
check 'other attempts do not replace published ones' cmp published results/search/$cell.csv
check 'which is said' lines 1 '^record-results: results/search/h200/l1_019_relu.csv lists attempts that are not in build/attempts'
mv results/search/$cell.csv away
mk record TASKS=l1_019
check 'unless the table is moved away' is "$(tail -n +2 results/search/$cell.csv | wc -l)" 1
ask_make gen TASKS=l1_019
mk record TASKS=l1_019
check 'a table grows' is "$(tail -n +2 results/search/$cell.csv | wc -l)" 2

# What another model did, or this one in another mode, stays beside it, whatever its name is.
table=results/search/$cell.csv
cp $table mine
head -n 1 mine > names
tail -n +2 mine > rows
sed 's/,model-x,/,"a ""b"", model-x, c",/' rows > other_model
sed 's/one_shot/repair/g' rows > other_mode
sed 's/one_shot\.r1a1/one_shot.r1a10/; s/one_shot,1,1,/one_shot,1,10,/; s/,model-x,/,"model-x",/' rows | head -n 1 > lost
cat names other_mode other_model > $table
mk record TASKS=l1_019
check 'rows of other models and modes stay' is "$(sort $table)" "$(cat names rows other_model other_mode | sort)"
check 'and nothing is said of them' not says '^record-results: results/search'
check 'they are in the order of attempts' is "$(tail -n +2 $table | cut -d, -f6-7 | tr '\n' ' ')" \
    'one_shot.r1a1,"a ""b"" one_shot.r1a1,model-x one_shot.r1a2,"a ""b"" one_shot.r1a2,model-x repair.r1a1,model-x repair.r1a2,model-x '
cp $table together
{ cat names; tail -n +2 together | tac; } > $table
mk record TASKS=l1_019
check 'whatever the order was before' cmp together $table
sed 's/,code,ok,/,code,wrong,/' together > $table
mk record TASKS=l1_019
# The second row repeats the first: it has no verdict of its own.
check 'rows of what is here are those of now' is "$(grep -c ',model-x,code,ok,' $table) $(grep -c ',wrong,' $table)" '1 2'
cat together lost > $table
cp $table before
mk record TASKS=l1_019
check 'among others, too, an attempt that is here no more is not lost' cmp before $table
check 'which is said again' lines 1 'lists attempts that are not in build/attempts'
sed '1s/,class/,kind/' together > $table
cp $table before
mk record TASKS=l1_019
check 'a table with other columns is left' cmp before $table
check 'and that is said' lines 1 '^record-results: results/search/h200/l1_019_relu.csv is no table with the columns of this one'
: > $table
mk record TASKS=l1_019
check 'an empty one is written' cmp mine $table
rm $table && mkdir $table+
mk record TASKS=l1_019
check 'one that cannot be written is one line' lines 1 '^record-results: cannot write results/search/h200/l1_019_relu.csv'
rmdir $table+

# ---- Promotion -------------------------------------------------------------------------------------------

# By hand: said each time, measured once.
world
present 1.2 h200
echo '// a header' > optimized/include/zz.cuh
sed 's/#include "task.h"/&\n#include "zz.cuh"/' "$(kernel 2.5)" > "$scratch/including"
reply 1 relu "$scratch/including"
ask_make gen TASKS=l1_019
check 'the headers that an attempt includes are named' lines 1 '^gen: .* one_shot\.r1a1: code with zz\.cuh, '
check 'in its outcome, too' is "$(jq -r .headers "$(attempt one_shot.r1a1).gen.json")" zz.cuh
check 'a kernel by hand is not replaced' grep -q 'speed = 1.2' optimized/$cell.cu
: > steps.log
ask_make gen TASKS=l1_019 SAMPLES=0
check 'nor the next time' grep -q 'speed = 1.2' optimized/$cell.cu
check 'which is said in one line' lines 1 '^promote: .*FORCE=1'
check 'and not measured again' is "$(measured confirm)" 0
mk -n "$(attempt one_shot.r1a1).build.json" GPUS=h200
check 'an attempt that was built is not built again' not says compile-attempt
echo '// another header' > optimized/include/zz.cuh
mk -n "$(attempt one_shot.r1a1).build.json" GPUS=h200
check 'unless a header that it includes changes' lines 1 compile-attempt
ask_make gen TASKS=l1_019 SAMPLES=0 FORCE=1
check 'FORCE=1 measures again, and replaces it' grep -q 'speed = 2.5' optimized/$cell.cu
check 'what is confirmed is built from what is promoted' is "$(jq -r .kernel.headers_sha256 build/confirm/one_shot.r1a1/$cell.build.json)" \
    "$( (cd optimized/include && sha256sum zz.cuh) | sha256sum | cut -d' ' -f1)"

# A search that promotes nothing changes no file that the tree tracks.
world
present 3 h200
echo page > README.md
tracked() { find README.md optimized plots results tasks harness -type f -printf '%p %T@ %s\n' 2> /dev/null | sort; }
tracked > before
rm -f steps.log
reply 9 relu "$(kernel 1.5)"
ask_make search TASKS=l1_019 MODE=best_of_n ROUNDS=1 WIDTH=2
check 'a search that promotes nothing changes no tracked file' cmp before <(tracked)
check 'nor does it draw anything' not grep -q '^report' steps.log
mk record TASKS=l1_019
check 'unless one asks for it' is "$(tail -n +2 results/search/$cell.csv | wc -l)" 2

# How far a run is: one whole line for each attempt that ends, and the sums at its end.
world
present 1 h200
reply 1 relu "$(kernel 1.5)"
reply 1 relu "$(kernel 9 WRONG)"
reply 1 relu "$(kernel 2.5)"
reply 1 relu "$(kernel 0.5)"
ask_make -j4 search TASKS=l1_019 MODE=repair ROUNDS=1 WIDTH=3 BUDGET_USD=5 FORCE=1
check 'a line for each attempt' is "$(grep -oE '^\[[0-9]/3\] repair.r1a[123]: .*h200/l1_019_relu' "$out" | cut -c1-5 | tr '\n' ' ')" '[1/3] [2/3] [3/3] '
check 'with what is right, the best, the money and the cap' lines 1 '^\[3/3\] .*; 2 right, best here 2\.50x; 0\.00 of 5 USD$'
check 'and the time that is left' lines 1 '^\[1/3\] .*; [0-9]+ min left$'
check 'the sums at the end' is "$(tail -n 1 "$out" | cut -d';' -f1,2)" 'search: 3 of 3 attempts, 2 right; 0.00 of 5 USD'
ask_make -j4 search TASKS=l1_019 MODE=repair ROUNDS=2 WIDTH=1
check 'what is there already counts' lines 1 '^\[2/2\] repair.r2a1: '
check 'no line is drawn over another' is "$(tr -dc '\r' < "$out")" ''
# drawn ARG... - how often a call draws its progress in a terminal, with make ARG.
drawn() {
    OPENAI_API_KEY=$key PATH=$PWD/bin:$PATH KP_LOCKS=$PWD CUDA_HOME=$PWD/toolkit script -qec "make ${stubs[*]} $* gen TASKS=l1_023 \
        LLM=openai:model-x OPENAI_BASE_URL=http://127.0.0.1:$port/v1" /dev/null < /dev/null | tr '\r' '\n' | grep -cE '^h200/.* tokens, [0-9]+ s'
}
if command -v script > /dev/null; then
    printf 'on\nbody l1_023\npace 60 20\nanswer %s\n' "$(kernel 1.5)" >> "$rules"
    check 'a call that is alone in a terminal shows how far it is' test "$(drawn)" -gt 0
    check 'but not where others may draw there' is "$(drawn -j2)" 0
else
    skip 'progress in a terminal' 'no script(1)'
fi

# Attempts that end at once: eight kernels, two of them wrong, and answers without one.
world
present 1 h200
for i in $(seq 8); do reply 1 relu "$(kernel "1.1$i" "$([ "$i" -gt 2 ] || echo WRONG)")"; done
echo 'No kernel.' > "$scratch/answer.none"
reply 56 relu "$scratch/answer.none"
ask_make -j64 search TASKS=l1_019 MODE=best_of_n ROUNDS=8 WIDTH=8 BUDGET_USD=5 FORCE=1
check '64 attempts side by side are 64 whole lines' lines 64 '^\[[0-9]+/64\] best_of_n\.r1a[0-9]+: [^][;]+x?; [0-9]+ right(, best here 1\.1[0-9]x)?; 0\.00 of 5 USD(; [0-9]+ min left)?$'
check 'and nowhere else is a piece of one' lines 64 '/64\]|min left'
check 'counted in order' is "$(sed -n 's|^\[\([0-9]*\)/64\].*|\1|p' "$out" | tr '\n' ' ')" "$(seq -s ' ' 64) "
check 'each of its own' is "$(grep -o '^\[[0-9]*/64\] [^:]*' "$out" | cut -d' ' -f2 | sort -u | wc -l)" 64
check 'with the sums of all' is "$(tail -n 1 "$out" | cut -d';' -f1,2)" 'search: 64 of 64 attempts, 6 right; 0.00 of 5 USD'

# Eight calls side by side at list prices: the run ends in one make, and shows what was spent.
world
present 1 h200
printf 'on\nbody relu\nanswer %s\nusage 14000 0 6000 0\n' "$(kernel 1.5)" >> "$rules"
mkdir -p build/attempts && printf '%-511s\n' $'open\t0.9\t50000\t0.5\t20000\t0\t1\th200\tl1_019_relu\tbest_of_n.r1a1' > build/attempts/ledger
llm=openai:gpt-6-sol ask_make -j8 search TASKS=l1_019 MODE=best_of_n ROUNDS=1 WIDTH=12 BUDGET_USD=5 FORCE=1
check 'twelve attempts at list prices end in one make' is "$(tail -n 1 "$out" | cut -d, -f1)" 'search: 12 of 12 attempts'
check 'with what they cost, and what a call that was killed had used' is "$(tail -n 1 "$out" | cut -d';' -f2)" \
    " $(jq -r '[.models[] | select(.model == "gpt-6-sol")] | max_by(.valid_from) | 12 * (14000 * .input + 6000 * .output) / 1e6 + 0.5 | . * 100 | round / 100' harness/llm/prices.json) of 5 USD"

# A kernel that is there no more is not competed with.
world
present 3 h200
mk build TASKS=l1_019
rm optimized/$cell.cu
reply 1 relu "$(kernel 1.5)"
ask_make gen TASKS=l1_019
check 'a kernel that was removed is not competed with' grep -q 'speed = 1.5' optimized/$cell.cu

# That an attempt was taken once does not keep it out when it is there no more: removed, or put back
# to what was there before.
world
reply 1 relu "$(kernel 1.5)"
ask_make gen TASKS=l1_019
cp optimized/$cell.cu first
reply 1 relu "$(kernel 2.5)"
ask_make gen TASKS=l1_019
cp optimized/$cell.cu second
cp first optimized/$cell.cu
ask_make gen TASKS=l1_019 SAMPLES=0
check 'a better attempt is taken again where an older kernel was put back' cmp second optimized/$cell.cu
rm optimized/$cell.cu
ask_make gen TASKS=l1_019 SAMPLES=0
check 'and where there is none' cmp second optimized/$cell.cu
rm optimized/$cell.cu
: > steps.log
ask_make gen TASKS=l1_019 SAMPLES=0
check 'nor the second time it is removed' cmp second optimized/$cell.cu
check 'each time by a new measurement' [ "$(measured confirm/one_shot.r1a2)" = 2 ]
: > steps.log
ask_make gen TASKS=l1_019 SAMPLES=0
check 'while it is there it is not measured again' is "$(measured confirm)" 0
# decided STATE - as a file beside the attempt may say of it, when the cell has no kernel.
decided() {
    echo "$(cat "$(attempt one_shot.r1a2).cu" tasks/level1/$relu.json optimized/include/* build/h200/flags \
        build/uses/{verify,time}/$relu | sha256sum | cut -d' ' -f1) $1 fp32" > "$(attempt one_shot.r1a2).decided"
}
rm optimized/$cell.cu
decided wrong
ask_make gen TASKS=l1_019 SAMPLES=0
check 'what was decided is read' lines 1 'one_shot.r1a2 was not right when it was measured again'
check 'and makes room for the next' cmp first optimized/$cell.cu
rm optimized/$cell.cu
decided taken
ask_make gen TASKS=l1_019 SAMPLES=0
check 'but not that it was taken' cmp second optimized/$cell.cu

# The best of many may have been lucky.
world
reply 1 relu "$(kernel 4 FLAKY)"
reply 1 relu "$(kernel 2)"
reply 1 relu "$(kernel 1.5)"
ask_make gen TASKS=l1_019 SAMPLES=3
check 'what is wrong when measured again makes room for the next' grep -q 'speed = 2;' optimized/$cell.cu
: > steps.log
ask_make gen TASKS=l1_019 SAMPLES=0
check 'and is not tried a third time' is "$(measured confirm)" 0
check 'the kernel stays' grep -q 'speed = 2;' optimized/$cell.cu

# An attempt that is more accurate and slow does not hide a faster one.
world
reply 1 relu "$(kernel 2 'class = tf32')"
ask_make gen TASKS=l1_019
check 'a tf32 kernel is taken where there is none' grep -q 'speed = 2;' optimized/$cell.cu
reply 1 relu "$(kernel 0.5)"
reply 1 relu "$(kernel 3 'class = tf32')"
ask_make gen TASKS=l1_019 SAMPLES=2
check 'a slow fp32 attempt does not hide a faster tf32 one' grep -q 'speed = 3;' optimized/$cell.cu
reply 1 relu "$(kernel 9 'class = bf16')"
: > steps.log
ask_make gen TASKS=l1_019
check 'and one that is less accurate is not even measured' is "$(measured confirm/one_shot.r1a4)" 0

# ---- A search goes on as it began ------------------------------------------------------------------------

world
present 1.2 portable
mk time TASKS=l1_019 > /dev/null
mkdir -p results/h200
cp build/$cell.time.json results/$cell.json
rm -rf build
ideas=$scratch/answer.ideas
printf '```json\n[{"idea":"wider loads","why":"w","gain":"1.2x","risk":"none"}]\n```\n' > "$ideas"
printf 'on\nbody Do not write a kernel now\nanswer %s\n' "$ideas" >> "$rules"
reply 1 relu "$(kernel 2)"
reply 9 relu "$(kernel 1.1)"
ask_make search TASKS=l1_019 MODE=branching WIDTH=1 ROUNDS=2 IDEAS=1 BUDGET_CALLS=2
check 'a cap stops the search after its first round' is "$(find build/attempts -name '*.gen.json' | wc -l)" 2
check 'whose best is promoted' grep -q 'speed = 2;' optimized/$cell.cu
ask_make search TASKS=l1_019 MODE=branching WIDTH=1 ROUNDS=2 IDEAS=1
check 'the second round is still shown the kernel that was there at first' is "$(jq -c .shown "$(attempt branching.r2a0).gen.json")" '["current","branching.r1a1"]'
check 'as it was' grep -q 'speed = 1.2' build/attempts/branching.start/$cell.cu

# The control: independent draws, which may be shown what the other modes are.
world
present 1.2 portable
mk time TASKS=l1_019
mkdir -p results/h200
cp build/$cell.time.json results/$cell.json
reply 9 relu "$(kernel 0.5)"
ask_make search TASKS=l1_019 MODE=best_of_n ROUNDS=1 WIDTH=1
check 'a sample is shown nothing' is "$(jq -c .shown "$(attempt best_of_n.r1a1).gen.json")" '[]'
rm -r build/attempts
ask_make search TASKS=l1_019 MODE=best_of_n ROUNDS=1 WIDTH=1 SEED_KERNEL=1
check 'SEED_KERNEL=1 shows it the kernel that was there' is "$(jq -c .shown "$(attempt best_of_n.r1a1).gen.json")" '["current"]'
check 'which is kept' grep -q 'speed = 1.2' build/attempts/best_of_n.start/$cell.cu
ask_make search TASKS=l1_019 MODE=best_of_n SEED_KERNEL=yes
check 'SEED_KERNEL=yes is one line' lines 1 'SEED_KERNEL=yes: expected'

# ---- A make that is ended, and a client that outlives its make ---------------------------------------------

# begun - a gen in a session of its own, whose client waits for its answer; sets `first` and `session`.
begun() {
    world
    printf 'on\nbody relu\ntimes 1\nwait 2500\nanswer %s\n' "$(kernel 1.5)" >> "$rules"
    reply 9 relu "$(kernel 1.7)"
    OPENAI_API_KEY=$key PATH=$PWD/bin:$PATH KP_LOCKS=$PWD CUDA_HOME=$PWD/toolkit setsid make "${stubs[@]}" gen TASKS=l1_019 LLM=openai:model-x \
        OPENAI_BASE_URL="http://127.0.0.1:$port/v1" > first.out 2>&1 &
    first=$!
    disown $first
    for _ in $(seq 400); do [ "$(requested)" = 0 ] || break; sleep 0.05; done
    session=$(ps -o sid= -p $first | tr -d ' ')
}
# left [NAME] - how many processes of that session there still are; ended: none within 20 s.
left() { pgrep -c -s "$session" ${1+-x "$1"}; }
ended() {
    for _ in $(seq 200); do [ "$(left)" != 0 ] || return 0; sleep 0.1; done
    return 1
}

begun
for p in $(ps -o pid=,comm= -g "$session" | awk '$2 == "make" { print $1 }'); do kill -9 "$p"; done
for _ in $(seq 20); do [ "$(left make)" != 0 ] || break; sleep 0.05; done
check 'make is gone, and its client is not' is "$(left gen) $(left make)" '1 0'
ask_make gen TASKS=l1_019
check 'a client that outlives its make is waited for' asked 1
check 'and its answer is used' grep -q 'speed = 1.5' optimized/$cell.cu

begun
kill -9 $first
check 'where the first make alone is killed, what it started comes to an end' ended
check 'what was paid for is kept' [ -s "$(attempt one_shot.r1a1).gen.json" ]
check 'and nothing is promoted that nobody waits for' [ ! -e optimized/$cell.cu ]

begun
kill $first
check 'a make that is ended ends all that it started' ended
check 'and no attempt is there' [ ! -e "$(attempt one_shot.r1a1).gen.json" ]
ask_make gen TASKS=l1_019
check 'the next one makes it' grep -q 'speed = 1.7' optimized/$cell.cu

# ---- Replay of a search's attempts ---------------------------------------------------------------------------

world
printf 'on\nbody Do not write a kernel now\nanswer %s\n' "$ideas" >> "$rules"
reply 1 relu "$(kernel 2)"
reply 9 relu "$(kernel 1.1)"
ask_make search TASKS=l1_019 MODE=branching WIDTH=1 ROUNDS=1 IDEAS=1
cp optimized/$cell.cu promoted
before=$(requested)
rm -rf build optimized/h200
llm=replay:results/transcripts ask_make gen TASKS=l1_019
check 'kept transcripts make a kernel of any mode again' cmp promoted optimized/$cell.cu
check 'with no network' asked "$before"
llm=replay:results/transcripts ask_make gen TASKS=l1_019
check 'and then there is nothing left to do' not says '^gen: '

# ---- An attempt must not stop a search ---------------------------------------------------------------------------

# What nvcc says is partly the kernel's: its length, and its words.
world
cat > toolkit/bin/nvcc.real << 'NVCC'
#!/bin/sh
for last; do :; done
case $last in *trivial.cu) exit 0 ;; esac
case $(cat "$last") in
*LONG*) printf 'k.cu(1): error: '; head -c 300000 /dev/zero | tr '\0' x; echo ;;
*SPOOF*) printf '%s\n' 'k.cu(3): error: static assertion failed with "x' 'No space left on device"' "nvcc error   : 'cicc' died due to signal 9 (Kill signal)" ;;
*) echo "nvcc error   : 'cicc' died due to signal 9 (Kill signal)"; exit 9 ;;
esac
exit 2
NVCC
for word in LONG SPOOF KILLED; do
    reply 1 relu "$(kernel 1 $word)"
    ask_make gen TASKS=l1_019
    cp "$out" out.$word
done
check 'an error of 300 KB is a verdict' is "$(jq -r .verdict "$(attempt one_shot.r1a1).build.json")" build
check 'cut to what fits into a table' [ "$(jq -r .reason "$(attempt one_shot.r1a1).build.json" | wc -c)" -lt 2100 ]
check 'a kernel cannot speak for the machine' is "$(jq -r .verdict "$(attempt one_shot.r1a2).build.json")" build
check 'which speaks for itself' grep -q '^compile: .*: nvcc was killed' out.KILLED
check 'and has no verdict then' [ ! -e "$(attempt one_shot.r1a3).build.json" ]

# ---- The reward service through make ------------------------------------------------------------------------------

world
jq -cn '{task: "l1_019_relu", kernel: "const double speed = 2;"}' > in
rm -rf build/gate build/time
PATH=$PWD/bin:$PATH KP_LOCKS=$PWD CUDA_HOME=$PWD/toolkit make "${stubs[@]}" -j4 -s reward < in > answers 2> "$out"
check 'make reward answers' is "$(jq -c '[.verdict, .ratio, .reward]' answers)" '["ok",2,2]'
check 'and says nothing else on its standard output' is "$(wc -l < answers)" 1
