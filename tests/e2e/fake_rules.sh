#!/bin/bash
# The rules of verify and time, one by one, on a pretend GPU (tests/fake): what would go
# unnoticed if a rule were lost.  fake.sh looks at verdicts and files.
# RULES='order controls' bash tests/e2e/fake_rules.sh checks those alone.  Needs CUDA's headers.
# uses: build/fake/verify build/fake/time build/fake/recorder build/fake/runner build/fake/baseline
# shellcheck disable=SC2154,SC2119,SC2120,SC2317  # out is lib.sh's; timed may go without arguments; check runs functions
. tests/e2e/lib.sh
. tests/fake/lib.sh
log=$scratch/log
export KP_CELL_SECONDS=10

# verified, timed [KNOB...] - run a step of the cell with these knobs; log and $out say what it did.
verified() { logged_step verify "$@"; }
timed() { logged_step time "$@"; }
logged_step() {
    rm -f "$log" "$cell.$1.json"
    step "$@" "log=$log"
}
# swapped KERNEL [-D...] - another kernel takes the place of the one that was verified.
swapped() {
    compiled "$1" "${cell##*/}" "${@:2}" && mv "$1.so" "$cell.cubin"
    jq --arg sha "$(sha256sum < "$cell.cubin" | cut -d' ' -f1)" '.cubin_sha256 = $sha' "$cell.verify.json" > edited
    cp edited "$cell.verify.json"
}
holds() { is "$(of "$1" "$2")" true; } # holds time '.harness.rounds > 30'
# flagged_with WORD - some flag begins with it.
flagged_with() { holds time ".flags | any(startswith(\"$1\"))"; }
flagged() { holds time ".flags | index(\"$1\") != null"; }
logged() { grep -cE -- "$1" "$log"; }

# ---- verify ---------------------------------------------------------------------------------

# Each kernel gets the verdict at its head, for the reason that is said there.
rule_verdicts() {
    local name
    for name in one_off half_written nan identity before_start past_scratch modifies_input modifies_input_by_force keeps_state \
        keeps_state_behind_scratch fails_to_launch wrong_once default_stream two_scratches two_recordings foreign_memset foreign_pointer ok_finds_no_trace; do
        built $name
        verified
        check "$name gets its verdict for its reason" ends verify "$(field expect $name)" "$(field reason $name)"
    done
    check 'two runs that find no trace agree' holds verify .deterministic
    built wrong_once
    verified
    check 'the numbers are those of the sample' reason verify \
        "$(printf 'the error is %.3g x the limit of class fp32 (declared inputs)' "$(of verify .error.candidate.declared.of_limit)")"
    for name in 4 5 8; do
        built wrong_once relu64 -DRUN=$name
        verified
        check "a sample that is wrong is enough: run $name" ends verify wrong 'but not when the same inputs are run again'
    done
    built one_off relu64
    verified
    check 'the first distribution that it misses is said' is "$(of verify '.missed.fp32 | keys_unsorted[0]')" declared
    check 'the evidence names the element' is "$(of verify '.evidence | "\(.index) \(.count) \(.of) \(.distribution)"')" '7 1 4096 declared'
}

# A job that is cancelled: its processes get the signal one by one.
rule_cancelled() {
    local name verify runner began
    built endless
    for name in TERM KILL INT HUP; do
        rm -f "$cell.verify.json"
        KP_DEADLINE=60 env --default-signal=INT "$bin/verify" "$json" "$cell" > "$out" 2>&1 &
        verify=$!
        for _ in $(seq 200); do sleep 0.05; runner=$(pgrep -P $verify -x runner) && break; done
        kill -s $name "$runner"
        sleep 0.05
        kill -s $name $verify
        wait $verify 2> /dev/null
        check "SIG$name: verify ends by it, too" is "$(kill -l $?)" $name
        check 'and says nothing of the kernel' [ ! -e "$cell.verify.json" ]
    done
    built kills_itself
    began=$EPOCHREALTIME
    verified
    check 'a kernel that ends its own runner has crashed' ends verify crash "$(field reason kills_itself)"
    check 'which is said a second later' [ $((${EPOCHREALTIME/[.,]/} - ${began/[.,]/})) -ge 1000000 ]
}

