#!/bin/bash
# make tune: the fastest of the ways that a family's kernel knows, for each shape, on pretend GPUs.
# shellcheck disable=SC2016,SC2154
. tests/e2e/lib.sh

# A choice takes as many microseconds as its text says.
world() {
    tree
    rm -r tasks optimized/portable/*
    mkdir -p tasks/fam pretend
    echo '{"title": "a"}' > tasks/fam/template.json
    printf '1_1\n2_2\n3_3\n' > tasks/fam/shapes
    cat > pretend/choose << 'END'
#!/bin/bash
while read -r task at n; do
    [ -e "$task" ] || exit 3
    echo "choose ${at##*/}" >> steps.log
    [ ! -e "fault/${at##*/}" ] || { echo 'choose: the GPU is lost' >&2; exit 4; }
    for ((i = 0; i < n; i++)); do
        us=$(sed -n 's/^#define KP_OWN_CHOICE takes //p' "$at.cu" | sed -n "$((i + 1))p")
        [[ $us == *WRONG* ]] || printf '%s\t%s\t%s\t%s\tabc123\n' "$at" "$(< "$at.code")" "$i" "$us"
    done
done
END
    chmod +x pretend/choose
    cat > optimized/portable/fam.cu << 'END'
// provenance: shipped
// tuned: own
#include "own_choice.cuh"
const double KP_OWN_CHOICE;
extern "C" size_t scratch_bytes(void) {
    return 0;
}
extern "C" void launch() {
}
END
    printf '/* own_table.cuh: choices. */\n{9, 9, takes 5}, /* 20.00 us, board x */\n' > optimized/include/own_table.cuh
    cat > optimized/include/own_choice.cuh << 'END'
#ifdef KP_LIST
#include <cstdio>
#include <cstdlib>
int main(int, char **size) {
    const int n = atoi(size[1]);
    const char *const fast[] = {"takes 100", "takes 99.5", "takes 33.33", "takes 8 WRONG"};
    if (n == 3) return 0;
    for (int i = 0; i < (n == 1 ? 4 : 2); i++) printf("%s\t%d\n", fast[i], 10 + i);
    printf("takes 1\t19\n"); // too slow by the model
}
#endif
END
}
table() { grep -v '^/' optimized/include/own_table.cuh; }

world
mk tune SUITE=fam
check 'a program without choices for a shape is one line' lines 1 '^tune: build/tune/own has no choices for fam_3_3$'
printf '1_1\n2_2\n' > tasks/fam/shapes
mk -j4 tune SUITE=fam
check 'all choices of a shape are one library' is "$(grep '^choose' steps.log | sort | paste -sd,) $(grep -c '^nvcc fam' steps.log)" 'choose fam_1_1,choose fam_2_2 2'
check 'but those that the model finds slow' not grep -rqs 'takes 1$' build/tune --include=*.cu
check 'each in a namespace of its own' is "$(grep -c '^static void launch' build/tune/*/fam_1_1.cu) $(grep -c '^namespace choice_3 {' build/tune/*/fam_1_1.cu)" '4 1'
check 'what is right and fastest is kept, what is faster by less than 1 % is not' is "$(table)" \
    '{1, 1, takes 33.33}, /* 33.33 us, board abc123 */
{9, 9, takes 5}, /* 20.00 us, board x */'
check 'which is said' says "^tune: optimized/include/own_table.cuh has 2 choices that are faster than the model's$"
rm steps.log
mk tune SUITE=fam
check 'nothing is measured twice' not grep -qs '^choose' steps.log
check 'and the table stays' is "$(table | wc -l)" 2
cp optimized/include/own_table.cuh kept && sed -i 2d optimized/include/own_table.cuh
mk -n tune SUITE=fam
check 'a dry run changes no table' is "$(table | wc -l)" 1
cp kept optimized/include/own_table.cuh
sed -i 's/"takes 33.33"/"takes 25"/' optimized/include/own_choice.cuh
mkdir fault && touch fault/fam_1_1
mk tune SUITE=fam
check 'where the machine fails that is said' says '^tune: the machine failed on some'
check 'and the line stays that nothing was measured against' is "$(table | wc -l)" 2
rm -r fault
mk tune SUITE=fam
check 'a choice that is new is measured, and replaces the line' is "$(table | head -n 1) $(grep -c '^choose fam_1_1$' steps.log)" '{1, 1, takes 25}, /* 25.00 us, board abc123 */ 2' # one try failed
check 'nothing else is' not grep -q '^choose fam_2_2$' steps.log
sed -i 's/"takes 25"/"takes 200"/' optimized/include/own_choice.cuh
mk tune TASKS=fam_1_1
check "where the model's is the fastest there is no line" is "$(table)" '{9, 9, takes 5}, /* 20.00 us, board x */'

# A kernel of one GPU keeps a table of its own.
gpu=$(basename "$(ls -d build/tune/*/)")
mkdir "optimized/$gpu"
sed 's|// tuned: own|& own_table_here.cuh|' optimized/portable/fam.cu > "optimized/$gpu/fam.cu"
echo '/* own_table_here.cuh: choices. */' > optimized/include/own_table_here.cuh
sed -i 's/"takes 200"/OTHER/; s|^#include <cstdlib>|&\n#ifdef KP_OWN_TABLE\n#define OTHER "takes 30"\n#else\n#define OTHER "takes 40"\n#endif|' optimized/include/own_choice.cuh
mk tune TASKS=fam_1_1
check 'a kernel of one GPU has its choices listed for its own table' is "$(grep -v '^/' optimized/include/own_table_here.cuh)" \
    '{1, 1, takes 30}, /* 30.00 us, board abc123 */'
check 'and leaves the other as it is' is "$(table)" '{9, 9, takes 5}, /* 20.00 us, board x */'
rm -r "optimized/$gpu"

mkdir optimized/include/own_table.cuh+
mk tune TASKS=fam_1_1
check 'a table that cannot be written is an error' says 'tune\] Error 5$'
rmdir optimized/include/own_table.cuh+

for wrong in KP_TUNE_MOST=x KP_TUNE_MOST=0 KP_TUNE_SHARE=x KP_TUNE_GAIN=1%; do
    mk tune SUITE=fam "$wrong"
    check "$wrong is one line" is "$(grep -c "^tune: .*${wrong%=*}.* not '${wrong#*=}'$" "$out") $(grep -c 'tune\] Error 2$' "$out")" '1 1'
done

sed -i '2d' optimized/portable/fam.cu
mk tune SUITE=fam
check 'a kernel without choices is one line' lines 1 '^tune: none of these cells has a kernel with choices'
sed -i '1a broken' optimized/include/own_choice.cuh
sed -i '1a // tuned: own' optimized/portable/fam.cu
mk tune SUITE=fam
check 'a list that does not compile is said' says '^tune: optimized/include/own_choice.cuh: see above$'
gpus
mk tune SUITE=fam
check 'without a GPU it says why' not says '^tune:'
