#!/bin/bash
# make gen and make search with the real verify and time, on a pretend GPU (tests/fake): what they
# write is what promotion reads and what a model is told.  Needs CUDA's headers.
# uses: build/gen build/best build/fake/verify build/fake/time build/fake/recorder build/fake/runner build/fake/baseline
# shellcheck disable=SC2154  # out, root, scratch are lib.sh's
. tests/e2e/lib.sh
. tests/mock/lib.sh
if ! [ -x "$root/build/fake/time" ] || ! [ -e "$real_cuda/include/cuda.h" ]; then
    skip 'gen and search on a pretend GPU' 'no CUDA headers here'
    exit
fi
. tests/mock/world.sh
export LD_LIBRARY_PATH=$root/build/fake KP_CELL_SECONDS=1 KP_DEADLINE=20

# ---- A toolkit whose kernels run on the pretend GPU -----------------------------------------

world
for p in verify time; do printf '#!/bin/sh\nexec "%s" "$@"\n' "$root/build/fake/$p" > pretend/$p; done
cat > pretend/peaks << 'EOF_PEAKS'
#!/bin/sh
echo '{"schema":1,"read_gbs":4000,"copy_gbs":4000,"f16_tflops":700,"tf32_tflops":300,"fp32_tflops":50}' > "$1"
EOF_PEAKS
cat > toolkit/bin/nvcc << EOF_NVCC
#!/bin/sh
while [ \$# -gt 1 ]; do
    case \$1 in --keep-dir) keep=\$2 ;; -o) object=\$2 ;; -MF) depends=\$2 ;; esac
    shift
done
gcc -std=gnu11 -O1 -fPIC -DCOUNT=4096 -isystem '$real_cuda/include' -iquote '$root/tests/fake/kernels' -x c -c -MD -MF "\$depends" -o "\$object" "\$1" &&
    gcc -shared -o "\$keep/\$(basename "\$1" .cu).cubin" "\$object" -L'$root/build/fake' -lcudart -lm
EOF_NVCC
chmod +x pretend/* toolkit/bin/nvcc
cp "$root"/build/fake/lib* toolkit/lib64/
mkdir tasks/fake
jq -n '{schema: 1, task: "relu64", suite: "fake", title: "ReLU", source: "a test", parameters: [], notes: [], flags: [],
    inputs: [{name: "x", shape: [64, 64], dtype: "f32", fill: "uniform(0,1)", domain: "real"}],
    graph: ["y[64,64] = relu(x)"], outputs: ["y"]}' > tasks/fake/relu64.json

# relu TIMES COUNT [BEFORE] - an answer: relu of the first COUNT elements, in as many launches.
relu() {
    local file
    file=$(mktemp "$scratch/answer.XXXXXX")
    cat > "$file" << EOF_ANSWER
## Analysis
One launch after the other.

## Code
\`\`\`cuda
#include "kernel.h"

KERNEL(relu, 8, 8) {
    ${3-}
    relu_of(PARAM(0, const float *), PARAM(1, float *), $2);
}

void launch(const float *const in[], float *const out[], UNUSED void *scratch, cudaStream_t stream) {
    for (int i = 0; i < $1; i++) start_usual(&relu, in, out, stream);
}
\`\`\`
EOF_ANSWER
    echo "$file"
}
attempt() { jq -r "$2" "build/attempts/$1/h200/relu64.time.json"; }

# ---- gen -----------------------------------------------------------------------------------

reply 1 relu64 "$(relu 3 COUNT)"
ask_make gen TASKS=relu64
status=$?
check 'gen succeeds' exits 0 $status
check 'the kernel is verified' is "$(attempt one_shot.r1a1 '.verdict + " " + .class')" 'ok fp32'
check 'and timed' is "$(attempt one_shot.r1a1 '.time_us.candidate.midmean | round')" 1501
check 'confirmed, it becomes the kernel' cmp optimized/h200/relu64.cu build/attempts/one_shot.r1a1/h200/relu64.cu
check 'by measurements with other seeds' [ "$(jq .harness.master_seed build/confirm/one_shot.r1a1/h200/relu64.time.json)" != "$(attempt one_shot.r1a1 .harness.master_seed)" ]
reply 1 relu64 "$(relu 1 COUNT)"
ask_make gen TASKS=relu64
check 'a faster one replaces it' cmp optimized/h200/relu64.cu build/attempts/one_shot.r1a2/h200/relu64.cu
check 'with both speedups in one line' lines 1 '^promote: h200/relu64 1\.00x .*one_shot\.r1a2 \(was 0\.33x\)'
reply 1 relu64 "$(relu 2 COUNT)"
ask_make gen TASKS=relu64
check 'a slower one does not' cmp optimized/h200/relu64.cu build/attempts/one_shot.r1a2/h200/relu64.cu
reply 1 relu64 "$(relu 1 COUNT '*(float *)PARAM(0, const float *) = 1;')"
ask_make gen TASKS=relu64
check 'one that writes to its input crashes' is "$(attempt one_shot.r1a4 .verdict)" crash
check 'and is not taken' cmp optimized/h200/relu64.cu build/attempts/one_shot.r1a2/h200/relu64.cu

# ---- search: what verify found goes back ------------------------------------------------------

reply 1 relu64 "$(relu 1 COUNT-1)"
reply 1 relu64 "$(relu 1 COUNT)"
ask_make search TASKS=relu64 MODE=repair WIDTH=1 ROUNDS=2
check 'a wrong kernel is wrong' is "$(attempt repair.r1a1 '.verdict + " " + (.evidence.index | tostring)')" 'wrong 4095'
check 'the next prompt says where' grep -q '4095' <(tail -n 2 "$journal" | jq -r '.body // empty')
check 'and the next kernel is right' is "$(attempt repair.r2a1 .verdict)" ok
harness/record/record-results attempts > "$scratch/recorded" 2>&1
check 'the table has both' is "$(grep repair results/search/h200/relu64.csv | cut -d, -f6,9 | tr '\n' ' ')" 'repair.r1a1,wrong repair.r2a1,ok '
leak_checks