# How far off a kernel may be, over an output, in a part, in an element, on average.
rule_limits() {
    off 'all may be off by two roundings, up and down' ok -DEITHER=1.2e-7
    off 'not by five' wrong -DEITHER=3e-7
    check 'over the output, as it says' holds verify '.error.candidate.declared | (.rms > 4) and (.bias < 1) and (.element < 32)'
    off 'all may be off by one and a half the same way' ok -DEVERY=1e-7
    off 'not by two and a half' wrong -DEVERY=1.5e-7
    check 'on average, as it says' holds verify '.error.candidate.declared | (.bias > 2) and (.rms < 3)'
    off 'though up and down' ok -DEITHER=1.4e-7
    off 'an element may be off by 25' ok -DONE=1.5e-6
    off 'not by 160' wrong -DONE=1e-5
    check 'one of many' reason verify '1 of 4096 elements are off by more than 64 x what fp32 arithmetic does'
    check 'as it says' holds verify '.error.candidate.declared | (.element > 64) and (.element / 64 > .rms / 3) and (.element / 64 > .part / 16)'
    task=relu256
    off 'a part may be off by ten' ok -DEITHER=6e-7 -DUPTO=1024
    off 'not by twenty' wrong -DEITHER=1.2e-6 -DUPTO=1024
    check 'in a part, as it says' holds verify '.error.candidate.declared | (.part > 16) and (.rms < 3) and (.element < 64)'
}
# off WHAT VERDICT [-D...] - a kernel with this error gets this verdict.
off() {
    built ok_off "${task-relu64}" "${@:3}"
    verified
    check "$1" ends verify "$2"
}

# Which class a kernel gets: the first, from the most accurate on, whose limits it keeps.
rule_class() {
    built ok_matmul matmul8
    verified
    check 'float products are of class fp32' is "$(of verify .class)" fp32
    check 'which miss no class' is "$(of verify .missed)" '{}'
    check 'nor does the baseline of that class, and only that' is "$(of verify '.baseline_class | tojson')" '{"fp32":"fp32"}'
    check 'errors differ from run to run' errors_differ
    task matmul_signs '[]' 'y[8,8] = matmul(a, b)' 'a:[8,8]:signs()' 'b:[8,8]:signs()'
    built ok_matmul matmul_signs
    verified
    check 'nor one that keeps its limits on declared inputs alone' is "$(of verify '.baseline_class | tojson')" '{"fp32":"fp32"}'
    built ok_matmul matmul8 -DBLOCK
    verified
    check 'products that are accurate against the largest are of class fp32-normwise' is "$(of verify .class)" fp32-normwise
    check 'they miss fp32 where operands are scaled' holds verify '.missed | keys == ["fp32"] and .fp32.inner > 1'
    check 'only there' holds verify '.missed.fp32 | has("declared") | not'
    built ok_matmul_tf32 matmul8
    verified
    check 'products of rounded inputs are of class tf32' is "$(of verify .class)" tf32
    check 'they miss two classes' is "$(of verify '.missed | keys | join(" ")')" 'fp32 fp32-normwise'
    check 'by far' holds verify '.missed.fp32.declared > 20'
    check 'errors are in the spreads of their own class' holds verify '.error.candidate.declared.rms < 3'
    check 'the baselines are judged, too' holds verify '.error | .fp32.declared.rms < .tf32.declared.rms / 100'
    check 'each in the first class that it keeps' is "$(of verify '.baseline_class | tojson')" '{"fp32":"fp32","tf32":"tf32"}'
    timed
    check 'in time as in verify' ends time ok
    check 'which keeps the classes of baselines' is "$(of time '.baseline_class | tojson')" '{"fp32":"fp32","tf32":"tf32"}'
    check 'which keeps what was missed' is "$(of time '.missed | keys | join(" ")')" 'fp32 fp32-normwise'
    built ok_matmul matmul8 -DMOST=3e38f
    verified
    check 'who loses an infinity is not fp32' is "$(of verify '.class + " " + (.missed.fp32 | keys | join(" "))')" 'fp32-normwise infinite'
    timed
    check 'and is not compared with the baseline, which keeps it' ends time ok
    built ok_nondeterministic relu64
    verified
    check 'runs that differ are said to' is "$(of verify .deterministic)" false
}
errors_differ() {
    local first
    first=$(of verify .error.fp32)
    verified
    [ "$(of verify .error.fp32)" != "$first" ]
}

