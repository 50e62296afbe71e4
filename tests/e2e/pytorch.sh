#!/bin/bash
# make pytorch, with a pretend torch: what is measured under which flags, on which board, and which rows
# stay.  The pretend GPU's clock advances by what each op costs.
# shellcheck disable=SC2016,SC2154  # out, root, scratch are lib.sh's
. tests/e2e/lib.sh
if ! command -v python3 > /dev/null; then
    skip "PyTorch's times" 'no python3'
    exit
fi
tree
cp -r "$root/harness/pytorch" harness/
rm tasks/*/*.json optimized/*/*.cu

# one NAME DTYPE OP... - a task of these ops, one after the other, on a tensor and its weight.
one() {
    local name=$1 dtype=$2 op graph='' x=x i=0
    shift 2
    for op; do
        i=$((i + 1))
        graph+="${graph:+,}\"t${i}[4,4] = $op($x$([ "$op" = relu ] || echo ', w'))\"" x=t$i
    done
    echo "{\"task\": \"$name\", \"suite\": \"level1\", \"inputs\": [{\"name\": \"x\", \"shape\": [4, 4], \"dtype\": \"$dtype\", \"fill\": \"uniform(0,1)\"}],
        \"parameters\": [{\"name\": \"w\", \"shape\": [4, 4], \"dtype\": \"$dtype\", \"fill\": \"fan_in(4)\"}], \"graph\": [$graph], \"outputs\": [\"$x\"]}" > "tasks/level1/$name.json"
}
one conv_relu f32 conv_transpose2d relu
one half f16 matmul
one mixed f32 conv2d matmul
one product f32 matmul

mkdir -p stub/torch/nn
: > stub/torch/nn/__init__.py
cat > stub/torch/nn/functional.py <<'PY'
from torch import costs
conv2d = conv_transpose2d = costs("conv2d", lambda t: t.backends.cudnn.allow_tf32, 80, 40)
PY
cat > stub/torch/__init__.py <<'PY'
import hashlib, os, sys
from contextlib import nullcontext as no_grad
from types import SimpleNamespace as of

here = sys.modules[__name__]
now, speed = 0.0, float(os.environ.get("STUB_TIMES", "1"))
class Tensor:
    def __init__(self, dtype=None): self.dtype = dtype
    def __getattr__(self, name): return lambda *_: self
def costs(name, tf32, us, fast):
    def op(x, *_, **__):
        global now
        if name in os.environ.get("STUB_BROKEN", "").split(): raise ValueError(name + " is\nbroken")
        now += speed * (fast / 2 if x.dtype == "f16" else fast if tf32(here) else us)
        return x
    return op
matmul = costs("matmul", lambda t: t.backends.cuda.matmul.allow_tf32, 100, 10)
relu = costs("relu", lambda t: False, 20, 20)
sum = costs("sum", lambda t: False, 1000, 1000)
def log(*words):
    with open("torch.log", "a") as file: print(*words, "TF32" if backends.cuda.matmul.allow_tf32 else "fp32", file=file)
def compile(f, backend=None):
    name, made = f.__code__.co_filename, []
    def ahead(*args): backend(name, args)(*args)
    def fast(*args):
        global now
        if not made: log("measured", name)
        made.append(1)
        if "STUB_NO_TRITON" in os.environ: raise RuntimeError("no triton")
        begin = now
        f(*args)
        now = begin + (now - begin) / 2
    return ahead if backend else fast
def empty(*_, dtype=None, **__): return Tensor(dtype)
zeros = empty
class Event:
    def __init__(self, **_): pass
    def record(self): self.at = now
    def synchronize(self): pass
    def elapsed_time(self, other): return (other.at - self.at) / 1e3
class CUDAGraph:
    def capture_begin(self, pool): self.begin = now
    def capture_end(self): self.us = now - self.begin
    def replay(self):
        global now
        now += 0.9 * self.us
