#!/bin/bash
# make experiment, end to end, on scripted models of known quality: one that learns from feedback, one
# that does not, one that is right by chance.  What intervals are worth is tests/unit/base/test_groups.c's.
# uses: build/gen build/best build/modes
# shellcheck disable=SC2016,SC2154,SC2034  # out, root, scratch are lib.sh's
. tests/e2e/lib.sh
. tests/mock/lib.sh

needs 'experiments' gen best modes
. tests/mock/world.sh
experiment() { ask_make -j4 experiment "TASKS=l1_019 l1_023" MODES='best_of_n repair' WIDTH=2 "$@"; }
# beats ROW COLUMN - the probability in the report.
beats() { awk -v row="$1" -v column="$2" '/^probability/ { getline; for (i = 1; i <= NF; i++) if ($i == column) at = i + 1; on = 1; next } on && $1 == row { print $at }' "$out"; }
# row MODE - best so far after each quarter of the budget.
row() { awk -v mode="$1" '$1 == mode && /\[/ { gsub(/\[[^]]*\]/, ""); print $2, $3, $4, $5; exit }' "$out"; }
tracked() { find README.md optimized plots results tasks harness -type f -printf '%p %T@ %s\n' 2> /dev/null | sort; }

# A model whose second round is twice as fast as its first, and whose third three times.
world
for seed in 1 2; do
    reply 100 "(Request repair-$seed.r2" "$(kernel 2.4)"
    reply 100 "(Request repair-$seed.r3" "$(kernel 3.6)"
done
reply 100 l1_0 "$(kernel 1.2)"
tracked > before
experiment SEEDS=2 BUDGET=6
check 'an experiment succeeds' exits 0 $?
check 'with as many calls for each task, mode and seed' asked 48
check 'a search sees its own attempts alone' is "$(jq -r .shown[] build/attempts/repair-1.r2a1/h200/$relu.gen.json | cut -d. -f1)" repair-1
check 'independent draws go on being independent' is "$(jq -c .shown build/attempts/best_of_n-2.r1a6/h200/$relu.gen.json)" '[]'
check 'modes take turns' is "$(jq -r 'select(.request) | .body' "$journal" | grep -oE 'Request (best_of_n|repair)-[0-9]+\.r[0-9]+a[0-9]+' | awk '{ mode = $2; sub(/-.*/, "", mode); if (NR <= 16) seen[mode]++ } END { print seen["best_of_n"], seen["repair"] }')" '8 8'
check 'who learns from feedback wins' is "$(beats repair best_of_n) $(beats best_of_n repair)" '1.00 0.00'
check 'with the speedups that there are' is "$(row repair)" '1.20 2.40 2.40 3.60'
check 'and none for draws' is "$(row best_of_n)" '1.20 1.20 1.20 1.20'
check 'no tracked file has changed' cmp before <(tracked)
experiment SEEDS=2 BUDGET=6
check 'made again, it asks nothing' asked 48
check 'and says the same' is "$(beats repair best_of_n)" 1.00
experiment SEEDS=2 BUDGET=8
check 'a larger budget goes on from there' asked 64
mk record "TASKS=l1_019 l1_023"
check 'the table of searches has none of it' [ ! -e results/search/h200/$relu.csv ]
ask_make gen TASKS=l1_019
check 'a later gen succeeds' exits 0 $?
check 'and promotes its own attempt, though those of the experiment are faster' grep -q 'attempt one_shot.r1a1,' optimized/h200/$relu.cu

# A model that feedback does not help.
world
reply 1000 l1_0 "$(kernel 1.5)"
experiment SEEDS=1 BUDGET=4
check 'where nothing differs, nobody wins' is "$(beats repair best_of_n)" 0.50
check 'at the same speed' is "$(row repair) $(row best_of_n)" '1.50 1.50 1.50 1.50 1.50 1.50 1.50 1.50'

# A model whose k-th sample is right with a given probability, lower for independent draws: what is drawn
# here is what the report has to find.
world
awk -v right="$(kernel 2)" -v wrong="$(kernel 9 WRONG)" -v table="$scratch/drawn" '
    function drawn(mode, p, round, index_, k) {
        state = state * 16807 % 2147483647
        good = state < p * 2147483647
        if (good && !(task mode seed in first)) first[task mode seed] = k
        printf "on\nbody (Request %s-%d.r%da%d\nbody %s\nanswer %s\nusage 1000 0 500 0\n", mode, seed, round, index_, task, good ? right : wrong
    }
    BEGIN {
        state = 5
        for (k = 0; k < 9; k++) state = state * 16807 % 2147483647
        split("l1_019 l1_023", tasks)
        split("best_of_n repair", modes)
        for (seed = 1; seed <= 2; seed++)
            for (t = 1; t <= 2; t++) {
                task = tasks[t]
                for (k = 1; k <= 8; k++) drawn("best_of_n", 0.15, 1, k, k)
                for (k = 1; k <= 8; k++) drawn("repair", 0.6, int((k + 1) / 2), 2 - k % 2, k)
            }
        # 2 from the first right sample on, 1 before it: the mean over tasks and seeds is geometric.
        for (m = 1; m <= 2; m++) {
            line = modes[m]
            for (quarter = 2; quarter <= 8; quarter += 2) {
                n = 0
                for (key in first) if (index(key, modes[m]) && first[key] <= quarter) n++
                line = line sprintf(" %.2f", 2 ^ (n / 4))
            }
            print line > table
        }
    }' >> "$rules"
experiment SEEDS=2 BUDGET=8
check 'of samples that are right by chance the report has what was drawn' is "$(for mode in best_of_n repair; do echo "$mode $(row $mode)"; done)" "$(cat "$scratch/drawn")"
check 'the modes are ranked as they were made' is "$(awk -v p="$(beats repair best_of_n)" 'BEGIN { print (p > 0.5) }')" 1

# ---- Words ------------------------------------------------------------------------------------

experiment BUDGET=2
check 'a budget below a round is one line' lines 1 'BUDGET=2: expected'
ask_make experiment TASKS=l1_019 MODES=luck
check 'so is an unknown mode' lines 1 "MODE: no 'luck'"
printf 't m-1 1\n' | "$root/build/modes" 24 > "$out" 2>&1
check 'a report of other lines is refused' is "$? $(wc -l < "$out")" '3 1'
printf 't a 1 1 1 1 1 9\nu a 1 1 1 1 1 9\nt b 1 1 1 1 1 9\n' | "$root/build/modes" 24 > "$out" 2>&1
check 'and one that is not whole' says 'b has no search of u: finish the experiment'
printf 'a m 1 inf inf inf inf 1\nb m 1 1 1 1 1 1\n' | "$root/build/modes" 4 > "$out" 2>&1
check 'an infinite speedup is none' is "$? $(cat "$out")" '3 modes: a m: inf is no speedup'
printf 'a m 1 1 1 1 1 inf\n' | "$root/build/modes" 4 > "$out" 2>&1
check 'nor are there infinitely many tokens' is "$? $(cat "$out")" '3 modes: a m: inf is no number of tokens'

leak_checks
