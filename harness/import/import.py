#!/usr/bin/env python3
"""Turn PyTorch modules into task files; needs PyTorch, 2.5 or newer.

    import.py --task build/task --name NAME MODULE.py[:CALLABLE]
    import.py --task build/task --kernelbench CHECKOUT [--suite v0] [--only PREFIX...]

MODULE.py defines Model (or CALLABLE: a class, a module or a function), get_inputs() and, for a
class with arguments, get_init_inputs(); its task is tasks/my/NAME.json.  Of a checkout of
KernelBench come the suites level1, level2 and level3, or all of it as one suite.

Nothing is computed at full size, and no value is drawn: a file depends on the module alone.  Each
file passes `build/task check` before it comes to its place."""

import argparse
import glob
import importlib.util
import json
import os
import re
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
from checkout import LEVELS, commit_of  # noqa: E402 (without bytecode, too)

HERE = os.path.dirname(os.path.abspath(__file__))

# Names of tasks: words of the file's name, made short.  Applied in order.
SLUGS = [
    (r"matrix_multiplication$", "matmul"), (r"tensor_matmul", "matmul"),
    (r"conv_(standard|pointwise|depthwise_separable|depthwise|transposed)_(\d)_d",
     lambda m: {"standard": "", "transposed": ""}.get(m[1], m[1] + "_") +
     ("conv_transpose" if m[1] == "transposed" else "conv") + m[2] + "d"),
    (r"(max|average)_pooling_(\d)_d", lambda m: {"max": "max", "average": "avg"}[m[1]] + "_pool" + m[2] + "d"),
    (r"(\d)_d_", r"\1d_"), (r"conv2_d", "conv2d"), (r"(^|_)re_lu", r"\1relu"),
    (r"le_net", "lenet"), (r"alex_net", "alexnet"), (r"google_net", "googlenet"),
    (r"(res|dense|squeeze|mobile|efficient|shuffle|reg)_net", r"\1net"),
    (r"net_vlad", "netvlad"), (r"u_net", "unet"), (r"min_gpt", "mingpt"), (r"mini_gpt", "minigpt"),
    (r"hard_(swish|tanh|sigmoid)", r"hard\1"), (r"log_sum_exp", "logsumexp"),
]


def fail(message, status=3):
    print("import: " + message, file=sys.stderr)
    sys.exit(status)


def slug(name):
    words = re.sub(r"[^A-Za-z0-9]+", "_", name.strip("_"))
    words = re.sub(r"([a-z0-9])([A-Z])", r"\1_\2", words)
    words = re.sub(r"([A-Z]+)([A-Z][a-z])", r"\1_\2", words).lower()
    for pattern, new in SLUGS:
        words = re.sub(pattern, new, words)
    return words


class Source:
    """A module's file, and the task that it becomes."""

    def __init__(self, path, suite, task, title, source, member="Model", remarks=None):
        self.path, self.suite, self.task, self.title, self.source = path, suite, task, title, source
        self.member, self.remarks = member, remarks or {}

    def build(self):
        """The module and its inputs, as its file makes them.  Refused says what that file lacks."""
        from record import Refused  # which needs PyTorch
        spec = importlib.util.spec_from_file_location("kernelproof_module", self.path)
        file = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(file)
        if not hasattr(file, self.member):
            raise Refused("there is no %s; say which class or function: FILE.py:NAME" % self.member)
        if not hasattr(file, "get_inputs"):
            raise Refused("there is no get_inputs(), which returns the list of inputs")
        thing = getattr(file, self.member)
        if isinstance(thing, type):
            thing = thing(*getattr(file, "get_init_inputs", list)())
        return thing, file.get_inputs()

    def text(self):
        """The task file.  Refused says why there is none."""
        try:
            made = task.trace(self.build)
        except (Refused, KeyboardInterrupt):
            raise
        except ModuleNotFoundError as e:
            raise Refused("it imports %s, which this Python does not have" % e.name) from e
        except (Exception, SystemExit) as e:
            raise Refused("%s: %s" % (type(e).__name__, " ".join(str(e).split())[:200])) from e
        for key in ("notes", "flags"):
            made[key] = self.remarks.get(key, []) + made[key]
        head = {"schema": 1, "task": self.task, "suite": self.suite, "title": self.title,
                "source": self.source}
        return task.text(head, made)


