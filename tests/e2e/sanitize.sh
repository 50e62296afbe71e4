#!/bin/bash
# harness/inspect/sanitize, with a pretend compute-sanitizer on the pretend GPU: what is run, what is
# made of the tools' summaries, what is said where there is no verdict, checks at a smaller
# size, and the variant for racecheck.  Needs CUDA's headers.
# uses: build/fake/verify build/fake/time build/fake/recorder build/fake/runner build/fake/baseline build/fake/replay build/task
# shellcheck disable=SC2154  # out is lib.sh's
. tests/e2e/lib.sh

bin=${KP_FAKE_BIN-$root/build/fake}
cuda=$real_cuda
if ! [ -e "$bin/verify" ] || ! [ -e "$bin/replay" ] || ! [ -e "$cuda/include/cuda.h" ]; then
    skip 'sanitizers on a pretend GPU' 'no CUDA headers here'
    exit
fi
cd "$scratch" || exit
out=$scratch/out
mkdir -p harness/{compile,inspect} build/h200 tasks/fake bin optimized/include
cp "$root"/harness/inspect/{sanitize,shrink,shrink.jq} harness/inspect/
for p in replay verify recorder runner; do ln -s "$bin/$p" build/$p; done
ln -s "$root/build/task" build/task
export KP_DEADLINE=20 LD_LIBRARY_PATH=$bin KP_FAKE_PROFILER=$scratch/events SANITIZER=$scratch/bin/compute-sanitizer
unset SANITIZERFLAGS NVCCFLAGS KP_SANITIZE_SECONDS SMALL KP_SMALL_MB KP_SMALL_GFLOP KP_SMALL_TRIES KP_REPLAY

# ---- A verified kernel ------------------------------------------------------------------

# One that leaves a line whenever it runs: what lay in the output.
cat > kernel.c <<'KERNEL'
#include "kernels/kernel.h"
#include <stdio.h>

KERNEL(relu, 8, 8) {
    FILE *f = fopen(EVENTS, "a");
    const float *old = PARAM(1, const float *);
    bool poisoned = old[100] == old[200] && (old[100] > 1e15f || old[100] < -1e15f);
    if (f) fprintf(f, "relu %s\n", poisoned ? "poisoned" : "bare"), fclose(f);
    relu_of(PARAM(0, const float *), PARAM(1, float *), COUNT);
}

LAUNCH {
    start_usual(&relu, in, out, stream);
}
KERNEL
json=tasks/fake/relu64.json cell=build/h200/relu64
# task NAME GRAPH SHAPE... - a task with these inputs, x0 and so on.
task() {
    local name=$1 graph=$2
    shift 2
    jq -n --arg name "$name" --arg graph "$graph" '{schema: 1, task: $name, suite: "fake", title: "a task", source: "a test",
        inputs: [$ARGS.positional | to_entries[] | {name: "x\(.key)", shape: .value, dtype: "f32", fill: "uniform(0,1)", domain: "real"}],
        parameters: [], graph: ($graph | split(" | ")), outputs: [$graph | split(" | ")[-1] | split("[")[0]], notes: [], flags: []}' \
        --jsonargs "$@" > "tasks/fake/$name.json"
}
task relu64 'y[64,64] = relu(x0)' '[64,64]'

# What stands for the compiler: TASK.json OUT ARCHS KERNEL.  compile.fails holds a verdict,
# compile.variant that of the variant, compile.least the fewest elements that are not refused.
cat > harness/compile/compile <<COMPILE
#!/bin/bash
elements=\$(jq '.inputs[0].shape | .[0] * .[1]' "\$1")
echo "\$*\${NVCCFLAGS:+ \$NVCCFLAGS}" >> compiled
[ ! -e compile.dies ] || { echo 'compile: no nvcc' >&2; exit 4; }
verdict=\$(cat compile.fails 2> /dev/null) || verdict=ok
[[ ! -e compile.variant || "\$NVCCFLAGS" != *-DKP_RACECHECK ]] || verdict=\$(cat compile.variant)
[ ! -e compile.least ] || [ \$elements -ge \$(cat compile.least) ] || verdict=build
gcc -std=gnu11 -O1 -shared -fPIC -DCOUNT=\$elements -DEVENTS='"$scratch/events"' \$NVCCFLAGS -MMD -MF depends \\
    -Ioptimized/include -I"$root/tests/fake" -isystem "$cuda/include" -o "\$2.so" "\$4" -L"$bin" -lcudart -lm || exit 4
