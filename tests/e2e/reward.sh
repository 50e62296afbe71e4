#!/bin/bash
# harness/export/reward: an answer a line, in order, whatever the line; nothing kept; no source in any
# argument.  Its steps are pretend ones.
# uses: build/gen
# shellcheck disable=SC2154,SC2012,SC2016  # out is lib.sh's; names are plain
. tests/e2e/lib.sh

tree
mk build/gate build/confine build/task build/stay build/verify build/recorder build/runner build/baseline build/time build/peaks build/h200/peaks.json
check 'the programs are there' [ $? = 0 ]
export PATH=$PWD/bin:$PATH KP_LOCKS=$PWD CUDA_HOME=$PWD/toolkit NVCC=$PWD/toolkit/bin/nvcc CUDA_LIB=$PWD/toolkit/lib64

# build/time says a ratio that stands in the kernel: "// ratio 1.5"; build/verify a verdict:
# "// verdict wrong".  "// break" is a machine that fails.  Both look whether the source is in
# anybody's arguments.
pretend() {
    rm "build/$1" # it may be a link
    cat > "build/$1" << 'STEP'
#!/bin/bash
step=$(basename "$0")
dir=$(dirname "$(dirname "$2")")
source=$dir/$(basename "$2").cu
echo "$step $KP_GPU" >> steps.log
grep -aqsF -f marker /proc/[0-9]*/cmdline && echo "$step" >> seen
grep -q '^// break' "$source" && { echo "$step: the GPU is lost" >&2; exit 4; }
[ -e "$(dirname "$2")/peaks.json" ] || { echo 'no peaks' >&2; exit 4; }
verdict=$(sed -n 's|^// verdict ||p' "$source")
ratio=$(sed -n 's|^// ratio ||p' "$source")
if [ "$step" = verify ]; then
    jq -n --arg v "${verdict:-ok}" '{schema: 1, verdict: $v, reason: (if $v == "ok" then null else "because" end), class: (if $v == "ok" then "fp32" else null end)}' > "$2.verify.json"
else
    jq -n --argjson r "${ratio:-1}" --arg flag "$(sed -n 's|^// flag ||p' "$source")" '{schema: 1, verdict: "ok", flags: [$flag | select(. != "")], reason: null, class: "fp32",
        speedup: {against: "fp32", ratio: $r, low: ($r * 0.99), high: ($r * 1.01)},
        time_us: {candidate: {samples: [range(30) | 10]}, fp32: {samples: [range(30) | 10 * $r + (if . % 2 == 0 then 0.01 else -0.01 end)]}}}' > "$2.time.json"
fi
STEP
    chmod +x "build/$1"
}
pretend verify
pretend time

request() { # TASK SOURCE [GPU]
    jq -cn --arg task "$1" --arg kernel "$2" --arg gpu "${3-}" '{task: $task, kernel: $kernel} + if $gpu == "" then {} else {gpu: $gpu} end'
}
judge() { harness/export/reward "$@" < in > "$out" 2> err; }
line() { sed -n "$1p" "$out" | jq -c "$2"; }

# ---- One of each ------------------------------------------------------------------------

