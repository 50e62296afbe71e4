#!/usr/bin/env python3
"""Whether harness/pytorch/forms.py writes each op as PyTorch means it.

    python3 tests/data/check_torch_forms.py

Runs from the root, on the CPU in float64.  The programs of the small tasks of ops.json with known
values and of torch_values.json must give those values, and every op must be in one.  Prints what
differs; exits with 1 if anything does.
"""

import json
import math
import re
import sys

sys.path.insert(0, "harness/pytorch")
import forms  # noqa: E402
import torch  # noqa: E402


def by_hand(case):
    """A case of ops.json as a task file has it, as far as forms.py reads that."""
    tensors = []
    for name, kind, shape in re.findall(r"(\w+)([^ ;]*) ([\d,]+)", case["tensors"]):
        dtype = "i64" if kind.startswith(":") else "bool" if kind == "?" else "f32"
        tensors.append({"name": name, "shape": [int(n) for n in shape.split(",")], "dtype": dtype})
    graph, _, outputs = case["graph"].partition(" -> ")
    lines = graph.split("|")
    outputs = outputs.split() or forms.parse(lines[-1])[0]
    return {"task": case["name"], "inputs": tensors, "parameters": [], "graph": lines,
            "outputs": outputs}


def on_cpu(task, values):
    """The outputs of a task's program, flat."""
    tensors = []
    for x, flat in zip(task["inputs"] + task["parameters"], values):
        dtype = getattr(torch, forms.TYPES[x["dtype"]])
        dtype = torch.float64 if dtype == torch.float32 else dtype
        flat = torch.tensor([float(v) for v in flat], dtype=torch.float64)
        tensors.append(flat.to(dtype).reshape(x["shape"]))
    scope = {"torch": torch, "F": F}
    text = forms.source(task).replace('"cuda"', '"cpu"').replace("torch.float32", "torch.float64")
    exec(text, scope)
    with torch.no_grad():
        out = scope["task"](*tensors)
    return [y.double().reshape(-1).tolist() for y in (out if isinstance(out, tuple) else (out,))]


def same(a, b):
    return a == b or (math.isnan(a) and math.isnan(b)) or abs(a - b) <= 1e-9 * (1 + abs(b))


def main():
    with open("tests/data/ops.json") as f:
        cases = [(by_hand(c), c["in"], c["out"]) for c in json.load(f)["cases"] if "in" in c]
    with open("tests/data/torch_values.json") as f:
        cases += [(c["task"], c["tensors"], c["outputs"]) for c in json.load(f)["cases"]]
    wrong, seen = 0, set()
    for task, values, expected in cases:
        seen |= {forms.parse(line)[1] for line in task["graph"]}
        try:
            found = on_cpu(task, values)
        except Exception as e:  # the program cannot run
            found = [[math.inf]]
            print("%s: %s" % (task["task"], forms.first_words(e)))
        if [len(y) for y in found] != [len(y) for y in expected] or not all(
                same(a, float(b)) for y, z in zip(found, expected) for a, b in zip(y, z)):
            print("%s: other values\n%s" % (task["task"], forms.source(task)))
            wrong += 1
    for op in sorted(forms.OPS - seen):
        print("%s is in no task with known values" % op)
    print("%d of %d tasks as PyTorch means them" % (len(cases) - wrong, len(cases)))
    return 1 if wrong or forms.OPS - seen else 0


if __name__ == "__main__":
    sys.exit(main())
