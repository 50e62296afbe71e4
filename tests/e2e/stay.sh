#!/bin/bash
# verify and time as processes that stay, one cell after another (harness/measure/stay.h), on a
# pretend GPU: what is shared, what is not, and when they end.
# uses: build/stay build/fake/verify build/fake/time build/fake/recorder build/fake/runner build/fake/baseline
# shellcheck disable=SC2154,SC2030,SC2031  # out is lib.sh's; a subshell's variables are its own
. tests/e2e/lib.sh
. tests/fake/lib.sh
export KP_CELL_SECONDS=2 KP_STAY=100 NOT_FOR_OTHERS=secret

# A copy of the programs is its own: nobody else's process serves it.
cp -r "$bin" bin && bin=$PWD/bin
export LD_LIBRARY_PATH=$bin CUDA_VISIBLE_DEVICES="log=$scratch/log vendor=1"
step() { "$root/build/stay" "$bin/$1" "$json" "$cell" > "$out" 2>&1; }
staying() { pgrep -f "^$bin/$1 --stay" | sort -n | paste -sd' '; }
# running PROGRAM - the processes of a program of ours.
running() { find /proc/[0-9]*/exe -lname "$bin/$1" 2> /dev/null | cut -d/ -f3 | paste -sd' '; }
# until_ N PROGRAM - so many of its processes run; waits a while.
until_() {
    local i
    for i in $(seq 200); do
        [ "$(running "$2" | wc -w)" = "$1" ] && return 0
        sleep 0.1
    done
    ps -o pid,args -p "$(running "$2")"
    return 1
}
opened() { sed -n 's/ open$//p' "$scratch/log" | sort | uniq -c | awk '{ printf "%s%s %d", s, $2, $1; s = ", " }'; }
fails() { [ "$2" = "$1" ] || { echo "exit status $2, not $1"; return 1; }; }

# ---- One cell after another ------------------------------------------------------------------

for kernel in ok_relu one_off ok_matmul crash_host; do
    built "$kernel"
    step verify
    check "$kernel: verify succeeds" fails 0 $?
    check "$kernel: the verdict is what it is in a process of its own" is "$(of verify .verdict)" "$(field expect "$kernel")"
    step time
    check "$kernel: time succeeds" fails 0 $?
    check "$kernel: and says the same" is "$(of time '.verdict, .reason')" "$(of verify '.verdict, .reason')"
    if [ "$kernel" = ok_matmul ]; then opened > three; fi
done
check 'what runs a candidate is started for each cell, the others once; a recorder is ahead, and a runner each' is \
    "$(cat three)" 'baseline 2, recorder 4, runner 7, time 1, verify 1'
one=$(staying time)
check 'one process stays' eval "[[ '$one' =~ ^[0-9]+$ ]]"
built ok_relu
step verify
step time
check 'it serves on' is "$(staying time)" "$one"
check 'baselines wait for it' is "$(pgrep -f "^baseline" -P "$one" | wc -l)" 2
check 'a recorder waits for the next cell' until_ 1 recorder
waiting=$(running recorder)
built ok_relu
step verify
check 'it records that' eval "[ $(of verify .verdict) = ok ] && ! ps -p $waiting > /dev/null"
until_ 1 recorder
# shellcheck disable=SC2046  # a list
kill -9 $(running recorder)
until_ 0 recorder # one that is still dying would be taken for one that waits
built ok_relu
step verify
check 'where it has died, another does' is "$(of verify .verdict)" ok
until_ 2 runner
# shellcheck disable=SC2046  # a list
kill -9 $(running runner)
until_ 0 runner
step verify && step time
check 'so do other runners' is "$(of time .verdict)" ok
check 'it has no secrets' eval "! grep -qa secret /proc/$one/environ"
check 'nothing of the terminal' is "$(ps -o sid= -p "$one" | tr -d ' ')" "$one"

# ---- The shapes of one kernel ------------------------------------------------------------------

# shape KERNEL TASK [-D...] - a cell of a kernel that is that of the whole suite.
shape() {
    built "$@"
    echo "{\"schema\":1,\"verdict\":\"ok\",\"reason\":null,\"kernel\":{\"path\":\"optimized/portable/${suite:-fake}.cu\",\"sha256\":\"$1\"}}" > "$cell.build.json"
    step verify && step time
}
# logged_of PROGRAM - how many of it have opened the driver since the log was emptied.
logged_of() { grep -c "^$1 open$" "$scratch/log"; }
shape ok_relu relu64
: > "$scratch/log"
first=$(running runner)
for task in relu10 relu256 relu64; do
    shape ok_relu "$task"
    check "the shape $task is right" is "$(of verify .verdict) $(of time .verdict)" 'ok ok'
