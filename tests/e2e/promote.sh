#!/bin/bash
# Which attempt becomes the kernel of its cell, and that nothing is lost on the way.
# shellcheck disable=SC2012
. tests/e2e/lib.sh

cell=h200/l1_019_relu

# place - a tree without kernels; becomes the current folder.
place() {
    cd "$(mktemp -d "$scratch/XXXXXX")" || exit
    out=$PWD/out
    mkdir -p tasks/level1 m
    echo '{}' > tasks/level1/l1_019_relu.json
}

sha() { sha256sum < "$1" | cut -d' ' -f1; }

# kernel FILE TEXT - a kernel as an attempt has it.
kernel() {
    mkdir -p "$(dirname "$1")"
    echo "$2" > body
    { echo '// provenance: some-model, attempt x, 2026-11-21'
      echo '// prompt sha256 0; transcript x.jsonl'
      echo "// kernel sha256 $(sha body) (of all that follows this line)"
      cat body; } > "$1"
    rm body
}

# timed FILE KERNEL VERDICT CLASS AGAINST RATIO LOW HIGH US SEED - a result; the interval of its time is 1 % to
# either side.
timed() {
    mkdir -p "$(dirname "$1")"
    jq -n --arg sha "$([ ! -e "$2" ] || sha "$2")" --arg path "$2" --arg verdict "$3" --arg class "$4" --arg against "$5" \
        --argjson ratio "$6" --argjson low "$7" --argjson high "$8" --argjson us "$9" --arg seed "${10}" '
        {schema: 1, task: "l1_019_relu", gpu: "h200", $verdict, reason: (if $verdict == "ok" then null else "y[3] is 7" end),
         kernel: {$path, sha256: $sha}, $class,
         speedup: {$against, $ratio, $low, $high},
         time_us: {candidate: {midmean: $us, low: ($us * 0.99), high: ($us * 1.01)}, ($against): {midmean: ($us * $ratio)}},
         harness: {master_seed: $seed}}' > "$1"
}

# attempt NAME TEXT CLASS RATIO - an ok attempt, and what it was measured by.
attempt() {
    local at=build/attempts/$1/$cell
    kernel "$at.cu" "$2"
    echo "{\"transcript of\": \"$2\"}" > "$at.jsonl"
    jq -n --arg attempt "$1" '{schema: 1, task: "l1_019_relu", gpu: "h200", $attempt, outcome: "code", model: "some, model",
        code_sha256: $attempt, tokens: {input: 1000, output: 200}, cost_usd: null, seconds: 12.5, date: "2026-11-21T10:00:00Z"}' > "$at.gen.json"
    timed "$at.time.json" "$at.cu" ok "$3" fp32 "$4" "$4" "$4" 10 first
}

confirm=m/h200/l1_019_relu.confirm.json current=m/h200/l1_019_relu.current.json
# confirmed NAME VERDICT CLASS AGAINST RATIO LOW HIGH US - the attempt, measured again.
confirmed() { timed "$confirm" "build/attempts/$1/$cell.cu" "${@:2}" second; }
# present FILE VERDICT CLASS AGAINST RATIO LOW HIGH US - the present kernel, measured in the same session.
present() { timed "$current" "$@" third; }

promote() { "$root/harness/promote/decide" h200 tasks/level1/l1_019_relu.json "$@" > "$out" 2>&1; }
exits() { local want=$1; shift; "$@"; local got=$?; [ $got = "$want" ] || { echo "exit $got, not $want"; return 1; }; }
# Names and contents of all that lies in the tree, but for what was said.
everything() { find . -type f ! -name out ! -path './m/*' -exec sha256sum {} + | sort -k 2; }

