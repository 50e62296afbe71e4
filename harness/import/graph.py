"""A module's graph, as torch.export finds it, as the lines of a task's graph.

A Value stands for a tensor of the task or for a result of a line.  A value that is known before
anything runs (the module made it itself, out of constants) is kept as a number or tensor, and
becomes a line or a tensor only where something that is not known uses it."""

import operator
import re

import torch
from torch.fx.experimental.proxy_tensor import make_fx
from torch.utils._pytree import tree_flatten, tree_leaves, tree_map, tree_unflatten

import ops
from record import MOST_REAL, RANDOM, Refused, arguments, number, random_fill, real_fill, text_of

DTYPES = {torch.float32: "f32", torch.float16: "f16", torch.bfloat16: "bf16", torch.int64: "i64",
          torch.int32: "i32", torch.bool: "bool", torch.float64: "f64"}
CONSTANTS = {"full", "zeros", "ones", "full_like", "zeros_like", "ones_like", "new_full", "new_zeros",
             "new_ones"}
REDUCTIONS = ["none", "mean", "sum"]


class Value:
    """A tensor.  `fake` has its shape and type; `real` its values, if they are known."""

    def __init__(self, fake, name=None, real=None, of=None):
        self.fake, self.name, self.real = fake, name, real
        self.storage = of.storage if of else self  # whose elements it shows

    def dim(self):
        return self.fake.dim()

    @property
    def shape(self):
        return list(self.fake.shape)

    @property
    def dtype(self):
        if self.fake.dtype not in DTYPES:
            raise Refused("a tensor is %s; tasks have %s" % (
                str(self.fake.dtype).split(".")[1], ", ".join(DTYPES.values())))
        return DTYPES[self.fake.dtype]


class Tensor(Value):
    """An input or a parameter of the task."""

    def __init__(self, fake, name, fill, kind):
        super().__init__(fake, name)
        self.fill, self.kind = fill, kind  # input, parameter or buffer


class Line:
    def __init__(self, results, op, operands, attributes):
        self.results, self.op, self.operands, self.attributes = results, op, operands, attributes

    def values(self):
        """The operands that are tensors."""
        return [x for _, x in self.operands if isinstance(x, Value)]

    def text(self):
        first = self.values()[0].dtype if self.values() else self.results[0].dtype
        left = ", ".join("%s[%s]%s" % (v.name, ",".join(map(str, v.shape)),
                                       "" if v.dtype == first else ":" + v.dtype) for v in self.results)
        operands = ["%s%s" % (key + "=" if key else "", x.name if isinstance(x, Value) else number(x))
                    for key, x in self.operands]
        attributes = ", ".join("%s=%s" % pair for pair in self.attributes)
        inside = ", ".join(operands) + ("; " if attributes else "") + attributes
        return "%s = %s(%s)" % (left, self.op, inside)


def attribute(key, x):
    """The value of an attribute, as task files write it."""
    if isinstance(x, bool):
        return "true" if x else "false"
    if key == "reduction":
        return REDUCTIONS[x]
    if isinstance(x, (list, tuple)):
        if key in ops.WINDOW and len(x) > 1 and len(set(x)) == 1 or key == "dim" and len(x) == 1:
            return str(x[0])
        return "[%s]" % ",".join(map(str, x))
    return number(x) if isinstance(x, (int, float)) else str(x)


