#!/usr/bin/env python3
"""KernelBench's own modules in float64 against this suite's float64 oracle, on the same bytes.

    conformance.py --kernelbench CHECKOUT --oracle build/oracle --out results/h200/conformance.csv
                   [--run harness/gpu/with-gpu] [--gpus N] TASK.json...

`make conformance` starts it.  Of the tasks, those count that come from the checkout's commit.  A task's
module draws its parameters and inputs in float32, at full size; their bytes go to build/oracle; widened
to float64 they go through the module.  A parameter that starts as a constant is moved by up to 0.25, so
that it counts, and what forward() draws itself is an input on both sides.

A task that differs is looked at again.  PyTorch's float64 hardswish and hardsigmoid multiply with a sixth
that is rounded to fp32: the module is computed with an exact one.  Where that is not it, its inputs are moved
by their last bit: an ill-conditioned module moves by as much as it differs.

One process a GPU takes task after task (--worker).  A task that fails is a row that says why.  The file
is replaced after each task; the rows of other tasks stay."""

import argparse
import contextlib
import csv
import ctypes
import glob
import importlib
import json
import mmap
import os
import queue
import re
import shlex
import socket
import subprocess
import sys
import threading
import time

sys.dont_write_bytecode = True
from checkout import commit_of  # noqa: E402 (without bytecode, too)

COLUMNS = ["task", "outputs", "error_norm", "error_element", "seconds", "verdict", "reason"]
TOLERANCE = 1e-9       # of an output's error, over its root mean square
SMALLEST_RMS = 1e-6    # below it an output is rounding errors of larger values: it counts as this
ILL = 10               # x what the last bit of the inputs does, a difference is ill-conditioning
SECONDS = 240          # more than this, and a task is given up
CHUNK = 1 << 26        # elements that are compared at once
HEAD = """# KernelBench's modules against the oracle, both in float64, by `make conformance`; see results/SCHEMA.md.
"""


def fail(message, status=3):
    print("conformance: " + message, file=sys.stderr)
    sys.exit(status)


def first_words(text):
    """A text in one line, for a field of the file."""
    return " ".join(str(text).replace(",", ";").replace('"', "'").split())[:300]


# ---- The checkout ----

def chosen(paths, checkout, commit):
    """The tasks of the checkout's commit, as (path of the task, path of the module), in order."""
    pairs, others = [], set()
    for path in paths:
        with open(path, encoding="ascii") as f:
            source = json.load(f).get("source", "")
        found = re.fullmatch(r"KernelBench (\w+) (level\d)/(\d+)", source)
        if not found:
            continue
        if found[1] != commit:
            others.add(found[1])
            continue
        modules = glob.glob(os.path.join(checkout, "KernelBench", found[2], found[3] + "_*.py"))
        if len(modules) != 1:
            fail("%s: no KernelBench/%s/%s_*.py, from which %s comes" % (checkout, found[2], found[3], path))
        pairs.append((path, modules[0]))
    if not pairs:
        fail("no chosen task is of KernelBench %s, which %s is%s" % (
            commit, checkout, "; they are of " + " and ".join(sorted(others)) if others else ""))
    return sorted(pairs)


# ---- The file ----

def load(path):
    """The comment lines and the rows of a file, by task."""
    try:
        with open(path, encoding="utf-8") as f:
            lines = f.read().splitlines()
    except OSError:
        return [], {}
    comments = [x for x in lines if x.startswith("# KernelBench ")]
    return comments, {r["task"]: r for r in csv.DictReader(x for x in lines if not x.startswith("#"))}


def save(path, comments, rows):
    """Write the file beside its place and rename it there."""
    os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
    with open(path + "+", "w", encoding="utf-8") as f:
        f.write(HEAD + "".join(x + "\n" for x in sorted(set(comments))) + ",".join(COLUMNS) + "\n")
        for name in sorted(rows):
            f.write(",".join(rows[name].get(c) or "" for c in COLUMNS) + "\n")
    os.replace(path + "+", path)


# ---- The side that has the list ----

