# worth.jq: what a result of `time` is worth; see README.md here.

def flagged($names): any(.flags[]? | strings | split(":")[0]; IN($names[]));
# The task does not tell a kernel that computes it from one that does not.
def void: flagged(["degenerate", "no-influence"]);
# The time of the kernel cannot be trusted.  (A decoy-ratio is a control-ratio of earlier results.)
def doubtful: flagged(["control-ratio", "decoy-ratio", "clocks-disagree"]);

def mean: add / length;
def variance: mean as $m | map((. - $m) * (. - $m)) | mean;

# Two decimals, towards 1; the grain keeps 1.13 from being 112 hundredths.
def towards_one: (if . >= 1 then 100 * . + 1e-6 | floor else 100 * . - 1e-6 | ceil end) / 100;

# The means of 7 buckets of the ratios of paired samples, in order of time; null with fewer than 7.
def buckets:
    .time_us[.speedup.against // ""].samples as $b | .time_us.candidate.samples as $k
    | if ($b | type) == "array" and ($k | type) == "array" and ($b | length) == ($k | length) and ($b | length) >= 7
        and all($b[], $k[]; type == "number" and . > 0)
      then ($b | length) as $n | [range($n) | $b[.] / $k[.]]
        | [range(7) as $i | .[($n * $i / 7 | floor):($n * ($i + 1) / 7 | floor)] | mean]
      else null end;
def score: (buckets | if . then sort[3] else null end) // .speedup.ratio // 0 | towards_one;
def bucket_variance: buckets | if . then variance else null end;

# The ratio (shaped: the score) of an ok kernel with a trusted time; 0 for any other verdict; null
# where it says nothing about the kernel.
def worth($shaped):
    if (.verdict // "") == "" or .verdict == "ok" and ((.speedup.ratio // 0) <= 0) then error("no verdict, or ok without a speedup")
    elif .verdict == "skipped" or void then null
    elif .verdict != "ok" or doubtful then 0
    elif $shaped then score else .speedup.ratio end;

# Rewards relative to a group: (score - mean) / deviation, clipped; 0 if all are equal.
def relative: mean as $m | variance as $v | (unique | length == 1) as $equal
    | map(if $equal then 0 else (. - $m) / ($v | sqrt) | if . > 1.5 then 1.5 elif . < -1.5 then -1.5 else . end end);