echo "\$2.build.json: \$(grep -o 'optimized/include/[^ ]*' depends | tr '\n' ' ')" > "\$2.d"
cp "\$2.so" "\$2.cubin"
jq -n --arg verdict "\$verdict" --arg path "\$4" '{schema: 1, verdict: \$verdict, reason: (if \$verdict == "ok" then null else "because" end),
    kernel: {path: \$path, sha256: "07", arch: "sm_90a"}}' > "\$2.build.json"
COMPILE
chmod +x harness/compile/compile
verified() {
    rm -f $cell.*
    harness/compile/compile $json $cell 90a kernel.c || exit
    "$bin/verify" $json $cell > "$out" 2>&1 || cat "$out"
    rm -f events compiled
}

# ---- A pretend compute-sanitizer --------------------------------------------------------

# Keeps its arguments and what concerns the replay, runs what it is given, and writes log.TOOL
# to the log.  Its exit status is the target's, else that of its findings.
cat > bin/compute-sanitizer <<'TOOL'
#!/bin/bash
[ "$1" != --version ] || { printf 'NVIDIA (R) Compute Sanitizer\nCopyright (c) 2020-2025 NVIDIA Corporation\n%s\n' "$(cat version)"; exit; }
printf '%s\n' "$@" > argv
code=0
while [ $# -gt 0 ]; do
    case $1 in
    --tool) tool=$2 ;; --log-file) log=$2 ;; --error-exitcode) code=$2 ;;
    --report-api-errors | --padding | --print-limit) ;;
    */replay) break ;;
    *) echo "unrecognised option '$1'"; exit 1 ;;
    esac
    shift 2
done
echo "$tool $KP_REPLAY" >> runs
[ ! -e hangs ] || sleep 30
[ ! -e deaf ] || { trap '' TERM; sleep 30; sleep 30; }
[ ! -e killed ] || kill -9 $$
if [ -e says ]; then cat says; exit 1; fi
"$@"
status=$?
{ echo '========= COMPUTE-SANITIZER'; cat "log.$tool"; } > "$log"
[ $status = 0 ] || { echo '========= Target application returned an error' >> "$log"; exit $status; }
! grep -qE 'SUMMARY: [1-9]' "$log" || exit "$code"
TOOL
chmod +x bin/compute-sanitizer
echo 'Version 2025.3.1.0 (build 36400806) (public-release)' > version
log() { # log TOOL LINE... - what it will say
    local tool=$1
    shift
    printf '========= %s\n' "$@" > "log.$tool"
}
clean() {
    log memcheck 'ERROR SUMMARY: 0 errors'
    log initcheck 'ERROR SUMMARY: 0 errors'
    log synccheck 'ERROR SUMMARY: 0 errors'
    log racecheck 'RACECHECK SUMMARY: 0 hazards displayed (0 errors, 0 warnings)'
}
sanitize() { harness/inspect/sanitize $json $cell "$@" > "$out" 2>&1; }
of() { jq -r "$1" $cell.sanitize.json; }
tool() { of ".tools.$1 | [.verdict, .errors, .warnings, .reason] | map(tostring) | join(\" \")"; }
fails() { [ "$2" = "$1" ] || { echo "exit status $2, not $1"; return 1; }; }
one() { lines 1 "$1" && is "$(wc -l < "$out")" 1; }
none() { [ ! -e $cell.sanitize.json ] && [ -z "$(find build/h200 -mindepth 1 -name 'relu64.??????')" ]; }

# ---- What is run ------------------------------------------------------------------------------

