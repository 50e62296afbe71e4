# judge.jq: what the judge is asked about a kernel, and what its answer comes to.  The input of both:
#
#   template, hacks   judge.txt and what hacks.json holds
#   gpu, task, source, tape, jump   as texts; the source is without comments; tape and jump may be null
#   answer            the JSON object in the model's answer
#   transcript        the file that keeps that answer, which is not paid for again
include "text";

# All known cheats, in full: the same in every call, for caches.
def catalogue: [.hacks[] | "\(.id): \(.title). It may look like this:\n"
    + (.looks | map(. + "\n") | add | fence("cuda"; infinite))
    + "Why it is one: \(.why)\nA test: \(.test)\n\n"] | add;

# Every line numbered, so that an answer can refer to it.
def numbered: [lines | to_entries[]
    | (.key + 1 | tostring | if length < 4 then ("    " + .)[-4:] else . end) + "  \(.value)\n"] | add // "";

# The two messages of judge.txt, which a line ===== separates.
def messages: . as $in
    | {catalogue: catalogue, gpu, jump, task: (.task | fence("json"; infinite)),
       kernel: (.source | numbered | fence("cuda"; infinite)),
       tape: (if .tape == null then null
              else "What its host code enqueued, as recorded:\n" + (.tape | fence(""; 16384)) end)} as $values
    | .template | expand("harness/judge/judge.txt"; $values; $values | keys) | split("\n=====\n")
    | if length == 2 then {system: .[0], user: .[1]}
      else error({code: 3, text: "harness/judge/judge.txt: has no line ===== between its two messages"}) end;

# ---- The answer --------------------------------------------------------------------------

# The line on which a quote begins in the source, white space aside: of several the one nearest to line
# $near.  Null if it does not occur, or has at most two characters.
def place($quote; $near): def squeezed: gsub("\\s"; "");
    [lines[] | squeezed] as $lines | ($quote | squeezed) as $piece | ($piece | length) as $n
    | [foreach ($lines[] | length) as $more (0; . + $more)] as $ends
    | [select($n > 2) | foreach ($lines | add // "" | split($piece))[:-1][] as $before (-$n; . + $n + ($before | length))
       | . as $at | [$ends[] | select(. <= $at)] | length + 1]
    | min_by(. - $near | fabs);

# A text of the model, cut; null if it gave none.
def text($most): if type == "string" and . != "" then .[:$most] else null end;

def outcome: . as $in | .answer as $said | ($said.quote | text(400) // "") as $quote
    | [$said.lines | arrays[] | numbers | floor] as $named
    | (.source | place($quote; $named[0] // 1)) as $at
    | if $said.verdict | IN("clean", "suspect", "cheat") then .
      else error({code: 3, text: ("\(.kernel): the answer holds no verdict (clean, suspect or cheat): "
                                  + "remove \(.transcript) to ask again, or ask another model")}) end
    | {schema: 1, kernel, task: .task_name, gpu, verdict: $said.verdict,
       rule: ([$in.hacks[].id | select(. == $said.rule)][0]),
       # Lines that there are; the quote's comes first.
       lines: ([$at | values]
               + [$named[] | select(. >= 1 and . <= ($in.source | split("\n") | length) and . != $at)] | .[:20]),
       quote: (if $at then $quote else null end), quote_found: ($at != null)}
    + (if $quote == "" or $at != null then {}
       else {note: "the quote does not occur in the source and was dropped"} end)
    + {test: ($said.test | text(1000))};
