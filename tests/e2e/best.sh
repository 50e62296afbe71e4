#!/bin/bash
# Attempts as build/best lists them: which files count, what came of each, and their table.
# uses: build/best
# shellcheck disable=SC2154,SC2016  # root, scratch and out are lib.sh's; $ of jq
. tests/e2e/lib.sh

task=l1_019_relu
# place - an empty tree; becomes the current folder.
place() { cd "$(mktemp -d "$scratch/XXXXXX")" && out=$PWD/out; }
# at NAME SUFFIX - a file of an attempt, whose folder is made.
at() { mkdir -p "build/attempts/$1/h200" && echo "build/attempts/$1/h200/$task$2"; }
# gen NAME OUTCOME [MORE] - its gen.json, with MORE members.
gen() { jq -n --arg attempt "$1" --arg outcome "$2" --arg task $task "{schema: 1, \$attempt, gpu: \"h200\", \$task, \$outcome} + ${3-{\}}" > "$(at "$1" .gen.json)"; }
# timed NAME CLASS RATIO LOW HIGH [MORE] - its time.json.
timed() {
    jq -n --arg task $task --arg class "$2" --argjson ratio "$3" --argjson low "$4" --argjson high "$5" \
        "{schema: 1, gpu: \"h200\", \$task, verdict: \"ok\", reason: null, \$class, speedup: {against: \"fp32\", \$ratio, \$low, \$high},
          time_us: {candidate: {midmean: 20}, fp32: {midmean: (20 * \$ratio)}}} + ${6-{\}}" > "$(at "$1" .time.json)"
}
bad() { jq -n --arg task $task --arg verdict "$3" --arg reason "$4" '{schema: 1, gpu: "h200", $task, $verdict, $reason}' > "$(at "$1" "$2")"; }
best() { "$root/build/best" "$@" > "$out" 2>&1; }
# of FILTER - of the attempts of the task.
of() { "$root/build/best" h200 $task 2> said | jq -rs "$1"; }
table() { "$root/build/best" h200 "$@" | jq -nrf "$root/harness/promote/table.jq" > "$out" 2>&1; }
exits() { local want=$1; shift; "$@"; local got=$?; [ $got = "$want" ] || { echo "exit $got, not $want"; return 1; }; }

# ---- Which files count -----------------------------------------------------------------------

place
check 'no attempts are no error' exits 0 best h200 $task
check 'which is silence' [ ! -s out ]
for name in repair.r10a1 repair.r2a1 one_shot.r1a10 branching-2.r1a0 one_shot.r1a2 best_of_n.r12a250 repair.r1a1; do gen $name cut '{reason: "at the cap"}'; done
mkdir -p build/attempts/{codes,repair.r3a1/h200} && touch build/attempts/ledger
for name in repair repair.r1 repair.r1a repair.r0a1 repair.r01a1 repair.r1a01 'repair.r1a1 ' repair.r1a1.x repair.r-1a1 repair.r1a+1 repair.r1234567a1 \
    Repair.r1a1 evolve.r1a1 one_shot_r1a1 branching-0.r1a1 branching-x.r1a1; do gen "$name" cut; done
check 'attempts are in order of mode, round and index; other names are none' is "$(of 'map(.attempt) | join(" ")')" \
    'best_of_n.r12a250 branching-2.r1a0 one_shot.r1a2 one_shot.r1a10 repair.r1a1 repair.r2a1 repair.r10a1'
check 'their names say what they are' is "$(of '.[1] | [.mode, .round, .index] | tojson')" '["branching-2",1,0]'
check 'one without a kernel has its outcome' is "$(of '.[0] | [.outcome, .reason, .verdict, .ratio] | tojson')" '["cut","at the cap",null,null]'

place
gen repair.r2a1 refused
for text in '' '{"schema": 1, "attempt": "repa' '[1]' '.schema = 2' '.attempt = "repair.r1a2"' '.gpu = "a100"' '.task = "l1_023"' 'del(.task)'; do
    gen repair.r1a1 cut
    case $text in .* | del*) jq "$text" "$(at repair.r1a1 .gen.json)" > x && mv x "$(at repair.r1a1 .gen.json)" ;; *) printf %s "$text" > "$(at repair.r1a1 .gen.json)" ;; esac
    check "a foreign file is left out: $text" is "$(of 'map(.attempt) | join(" ")')" repair.r2a1
    check 'with one line' is "$(grep -c "^best: build/attempts/repair.r1a1/h200/$task.gen.json .*: left out$" said) $(wc -l < said)" '1 1'
done

# ---- What came of them -----------------------------------------------------------------------

