#!/bin/bash
# The rules of verify and time, one by one, on a pretend GPU (tests/fake): what would go
# unnoticed if a rule were lost.  fake.sh looks at verdicts and files.
# They stand in tests/fake/rules_verify.sh, rules_time.sh and rules_modes.sh.
# RULES='order controls' bash tests/e2e/fake_rules.sh checks those alone.  Needs CUDA's headers.
# uses: build/fake/verify build/fake/time build/fake/recorder build/fake/runner build/fake/baseline
# shellcheck disable=SC2034,SC2154,SC2119,SC2120,SC2317  # out is lib.sh's; timed may go without arguments; check runs functions
. tests/e2e/lib.sh
. tests/fake/rules_verify.sh
. tests/fake/rules_time.sh
. tests/fake/rules_modes.sh
. tests/fake/lib.sh
log=$scratch/log
export KP_CELL_SECONDS=100 # only a rule about time may find it up, however busy this machine is

# verified, timed [KNOB...] - run a step of the cell with these knobs; log and $out say what it did.
verified() { logged_step verify "$@"; }
timed() { logged_step time "$@"; }
# moded [KNOB...] - `time --modes` of the cell.
moded() {
    rm -f "$log" "$cell.modes.json"
    CUDA_VISIBLE_DEVICES="$* log=$log" "$bin/time" --modes "$json" "$cell" > "$out" 2>&1
}
logged_step() {
    rm -f "$log" "$cell.$1.json"
    step "$@" "log=$log"
}
# swapped KERNEL [-D...] - another kernel takes the place of the one that was verified.
swapped() {
    compiled "$1" "${cell##*/}" "${@:2}" && mv "$1.so" "$cell.cubin"
    jq --arg sha "$(sha256sum < "$cell.cubin" | cut -d' ' -f1)" '.cubin_sha256 = $sha' "$cell.verify.json" > edited
    cp edited "$cell.verify.json"
}
holds() { is "$(of "$1" "$2")" true; } # holds time '.harness.rounds > 30'
# flagged_with WORD - some flag begins with it.
flagged_with() { holds time ".flags | any(startswith(\"$1\"))"; }
flagged() { holds time ".flags | index(\"$1\") != null"; }
logged() { grep -cE -- "$1" "$log"; }

for rule in ${RULES-verdicts cancelled limits class outside seeds slices alike sandbox patience audit order controls oracle timed distributions against flags stop short precision bounds missing memory descriptors modes modes_server modes_plan modes_verdicts}; do "rule_$rule"; done
