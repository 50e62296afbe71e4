"""Write a task file: one tensor a line, one op a line.

Used by the scripts beside it.  The format is described in harness/task/taskfile.h;
`build/task check` reads it strictly."""

import json
import os


def _rows(items, last):
    """A JSON list with one item a line."""
    if not items:
        return "[]" + last
    rows = [json.dumps(item, separators=(", ", ": ")).replace("[ ", "[") for item in items]
    return "[\n    " + ",\n    ".join(rows) + "\n  ]" + last


def tensor(name, shape, fill, dtype="f32", domain=None):
    """One entry of inputs or parameters."""
    if domain is None:
        domain = "real" if dtype in ("f32", "f16", "bf16") else "declared"
    return {"name": name, "shape": shape, "dtype": dtype, "fill": fill, "domain": domain}


def write(folder, suite, name, title, source, inputs, parameters, graph, outputs, notes=(), flags=()):
    """Write folder/suite/name.json."""
    head = {"schema": 1, "task": name, "suite": suite, "title": title, "source": source}
    text = "{\n"
    for key, value in head.items():
        text += "  %s: %s,\n" % (json.dumps(key), json.dumps(value))
    text += '  "inputs": ' + _rows(inputs, ",\n")
    text += '  "parameters": ' + _rows(parameters, ",\n")
    text += '  "graph": ' + _rows(graph, ",\n")
    text += '  "outputs": %s,\n' % json.dumps(outputs)
    text += '  "notes": ' + _rows(list(notes), ",\n")
    text += '  "flags": ' + _rows(list(flags), "\n}\n")
    os.makedirs(os.path.join(folder, suite), exist_ok=True)
    path = os.path.join(folder, suite, name + ".json")
    with open(path + ".new", "w", encoding="ascii") as file:
        file.write(text)
    os.replace(path + ".new", path)
    return path
