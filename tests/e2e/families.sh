#!/bin/bash
# Families of tasks: a template, a list of shapes, one kernel for all.
. tests/e2e/lib.sh

tree
rm -r tasks optimized/portable/*
mkdir -p tasks/fam tasks/level1
echo '{"title": "a"}' > tasks/fam/template.json
printf '1_1\n2_2\n' > tasks/fam/shapes
echo 'int f;' > optimized/portable/fam.cu
mk build/report
mk tasks
check 'a shape of the list is a task' is "$(tr '\n' ' ' < "$out")" 'fam fam_1_1 fam fam_2_2 '
mk time
check 'one kernel serves all of them' ran 'nvcc fam;nvcc fam;peaks build/h200/peaks.json;time h200/fam_1_1;time h200/fam_2_2;verify h200/fam_1_1;verify h200/fam_2_2;'
echo 3_3 >> tasks/fam/shapes
mk time
check 'a shape that is added runs alone' ran 'nvcc fam;time h200/fam_3_3;verify h200/fam_3_3;'
echo 'int own;' > optimized/portable/fam_2_2.cu
mk time
check 'a kernel of its own overrules that of the suite' ran 'nvcc fam_2_2;time h200/fam_2_2;verify h200/fam_2_2;'
mk time TASKS=fam_1
check 'a prefix chooses one' [ $? = 0 ]
mk print-tasks SUITE=fam
check 'SUITE chooses all' says '^tasks = fam_1_1 fam_2_2 fam_3_3$'
mk build ARCHS='80 90' TASKS=fam_1
check 'checks of architectures compile it for each task' is "$(jq -r .kernel.arch build/archs/portable/fam_1_1.build.json)" 'sm_80 sm_90'
rm -r build/tasks
mk prompt TASKS=fam_3
check 'a prompt makes the file of its task' [ -e build/tasks/fam/fam_3_3.json ]
rm steps.log
printf '%s\n' {1..800}_4000000000000000000000000000000000000000 >> tasks/fam/shapes
mk prompt
check 'and there may be more of them than a command has room for' is "$? $(grep -c '^gen ' steps.log)" '0 803'
sed -i '/_400/d' tasks/fam/shapes
rm steps.log
echo '{}' > tasks/level1/fam_1_1.json
mk tasks
check 'a task of the same name elsewhere is one line' lines 1 'two tasks have the same name: .*fam_1_1'
rm tasks/level1/fam_1_1.json tasks/fam/shapes optimized/portable/fam_2_2.cu
mk tasks
check 'without a list there are no tasks' not says fam