def kernelbench(checkout, suite):
    """The sources of a checkout, in order; says which levels it lacks."""
    levels = {level: glob.glob(os.path.join(checkout, "KernelBench", level, "[0-9]*_*.py"))
              for level in LEVELS}
    if not any(levels.values()):
        fail("%s: no KernelBench/level1/1_....py; expected a checkout of KernelBench" % checkout)
    commit = commit_of(checkout, fail)
    absent = [level for level in LEVELS if not levels[level]]
    if absent:
        print("import: %s has nothing in %s: these tasks stay as they are" %
              (checkout, " and ".join(absent)), file=sys.stderr)
    with open(os.path.join(HERE, "kernelbench.json"), encoding="ascii") as f:
        remarks = json.load(f)
    sources = []
    for level, path in ((level, path) for level in LEVELS for path in levels[level]):
        number, name = os.path.basename(path)[:-3].split("_", 1)
        of = "%s/%s" % (level, number)
        title = re.sub(r"[_\s]+", " ", name).strip()
        known = remarks.get(of, {})
        known = {"flags": known.get("flags", [])} if suite else known
        full = "%sl%s_%03d_%s" % (suite + "_" if suite else "", level[5:], int(number), slug(name))
        sources.append(Source(path, suite or level, full[:63].rstrip("_"), title,
                              "KernelBench %s %s" % (commit, of), remarks=known))
    return sorted(sources, key=lambda s: s.task)


def own(module, name):
    """The source of a user's module."""
    path, _, member = module.partition(":")
    if not os.path.isfile(path):
        fail("%s: no such file" % path)
    if not re.fullmatch(r"[a-z0-9_]{1,63}", name):
        fail("NAME=%s: a task's name has lower-case letters, digits and underscores, 63 at most" % name)
    return [Source(path, "my", name, name.replace("_", " "), os.path.basename(path), member or "Model")]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("module", nargs="?")
    parser.add_argument("--name")
    parser.add_argument("--kernelbench")
    parser.add_argument("--suite", default="")
    parser.add_argument("--only", nargs="*", default=[])
    parser.add_argument("--task", default="build/task")
    parser.add_argument("--out", default="tasks")
    options = parser.parse_args()
    if options.kernelbench:
        sources = kernelbench(options.kernelbench, options.suite)
        sources = [s for s in sources if not options.only or s.task.startswith(tuple(options.only))]
    elif options.module and options.name:
        sources = own(options.module, options.name)
    else:
        parser.error("expected MODULE.py and --name, or --kernelbench")
    failed = 0
    with tempfile.TemporaryDirectory() as scratch:
        for s in sources:
            path = os.path.join(scratch, s.suite, s.task + ".json")
            try:
                task.write(path, s.text())
            except Refused as e:
                print("import: %s: %s" % (s.path, e), file=sys.stderr)
                failed += 1
                continue
            check = subprocess.run([options.task, "check", path], capture_output=True, text=True, check=False)
            if check.returncode:
                said = (check.stderr or check.stdout).strip().split(": ", 1)[-1]
                print("import: %s: %s" % (s.path, said), file=sys.stderr)
                failed += 1
                continue
            with open(path, encoding="ascii") as f:
                task.write(os.path.join(options.out, s.suite, s.task + ".json"), f.read())
            if not options.kernelbench:
                print("%s/%s/%s.json" % (options.out, s.suite, s.task))
    if options.kernelbench:
        print("import: %d of %d tasks" % (len(sources) - failed, len(sources)))
    sys.exit(3 if failed else 0)


if __name__ == "__main__":
    try:
        import torch
    except ImportError:
        fail("PyTorch is needed, 2.5 or newer, and this Python (%s) has none; say PYTHON=, one that "
             "has it" % sys.executable, 4)
    if tuple(int(x) for x in torch.__version__.split("+")[0].split(".")[:2]) < (2, 5):
        fail("PyTorch is %s; 2.5 or newer is needed" % torch.__version__, 4)
    import logging
    import warnings
    warnings.simplefilter("ignore")
    logging.disable(logging.CRITICAL)  # PyTorch's log of what it then raises
    import task
    from record import Refused
    try:
        main()
    except OSError as e:
        fail("%s: %s" % (e.filename or "the task cannot be written", e.strerror), 5)