class Runs:
    """Hands tasks to a worker on each GPU, and writes down what comes back."""

    def __init__(self, options, commit, pairs):
        self.options, self.commit, self.pairs = options, commit, queue.Queue()
        for pair in pairs:
            self.pairs.put(pair)
        self.total, self.rows, self.lock, self.workers = len(pairs), [], threading.Lock(), set()
        self.over = threading.Event()
        self.broken = None  # the exit status of a worker that could not start
        self.comments, self.kept = load(options.out)

    def start(self):
        """A worker that is ready; None if it ended before, which ends the run."""
        command = shlex.split(self.options.run) + [sys.executable, os.path.abspath(__file__), "--worker",
                                                   "--oracle", self.options.oracle] + ["--cpu"] * self.options.cpu
        with self.lock:
            process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
            self.workers.add(process)
        ready, _, rest = process.stdout.readline().strip().partition(" ")
        with self.lock:
            if ready == "ready":
                self.comments.append("# KernelBench %s: %s" % (self.commit, rest))
                return process
            if ready == "lacks" and not self.broken:
                print("conformance: " + rest, file=sys.stderr)
            self.broken = self.broken or process.wait() or 4
        self.over.set()
        return None

    def one(self, process, pair):
        """The row of one task."""
        process.stdin.write(json.dumps(pair) + "\n")
        process.stdin.flush()
        begin, late = time.monotonic(), threading.Timer(SECONDS, process.kill)
        late.start()
        text = process.stdout.readline()
        late.cancel()
        if text:
            return json.loads(text)
        seconds = time.monotonic() - begin
        why = "its process ended (status %d)" % process.wait()
        if seconds >= SECONDS:
            why = "it took more than %d s" % SECONDS
        return {"verdict": "failed", "reason": why, "seconds": "%.1f" % seconds, "ended": True}

    def work(self):
        """Take tasks while there are some."""
        process = self.start()
        while process:
            try:
                pair = self.pairs.get_nowait()
            except queue.Empty:
                return
            try:
                row = self.one(process, pair)
            except OSError as e:
                row = {"verdict": "failed", "reason": first_words(e), "ended": True}
            self.note(dict(row, task=os.path.basename(pair[0])[:-5]))
            if row.pop("ended", False):
                process.kill()
                process = self.start()

    def note(self, row):
        with self.lock:
            self.rows.append(row)
            self.kept[row["task"]] = row
            save(self.options.out, self.comments, self.kept)
            print("[%d/%d] %s %s %s" % (len(self.rows), self.total, row["task"], row["verdict"], row["reason"] or
                  "norm %s element %s, %s s" % (row["error_norm"], row["error_element"], row["seconds"])), flush=True)
            if len(self.rows) == self.total:
                self.over.set()

    def all(self):
        """Run all.  Returns the exit status."""
        for _ in range(max(1, min(self.options.gpus, self.total))):
            threading.Thread(target=self.work, daemon=True).start()
        try:
            self.over.wait()
        finally:
            with self.lock:
                for process in self.workers:
                    if process.poll() is None:
                        process.kill()
        if self.broken:
            return self.broken
        agree, explained = (sum(row["verdict"] == v for row in self.rows) for v in ("agrees", "explained"))
        print("conformance: %d of %d tasks of KernelBench %s agree%s; %s" % (
            agree, self.total, self.commit, explained and ", %d more are explained" % explained or "",
            self.options.out))
        return 0 if agree + explained == self.total else 1


# ---- Memory that the oracle shares ----

class Access(ctypes.Structure):
    """CUmemAccessDesc."""
    _fields_ = [("type", ctypes.c_int), ("id", ctypes.c_int), ("flags", ctypes.c_int)]


def driver(name, *args):
    code = getattr(ctypes.CDLL("libcuda.so.1"), name)(*args)
    if code:
        raise RuntimeError("%s: CUDA error %d" % (name, code))


