#!/bin/bash
# harness/inspect/profile and its build/replay, with a pretend ncu on the pretend GPU: what is
# profiled, what is made of ncu's table, and what is said where there can be none.
# Needs CUDA's headers.
# uses: build/fake/verify build/fake/time build/fake/recorder build/fake/runner build/fake/baseline build/fake/replay
# shellcheck disable=SC2154  # out is lib.sh's
. tests/e2e/lib.sh

bin=${KP_FAKE_BIN-$root/build/fake}
cuda=$real_cuda
if ! [ -e "$bin/verify" ] || ! [ -e "$cuda/include/cuda.h" ]; then
    skip 'profiles on a pretend GPU' 'no CUDA headers here'
    exit
fi
cd "$scratch" || exit
out=$scratch/out
mkdir -p harness/inspect build/h200 tasks/fake bin
cp "$root"/harness/inspect/profile{,.jq} harness/inspect/
ln -s "$bin/replay" build/replay
export KP_DEADLINE=20 LD_LIBRARY_PATH=$bin KP_FAKE_PROFILER=$scratch/events NCU=$scratch/bin/ncu
unset NCUFLAGS KP_PROFILE_SECONDS

# ---- A verified kernel ------------------------------------------------------------------

# One that leaves a line whenever it runs.
cat > kernel.c <<'KERNEL'
#include "kernels/kernel.h"
#include <stdio.h>

KERNEL(relu, 8, 8) {
    FILE *f = fopen(EVENTS, "a");
    if (f) fputs("relu\n", f), fclose(f);
    relu_of(PARAM(0, const float *), PARAM(1, float *), COUNT);
}

LAUNCH {
    start_usual(&relu, in, out, stream);
}
KERNEL
json=tasks/fake/relu64.json cell=build/h200/relu64
x='{"name":"x","shape":[64,64],"dtype":"f32","fill":"uniform(0,1)","domain":"real"}'
jq -n --argjson x "$x" '{schema: 1, task: "relu64", suite: "fake", title: "relu", source: "a test", inputs: [$x],
    parameters: [], graph: ["y[64,64] = relu(x)"], outputs: ["y"], notes: [], flags: []}' > $json
verified() {
    rm -f $cell.* build/h200/profile.said
    gcc -std=gnu11 -O1 -shared -fPIC -DCOUNT=4096 -DEVENTS="\"$scratch/events\"" -I"$root/tests/fake" -isystem "$cuda/include" \
        -o $cell.so kernel.c -L"$bin" -lcudart -lm || exit
    cp $cell.so $cell.cubin
    echo '{"schema":1,"verdict":"ok","reason":null,"kernel":{"path":"a.cu","sha256":"0"}}' > $cell.build.json
    "$bin/verify" $json $cell > "$out" 2>&1 || cat "$out"
    rm -f events
}

# ---- A pretend ncu ------------------------------------------------------------------------

# Keeps its arguments, runs what it is given, and writes table.csv to the log.  ncu.refuses
# holds a metric that it does not know, ncu.says what it complains of.
cat > bin/ncu <<'NCU'
#!/bin/bash
[ "$1" != --version ] || { printf 'NVIDIA (R) Nsight Compute Command Line Profiler\nVersion 2025.3.1.0 (build 1)\n'; exit; }
printf '%s\n' "$@" > argv
echo run >> runs
while [ $# -gt 0 ]; do
    case $1 in
    --log-file) log=$2 ;; --metrics) metrics=$2 ;;
    --csv | --profile-from-start | --graph-profiling | --page | --print-units | --cache-control | --clock-control) ;;
    *) [[ $1 != */replay ]] || break ;;
    esac
    shift
done
for m in $(cat ncu.refuses 2> /dev/null); do
    [[ ,$metrics, != *,$m,* ]] || { echo "==ERROR== Failed to find metric $m" > "$log"; exit 1; }
done
echo "==PROF== Connected to process 7" > "$log"
[ ! -e ncu.hangs ] || sleep 30
"$@"
status=$?
[ ! -e ncu.says ] || { cat ncu.says >> "$log"; exit 1; }
[ $status = 0 ] || exit 1
cat table.csv >> "$log"
echo "==PROF== Disconnected from process 7" >> "$log"
NCU
chmod +x bin/ncu

