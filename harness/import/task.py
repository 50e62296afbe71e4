"""The task of a module: traced, named, written."""

import inspect
import json
import os
import re

import torch
from torch.overrides import TorchFunctionMode

import ops
from graph import Graph, Tensor
from record import Recorder, Refused

RESERVED = set("""alignas alignof and asm auto bool break case catch char class compl const constexpr
    continue decltype default delete do double else enum explicit export extern false float for friend
    goto if inline int long mutable namespace new noexcept not nullptr operator or private protected
    public register restrict return short signed sizeof static struct switch template this throw true
    try typedef typeid typename typeof union unsigned using virtual void volatile while xor out out0
    out1 out2 out3""".split())
LONGEST = 63  # characters of a tensor's name


class Function(torch.nn.Module):
    """A function as a module."""

    def __init__(self, function):
        super().__init__()
        self.forward = function


def made(build):
    """The module and its inputs that `build` makes, and the recorder that watched."""
    recorder = Recorder()
    with recorder, torch.no_grad():
        module, inputs = build()
    if not isinstance(module, torch.nn.Module):
        if not callable(module):
            raise Refused("there is nothing to call; expected a class, a module or a function")
        module = Function(module)
    if not isinstance(inputs, (list, tuple)):
        inputs = [inputs]
    return module, list(inputs), recorder


def register(module):
    """Tensors that are plain attributes become buffers, so that they have names."""
    for part in module.modules():
        for name, x in list(vars(part).items()):
            if isinstance(x, torch.Tensor):
                delattr(part, name)
                part.register_buffer(name, x, persistent=False)


class Recurrent(TorchFunctionMode):
    """Keeps lstm and gru whole: PyTorch would trace them step by step."""
    FLAGS = ("bool has_biases, int num_layers, float dropout, bool train, bool bidirectional, "
             "bool batch_first")
    library = torch.library.Library("kernelproof", "DEF")
    library.define("lstm(Tensor input, Tensor[] hx, Tensor[] params, %s) -> (Tensor, Tensor, Tensor)" % FLAGS)
    library.define("gru(Tensor input, Tensor hx, Tensor[] params, %s) -> (Tensor, Tensor)" % FLAGS)

    def __torch_function__(self, func, types, args=(), kwargs=None):
        for op in ("lstm", "gru"):
            if func is getattr(torch, op):
                return getattr(torch.ops.kernelproof, op)(*args, **(kwargs or {}))
        return func(*args, **(kwargs or {}))


@torch.library.register_fake("kernelproof::lstm")
def _(x, states, params, biases, layers, dropout, train, both, batch_first):
    return (x.new_empty(x.shape[0], x.shape[1], states[0].shape[2] * (2 if both else 1)),
            torch.empty_like(states[0]), torch.empty_like(states[1]))


@torch.library.register_fake("kernelproof::gru")
def _(x, state, params, biases, layers, dropout, train, both, batch_first):
    return (x.new_empty(x.shape[0], x.shape[1], state.shape[2] * (2 if both else 1)),
            torch.empty_like(state))


def exported(module, inputs):
    """What torch.export makes of it; its complaints in one line."""
    export = getattr(torch.export, "export_for_training", torch.export.export)
    try:
        with torch.no_grad(), Recurrent():
            return export(module, tuple(inputs), strict=False)
    except (Refused, ModuleNotFoundError):
        raise
    except Exception as e:
        kind = type(e).__name__
        if "DataDependent" in kind or "UserError" in kind or "data-dependent" in str(e):
            raise Refused("what it does depends on the values of tensors (an if, a loop, an .item()), and a "
                          "task's graph is fixed; torch.where chooses without an if") from e
        if "DynamicOutputShape" in kind:
            raise Refused("a shape depends on the values of tensors (nonzero, a boolean index), and a "
                          "task's shapes are fixed") from e
        raise Refused("torch.export: %s: %s" % (kind, " ".join(str(e).split())[:200])) from e


def signature(module, inputs):
    """Names of the inputs, as forward() calls them."""
    names = []
    for p in inspect.signature(module.forward).parameters.values():
        if p.kind is p.VAR_POSITIONAL:
            names += ["%s%d" % (p.name, i) for i in range(len(inputs))]
        else:
            names.append(p.name)
    return names


def identifier(name):
    """A name that a task may have for a dotted one."""
    name = re.sub(r"\W+", "_", name).strip("_") or "x"
    while len(name) > LONGEST and "_" in name:
        name = name.split("_", 1)[1]
    name = name[:LONGEST]
    name = "p" + name if name[0].isdigit() else name
    return name + "_" if name in RESERVED else name


