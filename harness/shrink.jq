# shrink.jq: a task with a shorter axis 0, or null where that would gain nothing: it holds at
# most $limit bytes as it is, or parameters make up most of it.  For harness/sanitize.
#
# The axis 0 of the first input ($which "first"), or of every input of that length ("all"),
# becomes the longest divisor with which the task holds at most $limit bytes; or 1, where
# none is short enough but that leaves a quarter.  So does the axis 0 of every value of the
# graph that is as long.  A guess: whether shapes follow from one another, `task check` says.

def product: reduce .[] as $d (1; . * $d);
def width: {"f16": 2, "bf16": 2, "i64": 8}[.] // 4;
def shorter($from; $to): if .[0] == $from then .[0] = $to else . end;

# Each "NAME[SHAPE]" or "NAME[SHAPE]:DTYPE" that the op gives.
def results: split(" = ")[0] | split(", ")[] |
    capture("^(?<name>[^\\[]+)\\[(?<shape>[0-9,]*)\\](:(?<dtype>.*))?$") |
    .shape |= (split(",") | map(tonumber));

def bytes: . as $task | .inputs[0].dtype as $usual |
    ([.inputs[], .parameters[] | (.shape | product) * (.dtype | width)] | add)
    + ([.graph[] | results | select(.name as $n | $task.outputs | index($n))
        | (.shape | product) * (.dtype // $usual | width)] | add // 0);

def shrunk($from; $to):
    (if $which == "all" then .inputs[].shape else .inputs[0].shape end) |= shorter($from; $to)
    | .graph[] |= ([results | .shape |= shorter($from; $to)
                    | "\(.name)[\(.shape | map(tostring) | join(","))]" + (if .dtype then ":" + .dtype else "" end)]
                   | join(", ")) + " = " + (split(" = ")[1:] | join(" = "));

. as $task | (.inputs[0].shape[0] // 1) as $n | bytes as $whole |
if $whole <= $limit then null else
    [range($n - 1; 0; -1) | select($n % . == 0) | . as $to | $task | shrunk($n; $to)] |
    [.[] | select(bytes <= $limit)][0] // (last | select(. and bytes * 4 <= $whole)) // null |
    if . then .task += "_small" else null end
end