clean
verified
cp $cell.verify.json before
sanitize
check 'a verified kernel is checked' fails 0 $?
check 'which is one line' one '^h200/relu64: memcheck clean; racecheck clean$'
check 'by memcheck and racecheck' is "$(sed 's/ .*//' runs | tr '\n' ' ')" 'memcheck racecheck '
check 'which see exact allocations' is "$(sed 's/.* //' runs | tr '\n' ' ')" 'exact exact '
check 'each replays the tape once' is "$(grep -c relu events)" 2
check 'with nothing in what it is to write' is "$(grep -c bare events)" 2
rm events
"$bin/replay" $json $cell
check 'unlike for a profiler' is "$(grep relu events)" 'relu poisoned'
check 'of build/replay' is "$(tail -n 3 argv | tr '\n' ' ')" "build/replay $json $cell "
check 'findings have an exit status of their own' grep -qx 99 <(grep -x -A1 -e --error-exitcode argv)
check 'the verdict of the kernel is as it was' cmp before $cell.verify.json
check 'nothing else is left' is "$(echo build/h200/*)" "$(printf 'build/h200/%s ' relu64.{build.json,cubin,d,sanitize.json,so,tape,verify.json} | sed 's/ $//')"
check 'each tool has its verdict' is "$(tool memcheck), $(tool racecheck)" 'clean 0 0 null, clean 0 0 null'
check 'and its time' is "$(of '.tools.memcheck.seconds | type')" number
check 'the result says of what' is "$(of '[.schema, .task, .gpu, .kernel.path, .kernel.sha256] | map(tostring) | join(" ")')" '1 relu64 h200 kernel.c 07'
check 'of which binary' is "$(of .cubin_sha256)" "$(sha256sum < $cell.cubin | cut -d' ' -f1)"
check 'by which tool' is "$(of .tool_version)" 2025.3.1.0
echo 'Version 2024.3.0.0 (public-release)' > version
rm -f runs
sanitize initcheck synccheck
check 'other tools run where they are named' is "$(sed 's/ .*//' runs | tr '\n' ' ')" 'initcheck synccheck '
check 'and no others are in the result' is "$(of '.tools | keys | join(" ")')" 'initcheck synccheck'
check 'options of memcheck are for it alone' not grep -qxE -e '--report-api-errors|--padding' argv
sanitize memchek
check 'a tool that there is not is an error' fails 2 $?
check 'which is said in one line' one '^sanitize: usage: '
KP_SANITIZE_SECONDS=soon sanitize
check 'so is a limit that is no number' fails 2 $?

# ---- What is made of findings -------------------------------------------------------------------

log memcheck 'Invalid __global__ read of size 4 bytes' '    at relu(const float *, float *)+0x70 in relu.cu:12' \
    '    by thread (64,0,0) in block (0,0,0)' 'Invalid __global__ write of size 4 bytes' '    at other+0x10' \
    'ERROR SUMMARY: 224 errors' 'ERROR SUMMARY: 124 errors were not printed. Use --print-limit option to adjust the number of printed errors'
sanitize
check 'findings are a result' fails 0 $?
check 'they are counted' is "$(tool memcheck)" 'errors 224 0 null'
check 'the first is told, with its place' is "$(of .tools.memcheck.first)" \
    'Invalid __global__ read of size 4 bytes at relu(const float *, float *)+0x70 in relu.cu:12'
check 'and said' one '^h200/relu64: memcheck 224 errors, first: Invalid .* in relu.cu:12; racecheck clean$'
log memcheck 'Invalid __shared__ read of size 4 bytes' '    by thread (64,0,0) in block (0,0,0)' 'ERROR SUMMARY: 1 error'
sanitize
check 'one error is one' is "$(tool memcheck)" 'errors 1 0 null'
check 'what has no place is told without' is "$(of .tools.memcheck.first)" 'Invalid __shared__ read of size 4 bytes'
printf 'ERROR SUMMARY: 3 errors\n' | sed 's/^/========= /;s/$/\r/' > log.memcheck
sanitize
check 'carriage returns do not matter' is "$(tool memcheck)" 'errors 3 0 null'
cp log.memcheck kept
clean
cp kept log.memcheck
mv $cell.cubin cubin
echo garbage > $cell.cubin
sanitize memcheck
check 'a replay that fails after findings does not hide them' is "$(tool memcheck)" 'errors 3 0 null'
clean
sanitize
check 'one that fails without any is an error' fails 3 $?
check 'in the words of the replay' one '^sanitize: h200/relu64: replay: .*relu64\.cubin: not the file that was verified'
check 'and no result' none
mv cubin $cell.cubin

log racecheck 'Warning: Race reported between Read access at relu+0x10 in relu.cu:3' '    and Write access at relu+0x40 in relu.cu:4 [8 hazards]' '' \
    'Error: Race reported between Write access at relu+0x20 in relu.cu:7' '    and Read access at relu+0x60 in relu.cu:9 [16 hazards]' '' \
    'RACECHECK SUMMARY: 2 hazards displayed (1 error, 1 warning)'
