# rules_verify.sh: the rules of verify, one function each.  Sourced by tests/e2e/fake_rules.sh.
# shellcheck shell=bash disable=SC2034,SC2154,SC2119,SC2120,SC2317

# Each kernel gets the verdict at its head, for the reason that is said there.
rule_verdicts() {
    local name
    for name in one_off half_written nan identity before_start past_scratch modifies_input modifies_input_by_force keeps_state \
        keeps_state_behind_scratch fails_to_launch wrong_once default_stream two_scratches two_recordings foreign_memset foreign_pointer bad_tensor_map asks_driver ok_tensor_map ok_finds_no_trace; do
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
        check 'which is no evidence' is "$(of verify .evidence)" null
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
    check 'the evidence has the seed, and no element' holds verify \
        '.evidence | .distribution == "declared" and (.seed | test("^[0-9a-f]{16}$")) and .index == null'
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
    check 'who misses it on declared inputs is judged on no others' is "$(of verify '.error | "\(.tf32 | keys | join(" ")), \(.fp32 | length)"')" 'declared, 10'
    check 'errors differ from run to run' errors_differ
    task matmul_signs '[]' 'y[8,8] = matmul(a, b)' 'a:[8,8]:signs()' 'b:[8,8]:signs()'
    built ok_matmul matmul_signs
    verified
    check 'who keeps it there is judged on all' is "$(of verify '.error | (.tf32 | length) == (.fp32 | length)')" true
    check 'and is not of it by the declared alone' is "$(of verify '.baseline_class | tojson')" '{"fp32":"fp32"}'
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
    built ok_off relu64 -DEVERY=1e-4 -DABOVE=1000
    verified
    check 'what the kernel gets wrong is an error' ends verify wrong
    verified skew=1.00006
    check 'and none where the baseline is as wrong' ends verify ok
    check 'which is said' holds verify '.excused.scaled > 1'
    check 'there alone nothing is judged' holds verify '.class == "fp32" and (.error.candidate | has("normal") and has("tiny") and (has("scaled") | not))'
    timed skew=1.00006
    check 'in time, too' holds time '.verdict == "ok" and .excused.scaled > 1'
    verified skew=1.00001
    check 'who is more than twice as wrong is wrong' ends verify wrong
    built ok_off relu64 -DEVERY=1e-4 -DABOVE=1000 -DONCE=3
    verified skew=1.00006
    check 'what is wrong once elsewhere has no second chance' ends verify wrong '(declared inputs)'
    built ok_matmul matmul8 -DOFF=0.05
    verified skew=1.05
    check 'a baseline that is far less accurate than fp32 excuses nobody' ends verify wrong
    built ok_relu relu64
    verified
    swapped ok_off -DEVERY=1e-4 -DABOVE=1000
    timed
    check 'in time, too, it is an error' ends time wrong
    timed skew=1.00006
    check 'and none where the baseline is as wrong' ends time ok
    built ok_matmul matmul8
    verified skew=1.05
    check 'nobody is excused of what he gets right' is "$(of verify .excused)" '{}'
    check 'who is right has its class beside such a baseline' ends verify ok
    swapped ok_matmul -DOFF=0.05
    timed skew=1.05
    check 'which excuses nobody in time' ends time wrong
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
    check 'how much of each sample is judged' is "$(judged)" 'declared all, declared some compare, normal some compare, scaled some compare, rows some, columns some compare, outlier some compare, large some compare, tiny some compare, infinite some, infinite some, '
    verified
    check 'nothing is left where all are few' is "$(judged | grep -c 'some compare')" 0
}
# judged - of the samples that are given to the oracle: the distribution, and what is done.
judged() {
    awk '$2 == "fill" { if (how) printf "%s%s, ", of, how; of = $4; how = "" }
        $2 == "oracle" { how = " " ($4 == 16777216 ? "some" : $4) }
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
    task far '[]' 'p[8,8] = matmul(a, b)' 'a:[8,8]' 'b:[8,8]'
    jq '.graph += ["y[8,8] = clamp(p; min=1000)"]' tasks/fake/far.json > far && mv far tasks/fake/far.json
    missing far
    verified
    check 'where usual inputs hide them others are tried' holds verify '(.telling > 2) and (.audit | any(startswith("cannot-tell")) | not)'
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
    task first '[]' 'y[16]:i64 = argmax(x; dim=1)' 'x:[16,32]:constant(1):declared'
    built ok_argmax first
    verified
    check 'zeros that are right are found' is "$(of verify '.audit | join("; ")')" \
        'degenerate: zeros pass; degenerate: the output of other contents passes'
    task masked '[]' 'y[64,64] = mul(x, m)' 'x:[64,64]' 'm:[64,64]:lower(constant(1)):declared'
    missing masked
    verified
    check 'a mask that can be no other is not asked for' holds verify '.verdict == "missing" and .audit == []'
    built ok_foretells relu_ids
    verified
    check 'a small input without influence is none of its business' is "$(of verify '.audit | join("; ")')" ''
    timed
    check 'what the task says of it is flagged' is "$(of time '.flags | join("; ")')" 'unused: ids'
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
