#!/bin/bash
# The model client against the scripted server: requests, and what is made of the streams of
# the three APIs.  Its troubles are in llm_trouble.sh, its secrets in llm_secrets.sh.
# uses: build/ask
# shellcheck disable=SC2016,SC2028  # $ of jq; escapes of the script
. tests/e2e/lib.sh
. tests/mock/lib.sh

check 'build/ask is there' test -x "$ask"
check 'the scripted server compiles' mock_build
{ [ -x "$ask" ] && [ -x "$scratch/mock" ]; } || exit
mock_start main

# ---- Requests -------------------------------------------------------------------------

for api in chat responses anthropic; do
    simple "plain-$api" 'line 1\n  "quoted" \\n tab\tü €\n'
    options=(-s 'You write kernels.')
    call "plain-$api"
    check "$api: the answer is printed byte for byte" was 0 1 'line 1\n  "quoted" \\n tab\tü €\n'
    check "$api: model, and a stream" sent '.model == "model-x" and .stream == true'
    check "$api: nothing that was not set is sent" sent '[paths | map(tostring) | join(".")] |
        any(test("temperature|seed|effort|reasoning|top_p|stop|thinking")) | not'
    check "$api: JSON, without 100-continue" header '.["content-type"] == "application/json" and has("expect") == false'
    check "$api: a user agent of its own" header '.["user-agent"] | test("^[a-z]+/[0-9.]+"; "i") and (test("curl"; "i") | not)'
    check "$api: the key is sent" is "$(requests | jq -r .key)" right
    check "$api: the body has no blanks" is "$(requests | jq -r .body | grep -c '": ')" 0
    mv "$scratch/$case.jsonl" "$scratch/$case.first"
    call "plain-$api" LLM_TRIES=1 LLM_SECONDS=9
    check "$api: the same question is the same bytes" is "$(requests | jq -c .body | uniq | wc -l)" 1
    check "$api: and of the same hash" is "$(jq -r .request_sha256 "$scratch/$case.jsonl")" "$(jq -r .request_sha256 "$scratch/$case.first")"
    check "$api: which is that of the bytes" is "$(requests | head -n 1 | jq -j .body | sha256sum | cut -d ' ' -f 1)" "$(jq -r .request_sha256 "$scratch/$case.jsonl")"
    simple "set-$api" 'x'
    seed=$([ $api != chat ] || echo yes)
    call "set-$api" LLM_TEMPERATURE=0.25 LLM_EFFORT=high LLM_MAX_TOKENS=1234 ${seed:+LLM_SEED=7}
    case $api in
        chat) want='.temperature == 0.25 and .reasoning_effort == "high" and .max_completion_tokens == 1234 and .seed == 7' ;;
        responses) want='.temperature == 0.25 and .reasoning.effort == "high" and .max_output_tokens == 1234' ;;
        *) want='.temperature == 0.25 and .output_config.effort == "high" and .max_tokens == 1234' ;;
    esac
    check "$api: what was set is sent" sent "$want"
    [ -n "$seed" ] || { call "seed-$api" LLM_SEED=7; check "$api: has no seed, and says so" failed 0 LLM_SEED; }
done
case=plain-chat
check 'chat: path, bearer, default cap, usage asked for' sent '.max_completion_tokens == 32768 and .stream_options.include_usage'
check 'chat: system and user' sent '[.messages[].role] == ["system", "user"] and .messages[0].content == "You write kernels."'
check 'chat: the path' is "$(requests | jq -r .path | uniq)" /v1/chat/completions
check 'chat: a bearer' header 'has("authorization") and (has("x-api-key") | not)'
case=plain-responses
check 'responses: not stored' sent '.store == false and .max_output_tokens == 32768'
check 'responses: the system text and the prompt' sent 'tostring | contains("You write kernels.") and contains("Write it.")'
check 'responses: no fields of the other API' sent '(has("messages") or has("n") or has("max_tokens") or has("stream_options")) | not'
check 'responses: the path' is "$(requests | jq -r .path | uniq)" /v1/responses
check 'responses: a bearer' header 'has("authorization")'
case=plain-anthropic
check 'anthropic: a cap always' sent '.max_tokens == 32768'
check 'anthropic: the system text is cached' sent '.system[0] == {"type": "text", "text": "You write kernels.", "cache_control": {"type": "ephemeral"}}'
check 'anthropic: messages of user alone' sent '[.messages[].role] == ["user"]'
check 'anthropic: version and key' header '.["anthropic-version"] == "2023-06-01" and has("x-api-key") and (has("authorization") | not)'
check 'anthropic: the path' is "$(requests | jq -r .path | uniq)" /v1/messages
options=()

