"""What PyTorch needs for a task, on one GPU: the side of times.py that has PyTorch.

A sample is what two events say around one call or replay, after the L2 cache was emptied
by reading.  The GPU is still reading when the call is made, so that the cost of a first
launch is hidden, as it is in a program that keeps its GPU busy.  Modes take turns in
random order.

Memory that is given back to the driver is scrubbed in the background, which slows
whatever is measured meanwhile.  So all of it is taken at the start and kept, and before a
task is measured a copy has to be steady.  For the same reason graphs are captured by
hand: torch.cuda.graph() empties the allocator first.
"""

import collections
import contextlib
import json
import math
import random
import re
import statistics
import subprocess
import sys
import time
import warnings

from forms import FLAGS, RECURRENT, TYPES, effect, first_words, function, parse, tensors
from process import answer

try:
    import torch
except ImportError:
    torch = None

SAMPLES, SECONDS = (5, 30), 0.1  # of each mode of a task
spent = collections.Counter()    # seconds, by what took them


@contextlib.contextmanager
def counted(what):
    begin = time.perf_counter()
    try:
        yield
    finally:
        spent[what] += time.perf_counter() - begin


def lacking():
    """What this Python lacks, in words; "" if it can measure."""
    if torch and torch.cuda.is_available():
        return ""
    return "PyTorch with a GPU is needed, and this Python (%s) has %s; say PYTHON=, one that has both" % (
        sys.executable, "PyTorch, but no GPU" if torch else "no PyTorch")


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
    for x in tensors(task):
        dtype = getattr(torch, TYPES[x["dtype"]])
        made[x["name"]] = filled(x["fill"], x["shape"], dtype, made)
    return list(made.values())


def flatten_weights(task, values):
    """Put the weights of each recurrent network one after the other, as nn.LSTM and nn.GRU do."""
    values = dict(zip([x["name"] for x in tensors(task)], values))
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

def compiled(task, fast):
    """Compile, and call until nothing is made any more.  Returns whether that went well."""
    try:
        with counted("torch.compile"):
            for _ in range(3):
                fast()
        return True
    except Exception as e:  # a user would call it without
        print("%s: torch.compile: %s" % (task["task"], first_words(e)), file=sys.stderr)
        return False


def prepare(machine, task, args, ways):
    """Every mode of a task, warm: {(effect, way): (flags, what to call)}."""
    modes, programs = {}, {}
    if "compiled" in ways:
        torch.compiler.reset()
    for flags in FLAGS:
        what = effect(task, flags)
        if (what, "eager") in modes:
            continue
        allow_tf32(flags)
        def call(f=function(task)):
            f(*args)
        with counted("first calls"):
            for _ in range(2):  # libraries load, plans are made, memory is cached
                call()
        modes[what, "eager"] = flags, call
        if "graph" in ways:
            with counted("first calls"):
                graph = machine.capture(call)
                graph.replay()
            modes[what, "graph"] = flags, graph.replay
        if "compiled" in ways:
            # Convolutions look at their flag when they are called: they need no other program.
            program = programs.setdefault(what[0], torch.compile(function(task)))
            def fast(f=program):
                f(*args)
            if compiled(task, fast):
                modes[what, "compiled"] = flags, fast
    return {mode: how for mode, how in modes.items() if mode[1] in ways}


def sampled(machine, modes):
    """Medians of the modes, which take turns."""
    samples = {mode: [] for mode in modes}
    end = time.perf_counter() + SECONDS * len(modes)
    for i in range(SAMPLES[1]):
        if i >= SAMPLES[0] and time.perf_counter() > end:
            break
        for mode in random.sample(sorted(modes), len(modes)):
            flags, call = modes[mode]
            allow_tf32(flags)
            samples[mode].append(machine.sample(call))
    return {mode: statistics.median(x) for mode, x in samples.items()}


def measure(machine, task, ways):
    """{column: microseconds} of one task."""
    with counted("inputs"):
        args = contents(task)
        flatten_weights(task, args)
    modes = prepare(machine, task, args, ways)
    with counted("settling"):
        quiet = machine.settle()
    if not quiet:
        print("%s: the GPU was not quiet" % task["task"], file=sys.stderr)
    with counted("samples"):
        times = sampled(machine, modes)
    return {way + "_" + flags: times[effect(task, flags), way]
            for flags in FLAGS for way in ways if (effect(task, flags), way) in times}


class Worker:
    """The process of one GPU: for each task that times.py gives it, its times."""

    def __init__(self):
        self.machine, self.begin, self.tasks = None, time.perf_counter(), 0

    def ready(self):
        """What it is, or what it lacks."""
        why = lacking()
        if why:
            return json.dumps({"lacks": why})
        random.seed(0)
        torch.manual_seed(0)
        warnings.filterwarnings("ignore")  # of the older TF32 switches
        self.machine = Machine()
        return json.dumps({"board": board(), "versions": versions()})

    def one(self, line):
        """A task's times, or why there are none."""
        given = json.loads(line)
        self.tasks += 1
        try:
            return json.dumps({"times": measure(self.machine, given["task"], given["ways"])})
        except Exception as e:  # one task's trouble is not the others'
            return json.dumps({"error": first_words(e)})

    def over(self):
        """Say where the time went."""
        if self.tasks:
            print("pytorch: %d tasks in %.0f s: %s" % (self.tasks, time.perf_counter() - self.begin, ", ".join(
                "%s %.0f s" % x for x in spent.most_common())), file=sys.stderr)


if __name__ == "__main__":
    worker = Worker()
    with torch.no_grad() if torch else contextlib.nullcontext():
        answer(worker.ready, worker.one)
    worker.over()
