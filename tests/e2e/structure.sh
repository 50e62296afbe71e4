#!/bin/bash
# The shape of the source: who may include whom, where a main stands, and how large files,
# functions and folders may be.
# shellcheck disable=SC2154  # root and scratch are lib.sh's
. tests/e2e/lib.sh

most_files=25     # of a folder
most_lines=500    # of a file
most_function=60  # lines of a C function
folders() { find harness reference -mindepth 1 -type d; }
sources() { find "$@" -name '*.c' -o -name '*.h' -o -name '*.cu' -o -name '*.cuh'; }
none() { [ -z "$1" ] || { echo "$1"; return 1; }; } # succeeds if there is nothing to list

# ---- Includes -------------------------------------------------------------------------

# "FOLDER USED" for each word of uses.FOLDER, as make/programs.mk has it.
# shellcheck disable=SC2046  # words
make -s $(folders | sed 's|^[a-z]*/|print-uses.|; /\/.*\//d; s|/.*||' | sort -u) |
    sed -n 's/^uses\.\([a-z_]*\) = */\1 /p' |
    awk '{ print $1, $1; for (i = 2; i <= NF; i++) print $1, $i }' | sort -u > "$scratch/uses"
# "FILE INCLUDED" for each include of ours, without their roots harness/ and reference/.
sources harness reference | xargs grep -H '^ *# *include *"' |
    sed -E 's/^(harness|reference)\/([^:]*):[^"]*"([^"]*)".*/\2 \3/' > "$scratch/includes"

