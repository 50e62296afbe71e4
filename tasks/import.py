#!/usr/bin/env python3
"""Turn a catalogue of KernelBench problems into task files.

    tasks/import.py CATALOGUE.json OUTDIR [ID...]

CATALOGUE.json is a list of records made by tracing each problem's forward pass:
id (L1/040), slug, title, inputs and params (name, shape, dtype, how they are
drawn), ops (one line each), output_ids, notes.  Its lines are nearly those of a
task file; this script makes them exactly so: no prose in values, every list in
brackets, names that are C identifiers, ops without effect dropped, bounds of
default initialisation as fan_in(n) and not as a rounded number, batch norm's
weight and bias spelled out (its running statistics are side effects that no
output shows).

With no ID every record is tried.  A record that has no normal form is named on
stderr with the reason; the exit status is then 1 and the others are written."""

import json
import math
import re
import sys

sys.dont_write_bytecode = True
from write import tensor, write

SOURCE = "KernelBench 423217d"

# Slugs were made from CamelCase; these read better.  Applied in order.
SLUGS = [
    (r"matrix_multiplication$", "matmul"),
    (r"tensor_matmul", "matmul"),
    (r"conv_(standard|pointwise|depthwise_separable|depthwise|transposed)_(\d)_d",
     lambda m: {"standard": "", "transposed": ""}.get(m[1], m[1] + "_") +
     ("conv_transpose" if m[1] == "transposed" else "conv") + m[2] + "d"),
    (r"(max|average)_pooling_(\d)_d", lambda m: {"max": "max", "average": "avg"}[m[1]] + "_pool" + m[2] + "d"),
    (r"(\d)_d_", r"\1d_"), (r"conv2_d", "conv2d"), (r"(^|_)re_lu", r"\1relu"),
    (r"le_net", "lenet"), (r"alex_net", "alexnet"), (r"google_net", "googlenet"),
    (r"(res|dense|squeeze|mobile|efficient|shuffle|reg)_net", r"\1net"),
    (r"net_vlad", "netvlad"), (r"u_net", "unet"), (r"min_gpt", "mingpt"), (r"mini_gpt", "minigpt"),
    (r"hard_swish", "hardswish"), (r"hard_tanh", "hardtanh"), (r"hard_sigmoid", "hardsigmoid"),
    (r"log_sum_exp", "logsumexp"),
]

# What a task cannot show, by construction of the problem.
FLAGS = {
    "L2/009": ["degenerate: output is 0 on the declared inputs"],
    "L2/015": ["no-influence: conv_transpose_bias"],
    "L2/017": ["no-influence: conv_bias"],
    "L2/023": ["degenerate: output is a mean of normalised values, 0 but for rounding"],
    "L2/033": ["no-influence: gemm_bias"],
    "L2/036": ["degenerate: output is the bias on the declared inputs"],
    "L2/039": ["no-influence: gemm_bias"],
    "L2/041": ["no-influence: gemm_bias"],
    "L2/073": ["no-influence: conv_bias"],
    "L2/079": ["no-influence: conv_bias"],
    "L2/080": ["degenerate: output is identically 0"],
    "L2/083": ["degenerate: output is identically 0"],
    "L2/084": ["no-influence: gemm_bias"],
    "L2/097": ["no-influence: matmul_bias"],
    "L3/028": ["degenerate: output does not depend on the image"],
}
NOTES = {
    "L1/019": ["verification also draws signed inputs, on which relu is not the identity"],
    "L1/023": ["tolerances here are relative, so zeros do not pass"],
    "L2/017": ["the instance norm that follows removes the convolution's bias"],
}

# Ops that give their operand back, and those that go by another name here.
IDENTITY = {"contiguous", "clone", "detach"}
RENAME = {"T": "transpose", "reshape": "view", "add_": "add", "bmm": "matmul",
          "elementwise_min": "minimum"}
