# killed.sh: kill searches, and check the files they leave.  Sourced after tests/mock/lib.sh by
# scripts that define `searching MODE`, which runs a whole search.
# shellcheck shell=bash

# count NAMES SUFFIX - the number of such files of attempts.
count() { find build/attempts -path "*/$1*" -name "*$2" 2> /dev/null | wc -l; }
# kill_in MODE ROUND - search, and kill make with all its children once an attempt of that round has
# an answer.
kill_in() {
    set -m # the search is a process group of its own
    searching "$1" &
    local group=$!
    set +m
    for _ in $(seq 1200); do
        [ "$(count "$1.r$2a" .gen.json)" -gt 0 ] && break
        kill -0 $group 2> /dev/null || break
        sleep 0.05
    done
    kill -9 -- -$group 2> /dev/null
    wait $group 2> /dev/null
}
# paid_once MODE - each transcript holds one answer.
paid_once() {
    local f n
    for f in build/attempts/"$1".*/*/*.jsonl; do
        n=$(grep -c '"outcome":"complete"' "$f")
        [ "$n" = 1 ] || { echo "$f has $n answers"; return 1; }
    done
}
