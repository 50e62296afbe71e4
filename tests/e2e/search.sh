#!/bin/bash
# make gen and make search, from prompt to promoted kernel: the real client, search and promotion
# against the scripted server, with a pretend toolkit and GPU (tests/e2e/pretend).
# uses: build/gen build/best
# shellcheck disable=SC2016,SC2154,SC2034  # out, root, scratch are lib.sh's
. tests/e2e/lib.sh
. tests/mock/lib.sh

needs 'gen and search' gen best
. tests/mock/world.sh
. tests/mock/killed.sh

# ---- gen: one attempt, taken only where it is better --------------------------------------

world
reply 1 relu "$(kernel 1.5)"
ask_make gen TASKS=l1_019
status=$?
check 'gen succeeds' exits 0 $status
check 'it asks once' asked 1
# make 4.3 sometimes leaves the last newline on a file that it reads, as the stamps of flags are.
check 'the makes below it do not build the programs again' is "$(grep '  LD' "$out" | sort | uniq -d)" ''
check 'the attempt becomes the kernel of a cell that has none' grep -q 'speed = 1.5' optimized/h200/$relu.cu
check 'which says who wrote it, and in which attempt' grep -qE '^// provenance: model-x.*, attempt one_shot.r1a1, 20' optimized/h200/$relu.cu
check 'byte for byte as it was measured' cmp optimized/h200/$relu.cu build/attempts/one_shot.r1a1/h200/$relu.cu
check 'its transcript is kept' cmp results/transcripts/one_shot.r1a1/h200/$relu.jsonl build/attempts/one_shot.r1a1/h200/$relu.jsonl
check 'what it says of its kernel is kept for later rounds' is "$(jq -r .analysis build/attempts/one_shot.r1a1/h200/$relu.gen.json)" 'It is bound by memory.'
check 'and a row of it' is "$(tail -n +2 results/search/h200/$relu.csv | cut -d, -f3-6,8,9)" one_shot,1,1,one_shot.r1a1,code,ok
check 'one line says so' lines 1 '^promote: h200/l1_019_relu 1\.5'
cp optimized/h200/$relu.cu first
reply 1 relu "$(kernel 1.2)"
ask_make gen TASKS=l1_019
check 'a slower one does not replace it' cmp first optimized/h200/$relu.cu
check 'and one line says why' lines 1 '^promote: h200/l1_019_relu'
reply 1 relu "$(kernel 2.5)"
ask_make gen TASKS=l1_019
check 'a faster one does' grep -q 'speed = 2.5' optimized/h200/$relu.cu
check 'the one before is not lost' cmp first build/attempts/one_shot.r1a3/h200/$relu.replaced.cu
mk build TASKS=l1_019
rm -f steps.log
reply 1 relu "$(kernel 1.2)"
ask_make gen TASKS=l1_019
check 'a kernel that was there before is not compiled again' not grep -q '^nvcc' steps.log
check 'nor measured' is "$(jq -r '.verdict + ": " + .reason' build/attempts/one_shot.r1a4/h200/$relu.time.json)" 'skipped: the same kernel as one_shot.r1a2'
echo 'I would rather not.' > "$scratch/answer.none"
reply 1 relu "$scratch/answer.none"
ask_make gen TASKS=l1_019
check 'an answer without a kernel is a result' is "$(jq -r .verdict build/attempts/one_shot.r1a5/h200/$relu.time.json)" missing
reply 1 relu "$(kernel 9 WRONG)"
ask_make gen TASKS=l1_019
check 'a wrong kernel is not taken, however fast' grep -q 'speed = 2.5' optimized/h200/$relu.cu
echo '// by hand' >> optimized/h200/$relu.cu
cp optimized/h200/$relu.cu edited
reply 1 relu "$(kernel 4)"
ask_make gen TASKS=l1_019
check 'a kernel that was edited is not overwritten' cmp edited optimized/h200/$relu.cu
check 'which is said in one line' lines 1 '^promote: .*(edit|FORCE)'
ask_make gen TASKS=l1_019 FORCE=1 SAMPLES=0
check 'unless FORCE=1 says so' grep -q 'speed = 4' optimized/h200/$relu.cu
check 'seven attempts are seven calls' asked 7
mk clean
check 'make clean keeps what was paid for' [ -e build/attempts/one_shot.r1a1/h200/$relu.jsonl ]
check 'and nothing else' is "$(ls build)" attempts

# ---- Replay: the same kernels with no network ----------------------------------------------