@contextlib.contextmanager
def mapped(fd, size):
    """GPU memory of a descriptor, as a tensor of bytes; without a GPU, memory of the host."""
    if not torch.cuda.is_available():
        yield torch.frombuffer(mmap.mmap(fd, size), dtype=torch.uint8)
        return
    handle, at = ctypes.c_ulonglong(), ctypes.c_ulonglong()
    whole, none = ctypes.c_size_t(size), ctypes.c_ulonglong(0)
    driver("cuMemImportFromShareableHandle", ctypes.byref(handle), ctypes.c_void_p(fd), 1)
    driver("cuMemAddressReserve", ctypes.byref(at), whole, ctypes.c_size_t(0), none, none)
    driver("cuMemMap", at, whole, ctypes.c_size_t(0), handle, none)
    driver("cuMemRelease", handle)
    driver("cuMemSetAccess", at, whole, ctypes.byref(Access(1, 0, 3)), ctypes.c_size_t(1))
    try:
        class Bytes:
            __cuda_array_interface__ = {"shape": (size,), "typestr": "|u1", "data": (at.value, False), "version": 3}
        memory = torch.as_tensor(Bytes(), device="cuda")
        if memory.data_ptr() != at.value:
            raise RuntimeError("PyTorch copied memory that it should share")
        yield memory
    finally:
        torch.cuda.synchronize()
        driver("cuMemUnmap", at, whole)
        driver("cuMemAddressFree", at, whole)


class Oracle:
    """build/oracle on one task: `tensors` by name, to be filled; `outputs`, in order, after compute()."""

    def __init__(self, program, path, count, stack):
        here, there = socket.socketpair()
        self.socket = stack.enter_context(here)
        self.process = subprocess.Popen([program, path], stdin=there, stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, text=True)
        stack.callback(self.end)
        there.close()
        places = []
        for line in self.process.stdout:
            words = line.split()
            if words[0] == "memory":
                break
            places.append(words)
        else:
            self.died()
        fd = socket.recv_fds(here, 1, 1)[1][0]
        try:
            memory = stack.enter_context(mapped(fd, int(words[1])))
        finally:
            os.close(fd)
        views = [self.view(memory, int(words[2]), *x) for x in places]
        self.tensors = dict(zip([x[0] for x in places[:count]], views))
        self.outputs = views[count:]

    @staticmethod
    def view(memory, base, _, dtype, offset, shape):
        dtype = TYPES[dtype]
        shape = [int(n) for n in shape.strip("[]").split(",") if n]
        begin, size = base + int(offset), dtype.itemsize
        for n in shape:
            size *= n
        return memory[begin:begin + size].view(dtype).view(shape)

    def compute(self):
        if torch.cuda.is_available():
            torch.cuda.synchronize()
            torch.cuda.empty_cache()
        self.socket.send(b"\0")
        if self.process.stdout.readline() != "done\n":
            self.died()

    def died(self):
        raise RuntimeError(first_words(self.process.stderr.read()) or
                           "build/oracle ended with status %d" % self.process.wait())

    def end(self):
        self.socket.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(30)
        self.process.kill()
        self.process.wait()


# ---- The side that computes ----

def moved(parameters):
    """Parameters that are one number get different ones, so that each counts."""
    for p in parameters:
        if p.is_floating_point() and p.numel() and bool((p == p.flatten()[0]).all()):
            p.add_(0.25 * (2 * torch.rand_like(p) - 1))


def filled(to, fill):
    """Fill what no module makes: random numbers of forward(), and constants."""
    kind, inside = re.fullmatch(r"(\w+)\((.*)\)", fill).groups()
    if kind == "values":
        runs = [x.split("*") for x in inside.split(",")]
        values = [float(r[0]) for r in runs for _ in range(int(r[1]) if len(r) > 1 else 1)]
        to.copy_(torch.tensor(values, dtype=torch.float64).view(to.shape))
    elif kind in ("lower", "upper"):
        filled(to, inside)
        to.copy_(to.tril() if kind == "lower" else to.triu())
    elif kind in ("bernoulli", "normal", "uniform", "constant"):
        numbers = [float(x) for x in inside.split(",")]
        getattr(to, {"constant": "fill"}.get(kind, kind) + "_")(*numbers)
    else:
        raise ValueError("nothing is known to fill it with %s" % fill)


