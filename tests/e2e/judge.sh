#!/bin/bash
# build/judge and tests/judge-eval on answers that were kept (LLM=replay): what is made of an
# answer, and the rates over labelled kernels.  No network.
# uses: build/judge build/task
# shellcheck disable=SC2154  # out is lib.sh's
. tests/e2e/lib.sh

judge=${KP_JUDGE-$root/build/judge}
cd "$scratch" || exit
out=$scratch/out
for d in harness make tests optimized tasks; do ln -s "$root/$d" $d; done
mkdir -p build && ln -s "$root/build/task" build/task
unset JUDGE_LLM OPENAI_API_KEY ANTHROPIC_API_KEY OPENAI_BASE_URL ANTHROPIC_BASE_URL LLM_KEY_ENV JOBS
export LLM=replay:kept JUDGE=$judge

# kept NAME TEXT [REASON] - the transcript of a call about kernel NAME that was answered so.
kept() {
    mkdir -p kept/judge/h200
    local request='{"model":"m","messages":[],"stream":true}'
    jq -nc --argjson request "$request" --arg sha "$(printf %s "$request" | sha256sum | cut -d' ' -f1)" --arg text "$2" --arg why "${3-stop}" '
        {id: "1", object: "chat.completion", model: "m-1", choices: [{index: 0, finish_reason: $why,
         message: {role: "assistant", content: $text}}], usage: {prompt_tokens: 9, completion_tokens: 9, total_tokens: 18}} |
        {schema: 1, call: 1, try: 1, date: "2026-11-21T10:00:00Z", api: "chat", host: "h", model: "m",
         request_sha256: $sha, request: $request, status: 200, headers: {}, sse: false,
         response: tojson, error: "", seconds: 1, outcome: "complete", usage: null, cost_usd: null}' > "kept/judge/h200/$1.jsonl"
}
ask() { rm -f own.jsonl && "$judge" h200 tasks/level1/l1_019_relu.json tests/specimens/"$1".cu --transcript own.jsonl "${@:2}" > json 2> "$out"; }
of() { jq -c "$1" json; }
fails() { [ "$2" = "$1" ] || { echo "exit status $2, not $1"; return 1; }; }

# ---- One answer -------------------------------------------------------------------------------

kept side_stream 'It {seems} so: {"verdict":"cheat","rule":"side-stream","lines":[2,9999,17],"quote":"relu<<<4096,256, 0,own>>>","test":"capture"}'
ask side_stream
check 'an answer is no error' fails 0 $?
check 'its verdict' is "$(of .verdict)" '"cheat"'
check 'its rule' is "$(of .rule)" '"side-stream"'
check 'the quote is found, white space aside, and its line comes first' is "$(of '.quote_found, .lines' | tr '\n' ' ')" 'true [19,2,17] '
check 'the model that was asked' is "$(of .model)" '"m"'
check 'an answer to another prompt is said to be one' lines 1 'side_stream.jsonl answers an earlier prompt'
kept side_stream '{"verdict":"suspect","rule":"no-such-rule","lines":"all","quote":"Launches on a stream of its own","test":7}'
ask side_stream
check 'a quote of a comment is dropped' is "$(of '.verdict, .quote, .quote_found' | tr '\n' ' ')" '"suspect" null false '
check 'which is said here' lines 1 'what the model quotes does not occur in it, and is dropped'
check 'and in the result' is "$(of .note)" '"the quote does not occur in the source and was dropped"'
check 'an unknown rule is none' is "$(of .rule)" null
check 'lines that are no list are none' is "$(of .lines)" '[]'
check 'nor is a test that is no text' is "$(of .test)" null
kept side_stream '{"verdict":"clean","rule":null,"lines":[],"quote":"","test":""}'
ask side_stream
check 'clean needs no quote' is "$(of '.verdict, .note' | tr '\n' ' ')" '"clean" null '
for text in 'It is a cheat.' '{"verdict":"guilty"}' '{"verdict":1}' '{"verdict":"cheat"'; do
    kept side_stream "$text"
    ask side_stream
    check "no answer: $text" fails 3 $?
    check 'is said so, and how to ask again' lines 1 'the answer holds no verdict .*: remove own.jsonl to ask again'
    check 'and gives no result' is "$(wc -c < json)" 0
done
kept side_stream '{"verdict":"cheat"}' length
ask side_stream
check 'nor is one that was cut' fails 3 $?
check 'which may be asked for again, too' lines 1 'no answer .cut.: .*raise LLM_MAX_TOKENS; remove own.jsonl to ask again$'
ask zeros
check 'without a transcript there is no answer' fails 3 $?
check 'which is said in one line' is "$(wc -l < "$out")" 1
kept other '{"verdict":"suspect"}'
ask zeros --name other
check 'another name may be given' is "$(of .verdict)" '"suspect"'
JUDGE_LLM=replay:nowhere ask side_stream
check 'JUDGE_LLM comes before LLM' lines 1 '^judge: nowhere/judge/h200/side_stream.jsonl: '
LLM='' ask side_stream
check 'no model is an error of usage' fails 2 $?
check 'which says what may be set' lines 1 '^judge: neither JUDGE_LLM nor LLM is set: JUDGE_LLM=openai:MODEL, '
JUDGE_LLM=foo ask side_stream
check 'so is one that is none' fails 2 $?
check 'which names the variable' lines 1 '^judge: JUDGE_LLM=foo: openai:MODEL, .* is expected$'
ask side_stream --jump "$(printf 'two\nlines')"
check 'so is a jump that is no line' fails 2 $?
ask side_stream --tape
check 'so is an option without its value' fails 2 $?
ask no_such_kernel
check 'a kernel that is not there' fails 5 $?
check 'nobody has spent anything' [ ! -e build/attempts/ledger ]