api=chat
simple old-cap x
call old-cap LLM_TOKEN_FIELD=max_tokens LLM_MAX_TOKENS=99
check 'servers that know only max_tokens' sent '.max_tokens == 99 and (has("max_completion_tokens") | not)'
simple slash x
call slash OPENAI_BASE_URL="http://127.0.0.1:$port/v1/"
check 'a slash at the end of the base' is "$(requests | jq -r .path)" /v1/chat/completions
api=anthropic
simple slash-a x
call slash-a ANTHROPIC_BASE_URL="http://127.0.0.1:$port/"
check 'anthropic: the same' is "$(requests | jq -r .path)" /v1/messages
api=chat
simple named-key x
call named-key KEY= LLM_KEY_ENV=SOME_KEY SOME_KEY="$key"
check 'a key in a variable of another name' is "$status $(requests | jq -r .key)" '0 right'
simple no-key x
call no-key KEY=
check 'a server on loopback needs no key' is "$status $(requests | jq -r .key)" '0 none'

printf 'bad \xff\xc3( \xed\xa0\x80 end, good \xe2\x82\xac case=bytes;' > "$scratch/bytes.prompt"
simple bytes x
call bytes
check 'a prompt that is not UTF-8: replaced, the rest kept' sent '[.. | strings | select(contains("case=bytes"))][0] |
    test("^bad \ufffd+\\( \ufffd+ end, good €")'
{ head -c 1500000 /dev/zero | tr '\0' 'p'; echo 'case=large;'; } > "$scratch/large.prompt"
simple large x
call large
check 'a prompt of 1.5 MB' was 0 1 x

# ---- Endings and usage ----------------------------------------------------------------

for api in chat responses anthropic; do
    for finish in length filter refusal; do
        printf 'on\nfinish %s\nsays half a ker\n' $finish | rules "$finish-$api"
        call "$finish-$api"
        check "$api: $finish is no kernel, and not asked again" is "$status $(requests | wc -l)" '3 1'
    done
    check "$api: a refusal is called one" grep -qi refus "$scratch/$case.err"
    printf 'on\nfinish length\ntimes 1\nsays \non\nsays whole\n' | rules "eaten-$api"
    call "eaten-$api" LLM_MAX_TOKENS=1000
    check "$api: a cap that reasoning ate is doubled" was 0 2 whole
    check "$api: to twice of it" is "$(requests | jq -c '.body | fromjson | .max_completion_tokens // .max_output_tokens // .max_tokens' | tr '\n' ' ')" '1000 2000 '
    check "$api: both are in the transcript, as what they are" is "$(jq -c .request_sha256 "$scratch/$case.jsonl" | sort -u | wc -l)" 2
    printf 'on\nfinish length\nsays \n' | rules "eaten-twice-$api"
    call "eaten-twice-$api"
    check "$api: once" was 3 2 ''
    simple "empty-$api" ''
    call "empty-$api"
    check "$api: an empty answer" was 3 1 ''
    printf 'on\nusage 3000000000 2000000001 70 60\nsays x\n' | rules "usage-$api"
    call "usage-$api"
    check "$api: usage, beyond 32 bits" kept '.usage | .input == 3e9 and .cached == 2000000001 and .output == 70'
    printf 'on\nreasoning Let me launch <<<a>>>.\nsays int x;\n' | rules "think-$api"
    call "think-$api"
    check "$api: reasoning is no part of the answer" was 0 1 'int x;'
    printf 'on\nplain\nsays all at once\n' | rules "whole-$api"
    call "whole-$api"
    check "$api: a server that does not stream" was 0 1 'all at once'
    printf 'on\nplain\nlimit 150\nsays all at once, but much of it is missing in the end\n' | rules "part-$api"
    call "part-$api"
    check "$api: half of an object is no answer" failed 3
    printf 'on\ndelta 1\npace 7 1\nsays ü€😀 split anywhere\n' | rules "split-$api"
    call "split-$api"
    check "$api: events and characters that are split" was 0 1 'ü€😀 split anywhere'
done