# Contents that the most accurate baseline cannot compute are left out, but for the declared ones.
rule_outside() {
    local all
    built ok_off relu64 -DTIMES=16.0f
    verified
    check 'an overflow that the baseline has not is an error' ends verify wrong '(large inputs)'
    verified skew=1000
    check 'one that it has is none' ends verify ok
    all='declared normal scaled rows columns outlier tiny infinite'
    check 'these contents alone are left out' is "$(of verify '.error.candidate | keys_unsorted | join(" ")')" "$all"
    timed
    check 'in time, too' ends time ok
    check 'by its controls' is "$(grep -oE '^time fill x \S+' "$log" | awk '{ print $4 }' | sort -u | paste -sd' ')" \
        'columns declared infinite normal outlier rows scaled tiny'
    built ok_off relu64 -DTIMES=16.0f
    verified skew=1.001
    check 'nor are large ones which it gets wrong' ends verify ok
    check 'others are judged, though it does' is "$(of verify '.error.candidate | keys_unsorted | join(" ")')" "$all"
    built one_off relu64
    verified skew=1e39
    check 'the declared never are' ends verify wrong '(declared inputs)'
}
# Two samples of the declared distribution and of infinities and one of each other, new ones each
# time.
rule_seeds() {
    local d
    built ok_relu relu64
    verified
    cp "$log" before
    for d in normal scaled rows columns outlier large tiny; do
        check "a sample is $d" is "$(grep "fill x $d " "$log" | sort -u | wc -l)" 1
    done
    check 'two are infinite' is "$(grep 'fill x infinite ' "$log" | sort -u | wc -l)" 2
    check 'two are declared, as are two recordings, two runs alike, and what the audit needs' is \
        "$(grep 'fill x declared' "$log" | sort -u | wc -l)" 7
    verified
    check 'no sample is drawn twice' is "$(grep -h ' fill ' "$log" before | sort -u | wc -l)" \
        "$(($(grep ' fill ' "$log" | sort -u | wc -l) + $(grep ' fill ' before | sort -u | wc -l)))"
    timed
    check 'each round has contents of its own' is "$(grep '^time fill' "$log" | sort | uniq -d)" ''
    built ok_foretells relu_ids
    verified
    check 'no sample tells another' ends verify ok
    timed
    check 'nor does a round' ends time ok
}

# Of large outputs the first sample of the declared distribution and outliers are judged whole; of
# the others slices are, and what is left is compared, but for rows and infinities.
rule_slices() {
    built ok_relu relu64
    verified some=1000
    check 'it is right in every way' ends verify ok
    check 'how much of each sample is judged' is "$(judged)" 'declared all, declared some compare, normal some compare, scaled some compare, rows some, columns some compare, outlier all, large some compare, tiny some compare, infinite some, infinite some, '
    verified
    check 'nothing is left where all are few' is "$(judged | grep -c 'some compare')" 0
}
# judged - of the samples that are given to the oracle: the distribution, and what is done.
judged() {
    awk '$2 == "fill" { if (how) printf "%s%s, ", of, how; of = $4; how = "" }
        $2 == "oracle" { how = " " $4 }
        $2 == "compare" && how { how = how " compare" }' "$log"
}

