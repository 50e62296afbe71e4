# search.jq: what to ask in the next attempt, given the earlier ones.
#
# It depends on the attempts on disk, the mode, the round and the index alone: a search that was killed
# asks the same questions again.  Of the attempts only earlier rounds of the mode and this round's ideas
# count, so the order in which the attempts of a round finish changes nothing.
include "text";

# A number of the environment; the default if it is unset or empty.
def option($name; $default; $low; $high; $whole): env[$name] // "" | . as $text
    | if . == "" then $default
      else [if test("^[0-9.eE+-]+$") then try tonumber catch null else null end][0]
        | if . != null and . >= $low and . <= $high and ($whole == "" or . == floor) then .
          else error({code: 2, text: "\($name)=\($text[:40]): expected a \($whole)number from \($low) to \($high)"}) end
      end;
# The attempts of a round, and the ideas of one.
def width: option("WIDTH"; 6; 1; 10000; "whole ");
def ideas: option("IDEAS"; 3; 1; 32; "whole ");
# best_of_n: start from the cell's kernel, as other modes do.
def seed_kernel: option("SEED_KERNEL"; 0; 0; 1; "whole ") == 1;
# repair: consecutive failures before it returns to the best kernel.
def turns: option("TURNS"; 3; 1; 1000; "whole ");
# contrastive: into how many buckets of speed kernels are put, and the temperature of drawing one, in log2
# of speedup.  A bucket whose kernels are twice as fast as another's is drawn e^2 = 7.4 times as often;
# those within 20 % almost evenly, since none is much better and only their contrast helps; a kernel that
# is eight times slower is almost never shown.  No published value exists.
def buckets: option("BUCKETS"; 5; 1; 1000; "whole ");
def tau: option("TAU"; 0.5; 1e-6; 1e6; "");
# Each is checked, whatever the mode is.
def options_checked: . as $in | [width, ideas, seed_kernel, turns, buckets, tau] | $in;

# ---- Attempts ----------------------------------------------------------------------------

