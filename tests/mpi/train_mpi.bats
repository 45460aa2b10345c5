#!/usr/bin/env bats
# Training under the mpiexec of each MPI: every strategy, placement and overlap gives the same losses as
# on shared memory.
# shellcheck disable=SC2154 # ddpbench: mpi.bash
bats_require_minimum_version 1.5.0

options=(train --dataset synthetic --images 100 --batch 8 --check-replicas step)
compare=dense,fp16,bf16,q4,sign,powersgd:2,topk:0.01,threshold:0.02,oktopk:0.01,partial:4,local:3,diloco:3,zero1,none

# The losses on shared memory.
setup_file() {
    load ../helpers.bash
    cd "$BATS_FILE_TMPDIR" || return
    "${DDPBENCH:-$BATS_TEST_DIRNAME/../../build/ddpbench}" "${options[@]}" --max-steps 6 --ranks 2 --compare "$compare" --json shm.json
}

setup() {
    load mpi.bash
    mpi_setup
}

# losses FILE: prints strategy and loss of each run with several ranks.
losses() {
    json "$1" '[(r["sync"]["strategy"], round(r["epochs"][-1]["eval_loss"], 5)) for r in d["train"] if not r["baseline"]]'
}

# all_strategies FLAVOUR: every strategy gives the same losses as on shared memory.
all_strategies() {
    needs "$1"
    mpi "$1" 2 "$ddpbench" "${options[@]}" --max-steps 6 --compare "$compare" --json mpi.json
    cp "$BATS_FILE_TMPDIR/shm.json" .
    [ "$(json mpi.json 'len(d["train"])')" = 15 ]
    [ "$(json mpi.json 'd["train"][0]["baseline"] and d["train"][0]["ranks"] == 1')" = True ]
    [ "$(losses mpi.json)" = "$(losses shm.json)" ] || { losses mpi.json; losses shm.json; false; }
}

overlap_and_placements() {
    needs "$1"
    local options=("${options[@]}" --max-steps 3)
    mpi "$1" 3 "$ddpbench" "${options[@]}" --json plain.json
    for more in "--bucket-bytes 100K --overlap on" "--aggregate local" "--aggregate device" \
        "--aggregate dist-device" "--aggregate dist-device --bucket-bytes 100K --overlap on"; do
        # shellcheck disable=SC2086 # several words
        mpi "$1" 3 env DDPBENCH_SIMULATE_HOSTS=1+2 "$ddpbench" "${options[@]}" $more --json other.json
        [ "$(losses other.json)" = "$(losses plain.json)" ] || { echo "$more"; losses other.json; false; }
    done
}

@test "Open MPI: every strategy, as on shared memory" {
    all_strategies openmpi
}

@test "MPICH: every strategy, as on shared memory" {
    all_strategies mpich
}

@test "Open MPI: overlap and placements give one result" {
    overlap_and_placements openmpi
}

@test "MPICH: overlap and placements give one result" {
    overlap_and_placements mpich
}
