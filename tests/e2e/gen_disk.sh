#!/bin/bash
# A disk that is full, or becomes so while the model is at work: what there is no room for is not
# asked, and what was paid for is kept.  The scripted server stands for the model.
# uses: build/gen build/judge
# shellcheck disable=SC2154,SC2034,SC2016  # out, root, scratch are lib.sh's; $ of scripts that run elsewhere
. tests/e2e/lib.sh
. tests/mock/lib.sh

needs 'gen and judge on full disks' gen judge
mock_build
mock_start main

relu=l1_019_relu
prompting
out=$scratch/said
cp "$root/tests/specimens/ok_pdl.cu" kernel.cu
echo 'int KERNEL_NEVER_ASKED;' >> kernel.cu

# Answers: a kernel, and one of 60 KB.
fence='```'
printf '%scuda\n#include "task.h"\nextern "C" void launch(const struct Inputs *in, const struct Outputs *out, void *, cudaStream_t stream) {}\n%s\n' "$fence" "$fence" > "$scratch/small"
{ head -n 2 "$scratch/small"; yes '// one of many lines of a long kernel' | head -n 1600; tail -n +3 "$scratch/small"; } > "$scratch/large"

# rule INDEX COMMAND... - what the server does at attempt one_shot.r1aINDEX.
rule() { printf 'on\nbody (Request one_shot.r1a%s:\n%s\n' "$1" "$(printf '%s\n' "${@:2}")" >> "$scratch/main.rules"; }
asked() { grep '^{"request":' "$scratch/main.journal" | grep -cF "(Request one_shot.r1a$1:"; }
with_model() {
    OPENAI_API_KEY=$key LLM=openai:model-x OPENAI_BASE_URL="http://127.0.0.1:$port/v1" LLM_BACKOFF_MS=5 LLM_TRIES=2 LLM_MAX_TOKENS=100 \
        root=$root out=$out relu=$relu "$@"
}

# What runs on a disk of its own: attempt INDEX makes attempt one_shot.r1aINDEX, and fill KB leaves
# so much room; busy waits until a call is on its way.
cat > on_disk.sh <<'SCRIPT'
cell() { echo "build/attempts/one_shot.r1a$1/h200/$relu"; }
attempt() {
    mkdir -p "$(dirname "$(cell "$1")")"
    "$root/build/gen" attempt h200 90a "tasks/level1/$relu.json" one_shot 1 "$1" > "$out" 2>&1
    echo "exit $?"
}
fill() {
    dd if=/dev/zero of=build/attempts/fill bs=4k oflag=append conv=notrunc 2> /dev/null
    truncate -s "-$1K" build/attempts/fill
}
busy() {
    for _ in $(seq 200); do [ ! -s build/attempts/ledger ] || break; sleep 0.02; done
    sleep 0.2
}
blocks() { echo "blocks $(($(stat -c %b "$(cell "$1").jsonl") / 2 < 96))"; } # few?
outcomes() { jq -r .outcome "$(cell "$1").jsonl" | tr '\n' ' '; echo; }
calls() { awk '{ n[$1]++ } END { print "open", n["open"] + 0, "settled", n["done"] + 0 }' build/attempts/ledger; }
SCRIPT

how=
for u in -rm -m; do
    [ -n "$how" ] || ! unshare $u mount -t tmpfs -o size=64k none build/attempts 2> /dev/null || how=$u
done
# disk TYPE SCRIPT - run it with a file system of 512 KB at build/attempts; what it prints is $found.
disk() {
    rm -f "$out"
    found=$(with_model unshare $how bash -c "mount -t $1 -o size=512k none build/attempts || exit; . ./on_disk.sh; $2" 2>&1 | tr '\n' ';')
}
no_room='^gen: build/attempts/one_shot.r1a[0-9]+/h200/l1_019_relu.jsonl: no room for an answer: [0-9]+ bytes are needed: No space left on device: free some on that disk, .*; no request is sent$'

