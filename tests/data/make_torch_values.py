#!/usr/bin/env python3
"""What PyTorch computes, op by op, for tests/unit/define/test_define.c.

    python3 make_torch_values.py torch_values.json

Run by hand, on any machine with PyTorch (a GPU is neither needed nor used), when
an op is added.  Every case is a complete task of one op, in the syntax of the
task files, with small inputs and the outputs that PyTorch gives in float64 on
the CPU.  Tensors say f32 because task files have no float64; the values are used
as they stand.  NaN and infinities are written as strings: JSON has no such
numbers.  The seed is fixed, and inputs are in the file: nothing depends on it.
"""

import json
import platform
import sys

import torch
import torch.nn.functional as F

NAN, INF = float("nan"), float("inf")
TINY = 5e-324  # the smallest denormal
PARAMETERS = ("weight", "bias")

cases = []


def normal(*shape):
    """Normal values of four decimals, which keeps the file small."""
    return torch.round(torch.randn(*shape, dtype=torch.float64) * 1e4) / 1e4


def positive(*shape):
    return normal(*shape).abs() + 0.0625


def whole(low, high, *shape):
    """Integers low..high-1 as float64: full of ties."""
    return torch.randint(low, high, shape).to(torch.float64)


def values(*rows):
    return torch.tensor(rows, dtype=torch.float64)


def flat(tensor):
    """The elements as JSON can hold them."""
    out = []
    for x in tensor.reshape(-1).tolist():
        if x != x:
            x = "nan"
        elif x in (INF, -INF):
            x = "inf" if x > 0 else "-inf"
        out.append(x)
    return out


def shape_of(tensor):
    return "[" + ",".join(str(n) for n in tensor.shape) + "]"


def declaration(name, tensor):
    if tensor.dtype == torch.int64:
        return {"name": name, "shape": list(tensor.shape), "dtype": "i64", "fill": "integers(0,1)"}
    return {"name": name, "shape": list(tensor.shape), "dtype": "f32", "fill": "normal(0,1)"}


def case(name, op, function, exact=False, **tensors):
    """Add a case: `op` is the right side of a graph line, `function` the same in
    PyTorch, of the tensors in their order.  exact: nothing is computed, only chosen or moved."""
    for tensor in tensors.values():
        assert tensor.dtype in (torch.float64, torch.int64), name
    results = function(*tensors.values())
    results = results if isinstance(results, tuple) else (results,)
    left = []
    for i, result in enumerate(results, 1):
        integer = result.dtype == torch.int64
        assert integer or result.dtype == torch.float64, name
        left.append("t%d%s%s" % (i, shape_of(result), ":i64" if integer else ""))
    order = [k for k in tensors if k not in PARAMETERS] + [k for k in tensors if k in PARAMETERS]
    task = {
        "schema": 1,
        "task": name,
        "suite": "torch",
        "inputs": [declaration(k, tensors[k]) for k in order if k not in PARAMETERS],
        "parameters": [declaration(k, tensors[k]) for k in order if k in PARAMETERS],
        "graph": [", ".join(left) + " = " + op],
        "outputs": ["t%d" % (i + 1) for i in range(len(results))],
    }
    assert name not in [c["task"]["task"] for c in cases], name
    cases.append(
        {
            "task": task,
            "exact": exact,
            "tensors": [flat(tensors[k]) for k in order],
            "outputs": [flat(result) for result in results],
        }
    )


def views():
    def view(name, op, function, x):
        case(name, op, function, True, x=x)

    x, y = normal(2, 3, 4), normal(2, 3, 2, 5)
    view("view_split", "view(x; shape=[2,2,6])", lambda x: x.view(2, 2, 6), x)
    view("view_rest", "view(x; shape=[4,-1])", lambda x: x.view(4, -1), x)
    view("transpose_2d", "transpose(x; dims=[0,1])", lambda x: x.transpose(0, 1), normal(3, 5))
    view("transpose_ends", "transpose(x; dims=[0,2])", lambda x: x.transpose(0, 2), x)
    view("transpose_negative", "transpose(x; dims=[-1,1])", lambda x: x.transpose(-1, 1), x)
    view("permute_3d", "permute(x; dims=[2,0,1])", lambda x: x.permute(2, 0, 1), x)
    view("permute_4d", "permute(x; dims=[0,-1,1,2])", lambda x: x.permute(0, -1, 1, 2), y)
    view("unsqueeze_front", "unsqueeze(x; dim=0)", lambda x: x.unsqueeze(0), x)
    view("unsqueeze_middle", "unsqueeze(x; dim=1)", lambda x: x.unsqueeze(1), x)
    view("unsqueeze_negative", "unsqueeze(x; dim=-1)", lambda x: x.unsqueeze(-1), x)
    view("squeeze_middle", "squeeze(x; dim=1)", lambda x: x.squeeze(1), normal(3, 1, 2))
    view("squeeze_negative", "squeeze(x; dim=-1)", lambda x: x.squeeze(-1), normal(3, 2, 1))
    view("flatten_all", "flatten(x)", lambda x: x.flatten(), x)
    view("flatten_from_1", "flatten(x; start_dim=1)", lambda x: x.flatten(1), x)
    view("flatten_between", "flatten(x; start_dim=1, end_dim=-2)", lambda x: x.flatten(1, -2), y)