marker=source-of-$$ # another run of this test on the machine has its own
echo $marker > marker
{
    request l1_019_relu $'// ratio 1.534\n// '$marker
    request l1_019_relu "BROKEN $marker"
    echo 'this is no JSON'
    request crfm_softmax $'// verdict wrong\n// '$marker h200
    echo '[1, 2]'
    echo
    request no_such_task 'x'
    request l1_019_relu 'x' a100
    echo '{"task": "l1_019_relu", "kernel": ""}'
    echo '{"task": "l1_019_relu", "kernel": "a\u0000b"}'
    echo '{"task": "../level1/l1_019_relu", "kernel": "x"}'
    echo '{"task": "l1_019_relu", "kernel": "x"} {"task": "l1_019_relu", "kernel": "y"}'
    request l1_019_relu '// break'
    request l1_019_relu '// verdict skipped'
    printf '%s' "$(request l1_001_matmul '// ratio 0.5')" # and no end of line
} > in
judge h200:90
check 'the machine failed once: exit code 4' is $? 4
check 'each line has its answer' is "$(wc -l < "$out")" 15
check 'each is one JSON object' is "$(jq -s 'map(type) | unique | join(" ")' "$out")" '"object"'
check 'an ok kernel is worth its ratio' is "$(line 1 '[.task, .gpu, .verdict, .reason, .class, .ratio, .reward, .low < .ratio, .high > .ratio, .seconds >= 0]')" '["l1_019_relu","h200","ok",null,"fp32",1.534,1.534,true,true,true]'
check 'one that does not compile is worth nothing' is "$(line 2 '[.verdict, .reward, .ratio, .class]')" '["build",0,null,null]'
check 'and the compiler says why' is "$(line 2 '.reason')" '"l1_019_relu.cu(1): error: broken"'
check 'a line that is not JSON' is "$(line 3 .)" '{"error":"not JSON"}'
check 'a wrong kernel, and why' is "$(line 4 '[.task, .verdict, .reason, .reward]')" '["crfm_softmax","wrong","because",0]'
check 'an array' is "$(line 5 .)" '{"error":"expected one JSON object on a line"}'
check 'an empty line' is "$(line 6 'keys')" '["error"]'
check 'an unknown task' is "$(line 7 .error)" '"task: no task no_such_task"'
check 'a GPU that is not offered' is "$(line 8 .error)" '"gpu: none of h200"'
check 'no source' is "$(line 9 'keys')" '["error"]'
check 'a NUL in the source' is "$(line 10 .error)" '"kernel: holds a NUL"'
check 'a path instead of a name' is "$(line 11 .error)" '"task: expected the name of a task"'
check 'two requests on a line' is "$(line 12 'keys')" '["error"]'
check 'a machine that fails is no verdict' is "$(line 13 .)" '{"task":"l1_019_relu","gpu":"h200","error":"verify: the GPU is lost"}'
check 'a kernel that could not be tried has no reward' is "$(line 14 '[.verdict, .reward]')" '["skipped",null]'
check 'and it goes on to the last line' is "$(line 15 '[.task, .ratio, .reward]')" '["l1_001_matmul",0.5,0.5]'
check 'a kernel that fails a step is spared the later ones' is "$(grep -c '^time' steps.log)" 2
check 'steps are told their GPU' not grep -qv -e 'h200$' -e '^nvcc' -e '^peaks' steps.log
check 'no source was in any argument' [ ! -e seen ]
check 'nothing is kept' is "$(ls build/reward)" ''

# The check for arguments can fail.
(exec -a $marker sleep 600) & sleeper=$!
request l1_019_relu '// ratio 1' > in
judge h200:90
check 'a source in an argument would have been seen' [ -e seen ]
kill $sleeper

# ---- Order, one at a time -------------------------------------------------------------------

coproc SERVICE { exec harness/export/reward h200:90 2> err; }
for n in 1 2 3; do
    request l1_019_relu "// ratio $n" >&"${SERVICE[1]}"
    answer=
    read -r -t 20 -u "${SERVICE[0]}" answer
    check "answer $n comes before the next request" is "$(jq .ratio <<< "$answer")" $n
done
pid=$SERVICE_PID
eval "exec ${SERVICE[1]}>&-"
wait "$pid"
check 'it ends with its input' [ $? = 0 ]

# ---- The source arrives as it was ----------------------------------------------------------

