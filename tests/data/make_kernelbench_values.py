#!/usr/bin/env python3
"""What PyTorch computes for small versions of KernelBench's problems, for
tests/unit/define/test_kernelbench.c.

    python3 make_kernelbench_values.py CHECKOUT kernelbench_values.jsonl [PREFIX...]

Run by hand, with PyTorch (no GPU), when the importer or the checkout changes.  A problem's file is run
with smaller numbers in its sizes, so that the module is the official one; the importer makes a task of
it, whose ops must be those of the whole task in tasks/; the module runs in float64 on contents that the
test draws again by the same rule (test_kernelbench.c says which).  A line has the task and, of each
output, its root mean square and some elements."""

import ast
import importlib
import json
import logging
import os
import re
import subprocess
import sys
import tempfile
import warnings

import numpy as np
import torch
from torch.utils.flop_counter import FlopCounterMode

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(ROOT, "harness", "import"))
from drawn import Drawn
from record import Recorder, Refused
import task
importer = importlib.import_module("import")

SIZES = [3, 4, 5, 6, 7, 8, 9, 10, 12, 14, 15, 16, 18, 20, 24, 28, 30, 32, 36, 40, 48, 49, 56, 60, 64, 96, 128]
LEAST = 9            # smaller numbers than this are no sizes
MOST_NUMBERS = 5e7   # in a small task's tensors; a larger one is left out
MOST_FLOPS = 1.5e9   # that it takes
SAMPLES = 16         # elements of each output


# ---- Smaller versions ----

class Sizes(ast.NodeTransformer):
    """Whole numbers of the file's constants, of get_inputs() and of get_init_inputs(), by place."""

    def __init__(self, change=None):
        self.found, self.change, self.count = [], change or {}, 0

    def visit_Constant(self, node):
        if type(node.value) is int and node.value >= LEAST:
            self.count += 1
            self.found.append((self.count, node.value))
            return ast.copy_location(ast.Constant(self.change.get(self.count, node.value)), node)
        return node

    def of(self, text):
        tree = ast.parse(text)
        for node in tree.body:
            if isinstance(node, (ast.Assign, ast.AnnAssign)) or \
                    isinstance(node, ast.FunctionDef) and node.name in ("get_inputs", "get_init_inputs"):
                self.visit(node)
        return tree


def loaded(text, change):
    space = {"__name__": "kernelbench_module"}
    exec(compile(Sizes(change).of(text), "module", "exec"), space)
    return space


def build(text, change):
    space = loaded(text, change)
    return space["Model"](*space["get_init_inputs"]()), space["get_inputs"]()


def cost(text, change):
    """Numbers in the tensors of a version that runs; None of one that does not."""
    try:
        recorder = Recorder()
        with recorder, torch.no_grad():
            model, inputs = build(text, change)
        with recorder.fake, torch.no_grad():
            out = model(*inputs)
        tensors = [x for x in inputs if isinstance(x, torch.Tensor)] + list(model.parameters())
        out = [x for x in (out if isinstance(out, (tuple, list)) else [out])]
        if any(0 in x.shape for x in out):
            return None
        return sum(x.numel() for x in tensors + out)
    except Exception:
        return None


def smaller(text, kept, least):
    """A change of sizes, but for those that are `kept`: each as small as the module allows, and at
    least `least`; equal ones together if that works."""
    sizes = Sizes()
    sizes.of(text)
    change, now = {}, cost(text, {})
    for value in sorted({v for _, v in sizes.found} - {kept}, reverse=True):
        places = [p for p, v in sizes.found if v == value]
        for group in [places] + ([[p] for p in places] if len(places) > 1 else []):
            if all(p in change for p in group):
                continue
            for small in [s for s in SIZES if least <= s < value]:
                trial = {**change, **dict.fromkeys(group, small)}
                got = cost(text, trial)
                if got is not None and got < now:
                    change, now = trial, got
                    break
    return change


# ---- Contents ----

def mix(seed, index):
    """kp_mix of harness/gpu/values.h."""
    with np.errstate(over="ignore"):
        z = np.uint64(seed) + (np.asarray(index, np.uint64) + np.uint64(1)) * np.uint64(0x9e3779b97f4a7c15)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xbf58476d1ce4e5b9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94d049bb133111eb)
        return z ^ (z >> np.uint64(31))


def contents(tensor, index):
    """As drawn() of test_kernelbench.c."""
    shape, fill = tensor["shape"], tensor["fill"]
    count = int(np.prod(shape, dtype=np.int64))
    kind, numbers = re.findall(r"(\w+)\(([^()]*)\)", fill)[0]
    u = (mix(mix(0, index), np.arange(count)) >> np.uint64(40)).astype(np.float64) * 2.0 ** -24
    if kind == "values":
        runs = [x.split("*") for x in numbers.split(",")]
        x = np.concatenate([np.full(int(r[1]) if len(r) > 1 else 1, float(r[0])) for r in runs])
        return x.astype(np.float32).astype(np.float64).reshape(shape) if tensor["dtype"] == "f32" else x.reshape(shape)
    n = [float(x) for x in numbers.split(",") if x]
    x = {"integers": lambda: np.floor(n[0] + u * (n[1] - n[0])), "bernoulli": lambda: (u < n[0]) * 1.0,
         "signs": lambda: np.where(u < 0.5, -1.0, 1.0), "uniform": lambda: n[0] + (n[1] - n[0]) * u,
         "normal": lambda: n[0] + n[1] * (2 * u - 1), "fan_in": lambda: (2 * u - 1) / np.sqrt(n[0]),
         "constant": lambda: n[0] + (0 if tensor["domain"] == "declared" else 0.25) * (2 * u - 1)}[kind]()
    x = x.reshape(shape)
    if "softmax(" in fill:
        x = (x + 0.125) / shape[-1]
    if "symmetric(" in fill:
        x = 0.5 * (x + np.swapaxes(x, -1, -2))
    return np.triu(x) if "upper(" in fill else np.tril(x) if "lower(" in fill else x


