#!/usr/bin/env python3
"""What PyTorch needs for the tasks, measured as this suite measures its own runners.

    python3 tests/gpu/torch_times.py results/pytorch/h200.csv [--compile] [TASK.json...]
    python3 tests/gpu/torch_times.py --show [TASK.json...]

Without tasks: all of tasks/.  A task's graph becomes the function that a PyTorch user
would write for it (--show prints them, and needs neither a GPU nor PyTorch).  It is
timed as an eager call and as the replay of a CUDA graph, in fp32 (TF32 off) and with
TF32 on; tasks of f16 tensors in f16.  --compile adds torch.compile in its default mode.

A sample is what two events say around one call or replay, after the L2 cache was emptied
by reading.  The GPU is still reading when the call is made, so that the cost of a first
launch is hidden, as it is in a program that keeps its GPU busy.  Modes take turns in
random order.  The file, which is replaced, holds medians of 5 to 30 samples in
microseconds; it is written anew after each task.

Memory that is given back to the driver is scrubbed in the background, which slows
whatever is measured meanwhile.  So all of it is taken at the start and kept, and before a
task is measured a copy has to be steady.  For the same reason graphs are captured by
hand: torch.cuda.graph() empties the allocator first.
"""

import argparse
import datetime
import glob
import json
import math
import os
import random
import re
import statistics
import subprocess
import sys
import time
import warnings

try:
    import torch
    import torch.nn.functional as F
except ImportError:
    torch = F = None

COLUMNS = ("eager_fp32", "graph_fp32", "eager_tf32", "graph_tf32", "eager_f16", "graph_f16",
           "compiled_fp32", "compiled_tf32")
SAMPLES, SECONDS = (5, 30), 0.3  # for each task and mode

# ---- A task as Python ----

OPERATORS = {"add": "+", "sub": "-", "mul": "*", "div": "/", "pow": "**"}
METHODS = ("view", "transpose", "permute", "unsqueeze", "squeeze")
IN_TORCH = ("flatten", "matmul", "relu", "sigmoid", "tanh", "sqrt", "sum", "mean", "max",
            "cumsum")
TENSOR_CORES = ("matmul", "linear", "conv1d", "conv2d", "conv3d", "scaled_dot_product_attention")


def parse(line):
    """Results, op, operands and attributes of a graph line; attributes as Python text."""
    left, right = line.split(" = ", 1)
    results = re.findall(r"(\w+)\[[^\]]*\]", left)
    op, inside = re.fullmatch(r"(\w+)\((.*)\)", right.strip()).groups()
    operands, _, attributes = inside.partition(";")
    operands = [x.strip() for x in operands.split(",")]
    pairs = re.findall(r'(\w+)=(\[[^\]]*\]|"[^"]*"|[^,\s]+)', attributes)
    return results, op, operands, {key: literal(value) for key, value in pairs}


def literal(text):
    """A value of a task file as Python writes it: true, [2,3], 1e-05, mean, "text"."""
    if text in ("true", "false"):
        return text.capitalize()
    return repr(text) if re.fullmatch(r"[A-Za-z_]\w*", text) else text


def expression(op, operands, attributes):
    """The right side of a graph line as a PyTorch user writes it."""
    if op in OPERATORS:
        return "%s %s %s" % (operands[0], OPERATORS[op], operands[1])
    if op in METHODS:
        values = ", ".join(value.strip("[]") for value in attributes.values())
        return "%s.%s(%s)" % (operands[0], op, values)
    if op == "layer_norm":
        attributes["normalized_shape"] = attributes.pop("shape")
    if op == "batch_norm":
        attributes.update(running_mean="None", running_var="None")
    named = ["%s=%s" % pair for pair in attributes.items()]
    in_torch = op in IN_TORCH or (F and not hasattr(F, op))
    return "%s.%s(%s)" % ("torch" if in_torch else "F", op, ", ".join(operands + named))


def source(task):
    """The function of a task.  A value is dropped after its last use, as a chain of calls does."""
    lines = [parse(line) for line in task["graph"]]
    text = "def task(%s):\n" % ", ".join(x["name"] for x in task["inputs"] + task["parameters"])
    alive = set()
    for i, (results, op, operands, attributes) in enumerate(lines):
        text += "    %s = %s\n" % (", ".join(results), expression(op, operands, attributes))
        later = {x.split("=")[-1] for line in lines[i + 1:] for x in line[2]} | set(task["outputs"])
        dead = sorted((alive | set(results)) - later)
        alive = (alive | set(results)) & later
        if dead:
            text += "    del %s\n" % ", ".join(dead)
    return text + "    return %s\n" % ", ".join(task["outputs"])


def function(task):
    scope = {"torch": torch, "F": F}
    exec(compile(source(task), task["task"], "exec"), scope)
    return scope["task"]


def numerics_of(task):
    """In which arithmetic a task is measured: what it has baselines for."""
    types = {x["dtype"] for x in task["inputs"] + task["parameters"]}
    if "bf16" in types:
        raise ValueError("there is no column for bf16")
    if "f16" in types:
        return ["f16"]
    cores = any(parse(line)[1] in TENSOR_CORES for line in task["graph"])
    return ["fp32", "tf32"] if cores else ["fp32"]


