# lib.sh: shared by the tests of the model client: the scripted server, a key that must not leak,
# and calls of build/ask.  Sourced after tests/e2e/lib.sh, from the root of the tree.
#
# The prompt of a case contains its name, so the server finds the rules of the case:
#
#     rules CASE << 'RULES'       what the server does; the case is added to each rule
#     call CASE [VAR=VALUE...]    ask; answer in $scratch/CASE.out, messages in CASE.err,
#                                 transcript in CASE.jsonl
#     check WHAT was 0 1 TEXT     exit status, number of requests, text of the answer
# shellcheck shell=bash disable=SC2034,SC2154

for v in $(compgen -e | grep -iE '^(LLM|OPENAI|ANTHROPIC|.*_API_KEY|.*_proxy$|SSL_CERT|CURL_)'); do unset "$v"; done
ask=${ASK:-$root/build/ask}
out=$scratch/last
api=chat options=()
servers=()
# Its characters include some that JSON may escape.  Never pass it as an argument or export it here.
key="mk-$(od -An -N18 -tx1 /dev/urandom | tr -d ' \n')/+z"

# needs WHAT PROGRAM... - skip the test if one of these is not built.
needs() {
    local what=$1 p
    shift
    for p; do [ -x "build/$p" ] || { skip "$what" "no build/$p (libcurl4-openssl-dev?)"; exit; }; done
}

# mock_build - compile the server, the shim that watches connections and run_many, once for all tests.
mock_build() {
    (
        exec 9> "$cache/mock.lock" && flock 9
        [ ! -e "$cache/mock" ] || exit 0
        gcc -std=gnu11 -O1 -iquote harness -o "$cache/mock+" tests/mock/{server,script,answer}.c harness/base/error.c -pthread &&
            gcc -std=gnu11 -O1 -shared -fPIC -o "$cache/net.so" tests/mock/net.c -ldl &&
            gcc -std=gnu11 -O1 -iquote harness -o "$cache/run_many" tests/mock/run_many.c harness/base/error.c && mv "$cache/mock+" "$cache/mock"
    ) && ln -sf "$cache"/{mock,net.so,run_many} "$scratch/"
}
# mock_start NAME [OPTION...] - start a server.  Its script is $scratch/NAME.rules, which may grow;
# its journal is NAME.journal.  Sets port and pid.
mock_start() {
    local name=$1
    shift
    : >> "$scratch/$name.rules"
    rm -f "$scratch/$name.port"
    printf '%s\n' "$key" | "$scratch/mock" -k -p "$scratch/$name.port" -j "$scratch/$name.journal" "$@" "$scratch/$name.rules" &
    pid=$!
    servers+=("$pid")
    for _ in $(seq 200); do
        [ ! -s "$scratch/$name.port" ] || { port=$(cat "$scratch/$name.port"); return; }
        sleep 0.02
    done
    echo 'FAIL the scripted server starts'
    exit 1
}
mock_stop() {
    for pid in "${servers[@]}"; do kill "$pid" 2> /dev/null && wait "$pid" 2> /dev/null; done
    servers=()
}
trap 'mock_stop; rm -rf "$scratch"' EXIT

# prompting - a tree with what gen and judge read; becomes the current folder.
prompting() {
    mkdir "$scratch/tree" && cd "$scratch/tree" || exit
    mkdir -p tasks harness/{gen,llm,judge,measure} optimized/include build/attempts
    cp -r "$root/tasks/level1" tasks/ && cp -r "$root/harness/gen/prompts" harness/gen/
    cp "$root/harness/measure/tolerance.h" harness/measure/
    cp "$root/harness/llm/prices.json" harness/llm/
    cp "$root"/harness/judge/{hacks.json,judge.txt,judge.jq} harness/judge/
    cp "$root"/optimized/include/{map,reduce,softmax}.cuh optimized/include/
}

# rules CASE - append the rules on stdin to the script, for this case only.
rules() { sed "s/^on\$/on\nbody case=$1;/" >> "$scratch/main.rules"; }
# simple CASE TEXT - answer the case with TEXT, in the stream format of its API.
simple() { printf 'on\nsays %s\n' "$2" | rules "$1"; }