# A chat stream of given deltas: chunk DELTA [FINISH].
chunk() { echo "data {\"model\":\"m\",\"choices\":[{\"index\":0,\"delta\":$1,\"finish_reason\":${2-null}}]}"; }
use='data {"model":"m","choices":[],"usage":{"prompt_tokens":10,"completion_tokens":5}}'
api=chat
{ echo on; chunk '{"content":"a"}'; chunk '{"content":"b"}' '"stop"'; echo 'data [DONE]'; } | rules no-usage
call no-usage
check 'usage that never came is unknown, not zero' kept '.usage == null'
check 'and the answer an answer' was 0 1 ab
{ echo on; chunk '{"content":"a"}'; chunk '{}' '"stop"'; echo 'data {"choices":[],"usage":{"prompt_tokens":10,"completion_tokens":5,"cost":0.125}}'; echo 'data [DONE]'; } | rules cost
call cost
check 'a cost that the server states' kept '.cost_usd == 0.125 or .usage.cost == 0.125'
{ echo on; chunk '{"role":"assistant","content":null}' '"stop"'; echo "$use"; echo 'data [DONE]'; } | rules null
call null
check 'content null' was 3 1 ''
{ echo on; chunk '{"content":null,"refusal":"I will not."}'; chunk '{}' '"stop"'; echo 'data [DONE]'; } | rules refusal-field
call refusal-field
check 'a refusal in its own field' was 3 1 ''
{ echo on; chunk '{"content":"int x;"}'; chunk '{}' '"tool_calls"'; echo 'data [DONE]'; } | rules tool
call tool
check 'an end for a tool call is not complete' is "$([ "$status" != 0 ] && echo no)" no
{ echo on; chunk '{"reasoning":"hm launch"}'; chunk '{"reasoning_content":"more"}'; chunk '{"content":"x"}' '"stop"'; echo 'data [DONE]'; } | rules reasoning
call reasoning
check 'reasoning and reasoning_content' was 0 1 x
{ echo on; chunk '{"content":"<th"}'; chunk '{"content":"ink>plan\n```c\nbad\n```</thi"}'; chunk '{"content":"nk>\nint y; // <think>\n"}' '"stop"'; echo 'data [DONE]'; } | rules think
call think
check 'a leading <think> block is left out, a later word stays' is "$status $(tr -d '\n' < "$scratch/think.out")" '0 int y; // <think>'
{ echo on; chunk '{"content":"<think>never ended ```c launch```"}' '"length"'; echo 'data [DONE]'; } | rules think-open
call think-open
check 'a <think> block that never ends is no text' is "$status $(cat "$scratch/think-open.out")" '3 '
{ echo on; chunk '{"content":"a"}'; echo 'data {"choices":[]}'; echo 'data {"id":"x","error":null}'; chunk '{"content":"b"}' '"stop"'; echo "$use"; echo 'data [DONE]'; } | rules no-choice
call no-choice
check 'chunks without choices' was 0 1 ab
{ echo on; chunk '{"content":"x"}' '"stop"'; echo 'send data: {"cho'; echo 'wait 50'; echo 'send ices":[]}\n\ndata: [DONE]\n\n'; } | rules halves
call halves
check 'a line in two packets' was 0 1 x
for end in '\r\n' '\r'; do
    one='data: {"choices":[{"index":0,"delta":{"content":"x"},"finish_reason":"stop"}]}'
    printf 'on\nsend : keep-alive%s%s\nsend event: message%sid: 7%sretry: 10%sunknown%s\nsend %s%s%s\nsend data: [DONE]%s%s\n' "$end" "$end" "$end" "$end" "$end" "$end" "$one" "$end" "$end" "$end" "$end" | rules "ends-${#end}"
    call "ends-${#end}"
    check "lines that end in $end, comments, other fields" was 0 1 x