def products():
    def matmul(name, a, b):
        case("matmul_" + name, "matmul(a, b)", torch.matmul, a=a, b=b)

    matmul("odd", normal(3, 5), normal(5, 7))
    matmul("one", normal(1, 1), normal(1, 1))
    matmul("row", normal(1, 6), normal(6, 1))
    matmul("batch", normal(2, 3, 4), normal(2, 4, 5))
    matmul("broadcast_left", normal(3, 4), normal(2, 4, 5))
    matmul("broadcast_right", normal(2, 3, 4), normal(4, 5))
    matmul("broadcast_both", normal(2, 1, 3, 4), normal(3, 4, 2))

    def linear(name, bias, *shape):
        w, b = normal(5, shape[-1]), normal(5)
        if bias:
            op = "linear(x, weight=weight, bias=bias)"
            case("linear_" + name, op, lambda x, weight, bias: F.linear(x, weight, bias),
                 x=normal(*shape), weight=w, bias=b)
        else:
            case("linear_" + name, "linear(x, weight=weight)",
                 lambda x, weight: F.linear(x, weight), x=normal(*shape), weight=w)

    linear("bias", True, 3, 7)
    linear("plain", False, 3, 7)
    linear("vector", True, 4)
    linear("batch", True, 2, 3, 4)

    def attention(name, q, k, v, attributes="", **options):
        op = "scaled_dot_product_attention(q, key=k, value=v%s)" % attributes
        case("attention_" + name, op,
             lambda q, k, v: F.scaled_dot_product_attention(q, k, v, **options), q=q, k=k, v=v)

    attention("odd", normal(2, 3, 5, 4), normal(2, 3, 7, 4), normal(2, 3, 7, 6))
    attention("three_axes", normal(2, 5, 3), normal(2, 4, 3), normal(2, 4, 3))
    attention("large_scores", 30 * normal(1, 2, 4, 3), 30 * normal(1, 2, 6, 3), normal(1, 2, 6, 3))
    attention("scale", normal(1, 2, 4, 3), normal(1, 2, 5, 3), normal(1, 2, 5, 3),
              "; scale=0.3", scale=0.3)


def convolutions():
    functions = {1: F.conv1d, 2: F.conv2d, 3: F.conv3d}

    def conv(name, x, weight, bias=None, **options):
        n = len(x) - 2
        tensors = {"x": normal(*x), "weight": normal(*weight)}
        op = "conv%dd(x, weight=weight" % n
        if bias:
            tensors["bias"] = normal(weight[0])
            op += ", bias=bias"
        attributes = ", ".join("%s=%s" % (k, str(v).replace(" ", "")) for k, v in options.items())
        op += ("; " if attributes else "") + attributes + ")"
        case("conv%dd_%s" % (n, name), op,
             lambda x, weight, bias=None: functions[n](x, weight, bias, **options), **tensors)

    conv("plain", (2, 3, 9), (4, 3, 3))
    conv("bias", (2, 3, 9), (4, 3, 4), True)
    conv("stride_dilation", (1, 2, 23), (3, 2, 3), stride=3, dilation=4)
    conv("groups", (2, 6, 8), (9, 2, 3), True, padding=2, groups=3)
    conv("depthwise", (2, 3, 8), (3, 1, 3), padding=1, groups=3)
    conv("list", (1, 2, 9), (2, 2, 3), stride=[2], padding=[1], dilation=[2])

    conv("plain", (2, 3, 6, 7), (4, 3, 3, 3))
    conv("bias", (1, 3, 5, 5), (2, 3, 2, 4), True)
    conv("one_by_one", (2, 5, 3, 4), (3, 5, 1, 1), True)
    conv("stride", (1, 2, 9, 8), (2, 2, 3, 3), stride=[2, 3], padding=1)
    conv("dilated", (1, 2, 9, 11), (3, 2, 3, 5), padding=[2, 4], dilation=[2, 3])
    conv("groups", (2, 4, 5, 5), (6, 2, 3, 3), True, padding=1, groups=2)
    conv("depthwise", (1, 4, 6, 6), (4, 1, 3, 3), stride=2, padding=1, groups=4)
    conv("depthwise_twice", (1, 3, 5, 5), (6, 1, 3, 3), True, groups=3)
    conv("padding_only", (1, 1, 1, 1), (1, 1, 3, 3), padding=2)
    conv("wide_filter", (1, 1, 19, 19), (2, 1, 11, 11), True, stride=4, padding=2)

    conv("plain", (1, 2, 4, 5, 4), (3, 2, 3, 3, 3))
    conv("bias", (2, 2, 3, 3, 3), (2, 2, 2, 2, 2), True)
    conv("mixed", (1, 2, 7, 6, 5), (2, 2, 3, 2, 3), stride=[2, 1, 3], padding=[1, 0, 2],
         dilation=[2, 3, 1])
    conv("groups", (1, 4, 3, 4, 3), (4, 2, 2, 3, 2), True, padding=1, groups=2)