# call CASE [VAR=VALUE...] - see above.  The variables `api` and `options` (of ask) apply.  KEY=
# gives no key; background=1 leaves the call running as process $asked.
call() {
    case=$1
    shift
    [ -e "$scratch/$case.prompt" ] || echo "Write it. case=$case;" > "$scratch/$case.prompt"
    rm -f "$scratch/$case.jsonl" # an answer there would be the answer
    (
        mkdir -p "$scratch/harness/llm" && cp harness/llm/prices.json "$scratch/harness/llm/" && cd "$scratch" || exit
        case $api in
            chat) export LLM=openai:model-x OPENAI_BASE_URL=http://127.0.0.1:$port/v1 ;;
            responses) export LLM=responses:model-x OPENAI_BASE_URL=http://127.0.0.1:$port/v1 ;;
            anthropic) export LLM=anthropic:model-x ANTHROPIC_BASE_URL=http://127.0.0.1:$port ;;
        esac
        export LLM_BACKOFF_MS=10 LLM_TRIES=3 LLM_SECONDS=20 OPENAI_API_KEY=$key ANTHROPIC_API_KEY=$key
        for v; do if [ "$v" = KEY= ]; then unset OPENAI_API_KEY ANTHROPIC_API_KEY; else export "${v?}"; fi; done
        exec "$ask" -t "$scratch/$case.jsonl" "${options[@]}"
    ) < "$scratch/$case.prompt" > "$scratch/$case.out" 2> "$scratch/$case.err" &
    asked=$!
    [ -z "${background-}" ] || return 0
    wait $asked
    status=$?
    cp "$scratch/$case.err" "$out"
}

# requests [CASE] - the journal's lines about the requests of a case.
requests() { grep '^{"request":' "$scratch/main.journal" | grep -F "case=${1:-$case};"; }
# was STATUS REQUESTS [TEXT] - check the last call's exit status, its number of requests, and its
# output (TEXT, ended by a newline).
was() {
    local n
    n=$(requests | wc -l)
    [ "$status" = "$1" ] || { echo "exit $status, not $1"; return 1; }
    [ "$n" = "$2" ] || { echo "$n requests, not $2"; return 1; }
    [ $# -lt 3 ] || { printf '%b' "$3" | awk 1 | cmp - "$scratch/$case.out" || { head -c 300 "$scratch/$case.out"; return 1; }; }
}
# failed REQUESTS|any [PATTERN] - check that the last call ended without an answer: no output, one
# message line (which matches PATTERN), a documented exit status.
failed() {
    local n last
    n=$(requests | wc -l)
    case $status in 2 | 3 | 4 | 5) ;; *) echo "exit $status"; return 1 ;; esac
    [ "$1" = any ] || [ "$n" = "$1" ] || { echo "$n requests, not $1"; return 1; }
    [ ! -s "$scratch/$case.out" ] || { echo 'something was printed:'; head -c 300 "$scratch/$case.out"; return 1; }
    last=$(tr '\r' '\n' < "$scratch/$case.err" | grep . | tail -n 1)
    [ -n "$last" ] || { echo 'no message'; return 1; }
    [ ${#last} -lt 1000 ] || { echo "a message of ${#last} bytes"; return 1; }
    [ $# -lt 2 ] || grep -qiE -- "$2" "$scratch/$case.err" || { echo "not said: $2"; return 1; }
}
# sent JQ [CASE] - check a condition on the body of the first request.
sent() { requests ${2+"$2"} | head -n 1 | jq -e ".body | fromjson | $1"; }
# header JQ - check a condition on the headers (lower-case names) of the first request.
header() { requests | head -n 1 | jq -e ".headers | $1"; }
# kept JQ - check a condition on the last line of the transcript.
kept() { tail -n 1 "$scratch/$case.jsonl" | jq -e "$1"; }
# waited K MIN MAX - check the seconds between reply K of the case and its next request.
waited() {
    local gap
    gap=$(jq -s --arg c "case=$case;" --argjson k "$1" '[.[] | select(.request and (.body | contains($c)))] as $q
        | ($q[$k - 1].request) as $n | $q[$k].time - ([.[] | select(.reply == $n)][0].time)' "$scratch/main.journal") || return
    jq -en "$gap >= $2 and $gap <= $3" || { echo "$gap s, not $2 to $3"; return 1; }
}

# Patterns of the key: plain, JSON-escaped, and base64 at every alignment.
key_forms() {
    printf '%s\n%s\n' "$key" "${key//\//\\/}"
    local pad code
    for pad in '' x xx; do
        code=$(printf '%s%s' "$pad" "$key" | base64 -w0)
        code=${code:4}
        printf '%s\n' "${code:0:${#code}-4}"
    done
}
# leaks FILE... - the files that contain the key in any form.
leaks() { grep -rlaF -f <(key_forms) -- "$@" 2> /dev/null; }
# no_leak FILE... - check that none does; print those that do.
no_leak() { ! leaks "$@"; }
# leak_checks - run at the end of every script of tests.
leak_checks() {
    printf 'a %s b' "$key" > "$scratch/bait"
    check 'the search for the key finds it where it is' is "$(leaks "$scratch")" "$scratch/bait"
    printf 'xx%s' "$key" | base64 > "$scratch/bait"
    check 'and its base64' is "$(leaks "$scratch")" "$scratch/bait"
    rm "$scratch/bait"
    check 'the key is in no file: answers, messages, transcripts, journals' no_leak "$scratch"
}
