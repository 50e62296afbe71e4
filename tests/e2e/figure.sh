#!/bin/bash
# The figure of searches, drawn by gnuplot from calls of several models, whose names say more than
# a name should.
# uses: build/report
# shellcheck disable=SC2016,SC2154  # out, root, scratch are lib.sh's
. tests/e2e/lib.sh
if ! [ -x build/report ] || ! command -v gnuplot > /dev/null; then
    skip 'the figure of searches' 'no build/report, or no gnuplot'
    exit
fi
out=$scratch/out
mkdir -p "$scratch/plots" "$scratch/results/search/h200" "$scratch/results/h200"
cp plots/*.gp "$scratch/plots"
find results/h200 -name '*.json' | head -n 1 | xargs -I{} cp {} "$scratch/results/h200"
cd "$scratch" || exit

# rows MODEL COST RATIO [MODE] - calls of a model: two attempts in each of two rounds, the last the best.
rows() {
    local r a mode=${4-repair}
    for r in 1 2; do
        for a in 1 2; do
            echo "h200,x,$mode,$r,$a,$mode.r${r}a$a,$1,code,ok,fp32,$3,$3,$3,5,100,10,$2,1,,2026-11-21T10:00:00Z,ab"
        done
    done
}
# read_words FIGURE - its words, a line each, go to the file `words`; none if it was not drawn.
read_words() {
    sed -n 's|.*<text>\(.*\)</text>.*|\1|p' "plots/$1.svg" 2> /dev/null |
        sed 's/&lt;/</g; s/&gt;/>/g; s/&quot;/"/g; s/&apos;/'"'"'/g; s/&amp;/\&/g' > words
}
# drawn ROWS... - draw them, as SVG and PNG, and read the words.
drawn() {
    { echo gpu,task,mode,round,index,attempt,model,outcome,verdict,class,ratio,low,high,us,input_tokens,output_tokens,cost_usd,seconds,same_as,date,code_sha256
      printf '%s\n' "$@"; } > results/search/h200/x.csv
    printf '<!-- results:begin -->\n<!-- results:end -->\n' > README.md
    rm -f plots/search.{svg,png}
    "$root/build/report" --tasks "$root/tasks" > "$out" 2>&1
    status=$?
    read_words search
}
words() { grep -qxF -- "$1" words || { echo "not in the figure: $1"; return 1; }; }
quiet() { ! grep -v '^report: 1 results' "$out"; }

drawn "$(rows m 0.5 2)" "$(rows m 0.25 1.5 best_of_n)" "$(rows org/model-2_x:free 0 1.2)"
check 'the figure of two models is drawn' [ "$status" = 0 ]
check 'in silence' quiet
check 'as PNG, too' [ -s plots/search.png ]
check 'each has a panel' words 'h200, m: 8 attempts, 3.00 USD'
check 'by its name' words 'h200, org/model-2_x:free: 4 attempts, 0.00 USD'
check 'one has an axis of money' is "$(grep -cxF 'spent on a task (USD)' words)" 1
check 'the other needs none' is "$(grep -cxF 'no call cost anything' words)" 1
check 'a part of the bars holds doubtful kernels, and those that did not run' words 'wrong, doubtful, failed to run'
check 'each has a row' is "$(grep -cE '^\| h200 \| (m|org/model-2_x:free) \| (repair|best_of_n) \|' results/search/README.md)" 3

drawn "$(rows m '' 2)" "$(rows n '' 2)" "$(rows n 0 2 best_of_n)"
check 'prices that are not known are none' is "$(grep -cxF 'prices are not known' words)" 1
check 'nor are those of some modes' is "$(grep -cxF 'no call cost anything whose price is known' words)" 1

name='`touch one` $(touch two)\n'"'"'@x#_z_^w{u}%d<b>|[a](b)'
drawn "$(rows "\"$name \"\"; system('touch three')\"" 0.5 2)" "$(rows 日本 0.5 2)"
check 'names of any kind are drawn' [ "$status" = 0 ]
check 'as they are' words "h200, $name \"; system('touch three'):"
check 'but for what a font may lack' words 'h200, ??: 4 attempts, 2.00 USD'
check 'and none is run' is "$(find . -name one -o -name two -o -name three)" ''
check 'in the table they are one field' is "$(grep '| repair |' results/search/README.md | tr -dc '|\n' | sort -u)" '|||||||||||||'
check 'which shows what is meant' grep -qF '| h200 | 日本 | repair |' results/search/README.md

# ---- Families of products ----------------------------------------------------------------------

mkdir -p tasks/hgemm && cp "$root/tasks/hgemm/template.json" tasks/hgemm/
# shapes N - results of the first N shapes of M, N and K, the speedup 2 where K is 64, else 0.5; and draw them.
shapes() {
    local shape n=0
    rm -f results/h200/* plots/shapes.{svg,png} tasks/hgemm/shapes
    for shape in {64,128}_{64,128,256}_{64,4096}; do
        [ $((n += 1)) -le "$1" ] || break
        echo "$shape" >> tasks/hgemm/shapes
        jq --arg task "hgemm_$shape" --argjson ratio "$([ "${shape##*_}" = 64 ] && echo 2 || echo 0.5)" '.suite = "hgemm" | .task = $task | .class = "f16" | .flags = [] |
            .speedup += {$ratio, low: $ratio, high: $ratio} | .floor_us = .time_us.candidate.midmean / 2 |
            if $ratio == 2 then .vendor_us = {cublas_nn: 3, lt_nn: 4, lt_tuned_nn: 2} else . end' "$root/results/h200/l1_019_relu.json" > "results/h200/hgemm_$shape.json"
    done
    "$root/build/report" > "$out" 2>&1
    status=$?
    read_words shapes
}
shapes 12
check 'the shapes of a family are drawn' [ "$status" = 0 ]
check 'with their mean' words 'h200, hgemm: 12 shapes, geometric mean 1.000'
check 'as PNG, too' [ -s plots/shapes.png ]
read_words speedup
check 'what is said of other tasks counts none of them' grep -q ' correct, 0 significantly faster, 0 slower$' words
check "README's figure has room for its titles" not grep -qE '<text>[^<]{101}' "$root/plots/speedup.svg"
check 'what was published is over other calls, and the figure says so' grep -q 'as published: over the faster of cuBLASLt' "$root/plots/beside.svg"
check 'their mean is said apart' grep -q '^geometric means: .*; hgemm 1.000$' words
check 'nor does their curve' is "$(sed '1,/^# h200 all$/d' plots/data/fast_p.tsv | grep -c '^[0-9]') $(sed '1,/^# h200 all$/d' plots/data/fast_p.tsv | grep -c -- -)" '2 0'
read_words shapes
check 'each K is a row' is "$(grep -cxE '64|4096' words)" 2
check 'each M N and K has the mean of its shapes, and the least' is "$(grep -v '^#' plots/data/shapes.tsv | cut -f1,3-6 | tr '\t\n' ' ;')" \
    '12 64 2 1 2;13 64 2 2 2;14 64 2 2 2;15 64 2 1 2;12 4096 0.5 1 0.5;13 4096 0.5 2 0.5;14 4096 0.5 2 0.5;15 4096 0.5 1 0.5;;;'
check 'the distributions over calls and by size are drawn' is "$(sed -n 's|.*<text>\(.*\)</text>.*|\1|p' plots/curves.svg | grep 'shapes, [0-9]' | paste -sd';')" \
    'cublas_nn: 6 shapes, 3.000;lt_nn: 6 shapes, 4.000;lt_tuned_nn: 6 shapes, 2.000;the fastest of them: 12 shapes, 1.000;below 2^24: 6 shapes, 2.000;2^24 to 2^28: 6 shapes, 0.500'
check 'and the page shows them' grep -q 'plots/curves.svg' results/h200/README.md
check 'which is written there' is "$(grep -cx '2.00' words) $(grep -cx '0.50' words)" '4 4'
check 'the page of the GPU shows it' grep -q 'plots/shapes.svg' results/h200/README.md
table() { sed -n '/^| hgemm, M N K/,/^$/s/^| \(.*\) |$/\1/p' results/h200/README.md; }
check 'a table has sizes and calls; what a call has no time of is left out' is "$(table)" 'hgemm, M N K | shapes | over the best call (95 %) | median | below 0.95 | of floor | over cublas_nn | over cublas_tn | over lt_nn | over lt_tn | over lt_tuned_nn | over lt_tuned_tn
below 2^24 | 6 | 2.000 | 2.000 | 0 | 50 % | 3.000 | - | 4.000 | - | 2.000 | -
2^24 to 2^28 | 6 | 0.500 | 0.500 | 6 | 50 % | - | - | - | - | - | -
**below 2^33** | 12 | 1.000 | 1.250 | 6 | 50 % | 3.000 | - | 4.000 | - | 2.000 | -
**all** | 12 | 1.000 | 1.250 | 6 | 50 % | 3.000 | - | 4.000 | - | 2.000 | -'
# Another GPU's panel comes first, of one K: its range must not hide the others' K.
mkdir results/h100
for shape in {64,128}_{64,128,256,512,1024}_64; do
    grep -qx "$shape" tasks/hgemm/shapes || echo "$shape" >> tasks/hgemm/shapes
    jq --arg task "hgemm_$shape" '.gpu = "h100" | .task = $task' results/h200/hgemm_64_64_64.json > "results/h100/hgemm_$shape.json"
done
"$root/build/report" > "$out" 2>&1
read_words shapes
check 'beside another GPU, too' is "$(grep -cx 64 words) $(grep -cx 4096 words)" '2 1'
rm -r results/h100
shapes 9
check 'no table of nine, either' is "$(table)" ''
check 'nine are too few' [ ! -e plots/shapes.svg ]
check 'and the page shows none' not grep -q 'plots/shapes.svg' results/h200/README.md

# ---- Panels ------------------------------------------------------------------------------------

# The speedups of one GPU must not cut off those of the next.
rm -rf tasks results/h200 results/h100
mkdir -p results/h200 results/h100
for gpu in h100 h200; do
    jq --arg gpu "$gpu" --argjson ratio "$([ "$gpu" = h100 ] && echo 1.2 || echo 40)" '.gpu = $gpu | .flags = [] |
        .speedup += {$ratio, low: $ratio, high: $ratio}' "$root/results/h200/l1_019_relu.json" > "results/$gpu/l1_019_relu.json"
done
"$root/build/report" --tasks "$root/tasks" > "$out" 2>&1
read_words speedup
check 'an axis reaches to the largest speedup' words 32

# ---- What is committed -------------------------------------------------------------------------

mkdir "$scratch/whole" && cd "$scratch/whole" || exit
cp -R "$root"/{results,plots,README.md} . && ln -s "$root"/{harness,optimized,reference,tasks} .
"$root/build/report" > "$out" 2>&1
same() { diff -r "$1" "$root/$1"; }
check 'the pages are what report writes of the results' eval 'same README.md && same results'
check 'the figures are of these numbers, by the scripts of today' same plots/data
