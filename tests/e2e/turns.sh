#!/bin/bash
# What is asked in the next attempt (harness/gen/prompts/search.jq), of invented attempts.
# shellcheck disable=SC2154,SC2016  # root and scratch are lib.sh's; $ of jq
. tests/e2e/lib.sh

list=$scratch/list current=null draws='[0.1, 0.2, 0.3, 0.4]'
unset WIDTH SEED_KERNEL TURNS TAU BUCKETS IDEAS SEARCH_SEED
search() { jq -rn -L "$root/harness/gen/prompts" --argjson current "$current" --slurpfile attempts "$list" --argjson draws "$draws" 'include "search"; '"$1"; }

# add NAME ASK OUTCOME [MORE [CODE]] - an attempt; MORE are members besides, CODE that of a duplicate.  add_ok NAME ASK RATIO [MORE], add_bad NAME ASK VERDICT.
add() {
    jq -nc --arg name "$1" --arg ask "$2" --arg outcome "$3" --arg same "${5-}" "$name_parts"' + {attempt: $name, $ask, $outcome, rank: 5}
        + (if $outcome == "code" then {code_sha256: $name} elif $outcome == "duplicate" then {verdict: "duplicate", code_sha256: $same} else {} end) + '"${4-{\}}" >> "$list"
}
name_parts='($name | capture("(?<mode>.*)\\.r(?<round>[0-9]+)a(?<index>[0-9]+)") | .round |= tonumber | .index |= tonumber)'
speed() { echo "{verdict: \"ok\", class: \"fp32\", rank: 0, ratio: $1, low: (0.99 * $1), high: (1.01 * $1)}"; }
add_ok() { add "$1" "$2" code "$(speed "$3") + ${4-{\}}"; }
add_bad() { add "$1" "$2" code "{verdict: \"$3\", reason: \"reason of $1\"}"; }
begin() { : > "$list" && current=null; }

# turn NAME FILTER - of the turn of this attempt.
turn() { search "\"$1\" as \$name | $name_parts"' + {attempt: $name, $attempts, $current, $draws} | turn | '"$2"; }
# asks WHAT NAME "ASK SHOWN..." [FILTER VALUE] - a check of the ask and what it shows, in order; and of what FILTER finds.
asks() {
    local found
    found=$(turn "$2" "([.ask, .shown[].attempt] | join(\" \")), (${4-empty})")
    check "$1" is "${found%%$'\n'*}" "$3"
    [ $# = 3 ] || check "$1: $4" is "${found#*$'\n'}" "$5"
}
refused() { check "$1" is "$(turn "$2" . 2>&1 | grep -o "\"text\":\"$3")" "\"text\":\"$3"; }

# ---- Options, and the plain modes --------------------------------------------------------

begin
check 'defaults' is "$(search '[width, seed_kernel, turns, buckets, tau, ideas] | join(" ")')" '6 false 3 5 0.5 3'
check 'and what overrides them' is "$(WIDTH=12 TAU=0.25 IDEAS='' search '[width, tau, ideas] | join(" ")')" '12 0.25 3'
for bad in WIDTH=0 WIDTH=-1 WIDTH=1.5 SEED_KERNEL=many TURNS=3x TAU=0 TAU=nan TAU=1e999 BUCKETS=1e9 IDEAS=33 SEED_KERNEL=2 BUCKETS=-0.5; do
    check "$bad is refused" is "$(export "${bad?}" && turn one_shot.r1a1 . 2>&1 | grep -o '"code":2,"text":"[A-Z_]*=[^:]*: expected a')" '"code":2,"text":"'"$bad"': expected a'
