# text.jq: numbers, lines, blocks and templates in prompts.  An error is {code: exit code, text: its line}.
#
# jq 1.6 has `try` catch what is raised behind it, too, unless it stands in brackets.

# ---- Numbers ----

# So many decimals.
def fix($d): if . < 0 then "-" + (-. | fix($d)) else pow(10; $d) as $unit
    | (. * $unit | round) as $n | ($n / $unit | floor) as $i | ($n - $i * $unit | tostring) as $f
    | if $d == 0 then "\($i)" else "\($i)." + ("0" * ($d - ($f | length)) // "") + $f end end;
# So many significant digits: as a number, and as printf's %g has them.
def round_to($d): if . == 0 then 0
    else pow(10; $d - 1 - (fabs | log10 | floor)) as $unit | (. * $unit | round) / $unit end;
def g($d): if . == 0 then "0" elif . < 0 then "-" + (-. | g($d))
    else round_to($d) as $x | ($x | log10 + 1e-12 | floor) as $e
    | if $e >= -4 and $e < $d then $x | tostring
      else "\($x / pow(10; $e) | round_to($d))e\(if $e < 0 then "-" else "+" end)"
        + ($e | fabs | if . < 10 then "0\(.)" else tostring end) end end;
def us: fix(if . >= 100 then 0 elif . >= 10 then 1 else 2 end) + " us";
def finite($d): if type == "number" then g($d) else "not finite" end; # JSON has no NaN and no infinity
def bytes: {x: ., u: 0} | until(.x < 1024 or .u == 4; .x /= 1024 | .u += 1)
    | "\(.x | g(4)) \(["B", "KiB", "MiB", "GiB", "TiB"][.u])";

# ---- Text ----

# On one line, at most so many characters.
def line($most): gsub("[\\x00-\\x20\\x7f]+"; " ") | ltrimstr(" ") | rtrimstr(" ")
    | if length > $most then .[:$most] + "..." else . end;

# The lines of a text, and at most so many bytes of them: the first ones, whole.
def lines: split("\n") | if .[-1] == "" then .[:-1] else . end;
def first_lines($most): reduce .[] as $l ({n: 0, s: [], full: false};
    ($l | utf8bytelength) as $k | if .full or .n + $k > $most then .full = true else .n += $k | .s += [$l] end) | .s;

# A block that its contents cannot close, cut after whole lines at so many bytes: its fence is the
# shortest run of at least three backquotes that is not in it.
def fence($tag; $most):
    . as $all
    | (if utf8bytelength <= $most then . else [split("\n")[] | . + "\n"] | first_lines($most) | add // "" end) as $body
    | ([3, ($body | [match("`+"; "g").length | . + 1])[]] | max | . as $n | "`" * $n) as $mark
    | "\($mark)\($tag)\n\($body)\(if $body == "" or ($body | endswith("\n")) then "" else "\n" end)\($mark)\n"
      + (($all | utf8bytelength) - ($body | utf8bytelength)
         | if . > 0 then "(cut here: \(.) more bytes are not shown)\n" else "" end);

# A template with its {{name}}s filled in, without lines of which a value is null or empty, and without
# repeated blank lines.  Newlines at the end of a value are dropped.  $path is for messages; the template must
# use those of the values that $must names.
def expand($path; $values; $must):
    def fail($text): error({code: 3, text: "\($path)\($text)"});
    def value($name): $values[$name] // "" | until(endswith("\n") | not; .[:-1]);
    def filled($line):
        [match("\\{\\{(?:([a-z0-9_]+)\\}\\})?"; "g").captures[0].string] as $names
        | if any($names[]; . == null) then fail(":\($line): {{ without a name and }}: write {{name}}")
          else . end
        | ($names - ($values | keys))[0] as $unknown
        | if $unknown == null then .
          else fail(":\($line): unknown name {{\($unknown)}}: remove it, or see prompt.jq for those there are") end
        | select(all($names[]; value(.) != "")) | gsub("\\{\\{(?<name>[a-z0-9_]+)\\}\\}"; value(.name));
    if . == null then fail(": cannot read this template: restore it") else . end
    | . as $template
    | [lines | to_entries[] | .key as $i | .value | if contains("{{") then filled($i + 1) else . end]
    | ($must[] | select(value(.) != "" and ("{{\(.)}}" as $use | $template | contains($use) | not))
       | fail(": lacks {{\(.)}}, which this request is about: add a line with it")),
      (reduce .[] as $l ([]; if $l == "" and (length == 0 or .[-1] == "") then . else . + [$l] end)
       | map(. + "\n") | add // "");