done
check 'shapes share the runners of their kernel' is "$(logged_of runner) $(running runner)" "0 $first"
check 'each is recorded by a process of its own' is "$(logged_of recorder)" 3
for i in 1 2 3; do KP_FAKE_MEMORY=$(((1 << 30) + (72 << 20))) shape ok_relu relu64; done
check 'they take no more memory than one' is "$(of time .verdict)" ok
shape ok_matmul matmul8
check 'another kernel has others' is "$(of time .verdict) $(logged_of runner)" 'ok 2'
shape one_off relu64
shape ok_relu relu64
other=$(running runner)
suite=another shape ok_relu relu64
check 'a kernel that is not that of its suite shares none' is "$(comm -12 <(tr ' ' '\n' <<< "$other" | sort) <(running runner | tr ' ' '\n' | sort))" ''
shape one_off relu64
check 'a wrong shape leaves none' is "$(of time .verdict) $(running runner | wc -w)" 'wrong 2'
shape wrong_once relu64 -DRUN=1000
before=$(running runner | tr ' ' '\n' | sort)
shape wrong_once relu64 -DRUN=16
check 'nor does one that is wrong when it is timed' is \
    "$(of verify .verdict) $(of time .verdict) $(comm -12 <(echo "$before") <(running runner | tr ' ' '\n' | sort) | wc -l)" "ok wrong $(($(wc -l <<< "$before") - 1))"

# ---- One library call ---------------------------------------------------------------------------

built ok_relu
step verify
first=$(of verify .choices)
: > "$scratch/log"
step verify
check 'each cell has a search of its own' eval "[[ '$(of verify .choices)' =~ ^lt_tuned_tn\ [0-9.]+$ && '$(of verify .choices)' != '$first' ]]"
check 'its times are shown' is "$(of verify '.vendor_us | tojson')" '{"cublas_nn":3,"lt_tuned_tn":2}'
step time
check 'by time, too' is "$(of time '.vendor_us | tojson')" '{"cublas_nn":3,"lt_tuned_tn":2}'
check 'what was judged is what is timed, by the judge and by the runner' is \
    "$(grep vendor "$scratch/log" | sort)" "baseline vendor takes $(of verify .choices)
time vendor takes $(of verify .choices)
verify vendor finds $(of verify .choices)"

# ---- Memory comes back -----------------------------------------------------------------------

built ok_relu
for i in 1 2 3 4 5 6; do
    KP_FAKE_MEMORY=$(((1 << 30) + (72 << 20))) step verify # its own part is 1 GiB, and 71 MiB what is compared
    KP_FAKE_MEMORY=$(((1 << 30) + (72 << 20))) step time
done
check 'six cells take no more memory than one' is "$(of time .verdict)" ok
check 'nor more descriptors' eval "[ $(find "/proc/$(staying time)/fd" | wc -l) -lt 40 ]"

# ---- Who asks is who it is for -----------------------------------------------------------------

built ok_relu
step verify
KP_INPUTS='{"task":"0123"}' step time
check 'the variables of who asks count' is "$(of time .inputs.task)" 0123
step time
check 'and only for this cell' is "$(of time .inputs)" null
mkdir -p elsewhere && cp -r tasks build elsewhere && rm -f elsewhere/"$cell".{verify,time}.json
mv build away
(cd elsewhere && step verify && step time)
mv away build
check 'so does the folder' is "$(jq -r .verdict "elsewhere/$cell.time.json")" ok
echo '{' > broken.json
"$root/build/stay" "$bin/verify" broken.json "$cell" > "$out" 2>&1
status=$?
check 'a broken task fails as it does elsewhere' is "$status" "$(KP_STAY=0 "$root/build/stay" "$bin/verify" broken.json "$cell" 2> alone; echo $?)"
check 'with the same words' diff alone "$out"
step verify
check 'and the next cell is served' fails 0 $?
"$root/build/stay" "$bin/time" > "$out" 2>&1
check 'wrong arguments are, too' fails 2 $?
built ok_relu && step verify && step time &
first=$!
(built ok_matmul && step verify && step time && [ "$(of time .verdict)" = ok ])
check 'one waits while another is served' fails 0 $?
wait $first
check 'and both are' fails 0 $?

