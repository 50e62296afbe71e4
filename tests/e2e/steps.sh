#!/bin/bash
# What a change makes Make run again: no more, no less.
. tests/e2e/lib.sh

compiles='harness/compile/compile tasks|build/(verify|time) tasks'
tree
mk time
check 'a first run succeeds' [ $? = 0 ]
check 'it builds, verifies and times every cell' ran 'nvcc crfm_softmax;nvcc l1_001_matmul;nvcc l1_019_relu;peaks build/h200/peaks.json;time h200/crfm_softmax;time h200/l1_001_matmul;time h200/l1_019_relu;verify h200/crfm_softmax;verify h200/l1_001_matmul;verify h200/l1_019_relu;'
check 'each cell prints one line' lines 3 '^\[[123]/3\] build/h200/.* 1.00x'
mk time
check 'a second run does nothing' ran ''
mk -n time
check 'nor does make -n say otherwise' not says "$compiles"

build='nvcc l1_019_relu;'
one='nvcc l1_019_relu;time h200/l1_019_relu;verify h200/l1_019_relu;'
builds='nvcc crfm_softmax;nvcc l1_001_matmul;nvcc l1_019_relu;'
again='time h200/crfm_softmax;time h200/l1_001_matmul;time h200/l1_019_relu;verify h200/crfm_softmax;verify h200/l1_001_matmul;verify h200/l1_019_relu;'
all=$builds$again

# ---- Content counts, not timestamps --------------------------------------------------------

kernel=optimized/portable/l1_019_relu.cu
touch $kernel
mk time
check 'a kernel that was touched is compiled, and not measured' ran "$build"
echo '// a remark' >> $kernel
mk time
check 'nor is one with another comment' ran "$build"
check 'whose result names the source as it is now' is "$(jq -r .kernel.sha256 build/h200/l1_019_relu.build.json)" "$(sha256sum < $kernel | cut -d' ' -f1)"
mk time
check 'which is looked at once' ran ''
mk -n time
check 'nor does make -n say otherwise' not says "$compiles"
echo 'int other;' >> $kernel
mk time
check 'other code is measured, that cell only' ran "$one"
mk time
check 'once' ran ''

task=tasks/level1/l1_019_relu.json
echo '{"title": "a", "notes": ["b"]}' > $task
mk time
check 'a title or a note of a task measures nothing' ran "$build"
echo '{"title": "a", "fill": "zeros"}' > $task
mk time
check 'what a task means does, that cell only' ran "$one"

for program in verify:measure time:measure runner:replay recorder:replay baseline:replay; do
    source=harness/${program#*:}/${program%:*}_main.c
    echo '/* a remark */' >> "$source"
    mk time
    check "a comment in ${program%:*} measures nothing" ran ''
    check 'though it is compiled' says "LD build/${program%:*}"
    sed -i "s/^    leave(name, argc > 1/    argv[0] = argv[0] + ${#program};\n&/" "$source"
    mk time
    case $program in time:*) expected=$(tr ';' '\n' <<< "$again" | grep '^time' | tr '\n' ';') ;; *) expected=$again ;; esac
    check "other code of ${program%:*} measures what it measures" ran "$expected"
done
touch harness/report/report_main.c harness/gpu/peaks_main.c
mk time
check 'programs that are made again as they were measure nothing' ran ''
echo '# a remark' >> harness/compile/compile
mk time
check 'a comment of the compile script compiles nothing' ran ''
sleep 0.02 # a file's time has ticks of 4 ms: the edit is later than what make has just looked at
echo ':' >> harness/compile/compile
mk time
check 'another script compiles every cell, and measures none' ran "$builds"
rm build/h200/l1_019_relu.time.json
mk time
check 'a result that was removed is made again' ran 'time h200/l1_019_relu;'

# ---- Headers ------------------------------------------------------------------------------------

