#!/bin/bash
# harness/export/export: what attempts become as data for training, from a tree of attempts as `make gen`
# and `make search` leave it, in each wire format.
# uses: build/best
# shellcheck disable=SC2154,SC2016  # out is lib.sh's; backquotes are a fence
. tests/e2e/lib.sh

export_bin=$root/harness/export/export
cd "$scratch" || exit
out=$scratch/out
run() { "$export_bin" "$@" > "$out" 2>&1; }

# ---- A tree of attempts -------------------------------------------------------------------

sha() { sha256sum | cut -d' ' -f1; }
# at ATTEMPT TASK SUFFIX - the path of a file of an attempt.
at() { echo "attempts/$1/h200/$2$3"; }

# transcript ATTEMPT TASK API PROMPT ANSWER - one call, answered as a whole.
transcript() {
    local request response sse=false
    case $3 in
    chat)
        request=$(jq -cn --arg u "$4" '{model: "m", messages: [{role: "system", content: "You write kernels."}, {role: "user", content: $u}], stream: true}')
        response=$(jq -cn --arg a "$5" '{id: "1", model: "m-1", choices: [{index: 0, delta: {content: $a}, finish_reason: "stop"}], usage: {prompt_tokens: 5, completion_tokens: 7}}')
        response=$(printf 'data: %s\n\ndata: [DONE]\n\n.' "$response") sse=true
        ;;
    anthropic)
        request=$(jq -cn --arg u "$4" '{model: "m", system: [{type: "text", text: "You write kernels.", cache_control: {type: "ephemeral"}}], messages: [{role: "user", content: $u}]}')
        response=$(jq -cn --arg a "$5" '{type: "message", role: "assistant", model: "m-1", content: [{type: "text", text: $a}], stop_reason: "end_turn", usage: {input_tokens: 5, output_tokens: 7}}').
        ;;
    responses)
        request=$(jq -cn --arg u "$4" '{model: "m", instructions: "You write kernels.", input: [{role: "user", content: [{type: "input_text", text: $u}]}]}')
        response=$(jq -cn --arg a "$5" '{id: "r", object: "response", model: "m-1", status: "completed", output: [{type: "message", role: "assistant", content: [{type: "output_text", text: $a}]}], usage: {input_tokens: 5, output_tokens: 7}}').
        ;;
    esac
    jq -cn --argjson request "$request" --arg sha "$(printf %s "$request" | sha)" --arg response "${response%.}" --arg api "$3" --argjson sse $sse '
        {schema: 1, call: 1, try: 1, date: "2026-11-21T10:00:00Z", api: $api, host: "a.test", model: "m", request_sha256: $sha,
         request: $request, status: 200, headers: {}, sse: $sse, response: $response, error: "", seconds: 1, outcome: "complete",
         why: "", usage: {input: 5, output: 7}, cost_usd: 0.01}' > "$(at "$1" "$2" .jsonl)"
}

# kernel RATIO - the source of a kernel, as a model would write it.
kernel() { printf '#include "task.h"\n// as fast as %s\nextern "C" void launch(const Inputs *in, const Outputs *out, void *scratch, cudaStream_t stream) {}\n' "$1"; }

# attempt NAME TASK API OUTCOME [VERDICT [RATIO]] - an attempt with all its files.
attempt() {
    local name=$1 task=$2 body answer same=
    mkdir -p "$(dirname "$(at "$name" "$task" '')")"
    body=$(kernel "${6-none}")
    answer=$(printf '## Performance Analysis\nNone yet: caf\u00e9.\n\n## Code\n```cuda\n%s\n```\n' "$body")
    case $4 in
    code | duplicate)
        printf '// provenance: m, attempt %s, 2026-11-21\n// prompt sha256 0; transcript t\n// kernel sha256 %s (of all that follows this line)\n%s\n' \
            "$name" "$(printf '%s\n' "$body" | sha)" "$body" > "$(at "$name" "$task" .cu)"
        ;;
    *) answer='I had rather not.' ;;
    esac
    case $4 in duplicate) same=$5 ;; esac
    transcript "$name" "$task" "$3" "Write $task. This is $name." "$answer"
    jq -n --arg task "$task" --arg name "$name" --arg outcome "$4" --arg same "$same" --arg hash "$(kernel "${6-none}" | sha)" \
        '{schema: 1, task: $task, gpu: "h200", attempt: $name, mode: ($name | split(".")[0]), round: 1, index: 1, model: "m-1", api: "chat",
          outcome: $outcome, reason: null, same_as: (if $same == "" then null else $same end), code_sha256: $hash, idea: -1,
          tokens: {input: 5, output: 7}, cost_usd: 0.01, seconds: 1, date: "2026-11-21T10:00:00Z"}' > "$(at "$name" "$task" .gen.json)"
    [ "$4" = code ] && [ -n "${5-}" ] && result "$name" "$task" "$5" "${6-}"
    return 0
}

