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

# goes_on FLAVOUR: runs a complete sweep, and resumes one that was cut off.
goes_on() {
    needs "$1"
    run mpi "$1" 3 "$ddpbench" sweep c.json --json r.json --journal j -q
    [ "$status" = 0 ] || { echo "$output"; false; }
    "${PYTHON:-python3}" "$root/ci/validate_json.py" r.json
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
    [ "$status" = 64 ] # 3 of 2 ranks were asked for
    says "--ranks 3"
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
        "${PYTHON:-python3}" "$root/ci/validate_json.py" r.json
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
    "${PYTHON:-python3}" "$root/ci/validate_json.py" r.json
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