# ---- No kernel yet ----
place
attempt branching.r2a3 'int best;' fp32 1.83
confirmed branching.r2a3 ok fp32 fp32 1.83 1.8234 1.8380 10
check 'the best ok attempt becomes the kernel where there is none' exits 0 promote branching.r2a3 "$confirm"
check 'and one line says so' is "$(cat out)" 'promote: h200/l1_019_relu 1.83x +-0.4% by some, model, branching.r2a3 (was missing)'
check 'byte for byte' cmp build/attempts/branching.r2a3/$cell.cu optimized/$cell.cu
check 'with its transcript' cmp build/attempts/branching.r2a3/$cell.jsonl results/transcripts/branching.r2a3/$cell.jsonl
check 'nothing else is left' is "$(find optimized results -type f | wc -l)" 2
check 'once more needs the measurement of what is there now' exits 2 promote branching.r2a3 "$confirm"
check 'and says so' says '^promote: optimized/h200/l1_019_relu.cu is there: give its measurement, too$'
present optimized/$cell.cu ok fp32 fp32 1.83 1.8 1.9 10
before=$(everything)
check 'the same kernel is not promoted again' exits 0 promote branching.r2a3 "$confirm" "$current"
check 'as it is there' says 'stays as it is: it is branching.r2a3 already'
check 'and nothing changes' is "$(everything)" "$before"

# ---- Against a present kernel ----
attempt repair.r3a1 'int better;' fp32 2.0
confirmed repair.r3a1 ok fp32 fp32 1.85 1.82 1.88 9.9
check 'luck does not replace a kernel' exits 0 promote repair.r3a1 "$confirm" "$current"
check 'and says why' is "$(cat out)" 'promote: h200/l1_019_relu stays as it is: repair.r3a1 is not surely faster: 1.850x (1.820 to 1.880), the present kernel 1.830x'
confirmed repair.r3a1 ok fp32 fp32 1.83 1.83 1.83 10
check 'nor does a draw' exits 0 promote repair.r3a1 "$confirm" "$current"
check 'however narrow' says 'not surely faster'
confirmed repair.r3a1 ok tf32 fp32 9 8.9 9.1 2
check 'nor does one that is less accurate' exits 0 promote repair.r3a1 "$confirm" "$current"
check 'however fast' says 'repair.r3a1 is tf32, less accurate than the present kernel, which is fp32$'
confirmed repair.r3a1 wrong fp32 fp32 9 8.9 9.1 2
check 'nor does one that is wrong when measured again' exits 0 promote repair.r3a1 "$confirm" "$current"
check 'which is said with the reason' says 'repair.r3a1, measured again, has the verdict wrong: y\[3\] is 7'
confirmed repair.r3a1 ok fp32 fp32 9 8.9 9.1 2
for flag in 'control-ratio: 1.30x on scaled inputs' 'clocks-disagree: the host waited longer'; do
    jq --arg flag "$flag" '.flags = ["latency-bound", $flag]' "$confirm" > flagged && mv flagged "$confirm"
    check "nor does one that is flagged $flag" exits 0 promote repair.r3a1 "$confirm" "$current"
    check 'which someone has to look at' says "is flagged $flag: look at it"
done
confirmed repair.r3a1 ok fp32 fp32 9 8.9 9.1 2
present optimized/$cell.cu skipped fp32 fp32 1 1 1 1
check 'one that could not be tried here stays' exits 0 promote repair.r3a1 "$confirm" "$current"
check 'as nothing is known of it' says 'the present kernel could not be tried here'
present optimized/$cell.cu ok fp32 fp32 1.83 1.8 1.9 10
check 'nothing has changed yet' cmp build/attempts/branching.r2a3/$cell.cu optimized/$cell.cu
confirmed repair.r3a1 ok fp32 fp32 1.9 1.84 1.96 9.6
check 'a surely faster one does' exits 0 promote repair.r3a1 "$confirm" "$current"
check 'and says what was there' is "$(cat out)" 'promote: h200/l1_019_relu 1.90x +-3.2% by some, model, repair.r3a1 (was 1.83x)'
check 'it is the kernel now' cmp build/attempts/repair.r3a1/$cell.cu optimized/$cell.cu
check 'the older one was kept' cmp build/attempts/branching.r2a3/$cell.cu build/attempts/repair.r3a1/$cell.replaced.cu
check 'and its transcript stays' [ -e results/transcripts/branching.r2a3/$cell.jsonl ]

