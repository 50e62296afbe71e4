#!/bin/bash
# make import: a PyTorch module becomes a task file, or one clear line says why not and nothing is
# written.  What needs PyTorch is skipped where PYTHON has none.
# uses: build/task
# shellcheck disable=SC2154  # out, root, scratch are lib.sh's
. tests/e2e/lib.sh
importer import
unwritten() { [ ! -e tasks/my ]; }

mk import
check 'without a module it says what to give' lines 1 'say MODULE=file.py NAME=my_task, or KERNELBENCH=checkout'
mk import MODULE=a.py NAME=a KERNELBENCH=b
check 'a module and a checkout are one too many' lines 1 'not both'
mkdir none
printf 'raise ImportError("none")\n' > none/torch.py
PYTHONPATH=$PWD/none mk import MODULE=a.py NAME=a PYTHON="$python"
check 'without PyTorch it says so' says 'PyTorch is needed, 2.5 or newer, and this Python \(.*\) has none; say PYTHON='
printf '__version__ = "2.4.1+cpu"\n' > none/torch.py
PYTHONPATH=$PWD/none mk import MODULE=a.py NAME=a PYTHON="$python"
check 'and of one that is too old, which' says 'PyTorch is 2\.4\.1\+cpu; 2\.5 or newer is needed'
check 'nothing is written' unwritten

mkdir -p part/KernelBench/level2
touch part/KernelBench/level2/1_A.py
echo 423217d > part/COMMIT
"$python" - "$root/harness/import" > "$out" 2>&1 << 'PY'
import importlib.util, sys
sys.path.insert(0, sys.argv[1])
spec = importlib.util.spec_from_file_location("importer", sys.argv[1] + "/import.py")
importer = importlib.util.module_from_spec(spec)
spec.loader.exec_module(importer)
print([s.task for s in importer.kernelbench("part", "")])
PY
check 'a checkout without some levels says so' says '^import: part has nothing in level1 and level3: these tasks stay as they are$'
check 'and gives what it has' says "^\['l2_001_a'\]$"

# The importer with a pretend PyTorch, and a tracer that runs the module alone.
mkdir pretend_import
cp harness/import/{import,checkout}.py pretend_import/
printf '__version__ = "2.5.0"\n' > none/torch.py
echo 'class Refused(Exception): pass' > pretend_import/record.py
{
    printf 'import json, os\ndef trace(build):\n    build()\n    return {"notes": [], "flags": []}\ndef text(head, made): return "{}"\n'
    sed -n '/^def write/,$p' harness/import/task.py
} > pretend_import/task.py
pretend_import() { PYTHONPATH=$PWD/none "$python" pretend_import/import.py --task true --name a a.py > "$out" 2>&1; }
echo 'raise SystemExit(0)' > a.py
pretend_import
check 'a module that ends Python is refused' is "$? $(cat "$out")" '3 import: a.py: SystemExit: 0'
printf 'def Model(): pass\ndef get_inputs(): return []\n' > a.py
touch tasks/my
pretend_import
check 'a task that cannot be written is exit 5, in one line' is "$? $(grep -c '^import: tasks/my: ' "$out") $(wc -l < "$out")" '5 1 1'
rm tasks/my
pretend_import
check 'one that can comes to its place' is "$? $(cat "$out" tasks/my/a.json)" "0 tasks/my/a.json
{}"
rm -r tasks/my

# Rules of single ops, with a PyTorch of which only the names are there.  $said: what the rule said.
# rule EXPRESSION - of `mask` and `x`, a bool and an f32 [4,1]
rule() {
    said=$("$python" - "$root/harness/import" "$1" 2>&1 << 'PY'
import sys
from unittest.mock import MagicMock
sys.path.insert(0, sys.argv[1])
for name in ("", ".nn", ".nn.functional", "._subclasses", "._subclasses.fake_tensor", ".fx", ".fx.experimental",
             ".fx.experimental.proxy_tensor", ".utils", ".utils._python_dispatch", ".utils._pytree"):
    sys.modules["torch" + name] = MagicMock()
sys.modules["torch.utils._python_dispatch"].TorchDispatchMode = object
import torch
from graph import Graph, Value
from ops import einsum, special
from record import Refused, number

def value(dtype):
    fake = MagicMock(shape=(4, 1), dtype=dtype)
    fake.dim.return_value = 2
    return Value(fake, "x")
x, mask, graph = value(torch.float32), value(torch.bool), Graph(None)
graph.defaults = {}
def attention(p): return {"attn_mask": mask, "is_causal": False, "dropout_p": p}
def squeezed(dim, shape): return graph.computed("squeeze", "dim", {"self": x, "dim": dim}, [MagicMock(shape=shape, dtype=x.fake.dtype)], [x])
try:
    print(eval(sys.argv[2]))
except Refused as e:
    print("refused:", e)
PY
    )
}
rule 'number(float("-inf")), number(float("inf")), number(-1e9), number(0.1)'
check 'a fill or a frame of -inf is written as task files write it' is "$said" "('-inf', 'inf', '-1000000000', '0.1')"
rule 'callable(special("scaled_dot_product_attention", attention(0.0)))'
check 'attention with a mask is made of others' is "$said" True
rule 'special("scaled_dot_product_attention", attention(0.1))'
check 'with dropout it is refused: it lost the dropout' is "$said" 'refused: attention with dropout is no op of a task'
rule 'special("triplet_margin_loss", {"swap": True})'
check 'and so is a triplet loss with swap' is "$said" 'refused: triplet_margin_loss with swap is no op of a task'
rule 'special("bitwise_not", {"self": x})'
check '~ of numbers is not that of a mask' is "$said" 'refused: bitwise_not of anything but a mask is no op of a task'
rule 'callable(special("bitwise_not", {"self": mask}))'
check 'which is an op' is "$said" True
for equation in 'ii->' 'ij,jk' '...ij,jk->...ik'; do
    rule "einsum('$equation', [x, x])"
    check "einsum of $equation is refused" is "$said" 'refused: einsum without ->, with ... or with a letter twice in a term is no op of a task'