# A header repeats the cells that include it, be it through another, and their results have its hash.
hash() { jq -r .kernel.headers_sha256 "build/h200/$1.build.json"; }
sums() { (cd optimized/include && sha256sum "$@") | sha256sum | cut -d' ' -f1; }
check 'without headers there is no hash of them' is "$(hash l1_019_relu)" null
echo 'int a;' > optimized/include/a.cuh
echo '#include "a.cuh"' > optimized/include/b.cuh
echo 'int c;' > optimized/include/c.cuh
mk time
check 'a header that no kernel includes repeats none' ran ''
echo '#include "b.cuh"' >> $kernel
echo '#include "../include/c.cuh"' >> optimized/portable/crfm_softmax.cu
mk time TASKS='l1_019 crfm_softmax'
steps > all.steps
check 'the hash is what sha256sum says of those' is "$(hash l1_019_relu) $(hash crfm_softmax)" "$(sums a.cuh b.cuh) $(sums c.cuh)"
echo 'int another;' >> optimized/include/c.cuh
mk time
check 'a header that changes repeats the cells that include it' ran 'nvcc crfm_softmax;time h200/crfm_softmax;verify h200/crfm_softmax;'
check 'and changes their hash, no other' is "$(hash l1_019_relu) $(hash crfm_softmax)" "$(sums a.cuh b.cuh) $(sums c.cuh)"
before=$(hash l1_019_relu)
echo '// a remark' >> optimized/include/a.cuh
mk time
check 'a comment in one that another includes compiles, and measures nothing' ran "$build"
check 'whose hash is another, too' not is "$(hash l1_019_relu)" "$before"
mk build ARCHS=80
steps > all.steps
touch optimized/include/c.cuh
mk -n build ARCHS=80
check 'checks of architectures look at headers, too' lines 2 'harness/compile/compile tasks.*crfm_softmax'
check 'and at no others' lines 2 'harness/compile/compile tasks'
mk time
steps > all.steps
echo > optimized/include/b.cuh
rm optimized/include/a.cuh
mk time
check 'a header can be removed' ran "$one"
echo '#include "new.cuh"' > optimized/include/b.cuh
mk time
check 'one that is not there is a verdict' is "$(verdict h200/l1_019_relu build) $(hash l1_019_relu)" 'build null'
steps > all.steps
echo 'int new;' > optimized/include/new.cuh
mk time
check 'and repeats what lacked it when it is' ran "$one"
check 'which then compiles' is "$(verdict h200/l1_019_relu build) $(hash l1_019_relu)" "ok $(sums b.cuh new.cuh)"

# ---- Which kernel ----------------------------------------------------------------------------------

path_of() { jq -r .kernel.path "build/h200/$1.build.json"; }
mkdir -p optimized/h200 optimized/sm_90a
# like FOLDER N - a kernel that differs from the portable one, though no newer.
like() { sed "\$a int in$2;" $kernel > "optimized/$1/${3:-l1_019_relu}.cu" && touch -r $kernel "optimized/$1/${3:-l1_019_relu}.cu"; }
like sm_90a 1
mk time
check 'a kernel for the family overrules the portable one, however old it is' ran "$one"
check 'and is compiled for that family' is "$(jq -r .kernel.arch build/h200/l1_019_relu.build.json)" sm_90a
like h200 2
mk time
check 'a kernel for the GPU overrules both' ran "$one"
check 'the result names it' is "$(path_of l1_019_relu)" optimized/h200/l1_019_relu.cu
rm optimized/h200/l1_019_relu.cu optimized/sm_90a/l1_019_relu.cu
mk -n time
check 'make -n sees that a kernel has gone' lines 1 'harness/compile/compile tasks'
mk time
check 'removing it falls back to the portable one' ran "$one"

