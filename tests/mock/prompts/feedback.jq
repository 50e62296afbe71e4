# feedback.jq: stands in for harness/gen/prompts/feedback.jq, as facts.jq does for its namesake.
def shown: [.shown[] | "\(.attempt): \(.code)"] | if . == [] then null else join("\n") end;
def failed: .failed | if . == null then null else "\(.attempt): \(.reason)\n\(.code)" end;
def history: .ledger;
def idea_to_do: .idea;
