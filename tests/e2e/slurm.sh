#!/bin/bash
# Make on a cluster: a real Slurm with two nodes of one GPU each, all on this machine.  Jobs
# are cancelled, a node dies, the controller restarts: the next make repeats what was lost, and
# nothing else.
# shellcheck disable=SC2154  # out and scratch are lib.sh's
. tests/e2e/lib.sh

PATH=$PATH:/usr/sbin:/sbin
for program in munged slurmctld slurmd srun; do
    command -v "$program" > /dev/null && continue
    if [ -n "${KP_REQUIRE_SLURM-}" ]; then
        check 'Slurm is installed, as KP_REQUIRE_SLURM says it has to be' command -v "$program"
    else
        skip Slurm "no $program here: install slurm-wlm and munge"
    fi
    exit
done

# ---- The cluster --------------------------------------------------------------

# Each process of the cluster, its jobs and its clients has SLURM_CONF in its environment, each
# daemon and what it starts KP_DAEMON.  (Slurm writes its titles over the start of an environment,
# so these two come last.)
unset "${!SLURM@}" "${!SBATCH@}" "${!SRUN@}"
export SLURM_CONF=$scratch/slurm/slurm.conf
daemon() {
    env -u SLURM_CONF SLURM_CONF="$SLURM_CONF" KP_DAEMON="$1 of $SLURM_CONF" "${@:2}" > "$scratch/slurm/$1.log" 2>&1 < /dev/null &
    disown
}
# end VARIABLE=VALUE - kill all processes with this in their environment.
end() {
    local pids i
    for i in {1..20}; do
        pids=$(grep -lzsxF "$1" /proc/[0-9]*/environ | cut -d/ -f3)
        [ -n "$pids" ] || return 0
        # shellcheck disable=SC2086  # a list
        kill -9 $pids 2> /dev/null
        sleep 0.05
    done
}
trap 'end "SLURM_CONF=$SLURM_CONF"; rm -rf "$scratch"' EXIT
trap 'exit 1' HUP INT TERM
# Where this test itself is killed, this ends them.
env -u SLURM_CONF setsid bash -c "$(declare -f end); while kill -0 $$; do sleep 0.2; done
    end 'SLURM_CONF=$SLURM_CONF'; rm -rf '$scratch'" > /dev/null 2>&1 < /dev/null &
disown

controller() { daemon controller slurmctld -D; }
node() { daemon "n$1" slurmd -D -N "n$1"; }

# within SECONDS COMMAND... - COMMAND succeeds before that.
within() {
    local i=0
    until "${@:2}"; do [ $((i += 1)) -le $(($1 * 20)) ] && sleep 0.05 || return 1; done
}
# free_port FROM - a port of the 3000 from there on that nobody listens on.
free_port() {
    local port=$(($1 + RANDOM % 3000))
    while (exec 3<> "/dev/tcp/127.0.0.1/$port") 2> /dev/null; do port=$((port + 1)); done
    echo $port
}
# idle N - N nodes are up, and do nothing.
idle() { [ "$(sinfo -hN -t idle 2> /dev/null | wc -l)" = "$1" ]; }

