#!/usr/bin/env python3
"""What PyTorch needs for the tasks, measured as this suite measures its own runners.

    harness/pytorch/times.py [--ways "eager graph"] [--run harness/gpu/with-gpu] [--gpus N]
                             results/pytorch/h200.csv TASK.json...
    harness/pytorch/times.py --show TASK.json...

`make pytorch` starts it.  A task's graph becomes the function that a PyTorch user would write for
it (--show prints them, and needs neither a GPU nor PyTorch).  It is timed as an eager call, as the
replay of a CUDA graph and under torch.compile, each with PyTorch's default flags, with TF32 nowhere
and with TF32 everywhere.  Where two of these come to the same for a task, it is measured once, and
both columns say so.

This process needs no GPU.  It first has compiled what inductor's cache lacks (warm.py), then starts
a process for each of N GPUs (measure.py), each with the prefix --run, and gives them tasks: a
task whose kernel was timed on the board of one of them is measured there, any other by whoever is free.

The file holds medians of 5 to 30 samples in microseconds.  It is replaced after each task; times of
other tasks and ways stay.  Several of these programs may write to it at once.
"""

import argparse
import contextlib
import csv
import datetime
import fcntl
import json
import os
import shlex
import subprocess
import sys
import threading
import time

from forms import FLAGS, WAYS, source
from process import Process
import warm

ORIGIN = ["task", "board", "date", "versions"]  # a row has one of each
COLUMNS = ORIGIN + [w + "_" + f for f in FLAGS for w in WAYS]
PATIENCE = 30  # seconds after which tasks of a board that has not shown up are anybody's
HEAD = "# PyTorch's times by `make pytorch`: microseconds, medians, cold L2; see results/SCHEMA.md.\n"

# ---- The file ----

def load(path):
    """The rows of a file; none if there is no such file, or nothing in it.  Raises ValueError where it
    has other columns, or a row that is cut short: to write it again would lose what it says."""
    try:
        with open(path, encoding="utf-8") as f:
            lines = csv.DictReader(line for line in f if not line.startswith("#"))
            rows = list(lines)
    except FileNotFoundError:
        return []
    if lines.fieldnames not in (None, COLUMNS):
        raise ValueError("%s has other columns than today's: move it away to begin anew" % path)
    for row in rows:
        if None in row or None in row.values():
            raise ValueError("%s: the row of %s has not %d fields: remove the line, or restore the file"
                             % (path, row["task"], len(COLUMNS)))
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
        try:
            with open(path + "+", "w", encoding="utf-8") as f:
                f.write(HEAD + ",".join(COLUMNS) + "\n")
                for line in sorted(",".join(row[c] for c in COLUMNS) for row in rows):
                    f.write(line + "\n")
            os.replace(path + "+", path)
        except OSError:
            with contextlib.suppress(OSError):
                os.remove(path + "+")
            raise
    finally:
        os.close(lock)
    return rows


# ---- Who measures what ----

def board_of(gpu, name):
    """The board that timed a task's kernel last: its result, or what was timed since; "" if none has."""
    paths = [p for p in ("results/%s/%s.json" % (gpu, name), "build/%s/%s.time.json" % (gpu, name))
             if os.path.exists(p)]
    if not paths:
        return ""
    try:
        with open(max(paths, key=os.path.getmtime), encoding="utf-8") as f:
            return json.load(f)["machine"]["uuid_hash"]
    except (OSError, ValueError, KeyError, TypeError):
        return ""