sanitize
check 'races are errors' is "$(tool racecheck)" 'errors 1 1 null'
check 'the first error is told, not the warning before it' is "$(of .tools.racecheck.first)" \
    'Error: Race reported between Write access at relu+0x20 in relu.cu:7 and Read access at relu+0x60 in relu.cu:9 [16 hazards]'
log racecheck 'Warning: Race reported between Read access at relu+0x10 in relu.cu:3' 'RACECHECK SUMMARY: 12 hazards displayed (0 errors, 12 warnings)'
sanitize
check 'warnings are no errors' is "$(tool racecheck)" 'clean 0 12 null'
check 'but are said' one '^h200/relu64: memcheck clean; racecheck clean but for 12 warnings$'
check 'and told' is "$(of .tools.racecheck.first)" 'Warning: Race reported between Read access at relu+0x10 in relu.cu:3'
sanitize

# ---- Where there is no verdict ------------------------------------------------------------------

clean
log racecheck 'ERROR SUMMARY: 0 errors'
sanitize
check 'a race check without its summary is not clean' fails 4 $?
check 'and has no result' none
log racecheck 'RACES FOUND: 1 error'
sanitize racecheck
check 'a summary of another form is not clean, either' fails 4 $?
clean
log memcheck 'Internal Sanitizer Error: The Sanitizer encountered an error' 'ERROR SUMMARY: 0 errors'
sanitize
check 'nor is a tool that failed inside' fails 4 $?
check 'whose words are shown' one '^sanitize: h200/relu64: memcheck fails: Internal Sanitizer Error: The Sanitizer'
log memcheck 'Error: Target application terminated before first instrumented API call' 'ERROR SUMMARY: 0 errors'
sanitize
check 'nor one that saw nothing of the GPU' fails 4 $?
clean
echo '========= Error: Device not permitted' > says
sanitize
check 'a tool without permission is an error' fails 4 $?
check 'of one line' one '^sanitize: h200/relu64: memcheck fails: Error: Device not permitted$'
check 'there is no result then' none
rm says
touch killed
sanitize
check 'a tool that is killed was not too slow' fails 4 $?
check 'which is said' one '^sanitize: h200/relu64: memcheck fails: exit status 137'
rm killed
touch hangs
KP_SANITIZE_SECONDS=1 sanitize
check 'one that does not end is a result' fails 0 $?
check 'of its own' is "$(tool memcheck), $(tool racecheck)" 'not run null null took longer than 1 s, not run null null took longer than 1 s'
check 'which is said' one '^h200/relu64: memcheck not run: took longer than 1 s; racecheck not run: took longer than 1 s$'
rm hangs
touch deaf
KP_SANITIZE_SECONDS=1 sanitize memcheck
check 'one that does not heed a signal is, too' is "$(tool memcheck)" 'not run null null took longer than 1 s'
rm deaf
cp $cell.sanitize.json slow.json
SANITIZER=$scratch/bin/none sanitize
check 'no compute-sanitizer is an error' fails 4 $?
check 'of one line, which says what to do' one '^sanitize: no compute-sanitizer here: install it .* or set SANITIZER$'
check 'what was there before is no result of this run' none
SANITIZER=/bin/true sanitize
check 'nor is just any program one' fails 4 $?
KP_FAKE_MEMORY=1000 sanitize
check 'too little memory is an error' fails 4 $?
check 'in the words of the replay, too' one '^sanitize: h200/relu64: memcheck fails: replay: relu64 needs .* not free$'
jq '.verdict = "wrong"' $cell.verify.json > wrong && cp wrong $cell.verify.json
rm -f runs
sanitize
check 'a kernel that is wrong is checked: what is found may be why' fails 0 $?
check 'by each tool' is "$(sed 's/ .*//' runs | tr '\n' ' ')" 'memcheck racecheck '
check 'which says so' one '^h200/relu64: memcheck clean; racecheck clean \(the verdict is wrong\)$'
check 'so does the result' is "$(of '[.verdict, .tools.memcheck.verdict] | join(" ")')" 'wrong clean'
check 'nothing else can be done with one' is "$("$bin/replay" $json $cell 2>&1)" "replay: $cell.verify.json: the kernel is not right: there is nothing to profile"
jq 'del(.tape_sha256)' wrong > $cell.verify.json
rm -f runs
SANITIZER=$scratch/bin/none sanitize
check 'one that was not recorded is not run' fails 0 $?
check 'by no tool' [ ! -e runs ]
check 'which is the result' is "$(tool memcheck)" 'not run null null the kernel was not recorded: its verdict is wrong'
rm $cell.verify.json
sanitize
check 'before verification there is nothing to check' fails 3 $?
check 'which is said in one line, at the end' one 'relu64\.verify\.json: cannot be read; verify first$'