def computed(text, change, small, noise=0.0):
    """The outputs of the module, in float64, on contents with relative noise."""
    drawn = {}
    for i, t in enumerate(small["inputs"] + small["parameters"]):
        x = torch.from_numpy(np.ascontiguousarray(contents(t, i))).reshape(t["shape"])
        if noise and t["domain"] != "declared":
            x = x * (1 + noise * torch.sin(7.0 * torch.arange(x.numel(), dtype=torch.float64)).view(x.shape))
        drawn[t["name"]] = x.to({"i64": torch.int64, "bool": torch.bool}.get(t["dtype"], torch.float64))
    model, inputs = build(text, change)
    task.register(model)
    model = model.double()
    with torch.no_grad():
        for name, x in list(model.named_parameters()) + list(model.named_buffers()):
            if task.identifier(name) in drawn:
                x.copy_(drawn[task.identifier(name)])
        names = [t["name"] for t in small["inputs"]]
        given = [drawn[names.pop(0)] if isinstance(x, torch.Tensor) else x for x in inputs]
        torch.set_default_dtype(torch.float64)
        try:
            with Drawn([drawn[n] for n in names]), FlopCounterMode(display=False) as flops:
                out = model(*given)
        finally:
            torch.set_default_dtype(torch.float32)
    if flops.get_total_flops() > MOST_FLOPS:
        raise Refused("its small version takes %g flops" % flops.get_total_flops())
    return list(out) if isinstance(out, (tuple, list)) else [out]


def ops(graph):
    return [re.sub(r"\(.*", "", line.split(" = ")[1]) for line in graph]


def taken(small):
    """Whether build/task takes a task."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "my", "small.json")
        task.write(path, task.text({"schema": 1, "task": "small", "suite": "my"}, small))
        return subprocess.run([os.path.join(ROOT, "build", "task"), "check", path],
                              capture_output=True, check=False).returncode == 0


def small_version(text, wanted):
    """A change of sizes, its task, and the outputs, which rounding must not decide."""
    sizes = Sizes()
    sizes.of(text)
    for least in (3, 16, 48):
        for kept in [None] + sorted({v for _, v in sizes.found}):  # one may be a number of layers
            change = smaller(text, kept, least)
            small = task.trace(lambda: build(text, change))
            if ops(small["graph"]) == wanted:
                break
        else:
            raise Refused("its small version has other ops")
        count = sum(int(np.prod(t["shape"])) for t in small["inputs"] + small["parameters"])
        if count > MOST_NUMBERS:
            raise Refused("its small version has %d numbers" % count)
        if not taken(small):
            continue
        outputs, again = computed(text, change, small), computed(text, change, small, 1e-15)
        if all(float((x.double() - y.double()).norm()) <= 1e-11 * float(x.double().norm())
               for x, y in zip(outputs, again)):
            return change, small, outputs
    raise Refused("rounding decides what its small version computes, or a window does not fit")


def line_of(source, text):
    """The line of a problem.  Refused says why it has none."""
    with open(os.path.join(ROOT, "tasks", source.suite, source.task + ".json"), encoding="ascii") as f:
        whole = json.load(f)
    change, small, outputs = small_version(text, ops(whole["graph"]))
    values = []
    for x in outputs:
        flat = x.double().flatten().numpy()
        places = np.unique(mix(1, np.arange(SAMPLES)) % np.uint64(flat.size)).astype(int)
        values.append({"rms": float(np.sqrt(np.mean(flat ** 2))), "at": places.tolist(),
                       "is": [float(v) for v in flat[places]]})
    head = {"schema": 1, "task": source.task, "suite": source.suite}
    kept = {k: small[k] for k in ("inputs", "parameters", "graph", "outputs", "flags")}
    return {"task": {**head, **kept}, "values": values}


def main():
    warnings.simplefilter("ignore")
    logging.disable(logging.CRITICAL)  # PyTorch's log of sizes that do not fit
    lines, left = [], []
    for source in importer.kernelbench(sys.argv[1], ""):
        if sys.argv[3:] and not source.task.startswith(tuple(sys.argv[3:])):
            continue
        with open(source.path, encoding="utf-8") as f:
            text = f.read()
        try:
            lines.append(json.dumps(line_of(source, text), separators=(",", ":")))
            print(source.task, len(lines[-1]), flush=True)
        except Exception as e:
            left.append(source.task)
            print("%s is left out: %s" % (source.task, " ".join(str(e).split())[:200]), file=sys.stderr, flush=True)
    with open(sys.argv[2] + "+", "w", encoding="ascii") as f:
        f.write("\n".join(lines) + "\n")
    os.replace(sys.argv[2] + "+", sys.argv[2])


if __name__ == "__main__":
    main()
