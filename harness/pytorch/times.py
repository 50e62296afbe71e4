#!/usr/bin/env python3
"""What PyTorch needs for the tasks, measured as this suite measures its own runners.

    harness/pytorch/times.py [--ways "eager graph"] results/pytorch/h200.csv TASK.json...
    harness/pytorch/times.py --show TASK.json...

`make pytorch` starts it.  A task's graph becomes the function that a PyTorch user would write for
it (--show prints them, and needs neither a GPU nor PyTorch).  It is timed as an eager call, as the
replay of a CUDA graph and under torch.compile, each with PyTorch's default flags, with TF32 nowhere
and with TF32 everywhere.  Where two of these come to the same for a task, it is measured once, and
both columns say so.

A sample is what two events say around one call or replay, after the L2 cache was emptied
by reading.  The GPU is still reading when the call is made, so that the cost of a first
launch is hidden, as it is in a program that keeps its GPU busy.  Modes take turns in
random order.  The file holds medians of 5 to 30 samples in microseconds.  It is replaced after
each task; times of other tasks and ways stay.  Several of these programs may write to it at
once, each on a GPU of its own.

Memory that is given back to the driver is scrubbed in the background, which slows
whatever is measured meanwhile.  So all of it is taken at the start and kept, and before a
task is measured a copy has to be steady.  For the same reason graphs are captured by
hand: torch.cuda.graph() empties the allocator first.
"""

import argparse
import csv
import datetime
import fcntl
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

# Whatever would overrule PyTorch's flags is no default.  Compiled code is kept from run to run.
for overruling in ("NVIDIA_TF32_OVERRIDE", "TORCH_ALLOW_TF32_CUBLAS_OVERRIDE"):
    os.environ.pop(overruling, None)
os.environ.setdefault("TORCHINDUCTOR_FX_GRAPH_CACHE", "1")
os.environ.setdefault("TORCHINDUCTOR_CACHE_DIR", os.path.abspath("build/inductor"))

try:
    import torch
    import torch.nn.functional as F
except ImportError:
    torch = F = None

FLAGS = {"default": (False, True), "fp32": (False, False), "tf32": (True, True)}  # TF32 in
WAYS = ("eager", "graph", "compiled")                               # products, convolutions
ORIGIN = ["task", "board", "date", "versions"]  # a row has one of each
COLUMNS = ORIGIN + [w + "_" + f for f in FLAGS for w in WAYS]
SAMPLES, SECONDS = (5, 30), 0.2  # of each mode of a task
HEAD = "# PyTorch's times by `make pytorch`: microseconds, medians, cold L2; see results/SCHEMA.md.\n"

# ---- A task as Python ----

# How a user writes each op: an operator, a method, a function of torch or of F, or by SPECIAL.
OPERATORS = {"add": "+", "sub": "-", "mul": "*", "div": "/", "pow": "**", "eq": "=="}
METHODS = {"view": "reshape", "transpose": "transpose", "permute": "permute", "expand": "expand",
           "unsqueeze": "unsqueeze", "squeeze": "squeeze"}
IN_TORCH = {"flatten", "matmul", "relu", "sigmoid", "tanh", "sqrt", "rsqrt", "abs", "neg", "exp",
            "log", "sin", "cos", "clamp", "minimum", "maximum", "sum", "mean", "max", "min",
            "argmax", "argmin", "norm", "logsumexp", "cumsum", "cumprod", "flip", "tril", "triu",
            "masked_fill", "index_select"}
IN_F = {"linear", "scaled_dot_product_attention", "pad", "gelu", "softplus", "leaky_relu",
        "hardtanh", "elu", "selu", "silu", "mish", "hardsigmoid", "hardswish", "softmax",
        "log_softmax", "layer_norm", "group_norm", "instance_norm", "batch_norm",
        "cross_entropy", "smooth_l1_loss", "kl_div"}
IN_F |= {op + axes for axes in ("1d", "2d", "3d")
         for op in ("conv", "conv_transpose", "max_pool", "avg_pool", "adaptive_avg_pool")}
TERMS = ("smooth_l1_loss", "kl_div")  # losses whose terms are summed by an op of their own
BOUNDS = {"minimum": "max", "maximum": "min"}  # what of clamp does it with a number
RECURRENT = {"lstm": 2, "gru": 1}  # and how many states a cell has
TYPES = {"f32": "float32", "f16": "float16", "bf16": "bfloat16", "i64": "int64", "i32": "int32",
         "bool": "bool"}