def pooling():
    def pool(name, x, kernel_size, stride, padding=0, dilation=1):
        options = dict(kernel_size=kernel_size, stride=stride, padding=padding, dilation=dilation)
        attributes = ", ".join("%s=%s" % (k, str(v).replace(" ", "")) for k, v in options.items())
        case("max_pool2d_" + name, "max_pool2d(x; %s)" % attributes,
             lambda x: F.max_pool2d(x, **options), True, x=x)

    pool("halves", normal(2, 3, 6, 7), 2, 2)
    pool("padded", normal(1, 2, 7, 8), 3, 2, 1)
    pool("overlapping", normal(1, 2, 6, 5), 4, 1, 1)
    pool("lists", normal(1, 2, 8, 9), [2, 3], [1, 2], [1, 0], [2, 1])
    pool("dilated", normal(1, 1, 9, 9), 3, 2, 1, 2)
    pool("negative", -positive(1, 2, 4, 4), 3, 1, 1)  # padding must not win
    odd = normal(1, 1, 6, 6)
    odd[0, 0, 1, 2], odd[0, 0, 4, 4], odd[0, 0, 0, 5], odd[0, 0, 5, 0] = NAN, INF, -INF, TINY
    pool("nan_inf", odd, 2, 2)
    pool("nan_overlapping", odd, 3, 1, 1)
    pool("all_minus_inf", values([-INF, -INF], [-INF, -INF]).view(1, 1, 2, 2), 2, 2)


def elementwise():
    grid = torch.arange(-64, 65, dtype=torch.float64) / 8
    special = values(NAN, INF, -INF, 0.0, -0.0, TINY, -TINY, 1e-310, -1e-310, 1e-40, 1.5, -1.5)
    tame = values(NAN, INF, 0.0, -0.0, TINY, -TINY, 1e-310, 1e-40, 1.5, -1.5)
    far = values(-800.0, -100.0, -38.0, -19.5, 19.9375, 20.0, 20.0625, 38.0, 100.0, 800.0)

    def unary(name, function, attributes="", exact=False, odd=special, **inputs):
        op = "%s(x%s)" % (name, attributes)
        name += "_tanh" if "tanh" in attributes else ""
        name += "_slope" if "slope" in attributes else ""
        name += "_between" if "min_val" in attributes else ""
        for kind, x in dict(grid=grid, special=odd, **inputs).items():
            case(name + "_" + kind, op, function, exact, x=x)

    unary("relu", F.relu, exact=True)
    unary("gelu", F.gelu, odd=tame, far=far)
    unary("gelu", lambda x: F.gelu(x, approximate="tanh"), "; approximate=tanh", odd=tame, far=far)
    unary("sigmoid", torch.sigmoid, far=far)
    unary("tanh", torch.tanh, far=far)
    unary("softplus", F.softplus, far=far)
    unary("leaky_relu", F.leaky_relu)
    unary("leaky_relu", lambda x: F.leaky_relu(x, 0.2), "; negative_slope=0.2")
    unary("hardtanh", F.hardtanh, exact=True)
    unary("hardtanh", lambda x: F.hardtanh(x, -0.5, 6), "; min_val=-0.5, max_val=6", exact=True)
    unary("sqrt", torch.sqrt)
    for name, y in dict(zero=0, one=1, square=2, cube=3, inverse=-1, inverse_square=-2).items():
        case("pow_" + name, "pow(x, %d)" % y, lambda x: x ** y, x=normal(3, 5))
    for name, y in dict(root=0.5, inverse_root=-0.5, fraction=1.7, negative=-2.3).items():
        case("pow_" + name, "pow(x, %s)" % y, lambda x: x ** y, x=positive(3, 5))
    case("pow_special_square", "pow(x, 2)", lambda x: x ** 2, x=special)
    case("pow_special_root", "pow(x, 0.5)", lambda x: x ** 0.5, x=special)
    case("pow_special_zero", "pow(x, 0)", lambda x: x ** 0, x=special)
    case("pow_fraction_of_negative", "pow(x, 1.5)", lambda x: x ** 1.5, x=values(-1.0, 0.0, 4.0))