class Sharing:
    """Hands tasks to a process on each GPU, and writes down what comes back."""

    def __init__(self, options, out, todo):
        self.options, self.out, self.total = options, out, len(todo)
        gpu = os.path.basename(out)[:-len(".csv")]
        self.left = [(task, ways, board_of(gpu, task["task"])) for task, ways in todo]
        self.lock, self.over = threading.Condition(), threading.Event()
        self.patience = time.monotonic() + PATIENCE
        self.waiting, self.busy, self.boards = set(), set(), set()  # processes; boards of the busy ones
        self.machines = []  # what each process was: board and versions
        self.failed, self.unkept, self.done, self.lacks, self.status = 0, 0, 0, "", 0

    def take(self, board):
        """The next task for a process: one of its own board, then one of none, then one of a board
        that is not here; None if there is no such."""
        def rank(task):
            return 0 if task[2] == board else 1 if not task[2] else 2

        def best():
            return min((x for x in self.left if x[2] == board or x[2] not in self.boards), key=rank, default=None)
        with self.lock:  # a process that is starting may be of that board
            self.lock.wait_for(lambda: not (self.waiting and best() and rank(best()) == 2),
                               max(0, self.patience - time.monotonic()))
            task = best()
            if task:
                self.left.remove(task)
            return task

    def start(self):
        """A process that is ready, and what it is; or (None, None), and why is said."""
        command = shlex.split(self.options.run) + [
            sys.executable, os.path.join(os.path.dirname(os.path.abspath(__file__)), "measure.py")]
        with self.lock:
            if self.over.is_set():
                return None, None
            process = Process(command)
            self.waiting.add(process)
        said = json.loads(process.line() or "{}")
        with self.lock:
            self.waiting.remove(process)
            self.lock.notify_all()
            if "board" in said and said["board"] not in self.boards:
                self.boards.add(said["board"])
                self.machines.append(said)
                self.busy.add(process)
                return process, said
            if not self.over.is_set():
                self.lacks = said.get("lacks", "") or (
                    "two processes were given one GPU" if said else "a process ended before it was ready")
        self.status = process.finish() or self.status
        return None, None

    def work(self):
        """One process after the other, while there are tasks for it."""
        try:
            while self.serve():
                pass
        finally:
            with self.lock:
                self.running -= 1
                if not self.running or self.done == self.total:
                    self.over.set()

    def serve(self):
        """One process.  Returns whether it died of a task, so that another has to go on."""
        process, here = self.start()
        reply = "none yet"
        while process and reply and (given := self.take(here["board"])):
            task, ways, _ = given
            reply = process.ask(json.dumps({"task": task, "ways": ways}))
            self.note(here, task, ways, json.loads(reply or "{}"))
        if process:
            with self.lock:
                self.boards.remove(here["board"])
                self.busy.remove(process)
            process.finish()
        return not reply

    def note(self, here, task, ways, said):
        """A task's times are kept, or why there are none is said."""
        with self.lock:
            self.done += 1
            if self.unkept:
                self.unkept += 1
                return
            if "times" not in said:
                print("%s: %s" % (task["task"], said.get("error", "its process ended")), file=sys.stderr)
                self.failed += 1
                return
            times = said["times"]
            date = datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d")
            row = dict(here, task=task["task"], date=date)
            row.update({c: "%.2f" % times[c] if c in times else "" for c in COLUMNS if c not in row})
            try:
                save(self.out, row, [way + "_" + flags for flags in FLAGS for way in ways])
            except (OSError, ValueError) as e:  # nor could those of any other task be kept
                print("pytorch: the times of %s are not kept: %s" % (task["task"], e), file=sys.stderr)
                self.unkept += 1
                self.over.set()
                return
            print(task["task"], *("%s %.2f" % x for x in times.items()), flush=True)

    def all(self):
        """Measure all tasks.  Returns the exit status."""
        self.running = max(1, min(self.options.gpus, self.total))
        threads = [threading.Thread(target=self.work) for _ in range(self.running)]
        try:
            for thread in threads:
                thread.start()
            self.over.wait()
        finally:
            with self.lock:
                self.over.set()
                for process in self.waiting | (self.busy if self.left else set()):
                    process.end()
        for thread in threads:
            thread.join()
        if self.lacks:
            print("pytorch: " + self.lacks, file=sys.stderr)
        if not self.machines:
            return self.status or 4
        if self.unkept:
            print("pytorch: %d of %d tasks have no new times" % (self.unkept + self.failed + len(self.left), self.total),
                  file=sys.stderr)
            return 5
        rows = load(self.out)
        others = sum(not any(all(row[key] == value for key, value in here.items()) for here in self.machines)
                     for row in rows)
        if others:
            print("%s: %d of %d rows are of another board or other versions; `make pytorch` without "
                  "TASKS measures all" % (self.out, others, len(rows)), file=sys.stderr)
        failed = self.failed + len(self.left)
        if failed:
            print("pytorch: %d of %d tasks failed; the others are in %s" % (failed, self.total, self.out),
                  file=sys.stderr)
        return 4 if failed else 0


def ahead(options, tasks):
    """Have compiled what the cache lacks, before anything is measured.  If that fails, nothing is lost."""
    cold = [path for path, task in tasks if warm.state(task) == "cold"]
    if cold:
        try:
            subprocess.run(shlex.split(options.run) + [sys.executable, warm.__file__] + cold, check=False)
        except OSError as e:
            print("pytorch: nothing is compiled ahead: %s" % e, file=sys.stderr)


def chosen(tasks, ways):
    """The tasks, each with its ways: torch.compile is none of them where it takes too long."""
    for _, task in tasks:
        rest = ways
        if "compiled" in ways and warm.state(task) == "slow":
            print("%s: torch.compile is left out: it takes more than %g s" % (task["task"], warm.SECONDS),
                  file=sys.stderr)
            rest = [way for way in ways if way != "compiled"]
        if rest:
            yield task, rest


def read(path):
    """A task, of which every op has a form."""
    try:
        with open(path) as f:
            task = json.load(f)
        source(task)
        return task
    except (OSError, ValueError) as e:
        print("pytorch: %s: %s" % (path, e), file=sys.stderr)
        sys.exit(3)


def check(out):
    """Ends the program where what is recorded cannot be read: new times could not be kept beside it."""
    try:
        load(out)
    except (OSError, ValueError) as e:
        print("pytorch: %s" % e, file=sys.stderr)
        sys.exit(3 if isinstance(e, ValueError) else 5)


def wrong(message):
    """What is wrong with the command line, in one line, and the end."""
    print("pytorch: " + message, file=sys.stderr)
    sys.exit(2)


def main():
    parser = argparse.ArgumentParser(description="PyTorch's times for the tasks.")
    parser.add_argument("files", nargs="+", metavar="OUT.csv TASK.json")
    parser.add_argument("--show", action="store_true", help="print the functions; no OUT.csv")
    parser.add_argument("--ways", default=" ".join(WAYS), help="which of: %(default)s")
    parser.add_argument("--run", default="", help="a prefix that runs a command with a free GPU")
    parser.add_argument("--gpus", type=int, default=1, help="how many there are")
    parser.error = wrong
    options = parser.parse_args()
    ways = options.ways.split()
    if not ways or set(ways) - set(WAYS):
        parser.error("WAYS (--ways) %s: expected some of %s" % (options.ways, " ".join(WAYS)))
    out = None if options.show else options.files.pop(0)
    if out and not out.endswith(".csv"):
        parser.error("the first argument is the .csv file to write")
    tasks = [(path, read(path)) for path in options.files]
    if options.show:
        print("\n".join("# %s\n%s" % (task["task"], source(task)) for _, task in tasks))
        return 0
    check(out)
    if "compiled" in ways:
        ahead(options, tasks)
    todo = list(chosen(tasks, ways))
    return Sharing(options, out, todo).all() if todo else 0


if __name__ == "__main__":
    sys.exit(main())