nothing = lambda *_: None
float32, float16, bfloat16, int64, int32, bool, uint8 = "f32", "f16", "bf16", "i64", "i32", "bool", "u8"
__version__, version, compiler, manual_seed = "9.9", of(cuda="13.0"), of(reset=nothing), nothing
backends = of(cuda=of(matmul=of(allow_tf32=False)), cudnn=of(allow_tf32=True, version=lambda: 91900))
cuda = of(is_available=lambda: True, empty_cache=nothing, Stream=nothing, set_stream=nothing, Event=Event, synchronize=nothing,
          CUDAGraph=CUDAGraph, graph_pool_handle=nothing, mem_get_info=lambda: (1 << 30, 1 << 30),
          memory_reserved=lambda: 0, get_device_properties=lambda _: of(
              L2_cache_size=1 << 20, uuid=hashlib.md5(os.environ["CUDA_VISIBLE_DEVICES"].encode()).hexdigest() if "STUB_OWN" in os.environ
              else os.environ.get("STUB_UUID", "0123abcd-4567-89ef-0123-456789abcdef")))
PY
cat > stub/torch/_dynamo.py <<'PY'
import os, time, torch
def lookup_backend(name):
    def inductor(task, args):
        if task in os.environ.get("STUB_AHEAD_BROKEN", "").split(): raise RuntimeError("no backend")
        if task in os.environ.get("STUB_AHEAD_DIES", "").split(): os._exit(7)
        if task in os.environ.get("STUB_SLOW", "").split(): time.sleep(5)
        torch.log("ahead", task)
    return inductor
PY
csv=results/pytorch/h200.csv
measure() { PYTHONPATH=$PWD/stub PYTHONDONTWRITEBYTECODE=1 mk pytorch "$@"; }
# field TASK COLUMN - of the file.
field() {
    awk -F, -v task="$1" -v column="$2" '/^#/ { next } !n { for (n = 1; n <= NF; n++) at[$n] = n; next }
        $1 == task { print $at[column] }' $csv
}
# times TASK - its nine times: default, fp32, tf32; each eager, graph, compiled.
times() { grep "^$1," $csv | cut -d, -f5-; }

PYTHONPATH='' mk pytorch
check 'without torch make fails' [ $? != 0 ]
check 'and says what is needed' says 'PyTorch with a GPU is needed, and this Python \(.*\) has no PyTorch; say PYTHON='
check 'and writes nothing' [ ! -e results/pytorch ]

measure
check 'with it, it measures' [ $? = 0 ]
check 'every task' is "$(grep -vc '^#' $csv)" 5
check "products are fp32 by default; 'all TF32' is another setting" is "$(times product)" 100.00,90.00,50.00,100.00,90.00,50.00,10.00,9.00,5.00
check 'convolutions are TF32 by default' is "$(times conv_relu)" 60.00,54.00,30.00,100.00,90.00,50.00,60.00,54.00,30.00
check 'a task with both has three settings' is "$(times mixed)" 140.00,126.00,70.00,180.00,162.00,90.00,50.00,45.00,25.00
check 'f16 is what it is' is "$(times half)" 5.00,4.50,2.50,5.00,4.50,2.50,5.00,4.50,2.50
check 'versions are named' is "$(field half versions | cut -d' ' -f1-6)" 'torch 9.9 CUDA 13.0 cuDNN 9.19.0'
check 'and the day' is "$(field half date)" "$(date -u +%F)"

# The board's hash is that of results: its text in machine.c, compiled.
{
    echo '#include <stdint.h>'
    echo '#include <stdio.h>'
    sed -n '/^KP_BOTH uint64_t kp_mix/,/^}/p' "$root/harness/gpu/values.h" | sed 's/KP_BOTH/static/'
    echo 'int main(void) { uint64_t h[4] = {1, 2, 3, 4};'
    echo 'static const unsigned char bytes[] = {0x01, 0x23, 0xab, 0xcd, 0x45, 0x67, 0x89, 0xef, 0x01, 0x23, 0x45, 0x67, 0x89, 0xab, 0xcd, 0xef};'
    sed -n '/add_uuid/,/^}/p' "$root/harness/gpu/machine.c" | grep -A1 'for (int k' | sed 's/p->uuid.bytes/bytes/'
    echo 'printf("%016llx%016llx", (unsigned long long)h[0], (unsigned long long)h[1]); }'
} > hash.c
check 'C hashes the board' gcc -o hash hash.c
check 'PyTorch the same' is "$(field half board)" "$(./hash)"