# table NAME=VALUE... - ncu's table of one launch with these metrics, in nanoseconds, bytes, %.
row() { # row ID KERNEL VALUE...
    printf '"%s","7","replay","127.0.0.1","%s","1","13","(256, 1, 1)","(4096, 1, 1)","0","9.0"' "$1" "$2"
    shift 2
    printf ',"%s"' "$@"
    echo
}
heads() {
    printf '"ID","Process ID","Process Name","Host Name","Kernel Name","Context","Stream","Block Size","Grid Size","Device","CC"'
    printf ',"%s"' "$@"
    echo
    printf '"","","","","","","","","","",""'
    for m; do case $m in *pct*) u=% ;; gpu__time*) u=ns ;; dram__bytes*) u=byte ;; *) u= ;; esac; printf ',"%s"' "$u"; done
    echo
}
stall() { echo "smsp__average_warps_issue_stalled_$1_per_issue_active.ratio"; }
time=gpu__time_duration.sum
compute=sm__throughput.avg.pct_of_peak_sustained_elapsed
memory=gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed
dram=gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed
names=("$time" "$compute" "$memory" "$dram" dram__bytes_read.sum "$(stall long_scoreboard)" "$(stall barrier)"
    smsp__average_warp_latency_per_inst_issued.ratio sm__warps_active.avg.pct_of_peak_sustained_active
    sm__maximum_warps_per_active_cycle_pct launch__registers_per_thread launch__occupancy_limit_registers
    launch__occupancy_limit_shared_mem launch__occupancy_limit_warps launch__occupancy_limit_blocks)
# usual COMPUTE MEMORY - one launch.
usual() {
    { heads "${names[@]}"; row 0 'relu(const float *, float *)' 3,012,345 "$1" "$2" 90.8 6,442,450,944 12.34 1.5 15.25 48.2 50 168 2 7 8 32; } > table.csv
}
profile() { harness/inspect/profile $json $cell > "$out" 2>&1; }
of() { jq -r "$1" $cell.profile.json; }
fails() { [ "$2" = "$1" ] || { echo "exit status $2, not $1"; return 1; }; }
sentence() { of ".sentences[$1]" | grep -qF -- "$2" || { of ".sentences[$1]"; return 1; }; }
none() { [ ! -e $cell.profile.json ] && [ -z "$(find build/h200 -mindepth 1 -name 'relu64.??????')" ]; }

# ---- What is run ------------------------------------------------------------------------------

verified
cp $cell.verify.json before
usual 12.04 91.3
profile
check 'a verified kernel is profiled' fails 0 $?
check 'its sentences are printed' grep -qE '^h200/relu64: Memory at 91\.3 % .*: memory-bound\. A warp waits' "$out"
check 'and what was left out, and no more' is "$(wc -l < "$out")" 2
check 'the tape is replayed once, with the profiler on' is "$(tr '\n' ' ' < events)" 'on relu off '
check 'ncu leaves the clocks alone' grep -qx none <(grep -x -A1 -e --clock-control argv)
check 'and sees the replay alone' grep -qx off <(grep -x -A1 -e --profile-from-start argv)
check 'it runs build/replay' is "$(tail -n 3 argv | tr '\n' ' ')" "build/replay $json $cell "
check 'the verdict is as it was' cmp before $cell.verify.json
check 'nothing else is left' is "$(echo build/h200/*)" "$(printf 'build/h200/%s ' profile.said relu64.{build.json,cubin,profile.json,so,tape,verify.json} | sed 's/ $//')"

# ---- What is made of it -----------------------------------------------------------------------

check 'the tool is named' is "$(of .tool)" 'ncu 2025.3.1.0 (build 1)'
check 'numbers are numbers' is "$(of ".metrics[\"$time\"].value")" 3012345
check 'with their unit' is "$(of ".metrics[\"$time\"].unit, .metrics[\"$memory\"].unit" | tr '\n' ' ')" 'ns % '
check 'what is not a metric is left out' is "$(of '.metrics | has("CC")')" false
check 'the launch is described' is "$(of '.kernels[0] | .name, .grid, .block' | tr '\n' ' ')" 'relu(const float *, float *) (4096, 1, 1) (256, 1, 1) '
check 'and the binary' is "$(of .cubin_sha256)" "$(sha256sum < $cell.cubin | cut -d' ' -f1)"
check 'what ncu did not give is named' is "$(of '.left_out | index("lts__t_sector_hit_rate.pct") != null')" true
check 'two sentences' is "$(of '.sentences | length')" 2
check 'memory above compute is memory-bound' sentence 0 'Memory at 91.3 % of its peak (DRAM 90.8 %), compute at 12 %: memory-bound.'
check 'the longest wait' sentence 1 'A warp waits longest for data from global or local memory (long_scoreboard): 12.34 of the 15.25 cycles'
check 'and the limit of occupancy' sentence 1 'occupancy is 48.2 %, at most 50 %, as registers allow 2 blocks on a multiprocessor (168 registers a thread).'
for case in '91.3 12 compute-bound.' '59.9 59.9 latency-bound, neither is busy.' '60 59.9 compute-bound.' '60 60 bound by both.'; do
    # shellcheck disable=SC2086  # a list
    set -- $case
    usual "$1" "$2"
    profile
    check "compute $1, memory $2: ${*:3}" sentence 0 "%: ${*:3}"