# What the task says of its inputs is looked at.
rule_audit() {
    built ok_relu relu64
    verified
    check 'of an honest task the audit has nothing to say' is "$(of verify '.audit | length')" 0
    check 'nor of what it can tell, where there are no products' is "$(of verify .telling)" null
    built ok_matmul matmul8
    verified
    check 'it can tell operands of 16 bits' holds verify '(.telling > 2) and (.audit | length == 0)'
    task signs '[]' 'y[8,8] = matmul(a, b)' 'a:[8,8]:signs():declared' 'b:[8,8]:signs():declared'
    built ok_matmul signs
    verified
    check 'but not where operands have few' holds verify '(.telling < 2) and (.audit | any(startswith("cannot-tell: operands of 16 bits")))'
    timed
    check 'which is flagged' flagged_with cannot-tell
    task zeros '[]' "$relu" 'x:[64,64]:uniform(-1,0)'
    built ok_relu zeros
    verified
    check 'outputs of zero are found' is "$(of verify '.audit | join("; ")')" \
        'degenerate: zeros pass; degenerate: the output of other contents passes; no-influence: x'
    timed
    check 'and flagged' is "$(of time '.flags == ["degenerate: zeros pass", "degenerate: the output of other contents passes", "no-influence: x"]')" true
    task zeros '["degenerate: output is 0"]' "$relu" 'x:[64,64]:uniform(-1,0)'
    timed
    check 'once the task says so, nothing more is' is "$(of time '.flags | join("; ")')" 'degenerate: output is 0'
    task same '[]' "$relu" 'x:[64,64]:uniform(1,1.0000001)'
    built ok_relu same
    verified
    check 'outputs that are always the same are found' is "$(of verify '.audit | join("; ")')" \
        'degenerate: the output of other contents passes; no-influence: x'
    built ok_foretells relu_ids
    verified
    check 'an input without influence is found' is "$(of verify '.audit | join("; ")')" 'no-influence: ids'
    timed
    check 'and flagged beside what the task says' is "$(of time '.flags | join("; ")')" 'unused: ids; no-influence: ids'
    task matmul_one '[]' 'y[8,8] = matmul(a, b)' 'a:[8,8]:uniform(0,1)' 'b:[8,8]:constant(1)'
    built ok_matmul matmul_one
    verified
    check 'a constant input has influence' is "$(of verify '.audit | length')" 0
}

# A kernel cannot tell verify from time: both ask for the same, at as many placements.
rule_alike() {
    built ok_relu relu64
    KP_FAKE_L2=1000 verified
    check 'every verified run is behind a flush of twice the cache, as timed runs are' is \
        "$(awk '/^runner launch/ && before != "runner flush 2000" { n++ } { before = $0 } END { print n + 0 }' "$log")" 0
    check 'and that behind a scrub' is "$(awk '/flush/ && before != "runner scrub 0" { n++ } { before = $0 } END { print n + 0 }' "$log")" 0
    check 'both replays for determinism are at one placement, and all are used' is \
        "$(grep -oE '^runner launch [1-9]' "$log" | sort | uniq -c | awk '{ print $1 }' | sort | tr '\n' ' ')" '1 1 1 1 2 2 2 3 '
    built ok_relu relu64 -DSCRATCH=67108864
    verified
    check 'or at one, where scratch is large' is "$(grep -oE '^runner launch [1-9]' "$log" | sort -u | wc -l)" 1
    timed
    check 'as in time' is "$(of time .speedup.placements)" 1
    built much_local relu64 -DLOCAL=65536
    verified
    check 'what is scrubbed is what a thread has' is "$(logged 'scrub 65536')" "$(($(logged 'flush') + 8))"
    built much_local
    verified
    check 'more cannot be' ends verify tape "$(field reason much_local)"
}

# The recorder's sandbox refuses what it should, and nothing that a kernel needs.
rule_sandbox() {
    built ok_locked_in
    verified
    check 'the sandbox holds' ends verify ok
    check 'all of it' is "$(of verify '.sandbox | map(. == true) | all')" true
}