# shellcheck disable=SC2016
source=$(printf '%s\n' '// ratio 2' 'a "quoted" \ \\ \n $(touch owned) `touch owned` %s %n' "it's" 'tab	é ☃ 𝛑' '' '')
request l1_019_relu "$source" > in
KEEP=1 judge h200:90
check 'a strange source is judged' is "$(line 1 .ratio)" 2
check 'it was compiled byte for byte' is "$(cat build/reward/*/1/l1_019_relu.cu; echo .)" "$source."
check 'and run by nobody' [ ! -e owned ]
check 'KEEP=1 keeps the steps' [ -e "$(echo build/reward/*/1/h200/l1_019_relu.time.json)" ]
rm -rf build/reward
head -c 262145 /dev/zero | tr '\0' x | jq -Rc '{task: "l1_019_relu", kernel: .}' > in
judge h200:90
check 'a source of more than 256 KB is refused' is "$(line 1 .error)" '"kernel: more than 256 KB"'

{ head -c 5000000 /dev/zero | tr '\0' x; echo; head -c 4194304 /dev/zero | tr '\0' y; echo; request l1_019_relu '// ratio 3'; } > in
judge h200:90
check 'a line of 5 MB is refused, once' is "$(line 1 .)" '{"error":"a line of more than 4 MB"}'
check 'one of just so many bytes, too' is "$(line 2 .)" '{"error":"a line of more than 4 MB"}'
check 'and the next is judged' is "$(wc -l < "$out") $(line 3 .ratio)" '3 3'
for flag in 'degenerate: output is identically 0' 'control-ratio: 1.30x on scaled inputs' 'clocks-disagree: the host waited longer' noisy; do
    request l1_019_relu $'// ratio 90\n// flag '"$flag"
done > in
judge h200:90
check 'where doing nothing is right, there is no reward' is "$(line 1 '[.verdict, .ratio, .reward]')" '["ok",90,null]'
check 'a time of some contents alone earns nothing, and why is said' is "$(line 2 '[.verdict, .ratio, .reward, .flags]')" '["ok",90,0,["control-ratio: 1.30x on scaled inputs"]]'
check 'nor does a clock that disagrees' is "$(line 3 '[.ratio, .reward, .flags]')" '[90,0,["clocks-disagree: the host waited longer"]]'
check 'other flags take nothing away' is "$(line 4 '[.reward, .flags]')" '[90,["noisy"]]'
judge --shaped h200:90
check 'shaped, too' is "$(jq -c .reward "$out" | tr '\n' ' ')" 'null 0 0 90 '

# ---- Ids, answers, side by side, and a client -----------------------------------------------

{
    jq -cn '{id: 7, task: "l1_019_relu", kernel: "// ratio 2"}'
    jq -cn '{id: {step: "a b"}, task: "no_such_task", kernel: "x"}'
    jq -cn --rawfile answer <(printf '## Analysis\nx\n```cuda\n// ratio 3\nextern "C" void launch() {}\n```\n') '{id: "x", task: "l1_019_relu", $answer}'
    jq -cn '{id: "y", task: "l1_019_relu", answer: "I had rather not."}'
    jq -cn '{id: 9, task: "l1_019_relu", kernel: "x", answer: "y"}'
    jq -cn '{id: 10, task: "l1_019_relu", kernel: "// break"}'
} > in
cp "$root/build/gen" build/gen
judge h200:90
check 'ids come back, whatever they are' is "$(jq -c .id "$out" | tr '\n' ' ')" '7 {"step":"a b"} "x" "y" 9 10 '
check 'of an answer the code is taken as a search takes it' is "$(line 3 '[.verdict, .ratio, .reward]')" '["ok",3,3]'
check 'one without code is worth nothing' is "$(line 4 '[.verdict, .reason, .reward]')" '["no-code","the answer holds no block of code",0]'
check 'both at once are refused' is "$(line 5 .error)" '"kernel and answer: expected one of them"'

