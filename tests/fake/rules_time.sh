# rules_time.sh: the rules of time, one function each.  Sourced by tests/e2e/fake_rules.sh.
# shellcheck shell=bash disable=SC2034,SC2154,SC2119,SC2120,SC2317

# ---- time: what a round is ---------------------------------------------------------------------

# Contestants in the order in which they ran on declared inputs, without the baselines' first run.
ran_in_order() {
    awk -v skip="$1" '/^time fill/ { declared = $4 == "declared" } /^baseline run/ && ++n <= skip || !declared { next }
        /^runner launch [1-9]/ { print "runner" } /^baseline run/ { print $3 }' "$log"
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
    KP_CELL_SECONDS=1 timed noise=0.1
    check 'where the seconds went adds up' holds time '.harness | ([.seconds[]] | add) - .wall_seconds | fabs < 0.06'
    check 'replays and the oracle took some' holds time '.harness.seconds | .replays > 0.005 and .oracle > 0.002 and .referee > 0.005'
    check 'verify says where they went, too' is "$(of verify '.seconds | keys | join(" ")')" 'audit end memory oracle recording referee replays runners start'
    check 'each of three runners comes first sometimes' is "$(ran_in_order 2 | paste - - - | cut -f1 | sort -u | tr '\n' ' ')" 'fp32 runner tf32 '
}

# Every tenth round is on control inputs, more as long as some distribution lacks its two, in which the
# kernel runs alone. Where it takes another time, baselines run beside it in four more.
rule_controls() {
    local i
    built ok_looks relu64
    verified
    for i in 1 2 3 4 5 6 7 8; do
        timed
        check 'a kernel that takes another time on control inputs has five of each' is \
            "$(grep -oE '^time fill x [a-z]+' "$log" | sort | uniq -c | awk '$1 >= 5 && $5 != "declared"' | wc -l)" 8
        check 'in four of which the baseline runs at least' [ "$(logged '^baseline run fp32')" -ge "$(of time '.harness.rounds + 32')" ]
    done
    timed noise=0.1
    check 'a tenth of the rounds are on control inputs' holds time '.harness.controls > 70 and .harness.controls < 200'
    for i in normal scaled rows columns outlier large tiny; do
        check "four or more are $i" [ "$(logged "^time fill x $i ")" -ge 4 ]
    done
    KP_CELL_SECONDS=0.001 timed
    check 'where time is too short for that, it is said' flagged few-controls
    timed noise=0.02
    check 'and only there' not flagged few-controls
    for i in normal scaled rows columns outlier large tiny; do
        check "a kernel that looks at its data is flagged: $i" [ "$(of time '.flags[]' | grep -cE "^control-ratio: 0\.(7[89]|8[0-8])x on $i inputs$")" = 1 ]
    done
    check 'by what those rounds take' holds time '.speedup | (.ratio > 0.97) and (.ratio < 1.03) and (.controls | all(. > 0.78 and . < 0.88))'
    built ok_looks relu64 -DDECLARED_US=540
    verified
    timed noise=0.02
    check 'up to 15 % are not' not flagged_with control-ratio
    check 'they are recorded' holds time '.speedup.controls | all(. > 0.87 and . < 0.93)'
    built ok_matmul matmul8
    verified
    for i in 1 2 3 4 5 6 7 8; do
        timed
        check 'rounds go on until each of eight distributions has its two' holds time '.harness.controls >= 16 and .harness.controls < 32'
        check 'which comes soon' holds time '.harness.rounds <= 70'
    done
    for i in fp32 tf32; do check "on them no baseline runs, since the time is the same: $i" is "$(logged "^baseline run $i")" "$(of time '.harness.rounds + 33')"; done
    check 'which is recorded' holds time '.speedup.controls | length >= 8 and all(. > 0.95 and . < 1.05)'
    built ok_matmul matmul8 -DLOOKS
    verified
    timed
    check 'where it differs, the baseline that is quoted runs' [ "$(logged '^baseline run fp32')" -ge "$(of time '.harness.rounds + 33 + 4')" ]
    check 'and no lesser one' is "$(logged '^baseline run tf32')" "$(of time '.harness.rounds + 33')"
    built ok_matmul matmul8
    verified
    timed
    check "the referee's own runs while warming up" is "$(logged '^time run fp32')" 32
    check 'or a lesser one ever' is "$(logged '^time run tf32')" 0
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
    check 'the evidence has the contents' reason time "$(of time '"(\(.evidence.distribution) inputs): over the output"')"
    check 'the element' reason time "$(of time '.evidence | "; \(.count) elements, first at \(.index): "')"
    check 'and the seed' holds time '.evidence.seed | test("^[0-9a-f]{16}$")'
}