# Programs are compiled ahead, once: those of the tasks and flags that differ for products.
logged() { grep "^$1 " torch.log | cut -d' ' -f2 | LC_ALL=C sort | xargs; }
check 'all is compiled ahead' is "$(logged ahead)" 'conv_relu half mixed mixed product product'
check 'under the flags that it is measured under' is "$(sed -n 's/^ahead //p' torch.log | sort)" "$(sed -n 's/^measured //p' torch.log | sort)"
check 'before anything is measured' is "$(cut -d' ' -f1 torch.log | uniq | xargs)" 'ahead measured'
check 'flags of convolutions need no program of their own' is "$(logged measured)" 'conv_relu half mixed mixed product product'
check 'where the time went is said' says '^pytorch: 4 tasks in [0-9]+ s: .*torch.compile 0 s'
rm torch.log
measure TASKS='product half'
check 'what the cache has is not compiled again' is "$(logged ahead)" ''
measure WAYS='eager graph'
check 'nor what is not asked for' is "$(logged ahead)" ''
one half f16 matmul matmul
measure TASKS='product half'
check 'another program is' is "$(logged ahead)" half
one half f16 matmul

rm -r build/inductor torch.log
STUB_AHEAD_BROKEN=half STUB_AHEAD_DIES=mixed measure
check 'if compiling ahead fails, all is measured' is "$? $(logged measured)" '0 conv_relu half mixed mixed product product'
check 'why it failed is said' says '^half: not compiled ahead: no backend$'
check 'or that its process ended' says '^mixed: not compiled ahead: the process ended$'
check 'the others are compiled ahead' is "$(logged ahead)" 'conv_relu product product'
rm torch.log
measure
check 'a failure is tried again' is "$(logged ahead)" 'half mixed mixed'

before=$(times product)
rm -r build/inductor torch.log
STUB_SLOW=product KP_TORCH_SECONDS=1 STUB_TIMES=2 measure
check 'a task that takes too long is given up' is "$? $(logged ahead)" '0 conv_relu half mixed mixed'
check 'and left out, in a line' says '^product: torch.compile is left out: it takes more than 1 s$'
check 'its earlier time stays' is "$(field product eager_default) $(field product compiled_default)" "200.00 $(cut -d, -f3 <<< "$before")"
rm torch.log
STUB_TIMES=2 KP_TORCH_SECONDS=0.5 measure TASKS=product WAYS=compiled
check 'the next run knows, and has nothing to do' is "$? $(cat torch.log 2> /dev/null)" '0 '
measure
check 'one that gives more time tries again' is "$(logged ahead)" 'product product'
check 'and measures it' is "$(field product compiled_default)" 50.00

before=$(times half)
STUB_TIMES=2 measure TASKS=product
check 'one task is measured' is "$(times product | cut -d, -f1)" 200.00
check 'the rows of others stay' is "$(times half)" "$before"
check 'in silence, as the board is the same' lines 0 'of another board'
STUB_TIMES=4 measure TASKS=product WAYS=graph
check 'one way is measured' is "$(times product)" 200.00,360.00,100.00,200.00,360.00,100.00,20.00,36.00,10.00
measure TASKS=product WAYS='graph fast'
check 'a way that is none is one line' is "$(grep -c '^pytorch: WAYS .*graph fast: expected some of eager graph compiled$' "$out") $(grep -c . "$out")" '1 2'
for wrong in x 0 -1 inf nan; do
    KP_TORCH_SECONDS=$wrong measure TASKS=product
    check "so is a limit of $wrong" is "$(grep -c "^pytorch: KP_TORCH_SECONDS=$wrong: a number of seconds above 0 is expected$" "$out") $(grep -c . "$out")" '1 2'
