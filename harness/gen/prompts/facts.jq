# facts.jq: texts of a prompt about the GPU, the task, what is recorded of both, and the project's headers;
# null if unknown.  prompt.jq says what the input is.
include "text";

# A file of data beside this one.
def part($name): .parts[$name]
    // error({code: 3, text: "harness/gen/prompts/\($name): cannot read it: restore it"}) | fromjson;

def positive: type == "number" and . > 0;
# What f makes of a positive number, else null; of a condition, else "".
def known(f): if positive then f else null end;
def when(condition; f): if condition then f else "" end;

# ---- The GPU ----

# What arch.json knows of the architecture.
def limits: (.arch | match("^[0-9]+").string) as $number | part("arch.json").architectures[$number] // {};

def rate: known(round_to(2) | if . >= 1000 then "\(. / 1000 | g(2)) TB/s" else "\(g(3)) GB/s" end);
def products: [["f16 with fp32 sums", .f16_tflops], ["tf32", .tf32_tflops],
               ["fp32 without tensor cores", .fp32_tflops], ["f64", .f64_tflops]]
    | map(select(.[1] | positive) | "\(.[0]) \(.[1] | round_to(2) | fix(if . < 10 then 1 else 0 end))")
    | if . == [] then null else join(", ") + " TFLOP/s" end;