done
{
    heads $time $memory $compute
    row 0 'first "one"' 1,000 10 20 | sed 's/first "one"/first ""one""/'
    row 1 second 3000 n/a nan
} > table.csv
profile
check 'of two launches the longer is described' is "$(of '.of, .launches' | tr '\n' ' ')" 'second 2 '
check 'and how much of the time it takes' is "$(of '.kernels[1].share')" 0.75
check 'quotation marks are read' is "$(of '.kernels[0].name')" 'first "one"'
check 'n/a is no number' is "$(of ".metrics | keys | join(\" \")")" $time
check 'without numbers there is no sentence' is "$(of '.sentences | length')" 0

# ---- Where it cannot be -------------------------------------------------------------------------

usual 12 91
echo 'lts__t_sector_hit_rate.pct smsp__average_warps_issue_stalled_gmma_per_issue_active.ratio' > ncu.refuses
rm -f runs $cell.profile.json
profile
check 'metrics that ncu does not know are left out' is "$(of '.left_out | index("lts__t_sector_hit_rate.pct") != null')" true
check 'the others are kept' is "$(of ".metrics[\"$memory\"].value")" 91
check 'after one more run for each' is "$(wc -l < runs)" 3
rm ncu.refuses

denied='==ERROR== ERR_NVGPUCTRPERM - The user does not have permission to access NVIDIA GPU Performance Counters on the target device 0.'
echo "$denied" > ncu.says
rm -f $cell.profile.json
profile
check 'no permission for the counters is no error' fails 0 $?
check 'but is said in one line' lines 1 '^profile: no permission .*ERR_NVGPUCTRPERM'
check 'and in no other' is "$(wc -l < "$out")" 1
check 'there is no profile then' none
sleep 0.1
printf 'all: a b\na b:; @harness/inspect/profile %s %s\n' $json $cell > two.mk
# A make of its own: not one below that which runs the tests, to which what it says would belong.
# Arguments: what runs it.
# shellcheck disable=SC2016  # for the other shell
alone() {
    rm -f ended
    setsid --fork "$@" sh -c 'make -s -f two.mk > "$1" 2>&1; : > ended' sh "$out"
    for _ in $(seq 200); do [ ! -e ended ] || return 0; sleep 0.05; done
}
alone
check 'in one run of make it is said once' is "$(wc -l < "$out")" 1
sleep 0.1
alone
check 'and in the next again' is "$(wc -l < "$out")" 1
if comma_locale; then
    sleep 0.1
    alone "${comma[@]}"
    check 'also where a decimal has a comma' is "$(wc -l < "$out")" 1
else
    skip 'what is said in another locale' 'no sources of de_DE.UTF-8 here'
fi
echo '==ERROR== The application returned an error code (9).' > ncu.says
profile
check 'another failure of ncu is no error' fails 0 $?
check 'its words are shown' lines 1 '^profile: ncu fails: ==ERROR== The application returned'
check 'there is no profile then, either' none
rm ncu.says
touch ncu.hangs
KP_PROFILE_SECONDS=1 profile
check 'nor is an ncu that does not end' fails 0 $?
check 'which is said' lines 1 '^profile: h200/relu64: ncu did not end in 1 s'
rm ncu.hangs
printf '==WARNING== No kernels were profiled.\n' > table.csv
profile
check 'no launch is no error' fails 0 $?
check 'and said' lines 1 '^profile: ncu saw no launch: ==WARNING== No kernels were profiled.'
NCU=$scratch/bin/no-such-ncu profile
check 'no ncu is no error' fails 0 $?
check 'and said in one line' lines 1 '^profile: no ncu here'
check 'and one only' is "$(wc -l < "$out")" 1

# ---- Which kernel ----------------------------------------------------------------------------------

usual 12 91
profile
check 'there is a profile again' [ -s $cell.profile.json ]
NCU=$scratch/bin/no-such-ncu profile
check 'it outlives a lack of ncu' [ -s $cell.profile.json ]
sed -i 's/fputs("relu/fputs("other/' kernel.c
cp $cell.profile.json kept
verified
cp kept $cell.profile.json
NCU=$scratch/bin/no-such-ncu profile
check 'but not another kernel' none
echo >> $cell.cubin
profile
check 'a binary that is not the verified one is not profiled' lines 1 'relu64\.cubin: not the file that was verified'
check 'and has no profile' none
verified
jq '.verdict = "wrong"' $cell.verify.json > wrong && cp wrong $cell.verify.json
echo '{}' > $cell.profile.json
profile
check 'a kernel that is wrong is not profiled' fails 0 $?
check 'which is said' lines 1 'h200/relu64: not profiled: its verdict is wrong'
check 'and has no profile, either' none
"$bin/replay" $json $cell > "$out" 2>&1
check 'nor is it replayed' fails 3 $?
check 'for the reason that is said' lines 1 '^replay: .*the kernel is not right'
rm $cell.verify.json
profile
check 'before verification there is nothing to profile' fails 3 $?
check 'which is said in one line, at the end' lines 1 'relu64\.verify\.json: cannot be read; verify first'
