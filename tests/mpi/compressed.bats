#!/usr/bin/env bats
# Compressed all-reduces under the mpiexec of each MPI are verified and give valid documents.
# shellcheck disable=SC2154 # root, ddpbench: mpi.bash
bats_require_minimum_version 1.5.0

setup() {
    load mpi.bash
    mpi_setup
}

teardown_file() {
    load ../helpers.bash
    validate_kept
}

# compressed FLAVOUR RANKS OP: every method is verified under this MPI.
compressed() {
    needs "$1"
    mpi "$1" "$2" "$ddpbench" allreduce --size 4,100004 -n 2 -w 1 --check all -o "$3" \
        --compress none,fp16,bf16,q8,q4,sign,powersgd:2,topk:0.01,threshold:2.5,oktopk:0.01 --json out.json
    keep out.json
    [ "$(json out.json 'd["status"], d["world"]["ranks"], len(d["points"])')" = "('complete', $2, 20)" ]
    [ "$(json out.json 'sum(p["check"]["wrong"] for p in d["points"])')" = 0 ]
    # Quantised blocks: each phase sends a chunk of ceil(196 / ranks) blocks of 132 bytes to each other rank.
    [ "$(json out.json '[p["wire_bytes_per_rank"] == 2 * (n - 1) * -(-196 // n) * 132 for n in [d["world"]["ranks"]]
        for p in d["points"] if p["compress"]["method"] == "q8" and p["size_bytes"] == 100004]')" = "[True]" ]
    [ "$(json out.json 'all(p["effective_GBps"] > 0 for p in d["points"] if p["compress"]["method"] != "none")')" = True ]
}

@test "Open MPI, 2 ranks: every method verified" {
    compressed openmpi 2 sum
}

@test "Open MPI, 3 ranks: every method verified" {
    compressed openmpi 3 avg
}

@test "MPICH, 2 ranks: every method verified" {
    compressed mpich 2 sum
}

@test "MPICH, 3 ranks: every method verified" {
    compressed mpich 3 avg
}

# partial FLAVOUR: partial synchronisation is verified under this MPI.
partial() {
    needs "$1"
    mpi "$1" 2 "$ddpbench" allreduce --size 64K -n 8 --partial 4 --compress none,topk:0.01 \
        --check all --json out.json
    [ "$(json out.json 'sum(p["check"]["wrong"] for p in d["points"]), d["status"]')" = "(0, 'complete')" ]
}

@test "partial synchronisation under both" {
    partial openmpi
    partial mpich
}

# reference FLAVOUR: compression is compared with the faster of MPI's all-reduce and our own. The
# document names this reference, except for a point that is the reference itself.
reference() {
    needs "$1"
    DDPBENCH_SIMULATE_HOSTS=2 mpi "$1" 2 "$ddpbench" allreduce --size 64K,1M -n 2 -w 0 --compress none,fp16,topk:0.01 \
        --json out.json
    keep out.json
    [ "$(json out.json 'all(p["dense_algorithm"][k] in ("native", "rhd", "ring") if p["dense_us"][k] else p["dense_algorithm"][k] is None for p in d["points"] for k in ("f32", "f16"))')" = True ]
    [ "$(json out.json 'sum(p["dense_algorithm"]["f32"] is not None for p in d["points"])')" = 4 ]
}

@test "Open MPI: the dense reference is named" {
    reference openmpi
}

@test "MPICH: the dense reference is named" {
    reference mpich
}
