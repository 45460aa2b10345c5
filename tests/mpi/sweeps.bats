#!/usr/bin/env bats
# Sweeps under the mpiexec of each MPI: groups of ranks, the journal that rank 0 shares with all ranks,
# one launch per run of the command, and options that are not available here.
# shellcheck disable=SC2154 # root, ddpbench, modules, status: mpi.bash
bats_require_minimum_version 1.5.0

setup() {
    load mpi.bash
    mpi_setup
    cat >c.json <<'END'
{"runs": [{"command": "allreduce", "ranks": [1, 2, 3], "size": [8, "4K"], "placement": "in", "iters": 7},
          {"command": "allreduce", "ranks": 2, "size": "4K", "algorithm": "native", "placement": "in", "iters": 7},
          {"command": "train", "ranks": [2, 3], "dataset": "synthetic", "images": 96, "epochs": 1}]}
END
}

teardown_file() {
    load ../helpers.bash
    validate_kept
}

# goes_on FLAVOUR: runs a complete sweep, and resumes one that was cut off.
goes_on() {
    needs "$1"
    run mpi "$1" 3 "$ddpbench" sweep c.json --json r.json --journal j -q
    [ "$status" = 0 ] || { echo "$output"; false; }
    keep r.json
    [ "$(json r.json '[p["ranks"] for p in d["points"]]')" = "[1, 1, 2, 2, 3, 3, 2]" ]
    [ "$(json r.json '[t["ranks"] for t in d["train"]]')" = "[2, 3]" ]
    [ "$(json r.json 'd["world"]["ranks"], d["world"]["backend"]')" = "(3, 'mpi')" ]
    json r.json '[p["id"] for p in d["points"]]' >ids
    for n in 5 12; do
        head -n "$n" j >k
        rm r.json
        run mpi "$1" 3 "$ddpbench" sweep c.json --json r.json --journal k
        [ "$status" = 0 ] || { echo "$output"; false; }
        says "'k'"
        [ "$(json r.json '[p["id"] for p in d["points"]]')" = "$(cat ids)" ]
        [ "$(grep -o '"point".*"id": "[^"]*"' k | sort | uniq -d)" = "" ]
    done
    run mpi "$1" 2 "$ddpbench" sweep c.json --json r.json --journal j
    [ "$status" = 76 ] # the journal is that of 3 ranks
}

@test "goes on where it was cut off, Open MPI" { goes_on openmpi; }
@test "goes on where it was cut off, MPICH" { goes_on mpich; }

# launches FLAVOUR: each run of the command is one launch.
launches() {
    needs "$1"
    for n in 1 2 3; do
        run mpi "$1" 3 "$ddpbench" sweep c.json --json r.json --launches 3
        [ "$status" = 0 ] || { echo "$output"; false; }
        [ "$n" = 3 ] || says " $n of 3"
        [ "$(json r.json 'sorted({p["launch"] for p in d["points"]}) == list(range(1, '$((n + 1))'))')" = True ]
        [ "$(json r.json 'd["status"]')" = "$([ "$n" = 3 ] && echo complete || echo partial)" ]
        keep r.json
    done
    [ ! -e r.json.journal ]
    [ "$(json r.json 'len(d["points"]), len(d["train"])')" = "(21, 6)" ]
}

@test "each run of the command is one launch, Open MPI" { launches openmpi; }
@test "each run of the command is one launch, MPICH" { launches mpich; }

# left_out FLAVOUR: one rank alone has no registered memory: exit code 69, and all else is measured.
left_out() {
    needs "$1"
    printf '%s' '{"runs": [{"command": "allreduce", "ranks": 1, "size": 8, "memory": ["registered", "private"], "placement": "in", "iters": 3},
        {"command": "barrier", "ranks": 1, "iters": 3}]}' >l.json
    for n in 1 2; do
        run mpi "$1" 1 "$ddpbench" sweep l.json --json r.json
        echo "$status: $output"
        [ "$status" = 69 ]
        says "allreduce --ranks=1 --size=8 --memory=registered" "1 of 3 runs"
        [ "$(json r.json 'd["status"], len(d["points"])')" = "('partial', 2)" ]
        [ "$n" = 1 ] || says "2 of 3 runs"
    done
    keep r.json
}

@test "points that cannot be measured here are left out and reported, Open MPI" { left_out openmpi; }
@test "points that cannot be measured here are left out and reported, MPICH" { left_out mpich; }

@test "ranks that read different configurations are refused" {
    needs mpich
    # shellcheck disable=SC2016 # the inner shell's
    run mpi mpich 2 sh -c 'mkdir -p d$PMI_RANK; sed "s/7/$((7 + PMI_RANK))/" c.json >d$PMI_RANK/c.json; cd d$PMI_RANK; exec "$0" sweep c.json -q' "$ddpbench"
    [ "$status" != 0 ]
    error_names rank
}