# Includes of files of a folder that are not allowed.
foreign() {
    awk -v folder="$1" 'NR == FNR { if ($1 == folder) allowed[$2] = 1; next }
        { from = $1; sub(/\/.*/, "", from); to = $2; sub(/\/.*/, "", to) }
        from == folder && index($2, "/") && !(to in allowed) { print $1 " includes " $2 }' "$scratch/uses" "$scratch/includes"
}
for folder in $(folders); do
    name=${folder#*/}
    [ -z "$(find "$folder" -maxdepth 1 -name '*.[ch]')" ] || [ "$name" != "${name%/*}" ] ||
        check "$folder includes what uses.$name allows, and no more" none "$(foreign "$name")"
done
check 'replay, the contestant, never includes measure, the referee' not grep -q '^replay/[^ ]* measure/' "$scratch/includes"
check 'measure never includes replay' not grep -q '^measure/[^ ]* replay/' "$scratch/includes"
check 'an include of ours names its folder' none "$(awk '$2 !~ /\//' "$scratch/includes")"
check 'what uses.FOLDER allows makes no circle' eval "awk '\$1 != \$2' '$scratch/uses' | tsort > '$scratch/order'"

# ---- Circles between files ---------------------------------------------------------------

# "X Y" where x.c or x.h includes y.h, or x.c uses a function or an object that y.c defines.  A
# definition stands at the beginning of a line, as clang-format leaves it; in CUDA C++ only names with
# a prefix are for other files.  What macros use is not seen.
# shellcheck disable=SC2016  # awk's
sources harness reference | xargs awk '
    FNR == 1 { node = FILENAME; sub(/^[^\/]*\//, "", node); sub(/\.[a-z]*$/, "", node); comment = 0 }
    /^ *# *include *"/ { split($0, part, "\""); sub(/\.[a-z]*$/, "", part[2]); print node, part[2] }
    /^#/ { next }
    {
        gsub(/"(\\.|[^"\\])*"/, "\"\"")
        if (comment && !sub(/^.*\*\//, "")) next
        comment = 0
        gsub(/\/\*([^*]|\*+[^*\/])*\*+\//, " ")
        sub(/\/\/.*/, "")
        if (sub(/\/\*.*/, "")) comment = 1
        name = ""
        if (/^[A-Za-z_]/ && !/^(typedef|using|extern [^"]|template|__[a-z]+__|(struct|enum|union)( [a-z_0-9]+)?( \{.*|;)$)/) {
            head = $0
            if (head ~ /\(/ && head !~ /^[^(]*=/) { gsub(/__attribute__\(\(.*\)\)\)? */, "", head); sub(/\(.*/, "", head) }
            else sub(/[\[=;].*/, "", head)
            n = split(head, word, /[^A-Za-z_0-9]+/)
            while (n > 0 && word[n] == "") n--
            name = word[n]
        }
        if (name != "" && (FILENAME ~ /\.c$/ || FILENAME ~ /\.cu$/ && name ~ /_/)) {
            if (/(^|[^a-z_])static /) own[node, name] = 1
            else { own[node, name] = 1; if (!(name in place)) place[name] = node }
        }
        gsub(/(->|\.|(struct|enum|union) )[A-Za-z_][A-Za-z_0-9]*/, " ")
        if (FILENAME ~ /\.cu?$/) {
            n = split($0, word, /[^A-Za-z_0-9]+/)
            for (i = 1; i <= n; i++) if (word[i] ~ /^[A-Za-z_]/ && !((node, word[i]) in used)) { used[node, word[i]] = 1; users[++nusers] = node " " word[i] }
        }
    }
    END {
        for (i = 1; i <= nusers; i++) {
            split(users[i], part, " ")
            if (part[2] in place && place[part[2]] != part[1] && !((part[1], part[2]) in own)) print part[1], place[part[2]]
        }
    }' | awk '$1 != $2' | sort -u > "$scratch/edges"

# The circles of a folder, as tsort finds them.
circles() {
    grep -E "^$1/[^ ]* $1/" "$scratch/edges" | tsort 2>&1 > "$scratch/order" | sed 's/^tsort: //; s/^-: //' | paste -sd' '
}
for folder in $(folders); do
    name=${folder#*/}
    [ -z "$(find "$folder" -maxdepth 1 -name '*.c')" ] || check "no circle between files of $folder" none "$(circles "$name")"
done

# ---- Mutations ------------------------------------------------------------------------------

check 'each mutation has something to change' none "$(tests/mutate --check | sed '$d')"

# ---- Documents ------------------------------------------------------------------------------

# "FILE" for each header that a command of results/SCHEMA.md names and that is not in the folder of its `cd`.
gone() {
    sed -n 's/^    cd \([^ ]*\) && /\1 /p' results/SCHEMA.md | while read -r folder words; do
        for word in $words; do case $word in *.*) [ -e "$folder/$word" ] || echo "$folder/$word" ;; esac; done
    done
}
check "results/SCHEMA.md's commands name files that are there" none "$(gone)"
check 'make help lists each goal that CONTRIBUTING.md tells to run' none "$(comm -23 \
    <(grep -oE '^    make [a-z][a-z-]*( |$)' CONTRIBUTING.md | awk '{ print $2 }' | sort -u) <(make -s help | awk '/^  [a-z]/ { print $1 }' | sort -u))"

# ---- Where a main stands, and sizes ---------------------------------------------------------

check 'a main is in PROGRAM_main.c' none "$(sources harness reference | xargs grep -l '^int main(' | grep -v '_main\.c$')"
check 'and each PROGRAM_main.c has one' none "$(sources harness reference | grep '_main\.c$' | xargs grep -L '^int main(')"
check "no folder has more than $most_files files" none "$(for folder in $(folders); do
    n=$(find "$folder" -maxdepth 1 -type f | wc -l)
    [ "$n" -le $most_files ] || echo "$folder: $n"
done)"
check "no file but a table has more than $most_lines lines" none \
    "$(sources harness reference optimized tests | xargs wc -l | awk -v most=$most_lines '
        $1 > most && $2 !~ /^total$|_table\.cuh$/ { print $2 ": " $1 }')"
# shellcheck disable=SC2016  # awk's
check "no C function has more than $most_function lines" none "$(sources harness reference tests | grep '\.c$' | xargs awk -v most=$most_function '
    /^[A-Za-z_].*\(/ && !/;$/ { start = FNR; name = $0; sub(/\(.*/, "", name); sub(/.*[ *]/, "", name) }
    /^}$/ && start { if (FNR - start >= most) print FILENAME ": " name ": " FNR - start + 1; start = 0 }
    FNR == 1 { start = 0 }')"
