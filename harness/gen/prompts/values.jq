# values.jq: the parts of a prompt that are made of measurements and of earlier attempts: texts by the names
# that templates use, null if unknown.  prompt.jq says what the input is.
include "text";

# A file of data beside this one.
def part($name): .parts[$name] // error({code: 3, text: "harness/gen/prompts/\($name): cannot read it: restore it"}) | fromjson;

def positive: type == "number" and . > 0;
def some: if . == "" then null else . end;

# ---- The GPU ----

def rate: if positive then round_to(2) | if . >= 1000 then "\(. / 1000 | g(2)) TB/s" else "\(g(3)) GB/s" end else null end;
# What arch.json knows of the architecture.
def limits: (.arch | match("^[0-9]+").string) as $number | part("arch.json").architectures[$number] // {};
def gpu:
    limits as $limits | (.machine // {}) as $m | (.peaks // {}) as $p | .arch as $target
    | {device: ($m.gpu_name // .gpu | line(80)), arch: .arch, capability: (.arch | match("^[0-9]+").string | "\(.[:-1]).\(.[-1:])"),
       sms: ($m.sm_count | if positive then "\(.)" else null end), l2: ($m.l2_bytes | if positive then bytes else null end),
       memory: ($m.memory_bytes | if positive then bytes else null end), clock: ($m.clocks.sm_mhz | if positive then "\(. / 1000 | g(3))" else null end),
       read: ($p.read_gbs | rate), copy: ($p.copy_gbs | rate),
       products: ([["f16 with fp32 sums", $p.f16_tflops], ["tf32", $p.tf32_tflops], ["fp32 without tensor cores", $p.fp32_tflops], ["f64", $p.f64_tflops]]
         | map(select(.[1] | positive) | "\(.[0]) \(.[1] | round_to(2) | if . < 10 then fix(1) else fix(0) end)") | if . == [] then null else join(", ") + " TFLOP/s" end),
       shared_rate: (if ($m.sm_count | positive) and ($m.clocks.sm_mhz | positive) then "\(128 * $m.sm_count * $m.clocks.sm_mhz / 1e6 | g(2)) TB/s" else null end),
       chips: $limits.chips, has: (($limits.has // "") + (if ($limits.has_a // "") != "" and ($target | test("a")) then "; " + $limits.has_a else "" end) | some),
       lacks: (($limits.lacks // "") + (if ($limits.has_a // "") != "" and ($target | test("a") | not) then "; for this target also not: " + $limits.has_a else "" end) | some)}
    + ($limits | {registers_per_sm, registers_per_thread, threads_per_sm, warps_per_sm, blocks_per_sm, threads_per_block,
        shared_per_sm: .shared_per_sm_kib, shared_per_block: .shared_per_block_kib} | map_values(if . then tostring else . end));

# ---- What the task costs at least, and what the libraries do ----

def floors: (.peaks // {} | map_values(if positive then round_to(2) else 0 end)) as $p | .task.cost as $c | .task.half as $half
    | ($c.bytes_in + $c.bytes_out) as $bytes | ($c.bytes_out < 0.05 * $bytes) as $reads # the same rules as time_main.c
    | (if $reads then $p.read_gbs else $p.copy_gbs end // 0) as $gbs | ([$p.fp32_tflops // 0, ($p.f16_tflops // 0) / 3] | max) as $fp32
    | {floor_bytes: (if $gbs > 0 then "at the measured rate of \(if $reads then "reading" else "copying" end) that takes about \($bytes / $gbs / 1000 | us)" else null end),
       floor_flops: (if $c.mm_flops <= 0 or ($p.f16_tflops // 0) <= 0 or ($p.fp32_tflops // 0) <= 0 then null else "at the measured rates the products take about "
         + if $half then "\($c.mm_flops / $p.f16_tflops / 1e6 | us) in class \($half)"
           else "\($c.mm_flops / $fp32 / 1e6 | us) in class fp32 (" + (if $fp32 > $p.fp32_tflops then "by three f16 products of split operands on tensor cores; by fp32 multipliers it is more"
             else "by fp32 multipliers" end) + ")" + (if ($p.tf32_tflops // 0) > 0 then ", \($c.mm_flops / $p.tf32_tflops / 1e6 | us) in class tf32" else "" end) end end)};

# The limits of errors, in spreads: the numbers of harness/measure/tolerance.h.
def tolerance: .tolerance as $text | {rms: "RMS", part: "PART", element: "ELEMENT", bias: "BIAS"} | map_values(. as $name
    | [$text | match("KP_\($name)_LIMIT = ([0-9.]+)").captures[0].string | tonumber][0]
      // error({code: 3, text: "harness/measure/tolerance.h: lacks KP_\($name)_LIMIT"}));
def vendor: tolerance.rms as $limit | (.vendor // {}) as $r
    | [$r.time_us // {} | to_entries[] | select(.key != "candidate" and (.value.midmean | positive))
       | "- class \(.key): \(.value.midmean | round_to(2) | us)\($r.error[.key].declared.rms // 0 | if . > 0 then ", off by \(g(2) | tonumber) spreads (root mean square)" else "" end)"]
    | if . == [] then null else (["What the vendor libraries do, as recorded on this kind of GPU:\n"] + .
        + [$r.error.spread.declared.norm // 0 | select(. > 0 and ($r.class // "") != "") | round_to(2)
           | "- a spread of class \($r.class) is about \(g(2)) of the output's root mean square with the declared contents, so the limit of \($limit) is \($limit * . | g(2))"]) | join("\n") end;

# ---- Messages ----

# A message without this machine's folders: the kernel is kernel.cu, and its line numbers are less by
# the lines that are not shown.
def message($file; $skipped):
    def less: tonumber | if . > $skipped then . - $skipped else . end;
    gsub("[\\x00-\\x1f]"; " ") | gsub("at line (?<n>[0-9]+)(?![0-9])(?! of )"; "at line \(.n | less)")
    | gsub("(?<p>[A-Za-z0-9./+_-]+)(?<t>[(:](?<n>[0-9]+))?"; .p as $p | ($p | split("/")[-1]) as $base
        | if $base == $file then "kernel.cu\(if .n then .t[:1] + (.n | less | tostring) else "" end)"
          elif $base != "" and (($p | startswith("/") and rindex("/") > 0) or ($p | startswith("optimized/include/") or startswith("build/"))) then "\($base)\(.t // "")"
          else "\($p)\(.t // "")" end);

def is_error: test("(error|fatal) *[:#]|undefined reference");
# The compiler's first errors, with the lines of source that they name.
def compiler_log($a; $file):
    (.log // "") as $log | ($log | split("\n")) as $lines | [$lines | to_entries[] | select(.value | is_error) | .key] as $at
    | (.code // "" | split("\n") | if .[-1] == "" then .[:-1] else . end) as $source
    | if $at == [] then "" else "The compiler's first error\(if ($at | length) > 1 then "s" else "" end), of \($at | length):\n\n" + ([range([3, ($at | length)] | min) as $i
        | $lines[$at[$i]] as $said
        | ([$said] + ([$lines[$at[$i] + 1:($at[$i + 1] // ($lines | length))][:12][] | select(test("instantiation|required from|argument types are|object type is"))][:3])
           | map(.[:600] | message($file; $a.skipped)) | join("\n"))
          + (try ($said | capture("(^|[^A-Za-z0-9_.-])\($file)[(:](?<n>[0-9]+)").n | tonumber - $a.skipped | select(. > 0) as $n
             | [range([$n - 2, 1] | max; $n + 2) | select(. <= ($source | length)) | "\n\(if . == $n then ">" else " " end) \("    \(.)"[-4:]) | \($source[. - 1][:200])"] | add) // "" )
       ] | join("\n\n") | . + "\n" | fence("text"; 16384)) + "\n" end;

# The outcome or verdict that ended an attempt.
def fate: if (.outcome // "code") | IN("code", "ideas") then .verdict // "not measured" else .outcome end;
def outcome($file): .skipped as $skipped | (.reason // "") as $reason | (.same_as // "") as $same
    | "- outcome: \(fate)\($reason | if . == "" then "" else ": " + message($file; $skipped) end)"
    + (if $same != "" and ($reason | contains($same) | not) then " (the same as \($same))" else "" end) + "\n";

# ---- What is wrong with a result ----

def index_of($shape): . as $i | if ($shape | length) == 0 or $i < 0 or $i >= (reduce $shape[] as $d (1; . * $d)) then ""
    else " = [" + (reduce ($shape | reverse[]) as $d ({i: $i, at: []}; .at = [.i % $d] + .at | .i = (.i / $d | floor)) | .at | map(tostring) | join(",")) + "]" end;
def evidence($outputs): if type != "object" then "" else . as $e | ($outputs | map(select(.name == $e.output))[0].shape // []) as $shape
    | "- with \(.distribution // "declared") contents, output \(.output // "?"): first wrong element at \(.index // -1 | if . < 1e18 then fix(0) else tostring end)\(.index // -1 | index_of($shape)): "
    + "expected \(.expected | finite(9)), found \(.found | finite(9))\n- wrong elements: \(.count // 0) of \(.of // 0)"
    + (if (.of // 0) > 0 then " (\(100 * .count / .of | g(3)) %)" else "" end) + (if (.unwritten // 0) > 0 then "; \(.unwritten) of the output's elements were never written" else "" end)
    + "\n" + (if (.pattern // "") != "" then "- where they lie: \(.pattern | line(600))\n" else "" end) end;
def errors: [(.error.candidate? | objects) // {} | to_entries[] | select((.value | type) == "object" and (.value | has("of_limit")) and (.value.of_limit // 2) > 1) | .value as $v
    | "- error with \(.key) contents: \($v.of_limit | finite(2)) x the limit; " + ([["rms", "part", "element", "bias"][] | "\(.) \($v[.] | finite(2))"] | join(", ")) + " spreads\n"] | add // "";
def missed: [(.missed? | objects) // {} | to_entries[] | select(.value | type == "object")
    | "- beyond the limits of class \(.key) with " + ([.value | to_entries[] | "\(.key) (\(.value | if type == "number" then "\(g(2)) x" else "not finite" end))"] | join(", ")) + " contents\n"] | add // "";

# ---- What was measured ----

def speed: (.result.time_us.candidate // {}) as $t
    | "- time: \(.us | us)" + (if ($t.low | positive) and ($t.high // 0) >= $t.low then " (95 %: \($t.low | us) to \($t.high | us))" else "" end) + ", class \(.class | some // "?")\n"
    + "- speedup: \(.ratio | fix(3)) (95 %: \(.low | fix(3)) to \(.high | fix(3)))" + (if .against_us > 0 then " over the \(.result.speedup.against // "vendor") library, \(.against_us | us)" else "" end) + "\n"
    + (.us as $us | .result // {} | (.floor_us // 0) as $floor | (.floor_bytes_us // 0) as $b | (.floor_flops_us // 0) as $f
       | if $floor > 0 and $us > 0 then "- floor: \($floor | us), set by \(if $f > $b then "products (memory \($b | us))" else "memory" end); the kernel runs at \(100 * $floor / $us | fix(0)) % of it\n" else "" end);

def resources: [.result.kernel.resources[]? | objects] as $all
    | ([$all[:8][] | "- compiled: \(.name // "?" | line(160)): \(.registers // 0) registers, \(.spill_bytes // 0) bytes spilled, \(.stack_bytes // 0) of stack, \(.shared_bytes // 0) of static shared memory\n"] | add // "")
    + (if ($all | length) > 8 then "- and \(($all | length) - 8) more device functions\n" else "" end);

# Launches as the tape has them, and how many of their blocks a multiprocessor holds.
def up($to): (. / $to | ceil) * $to;
def launches($limits; $sms): [.result.kernel.resources[]? | objects] as $compiled
    | [.tape // "" | split("\n")[] | capture("^kernel (?<name>[^ ]+) grid (?<g>[0-9 ]+) block (?<b>[0-9 ]+) shared (?<s>[0-9]+) cluster (?<c>[0-9]+ [0-9]+ [0-9]+)")
       | . as $k | ([$compiled[] | (.name // "" | split("(")[0] | split("<")[0] | split(" ")[-1] | split("::")[-1]) as $base | select($base != "" and ($k.name | contains("\($base | length)\($base)")))][0] // {}) as $f
       | (.g | split(" ") | map(tonumber)) as $g | (.b | split(" ") | map(tonumber)) as $b | ($b | .[0] * .[1] * .[2]) as $threads | ($g | .[0] * .[1] * .[2]) as $blocks
       | ((.s | tonumber) + ($f.shared_bytes // 0)) as $shared
       | "- launched: \($f.name // .name | line(100)): grid \($g | map(tostring) | join(" x ")), block \($b | map(tostring) | join(" x ")), \(.s) bytes of dynamic shared memory"
         + (if .c != "1 1 1" and .c != "0 0 0" then ", clusters of \(.c | split(" ") | join(" x "))" else "" end)
         + if $limits.threads_per_sm and ($f.registers | positive) and $threads > 0 then
             [[($limits.threads_per_sm / $threads | floor), "threads"], [($limits.registers_per_sm / (($f.registers * 32 | up(256)) * ($threads / 32 | ceil)) | floor), "registers"],
              [($limits.shared_per_sm_kib * 1024 / ($shared + 1024) | floor), "shared memory"], [$limits.blocks_per_sm, "blocks"]]
             | min_by(.[0]) as [$fit, $by] | "; \($fit) block\(if $fit == 1 then "" else "s" end) (\($fit * ($threads / 32 | ceil)) of \($limits.warps_per_sm) warps) fit on a multiprocessor, by \($by)"
             + (if ($sms | positive) and $fit > 0 then "; \($blocks / ($fit * $sms) | g(2)) waves" else "" end)
           else "" end + "\n"] | (.[:8] | add // "") + (if length > 8 then "- and \(length - 8) more launches\n" else "" end);

def circumstances: (.result // {}) as $r
    | (if ($r.launches | positive) then "- enqueued: \($r.launches) node\(if $r.launches == 1 then "" else "s" end); scratch \($r.scratch_bytes // 0 | bytes)\n" else "" end)
    + ([$r.flags[]? | strings | line(120)] | if . == [] then "" else "- flags: \(join("; "))\n" end)
    + ([.profile // "" | [try fromjson catch null][0] | objects | .sentences[]? | strings | "- profiler: \(line(600))\n"][:8] | add // "");
def idea: (.idea_text // "") | if . == "" then "" else "- idea: \(line(1000))\n" end;

# The floor that a kernel's own comment states may be another than the measured one.
def without_floor: sub("\\n *\\*? *Floor:(.|\\n)*?\\*/"; "\n */") | gsub("\\n *// *Floor:[^\\n]*"; "");

# An attempt's kernel without its lines of provenance, and the number of those.
def source: if .code == null then . + {skipped: 0} else
    (.code | split("\n")) as $lines
    | first(range(0; $lines | length) | select($lines[.] | test("^// (provenance:|prompt sha256|kernel sha256)") | not)) as $skipped
    | .skipped = $skipped | .code = ($lines[$skipped:] | join("\n")) end;

def shown: . as $in | "\(.task.name).cu" as $file | limits as $limits
    | if .shown == [] then null else "# Kernels measured so far\(if (.shown | length) > 1 then ", slowest first" else "" end)\n"
    + ([.shown | to_entries[] | "\n## Kernel \(.key + 1) of \($in.shown | length): \(.value.attempt | if . == "current" then "the present one" else . end)\n\n"
        + (.value | source | (if .ratio > 0 then speed else outcome($file) end) + resources + launches($limits; $in.machine.sm_count) + circumstances + idea + "\n"
           + (if .code then .code | without_floor | fence("cuda"; $in.most) else "(its source is not kept)\n" end))] | add) end;

def failed: . as $in | "\(.task.name).cu" as $file | part("meanings.json") as $words
    | .failed | if . == null then null else source | . as $a | "# What failed: \(.attempt)\n\n\($words[fate] // "")\n\n\(outcome($file))"
    + (if fate == "wrong" then (.result.evidence | evidence($in.task.outputs)) + (.result // {} | errors + missed) else "" end) + idea + "\n"
    + (if fate == "build" then compiler_log($a; $file) else "" end) + (if .code then "Its source:\n\n\(.code | fence("cuda"; $in.most))" else "" end) end;

# The end of a list of outcomes; the oldest are dropped.
def ledger_part: "\(.task.name).cu" as $file | (.ledger // "") | if . == "" then null else
    lines as $lines | ($lines | [reverse[] | . + "\n"] | first_lines(32768) | reverse) as $kept
    | "# What was tried, and what came of it\n\n\(if ($kept | length) < ($lines | length) then "(older entries are left out)\n\n" else "" end)"
      + ($kept | map(rtrimstr("\n") | message($file; 0)) | join("\n") + "\n" | fence("text"; 65536)) end;
def idea_to_do: (.idea // "") | if . == "" then null else "# The idea to carry out\n\n\(fence("text"; 8192))" end;

# ---- The task ----

def task: .task as $t | part("ops.json").ops as $ops | $t.cost as $c | $t
    | {title, name, tensors, graph: (.graph | fence("text"; infinite)), outputs: .written, header: (.header | fence("c"; infinite)),
       meanings: ([.ops[] | "- \(.): \($ops[.] // error({code: 3, text: "harness/gen/prompts/ops.json: no meaning of the op \(.): add it"}))"] | join("\n")),
       notes: (if .notes == [] then null else "Notes:\n\n" + ([.notes[] | "- \(line(2000))"] | join("\n")) end),
       bytes: "\($c.bytes_in) bytes read (\($c.bytes_in | bytes)), \($c.bytes_out) bytes written (\($c.bytes_out | bytes)), each once",
       flops: "\($c.flops | g(3)) additions and multiplications, \($c.mm_flops | g(3)) of them in products (matrix products, convolutions, attention)"};

# ---- Headers of the project ----

def include_of: capture("^ *# *include *\"(?<name>[A-Za-z0-9_.]{1,63})\"").name;
# The names of those that a source includes, and of those that these include, each after the one that needs it.
def included($headers; $source): reduce ($source | lines[] | select(contains("include")) | include_of | select($headers[.])) as $name (.;
    if index([$name]) then . else . + [$name] | included($headers; $headers[$name]) end);
def header_names: . as $in | [] | included($in.headers; $in.source) | join(" ");
def headers_shown: . as $in | reduce (.shown[], .failed | select(. != null) | .code // "") as $code ([]; included($in.headers; $code))
    | if . == [] then null else "# Headers of the project that these kernels include\n"
      + ([.[] | "\n## \(.)\n\n\($in.headers[.] | fence("cuda"; $in.most))"] | add) end;
def interfaces: [.offers | to_entries[] | "## \(.key)\n\n\(.value | fence("cuda"; 1536))"] | join("\n");

# ---- All of them ----

# Tell each sample its number, and ask all but the first for something unusual: samples of one request must
# differ, and some models have no temperature.  Repairs and implemented ideas differ by their starting
# point; a sample that is one of one is an independent draw.
def sample: if .of <= 1 or (.ask | IN("repair", "implement")) then "(Request \(.attempt).)"
    else "(Request \(.attempt): proposal \([.number, 1] | max) of \(.of), which are written independently. \(
        if .number > 1 then "Make it differ in kind from what the others are likely to be: not the first approach that comes to mind with other sizes, but another good one."
        else "Take the approach that you judge best." end))" end;

def texts: gpu + floors + task
    + {vendor: vendor, interfaces: interfaces, shown: shown, failed: failed, ledger: ledger_part, idea: idea_to_do, sample: sample,
       ideas_wanted: (.ideas_wanted | if . then tostring else null end)}
    + (tolerance | with_entries(.key |= "\(.)_limit" | .value |= tostring));
