#!/bin/bash
# A bad candidate is a result; a bad machine is an error that the next make retries.
# shellcheck disable=SC2012  # names are tame
. tests/e2e/lib.sh

tree
echo BROKEN >> optimized/portable/l1_019_relu.cu
rm optimized/portable/crfm_softmax.cu
mk time
check 'make succeeds with a broken and a missing kernel' [ $? = 0 ]
check 'the broken one has the verdict build' is "$(verdict h200/l1_019_relu time)" build
check 'with the first error line as the reason' is "$(jq -r .reason build/h200/l1_019_relu.build.json)" 'optimized/portable/l1_019_relu.cu(1): error: broken'
check 'and a log' grep -q broken build/h200/l1_019_relu.log
check 'a build says what sources it is of' is "$(jq -r .inputs.kernel build/h200/l1_001_matmul.build.json)" \
    "$(build/inputs tasks/level1/l1_001_matmul.json optimized/portable/l1_001_matmul.cu | jq -r .kernel)"
check 'the missing one is missing' is "$(verdict h200/crfm_softmax time)" missing
check 'the suite went on' is "$(verdict h200/l1_001_matmul time)" ok
check 'each cell that is timed says so, how many are left, and from the second on for how long' \
    is "$(grep -o '^\[./3\]\|[0-9]* min left' "$out" | tr '\n' ' ')" '[1/3] [2/3] 1 min left [3/3] '
rm build/h200/l1_001_matmul.time.json
TMPDIR=/none mk time
check 'without a file of its own' is "$(sed 's/ .*//' "$out")" '[3/3]'
check 'resources are recorded' is "$(jq -c .kernel.resources build/h200/l1_001_matmul.build.json)" \
    '[{"name":"relu()","arch":"sm_90","registers":10,"spill_bytes":16,"stack_bytes":8,"shared_bytes":128}]'
steps > /dev/null
mk time
check 'failures are results: nothing is repeated' ran ''
for option in errexit noclobber; do # as a shell exports them that its scripts are to have, too
    echo "// $option" >> optimized/portable/l1_019_relu.cu
    PATH=$PWD/bin:$PATH KP_LOCKS=$PWD CUDA_HOME=$PWD/toolkit env SHELLOPTS=$option make "${stubs[@]}" time > "$out" 2>&1
    check "nor do they fail make where the shell's own $option is exported" is "$? $(verdict h200/l1_019_relu build)" '0 build'
done
steps > /dev/null
echo '// kernel' > optimized/portable/crfm_softmax.cu
touch -d '2001-01-01' optimized/portable/crfm_softmax.cu
mk time
check 'a missing kernel that appears is built, however old' is "$(verdict h200/crfm_softmax time)" ok
check 'alone' ran 'nvcc crfm_softmax;time h200/crfm_softmax;verify h200/crfm_softmax;'
touch gate.refuses optimized/portable/crfm_softmax.cu
mk time
check 'what the gates refuse has the verdict gate' is "$(verdict h200/crfm_softmax time)" gate
check 'and no library' [ ! -e build/h200/crfm_softmax.so ]

tree
mkdir -p fault/h200 && touch fault/h200/l1_001_matmul
mk -k time
check 'a machine that fails is an error' [ $? != 0 ]
check 'make -k finishes the others' is "$(verdict h200/crfm_softmax time) $(verdict h200/l1_019_relu time)" 'ok ok'
check 'the failed step left no file' [ ! -e build/h200/l1_001_matmul.verify.json ]
rm -r fault
steps > /dev/null
mk time
check 'the next make retries just that' ran 'time h200/l1_001_matmul;verify h200/l1_001_matmul;'

tree
mv toolkit/bin/nvcc nvcc.away
CUDA_HOME_HERE=$PWD/nowhere mk build NVCC="$PWD/toolkit/bin/nvcc"
check 'no nvcc is an error' [ $? != 0 ]
check 'of one line' lines 1 '^deps: NVCC=.*toolkit/bin/nvcc: no such command'
check 'and no verdict' [ ! -e build/h200/l1_001_matmul.build.json ]
mv nvcc.away toolkit/bin/nvcc
printf '#!/bin/sh\necho Illegal instruction; exit 1\n' > toolkit/bin/nvcc
mk build
check 'an nvcc that compiles nothing is an error' [ $? != 0 ]
check 'that says so' says 'cannot compile a trivial kernel: Illegal instruction'
toolkit
echo '#define CUDART_VERSION  12020' > toolkit/include/cuda_runtime_api.h
mk time
check 'a toolkit below 12.4 is an error' [ $? != 0 ]
check 'of one line' lines 1 'no CUDA Toolkit 12.4 or newer'

# Where a decimal has a comma, the script itself, as make has its own locale.
tree
mk time TASKS=l1_019
if comma_locale; then
    NVCC=$PWD/toolkit/bin/nvcc CUDA_HOME=$PWD/toolkit "${comma[@]}" harness/compile/compile tasks/level1/l1_019_relu.json \
        build/h200/l1_019_relu 90 optimized/portable/l1_019_relu.cu > "$out" 2>&1
    check 'a locale changes no result' is "$? $(jq -c '[.verdict, .kernel.build_seconds < 60]' build/h200/l1_019_relu.build.json)" '0 ["ok",true]'
else
    skip 'results in another locale' 'no sources of de_DE.UTF-8 here'
fi

# Interrupted, then resumed.
tree
mk build verify
steps > /dev/null
touch slow
set -m # a process group of its own, as a terminal would give it
mk time &
set +m
for _ in $(seq 3000); do sleep 0.1; n=$(grep -sc "^time" steps.log); [ "${n:-0}" -lt 2 ] || break; done # the first is finished
kill -INT -- "-$!"
wait
before=$(ls build/h200/*.time.json | wc -l)
check 'an interrupted run keeps what it finished' [ "$before" -ge 1 ] 
check 'and is interrupted' [ "$before" -lt 3 ]
rm slow
steps > /dev/null
mk time
check 'the next run does the rest' [ "$(steps | grep -c '^time')" = $((3 - before)) ]
check 'until all is there' is "$(ls build/h200/*.time.json | wc -l)" 3

# What the compiler may read, where there is no g++ (nvcc may have been told of another): no folder above.
tree
mk build TASKS=l1_019
mkdir pretend some
# shellcheck disable=SC2016  # the script's own
printf '#!/bin/sh\necho "$@" > confined\nwhile [ "$1" != -- ]; do shift; done\nshift\nexec "$@"\n' > pretend/confine
chmod +x pretend/confine
cp -s /usr/bin/* some/ 2> /dev/null
rm -f some/*g++*
PATH=$PWD/some NVCC=$PWD/toolkit/bin/nvcc CUDA_HOME=$PWD/toolkit CXX=gcc \
    harness/compile/compile tasks/level1/l1_019_relu.json build/h200/l1_019_relu 90 optimized/portable/l1_019_relu.cu > "$out" 2>&1
check 'without g++ a kernel is compiled' is "$? $(verdict h200/l1_019_relu build)" '0 ok'
check 'which may read no folder above' not grep -qE ' (\.|/)/?\.\. ' confined