def give(task, oracle, model, inputs):
    """Copy what a module has to the task's tensors of the same names.  Returns the float64 inputs of
    the module, and those that it draws itself."""
    spec = {x["name"]: x for x in task["inputs"] + task["parameters"]}
    names, left = [x["name"] for x in task["inputs"]], set(spec)

    def put(name, x):
        to = oracle.tensors[name]
        if x.shape != to.shape or x.dtype != to.dtype:
            raise ValueError("%s is %s %s, and in the task %s %s" % (name, x.dtype, list(x.shape), to.dtype,
                                                                     list(to.shape)))
        to.copy_(x)
        left.remove(name)
        return to
    given = [put(names.pop(0), x) if isinstance(x, torch.Tensor) else x for x in inputs]
    for name, x in model.named_parameters():
        put(identifier(name), x)
    for name, x in model.named_buffers():
        if identifier(name) in left:
            put(identifier(name), x)
    for name in sorted(left):
        filled(oracle.tensors[name], spec[name]["fill"])
    return given, [oracle.tensors[name] for name in names]


class Errors:
    """Of one output: norm and largest element of the difference, over the root mean square."""

    def __init__(self, want, got):
        if want.shape != got.shape:
            raise ValueError("the module's output is %s, the task's %s" % (list(want.shape), list(got.shape)))
        want, got, exact = want.reshape(-1), got.reshape(-1), not want.is_floating_point()
        square = difference = largest = 0.0
        self.strange = 0  # elements that are not finite, and not the same
        for i in range(0, want.numel(), CHUNK):
            w, g = want[i:i + CHUNK].double(), got[i:i + CHUNK]
            finite = w.isfinite() & g.isfinite()
            self.strange += int((~finite & (w != g) & ~(w.isnan() & g.isnan())).sum())
            d = torch.where(finite, g - w, 0).abs()
            square += float(torch.where(finite, w, 0).square().sum())
            difference += float(d.square().sum())
            largest = max(largest, float(d.max()))
        rms = max((square / want.numel()) ** 0.5, SMALLEST_RMS)
        self.norm = (difference / want.numel()) ** 0.5 / rms
        self.element = largest / rms
        self.good = not self.strange and max(self.norm, self.element) <= (0 if exact else TOLERANCE)


@contextlib.contextmanager
def exact_sixth():
    """hardswish and hardsigmoid as their formulas say."""
    functional = torch.nn.functional
    kept = functional.hardsigmoid, functional.hardswish
    functional.hardsigmoid = lambda x, inplace=False: (x + 3).clamp(0, 6) / 6
    functional.hardswish = lambda x, inplace=False: x * (x + 3).clamp(0, 6) / 6
    try:
        yield
    finally:
        functional.hardsigmoid, functional.hardswish = kept


def moved_by_a_bit(x):
    """A float64 tensor whose every element is next to that of x, on either side."""
    if not (isinstance(x, torch.Tensor) and x.is_floating_point()):
        return x
    x = x.double()
    return torch.nextafter(x, torch.where(torch.rand_like(x) < 0.5, -torch.inf, torch.inf).to(x))


def explained(model, given, drawn, want, oracle, errors):
    """Why outputs differ, or ""."""
    with exact_sixth():
        again = official(model, given, drawn)
    if all(Errors(w, g).good for w, g in zip(again, oracle.outputs)):
        return "an exact sixth in hardswish or hardsigmoid agrees"
    del again
    near = official(model, [moved_by_a_bit(x) for x in given], [moved_by_a_bit(x) for x in drawn])
    bits = [Errors(w, n) for w, n in zip(want, near)]
    if all(e.good or (e.norm <= ILL * b.norm and e.element <= ILL * b.element) for e, b in zip(errors, bits)):
        return "ill-conditioned: inputs that differ in their last bit move it by %.2g" % max(b.norm for b in bits)
    return ""


def official(model, given, drawn):
    """The module's outputs, in float64."""
    model = model.double()
    given = [x.double() if isinstance(x, torch.Tensor) and x.is_floating_point() else x for x in given]
    torch.set_default_dtype(torch.float64)
    try:
        with Drawn([x.double() for x in drawn]):
            out = model(*given)
    finally:
        torch.set_default_dtype(torch.float32)
    return [x for x in (out if isinstance(out, (tuple, list)) else [out]) if isinstance(x, torch.Tensor)]