@test "a backend of another launcher, and more ranks than were started, are refused" {
    needs mpich
    printf '%s' '{"runs": [{"command": "allreduce", "ranks": 1, "backend": ["mpi", "self"], "size": 8}]}' >b.json
    run mpi mpich 2 "$ddpbench" sweep b.json
    [ "$status" = 78 ]
    error_names "'b.json'" "'self'"
    run mpi mpich 2 "$ddpbench" sweep b.json --ranks 3
    [ "$status" != 0 ]
}

# all_ranks FLAVOUR: "all" is the world and no duplicate; runs with more ranks are left out and named.
all_ranks() {
    needs "$1"
    cat >all.json <<'END'
{"runs": [{"command": "allreduce", "ranks": [1, "all", 3, 4], "size": 64, "placement": "in", "iters": 3},
          {"command": "broadcast", "ranks": ["all"], "size": 64, "placement": "in", "iters": 3},
          {"command": "train", "ranks": [3, 9], "dataset": "synthetic", "images": 96, "epochs": 1}]}
END
    run mpi "$1" 3 "$ddpbench" sweep all.json --json r.json
    [ "$status" = 0 ] || { echo "$output"; false; }
    keep r.json
    [ "$(json r.json '[(q["collective"], q["ranks"]) for q in p]')" = "[('allreduce', 1), ('allreduce', 3), ('broadcast', 3)]" ]
    [ "$(json r.json 'len(t), [(l["ranks"], l["points"]) for l in d["left_out"]]')" = "(1, [(4, None), (9, None)])" ]
    [ "$(grep -c '^# left out: .* 4 ranks' <<<"$output")" = 1 ]
    [ "$(grep -c 'warning: left out' <<<"$output")" = 2 ]
    run mpi "$1" 3 "$ddpbench" sweep all.json --progress always
    [ "$(grep -aoE '\[[0-9]+/[0-9]+, ' <<<"$output" | uniq | tr -d '[,\n')" = "1/4 2/4 3/4 4/4 " ]
    run mpi "$1" 2 "$ddpbench" sweep all.json --dry-run
    [ "$status" = 0 ]
    [ "$(grep -c '^# left out' <<<"$output")" = 4 ]
    echo '{"runs": [{"command": "barrier", "ranks": [3, 4]}]}' >none.json
    run mpi "$1" 2 "$ddpbench" sweep none.json
    [ "$status" = 64 ]
    says none.json
}

@test "all ranks, and more ranks than there are, Open MPI" { all_ranks openmpi; }
@test "all ranks, and more ranks than there are, MPICH" { all_ranks mpich; }

# subsets FLAVOUR: a subset of the ranks is spread over the hosts, or packed onto the first ones.
subsets() {
    needs "$1"
    export DDPBENCH_SIMULATE_HOSTS=2+2
    run mpi "$1" 4 "$ddpbench" allreduce --ranks 2 --size 64K --algorithm all --placement in -n 3 --json spread.json -q
    [ "$status" = 0 ] || { echo "$output"; false; }
    run mpi "$1" 4 "$ddpbench" allreduce --ranks 2 --size 64K --algorithm all --placement in -n 3 --subset pack --json pack.json -q
    [ "$status" = 0 ] || { echo "$output"; false; }
    keep spread.json pack.json
    [ "$(json spread.json 'd["world"]["subset"]')" = spread ]
    [ "$(json pack.json 'd["world"]["subset"]')" = pack ]
    # `hier` needs two ranks on a host.
    [ "$(json spread.json '[q["ranks"] for q in p if q["algorithm_used"] == "hier"]')" = "[]" ]
    [ "$(json pack.json '[q["ranks"] for q in p if q["algorithm_used"] == "hier"]')" = "[2]" ]
    run mpi "$1" 4 "$ddpbench" allreduce --ranks 2 --explain-auto
    says "on 2 hosts"
    run mpi "$1" 4 "$ddpbench" allreduce --size 64 -n 3 --json all.json -q
    [ "$(json all.json 'd["world"]["subset"]')" = None ]
    # Ranks 1 and 3 are idle for longer than the deadline.
    run mpi "$1" 4 "$ddpbench" allreduce --ranks 2 --size 4 -n 10000000 --max-time 1.5 -T 1 -q --json long.json
    [ "$status" = 0 ] || { echo "$output"; false; }
    [ "$(json long.json 'd["status"], p[0]["ranks"]')" = "('complete', 2)" ]
}

@test "a subset of the ranks is spread or packed" { subsets openmpi; }