def placeholders(graph, program, module, inputs, recorder):
    """Bind the exported graph's placeholders.  Order: inputs, parameters, buffers."""
    names = signature(module, inputs)
    specs = {s.arg.name: s for s in program.graph_signature.input_specs}
    position, known = 0, {}  # buffers of the same values are one
    for node in program.graph.nodes:
        if node.op != "placeholder":
            continue
        spec = specs[node.name]
        kind = spec.kind.name
        if kind == "USER_INPUT":
            x = inputs[position]
            name, position = names[position], position + 1
            if not isinstance(x, torch.Tensor):
                graph.env[node] = x
                continue
            tensor = "input"
        else:
            name = spec.target
            x = program.constants[name] if kind == "CONSTANT_TENSOR" else \
                (dict(module.named_parameters(remove_duplicate=False)) | dict(module.named_buffers(remove_duplicate=False)))[name]
            tensor = "parameter" if kind == "PARAMETER" else "buffer"
        real = recorder.real(x)
        if tensor == "buffer" and real is not None and real.numel() == 1:
            graph.env[node] = graph.real(real.detach())
            continue
        same = known.get((real.dtype, real.shape, real.numpy().tobytes())) if tensor == "buffer" and \
            real is not None else None
        value = same or graph.tensor(Tensor(node.meta["val"], name, (recorder, x), tensor))
        if tensor == "buffer" and real is not None:
            known[real.dtype, real.shape, real.numpy().tobytes()] = value
        graph.env[node] = value


def live(graph, outputs):
    """Leave out lines and buffers that no output needs.  Returns what is needed, and the ops that
    were left out."""
    needed, lines, dead = {id(v) for v in outputs}, [], []
    for line in reversed(graph.lines):
        if any(id(v) in needed for v in line.results):
            needed |= {id(v) for v in line.values()}
            lines.append(line)
        else:
            dead.append(line.op)
    graph.lines = lines[::-1]
    graph.tensors = [t for t in graph.tensors if id(t) in needed or t.kind != "buffer"]
    return needed, sorted(set(dead) - ops.VIEWS)


def name_all(graph):
    """Names of tensors, unique with case aside, and of results."""
    taken = set()
    for t in sorted(graph.tensors, key=lambda t: ["input", "parameter", "buffer"].index(t.kind)):
        base = name = identifier(t.name)
        n = 1
        while name.lower() in taken:
            n += 1
            name = "%s_%d" % (base[:LONGEST - 4], n)
        taken.add(name.lower())
        t.name = name
    prefix = "v" if any(re.fullmatch(r"t\d+", n) for n in taken) else "t"
    n = 0
    for line in graph.lines:
        for v in line.results:
            n += 1
            v.name = prefix + str(n)


def trace(build):
    """The parts of a task file that come from a module: inputs, parameters, graph, outputs, notes,
    flags."""
    module, inputs, recorder = made(build)
    register(module)
    program = exported(module, inputs)
    graph = Graph(recorder.fake)
    placeholders(graph, program, module, inputs, recorder)
    returned = graph.walk(program.graph_module)
    keep = {s.arg.name for s in program.graph_signature.output_specs if s.kind.name == "USER_OUTPUT"}
    nodes = [n for n in program.graph.nodes if n.op == "output"][0].args[0]
    outputs = []
    for node in nodes:
        if isinstance(node, torch.fx.Node) and node.name in keep and graph.env[node] not in outputs:
            outputs.append(graph.env[node])
    if not outputs or any(isinstance(v, Tensor) or v.real is not None for v in outputs):
        raise Refused("an output is an input or a constant; a task's output is computed")
    needed, dead = live(graph, outputs)
    name_all(graph)
    domains = domains_of(graph)
    rows = {"input": [], "parameter": []}
    flags = []
    for t in sorted(graph.tensors, key=lambda t: ["input", "parameter", "buffer"].index(t.kind)):
        try:
            fill = t.fill if isinstance(t.fill, str) else t.fill[0].fill(t.fill[1])
        except Refused as e:
            raise Refused("%s %s" % (t.name, e)) from e
        rows["input" if t.kind == "input" else "parameter"].append(
            {"name": t.name, "shape": t.shape, "dtype": t.dtype, "fill": fill, "domain": domains(t, fill)})
        if id(t) not in needed:
            flags.append("unused: " + t.name)
    notes = sorted(set(graph.notes))
    if dead:
        notes.append("left out, as no output needs them: " + ", ".join(dead))
    return {"inputs": rows["input"], "parameters": rows["parameter"],
            "graph": [line.text() for line in graph.lines],
            "outputs": [v.name for v in outputs], "notes": notes, "flags": flags}