# ---- Contents ----

WRAPS = {
    "symmetric": lambda x: (x + x.transpose(-1, -2)) / 2,
    "upper": lambda x: x.triu(),
    "lower": lambda x: x.tril(),
    "scaled": lambda x: x * torch.rand((), device="cuda"),
    "softmax": lambda x: torch.softmax(x, -1),
}
KINDS = {
    "uniform": lambda x, low, high: x.uniform_(low, high),
    "normal": lambda x, mean, std: x.normal_(mean, std),
    "constant": lambda x, c: x.fill_(c),
    "integers": lambda x, low, high: x.random_(int(low), int(high)),
    "fan_in": lambda x, n: x.uniform_(-1 / math.sqrt(n), 1 / math.sqrt(n)),
    "bernoulli": lambda x, p: x.bernoulli_(p),
    "signs": lambda x: x.bernoulli_(0.5).mul_(2).sub_(1),
}


def filled(fill, shape, dtype, made):
    """A new tensor as a task's fill describes it; `made` has those before it, by name."""
    kind, inside = re.fullmatch(r"\s*(\w+)\((.*)\)\s*", fill).groups()
    if kind == "transposed":
        return made[inside.strip()].transpose(-1, -2).contiguous()
    if kind in WRAPS:
        return WRAPS[kind](filled(inside, shape, dtype, made))
    numbers = [float(x) for x in inside.split(",") if x.strip()]
    return KINDS[kind](torch.empty(shape, dtype=dtype, device="cuda"), *numbers)


def contents(task):
    types = {"f32": torch.float32, "f16": torch.float16, "i64": torch.int64, "i32": torch.int32,
             "bool": torch.bool}
    made = {}
    for x in task["inputs"] + task["parameters"]:
        made[x["name"]] = filled(x["fill"], x["shape"], types[x["dtype"]], made)
    return list(made.values())


# ---- The machine ----

def allow_tf32(numerics):
    """By PyTorch's older switches, which set the newer ones, too; not the other way round."""
    torch.backends.cuda.matmul.allow_tf32 = numerics == "tf32"
    torch.backends.cudnn.allow_tf32 = numerics == "tf32"


