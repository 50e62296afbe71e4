#!/bin/bash
# What a change makes Make run again: no more, no less.
. tests/e2e/lib.sh

tree
mk time
check 'a first run succeeds' [ $? = 0 ]
check 'it builds, verifies and times every cell' ran 'nvcc crfm_softmax;nvcc l1_001_matmul;nvcc l1_019_relu;peaks build/h200/peaks.json;time h200/crfm_softmax;time h200/l1_001_matmul;time h200/l1_019_relu;verify h200/crfm_softmax;verify h200/l1_001_matmul;verify h200/l1_019_relu;'
check 'each cell prints one line' lines 3 '^\[[123]/3\] .*ok 1.00x|^\[[123]/3\] '
mk time
check 'a second run does nothing' ran ''
mk -n time
check 'nor does make -n say otherwise' not says 'harness/compile/compile|build/(verify|time)'

one='nvcc l1_019_relu;time h200/l1_019_relu;verify h200/l1_019_relu;'
all='nvcc crfm_softmax;nvcc l1_001_matmul;nvcc l1_019_relu;time h200/crfm_softmax;time h200/l1_001_matmul;time h200/l1_019_relu;verify h200/crfm_softmax;verify h200/l1_001_matmul;verify h200/l1_019_relu;'
again='time h200/crfm_softmax;time h200/l1_001_matmul;time h200/l1_019_relu;verify h200/crfm_softmax;verify h200/l1_001_matmul;verify h200/l1_019_relu;'

touch optimized/portable/l1_019_relu.cu
mk time
check 'touching one .cu repeats that cell only' ran "$one"
touch tasks/level1/l1_019_relu.json
mk time
check 'touching one task repeats that cell only' ran "$one"

# A header repeats the cells that include it, be it through another, and their results have its hash.
hash() { jq -r .kernel.headers_sha256 "build/h200/$1.build.json"; }
sums() { (cd optimized/include && sha256sum "$@") | sha256sum | cut -d' ' -f1; }
check 'without headers there is no hash of them' is "$(hash l1_019_relu)" null
echo '// a' > optimized/include/a.cuh
echo '#include "a.cuh"' > optimized/include/b.cuh
echo '// c' > optimized/include/c.cuh
mk time
check 'a header that no kernel includes repeats none' ran ''
echo '#include "b.cuh"' >> optimized/portable/l1_019_relu.cu
echo '#include "../include/c.cuh"' >> optimized/portable/crfm_softmax.cu
mk time TASKS='l1_019 crfm_softmax'
steps > all.steps
check 'the hash is what sha256sum says of those' is "$(hash l1_019_relu) $(hash crfm_softmax)" "$(sums a.cuh b.cuh) $(sums c.cuh)"
echo '// another' >> optimized/include/c.cuh
mk time
check 'a header that changes repeats the cells that include it' ran 'nvcc crfm_softmax;time h200/crfm_softmax;verify h200/crfm_softmax;'
check 'and changes their hash, no other' is "$(hash l1_019_relu) $(hash crfm_softmax)" "$(sums a.cuh b.cuh) $(sums c.cuh)"
before=$(hash l1_019_relu)
echo '// another' >> optimized/include/a.cuh
mk time
check 'so does one that another includes' ran "$one"
check 'whose hash is another, too' not is "$(hash l1_019_relu)" "$before"
mk build ARCHS=80
steps > all.steps
touch optimized/include/c.cuh
mk -n build ARCHS=80
check 'checks of architectures look at headers, too' lines 2 'harness/compile/compile .*crfm_softmax'
check 'and at no others' lines 2 'harness/compile/compile'
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
echo '// new' > optimized/include/new.cuh
mk time
check 'and repeats what lacked it when it is' ran "$one"
check 'which then compiles' is "$(verdict h200/l1_019_relu build) $(hash l1_019_relu)" "ok $(sums b.cuh new.cuh)"
touch harness/compile/compile
mk time
check 'a change of the compile script repeats every cell' ran "$all"
touch build/verify
mk time
check 'a new verify verifies and times again, and compiles nothing' ran "$again"
rm build/h200/l1_019_relu.time.json
mk time
check 'a result that was removed is made again' ran 'time h200/l1_019_relu;'

# The kernel of a cell is looked for in three folders.
mkdir -p optimized/h200 optimized/sm_90a
cp -p optimized/portable/l1_019_relu.cu optimized/sm_90a/
mk time
check 'a kernel for the family overrules the portable one, however old it is' ran "$one"
check 'and is compiled for that family' is "$(jq -r .kernel.arch build/h200/l1_019_relu.build.json)" sm_90a
cp -p optimized/portable/l1_019_relu.cu optimized/h200/
mk time
check 'a kernel for the GPU overrules both' ran "$one"
check 'the result names it' is "$(jq -r .kernel.path build/h200/l1_019_relu.build.json)" optimized/h200/l1_019_relu.cu
rm optimized/h200/l1_019_relu.cu optimized/sm_90a/l1_019_relu.cu
mk -n time
check 'make -n sees that a kernel has gone' lines 1 'harness/compile/compile'
mk time
check 'removing it falls back to the portable one' ran "$one"

# make -n tells the truth and writes nothing.
stale() {
    find . -path ./out -prune -o -type f -newer mark -print | grep -v '^./out$'
}
for change in "NVCCFLAGS=-G" "arch.h200=89"; do
    touch mark
    mk -n time "$change"
    check "make -n $change lists every cell" lines 3 'harness/compile/compile'
    check "make -n $change writes nothing" is "$(stale)" ''
    mk -n time
    check 'and is forgotten' not says harness/compile/compile
done
sed -i 's/^# *$//; $a # another' toolkit/bin/nvcc
touch mark
mk -n time
check 'make -n notices another nvcc at the same path' lines 3 'harness/compile/compile'
check 'and writes nothing' is "$(stale)" ''
everything="${all%%time*}peaks build/h200/peaks.json;${all#*l1_019_relu;}"
mk time
check 'make then compiles and measures everything again' ran "$everything"
mk -n time CFLAGS=-O0
check 'a change of CFLAGS rebuilds the harness, hence everything' lines 3 'harness/compile/compile'
mk time NVCCFLAGS=-G
check 'changed flags repeat every cell' ran "$all"
mk -n time NVCCFLAGS=-G
check 'once' not says harness/compile/compile

tree
mk -n time
check 'a cold make -n succeeds' [ $? = 0 ]
check 'and lists every step' lines 9 'harness/compile/compile|build/verify tasks|build/time tasks'
check 'and writes nothing' [ ! -e build ]
mk -n -j4 reproduce
check 'a cold make -n reproduce, too' lines 9 'harness/compile/compile|build/verify tasks|build/time tasks'

tree
mk -j8 time
check 'make -j8 runs every step once' ran "$everything"
mk build/h200/l1_019_relu.time.json
check 'a single file can be asked for' ran ''