# ---- Domains ----

STEP, LARGEST = 18, 127  # powers of two: of scaled contents, and of what fp32 holds
BOUNDED = {"sigmoid", "tanh", "softmax", "log_softmax", "hardsigmoid", "hardtanh", "eq", "argmax", "argmin",
           "full", "bitwise_not", "lstm", "gru"}
NORMS = {"layer_norm", "group_norm", "instance_norm", "batch_norm"}
PRODUCTS = {"mul", "matmul", "linear", "scaled_dot_product_attention", "div"}


def overflowing(graph):
    """Tensors whose contents, all of them scaled by STEP, would overflow somewhere.  A value has a
    power, with which it grows where all contents grow, and the tensors that make it grow."""
    power, who, calm = {id(t): 1 for t in graph.tensors}, {id(t): {id(t)} for t in graph.tensors}, set()
    for line in graph.lines:
        ids = [id(v) for v in line.values()]
        powers, makers = [power[i] for i in ids] or [0], set().union(*(who[i] for i in ids))
        most = grown = max(powers)
        if line.op in BOUNDED:
            grown = 0
        elif line.op in NORMS:
            most, grown = 2 * powers[0], max(powers[1:], default=0)
        elif line.op in PRODUCTS or line.op.startswith("conv"):
            most = grown = sum(powers[:2])
        elif line.op == "pow":
            most = grown = powers[0] * abs(line.operands[1][1])
        elif line.op == "cumprod":
            most = grown = powers[0] * line.results[0].shape[int(dict(line.attributes)["dim"])]
        elif line.op == "exp":
            most = grown = LARGEST * powers[0]
        elif line.op == "norm":
            most = 2 * grown
        elif line.op == "sqrt":
            grown = grown / 2
        if line.op in NORMS:
            result = set().union(*(who[i] for i in ids[1:]))
        else:
            result = makers if grown else set()
        if most * STEP > LARGEST:
            calm |= who[ids[0]] if line.op in NORMS else makers
            grown, result = 0, set()
        for v in line.results:
            power[id(v)], who[id(v)] = grown, result
    return calm


def recurring(graph):
    """Weights that are multiplied with what they made before, and the states that LSTMs and GRUs begin
    with: those of recurrent networks.  Large ones make a network chaotic: from step to step it multiplies
    a rounding, until that is all there is."""
    tensors, factors, again = {id(t) for t in graph.tensors}, {}, set()
    for line in graph.lines:
        before = set().union(*(factors.get(id(v), set()) for v in line.values()))
        if line.op in ("lstm", "gru"):
            again |= {id(v) for v in line.values()[1:]}
        if line.op in ("linear", "matmul"):
            own = tensors & {id(v) for v in line.values()}
            again |= own & before
            before |= own
        factors.update((id(v), before) for v in line.results)
    return again


def domains_of(graph):
    """A function of a tensor and its fill that gives its domain."""
    calm, above = overflowing(graph) | recurring(graph), set()
    for line in graph.lines:
        if line.op == "scaled_dot_product_attention":
            calm |= {id(v) for v in line.values()}
        if line.op in ("log", "sqrt", "rsqrt"):
            above |= {id(v) for v in line.values()}

    def domain(t, fill):
        if t.kind == "buffer" or not t.dtype.startswith(("f", "bf")) or \
                re.search("softmax|signs|bernoulli|integers|values", fill):
            return "declared"
        return "moderate" if id(t) in calm else "positive" if id(t) in above else "real"
    return domain


# ---- Files ----

def rows(items, last):
    """A JSON list with one item a line."""
    if not items:
        return "[]" + last
    return "[\n    " + ",\n    ".join(json.dumps(x, separators=(", ", ": ")) for x in items) + "\n  ]" + last


def text(head, task):
    """A task file."""
    lines = ["  %s: %s,\n" % (json.dumps(k), json.dumps(v)) for k, v in head.items()]
    for key in ("inputs", "parameters", "graph", "outputs", "notes", "flags"):
        last = "\n}\n" if key == "flags" else ",\n"
        body = json.dumps(task[key]) + last if key == "outputs" else rows(task[key], last)
        lines.append('  "%s": %s' % (key, body))
    return "{\n" + "".join(lines)


def write(path, content):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path + ".new", "w", encoding="ascii") as file:
        file.write(content)
    os.replace(path + ".new", path)