PRODUCTS = {"matmul", "linear", "scaled_dot_product_attention"}
CUDNN = {op for op in IN_F if op.startswith("conv")} | set(RECURRENT)  # what cuDNN's flag is for


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
    """A value of a task file as Python writes it: true, [2,3], 1e-05, -inf, mean, "text"."""
    if text in ("true", "false"):
        return text.capitalize()
    if text in ("inf", "-inf"):
        return 'float("%s")' % text
    return repr(text) if re.fullmatch(r"[A-Za-z_]\w*", text) else text


def part(dim, attributes):
    """The index of a slice: `:, 1:-1:2` along axis 1, `..., 1:` along axis -1."""
    places = "%s:%s" % (attributes.get("start", ""), attributes.get("end", ""))
    if "step" in attributes:
        places += ":" + attributes["step"]
    return ", ".join([":"] * dim + [places]) if dim >= 0 else ", ".join(["...", places] + [":"] * ~dim)


def listed(operands, attributes):
    return "torch.cat([%s], dim=%s)" % (", ".join(operands), attributes["dim"])


def constant(_, attributes):
    dtype = TYPES[attributes.get("dtype", "'f32'").strip("'")]
    return "torch.full(%s, %s, dtype=torch.%s, device=\"cuda\")" % (
        attributes["shape"], attributes["value"], dtype)


def recurrent(op, operands, attributes):
    """nn.LSTM and nn.GRU are calls of this: x, the states, the weights, and without dropout."""
    weights = 1 + RECURRENT[op]
    states = "(%s)" % ", ".join(operands[1:weights]) if weights > 2 else operands[1]
    layers, both, first = (attributes.get(key, value) for key, value in (
        ("num_layers", "1"), ("bidirectional", "False"), ("batch_first", "False")))
    return "torch.%s(%s, %s, (%s), True, %s, 0.0, False, %s, %s)" % (
        op, operands[0], states, ", ".join(operands[weights:]), layers, both, first)


SPECIAL = {
    "slice": lambda x, a: x[0] + "[%s]" % part(int(a["dim"]), a),
    "cat": listed,
    "full": constant,
    "lstm": lambda x, a: recurrent("lstm", x, a),
    "gru": lambda x, a: recurrent("gru", x, a),
}
OPS = IN_TORCH | IN_F | set(OPERATORS) | set(METHODS) | set(SPECIAL)


def expression(op, operands, attributes):
    """The right side of a graph line as a PyTorch user writes it."""
    if op not in OPS:
        raise ValueError("op %s has no form here; add it to harness/pytorch/times.py" % op)
    if op in SPECIAL:
        return SPECIAL[op](operands, attributes)
    if op in OPERATORS:
        return "%s %s %s" % (operands[0], OPERATORS[op], operands[1])
    if op in METHODS:
        values = ", ".join(value.strip("[]") for value in attributes.values())
        return "%s.%s(%s)" % (operands[0], METHODS[op], values)
    if op in BOUNDS and not all(x.isidentifier() for x in operands):
        x, number = sorted(operands, key=str.isidentifier, reverse=True)
        return "torch.clamp(%s, %s=%s)" % (x, BOUNDS[op], number)
    if op in TERMS:
        attributes["reduction"] = repr("none")
    if op == "flip":
        attributes = {"dims": "[%s]" % attributes["dim"]}
    if op == "layer_norm":
        attributes["normalized_shape"] = attributes.pop("shape")
    if op == "batch_norm":
        attributes.setdefault("training", "True")
        attributes.update(running_mean="None", running_var="None")
    named = ["%s=%s" % pair for pair in attributes.items()]
    return "%s.%s(%s)" % ("torch" if op in IN_TORCH else "F", op, ", ".join(operands + named))


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


def effect(task, flags):
    """What flags change in a task: whether TF32 is in its products, and in its convolutions."""
    ops = {parse(line)[1] for line in task["graph"]}
    single = all(x["dtype"] not in ("f16", "bf16") for x in task["inputs"] + task["parameters"])
    products, convolutions = FLAGS[flags]
    return (bool(single and products and ops & PRODUCTS),
            bool(single and convolutions and ops & CUDNN))


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
    if kind == "values":
        runs = [x.split("*") for x in inside.split(",")]
        listed = [float(x[0]) for x in runs for _ in range(int(x[1]) if len(x) > 1 else 1)]
        return torch.tensor(listed, dtype=dtype, device="cuda").reshape(shape)
    numbers = [float(x) for x in inside.split(",") if x.strip()]
    return KINDS[kind](torch.empty(shape, dtype=dtype, device="cuda"), *numbers)