done
{ echo on; echo 'send data:{"choices":[{"index":0,\ndata:"delta":{"content":"x"},\ndata: "finish_reason":"stop"}]}\n\ndata:[DONE]\n\n'; } | rules data-lines
call data-lines
check 'no blank after the colon; data of several lines' was 0 1 x
{ echo on; chunk '{"content":"a\u0000b"}' '"stop"'; echo 'data [DONE]'; } | rules nul
call nul
check 'a NUL escape: not cut there, but no answer' is "$status $(requests | wc -l) $(jq -r .outcome "$scratch/nul.jsonl") $(tr -cd '\000' < "$scratch/nul.out" | wc -c)" '3 1 invalid 0'
{ echo on; chunk '{"content":"s = \"\\u0000\";"}' '"stop"'; echo 'data [DONE]'; } | rules not-nul
call not-nul
check 'a backslash before u0000 is text' was 0 1 's = "\\u0000";'
{ echo on; chunk '{"content":"a\ud800b"}' '"stop"'; echo 'data [DONE]'; } | rules lone
call lone
check 'a lone surrogate' is "$status $(requests | wc -l) $(jq -r .outcome "$scratch/lone.jsonl")" '3 1 invalid'
{ echo on; chunk '{"content":"\ud83d\ude00"}' '"stop"'; echo 'data [DONE]'; } | rules pair
call pair
check 'a pair of surrogates' was 0 1 '😀'
printf 'on\nsend data: {"choices":[{"index":0,"delta":{"content":"a\\xff\\xfeb"},"finish_reason":"stop"}]}\\n\\ndata: [DONE]\\n\\n\n' | rules raw
call raw
check 'bytes that are not UTF-8: no answer' is "$status $(jq -r .outcome "$scratch/raw.jsonl")" '3 invalid'
check 'bytes that are not UTF-8: in no answer as they came' not grep -q $'\xff' "$scratch/raw.out" "$scratch/raw.jsonl"
check 'the transcript says so' kept '.why | test("not UTF-8")'
printf 'on\nsend data: {"choices":[{"index":0,"delta":{"content":"a\\x00b"},"finish_reason":"stop"}]}\\n\\ndata: [DONE]\\n\\n\n' | rules nul-byte
call nul-byte
check 'a NUL byte: no answer' is "$([ "$status" != 0 ] && echo no)" no
check 'and the transcript has the rest of it' kept '.response | test("a\ufffdb.*stop")'
{ echo on; echo 'header X-Request-Id: req-1'; echo 'header X-RateLimit-Remaining-Requests: 9'; echo 'header Set-Cookie: session=abc'; chunk '{"content":"x"}' '"stop"'; echo 'data [DONE]'; } | rules headers
call headers
check 'the request id is kept, cookies are not' kept '.headers | .["x-request-id"] == "req-1" and (tostring | contains("session") | not)'
check 'no request headers in the transcript' kept 'tostring | test("user-agent|authorization|bearer"; "i") | not'

# ---- Responses ------------------------------------------------------------------------

api=responses
# last STATUS OUTPUT [MORE] - a terminal event.
last() { echo "event response.$1 {\"type\":\"response.$1\",\"response\":{\"id\":\"r\",\"status\":\"$1\",\"model\":\"m\",\"output\":[$2],\"usage\":{\"input_tokens\":4,\"input_tokens_details\":{\"cached_tokens\":1},\"output_tokens\":9,\"output_tokens_details\":{\"reasoning_tokens\":6}}${3-}}}"; }
part() { echo "{\"type\":\"message\",\"role\":\"assistant\",\"content\":[{\"type\":\"output_text\",\"text\":\"$1\"},{\"type\":\"output_text\",\"text\":\"$2\"}]}"; }
{ echo on; echo 'event response.output_text.delta {"type":"response.output_text.delta","delta":"a"}'; last completed "{\"type\":\"reasoning\",\"summary\":[{\"type\":\"summary_text\",\"text\":\"no\"}]},$(part a b),$(part c d)"; } | rules items
call items
check 'responses: every output_text, no reasoning; no sequence numbers' was 0 1 'ab\ncd'
check 'responses: usage of the terminal event' kept '.usage | .input == 4 and .cached == 1 and .output == 9 and .reasoning == 6'
{ echo on; echo 'event response.new_kind {"type":"response.new_kind","x":1}'; last completed "$(part a b)"; } | rules unknown-event
call unknown-event
check 'responses: events that nobody knows' was 0 1 ab
{ echo on; last incomplete "$(part a b)" ',"incomplete_details":{"reason":"content_filter"}'; } | rules incomplete
call incomplete
check 'responses: incomplete for a filter' is "$status $(requests | wc -l)" '3 1'
{ echo on; last failed '' ',"error":{"code":"server_error","message":"broken inside"}'; } | rules failed
call failed
check 'responses: failed' failed 3 'broken inside'
{ echo on; echo 'times 1'; last failed '' ',"error":{"code":"rate_limit_exceeded","message":"slow"}'; echo on; last completed "$(part a b)"; } | rules failed-once
call failed-once
check 'responses: failed for a while' was 0 2 ab
{ echo on; last failed '' ',"error":{"code":"invalid_prompt","message":"not this"}'; } | rules failed-for-good
call failed-for-good
check 'responses: failed for good' failed 1 'not this'
{ echo on; echo 'event error {"type":"error","code":"server_error","message":"went away","param":null}'; } | rules error-event
call error-event
check 'responses: an error event' failed 3 'went away'
{ echo on; echo 'event response.output_text.delta {"type":"response.output_text.delta","delta":"int x;"}'; echo 'event response.output_text.done {"type":"response.output_text.done","text":"int x;"}'; } | rules no-end
call no-end
check 'responses: no terminal event, no answer' failed 3

