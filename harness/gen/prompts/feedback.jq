# feedback.jq: texts of a prompt about earlier attempts: what was measured, what failed and why, what was tried;
# null if there is nothing.  prompt.jq says what the input is, harness/gen/attempt.h what an attempt is.
include "text";
include "facts";

# ---- Messages ----

# A message without this machine's folders: the kernel is kernel.cu, and its line numbers are less by
# the lines that are not shown.
def message($file; $skipped):
    def less: tonumber | if . > $skipped then . - $skipped else . end;
    def is_ours: (startswith("/") and rindex("/") > 0) or startswith("optimized/include/") or startswith("build/");
    gsub("[\\x00-\\x1f]"; " ") | gsub("at line (?<n>[0-9]+)(?![0-9])(?! of )"; "at line \(.n | less)")
    | gsub("(?<path>[A-Za-z0-9./+_-]+)(?<place>[(:](?<n>[0-9]+))?";
        (.path | split("/")[-1]) as $base
        | if $base == $file then "kernel.cu" + if .n then "\(.place[:1])\(.n | less)" else "" end
          elif $base != "" and (.path | is_ours) then "\($base)\(.place // "")"
          else "\(.path)\(.place // "")" end);

# The lines of source around one.
def lines_around($n): . as $source | [range([$n - 2, 1] | max; $n + 2) | select(. <= ($source | length))
    | "\n\(if . == $n then ">" else " " end) \("    \(.)"[-4:]) | \($source[. - 1][:200])"] | add // "";

