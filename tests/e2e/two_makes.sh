#!/bin/bash
# Two makes in one tree, and places that are bad for one: a tree that cannot be written, a full disk.
# shellcheck disable=SC2154,SC2016,SC2030,SC2031  # out, root, scratch are lib.sh's; $ of scripts that run elsewhere
. tests/e2e/lib.sh

exits() { [ "$2" -eq "$1" ] || { echo "exit status $2, not $1"; return 1; }; }
# begin OUT ARG... - start make here in the background; its output goes to OUT, its process is $!.
begin() {
    local out=$1
    shift
    PATH=$PWD/bin:$PATH KP_LOCKS=$PWD CUDA_HOME=$PWD/toolkit exec make "${stubs[@]}" "$@" > "$out" 2>&1
}
# until_is COMMAND... - wait until it succeeds; fail after 20 s.
until_is() {
    for _ in $(seq 400); do
        ! "$@" 2> /dev/null || return 0
        sleep 0.05
    done
    return 1
}
waits='^make: waiting for another make in this tree \(process [0-9]+\)$'
waiting() { grep -qE "$waits" "$1"; }
all_steps='nvcc l1_019_relu;peaks build/h200/peaks.json;time h200/l1_019_relu;verify h200/l1_019_relu;'

# ---- Three at once --------------------------------------------------------------------------

tree
touch slow
begin one time TASKS=l1_019 & one=$!
until_is grep -q ^verify steps.log
begin two time TASKS=l1_019 & two=$!
begin three -j2 time TASKS=l1_019 & three=$!
until_is waiting two && until_is waiting three
check 'a second and a third make wait' [ $? = 0 ]
for goals in 'help' 'print-tasks' 'print-gpus' '-n time' '-n'; do
    # shellcheck disable=SC2086  # a list
    mk $goals
    check "make $goals does not wait" not waiting "$out"
done
check 'for the first, which is at work all that time' kill -0 $one
wait $one
check 'the first ends well' exits 0 $?
wait $two
check 'so does the second' exits 0 $?
wait $three
check 'so does the third' exits 0 $?
check 'the first does not wait' not waiting one
check 'the others say so in one line' is "$(grep -cE "$waits" two) $(grep -cE "$waits" three)" '1 1'
check 'every step was run once' ran "$all_steps"
check 'nothing half written is left' is "$(find build -name '*+')" ''

# ---- A make that is gone ---------------------------------------------------------------------

rm -r build/h200
begin one time TASKS=l1_019 & one=$!
until_is grep -q ^verify steps.log
{ kill -9 $one && wait $one; } 2> /dev/null
mk time TASKS=l1_019
check 'after a make that was killed the next goes on' exits 0 $?
check 'at once' not waiting "$out"
until_is [ -e build/h200/l1_019_relu.time.json ]
check 'with a whole result' is "$(verdict h200/l1_019_relu time)" ok
rm -rf build/h200 steps.log
begin one time TASKS=l1_019 & one=$!
until_is grep -q ^verify steps.log
begin two time TASKS=l1_019 & two=$!
until_is waiting two
kill $two
wait $two 2> /dev/null
wait $one
check 'a make that is ended while it waits does not disturb the first' is "$? $(verdict h200/l1_019_relu time)" '0 ok'
check 'and leaves nothing running' is "$(pgrep -f -c "make/lock $two")" 0
echo "$$ 1" > build/.make
mk build TASKS=l1_019
check 'a process that only has the number of an earlier make holds nothing' not waiting "$out"

# ---- A make within a make --------------------------------------------------------------------