verified
clean
chmod a-w build/h200
if [ -w build/h200 ]; then
    skip 'a folder that cannot be written' 'root may write everywhere'
else
    sanitize
    check 'a folder that cannot be written is an error' fails 5 $?
fi
chmod u+w build/h200

# ---- All together --------------------------------------------------------------------------------

sanitize
cp $cell.sanitize.json clean.json
jq '.tools.racecheck.verdict = "errors"' clean.json > errors.json
harness/inspect/sanitize --summary clean.json errors.json slow.json clean.json > "$out"
check 'the summary counts cells' one '^sanitize: 2 clean, 1 with errors, 1 not run$'
jq '.tools.memcheck.verdict = "not run"' errors.json > worse.json
harness/inspect/sanitize --summary worse.json > "$out"
check 'by the worst of their tools' one '^sanitize: 0 clean, 1 with errors, 0 not run$'
jq '.tools.racecheck.variant = "KP_RACECHECK"' clean.json > variant.json
harness/inspect/sanitize --summary clean.json variant.json > "$out"
check 'and says of how many racecheck saw a variant' one '^sanitize: 2 clean, 0 with errors, 0 not run \(of 1 racecheck saw the variant\)$'
echo '{' > half.json
harness/inspect/sanitize --summary clean.json half.json > "$out" 2>&1
check 'and reads nothing that is none' fails 3 $?

# ---- At a smaller size ---------------------------------------------------------------------------