def binary():
    functions = {"add": torch.add, "sub": torch.sub, "mul": torch.mul, "div": torch.div}
    for name, f in functions.items():
        op = name + "(x, y)"
        case(name + "_same", op, f, x=normal(3, 5), y=normal(3, 5))
        case(name + "_column", op, f, x=normal(2, 3, 4), y=normal(3, 1))
        case(name + "_first_grows", op, f, x=normal(4), y=normal(2, 3, 4))
        case(name + "_both_grow", op, f, x=normal(1, 3, 1), y=normal(2, 1, 4))
        case(name + "_scalar_tensor", op, f, x=normal(2, 3), y=normal(1))
        case(name + "_number", name + "(x, 2.5)", lambda x: f(x, 2.5), x=normal(2, 3))
        case(name + "_square", name + "(x, x)", lambda x: f(x, x), x=normal(2, 3))
    case("sub_from_number", "sub(1, x)", lambda x: 1 - x, x=normal(2, 3))
    case("div_number_by", "div(-3, x)", lambda x: -3 / x, x=normal(2, 3))
    case("div_by_zero", "div(x, y)", torch.div, x=values(1.0, -1.0, 0.0, INF, NAN),
         y=values(0.0, 0.0, 0.0, INF, 1.0))


def norms():
    affine = ", weight=weight, bias=bias"

    def layer(name, x, shape, weight=False, bias=False, eps=None):
        tensors = {"x": x}
        op = "layer_norm(x"
        if weight:
            tensors["weight"] = normal(*shape)
            op += ", weight=weight"
        if bias:
            tensors["bias"] = normal(*shape)
            op += ", bias=bias"
        op += "; shape=%s%s)" % (str(list(shape)).replace(" ", ""), ", eps=%g" % eps if eps else "")
        case("layer_norm_" + name, op,
             lambda x, weight=None, bias=None: F.layer_norm(x, shape, weight, bias, eps or 1e-5),
             **tensors)

    layer("last", normal(2, 3, 5), (5,))
    layer("two_axes", normal(2, 3, 5), (3, 5), True, True)
    layer("three_axes", normal(2, 2, 3, 4), (2, 3, 4), True, True, 1e-5)
    layer("weight_only", normal(4, 7), (7,), True)
    layer("eps", normal(4, 7), (7,), True, True, 0.5)
    layer("offset", normal(3, 9) + 100, (9,))
    layer("constant", torch.full((2, 4), 2.0, dtype=torch.float64), (4,), True, True)

    def group(name, groups, weighted, *shape):
        tensors = {"x": normal(*shape)}
        if weighted:
            tensors.update(weight=normal(shape[1]), bias=normal(shape[1]))
        op = "group_norm(x%s; num_groups=%d, eps=1e-05)" % (affine if weighted else "", groups)
        case("group_norm_" + name, op,
             lambda x, weight=None, bias=None: F.group_norm(x, groups, weight, bias), **tensors)

    group("three", 3, True, 2, 6, 3, 2)
    group("plain", 2, False, 2, 4, 5)
    group("one", 1, True, 2, 3, 4)
    group("each", 4, True, 2, 4, 5)
    group("two_axes", 2, True, 3, 8)
    group("five_axes", 2, True, 1, 4, 2, 3, 2)

    def instance(name, weighted, *shape):
        tensors = {"x": normal(*shape)}
        if weighted:
            tensors.update(weight=normal(shape[1]), bias=normal(shape[1]))
        op = "instance_norm(x%s; use_input_stats=true, momentum=0.1, eps=1e-05)"
        case("instance_norm_" + name, op % (affine if weighted else ""),
             lambda x, weight=None, bias=None: F.instance_norm(x, weight=weight, bias=bias),
             **tensors)

    instance("plain", False, 2, 3, 4, 5)
    instance("weighted", True, 2, 3, 4, 5)
    instance("three_axes", False, 2, 3, 7)
    instance("five_axes", True, 1, 2, 2, 3, 2)

    def batch(name, weighted, eps, *shape):
        tensors = {"x": normal(*shape)}
        if weighted:
            tensors.update(weight=normal(shape[1]), bias=normal(shape[1]))
        op = "batch_norm(x%s; training=true, momentum=0.1, eps=%g)"
        case("batch_norm_" + name, op % (affine if weighted else "", eps),
             lambda x, weight=None, bias=None: F.batch_norm(
                 x, None, None, weight, bias, training=True, eps=eps), **tensors)

    batch("two_axes", True, 1e-5, 5, 3)
    batch("plain", False, 1e-5, 2, 3, 4, 5)
    batch("weighted", True, 1e-5, 2, 3, 4, 5)
    batch("three_axes", True, 1e-3, 3, 2, 7)
    batch("five_axes", True, 1e-5, 2, 3, 2, 2, 3)