# Attributes that change no value.
DROP = {"momentum", "return_indices", "inplace"}
# Positional integers of these ops, as one list.
SIZES = {"view": "shape", "permute": "dims", "expand": "shape", "adaptive_avg_pool1d": "output_size"}
OPS = set("""view transpose unsqueeze squeeze permute flatten expand matmul linear einsum
    scaled_dot_product_attention conv1d conv2d conv3d conv_transpose1d conv_transpose2d conv_transpose3d
    max_pool1d max_pool2d max_pool3d avg_pool1d avg_pool2d avg_pool3d adaptive_avg_pool1d
    adaptive_avg_pool2d adaptive_avg_pool3d relu gelu sigmoid tanh softplus leaky_relu sqrt pow exp log
    abs elu selu hardsigmoid hardswish hardtanh mish clamp add sub mul div minimum layer_norm group_norm
    instance_norm batch_norm softmax log_softmax logsumexp sum mean max min argmax argmin norm normalize
    cumsum cumprod flip narrow triu tril roll cat cross_entropy kl_div smooth_l1_loss
    triplet_margin_loss""".split())
RESERVED = set("""auto bool break case char class const continue default delete do double else enum
    extern float for goto if inline int long new operator private public register return short signed
    sizeof static struct switch template this typedef union unsigned void volatile while out""".split())


class NoForm(Exception):
    """A record that cannot be written as a task file."""


def identifier(name):
    """A C identifier for a dotted parameter name."""
    result = re.sub(r"\W", "_", name)
    if result[0].isdigit() or result[0] == "_":
        result = "p" + result
    if result in RESERVED:
        result += "_"
    if len(result) > 47:
        raise NoForm("name %s is too long" % name)
    return result


def split(text, separator=","):
    """Split at separators that are outside all brackets."""
    parts, depth, start = [], 0, 0
    for i, c in enumerate(text):
        depth += (c in "[({") - (c in "])}")
        if c == separator and depth == 0:
            parts.append(text[start:i].strip())
            start = i + 1
    parts.append(text[start:].strip())
    return [part for part in parts if part]


def value(text):
    """The value of an attribute, in the grammar of task files."""
    text = re.sub(r"\s+\([^)]*\)$", "", text)  # "none (erf)"
    text = {"True": "true", "False": "false"}.get(text, text)
    text = re.sub(r"^\((.*?),?\)$", r"[\1]", text).replace(" ", "")
    if re.fullmatch(r"\[(-?\d+(,-?\d+)*)?\]|-?\d+(\.\d*)?(e[+-]?\d+)?|[a-z]\w*", text):
        return text
    raise NoForm("value `%s` is not a number, list or word" % text)


def einsum_operands(text):
    """einsum(ij,jk->ik, A, B): the equation is an attribute, quoted."""
    match = re.fullmatch(r"([a-z,]+->[a-z]*), (.*)", text)
    if not match:
        raise NoForm("einsum without an equation: " + text)
    return match[2], 'equation="%s"' % match[1]