class Machine:
    """One GPU, one stream, and memory taken once."""

    def __init__(self):
        torch.cuda.set_stream(torch.cuda.Stream())  # the default stream cannot be captured
        properties = torch.cuda.get_device_properties(0)
        l2 = getattr(properties, "L2_cache_size", 0) or 128 << 20
        self.clean = torch.zeros(2 * l2 // 4, device="cuda")
        self.sink = torch.zeros((), device="cuda")
        self.copy = [torch.zeros(64 << 20, device="cuda") for _ in range(2)]
        self.fastest = math.inf
        self.before, self.after = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        # What is freed at once stays with the allocator: one half for calls, the other for
        # graphs, whose pool lives as long as this first graph.
        self.pool = torch.cuda.graph_pool_handle()
        arena = int(0.4 * torch.cuda.mem_get_info()[0])
        torch.empty(arena, dtype=torch.uint8, device="cuda")
        self.keeper = self.capture(lambda: (torch.empty(arena, dtype=torch.uint8, device="cuda"),
                                            self.sink.zero_()))
        self.reserved = torch.cuda.memory_reserved()

    def capture(self, call):
        graph = torch.cuda.CUDAGraph()
        torch.cuda.synchronize()
        graph.capture_begin(pool=self.pool)
        try:
            call()
        finally:
            graph.capture_end()
        return graph

    def sample(self, call):
        """Microseconds of one call."""
        torch.sum(self.clean, dim=0, out=self.sink)
        self.before.record()
        call()
        self.after.record()
        self.after.synchronize()
        return 1e3 * self.before.elapsed_time(self.after)

    def settle(self, limit=1.0):
        """Wait until five copies in a row agree within 2 %, and with the fastest ever within
        5 %.  Returns whether they did before the limit, in seconds."""
        torch.cuda.synchronize()
        freed = self.reserved - torch.cuda.memory_reserved()
        if freed > 0:  # memory was short; the driver now scrubs
            time.sleep(2.5e-3 * freed / 1e9)
        self.reserved = torch.cuda.memory_reserved()
        last, end = [], time.perf_counter() + limit
        while time.perf_counter() < end:
            last = last[-4:] + [self.sample(lambda: self.copy[0].copy_(self.copy[1]))]
            self.fastest = min(self.fastest, last[-1])
            if len(last) == 5 and max(last) <= min(1.02 * min(last), 1.05 * self.fastest):
                return True
        return False


# ---- Measuring ----

def prepare(machine, task, args, compiled):
    """Every mode of a task, warm: {column: (numerics, what to call)}."""
    modes = {}
    if compiled:
        torch.compiler.reset()
    for numerics in numerics_of(task):
        allow_tf32(numerics)
        def call(f=function(task)):
            f(*args)
        for _ in range(2):  # libraries load, plans are made, memory is cached
            call()
        modes["eager_" + numerics] = numerics, call
        graph = machine.capture(call)
        graph.replay()
        modes["graph_" + numerics] = numerics, graph.replay
        if compiled and "compiled_" + numerics in COLUMNS:
            def fast(f=torch.compile(function(task))):
                f(*args)
            for _ in range(3):
                fast()
            modes["compiled_" + numerics] = numerics, fast
    return modes


def measure(machine, task, compiled):
    """{column: microseconds} of one task."""
    modes = prepare(machine, task, contents(task), compiled)
    if not machine.settle():
        print("%s: the GPU was not quiet" % task["task"], file=sys.stderr)
    samples = {column: [] for column in modes}
    end = time.perf_counter() + SECONDS * len(modes)
    for i in range(SAMPLES[1]):
        if i >= SAMPLES[0] and time.perf_counter() > end:
            break
        for column in random.sample(sorted(modes), len(modes)):
            numerics, call = modes[column]
            allow_tf32(numerics)
            samples[column].append(machine.sample(call))
    return {column: statistics.median(x) for column, x in samples.items()}


def header():
    v = torch.backends.cudnn.version() or 0
    cudnn = "%d.%d.%d" % (v // 10000, v // 100 % 100, v % 100)
    try:
        driver = subprocess.run(
            ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"],
            capture_output=True, text=True, check=True).stdout.split("\n")[0].strip()
    except (OSError, subprocess.CalledProcessError):
        driver = "unknown"
    date = datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d")
    return ("# PyTorch's times: microseconds, medians, cold L2; by tests/gpu/torch_times.py.\n"
            "# eager: one call; graph: replay of a CUDA graph; fp32: TF32 off; tf32: TF32 on.\n"
            "# torch %s, CUDA %s, cuDNN %s, %s, driver %s, %s\n"
            % (torch.__version__, torch.version.cuda, cudnn, torch.cuda.get_device_name(0), driver,
               date))


def save(path, head, rows):
    """Write the file beside its place and rename it there."""
    os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
    with open(path + "+", "w") as f:
        f.write(head + ",".join(("task",) + COLUMNS) + "\n")
        for name, times in rows:
            f.write(",".join([name] + ["%.2f" % times[c] if c in times else "" for c in COLUMNS])
                    + "\n")
    os.replace(path + "+", path)


def run(out, tasks, compiled):
    """Measure all tasks.  Returns how many failed; each says why in a line."""
    random.seed(0)
    torch.manual_seed(0)
    warnings.filterwarnings("ignore")  # of the older TF32 switches
    machine, head, rows, failed = Machine(), header(), [], 0
    for task in tasks:
        try:
            times = measure(machine, task, compiled)
        except Exception as e:  # one task's trouble is not the others'
            print("%s: %s" % (task["task"], " ".join(str(e).split())[:300]), file=sys.stderr)
            failed += 1
            continue
        rows.append((task["task"], times))
        save(out, head, rows)
        print(task["task"], *("%s %.2f" % x for x in times.items()), flush=True)
    return failed


def read(path):
    try:
        with open(path) as f:
            return json.load(f)
    except (OSError, ValueError) as e:
        print("torch_times: %s: %s" % (path, e), file=sys.stderr)
        sys.exit(3)


def files_of_tasks(root):
    """The files of all tasks; those of families are made by make/task-file."""
    paths = []
    for path in sorted(glob.glob(os.path.join(root, "tasks/*/*.json"))):
        if os.path.basename(path) != "template.json":
            paths.append(path)
            continue
        suite = os.path.basename(os.path.dirname(path))
        with open(os.path.join(os.path.dirname(path), "shapes"), encoding="ascii") as shapes:
            for shape in shapes.read().split():
                made = subprocess.check_output(["make/task-file", suite + "_" + shape],
                                               cwd=root, text=True)
                paths.append(os.path.join(root, made.strip()))
    return paths


def main():
    parser = argparse.ArgumentParser(description="PyTorch's times for the tasks.")
    parser.add_argument("files", nargs="*", metavar="OUT.csv TASK.json")
    parser.add_argument("--compile", action="store_true", help="torch.compile, too")
    parser.add_argument("--show", action="store_true", help="print the functions; no OUT.csv")
    options = parser.parse_intermixed_args()
    out = None if options.show or not options.files else options.files.pop(0)
    if not options.show and not (out and out.endswith(".csv")):
        parser.error("the first argument is the .csv file to write")
    here = os.path.dirname(os.path.abspath(__file__))
    paths = options.files or files_of_tasks(os.path.join(here, "../.."))
    tasks = [read(path) for path in paths]
    if options.show:
        print("\n".join("# %s\n%s" % (task["task"], source(task)) for task in tasks))
        return 0
    if torch is None or not torch.cuda.is_available():
        print("torch_times: PyTorch with a GPU is needed; this Python has %s"
              % ("no PyTorch" if torch is None else "PyTorch, but no GPU"), file=sys.stderr)
        return 4
    with torch.no_grad():
        failed = run(out, tasks, options.compile)
    if failed:
        print("torch_times: %d of %d tasks failed; the others are in %s"
              % (failed, len(tasks), out), file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