if [ -z "$how" ]; then
    skip 'gen on a full disk' 'none can be mounted here'
else
    rule 1 "answer $scratch/large"
    disk tmpfs 'fill 32; attempt 1; ls -A "$(dirname "$(cell 1)")"; ls build/attempts/ledger 2> /dev/null'
    check 'where there is no room for an answer nothing is asked' is "$(asked 1)" 0
    check 'and nothing is left, nor spent' is "$found" "exit 5;$relu.asked.json;"
    check 'one line says so: the file, how much, what to do' lines 1 "$no_room"
    check 'and no other' is "$(wc -l < "$out")" 1

    rule 2 'wait 1500' "answer $scratch/small"
    disk tmpfs 'attempt 2 & busy; fill 0; wait; outcomes 2; calls; blocks 2'
    check 'a disk that fills while the model is at work does not lose its answer' is "$(asked 2) $found" '1 exit 0;complete ;open 0 settled 1;blocks 1;'

    rule 3 'times 1' 'wait 1500' 'status 503' 'send {}'
    rule 3 "answer $scratch/small"
    disk tmpfs 'attempt 3 & busy; fill 0; wait; outcomes 3; calls'
    check 'nor is there another try, where there is no room for it' is "$(asked 3) $found" '1 exit 5;failed ;open 0 settled 1;'
    check 'which is said, too' lines 1 "$no_room"

    rule 4 'times 1' hang
    rule 4 "answer $scratch/small"
    disk tmpfs 'mkdir -p "$(dirname "$(cell 4)")"
        ("$root/build/gen" attempt h200 90a "tasks/level1/$relu.json" one_shot 1 4 > /dev/null 2>&1 & echo $! > killed; wait) 2> /dev/null &
        busy; kill -KILL "$(cat killed)"; wait # the inner shell says nothing of it
        tr -d "\000" < "$(cell 4).jsonl" | wc -c; fill 64; attempt 4; outcomes 4; calls; blocks 4'
    check 'what one that was killed had reserved serves the next' is "$(asked 4) $found" '2 0;exit 0;complete ;open 1 settled 1;blocks 1;'

    rule 5 'wait 700' "answer $scratch/small"
    disk ramfs 'attempt 5 & busy; stat -c %s "$(cell 5).jsonl"; wait; outcomes 5; tail -c 2 "$(cell 5).jsonl"; wc -l < "$(cell 5).jsonl"'
    if [ -n "$found" ]; then
        check 'where nothing can be reserved, room is taken by zeros' test "${found%%;*}" -gt 100000
        check 'which make way for the answer' is "$(asked 5) ${found#*;}" '1 exit 0;complete ;};1;'
    else
        skip 'a file system that reserves nothing' 'none can be mounted here'
    fi
fi

# Where no disk can be had, a limit on the size of files is much the same.
rule 6 "answer $scratch/large"
for signal in - "''"; do
    said=$( (eval "trap $signal XFSZ"; ulimit -f 64; with_model bash -c '. ./on_disk.sh; attempt 6') 2>&1)
    check "a limit on files (trap $signal XFSZ): nothing is asked" is "$(asked 6) $said" '0 exit 5'
    check 'which one line says' lines 1 '^gen: .*: no room for an answer: [0-9]+ bytes are needed: File too large: '
    check 'and nothing is spent' is "$(wc -l < "$out") $(cat build/attempts/ledger 2> /dev/null)" '1 '
done
(ulimit -f 64; with_model "$root/build/judge" h200 tasks/level1/$relu.json kernel.cu --transcript judge.jsonl > "$out" 2>&1)
status=$?
check 'judge: the same' is "$status $(grep -c KERNEL_NEVER_ASKED "$scratch/main.journal")" '5 0'
check 'judge: in one line' lines 1 '^judge: judge.jsonl: no room for an answer: '
check 'judge: which is all' is "$(wc -l < "$out") $(ls judge.jsonl build/attempts/ledger 2> /dev/null)" '1 '

leak_checks
