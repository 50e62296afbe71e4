"""Runs what makes a module and its inputs, and remembers how each tensor is filled.

All tensors are PyTorch's fake ones, so that no size costs memory or time.  Beside each storage
stand its real values, where they are small and nothing random went into them, or else the fill of
harness/task/taskfile.h that it was drawn with.  A fill is a tuple, ("uniform", 0, 1), around
others where it wraps, ("lower", ("uniform", 0, 1))."""

import itertools
import math

import torch
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map

MOST_REAL = 1 << 23  # elements of a tensor whose values are computed
MOST_VALUES = 1 << 18  # elements of a constant tensor, as `values` of taskfile.h
FAR = 4              # standard deviations at which a cut normal law counts as a normal one


class Refused(Exception):
    """What cannot be a task, in words for the user."""


# ---- Fills ----

def affine(fill, scale, shift):
    """The fill of scale * x + shift; None if the grammar has none."""
    kind = fill[0]
    if kind == "uniform":
        return ("uniform", *sorted(scale * x + shift for x in fill[1:]))
    if kind == "normal":
        return ("normal", scale * fill[1] + shift, abs(scale) * fill[2])
    if kind == "integers" and scale == 1:
        return ("integers", fill[1] + shift, fill[2] + shift)
    if kind in ("scaled", "lower", "upper", "sum with transpose") and shift == 0:
        if kind == "sum with transpose" and scale == 0.5:
            return ("symmetric", fill[1])
        inner = affine(fill[1], scale, 0)
        return inner and (kind, inner)
    if kind in ("integers", "bernoulli", "steps"):
        base, a, b = fill[1:] if kind == "steps" else (fill, 1, 0)
        a, b = scale * a, scale * b + shift
        coin = base in (("integers", 0, 2), ("bernoulli", 0.5))
        return ("signs",) if coin and abs(a) == 2 and b == -a / 2 else ("steps", base, a, b)
    return None


def number(x):
    """A number as task files write it: the shortest text with the same value."""
    if math.isinf(x):
        return str(x)
    return str(int(x)) if x == int(x) and abs(x) < 1e15 else repr(float(x))


def text_of(fill):
    """A fill as text.  Bounds of default initialisation, +-1/sqrt(n), are exact as fan_in(n)."""
    kind, *rest = fill
    if kind in ("steps", "sum with transpose"):
        raise Refused("draws values by steps that no fill describes")
    if kind == "uniform" and rest[0] == -rest[1] != 0:
        n = round(rest[1] ** -2)
        if n >= 1 and math.isclose(n ** -0.5, rest[1], rel_tol=1e-9):
            return "fan_in(%d)" % n
    if kind == "values":
        runs = ((number(x), len(list(same))) for x, same in itertools.groupby(rest))
        return "values(%s)" % ",".join(x if n == 1 else "%s*%d" % (x, n) for x, n in runs)
    return "%s(%s)" % (kind, ",".join(text_of(x) if isinstance(x, tuple) else number(x) for x in rest))


def real_fill(value):
    """The fill of known values."""
    flat = value.reshape(-1).double()
    if not bool(torch.isfinite(flat).all()):
        raise Refused("has values that are not finite")
    if value.numel() == 0:
        raise Refused("is empty")
    if bool((flat == flat[0]).all()):
        return ("constant", flat[0].item())
    if value.dim() >= 2:
        for word, cut in (("lower", torch.tril), ("upper", torch.triu)):
            if bool((cut(torch.full_like(value, value.flatten()[-1].item())) == value).all()):
                return (word, ("constant", flat[-1].item()))
    if value.numel() > MOST_VALUES:
        raise Refused("holds %d values of its own, and a task file at most %d; make it an input or a "
                      "parameter" % (value.numel(), MOST_VALUES))
    return ("values", *flat.tolist())