done
STUB_TIMES=5 STUB_UUID=GPU-eeeeabcd-4567-89ef-0123-456789abcdef measure TASKS=product WAYS='eager graph'
check 'on another board, other ways keep theirs in a row of its own' is "$(times product | sort)" ,,100.00,,,100.00,,,10.00$'\n'500.00,450.00,,500.00,450.00,,50.00,45.00,
STUB_UUID=GPU-ffffabcd-4567-89ef-0123-456789abcdef measure TASKS=product
check 'a row without a time goes' is "$(grep -c ^product, $csv)" 1
check 'another board is said' says '3 of 4 rows are of another board or other versions; `make pytorch` without TASKS'
check 'and is in its row' [ "$(field product board)" != "$(field half board)" ]
STUB_UUID='' measure TASKS=product
check 'a board that PyTorch does not tell is none' is "$(field product board)" ''

STUB_BROKEN=conv2d STUB_TIMES=3 measure
check 'a task that fails makes make fail' [ $? != 0 ]
check 'as REPRODUCE says' says '^make: .* Error 4$'
check 'in one line' says '^mixed: conv2d is broken$'
check 'its row stays' is "$(times mixed | cut -d, -f1)" 140.00
check 'the others are measured' is "$(times half | cut -d, -f1)" 15.00
check 'and how many failed is said' says '2 of 4 tasks failed'
check 'nothing half written is left' [ ! -e $csv+ ]
STUB_NO_TRITON=1 measure TASKS=product
check 'without a compiler calls and replays are measured' is "$(times product)" 100.00,90.00,,100.00,90.00,,10.00,9.00,
check 'and why is said' says '^product: torch.compile: no triton$'

cat > tasks/level1/moves.json <<'JSON'
{"task": "moves", "inputs": [{"name": "x"}, {"name": "m"}, {"name": "i"}], "graph": ["a[4,2] = slice(x; dim=1, start=1, end=-1)", "b[2,4] = slice(x; dim=-2, step=2)",
  "c[4,4] = cat(a, a; dim=1)", "d[4,4] = masked_fill(c, mask=m; value=-inf)", "e[4,4] = flip(d; dim=0)", "f[2,4]:bool = full(; shape=[2,4], value=1, dtype=bool)",
  "g[2,4] = index_select(b, index=i; dim=0)", "h[2,4]:bool = eq(g, 0)"], "outputs": ["e", "f", "h"]}
JSON
python3 harness/pytorch/times.py --show tasks/level1/moves.json | sed -n 's/^    //; / = /p' > shown
check 'parts, lists, masks and constants as in PyTorch' is "$(cat shown)" 'a = x[:, 1:-1]
b = x[..., ::2, :]
c = torch.cat([a, a], dim=1)
d = torch.masked_fill(c, mask=m, value=float("-inf"))
e = torch.flip(d, dims=[0])
f = torch.full([2,4], 1, dtype=torch.bool, device="cuda")
g = torch.index_select(b, index=i, dim=0)
h = g == 0'

# Every op has a form, and each is what PyTorch means; programs on several GPUs write to one file.
check 'every op of the table has a form, and no other' is "$(python3 -c 'import sys; sys.path[:0] = ["harness/pytorch"]; import forms; print(*sorted(forms.OPS))')" \
    "$(sed -nE 's/^(OP|VIEW)\((\w+),.*/\2/p' "$root/harness/task/op_table.h" | LC_ALL=C sort | xargs)"
sed -i 's/eq(g, 0)/xor(g, 0)/' tasks/level1/moves.json
python3 harness/pytorch/times.py --show tasks/level1/moves.json > shown 2>&1
check 'one without is refused' [ $? != 0 ]
check 'by name, in one line' is "$(sed 's/;.*//' shown)" 'pytorch: tasks/level1/moves.json: op xor has no form here'
if (cd "$root" && python3 -c 'import torch') 2> /dev/null; then
    check 'the forms give known values' eval '(cd "$root" && python3 tests/data/check_torch_forms.py)'