class Graph:
    """Lines of a record, renumbered t1, t2, ... and free of ops without effect."""

    def __init__(self, tensors):
        self.names = {name: identifier(name) for name in tensors}  # as in the record -> here
        self.lines = []  # (results, uses, text with %s for the results' names)
        self.count = 0

    def operand(self, text):
        match = re.fullmatch(r"(\w+)=(.+)", text)
        if match:
            return {"w": "weight", "b": "bias"}.get(match[1], match[1]) + "=" + self.operand(match[2])
        if re.fullmatch(r"-?\d+(\.\d*)?(e[+-]?\d+)?", text):
            return text
        if text not in self.names:
            raise NoForm("operand `%s` is not a tensor or a number" % text)
        return self.names[text]

    def add(self, line):
        """Take one line of the record."""
        match = re.fullmatch(r"(.*?) = (\w+)\((.*)\)", line)
        if not match:
            raise NoForm("line `%s` is not an op" % line)
        left, op, right = match[1], RENAME.get(match[2], match[2]), match[3]
        extra = []
        if op == "einsum":
            right, equation = einsum_operands(right)
            extra.append(equation)
        before, _, after = right.partition(";")
        operands, attributes = split(before), split(after)
        results = [re.fullmatch(r"(\w+)(\[[\d,]*\])(?::(\w+))?", part) for part in split(left)]
        if None in results:
            raise NoForm("results `%s` have no plain shapes" % left)
        if op in IDENTITY or (op == "dropout" and "p=0" in attributes):
            self.names[results[0][1]] = self.operand(operands[0])
            return
        if op not in OPS and op != "rsub":
            raise NoForm("op `%s` has no normal form" % op)
        op, operands, attributes = self.special(op, match[2], operands, attributes)
        attributes = [a for a in attributes if a.split("=")[0] not in DROP]
        attributes = extra + ["%s=%s" % (k, value(v)) for k, v in (a.split("=", 1) for a in attributes)]
        operands = [self.operand(o) for o in operands]
        declared = []
        for result in results:
            self.count += 1
            self.names[result[1]] = "t%d" % self.count
            dtype = {"int64": ":i64", None: ""}.get(result[3], ":" + str(result[3]))
            declared.append("t%d%s%s" % (self.count, result[2], dtype))
        text = "%s = %s(%s" % (", ".join(declared), op, ", ".join(operands))
        self.lines.append(text + ("; " + ", ".join(attributes) if attributes else "") + ")")

    def special(self, op, was, operands, attributes):
        """Spellings of one op that are not those of a task file."""
        if op == "batch_norm":
            bn = next(o for o in operands if o.startswith("bn="))[3:]
            operands = [operands[0], "weight=%s.weight" % bn, "bias=%s.bias" % bn]
        elif op == "rsub":
            op, operands, attributes = "sub", [attributes[0].split("=")[1], operands[0]], []
        elif was == "T":
            attributes = ["dims=[0,1]"]
        elif was == "transpose":
            axes = dict(a.split("=") for a in attributes)
            attributes = ["dims=[%s,%s]" % (axes["dim0"], axes["dim1"])]
        elif op in SIZES and len(operands) > 1:
            attributes = ["%s=[%s]" % (SIZES[op], ",".join(operands[1:]))]
            operands = operands[:1]
        elif op == "cat":
            operands = split(operands[0][1:-1])
        return op, operands, attributes


def fan_in(name, bound, shapes):
    """Default initialisation: uniform within 1/sqrt(n), n counted in the weight."""
    weight = re.sub(r"bias$", "weight", name)
    n = math.prod(shapes[weight][1:]) if weight in shapes else 0
    if not n or not math.isclose(1 / math.sqrt(n), bound, rel_tol=1e-5):
        n = round(bound ** -2)
    if not math.isclose(1 / math.sqrt(n), bound, rel_tol=1e-5):
        return "uniform(%g,%g)" % (-bound, bound)
    return "fan_in(%d)" % n


def fill(name, text, shapes):
    """How a tensor is drawn, in the closed grammar of task files."""
    number = r"(-?[\d.]+(?:e-?\d+)?)"
    forms = [
        (r"uniform\[0,1\)", "uniform(0,1)"), ("ones", "constant(1)"), ("zeros", "constant(0)"),
        (r"(?:plain attribute \(not in state_dict\): )?randn", "normal(0,1)"),
        (r"N\(%s,%s\)" % (number, number), r"normal(\1,\2)"),
        (r"mul\(randn,%s\)" % number, r"normal(0,\1)"), (r"tensor\(%s\)" % number, r"constant(\1)"),
        (r"div\(add\(U,T\(U\)\),2\).*", "symmetric(uniform(0,1))"),
        (r"triu\(U\).*", "upper(uniform(0,1))"), (r"tril\(U\).*", "lower(uniform(0,1))"),
        (r"uniform\[0,1\) tensor times one scalar.*", "scaled(uniform(0,1))"),
        (r"softmax over last dim of \(uniform\[0,1\) tensor times.*", "softmax(scaled(uniform(0,1)))"),
        (r"softmax\(U,dim=-1\).*", "softmax(uniform(0,1))"),
        (r"bool\(randint\[0,2\)\)", "bernoulli(0.5)"), (r"randint\[(\d+),(\d+)\)", r"integers(\1,\2)"),
        (r"sub\(mul\(float\(randint\[0,2\)\),2\),1\)", "signs()"),
        (r"buffer tril\(ones\)", "lower(constant(1))"),
    ]
    match = re.fullmatch(r"U\(\+-%s\)" % number, text)
    if match:
        return fan_in(name, float(match[1]), shapes)
    for pattern, form in forms:
        match = re.fullmatch(pattern, text)
        if match:
            return match.expand(form)
    raise NoForm("%s is drawn as `%s`" % (name, text))


