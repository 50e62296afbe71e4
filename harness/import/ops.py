"""What PyTorch's operations are in a task's graph.

LINES   an ATen op as a graph line: operands, and after a semicolon attributes, each by the name
        that the argument has in ATen's schema.  `word=argument` renames; `*list` is every tensor
        of a list; `@` is the shape of the result.  Every argument that a line does not name must
        have its default.
MADE_OF an ATen op as other ones: a Python function of its arguments, which is traced in its turn.
SAME    ops that give their operand back."""

import math

import torch
import torch.nn.functional as F

from record import Refused

LINES = {
    # the same elements, seen otherwise
    "view": "view(self; shape=size)", "reshape": "view(self; shape)",
    "_unsafe_view": "view(self; shape=size)", "squeeze.dim": "squeeze(self; dim)",
    "squeeze.dims": "squeeze(self; dim)", "unsqueeze": "unsqueeze(self; dim)",
    "flatten.using_ints": "flatten(self; start_dim, end_dim)", "permute": "permute(self; dims)",
    "expand": "expand(self; shape=@)",
    "transpose.int": "transpose(self; dims=[dim0,dim1])", "t": "transpose(self; dims=[0,1])",
    # elements put together, replaced or chosen
    "cat": "cat(*tensors; dim)", "tril": "tril(self; diagonal)", "triu": "triu(self; diagonal)",
    "masked_fill.Scalar": "masked_fill(self, mask=mask; value)",
    "eq.Scalar": "eq(self, other)", "eq.Tensor": "eq(self, other)",
    "flip": "flip(self; dim=dims)",
    "index_select": "index_select(self, index=index; dim)",
    # products
    "matmul": "matmul(self, other)", "mm": "matmul(self, mat2)", "bmm": "matmul(self, mat2)",
    "linear": "linear(input, weight=weight, bias=bias)",
    "scaled_dot_product_attention":
        "scaled_dot_product_attention(query, key=key, value=value; dropout_p, is_causal, scale)",
    # windows
    **{"conv%dd" % n: "conv%dd(input, weight=weight, bias=bias; stride, padding, dilation, groups)" % n
       for n in (1, 2, 3)},
    **{"conv_transpose%dd%s" % (n, "" if n == 1 else ".input"):
       "conv_transpose%dd(input, weight=weight, bias=bias; stride, padding, output_padding, "
       "dilation, groups)" % n for n in (1, 2, 3)},
    **{"max_pool%dd" % n: "max_pool%dd(self; kernel_size, stride, padding, dilation, ceil_mode)" % n
       for n in (1, 2, 3)},
    **{"avg_pool%dd" % n:
       "avg_pool%dd(self; kernel_size, stride, padding, ceil_mode, count_include_pad)" % n
       for n in (1, 2, 3)},
    **{"adaptive_avg_pool%dd" % n: "adaptive_avg_pool%dd(self; output_size)" % n for n in (1, 2, 3)},
    # elementwise
    **{op: op + "(self)" for op in (
        "relu sigmoid tanh silu mish hardsigmoid hardswish selu sqrt rsqrt abs neg exp log sin cos").split()},
    "gelu": "gelu(self; approximate)", "softplus": "softplus(self)", "elu": "elu(self; alpha)",
    "leaky_relu": "leaky_relu(self; negative_slope)", "hardtanh": "hardtanh(self; min_val, max_val)",
    "clamp": "clamp(self; min, max)", "clamp.Tensor": "clamp(self; min, max)", "clamp_min": "clamp(self; min)", "clamp_max": "clamp(self; max)",
    "pow.Tensor_Scalar": "pow(self, exponent)", "square": "pow(self, 2)",
    **{op + ".Tensor": op + "(self, other)" for op in ("add", "sub", "mul", "div")},
    **{op + ".Scalar": op + "(self, other)" for op in ("add", "sub", "mul", "div")},
    "rsub.Scalar": "sub(other, self)", "multiply.Tensor": "mul(self, other)",
    "divide.Tensor": "div(self, other)", "subtract.Tensor": "sub(self, other)",
    "minimum": "minimum(self, other)", "min.other": "minimum(self, other)",
    "maximum": "maximum(self, other)", "max.other": "maximum(self, other)",
    # normalisations
    "layer_norm": "layer_norm(input, weight=weight, bias=bias; shape=normalized_shape, eps)",
    "group_norm": "group_norm(input, weight=weight, bias=bias; num_groups, eps)",
    "instance_norm": "instance_norm(input, weight=weight, bias=bias; use_input_stats, eps)",
    "batch_norm": "batch_norm(input, weight=weight, bias=bias; training, eps)",
    # along one axis, or over several
    "softmax.int": "softmax(self; dim)", "log_softmax.int": "log_softmax(self; dim)",
    "logsumexp": "logsumexp(self; dim, keepdim)", "cumsum": "cumsum(self; dim)",
    "cumprod": "cumprod(self; dim)", "sum": "sum(self)", "mean": "mean(self)",
    "sum.dim_IntList": "sum(self; dim, keepdim)", "mean.dim": "mean(self; dim, keepdim)",
    "max.dim": "max(self; dim, keepdim)", "min.dim": "min(self; dim, keepdim)",
    "argmax": "argmax(self; dim, keepdim)", "argmin": "argmin(self; dim, keepdim)",
    "linalg_vector_norm": "norm(self; dim, keepdim, p=ord)",
    "lstm": "lstm(input, *hx, *params; num_layers, bidirectional, batch_first)",
    "gru": "gru(input, hx, *params; num_layers, bidirectional, batch_first)",
    # losses
    "smooth_l1_loss": "smooth_l1_loss(self, target=target; beta)",
    "kl_div": "kl_div(self, target=target)",
    "cross_entropy_loss":
        "cross_entropy(self, target=target; ignore_index, reduction, label_smoothing)",
}