# shrunk TASK.json N - the shapes of the Nth smaller task that harness/inspect/shrink makes; its bytes and products.
shrunk() {
    rm -rf smaller
    harness/inspect/shrink "$1" smaller > sizes || return
    sed -n "$2p" sizes > size
    [ -s size ] || { echo none; return; }
    build/task check "$(cut -d' ' -f1 size)" > checked 2>&1 || { cat checked; return; }
    jq -c '[[.inputs[], .parameters[]? | .shape], [.graph[] | split(" = ")[0]]]' "$(cut -d' ' -f1 size)"
    awk '{ printf "%.0f MB, %.1f GFLOP\n", $3 / 1e6, $4 / 1e9 }' size
}
of_shipped() { KP_SMALL_TRIES=1 shrunk "$root/$(cd "$root" && make/task-file "${1##*/}")" 1 | head -n 1; }
check 'a task within the limits stays' is "$(shrunk tasks/fake/relu64.json 1)" none
task rows 'y[65536,64] = relu(x0)' '[65536,64]'
check 'another has the longest axis 0 that is' is "$(KP_SMALL_MB=10 shrunk tasks/fake/rows.json 1)" '[[[16384,64]],["y[16384,64]"]]
8 MB, 0.0 GFLOP'
jq -c 'del(.parameters)' tasks/fake/rows.json > bare && cp bare tasks/fake/rows.json
check 'the next is within twice the limit, also where parameters are not named' is "$(KP_SMALL_MB=10 shrunk tasks/fake/rows.json 2 | tail -n 1)" '17 MB, 0.0 GFLOP'
check 'and none is the task itself' is "$(KP_SMALL_MB=10 shrunk tasks/fake/rows.json 3)" none
check 'nor are there more than asked for' is "$(KP_SMALL_TRIES=1 KP_SMALL_MB=10 shrunk tasks/fake/rows.json 2)" none
task thirds 'y[19683,64] = relu(x0)' '[19683,64]'
check 'it is a divisor' is "$(KP_SMALL_MB=5 shrunk tasks/fake/thirds.json 1 | head -n 1)" '[[[6561,64]],["y[6561,64]"]]'
task square 'y[4096,4096] = matmul(x0, x1)' '[4096,4096]' '[4096,4096]'
check 'a product is so by its work: first in depth, then in rows' is "$(shrunk tasks/fake/square.json 1)" '[[[2048,256],[256,4096]],["y[2048,4096]"]]
40 MB, 4.3 GFLOP'
check 'within its limit' is "$(KP_SMALL_GFLOP=3 shrunk tasks/fake/square.json 1 | tail -n 1)" '22 MB, 2.1 GFLOP'
task pair 't[65536,64] = add(x0, x1) | m[65536,1], y[65536,1]:i64 = max(t; dim=1, keepdim=true)' '[65536,64]' '[65536,64]'
jq '.outputs = ["m"]' tasks/fake/pair.json > pair && cp pair tasks/fake/pair.json
check 'inputs that only fit together are shortened together' is "$(KP_SMALL_MB=10 shrunk tasks/fake/pair.json 1 | head -n 1)" \
    '[[[16384,64],[16384,64]],["t[16384,64]","m[16384,1], y[16384,1]:i64"]]'
check 'so is one that is another transposed' is "$(of_shipped hgemm/hgemm_4096_4096_4096)" '[[[2048,256],[256,4096],[4096,256]],["t1[2048,4096]"]]'
check 'and both axes of one that is symmetric' is "$(of_shipped level1/l1_013_matmul_for_symmetric_matrices)" '[[[1024,1024],[1024,1024]],["t1[1024,1024]"]]'
check 'and a parameter' is "$(of_shipped level2/l2_012_gemm_multiply_leaky_relu)" '[[[1024,256],[8192,256],[8192]],["t1[1024,8192]","t2[1024,8192]","t3[1024,8192]"]]'
check 'after one axis comes the next' is "$(of_shipped level1/l1_097_scaled_dot_product_attention)" \
    '[[[1,4,512,1024],[1,4,512,1024],[1,4,512,1024]],["t1[1,4,512,1024]"]]'
check 'such as the rows of an image, which is padded' is "$(of_shipped level1/l1_063_conv2d_square_input_square_kernel)" \
    '[[[1,16,128,1024],[128,16,3,3]],["t1[1,128,126,1022]"]]'
check 'but no axis that is fixed otherwise' is "$(KP_SMALL_MB=1 of_shipped crfm/crfm_layernorm)" '[[[1,64,256,256],[64,256,256],[64,256,256]],["t1[1,64,256,256]"]]'
check 'the longest name of a task becomes no longer' is "$(of_shipped level1/l1_077_conv_transpose3d_square_input_square_kernel_padded_dilat)" \
    '[[[2,32,16,32,32],[32,64,3,3,3]],["t1[2,64,33,65,65]"]]'
check 'where that is not enough all layers become narrower' is "$(of_shipped level3/l3_001_mlp)" \
    '[[[4,1024],[4096,1024],[4096],[4096,4096],[4096],[2048,4096],[2048]],["t1[4,4096]","t2[4,4096]","t3[4,4096]","t4[4,4096]","t5[4,2048]"]]'
size() { awk '$3 <= 128e6 && $4 <= 5e9 { print "small" }' size; }
for deep in l3_002_shallow_wide_mlp l3_012_vgg19; do
    check "$deep too" is "$(of_shipped "level3/$deep" > /dev/null; size)" small
done
KP_SMALL_MB=few harness/inspect/shrink tasks/fake/rows.json smaller > "$out" 2>&1
check 'a limit that is no number is an error' fails 2 $?
check 'in one line' one '^shrink: KP_SMALL_MB, '
jq '.graph[0] = "y[1,1] = relu(x0)"' tasks/fake/rows.json > wrong && cp wrong tasks/fake/rows.json
harness/inspect/shrink tasks/fake/rows.json smaller > "$out" 2>&1
check 'so is a task that is wrong' fails 3 $?

# At most a megabyte; this one's tensors are of one each.
json=tasks/fake/tall.json cell=build/h200/tall
task tall 'y[4096,64] = relu(x0)' '[4096,64]'
verified
SMALL=1 KP_SMALL_MB=1 sanitize
check 'a kernel is checked at a smaller size' one '^h200/tall: memcheck clean; racecheck clean \(at \[1024,64\] of \[4096,64\]\)$'
check 'for which it is compiled as before' is "$(cat compiled)" 'build/small/fake/tall_small.json build/small/h200/tall_small 90a kernel.c'
check 'verified' is "$(jq -r .verdict build/small/h200/tall_small.verify.json)" ok
check 'and only there replayed' is "$(tail -n 3 argv | tr '\n' ' ')" 'build/replay build/small/fake/tall_small.json build/small/h200/tall_small '
check 'with its own header' grep -q '1024' build/tasks/tall_small/task.h
check 'the result says so' is "$(of '[.shape.checked, .shape.of, .why_full, .refused] | map(tostring) | join(" ")')" '[1024,64] [4096,64] null []'
check 'of which binary' is "$(of .cubin_sha256)" "$(sha256sum < build/small/h200/tall_small.cubin | cut -d' ' -f1)"
rm -f compiled
sanitize
check 'without SMALL it is checked at full size' one '^h200/tall: memcheck clean; racecheck clean$'
check 'and compiled no more' [ ! -e compiled ]
SMALL=1 sanitize
check 'where it is small enough, too, which is said' one '^h200/tall: .* \(at full size: small enough, or no axis can be shortened\)$'
echo 100000 > compile.least
rm -f compiled
SMALL=1 KP_SMALL_MB=1 sanitize
check 'one that refuses a size is checked at the next' one '^h200/tall: memcheck clean; racecheck clean \(at \[2048,64\] of \[4096,64\]\)$'
check 'which is all that is compiled' is "$(wc -l < compiled)" 2
check 'the result says why at no smaller one' is "$(of '[.shape.checked, .why_full, .refused] | tojson')" '[[2048,64],null,[{"shape":[1024,64],"why":"build: because"}]]'
rm compile.least
echo build > compile.fails
SMALL=1 KP_SMALL_MB=1 sanitize
check 'one that does not compile at any is checked at full size' one '^h200/tall: memcheck clean; racecheck clean \(at full size: at \[2048,64\] its verdict is build: because\)$'
check 'so says the result' is "$(of '[.shape, .why_full, (.refused | map(.shape))] | tojson')" \
    '[null,"at [2048,64] its verdict is build: because",[[1024,64],[2048,64]]]'
KP_SMALL_TRIES=1 SMALL=1 KP_SMALL_MB=1 sanitize
check 'or after as many as may be tried' one '^h200/tall: .*\(at full size: at \[1024,64\] its verdict is build: because\)$'
rm compile.fails
KP_SMALL_MB=few SMALL=1 sanitize
check 'a limit that is no number is an error here, too' fails 2 $?
check 'in its words' one '^sanitize: h200/tall: shrink: KP_SMALL_MB, '
sed -i 's/COUNT);/COUNT > 100000 ? COUNT : COUNT - 1);/' kernel.c
verified
SMALL=1 KP_SMALL_MB=1 sanitize
check 'one that is wrong at a size is checked at the next' one '^h200/tall: memcheck clean; racecheck clean \(at \[2048,64\] of \[4096,64\]\)$'
check 'which the result says' is "$(of '.refused[] | "\(.shape) \(.why)"' | sed 's/wrong: .*/wrong/')" '[1024,64] wrong'
cp kernel.c large.c
sed -i 's/COUNT > 100000 ? COUNT : COUNT - 1/COUNT - 1/' kernel.c
verified
SMALL=1 KP_SMALL_MB=1 sanitize
check 'one that is wrong at all sizes is checked at the smallest' one '^h200/tall: memcheck clean; racecheck clean \(at \[1024,64\] of \[4096,64\]\) \(the verdict is wrong\)$'
mv large.c kernel.c
verified
touch compile.dies
SMALL=1 KP_SMALL_MB=1 sanitize
check 'a compiler that fails is an error' fails 4 $?
check 'in its words' one '^sanitize: h200/tall: compiling it for tall_small fails: compile: no nvcc$'
rm compile.dies

# ---- The variant for racecheck ---------------------------------------------------------------------

# One that leaves out the last MISSING elements, and says which it is whenever it runs.
copies() { # MISSING of the variant
    cat > optimized/include/copies.h << COPIES
#ifdef KP_RACECHECK
#define RELU "variant"
#define MISSING $1
#else
#define RELU "relu"
#define MISSING 0
#endif
COPIES
}
kinds() { sed -n 's/ bare$//p' events | tr '\n' ' '; }
copies 0
sed -i '1i #include "copies.h"
s/"relu %s\\n"/RELU " %s\\n"/; s/COUNT > .*);/COUNT - MISSING);/' kernel.c
json=tasks/fake/relu64.json cell=build/h200/relu64
verified
rm -rf runs
NVCCFLAGS=-g1 sanitize
check 'a kernel with a variant for racecheck is checked, and its line says so' one '^h200/relu64: memcheck clean; racecheck clean \(KP_RACECHECK\)$'
check 'the variant is compiled as the kernel is' is "$(cat compiled)" "$json build/race/h200/relu64 90a kernel.c -g1 -DKP_RACECHECK"
check 'for the same task' [ ! -e build/tasks/relu64 ]
check 'verified' is "$(jq -r .verdict build/race/h200/relu64.verify.json)" ok
check 'and replayed' is "$(tail -n 3 argv | tr '\n' ' ')" "build/replay $json build/race/h200/relu64 "
check 'which is after memcheck' is "$(kinds)" 'relu variant '
check 'each tool runs once' is "$(sed 's/ .*//' runs | tr '\n' ' ')" 'memcheck racecheck '
check 'the result says so' is "$(of '.tools | map_values(.variant) | tojson')" '{"memcheck":null,"racecheck":"KP_RACECHECK"}'
check 'and of which binaries' is "$(of '[.cubin_sha256, .tools.racecheck.cubin_sha256] | join(" ")')" \
    "$(sha256sum $cell.cubin build/race/h200/relu64.cubin | cut -d' ' -f1 | tr '\n' ' ' | sed 's/ $//')"