# One round in sixteen is judged by the oracle as verify does; of those on control inputs the first on
# each distribution, and one in two of the others.
rule_oracle() {
    local i
    built ok_relu relu64
    verified
    timed noise=0.1
    check 'a sixteenth of the rounds are judged by the oracle' among "$(rounds_of '^declared oracle')" 30 110
    check 'half of those on control inputs' among "$((100 * $(rounds_of '^[^d].* oracle') / $(rounds_of '^[^d]')))" 35 80
    check 'in slices of 2^24 elements' is "$(logged '^time oracle of 16777216$') of $(logged '^time oracle of')" "$(of time .harness.oracle_checks) of $(of time .harness.oracle_checks)"
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
    local i
    built ok_relu relu64
    verified
    swapped ok_off -DEITHER=1.2e-7
    timed
    check 'a timed run may be off as in verify' ends time ok
    check "all of the kernel's are compared, all runners' while warming up" is "$(logged '^time compare')" "$(of time '.harness.rounds + 2 * 32')"
    swapped ok_off -DEVERY=-1e-7
    timed noise=0.1 skew=1.00000015
    check 'and the baseline to the other side' ends time ok
    check 'for which the oracle is not asked' is "$(logged '^time oracle of all$')" 0
    swapped ok_off -DEITHER=1e-6
    timed
    check 'not by much more' ends time wrong 'over the output 17'
    check 'which the oracle says, of all of that sample' is "$(logged '^time oracle of all$')" 2
    swapped ok_off -DONE=1e-6
    timed
    check 'an element may be off by more' ends time ok
    swapped ok_off -DONE=1e-4
    timed
    check 'as it says' ends time wrong '; 1 elements, first at '
    jq '.error.spread |= {declared}' "$cell.verify.json" > edited && cp edited "$cell.verify.json"
    for i in 41 42 43 44 45 46; do
        swapped wrong_once -DRUN=$i
        timed
        check 'one run that counts is enough' ends time wrong '; 1 elements, first at '
        timed
        check 'before the baseline and after it: the order is by lot' ends time wrong '; 1 elements, first at '
    done
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
# those without being judged whole; on control inputs only the oracle has something to say.  It is the
# baseline that is off here.
rule_distributions() {
    built ok_relu relu64
    verified
    timed noise=0.1 skew=1.00001
    check 'where the baseline is off the oracle judges the sample' [ "$(logged '^time oracle of all$')" -gt 100 ]
    check 'and the kernel is right' ends time ok
    allow '!='
    timed noise=0.1 skew=1.00001
    check 'whatever other contents allow' [ "$(logged '^time oracle of all$')" -gt 100 ]
    verified
    allow '=='
    timed noise=0.1 skew=1.00001
    check 'but not where declared contents allow it' is "$(logged '^time oracle of all$')" 0
    verified
    allow '==' 1e-12
    swapped ok_off -DEITHER=1.2e-7
    timed noise=0.1
    check 'a sample with larger spreads than those before is right, too' ends time ok
    check 'and those that follow may be as far off' among "$(logged '^time oracle of all$')" 1 5
    jq '.error.spread.declared.norm = 1' "$cell.verify.json" > edited && cp edited "$cell.verify.json"
    timed noise=0.1 skew=1.000003
    check 'or farther, where those before were' among "$(logged '^time oracle of all$')" 1 5
    swapped ok_off -DEVERY=1e-5
    timed noise=0.1
    check 'but what is wrong is not right by this' ends time wrong 'x the limit of class fp32'
    built ok_relu relu64
    verified
    allow '=='
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
    KP_INPUTS='{"harness":"H"}' timed candidate=400
    check 'the result says of what, and of which class' is "$(of time '.inputs.harness, .kernel.path, .class' | paste -sd' ')" 'H a.cu fp32'
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
    timed sway=0.1
    check 'a time is the mean of the middle half' holds time '.time_us.tf32 | (.midmean - 501 | fabs) < 25 and (.median - 501 | fabs) > 40'
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
    KP_CELL_SECONDS=0.001 timed noise=0.4
    check 'one that is not is noisy' flagged noisy
    KP_FAKE_RESTLESS=1 timed
    check 'a machine that is not quiet is flagged' flagged 'noisy: the machine was not quiet when measuring began'
    KP_FAKE_THROTTLE=thermal timed
    check 'so is a GPU that heat slows' flagged 'throttled: thermal'
    KP_FAKE_THROTTLE='power cap' timed
    check 'its power cap is its own' not flagged 'throttled: power cap'
    KP_FAKE_WEAK=1 timed
    check 'so is a weak baseline' flagged 'weak-baseline: a convolution without cuDNN'
    timed noise=0.1
    check 'honest noise makes no slow quarter' not flagged slow-quarter
    built ok_slow_fifth relu64
    verified
    timed noise=0.02
    check 'a kernel that is slow in every fifth replay has one' flagged slow-quarter
    check 'of this size' holds time '.speedup.slow_quarter | . > 0.15 and . < 0.42'
    built ok_nondeterministic relu64
    verified
    timed
    check 'and a kernel whose runs differ' flagged nondeterministic
}

# Rounds go on until the ratio is known to 0.3 %, of long kernels 0.5 %, or time is up.
rule_stop() {
    built ok_relu relu_fixed
    verified
    timed candidate=190
    check 'thirty rounds are enough where all is steady' is "$(of time .harness.rounds)" 30
    check 'in one set of processes' is "$(logged '^runner open')" 1
    timed candidate=210
    check 'twenty of a long kernel' is "$(of time .harness.rounds)" 20
    built ok_relu relu64
    verified
    timed noise=0.02 candidate=190
    check 'not where it is not' holds time '.harness.rounds >= 60'
    check 'but only until the ratio is known' holds time '.speedup | (.high - .low) / 2 <= 0.003 * .ratio'
    check 'which does not take forever' holds time '.harness.rounds < 1000'
    timed noise=0.02 candidate=210
    check 'of a long kernel it need not be known as well' holds time '.speedup | (.high - .low) / 2 / .ratio | . > 0.003 and . <= 0.005'
    timed noise=0.5
    check 'a thousand rounds are the most' is "$(of time .harness.rounds)" 1000
    KP_CELL_SECONDS=0.01 timed noise=0.5
    check 'fewer where time is up' holds time '.harness.rounds < 500'
    task matmul_fixed '[]' 'y[8,8] = matmul(a, b)' 'a:[8,8]:uniform(0,1):declared' 'b:[8,8]:uniform(0,1):declared'
    built ok_matmul_tf32 matmul_fixed
    verified
    timed
    check 'twenty are enough for two baselines' is "$(of time .harness.rounds)" 20
    timed sway=0.02
    check 'not where the ratio to the second is not known' holds time '.harness.rounds >= 60'
    built ok_matmul matmul_fixed
    verified
    timed sway=0.02
    check 'one that is not quoted need not be known' is "$(of time .harness.rounds)" 20
    built ok_relu relu64
    verified
    timed
    check 'eight placements' is "$(of time .speedup.placements)" 8
}

# abreast - the most runners that have started since one was last asked.
abreast() { awk '$1 == "runner" && $2 == "open" && ++n > most { most = n } $1 == "runner" && $2 == "flush" { n = 0 } END { print most }' "$log"; }
# Short kernels feel the process they run in.
rule_short() {
    built ok_relu relu64
    verified
    KP_CELL_SECONDS=0.001 timed candidate=45
    check 'short kernels are measured in eight sets of processes' is "$(of time .speedup.processes)" 8
    check 'the first of them are those that probed' is "$(logged '^runner open')" 8
    check 'four of them start side by side' is "$(abreast)" 4
    KP_FAKE_MEMORY=2700000000 KP_CELL_SECONDS=0.001 timed candidate=45
    check 'or as many as there is room for' is "$(abreast) of $(logged '^runner open')" '2 of 8'
    KP_CELL_SECONDS=0.001 timed candidate=55
    check 'others in one' is "$(of time .speedup.processes)" 1
    timed candidate=15 mood=0.2
    check 'or more, until the ratio is known' is "$(of time .speedup.processes)" 48
    check 'each in its own mood, which two may have by chance' holds time '.time_us.candidate.samples | unique | length >= 44'
    check 'the interval is over processes' holds time '.speedup | (.high - .low) / 2 > 0.023 * .ratio'
}

# A task may ask for less than all others.
rule_precision() {
    task relu_vague '[]' "$relu" 'x:[64,64]'
    jq '.precision = 0.05' tasks/fake/relu_vague.json > vague && mv vague tasks/fake/relu_vague.json
    built ok_relu relu_vague
    verified
    timed noise=0.01 candidate=190 # more would sometimes have a control measured beside the baseline
    check 'thirty rounds are enough for a task that asks for little' is "$(of time .harness.rounds)" 30
    KP_CELL_SECONDS=0.001 timed candidate=45
    check 'and four sets of processes' is "$(of time .speedup.processes)" 4
    timed candidate=15 mood=0.12
    check 'or more, until it has that' holds time '.speedup | .processes < 48 and (.high - .low) / 2 <= 0.05 * .ratio'
    timed candidate=15 mood=0.4
    check 'or as many as others' is "$(of time .speedup.processes)" 48
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
    peaks f16_tflops=1e-9 fp32_tflops=1e-9
    timed
    check 'what is no product has a floor of bytes alone' is "$(of time '.floor_flops_us, (.flags | length)' | paste -sd' ')" '0 0'
    built ok_relu relu_ids
    verified
    peaks copy_gbs=0.0645 read_gbs=0.0645
    timed
    check 'nor do bytes that are not used count' is "$(of time '.floor_bytes_us | round')" 508
    built ok_slower_later relu64
    verified
    peaks copy_gbs=0.063
    rm first && timed
    check 'a time that fresh processes find slower is no longer below it' is "$(of time '.flags | length'), $(of time '.time_us.candidate.median | round'), $(logged '^runner open')" '0, 701, 2'
    built ok_matmul matmul8
    verified
    peaks f16_tflops=2e-6 fp32_tflops=1e-6
    timed
    check 'the larger of both floors counts' is "$(of time '.floor_us, .floor_flops_us | round' | paste -sd' ')" '1024 1024'
    check 'for the flag, too' flagged below-floor
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
    check 'what is read beyond what is written moves at the read rate' is "$(of time '.floor_bytes_us | round')" 80
    built ok_matmul_tf32 matmul8
    verified
    peaks f16_tflops=0.00006 tf32_tflops=0.00004 fp32_tflops=0.00001
    timed
    check 'tf32 has a rate of its own' is "$(of time '.floor_flops_us * 10 | round')" 256
}

# A cell without a kernel: its baselines are judged and timed, and no kernel is said to be anything.
rule_missing() {
    local d
    for d in relu64 matmul8 layer_norm; do
        missing $d
        verified
        check "$d: without a kernel verify judges the baselines" ends verify missing 'no kernel here'
        check 'each gets its class' is "$(of verify '.baseline_class.fp32')" fp32
        check 'nothing is said of a kernel' is "$(of verify '[.class, .error.candidate, .launches, .evidence] | map(. == null) | all')" true
        check 'on every distribution' is "$(of verify '.error.fp32 | keys - ["inner"] | join(" ")')" 'columns declared infinite large normal outlier rows scaled tiny'
        check 'nothing is recorded or replayed' is "$(logged '^(recorder|runner) ')" 0
        timed
        check 'time times them' ends time missing 'no kernel here'
        check 'against the floor' holds time '(.time_us.fp32.midmean > 0) and .floor_us > 0 and .machine.peaks != null'
        check 'with as many rounds as a kernel has' holds time '(.time_us.fp32.samples | length) >= 20'
        check 'and no time or speedup of a kernel' is "$(of time '[.time_us.candidate, .speedup, .class] | map(. == null) | all')" true
        check 'nor rounds on control inputs' is "$(of time .harness.controls)" 0
        check 'nor a flag of one' is "$(of time '.flags | join(" ")')" ''
    done
    missing matmul8
    verified
    timed
    check 'of products both baselines are timed' is "$(of time '.time_us | keys | join(" ")')" 'fp32 tf32'
    check 'each in one process' is "$(logged '^baseline open')" 2
    check 'as often as a baseline is in twenty rounds' is "$(of time .harness.rounds) $(logged '^baseline run fp32')" '20 53'
    missing matmul8
    verified skew=1.0002
    check 'one that is less accurate is of its own class' is "$(of verify .baseline_class.fp32)" tf32
    timed skew=1.0002 sway=0.02
    check 'no ratio need be known then' is "$(of time .harness.rounds)" 20
    for _ in 1 2 3 4 5 6; do # one round in sixteen is judged
        timed skew=1.0002
        check 'and is timed as such' ends time missing
    done
    missing zeros_missing
    verified
    timed
    check 'what the audit finds of the task is flagged' flagged 'degenerate: zeros pass'
    missing relu64
    verified skew=1e39
    check 'a baseline that is wrong makes no kernel wrong' ends verify missing
    verified skew=1.001
    check 'nor is one of no class' is "$(of verify '.verdict + (.baseline_class | tojson)')" 'missing{}'
    for _ in 1 2 3 4 5 6; do
        timed skew=1.001
        check 'not in time, either' ends time missing
    done
    jq '.verdict = "missing" | del(.baselines_alone)' "$cell.build.json" > edited && cp edited "$cell.build.json"
    verified
    check 'an attempt without a kernel measures nothing' is "$(of verify .error) $([ ! -e "$log" ] || cat "$log")" 'null '
}
# missing TASK - a cell for which `build` found no kernel.
missing() {
    [ "$1" != zeros_missing ] || task "$1" '[]' "$relu" 'x:[64,64]:uniform(-1,0)'
    cell=build/missing/$1 json=tasks/fake/$1.json
    mkdir -p "${cell%/*}"
    rm -f "$cell".*
    echo '{"schema":1,"verdict":"missing","reason":"no kernel here","kernel":{"path":null},"baselines_alone":true}' > "$cell.build.json"
    peaks
}

# What does not fit into the GPU's memory is skipped, with what it needs and what is there.
rule_memory() {
    built ok_relu relu64
    verified oracle_bytes=9e9
    check 'an oracle that does not fit is skipped' ends verify skipped 'needs at least 10.1 GB of GPU memory, 8.6 GB are free'
    verified baseline_bytes=11e9
    check 'so is a baseline' ends verify skipped 'needs at least 12.1 GB of GPU memory, 8.6 GB are free'
    verified
    timed baseline_bytes=11e9
    check 'in time, too' ends time skipped 'GB of GPU memory, 8.6 GB are free'
    timed baseline_bytes=8e9
    check 'and one that has no room beside the referee' ends time skipped 'needs at least 17.1 GB of GPU memory, 8.6 GB are free'
    check 'before anything runs' is "$(logged '^runner launch')" 0
    KP_FAKE_MEMORY=1000000000 timed
    check 'nor have the processes themselves' ends time skipped 'needs at least 1.1 GB of GPU memory, 1.0 GB are free'
    timed baseline_bytes=4e9
    check 'where there is room, it is measured' ends time ok
    missing relu64
    verified
    timed baseline_bytes=4e9
    check 'without a kernel, too' ends time missing
    timed baseline_bytes=8e9
    check 'or else skipped' ends time skipped 'GB of GPU memory, 8.6 GB are free'
}

# Each buffer is a file descriptor at each placement.
rule_descriptors() {
    built ok_relu relu64
    (ulimit -Sn 24 && verified && timed)
    check 'a soft limit on descriptors is raised' ends time ok
    rm "$cell".{verify,time}.json
    (ulimit -n 40 && verified)
    check 'a hard one is the machine'"'"'s fault' exits 4 $?
    check 'which one line says, with both numbers' lines 1 '^verify: 25 buffers need 89 file descriptors, the limit is 40: raise it'
    check 'and leaves no verdict' [ ! -e "$cell.verify.json" ]
}
exits() { [ "$2" -eq "$1" ] || { echo "exit $2, not $1"; return 1; }; }