def compared(options, path, module):
    """The row of a task, but for its name and its seconds."""
    with open(path, encoding="ascii") as f:
        task = json.load(f)
    device = "cpu" if options.cpu else "cuda"
    torch.manual_seed(0)
    with contextlib.ExitStack() as stack:
        stack.enter_context(torch.no_grad())
        stack.enter_context(torch.device(device))
        model, inputs = Source(module, task["suite"], task["task"], "", "").build()
        register(model)
        model = model.to(device)
        inputs = [x.to(device) if isinstance(x, torch.Tensor) else x for x in inputs]
        moved(model.parameters())
        oracle = Oracle(options.oracle, path, len(task["inputs"] + task["parameters"]), stack)
        given, drawn = give(task, oracle, model, inputs)
        del inputs
        oracle.compute()
        want = official(model, given, drawn)
        if len(want) != len(oracle.outputs):
            raise ValueError("the module has %d outputs, the task %d" % (len(want), len(oracle.outputs)))
        errors = [Errors(w, g) for w, g in zip(want, oracle.outputs)]
        strange, good = sum(e.strange for e in errors), all(e.good for e in errors)
        reason = "%d elements are not finite on one side" % strange if strange else ""
        why = "" if good or strange else explained(model, given, drawn, want, oracle, errors)
        del given, drawn, want
    return {"outputs": str(len(errors)), "error_norm": "%.2g" % max(e.norm for e in errors),
            "error_element": "%.2g" % max(e.element for e in errors),
            "verdict": "agrees" if good else "explained" if why else "differs", "reason": reason or why}


def worker(options):
    """Take tasks from standard input, answer with rows."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what modules print is no answer
    torch.backends.cudnn.enabled = False  # the oracle has it; here are PyTorch's own kernels
    gpu, version = "no GPU", "none"
    if not options.cpu:
        gpu = torch.cuda.get_device_name(0)
        smi = subprocess.run(["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"],
                             capture_output=True, text=True, check=False)
        version = (smi.stdout.split() or ["unknown"])[0]
    print("ready %s; driver %s; torch %s; CUDA %s" % (gpu, version, torch.__version__, torch.version.cuda),
          file=answers, flush=True)
    for line in sys.stdin:
        begin = time.monotonic()
        try:
            row = compared(options, *json.loads(line))
        except Exception as e:  # one task's trouble is not the others'
            row = {"verdict": "failed", "reason": first_words("%s: %s" % (type(e).__name__, e))}
        row["seconds"] = "%.1f" % (time.monotonic() - begin)
        if not options.cpu:
            gc.collect()
            try:
                torch.cuda.synchronize()
                torch.cuda.empty_cache()
            except RuntimeError:  # the context is broken: the next task needs another process
                row["ended"] = True
        print(json.dumps(row), file=answers, flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("tasks", nargs="*")
    parser.add_argument("--kernelbench")
    parser.add_argument("--oracle", default="build/oracle")
    parser.add_argument("--out")
    parser.add_argument("--run", default="")
    parser.add_argument("--gpus", type=int, default=1)
    parser.add_argument("--cpu", action="store_true")
    parser.add_argument("--worker", action="store_true")
    options = parser.parse_args()
    if options.worker:
        worker(options)
        return 0
    if not options.kernelbench or not options.out:
        parser.error("expected --kernelbench and --out")
    commit = commit_of(options.kernelbench, fail)
    return Runs(options, commit, chosen(options.tasks, options.kernelbench, commit)).all()


if __name__ == "__main__":
    if "--worker" in sys.argv:
        try:
            import torch
        except ImportError:
            torch = None
        if torch is None or not ("--cpu" in sys.argv or torch.cuda.is_available()):
            print("lacks PyTorch with a GPU is needed, and this Python (%s) has %s; say PYTHON=, one that has both"
                  % (sys.executable, "no PyTorch" if torch is None else "PyTorch, but no GPU"))
            sys.exit(4)
        import gc
        import logging
        import warnings
        warnings.simplefilter("ignore")
        logging.disable(logging.CRITICAL)
        from drawn import Drawn
        from task import identifier, register
        Source = importlib.import_module("import").Source
        TYPES = {"f64": torch.float64, "f32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16,
                 "i64": torch.int64, "i32": torch.int32, "bool": torch.bool}
    sys.exit(main())