# A disk that is full says nothing of an answer.
{ head -c 3000 /dev/zero | tr '\0' x | jq -Rc '{id: 1, task: "l1_019_relu", kernel: .}'; jq -cn '{id: 2, task: "l1_019_relu", answer: "x"}'; } > in
cp build/gen gen && printf '#!/bin/sh\necho "gen: the kernel cannot be written" >&2\nexit 5\n' > build/gen
(ulimit -f 1 && judge h200:90)
check 'on a full disk the exit code is 5' is $? 5
check 'and a kernel and an answer get an error, no reward' is "$(jq -c '[.id, has("error"), .reward]' "$out" | tr '\n' ' ')" '[1,true,null] [2,true,null] '
mv gen build/gen

# Each takes a second: four at a time take less than four.
sed -i '2isleep 1' build/time
for n in 1 2 3 4; do jq -cn --argjson n $n '{id: $n, task: "l1_019_relu", kernel: "// ratio \($n)"}'; done > in
at=$(date +%s%N)
JOBS=4 judge h200:90 'a100:80'
took=$((($(date +%s%N) - at) / 1000000))
JOBS=1 judge h200:90
check 'requests are worked on side by side' test $took -lt $((($(date +%s%N) - at) / 1000000 - took))
check 'and answered in order' is "$(jq -c '[.id, .ratio]' "$out" | tr '\n' ' ')" '[1,1] [2,2] [3,3] [4,4] '
sed -i 2d build/time
request l1_019_relu '// ratio 1' > in
printf '#!/bin/sh\nsleep 3\nexec "$@"\n' > bin/slow && chmod +x bin/slow
SECONDS_MOST=1 judge 'h200:90:slow'
check 'a request that takes too long ends, which says nothing of the kernel' is "$(line 1 .error)" '"took longer than 1 s in all"'
JOBS=0 judge h200:90
check 'no jobs at all is a wrong word' is $? 2

if command -v python3 > /dev/null; then
    check 'a client in Python' python3 "$root/tests/mock/reward_client.py" harness/export/reward h200:90
else
    skip 'a client in Python' 'no python3'
fi

# ---- The shaped reward ----------------------------------------------------------------------

{ request l1_019_relu '// ratio 1.118'; request l1_019_relu '// ratio 0.992'; request l1_019_relu '// verdict wrong'; request l1_019_relu '// verdict skipped'; } > in
judge --shaped h200:90
check '--shaped: two decimals, towards 1' is "$(jq -c '[.ratio, .reward]' "$out" | tr '\n' ' ')" '[1.118,1.11] [0.992,1] [null,0] [null,null] '
judge h200:90
check 'without it the ratio itself' is "$(jq -c .reward "$out" | tr '\n' ' ')" '1.118 0.992 0 null '

# ---- Where it cannot run --------------------------------------------------------------------

request l1_019_relu '// ratio 1' > in
judge
check 'without an argument: the GPUs of this machine' is "$(line 1 .gpu)" '"h200"'
judge 'a100:80:env PREFIXED=1' h200:90
check 'the first GPU is the default' is "$(line 1 .gpu)" '"a100"'
check 'behind the prefix of its own, and with its peaks' is "$(line 1 .verdict)" '"ok"'
judge nonsense
check 'a malformed argument: exit code 2' is $? 2
gpus
judge
check 'no GPU: exit code 4' is $? 4
check 'and one line' is "$(wc -l < err)" 1
gpus 'NVIDIA H200, 9.0'
mv build/time build/time.away
judge h200:90
check 'a program that is missing: exit code 4, by name' is "$? $(cat err)" '4 reward: build/time is missing: start me by make reward'
mv build/time.away build/time
chmod a-w build/reward 2> /dev/null || mkdir -p build/reward && chmod a-w build/reward
if [ "$(id -u)" != 0 ]; then
    judge h200:90
    check 'a tree that cannot be written: exit code 5' is $? 5
else
    rmdir build/reward && : > build/reward
    judge h200:90
    check 'a tree that cannot be written: exit code 5' is "$? $(cat err)" '5 reward: cannot write below build/reward'
fi
