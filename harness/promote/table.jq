# table.jq: the table of results/search, of what build/best prints.  A line break would start a row, so
# it becomes a blank.  Searches of an experiment are left out.
def columns: ["gpu", "task", "mode", "round", "index", "attempt", "model", "outcome", "verdict", "class", "ratio", "low", "high",
    "us", "input_tokens", "output_tokens", "cost_usd", "seconds", "same_as", "date", "code_sha256"];
def field: if . == null then "" elif type == "number" then tostring
    else gsub("[\r\n]"; " ") | if test("[,\"]") then "\"" + gsub("\""; "\"\"") + "\"" else . end end;
(columns | join(",")), (inputs | select(.mode | test("-") | not) | .input_tokens = .tokens.input | .output_tokens = .tokens.output | [.[columns[]]] | map(field) | join(","))