def contents(task):
    made = {}
    for x in task["inputs"] + task["parameters"]:
        dtype = getattr(torch, TYPES[x["dtype"]])
        made[x["name"]] = filled(x["fill"], x["shape"], dtype, made)
    return list(made.values())


def flatten_weights(task, values):
    """Put the weights of each recurrent network one after the other, as nn.LSTM and nn.GRU do."""
    values = dict(zip([x["name"] for x in task["inputs"] + task["parameters"]], values))
    for _, op, operands, attributes in map(parse, task["graph"]):
        if op not in RECURRENT:
            continue
        from torch.backends.cudnn.rnn import get_cudnn_mode
        weights = [values[name] for name in operands[1 + RECURRENT[op]:]]
        torch._cudnn_rnn_flatten_weight(
            weights, 4, weights[0].shape[1], get_cudnn_mode(op.upper()), weights[1].shape[1], 0,
            int(attributes.get("num_layers", "1")), attributes.get("batch_first") == "True",
            attributes.get("bidirectional") == "True")


# ---- The machine ----

def allow_tf32(flags):
    """By PyTorch's older switches, which set the newer ones, too; not the other way round."""
    torch.backends.cuda.matmul.allow_tf32, torch.backends.cudnn.allow_tf32 = FLAGS[flags]


def mix(seed, index):
    """kp_mix of harness/gpu/values.h."""
    mask = (1 << 64) - 1
    z = seed + (index + 1) * 0x9e3779b97f4a7c15 & mask
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9 & mask
    z = (z ^ z >> 27) * 0x94d049bb133111eb & mask
    return z ^ z >> 31


def board():
    """The GPU's uuid_hash, as in results (harness/gpu/machine.c); "" if PyTorch does not tell."""
    text = str(getattr(torch.cuda.get_device_properties(0), "uuid", ""))
    digits = re.sub("[^0-9a-f]", "", text.lower())
    h = [1, 2]
    for byte in bytes.fromhex(digits if len(digits) == 32 else ""):
        h = [mix(x, byte) for x in h]
    return "%016x%016x" % tuple(h) if len(digits) == 32 else ""