# result NAME TASK VERDICT RATIO - what the steps leave of it.
result() {
    local step=time
    case $3 in verified) step=verify ;; build | gate) step=build ;; esac
    jq -n --arg task "$2" --arg verdict "$3" --arg sha "$(sha < "$(at "$1" "$2" .cu)")" --argjson r "${4:-0}" '
        (if $verdict == "verified" then "ok" else $verdict end) as $v |
        {schema: 1, task: $task, gpu: "h200", verdict: $v, reason: (if $v == "ok" then null else "because" end),
         kernel: {sha256: $sha}, class: (if $v == "ok" then "tf32" else null end)}
        + if $verdict == "ok" then {speedup: {against: "tf32", ratio: $r, low: ($r - 0.01), high: ($r + 0.01)},
            time_us: {candidate: {midmean: 10, samples: [range(28) | 10]}, tf32: {midmean: (10 * $r), samples: [range(28) | 10 * $r + 0.04]}}}
          else {} end' > "$(at "$1" "$2" .$step.json)"
}

# The task in the test's part, by `printf %s NAME | sha256sum`, is l1_026_gelu.
attempt one_shot.r1a1 l1_019_relu chat code ok 1.5
attempt one_shot.r1a2 l1_019_relu anthropic code wrong
attempt one_shot.r1a3 l1_019_relu responses code ok 3
attempt one_shot.r1a4 l1_019_relu chat duplicate one_shot.r1a3 3
attempt one_shot.r1a5 l1_019_relu chat refused
attempt one_shot.r2a1 l1_019_relu chat duplicate one_shot.r1a3 4 # which was made anew since, with another kernel
attempt one_shot.r1a6 l1_019_relu chat code build
attempt one_shot.r1a7 l1_019_relu chat code
attempt one_shot.r1a8 l1_019_relu chat code skipped
attempt one_shot.r1a9 l1_019_relu chat code verified
attempt branching.r1a0 l1_019_relu chat ideas
attempt repair.r1a1 l1_026_gelu anthropic code ok 0.8