# Arguments that change no value, or only state that no output shows.
IGNORED = {"memory_format", "layout", "device", "pin_memory", "non_blocking", "copy", "momentum",
           "running_mean", "running_var", "cudnn_enabled", "implicit", "requires_grad", "reduction", "has_biases",
           "dropout", "train"}
# Lists that are one number where all of several entries agree.
WINDOW = {"kernel_size", "stride", "padding", "dilation", "output_padding", "output_size"}

SAME = {"contiguous", "clone", "detach", "alias", "lift_fresh_copy", "lift_fresh", "to", "_to_copy",
        "expand", "view", "reshape", "flatten", "squeeze"}
# Ops whose work nobody counts.
VIEWS = {"view", "slice", "full", "squeeze", "unsqueeze", "permute", "transpose", "expand", "flatten"}


def permuted(x, dims):
    return x if list(dims) == list(range(len(dims))) else x.permute(dims)


def replaced(shape, dim, sizes):
    dim %= len(shape)
    return shape[:dim] + list(sizes) + shape[dim + 1:]


def moved(x, source, to):
    dims = list(range(x.dim()))
    axis = dims.pop(source)
    dims.insert(to % x.dim(), axis)
    return x.permute(dims)


def windows(x, dim, size, step):
    """Tensor.unfold: the windows along an axis, whose elements become the last axis."""
    dim %= x.dim()
    n = (x.shape[dim] - size) // step + 1
    if size == step:
        x = x if n * size == x.shape[dim] else x.narrow(dim, 0, n * size)
        x = x.view(replaced(list(x.shape), dim, [n, size]))
    else:
        x = torch.stack([x.narrow(dim, i * step, size) for i in range(n)], dim)
    return moved(x, dim + 1, -1)


def chosen(x, indices):
    """An index of whole rows along one axis."""
    at = [i for i, index in enumerate(indices) if index is not None]
    if len(at) != 1:
        raise Refused("an index with several tensors is no op of a task; flatten it to one axis")
    index = indices[at[0]]
    rows = torch.index_select(x, at[0], index.flatten() if index.dim() != 1 else index)
    return rows if index.dim() == 1 else rows.view(replaced(list(x.shape), at[0], index.shape))