done
current=$(jq -nc "{attempt: \"current\", outcome: \"code\"} + $(speed 2)")
add_bad best_of_n.r1a1 one_shot wrong
WIDTH=4 asks 'one of four' one_shot.r1a3 one_shot '[.number, .of] | join(" ")' '3 4'
WIDTH=4 asks 'one more than planned' one_shot.r1a9 one_shot .of 9
asks 'it is about nothing else' one_shot.r1a3 one_shot '[.failed, .idea, .ledger, .idea_index] | tojson' '[null,null,null,-1]'
asks 'an independent draw knows of no other' best_of_n.r1a7 one_shot '[.number, .of] | join(" ")' '1 1'
SEED_KERNEL=1 asks 'or sees what other modes see' best_of_n.r1a7 'optimise current' .of 1
SEED_KERNEL=1 asks 'also in an experiment' best_of_n-2.r1a7 'optimise current'
SEED_KERNEL=1 asks 'which one_shot does not' one_shot.r1a7 one_shot
current='{"verdict":"wrong"}'
SEED_KERNEL=1 asks 'nor does anybody see a kernel that is wrong' best_of_n.r1a7 one_shot
refused 'only branching calls for ideas' repair.r1a0 'repair.r1a0 is no attempt'

# ---- Repair ------------------------------------------------------------------------------

begin
asks 'a chain begins with nothing' repair.r1a1 one_shot .ledger null
add_bad repair.r1a1 one_shot build
add_ok repair.r1a2 one_shot 1.2
asks 'a failure is repaired' repair.r2a1 repair .failed.attempt repair.r1a1
asks 'its history is that of the chain alone' repair.r2a1 repair '.ledger | rtrimstr("\n")' '- repair.r1a1 (one_shot): build: reason of repair.r1a1'
asks 'what works is improved' repair.r2a2 'optimise repair.r1a2' .failed null
add_ok repair.r2a2 optimise 1.9
add_ok repair.r3a2 optimise 1.4 '{analysis: "bound by\nmemory, so  tiles of 64"}'
asks 'the best of the chain, not its last' repair.r4a2 'optimise repair.r2a2' '.ledger | split("\n")[2:] | join("|")' \
    '- repair.r3a2 (optimise): ok, 1.400x (1.386 to 1.414), fp32|  its analysis: bound by memory, so tiles of 64|'
asks 'later rounds do not matter' repair.r2a2 'optimise repair.r1a2'

begin
add_bad repair.r1a1 one_shot build
add_bad repair.r2a1 repair gate
asks 'the last failure is repaired' repair.r3a1 repair .failed.attempt repair.r2a1
add_bad repair.r3a1 repair wrong
asks 'three in a row end the line; nothing ever worked' repair.r4a1 one_shot '.ledger | test("repair.r1a1")' true
add_ok repair.r1a2 one_shot 1.1
add_ok repair.r3a3 one_shot 1.3
add_ok repair.r4a3 optimise 1.6
asks 'then the best of the mode is, of earlier rounds' repair.r4a1 'optimise repair.r3a3'
add_ok repair.r4a1 optimise 0.8
add_bad repair.r5a1 optimise crash
asks 'a new line' repair.r6a1 repair .failed.attempt repair.r5a1
add_bad repair.r6a1 repair crash
add_bad repair.r7a1 repair timeout
asks 'the best of the chain comes before that of the mode' repair.r8a1 'optimise repair.r4a1'
add_bad repair.r8a1 optimise wrong
asks 'the next line has one failure' repair.r9a1 repair .failed.attempt repair.r8a1
TURNS=1 asks 'which may be enough' repair.r9a1 'optimise repair.r4a1'
add_ok repair.r1a9 one_shot 1.1
add_bad repair.r2a9 repair wrong
TURNS=2 asks 'a kernel that works ends a line of failures' repair.r3a9 repair

begin
add repair.r1a1 one_shot cut '{reason: "at the token\ncap"}'
asks 'an answer without code is shown where there is no other' repair.r2a1 repair .failed.attempt repair.r1a1
asks 'with what came of it' repair.r2a1 repair '.ledger | test("cut: at the token cap")' true
add_bad repair.r2a1 repair wrong
add repair.r3a1 repair empty
TURNS=9 asks 'else the code that still needs repair' repair.r4a1 repair .failed.attempt repair.r2a1
add repair.r4a1 repair code
TURNS=9 asks 'one that is not measured is not counted' repair.r5a1 repair .failed.attempt repair.r2a1
for ((i = 2; i <= 45; i++)); do add_ok "repair.r${i}a5" optimise 2; done
asks 'the ledger has the newest forty' repair.r46a5 'optimise repair.r2a5' '.ledger | split("\n") | "\(length) \(.[0])"' '42 - 4 earlier ones are not listed'