def softmaxes():
    def softmax(name, dim, x):
        case("softmax_" + name, "softmax(x; dim=%d)" % dim, lambda x: torch.softmax(x, dim), x=x)

    softmax("last", -1, normal(3, 7))
    softmax("first", 0, normal(4, 3))
    softmax("middle", 1, normal(2, 5, 3))
    softmax("vector", 0, normal(9))
    softmax("one", 1, normal(4, 1))
    softmax("large", 1, 1000 * normal(3, 5))
    softmax("ties", 1, whole(-2, 3, 4, 6))
    softmax("special", 1, values([NAN, 1.0, 2.0, 3.0], [INF, 1.0, 2.0, 3.0], [-INF, 1.0, 2.0, 3.0],
                                 [INF, INF, 0.0, 0.0], [-INF] * 4, [INF, -INF, NAN, 0.0],
                                 [TINY, -TINY, 1e-310, 0.0], [0.0, -0.0, 1e-40, 0.0]))


def reductions():
    for name, f in (("sum", torch.sum), ("mean", torch.mean)):
        def reduce(kind, attributes, *args, x, **options):
            op = "%s(x%s)" % (name, attributes)
            case("%s_%s" % (name, kind), op, lambda x: f(x, *args, **options), x=x)

        x = normal(2, 3, 5)
        reduce("all", "", x=x)
        reduce("vector", "; dim=0", 0, x=normal(7))
        reduce("axis", "; dim=1", 1, x=x)
        reduce("axis_kept", "; dim=1, keepdim=true", 1, True, x=x)
        reduce("negative", "; dim=-1", -1, x=x)
        reduce("negative_kept", "; dim=-3, keepdim=true", -3, True, x=x)
        reduce("list", "; dim=[0,2]", [0, 2], x=x)
        reduce("list_kept", "; dim=[2,1], keepdim=true", [2, 1], True, x=x)
        reduce("list_negative", "; dim=[-1,-2]", [-1, -2], x=x)
        reduce("four_axes", "; dim=[2,3]", [2, 3], x=normal(2, 3, 4, 2))
        reduce("special", "; dim=1", 1,
               x=values([1.0, NAN, 2.0], [INF, 1.0, 2.0], [INF, -INF, 1.0], [TINY, TINY, 0.0]))

    def largest(name, attributes, *args, x):
        def values_and_indices(x):
            found = torch.max(x, *args)
            return found.values, found.indices

        case("max_" + name, "max(x; %s)" % attributes, values_and_indices, True, x=x)

    x = normal(2, 4, 5)
    largest("vector", "dim=0", 0, x=normal(7))
    largest("axis", "dim=1", 1, x=x)
    largest("first", "dim=0", 0, x=x)
    largest("negative_kept", "dim=-1, keepdim=true", -1, True, x=x)
    largest("kept", "dim=1, keepdim=true", 1, True, x=x)
    largest("ties", "dim=1", 1, x=whole(-2, 3, 6, 7))
    largest("ties_middle", "dim=1", 1, x=whole(-1, 2, 3, 6, 4))
    largest("special", "dim=1", 1,
            x=values([1.0, NAN, 9.0, NAN], [NAN, INF, 1.0, 2.0], [1.0, INF, INF, 3.0],
                     [-INF] * 4, [-INF, -1.0, -INF, -1.0], [-0.0, 0.0, -0.0, 0.0],
                     [0.0, TINY, 1e-310, 1e-310], [-TINY, -1e-310, -1.0, -TINY]))

    def cumsum(name, dim, x):
        case("cumsum_" + name, "cumsum(x; dim=%d)" % dim, lambda x: torch.cumsum(x, dim), x=x)

    cumsum("vector", 0, normal(9))
    cumsum("rows", 1, normal(3, 7))
    cumsum("columns", 0, normal(5, 3))
    cumsum("middle", -2, normal(2, 4, 3))
    cumsum("special", 1, values([1.0, NAN, 2.0], [INF, 1.0, -INF], [TINY, TINY, TINY]))


def scans():
    """After the others, which keeps their random inputs."""
    def cumprod(name, dim, x):
        case("cumprod_" + name, "cumprod(x; dim=%d)" % dim, lambda x: torch.cumprod(x, dim), x=x)

    cumprod("vector", 0, normal(9))
    cumprod("rows", 1, normal(3, 7))
    cumprod("columns", 0, normal(5, 3))
    cumprod("middle", -2, normal(2, 4, 3))
    cumprod("special", 1, values([1.0, NAN, 2.0], [INF, -1.0, 0.0], [TINY, 0.5, 2.0],
                                 [-0.0, 3.0, -INF]))


