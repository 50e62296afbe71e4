#!/bin/bash
# The model client's key goes to the server that was named, and nowhere else: not to another
# server, not into files, messages, arguments or environments.
# uses: build/ask
# shellcheck disable=SC2016,SC2028  # $ of jq; escapes of the script
. tests/e2e/lib.sh
. tests/mock/lib.sh

check 'build/ask is there' test -x "$ask"
check 'the scripted server compiles' mock_build
{ [ -x "$ask" ] && [ -x "$scratch/mock" ]; } || exit
mock_start other
other=$port
mock_start main

# ---- Other servers --------------------------------------------------------------------

for api in chat anthropic; do
    for code in 301 302 303 307 308; do
        printf 'on\nstatus %s\nheader Location: http://127.0.0.2:%s/v1/elsewhere\n' $code "$other" | rules "redirect-$code-$api"
        call "redirect-$code-$api"
        check "$api: $code is not followed, and says where to" failed 1 '127\.0\.0\.2'
        printf 'on\nstatus %s\nheader Location: http://localhost:%s/v1/elsewhere\nsays x\n' $code "$other" | rules "redirect-body-$code-$api"
        call "redirect-body-$code-$api"
        check "$api: nor with an answer in it" failed 1 localhost
    done
done
api=chat
mkdir "$scratch/home"
echo "proxy = http://127.0.0.1:$other" > "$scratch/home/.curlrc"
echo 'machine 127.0.0.1 login someone password netrc-word' > "$scratch/home/.netrc"
simple proxy x
call proxy {http,https,all,HTTP,HTTPS,ALL}_proxy="http://127.0.0.1:$other" HTTP_PROXY="http://127.0.0.1:$other" HOME="$scratch/home"
check 'no proxy stands between the client and loopback' was 0 1 x
check 'the key stays the one of the environment' is "$(requests | jq -r .key)" right
check 'nothing arrived at the other server' is "$(wc -c < "$scratch/other.journal")" 0
printf 'on\nsays x\n' >> "$scratch/other.rules"
call direct OPENAI_BASE_URL="http://127.0.0.1:$other/v1"
check 'where it would have been seen' is "$(jq -r 'select(.request) | .key' "$scratch/other.journal")" right
simple other-api x
call other-api KEY= ANTHROPIC_API_KEY="$key"
check 'the key of one API is not sent to another' is "$status $(requests | jq -r .key)" '0 none'
simple other-key x
call other-key LLM_KEY_ENV=MINE MINE=something-else
check 'nor where another key is named' is "$status $(requests | jq -r .key)" '0 another'

# base VARIABLE=URL [VAR=VALUE...] - a base that must be refused before a name is looked up.
base() {
    rm -f "$scratch/net"
    call base LD_PRELOAD="$scratch/net.so" NET_LOG="$scratch/net" LLM_TRIES=1 LLM_SECONDS=5 "$@"
}
simple base x
base "OPENAI_BASE_URL=http://127.0.0.1:$port/v1"
check 'connections are seen' is "$status $(sort -u "$scratch/net" | tr '\n' ' ')" "0 connect 127.0.0.1 $port "
base "OPENAI_BASE_URL=http://localhost:$port/v1"
check 'localhost is loopback' is "$status" 0
n=$(requests | wc -l)
for url in http://192.0.2.1/v1 http://kernels.invalid/v1 http://localhost.kernels.invalid/v1 http://127.0.0.1.kernels.invalid/v1 \
    http://128.0.0.1/v1 'http://[::ffff:192.0.2.1]/v1' http://0.0.0.0/v1 http://1270.0.1/v1 HTTP://192.0.2.1/v1 //192.0.2.1/v1 192.0.2.1/v1 \
    "http://192.0.2.1/v1?@127.0.0.1:$port" "http://192.0.2.1#@127.0.0.1:$port" "http://192.0.2.1\\@127.0.0.1:$port/v1" 'http:///v1' 'ftp://127.0.0.1/' ''$'http://127.0.0.1:1\r\nx: y/v1'; do
    base "OPENAI_BASE_URL=$url"
    check "refused without a packet: ${url@Q}" is "$status $(cat "$scratch/net" 2> /dev/null)" '2 '
done
for url in "http://someone:pass-word@127.0.0.1:$port/v1" "http://someone@127.0.0.1:$port/v1" https://someone:pass-word@kernels.invalid/v1 \
    "http://127.0.0.1:$port@192.0.2.1/v1" "http://:pass-word@127.0.0.1:$port/v1"; do
    base "OPENAI_BASE_URL=$url"
    check "credentials in the base are refused: ${url@Q}" is "$status $(cat "$scratch/net" 2> /dev/null)" '2 '
    check 'and not repeated' not grep -q 'pass-word' "$scratch/base.err"
