#!/usr/bin/env bats
# Backend ucx on one host, with ranks that ddpbench itself, mpiexec or torchrun's variables start.
# shellcheck disable=SC2154,SC2034 # ddpbench, modules, codes, ended_ms, pids: ucx.bash
# jobs: 2
bats_require_minimum_version 1.5.0

setup() {
    load ucx.bash
    ucx_setup
}

teardown_file() {
    load ../helpers.bash
    validate_kept
}

# right POINTS FILE: the document has this number of points, all with right results.
right() {
    holds "$2" "d['status'] == 'complete' and len(p) == $1 and sum(q['check']['wrong'] for q in p) == 0"
    keep "$2"
}

@test "our launcher starts the ranks: sizes, types, rank counts and all algorithms" {
    for launch in processes threads; do
        ok allreduce --backend ucx --ranks 1,2,3 --size 4,40K -d f32,bf16 --algorithm ring,rhd,rd,tree,auto \
            --placement both -n 2 -w 1 --check all -q --launch $launch --json out.json
        right 120 out.json
    done
    holds out.json "d['world']['backend'] == 'ucx' and d['tool']['features']['ucx'].startswith('UCX ')"
    holds out.json "d['world']['transports'] is not None"
}

@test "our launcher, simulated hosts: hier, sparse exchange, groups and messages" {
    DDPBENCH_SIMULATE_HOSTS=2 ok allreduce --backend ucx --ranks 4 --size 40K --algorithm hier,ring -n 3 -w 1 -q --json out.json
    right 4 out.json
    DDPBENCH_SIMULATE_HOSTS=2 ok allreduce --backend ucx --ranks 4 --size 40K --compress topk:0.01,fp16,sign,powersgd:2 -n 3 -w 1 -q --json out.json
    right 4 out.json
    ok allreduce --backend ucx --ranks 4 --groups 2 --size 40K --algorithm ring -n 3 -w 1 -q --json out.json
    ok send-recv --backend ucx --ranks 2 --size 0,4,1M -n 3 -w 1 -q --json out.json
}

@test "torchrun's variables on a host without a GPU: auto takes ucx, one document" {
    [ "$("$ddpbench" list backend --json - | grep -c '"usable": *true')" -lt 5 ] || skip "there is a GPU"
    all_zero 3 "$ddpbench" allreduce --size 4,40K --algorithm ring,auto -n 3 -q --json out.json
    right 8 out.json
    holds out.json "(d['world']['backend'], d['world']['launcher'], d['world']['ranks']) == ('ucx', 'torchrun', 3)"
    all_zero 4 "$ddpbench" allreduce --ranks 2,3 --size 4K --algorithm ring -n 3 -q --json out.json
    right 4 out.json
}

@test "UCX's variables are in the document, and the devices that they chose" {
    export UCX_TLS=tcp,self UCX_NET_DEVICES=lo
    all_zero 2 "$ddpbench" allreduce --backend ucx --size 40K --algorithm ring -n 3 -q --json out.json
    holds out.json "d['environment']['UCX_TLS'] == 'tcp,self' and d['world']['transports'] == 'tcp/lo'"
}

@test "training and its overlap with computation" {
    for sync in dense topk:0.01 fp16 zero1; do
        all_zero 2 "$ddpbench" train --backend ucx --dataset synthetic --images 400 --batch 16 --max-steps 6 --sync $sync -q --json out.json
        holds out.json "d['status'] == 'complete' and len(t) == 1"
    done
    all_zero 2 "$ddpbench" train --backend ucx --dataset synthetic --images 400 --batch 16 --max-steps 6 --overlap on -q --json out.json
    DDPBENCH_SIMULATE_HOSTS=2 all_zero 4 "$ddpbench" train --backend ucx --dataset synthetic --images 400 --batch 16 --max-steps 6 -q --json out.json
}

@test "a sweep" {
    cat >sweep.json <<'END'
{"runs": [{"command": "allreduce", "size": "4,40K", "algorithm": "ring", "ranks": [2, 3], "iters": 3, "warmup": 1}]}
END
    all_zero 3 "$ddpbench" sweep sweep.json --backend ucx -q --json out.json
    holds out.json "d['status'] == 'complete' and {q['backend'] for q in p} == {'ucx'}"
    ok sweep sweep.json --backend ucx -q --json own.json
    holds own.json "{q['backend'] for q in p} == {'ucx'}"
}

@test "mpiexec starts the ranks: the side channel is MPI's" {
    command -v mpiexec.openmpi >/dev/null && [ -e "$modules/ddpbench-mpi-openmpi.so" ] || skip "no Open MPI here"
    OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 timeout --kill-after=5 60 mpiexec.openmpi --oversubscribe \
        -n 2 "$ddpbench" allreduce --backend ucx --size 40K --algorithm ring,auto -n 3 -q --json out.json
    right 4 out.json
}

# begin RANKS [DEADLINE]: starts the long job on this host, with `iterations` for each size (2000).
begin() {
    local r
    pids=()
    for ((r = 0; r < $1; r++)); do
        start "$r" "$1" "$r" "$1" "${noted[@]}" "$ddpbench" "${long[@]}" -n "${iterations:-2000}" -T "${2:-20}"
    done
}

@test "a killed rank is named within 2 s: shared memory and TCP, rank 0 and another" {
    for tls in all tcp,self; do
        # TCP needs milliseconds for an operation if the ranks share a busy core.
        [ $tls = all ] && iterations=2000 || iterations=400
        for victim in 0 2; do
            UCX_TLS=$tls begin 3
            lose $victim KILL
            [ "$codes" = "13 13 " ]
            [ "$ended_ms" -lt 2000 ]
            for r in 0 1 2; do
                [ $r = $victim ] || file_says $r.out "rank $victim" "$(hostname)"
            done
        done
    done
}

@test "a stopped rank ends the run at the deadline" {
    begin 3 2
    lose 1 STOP
    [ "$codes" = "13 13 " ]
    [ "$ended_ms" -lt 4000 ]
    # Rank 0 may wait for rank 2, which waits for rank 1. Then the text of rank 0 does not name rank 1.
    grep -q "waited 2 s for rank" 0.out 2.out
    holds out.json "d['status'] == 'partial' and 'rank' in d['reason']"
}

@test "our launcher names the signal that killed a rank" {
    "$ddpbench" "${long[@]}" -n 5000 --ranks 3 -T 20 >0.out 2>&1 3>&- &
    job=$!
    for _ in {1..300}; do
        ! grep -q ' 65536 ' 0.out || break
        sleep 0.1
    done
    kill -s KILL "$(pgrep -P $job | sed -n 2p)"
    wait $job && false || [ $? = 13 ]
    file_says 0.out "rank 1" Killed
}

@test "without the module, or with another build's: the reason and the package" {
    mkdir none
    DDPBENCH_MODULE_DIR=$PWD/none refused 69 ddpbench-ucx.so -- allreduce --backend ucx --size 4
    hint_names libucx-dev UCX=1
    DDPBENCH_MODULE_DIR=$PWD/none ok list backend
    says ucx ddpbench-ucx.so "$PWD/none"
    cp "$modules/ddpbench-mpi-openmpi.so" none/ddpbench-ucx.so 2>/dev/null || skip "no module of another kind"
    DDPBENCH_MODULE_DIR=$PWD/none refused 76 ddpbench-ucx.so -- allreduce --backend ucx --size 4
}

@test "transports that do not exist: the variables are named" {
    UCX_TLS=none run torchrun 2 "$ddpbench" allreduce --backend ucx --size 4 -q
    [ "$output" = "69 69 " ]
    file_says 0.out UCX_TLS
}