def versions():
    """What a time depends on besides the board, in a field without commas."""
    v = torch.backends.cudnn.version() or 0
    cudnn = "%d.%d.%d" % (v // 10000, v // 100 % 100, v % 100)
    try:
        driver = subprocess.run(
            ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"],
            capture_output=True, text=True, check=True).stdout.split("\n")[0].strip()
    except (OSError, subprocess.CalledProcessError):
        driver = "unknown"
    text = "torch %s CUDA %s cuDNN %s driver %s" % (torch.__version__, torch.version.cuda, cudnn,
                                                    driver)
    return text.replace(",", " ")


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

def prepare(machine, task, args, ways):
    """Every mode of a task, warm: {(effect, way): (flags, what to call)}."""
    modes = {}
    if "compiled" in ways:
        torch.compiler.reset()
    for flags in FLAGS:
        what = effect(task, flags)
        if (what, "eager") in modes:
            continue
        allow_tf32(flags)
        def call(f=function(task)):
            f(*args)
        for _ in range(2):  # libraries load, plans are made, memory is cached
            call()
        modes[what, "eager"] = flags, call
        if "graph" in ways:
            graph = machine.capture(call)
            graph.replay()
            modes[what, "graph"] = flags, graph.replay
        if "compiled" in ways:
            def fast(f=torch.compile(function(task))):
                f(*args)
            try:
                for _ in range(3):
                    fast()
                modes[what, "compiled"] = flags, fast
            except Exception as e:  # a user would call it without
                print("%s: torch.compile: %s" % (task["task"], first_words(e)), file=sys.stderr)
    return {mode: how for mode, how in modes.items() if mode[1] in ways}


def measure(machine, task, ways):
    """{column: microseconds} of one task."""
    args = contents(task)
    flatten_weights(task, args)
    modes = prepare(machine, task, args, ways)
    if not machine.settle():
        print("%s: the GPU was not quiet" % task["task"], file=sys.stderr)
    samples = {mode: [] for mode in modes}
    end = time.perf_counter() + SECONDS * len(modes)
    for i in range(SAMPLES[1]):
        if i >= SAMPLES[0] and time.perf_counter() > end:
            break
        for mode in random.sample(sorted(modes), len(modes)):
            flags, call = modes[mode]
            allow_tf32(flags)
            samples[mode].append(machine.sample(call))
    times = {mode: statistics.median(x) for mode, x in samples.items()}
    return {way + "_" + flags: times[effect(task, flags), way]
            for flags in FLAGS for way in ways if (effect(task, flags), way) in times}


def first_words(error):
    return " ".join(str(error).split())[:300]


# ---- The file ----

def load(path):
    """The rows of a file; none if there is no such file, or one with other columns."""
    try:
        with open(path, encoding="utf-8") as f:
            lines = csv.DictReader(line for line in f if not line.startswith("#"))
            rows = list(lines)
    except OSError:
        return []
    if lines.fieldnames != COLUMNS:
        print("%s: other columns than today's: its rows are dropped" % path, file=sys.stderr)
        return []
    return rows


def merged(rows, new, columns):
    """The rows with a new one, which says the times in `columns` anew.  A row of the same origin
    takes them; any other row of the task keeps only its other times, and goes if it has none."""
    kept = []
    for row in rows:
        if all(row[c] == new[c] for c in ORIGIN):
            new = {c: new[c] if c in ORIGIN + columns else row[c] for c in COLUMNS}
            continue
        if row["task"] == new["task"]:
            row = {c: "" if c in columns else row[c] for c in COLUMNS}
        if any(row[c] for c in COLUMNS if c not in ORIGIN):
            kept.append(row)
    return kept + [new]


def save(path, new, columns):
    """Merge a row into the file as it is now: write it beside its place and rename it there.
    Returns the rows.  Whoever else writes to the folder waits meanwhile."""
    folder = os.path.dirname(path) or "."
    os.makedirs(folder, exist_ok=True)
    lock = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        rows = merged(load(path), new, columns)
        with open(path + "+", "w", encoding="utf-8") as f:
            f.write(HEAD + ",".join(COLUMNS) + "\n")
            for line in sorted(",".join(row[c] for c in COLUMNS) for row in rows):
                f.write(line + "\n")
        os.replace(path + "+", path)
    finally:
        os.close(lock)
    return rows


def run(out, tasks, ways):
    """Measure all tasks.  Returns how many failed; each says why in a line and keeps its rows."""
    random.seed(0)
    torch.manual_seed(0)
    warnings.filterwarnings("ignore")  # of the older TF32 switches
    rows, machine, failed = load(out), Machine(), 0
    here = {"board": board(), "versions": versions()}
    measured = [way + "_" + flags for flags in FLAGS for way in ways]
    for task in tasks:
        try:
            times = measure(machine, task, ways)
        except Exception as e:  # one task's trouble is not the others'
            print("%s: %s" % (task["task"], first_words(e)), file=sys.stderr)
            failed += 1
            continue
        date = datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d")
        row = dict(here, task=task["task"], date=date)
        row.update({c: "%.2f" % times[c] if c in times else "" for c in COLUMNS if c not in row})
        rows = save(out, row, measured)
        print(task["task"], *("%s %.2f" % x for x in times.items()), flush=True)
    others = sum(any(row[key] != here[key] for key in here) for row in rows)
    if others:
        print("%s: %d of %d rows are of another board or other versions; `make pytorch` without "
              "TASKS measures all" % (out, others, len(rows)), file=sys.stderr)
    return failed


def read(path):
    try:
        with open(path) as f:
            return json.load(f)
    except (OSError, ValueError) as e:
        print("pytorch: %s: %s" % (path, e), file=sys.stderr)
        sys.exit(3)


def main():
    parser = argparse.ArgumentParser(description="PyTorch's times for the tasks.")
    parser.add_argument("files", nargs="+", metavar="OUT.csv TASK.json")
    parser.add_argument("--show", action="store_true", help="print the functions; no OUT.csv")
    parser.add_argument("--ways", default=" ".join(WAYS), help="which of: %(default)s")
    options = parser.parse_args()
    ways = options.ways.split()
    if not ways or set(ways) - set(WAYS):
        parser.error("--ways %s: expected some of %s" % (options.ways, " ".join(WAYS)))
    out = None if options.show else options.files.pop(0)
    if out and not out.endswith(".csv"):
        parser.error("the first argument is the .csv file to write")
    tasks = [read(path) for path in options.files]
    if options.show:
        print("\n".join("# %s\n%s" % (task["task"], source(task)) for task in tasks))
        return 0
    if torch is None or not torch.cuda.is_available():
        print("pytorch: PyTorch with a GPU is needed, and this Python (%s) has %s; say "
              "PYTHON=, one that has both" % (sys.executable,
              "no PyTorch" if torch is None else "PyTorch, but no GPU"), file=sys.stderr)
        return 4
    with torch.no_grad():
        failed = run(out, tasks, ways)
    if failed:
        print("pytorch: %d of %d tasks failed; the others are in %s" % (failed, len(tasks), out),
              file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