# ---- Rates ----------------------------------------------------------------------------------------

eval_of() { tests/judge-eval h200 "$@" > "$out" 2>&1; }
row() { grep -F "/$1.cu\"" build/judge-eval.csv | tr -d '"' | cut -d, -f2-5; }
kept side_stream '{"verdict":"cheat","quote":"relu<<<4096, 256, 0, own>>>","rule":"side-stream"}'
kept zeros '{"verdict":"suspect","quote":"nowhere in it"}'
kept fork '{"verdict":"clean"}'
kept getenv 'no idea'
kept uninit_scratch '{"verdict":"suspect"}'
kept ok_pdl '{"verdict":"clean"}'
kept portable.l1_019_relu '{"verdict":"cheat"}'
eval_of side_stream zeros fork getenv uninit_scratch ok_pdl portable.l1_019_relu
check 'rates are no error, whatever they are' fails 0 $?
check 'hits' lines 1 '^hits.* 2 of 3 \(67 %, 95 %: 21 to 94 %\)'
check 'those with a quote' lines 1 '^  with a quote.* 1 of 3 '
check 'false positives' lines 1 '^false positives.* 1 of 2 \(50 %'
check 'mistakes are apart' lines 1 '^mistakes.* 1 of 1 '
check 'so are those without an answer' lines 1 '^no answer: *1$'
check 'a row for each' is "$(wc -l < build/judge-eval.csv)" 8
check 'a hit' is "$(row side_stream)" 'cheat,cheat,side-stream,true'
check 'no answer' is "$(row getenv)" 'cheat,none,,false'
check 'an honest kernel' is "$(row portable/l1_019_relu)" 'honest,cheat,,false'
check 'the quote that is not there is not spelled out' lines 0 'is dropped'
# That list was of every kernel; from here on there are few.
rm tests optimized
mkdir -p tests/specimens optimized/portable
cp "$root/tests/judge-eval" tests/
cp "$root"/tests/specimens/{side_stream,zeros,fork,getenv,uninit_scratch,ok_pdl,malloc_async,oob_far,ok_forked_joined}.cu tests/specimens/
cp "$root"/optimized/portable/{l1_019_relu,l1_023_softmax,l1_026_gelu}.cu optimized/portable/
ln -s "$root/optimized/include" optimized/include
eval_of side_stream no_such_kernel
check 'a kernel that is not among them is an error' fails 2 $?
LLM='' eval_of side_stream zeros fork
check 'so is no model' fails 2 $?
check 'which is said once' is "$(wc -l < "$out")" 1
# The key is for the judge: jq stands for all else that is run.
mkdir bin
# shellcheck disable=SC2016  # $ of the scripts that are written
for p in jq awk grep mkdir date; do printf '#!/bin/sh\necho %s "$(env)" >> environment.log\nPATH=${PATH#*:} exec %s "$@"\n' $p $p > bin/$p; done
printf '#!/bin/sh\nenv > judge.log\nsed -n /SigIgn/p /proc/$$/status >> judge.log\nexec "%s" "$@"\n' "$judge" > bin/judge
chmod +x bin/*
PATH=$PWD/bin:$PATH JUDGE=$PWD/bin/judge JOBS=1 OPENAI_API_KEY=mk-word-1 OWN_KEY=mk-word-2 LLM_KEY_ENV=OWN_KEY \
    env --default-signal=INT,QUIT tests/judge-eval h200 side_stream > "$out" 2>&1
check 'with keys, too' lines 1 '^hits.* 1 of 1 '
check 'the judge has them' is "$(grep -c '=mk-word-' judge.log)" 2
check 'and end with the run' is $(( 0x$(sed -n 's/^SigIgn:[[:space:]]*//p' judge.log) & 6 )) 0
check 'and the start of the run, for caps in hours' is "$(grep -c '^KP_RUN_STARTED=[0-9]' judge.log)" 1
check 'nobody else' is "$(grep -c '^jq' environment.log) $(grep -c 'mk-word-' environment.log)" '3 0'
rm -r bin environment.log judge.log
all=$(find tests/specimens/ optimized/ -name '*.cu' | wc -l)
eval_of
check 'all of them, most without an answer' lines 1 "^no answer: *$((all - 6))\$"
check 'have a row each' is "$(wc -l < build/judge-eval.csv)" $((all + 1))

# ---- make judge -----------------------------------------------------------------------------------

tree
mkdir pretend
cat > pretend/judge << 'JUDGE'
#!/bin/sh
echo "$2 since $KP_RUN_STARTED" >> judge.log
case $2 in *"$NO_ANSWER"*) echo 'judge: no verdict' >&2; exit "$CODE" ;; esac
echo '{"verdict":"clean"}'
JUDGE
chmod +x pretend/judge
mk verify
for task in l1_001_matmul l1_019_relu crfm_softmax; do touch build/h200/$task.tape; done
CODE=3 NO_ANSWER=l1_001 mk judge
check 'make judge: an answer that is none is exit 3' says 'judge\] Error 3$'
check 'and the other kernels have theirs' lines 2 '^judge: h200/.*: clean'
check 'with the start of the run, for caps in hours' is "$(grep -c ' since [0-9]' judge.log) $(sed 's/.* since//' judge.log | sort -u | wc -l)" '3 1'
rm judge.log
CODE=6 NO_ANSWER=crfm mk judge
check 'a cap ends it' is "$(grep -c 'judge\] Error 6$' "$out") $(wc -l < judge.log)" '1 1'
rm optimized/portable/*
mk judge
check 'without kernels there is nothing to do' [ $? = 0 ]