start() {
    local s=$scratch/slurm me host a b
    me=$(id -un) host=$(hostname -s)
    chmod 711 "$scratch" && mkdir -p "$s/state" "$s/na" "$s/nb"
    a=$(free_port 20000) b=$(free_port 24000)
    cat > "$SLURM_CONF" << CONF
ClusterName=kernelproof
SlurmctldHost=$host(127.0.0.1)
SlurmctldPort=$(free_port 28000)
SlurmUser=$me
SlurmdUser=$me
AuthType=auth/munge
AuthInfo=socket=$s/socket
StateSaveLocation=$s/state
SlurmdSpoolDir=$s/%n
SlurmctldPidFile=$s/controller.pid
SlurmdPidFile=$s/%n.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SlurmdParameters=config_overrides
SchedulerParameters=batch_sched_delay=0,sched_interval=1,bf_interval=1
ReturnToService=2
KillWait=1
GresTypes=gpu
NodeName=na NodeHostname=$host NodeAddr=127.0.0.1 Port=$a CPUs=16 Gres=gpu:a:1
NodeName=nb NodeHostname=$host NodeAddr=127.0.0.1 Port=$b CPUs=16 Gres=gpu:b:1
PartitionName=all Nodes=na,nb Default=YES
CONF
    printf 'AutoDetect=off\nNodeName=na Name=gpu Type=a File=/dev/null\nNodeName=nb Name=gpu Type=b File=/dev/zero\n' > "$s/gres.conf"
    # Slurm before 23.02 has no way to do without cgroups, but this uses none.
    case $(slurmd -V) in
    *\ 2[0-2].*) printf 'CgroupPlugin=cgroup/v1\nCgroupMountpoint=%s/none\n' "$s" ;;
    *) echo CgroupPlugin=disabled ;;
    esac > "$s/cgroup.conf"
    head -c 1024 /dev/urandom > "$s/key" && chmod 600 "$s/key"
    daemon munge munged -F --key-file="$s/key" --socket="$s/socket" --pid-file="$s/munge.pid" --seed-file="$s/seed"
    within 5 [ -S "$s/socket" ]
    controller
    node a
    node b
    within 15 idle 2 || { tail -n 5 "$s"/*.log; return 1; }
}

# ---- Jobs ---------------------------------------------------------------------

# What verify and time do here: say which GPU they have, lock it, write half of the result, wait
# while hold/GPU.STEP is there, and write the rest.
pretend() {
    mkdir pretend hold
    cat > pretend/verify << 'JOB'
#!/bin/bash
step=${0##*/}
for word; do case $word in build/*/*) cell=${word#build/} ;; esac; done
gpu=$SLURMD_NODENAME.$CUDA_VISIBLE_DEVICES
exec 9> "lock.$gpu"
flock -n 9 || echo "$step $cell $gpu" >> overlaps
echo "$step $cell" >> steps.log
echo "$step ${cell%/*} $gpu" >> held
exec 8> "build/$cell.$step.json+"
printf '{"verdict":' >&8
for _ in {1..300}; do [ -e "hold/${cell%/*}.$step" ] || break; sleep 0.05 9>&-; done
printf '"ok"}\n' >&8
mv "build/$cell.$step.json+" "build/$cell.$step.json"
JOB
    chmod +x pretend/verify
    ln -s verify pretend/time
}

# queued GPU STEP - the jobs that wait for this GPU.
queued() { squeue -ht PD -o '%i %j %b' | awk -v kind="gpu:$1" -v job="$2" '$2 == job && index($3, kind) { print $1 }'; }
running() { squeue -ht R -w "n$1" -o %i; }
# busy GPU STEP - it runs STEP, and another job waits for it.
busy() { grep -qs "^$2 $1/" steps.log && [ -n "$(queued "$1" "$2")" ]; }
waits() { [ -n "$(queued "$@")" ]; }
cells() { sed -n "s|^$1 ||p" steps.log | sort | tr '\n' ' '; }
# begin ARG... - start make in the background; ended waits for it.
begin() { mk "$@" & make=$!; }
ended() { wait "$make"; }

tree
mkdir "$scratch/slurm"
check 'a Slurm of two nodes starts' start
[ $failed = 0 ] || exit 1
pretend
both=(-j8 -k time GPUS='a b' arch.a=90 arch.b=80)
own=("${both[@]}" RUN.a='srun --gres=gpu:a:1' RUN.b='srun --gres=gpu:b:1')
two=(TASKS='crfm_softmax l1_019_relu')
forget() { rm build/[ab]/{crfm_softmax,l1_019_relu}.time.json; }

# ---- Any GPU ------------------------------------------------------------------

begin "${both[@]}" RUN='srun --gres=gpu:1'
check 'make -j8 time succeeds with srun' ended
check 'each cell is timed once' is "$(cells time)" 'a/crfm_softmax a/l1_001_matmul a/l1_019_relu b/crfm_softmax b/l1_001_matmul b/l1_019_relu '
check 'and verified once' is "$(cells verify)" "$(cells time)"
check 'both GPUs are used' is "$(sed 's/.* //' held | sort -u | tr '\n' ' ')" 'na.0 nb.0 '
check 'each cell prints one line' lines 6 '^\[[0-6]/6\] '
rm steps.log
mk "${both[@]}" RUN='srun --gres=gpu:1'
check 'a second make does nothing' ran ''

# ---- Jobs are cancelled -------------------------------------------------------

rm held
forget
touch hold/a.time
begin "${own[@]}" "${two[@]}"
check 'one job of a runs while another waits' within 10 busy a time
queue=$(queued a time) run=$(running a)
# shellcheck disable=SC2086  # lists
scancel $queue $run
check 'where jobs are cancelled, make fails' not ended
rm hold/a.time
check 'and names each cell' lines 2 '^make: \*\*\* .*build/a/(crfm_softmax|l1_019_relu)\.time\.json\] Error'
check 'RUN.GPU has each kind run on its own node' is "$(sed 's/^[a-z]* //' held | sort -u | tr '\n' ';')" 'a na.0;b nb.0;'
check 'the other cells are timed' is "$(cells time)" "$(cells time | grep -o 'a/[^ ]* ')b/crfm_softmax b/l1_019_relu "
rm steps.log
begin "${own[@]}" "${two[@]}"
check 'the next make succeeds' ended
check 'and repeats the two that were cancelled' ran 'time a/crfm_softmax;time a/l1_019_relu;'

# ---- A node dies --------------------------------------------------------------

for task in crfm_softmax l1_019_relu; do echo 'int again;' >> "optimized/portable/$task.cu"; done
touch hold/a.verify
begin "${own[@]}" "${two[@]}"
check 'one job of a runs while another waits' within 10 busy a verify
lost=$(sed -n 's/^verify a/a/p' steps.log)
end "KP_DAEMON=na of $SLURM_CONF"
end SLURMD_NODENAME=na
scontrol update nodename=na state=down reason=test
rm hold/a.verify
check 'the other job waits for the node' within 5 waits a verify
node a
check 'where a node goes down, make fails' not ended
check 'which is said' says '^srun: error: Node failure on na'
check 'and names the cell' lines 1 "^make: \*\*\* .*build/$lost\.verify\.json\] Error"
check 'what was not verified is not timed' not grep -q "^time $lost" steps.log
check 'the other cells are, one of them when the node is back' is "$(cells time | wc -w)" 3
rm steps.log
begin "${own[@]}" "${two[@]}"
check 'the next make succeeds' ended
check 'and repeats the cell that was lost' ran "time $lost;verify $lost;"

# ---- The controller restarts --------------------------------------------------

forget
touch hold/a.time hold/b.time
begin "${own[@]}" "${two[@]}"
check 'jobs of both run while others wait' within 10 busy a time
check 'on each node' within 10 busy b time
kill "$(grep -lzsxF "KP_DAEMON=controller of $SLURM_CONF" /proc/[0-9]*/environ | cut -d/ -f3 | head -n 1)"
rm hold/*
check 'the controller has gone' within 10 not scontrol ping
controller
check 'where the controller restarts, make succeeds' ended
check 'and nothing is lost' ran 'time a/crfm_softmax;time a/l1_019_relu;time b/crfm_softmax;time b/l1_019_relu;'
mk "${own[@]}" "${two[@]}"
check 'the next make does nothing' ran ''

check 'no two jobs ever had the same GPU' [ ! -e overlaps ]
end "SLURM_CONF=$SLURM_CONF"
check 'no process of this Slurm is left' not grep -lzsxF "SLURM_CONF=$SLURM_CONF" /proc/[0-9]*/environ