# has_a: what the target needs an a for, as in 90a.
def features: .arch as $target | limits | (.has_a // "") as $only | ($target | test("a")) as $a
    | {has: ((.has // "") + when($only != "" and $a; "; \($only)")),
       lacks: ((.lacks // "") + when($only != "" and ($a | not); "; for this target also not: \($only)"))};

def gpu_facts: (.machine // {}) as $m | (.peaks // {}) as $p
    | {device: ($m.gpu_name // .gpu | line(80)), arch, chips: limits.chips,
       capability: (.arch | match("^[0-9]+").string | "\(.[:-1]).\(.[-1:])"),
       sms: ($m.sm_count | known(tostring)), l2: ($m.l2_bytes | known(bytes)), memory: ($m.memory_bytes | known(bytes)),
       clock: ($m.clocks.sm_mhz | known(. / 1000 | g(3))),
       shared_rate: ($m.sm_count // 0 | . * ($m.clocks.sm_mhz // 0) | known("\(128 * . / 1e6 | g(2)) TB/s")),
       l2_read: ($p.l2_read_gbs | rate), read: ($p.read_gbs | rate), copy: ($p.copy_gbs | rate), products: ($p | products)}
    + features
    + (limits | {registers_per_sm, registers_per_thread, threads_per_sm, warps_per_sm, blocks_per_sm, threads_per_block,
                 shared_per_sm: .shared_per_sm_kib, shared_per_block: .shared_per_block_kib}
       | map_values(known(tostring)));

# ---- What the task costs at least, and what the libraries do ----

# The rules are those of harness/task/cost.c.
def floor_bytes: (.peaks // {}) as $p | (.task.cost | [.bytes_in, .bytes_out]) as [$in, $out]
    | ($out + ([$in, $out] | min)) as $copied | [$p.copy_gbs, $p.read_gbs]
    | if all(positive) then map(round_to(2)) as [$copy, $read]
        | "at the measured rates of copying and reading that takes about "
          + ($copied / $copy / 1000 + ($in + $out - $copied) / $read / 1000 | us)
      else null end;

def floor_flops: (.peaks // {} | map_values(if positive then round_to(2) else 0 end)) as $p
    | .task.half as $half | .task.cost.mm_flops as $flops
    | ([$p.f16_tflops, $p.fp32_tflops] | map(. // 0)) as [$f16, $fp32]
    | def at($tflops; $class): "\($flops / $tflops / 1e6 | us) in class \($class)";
    if $flops <= 0 or $f16 <= 0 or $fp32 <= 0 then null
    else "at the measured rates the products take about "
      + if $half then at($f16; $half)
        else (if $f16 / 3 > $fp32 then at($f16 / 3; "fp32")
                + " (by three f16 products of split operands on tensor cores; by fp32 multipliers it is more)"
              else at($fp32; "fp32") + " (by fp32 multipliers)" end)
          + when(($p.tf32_tflops // 0) > 0; ", " + at($p.tf32_tflops; "tf32")) end
    end;

# The limits of errors, in spreads: the numbers of harness/measure/tolerance.h.
def tolerance: .tolerance as $text
    | {rms_limit: "RMS", part_limit: "PART", element_limit: "ELEMENT", bias_limit: "BIAS"}
    | map_values(. as $name | [$text | match("KP_\($name)_LIMIT = ([0-9.]+)").captures[0].string][0]
                 // error({code: 3, text: "harness/measure/tolerance.h: lacks KP_\($name)_LIMIT"}));

def vendor_times: [.time_us // {} | to_entries[] | select(.key != "candidate")
    | select(.value.midmean | positive)] as $times | .error as $error
    | [$times[] | "- class \(.key): \(.value.midmean | round_to(2) | us)"
       + ($error[.key].declared.rms // 0
          | when(. > 0; ", off by \(g(2) | tonumber) spreads (root mean square)"))];
def vendor: (tolerance.rms_limit | tonumber) as $limit | .vendor // {}
    | .class as $class | (.error.spread.declared.norm // 0) as $spread
    | vendor_times | if . == [] then null else
      ["What the vendor libraries do, as recorded on this kind of GPU:\n"] + .
      + [$spread | select(. > 0 and ($class // "") != "") | round_to(2)
         | "- a spread of class \($class) is about \(g(2)) of the output's root mean square with the declared contents, "
           + "so the limit of \($limit) is \($limit * . | g(2))"]
      | join("\n") end;

# ---- The task ----

def meaning($ops): "- \(.): \($ops[.] // error({code: 3, text: "harness/gen/prompts/ops.json: no meaning of the op \(.): add it"}))";
def task_facts: part("ops.json").ops as $ops
    | {floor_bytes: floor_bytes, floor_flops: floor_flops, vendor: vendor} + (.task | .cost as $c
    | {title, name, tensors, outputs: .written, graph: (.graph | fence("text"; infinite)), header: (.header | fence("c"; infinite)),
       meanings: (.ops | map(meaning($ops)) | join("\n")),
       notes: (if .notes == [] then null else "Notes:\n\n" + (.notes | map("- \(line(2000))") | join("\n")) end),
       bytes: ("\($c.bytes_in) bytes read (\($c.bytes_in | bytes)), "
               + "\($c.bytes_out) bytes written (\($c.bytes_out | bytes)), each once"),
       flops: ("\($c.flops | g(3)) additions and multiplications, \($c.mm_flops | g(3)) of them in products "
               + "(matrix products, convolutions, attention)")});

# ---- Headers of the project ----

def interfaces: [.offers | to_entries[] | "## \(.key)\n\n\(.value | fence("cuda"; 1536))"] | join("\n");

def includes: lines[] | select(contains("include")) | capture("^ *# *include *\"(?<name>[A-Za-z0-9_.]{1,63})\"").name;
# The names of those that a source includes, and of those that these include, each after the first that needs it.
def included($headers; $source): reduce ($source | includes | select($headers[.])) as $name (.;
    if index([$name]) then . else . + [$name] | included($headers; $headers[$name]) end);
def header_names: . as $in | [] | included($in.headers; $in.source) | join(" ");
# Those that the turn's kernels include.
def headers_shown: . as $in
    | reduce ([.shown[], .failed][] | .code? // "") as $code ([]; included($in.headers; $code))
    | if . == [] then null else "# Headers of the project that these kernels include\n"
      + (map("\n## \(.)\n\n\($in.headers[.] | fence("cuda"; $in.most))") | add) end;
