#!/usr/bin/env bats
# Under the mpiexec of each MPI: every type and operation, groups, and more elements than one MPI call
# can count.
# shellcheck disable=SC2154 # root, ddpbench, modules: mpi.bash
bats_require_minimum_version 1.5.0

setup() {
    load mpi.bash
    mpi_setup
}

# all_right POINTS: the document has this number of points, all with right results.
all_right() {
    [ "$(json out.json '[len(d["points"]), sum(p["check"]["wrong"] for p in d["points"])]')" = "[$1, 0]" ]
}

every_type() {
    needs "$1"
    mpi "$1" 2 "$ddpbench" allreduce --algorithm native --size 1000 -n 1 -w 0 -d \
        f32,f16,bf16,f64,i32,i8,i64,fp8-e4m3,fp8-e5m2 -o sum,avg,prod,min,max --json out.json
    all_right 90
    mpi "$1" 2 "$ddpbench" allreduce --algorithm native --size 1000 -n 1 -w 0 -d u8,u32,u64 -o sum,avg,prod --json out.json
    all_right 18
    # MPICH 4.0.2 gives wrong results for some of these (its issue 6083), so ddpbench refuses them there.
    for dtype in u8 u32 u64; do
        run mpi "$1" 2 "$ddpbench" allreduce --algorithm native --size 1000 -n 1 -w 0 -d $dtype -o min,max
        [ "$status" = 0 ] || { [ "$status" = 69 ] && error_names MPICH $dtype min; }
    done
}

@test "Open MPI: every type and operation" {
    every_type openmpi
}

@test "MPICH: every type and operation" {
    every_type mpich
}

# Runs three ranks, so that averages divide by 3, and a group of the first two ranks.
counts() {
    needs "$1"
    mpi "$1" 3 "$ddpbench" allreduce --algorithm native --ranks 2,3 --size 1000 --placement out -n 1 -w 0 \
        -d f32,f16,i32,u64,fp8-e4m3 -o avg --json out.json
    all_right 10
    [ "$(json out.json 'sorted(p["ranks"] for p in d["points"])')" = "[2, 2, 2, 2, 2, 3, 3, 3, 3, 3]" ]
}

@test "Open MPI: 3 ranks, and the first 2 of them" {
    counts openmpi
}

@test "MPICH: 3 ranks, and the first 2 of them" {
    counts mpich
}

# Builds a module that assumes a limit of 1000 elements per MPI call, to test the code for counts above
# INT_MAX without so much memory.
pieces() {
    needs "$1"
    local small=$BATS_FILE_TMPDIR/small # both modules share the other objects
    CUDA=0 make -s -C "$root" "O=$small" CFLAGS='-DDDP_MPI_COUNT_MAX=1000 -O0' \
        "$small/ddpbench-mpi-$1.so" >make.txt 2>&1 || { cat make.txt; return 1; }
    export DDPBENCH_MODULE_DIR=$small
    mpi "$1" 2 "$ddpbench" allreduce --algorithm native --size 3996,4000,4004,1M -n 1 -w 0 -d f32,f16,i32 -o avg \
        --json out.json
    all_right 24
    "$PYTHON" - >pieces.json <<'PY'
import json
names = {"reduce-scatter": {}, "all-gather": {}, "reduce": {"root": 1}, "all-to-all": {}, "scatter": {"root": 1}}
print(json.dumps({"runs": [{"command": name, "algorithm": "native", "size": [24, 48024], "iters": 1, "warmup": 0} | more
                           for name, more in names.items()]}))
PY
    mpi "$1" 2 "$ddpbench" sweep pieces.json --json out.json
    all_right 20
    [ "$(json out.json 'len({p["collective"] for p in d["points"]})')" = 5 ]
}

@test "Open MPI: more elements than one call counts" {
    pieces openmpi
}

@test "MPICH: more elements than one call counts" {
    pieces mpich
}

# MPICH before 4.2 crashes in this operation (its issue 6540), so the backend must avoid it.
other_root() {
    needs "$1"
    mpi "$1" 2 "$ddpbench" reduce -r 1 --algorithm native --placement in --size 8,12000,1M \
        -n 1 -w 0 -o sum,avg --json out.json
    all_right 6
}

@test "Open MPI: reduce in place at rank 1" {
    other_root openmpi
}

@test "MPICH: reduce in place at rank 1" {
    other_root mpich
}