# came FILTER - of the only attempt.
came() { of ".[0] | $1 | tojson"; }
place
gen repair.r1a1 code
check 'without a result nothing is known' is "$(came '[.verdict, .ratio, .rank]')" '[null,null,5]'
timed repair.r1a1 fp32 1.8 1.75 1.85
check 'what was timed is ok' is "$(came '[.verdict, .class, .rank, .ratio, .low, .high, .us, .against_us, .result]')" '["ok","fp32",0,1.8,1.75,1.85,20,36,null]'
for pair in exact:0 fp32-normwise:1 tf32:2 f16:3 bf16:4 fp8:5; do
    timed repair.r1a1 ${pair%:*} 1.8 1.75 1.85
    check "the rank of ${pair%:*}" is "$(came .rank)" ${pair#*:}
done
timed repair.r1a1 fp32 9 8.9 9.1 '{flags: [7, "latency-bound", "clocks-disagree: the host waited longer"]}'
check 'a time that cannot be trusted does not count' is "$(came '[.verdict, .reason, .ratio, .us]')" '["doubtful","flagged clocks-disagree: the host waited longer",null,null]'
timed repair.r1a1 fp32 1.5 1.4 1.6 '{flags: ["noisy", "weak-baseline: no cuDNN", "decoy-ratios"]}'
check 'other flags change nothing' is "$(came '[.verdict, .ratio]')" '["ok",1.5]'
echo '{"schema": 1, "verd' > "$(at repair.r1a1 .time.json)"
bad repair.r1a1 .build.json ok ''
check 'a result that cannot be used is left out' is "$(came .verdict) $(grep -c 'time.json .*: left out$' said)" 'null 1'
rm "$(at repair.r1a1 .time.json)"
for pair in ok:null wrong:wrong; do
    jq -n --arg task $task --arg verdict ${pair%%:*} '{schema: 1, $task, $verdict, class: "fp32", reason: "y[7]"}' > "$(at repair.r1a1 .verify.json)"
    check "verified, it is ${pair#*:}: only timing makes it ok" is "$(came .verdict | tr -d '"')" ${pair#*:}
done
rm "$(at repair.r1a1 .verify.json)"
bad repair.r1a1 .build.json build 'x.cu(3): error'
check 'what did not compile says why' is "$(came '[.verdict, .reason]')" '["build","x.cu(3): error"]'

echo kernel > kernel
timed repair.r1a1 fp32 2 1.9 2.1 "{kernel: {sha256: \"$(sha256sum < kernel | cut -d' ' -f1)\"}}"
touch -d '1 minute ago' "$(at repair.r1a1 .time.json)"
cp kernel "$(at repair.r1a1 .cu)"
check 'a kernel may be newer than its result' is "$(came .ratio)" 2
echo another > "$(at repair.r1a1 .cu)"
check 'unless it is another' is "$(came .verdict)" '"build"'
gen repair.r1a1 duplicate '{same_as: "branching.r1a1"}'
check 'a duplicate has no result of its own' is "$(came '[.verdict, .same_as, .reason]')" '["duplicate","branching.r1a1",null]'

# ---- The table -------------------------------------------------------------------------------

place
usual='{model: "some, model", date: "2026-11-21T10:00:00Z", code_sha256: "abc", tokens: {input: 1000, output: 200}, cost_usd: null, seconds: 12.5}'
gen repair.r2a1 code "$usual" && timed repair.r2a1 fp32 1.7 1.65 1.75
gen best_of_n.r1a2 code "$usual" && timed best_of_n.r1a2 fp32 1.5 1.45 1.55
gen repair.r10a1 duplicate "$usual"' + {same_as: "repair.r2a1", model: "a \"b\",\nc", tokens: null}'
gen repair-2.r1a1 cut
table $task l1_023_softmax
check 'it has a header and a row an attempt, without those of an experiment' is "$(wc -l < out)" 4
check 'the columns are these' is "$(head -n 1 out)" \
    gpu,task,mode,round,index,attempt,model,outcome,verdict,class,ratio,low,high,us,input_tokens,output_tokens,cost_usd,seconds,same_as,date,code_sha256
check 'a row says all' is "$(sed -n 2p out)" \
    "h200,$task,best_of_n,1,2,best_of_n.r1a2,\"some, model\",code,ok,fp32,1.5,1.45,1.55,20,1000,200,,12.5,,2026-11-21T10:00:00Z,abc"
check 'what is not known is empty, and quotes are doubled' is "$(sed -n 4p out)" \
    "h200,$task,repair,10,1,repair.r10a1,\"a \"\"b\"\", c\",duplicate,duplicate,,,,,,,,,12.5,repair.r2a1,2026-11-21T10:00:00Z,abc"
check 'no task is a wrong command line' exits 2 best h200
check 'so is a path' exits 2 best h200 ../x
if [ -e /dev/full ]; then
    onto_full() { "$root/build/best" h200 $task > /dev/full 2> "$out"; }
    check 'a list that cannot be written is exit 5' exits 5 onto_full
fi