check 'which differ' not cmp -s $cell.cubin build/race/h200/relu64.cubin
rm -f events compiled
sanitize memcheck initcheck synccheck
check 'no other tool looks at it' is "$(kinds)" 'relu relu relu '
check 'so that it is not compiled' [ ! -e compiled ]
log racecheck 'RACECHECK SUMMARY: 3 hazards displayed (2 errors, 1 warning)'
sanitize
check 'its errors are errors' is "$(tool racecheck)" 'errors 2 1 null'
clean
copies 1
rm -f runs
sanitize
check 'a variant that is wrong is no error of the machine' fails 0 $?
check 'racecheck is not run then' is "$(sed 's/ .*//' runs)" memcheck
check 'which is said' one '^h200/relu64: memcheck clean; racecheck not run: with KP_RACECHECK its verdict is wrong: '
check 'so does the result' is "$(of '.tools.racecheck | [.verdict, .errors, .variant, (.reason | test("verdict is wrong: "))] | tojson')" \
    '["not run",null,"KP_RACECHECK",true]'
copies 0
echo build > compile.variant
sanitize racecheck
check 'nor where it does not compile' is "$(tool racecheck)" 'not run null null with KP_RACECHECK its verdict is build: because'
rm compile.variant
touch compile.dies
sanitize
check 'a compiler that fails is an error here, too' fails 4 $?
check 'there is no result then, either' none
rm compile.dies
mv $cell.d depends
sanitize
check 'what a kernel includes has to be known' fails 3 $?
check 'or it is built again' one '^sanitize: build/h200/relu64\.d: cannot be read; build it again$'
mv depends $cell.d
rm optimized/include/copies.h
sed -i '1s/.*/#define RELU "relu"\n#define MISSING 0/' kernel.c
verified
sanitize
check 'a kernel that names KP_RACECHECK nowhere has none' is "$(of '.tools.racecheck | has("variant")')" false
check 'and is not compiled again' [ ! -e compiled ]
sed -i '1i #ifdef KP_RACECHECK\n#endif' kernel.c
sanitize
check 'nor has one that does itself: it is for the headers to say' is "$(of '.tools.racecheck | has("variant")')" false
copies 0
sed -i '1,4s/.*//; 1s/^/#include "copies.h"/' kernel.c
json=tasks/fake/tall.json cell=build/h200/tall
verified
rm -f events
SMALL=1 KP_SMALL_MB=1 sanitize
check 'the variant is checked at a smaller size as the kernel is' one '^h200/tall: memcheck clean; racecheck clean \(KP_RACECHECK\) \(at \[1024,64\] of \[4096,64\]\)$'
check 'being that of the smaller one' is "$(tail -n 2 argv | tr '\n' ' ')" 'build/small/fake/tall_small.json build/race/h200/tall_small '
check 'for which both are compiled' is "$(sed 's/.* build/build/' compiled | tr '\n' ';')" \
    'build/small/h200/tall_small 90a kernel.c;build/race/h200/tall_small 90a kernel.c -DKP_RACECHECK;'
