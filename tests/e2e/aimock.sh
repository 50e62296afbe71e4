#!/bin/bash
# The model client against a mock server that others wrote (@copilotkit/aimock, the version of
# tests/mock/package-lock.json): streams, usage, errors and chaos of the three APIs.  Without
# Node 20 it is skipped; not so in continuous integration (CI set).
# uses: build/ask
# shellcheck disable=SC2016  # $ of jq
. tests/e2e/lib.sh
. tests/mock/lib.sh

check 'build/ask is there' test -x "$ask"
[ -x "$ask" ] || exit
missing=$(node -e 'process.exit(process.versions.node.split(".")[0] >= 20 ? 0 : 1)' 2> /dev/null && command -v npm > /dev/null || echo 'no Node 20 with npm')
bin=$root/build/npm/node_modules/@copilotkit/aimock/dist/cli.js
# install - as the lock file says, once for each state of it.
install() {
    cmp -s tests/mock/package-lock.json build/npm/package-lock.json && [ -e build/npm/installed ] && return
    mkdir -p build/npm && rm -f build/npm/installed && cp tests/mock/package{,-lock}.json build/npm/ &&
        (cd build/npm && npm ci --no-audit --no-fund --ignore-scripts) > "$out" 2>&1 && : > build/npm/installed
}
[ -n "$missing" ] || install || missing="npm ci failed: $(tail -n 1 "$out")"
if [ -n "$missing" ]; then
    if [ -n "${CI-}" ]; then check "aimock: $missing" false; else skip 'the client against aimock' "$missing"; fi
    exit
fi
check 'aimock is the version that was pinned' is "$(jq -r .version "${bin%/dist/*}/package.json")" "$(jq -r '.devDependencies["@copilotkit/aimock"]' tests/mock/package.json)"

# The key that it asks for, and nothing else of this environment, is the server's.
env -i PATH="$PATH" HOME="$scratch" AIMOCK_API_KEYS=aimock-test-key \
    node "$bin" -p 0 -h 127.0.0.1 --strict --validate-on-load -f tests/mock/aimock.json > "$scratch/aimock.log" 2>&1 &
servers+=($!)
for _ in $(seq 300); do
    port=$(sed -n 's|.*listening on http://127.0.0.1:\([0-9]*\).*|\1|p' "$scratch/aimock.log")
    [ -z "$port" ] || break
    sleep 0.05
done
check 'aimock listens on loopback' test -n "$port"
[ -n "$port" ] || { cat "$scratch/aimock.log"; exit; }

key=aimock-test-key
# journal JQ - what aimock has seen of the case.
journal() {
    KEY=$key node -e "fetch('http://127.0.0.1:$port/__aimock/journal', {headers: {'x-api-key': process.env.KEY}}).then(r => r.text()).then(console.log)" |
        jq -c --arg c "case=$case;" "[.[] | select(.body | tostring | contains(\$c))] | $1"
}
requests() { journal '.[] | 1'; }

for api in chat responses anthropic; do
    call "text-$api"
    check "$api: text, byte for byte" was 0 1 'int x; // ü €\n"q" \\n'
    check "$api: usage" kept '.usage | .input == 321 and .output == 45'
    check "$api: its request id" kept '.headers["x-request-id"] // .headers["request-id"] | startswith("req-")'
    call "split-$api"
    check "$api: many pieces" was 0 1 'many pieces: ü€ 0123456789 abcdefghijklmnopqrstuvwxyz'
    call "reasoning-$api"
    check "$api: reasoning is no part of the answer" was 0 1 'int y;'
    options=(-s 'You write kernels.')
    call "system-$api"
    check "$api: the system text" was 0 1 'system seen'
    options=()
    call "length-$api"
    check "$api: cut at the cap" is "$status $(requests | wc -l) $(jq -r .outcome "$scratch/$case.jsonl")" '3 1 cut'
    call "filter-$api"
    check "$api: filtered" is "$([ "$status" != 0 ] && echo so)" so
    call "rate-$api" LLM_BACKOFF_MS=10
    check "$api: 429 with Retry-After" was 0 2 'after a while'
    check "$api: which was waited for" is "$(jq -s 'length' "$scratch/$case.jsonl") $(jq -rs '.[0].headers["retry-after"]' "$scratch/$case.jsonl")" '2 1'
    check "$api: a second" is "$(journal '.[1].timestamp - .[0].timestamp | . > 990 and . < 9000')" true
    call "over-$api"
    check "$api: 529" was 0 2 'after a while'
    call "down-$api"
    check "$api: 529 for ever" failed 3 'Still overloaded'
    check "$api: exit 4" is "$status" 4
    call "quota-$api"
    check "$api: no quota" failed 1 quota
    call "bad-$api"
    check "$api: 400" failed 1 'max_tokens: too large'
    call "unknown-$api"
    check "$api: a model that there is none of: exit 2" is "$status $(requests | wc -l)" '2 1'
    call "cut-$api"
    check "$api: cut in the midst" failed 3
    call "disconnect-$api"
    check "$api: disconnected" failed 3
    call "malformed-$api"
    check "$api: malformed" failed any
    call "drop-$api"
    check "$api: 500" failed 3 'dropped'
    call "none-$api"
    check "$api: what aimock has no fixture for" is "$([ "$status" != 0 ] && [ ! -s "$scratch/$case.out" ] && echo so)" so
    call "text-$api" OPENAI_API_KEY=not-the-key-1 ANTHROPIC_API_KEY=not-the-key-1
    check "$api: a wrong key: exit 2" is "$status" 2
    check "$api: the wrong key is in no message" not grep -rq not-the-key-1 "$scratch"
    call "text-$api" KEY=
    check "$api: no key: exit 2" is "$status" 2
done
check 'the key is in no file' not grep -rqaF "$key" "$scratch"
