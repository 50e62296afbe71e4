"""Which KernelBench a checkout is."""

import os
import re
import subprocess

LEVELS = ("level1", "level2", "level3")


def commit_of(checkout, fail):
    """The first seven digits of its commit: what its file COMMIT says, else git.  Calls fail(message)
    where there is no KernelBench, and where its commit is not known."""
    if not any(os.path.isdir(os.path.join(checkout, "KernelBench", level)) for level in LEVELS):
        fail("%s: no KernelBench/level1/; expected a checkout of KernelBench" % checkout)
    path, said = os.path.join(checkout, "COMMIT"), ""
    if os.path.isfile(path):
        with open(path, encoding="ascii", errors="replace") as f:
            said = f.read().strip()
    elif os.path.exists(os.path.join(checkout, ".git")):
        said = subprocess.run(["git", "-C", checkout, "rev-parse", "HEAD"], capture_output=True, text=True,
                              check=False).stdout.strip()
    if not re.fullmatch(r"[0-9a-f]{7,40}", said):
        fail("%s: its commit is not known; expected a git checkout, or the commit in %s" % (checkout, path))
    return said[:7]
