#!/bin/bash
# What `make modes` finds becomes rows of results/modes.
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
    {$task, $verdict, $reason, class: "fp32", kernel: {code_sha256: "0123456789abcdef"}, machine: {uuid_hash: "abcdef012345"}, harness: {rounds: 160, date: "2026-01-01T00:00:00Z", commit: "1234567"}}
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
echo 'task,other' > $table
mk record
check 'a table with other columns is one line' lines 1 '^record-modes: results/modes/h200.csv has other columns: expected task,verdict,'
check 'and stays' is "$(cat $table)" 'task,other'
rm $table
echo '{' > build/h200/l1_019_relu.modes.json
mk record TASKS=l1_019
check 'so is a file that is no result' says '^record-modes: a file build/h200/\*.modes.json is no result'
check 'which makes no table' is "$(ls results/modes)" ''
