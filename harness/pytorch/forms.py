"""A task as the function that a PyTorch user would write for it.  Needs no PyTorch until it is called."""

import math
import os
import re

FLAGS = {"default": (False, True), "fp32": (False, False), "tf32": (True, True)}  # TF32 in
WAYS = ("eager", "graph", "compiled")                               # products, convolutions

# PyTorch reads these when it is imported, which comes later.  Whatever would overrule its flags is no
# default; and compiled code is kept from run to run.
for overruling in ("NVIDIA_TF32_OVERRIDE", "TORCH_ALLOW_TF32_CUBLAS_OVERRIDE"):
    os.environ.pop(overruling, None)
os.environ.setdefault("TORCHINDUCTOR_FX_GRAPH_CACHE", "1")
os.environ.setdefault("TORCHINDUCTOR_CACHE_DIR", os.path.abspath("build/inductor"))

# How a user writes each op: an operator, a method, a function of torch or of F, or by SPECIAL.
OPERATORS = {"add": "+", "sub": "-", "mul": "*", "div": "/", "pow": "**", "eq": "=="}
METHODS = {"view": "reshape", "transpose": "transpose", "permute": "permute", "expand": "expand",
           "unsqueeze": "unsqueeze", "squeeze": "squeeze"}
IN_TORCH = {"flatten", "matmul", "relu", "sigmoid", "tanh", "sqrt", "rsqrt", "abs", "neg", "exp",
            "log", "sin", "cos", "clamp", "minimum", "maximum", "sum", "mean", "max", "min",
            "argmax", "argmin", "norm", "logsumexp", "cumsum", "cumprod", "flip", "tril", "triu",
            "masked_fill", "index_select"}
IN_F = {"linear", "scaled_dot_product_attention", "pad", "gelu", "softplus", "leaky_relu",
        "hardtanh", "elu", "selu", "silu", "mish", "hardsigmoid", "hardswish", "softmax",
        "log_softmax", "layer_norm", "group_norm", "instance_norm", "batch_norm",
        "cross_entropy", "smooth_l1_loss", "kl_div"}
IN_F |= {op + axes for axes in ("1d", "2d", "3d")
         for op in ("conv", "conv_transpose", "max_pool", "avg_pool", "adaptive_avg_pool")}
TERMS = ("smooth_l1_loss", "kl_div")  # losses whose terms are summed by an op of their own
BOUNDS = {"minimum": "max", "maximum": "min"}  # what of clamp does it with a number
RECURRENT = {"lstm": 2, "gru": 1}  # and how many states a cell has
TYPES = {"f32": "float32", "f16": "float16", "bf16": "bfloat16", "i64": "int64", "i32": "int32",
         "bool": "bool"}
BYTES = {"f32": 4, "f16": 2, "bf16": 2, "i64": 8, "i32": 4, "bool": 1}
PRODUCTS = {"matmul", "linear", "scaled_dot_product_attention"}
CUDNN = {op for op in IN_F if op.startswith("conv")} | set(RECURRENT)  # what cuDNN's flag is for


def parse(line):
    """Results, op, operands and attributes of a graph line; attributes as Python text."""
    left, right = line.split(" = ", 1)
    results = re.findall(r"(\w+)\[[^\]]*\]", left)
    op, inside = re.fullmatch(r"(\w+)\((.*)\)", right.strip()).groups()
    operands, _, attributes = inside.partition(";")
    operands = [x.strip() for x in operands.split(",")]
    pairs = re.findall(r'(\w+)=(\[[^\]]*\]|"[^"]*"|[^,\s]+)', attributes)
    return results, op, operands, {key: literal(value) for key, value in pairs}


def literal(text):
    """A value of a task file as Python writes it: true, [2,3], 1e-05, -inf, mean, "text"."""
    if text in ("true", "false"):
        return text.capitalize()
    if text in ("inf", "-inf"):
        return 'float("%s")' % text
    return repr(text) if re.fullmatch(r"[A-Za-z_]\w*", text) else text


def part(dim, attributes):
    """The index of a slice: `:, 1:-1:2` along axis 1, `..., 1:` along axis -1."""
    places = "%s:%s" % (attributes.get("start", ""), attributes.get("end", ""))
    if "step" in attributes:
        places += ":" + attributes["step"]
    return ", ".join([":"] * dim + [places]) if dim >= 0 else ", ".join(["...", places] + [":"] * ~dim)


def listed(operands, attributes):
    return "torch.cat([%s], dim=%s)" % (", ".join(operands), attributes["dim"])