# Of two kernels that come and go, only one was built meanwhile.
like sm_90a 5
like sm_90a 6 l1_001_matmul
mk time TASKS=l1_019
check 'the chosen one of two that overrule others' ran "$one"
mk -n time
check 'the other is still to be built' lines 1 'harness/compile/compile tasks/level1/l1_001'
rm optimized/sm_90a/*
mk time
check 'and it alone falls back, as the other was never built' ran "$one"
mk time
check 'once' ran ''

# A kernel named after a suite serves all tasks of it, where a folder has none of their own.
like sm_90a 3 level1
mk time
check 'a kernel of the suite overrules portable kernels of tasks' ran 'nvcc level1;nvcc level1;time h200/l1_001_matmul;time h200/l1_019_relu;verify h200/l1_001_matmul;verify h200/l1_019_relu;'
check 'the result names it, too' is "$(path_of l1_001_matmul)" optimized/sm_90a/level1.cu
like sm_90a 4
mk time
check 'and not one of a task in its own folder' ran "$one"
rm optimized/sm_90a/*
mk time
steps > all.steps
echo 'int x;' > optimized/portable/l1_19_relu.cu
mk time
check 'a kernel whose name is of no task and no suite is one line' lines 1 'optimized/portable/l1_19_relu.cu: no task and no suite has this name'
check 'and loses nothing' ran ''
rm optimized/portable/l1_19_relu.cu

# ---- make -n tells the truth and writes nothing -----------------------------------------------------

stale() { find . -path ./out -prune -o -type f -newer mark -print | grep -v '^./out$'; }
for change in "NVCCFLAGS=-G" "arch.h200=89"; do
    touch mark
    mk -n time "$change"
    check "make -n $change lists every cell" lines 3 'harness/compile/compile tasks'
    check "make -n $change writes nothing" is "$(stale)" ''
    mk -n time
    check 'and is forgotten' not says harness/compile/compile
done
sed -i 's/^# *$//; $a # another' toolkit/bin/nvcc
touch mark
mk -n time
check 'make -n notices another nvcc at the same path' lines 3 'harness/compile/compile tasks'
check 'and writes nothing' is "$(stale)" ''
mk time
check 'make then compiles everything again; what comes out is the same' ran "$builds"
mk -n time CFLAGS=-O0
check 'make -n notices other CFLAGS' says '^g(cc|\+\+) .*-O0'
mk time CFLAGS=-O0
check 'which make another harness: it compiles and measures everything again' ran "${builds}peaks build/h200/peaks.json;$again"
mk time
steps > all.steps
mk time NVCCFLAGS=-G
check 'flags that change what is compiled repeat every cell' ran "$all"
mk -n time NVCCFLAGS=-G
check 'once' not says harness/compile/compile

everything="${all%%time*}peaks build/h200/peaks.json;${all#*l1_019_relu;}"
tree
mk -n time
check 'a cold make -n succeeds' [ $? = 0 ]
check 'and lists every step' lines 9 "$compiles"
check 'and writes nothing' [ ! -e build ]
mk -n -j4 reproduce
check 'a cold make -n reproduce, too' lines 9 "$compiles"
check 'which writes nothing, either' [ ! -e build ]

tree
mk -j8 time
check 'make -j8 runs every step once' ran "$everything"
mk build/h200/l1_019_relu.time.json
check 'a single file can be asked for' ran ''

# A result says what it was measured of.
tree
mkdir pretend
# shellcheck disable=SC2016  # the script's own
printf '#!/bin/sh\necho "{\\"kernel\\":\\"$*\\"}"\n' > pretend/inputs
# shellcheck disable=SC2016  # the script's own
printf '#!/bin/sh\necho "$KP_INPUTS" > told && echo "{}" > "$2.time.json"\n' > pretend/time
chmod +x pretend/*
mk time TASKS=l1_019
check 'time is told the hashes of its sources' is "$(cat told)" '{"kernel":"tasks/level1/l1_019_relu.json optimized/portable/l1_019_relu.cu"}'
printf '#!/bin/sh\necho "inputs: a NUL byte in it" >&2\nexit 3\n' > pretend/inputs
rm -r build/h200
mk time TASKS=l1_019
check 'where they cannot be read, there is no result' is "$(ls build/h200/*.json 2> /dev/null)" ''
check 'and make says why, once' is "$(grep -c '^inputs: ' "$out") $(grep -c '^make: .* Error 3$' "$out")" '1 1'
