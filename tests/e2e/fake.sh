#!/bin/bash
# verify and time, their recorder and their runners, on a pretend GPU (tests/fake): every
# verdict, and that no file is ever half written.  What the timings are is not looked at.
# fake_rules.sh looks at the rules one by one.  Needs CUDA's headers.
# uses: build/fake/verify build/fake/time build/fake/recorder build/fake/runner build/fake/baseline
# shellcheck disable=SC2154,SC2030,SC2031  # out is lib.sh's; a subshell's limits are its own
. tests/e2e/lib.sh
. tests/fake/lib.sh
export KP_CELL_SECONDS=2

no_litter() { [ -z "$(find build -name '*+')" ]; }
fails() { [ "$2" = "$1" ] || { echo "exit status $2, not $1"; return 1; }; }

# ---- Each kernel gets its verdict --------------------------------------------------------

for source in "$root"/tests/fake/kernels/*.c; do
    name=$(basename "$source" .c)
    built "$name"
    case $name in endless* | takes_long) KP_DEADLINE=2 ;; *) KP_DEADLINE=20 ;; esac
    step verify
    check "$name: verify succeeds" fails 0 $?
    check "$name: the verdict is $(field expect "$name")" is "$(of verify .verdict)" "$(field expect "$name")"
    check "$name: for the reason that it should be" reason verify "$(field reason "$name")"
    step time
    check "$name: time succeeds" fails 0 $?
    check "$name: and says the same" is "$(of time '.verdict, .reason')" "$(of verify '.verdict, .reason')"
done
check 'nothing half written is left' no_litter

# ---- Another libcuda, as some machines name in LD_LIBRARY_PATH, does not come first ---------

mkdir driver
cc -shared -Wl,-soname,libcuda.so.1 -o driver/libcuda.so.1 -x c - <<< 'int no_driver;'
built ok_relu
LD_LIBRARY_PATH=driver step verify
check 'the pretend GPU is used, whatever LD_LIBRARY_PATH names' is "$? $(of verify .verdict)" '0 ok'

# ---- What an honest kernel's result says ---------------------------------------------------

built ok_relu
step verify
check 'an honest kernel is of class fp32' is "$(of verify .class)" fp32
check 'deterministic' is "$(of verify .deterministic)" true
check 'its sandbox is described' is "$(of verify '.sandbox | keys | join(" ")')" 'landlock limits no_new_privs seccomp'
check 'errors are there by distribution' is "$(of verify '.error.candidate | keys | join(" ")')" 'columns declared infinite large normal outlier rows scaled tiny'
KP_INPUTS='{"task":"0123"}' step time
for key in schema task suite title gpu verdict reason kernel class error evidence deterministic time_us speedup floor_us \
    floor_bytes_us floor_flops_us hard_bound_us empty_graph_us flags sandbox machine harness scratch_bytes; do
    check "the result has $key" is "$(of time "has(\"$key\")")" true
done
check 'the result says what it was measured of' is "$(of time .inputs.task)" 0123
check 'times of both contestants' is "$(of time '.time_us | keys | join(" ")')" 'candidate fp32'
check 'a sample a round' is "$(of time '.time_us.candidate.samples | length')" "$(of time .harness.rounds)"
check 'twenty at least, and few more where all is steady' eval "[ $(of time .harness.rounds) -ge 20 ] && [ $(of time .harness.rounds) -le 80 ]"
check 'two at least on each other distribution that has a speedup' eval "[ $(of time .harness.controls) -ge $(of time '2 * (.speedup.controls | length)') ]"
check 'those are its control inputs' is "$(of time '.speedup.controls | keys | join(" ")')" 'columns infinite large normal outlier rows scaled tiny'
check 'small cells are measured at eight placements' is "$(of time .speedup.placements)" 8
check 'in time, all have their control inputs' is "$(of time '.flags | index("few-controls") != null')" false
"$bin/time" --aa "$json" "$cell" > "$out" 2>&1
check 'A/A measures five batches' is "$(jq '.ratios | length' "$cell.aa.json")" 5

built ok_matmul
step verify
check 'float products are of class fp32' is "$(of verify .class)" fp32
step time
floor=$(of time .floor_flops_us)
jq '.class = "fp32-normwise"' "$cell.verify.json" > x && mv x "$cell.verify.json"
step time
check 'products of fp32-normwise have the floor of fp32' is "$(of time .floor_flops_us)" "$floor"
built ok_matmul_tf32
step verify
check 'products of rounded inputs are of class tf32' is "$(of verify .class)" tf32
step time
check 'and are compared with both' is "$(of time '.time_us | keys | join(" ")')" 'candidate fp32 tf32'
built ok_nondeterministic
step verify
check 'a nondeterministic kernel is said to be so' is "$(of verify .deterministic)" false
step time
check 'and flagged' is "$(of time '.flags | index("nondeterministic") != null')" true
built ok_everything
step verify
check 'a tape holds memsets, copies, clusters' grep -qE '^memset 1 0 value 0 element 1 width 16384 ' "$cell.tape"
check 'from scratch' grep -qE '^copy 2 0 to 1 8192 width 8192$' "$cell.tape"
check 'programmatic edges' grep -qE '^edge [0-9]+ [0-9]+ type 1 ports 1 0$' "$cell.tape"
check 'relocations at any step' grep -qE ' params 21 .* relocs 2 4 0 0 12 1 0$' "$cell.tape"
built ok_tensor_map
step verify
check 'and tensor maps, whose addresses are words of their own' grep -qE ' relocs 2 [0-9]+ 0 0 [0-9]+ 1 0$' "$cell.tape"
step time
check 'which the driver makes where the arrays lie' is "$(of time .verdict)" ok

# ---- Files that were edited, truncated, taken away -------------------------------------------

built ok_relu
step verify
cp "$cell.tape" tape
cp "$cell.verify.json" verified
sed -i 's/ grid 1 1 1 / grid 2 1 1 /' "$cell.tape"
step time
check 'an edited tape has the verdict tape' is "$(of time .verdict)" tape
check 'which says why' reason time 'the tape is not the one that was verified'
head -c 40 tape > "$cell.tape"
step time
check 'so has a truncated one' is "$(of time .verdict)" tape
rm "$cell.tape"
step time
check 'one that is gone is an error' fails 5 $?
check 'of one line' lines 1 '^time: .*relu64\.tape: '
cp tape "$cell.tape"
rm "$cell.time.json"
head -c 200 verified > "$cell.verify.json"
step time
check 'a truncated verify.json is an error' fails 3 $?
check 'of one line, which says what to do' lines 1 'verify\.json:[0-9]+: not JSON .*remove it and run make again$'
check 'and one only' is "$(wc -l < "$out")" 1
check 'without a result' [ ! -e "$cell.time.json" ]
cp verified "$cell.verify.json"
echo > "${cell%/*}/peaks.json"
step time
check 'so are truncated peaks' fails 3 $?
echo garbage > "$cell.build.json"
step verify
check 'and a build.json that is none' fails 3 $?
check 'the old verify.json stays' cmp verified "$cell.verify.json"

built ok_relu
step verify
built one_off
cp build/ok_relu/relu64.{tape,verify.json} build/one_off/
step time
check 'another cubin than the one verified has the verdict tape' is "$(of time .verdict)" tape
check 'and is named' reason time 'the cubin is not the one that was verified'
jq --arg sha "$(sha256sum < "$cell.cubin" | cut -d' ' -f1)" '.cubin_sha256 = $sha' "$cell.verify.json" > edited
cp edited "$cell.verify.json"
step time
check 'a kernel that is wrong only while it is timed is wrong' is "$(of time .verdict)" wrong
check 'which says so' reason time 'a timed run is off by '
built ok_relu
echo garbage > "$cell.cubin"
step verify
check 'a cubin that cannot be loaded has the verdict tape' is "$(of verify .verdict)" tape
for verdict in missing build gate; do
    built ok_relu
    echo '{"schema":1,"verdict":"'$verdict'","reason":"because","kernel":null}' > "$cell.build.json"
    step verify
    check "$verdict is copied on" is "$(of verify '.verdict, .reason' | tr '\n' ' ')" "$verdict because "
    step time
    check "to the result" is "$(of time '.verdict, .reason' | tr '\n' ' ')" "$verdict because "
done

# ---- Bounds --------------------------------------------------------------------------------------

built ok_relu
step verify
KP_FAKE_DRAM=1 step time
check 'faster than memory can be is impossible' is "$(of time .verdict)" impossible
check 'with the times that were found' is "$(of time '.time_us.candidate.samples | length >= 5')" true
peaks read_gbs=0.001 copy_gbs=0.001
step time
check 'faster than this machine was is measured again' is "$(of time .verdict)" ok
check 'and flagged' is "$(of time '.flags | index("below-floor") != null')" true

# ---- Machines --------------------------------------------------------------------------------------

built ok_relu
KP_FAKE_MEMORY=900000000 step verify
check 'a task too large for the GPU is skipped' is "$(of verify .verdict)" skipped
check 'with both numbers' reason verify 'needs at least 1.1 GB of GPU memory, 0.9 GB are free'
step time
check 'skipped is copied on' is "$(of time .verdict)" skipped
step verify
KP_FAKE_MEMORY=400000 step time
check 'eight placements may be too large, too' is "$(of time .verdict)" skipped
mkdir lame
cp "$bin"/{time,runner,lib*} lame/
bin=$scratch/lame step time
check 'without the baseline program there is no measuring' fails 4 $?
check 'which is said in one line' lines 1 'baseline: cannot be started'
printf '#!/bin/sh\nexit 4\n' > lame/baseline
chmod +x lame/baseline
bin=$scratch/lame step time
check 'a baseline that fails is an error' fails 4 $?
check 'of one line' lines 1 '^time: the fp32 runner failed'

built ok_relu
KP_GPU=h200 step verify
check 'a GPU of the kind that is expected is used' is "$(of verify .verdict)" ok
KP_GPU=a100 step verify
check 'one of another kind is an error' fails 4 $?
check 'of one line, which names both' lines 1 '^verify: this GPU is NVIDIA H200 \(pretend\), and a100 is expected: '

# ---- Full disks, and sudden ends ---------------------------------------------------------------------

# Files may grow to one kilobyte: what the steps write is longer.
limited() { (trap '' XFSZ; ulimit -f 0; step "$1"); }
built ok_relu
echo '{"schema":1,"verdict":"gate","reason":"because","kernel":null}' > "$cell.build.json"
for s in verify time; do
    echo old > "$cell.$s.json"
    limited $s > /dev/null 2>&1
    status=$?
    check "$s on a full disk is an error" fails 5 $status
    check "the old $s.json stays" is "$(cat "$cell.$s.json")" old
    check 'and nothing is left beside it' no_litter
    step $s
done

# The same for a whole verification, on a small file system, where one may mount.
full() {
    unshare -rm bash -c "mkdir -p '$1/small' && mount -t tmpfs -o size=64k none '$1/small' &&
        cp -r '$2/'* '$1/small/' && { echo old > '$1/small/relu64.$3.json'
        dd if=/dev/zero of='$1/small/fill' 2> '$1/dd'
        '$bin/$3' '$json' '$1/small/relu64' 2> '$out'; echo \$?; cat '$1/small/relu64.$3.json'; }" 2> /dev/null
}
built ok_relu
step verify
rm "$cell".time.json 2> /dev/null
for s in verify time; do
    found=$(full "$scratch" "${cell%/*}" $s | tr '\n' ' ')
    if [ -n "$found" ]; then
        check "$s on a full file system keeps the old file" is "$found" '5 old '
        check 'and says so in one line' lines 1 "^$s: .*cannot write: .*unchanged"
    else
        skip "$s on a full file system" 'none can be mounted here'
    fi
done

# Killed in the middle: no result, and nothing keeps running.
built endless
KP_DEADLINE=60 "$bin/verify" "$json" "$cell" > "$out" 2>&1 &
for _ in $(seq 100); do sleep 0.05; runner=$(pgrep -P $! -x runner) && break; done
kill -9 $!
wait $! 2> /dev/null
running() { grep -q '^State:[[:space:]]*[RSD]' "/proc/$runner/status"; }
for _ in $(seq 50); do running 2> /dev/null && sleep 0.1; done
check 'a verify that is killed leaves no result' [ ! -e "$cell.verify.json" ]
check 'and no runner' [ -n "$runner" ]
check 'that goes on' not running