mv build/attempts kept
rm -rf optimized/h200
llm=replay:$PWD/kept ask_make gen TASKS=l1_019 SAMPLES=4
check 'a replay makes every kernel again, bit for bit' cmp kept/one_shot.r1a3/h200/$relu.cu build/attempts/one_shot.r1a3/h200/$relu.cu
check 'from the transcripts alone' asked 7
check 'and promotes as before' grep -q 'speed = 2.5' optimized/h200/$relu.cu
llm=replay:$PWD/nowhere ask_make gen TASKS=l1_023
check 'a transcript that is missing is one line' lines 1 '^gen: .*nowhere.*no transcript'
sed -i 's/ReLU/relu/' tasks/level1/$relu.json
rm -rf build/attempts
llm=replay:$PWD/kept ask_make gen TASKS=l1_019 SAMPLES=1
check 'one of another prompt says so' lines 1 '^gen: .*answers an earlier prompt'

# ---- What can go wrong ------------------------------------------------------------------------

world
mk gen TASKS=l1_019
check 'without a model gen says how to name one' lines 1 'not configured: set LLM='
mk gen TASKS=l1_019 LLM=openai:model-x OPENAI_BASE_URL=https://example.invalid/v1
check 'without a key, which variable is missing' lines 1 '^gen: .*OPENAI_API_KEY'
mk search TASKS=l1_019 MODE=best_of_n LLM=openai:model-x OPENAI_BASE_URL=https://example.invalid/v1
check 'however many attempts there would be' is "$(grep -c OPENAI_API_KEY "$out") $(grep -c '[*][*][*]' "$out")" '1 1'
for wrong in 'TURNS=0: expected a whole number' 'BUDGET_USD=five is not a number' 'TASK_HOURS=-1 is not a number' 'BUDGET_USD=5: no price for model-x'; do
    OPENAI_API_KEY=$key mk search TASKS=l1_019 MODE=best_of_n LLM=openai:model-x OPENAI_BASE_URL=https://example.invalid/v1 "${wrong%%[: ]*}"
    check "nor is more said of ${wrong%%[: ]*}" is "$(grep -c "${wrong#BUDGET_USD=5: }" "$out") $(grep -c '[*][*][*]' "$out")" '1 1'
done
mk gen TASKS=l1_019 LLM=oracle:x
check 'an unknown kind of model is one line' lines 1 '^gen: .*LLM='
OPENAI_API_KEY=$key mk gen TASKS=l1_019 LLM=openai:model-x OPENAI_BASE_URL=http://127.0.0.1:1/v1 LLM_TRIES=1
check 'a dead server is one line' lines 1 '^gen: .*127\.0\.0\.1'
check 'nothing is left that counts as an attempt' [ ! -e build/attempts/one_shot.r1a1/h200/$relu.gen.json ]
printf 'on\ntimes 1\nstatus 401\nsend {"error":{"message":"Incorrect API key provided: %%KEY%%","type":"invalid_request_error","code":"invalid_api_key"}}\n' >> "$rules"
ask_make gen TASKS=l1_019
check 'a wrong key is one line' lines 1 '^gen: .*(key|401)'
printf 'on\ntimes 1\nstatus 404\nsend {"error":{"message":"no such model","code":"model_not_found"}}\n' >> "$rules"
ask_make gen TASKS=l1_019
check 'an unknown model is one line' lines 1 '^gen: .*(model|404)'
check 'neither is tried again' asked 2
printf 'on\nbody l1_023\nwait 300\nstatus 401\nsend {"error":{"message":"Incorrect API key","code":"invalid_api_key"}}\n' >> "$rules"
ask_make -j4 search TASKS=l1_023 MODE='best_of_n repair' WIDTH=3 ROUNDS=3
check 'a wrong key ends a search' exits 2 $?
check 'after no more calls than were open' test "$(requested)" -le 6
check 'each of them says it, and no other' lines $(($(requested) - 2)) '^gen: '
check 'nor does make name those that were not' test "$(grep -c 'gen\.json\] Error' "$out")" -le 4
printf 'on\nbody l1_047\nwait 800\nanswer %s\nusage 5000 0 3000 0\n' "$(kernel 1.5)" >> "$rules"
before=$(requested)
llm=openai:gpt-5 ask_make -j6 gen TASKS=l1_047 SAMPLES=6 BUDGET_USD=0.9 LLM_SECONDS=2
check 'calls wait for those that are open, however long a call may take: a cap of two reservations is enough for six' exits 0 $?
check 'all are made' asked $((before + 6))
check 'and the ledger has what they cost' is "$(awk '$1 == "done" && $4 > 0 { n++; usd += $4 } END { print n, usd }' build/attempts/ledger)" '6 0.2175'
reply 9 relu "$(kernel 1.5)"
before=$(requested)
OPENAI_API_KEY=$key mk gen TASKS=l1_019 LLM=openai:model-x OPENAI_BASE_URL="http://127.0.0.1:$port/v1" BUDGET_CALLS=0
check 'a cap is kept to' asked "$before"
check 'and named in one line' lines 1 '^gen: .*BUDGET_CALLS'

# Attempts on another disk.
world
mkdir -p build "$scratch/disk/of/attempts" && ln -s "$scratch/disk/of/attempts" build/attempts
reply 9 relu "$(kernel 1.5)"
ask_make gen TASKS=l1_019
check 'where build/attempts is a link, what is made there is measured, too' is "$? $(ls optimized/h200)" "0 $relu.cu"
rm build/attempts/run && ln -s /dev/full build/attempts/run+
ask_make gen TASKS=l1_019
check 'where it is full, one line says so' is "$(grep -c '^status: build/attempts/run: cannot be written' "$out") $(grep -c 'write error' "$out")" '1 0'
check 'and nothing is asked' asked 1

# ---- The test on a GPU, here without one -------------------------------------------------------------

tree
mkdir tests/gpu tests/mock
cp "$root/tests/gpu/search" tests/gpu/
cp "$root"/tests/mock/*.{c,h,sh} tests/mock/
cp "$root"/tests/e2e/{lib.sh,gcc-once} tests/e2e/
mkdir -p harness/base && cp "$root"/harness/base/*.[ch] harness/base/
test_gpu() { PATH=$PWD/bin:$PATH CUDA_HOME=$PWD/toolkit tests/gpu/search "$@" > "$out" 2>&1; }
gpus
test_gpu
check 'without a GPU there is no search to test' exits 4 $?
check 'which is said in one line' is "$(grep -c 'no NVIDIA GPU here' "$out") $(wc -l < "$out")" '1 1'
check 'before anything is made' [ ! -e build ]
gpus 'NVIDIA H200, 9.0'
test_gpu no_mode
check 'where its checks fail, so does it' exits 1 $?
check 'and says how many' is "$(tail -n 1 "$out" | sed -E 's/[1-9][0-9]* failed$/some failed/; s/^[0-9]+/some/')" 'some passed, some failed'

# ---- Modes -------------------------------------------------------------------------------------------

# Each on two tasks, in three rounds, killed in every one of them: the eighth answer is the best.
ideas=$scratch/answer.ideas
printf '```json\n[{"idea":"wider loads","why":"w","gain":"1.2x","risk":"none"},{"idea":"fewer blocks","why":"w","gain":"1.1x","risk":"radical: slow"}]\n```\n' > "$ideas"
tasks='l1_019_relu l1_023_softmax'

# searching MODE - that search, to its end or until it is killed.
searching() { ask_make -j4 search TASKS="$tasks" MODE="$1" WIDTH=3 ROUNDS=3 IDEAS=2; }
for mode in best_of_n repair contrastive branching; do
    world
    printf 'on\nbody Do not write a kernel now\nanswer %s\n' "$ideas" >> "$rules"
    for task in $tasks; do
        reply 1 "$task" "$(kernel 1.3)"
        reply 1 "$task" "$(kernel 8 BROKEN)"
        reply 1 "$task" "$(kernel 9 WRONG)"
        reply 1 "$task" "$(kernel 2.1)"
        reply 1 "$task" "$scratch/answer.none"
        reply 1 "$task" "$(kernel 7 CRASH)"
        reply 1 "$task" "$(kernel 1.1)"
        printf 'on\nbody %s\nanswer %s\n' "$task" "$(kernel 3.7)" >> "$rules"
    done
    rounds=3 calls=18 number_of=18
    [ $mode != best_of_n ] || rounds=1
    [ $mode != branching ] || calls=24 number_of=24
    mk -n search TASKS="$tasks" MODE=$mode WIDTH=3 ROUNDS=3 IDEAS=2 LLM=openai:model-x
    check "$mode: make -n says how many calls that is" lines 1 "^plan: $calls calls of model-x for 2 cells"
    check "$mode: and makes none" asked 0
    for round in $(seq $rounds); do kill_in $mode "$round"; done
    searching $mode
    status=$?
    check "$mode: killed in every round, the search ends" exits 0 $status
    check "$mode: with every attempt made" is "$(count "$mode." .gen.json)" $number_of
    check "$mode: each paid for once" paid_once $mode
    for task in $tasks; do
        check "$mode: the best of $task is its kernel" grep -q 'speed = 3.7' "optimized/h200/$task.cu"
    done
    check "$mode: nothing half written is left where results go" is "$(find optimized results -name '*+')" ''
    before=$(requested)
    searching $mode
    check "$mode: once more, it asks for nothing" asked "$before"
    # What a later round is told.
    case $mode in
    repair) check 'repair: what went wrong goes back' grep -qE 'out\[7\]|BROKEN|illegal memory' "$journal" ;;
    contrastive) check 'contrastive: two kernels of different speed are shown' grep -qE 'speed = [0-9.]+.*speed = ' "$journal" ;;
    branching) check 'branching: attempts realise an idea' is "$(jq -r .idea_text build/attempts/branching.r2a1/h200/l1_019_relu.gen.json)" 'wider loads' ;;
    esac
done

# ---- The key ----------------------------------------------------------------------------------------------

check 'compilers and measurements have not seen the key' no_leak environment.log
check 'but the server was sent it' grep -q '"key":"right"' "$journal"
leak_checks
