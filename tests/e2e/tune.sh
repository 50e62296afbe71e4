#!/bin/bash
# make tune: the fastest of the ways that a family's kernel knows, for each shape, on pretend GPUs.
# shellcheck disable=SC2016,SC2154
. tests/e2e/lib.sh

# A kernel is as fast as `speed = X` in its source says: here its choice.
world() {
    tree
    rm -r tasks optimized/portable/*
    mkdir -p tasks/fam pretend
    echo '{"title": "a"}' > tasks/fam/template.json
    printf '1_1\n2_2\n3_3\n' > tasks/fam/shapes
    cp "$root"/tests/e2e/pretend/* pretend/
    printf '// provenance: shipped\n// tuned: own\n#ifdef KP_OWN_CHOICE\nconst double KP_OWN_CHOICE;\n#else\n#include "own_table.cuh"\n#endif\n' > optimized/portable/fam.cu
    printf '/* own_table.cuh: choices. */\n{9, 9, speed = 5}, /* 20.00 us, board x */\n' > optimized/include/own_table.cuh
    cat > optimized/include/own_choice.cuh << 'END'
#include <cstdio>
#include <cstdlib>
int main(int, char **size) {
    const int n = atoi(size[1]);
    const char *const fast[] = {"speed = 1.0", "speed = 1.005", "speed = 3.0", "speed = 8.0 // WRONG"};
    if (n == 3) return 0;
    for (int i = 0; i < (n == 1 ? 4 : 2); i++) printf("%s\t%d\n", fast[i], 10 + i);
    printf("speed = 9.0\t14\n"); // too slow by the model
}
END
}
table() { grep -v '^/' optimized/include/own_table.cuh; }

world
mk tune SUITE=fam
check 'a program without choices for a shape is one line' lines 1 '^tune: build/tune/own has no choices for fam_3_3$'
printf '1_1\n2_2\n' > tasks/fam/shapes
mk -j4 tune SUITE=fam
check 'choices are built, verified and timed' is "$(grep -c '^time tune' steps.log) $(grep -c '^nvcc fam' steps.log)" '6 6'
check 'each is a line that says how far it is' says '^\[6/6\] build/tune/.* [0-9.]*x$'
check 'but those that the model finds slow' not grep -rqs 'speed = 9' build/tune --include=*.cu
check 'what is right and fastest is kept, what is faster by less than 1 % is not' is "$(table)" \
    '{1, 1, speed = 3.0}, /* 33.33 us, board unknown */
{9, 9, speed = 5}, /* 20.00 us, board x */'
check 'which is said' says "^tune: optimized/include/own_table.cuh has 2 choices that are faster than the model's$"
rm steps.log
mk tune SUITE=fam
check 'nothing is measured twice' not grep -qs '^time' steps.log
check 'and the table stays' is "$(table | wc -l)" 2
sed -i 's/"speed = 3.0"/"speed = 4.0"/' optimized/include/own_choice.cuh
mk tune SUITE=fam
check 'a choice that is new is measured, and replaces the line' is "$(table | head -n 1) $(grep -c '^time' steps.log)" '{1, 1, speed = 4.0}, /* 25.00 us, board unknown */ 1'
sed -i 's/"speed = 4.0"/"speed = 0.5"/' optimized/include/own_choice.cuh
mk tune TASKS=fam_1_1
check "where the model's is the fastest there is no line" is "$(table)" '{9, 9, speed = 5}, /* 20.00 us, board x */'

sed -i '2d' optimized/portable/fam.cu
mk tune SUITE=fam
check 'a kernel without choices is one line' lines 1 '^tune: none of these cells has a kernel with choices'
echo 'broken' >> optimized/include/own_choice.cuh
sed -i '1a // tuned: own' optimized/portable/fam.cu
mk tune SUITE=fam
check 'a list that does not compile is said' says '^tune: optimized/include/own_choice.cuh: see above$'
gpus
mk tune SUITE=fam
check 'without a GPU it says why' not says '^tune:'
