#!/usr/bin/env bats
# Backend nccl with torchrun's variables and under the mpiexec of each MPI: NCCL's id reaches all ranks,
# and dead ranks are noticed.
# jobs: 3
# shellcheck disable=SC2154 # ddpbench: nccl.bash
bats_require_minimum_version 1.5.0

setup() {
    load nccl.bash
    nccl_setup
}

@test "torchrun, 2 and 4 ranks: correct, one document" {
    for ranks in 2 4; do
        [ "$(torchrun $ranks allreduce --size 4,64K -n 5 -q --json out.json)" = "$(printf '0 %.0s' $(seq $ranks))" ]
        [ "$(json out.json 'd["status"], d["world"]["backend"], d["world"]["launcher"], d["world"]["ranks"]')" = \
            "('complete', 'nccl', 'torchrun', $ranks)" ]
        [ "$(json out.json 'sum(q["check"]["wrong"] for q in p), len(p)')" = "(0, 4)" ]
        [ "$(json out.json 'd["tool"]["features"]["mpi"]')" = None ]
    done
}

@test "srun torchrun and mpiexec torchrun: the ranks are those of torchrun" {
    export SLURM_PROCID=1 SLURM_STEP_NUM_TASKS=2 SLURM_LOCALID=0
    [ "$(torchrun 2 allreduce --size 4 -n 5 -q --json out.json)" = "0 0 " ]
    [ "$(json out.json 'd["world"]["launcher"], d["world"]["ranks"]')" = "('torchrun', 2)" ]
    unset SLURM_PROCID SLURM_STEP_NUM_TASKS SLURM_LOCALID
    export OMPI_COMM_WORLD_RANK=1 OMPI_COMM_WORLD_SIZE=2
    [ "$(torchrun 2 allreduce --size 4 -n 5 -q --json out.json)" = "0 0 " ]
    [ "$(json out.json 'd["world"]["launcher"], d["world"]["ranks"]')" = "('torchrun', 2)" ]
}

@test "torchrun: groups and fewer ranks than there are" {
    [ "$(torchrun 4 allreduce --groups 2 --size 1K -n 3 -q)" = "0 0 0 0 " ]
    [ "$(torchrun 4 allreduce --ranks 2,3 --size 1K -n 3 -q --json out.json)" = "0 0 0 0 " ]
    [ "$(json out.json 'sorted({q["ranks"] for q in p})')" = "[2, 3]" ]
}

