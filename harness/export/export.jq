# export.jq: training data of what `build/best --answers` prints; see README.md here.
# --argjson shares: a number of 0 to 1 for each task; --argjson test_share.  Prints lines
# "FILE<tab>ROW", and "say<tab>what was left out".
include "worth";

def content: if type == "string" then . elif type == "array" then map(.text // "") | add // "" else null end;
# The messages of a request in any wire format, the instructions first.
def messages:
    [((.system, .instructions) | {role: "system", content: content}),
     ((.messages // .input) | if type == "string" then {role: "user", content: .} elif type == "array" then .[] else empty end
      | {role: (.role // "user" | if . == "developer" then "system" else . end), content: (.content | content)})]
    | map(select(.content != null));
# The question without the name of the attempt, by which samples of one question differ.
def question: map(.content |= gsub("\\(Request [^)]*\\)"; "(Request.)"));

def split: if $shares[.task] < $test_share then "test" else "train" end;
def file($suffix): "\(.attempt)/\(.gpu)/\(.task)\($suffix)";

# The attempt whose measurement counts: the last of a chain of duplicates; null if one is missing, or was
# made anew with another kernel.
def measured($all; $hops):
    if .outcome != "duplicate" then . elif $hops == 0 then null
    else . as $a | ($all | map(select(.attempt == $a.same_as and .code_sha256 == $a.code_sha256))[0]) | if . then measured($all; $hops - 1) else null end end;

# What came of an attempt: .m is what was measured; .said a verdict, or null if nothing is known.
def judged($all):
    . as $a | measured($all; $all | length) as $m
    | ($m.outcome == "code") as $code | (if $code then $m.verdict else $m.outcome end) as $verdict
    | ($code and $m.class != null and $verdict != "doubtful" and $m.result.verdict == "ok") as $verified
    | ($verified and $m.ratio != null) as $timed
    | $a + {$m, $verified, said: (if $m == null or $verdict == "ok" and ($timed | not) or ($verdict | IN("missing", "skipped")) then null else $verdict end),
       score: (if $timed then $m.result | score else 0 end), variance: (if $timed then $m.result | bucket_variance else null end)};

def pair: {prompt, completion: [{role: "assistant", content: .answer}], task, gpu, attempt, speedup: .m.ratio, class: .m.class, split: split};
def tuple: (.said == "ok") as $ok |
    {data_source: "kernelproof", prompt, ability: "cuda", reward_model: {style: "rule", ground_truth: "\(.gpu)/\(.task)"},
     extra_info: {split: split, index: null, task, gpu, attempt, mode, round, model, class: (if $ok then .m.class else null end), score, bucket_variance: .variance},
     answer, verdict: .said, ratio: (if $ok then .m.ratio else 0 end), reward};
# The answers to one question, with the advantage of each over the others.
def group: {prompt: (.[0].prompt | question), completions: map(.answer), scores: map(.score), advantages: (map(.score) | relative),
    verdicts: map(.said), attempts: map(.attempt), task: .[0].task, gpu: .[0].gpu, split: (.[0] | split)};

def cell:
    . as $all | if any(.[].result | objects; void) then {void: 1} else
    [.[] | select(.outcome != "ideas") | judged($all)] as $judged
    | {unmeasured: ($judged | map(select(.said == null)) | length)},
      ([$judged[] | select(.said != null or .verified) | .prompt = (.request | messages)]
       | [.[] | select(.answer != null and .prompt != [])] as $said
       | (.[] | select(.answer == null or .prompt == []) | {left_out: 1, say: "\(file(".jsonl")): no answer, or no prompt of it: left out"}),
         ($said[] | select(.verified) |
            if .m.untouched and (.answer | test("launch")) then (if .m.attempt == .attempt then {sft: pair} else empty end), {correct: pair}
            else {left_out: 1, say: "\(.m | file(".cu")): not as the model wrote it: left out"} end),
         ([$said[] | select(.said != null)] | if . == [] then empty else (map(.score) | relative) as $r
            | (range(length) as $i | {rl: (.[$i] + {reward: $r[$i]} | tuple)}),
              (group_by(.prompt | question)[] | select(length > 1) | {grpo: group}) end))
    end;

[inputs] | [group_by([.gpu, .task])[] | sort_by([.mode, .round, .index]) | cell] as $found
| ($found[] | to_entries[] | select(.key | IN("say", "sft", "correct", "grpo")) | "\(.key)\t\(.value | if type == "string" then . else tojson end)"),
  ([$found[].rl | select(.)] | to_entries[] | .key as $i | "rl\t\(.value | .extra_info.index = $i | tojson)"),
  (["unmeasured", "left_out", "void"][] as $what | "\($what)\t\([$found[] | .[$what] // 0] | add // 0)")