# How random operations fill: their arguments after the tensor, by name.
RANDOM = {
    "uniform_": lambda a: ("uniform", a["from"], a["to"]),
    "normal_": lambda a: ("normal", a["mean"], a["std"]),
    "bernoulli_": lambda a: ("bernoulli", a["p"]),
    "random_": lambda a: ("integers", a.get("from", 0), a["to"]),
    "rand": lambda a: ("uniform", 0, 1), "rand_like": lambda a: ("uniform", 0, 1),
    "randn": lambda a: ("normal", 0, 1), "randn_like": lambda a: ("normal", 0, 1),
    "randint": lambda a: ("integers", a.get("low", 0), a["high"]),
    "randint_like": lambda a: ("integers", a.get("low", 0), a["high"]),
}
SAME = {"clone", "detach", "alias", "view", "_unsafe_view", "reshape", "lift_fresh", "copy"}
SCALED = {"mul": lambda x: (x, 0), "div": lambda x: (1 / x, 0), "add": lambda x: (1, x),
          "sub": lambda x: (1, -x), "rsub": lambda x: (-1, x), "neg": lambda x: (-1, 0)}


def arguments(func, args, kwargs):
    """The arguments of an ATen op by name, with defaults."""
    given = {}
    for i, a in enumerate(func._schema.arguments):
        given[a.name] = args[i] if i < len(args) else kwargs.get(a.name, a.default_value)
    return given


def random_fill(func, args, kwargs):
    """The fill of a random op, or None."""
    rule = RANDOM.get(func._schema.name.split("::")[1])
    return rule(arguments(func, args, kwargs)) if rule else None


class Storage:
    def __init__(self, real=None, fill=None, keep=None):
        self.real, self.fill, self.keep = real, fill, keep
        self.empty = False  # nothing was ever written to it