def windows():
    """After the others, too."""
    backward = {1: F.conv_transpose1d, 2: F.conv_transpose2d, 3: F.conv_transpose3d}
    pools = {"max_pool1d": F.max_pool1d, "max_pool2d": F.max_pool2d, "max_pool3d": F.max_pool3d,
             "avg_pool1d": F.avg_pool1d, "avg_pool2d": F.avg_pool2d, "avg_pool3d": F.avg_pool3d,
             "adaptive_avg_pool1d": F.adaptive_avg_pool1d,
             "adaptive_avg_pool2d": F.adaptive_avg_pool2d,
             "adaptive_avg_pool3d": F.adaptive_avg_pool3d}

    def text_of(options):
        said = ", ".join("%s=%s" % (k, str(v).replace(" ", "").lower())
                         for k, v in options.items())
        return ("; " if said else "") + said

    def conv(name, x, weight, bias=None, **options):
        n = len(x) - 2
        tensors = {"x": normal(*x), "weight": normal(*weight)}
        op = "conv_transpose%dd(x, weight=weight" % n
        if bias:
            tensors["bias"] = normal(weight[1] * options.get("groups", 1))
            op += ", bias=bias"
        case("conv_transpose%dd_%s" % (n, name), op + text_of(options) + ")",
             lambda x, weight, bias=None: backward[n](x, weight, bias, **options), **tensors)

    conv("plain", (2, 3, 9), (3, 4, 3))
    conv("bias", (2, 3, 9), (3, 4, 4), True, stride=2, padding=1, output_padding=1)
    conv("stride_dilation", (1, 2, 7), (2, 3, 3), stride=3, dilation=4, output_padding=[2])
    conv("groups", (2, 6, 5), (6, 2, 3), True, stride=2, padding=2, groups=3, dilation=2)
    conv("plain", (2, 3, 4, 5), (3, 4, 3, 3))
    conv("oblong", (1, 4, 3, 4), (4, 2, 3, 5), True, stride=[2, 3], padding=[1, 2], groups=2,
         dilation=[2, 1])
    conv("apart", (1, 2, 3, 3), (2, 3, 3, 3), stride=5, padding=1, dilation=2)
    conv("depthwise", (1, 3, 4, 4), (3, 1, 2, 2), stride=2, groups=3)
    conv("cut", (1, 2, 3, 3), (2, 1, 3, 3), padding=[2, 1])
    conv("plain", (1, 2, 3, 2, 3), (2, 3, 2, 3, 2), True)
    conv("oblong", (1, 4, 2, 3, 2), (4, 1, 3, 2, 3), stride=[2, 1, 3], padding=[1, 0, 2],
         output_padding=[1, 0, 2], groups=2, dilation=[2, 3, 1])

    def pool(name, op, x, **options):
        case("%s_%s" % (op, name), "%s(x%s)" % (op, text_of(options)),
             lambda x: pools[op](x, **options), op.startswith("max"), x=x)

    odd = normal(1, 2, 6, 7)
    odd[0, 0, 1, 2], odd[0, 0, 4, 4], odd[0, 1, 0, 5], odd[0, 1, 5, 0] = NAN, INF, -INF, TINY
    for ceil in (False, True):
        kind = "_ceil" if ceil else "_floor"
        for n, size in enumerate(((1, 2, 11), (1, 2, 7, 6), (1, 1, 5, 4, 6)), 1):
            for op in "max", "avg":
                name = "%s_pool%dd" % (op, n)
                x = normal(*size)
                pool("halves" + kind, name, x, kernel_size=2, stride=2, ceil_mode=ceil)
                pool("padded" + kind, name, x, kernel_size=3, stride=2, padding=1, ceil_mode=ceil)
                pool("apart" + kind, name, x, kernel_size=2, stride=4, padding=1, ceil_mode=ceil)
                pool("lists" + kind, name, x, kernel_size=[4, 3, 2][:n], stride=[3, 2, 1][:n],
                     padding=[2, 1, 0][:n], ceil_mode=ceil)
            pool("dilated" + kind, "max_pool%dd" % n, x, kernel_size=2, stride=2, padding=1,
                 dilation=3, ceil_mode=ceil)
            pool("not_counted" + kind, "avg_pool%dd" % n, x, kernel_size=4, stride=3, padding=2,
                 ceil_mode=ceil, count_include_pad=False)
        pool("special" + kind, "max_pool2d", odd, kernel_size=4, stride=3, ceil_mode=ceil)
        pool("special" + kind, "avg_pool2d", odd, kernel_size=4, stride=3, ceil_mode=ceil)
    for n, size in enumerate(((1, 2, 11), (1, 2, 5, 4), (1, 1, 4, 5, 3)), 1):
        for places in 1, 3:
            pool(str(places), "adaptive_avg_pool%dd" % n, normal(*size), output_size=places)
        pool("list", "adaptive_avg_pool%dd" % n, normal(*size), output_size=[7, 2, 1][:n])
    pool("special", "adaptive_avg_pool2d", odd, output_size=[2, 3])