def is_mode($word): . == $word or startswith($word + "-");
def ok: .verdict == "ok" and (.ratio // 0) > 0;
# The best first: the most accurate, and of these the one with the higher low end of its interval.
def quality: [.rank, -.low, -.ratio];

# The ideas of a call for them.
def idea_list: [.ideas // [] | .[:32][] | line(1500)];

# The attempts of earlier rounds of which it is known what came of them.
def earlier: .round as $round
    | [.attempts[] | select(.round < $round and (.outcome != "code" or .verdict != null))];

# The attempt whose measurement counts: itself, or of $all the earlier one with the same code; null if
# that one is not known, or was made anew with another code.
def resolved($all): if .outcome != "duplicate" then . else
    . as $a | first($all[] | select(.attempt == $a.same_as and .code_sha256 == $a.code_sha256 and .outcome == "code")) // null end;

# The ok kernels so far, no two with the same code, then the cell's kernel if it is ok.
def pool: [(earlier | . as $all | .[] | resolved($all)), .current | select(. != null and ok)]
    | reduce .[] as $a ([]; if any(.[]; .code_sha256 != null and .code_sha256 == $a.code_sha256)
                            then . else . + [$a] end);

# ---- What came of them -------------------------------------------------------------------

def speedup: "\(.ratio | fix(3))x (\(.low | fix(3)) to \(.high | fix(3))), \(.class)";
def outcome($all): resolved($all) as $counts
    | if $counts != null and $counts.attempt != .attempt
      then "the same kernel as \($counts.attempt): \($counts | outcome($all))"
      elif ok then "ok, \(speedup)"
      else "\(.verdict // .outcome)\(if (.reason // "") == "" then "" else ": \(.reason[:200])" end)"
        | gsub("[\\x00-\\x1f]"; " ") end;

# The newest 40 of some attempts: name, ask and outcome of each, and the analysis that its answer gave;
# null if there are none.
def ledger($all): if . == [] then null else
    (if length > 40 then "- \(length - 40) earlier ones are not listed\n" else "" end)
    + ([.[-40:][] | "- \(.attempt) (\(.ask // "?")): \(outcome($all))\n"
        + (.analysis // "" | line(600) | if . == "" then "" else "  its analysis: \(.)\n" end)] | add) end;

# ---- The modes ---------------------------------------------------------------------------

def fresh: {ask: "one_shot"};
def optimise($kernel): {ask: "optimise", shown: [$kernel]};

# A chain of turns, those with this index in all rounds, that repairs failures and improves what works.  A
# failed turn is shown with its evidence and repaired.  After `turns` consecutive failures the chain leaves
# that line and returns to the best kernel that it knows, else to the best of the mode.
def repair:
    .index as $index | earlier as $all
    | [$all[] | select(.index == $index)] as $chain
    | [$chain[] | resolved($all)] as $result
    | [$result[] | . != null and ok] as $worked
    | ($chain | length - 1) as $last
    # The first of the failures at the chain's end: since then only repairs were asked for.
    | ($last | until(. <= 0 or $chain[.].ask != "repair" or $worked[. - 1]; . - 1)) as $start
    | [$result[] | select(. != null and ok)] as $own
    | (if $own != [] then $own elif $last < 0 then []
       else [$all[] | resolved($all) | select(. != null and ok)] end | min_by(quality)) as $best
    | (if $last >= 0 and $result[$last] != null and ($worked[$last] | not) and $last + 1 - $start < turns
       # An answer without code cannot be mended: the last one with code is (the ledger says the rest).
       then {ask: "repair",
             failed: ([$result[$start:][] | select(. != null and .outcome == "code")][-1] // $result[$last])}
       elif $best then optimise($best) else fresh end)
    + {ledger: ($chain | ledger($all))};

# Two kernels of different speed side by side.  The pool is put into buckets of equal width by the logarithm
# of the speedup.  Buckets are drawn without replacement, with probabilities proportional to
# exp((mean - mean of all) / tau), and one member of each is drawn uniformly.
def in_buckets: (map(.ratio | log2) | [min, max]) as [$low, $high] | buckets as $n
    | group_by(if $high == $low then 0
               else ((.ratio | log2) - $low) / ($high - $low) * $n | [floor, $n - 1] | min end)
    | map({member: ., mean: (map(.ratio | log2) | add / length)});
# The place of one of them.  The largest mean is subtracted instead of the mean of all: the ratios of the
# weights are the same, and none overflows.
def draw($uniform): (map(.mean) | max) as $top | map((.mean - $top) / tau | exp) as $weight
    | {i: 0, at: ($uniform * ($weight | add))}
    | until(.i == ($weight | length - 1) or .at < $weight[.i]; .at -= $weight[.i] | .i += 1) | .i;
def contrastive: . as $in | pool as $pool
    | if $pool == [] then fresh + {ledger: (earlier | ledger(.))}
      else {ask: "contrastive", shown: (reduce (0, 2) as $k ({left: ($pool | in_buckets), shown: []};
          if .left == [] then . else (.left | draw($in.draws[$k])) as $i | .left[$i].member as $member
          | .shown += [$member[$in.draws[$k + 1] * ($member | length) | floor]] | del(.left[$i]) end)
          | .shown | sort_by([.ratio, .attempt]))} end;

# First ideas in words, then several kernels of each.  A round begins with a call for ideas, which shows
# the best kernels so far and the outcome of every earlier idea.  Attempt A of the round implements idea
# (A-1) mod K and starts from the best kernel so far or, in every second pass over the ideas, the second best
# of the bank, so that one line of descent does not take over.

# The best kernel so far, then the best of each other idea, three in all.  One without an idea counts by itself.
def same_idea($a): (.idea // -1) >= 0 and .idea == $a.idea and .round == $a.round;
def bank: pool | sort_by(quality)
    | reduce .[] as $a ([]; if length == 3 or any(.[]; same_idea($a)) then . else . + [$a] end);
def idea_outcome($all; $round; $idea): [$all[] | select(.round == $round and .index > 0 and .idea == $idea)]
    | ([.[] | resolved($all) | select(. != null and ok)] | min_by(quality)) as $best
    | if $best then "worked, \($best | speedup)"
      elif . == [] then "untried"
      else "failed: \(.[-1] | outcome($all))" end;
def idea_ledger: earlier as $all
    | [$all[] | select(.index == 0) | .round as $round | idea_list | to_entries[]
       | "- round \($round): \(.value)\n  \(.key as $k | idea_outcome($all; $round; $k))\n"] | add;
def branching: . as $in | bank as $bank
    | if .index == 0 then {ask: "ideas", shown: ($bank | reverse), ideas_wanted: ideas, ledger: idea_ledger}
      else ([.attempts[] | select(.round == $in.round and .index == 0)][0] // {} | idea_list[:ideas]) as $ideas
        | ($ideas | length) as $n | (.index - 1) as $i
        | (if $n > 0 and ($i / $n | floor) % 2 == 1 then $bank[1] else null end // $bank[0]) as $seed
        | if $n > 0 then {ask: "implement", idea: $ideas[$i % $n], idea_index: ($i % $n), shown: [$seed | values]}
          elif $seed then optimise($seed) else fresh end end;

# The turn of attempt `attempt`: its ask (ask_*.txt) and what that is about.  `shown` are slowest first;
# `number` of `of` is the place among its round's samples: a control draws independently.
def turn: .mode as $mode | options_checked
    | if .index == 0 and ($mode | is_mode("branching") | not)
      then error({code: 2, text: "\(.attempt) is no attempt: only branching has a call for ideas, of index 0"})
      else . end
    | {attempt, number: .index, of: ([width, .index] | max), shown: [], failed: null,
       idea: null, idea_index: -1, ledger: null, ideas_wanted: null}
    + if $mode | is_mode("repair") then repair
      elif $mode | is_mode("contrastive") then contrastive
      elif $mode | is_mode("branching") then branching
      elif ($mode | is_mode("best_of_n")) and seed_kernel and (.current // {} | ok) then optimise(.current)
      else fresh end
    | if ($mode | is_mode("best_of_n")) or .ask == "ideas" then .number = 1 | .of = 1 else . end;
