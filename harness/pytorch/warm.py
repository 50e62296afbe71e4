#!/usr/bin/env python3
"""Compile tasks ahead, several at once, into inductor's cache: torch.compile then finds its code there.

    harness/pytorch/warm.py TASK.json...      times.py starts it, with a GPU and before it measures

Nothing is run.  So a task takes the memory of its inputs alone, and whatever inductor finds out by
timing a task's kernels is found out later, by the process that measures, on a quiet GPU.  (Whether
to pad a product of odd sizes is timed while it is compiled.)  A task that takes more than
KP_TORCH_SECONDS is given up.  The cache remembers in warm/ which tasks it has, and which it will not.
"""

import concurrent.futures
import contextlib
import hashlib
import importlib.metadata
import json
import os
import signal
import sys
import threading

from forms import FLAGS, TYPES, effect, first_words, function, size, source, tensors
from process import Process, answer

def seconds_of(text):
    """How long a task may take to compile."""
    with contextlib.suppress(ValueError):
        if 0 < float(text) < float("inf"):
            return float(text)
    print("pytorch: KP_TORCH_SECONDS=%s: a number of seconds above 0 is expected" % text, file=sys.stderr)
    sys.exit(2)


SECONDS = seconds_of(os.environ.get("KP_TORCH_SECONDS") or "60")
MOST = 32  # processes: each has a context on the GPU and a PyTorch in memory
START = 120  # seconds that a process may take to be ready


def mark(task):
    """The file that says that the cache has a task: empty, or the seconds after which it was given up."""
    try:
        version = importlib.metadata.version("torch")
    except importlib.metadata.PackageNotFoundError:
        version = ""
    shapes = [(x["shape"], x["dtype"]) for x in tensors(task)]
    key = json.dumps([source(task), shapes, version, os.environ.get("KP_GPU", "")])
    return os.path.join(os.environ["TORCHINDUCTOR_CACHE_DIR"], "warm", hashlib.sha256(key.encode()).hexdigest())


def state(task):
    """What the cache has of a task: "warm"; "slow", it was given up; "cold"."""
    try:
        with open(mark(task), encoding="ascii") as f:
            text = f.read()
    except OSError:
        return "cold"
    return "warm" if not text else "slow" if float(text) >= SECONDS else "cold"


# ---- The side that has the list ----

class Ahead:
    """Hands tasks to processes, which all use this process's GPU."""

    def __init__(self):
        self.local, self.processes = threading.local(), []
        self.memory, self.used, self.room = threading.Condition(), 0, None
        self.broken = ""  # why a process could not start

    def process(self):
        """This thread's process, which is ready; None if there can be none."""
        process = getattr(self.local, "process", None)
        if process or self.broken:
            return process
        process = Process([sys.executable, os.path.abspath(__file__), "--worker"])
        self.processes.append(process)
        said = json.loads(process.line(START) or '{"lacks": "a process ended before it was ready"}')
        if "lacks" in said:
            self.broken = said["lacks"]
            return None
        with self.memory:
            self.room = self.room or said["free"] // 2
        self.local.process = process
        return process

    @contextlib.contextmanager
    def taken(self, size):
        """Wait for so much of half of the GPU's memory; a task that needs more waits for all of it."""
        size = min(size, self.room)
        with self.memory:
            self.memory.wait_for(lambda: self.used + size <= self.room)
            self.used += size
        try:
            yield
        finally:
            with self.memory:
                self.used -= size
                self.memory.notify_all()

    def one(self, task):
        """Have a task compiled, and leave its mark."""
        process = self.process()
        if not process:
            return
        with self.taken(size(task)):
            said = process.ask(json.dumps(task), SECONDS)
        if said == "done" or process.late:
            os.makedirs(os.path.dirname(mark(task)), exist_ok=True)
            with open(mark(task), "w", encoding="ascii") as f:
                f.write("" if said == "done" else "%g" % SECONDS)
        else:
            print("%s: not compiled ahead: %s" % (task["task"], said or "the process ended"), file=sys.stderr)
        if not said or process.late:
            self.local.process = None

    def all(self, tasks):
        """The longest first, so that the last ones are short."""
        count = max(1, min(len(os.sched_getaffinity(0)), MOST, len(tasks)))
        pool = concurrent.futures.ThreadPoolExecutor(count)
        try:
            for _ in pool.map(self.one, sorted(tasks, key=lambda task: -len(task["graph"]))):
                pass
        finally:
            pool.shutdown(wait=False, cancel_futures=True)
            for process in self.processes:
                process.end(signal.SIGKILL)
                process.finish()
        if self.broken:
            print("pytorch: not everything is compiled ahead: " + self.broken, file=sys.stderr)


# ---- The side that compiles ----

class Compiled(Exception):
    """What a program that is compiled does instead of running."""


def compile_only(task):
    """Compile a task under each set of flags for which there is a program of its own."""
    import torch
    from measure import allow_tf32, flatten_weights
    from torch._dynamo import lookup_backend
    inductor = lookup_backend("inductor")

    def stop(*_):
        raise Compiled

    def backend(graph, inputs):
        inductor(graph, inputs)
        return stop
    args = [torch.empty(x["shape"], dtype=getattr(torch, TYPES[x["dtype"]]), device="cuda")
            for x in tensors(task)]
    flatten_weights(task, args)
    # As prepare() of measure.py does: the first flags of those that are the same to products.
    for flags in {effect(task, flags)[0]: flags for flags in reversed(FLAGS)}.values():
        allow_tf32(flags)
        with contextlib.suppress(Compiled):
            torch.compile(function(task), backend=backend)(*args)


def ready():
    """How much memory is free, or what is lacking."""
    import measure
    try:
        why = measure.lacking()
        return json.dumps({"lacks": why} if why else {"free": measure.torch.cuda.mem_get_info()[0]})
    except Exception as e:  # no memory for one more process, say
        return json.dumps({"lacks": first_words(e)})


def one(line):
    """Compile a task: done, or why not."""
    import torch
    torch.compiler.reset()
    try:
        with torch.no_grad():
            compile_only(json.loads(line))
        return "done"
    except Exception as e:
        return first_words(e) or type(e).__name__
    finally:
        torch.cuda.empty_cache()


def main():
    if sys.argv[1:] == ["--worker"]:
        os.environ["TORCHINDUCTOR_COMPILE_THREADS"] = "1"  # there are as many processes as cores
        answer(ready, one)
        return
    tasks = []
    for path in sys.argv[1:]:
        with open(path, encoding="utf-8") as f:
            tasks.append(json.load(f))
    Ahead().all(tasks)


if __name__ == "__main__":
    main()