def losses():
    def loss(name, x, target, attributes="", **options):
        case("cross_entropy_" + name, "cross_entropy(x, target=y%s)" % attributes,
             lambda x, y: F.cross_entropy(x, y, **options), x=x, y=torch.tensor(target))

    loss("plain", normal(4, 6), [0, 5, 2, 2])
    loss("spelled_out", normal(3, 4), [3, 1, 0],
         "; ignore_index=-100, reduction=mean, label_smoothing=0")
    loss("large", 500 * normal(4, 5), [1, 0, 4, 3])
    loss("ignored", normal(4, 3), [1, -100, 0, -100])
    loss("ignored_class", normal(5, 3), [1, 2, 0, 2, 1], "; ignore_index=2", ignore_index=2)
    loss("all_ignored", normal(2, 3), [-100, -100])
    loss("one_class", normal(3, 1), [0, 0, 0])
    loss("minus_inf", values([1.0, -INF, 2.0], [0.0, 3.0, -INF]), [0, 1])


SPECIAL = (NAN, INF, -INF, 0.0, -0.0, TINY, -TINY, 1e-310, -1e-310, 1e-40, 1.5, -1.5)


def activations():
    grid = torch.arange(-64, 65, dtype=torch.float64) / 8
    far = values(-800.0, -100.0, -38.0, -3.0, 3.0, 38.0, 100.0, 800.0)

    def unary(name, function, attributes="", kind="", exact=False):
        for contents, x in dict(grid=grid, special=values(*SPECIAL), far=far).items():
            case(name + kind + "_" + contents, "%s(x%s)" % (name, attributes), function, exact, x=x)

    unary("clamp", lambda x: x.clamp(-0.5, 2), "; min=-0.5, max=2", exact=True)
    unary("clamp", lambda x: x.clamp(min=0), "; min=0", "_below", True)
    unary("clamp", lambda x: x.clamp(max=1), "; max=1", "_above", True)
    unary("clamp", lambda x: x.clamp(2, -1), "; min=2, max=-1", "_crossed", True)
    unary("elu", F.elu)
    unary("elu", lambda x: F.elu(x, 0.3), "; alpha=0.3", "_alpha")
    unary("selu", F.selu)
    unary("silu", F.silu)
    unary("mish", F.mish)
    unary("hardsigmoid", F.hardsigmoid)
    unary("hardswish", F.hardswish)
    unary("rsqrt", torch.rsqrt)
    unary("abs", torch.abs, exact=True)
    unary("neg", torch.neg, exact=True)
    unary("exp", torch.exp)
    unary("log", torch.log)
    unary("sin", torch.sin)
    unary("cos", torch.cos)


def pairs():
    """Each special value beside each other one."""
    x = values(*SPECIAL).view(-1, 1)
    y = values(*SPECIAL[:4], 1.5, 0.25)
    case("minimum_special", "minimum(x, y)", torch.minimum, True, x=x, y=y)
    case("maximum_special", "maximum(x, y)", torch.maximum, True, x=x, y=y)
    case("minimum_channel", "minimum(x, y)", torch.minimum, True, x=normal(2, 3, 4), y=normal(3, 1))
    for name, beta in dict(plain=1.0, wide=2.5).items():
        case("smooth_l1_loss_" + name, "smooth_l1_loss(x, target=y; beta=%g)" % beta,
             lambda x, y: F.smooth_l1_loss(x, y, reduction="none", beta=beta),
             x=normal(4, 5), y=normal(4, 5))
    case("smooth_l1_loss_special", "smooth_l1_loss(x, target=y)",
         lambda x, y: F.smooth_l1_loss(x.expand(12, 6), y.expand(12, 6), reduction="none"), x=x, y=y)
    case("kl_div_plain", "kl_div(x, target=y)",
         lambda x, y: F.kl_div(x, y, reduction="none"), x=normal(4, 5), y=positive(4, 5))
    case("kl_div_special", "kl_div(x, target=y)",
         lambda x, y: F.kl_div(x, y, reduction="none"), x=y.view(-1, 1), y=values(*SPECIAL))


