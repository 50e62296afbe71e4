#!/bin/bash
# A change of the programs that measure measures again what it can alter the numbers of, and nothing
# else: the real build/inputs, of the real sources, says what that is.
# uses: build/inputs
# shellcheck disable=SC2154,SC2016  # root and scratch are lib.sh's; sed's $
. tests/e2e/lib.sh

tree
mkdir pretend real
cp -r "$root"/{harness,reference} real && ln -s ../tasks real/tasks
cat > pretend/inputs << SCRIPT
#!/bin/sh
case \$1 in --*) ;; *) exec echo '{}' ;; esac
cd real && exec "$root/build/inputs" "\$1" "../\$2" "../\$3"
SCRIPT
chmod +x pretend/inputs
graph() { echo "{\"graph\": [\"out = $2\"]}" > "tasks/$1.json"; }
graph level1/l1_001_matmul 'matmul(a, b)'
graph level1/l1_019_relu 'relu(x)'
graph crfm/crfm_softmax 'softmax(x)'
mk time
steps > all.steps
both() { for task; do echo -n "time h200/$task;"; done; for task; do echo -n "verify h200/$task;"; done; }
matmul=$(both l1_001_matmul) relu=$(both l1_019_relu) softmax=$(both crfm_softmax) all=$(both crfm_softmax l1_001_matmul l1_019_relu)

# Other machine code of every program that measures, as an op that is added makes it: ops have numbers.
times=0
machine_code() { times=$((times + 1)) && sed -i "s/^    leave(name, argc > 1/    argv[0] = argv[0] + $times;\n&/" harness/replay/runner_main.c; }
# changed WHAT EXPECTED FILE SED - FILE of the real sources is edited, and what that measures again
# is EXPECTED.
changed() {
    sed -i.was -E "$4" "real/$3"
    check "$1: the edit is made" not cmp -s "real/$3" "real/$3.was"
    rm "real/$3.was"
    machine_code
    mk time
    check "$1" ran "$2"
}
machine_code
mk time
check 'other machine code of the same sources measures nothing' ran ''
changed 'nor does a comment' '' reference/cuda/plan.c '$a /* a comment */'
echo 'KP_IMPL(swoosh, 0, 0, 0, 0);' > real/reference/cuda_ops/swoosh.cu
changed 'an op that is added measures nothing' '' harness/task/op_table.h 's/^(OP\(relu, UNARY\))/\1 OP(swoosh, UNARY)/'
changed 'a change of it neither' '' reference/cuda_ops/swoosh.cu '$a int more;'
changed 'an op that changes measures the tasks that use it' "$softmax" reference/cuda_ops/softmax.cu '$a int more;'
changed 'another those of its own' "$matmul" reference/cuda_products/gemm.c '$a int more;'
changed 'the row of an op those of that op' "$relu" harness/task/op_table.h 's/OP\(relu, UNARY\)/OP(relu, BINARY)/'
changed 'the executor measures all' "$all" reference/cuda/plan.c '$a int more;'
changed 'so does the judge' "$all" harness/measure/tolerance.c '$a int more;'
changed 'and the clock' "$all" harness/replay/timed_sample.c '$a int more;'
changed 'what writes pages nothing' '' harness/report/page.c '$a int more;'

# Flags are sources, too.  Architectures that are added to them are not.
machine_code
mk time DEVICE_ARCHS='80 90 100'
check 'one more architecture in the programs measures nothing' ran ''
echo '#' >> toolkit/bin/nvcc
mk time
steps > all.steps
machine_code
mk time
check 'another compiler measures all, where what it makes differs' ran "$all"

# What changed only the sources of verify, or made the same machine code, waits for no new task.
sed -i '$a int more;' real/harness/measure/rounds.c

# A task that is added, and one that uses another op, are measured alone and known from then on.
graph level1/l1_002_new 'relu(x)'
graph level1/l1_001_matmul 'softmax(x)'
echo 'int x;' > optimized/portable/l1_002_new.cu
mk time
check 'a new task is measured, and one of another graph' ran "nvcc l1_001_matmul;nvcc l1_002_new;$(both l1_001_matmul l1_002_new)"
mk time
check 'once' ran ''
machine_code
mk time
steps > all.steps
changed 'its op measures it' "$(both crfm_softmax l1_001_matmul)" reference/cuda_ops/softmax.cu '$a int again;'

# A family has one graph; who measures one task only leaves the others to the next make.
mkdir tasks/family && echo '{"graph": ["out = softmax(x)"]}' > tasks/family/template.json
echo '1 2' > tasks/family/shapes && echo 'int x;' > optimized/portable/family.cu
mk time
steps > all.steps
sed -i '$a int family;' real/reference/cuda_ops/softmax.cu
machine_code
mk time TASKS=family_1
check 'a change measures the chosen task' ran "$(both family_1)"
mk time
check 'and later the others that it concerns' ran "$(both crfm_softmax family_2 l1_001_matmul)"

# What a program does is all that the machine sees of it, on the GPU, too.
for name in one two; do
    echo $name > code
    objcopy --add-section .nv_fatbin=code build/verify $name && cp $name $name.so
    make/identity $name.id $name && make/identity $name.so.id $name.so
done
check 'two programs that differ in device code are not the same' not cmp -s one.id two.id
check 'of the library of a kernel that is left to its cubin' cmp one.so.id two.so.id

# Where there is no room for the copy that is hashed there is no hash: another's would hide what has changed.
head -c 20000 /dev/zero > big.cubin
for file in build/verify big.cubin; do
    (ulimit -f 4 && exec make/identity full.id "$file") > /dev/null 2>&1
    check "no room for a copy of $file ends with 5" [ $? = 5 ]
done
check 'and leaves nothing' is "$(echo full.id*)" 'full.id*'
