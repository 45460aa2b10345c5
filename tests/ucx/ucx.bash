# Functions for the scripts of this folder, which test backend ucx. Sourced by bats.
# shellcheck shell=bash disable=SC2034,SC2054,SC2154 # long, noted: the scripts of this folder; output, status: bats; ddpbench: helpers.bash

load ../helpers.bash

# Called by setup(): sets the binary and the folder of its modules, or skips the test.
ucx_setup() {
    bench_setup
    ddpbench=$(realpath "$ddpbench")
    modules=$(dirname "$ddpbench")
    [ -e "$modules/ddpbench-ucx.so" ] || skip "no module for UCX was built"
}

# start R RANKS LOCAL LOCAL_RANKS COMMAND...: starts the command in the background as rank R of RANKS, as
# torchrun does. The output is in R.out, and the process in pids[R]. master: the host of rank 0. prefix:
# a command that runs the command elsewhere.
start() {
    local r=$1
    MASTER_ADDR=${master:-127.0.0.1} MASTER_PORT=${port:-$((21000 + $$ % 9000))} TORCHELASTIC_RUN_ID=$BATS_TEST_TMPDIR \
        RANK=$r WORLD_SIZE=$2 LOCAL_RANK=$3 LOCAL_WORLD_SIZE=$4 \
        timeout --kill-after=5 "${limit:-60}" "${prefix[@]}" "${@:5}" >"$r.out" 2>&1 3>&- &
    pids[r]=$!
}

# on_hosts EACH COMMAND...: starts EACH ranks on each of the hosts that hosts_up of netns.bash has made.
# shellcheck disable=SC2016 # the inner shell's
on_hosts() {
    local each=$1 h i rank=0
    shift
    pids=()
    for h in "${hosts[@]}"; do
        for ((i = 0; i < each; i++, rank++)); do
            prefix=(ip netns exec "$h" unshare --uts sh -c 'hostname "$0"; echo $$ >"$RANK.pid"; exec "$@"' "$h")
            start "$rank" $((each * ${#hosts[@]})) "$i" "$each" "$@"
        done
    done
}

# finish: waits for all ranks, and prints their exit codes in order. Must run in the shell that started
# the ranks.
finish() {
    local pid
    for pid in "${pids[@]}"; do
        wait "$pid" && printf '0 ' || printf '%s ' $?
    done
}

# torchrun RANKS COMMAND...: runs the command on RANKS ranks of this host, and prints their exit codes.
torchrun() {
    local ranks=$1 r pids=()
    shift
    for ((r = 0; r < ranks; r++)); do
        start "$r" "$ranks" "$r" "$ranks" "$@"
    done
    finish
}

# all_zero RANKS COMMAND...: all ranks succeed; otherwise shows their output.
all_zero() {
    [ "$(torchrun "$@")" = "$(printf '0 %.0s' $(seq "$1"))" ] || { tail ./*.out && false; }
}

# await_second_point: waits until rank 0 of a job with the options `long` has printed its second point.
await_second_point() {
    for _ in {1..300}; do
        ! grep -q ' 65536 ' 0.out || return 0
        sleep 0.1
    done
    tail ./*.out
    false
}

# lose VICTIM SIGNAL: sends the signal to the process of rank VICTIM once rank 0 has printed its second
# point. Waits for the other ranks, and sets `codes` to all exit codes and `ended_ms` to their time. The
# job is `long`, on the ranks that `start` has started. Each writes its process id to R.pid.
long=(allreduce --backend ucx --algorithm ring --size 4,64K,4M --order given --placement in -w 1 --json out.json)
lose() {
    local began r victim=$1
    await_second_point
    began=$(date +%s%N)
    kill -s "$2" "$(cat "$victim.pid")"
    codes=
    for r in "${!pids[@]}"; do
        [ "$r" = "$victim" ] && continue
        wait "${pids[r]}" && codes+="0 " || codes+="$? "
    done
    ended_ms=$((($(date +%s%N) - began) / 1000000))
    kill -s KILL "$(cat "$victim.pid")" 2>/dev/null || true
    wait "${pids[victim]}" || true
    echo "codes $codes after $ended_ms ms"
    tail ./*.out
}

# A prefix of a command that writes the process id of rank R to R.pid.
# shellcheck disable=SC2016 # the inner shell's
noted=(sh -c 'echo $$ >"$RANK.pid"; exec "$@"' sh)