class Graph:
    def __init__(self, fake_mode):
        self.fake_mode = fake_mode
        self.lines, self.tensors, self.notes = [], [], []
        self.env, self.place = {}, ""

    # ---- Values ----

    def real(self, value):
        """A value that is known."""
        with self.fake_mode:
            fake = torch.empty(value.shape, dtype=value.dtype)
        return Value(fake, real=value)

    def operand(self, x, scalar_will_do):
        """An operand as a number or as a value that the task has."""
        if isinstance(x, (int, float)):
            return x
        if x.real is None:
            return x
        if x.real.dim() == 0 and scalar_will_do:
            return x.real.item()
        return self.constant(x)

    def constant(self, x):
        """A known value as a line that makes it, or else as a tensor of the task."""
        real, flat = x.real, x.real.flatten() if any(x.real.stride()) else x.real.reshape(-1)[:1]
        attributes = [("shape", attribute("shape", x.shape)), ("value", number(flat[0].item()))]
        if real.dtype != torch.float32:
            attributes.append(("dtype", x.dtype))
        if not any(real.stride()) or bool((flat == flat[0]).all()):
            return self.line("full", [], attributes, [x.fake])[0]
        if real.dim() >= 2:
            for word, at in (("tril", (-1, 0)), ("triu", (0, -1))):
                value = real[(0,) * (real.dim() - 2) + at]
                for diagonal in range(1 - real.shape[-2], real.shape[-1]):
                    if bool((getattr(torch, word)(torch.full_like(real, value.item()), diagonal) == real).all()):
                        attributes[1] = ("value", number(value.item()))
                        whole = self.line("full", [], attributes, [x.fake])[0]
                        return self.line(word, [(None, whole)], [("diagonal", diagonal)], [x.fake])[0]
        return self.tensor(Tensor(x.fake, "constant", text_of(real_fill(real)), "buffer"))

    def tensor(self, tensor):
        self.tensors.append(tensor)
        return tensor

    def line(self, op, operands, attributes, fakes):
        """Append a line.  Returns its results."""
        results = [Value(fake) for fake in fakes]
        self.lines.append(Line(results, op, operands, attributes))
        return results

    # ---- ATen ops ----

    def refuse(self, why):
        raise Refused("%s%s" % (self.place, why))

    def call(self, func, args, kwargs, fake):
        """What an ATen op gives: a value, or a list of them."""
        name, overload = func._schema.name.split("::")[1], func._overloadname
        writes = func._schema.arguments and func._schema.arguments[0].alias_info and \
            func._schema.arguments[0].alias_info.is_write
        if writes:
            name = name.rstrip("_")
        a = arguments(func, args, kwargs)
        tensors = [x for x in tree_leaves((args, kwargs)) if isinstance(x, Value)]
        fakes = [x for x in tree_leaves(fake) if isinstance(x, torch.Tensor)]
        if any(not isinstance(n, int) for f in fakes for n in f.shape):
            self.refuse("%s: the shape of its result depends on values; tasks have fixed shapes" % name)
        random = func._schema.name.split("::")[1] in RANDOM
        if name in CONSTANTS:
            out = self.filled(name, a, fakes[0])
        elif not random and "dropout" not in name and all(x.real is not None for x in tensors) and \
                all(f.numel() <= MOST_REAL for f in fakes) and fakes:
            out = self.known(func, args, kwargs)
        elif random:
            out = self.drawn(func, args, kwargs, fakes[0])
        else:
            out = self.computed(name, overload, a, fakes, tensors)
        if writes:
            self.overwrite(args[0], out)
        return out

    def known(self, func, args, kwargs):
        kwargs = {k: v for k, v in kwargs.items() if k != "device"}
        args, kwargs = tree_map(lambda x: x.real.clone() if isinstance(x, Value) else x, (args, kwargs))
        out = func(*args, **kwargs)
        return tree_map(lambda x: self.real(x) if isinstance(x, torch.Tensor) else x, out)

    def filled(self, name, a, fake):
        """A tensor of one number, which takes no memory here."""
        value = a["fill_value"] if "full" in name else int("ones" in name)
        return Value(fake, real=torch.tensor(value, dtype=fake.dtype).expand(fake.shape))

    def drawn(self, func, args, kwargs, fake):
        """Random numbers: an input of the task."""
        try:
            fill = random_fill(func, [None if isinstance(x, Value) else x for x in args], kwargs)
        except TypeError:
            fill = None
        if not fill:
            self.refuse("%s: a random operation that no fill describes" % func._schema.name.split("::")[1])
        self.notes.append("the module draws random numbers; here they are an input")
        return self.tensor(Tensor(fake, "random", text_of(fill), "input"))

    def dropped(self, a, fake):
        """Dropout: which elements stay is an input of the task."""
        keep = 1 - a["p"]
        mask = self.tensor(Tensor(fake, "kept", "bernoulli(%s)" % number(keep), "input"))
        self.notes.append("dropout is live: which elements it keeps is an input")
        x = self.line("mul", [(None, a["input"]), (None, mask)], [], [fake])[0]
        return self.line("mul", [(None, x), (None, 1 / keep)], [], [fake])[0]

    def computed(self, name, overload, a, fakes, tensors):
        key = name + "." + overload if name + "." + overload in ops.LINES or \
            name + "." + overload in ops.MADE_OF else name
        x = tensors[0] if tensors else None
        if name in ("dropout", "feature_dropout", "alpha_dropout"):
            if a["p"] == 0 or not a["train"]:
                return x
            if name == "dropout":
                return self.dropped(a, fakes[0])
        if name in ops.SAME and len(fakes) == 1 and fakes[0].shape == x.fake.shape and \
                fakes[0].dtype == x.fake.dtype:
            return x
        if name == "copy" and a["src"].shape == a["self"].shape and a["src"].dtype == a["self"].dtype:
            return a["src"]
        made = ops.special(key, a)
        if made:
            return self.inline(made, a)
        if name == "slice":
            return self.slice(a, fakes[0])
        if name == "pad" and a["mode"] == "constant":
            return self.pad(a, fakes[0])
        if key not in ops.LINES:
            self.refuse("aten.%s is no op of a task; write it with others, or add the op "
                        "(CONTRIBUTING.md, Add an operation) and its line in harness/import/ops.py"
                        % (name + ("." + overload if overload not in ("", "default") else "")))
        out = self.rule(ops.LINES[key], a, fakes)
        return out[0] if len(fakes) == 1 else out

    def rule(self, template, a, fakes):
        """Append the line that a template makes of arguments."""
        op, inside = re.fullmatch(r"(\w+)\((.*)\)", template).groups()
        before, _, after = inside.partition("; ")
        used, operands, attributes = set(), [], []
        for word in before.split(", "):
            key, _, source = word.rpartition("=")
            used.add(source.lstrip("*"))
            given = a.get(source.lstrip("*"), source)
            if isinstance(given, str):
                given = int(given)
            for x in given if source[0] == "*" else [given]:
                if x is not None:
                    operands.append((key or None, self.operand(x, op not in ("cat", "masked_fill"))))
        for word in re.findall(r"(?:\w+=)?(?:\[[^]]*\]|[\w@]+)", after):
            key, _, source = word.rpartition("=")
            names = source.strip("[]").split(",")
            used.update(names + ["size"] if source == "@" else names)
            x = [int(a.get(n, n)) for n in names] if source[0] == "[" else \
                list(fakes[0].shape) if source == "@" else a[source]
            if source == "stride" and x == []:
                x = a["kernel_size"]
            if isinstance(x, Value) and x.real is not None and x.real.numel() == 1:
                x = x.real.item()
            if isinstance(x, Value):
                self.refuse("%s: %s is a tensor; tasks have a number there" % (op, source))
            if x is not None and (x != [] or "shape" in (key, source)):
                attributes.append((key or source, attribute(key or source, x)))
        self.check_rest(op, a, used, fakes)
        return self.line(op, operands, attributes, fakes)

    def check_rest(self, op, a, used, fakes):
        """Refuse arguments that the line would drop."""
        for key, x in a.items():
            if key in used or key in ops.IGNORED or x is None or isinstance(x, torch.dtype):
                continue
            if x != self.defaults.get(key):
                self.refuse("%s with %s=%s is no op of a task" % (op, key, x))

    def slice(self, a, fake):
        n = a["self"].shape[a["dim"]]
        start, end, _ = slice(a["start"], a["end"]).indices(n)
        if (start, end, a["step"]) == (0, n, 1):
            return a["self"]
        attributes = [("dim", a["dim"]), ("start", start), ("end", end)]
        attributes += [("step", a["step"])] if a["step"] != 1 else []
        return self.line("slice", [(None, self.operand(a["self"], False))], attributes, [fake])[0]

    def pad(self, a, fake):
        attributes = [("pad", attribute("pad", a["pad"])), ("value", number(a["value"] or 0))]
        return self.line("pad", [(None, a["self"])], attributes, [fake])[0]

    def inline(self, function, a):
        """Trace a function of some arguments, and take its lines."""
        leaves, tree = tree_flatten(a)
        values = [x for x in leaves if isinstance(x, Value)]

        def call(*tensors):
            rest = iter(tensors)
            return function(tree_unflatten([next(rest) if isinstance(x, Value) else x for x in leaves], tree))
        with self.fake_mode, torch.no_grad():
            traced = make_fx(call, pre_dispatch=True)(*[x.fake for x in values])
        outer, self.env = self.env, {}
        for node, value in zip([n for n in traced.graph.nodes if n.op == "placeholder"], values):
            self.env[node] = value
        out = self.walk(traced)
        self.env = outer
        return out

    # ---- Nodes ----

    def overwrite(self, was, now):
        """An op in place: whoever names the old value means the new one."""
        users = {node for node, v in self.env.items() if isinstance(v, Value) and v is not was and
                 v.storage is was.storage}
        late = [n for node in users for n in node.users if n not in self.env and n.op != "output"]
        if any(self.matters(n) for n in late) and was.real is None:
            self.refuse("a tensor is altered in place while another view of it is in use; "
                        "use the operation that returns a new tensor")
        for node, v in self.env.items():
            if v is was:
                self.env[node] = now
        now.storage = was.storage

    def matters(self, node):
        return node.op == "call_function"

    def walk(self, module):
        """Take all nodes.  Returns what the graph returns."""
        for node in module.graph.nodes:
            if node.op == "placeholder":
                continue
            if node.op == "get_attr":
                self.env[node] = self.real(getattr(module, node.target).detach())
                continue
            args, kwargs = tree_map(lambda x: self.env[x] if isinstance(x, torch.fx.Node) else x,
                                    (node.args, node.kwargs))
            if node.op == "output":
                return args[0]
            self.place = where(node)
            if node.target is operator.getitem:
                self.env[node] = args[0][args[1]]
                continue
            if not isinstance(node.target, torch._ops.OpOverload):
                self.refuse("%s is no op of a task; write it without" % getattr(node.target, "__name__", node.target))
            self.defaults = {x.name: x.default_value for x in node.target._schema.arguments}
            out = self.call(node.target, list(args), kwargs, node.meta.get("val"))
            views = any(r.alias_info and not r.alias_info.is_write for r in node.target._schema.returns)
            for x in tree_leaves(out):
                if views and isinstance(x, Value) and isinstance(args[0], Value) and x is not args[0]:
                    x.storage = args[0].storage
            self.env[node] = out
        return None


def where(node):
    """The line of the user's file that a node comes from, for messages."""
    lines = re.findall(r'File "([^"]*)", line (\d+)', node.meta.get("stack_trace") or "")
    lines = [x for x in lines if "/torch/" not in x[0]]
    return "line %s: " % lines[-1][1] if lines else ""