def rows():
    x, ties = normal(2, 4, 5), whole(-2, 3, 3, 6, 4)
    odd = values([1.0, NAN, 9.0, NAN], [NAN, INF, 1.0, 2.0], [1.0, INF, INF, 3.0], [-INF] * 4,
                 [-INF, -1.0, -INF, -1.0], [-0.0, 0.0, -0.0, 0.0], [0.0, TINY, 1e-310, 1e-310],
                 [-TINY, -1e-310, -1.0, -TINY], [INF, -INF, 0.0, 1.0], [900.0, 901.0, -900.0, 0.0])

    def least(name, attributes, *args, x):
        def values_and_indices(x):
            found = torch.min(x, *args)
            return found.values, found.indices

        case("min_" + name, "min(x; %s)" % attributes, values_and_indices, True, x=x)

    least("axis", "dim=1", 1, x=x)
    least("kept", "dim=-1, keepdim=true", -1, True, x=x)
    least("ties", "dim=1", 1, x=ties)
    least("special", "dim=1", 1, x=odd)
    for name, function in dict(argmax=torch.argmax, argmin=torch.argmin).items():
        def along(kind, x, dim, kept=False):
            case("%s_%s" % (name, kind),
                 "%s(x; dim=%d%s)" % (name, dim, ", keepdim=true" if kept else ""),
                 lambda x: function(x, dim, kept), True, x=x)

        along("axis", x, 1)
        along("kept", x, -1, True)
        along("ties", ties, 1)
        along("special", odd, 1)

    for kind, p in dict(two=2, one=1).items():
        for name, dim, kept in ("all", None, False), ("two_axes", [0, 2], True), ("last", -1, False):
            attributes = "" if dim is None else ", dim=%s" % str(dim).replace(" ", "")
            attributes += ", keepdim=true" if kept else ""
            case("norm_%s_%s" % (kind, name), "norm(x; p=%d%s)" % (p, attributes),
                 lambda x: torch.linalg.vector_norm(x, p, dim, kept), x=x)
        case("norm_%s_special" % kind, "norm(x; p=%d, dim=1)" % p,
             lambda x: torch.norm(x, p, 1), x=odd)
    case("norm_fro", "norm(x)", lambda x: torch.norm(x, p="fro"), x=x)
    case("logsumexp_middle", "logsumexp(x; dim=1)", lambda x: torch.logsumexp(x, 1), x=x)
    case("logsumexp_kept", "logsumexp(x; dim=-1, keepdim=true)",
         lambda x: torch.logsumexp(x, -1, True), x=1000 * x)
    case("logsumexp_special", "logsumexp(x; dim=1)", lambda x: torch.logsumexp(x, 1), x=odd)
    case("log_softmax_middle", "log_softmax(x; dim=1)", lambda x: torch.log_softmax(x, 1), x=x)
    case("log_softmax_large", "log_softmax(x; dim=-1)",
         lambda x: torch.log_softmax(x, -1), x=1000 * x)
    case("log_softmax_special", "log_softmax(x; dim=1)", lambda x: torch.log_softmax(x, 1), x=odd)


def recurrent():
    def network(name, op, steps, batch, width, hidden, layers=1, both=False, first=False):
        gates, directions = dict(lstm=4, gru=3)[op], 2 if both else 1
        states = {s: normal(layers * directions, batch, hidden) for s in ("hc" if op == "lstm" else "h")}
        weights = {}
        for i in range(layers * directions):
            read = directions * hidden if i >= directions else width
            for kind, shape in ("a", (read,)), ("b", (hidden,)), ("p", ()), ("q", ()):
                weights[kind + str(i)] = normal(gates * hidden, *shape)
        x = normal(batch, steps, width) if first else normal(steps, batch, width)

        def run(x, *rest):
            state = tuple(rest[:len(states)])
            return getattr(torch, op)(x, state if op == "lstm" else state[0], rest[len(states):], True,
                                      layers, 0.0, False, both, first)

        attributes = "num_layers=%d, bidirectional=%s, batch_first=%s" % (
            layers, str(both).lower(), str(first).lower())
        case("%s_%s" % (op, name), "%s(%s; %s)" % (op, ", ".join(["x", *states, *weights]), attributes),
             run, x=x, **states, **weights)

    for op in "lstm", "gru":
        network("one", op, 4, 2, 3, 5)
        network("deep", op, 3, 2, 4, 3, 3)
        network("both_ways", op, 4, 2, 3, 3, 2, True)
        network("batch_first", op, 3, 2, 3, 4, 2, True, True)


def main():
    if len(sys.argv) != 2:
        sys.exit("usage: make_torch_values.py torch_values.json")
    torch.manual_seed(20240229)
    torch.set_num_threads(1)
    views()
    products()
    convolutions()
    pooling()
    elementwise()
    binary()
    norms()
    softmaxes()
    reductions()
    losses()
    scans()
    windows()
    activations()
    pairs()
    rows()
    recurrent()
    made_by = {"torch": torch.__version__, "python": platform.python_version(),
               "machine": platform.machine()}
    with open(sys.argv[1], "w") as f:
        f.write('{"schema": 1,\n "made_by": %s,\n "cases": [\n' % json.dumps(made_by))
        f.write(",\n".join(json.dumps(c, separators=(",", ":"), allow_nan=False) for c in cases))
        f.write("\n]}\n")
    print("%d cases by PyTorch %s, Python %s, %s" % (len(cases), *made_by.values()))


if __name__ == "__main__":
    main()