done
api=anthropic
base ANTHROPIC_BASE_URL=http://192.0.2.1
check 'anthropic: the same' is "$status $(cat "$scratch/net" 2> /dev/null)" '2 '
base KEY= ANTHROPIC_BASE_URL=https://kernels.invalid
check 'no key: exit 2, nothing is sent, the variable is named' is "$status $(cat "$scratch/net" 2> /dev/null) $(grep -c ANTHROPIC_API_KEY "$scratch/base.err")" '2  1'
api=chat
base KEY= OPENAI_BASE_URL=https://kernels.invalid/v1
check 'chat: the same' is "$status $(cat "$scratch/net" 2> /dev/null) $(grep -c OPENAI_API_KEY "$scratch/base.err")" '2  1'
base KEY= OPENAI_API_KEY= OPENAI_BASE_URL=https://kernels.invalid/v1
check 'an empty key is none' is "$status $(cat "$scratch/net" 2> /dev/null)" '2 '
base KEY= LLM_KEY_ENV=MY_KEY OPENAI_BASE_URL=https://kernels.invalid/v1
check 'a named variable that is not set' is "$status $(cat "$scratch/net" 2> /dev/null) $(grep -c MY_KEY "$scratch/base.err")" '2  1'
base OPENAI_BASE_URL=https://kernels.invalid/v1
check 'https elsewhere is looked up' grep -q '^lookup kernels.invalid' "$scratch/net"
check 'a name that nobody has: exit 4, named' is "$status $(grep -c kernels.invalid "$scratch/base.err")" '4 1'
check 'none of these reached the server' is "$(requests | wc -l)" "$n"
for bad in $'mk-with\nnewline-0123' $'mk-with\rreturn-0123' $'mk-with\x01control-0123' $'mk-with\ttab-01234567'; do
    simple bad-key x
    call bad-key OPENAI_API_KEY="$bad"
    check "a key with ${bad@Q} is refused" is "$status $(requests | wc -l)" '2 0'
    check 'and not repeated' not grep -q 'control-0\|return-0\|newline-0\|tab-0' "$scratch/bad-key.err"
done

# ---- TLS ------------------------------------------------------------------------------

