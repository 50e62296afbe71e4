# rules_modes.sh: the rules of time --modes, one function each.  Sourced by tests/e2e/fake_rules.sh.
# shellcheck shell=bash disable=SC2034,SC2154,SC2119,SC2120,SC2317

# mode offline|server FILTER - of what was found of a mode; moded_to VERDICT TEXT - how all of it ended.
mode() { of modes ".modes.$1 | $2"; }
moded_to() { ends modes "$@"; }
# after LINE OTHER... - how often a line of the runner's is directly behind another: two patterns.
after() { awk -v line="$1" -v other="$2" '/^runner / { if ($0 ~ line && before ~ other) n++; before = $0 } END { print n + 0 }' "$log"; }

# Bursts: one graph for all placements, again and again, between two events.
rule_modes() {
    built ok_relu relu64
    verified
    KP_FAKE_L2=100000 moded candidate=400
    check 'the operands together exceed twice the cache' is "$(mode offline '[.placements, .bytes, .beyond_l2] | join(" ")')" '7 229376 true'
    check 'a burst turns over them twice at least' is "$(mode offline .replays)" 14
    check 'it launches one graph, once ahead of each burst' is "$(logged '^runner launch 8$')" $((82 * 3))
    check 'which does the work of each placement' is "$(logged '^baseline run fp32')" $((1 + 3 + 82 * 3 * 7 + 82))
    check 'no flush comes between: only before the empty graph and the first replays' is "$(logged '^runner flush') $(logged '^baseline flush')" '34 3'
    check 'nor is anything scrubbed between' is "$(after 'launch 8$' 'scrub')" 1
    check 'the time is of a replay' is "$(mode offline '.time_us | (.candidate.midmean, .fp32.midmean) | round' | paste -sd' ')" '400 500'
    check 'known as well as the clock ticks over a burst' is "$(mode offline '.time_us.candidate | (.high - .low) * 14 * 1000 | round')" 500
    check 'the speedup is the baseline over the candidate' is "$(mode offline '.speedup | .against, (.ratio * 1000 | floor), (.all.fp32 * 1000 | floor)' | paste -sd' ')" 'fp32 1249 1249'
    check 'new contents a round, the same at all placements' is \
        "$(awk '/^time fill/ { n[$5]++ } END { for (s in n) print n[s] }' "$log" | sort -n | uniq -c | awk '{ print $1 "x" $2 }' | paste -sd' ')" "1x1 $((82 + 24))x7"
    check 'the outputs at each placement are compared' is "$(logged '^time compare')" $((6 + 82 * 2 * 7 + 82 * 2))
    check 'both runners come first sometimes' is "$(firsts 3 '^[a-z]+ launch 8$' | sort -u | paste -sd' ')" 'baseline runner'
    check 'of bursts and of replays that are served' is "$(firsts 1 '^[a-z]+ sleep' | sort -u | paste -sd' ')" 'baseline runner'
    check 'nothing is said of the headline' is "$(of modes '[.speedup, .time_us] | map(. == null) | all') $([ -e "$cell.time.json" ] && echo timed)" 'true '
    built ok_matmul_tf32 matmul8
    verified
    moded candidate=60 fp32=700 tf32=300
    check 'the fastest baseline counts' is "$(mode offline .speedup.against) $(mode server .speedup.against)" 'tf32 tf32'
    check 'and each has its ratio' is "$(mode offline '.speedup.all | map_values(round) | tojson')" '{"fp32":12,"tf32":5}'
}
# firsts N PATTERN - which of two runners comes first in each round: each has N such lines there.
firsts() { grep -oE "$2" "$log" | awk -v n="$1" '(NR - 1) % (2 * n) == 0 { print $1 }'; }

# Replays that are served: a gap, one replay, no flush, at placements in turn.
rule_modes_server() {
    local gaps
    built ok_relu relu64
    verified
    KP_FAKE_L2=100000 moded candidate=400
    check 'each comes behind a gap' is "$(after 'launch [1-7]$' 'sleep') $(logged '^runner sleep') $(logged '^baseline sleep')" '82 82 82'
    check 'placements take turns' is "$(awk '/ sleep/ { served = 1 } / launch / && served { served = 0; if ($3 != n % 7 + 1) bad++; n++ } END { print n, bad + 0 }' "$log")" '164 0'
    check 'the time is that of its events' is "$(mode server '.time_us | (.candidate.midmean, .fp32.midmean) | round' | paste -sd' ')" '401 501'
    check 'all wait the same gaps' is "$(gaps runner | sha256sum)" "$(gaps baseline | sha256sum)"
    check 'of a millisecond on average' among "$(gaps runner | awk '{ s += $1 } END { print int(s / NR) }')" 600 1500
    check 'most of them shorter' among "$(gaps runner | awk '$1 < 1000' | wc -l)" 35 69
    check 'some much longer' [ "$(gaps runner | awk '$1 > 1500' | wc -l)" -ge 3 ]
    check 'as the result says' is "$(mode server .gap_us)" 1000
    gaps=$(gaps runner)
    moded candidate=400
    check 'other gaps each time' not [ "$gaps" = "$(gaps runner)" ]
    KP_SERVER_GAP_US=20 moded candidate=400
    check 'another mean where one is asked for' among "$(gaps runner | awk '{ s += $1 } END { print int(s / NR) }')" 12 30
    check 'of which the result tells' is "$(mode server .gap_us)" 20
}
gaps() { sed -n "s/^$1 sleep //p" "$log"; }

