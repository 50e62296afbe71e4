# lib.sh: what tests/gpu/memory, tests/gpu/modules and tests/gpu/tampered share.
# shellcheck shell=bash

passed=0 failed=0
# check WHAT WANTED FOUND - one check: what was found is the pattern WANTED.
check() {
    # shellcheck disable=SC2053  # a pattern
    if [[ "$3" == $2 ]]; then
        passed=$((passed + 1)) && echo "ok   $1: $3"
    else
        failed=$((failed + 1)) && echo "FAIL $1: expected $2, found $3"
    fi
}