# tls - a server with a certificate of its own making, which answers the first who talks to it.
tls() {
    rm -f "$scratch/tls.out" "$scratch/tls.in"
    mkfifo "$scratch/tls.in"
    openssl s_server -accept 127.0.0.1:0 -cert "$scratch/tls.crt" -key "$scratch/tls.pem" -naccept 1 < "$scratch/tls.in" > "$scratch/tls.out" 2>&1 &
    servers+=($!)
    exec 9> "$scratch/tls.in"
    for _ in $(seq 200); do
        tls_port=$(sed -n 's/^ACCEPT .*:\([0-9]*\)$/\1/p' "$scratch/tls.out")
        [ -z "$tls_port" ] || break
        sleep 0.02
    done
    cat "$scratch/tls.reply" >&9
}
if command -v openssl > /dev/null; then
    openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=localhost \
        -addext 'subjectAltName=DNS:localhost' -keyout "$scratch/tls.pem" -out "$scratch/tls.crt" 2> /dev/null
    body=$(printf '{"choices":[{"message":{"content":"over TLS"},"finish_reason":"stop"}]}')
    printf 'HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s' ${#body} "$body" > "$scratch/tls.reply"
    tls
    call tls-unknown OPENAI_BASE_URL="https://localhost:$tls_port/v1" LLM_TRIES=1
    check 'a certificate that nobody vouches for' failed any 'certificate'
    check 'nothing was sent to it' not grep -aqi 'POST\|authorization' "$scratch/tls.out"
    mock_stop_tls() { exec 9>&-; kill "${servers[-1]}" 2> /dev/null; wait "${servers[-1]}" 2> /dev/null; }
    mock_stop_tls
    tls
    call tls-known OPENAI_BASE_URL="https://localhost:$tls_port/v1" LLM_TRIES=1 SSL_CERT_FILE="$scratch/tls.crt"
    check 'one that SSL_CERT_FILE vouches for' is "$status $(cat "$scratch/tls-known.out")" '0 over TLS'
    mock_stop_tls
    tls
    call tls-name OPENAI_BASE_URL="https://127.0.0.1:$tls_port/v1" LLM_TRIES=1 SSL_CERT_FILE="$scratch/tls.crt"
    check 'but for another name' failed any 'certificate|name'
    mock_stop_tls
    rm -f "$scratch"/tls.*
else
    skip 'TLS' 'no openssl'
fi

# ---- What servers say -----------------------------------------------------------------

# The server repeats the key: as it is, as JSON may escape it, in a header, in the answer.
for api in chat responses anthropic; do
    for word in KEY SLASH HEX; do
        printf 'on\nstatus 401\nsend {"type":"error","error":{"message":"Incorrect API key provided: %%%s%%.","type":"authentication_error","code":"invalid_api_key"}}\n' $word | rules "echo-$word-$api"
        call "echo-$word-$api"
        check "$api: 401 that repeats the key as $word: exit 2" is "$status $(requests | wc -l)" '2 1'
        check "$api: the words are told, without it" is "$(grep -c 'Incorrect API key' "$scratch/$case.err") $(no_leak "$scratch/$case.err")" '1 '
        jq -r '.response | fromjson | .error.message' "$scratch/$case.jsonl" > "$scratch/$case.decoded"
        check "$api: nor is it in the transcript" is "$(grep -c 'Incorrect API key' "$scratch/$case.decoded") $(no_leak "$scratch/$case.decoded")" '1 '
    done
done
api=chat
printf 'on\nstatus 0\nsend HTTP/1.1 401 No\\r\\nX-Request-Id: %%KEY%%\\r\\nContent-Type: text/html\\r\\nContent-Length: 60\\r\\nConnection: close\\r\\n\\r\\n<p>%%KEY%%</p>                                                  \ncut\n' | rules echo-header
call echo-header
check 'in a header and HTML' is "$status $(no_leak "$scratch/$case.err" "$scratch/$case.jsonl")" '2 '
pad=$(head -c 495 /dev/zero | tr '\0' 'x')
printf 'on\nstatus 0\nsend HTTP/1.1 401 No\\r\\nX-Request-Id: %s%%KEY%%\\r\\nContent-Length: 2\\r\\nConnection: close\\r\\n\\r\\n{}\ncut\n' "$pad" | rules echo-long
call echo-long
check 'in a header that is cut short: not half of it either' is "$status $(grep -caF -f <(printf '%s\n' "${key:0:12}") "$scratch/$case.jsonl")" '2 0'
printf 'on\ndata {"choices":[{"index":0,"delta":{"content":"// %%HEAD%%"}}]}\ndata {"choices":[{"index":0,"delta":{"content":"%%TAIL%% end"},"finish_reason":"stop"}]}\ndata [DONE]\n' | rules echo-answer
call echo-answer
check 'in the answer, in two pieces' no_leak "$scratch/$case.out" "$scratch/$case.err" "$scratch/$case.jsonl"
check 'whose rest is printed, or refused' is "$([ "$status" = 3 ] || grep -c '^// .* end' "$scratch/$case.out")" "$([ "$status" = 3 ] || echo 1)"
pieces='data {"type":"response.output_text.delta","delta":"// %HEAD%"}\ndata {"type":"response.output_text.delta","delta":"%TAIL% end"}\n'
joined() { # WHAT CASE - no file of the case has a half of the key
    call "$2" LLM_TRIES=1
    check "$1" not grep -qF -e "${key:0:${#key}/2}" -e "${key:${#key}/2}" "$scratch/$2.out" "$scratch/$2.err" "$scratch/$2.jsonl"
    check 'which is said' grep -q 'this server is not to be trusted' "$scratch/$2.err"
}
api=responses
printf '%b' "on\n$pieces"'data {"type":"response.completed","response":{"status":"completed","output":[{"type":"message","content":[{"type":"output_text","text":"// %KEY% end"}]}]}}\n' | rules echo-responses
joined 'responses: in the deltas, in two pieces' echo-responses
printf '%b' "on\n$pieces"'data {"type":"error","message":"gone"}\n' | rules echo-broken
joined 'responses: in a stream that fails' echo-broken
api=chat
printf 'on\nstatus 307\nheader Location: https://kernels.invalid/\nsend %%KEY%%\n' | rules echo-redirect
call echo-redirect
check 'in the body of a redirect' no_leak "$scratch/$case.err" "$scratch/$case.jsonl"
printf 'Explain %s. case=in-prompt;\n' "$key" > "$scratch/in-prompt.prompt"
call in-prompt
check 'a prompt with the key in it is not sent: exit 2' is "$status $(requests | wc -l)" '2 0'
check 'nor written' no_leak "$scratch/in-prompt.err" "$scratch/in-prompt.out"
rm -f "$scratch/in-prompt.prompt"

# ---- Arguments, environments, cores ---------------------------------------------------

# seen FILE - processes whose cmdline or environ has the key.  Those that cannot be read are safe.
seen() { grep -laF -f <(key_forms) /proc/[0-9]*/"$1" 2> /dev/null | while read -r p; do cat "${p%/*}/comm"; done; }
for api in chat anthropic; do
    printf 'on\ndata {"type":"ping"}\nhang\n' | rules "slow-$api"
    background=1 call "slow-$api" LLM_IDLE_SECONDS=60
    for _ in $(seq 100); do [ "$(requests | wc -l)" = 0 ] || break; sleep 0.02; done
    check "$api: the call is on its way" is "$(requests | wc -l) $(tr '\0' ' ' < "/proc/$asked/cmdline" | grep -c "^$ask")" '1 1'
    check "$api: the key is in no process's arguments" is "$(seen cmdline)" ''
    check "$api: nor environment, the client's own included" is "$(seen environ)" ''
    check "$api: it leaves no core" grep -qE '^Max core file size +0 +0 ' "/proc/$asked/limits"
    kill -s SEGV "$asked"
    wait "$asked" 2> /dev/null
    check "$api: killed, it has printed nothing" is "$(wc -c < "$scratch/$case.out")" 0
done
(export BAIT=$key && exec sleep 30) &
bait=$!
sleep 0.2
check 'an environment with the key would be found' is "$(seen environ)" sleep
kill $bait
wait $bait 2> /dev/null
check 'no core was written' is "$(find . "$scratch" -maxdepth 1 -name 'core*')" ''

leak_checks