# Other baselines: by time.  The present kernel now is repair.r3a1.
present optimized/$cell.cu ok tf32 tf32 1.2 1.19 1.21 10
attempt repair.r4a1 'int other;' fp32 2
confirmed repair.r4a1 ok fp32 fp32 3 2.9 3.1 9.9
check 'against another baseline the times decide' exits 0 promote repair.r4a1 "$confirm" "$current"
check 'and an overlap is no win' says 'not surely faster: it takes up to 9.999 us, the present kernel at least 9.9 us'
confirmed repair.r4a1 ok fp32 fp32 3 2.9 3.1 9.5
check 'but less time is' exits 0 promote repair.r4a1 "$confirm" "$current"
check 'with what it was over' says '3.00x .* repair.r4a1 \(was 1.20x over another baseline, tf32\)$'
present optimized/$cell.cu wrong fp32 fp32 5 5 5 1
attempt repair.r5a1 'int slow;' bf16 0.5
confirmed repair.r5a1 ok bf16 bf16 0.5 0.4 0.6 90
check 'a wrong kernel gives way to any that is ok' exits 0 promote repair.r5a1 "$confirm" "$current"
check 'which is said' says '0.50x .*\(was wrong\)$'

# A portable kernel is no file of this GPU, and stays.
place
kernel optimized/portable/l1_019_relu.cu 'int portable;'
attempt one_shot.r1a1 'int special;' fp32 2
confirmed one_shot.r1a1 ok fp32 fp32 2 1.9 2.1 5
present optimized/portable/l1_019_relu.cu ok fp32 fp32 1.5 1.4 1.6 7
check 'a portable kernel is surpassed' exits 0 promote one_shot.r1a1 "$confirm" "$current"
check 'and stays where it is' grep -q portable optimized/portable/l1_019_relu.cu
check 'beside the new one' grep -q special optimized/$cell.cu
check 'nothing was replaced' [ ! -e build/attempts/one_shot.r1a1/$cell.replaced.cu ]

# ---- Kernels by hand ----
place
attempt repair.r1a1 'int model;' fp32 2
confirmed repair.r1a1 ok fp32 fp32 2 1.9 2.1 5
mkdir -p optimized/h200
printf '// provenance: shipped\nint hand;\0int more;\n' > optimized/$cell.cu
cp optimized/$cell.cu hand
present optimized/$cell.cu ok fp32 fp32 1.1 1.05 1.15 9
before=$(everything)
check 'a kernel by hand is not overwritten' exits 2 promote repair.r1a1 "$confirm" "$current"
check 'in one line that says how to' lines 1 'was not written by a model: repair.r1a1 does not replace it unless FORCE=1'
FORCE=0 check 'nor with FORCE=0' exits 2 promote repair.r1a1 "$confirm" "$current"
check 'and nothing has changed' is "$(everything)" "$before"
FORCE=1 check 'with FORCE=1 it is' exits 0 promote repair.r1a1 "$confirm" "$current"
check 'and was kept, byte for byte' cmp hand build/attempts/repair.r1a1/$cell.replaced.cu
check 'the new one is there' cmp build/attempts/repair.r1a1/$cell.cu optimized/$cell.cu
echo '// by hand' >> optimized/$cell.cu
present optimized/$cell.cu ok fp32 fp32 1.1 1.05 1.15 9
check 'an edited kernel of a model is not overwritten' exits 2 promote repair.r1a1 "$confirm" "$current"
check 'either' says 'was edited by hand since a model wrote it'
cp optimized/$cell.cu edited
FORCE=1 check 'but with FORCE=1' exits 0 promote repair.r1a1 "$confirm" "$current"
check 'which keeps it beside what was replaced before' cmp edited build/attempts/repair.r1a1/$cell.replaced.2.cu
check 'and that as it was' cmp hand build/attempts/repair.r1a1/$cell.replaced.cu

