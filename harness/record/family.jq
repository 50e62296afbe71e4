#!/usr/bin/env -S jq -nrf
# family.jq --rawfile old FILE.jsonl RESULT.json... - print FILE.jsonl with these results in it.
#
# FILE.jsonl has one line a cell, sorted by task (results/SCHEMA.md).  A new result replaces the
# line of its task.  All other lines stay, and so do lines that are no result: they come last.
#
# What cells have in common is said once, in lines {"shared": NUMBER, "of": PART} at the top.  A cell
# names the numbers in `like`, and is the parts and its own line, merged.  A part keeps its number as
# long as it is used.

# What changes from cell to cell on the same machine.
def conditions: ["clocks", "temperature_c", "power_w", "throttle_reasons"];
# What kernels from one source, or with the same headers, have in common.  It is shared only if there
# are several of them.
def source: ["path", "sha256"];
def surroundings: ["headers_sha256", "provenance", "arch", "compiler", "confined"];

def object(f): if (f | type) == "object" then f else empty end;

# The parts of a result that it may share with other cells.
def parts:
    {schema, suite, gpu},
    {harness: {commit: .harness.commit | strings}},
    {machine: object(.machine) | with_entries(select(.key as $k | conditions | index($k) | not))},
    {sandbox: object(.sandbox)},
    {error: {tolerance: object(.error.tolerance)}}, # of earlier harnesses
    {inputs: object(.inputs) | del(.task)},
    {kernel: object(.kernel) | (with_entries(select(.key as $k | source | index($k))),
                                with_entries(select(.key as $k | surroundings | index($k))))};

# What a line leaves out, since 1,000 of them are to stay below 2 MB: of the errors it keeps the
# candidate's over its limits; no times on control inputs, which flags judge; not where the run's seconds went;
# of kernels no parameters.
def brief:
    if .error.candidate.declared.of_limit then
        .error |= {candidate: (.candidate | map_values({of_limit: (.of_limit | values | . * 100 | round / 100)}))}
    else . end | if .speedup.controls then del(.speedup.controls) else . end | if .missed == {} then del(.missed) else . end
    | if .excused == {} then del(.excused) else . end
    | if .harness.seconds then del(.harness.seconds) else . end
    | if .kernel.resources then .kernel.resources |= map(.name |= sub("\\([^()]*\\)$"; "")) else . end;

# An object without what it has in common with $part, which it contains.
def without($part):
    reduce ($part | keys_unsorted[]) as $k (.;
        if (.[$k] | type) == "object" and ($part[$k] | type) == "object"
        then .[$k] |= without($part[$k]) | if .[$k] == {} then del(.[$k]) else . end
        else del(.[$k]) end);

# A cell's line as the whole result, or nothing if the file lacks a part of it.  The line's own keys
# come first, so that without its parts it is the same text again.
def whole($shared):
    [.like[]? | $shared[tostring]] as $of
    | del(.like) as $own
    | if $of | all then reduce ($of[], $own) as $x ($own; . * $x) else empty end;

[$old | split("\n")[] | select(. != "") | {text: ., json: (fromjson? // null)}] as $lines
| ([$lines[].json | objects | select(.shared) | {key: (.shared | tostring), value: .of}] | from_entries) as $shared
| [$lines[] | select(.json | type == "object" and has("shared") | not)
   | .whole = ([.json | objects | select(.task | type == "string") | whole($shared)] | first)] as $cells
| [inputs | brief] as $new
| ($new | map({key: .task, value: true}) | from_entries) as $replaced
| [$cells[].whole | objects | select($replaced[.task] | not)] + $new | sort_by(.task)
| . as $all

# How many cells have a part, by its text; the numbers of the shared parts.
| (reduce ($all[] | parts | if .kernel then . else (., .) end | tojson) as $p ({}; .[$p] += 1)) as $users
| ($shared | with_entries({key: (.value | tojson), value: .key})
   | with_entries(select($users[.key] > 1))) as $kept
| (reduce ($all[] | parts | tojson) as $p ({number: ($kept | map_values(tonumber)), next: ([$shared | keys[] | tonumber] | max // 0)};
     if $users[$p] > 1 and (.number | has($p) | not) then .next += 1 | .number[$p] = .next else . end) | .number) as $number

| ($number | to_entries | sort_by(.value)[] | {shared: .value, of: (.key | fromjson)} | tojson),
  ($all[] | [parts | select($number[tojson])] as $of
   | reduce $of[] as $part (.; without($part))
   | {task} + (if $of == [] then {} else {like: [$of[] | $number[tojson]]} end) + del(.task) | tojson),
  ($cells[] | select(.whole == null and ($replaced[(.json | objects | .task) // "" | tostring] | not)) | .text)