done
rule 'squeezed(0, (4, 1)) is x, squeezed(1, (4,)) is x'
check 'squeeze of an axis that is longer than 1 gives its operand back' is "$said" '(True, False)'
rule 'graph.rule("view(self; shape=size)", {"self": x, "size": []}, [x.fake]) and graph.lines[0].attributes'
check 'a view of no axes says so' is "$said" "[('shape', '[]')]"

if ! "$python" -c 'import torch; assert tuple(map(int, torch.__version__.split("+")[0].split(".")[:2])) >= (2, 5)' 2> /dev/null; then
    skip 'modules' "no PyTorch of 2.5 or newer in $python"
    exit
fi
modules=$root/tests/data/modules

# import_of NAME LINE... - make import of a function of one 4 x 4 tensor with these lines.
import_of() {
    local name=$1
    shift
    { printf 'import torch\ndef f(x):\n'; printf '    %s\n' "$@"; printf 'def get_inputs():\n    return [torch.rand(4, 4)]\n'; } > "$name.py"
    mk import MODULE="$name.py:f" NAME="$name" PYTHON="$python"
}
refused() { check "$1 is refused in one line" lines 1 "$2"; check 'and nothing is written' unwritten; }

import_of fft 'return torch.fft.fft(x).real'
refused 'an op that no task has' 'import: fft\.py: aten\.fft_fft is no op of a task; write it with others, or add the op'
import_of branch 'return x.relu() if x.sum() > 0 else x'
refused 'a branch on values' 'depends on the values of tensors'
import_of shape 'return x.nonzero().float()'
refused 'a shape that depends on values' 'import: shape\.py: .*the shape of its result depends on'
import_of part 'y = x.relu()' 'y[0] += 1' 'return y'
refused 'a write into a part' 'altered in place while another view of it is in use'
import_of same 'return x'
refused 'an output that is an input' 'an output is an input or a constant'
import_of wrong 'return x + torch.zeros(5)'
refused 'a module that fails by itself' 'import: wrong\.py: .*broadcast'
import_of lacks 'import no_such_module' 'return x'
refused 'a package that is missing' 'it imports no_such_module, which this Python does not have'
mk import MODULE=fft.py:g NAME=fft PYTHON="$python"
refused 'a function that is missing' 'there is no g; say which'
mk import MODULE=absent.py NAME=absent PYTHON="$python"
refused 'a file that is missing' 'absent\.py: no such file'
mk import MODULE=fft.py NAME=Fft PYTHON="$python"
refused 'a name that no task may have' 'NAME=Fft: a task.s name has lower-case letters'
mkdir -p broken/KernelBench/level1
mk import KERNELBENCH=broken PYTHON="$python"
refused 'a checkout without problems' 'broken: no KernelBench/level1/'
echo 'def get_inputs(): return []' > broken/KernelBench/level1/1_Empty.py
mk import KERNELBENCH=broken PYTHON="$python"
refused 'one of no known commit' 'broken: its commit is not known; expected a git checkout, or the commit in broken/COMMIT|no Model'

import_of plain 'y = x.relu_()' 'return torch.stack([y, y * 2]).sum(0), y.max(1)[0]'
check 'a function becomes a task of the suite my' says '^tasks/my/plain\.json$'
check 'which is a whole one' "$root/build/task" check tasks/my/plain.json
check 'of its ops alone' is "$(jq -c '[.graph[] | sub(".* = "; "") | sub("\\(.*"; "")]' tasks/my/plain.json)" \
    '["relu","mul","unsqueeze","unsqueeze","cat","sum","max"]'
for name in block unet; do
    mk import MODULE="$modules/$name.py" NAME="$name" PYTHON="$python"
    check "the module $name.py becomes the task of today" cmp "tasks/my/$name.json" "$modules/$name.json"
done
cat > recurrent.py <<'PY'
import torch
from torch import nn
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.step, self.out, self.gru, self.lstm = nn.Linear(8, 4), nn.Linear(4, 4), nn.GRU(4, 4), nn.LSTM(4, 4)
    def forward(self, x, h, a, b, c):
        for _ in range(2):
            h = torch.tanh(self.step(torch.cat([x, h], 1)))
        y, _ = self.gru(self.out(h).unsqueeze(0), a)
        return self.lstm(y, (b, c))[0]
def get_inputs():
    return [torch.rand(4, 4), torch.rand(4, 4), *(torch.rand(1, 4, 4) for _ in range(3))]
PY
mk import MODULE=recurrent.py NAME=recurrent PYTHON="$python"
check 'weights that a network uses at each step, and first states, are moderate, all else is real' is \
    "$(jq -r '(.inputs, .parameters)[] | select(.domain != "real") | .name + " " + .domain' tasks/my/recurrent.json)" \
    "$(printf '%s moderate\n' a b c step_{weight,bias} {gru,lstm}_{weight,bias}_{ih,hh}_l0)"
mk tasks
check 'a task of my own is measured only where it is named' lines 0 my
mk tasks SUITE=my
check 'by its suite' lines 4 '^my '