# ---- What does not fit ----
place
attempt repair.r1a1 'int model;' fp32 2
attempt repair.r1a2 'int other;' fp32 2
confirmed repair.r1a2 ok fp32 fp32 2 1.9 2.1 5
before=$(everything)
check 'a measurement of another kernel is refused' exits 3 promote repair.r1a1 "$confirm"
check 'in one line' lines 1 '^promote: m/h200/l1_019_relu.confirm.json is of another kernel than build/attempts/repair.r1a1/h200/l1_019_relu.cu'
check 'the measurement that chose it is refused' exits 3 promote repair.r1a1 build/attempts/repair.r1a1/$cell.time.json
check 'as it was chosen by that' says 'is the measurement by which repair.r1a1 was chosen'
confirmed repair.r1a1 ok fp32 fp32 2 1.9 2.1 5
jq '.verdict = "ok" | del(.speedup)' "$confirm" > m/h200/l1_019_relu.build.json
check 'a step before timing is refused' exits 3 promote repair.r1a1 m/h200/l1_019_relu.build.json
head -c 100 "$confirm" > m/h200/l1_019_relu.cut.json
check 'half a file is refused' exits 3 promote repair.r1a1 m/h200/l1_019_relu.cut.json
jq '.speedup = "fast"' "$confirm" > m/h200/l1_019_relu.text.json
check 'times that are text are refused' exits 3 promote repair.r1a1 m/h200/l1_019_relu.text.json
jq '.flags = "none"' "$confirm" > m/h200/l1_019_relu.text.json
check 'so are flags that are text' exits 3 promote repair.r1a1 m/h200/l1_019_relu.text.json
check 'no file is refused' exits 3 promote repair.r1a1 m/h200/l1_019_relu.none.json
check 'no attempt is refused' exits 3 promote repair.r9a9 "$confirm"
check 'no name of one, either' exits 2 promote repair "$confirm"
check 'nor too few arguments' exits 2 promote repair.r1a1
kernel m/stale.cu 'int stale;'
kernel optimized/portable/l1_019_relu.cu 'int portable;'
present optimized/portable/l1_019_relu.cu ok fp32 fp32 1 1 1 9
echo '// new' >> optimized/portable/l1_019_relu.cu
check 'a stale measurement of the present kernel is refused' exits 3 promote repair.r1a1 "$confirm" "$current"
check 'in one line' lines 1 'current.json is of another kernel than optimized/portable/l1_019_relu.cu: measure it again'
rm -r optimized
echo '// edited' >> build/attempts/repair.r1a1/$cell.cu
confirmed repair.r1a1 ok fp32 fp32 2 1.9 2.1 5
check 'an attempt that was edited is refused' exits 3 promote repair.r1a1 "$confirm"
check 'as a transcript could not make it' says 'was edited since the model wrote it'
attempt repair.r1a1 'int model;' fp32 2
confirmed repair.r1a1 ok fp32 fp32 2 1.9 2.1 5
rm build/attempts/repair.r1a1/$cell.jsonl
check 'so is one without a transcript' exits 3 promote repair.r1a1 "$confirm"
attempt repair.r1a1 'int model;' fp32 2
check 'nothing was written in all this' is "$(everything)" "$before"

# ---- A tree that cannot be written, a full disk ----
mkdir optimized results && echo > optimized/h200
check 'no room for a kernel is one line' exits 5 promote repair.r1a1 "$confirm"
check 'that names it' lines 1 '^promote: optimized/h200'
rm -rf optimized/h200 results/transcripts
echo > results/transcripts
check 'nor for a transcript' exits 5 promote repair.r1a1 "$confirm"
check 'and no kernel stands there without one' [ ! -e optimized/$cell.cu ]
rm results/transcripts
kernel optimized/$cell.cu 'int old;'
cp optimized/$cell.cu old
present optimized/$cell.cu ok fp32 fp32 1 1 1 9
cp build/attempts/repair.r1a1/$cell.jsonl short
head -c 5000 /dev/zero | tr '\0' x >> build/attempts/repair.r1a1/$cell.jsonl
full() { (ulimit -f 1; trap '' XFSZ; "$root/harness/promote/decide" h200 tasks/level1/l1_019_relu.json repair.r1a1 "$confirm" "$current" 2>&1 > /dev/null | cat > "$scratch/said"; exit "${PIPESTATUS[0]}"); }
check 'a full disk is exit 5' exits 5 full
check 'one line' is "$(wc -l < "$scratch/said")" 1
check 'the old kernel is whole' cmp old optimized/$cell.cu
check 'and nothing half is left' is "$(find . -name '*+' | wc -l)$(find results -type f | wc -l)" 00
mv short build/attempts/repair.r1a1/$cell.jsonl
mv optimized/h200 away && ln -s /proc optimized/h200
check 'a folder that cannot be written is exit 5' exits 5 promote repair.r1a1 "$confirm" "$current"
check 'in one line' lines 1 '^promote: optimized/h200/l1_019_relu.cu: cannot write: .* is unchanged$'
rm optimized/h200 && mv away optimized/h200
check 'then it works' exits 0 promote repair.r1a1 "$confirm" "$current"
check 'and the old one was kept' cmp old build/attempts/repair.r1a1/$cell.replaced.cu
