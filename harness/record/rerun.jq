#!/usr/bin/env -S jq -nrf
# rerun.jq RESULT.json... - print the row of each result in results/reruns/GPU.csv.  One that is not ok,
# or does not say what it was measured of, has none.
#
# Runs with equal `setup` are runs of the same files by the same software: the first eight digits of the
# hashes of the kernel's sources, the reference and the harness; then the machine, but for the board.

def software: [.memory_bytes, .power_limit_w, .ecc, .mig, .driver, .cuda, .cublas, .cudnn];
def setup:
    [.inputs.kernel[0:8], .inputs.reference[0:8], .inputs.harness[0:8]] + (.machine | software)
    | map(tostring | gsub("[, ]"; "_")) | join("/");

inputs
| select(.verdict == "ok" and (.inputs | type) == "object" and (.inputs.kernel | type) == "string")
| [.task, setup, .machine.uuid_hash[0:6], .harness.date, .harness.commit, .speedup.ratio, .speedup.low,
   .speedup.high, .time_us.candidate.midmean, .floor_bytes_us, .floor_flops_us, .harness.wall_seconds]
| map(tostring) | join(",")