begin
add_ok repair.r1a2 one_shot 1.7
add_bad repair.r1a3 one_shot wrong
add repair.r1a1 one_shot duplicate '{same_as: "repair.r1a2"}' repair.r1a2
add repair.r1a4 one_shot duplicate '{same_as: "repair.r1a3"}' repair.r1a3
add repair.r1a5 one_shot duplicate '{same_as: "repair.r7a7"}' repair.r7a7
add repair.r1a6 one_shot duplicate '{same_as: "repair.r1a3"}' what_that_had_before
asks 'the result of a duplicate is that of the first' repair.r2a1 'optimise repair.r1a2' '.ledger | test("the same kernel as repair.r1a2: ok, 1.700x")' true
asks 'whatever it is' repair.r2a4 repair .failed.attempt repair.r1a3
asks 'and where that is not known there is nothing to repair' repair.r2a5 'optimise repair.r1a2'
asks 'nor where the first was made anew, with another kernel' repair.r2a6 'optimise repair.r1a2'

# ---- Contrastive -------------------------------------------------------------------------

begin
asks 'without kernels it begins anew' contrastive.r1a1 one_shot .ledger null
add_bad contrastive.r1a1 one_shot wrong
add contrastive.r1a2 one_shot refused
asks 'knowing what failed' contrastive.r2a1 one_shot '.ledger | split("\n") | join("|")' \
    '- contrastive.r1a1 (one_shot): wrong: reason of contrastive.r1a1|- contrastive.r1a2 (one_shot): refused|'
add_ok contrastive.r1a3 one_shot 0.7
asks 'one is shown alone' contrastive.r2a1 'contrastive contrastive.r1a3' .ledger null
add_ok contrastive.r1a4 one_shot 0.7
asks 'equally fast ones are one bucket' contrastive.r2a1 'contrastive contrastive.r1a3'
add_ok contrastive.r1a5 one_shot 1.4
asks 'of two buckets one each, the slowest first' contrastive.r2a1 'contrastive contrastive.r1a3 contrastive.r1a5'
asks 'those of this round do not count' contrastive.r1a1 one_shot
BUCKETS=1 asks 'one bucket, one kernel' contrastive.r2a1 'contrastive contrastive.r1a3'
begin
current=$(jq -nc "{attempt: \"current\", outcome: \"code\", code_sha256: \"abc\"} + $(speed 3)")
asks "the cell's kernel is among them" contrastive.r1a1 'contrastive current'
add_ok contrastive.r1a1 contrastive 1.5
asks 'in its place' contrastive.r2a1 'contrastive contrastive.r1a1 current'
add_ok contrastive.r1a2 contrastive 9 '{code_sha256: "abc"}'
asks 'the same code is never shown twice' contrastive.r2a1 'contrastive contrastive.r1a1 contrastive.r1a2'

# Five buckets, the highest with two members.  Pairs are as frequent as two draws without replacement with
# probabilities proportional to exp((mean - mean of all) / tau), on a grid of all draws.
begin
for i in 1 2 3 4 5; do add_ok contrastive.r1a$i one_shot "$(awk "BEGIN { print 2 ^ ($i - 3) }")"; done
add_ok contrastive.r1a6 one_shot 3.5
# frequencies TAU - whether pairs are, and whether of the last bucket each member is drawn equally often.
frequencies() {
    TAU=$1 search '{round: 2, $attempts} as $in | 40 as $n
        | [range($n) as $i | range($n) as $j | (0.25, 0.75) as $k | $in + {draws: [($i + 0.5) / $n, $k, ($j + 0.5) / $n, $k]} | contrastive.shown | map(.index)]
        | (flatten | [map(select(. == 6)), map(select(. >= 5)) | length] | .[0] / .[1]) as $twin | length as $all
        | [-2, -1, 0, 1, ((4 | log2) + (3.5 | log2)) / 2] as $mean | ($mean | add / 5) as $middle | [$mean[] | (. - $middle) / tau | exp] as $w | ($w | add) as $sum
        | [range(5) as $a | range($a + 1; 5) as $b | ($w[$a] / $sum) as $p | ($w[$b] / $sum) as $q | ($p * $q / (1 - $p) + $q * $p / (1 - $q)) as $expected
            | (map(map(if . > 5 then 5 else . end) | select(. == [$a + 1, $b + 1])) | length / $all) - $expected | fabs]
        | if max > 0.02 then "off by \(max)" elif ($twin - 0.5 | fabs) > 0.01 then "a member is drawn \($twin)" else "as expected" end'
}
check 'buckets are drawn by their speed, members evenly' is "$(frequencies 1.3)" 'as expected'
check 'a small TAU leaves the fastest' is "$(draws='[0.999, 0, 0, 0]' TAU=1e-6 turn contrastive.r2a1 '.shown | length, .[-1].index' | tr '\n' ' ')" '2 5 '
check 'a large one draws evenly, and no weight overflows' is "$(frequencies 1e6)" 'as expected'