# How many placements, replays, rounds and sets of processes.
rule_modes_plan() {
    local i widths=
    built ok_relu relu64
    verified
    KP_FAKE_L2=10000000 moded
    check 'sixty-four placements are the most' is "$(mode offline '[.placements, .bytes, .beyond_l2] | join(" ")')" '64 2097152 false'
    check 'for both modes' is "$(mode server '[.placements, .bytes, .beyond_l2] | join(" ")')" '64 2097152 false'
    check 'in eighty rounds' is "$(mode offline .speedup.rounds) $(mode server .speedup.rounds)" '80 80'
    check 'in one set of processes' is "$(mode offline .speedup.processes), $(logged '^runner open')" '1, 1'
    KP_FAKE_L2=100000 moded fp32=30000
    check 'bursts of a slow contestant turn over fewer' is "$(mode offline '[.placements, .bytes, .beyond_l2, .replays] | join(" ")')" '3 98304 false 6'
    check 'what is served does not' is "$(mode server .placements)" 7
    moded candidate=60 fp32=80
    check 'one is enough where it exceeds the cache' is "$(mode offline '[.placements, .beyond_l2] | join(" ")')" '1 true'
    check 'a burst lasts two milliseconds' is "$(mode offline .replays)" 33
    moded candidate=45
    check 'short kernels are measured in eight sets of processes' is "$(mode offline .speedup.processes), $(logged '^runner open')" '8, 8'
    check 'with as many rounds' is "$(mode offline .speedup.rounds) $(mode server .speedup.rounds)" '80 80'
    for i in 1 2 3; do
        moded candidate=15 mood=0.2
        widths+="$(mode offline '.speedup | (.high - .low) / 2 / .ratio > 0.05') "
    done
    check 'the interval is over them' eval "[[ '$widths' == *true* ]]"
    KP_CELL_SECONDS=0.001 moded noise=0.1
    check 'five rounds where time is up' is "$(mode offline .speedup.rounds) $(mode server .speedup.rounds)" '5 5'
}

# What is wrong in a mode, though it is right behind a flush, has a verdict and no time.
rule_modes_verdicts() {
    built ok_finds_no_trace relu64
    verified
    moded
    check 'a kernel that is wrong where it ran before is wrong' moded_to wrong 'offline: a timed run is off by '
    check 'and has no times' is "$(of modes .modes)" null
    built ok_relu relu64
    verified
    swapped wrong_once -DRUN=$((3 + 14 + 3))
    KP_FAKE_L2=100000 moded
    check 'one wrong output at the end of a burst is enough, at any placement' moded_to wrong 'offline: '
    swapped wrong_once -DRUN=$((3 + 82 * 21 + 25))
    KP_FAKE_L2=100000 moded
    check 'so is one that is served' moded_to wrong 'server: '
    swapped wrong_once -DRUN=$((3 + 7 * 192 + 3))
    KP_FAKE_L2=10000000 KP_CELL_SECONDS=0.001 moded
    check 'even in a turn that is not finished' moded_to wrong 'server: '
    swapped ok_relu
    KP_FAKE_L2=100000 moded tampered=8 node=6
    check 'the graph of a burst is the tape, at each placement' moded_to tape 'offline: the rebuilt graph is not the tape: '
    KP_FAKE_L2=100000 moded tampered=3 node=1
    check 'as that of a replay is' moded_to tape 'the rebuilt graph is not the tape: '
    swapped keeps_state
    moded
    check 'module variables are looked at' moded_to wrong 'module variable runs'
    swapped takes_long -DMS=100
    KP_FAKE_L2=100000 KP_DEADLINE=1 moded
    check 'a burst has a deadline' moded_to timeout 'offline: no answer from the candidate process in 1 s'
    built one_off relu64
    verified
    moded
    check 'what was found wrong is not timed' moded_to wrong "$(of verify .reason)"
}