# The runs of a kernel may take two deadlines together.
rule_patience() {
    built takes_long relu64 -DMS=300
    KP_DEADLINE=1 verified
    check 'verifying ends when the time is up' ends verify timeout "$(field reason takes_long) 2 s"
    built takes_long relu64 -DMS=100
    KP_DEADLINE=1 verified
    check 'where it does not take as long, it goes on' ends verify ok
    KP_DEADLINE=1 timed
    check 'but its time counts when timing' ends time timeout "$(field reason takes_long) 2 s"
    check 'which did not take that time again' [ "$(logged '^runner launch [1-9]')" -le 13 ]
}

# ---- time: what a round is ---------------------------------------------------------------------

# Contestants in the order in which they ran, without the baselines' first run.
ran_in_order() {
    awk -v skip="$1" '/^runner launch [1-9]/ { print "runner" } /^baseline run/ && ++n > skip { print $3 }' "$log"
}
# All runners, in random order, each behind a flush, at placements in turn.
rule_order() {
    built ok_relu relu64
    verified
    KP_FAKE_L2=1000 timed
    check 'both runners come first sometimes' is "$(ran_in_order 1 | paste - - | sort -u | tr '\t\n' ' ;')" 'fp32 runner;runner fp32;'
    check 'every timed run is behind a flush of twice the cache' is \
        "$(awk '/launch/ && before != $1 " flush 2000" { n++ } { before = $0 } END { print n + 0 }' "$log")" 0
    check 'placements take turns' is "$(grep -oE '^runner launch [1-9]' "$log" | sort | uniq -c | awk '{ print $1 }' | sort -n | tail -n 1)" \
        "$((($(logged '^runner launch [1-9]') + 7) / 8))"
    check 'two rounds at each placement go before each of two parts' is "$(logged '^runner launch [1-9]')" "$(of time '.harness.rounds + .harness.controls + 32')"
    built ok_matmul_tf32 matmul8
    verified
    KP_CELL_SECONDS=0.3 timed noise=0.1
    check 'each of three runners comes first sometimes' is "$(ran_in_order 2 | paste - - - | cut -f1 | sort -u | tr '\n' ' ')" 'fp32 runner tf32 '
}

# Every tenth round is on control inputs, more as long as some distribution has few; their times are
# compared.
rule_controls() {
    local i
    built ok_looks relu64
    verified
    timed noise=0.1
    check 'a tenth of the rounds are on control inputs' holds time '.harness.controls > 70 and .harness.controls < 200'
    for i in normal scaled rows columns outlier large tiny; do
        check "four or more are $i" [ "$(logged "^time fill x $i ")" -ge 4 ]
    done
    timed noise=0.02
    for i in normal scaled rows columns outlier large tiny; do
        check "a kernel that looks at its data is flagged: $i" flagged "control-ratio: $(printf '%.2f' "$(of time ".speedup.controls.$i")")x on $i inputs"
    done
    check 'by what those rounds take' holds time '.speedup | (.ratio > 0.97) and (.ratio < 1.03) and (.controls | all(. > 0.78 and . < 0.88))'
    built ok_looks relu64 -DDECLARED_US=540
    verified
    timed noise=0.02
    check 'up to 15 % are not' not flagged_with control-ratio
    check 'they are recorded' holds time '.speedup | .controls.rows / .ratio < 0.93'
    built ok_matmul matmul8
    verified
    for i in 1 2 3 4 5 6 7 8; do
        timed
        check 'rounds go on until each of eight distributions has its four' holds time '.harness.controls >= 32'
        check 'which comes soon' holds time '.harness.rounds <= 100'
    done
    jq 'del(.error.spread.rows)' "$cell.verify.json" > edited
    cp edited "$cell.verify.json"
    timed
    check 'what verify left out is no control' is "$(logged '^time fill a rows')" 0
    built ok_relu relu64
    verified
    swapped identity
    timed noise=0.1
    check 'a kernel that is wrong on control inputs alone is wrong' ends time wrong 'a timed run is off by '
    check 'by those' not reason time '(declared inputs)'
}

