#!/usr/bin/env -S jq -nf
# thin.jq [BUILD.json] RESULT.json... - print what is recorded of each result.
#
# Samples become five quantiles, and numbers that are no integers get six significant digits.  A
# result that is thin already does not change.
#
# BUILD.json is the build.json of the result that follows it.  If both have the same code_sha256,
# the result gets the kernel of BUILD.json, and the hash of its sources: they may have changed since
# the measurement, but nothing that runs.

def significant_digits: 6;
def levels: [0.05, 0.25, 0.5, 0.75, 0.95];

# Doubles hold powers of ten up to 10^22 exactly.  Beyond that only text gives the nearest double.
def rounded:
    (significant_digits - 1 - (fabs | log10 | floor)) as $k
    | if . == floor or fabs < 1e-290 then .
      elif $k <= 0 then (. / pow(10; -$k) | round) * pow(10; -$k)
      elif $k <= 22 then (. * pow(10; $k) | round) / pow(10; $k)
      else "\(. * pow(10; $k) | round)e-\($k)" | tonumber end;

def all_rounded:
    if type == "object" or type == "array" then map_values(all_rounded)
    elif type == "number" then rounded else . end;

# The levels of a list of numbers, interpolated between its members.
def quantiles:
    sort as $s
    | [levels[] | . * ($s | length - 1) | floor as $i
       | $s[$i] + (. - $i) * (($s[$i + 1] // $s[$i]) - $s[$i])];

def contestant:
    if (.samples | length) > 0 then .quantiles = (.samples | quantiles) else . end | del(.samples);

def is_build_of($result): .task == $result.task and .gpu == $result.gpu;
def with_kernel_of($build):
    if (.kernel.code_sha256 | type) == "string" and .kernel.code_sha256 == $build.kernel.code_sha256
       and (. as $result | $build | is_build_of($result))
    then .kernel = $build.kernel
        | if .inputs and $build.inputs then .inputs.kernel = $build.inputs.kernel else . end
    else . end;

foreach inputs as $x (
    {};
    if input_filename | endswith(".build.json") then {build: $x} else {build, result: $x} end;
    .build as $build | .result // empty | with_kernel_of($build)
    | if .time_us then .time_us |= map_values(contestant) else . end | all_rounded)