class Recorder(TorchDispatchMode):
    """While it is entered, tensors are fake and remembered."""

    def __init__(self):
        super().__init__()
        self.fake = FakeTensorMode(allow_non_fake_inputs=True)
        self.storages = {}

    def storage(self, t):
        """What is known of a tensor's storage."""
        key = t.untyped_storage()._cdata
        if key not in self.storages:
            real = None if isinstance(t, FakeTensor) or t.device.type == "meta" else t
            self.storages[key] = Storage(real, keep=t.untyped_storage())
        return self.storages[key]

    def real(self, t):
        """The values of a tensor, or None."""
        if not isinstance(t, FakeTensor):
            return t
        real = self.storage(t).real
        return None if real is None else real.as_strided(t.shape, t.stride(), t.storage_offset())

    def fill(self, t):
        """How a tensor is filled, as text.  Refuses what has no fill."""
        real, s = self.real(t), self.storage(t)
        if s.empty:
            raise Refused("is never given values")
        if real is not None:
            return text_of(real_fill(real))
        if s.fill is None or 0 in t.stride():
            raise Refused("is filled in a way that no fill describes")
        return text_of(s.fill)

    def derived(self, func, args, kwargs):
        """The fill of what an op makes of drawn tensors, or None."""
        name = func._schema.name.split("::")[1].rstrip("_")
        a = arguments(func, args, kwargs)
        tensors = [x for x in args if isinstance(x, torch.Tensor)]
        drawn = [self.storage(x).fill for x in tensors]
        fill = drawn[0] if drawn else None
        if name in ("full", "full_like", "fill", "zeros", "zeros_like", "zero", "ones", "ones_like"):
            value = a.get("fill_value", a.get("value", 1 if name.startswith("one") else 0))
            return ("constant", value) if isinstance(value, (int, float)) else None
        if name == "copy" and len(tensors) == 2:
            return drawn[1]
        if fill is None:
            return None
        if name in SAME:
            return fill
        if name == "_to_copy":
            coin = a["dtype"] == torch.bool and fill == ("integers", 0, 2)
            return ("bernoulli", 0.5) if coin else fill
        if name in ("tril", "triu") and a["diagonal"] == 0:
            return ("lower" if name == "tril" else "upper", fill)
        if name == "_softmax" and a["dim"] in (-1, tensors[0].dim() - 1):
            return ("softmax", fill)
        if name == "sign" and fill[0] == "normal" and fill[1] == 0:
            return ("signs",)
        if name in ("lt", "le", "gt", "ge") and fill == ("uniform", 0, 1) and len(tensors) == 1:
            return ("bernoulli", a["other"] if name[0] == "l" else 1 - a["other"])
        if name == "erfinv" and fill[0] == "uniform" and math.isclose(fill[1], -fill[2], abs_tol=1e-6):
            cut = math.inf if fill[2] >= 1 else torch.erfinv(torch.tensor(fill[2], dtype=torch.float64))
            return ("normal", 0, 0.5 ** 0.5) if float(cut) * 2 ** 0.5 >= FAR else None
        if name == "clamp" and fill[0] == "normal":
            far = [abs(x - fill[1]) >= FAR * fill[2] for x in (a["min"], a["max"]) if x is not None]
            return fill if all(far) else None
        if name in SCALED:
            return self.combined(name, tensors, drawn, a)
        return None

    def combined(self, name, tensors, drawn, a):
        """The fill of a drawn tensor and a number, its own transpose, or one drawn scalar."""
        other = a.get("other")
        if len(tensors) == 2:
            x, y = tensors
            swapped = x.dim() == y.dim() >= 2 and x.stride()[-2:] == y.stride()[-2:][::-1]
            if name == "add" and self.storage(x) is self.storage(y) and swapped:
                return ("sum with transpose", drawn[0])
            if name == "mul" and y.numel() == 1 and drawn[1] == ("uniform", 0, 1):
                return ("scaled", drawn[0])
            real = self.real(y)
            if real is None or real.numel() != 1:
                return None
            other = real.item()
        if a.get("alpha", 1) != 1 or (other is None and name != "neg"):
            return None
        return affine(drawn[0], *SCALED[name](other))

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = dict(kwargs or {})
        if kwargs.get("device") is not None:
            kwargs["device"] = torch.device("cpu")
        if func is torch.ops.aten._local_scalar_dense.default:
            real = self.real(args[0])
            if real is None:
                raise Refused("a number is read out of a tensor that is drawn at random, while the "
                              "module or its inputs are made")
            return real.item()
        tensors = [x for x in tree_leaves((args, kwargs)) if isinstance(x, torch.Tensor)]
        before = {self.storage(x) for x in tensors}
        written = [self.storage(args[i]) for i, a in enumerate(func._schema.arguments)
                   if a.alias_info and a.alias_info.is_write and i < len(args)]
        random = torch.Tag.nondeterministic_seeded in func.tags
        fill = random_fill(func, args, kwargs) if random else self.derived(func, args, kwargs)
        with self.fake:
            out = func(*args, **kwargs)
        results = [x for x in tree_leaves(out) if isinstance(x, torch.Tensor)]
        fresh = [x for x in results if self.storage(x) not in before]
        if fresh or written:
            real = None if random else self.compute(func, args, kwargs, results)
            reals = [x for x in tree_leaves(real) if isinstance(x, torch.Tensor)]
            name = func._schema.name.split("::")[1]
            for i, x in enumerate(results):
                s = self.storage(x)
                if s not in written and s in before:
                    continue
                whole = x.numel() * x.element_size() == x.untyped_storage().nbytes()
                s.fill = fill if whole or s not in written else None
                s.empty = name.startswith(("empty", "new_empty"))
                if s not in written:
                    s.real = reals[i] if reals else None
                elif real is None:
                    s.real = None
        return out

    def compute(self, func, args, kwargs, results):
        """The op on real values, which alters them where it writes; None if some are unknown."""
        if any(x.numel() > MOST_REAL for x in results):
            return None
        known = True

        def real(x):
            nonlocal known
            if not isinstance(x, torch.Tensor):
                return x
            value = self.real(x)
            if value is None and func._schema.name in ("aten::fill_", "aten::zero_"):
                value = self.storage(x).real = torch.zeros(x.shape, dtype=x.dtype)
            known = known and value is not None
            return value
        args, kwargs = tree_map(real, (args, kwargs))
        if not known:
            return None
        if func._schema.name.split("::")[1].startswith(("empty", "new_empty")):
            return [torch.zeros(x.shape, dtype=x.dtype) for x in results]
        return func(*args, **kwargs)