def shifted(x, shifts, dims):
    """roll: the end of each axis comes first."""
    if not dims:
        return shifted(x.flatten(), shifts, [0]).view(x.shape)
    for by, d in zip(shifts, dims):
        n = x.shape[d]
        if by % n:
            x = torch.cat([x.narrow(d, n - by % n, by % n), x.narrow(d, 0, n - by % n)], d)
    return x


def split(x, sizes, dim):
    starts = [sum(sizes[:i]) for i in range(len(sizes))]
    return [torch.ops.aten.slice(x, dim, start, start + n) for start, n in zip(starts, sizes)]


def even(x, size, dim):
    n = x.shape[dim]
    return split(x, [min(size, n - i) for i in range(0, n, size)], dim)


def attention(q, k, v, mask, causal, scale):
    """Attention with a mask, as products and a softmax."""
    scores = torch.matmul(q, k.transpose(-2, -1)) * (q.shape[-1] ** -0.5 if scale is None else scale)
    if causal:
        later = torch.ones(q.shape[-2], k.shape[-2], dtype=torch.bool).triu(1)
        scores = scores.masked_fill(later, -math.inf)
    if mask is not None:
        scores = scores.masked_fill(~mask, -math.inf) if mask.dtype == torch.bool else scores + mask
    return torch.matmul(torch.softmax(scores, -1), v)


def einsum(equation, operands):
    """Two operands at a time, from the left: axes are summed once no later operand has them."""
    left, arrow, right = equation.replace(" ", "").partition("->")
    terms = left.split(",")
    if not arrow or "." in equation or any(len(set(t)) < len(t) for t in terms):
        raise Refused("einsum without ->, with ... or with a letter twice in a term is no op of a task")
    axes, x = terms[0], operands[0]
    for i in range(1, len(terms)):
        keep = set("".join(terms[i + 1:])) | set(right)
        axes, x = pair(axes, x, terms[i], operands[i], keep)
    gone = [i for i, a in enumerate(axes) if a not in right]
    if gone:
        x, axes = x.sum(gone), "".join(a for a in axes if a in right)
    return permuted(x, [axes.index(a) for a in right])


def pair(p, x, q, y, keep):
    """One product of einsum: (axes of the result, result)."""
    for letters, which in ((p, q), (q, p)):
        lone = [a for a in letters if a not in which and a not in keep]
        if lone:  # summed before the product
            if letters is p:
                x, p = x.sum([p.index(a) for a in lone]), "".join(a for a in p if a not in lone)
            else:
                y, q = y.sum([q.index(a) for a in lone]), "".join(a for a in q if a not in lone)
    size = dict(zip(p, x.shape)) | dict(zip(q, y.shape))
    batch = [a for a in p if a in q and a in keep]
    inner = [a for a in p if a in q and a not in keep]
    rows, columns = [a for a in p if a not in q], [a for a in q if a not in p]

    def shape(groups):
        return [math.prod(size[a] for a in g) for g in groups]
    x = permuted(x, [p.index(a) for a in batch + rows + inner])
    y = permuted(y, [q.index(a) for a in batch + inner + columns])
    if not inner:  # an outer product
        x = x.reshape([size[a] for a in batch + rows] + [1] * len(columns))
        y = y.reshape([size[a] for a in batch] + [1] * len(rows) + [size[a] for a in columns])
        return "".join(batch + rows + columns), x * y
    b = [[a] for a in batch] if len(batch) <= 1 else [batch]
    x = x.reshape(shape(b + [rows, inner])) if [len(rows), len(inner)] != [1, 1] or len(batch) > 1 else x
    y = y.reshape(shape(b + [inner, columns])) if [len(inner), len(columns)] != [1, 1] or len(batch) > 1 else y
    x = torch.matmul(x, y)
    if len(batch) > 1 or [len(rows), len(columns)] != [1, 1]:
        x = x.reshape([size[a] for a in batch + rows + columns])
    return "".join(batch + rows + columns), x


def vector_product(a, b):
    """matmul where an operand has one axis."""
    x = a.unsqueeze(0) if a.dim() == 1 else a
    y = b.unsqueeze(1) if b.dim() == 1 else b
    z = torch.matmul(x, y)
    z = z.squeeze(-1) if b.dim() == 1 else z
    return z.squeeze(-1 if b.dim() == 1 else -2) if a.dim() == 1 else z


