#!/bin/bash
# What `make modes` finds becomes rows of results/modes, and these a table and a figure of a family.
# uses: build/report
# shellcheck disable=SC2016,SC2154
. tests/e2e/lib.sh

tree
mkdir pretend
# time --modes of a kernel that is right, or says WRONG: 1.2 times as fast back to back, 1.5 times after gaps.
cat > pretend/time << 'END_OF'
#!/bin/bash
[ "$1" = --modes ] || exit 4
prefix=$3 verdict=ok reason=null
echo "modes ${prefix#build/}" >> steps.log
! grep -q WRONG optimized/portable/"${prefix##*/}".cu || { verdict=wrong reason='"server: out[7] is 1,\nnot 2"'; }
jq -n --arg task "${prefix##*/}" --arg verdict "$verdict" --argjson reason "$reason" '
    def mode($ratio): {beyond_l2: true, time_us: {candidate: {midmean: 10}, fp32: {midmean: (10 * $ratio)}}, speedup: {against: "fp32", ratio: $ratio, low: ($ratio - 0.1), high: ($ratio + 0.1)}};
    {$task, $verdict, $reason, class: "fp32", inputs: {kernel: "0123456789abcdef"}, machine: {uuid_hash: "abcdef012345"}, harness: {rounds: 160, date: "2026-01-01T00:00:00Z", commit: "1234567"}}
    + if $verdict == "ok" then {modes: {offline: mode(1.2), server: mode(1.5)}} else {} end' > "$prefix.modes.json"
END_OF
chmod +x pretend/time
echo '// WRONG' >> optimized/portable/l1_001_matmul.cu
table=results/modes/h200.csv
row() { grep "^$1," $table; }
mk record
check 'where nothing was measured there is no table' [ ! -e results/modes ]
mk modes && mk record
check 'each cell has a row' is "$(cut -d, -f1 $table | paste -sd' ')" 'task crfm_softmax l1_001_matmul l1_019_relu'
check 'of times and speedups in both modes' is "$(row l1_019_relu)" \
    'l1_019_relu,ok,fp32,true,10,12,1.2,1.1,1.3,10,15,1.5,1.4,1.6,160,abcdef,2026-01-01T00:00:00Z,1234567,0123456789ab,'
check 'a wrong one has its reason, in one field of one line' is "$(row l1_001_matmul)" \
    'l1_001_matmul,wrong,fp32,,,,,,,,,,,,160,abcdef,2026-01-01T00:00:00Z,1234567,0123456789ab,server: out[7] is 1;not 2'
