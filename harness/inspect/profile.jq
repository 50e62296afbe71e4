# profile.jq: convert ncu's table (--csv --page raw: a line of names, a line of units, then a line
# for each launch) to PREFIX.profile.json.  Arguments: task, gpu, tool, cubin, asked (names of
# metrics).

def fields: [scan("\"((?:[^\"]|\"\")*)\"") | .[0] | gsub("\"\""; "\"")];
def number: gsub(","; "") | if test("^[-+]?[0-9.]+([eE][-+]?[0-9]+)?$") then tonumber else null end;

def time: "gpu__time_duration.sum";
def stall: "smsp__average_warps_issue_stalled_";
# The reason for each kind of stall.
def meaning: {
    long_scoreboard: "data from global or local memory",
    short_scoreboard: "data from shared memory, or a special function",
    barrier: "other warps at a barrier",
    wait: "an instruction of fixed latency",
    math_pipe_throttle: "a busy arithmetic pipe",
    mio_throttle: "the queue of shared memory and special functions",
    lg_throttle: "the queue of global and local memory",
    not_selected: "other warps that are issued instead",
    no_instruction: "the instruction cache",
    gmma: "tensor cores that work asynchronously"};

def percent: (. * 10 | round / 10 | tostring) + " %";
def rounded: . * 100 | round / 100;
def value($name): .metrics[$name].value;

# The first sentence: what limits the kernel.
def bound:
    (value("gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed")) as $memory |
    (value("sm__throughput.avg.pct_of_peak_sustained_elapsed")) as $compute |
    if $memory == null or $compute == null then null
    else
        (value("gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed")) as $dram |
        (value("sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_active")) as $tensor |
        "memory at \($memory | percent) of its peak" + (if $dram then " (DRAM \($dram | percent))" else "" end) +
        ", compute at \($compute | percent)" + (if $tensor then " (tensor cores \($tensor | percent))" else "" end) + ": " +
        (if $memory < 60 and $compute < 60 then "latency-bound, neither is busy"
         elif $memory >= 60 and $compute >= 60 then "bound by both"
         elif $memory > $compute then "memory-bound" else "compute-bound" end)
    end;

# The second sentence: why warps wait, and what limits their number.
def waits:
    [.metrics | to_entries[] | select((.key | startswith(stall)) and .value.value != null) |
        {name: (.key | ltrimstr(stall) | rtrimstr("_per_issue_active.ratio")), cycles: .value.value}] | max_by(.cycles);
def limits:
    [{what: "registers", n: value("launch__occupancy_limit_registers")},
     {what: "shared memory", n: value("launch__occupancy_limit_shared_mem")},
     {what: "the size of a block", n: value("launch__occupancy_limit_warps")},
     {what: "the number of blocks", n: value("launch__occupancy_limit_blocks")}] | map(select(.n != null and .n > 0)) |
    (map(.n) | min) as $least | if $least == null then null else {n: $least, by: (map(select(.n == $least).what) | join(" and "))} end;
def waiting:
    waits as $w | limits as $l | value("smsp__average_warp_latency_per_inst_issued.ratio") as $all |
    value("sm__warps_active.avg.pct_of_peak_sustained_active") as $active | value("sm__maximum_warps_per_active_cycle_pct") as $most |
    value("launch__registers_per_thread") as $registers |
    [(if $w == null then empty else
        "a warp waits longest for \(meaning[$w.name] // $w.name) (\($w.name)): \($w.cycles | rounded)" +
        (if $all then " of the \($all | rounded)" else "" end) + " cycles from one instruction to the next" end),
     (if $active == null then empty else
        "occupancy is \($active | percent)" + (if $most then ", at most \($most | percent)" else "" end) +
        (if $l then ", as \($l.by) allow\(if $l.by | test(" and |registers") then "" else "s" end) \($l.n) block\(if $l.n == 1 then "" else "s" end) on a multiprocessor" else "" end) +
        (if $registers then " (\($registers) registers a thread)" else "" end) end)] |
    if . == [] then null else join("; ") end;

split("\n") | map(select(. != "") | fields) | .[0] as $names | .[1] as $units |
($asked | split(" ") | map(select(. != ""))) as $wanted |
[.[2:][] | . as $row | ([range($names | length) | {key: $names[.], value: $row[.]}] | from_entries) as $of |
    {name: ($of["Kernel Name"] // "?"), grid: $of["Grid Size"], block: $of["Block Size"],
     metrics: ([range($names | length) | select($names[.] as $n | $wanted | index($n) != null) |
         {key: $names[.], value: {value: ($row[.] | number), unit: $units[.]}} | select(.value.value != null)] | from_entries)}] |
if length == 0 or all(.[]; .metrics == {}) then error("no metrics") else . end |
(map(value(time) // 0) | add) as $total |
map(. + {share: (if $total > 0 then ((value(time) // 0) / $total) else null end)}) |
. as $kernels | max_by(.share // 0) as $main |
{schema: 1, task: $task, gpu: $gpu, tool: $tool, cubin_sha256: $cubin,
 clock_control: "none", cache_control: "all",
 of: $main.name, metrics: $main.metrics,
 left_out: ($wanted - ($main.metrics | keys)),
 launches: ($kernels | length),
 sentences: ([($main | bound), ($main | waiting)] | map(select(. != null)) |
    (if ($kernels | length) > 1 and length > 0 then
        ["The launch of \($main.name), \(100 * ($main.share // 0) | percent) of the time of all \($kernels | length): " + .[0]] + .[1:]
     else . end) |
    map((.[:1] | ascii_upcase) + .[1:] + ".")),
 kernels: $kernels[:20]}
