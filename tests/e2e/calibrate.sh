#!/bin/bash
# make calibrate: what the judge makes of several arithmetics, on a pretend GPU, and the table of it; a
# task that fails, or does not fit, costs no other.
# uses: build/fake/calibrate build/fake/time
# shellcheck disable=SC2016,SC2119,SC2154  # jq's $; out is lib.sh's
. tests/e2e/lib.sh

# cell ARITHMETIC [TASK] - what the table says of it.
cell() {
    awk -F' *[|] *' -v name="$1" -v row="${2:-l1_001_matmul}" '$2 == "task" { for (i = 2; i < NF; i++) if ($i == name) at = i } $2 == row { print $at }' results/h200/calibration.md
}
report() { sed -n "/^## $1/,/^## /p" results/h200/calibration.md | grep '^-'; } # the lines of a list

# ---- Through make: what is missing is said, and tried again -------------------------------

tree
mkdir pretend
cat > pretend/calibrate << 'END'
#!/bin/sh
t=$(basename "$1" .json)
echo "calibrate $t" >> steps.log
[ ! -e "fault/$t" ] || { echo "calibrate: the GPU is lost" >&2; exit 4; }
[ ! -e "large/$t" ] || { echo "# $t: needs at least 9.0 GB of GPU memory, 8.0 GB are free"; exit; }
[ ! -e "half/$t" ] || exit 0
echo "$t,8,fp32,declared,0.5,1,0.1,0.2
$t,8,16 bits,declared,9,40,1,3
$t,8,fp32,normal,0.9,1,0.1,0.3
$t,8,16 bits,normal,3,40,1,nan"
END
chmod +x pretend/calibrate
mkdir fault large half results/h200
touch fault/l1_019_relu large/crfm_softmax
mk calibrate
check 'a task that fails fails make' not [ $? = 0 ]
check 'and costs no other' ran 'calibrate crfm_softmax;calibrate l1_001_matmul;calibrate l1_019_relu;'
check 'it is said' lines 1 '^calibrate: the GPU is lost$'
check 'which is named in the table' is "$(report Missing)" '- crfm_softmax: needs at least 9.0 GB of GPU memory, 8.0 GB are free
- l1_019_relu: not run, or its step failed'
check 'the table has the largest over distributions, and what is no number is too large' is "$(cell fp32) $(cell '16 bits')" '0.3 > 10^6'
check 'and the lines' is "$(grep -c ^l1_001_matmul results/h200/calibration.csv) $(wc -l < results/h200/calibration.csv)" '4 5'
rm fault/*
mk calibrate
check 'only what failed is tried again' ran 'calibrate l1_019_relu;'
check 'and nothing is left over' is "$(report Missing)" '- crfm_softmax: needs at least 9.0 GB of GPU memory, 8.0 GB are free'
check 'by suite' is "$(grep '^## level' results/h200/calibration.md)" '## level1'

# ---- What honest and dishonest arithmetics come to ------------------------------------------

echo '{"task": "l1_001_matmul", "class": "fp32", "flags": [], "error": {"candidate": {"declared": {"rms": 1, "element": 2, "bias": 0, "of_limit": 0.7}}}}' > results/h200/l1_001_matmul.json
echo '{"task": "l1_019_relu", "class": "tf32", "flags": ["degenerate: zeros pass", "degenerate: too"]}' > results/h200/l1_019_relu.json
rm build/h200/l1_001_matmul.calibration.csv build/h200/crfm_softmax.calibration.csv large/*
touch half/crfm_softmax
sed -i 's/,nan/,1.5/; s/,1,3$/,1,1.9/' pretend/calibrate
mk calibrate
check 'a recorded kernel of class fp32 is an arithmetic, too' is "$(cell kernel) $(cell kernel l1_019_relu)" '0.7 '
check 'how near honest ones come is said' grep -qxF -- '- Honest arithmetic: `fp32` is at 0.3 at most (l1_001_matmul), `kernel` is at 0.7 at most (l1_001_matmul).' results/h200/calibration.md
check 'the nearest first' is "$(report 'Honest arithmetic' | head -n 1)" '- l1_001_matmul: `kernel` at 0.7'
check 'and how many tell 16 bits' grep -qxF -- '- Operands of 16 bits are at twice the limit or more in 0 of 1 tasks that are not degenerate, at four times or more in 0.' results/h200/calibration.md
check 'who does not is named' is "$(report Operands)" '- l1_001_matmul: 1.9'
check 'so is what is degenerate' is "$(report Degenerate)" '- l1_019_relu: zeros pass; too'
check 'and what is not of fp32 is counted' is "$(report Missing)" '- tasks of bf16, where no arithmetic is tried: 1'
check 'all tasks are' grep -qxF -- '- Tasks: 2 of 3, 1 of them with a kernel of the class; and 0 products.' results/h200/calibration.md
sed -i 's/"error": {/"baseline_class": {"fp32": "fp32-normwise"}, "error": {"fp32": {}, /' results/h200/l1_001_matmul.json
sed -i '/,fp32,/s/[^,]*$/7/' build/h200/l1_001_matmul.calibration.csv
mk calibrate
check 'a library that is less accurate is named' is "$(report 'What a library')" '- l1_001_matmul: 7'
check 'and counts as no honest one' is "$(report 'Honest arithmetic' | head -n 1) $(grep -c '`fp32` is at 7' results/h200/calibration.md)" '- l1_001_matmul: `kernel` at 0.7 0'
echo 'crfm_softmax,64,f16 sums,declared,9,40,1,5' > build/h200/crfm_softmax.calibration.csv
mk calibrate
check 'a suite has columns of what was tried there' is "$(grep '^| task' results/h200/calibration.md | sed 's/.*terms //' | paste -sd';')" '| f16 sums |;| fp32 | 16 bits | kernel |'

# ---- What is not tried now stays ------------------------------------------------------------

cp -r results/h200 recorded
rm build/h200/*.calibration.csv
touch fault/l1_019_relu
mk calibrate TASKS=l1_019
check 'where nothing was made nothing is written' diff -r recorded results/h200
check 'which is said' lines 1 '^calibration: nothing was made for h200: '
mk calibrate TASKS='l1_001 l1_019'
rm fault/*
check 'rows of a task that was not chosen, or that failed, stay' is "$(cut -d, -f1,3 results/h200/calibration.csv | sort -u | grep -v l1_001 | paste -sd' ')" \
    "$(cut -d, -f1,3 recorded/calibration.csv | sort -u | grep -v l1_001 | paste -sd' ')"
check 'those that were made take the place of what there was' is "$(cell fp32)" 0.3
touch large/crfm_softmax
rm build/h200/*.calibration.csv results/h200/calibration.*
mk calibrate TASKS=crfm
mk calibrate TASKS=l1_019
check 'why there is none of a task stays, too' is "$(report Missing)" '- crfm_softmax: needs at least 9.0 GB of GPU memory, 8.0 GB are free'
rm large/*
cp results/h200/calibration.csv kept
echo '{"task": "l1' > results/h200/crfm_softmax.json
mk calibrate
check 'a recorded result that is cut short is named' lines 1 '^calibration: results/h200/crfm_softmax.json is no JSON'
check 'in one line' is "$(grep -c 'parse error' "$out") $(grep -c '^make: .* Error 3$' "$out")" '0 1'
rm results/h200/crfm_softmax.json
mkdir results/h200/calibration.md+
mk calibrate
check 'a table that cannot be written is one line' lines 1 '^calibration: cannot write results/h200/calibration.csv'
check 'and ends with 5' says '^make: .* Error 5$'
check 'of both what was there stays' cmp kept results/h200/calibration.csv
rmdir results/h200/calibration.md+
gpus
mk calibrate
check 'without a GPU it says so' says '^no NVIDIA GPU here'
cd "$root" || exit

# ---- The program, on the pretend GPU ------------------------------------------------------

. tests/fake/lib.sh
log=$scratch/log
# calibrated TASK - its lines, in $out; log says what it did.
calibrated() {
    rm -f "$log"
    CUDA_VISIBLE_DEVICES="log=$log" "$bin/calibrate" "tasks/fake/$1.json" > "$out" 2>&1
}
# most ARITHMETIC - of the limit.
most() { awk -F, -v name="$1" '$3 == name && $8 + 0 > x { x = $8 + 0 } END { print x + 0 }' "$out"; }
above() { awk -v x="$(most "$1")" -v least="$2" 'BEGIN { exit !(x > least) }'; }
judged() { cut -d, -f4 "$out" | sort -u | wc -l; } # distributions
passes() { grep -c 'oracle of' "$log"; } # of the oracle over a sample
calibrated matmul8
check 'every arithmetic is judged on each distribution' is "$(cut -d, -f3 "$out" | sort | uniq -c | awk '{ print $1 }' | sort -u)" "$(judged)"
check 'all eleven' is "$(cut -d, -f3 "$out" | sort -u | wc -l)" 11
check 'the terms of a sum are counted' is "$(cut -d, -f2 "$out" | sort -u)" 8
check 'the honest one is within the limit' not above fp32 1
for dishonest in tf32 '18 bits' '16 bits' '11 bits' 'a term dropped' 'two halves a block' 'results in f16'; do
    check "$dishonest: it is not" above "$dishonest" 1
done
check 'the fewer bits, the further off' above '8 bits' "$(most '16 bits')"
check 'the oracle runs once for all' is "$(passes)" "$(judged)"
calibrated layer_norm
check 'a task without a product has no TF32, and no term to drop' is "$(cut -d, -f3 "$out" | sort -u | wc -l)" 9
KP_FAKE_MEMORY=300000 calibrated relu256
status=$?
check 'a task that does not fit is a line' lines 1 '^# relu256: needs at least .* GB of GPU memory, .* GB are free$'
check 'and no failure' [ $status = 0 ]
KP_FAKE_MEMORY=900000000 calibrated matmul8
check 'where memory is short, one at a time' is "$(passes) $(cut -d, -f3 "$out" | sort -u | wc -l)" "$(($(judged) * 9)) 11"
check 'with the same noise and contents' is "$(grep -c 'fill a' "$log") $(grep 'fill a' "$log" | sort -u | wc -l)" "$(($(judged) * 18)) $(judged)"