# One round in sixteen is judged by the oracle as verify does; of those on control inputs the first on
# each distribution, and one in four of the others.
rule_oracle() {
    local i
    built ok_relu relu64
    verified
    timed noise=0.1
    check 'a sixteenth of the rounds are judged by the oracle' among "$(rounds_of '^declared oracle')" 30 110
    check 'a quarter of those on control inputs' among "$((100 * $(rounds_of '^[^d].* oracle') / $(rounds_of '^[^d]')))" 15 55
    check 'in slices' is "$(logged '^time oracle of all')" 0
    for i in 1 2 3; do
        timed
        check 'and the first on each of eight control distributions' is \
            "$(oracle_rounds | awk '!seen[$1]++ && $1 != "declared" && $2' | wc -l)" 8
    done
    swapped ok_off -DEITHER=1.2e-7
    timed noise=0.1
    check 'what verify allows is allowed' ends time ok
    swapped ok_off -DEITHER=2.9e-7
    timed noise=0.1
    check 'what it does not is not, even where the baseline is near' ends time wrong 'x the limit of class fp32'
    swapped ok_off -DEVERY=1e-6
    timed noise=0.1 skew=1.000001
    check 'or agrees' ends time wrong 'x the limit of class fp32'
}

# oracle_rounds - the rounds of time: their distribution, and whether the oracle judged them.
oracle_rounds() {
    awk '$1 == "time" && $2 == "fill" { if (of) print of how; of = $4; how = "" }
        $1 == "time" && $2 == "oracle" { how = " oracle" }
        END { print of how }' "$log"
}
rounds_of() { oracle_rounds | grep -c "$1"; }
# among N LEAST MOST
among() { is "$1: $(($1 >= $2 && $1 <= $3))" "$1: 1"; }

# Every timed output is looked at.
rule_timed() {
    built ok_relu relu64
    verified
    swapped ok_off -DEITHER=1.2e-7
    timed
    check 'a timed run may be off as in verify' ends time ok
    swapped ok_off -DEVERY=-1e-7
    timed noise=0.1 skew=1.00000015
    check 'and the baseline to the other side' ends time ok
    swapped ok_off -DEITHER=1e-6
    timed
    check 'not by much more' ends time wrong 'the norm error over the whole output is too large'
    swapped ok_off -DONE=1e-6
    timed
    check 'an element may be off by more' ends time ok
    swapped ok_off -DONE=1e-4
    timed
    check 'as it says' ends time wrong '1 elements off'
    swapped before_start
    timed
    check 'canaries are looked at' ends time wrong 'bytes outside the bounds of out were written'
    swapped keeps_state
    timed
    check 'and module variables' ends time wrong 'module variable runs'
    built one_off relu64
    verified
    timed
    check 'what was found wrong is not timed' is "$(of time .reason)" "$(of verify .reason)"
    built ok_finds_no_trace relu64
    verified
    timed
    check 'nothing is left of the run before' ends time ok
    echo >> "$cell.tape"
    timed
    check 'the tape is the one that was verified' ends time tape 'the tape is not the one'
    built ok_relu relu64
    verified
    compiled ok_looks relu64 && mv ok_looks.so "$cell.cubin"
    timed
    check 'so is the cubin' ends time tape 'the cubin is not the one'
}

# The spreads on declared contents decide how far timed outputs may differ from the baseline's on
# those; on control inputs only the oracle has something to say.  It is the baseline that is off here.
rule_distributions() {
    built ok_relu relu64
    verified
    timed noise=0.1 skew=1.00001
    check 'a baseline that is off is seen' ends time wrong 'a timed run was wrong: '
    allow '!='
    timed noise=0.1 skew=1.00001
    check 'whatever other contents allow' ends time wrong 'a timed run was wrong: '
    verified
    allow '=='
    timed noise=0.1 skew=1.00001
    check 'where declared contents allow it, it is right' ends time ok
    swapped ok_off -DEVERY=1e-5
    timed noise=0.1 skew=1.00001
    check 'the oracle does not' ends time wrong 'x the limit of class fp32'
    built ok_relu relu64
    verified
    allow '==' 1000
    swapped ok_off -DTIMES=16.0f
    timed
    check 'an overflow that the baseline has not is an error' ends time wrong '(large inputs)'
    timed skew=1000
    check 'one that it has is none' ends time ok
}
# allow ==|!= [SIZE] - the spreads become large on declared contents, or on all others.
allow() {
    jq --argjson to "${2-0.001}" ".error.spread |= with_entries(if .key $1 \"declared\" then .value = {norm: \$to, element: \$to} else . end)" "$cell.verify.json" > edited
    cp edited "$cell.verify.json"
}