else
    skip 'the forms give known values' 'no PyTorch'
fi
rm tasks/level1/moves.json
cat > save.py <<'PY'
import sys
sys.path[:0] = ["harness/pytorch"]
import times
for i in range(20):
    row = dict({c: "" for c in times.COLUMNS}, task="%s%d" % (sys.argv[1], i), eager_default="1")
    times.save("many/out.csv", row, ["eager_default"])
PY
for who in a b c d; do python3 save.py $who & done
wait
check 'four at once lose no row' is "$(grep -c '^[abcd]' many/out.csv)" 80

# What is recorded and cannot be read stays as it is, and so does what cannot be written.
cp $csv recorded.csv
echo 'task,old' > $csv
measure TASKS=half
check 'a file with other columns is refused' lines 1 "^pytorch: $csv has other columns than today's: move it away to begin anew$"
check 'and stays' is "$(cat $csv)" 'task,old'
truncate -s -9 recorded.csv
cp recorded.csv $csv
measure TASKS=half
check 'so is one that is cut short' lines 1 "^pytorch: $csv: the row of product has not 13 fields: remove the line, or restore the file$"
check 'as REPRODUCE says' says '^make: .* Error 3$'
check 'and stays, too' cmp $csv recorded.csv
: > $csv
measure TASKS=half
check 'one with nothing in it begins anew' is "$(grep -vc '^#' $csv)" 2
cp $csv recorded.csv
mkdir $csv+
measure
check 'times that cannot be kept end it' says '^make: .* Error 5$'
check 'at the first, in a line' is "$(grep -c '^pytorch: the times of [a-z_]* are not kept: ' "$out") $(grep -c ': its process ended\|Traceback' "$out")" '1 0'
check 'and nothing recorded is lost' cmp $csv recorded.csv
rmdir $csv+

# On two GPUs, each measures what was timed on its board; what is of none, or of a board elsewhere, any of them.
gpus 'NVIDIA H200, 9.0' 'NVIDIA H200, 9.0'
hash_of() { STUB_OWN=1 CUDA_VISIBLE_DEVICES=GPU-$1$1-$$ PYTHONPATH=$PWD/stub:harness/pytorch python3 -B -c 'import measure; print(measure.board())'; }
first=$(hash_of 0) second=$(hash_of 1)
timed_on() { mkdir -p "${2%/*}" && echo "{\"machine\": {\"uuid_hash\": \"$1\"}}" > "$2"; }
rm $csv
timed_on "$first" results/h200/half.json
timed_on "$second" results/h200/mixed.json
timed_on "$first" results/h200/product.json
touch -d '1 hour ago' results/h200/product.json
timed_on "$second" build/h200/product.time.json
timed_on elsewhere results/h200/conv_relu.json
STUB_OWN=1 measure
check 'two GPUs measure' is "$? $(grep -vc '^#' $csv)" '0 5'
check 'each what is of its board' is "$(field half board) $(field mixed board)" "$first $second"
check 'as it was timed last' is "$(field product board)" "$second"
check 'and what is of neither' [ "$(field conv_relu eager_default)" = 60.00 ]
check 'both boards are this one' lines 0 'of another board'
cat > impatient.py <<'PY'
import sys
sys.path[:0] = ["harness/pytorch"]
import times
times.PATIENCE = 1
sys.exit(times.main())
PY
STUB_OWN=1 CUDA_VISIBLE_DEVICES=0 KP_GPU=h200 KP_LOCKS=$PWD PATH=$PWD/bin:$PATH PYTHONPATH=$PWD/stub python3 -B impatient.py --run harness/gpu/with-gpu --gpus 2 \
    $csv tasks/level1/{half,mixed}.json > "$out" 2>&1
check 'one process alone measures what is of other boards, too' is "$? $(field half board) $(field mixed board)" "0 $first $first"
measure RUN=env
check 'two processes on one GPU are one too many' says 'two processes were given one GPU'
check 'and one measures' is "$(grep -c '^[a-z]*.*eager_default' "$out")" 4
