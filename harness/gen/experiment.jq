# experiment.jq: of what build/best prints, a line for build/modes for each search of an experiment.
# --argjson budget: how many calls count.
[inputs | select(.mode | test("-[0-9]+$"))]
| (map({key: "\(.gpu)/\(.task)/\(.attempt)/\(.code_sha256)", value: .ratio}) | from_entries) as $ratio # of the kernel that another repeats
| map(.ratio //= $ratio["\(.gpu)/\(.task)/\(.same_as)/\(.code_sha256)"]) | group_by([.gpu, .task, .mode])[] | sort_by([.round, .index])
| .[:$budget] as $calls | (.[0].mode | split("-")) as [$mode, $seed]
| ["\(.[0].gpu)/\(.[0].task)", $mode, $seed] + [(0.25, 0.5, 0.75, 1) as $part | [$calls[:($budget * $part | floor)][] | .ratio // 1, 1] | max // 1]
    + [[$calls[] | (.tokens.input // 0) + (.tokens.output // 0)] | add]
| map(tostring) | join(" ")