@test "torchrun: windows of fewer ranks than there are, and of several numbers of ranks" {
    [ "$(FAKE_NCCL_LOG=$PWD/log torchrun 3 allreduce --ranks 2 --memory window -T 5 --size 1K -n 3 -q)" = "0 0 0 " ] || { cat ./*.out; false; }
    [ "$(grep -c " unregistered" log)" = 0 ]
    [ "$(torchrun 4 allreduce --ranks 2,3,4 --memory window -T 5 --size 1K -n 3 -q --json out.json)" = "0 0 0 0 " ]
    [ "$(json out.json '[q["symmetric"] for q in p]')" = "['yes', 'yes', 'yes', 'yes', 'yes', 'yes']" ]
}

@test "torchrun: an idle rank outwaits the deadline" {
    [ "$(torchrun 3 allreduce --ranks 2 --size 1M,4M --max-time 3 --precision 0.01 -T 1 -q --json out.json)" = "0 0 0 " ] || { cat ./*.out; false; }
    [ "$(json out.json 'd["status"], {q["ranks"] for q in p}')" = "('complete', {2})" ]
}

@test "torchrun: a rank dies, the others say which" {
    FAKE_NCCL_AT=20 FAKE_NCCL_FAULT=dies run torchrun 3 allreduce --size 4 -n 30 -q --json out.json
    [ "$output" = "13 137 13 " ]
    file_says 0.out "rank 1"
    file_says 2.out "rank 1"
    [ "$(json out.json 'd["status"]')" = partial ]
}

@test "torchrun: a collective hangs, all leave at the deadline" {
    FAKE_NCCL_AT=20 FAKE_NCCL_FAULT=op-hangs run torchrun 2 allreduce --size 4 -n 30 -T 1 -q --json out.json
    [ "$output" = "13 13 " ]
    cat 0.out 1.out >both # one rank may learn of the other's deadline before its own
    file_says both "1 s" allreduce
}

@test "torchrun: two ranks on one GPU, and too few of them" {
    FAKE_GPUS=1 run torchrun 2 allreduce --backend nccl --size 4
    [ "$output" = "69 69 " ]
    file_says 0.out 0 1 GPU
    FAKE_GPUS=2 run torchrun 3 allreduce --backend nccl --size 4
    [ "$output" = "69 69 69 " ]
    file_says 0.out "3 ranks" "2 "
    run torchrun 2 allreduce --backend nccl --share-gpu --size 4
    [ "$output" = "64 64 " ]
}

@test "torchrun: rank 0 never starts: the ranks that wait for it say so" {
    MASTER_ADDR=127.0.0.1 MASTER_PORT=$((20000 + $$ % 10000)) RANK=1 WORLD_SIZE=2 LOCAL_RANK=1 LOCAL_WORLD_SIZE=2 \
        run fake allreduce --size 4 -T 1 -q
    [ "$status" = 13 ]
    error_names "rank 1" "rank 0" 127.0.0.1
}

@test "torchrun: a rank is missing: rank 0 names it, once" {
    for r in 0 1; do
        MASTER_ADDR=127.0.0.1 MASTER_PORT=$((20000 + $$ % 10000)) RANK=$r WORLD_SIZE=3 LOCAL_RANK=$r LOCAL_WORLD_SIZE=3 \
            timeout 60 "$ddpbench" allreduce --size 4 -T 1 -q >$r.out 2>&1 3>&- &
    done
    wait
    file_says 0.out "rank 2" 3 127.0.0.1
    [ ! -s 1.out ]
}

@test "torchrun: options that do not run on GPUs are refused for that reason, not for a missing MPI" {
    run torchrun 1 train --backend nccl --device cpu --dataset synthetic
    [ "$output" = "69 " ]
    file_says 0.out GPU
    file_says 0.out "--backend ucx"
    run torchrun 1 allreduce --backend mpi --size 4
    file_says 0.out torchrun MPI
}

@test "torchrun: a barrier of NCCL brings the ranks together before each iteration" {
    FAKE_NCCL_LOG=$PWD/own.log fake allreduce --backend nccl --ranks 2 --size 4 -n 10 -w 0 --placement in -q
    [ "$(FAKE_NCCL_LOG=$PWD/torchrun.log torchrun 2 allreduce --size 4 -n 10 -w 0 --placement in -q)" = "0 0 " ]
    [ "$(wc -l <torchrun.log)" -ge $(($(wc -l <own.log) + 2 * 10)) ]
    [ "$(torchrun 2 allreduce --size 4 -n 10 --graph --start window -q --json out.json)" = "0 0 " ]
    [ "$(json out.json 'd["status"], sum(q["check"]["wrong"] for q in p)')" = "('complete', 0)" ]
}

@test "torchrun: one rank per host reads the facts about the GPUs" {
    "${CC:-cc}" -shared -fPIC -DFAKE_INIT=0 -DFAKE_COUNT=0 -o libnvidia-ml.so.1 "$root/tests/gpu/fake_nvml.c"
    export LD_LIBRARY_PATH=$PWD FAKE_NVML_LOG=$PWD/log
    [ "$(torchrun 3 allreduce --size 4 -n 1 -q --json out.json)" = "0 0 0 " ]
    [ "$(sort -u log | wc -l)" = 1 ]
    [ "$(json out.json '[(h["ranks"], len(h["gpus"])) for h in d["world"]["hosts"]]')" = "[(3, 2)]" ]
}

@test "torchrun: the doctor finds backend nccl usable, and misses no MPI" {
    [ "$(torchrun 1 doctor)" = "0 " ]
    grep -q '^OK .* nccl:' 0.out
    ! grep '^[A-Z]* .* mpi:' 0.out || false
}

@test "torchrun: other arguments on one rank" {
    MASTER_ADDR=127.0.0.1 MASTER_PORT=$((30000 + $$ % 5000)) RANK=1 WORLD_SIZE=2 LOCAL_RANK=1 LOCAL_WORLD_SIZE=2 \
        timeout 60 "$ddpbench" allreduce --size 8 -q >1.out 2>&1 3>&- &
    MASTER_ADDR=127.0.0.1 MASTER_PORT=$((30000 + $$ % 5000)) RANK=0 WORLD_SIZE=2 LOCAL_RANK=0 LOCAL_WORLD_SIZE=2 \
        run timeout 60 "$ddpbench" allreduce --size 4 -q
    [ "$status" = 76 ]
    wait $! && status=0 || status=$?
    [ "$status" = 76 ]
}

# under_mpi FLAVOUR LIBRARY: runs backend nccl under the mpiexec of this MPI.
under_mpi() {
    local more=()
    command -v "mpiexec.$1" >/dev/null || skip "no mpiexec.$1 here"
    [ -e "$DDPBENCH_MODULE_DIR/ddpbench-mpi-$1.so" ] || skip "no module for $1 was built"
    export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
    [ "$1" != openmpi ] || more=(--oversubscribe)
    timeout --kill-after=5 60 "mpiexec.$1" "${more[@]}" -n 3 "$ddpbench" allreduce --size 4,64K -n 5 -q --json out.json
    [ "$(json out.json 'd["status"], d["world"]["backend"], d["world"]["ranks"]')" = "('complete', 'nccl', 3)" ]
    [[ $(json out.json 'd["tool"]["features"]["mpi"]') == "$2 "[0-9]* ]]
    [ "$(json out.json 'sum(q["check"]["wrong"] for q in p)')" = 0 ]
}

@test "under Open MPI's mpiexec" {
    under_mpi openmpi "Open MPI"
}

@test "under MPICH's mpiexec" {
    under_mpi mpich MPICH
}
