#!/bin/bash
# The model client in trouble: errors and what is tried again, connections that break, and
# servers that send too much, too little or something else.
# uses: build/ask
# shellcheck disable=SC2016,SC2028  # $ of jq; escapes of the script
. tests/e2e/lib.sh
. tests/mock/lib.sh

check 'build/ask is there' test -x "$ask"
check 'the scripted server compiles' mock_build
{ [ -x "$ask" ] && [ -x "$scratch/mock" ]; } || exit
mock_start main

# error STATUS BODY [HEADER] - a rule that answers so, once where `once` is set.
error() {
    printf 'on\nstatus %s\n' "$1"
    [ -z "${once-}" ] || echo 'times 1'
    [ -z "${3-}" ] || echo "header $3"
    printf 'framing length\nsend %s\n' "$2"
}

# ---- Errors that pass -----------------------------------------------------------------

oai='{"error":{"message":"try later","type":"server_error","param":null,"code":null}}'
for code in 408 409 429 500 502 503 504 529; do
    { once=1 error $code "$oai"; printf 'on\nsays ok\n'; } | rules "passes-$code"
    call "passes-$code"
    check "$code is tried again" was 0 2 ok
    check "$code: a line of the transcript for each try" is "$(jq -r '"\(.try) \(.status)"' "$scratch/$case.jsonl" | tr '\n' ' ')" "1 $code 2 200 "
done
error 503 "$oai" | rules stays
call stays LLM_TRIES=4
check 'as often as LLM_TRIES says' failed 4 'try later'
check 'a server that stays away is exit 4' is "$status" 4
call stays LLM_TRIES=1
check 'once' is "$(requests | wc -l)" 5
for kind in 'openai {"error":{"message":"slow","type":"requests","code":"rate_limit_exceeded"}}' \
    'number {"error":{"message":"slow","type":"rate","code":429}}' \
    'string {"error":"slow down"}' 'empty ' 'text slow'; do
    { once=1 error 429 "${kind#* }"; printf 'on\nsays ok\n'; } | rules "rate-${kind%% *}"
    call "rate-${kind%% *}"
    check "429 of the kind: $kind" was 0 2 ok
done
api=anthropic
{ once=1 error 529 '{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"},"request_id":"r1"}'; printf 'on\nsays ok\n'; } | rules overloaded
call overloaded
check 'anthropic: overloaded' was 0 2 ok
api=chat
{ once=1; echo on; echo 'times 1'; echo 'data {"error":{"message":"gone away","type":"server_error","code":500}}'; printf 'on\nsays ok\n'; } | rules in-stream
call in-stream
check 'an error in the stream, with status 200' was 0 2 ok
{ echo on; echo 'data {"choices":[{"index":0,"delta":{"content":"int"},"finish_reason":null}]}'; echo 'data {"error":{"message":"gone away","type":"server_error","code":"server_error"}}'; echo 'data [DONE]'; } | rules in-stream-late
call in-stream-late
check 'an error in the midst of a stream that ends well' failed 3 'gone away'
error 502 '<html><head><title>502 Bad Gateway</title></head>\n<body>\n<h1>Bad Gateway</h1></body></html>' 'Content-Type: text/html' | rules html
call html
check 'an HTML error' failed 3 'bad gateway'
check 'is told without its tags' not grep -q '<h1>' "$scratch/html.err"

# ---- Errors that stay -----------------------------------------------------------------

for line in '400 context_length_exceeded' '401 invalid_api_key' '403 forbidden' '404 model_not_found' '413 too_large' '422 unprocessable'; do
    error "${line% *}" '{"error":{"message":"the words","type":"t","param":null,"code":"'"${line#* }"'"}}' | rules "stays-${line% *}"
    call "stays-${line% *}"
    check "$line is asked once" failed 1 'the words'
done
for code in 401 403 404; do
    call stays-$code LLM_TRIES=1
    check "$code is a matter of the configuration: exit 2" is "$status" 2