def constant(_, attributes):
    dtype = TYPES[attributes.get("dtype", "'f32'").strip("'")]
    return "torch.full(%s, %s, dtype=torch.%s, device=\"cuda\")" % (
        attributes["shape"], attributes["value"], dtype)


def recurrent(op, operands, attributes):
    """nn.LSTM and nn.GRU are calls of this: x, the states, the weights, and without dropout."""
    weights = 1 + RECURRENT[op]
    states = "(%s)" % ", ".join(operands[1:weights]) if weights > 2 else operands[1]
    layers, both, first = (attributes.get(key, value) for key, value in (
        ("num_layers", "1"), ("bidirectional", "False"), ("batch_first", "False")))
    return "torch.%s(%s, %s, (%s), True, %s, 0.0, False, %s, %s)" % (
        op, operands[0], states, ", ".join(operands[weights:]), layers, both, first)


SPECIAL = {
    "slice": lambda x, a: x[0] + "[%s]" % part(int(a["dim"]), a),
    "cat": listed,
    "full": constant,
    "lstm": lambda x, a: recurrent("lstm", x, a),
    "gru": lambda x, a: recurrent("gru", x, a),
}
OPS = IN_TORCH | IN_F | set(OPERATORS) | set(METHODS) | set(SPECIAL)


def expression(op, operands, attributes):
    """The right side of a graph line as a PyTorch user writes it."""
    if op not in OPS:
        raise ValueError("op %s has no form here; add it to harness/pytorch/forms.py" % op)
    if op in SPECIAL:
        return SPECIAL[op](operands, attributes)
    if op in OPERATORS:
        return "%s %s %s" % (operands[0], OPERATORS[op], operands[1])
    if op in METHODS:
        values = ", ".join(value.strip("[]") for value in attributes.values())
        return "%s.%s(%s)" % (operands[0], METHODS[op], values)
    if op in BOUNDS and not all(x.isidentifier() for x in operands):
        x, number = sorted(operands, key=str.isidentifier, reverse=True)
        return "torch.clamp(%s, %s=%s)" % (x, BOUNDS[op], number)
    if op in TERMS:
        attributes["reduction"] = repr("none")
    if op == "flip":
        attributes = {"dims": "[%s]" % attributes["dim"]}
    if op == "layer_norm":
        attributes["normalized_shape"] = attributes.pop("shape")
    if op == "batch_norm":
        attributes.setdefault("training", "True")
        attributes.update(running_mean="None", running_var="None")
    named = ["%s=%s" % pair for pair in attributes.items()]
    return "%s.%s(%s)" % ("torch" if op in IN_TORCH else "F", op, ", ".join(operands + named))


def tensors(task):
    """The inputs and parameters of a task; a file need not have the latter."""
    return task["inputs"] + task.get("parameters", [])


def source(task):
    """The function of a task.  A value is dropped after its last use, as a chain of calls does."""
    lines = [parse(line) for line in task["graph"]]
    text = "def task(%s):\n" % ", ".join(x["name"] for x in tensors(task))
    uses = [{x.split("=")[-1] for x in line[2]} | set(line[0]) for line in lines]
    last = {x: i for i, names in enumerate(uses + [task["outputs"]]) for x in names}
    made = set()
    for i, (results, op, operands, attributes) in enumerate(lines):
        text += "    %s = %s\n" % (", ".join(results), expression(op, operands, attributes))
        made.update(results)
        dead = sorted(x for x in uses[i] & made if last[x] == i)
        if dead:
            text += "    del %s\n" % ", ".join(dead)
    return text + "    return %s\n" % ", ".join(task["outputs"])


def function(task):
    """It, to be called."""
    import torch
    import torch.nn.functional as F
    scope = {"torch": torch, "F": F}
    exec(compile(source(task), task["task"], "exec"), scope)
    return scope["task"]


def effect(task, flags):
    """What flags change in a task: whether TF32 is in its products, and in its convolutions."""
    ops = {parse(line)[1] for line in task["graph"]}
    single = all(x["dtype"] not in ("f16", "bf16") for x in tensors(task))
    products, convolutions = FLAGS[flags]
    return (bool(single and products and ops & PRODUCTS),
            bool(single and convolutions and ops & CUDNN))


def size(task):
    """Bytes of a task's inputs and parameters."""
    return sum(math.prod(x["shape"]) * BYTES[x["dtype"]] for x in tensors(task))


def first_words(error):
    return " ".join(str(error).split())[:300]
