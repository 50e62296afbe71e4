#!/bin/bash
# make conformance: what it needs, and, where PYTHON has PyTorch, what it says of modules and tasks that
# agree, differ or fail.  The oracle there is that of the pretend GPU.
# uses: build/fake/oracle
# shellcheck disable=SC2016,SC2154  # a program of jq; out, root, scratch are lib.sh's
. tests/e2e/lib.sh

# What is recorded is of every task, and whatever differs is explained where it was tried again.
verdicts() { grep -hv -e '^#' -e '^task,' "$@" | awk -F, '{ print $1, $6 }'; }
check 'every task of KernelBench has its row' is "$(verdicts "$root"/results/h200/conformance.csv | cut -d' ' -f1 | sort)" \
    "$(basename -s .json "$root"/tasks/{level[123],v0}/*.json | sort)"
check 'none failed' is "$(verdicts "$root"/results/*/conformance.csv | cut -d' ' -f2 | sort -u | paste -sd' ')" 'agrees differs explained'
check 'and each that differs is explained' is "$(verdicts "$root"/results/*/conformance.csv | sed -n 's/ differs//p' | sort)" \
    "$(verdicts "$root"/results/*/conformance.csv | sed -n 's/ explained//p' | sort)"
importer conformance
csv=results/h200/conformance.csv
conformance() { mk conformance KERNELBENCH=kb PYTHON="$python"; }
refused() { check "$1 is refused in one line" lines 1 "$2"; check 'and nothing is written' [ ! -e $csv ]; }

# problem NUMBER NAME FORWARD [OP [BEFORE]] - a module of one parameter, and its task with this op on x and w,
# behind others, between |.
mkdir -p kb/KernelBench/level1
problem() {
    cat > "kb/KernelBench/level1/$1_$2.py" <<PY
import torch
class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.w = torch.nn.Parameter(torch.zeros(8))
    def forward(self, x):
        return $3
def get_inputs():
    return [torch.randn(4, 8)]
def get_init_inputs():
    return []
PY
    jq -n --arg name "l1_00$1_$2" --arg source "KernelBench 1234567 level1/$1" --arg op "y[4,8] = ${4:-mul(x, w)}" --arg before "${5-}" '{schema: 1, task: $name,
        suite: "level1", title: $name, source: $source, graph: (($before | split("|")) + [$op]), outputs: ["y"], notes: [], flags: [],
        inputs: [{name: "x", shape: [4, 8], dtype: "f32", fill: "normal(0,1)", domain: "real"}],
        parameters: [{name: "w", shape: [8], dtype: "f32", fill: "constant(0)", domain: "real"}]}' > "tasks/level1/l1_00$1_$2.json"
}
rm tasks/*/*.json optimized/*/*.cu
problem 2 mul 'x * self.w'

mk conformance
check 'without a checkout it says what to give' says 'conformance: say KERNELBENCH=checkout'
mk conformance KERNELBENCH=nowhere
refused 'a checkout without problems' 'conformance: nowhere: no KernelBench/level1/; KERNELBENCH is a checkout of github.com/ScalingIntelligence/KernelBench'
check 'before anything is compiled for it' [ ! -e build/oracle ]
conformance
refused 'one of no known commit' 'conformance: kb: its commit is not known; expected a git checkout, or the commit in kb/COMMIT$'
echo 89abcdef > kb/COMMIT
conformance
refused 'another commit' 'conformance: no chosen task is of KernelBench 89abcde, which kb is; they are of 1234567$'
echo 1234567890 > kb/COMMIT
mkdir none
printf 'raise ImportError("none")\n' > none/torch.py
PYTHONPATH=$PWD/none conformance
refused 'a Python without PyTorch' 'conformance: PyTorch with a GPU is needed, and this Python \(.*\) has no PyTorch; say PYTHON='
check 'make fails' not conformance
gpus
conformance
refused 'a machine without a GPU' '^no NVIDIA GPU here'

if ! "$python" -c 'import torch' 2> /dev/null; then
    skip 'modules' "no PyTorch in $python"
    exit
fi
if ! [ -x "$root/build/fake/oracle" ]; then
    skip 'modules' 'no CUDA headers here'
    exit
fi
# on_cpu TASK... - without a GPU; sets status.
on_cpu() {
    CUDA_VISIBLE_DEVICES="" "$python" "$PWD/harness/import/conformance.py" --cpu --kernelbench "$PWD/kb" --oracle "$root/build/fake/oracle" --out $csv "$@" > "$out" 2>&1
    status=$?
}
verdict_of() { awk -F, -v task="$1" '$1 == task { print $6 }' $csv; }
problem 1 add 'x + self.w' 'add(x, w)'
problem 3 near 'x * self.w * (1 + 1e-8)'
problem 4 shape '(x * self.w).sum(0)'
problem 5 ends 'os.abort()'
problem 7 sixth 'torch.nn.functional.hardswish(x * self.w)' 'hardswish(a)' 'a[4,8] = mul(x, w)'
problem 8 ill 'torch.sin(self.w * 1234567890.123 * x)' 'sin(b)' 'a[4,8] = mul(x, w)|b[4,8] = mul(a, 1234567890.123)'
sed -i '1i import os' kb/KernelBench/level1/5_ends.py
# A GPU's hardswish, which a processor has not.
sed -i '1a torch.nn.functional.hardswish = lambda x: x * (x + 3).clamp(0, 6) * float(torch.tensor(1 / 6, dtype=torch.float32))' kb/KernelBench/level1/7_sixth.py
problem 6 raises 'x @ x'
on_cpu tasks/level1/*.json
check 'a run with a task that does not agree fails' is $status 1
check 'a module and its task agree' is "$(verdict_of l1_001_add)$(verdict_of l1_002_mul)" agreesagrees
check 'with a parameter that starts as 0' awk -F, '$1 == "l1_002_mul" { exit $2 != 1 || $3 > 1e-15 }' $csv
check 'an error of 1e-8 differs' is "$(verdict_of l1_003_near)" differs
check 'a sixth of fp32 is found' grep -q '^l1_007_sixth,.*,explained,an exact sixth' $csv
check 'and a module that the last bit of its inputs moves as much' grep -q '^l1_008_ill,.*,explained,ill-conditioned' $csv
check 'outputs of other shapes fail' grep -q "^l1_004_shape,.*,failed,ValueError: the module's output is \[8\]; the task's \[4; 8\]" $csv
check 'so does a module that ends its process' grep -q '^l1_005_ends,.*,failed,its process ended' $csv
check 'and one that raises' grep -q '^l1_006_raises,.*,failed,RuntimeError' $csv
check 'the last line counts' is "$(tail -n 1 "$out")" "conformance: 2 of 8 tasks of KernelBench 1234567 agree, 2 more are explained; $csv"
check 'the circumstances are told' grep -q '^# KernelBench 1234567: .*; torch ' $csv
problem 3 near 'x * self.w'
on_cpu tasks/level1/l1_003_near.json
check 'a task that agrees now is alone in its run' is "$status $(tail -n 1 "$out")" "0 conformance: 1 of 1 tasks of KernelBench 1234567 agree; $csv"
check 'and the rows of others stay' is "$(grep -vc '^#' $csv) $(verdict_of l1_003_near)" '9 agrees'
