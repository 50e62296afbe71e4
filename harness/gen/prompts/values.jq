# values.jq: the parts of a prompt that are made of measurements and of earlier attempts, as an object
# of texts (null: unknown).  harness/gen/prompt_data.c says what the input is; $words has meanings.json.

# ---- Numbers and text ----

def fix($d): if . < 0 then "-" + (-. | fix($d)) else (. * pow(10; $d) | round) as $n | ($n / pow(10; $d) | floor) as $i | ($n - $i * pow(10; $d) | tostring) as $f
    | if $d == 0 then "\($i)" else "\($i)." + ("0" * ($d - ($f | length)) // "") + $f end end;
# So many significant digits: as a number, and as printf's %g has them.
def round_to($d): if . == 0 then 0 else pow(10; $d - 1 - (fabs | log10 | floor)) as $unit | (. * $unit | round) / $unit end;
def g($d): if . == 0 then "0" elif . < 0 then "-" + (-. | g($d)) else round_to($d) as $x | ($x | log10 + 1e-12 | floor) as $e
    | if $e >= -4 and $e < $d then $x | tostring
      else "\($x / pow(10; $e) | round_to($d))e\(if $e < 0 then "-" else "+" end)\($e | fabs | if . < 10 then "0\(.)" else tostring end)" end end;
def us: fix(if . >= 100 then 0 elif . >= 10 then 1 else 2 end) + " us";
def finite($d): if type == "number" then g($d) else "not finite" end; # JSON has no NaN and no infinity
def bytes: {x: ., u: 0} | until(.x < 1024 or .u == 4; .x /= 1024 | .u += 1) | "\(.x | g(4)) \(["B", "KiB", "MiB", "GiB", "TiB"][.u])";
def positive: type == "number" and . > 0;
def some: if . == "" then null else . end;
def line($most): gsub("[\\x00-\\x20\\x7f]+"; " ") | ltrimstr(" ") | rtrimstr(" ") | if length > $most then .[:$most] + "..." else . end;

# A block that its contents cannot close, cut after whole lines at so many bytes.
def fence($tag; $most):
    . as $all | (if utf8bytelength <= $most then . else reduce (split("\n")[] | . + "\n") as $l ({n: 0, s: [], full: false};
        ($l | utf8bytelength) as $k | if .full or .n + $k > $most then .full = true else .n += $k | .s += [$l] end) | .s | add // "" end) as $body
    | ([3, ($body | [match("`+"; "g").length | . + 1])[]] | max | . as $n | "`" * $n) as $mark
    | "\($mark)\($tag)\n\($body)\(if $body == "" or ($body | endswith("\n")) then "" else "\n" end)\($mark)\n"
      + (($all | utf8bytelength) - ($body | utf8bytelength) | if . > 0 then "(cut here: \(.) more bytes are not shown)\n" else "" end);

# ---- The GPU ----

def rate: if positive then round_to(2) | if . >= 1000 then "\(. / 1000 | g(2)) TB/s" else "\(g(3)) GB/s" end else null end;
def gpu:
    ($arch[0].architectures[.arch | match("^[0-9]+").string] // {}) as $limits | (.machine // {}) as $m | (.peaks // {}) as $p | .arch as $target
    | {device: ($m.gpu_name // .slug | line(80)), arch: .arch, capability: (.arch | match("^[0-9]+").string | "\(.[:-1]).\(.[-1:])"),
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

def floors: (.peaks // {} | map_values(if positive then round_to(2) else 0 end)) as $p | .cost as $c | .half as $half
    | ($c.bytes_in + $c.bytes_out) as $bytes | ($c.bytes_out < 0.05 * $bytes) as $reads # the same rules as time_main.c
    | (if $reads then $p.read_gbs else $p.copy_gbs end // 0) as $gbs | ([$p.fp32_tflops // 0, ($p.f16_tflops // 0) / 3] | max) as $fp32
    | {floor_bytes: (if $gbs > 0 then "at the measured rate of \(if $reads then "reading" else "copying" end) that takes about \($bytes / $gbs / 1000 | us)" else null end),
       floor_flops: (if $c.mm_flops <= 0 or ($p.f16_tflops // 0) <= 0 or ($p.fp32_tflops // 0) <= 0 then null else "at the measured rates the products take about "
         + if $half then "\($c.mm_flops / $p.f16_tflops / 1e6 | us) in class \($half)"
           else "\($c.mm_flops / $fp32 / 1e6 | us) in class fp32 (" + (if $fp32 > $p.fp32_tflops then "by three f16 products of split operands on tensor cores; by fp32 multipliers it is more"
             else "by fp32 multipliers" end) + ")" + (if ($p.tf32_tflops // 0) > 0 then ", \($c.mm_flops / $p.tf32_tflops / 1e6 | us) in class tf32" else "" end) end end)};

def vendor: .limits.rms as $limit | (.vendor // {}) as $r
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

def outcome($file): .skipped as $skipped | "- outcome: \(.fate)\(.reason | if . == "" then "" else ": " + message($file; $skipped) end)"
    + (.same_as as $same | if $same != "" and (.reason | contains($same) | not) then " (the same as \($same))" else "" end) + "\n";

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
    + ([.profile.sentences[]? | strings | "- profiler: \(line(600))\n"][:8] | add // "");
def idea: (.idea // "") | if . == "" then "" else "- idea: \(line(1000))\n" end;

# The floor that a kernel's own comment states may be another than the measured one.
def without_floor: sub("\\n *\\*? *Floor:(.|\\n)*?\\*/"; "\n */") | gsub("\\n *// *Floor:[^\\n]*"; "");

def shown: . as $in | ($arch[0].architectures[.arch | match("^[0-9]+").string] // {}) as $limits | if .shown == [] then null else "# Kernels measured so far\(if (.shown | length) > 1 then ", slowest first" else "" end)\n"
    + ([.shown | to_entries[] | "\n## Kernel \(.key + 1) of \($in.shown | length): \(if .value.current then "the present one" else .value.name end)\n\n"
        + (.value | (if .ratio > 0 then speed else outcome($in.file) end) + resources + launches($limits; $in.machine.sm_count) + circumstances + idea + "\n"
           + (if .code then .code | without_floor | fence("cuda"; $in.most) else "(its source is not kept)\n" end))] | add) end;

def failed: . as $in | .failed | if . == null then null else . as $a | "# What failed: \(.name)\n\n\($words[0][.fate] // "")\n\n\(outcome($in.file))"
    + (if .fate == "wrong" then (.result.evidence | evidence($in.outputs)) + (.result // {} | errors + missed) else "" end) + idea + "\n"
    + (if .fate == "build" then compiler_log($a; $in.file) else "" end) + (if .code then "Its source:\n\n\(.code | fence("cuda"; $in.most))" else "" end) end;

# The end of a list of outcomes; the oldest are dropped.
def ledger: .file as $file | (.ledger // "") | if . == "" then null else
    (split("\n") | if .[-1] == "" then .[:-1] else . end) as $lines | (reduce ($lines | reverse[]) as $l ({n: 0, s: [], full: false};
        ($l | utf8bytelength + 1) as $k | if .full or .n + $k > 32768 then .full = true else .n += $k | .s += [$l] end) | .s | reverse) as $kept
    | "# What was tried, and what came of it\n\n\(if ($kept | length) < ($lines | length) then "(older entries are left out)\n\n" else "" end)"
      + ($kept | map(message($file; 0)) | join("\n") + "\n" | fence("text"; 65536)) end;
def idea_to_do: (.idea // "") | if . == "" then null else "# The idea to carry out\n\n\(fence("text"; 8192))" end;

gpu + floors + {vendor: vendor, shown: shown, failed: failed, ledger: ledger, idea: idea_to_do}
+ (.limits | with_entries(.key |= "\(.)_limit" | .value |= tostring))