done
api=anthropic
error 401 '{"type":"error","error":{"type":"authentication_error","message":"invalid x-api-key"},"request_id":"r"}' | rules auth-a
call auth-a
check 'anthropic: a wrong key' failed 1 'x-api-key'
check 'exit 2' is "$status" 2
error 400 '{"type":"error","error":{"type":"billing_error","message":"no credit"}}' | rules billing
call billing
check 'anthropic: billing' failed 1 'no credit'
error 429 '{"type":"error","error":{"type":"billing_error","message":"no credit"}}' | rules billing-429
call billing-429
check 'whatever its status' failed 1 'no credit'
api=chat
for code in insufficient_quota credit_balance_exhausted; do
    error 429 '{"error":{"message":"You exceeded your quota","type":"insufficient_quota","param":null,"code":"'$code'"}}' 'Retry-After: 1' | rules $code
    call $code
    check "429 $code is asked once" failed 1 quota
done
error 429 '{"error":{"message":"no money","type":"requests","code":"credit_balance_exhausted"}}' | rules quota-code
call quota-code
check 'the code alone says it' failed 1 'no money'
error 402 '{"error":{"message":"pay","type":"t","code":402}}' | rules pay
call pay
check '402' failed 1 pay
error 400 '{"error":{"message":"too many tokens","code":"context_length_exceeded"}}' | rules context
call context
check 'a context that is too small names both of its parts' failed 1 'shorten the prompt, or lower LLM_MAX_TOKENS'
api=anthropic
error 400 '{"type":"error","error":{"type":"invalid_request_error","message":"Your credit balance is too low"}}' | rules balance
call balance
check 'anthropic: no credit' failed 1 'add credit'
api=chat
error 401 '{"error":{"message":"Invalid API Key","type":"authentication_error","code":401}}' | rules code-number
call code-number
check 'a code that is a number' failed 1 'Invalid API Key'

# ---- When to try again ----------------------------------------------------------------

# again CASE HEADER... - a 429 with these headers, then an answer.
again() {
    local name=$1 h
    shift
    { printf 'on\ntimes 1\nstatus 429\n'; for h; do echo "header $h"; done; printf 'send {}\non\nsays ok\n'; } | rules "$name"
    call "$name" LLM_BACKOFF_MS="${backoff-10}"
}
again after-ms 'retry-after-ms: 400' 'Retry-After: 60'
check 'retry-after-ms goes first' waited 1 0.39 9
again after-fraction-ms 'Retry-After-Ms: 250.5'
check 'of any case, with a fraction' waited 1 0.25 9
again after-seconds 'Retry-After: 1'
check 'Retry-After in seconds' waited 1 0.99 9
again after-date "Retry-After: $(LC_ALL=C date -u -d '+3 seconds' '+%a, %d %b %Y %H:%M:%S GMT')"
check 'Retry-After as a date' waited 1 1.2 9
again after-past 'Retry-After: Wed, 21 Oct 2015 07:28:00 GMT'
check 'a date that has passed' waited 1 0 9
backoff=200 again after-nonsense 'Retry-After: soon'
check 'one that is none: the usual wait' waited 1 0.14 9
backoff=200 again after-negative 'Retry-After: -5'
check 'a negative one, too' waited 1 0.14 9
printf 'on\nstatus 429\nheader Retry-After: 121\nsend {}\n' | rules after-long
SECONDS=0
call after-long LLM_SECONDS=600
check 'more than two minutes: given up' failed 1
check 'at once, exit 4' is "$([ $SECONDS -lt 30 ] && echo "$status")" 4
printf 'on\nstatus 429\nheader Retry-After: 60\nsend {}\n' | rules after-budget
SECONDS=0
call after-budget LLM_SECONDS=2
check 'longer than the time of the call: given up' failed 1
check 'in that time' test $SECONDS -lt 20
error 503 "$oai" 'x-should-retry: false' | rules should-not
call should-not
check 'x-should-retry: false' failed 1
{ once=1 error 425 "$oai" 'x-should-retry: true'; printf 'on\nsays ok\n'; } | rules should
call should
check 'x-should-retry: true' was 0 2 ok
error 500 "$oai" | rules backoff
call backoff LLM_BACKOFF_MS=100 LLM_TRIES=4
check 'waits double: the first' waited 1 0.074 2
check 'the second' waited 2 0.149 2
check 'the third' waited 3 0.299 2
printf 'on\nstatus 500\nsend {}\n' | rules call-time
SECONDS=0
call call-time LLM_BACKOFF_MS=500 LLM_TRIES=100 LLM_SECONDS=2
check 'all tries together take no longer than LLM_SECONDS' test $SECONDS -le 12
check 'and fail' is "$status" 4