# ---- time: what is made of it ---------------------------------------------------------------------

# What is quoted, and against whom.
rule_against() {
    built ok_relu relu64
    verified
    timed candidate=400
    check 'the times are those between the events' is "$(of time '.time_us | .candidate.median, .fp32.median | round' | paste -sd' ')" '401 501'
    check 'never known better than the clock ticks' holds time '.time_us.candidate | .high - .low == 0.5'
    check 'the speedup is the baseline over the candidate' is "$(of time '.speedup | .against, (.ratio * 1000 | floor)' | paste -sd' ')" 'fp32 1249'
    check 'nothing is flagged' is "$(of time '.flags | length')" 0
    built ok_matmul_tf32 matmul8
    verified
    timed fp32=700 tf32=300
    check 'the fastest baseline counts' is "$(of time .speedup.against)" tf32
    timed fp32=300 tf32=700
    check 'whichever that is' is "$(of time .speedup.against)" fp32
    built ok_matmul matmul8
    verified
    timed fp32=700 tf32=300
    check 'as long as it is as accurate' is "$(of time .speedup.against)" fp32
    jq '.class = "fp32-normwise"' "$cell.verify.json" > edited
    cp edited "$cell.verify.json"
    timed fp32=700 tf32=300
    check 'or more accurate' is "$(of time .speedup.against)" fp32
}

# A flag for each thing that makes a number doubtful, and only then.
rule_flags() {
    built ok_relu relu64
    verified
    timed host=530
    check 'the host may see the end 20 us and 2 % late' not flagged 'clocks-disagree: the host waited longer'
    check 'its time is kept' is "$(of time '.time_us.candidate.host_median | round')" 530
    timed host=532
    check 'not later' flagged 'clocks-disagree: the host waited longer'
    timed event=120
    check 'five times an empty graph is long enough' not flagged latency-bound
    timed event=130
    check 'less is flagged' flagged latency-bound
    KP_CELL_SECONDS=0.001 timed noise=0.03
    check 'a ratio known to 5 % is good' not flagged noisy
    check 'time was too short for control inputs' flagged few-controls
    KP_CELL_SECONDS=0.001 timed noise=0.4
    check 'one that is not is noisy' flagged noisy
    KP_FAKE_RESTLESS=1 timed
    check 'a machine that is not quiet is flagged' flagged 'noisy: the machine was not quiet when measuring began'
    KP_FAKE_WEAK=1 timed
    check 'so is a weak baseline' flagged 'weak-baseline: a convolution without cuDNN'
    timed noise=0.1
    check 'honest noise makes no slow quarter' not flagged slow-quarter
    built ok_slow_fifth relu64
    verified
    timed noise=0.02
    check 'a kernel that is slow in every fifth replay has one' flagged slow-quarter
    check 'of this size' holds time '.speedup.slow_quarter | . > 0.25 and . < 0.4'
    built ok_nondeterministic relu64
    verified
    timed
    check 'and a kernel whose runs differ' flagged nondeterministic
}

