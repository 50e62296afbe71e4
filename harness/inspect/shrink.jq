# shrink.jq: write tasks with shorter axes for harness/inspect/shrink, one task a line.  $step
# chooses:
#
#   ways     one task for each way to shorten an axis of the first input together with some axes of
#            the same length, which may have to stay equal; fewest axes first.  An axis of three
#            stays: an image's three colours save little, and many filters are three wide.  A line is
#            "AXIS AXES LENGTH PARAMETERS SET TASK": the axis, all shortened axes of the first input, their
#            length, the number of shortened axes of parameters, the set of all shortened axes as
#            [[TENSOR,AXIS],...], and the task with these at the longest divisor of the length
#            The last line has "w" for the axes: the widths of all layers at once, axes of parameters
#            that are longer than WIDTH and divisible by it, and axes of inputs as long as one of them
#   shorten  the task with the axes of $set, $of long or in proportion, at each length of $to:
#            "LENGTH TASK"
#
# It does not check whether the shapes of such a task fit together.

# All ways to take one member of each list.
def choices: if length == 0 then [] else .[0][] as $first | .[1:] | [$first] + choices end;
def subsets: map([[], [.]]) | [choices | add // []];

def shorten($set; $of; $to): reduce $set[] as [$name, $axis] (.; (.inputs[], .parameters[]?) |= if .name == $name then .shape[$axis] *= $to / $of else . end);
def divisor: . as $n | $n / first(range(2; $n + 1) | select($n % . == 0));

def ways: . as $task | .inputs[0] as $x | range($x.shape | length) as $axis | $x.shape[$axis] as $n | select($n > 1 and $n != 3) |
    [[.inputs[], .parameters[]? | .name as $name | [.shape | to_entries[] | select(.value == $n) | [$name, .key]]
        | subsets | if $name == $x.name then map(select(index([[$name, $axis]]))) else . end]
        | limit(1000; choices) | add]
    | sort_by(length)[] as $set
    | ($set | map(select(.[0] == $x.name)[1] | tostring) | join(",")) as $axes
    | ($set | map(select(.[0] as $name | $task.parameters // [] | any(.name == $name))) | length) as $parameters
    | "\($axis) \($axes) \($n) \($parameters) \($set | tojson) \($task | shorten($set; $n; $n | divisor) | tojson)";

def WIDTH: 16;
def widths: . as $task | [.parameters[]?.shape[] | select(. > WIDTH and . % WIDTH == 0)] as $lengths
    | [.inputs[], .parameters[]? | .name as $name | .shape | to_entries[] | select(.value as $n | $lengths | any(. == $n)) | [$name, .key]] as $set
    | select($set != []) | "w w \(WIDTH) \($lengths | length) \($set | tojson) \($task | shorten($set; 2; 1) | tojson)";

if $step == "ways" then ways, widths else $to[] as $n | "\($n) \(shorten($set; $of; $n) | tojson)" end