# ---- Broken connections ---------------------------------------------------------------

# breaks CASE - the rule on stdin breaks the first try; the second answers.
breaks() {
    { cat; printf 'on\nsays all of it\n'; } | rules "$1-$api"
    call "$1-$api" "${@:3}"
    check "$api: $2: tried again, all of it once" was 0 2 'all of it'
}
for api in chat responses anthropic; do
    printf 'on\ntimes 1\nlimit 450\nsays all but the end of the kernel that was being written\n' | breaks cut 'cut in the midst'
    printf 'on\ntimes 1\nframing length\nlimit 450\nsays all but the end of the kernel that was being written\n' | breaks short 'shorter than its length'
    printf 'on\ntimes 1\nframing close\nlimit 450\nsays all but the end of the kernel that was being written\n' | breaks closed 'no framing, cut'
    printf 'on\ntimes 1\nframing close\n' | breaks nothing 'an empty body'
done
api=chat
end='data {"choices":[{"index":0,"delta":{"content":"int x;"},"finish_reason":"stop"}]}'
printf 'on\n%s\n' "$end" | rules no-done
call no-done
check 'finish_reason stop and a clean end, but no [DONE]: an answer' was 0 1 'int x;'
printf 'on\n%s\n' "${end/stop/eos}" | rules eos
call eos
check 'finish_reason eos' was 0 1 'int x;'
printf 'on\ntimes 1\n%s\n' "${end/stop/insufficient_system_resource}" | breaks resource 'the server ran out of resources'
{ printf 'on\nbody stream_options\nstatus 422\nsend {"detail":[{"type":"extra_forbidden","loc":["body","stream_options"]}]}\n'; printf 'on\nsays ok\n'; } | rules no-field
call no-field
check 'a server that refuses stream_options is asked without it' was 0 2 ok
check 'which the transcript says' kept '.request.stream_options == null and .outcome == "complete"'
printf 'on\nheader Content-Type: application/json\n%s\ndata [DONE]\n' "$end" | rules json-stream
call json-stream
check 'a stream that says it is JSON' was 0 1 'int x;'
printf 'on\nheader Content-Type: application/json\ndata {"error":{"message":"the words","code":"invalid_prompt"}}\n' | rules json-error
call json-error
check 'an error in such a stream' failed 1 'the words'
{ head -c 40000 /dev/zero | tr '\0' 'x'; echo ' case=cut-prompt;'; } > "$scratch/cut-prompt.prompt"
printf 'on\nusage 4096 0 10 0\nsays ok\n' | rules cut-prompt
call cut-prompt
check 'a prompt that the server cut' was 0 1 ok
check 'is warned of' grep -q '127.0.0.1 counts 4096 tokens in a request of 4.* bytes, so it has cut the prompt' "$scratch/cut-prompt.err"
printf 'on\ntimes 1\nreset\n' | breaks reset 'reset before the answer'
printf 'on\ntimes 1\ncut\n' | breaks hangup 'hung up before the answer'
printf 'on\ntimes 1\n%s\nwait 100\nreset\n' "$end" | breaks reset-late 'reset in the midst'
printf 'on\ntimes 1\nhang\n' | breaks silent 'no answer at all' LLM_IDLE_SECONDS=2
printf 'on\ntimes 1\n%s\nhang\n' "$end" | breaks stall 'silent in the midst' LLM_IDLE_SECONDS=2
printf 'on\nstatus 0\nsend garbage, no HTTP\\r\\n\\r\\n\ncut\n' | rules garbage
call garbage
check 'something else than HTTP' failed any
printf 'on\ntimes 1\nstatus 0\nsend HTTP/1.1 200 OK\\r\\nTransfer-Encoding: chunked\\r\\nContent-Type: text/event-stream\\r\\n\\r\\nzz\\r\\nnonsense\ncut\n' | breaks chunk 'a chunk that is none'
printf 'on\nwait 1500\nsays late\n' | rules late
call late LLM_IDLE_SECONDS=5
check 'a model that thinks before it speaks' was 0 1 late
printf 'on\npace 60 100\ndelta 40\nsays slow, but it comes\n' | rules drip
call drip LLM_IDLE_SECONDS=2
check 'a slow drip that lasts longer than the idle time' was 0 1 'slow, but it comes'
printf 'on\nrepeat 600 : keep-alive\\n\\n\npace 14 100\nrepeat 600 : keep-alive\\n\\n\n' | rules endless-drip
SECONDS=0
call endless-drip LLM_SECONDS=2 LLM_IDLE_SECONDS=9
check 'an endless one ends with LLM_SECONDS' test $SECONDS -le 12
check 'and is no answer' is "$status $(wc -c < "$scratch/endless-drip.out")" '4 0'

