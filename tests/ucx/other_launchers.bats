#!/usr/bin/env bats
# Ranks that meet over TCP because their launcher provides no PMI, or that cannot meet: srun, salloc and Kubernetes
# Indexed Jobs, by their variables. No launcher runs as N separate jobs.
# shellcheck disable=SC2154,SC2034 # pids: ucx.bash; ddpbench, status, output, stderr: helpers.bash
# jobs: 2
bats_require_minimum_version 1.5.0

setup() {
    load ucx.bash
    ucx_setup
}

# both COMMAND...: starts the command as ranks 0 and 1, with the variables of the array `variables` after
# replacing RANK by the rank, and checks that both succeed.
both() {
    local r
    pids=()
    for r in 0 1; do
        env "${variables[@]//RANK/$r}" timeout --kill-after=5 60 "$@" >"$r.out" 2>&1 3>&- &
        pids[r]=$!
    done
    finish >codes
    [ "$(cat codes)" = "0 0 " ] || { tail ./*.out && false; }
}

slurm=(SLURM_JOB_ID=$$ SLURM_STEP_ID=3 SLURM_PROCID=RANK SLURM_STEP_NUM_TASKS=2 SLURM_LOCALID=RANK SLURM_NODEID=0
    SLURM_STEP_TASKS_PER_NODE=2 SLURM_JOB_NUM_NODES=2)

@test "srun without PMI: the ranks meet on the first node of the step" {
    variables=("${slurm[@]}" 'SLURM_STEP_NODELIST=127.[1-2,7],m3')
    both "$ddpbench" allreduce --size 4,40K --algorithm ring -n 3 --json out.json
    holds out.json "(d['world']['backend'], d['world']['launcher'], d['world']['ranks']) == ('ucx', 'srun', 2)"
    file_says 0.out DDPBENCH_SECRET
    run -1 grep 'one of them' 0.out
    variables+=(DDPBENCH_SECRET=0123456789abcdef)
    both "$ddpbench" allreduce --size 4 --algorithm ring -n 3 --json out.json
    run -1 grep SECRET 0.out
}

@test "srun without PMI and without UCX, and --backend mpi: one sentence" {
    mkdir none
    variables=("${slurm[@]//RANK/0}" SLURM_STEP_NODELIST=127.1)
    DDPBENCH_MODULE_DIR=$PWD/none run --separate-stderr env "${variables[@]}" "$ddpbench" allreduce --size 4
    [ "$status" = 69 ]
    error_names srun PMI
    hint_names --mpi=pmix --mpi=pmi2 ucx
    [ "$(wc -l <<<"$stderr")" -le 3 ]
    run --separate-stderr env "${variables[@]}" "$ddpbench" allreduce --backend mpi --size 4
    [ "$status" = 69 ]
    error_names srun PMI
}

@test "salloc without srun: the run says that it measures one node" {
    SLURM_JOB_ID=7 SLURM_JOB_NUM_NODES=4 ok allreduce --ranks 2 --size 4 -n 3
    says "4 nodes" srun
    SLURM_JOB_ID=7 SLURM_JOB_NUM_NODES=1 ok allreduce --ranks 2 --size 4 -n 3
    [[ $stderr != *srun* ]]
}

@test "a Kubernetes Indexed Job: the index is the rank" {
    variables=(JOB_COMPLETION_INDEX=RANK WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 "MASTER_PORT=$((21000 + $$ % 9000))"
        DDPBENCH_SECRET=0123456789abcdef)
    both "$ddpbench" allreduce --size 4,40K --algorithm ring -n 3 -q --json out.json
    holds out.json "d['world']['launcher'] == 'Kubernetes Indexed Job' and d['world']['ranks'] == 2"
}

@test "a Kubernetes Indexed Job without the host of rank 0, or without the number of pods, is refused with the recipe" {
    JOB_COMPLETION_INDEX=1 refused 76 MASTER_ADDR -- allreduce --size 4
    hint_names k8s-indexed JOB_COMPLETION_INDEX
    JOB_COMPLETION_INDEX=1 MASTER_ADDR=h refused 76 WORLD_SIZE -- allreduce --size 4
    hint_names k8s-indexed
}