# A pipe ends with the cell, though processes stay that had it open; and a path means what it means here.
built ok_relu
step verify
piped=$(timeout 50 "$root/build/stay" "$bin/time" "$json" "$cell" 2>&1 | cat; echo "${PIPESTATUS[0]}")
check 'who waits for the end of its output does not wait for them' is "$piped" 0
mkdir -p other/tasks/fake && cp -r build other && sed 's/64,64/64, 64/' "$json" > "other/$json" && mv "$json" away
(cd other && step verify && step time && [ "$(of time .verdict)" = ok ])
check 'a baseline that another folder has left reads the task of this one' fails 0 $?
mv away "$json"

for wrong in x 1.5 -1 10s 999999999999; do
    KP_STAY=$wrong step verify
    check "KP_STAY=$wrong is a wrong command line" fails 2 $?
    check 'in one line' is "$(grep -c "^stay: KP_STAY=$wrong: a whole number of seconds is expected$" "$out") $(grep -c . "$out")" '1 1'
done
for wrong in KP_DEADLINE=x KP_DEADLINE=0 KP_DEADLINE=nan KP_CELL_SECONDS=5s KP_CELL_SECONDS=-1 KP_CELL_SECONDS=1e9; do
    for stays in 0 100; do
        (export "${wrong?}" KP_STAY=$stays && step verify)
        check "$wrong is a wrong command line" fails 2 $?
        check 'in one line, too' is "$(grep -c "^stay: $wrong: a positive number of seconds is expected$" "$out") $(grep -c . "$out")" '1 1'
    done
done
KP_DEADLINE='' KP_CELL_SECONDS=0.5 step verify
check 'an empty one is none, and it may be a fraction' [ $? = 0 ]

# ---- When it ends -------------------------------------------------------------------------------

# shellcheck disable=SC2046  # a list
kill -9 $(staying time) $(staying verify)
until_ 0 recorder
built ok_relu
KP_STAY=2 step verify && KP_STAY=2 step time
until_ 0 time
check 'nobody asks for a while: it ends' is "$(staying time)" ''
check 'and its baselines' until_ 0 baseline
until_ 0 verify
check 'and the recorders ahead' until_ 0 recorder
check 'and the runners' until_ 0 runner
flock lock "$root/build/stay" "$bin/verify" "$json" "$cell" > "$out" 2>&1
check 'the next stays without the lock on the GPU that it was started under' eval "flock -n lock true && [ -n '$(staying verify)' ]"
before=$(staying verify)
cp "$bin/baseline" "$bin/other" && mv "$bin/other" "$bin/baseline"
step verify
check 'a program that is built again is another' eval "[ -n '$before' ] && [ '$before' != \"\$(staying verify | sed 's/^$before //; s/ $before$//')\" ]"
# shellcheck disable=SC2086  # a list
kill -9 $before
built endless
: > "$scratch/log"
KP_DEADLINE=30 "$root/build/stay" "$bin/verify" "$json" "$cell" > "$out" 2>&1 &
asking=$!
for i in $(seq 300); do grep -q '^runner launch' "$scratch/log" && break; sleep 0.1; done
serving=$(staying verify)
ran=$(pgrep -P "${serving// /,}" -x runner | paste -sd,)
kill -9 $asking
wait $asking 2> /dev/null
for i in $(seq 200); do ps -p "$ran" > /dev/null || break; sleep 0.1; done
check 'who asked is killed: so is what it ran' eval "[ -n '$ran' ] && ! ps -p '$ran'"
check 'and it has left no verdict' [ ! -e "$cell.verify.json" ]
built ok_relu
step verify
check 'the next who asks is served by another' eval "[ $(of verify .verdict) = ok ] && [ '$serving' != \"\$(staying verify)\" ]"
built ok_relu
step verify
serving=$(staying time)
kill -9 "$(staying verify)" "$serving" 2> /dev/null
step verify
check 'one that was killed is not missed' fails 0 $?
# shellcheck disable=SC2046  # a list
kill -9 $(staying verify) $(staying time) 2> /dev/null

echo "$passed passed, $failed failed"
[ $failed = 0 ]