# in_order FILE... - what of these lines is not as export.h says; nothing if all is.
in_order() {
    jq -cs '
        def keys_are($k): (keys | join(" ")) == ($k / " " | sort | join(" "));
        def between($a; $b): type == "number" and . >= $a and . <= $b;
        def talk($last): type == "array" and all(.[]; keys_are("role content") and (.content | type == "string" and . != ""))
            and (map(.role) | join(" ")) as $r | $r == $last or $r == "system " + $last;
        def pair: keys_are("prompt completion task gpu attempt speedup class split")
            and (.completion | length == 1 and talk("assistant")) and (.speedup == null or (.speedup | between(1e-9; 1e9)));
        def tuple: keys_are("data_source prompt ability reward_model extra_info answer verdict ratio reward")
            and .reward_model == {style: "rule", ground_truth: "\(.extra_info.gpu)/\(.extra_info.task)"}
            and (.extra_info | keys_are("split index task gpu attempt mode round model class score bucket_variance")
                and (.index | between(0; 1e9) and . == floor) and (.round | between(1; 1e4)) and (.score | between(0; 1e9)))
            and (.answer | type == "string") and (.reward | between(-1.5; 1.5))
            and (.verdict | IN("ok", "build", "gate", "tape", "crash", "timeout", "wrong", "impossible", "doubtful", "no-code", "cut", "empty", "refused", "invalid"))
            and if .verdict == "ok" then .ratio > 0 else .ratio == 0 and .extra_info.score == 0 and .extra_info.class == null end;
        map(. as $row | if .data_source then .extra_info else . end | . as $of
            | if ($row | .prompt | talk("user")) and ($row | if .data_source then tuple else pair end)
                and (.split | IN("train", "test")) and (.class | IN("exact", "fp32", "fp32-normwise", "tf32", "f16", "bf16") or ($row.verdict // "ok") != "ok")
              then empty else "\(.attempt) is not in order" end)
        + (map(.extra_info // .) | group_by(.task) | map(select(map(.split) | unique | length > 1) | "\(.[0].task) on both sides"))
        | if . == [] then empty else . end' "$@"
}

# ---- What is written ------------------------------------------------------------------------

run data attempts
check 'export succeeds' [ $? = 0 ]
check 'it says how many lines there are' says 'data/sft.jsonl: 4 lines'
check 'and what was not measured' says '4 attempts are not measured, 0 rows'
check 'nothing half written is left' is "$(cd data && echo *)" 'correct.jsonl grpo.jsonl rl.jsonl sft.jsonl'
list() { jq -r "$2" "data/$1.jsonl" | tr '\n' ' '; }
check 'supervised pairs: verified kernels, each once' is "$(list sft .attempt)" 'one_shot.r1a1 one_shot.r1a3 one_shot.r1a9 repair.r1a1 '
check 'the filter: every verified answer' is "$(list correct .attempt)" 'one_shot.r1a1 one_shot.r1a3 one_shot.r1a4 one_shot.r1a9 repair.r1a1 '
check 'speedups; none of what was not timed' is "$(list correct .speedup)" '1.5 3 3 null 0.8 '
check 'a pair has what the prompt asks for: analysis and code' is "$(jq -r 'select(.attempt == "one_shot.r1a1").completion[0].content' data/sft.jsonl)" \
    "$(printf '## Performance Analysis\nNone yet: caf\u00e9.\n\n## Code\n```cuda\n%s\n```' "$(kernel 1.5)")"
check 'the filter keeps the whole answer' is "$(jq -r 'select(.attempt == "one_shot.r1a1").completion[0].content' data/correct.jsonl | head -n2)" \
    "$(printf '## Performance Analysis\nNone yet: caf\u00e9.')"
check 'prompts of all three formats are alike' is "$(jq -c '.prompt | map(.role), .[0].content' data/rl.jsonl | sort -u | tr '\n' ' ')" \
    '"You write kernels." ["system","user"] '
check 'and are those of their attempt' is "$(jq -r 'select(.prompt[1].content != "Write \(.extra_info.task). This is \(.extra_info.attempt).").extra_info.attempt' data/rl.jsonl)" ''
check 'tuples: all that was judged' is "$(list rl '"\(.extra_info.attempt | ltrimstr("one_shot.")):\(.verdict)"')" \
    'r1a1:ok r1a2:wrong r1a3:ok r1a4:ok r1a5:refused r1a6:build repair.r1a1:ok '
check 'ratios, 0 for failures' is "$(list rl .ratio)" '1.5 0 3 3 0 0 0.8 '
check 'scores: medians of buckets, towards 1' is "$(list rl .extra_info.score)" '1.5 0 3 3 0 0 0.81 '
# 1.5 0 3 3 0 0: mean 1.25, variance 20.25/6 - 1.5625 = 1.8125
check 'rewards: normalised over the task' is "$(list rl '.reward * 1000 | round')" '186 -928 1300 1300 -928 -928 0 '
check 'indices count the lines' is "$(list rl .extra_info.index)" '0 1 2 3 4 5 6 '
check 'splits by task' is "$(jq -r '"\(.task) \(.split)"' data/correct.jsonl | sort -u | tr '\n' ' ')" 'l1_019_relu train l1_026_gelu test '
cp -r data before
run data attempts
check 'the same attempts give the same bytes' diff -r before data
check 'its lines are as export.h says' is "$(in_order data/*.jsonl)" ''
run all attempts --test-share 1
check 'the share of the test can be chosen' is "$(jq -r .split all/sft.jsonl | sort -u)" test
check 'a task on both sides would be seen' is "$(in_order data/sft.jsonl all/rl.jsonl)" '["l1_019_relu on both sides"]'
# broken JQ - a line of rl.jsonl that was changed so is not in order.
broken() { head -n 1 data/rl.jsonl | jq -c "$1" > bad.jsonl; [ -n "$(in_order bad.jsonl)" ]; }
check 'a line is in order' is "$(broken .; echo $?)" 1
for fault in 'del(.ability)' '.more = 1' '.verdict = "great"' '.reward = 1.6' '.ratio = 0' '.extra_info.class = null' '.extra_info.score = null' \
    '.prompt = []' '.prompt[0].role = "user"' '.prompt[1].content = ""' '.extra_info.index = 0.5' '.reward_model.ground_truth = "h200/x"' '.extra_info.split = "valid"'; do
    check "not so one with $fault" broken "$fault"
done
# Doing nothing is right where the output is always 0: such a cell teaches that.
cp -r attempts with_void
(cd with_void && f=repair.r1a1/h200/l1_026_gelu.time.json && jq '.flags = ["latency-bound", "degenerate: output is identically 0"]' "$f" > x && mv x "$f")
run void with_void
check 'a task that cannot tell work from none is left out' is "$(jq -r '.task // .extra_info.task' void/*.jsonl | sort -u)" l1_019_relu
check 'which is said' says '^export: 1 cells were left out'
for flag in 'degenerate: output is identically 0' 'no-influence: x'; do
    jq -n --arg flag "$flag" '{task: "l1_026_gelu", verdict: "ok", flags: [$flag], speedup: {ratio: 2}}' > one.time.json
    run --reward one.time.json
    check "a result with the flag ${flag%%:*} has no reward" is "$(cat "$out")" null
done
# A time that cannot be trusted is worth as much as a wrong kernel, and teaches nothing.
cp -r attempts with_doubt
(cd with_doubt && f=one_shot.r1a3/h200/l1_019_relu.time.json && jq '.flags = ["noisy", "control-ratio: 1.30x on scaled inputs"]' "$f" > x && mv x "$f")
run doubt with_doubt
check 'a doubtful kernel, and what repeats it, says so' is "$(jq -r '"\(.extra_info.attempt | ltrimstr("one_shot.")):\(.verdict):\(.ratio):\(.extra_info.score)"' doubt/rl.jsonl | tr '\n' ' ')" \
    'r1a1:ok:1.5:1.5 r1a2:wrong:0:0 r1a3:doubtful:0:0 r1a4:doubtful:0:0 r1a5:refused:0:0 r1a6:build:0:0 repair.r1a1:ok:0.8:0.81 '
check 'and is in no pair' is "$(jq -r .attempt doubt/sft.jsonl doubt/correct.jsonl | sort -u | tr '\n' ' ')" 'one_shot.r1a1 one_shot.r1a9 repair.r1a1 '

# Tasks that are the same under two names must not be on both sides.
twins=$(cd "$root" && for f in tasks/*/*.json; do
    [ "${f##*/}" != template.json ] || continue
    t=$(basename "$f" .json); h=$(printf %s "$(cut -c 1-40 <<< "${t#v0_}" | tr -d "\n")" | sha256sum | cut -c 1-8)
    [ $((0x$h * 10 / 4294967296)) -lt 2 ] && side='test' || side='train'
    echo "$(jq -c '[[.inputs[], .parameters[] | .shape, .dtype], (.graph | map(gsub("=[a-z_]+"; "=")))]' "$f" | sha256sum | cut -c 1-8) $side $t"
done | sort | awk '{ if ($1 == last && $2 != side) print $3, "is on the", $2, "side,", name, "is not"; last = $1; side = $2; name = $3 }')
check 'no task is on both sides under two names' is "$twins" ''

# ---- Scores, and the reward service's way to them ---------------------------------------------

run --score "$(at repair.r1a1 l1_026_gelu .time.json)"
check 'the score of one result' is "$? $(cat "$out")" '0 0.81'
run --score "$(at one_shot.r1a2 l1_019_relu .time.json)"
check 'of a wrong kernel' is "$? $(cat "$out")" '0 0'
run --reward "$(at one_shot.r1a1 l1_019_relu .time.json)"
check 'its reward is the ratio' is "$? $(cat "$out")" '0 1.5'
run --score "$(at one_shot.r1a1 l1_019_relu .gen.json)"
check 'of what is no result: exit code 3' is $? 3

# worth JQ JSON - what worth.jq makes of it.
worth() { jq -cn -L "$root/harness/export" --argjson x "$2" "include \"worth\"; \$x | $1"; }
check 'rounding, towards 1' is "$(worth 'map(towards_one)' '[1.118, 0.992, 1, 1.13, 0.991, 0.99, 0.981, 1.0099, 12.349, 0.001, 2.29]')" '[1.11,1,1,1.13,1,0.99,0.99,1,12.34,0.01,2.29]'
timed() { jq -cn --argjson base "$1" '{verdict: "ok", speedup: {against: "tf32", ratio: 1.777}, time_us: {candidate: {samples: [$base[] | 10]}, tf32: {samples: $base}}}'; }
check 'a median of buckets, whatever one of them says' is "$(worth score "$(timed '[11, 1000, 12, 13, 14, 15, 16]')")" 1.4
thirty=$(jq -cn '[[4, 4, 4, 5, 4, 4, 5] | to_entries[] | range(.value) as $i | 10 + .key]')
check 'of nearly equal size, with their variance' is "$(worth '[score, (bucket_variance * 1e6 | round)]' "$(timed "$thirty")")" '[1.3,40000]'
check 'with few pairs, or two sides that do not match, the ratio' is "$(worth 'map(score)' "[$(timed '[11, 12, 13]'), $(timed "$thirty" | jq -c '.time_us.candidate.samples[0] = -1'), $(timed "$thirty" | jq -c 'del(.time_us.tf32.samples[0])')]")" '[1.77,1.77,1.77]'
check 'relative rewards are clipped' is "$(worth 'relative | map(. * 1000 | round)' '[0, 0, 0, 1, 4]') $(worth relative '[2, 2]')" '[-645,-645,-645,0,1500] [0,0]'

# The answers to one question, side by side: samples whose questions differ in the attempt's name alone.
mkdir group
(
    cd group && for n in 1 2 3; do
        if [ $n = 3 ]; then set -- code wrong; else set -- code ok $n; fi
        attempt best_of_n.r1a$n l1_019_relu chat "$@"
        transcript best_of_n.r1a$n l1_019_relu chat "Write it. (Request best_of_n.r1a$n.)" "$(printf '```cuda\n%s\n```\n' "$(kernel "${3-none}")")"
    done
)
run grouped group/attempts
check 'a group of them' is "$(jq -c '[.scores, (.advantages | map(. * 1000 | round)), .verdicts, .attempts, (.completions | length), .prompt[1].content]' grouped/grpo.jsonl)" \
    '[[1,2,0],[0,1225,-1225],["ok","ok","wrong"],["best_of_n.r1a1","best_of_n.r1a2","best_of_n.r1a3"],3,"Write it. (Request.)"]'
check 'those of other questions are in none' is "$(wc -l < data/grpo.jsonl)" 0

# ---- Trouble --------------------------------------------------------------------------------

sed -i 's/as fast as 1.5/as fast as light/' "$(at one_shot.r1a1 l1_019_relu .cu)"
result one_shot.r1a1 l1_019_relu ok 1.5
run data attempts
check 'a kernel that was edited is nobody'"'"'s answer' says 'one_shot.r1a1/h200/l1_019_relu.cu: not as the model wrote it: left out'
check 'and is in neither file of pairs' not grep -q 'one_shot.r1a1"' data/sft.jsonl data/correct.jsonl
rm "$(at one_shot.r1a3 l1_019_relu .jsonl)"
run data attempts
check 'an attempt without a transcript is left out' says 'one_shot.r1a3/h200/l1_019_relu.jsonl: no answer.*left out'
cp -r data before.bad
echo 'not a line' >> "$(at one_shot.r1a2 l1_019_relu .jsonl)"
run data attempts
check 'a transcript that is none: exit code 3' is $? 3
check 'file and line' says 'one_shot.r1a2/h200/l1_019_relu.jsonl:2: '
check 'what was exported before is unchanged' diff -r before.bad data
run data empty
check 'no attempts: exit code 3, and what to do' is "$? $(cat "$out")" '3 export: empty: there are no attempts; make some with make gen or make search'
run
check 'no folder: exit code 2' is $? 2
run data attempts --test-share 2
check 'a share beyond 1: exit code 2' is $? 2
: > file
run file attempts
check 'a folder that is a file: exit code 5' is $? 5