# ---- Branching ---------------------------------------------------------------------------

begin
asks 'a round begins with a call for ideas' branching.r1a0 ideas '[.ideas_wanted, .of, .ledger] | tojson' '[3,1,null]'
add branching.r1a0 ideas ideas '{ideas: ["tiles", "vectors", "streams", "more than \n asked"]}'
add_ok branching.r1a1 implement 1.5 '{idea: 0}'
add branching.r1a2 implement code '{idea: 1, verdict: "gate", reason: "reason of branching.r1a2"}'
add_ok branching.r1a4 implement 1.8 '{idea: 0}'
add branching.r1a5 implement code '{idea: 1, verdict: "wrong", reason: "reason of branching.r1a5"}'
add branching.r2a0 ideas ideas '{ideas: ["half"]}'
add_ok branching.r2a1 implement 1.6 '{idea: 0}'
asks 'it is shown the best, and what became of each idea' branching.r2a0 'ideas branching.r1a4' '.ledger | split("\n") | join("|")' \
    '- round 1: tiles|  worked, 1.800x (1.782 to 1.818), fp32|- round 1: vectors|  failed: wrong: reason of branching.r1a5|- round 1: streams|  untried|- round 1: more than asked|  untried|'
asks 'one kernel of each idea, the slowest first' branching.r3a0 'ideas branching.r2a1 branching.r1a4' '.ledger | test("- round 2: half\n  worked, 1.600x")' true
add_ok branching.r2a3 optimise 1.7
add_ok branching.r2a4 optimise 1.4
asks 'one without an idea counts by itself' branching.r3a0 'ideas branching.r2a1 branching.r2a3 branching.r1a4'
add_ok branching.r2a5 optimise 9 '{class: "bf16", rank: 4}'
asks 'one that is less accurate comes last' branching.r3a0 'ideas branching.r2a1 branching.r2a3 branching.r1a4'

begin
add branching.r1a0 ideas ideas '{ideas: ["tiles", "vectors"]}'
asks 'an idea is carried out' branching.r1a2 implement '[.idea, .idea_index] | tojson' '["vectors",1]'
asks 'each in turn' branching.r1a3 implement '[.idea, .idea_index] | tojson' '["tiles",0]'
add_ok branching.r1a1 implement 1.2 '{idea: 0}'
add_ok branching.r1a2 implement 1.9 '{idea: 1}'
add_ok branching.r1a4 implement 1.8 '{idea: 1}'
asks 'without ideas it goes on from the best' branching.r2a1 'optimise branching.r1a2' '[.idea, .idea_index] | tojson' '[null,-1]'
add branching.r2a0 ideas ideas '{ideas: ["a", "b", "c", "d"]}'
add_ok branching.r2a1 implement 5
for i in 1 2 3 4 5 6 7 12; do
    asks "attempt $i: of three ideas that were asked for, from the best or, every second pass, the best of another idea" branching.r2a$i \
        "implement branching.r1a$(((i - 1) / 3 % 2 ? 1 : 2))" '[.idea, .idea_index] | join(" ")' "$(printf %b "\\x$((61 + (i - 1) % 3))") $(((i - 1) % 3))"
done
begin
add branching.r1a0 ideas ideas '{ideas: []}'
asks 'or anew' branching.r1a1 one_shot