# ---- Too much -------------------------------------------------------------------------

# bounded MB - how much of the first reply was taken.
bounded() {
    local n sent
    n=$(requests | head -n 1 | jq .request)
    sent=$(for _ in 1 2 3 4 5; do jq --argjson n "$n" 'select(.reply == $n) | .sent' "$scratch/main.journal" | grep . && break; sleep 0.2; done)
    [ "${sent:-999999999}" -lt $(($1 * 1000000)) ] || { echo "$sent bytes were taken"; return 1; }
}
kb=$(head -c 1000 /dev/zero | tr '\0' 'x')
refused() { # WHAT PATTERN - the last call took no part of it
    check "$1: refused" is "$([ "$status" != 0 ] && [ ! -s "$scratch/$case.out" ] && echo so)" so
    check "$1: said so" grep -qiE "$2" "$scratch/$case.err"
}
printf 'on\nrepeat 60000 data: {"choices":[{"index":0,"delta":{"content":"%s"}}]}\\n\\n\ndata [DONE]\n' "$kb" | rules big-body
call big-body LLM_TRIES=1
refused 'a body of 60 MB' 'MB|large|long|bytes'
check 'no more than 16 MB of it were read' bounded 30
check 'nor kept' test "$(wc -c < "$scratch/big-body.jsonl")" -lt 40000000
printf 'on\nsend data: {"choices":[{"index":0,"delta":{"content":"\nrepeat 3000 %s\nsend "},"finish_reason":"stop"}]}\\n\\ndata: [DONE]\\n\\n\n' "$kb" | rules big-line
call big-line LLM_TRIES=1
refused 'a line of 3 MB' 'line|MB|long'
printf 'on\nrepeat 3000 data: %s\\n\nsend \\n\ndata [DONE]\n' "$kb" | rules big-event
call big-event LLM_TRIES=1
refused 'an event of 3 MB in short lines' 'line|event|MB|long'
printf 'on\nheaders 100\nsays x\n' | rules big-headers
call big-headers LLM_TRIES=1
refused 'headers of 100 KB' header
printf 'on\nheaders 100000\nsays x\n' | rules endless-headers
call endless-headers LLM_TRIES=1
refused 'endless headers' header
printf 'on\nstatus 500\nsend {"error":{"message":"\nrepeat 3000 %s\nsend "}}\n' "$kb" | rules big-error
call big-error LLM_TRIES=1
check 'an error of 3 MB' failed 1
check 'of which no more than 256 KB are kept' test "$(wc -c < "$scratch/big-error.jsonl")" -lt 700000
printf 'on\nplain\nheader Content-Type: application/json\nrepeat 30000 [[[[%s\n' "$kb" | rules big-json
call big-json LLM_TRIES=1
refused '30 MB of JSON' 'MB|large|long|JSON|bytes'
check 'no more than 16 MB of it were read' bounded 25
printf 'on\nheader Content-Type: application/json\nrepeat 100000 [\n' | rules deep
call deep LLM_TRIES=1
refused 'JSON that is too deep' JSON