def domain(name, filled, record):
    """Scores must stay near their declared size, probabilities and signs as they are."""
    attention = [op for op in record["ops"] if "scaled_dot_product_attention" in op]
    if any(re.search(r"[(=]%s[,;]" % re.escape(name), op) for op in attention):
        return "moderate"
    return "declared" if filled.startswith(("softmax", "signs", "bernoulli", "integers")) else "real"


def tensors(record, key, shapes):
    """Inputs or parameters of a record."""
    result = []
    for t in record[key]:
        if t["dtype"] == "python float":
            continue  # a number, in its op line already
        if t["name"] not in shapes:
            continue
        filled = fill(t["name"], t.get("dist") or t.get("init"), shapes)
        result.append(tensor(identifier(t["name"]), t["shape"], filled, t["dtype"],
                             domain(t["name"], filled, record)))
    return result


def expand_batch_norm(record):
    """bn.{weight,bias,...} as two parameters."""
    params = []
    for p in record["params"]:
        match = re.fullmatch(r"(.*)\.\{weight,bias,.*\}", p["name"])
        if match:
            for part, init in (("weight", "ones"), ("bias", "zeros")):
                params.append(dict(p, name=match[1] + "." + part, init=init))
        else:
            params.append(p)
    return dict(record, params=params)


def task_name(record):
    slug = record["slug"]
    for pattern, new in SLUGS:
        slug = re.sub(pattern, new, slug)
    name = "l%d_%03d_%s" % (record["level"], record["number"], slug)
    return name[:63].rstrip("_")


def unused(graph, names, outputs):
    """Tensors that no output needs, and lines without the ops that none needs."""
    live, kept = set(outputs), []
    for line in reversed(graph.lines):
        left, right = line.split(" = ", 1)
        if live & set(re.findall(r"(t\d+)\[", left)):
            live |= set(re.findall(r"[A-Za-z_]\w*", right))
            kept.append(line)
    return [n for n in names if n not in live], kept[::-1]


def notes(record):
    """Notes of the record, less those that only repeat a size."""
    kept = [n for n in record["notes"] if not re.match(r"(input|output)\b.* is [\d.]+ GB", n)]
    return kept + NOTES.get(record["id"], [])


def convert(record, folder):
    """Write the task file of one record."""
    record = expand_batch_norm(record)
    shapes = {t["name"]: t["shape"] for t in record["inputs"] + record["params"] if "shape" in t}
    graph = Graph(shapes)
    for line in record["ops"]:
        graph.add(line)
    outputs = [graph.operand(o) for o in record["output_ids"]]
    idle, lines = unused(graph, [identifier(n) for n in shapes], outputs)
    flags = FLAGS.get(record["id"], []) + ["unused: " + n for n in idle]
    title = re.sub(r"\s+", " ", record["title"]).strip()
    return write(folder, "level%d" % record["level"], task_name(record), title,
                 "%s level%d/%d" % (SOURCE, record["level"], record["number"]),
                 tensors(record, "inputs", shapes), tensors(record, "params", shapes), lines, outputs,
                 notes(record), flags)


def main():
    if len(sys.argv) < 3:
        sys.exit("usage: import.py CATALOGUE.json OUTDIR [ID...]")
    with open(sys.argv[1], encoding="utf-8") as file:
        records = json.load(file)
    wanted = sys.argv[3:]
    unknown = set(wanted) - {r["id"] for r in records}
    if unknown:
        sys.exit("import.py: no record %s in %s" % (", ".join(sorted(unknown)), sys.argv[1]))
    failed = 0
    for record in records:
        if wanted and record["id"] not in wanted:
            continue
        try:
            convert(record, sys.argv[2])
        except NoForm as reason:
            print("import.py: %s: %s" % (record["id"], reason), file=sys.stderr)
            failed += 1
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
