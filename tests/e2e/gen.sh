#!/bin/bash
# build/gen and build/judge, one process at a time: what is paid for, what it is counted as, and
# what an answer may do to the tree.  The scripted server stands for the model.
# uses: build/gen build/judge
# shellcheck disable=SC2154,SC2034  # out, root, scratch are lib.sh's
. tests/e2e/lib.sh
. tests/mock/lib.sh

needs 'gen and judge' gen judge
mock_build
mock_start main

relu=l1_019_relu relu_json=tasks/level1/$relu.json
prompting
out=$PWD/out
ledger=build/attempts/ledger

# with_model COMMAND... - run it with the scripted server as its model.
with_model() {
    OPENAI_API_KEY=$key LLM=openai:model-x OPENAI_BASE_URL="http://127.0.0.1:$port/v1" LLM_BACKOFF_MS=5 LLM_TRIES=${tries-2} \
        "$@" > "$out" 2>&1
    status=$?
}
# attempt MODE ROUND INDEX - make that attempt.
attempt() {
    mkdir -p "build/attempts/$1.r$2a$3/h200"
    with_model "$root/build/gen" attempt h200 90a $relu_json "$@"
}
# at MODE.rRaA - where its files begin.
at() { echo "build/attempts/$1/h200/$relu"; }
# answers NAME FILE [END] - requests that name this attempt are answered by the text of a file.
answers() { printf 'on\nbody (Request %s%s\nanswer %s\n' "$1" "${3-}" "$2" >> "$scratch/main.rules"; }
asked() { [ "$(grep '^{"request":' "$scratch/main.journal" | grep -cF "(Request $1")" = "$2" ]; }
exits() { [ "$status" -eq "$1" ] || { echo "exit $status, not $1"; return 1; }; }
gen_is() { [ "$(jq -r "$2" "$(at "$1").gen.json")" = "$3" ] || { jq -c . "$(at "$1").gen.json"; return 1; }; }
# The ledger's calls: tokens of each that is settled, and "open" for each that is not.
calls() { [ ! -e $ledger ] || awk '{ printf "%s ", $1 == "open" ? "open" : $5 == $3 ? "worst" : $5 }' $ledger; }
fresh_ledger() { rm -f $ledger; }

fence='```'
printf '## Analysis\nx\n\n%scuda\n#include "task.h"\nextern "C" void launch(const struct Inputs *in, const struct Outputs *out, void *, cudaStream_t stream) {}\n%s\n' "$fence" "$fence" > "$scratch/good"
sed 's/{}$/{ int other; }/' "$scratch/good" > "$scratch/other"

# ---- Asking --------------------------------------------------------------------------------------

"$root/build/gen" prompt h200 90a $relu_json one_shot 1 1 > "$out" 2> "$scratch/said"
check 'a prompt is printed without a model' is "$? $(grep -c '^\[system\]\|^\[user\]' "$out") $(cat "$scratch/said")" '0 2 '
"$root/build/gen" prompt h200 90a $relu_json one_shot 1 1 > /dev/full 2> "$scratch/said"
check 'one that cannot be written is exit 5' is "$?" 5
for name in 'one_shot 1x 1' 'one_shot 1 -1' 'one_shot 01 1' 'one_shot 0 1' 'branch 1 1' '../x 1 1' 'one_shot 1 0'; do
    # shellcheck disable=SC2086  # three words
    with_model "$root/build/gen" attempt h200 90a $relu_json $name
    check "no attempt: $name" exits 2
done
answers one_shot.r1a90 "$scratch/good" :
with_model "$root/build/gen" attempt h200 90a $relu_json one_shot 1 90
check 'where the answer cannot be kept nothing is asked' is "$status $(asked one_shot.r1a90 0 && echo none)" '5 none'
check 'and nothing is spent' is "$(cat $ledger 2> /dev/null)" ''
mkdir -p "$(at one_shot.r1a91 | xargs dirname)"
echo 'notes' > "$(at one_shot.r1a91).jsonl"
answers one_shot.r1a91 "$scratch/good" :
attempt one_shot 1 91
check 'nor where a foreign file stands in its place' is "$status $(asked one_shot.r1a91 0 && echo none) $(cat "$(at one_shot.r1a91).jsonl")" '3 none notes'

answers one_shot.r1a92 "$scratch/good" :
BUDGET_CALLS=0 attempt one_shot 1 92
check 'a cap on spending is exit 6, and leaves nothing that looks like an answer' is "$status $(ls "$(at one_shot.r1a92 | xargs dirname)")" "6 $relu.asked.json"

# ---- One answer is paid for once ---------------------------------------------------------------------

fresh_ledger
printf 'on\nbody (Request one_shot.r1a2:\nwait 700\nanswer %s\n' "$scratch/good" >> "$scratch/main.rules"
attempt one_shot 1 2 &
first=$!
sleep 0.2
attempt one_shot 1 2
second=$status
wait $first
check 'two at once at the same attempt ask once' asked one_shot.r1a2 1
check 'and both end well' is "$second $(jq -r .outcome "$(at one_shot.r1a2).gen.json")" '0 code'
check 'the ledger has one call' is "$(calls | wc -w)" 1

answers one_shot.r1a3 "$scratch/good" :
attempt one_shot 1 3
cp "$(at one_shot.r1a3).gen.json" before
attempt one_shot 1 3
check 'made again, it asks nothing' asked one_shot.r1a3 1
check 'and comes to the same' cmp before "$(at one_shot.r1a3).gen.json"
echo 'Think twice.' >> harness/gen/prompts/ask_one_shot.txt
rm "$(at one_shot.r1a3).gen.json"
attempt one_shot 1 3
check 'where the prompt has changed since, its answer is used all the same' asked one_shot.r1a3 1
check 'which one line says' lines 1 '^gen: .*one_shot.r1a3.*earlier prompt'
check 'what was asked is what is stated' cmp before "$(at one_shot.r1a3).gen.json"

# Ideas, and an attempt that realises one; then the ideas are others, and the attempt is made again.
printf '%sjson\n[{"idea":"wider loads"},{"idea":"fewer blocks"}]\n%s\n' "$fence" "$fence" > "$scratch/ideas"
printf '%sjson\n[{"idea":"prefetching"},{"idea":"smaller tiles"}]\n%s\n' "$fence" "$fence" > "$scratch/ideas2"
answers branching.r1a0 "$scratch/ideas"
answers branching.r1a1 "$scratch/other"
attempt branching 1 0
attempt branching 1 1
check 'an attempt realises an idea' gen_is branching.r1a1 .idea_text 'wider loads'
jq -c '.ideas = ["prefetching", "smaller tiles"]' "$(at branching.r1a0).gen.json" > ideas+ && mv ideas+ "$(at branching.r1a0).gen.json"
rm "$(at branching.r1a1).gen.json"
attempt branching 1 1
check 'and the one that it was asked to, whatever the ideas are by now' gen_is branching.r1a1 .idea_text 'wider loads'
check 'with one call' asked branching.r1a1 1
mv "$(at branching.r1a1).jsonl" moved
attempt branching 1 1
check 'its transcript moved away, it is asked anew' is "$(asked branching.r1a1 2 && jq -r .idea_text "$(at branching.r1a1).gen.json")" prefetching

mkdir -p kept/branching.r1a1/h200
cp moved kept/branching.r1a1/h200/$relu.jsonl
cp "$(at branching.r1a1).jsonl" paid
with_model env LLM=replay:kept "$root/build/gen" attempt h200 90a $relu_json branching 1 1
check 'a replay takes its place' is "$status $(cmp moved "$(at branching.r1a1).jsonl" && echo same)" '0 same'
check 'and leaves what was paid for' cmp paid "$(at branching.r1a1).jsonl.before"
sed 's/"date":"20/"date":"19/' moved > kept/branching.r1a1/h200/$relu.jsonl
with_model env LLM=replay:kept "$root/build/gen" attempt h200 90a $relu_json branching 1 1
check 'also where a replay had taken its place before' is "$(cmp paid "$(at branching.r1a1).jsonl.before" && cmp moved "$(at branching.r1a1).jsonl.before.2" && echo both)" both
cp moved kept/branching.r1a1/h200/$relu.jsonl

rm -r build/attempts/branching.r1a1 && mkdir -p build/attempts/branching.r1a1/h200
with_model env LLM=replay:kept "$root/build/gen" attempt h200 90a $relu_json branching 1 1
check 'where nothing is, it is all there is' is "$status $(cmp moved "$(at branching.r1a1).jsonl" && echo same) $(find build -name '*.before')" '0 same '

# An attempt that is removed and made anew has another kernel: one that repeats the old one repeats nothing.
for i in 1 2; do sed "s/{}\$/{ int kernel_$i; }/" "$scratch/good" > "$scratch/made.$i"; done
printf 'on\nbody (Request one_shot.r7a1:\ntimes 1\nanswer %s\n' "$scratch/made.1" >> "$scratch/main.rules"
answers one_shot.r7a1 "$scratch/made.2" :
answers one_shot.r7a2 "$scratch/made.1" :
answers one_shot.r7a3 "$scratch/made.1" :
attempt one_shot 7 1
rm -r build/attempts/one_shot.r7a1
attempt one_shot 7 2
check 'a kernel that only a removed attempt had is no repetition' gen_is one_shot.r7a2 .outcome code
attempt one_shot 7 1
check 'nor is what that attempt comes to now' gen_is one_shot.r7a1 .outcome code
attempt one_shot 7 3
check 'a kernel that is there is repeated' gen_is one_shot.r7a3 .same_as one_shot.r7a2

# Killed whenever it may be: never two answers, and what may have been spent is in the ledger.
fresh_ledger
printf 'on\nbody (Request one_shot.r2a\nwait 30\nanswer %s\n' "$scratch/good" >> "$scratch/main.rules"
twice=0 lost=0
for i in $(seq 40); do
    mkdir -p "build/attempts/one_shot.r2a$i/h200"
    for wait in $((i * 4)) 100000; do
        (with_model timeout -s KILL "$(awk "BEGIN { print $wait / 1000 }")" "$root/build/gen" attempt h200 90a $relu_json one_shot 2 "$i") 2> /dev/null
    done
    [ "$(grep -c '"outcome":"complete"' "$(at "one_shot.r2a$i").jsonl")" = 1 ] || twice=$((twice + 1))
    [ "$(awk -v a="one_shot.r2a$i" '$10 == a' $ledger | wc -l)" -ge "$(jq -c --arg t "(Request one_shot.r2a$i:" 'select(.request and (.body | contains($t)))' "$scratch/main.journal" | wc -l)" ] || lost=$((lost + 1))
    [ -s "$(at "one_shot.r2a$i").gen.json" ] || twice=$((twice + 1))
done
check 'killed at forty moments, each has one answer' is $twice 0
check 'and each call its reservation' is $lost 0

# ---- What a call is counted as ----------------------------------------------------------------------------

fresh_ledger
sed "s|#include|// $key\n#include|" "$scratch/good" > kernel.cu
answers contrastive.r1a1 "$scratch/good"
mkdir -p "build/h200"
sha=$(sha256sum < kernel.cu | cut -d' ' -f1)
jq --arg sha "$sha" '.kernel.sha256 = $sha' "$root/results/h200/$relu.json" > build/h200/$relu.time.json
mkdir -p build/attempts/contrastive.r1a1/h200
with_model "$root/build/gen" attempt h200 90a $relu_json contrastive 1 1 kernel.cu
check 'a prompt with the key in it is not sent' is "$status $(asked contrastive.r1a1 0 && echo none)" '2 none'
check 'and costs nothing' is "$(calls)" ''
rm -r build/h200 kernel.cu

fresh_ledger
# one NAME RULE... - an attempt at which the server does this.
n=0
one() {
    n=$((n + 1))
    printf 'on\nbody (Request one_shot.r3a%s:\n%s\n' $n "$(printf '%s\n' "$@")" >> "$scratch/main.rules"
    tries=1 attempt one_shot 3 $n
}
delta='{"choices":[{"index":0,"delta":{"content":"int"},"finish_reason":null}]}'
one 'status 503' 'send {}'
check 'an error costs nothing' is "$(calls)" '0 '
fresh_ledger
one "data $delta" cut
check 'a stream that breaks may cost all that was reserved' is "$(calls)" 'worst '
fresh_ledger
one 'send : thinking\n\n' cut
check 'and so may one that breaks while the model thinks' is "$(calls)" 'worst '
fresh_ledger
one 'wait 10' 'status 0' cut
check 'and a request that was taken and never answered' is "$(calls)" 'worst '
fresh_ledger
one 'data {"error":{"message":"busy","code":"server_error"}}'
check 'an error in the stream, before a word, costs nothing' is "$(calls)" '0 '
fresh_ledger
one "data ${delta/\}\]\}/\}],\"usage\":{\"prompt_tokens\":900,\"completion_tokens\":1\}\}}" cut
check 'counts in the midst of a stream are not its sum' is "$(calls)" 'worst '
fresh_ledger
whole='{"choices":[{"index":0,"delta":{"content":"x"},"finish_reason":"stop"}]}'
one "data $whole" 'data {"choices":[],"usage":{"prompt_tokens":100,"completion_tokens":20,"total_tokens":620}}' 'data [DONE]'
check 'reasoning that a server counts in its total alone is counted' is "$(calls)" '620 '
fresh_ledger
one "data $whole" 'data {"choices":[],"usage":{"prompt_tokens":0,"completion_tokens":0}}' 'data [DONE]'
check 'counts of nothing at all are unknown' is "$status $(calls)" '0 worst '
fresh_ledger
one "data $whole" 'data {"choices":[],"usage":{"prompt_tokens":-100,"completion_tokens":20,"total_tokens":20,"cost":-3}}' 'data [DONE]'
check 'negative counts are unknown' is "$status $(calls)" '0 worst '
check 'and said to be' says '\? \+ \? tokens'
one "data $whole" 'data {"choices":[],"usage":{"prompt_tokens":1e999,"completion_tokens":20}}' 'data [DONE]'
check 'endless ones, too, and the ledger can still be read' is "$status $(calls)" '0 worst worst '

# The whole cap goes into reasoning; the request with twice the cap fails once.
starved='{"choices":[{"index":0,"delta":{"reasoning":"hm"},"finish_reason":"length"}]}'
usage='data {"choices":[],"usage":{"prompt_tokens":10,"completion_tokens":1000}}'
doubling() { # PATTERN FILE
    printf 'on\nbody %s\ntimes 1\ndata %s\n%s\ndata [DONE]\non\nbody %s\ntimes 1\nstatus 503\nsend {}\non\nbody %s\nanswer %s\n' \
        "$1" "$starved" "$usage" "$1" "$1" "$2" >> "$scratch/main.rules"
}
reserved() { awk '{ print $3 }' $ledger; }
doubles() { reserved | awk '{ t[NR] = $1 } END { exit !(NR == 3 && t[2] - t[1] == 1000 && t[3] == t[2]) }' || { reserved; return 1; }; }
fresh_ledger
doubling '(Request one_shot.r4a1:' "$scratch/good"
LLM_MAX_TOKENS=1000 tries=3 attempt one_shot 4 1
check 'gen: a request with twice the cap, and its repetition, reserve twice the cap' doubles
check 'gen: and are settled' is "$status $(calls | grep -c open)" '0 0'
fresh_ledger
cp "$root/tests/specimens/ok_pdl.cu" kernel.cu
echo '{"verdict":"clean","rule":null,"lines":[],"quote":"","test":""}' > "$scratch/clean"
doubling KERNEL-OF-JUDGE "$scratch/clean"
echo 'const char *name = "KERNEL-OF-JUDGE", *end = "```{{task}}";' >> kernel.cu
printf 'launch\n```\nEND-OF-TAPE\n' > tape
LLM_MAX_TOKENS=1000 tries=3 with_model "$root/build/judge" h200 $relu_json kernel.cu --tape tape --transcript judge.jsonl
check 'judge: the same' doubles
check 'judge: and are settled' is "$status $(calls | grep -c open)" '0 0'
tail -n 1 judge.jsonl | jq -r '.request.messages[1].content' > prompt
check 'judge: the kernel cannot close its fence' is "$(grep -cx '````cuda' prompt)" 1
check 'judge: nor can the tape, and both are closed' is "$(grep -cx '````' prompt) $(grep -c END-OF-TAPE prompt)" '3 1'
check 'judge: what a kernel holds is no template, and every template is filled in' is "$(grep -o '{{.*}}' prompt)" '{{task}}'
for model in x y x y; do with_model env LLM=openai:model-$model "$root/build/judge" h200 $relu_json kernel.cu --tape tape --transcript judge.jsonl; done
check 'judge: two models that take turns are paid for once each' is "$(jq -r 'select(.outcome == "complete").model' judge.jsonl | tr '\n' ' ')" 'model-x model-y '
check 'judge: the answer is that of the one that is asked' says '"model":.*"model-y"'
with_model env LLM=openai:model-x "$root/build/judge" h200 $relu_json kernel.cu --tape tape --transcript judge.jsonl
check 'judge: also where the other one was asked last' says '"model":.*"model-x"'
check 'judge: a jump that nobody named is not spoken of' is "$(grep -c speedup prompt)" 0
check 'judge: the rules are apart' is "$(tail -n 1 judge.jsonl | jq '.request.messages[0] | .role == "system" and (.content | test("KERNEL-OF-JUDGE|=====") | not)')" true
fresh_ledger
echo "const char *it = \"$key\";" >> kernel.cu
with_model "$root/build/judge" h200 $relu_json kernel.cu --transcript judge.jsonl
check 'judge: a kernel with the key in it is not sent, and costs nothing' is "$status $(calls)" '2 '
echo 'int KERNEL_NEVER_ASKED;' > kernel.cu
with_model "$root/build/judge" h200 $relu_json kernel.cu --transcript nowhere/judge.jsonl
check 'judge: where the answer cannot be kept nothing is asked' is "$status $(grep -c KERNEL_NEVER_ASKED "$scratch/main.journal")" '5 0'
rm kernel.cu

# ---- What an answer may do ---------------------------------------------------------------------------

# A kernel that includes what is no header; the turn that mends it must still be made.
for include in . ./ ../prompts /etc/hostname tma.cuh/ "$(printf 'a%.0s' {1..300})"; do
    n=$((n + 1))
    sed "s|#include \"task.h\"|&\n#include \"$include\"|" "$scratch/good" > "$scratch/include.$n"
    answers "repair.r1a$n" "$scratch/include.$n" :
    answers "repair.r2a$n." "$scratch/good"
    attempt repair 1 $n
    jq -n --arg sha "$(sha256sum < "$(at repair.r1a$n).cu" | cut -d' ' -f1)" '{schema: 1, task: "l1_019_relu", gpu: "h200", verdict: "build", reason: "no such file",
        kernel: {path: "x", sha256: $sha, resources: []}}' > "$(at repair.r1a$n).build.json"
    attempt repair 2 $n
    check "a kernel that includes ${include:0:20} can be mended" is "$status $(jq -r .ask "$(at repair.r2a$n).gen.json")" '0 repair'
done
# Names in the answer are no names of files.
printf '<file name="../../../../escaped.cu">\n%s\n</file>\n' "$(sed -n '/^#include/,/^extern/p' "$scratch/good")" > "$scratch/named"
answers one_shot.r5a1 "$scratch/named" :
attempt one_shot 5 1
check 'a name in the answer is not used' is "$status $(find "$scratch" -name 'escaped*')" '0 '
# A carriage return ends a line for people and for some compilers, so it must for everybody.
printf '%scuda\n#include "task.h"\n// one\rint hidden;\nextern "C" void launch() {}\n%s\n' "$fence" "$fence" > "$scratch/return"
answers one_shot.r5a2 "$scratch/return" :
attempt one_shot 5 2
check 'a lone carriage return is the end of a line' is "$(grep -c '^int hidden;$' "$(at one_shot.r5a2).cu") $(grep -c $'\r' "$(at one_shot.r5a2).cu")" '1 0'

# ---- The process -----------------------------------------------------------------------------------------

printf 'on\nbody (Request one_shot.r6a1:\ndata {"type":"ping"}\nhang\n' >> "$scratch/main.rules"
mkdir -p build/attempts/one_shot.r6a1/h200
OPENAI_API_KEY=$key LLM=openai:model-x OPENAI_BASE_URL="http://127.0.0.1:$port/v1" "$root/build/gen" attempt h200 90a $relu_json one_shot 6 1 > "$out" 2>&1 &
gen=$!
for _ in $(seq 100); do asked one_shot.r6a1 0 || break; sleep 0.02; done
check 'a server that goes away is no signal' is "$(( 0x$(sed -n 's/^SigIgn:\t*//p' /proc/$gen/status) >> 12 & 1 ))" 1
kill $gen
wait $gen 2> /dev/null
check 'what was on its way counts in full' is "$(calls | grep -c open)" 1

leak_checks