# Rounds go on until the ratio is known to 0.3 %, or time is up.
rule_stop() {
    built ok_relu relu_fixed
    verified
    timed
    check 'thirty rounds are enough where all is steady' is "$(of time .harness.rounds)" 30
    check 'in one set of processes' is "$(logged '^runner open')" 1
    built ok_relu relu64
    verified
    timed noise=0.02
    check 'not where it is not' holds time '.harness.rounds >= 60'
    check 'but only until the ratio is known' holds time '.speedup | (.high - .low) / 2 <= 0.003 * .ratio'
    check 'which does not take forever' holds time '.harness.rounds < 1000'
    timed noise=0.5
    check 'a thousand rounds are the most' is "$(of time .harness.rounds)" 1000
    KP_CELL_SECONDS=0.01 timed noise=0.5
    check 'fewer where time is up' holds time '.harness.rounds < 500'
    task matmul_fixed '[]' 'y[8,8] = matmul(a, b)' 'a:[8,8]:uniform(0,1):declared' 'b:[8,8]:uniform(0,1):declared'
    built ok_matmul_tf32 matmul_fixed
    verified
    timed
    check 'thirty are enough for two baselines' is "$(of time .harness.rounds)" 30
    timed sway=0.02
    check 'not where the ratio to the second is not known' holds time '.harness.rounds >= 60'
    built ok_relu relu64
    verified
    timed
    check 'eight placements' is "$(of time .speedup.placements)" 8
}

# Short kernels feel the process they run in.
rule_short() {
    built ok_relu relu64
    verified
    KP_CELL_SECONDS=0.001 timed candidate=15
    check 'short kernels are measured in eight sets of processes' is "$(of time .speedup.processes)" 8
    check 'and some that are thrown away' is "$(logged '^runner open')" 9
    timed candidate=15 mood=0.2
    check 'or more, until the ratio is known' is "$(of time .speedup.processes)" 48
    check 'the interval is over processes' holds time '.speedup | (.high - .low) / 2 > 0.023 * .ratio'
}

# Times that cannot be, and times that hardly can.
rule_bounds() {
    built ok_relu relu64
    verified
    KP_FAKE_L2=16384 KP_FAKE_DRAM=33.4 timed
    check 'as fast as memory is possible' ends time ok
    KP_FAKE_L2=16384 KP_FAKE_DRAM=32.2 timed
    check 'faster is not' ends time impossible
    peaks copy_gbs=0.0645
    timed
    check 'within 2 % of the floor is believed' is "$(of time '.flags | length'), $(logged '^runner open')" '0, 1'
    check 'which the result holds' is "$(of time '[.floor_us, .floor_bytes_us] | map(round) | join(" ")')" '508 508'
    peaks copy_gbs=0.063
    timed
    check 'below it is measured again' is "$(logged '^runner open')" 2
    check 'and flagged' flagged below-floor
    built ok_matmul matmul8
    verified
    peaks f16_tflops=0.00006 tf32_tflops=0.00004 fp32_tflops=0.00001
    timed
    check 'fp32 may be three products of halves' is "$(of time '.floor_flops_us * 10 | round')" 512
    peaks f16_tflops=0.00003 tf32_tflops=0.00004 fp32_tflops=0.00002
    timed
    check 'or its own' is "$(of time '.floor_flops_us * 10 | round')" 512
    peaks f16_tflops=9.3e-7 tf32_tflops=1 fp32_tflops=1
    timed
    check 'as fast as the multipliers is possible' ends time ok
    peaks f16_tflops=8.9e-7 tf32_tflops=1 fp32_tflops=1
    timed
    check 'faster is not' ends time impossible
    task matmul128 '[]' 'y[8,8] = matmul(a, b)' 'a:[8,128]' 'b:[128,8]'
    built ok_matmul matmul128 -DK=128
    verified
    peaks read_gbs=0.1 copy_gbs=1
    timed
    check 'who hardly writes is bound by reading' is "$(of time '.floor_bytes_us | round')" 84
    built ok_matmul_tf32 matmul8
    verified
    peaks f16_tflops=0.00006 tf32_tflops=0.00004 fp32_tflops=0.00001
    timed
    check 'tf32 has a rate of its own' is "$(of time '.floor_flops_us * 10 | round')" 256
}

for rule in ${RULES-verdicts cancelled limits class outside seeds slices alike sandbox patience audit order controls oracle timed distributions against flags stop short bounds}; do "rule_$rule"; done
