# text.jq: text in prompts: lines, blocks, templates.  An error is {code: exit code, text: its line}.
#
# jq 1.6 has `try` catch what is raised behind it, too, unless it stands in brackets.

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

# What a template may use: no newlines at the end, and null if nothing is left.
def value: if type == "string" then sub("\n+\\z"; "") | if . == "" then null else . end else null end;

# A template with its {{name}}s filled in, without lines of which a value is null, and without repeated
# blank lines.  `path` is for messages; the template must use the values that $must names, unless null.
def expand($path; $values; $must):
    def fail($text): error({code: 3, text: "\($path)\($text)"});
    if . == null then fail(": cannot read this template: restore it") else . end
    | . as $template | ($values | map_values(value)) as $v
    | [lines | to_entries[] | .key as $at | .value
       | [match("\\{\\{(?:([a-z0-9_]+)\\}\\})?"; "g").captures[0].string] as $names
       | if any($names[]; . == null) then fail(":\($at + 1): {{ without a name and }}: write {{name}}") else . end
       | ($names - ($v | keys))[0] as $unknown
       | if $unknown then fail(":\($at + 1): unknown name {{\($unknown)}}: remove it, or see prompt.jq for those there are") else . end
       | select(all($names[]; $v[.] != null)) | gsub("\\{\\{(?<name>[a-z0-9_]+)\\}\\}"; $v[.name])]
    | ($must[] | select($v[.] != null and ("{{\(.)}}" as $use | $template | contains($use) | not))
       | fail(": lacks {{\(.)}}, which this request is about: add a line with it")),
      (reduce .[] as $l ([]; if $l == "" and (length == 0 or .[-1] == "") then . else . + [$l] end)
       | map(. + "\n") | add // "");