check 'and that is said' says '^record-modes: results/modes/h200.csv: 3 rows written, 3 in all$'
rm -r build/h200/*.modes.json
sed -i 's/^crfm_softmax,ok/crfm_softmax,crash/; s/^l1_019_relu,ok/l1_019_relu,crash/' $table
mk modes TASKS=l1_019 && mk record
check 'what is measured again replaces its row' is "$(cut -d, -f1,2 $table | paste -sd' ')" 'task,verdict crfm_softmax,crash l1_001_matmul,wrong l1_019_relu,ok'

# A family has a sample, which is what is measured of it; TASKS may name others.
mkdir -p tasks/pair
echo '{}' > tasks/pair/template.json
printf '%s\n' 1_1 1_2 2_1 2_2 > tasks/pair/shapes
printf '%s\n' 1_2 2_1 > tasks/pair/sample
echo '// kernel of pair' > optimized/portable/pair.cu
rm steps.log
mk modes SUITE=pair
check 'of a family its sample is measured' is "$(grep '^modes' steps.log | sort | paste -sd' ')" 'modes h200/pair_1_2 modes h200/pair_2_1'
rm steps.log
mk modes SUITE=pair TASKS=pair_1_1
check 'or what TASKS names' is "$(grep '^modes' steps.log)" 'modes h200/pair_1_1'
mk verify SUITE=pair
check 'all of it is built and verified' is "$(find build/h200/ -name 'pair*.verify.json' | wc -l)" 4
check 'the sample of hgemm has a shape of each stratum' is \
    "$(awk -F_ '{ n = split("64 128 256 512 1024 2048 4096 8192 12288 16384", s, " "); for (i = 1; i <= n; i++) at[s[i]] = int((i - 1) / 2); print at[$1], at[$2], at[$3] }' "$root/tasks/hgemm/sample" | sort -u | wc -l) $(grep -cxFf "$root/tasks/hgemm/shapes" "$root/tasks/hgemm/sample")" '125 125'
rm -r tasks/pair optimized/portable/pair.cu build/h200/pair*
echo 'task,other' > $table
mk record
check 'a table with other columns is one line' lines 1 '^record-modes: results/modes/h200.csv has other columns: expected task,verdict,'
check 'and stays' is "$(cat $table)" 'task,other'
rm $table
echo '{"task": "crfm' > build/h200/crfm_softmax.modes.json
: > build/h200/l1_001_matmul.modes.json
echo '{}' > build/h200/l1_019_relu.modes.json
mk record
check 'so is each file that is no result' lines 3 '^record-modes: build/h200/.*.modes.json is no result \(cut short\?\): not recorded'
check 'of which there is no other word' lines 0 '^(jq|parse)'
check 'which makes no table' is "$(ls results/modes)" ''
rm build/h200/crfm_softmax.modes.json
mk modes TASKS=crfm_softmax
mk record GPUS=h200
check 'and costs no other' is "$(cut -d, -f1 $table | paste -sd' ')" 'task crfm_softmax'
check 'but fails as REPRODUCE says' says '^make: .* Error 3$'
rm build/h200/l1_0*.modes.json
mkdir -p results/h200 && echo 1234567 > results/h200/tree
echo '{}' > build/h200/l1_019_relu.time.json
rm $table
mk record
check 'results that are of another commit cost no mode' is "$(cut -d, -f1 $table | paste -sd' ')" 'task crfm_softmax'
check 'though the record fails' says '^make: .* Error 3$'
rm -r results/h200

# ---- The table and the figure ------------------------------------------------------------------

if ! [ -x "$root/build/report" ] || ! command -v gnuplot > /dev/null; then
    skip 'the figure of what stands beside' 'no build/report, or no gnuplot'
    exit
fi
cd "$(mktemp -d "$scratch/XXXXXX")" || exit
mkdir -p plots results/{h200,modes,foreign,published} tasks/hgemm
cp "$root"/plots/*.gp plots/
cp "$root/tasks/hgemm/template.json" tasks/hgemm/
printf '<!-- results:begin -->\n<!-- results:end -->\n' > README.md
header=$(sed -n 's/^columns=//p' "$root/harness/record/record-modes")
echo "$header" > results/modes/h200.csv
echo task,kernels,verdict,class,candidate_us,baseline_us,ratio,board,date,commit,reason > results/foreign/h200.csv
echo gpu,task,offline,server > results/published/cuda_l2.csv
# shape M_N_K RATIO CODE MODES THEIRS - a result; its rows beside: `MODES` and `THEIRS` as far as they are given.
shape() {
    echo "$1" >> tasks/hgemm/shapes
    jq --arg task "hgemm_$1" --argjson ratio "$2" '.suite = "hgemm" | .task = $task | .class = "f16" | .flags = [] |
        .inputs.kernel = "aaaabbbbccccdddd" | .speedup += {$ratio, low: $ratio, high: $ratio}' "$root/results/h200/l1_019_relu.json" > "results/h200/hgemm_$1.json"
    [ -z "$4" ] || echo "hgemm_$1,ok,f16,true,1,1,$4,1,1,1,1,$4,1,1,160,abcdef,2026,1,$3," >> results/modes/h200.csv
    [ -z "$5" ] || echo "hgemm_$1,h100_F32F16F16F32,$5,abcdef,2026,1,\"x, y\"" >> results/foreign/h200.csv
}
shape 64_64_64 2 aaaabbbbcccc 3 ok,f16,1,1,0.9
shape 64_64_128 1 aaaabbbbcccc 3 gate,,,,
shape 64_64_256 1 ffffbbbbcccc 9 ok,f16,1,1,1.6
shape 64_64_512 1 '' '' ok,other,1,1,5
echo 'hgemm_7_7_7,ok,f16,true,1,1,9,1,1,1,1,9,1,1,160,abcdef,2026,1,aaaabbbbcccc,' >> results/modes/h200.csv
drawn() { "$root/build/report" > "$scratch/drawn" 2>&1; sed -n 's|.*<text>\(.*\)</text>.*|\1|p' plots/beside.svg > words 2> /dev/null; }
drawn
ways() { sed -n '/^| hgemm | shapes | over/,/^$/s/^| \(.*\) |$/\1/p' results/h200/README.md | tail -n +2; }
check 'modes count of the kernel whose result is recorded, and theirs of the class of the task' is "$(ways)" 'ours, cold L2 (the headline) | 4 | 1.189 | 1.000 | 0 | 1.189 (4)
ours, offline, warm L2 | 2 | 3.000 | 3.000 | 0 | 1.414 (2)
ours, server, warm L2 | 2 | 3.000 | 3.000 | 0 | 1.414 (2)
CUDA-L2'"'"'s, judged here, cold L2 | 2 | 1.200 | 1.250 | 1 | 1.414 (2)'
check 'verdicts are counted' grep -q '^Of 4 sources of CUDA-L2 that were judged here: 1 `gate`, 3 `ok` (' results/h200/README.md
check 'the page shows the figure' grep -q 'plots/beside.svg' results/h200/README.md
check 'which has a curve of each' is "$(grep -E 'shapes?, [0-9.]+$' words | sed 's/&apos;/'"'/" | paste -sd';')" "ours, offline, warm L2: 2 shapes, 3.000;ours, server, warm L2: 2 shapes, 3.000;CUDA-L2's, judged here, cold L2: 2 shapes, 1.200;ours, cold L2 (the headline): 4 shapes, 1.189"
check 'the slowest shape first' is "$(sed -n "/^CUDA-L2's, judged/,/^$/p" plots/data/beside.tsv | tail -n +2 | tr '\t\n' ' ;')" '25.0000 0.9;75.0000 1.6;;'
check 'in silence' not grep -v '^report: [0-9]* results' "$scratch/drawn"
echo h200,hgemm_64_64_64,1.1,1.3 >> results/published/cuda_l2.csv
echo h100,hgemm_64_64_128,1.1,1.3 >> results/published/cuda_l2.csv
drawn
check 'what was published stands beside, of the same GPU' is "$(ways | grep published)" "CUDA-L2's, as published for h200, offline, warm L2 | 1 | 1.100 | 1.100 | 0 | 2.000 (1)
CUDA-L2's, as published for h200, server, warm L2 | 1 | 1.300 | 1.300 | 0 | 2.000 (1)"
echo h200,hgemm_64_64_256,1.1,1.4 >> results/published/cuda_l2.csv # judged here, too; the next one is not right
echo h200,hgemm_64_64_128,9,9 >> results/published/cuda_l2.csv
drawn
check 'and for the sources that have a speedup here' grep -q '^Published for the 2 with a speedup here: 1.100 offline, 1.349 server.$' results/h200/README.md
# A GPU of which nothing was published shows what was for another of its architecture, if that has a column.
sed -i /^h200,/d results/published/cuda_l2.csv
drawn
check 'without a column for that GPU nothing is shown' is "$(ways | grep published)" ''
mkdir results/h100 && jq '.gpu = "h100"' results/h200/hgemm_64_64_64.json > results/h100/hgemm_64_64_64.json
drawn
check 'what was published for another GPU of the architecture says for which' is "$(ways | grep -c 'as published for h100, offline, warm L2 | 1 | 1.100')" 1
jq '.gpu = "h100" | .kernel.arch = "sm_80" | .machine.compute_capability = "8.0"' results/h200/hgemm_64_64_64.json > results/h100/hgemm_64_64_64.json
drawn
check 'of another architecture it is not shown' is "$(ways | grep published)" ''
rm -r results/h100
rm -r results/{modes,foreign,published} plots/beside.*g
drawn
check 'without such tables there is no figure' [ ! -e plots/beside.svg ]
check 'and no table' is "$(ways)" ''