def reduced(loss, reduction):
    return loss if reduction == 0 else loss.mean() if reduction == 1 else loss.sum()


def normal(x, a):
    return x / torch.linalg.vector_norm(x, 2, a["dim"], True).clamp(min=a["eps"])


def distance(a, other):
    return torch.linalg.vector_norm(a["anchor"] - a[other] + a["eps"], a["p"], -1)


def same_padding(a, conv):
    """Padding given as a word."""
    if a["padding"] == "valid":
        return conv(a["input"], a["weight"], a["bias"], a["stride"], 0, a["dilation"], a["groups"])
    total = [d * (k - 1) for d, k in zip(a["dilation"], a["weight"].shape[2:])]
    if any(t % 2 for t in total):
        sides = [s for t in reversed(total) for s in (t // 2, t - t // 2)]
        return conv(F.pad(a["input"], sides), a["weight"], a["bias"], a["stride"], 0, a["dilation"], a["groups"])
    return conv(a["input"], a["weight"], a["bias"], a["stride"], [t // 2 for t in total], a["dilation"], a["groups"])


MADE_OF = {
    "numpy_T": lambda a: a["self"].t() if a["self"].dim() == 2 else
               a["self"].permute(list(range(a["self"].dim()))[::-1]),
    "mT": lambda a: a["self"].transpose(-1, -2),
    "squeeze": lambda a: a["self"].view([n for n in a["self"].shape if n != 1]),
    "view_as": lambda a: a["self"].view(a["other"].shape),
    "reshape_as": lambda a: a["self"].reshape(a["other"].shape),
    "expand_as": lambda a: a["self"].expand(a["other"].shape),
    "unflatten.int": lambda a: a["self"].view(replaced(list(a["self"].shape), a["dim"], a["sizes"])),
    "unfold": lambda a: windows(a["self"], a["dimension"], a["size"], a["step"]),
    "index.Tensor": lambda a: chosen(a["self"], a["indices"]),
    "embedding": lambda a: chosen(a["weight"], [a["indices"]]),
    "movedim.int": lambda a: moved(a["self"], a["source"], a["destination"]),
    "select.int": lambda a: torch.ops.aten.slice(
        a["self"], a["dim"], a["index"] % a["self"].shape[a["dim"]],
        a["index"] % a["self"].shape[a["dim"]] + 1).squeeze(a["dim"]),
    "narrow": lambda a: torch.ops.aten.slice(a["self"], a["dim"], a["start"], a["start"] + a["length"]),
    "split.Tensor": lambda a: even(a["self"], a["split_size"], a["dim"]),
    "split_with_sizes": lambda a: split(a["self"], a["split_sizes"], a["dim"]),
    "split.sizes": lambda a: split(a["self"], a["split_size"], a["dim"]),
    "chunk": lambda a: even(a["self"], -(-a["self"].shape[a["dim"]] // a["chunks"]), a["dim"]),
    "unbind.int": lambda a: [a["self"].select(a["dim"], i) for i in range(a["self"].shape[a["dim"]])],
    "stack": lambda a: torch.cat([x.unsqueeze(a["dim"]) for x in a["tensors"]], a["dim"]),
    "roll": lambda a: shifted(a["self"], a["shifts"], a["dims"]),
    "broadcast_tensors": lambda a: [x.expand(torch.broadcast_shapes(*(y.shape for y in a["tensors"])))
                                    for x in a["tensors"]],
    "repeat": lambda a: repeated(a["self"], a["repeats"]),
    "bitwise_not": lambda a: a["self"] == 0, "logical_not": lambda a: a["self"] == 0,
    "ne.Scalar": lambda a: (a["self"] == a["other"]) == 0,
    "ne.Tensor": lambda a: (a["self"] == a["other"]) == 0,
    "rsub.Tensor": lambda a: a["other"] - a["self"] * a["alpha"],
    "addmm": lambda a: a["self"] * a["beta"] + torch.mm(a["mat1"], a["mat2"]) * a["alpha"],
    "baddbmm": lambda a: a["self"] * a["beta"] + torch.bmm(a["batch1"], a["batch2"]) * a["alpha"],
    "diag": lambda a: a["self"].expand(a["self"].shape[0], -1).tril().triu(),
    "prod.dim_int": lambda a: a["self"].cumprod(a["dim"]).narrow(a["dim"], a["self"].shape[a["dim"]] - 1, 1)
                    if a["keepdim"] else a["self"].cumprod(a["dim"]).select(a["dim"], -1),
    "cosine_similarity": lambda a: (normal(a["x1"], a) * normal(a["x2"], a)).sum(a["dim"]),
    "einsum": lambda a: einsum(a["equation"], a["tensors"]),
    "dot": lambda a: vector_product(a["self"], a["tensor"]),
    "mv": lambda a: vector_product(a["self"], a["vec"]),
    "softsign": lambda a: a["self"] / (1 + a["self"].abs()),
    "log_sigmoid": lambda a: -F.softplus(-a["self"]),
    "relu6": lambda a: F.hardtanh(a["self"], 0, 6),
    "glu": lambda a: (lambda h: h[0] * torch.sigmoid(h[1]))(a["self"].chunk(2, a["dim"])),
    "triplet_margin_loss": lambda a: reduced(
        torch.clamp(a["margin"] + distance(a, "positive") - distance(a, "negative"), min=0), a["reduction"]),
    "mse_loss": lambda a: reduced((a["self"] - a["target"]) ** 2, a["reduction"]),
    "l1_loss": lambda a: reduced((a["self"] - a["target"]).abs(), a["reduction"]),
    "conv1d.padding": lambda a: same_padding(a, F.conv1d),
    "conv2d.padding": lambda a: same_padding(a, F.conv2d),
    "conv3d.padding": lambda a: same_padding(a, F.conv3d),
}


def repeated(x, repeats):
    """Copies along each axis."""
    x = x.reshape([1] * (len(repeats) - x.dim()) + list(x.shape))
    for d, n in enumerate(repeats):
        if n > 1:
            x = torch.cat([x] * n, d)
    return x


def special(name, a):
    """The entry of MADE_OF for these arguments, or None: what is another op only for some."""
    if name in ("lstm", "gru") and (not a["has_biases"] or a["dropout"] and a["train"]):
        raise Refused("%s without biases, or with live dropout between its layers, is no op of a task" % name)
    if name == "diag" and (a["self"].dim() != 1 or a["diagonal"]):
        raise Refused("diag of anything but a vector, or beside the diagonal, is no op of a task")
    if name == "bitwise_not" and a["self"].dtype != "bool":
        raise Refused("bitwise_not of anything but a mask is no op of a task")
    if name == "triplet_margin_loss" and a["swap"]:
        raise Refused("triplet_margin_loss with swap is no op of a task")
    if name == "matmul" and min(a["self"].dim(), a["other"].dim()) == 1:
        return lambda a: vector_product(a["self"], a["other"])
    if name in ("add.Tensor", "sub.Tensor") and a["alpha"] != 1:
        return lambda a: getattr(torch, name[:3])(a["self"], a["other"] * a["alpha"])
    if name == "softplus" and a["beta"] != 1 and a["threshold"] == 20:
        return lambda a: F.softplus(a["self"] * a["beta"]) / a["beta"]
    if name == "scaled_dot_product_attention" and (a["attn_mask"] is not None or a["is_causal"]):
        if a["dropout_p"]:
            raise Refused("attention with dropout is no op of a task")
        return lambda a: attention(*(a[k] for k in ("query", "key", "value", "attn_mask", "is_causal", "scale")))
    if name in ("smooth_l1_loss", "kl_div") and a["reduction"] != 0:
        loss = getattr(torch.ops.aten, name)
        rest = {k: v for k, v in a.items() if k not in ("self", "target", "reduction")}
        return lambda a: reduced(loss(a["self"], a["target"], reduction=0, **rest), a["reduction"])
    return MADE_OF.get(name)