# ---- Messages -------------------------------------------------------------------------

api=anthropic
start() { echo "event message_start {\"type\":\"message_start\",\"message\":{\"model\":\"m\",\"content\":[],\"usage\":$1}}"; }
delta() { echo "event content_block_delta {\"type\":\"content_block_delta\",\"index\":$1,\"delta\":$2}"; }
ended() { echo "event message_delta {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"$1\"${3-}},\"usage\":$2}"; }
stopped='event message_stop {"type":"message_stop"}'
ping='event ping {"type":"ping"}'
{ echo on; start '{"input_tokens":5,"cache_creation_input_tokens":70,"cache_read_input_tokens":900,"cache_creation":{"ephemeral_5m_input_tokens":30,"ephemeral_1h_input_tokens":40},"output_tokens":3}'; echo "$ping"
    echo 'event content_block_start {"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":""}}'
    delta 0 '{"type":"thinking_delta","thinking":"launch"}'; delta 0 '{"type":"signature_delta","signature":"c2ln"}'
    echo 'event content_block_start {"type":"content_block_start","index":1,"content_block":{"type":"text","text":""}}'
    delta 1 '{"type":"text_delta","text":"a"}'; echo "$ping"; echo 'event brand_new {"type":"brand_new"}'; delta 1 '{"type":"text_delta","text":"b"}'
    ended end_turn '{"output_tokens":20}'; ended end_turn '{"output_tokens":25}'; echo "$stopped"; } | rules blocks
call blocks
check 'anthropic: text blocks, pings, thinking, unknown events' was 0 1 ab
check 'anthropic: all input counts, the last output stands' kept '.usage | .input == 975 and .cached == 900 and .output == 25'
{ echo on; start '{"input_tokens":5,"output_tokens":1}'; delta 0 '{"type":"text_delta","text":"int x;"}'; ended end_turn '{"output_tokens":2}'; } | rules no-stop
call no-stop
check 'anthropic: no message_stop, no answer' failed 3
{ echo on; start '{"input_tokens":5,"output_tokens":1}'; delta 0 '{"type":"text_delta","text":"No."}'; ended refusal '{"output_tokens":2}' ',"stop_details":{"type":"refusal","category":"frontier_llm","explanation":"too close"}'; echo "$stopped"; } | rules stop-details
call stop-details
check 'anthropic: why it refuses is told' is "$status $(grep -ciE 'frontier_llm|too close' "$scratch/$case.err")" '3 1'
for reason in model_context_window_exceeded pause_turn tool_use; do
    { echo on; start '{"input_tokens":5,"output_tokens":1}'; delta 0 '{"type":"text_delta","text":"half"}'; ended $reason '{"output_tokens":2}'; echo "$stopped"; } | rules "$reason"
    call "$reason"
    check "anthropic: $reason is not complete" is "$([ "$status" != 0 ] && echo no)" no
done
{ echo on; echo 'times 1'; start '{"input_tokens":5,"output_tokens":1}'; delta 0 '{"type":"text_delta","text":"old"}'; echo 'event error {"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}'; } | rules late-error
simple late-error new
call late-error
check 'anthropic: an error in the stream; nothing of the first try is left' was 0 2 new
{ echo on; echo 'status 400'; echo 'send {"type":"error","error":{"type":"invalid_request_error","message":"max_tokens: too large"},"request_id":"req-9"}'; } | rules bad-request
call bad-request
check 'anthropic: what was wrong is told' failed 1 'max_tokens: too large'

leak_checks