# ---- Something else -------------------------------------------------------------------

printf 'on\nheader Content-Type: text/html\nsend <html><body>Log in to the network</body></html>\n' | rules portal
call portal
check 'a page with status 200' failed any 'html|stream'
printf 'on\nheader Content-Type: text/plain\n%s\ndata [DONE]\n' "$end" | rules plain-text
call plain-text
check 'a stream that says it is text' failed any 'text/plain'
printf 'on\nheader Content-Type: application/json\nsend {"ok":true}\n' | rules other-json
call other-json
check 'JSON that is no answer' failed any
printf 'on\nheader Content-Type: application/json\nsend {"choices":[{"message":{"content":"x"},"finish_reason":"stop"}]} trailing\n' | rules trailing
call trailing
check 'JSON with something behind it' failed any
printf 'on\nframing length\nheader Content-Type: application/json\nsend {"choices":[{"message":{"content":"a\\\\u0000b"},"finish_reason":"stop"}]}\n' | rules nul-json
call nul-json
check 'a NUL escape in JSON that is not streamed' is "$status $(jq -r .outcome "$scratch/nul-json.jsonl")" '3 invalid'
printf 'on\ndata not JSON\ndata [DONE]\n' | rules bad-event
call bad-event
check 'an event that is not JSON' failed any
printf 'on\ndata [1,2]\ndata "x"\ndata 7\ndata null\ndata {"choices":{}}\ndata {"choices":[7]}\ndata {"choices":[{"delta":7}]}\ndata {"choices":[{"delta":{"content":7}}],"usage":"x","model":5}\ndata [DONE]\n' | rules types
call types
check 'events of all wrong types' is "$([ "$status" -ge 2 ] && [ "$status" -le 4 ] && [ ! -s "$scratch/types.out" ] && echo so)" so
for status_ in 204 206 100; do
    printf 'on\nstatus %s\nframing length\n' $status_ | rules "odd-$status_"
    call "odd-$status_" LLM_TRIES=1 LLM_SECONDS=3
    check "status $status_" is "$([ "$status" != 0 ] && [ ! -s "$scratch/$case.out" ] && echo so)" so
done

# ---- Nobody there ---------------------------------------------------------------------

mock_start gone
mock_stop
dead=$port
SECONDS=0
call refused LLM_TRIES=3
check 'a server that is gone: one line, with its address' failed 0 "127.0.0.1:?$dead|127.0.0.1"
check 'exit 4, soon' is "$([ $SECONDS -le 12 ] && echo "$status")" 4
check 'each try is in the transcript' is "$(jq -c '[.status, (.error | length > 0)]' "$scratch/refused.jsonl" | uniq -c | tr -s ' ')" ' 3 [0,true]'
background=1 call revived LLM_TRIES=8 LLM_BACKOFF_MS=300
sleep 0.3
simple revived back
mock_start main -l "$dead"
wait $asked
status=$?
check 'one that comes back is found' was 0 1 back
for line in 'LLM=' 'LLM=openai' 'LLM=openai:' 'LLM=other:model' LLM_TRIES=0 LLM_TRIES=many LLM_TEMPERATURE=hot LLM_SECONDS=-1 LLM_MAX_TOKENS=1.5 LLM_SEED=x LLM_TOKEN_FIELD=tokens LLM_BACKOFF_MS=-1 OPENAI_BASE_URL=nonsense OPENAI_BASE_URL=ftp://127.0.0.1/v1 OPENAI_BASE_URL=file:///etc/passwd; do
    call config "$line"
    check "$line: exit 2, nothing is sent" failed 0 "${line%%=*}"
    check "$line: exit 2" is "$status" 2
done

leak_checks