# What runs a step starts a make itself, as a script would that knows nothing of the one above,
# while another make waits.
cat > nested << 'NESTED'
#!/bin/sh
touch nested.began
while [ ! -s two ]; do sleep 0.05; done
env -u MAKELEVEL -u MAKEFLAGS -u MFLAGS make JSON_LIBS= CURL_LIBS= build/report > nested.out 2>&1 || exit
make JSON_LIBS= CURL_LIBS= build/report >> nested.out 2>&1 || exit
exec "$@"
NESTED
chmod +x nested
rm -rf build/h200 steps.log two
begin one time TASKS=l1_019 RUN=./nested & one=$!
until_is [ -e nested.began ]
begin two build TASKS=l1_019 & two=$!
until_is waiting two || echo ended > two
timeout 60 tail -f --pid=$one /dev/null
check 'a make below another does not wait for it' not kill -0 $one
kill $one 2> /dev/null
wait $one
check 'and both end well' exits 0 $?
check 'without a word of waiting' not waiting nested.out
wait $two
check 'so does a third that waited for them' exits 0 $?
MAKELEVEL=1 mk -n build
MAKELEVEL=1 mk build TASKS=l1_019
check 'a make that another project started goes on' exits 0 $?

# ---- A tree that cannot be written -------------------------------------------------------------

tree
user=()
[ "$(id -u)" != 0 ] || user=(setpriv --reuid=65534 --regid=65534 --clear-groups)
if "${user[@]}" true 2> /dev/null; then
    chmod a+rx "$scratch" "$cache"
    chmod -R a+rX .
    chmod a-w .
    as_user() { (export PATH=$PWD/bin:$PATH KP_LOCKS=$PWD CUDA_HOME=$PWD/toolkit; exec "${user[@]}" make "${stubs[@]}" "$@") > "$scratch/said" 2>&1; }
    out=$scratch/said
    as_user time
    status=$?
    check 'in a tree that cannot be written make fails' exits 2 $status
    check 'and one line says so' lines 1 'cannot write here: make needs to write build/ \(in /'
    check 'which is all' is "$(wc -l < "$out")" 1
    as_user -n time TASKS=l1_019
    check 'make -n works there' exits 0 $?
    as_user print-tasks
    check 'and so does a look at a variable' says '^tasks = '
    chmod u+w .
    mk build TASKS=l1_019
    chmod -R a+rX .
    as_user build TASKS=l1_019
    check 'what another user built cannot be written, either' is "$? $(wc -l < "$out")" '2 1'
else
    skip 'a tree that cannot be written' 'no other user can be had here'
fi

# ---- A full disk ---------------------------------------------------------------------------------

tree
how=
for u in -rm -m; do
    mkdir -p build
    [ -n "$how" ] || ! unshare $u mount -t tmpfs -o size=64k none build 2> /dev/null || how=$u
done
cat > on_disk.sh << 'SCRIPT'
mount -t tmpfs -o size=8m none build || exit
again() { make JSON_LIBS= CURL_LIBS= CUDA_LIBS= "$1" > "$2" 2>&1; echo "$1 $?"; }
make JSON_LIBS= CURL_LIBS= CUDA_LIBS= build/id/{compile,confine,gate} build/uses/{verify,time}.seen build/{task,report,cells,h200/peaks.json} > made 2>&1
dd if=/dev/zero of=build/fill bs=4k 2> /dev/null
again time time.full
find build -name '*.json' -exec sh -c 'for f; do jq -e . "$f" > /dev/null 2>&1 || echo "half: $f"; done' - {} +
: > build/.make
dd if=/dev/zero of=build/fill bs=4k oflag=append conv=notrunc 2> /dev/null
again report report.full
rm build/fill
again time time.room
jq -r .verdict build/h200/*.time.json
SCRIPT
if [ -n "$how" ]; then
    found=$(PATH=$PWD/bin:$PATH KP_LOCKS=$PWD CUDA_HOME=$PWD/toolkit unshare "$how" bash on_disk.sh 2>&1 | tr '\n' ' ')
    check 'on a full disk make fails, loses nothing, and ends well where there is room' is "$found" 'time 2 report 2 time 0 ok ok ok '
    out=time.full
    check 'it says that there is no room' says 'No space left on device|no space left|cannot write'
    out=report.full
    check 'a make that cannot even begin says so in one line' is "$(grep -c 'cannot write here.*disk full' "$out") $(wc -l < "$out")" '1 1'
else
    skip 'a full disk' 'none can be mounted here'
fi
