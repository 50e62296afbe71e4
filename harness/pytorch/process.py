"""A process that answers lines with lines: both sides of it."""

import os
import signal
import subprocess
import sys
import threading


class Process:
    """A program that says one line when it is ready, and one for each line that it is given."""

    def __init__(self, command):
        self.late = False  # whether it was ended as an answer took too long
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                        start_new_session=True)

    def line(self, seconds=None):
        """Its next line; "" if it ended, by itself or for taking longer than that."""
        timer = threading.Timer(seconds or 0, self.expire)
        if seconds:
            timer.start()
        try:
            return self.process.stdout.readline().strip()
        finally:
            timer.cancel()

    def ask(self, text, seconds=None):
        """The answer to a line; "" as above."""
        try:
            self.process.stdin.write(text + "\n")
            self.process.stdin.flush()
        except OSError:
            return ""
        return self.line(seconds)

    def expire(self):
        self.late = True
        self.end(signal.SIGKILL)

    def end(self, how=signal.SIGTERM):
        """End it and what it started.  A process that has ended stays as it is."""
        if self.process.poll() is None:
            os.killpg(self.process.pid, how)

    def finish(self):
        """It may end by itself, as no more lines come.  Returns its exit status."""
        try:
            self.process.stdin.close()
        except OSError:  # it is gone
            pass
        return self.process.wait()


def answer(ready, one):
    """The other side: say ready(), then one(line) for each line.  Whatever else is printed goes to stderr."""
    replies = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)

    def say(text):
        replies.write(text + "\n")
        replies.flush()
    say(ready())
    for line in sys.stdin:
        say(one(line.strip()))