# The compiler's first three errors, with what it says of instantiations, and the lines of source that they name.
def compiler_log($file): .skipped as $skipped | (.code // "" | lines) as $source
    | (.log // "" | split("\n")) as $log
    | [$log | to_entries[] | select(.value | test("(error|fatal) *[:#]|undefined reference")) | .key] as $at
    | if $at == [] then "" else
      ([range([3, ($at | length)] | min) as $i | $log[$at[$i]] as $error
        | [$log[$at[$i] + 1:($at[$i + 1] // ($log | length))][:12][]
           | select(test("instantiation|required from|argument types are|object type is"))][:3] as $more
        | ([$error, $more[]] | map(.[:600] | message($file; $skipped)) | join("\n"))
          + ([$error | capture("(^|[^A-Za-z0-9_.-])\($file)[(:](?<n>[0-9]+)").n | tonumber - $skipped | select(. > 0)][0]
             | if . then . as $n | $source | lines_around($n) else "" end)]
       | join("\n\n") + "\n" | fence("text"; 16384)) as $block
      | "The compiler's first error\(when(($at | length) > 1; "s")), of \($at | length):\n\n\($block)\n" end;

# The outcome or verdict that ended an attempt.
def fate: if (.outcome // "code") | IN("code", "ideas") then .verdict // "not measured" else .outcome end;
def fate_line($file): .skipped as $skipped | (.reason // "") as $reason | (.same_as // "") as $same
    | "- outcome: \(fate)\(when($reason != ""; ": " + ($reason | message($file; $skipped))))"
    + when($same != "" and ($reason | contains($same) | not); " (the same as \($same))") + "\n";

# ---- What is wrong with a result ----

# The place of element i of an array: " = [1,8]"; "" if it is outside.
def index_of($shape): if $shape == [] or . < 0 or . >= (reduce $shape[] as $d (1; . * $d)) then ""
    else reduce ($shape | reverse[]) as $d ({i: ., at: []}; .at = [.i % $d] + .at | .i = (.i / $d | floor))
    | " = [\(.at | map(tostring) | join(","))]" end;

def evidence($outputs): .result.evidence | if type != "object" or .output == null then "" else
    .output as $output | ([$outputs[] | select(.name == $output)][0].shape // []) as $shape | (.index // -1) as $i
    | "- with \(.distribution // "declared") contents, output \($output // "?"): first wrong element at "
      + ($i | if . < 1e18 then fix(0) else tostring end) + ($i | index_of($shape))
      + ": expected \(.expected | finite(9)), found \(.found | finite(9))\n"
    + "- wrong elements: \(.count // 0) of \(.of // 0)" + when((.of // 0) > 0; " (\(100 * .count / .of | g(3)) %)")
      + when((.unwritten // 0) > 0; "; \(.unwritten) of the output's elements were never written") + "\n"
    + when((.pattern // "") != ""; "- where they lie: \(.pattern | line(600))\n") end;

def entries: objects | to_entries[] | select(.value | type == "object");
def errors: [.result.error.candidate? | entries | .value as $v | select($v | has("of_limit") and (.of_limit // 2) > 1)
    | "- error with \(.key) contents: \($v.of_limit | finite(2)) x the limit; "
      + (["rms", "part", "element", "bias"] | map("\(.) \($v[.] | finite(2))") | join(", ")) + " spreads\n"] | add // "";
def missed: [.result.missed? | entries | "- beyond the limits of class \(.key) with "
      + ([.value | to_entries[] | "\(.key) (\(.value | if type == "number" then "\(g(2)) x" else "not finite" end))"] | join(", "))
      + " contents\n"] | add // "";

# ---- What was measured ----

def speed: .us as $us | .result as $r | ($r.time_us.candidate // {}) as $t
    | "- time: \($us | us)"
      + when(($t.low | positive) and ($t.high // 0) >= $t.low; " (95 %: \($t.low | us) to \($t.high | us))")
      + ", class \(.class // "?")\n"
    + "- speedup: \(.ratio | fix(3)) (95 %: \(.low | fix(3)) to \(.high | fix(3)))"
      + when(.against_us > 0; " over the \($r.speedup.against // "vendor") library, \(.against_us | us)") + "\n"
    + ($r // {} | when((.floor_us | positive) and $us > 0; "- floor: \(.floor_us | us), set by "
      + (if (.floor_flops_us // 0) > (.floor_bytes_us // 0) then "products (memory \(.floor_bytes_us // 0 | us))" else "memory" end)
      + "; the kernel runs at \(100 * .floor_us / $us | fix(0)) % of it\n"));

# At most eight of some lines, and how many more there are.
def first_eight($what): (.[:8] | add // "") + when(length > 8; "- and \(length - 8) more \($what)\n");

def compiled: [.result.kernel.resources[]? | objects];
def resources: [compiled[] | "- compiled: \(.name // "?" | line(160)): \(.registers // 0) registers, "
    + "\(.spill_bytes // 0) bytes spilled, \(.stack_bytes // 0) of stack, \(.shared_bytes // 0) of static shared memory\n"]
    | first_eight("device functions");

# What launched function `name`, mangled, is among those that are compiled; {} if that is not known.
def function_named($name): [.[] | (.name // "" | split("(")[0] | split("<")[0] | split(" ")[-1] | split("::")[-1]) as $base
    | select($base != "" and ($name | contains("\($base | length)\($base)")))][0] // {};

# How many blocks of so many threads a multiprocessor holds, and what sets the limit.
def occupancy($limits; $sms; $threads; $blocks; $shared): def up($to): (. / $to | ceil) * $to;
    ($threads / 32 | ceil) as $warps
    | [[$limits.threads_per_sm / $threads, "threads"], [$limits.registers_per_sm / ((.registers * 32 | up(256)) * $warps), "registers"],
       [$limits.shared_per_sm_kib * 1024 / ($shared + 1024), "shared memory"], [$limits.blocks_per_sm, "blocks"]]
    | map(.[0] |= floor) | min_by(.[0]) as [$fit, $by]
    | "; \($fit) block\(when($fit != 1; "s")) (\($fit * $warps) of \($limits.warps_per_sm) warps) fit on a multiprocessor, by \($by)"
      + when(($sms | positive) and $fit > 0; "; \($blocks / ($fit * $sms) | g(2)) waves");

# Launches as the tape has them.
def launches($limits; $sms): def product: .[0] * .[1] * .[2]; def by: map(tostring) | join(" x ");
    compiled as $compiled
    | [.tape // "" | split("\n")[]
       | capture("^kernel (?<name>[^ ]+) grid (?<grid>[0-9 ]+) block (?<block>[0-9 ]+) shared (?<shared>[0-9]+) "
                 + "cluster (?<cluster>[0-9]+ [0-9]+ [0-9]+)")
       | .name as $name | ($compiled | function_named($name)) as $f
       | ([.grid, .block, .cluster] | map(split(" ") | map(tonumber))) as [$grid, $block, $cluster]
       | ($block | product) as $threads | ((.shared | tonumber) + ($f.shared_bytes // 0)) as $shared
       | "- launched: \($f.name // $name | line(100)): grid \($grid | by), block \($block | by), "
         + "\(.shared) bytes of dynamic shared memory" + when(($cluster | product) > 1; ", clusters of \($cluster | by)")
         + when($limits.threads_per_sm and ($f.registers | positive) and $threads > 0;
                $f | occupancy($limits; $sms; $threads; $grid | product; $shared)) + "\n"]
    | first_eight("launches");

def circumstances: .result as $r
    | when($r.launches | positive; "- enqueued: \($r.launches) node\(when($r.launches != 1; "s")); "
                                   + "scratch \($r.scratch_bytes // 0 | bytes)\n")
    + ([$r.flags[]? | strings | line(120)] | when(. != []; "- flags: \(join("; "))\n"))
    + ([.profile // "" | [try fromjson catch null][0] | objects | .sentences[]? | strings | "- profiler: \(line(600))\n"][:8] | add // "")
    + (.idea_text // "" | when(. != ""; "- idea: \(line(1000))\n"));

# ---- Kernels, failures, history ----

# An attempt's kernel without its lines of provenance, and the number of those.
def source: if .code == null then .skipped = 0 else (.code | split("\n")) as $lines
    | first(range($lines | length) | select($lines[.] | test("^// (provenance:|prompt sha256|kernel sha256)") | not)) as $n
    | .skipped = $n | .code = ($lines[$n:] | join("\n")) end;
# The floor that a kernel's own comment states may be another than the measured one.
def without_floor: sub("\\n *\\*? *Floor:(.|\\n)*?\\*/"; "\n */") | gsub("\\n *// *Floor:[^\\n]*"; "");

def shown_kernel($file; $limits; $sms; $most): (if .ratio > 0 then speed else fate_line($file) end)
    + resources + launches($limits; $sms) + circumstances + "\n"
    + if .code then .code | without_floor | fence("cuda"; $most) else "(its source is not kept)\n" end;
def shown: "\(.task.name).cu" as $file | limits as $limits | .machine.sm_count as $sms | .most as $most
    | (.shown | length) as $n | if $n == 0 then null else
      "# Kernels measured so far\(when($n > 1; ", slowest first"))\n"
      + ([.shown | to_entries[] | .key as $i | .value
          | "\n## Kernel \($i + 1) of \($n): \(if .attempt == "current" then "the present one" else .attempt end)\n\n"
            + (source | shown_kernel($file; $limits; $sms; $most))] | add) end;

def failed: "\(.task.name).cu" as $file | part("meanings.json") as $meanings | .task.outputs as $outputs | .most as $most
    | .failed | if . == null then null else source
    | "# What failed: \(.attempt)\n\n\($meanings[fate] // "")\n\n\(fate_line($file))"
      + when(fate == "wrong"; evidence($outputs) + errors + missed)
      + (.idea_text // "" | when(. != ""; "- idea: \(line(1000))\n")) + "\n"
      + when(fate == "build"; compiler_log($file))
      + when(.code; "Its source:\n\n\(.code | fence("cuda"; $most))") end;

# The end of a list of outcomes; the oldest are dropped.
def history: "\(.task.name).cu" as $file | .ledger // "" | if . == "" then null else lines
    | length as $all | [reverse[] | . + "\n"] | first_lines(32768) | reverse
    | "# What was tried, and what came of it\n\n\(when(length < $all; "(older entries are left out)\n\n"))"
      + (map(rtrimstr("\n") | message($file; 0) + "\n") | add | fence("text"; 65536)) end;
def idea_to_do: .idea // "" | if . == "" then null else "# The idea to carry out\n\n\(fence("text"; 8192))" end;
