#!/usr/bin/env bats
# `ddpbench sweep` on fake GPUs: with our own launcher, torchrun's variables and mpiexec, beside runs on
# the processor, and interrupted and resumed.
# shellcheck disable=SC2154 # ddpbench: nccl.bash
bats_require_minimum_version 1.5.0

setup() {
    load nccl.bash
    nccl_setup
    local plain='{"command": "allreduce", "backend": "nccl", "ranks": [1, 2], "size": "1K", "dtype": ["f32", "f16"], "iters": 3},
  {"command": "allreduce", "backend": "nccl", "ranks": 2, "size": "4K", "compress": ["fp16", "topk:0.1"], "iters": 3}'
    cat >c.json <<END
{"runs": [$plain,
  {"command": "broadcast", "backend": "nccl", "ranks": 2, "size": "1K", "graph": true, "iters": 3},
  {"command": "all-gather", "backend": "nccl", "ranks": 2, "size": "2K", "memory": "window", "iters": 3}]}
END
    echo "{\"runs\": [$plain]}" >plain.json
    echo '{"runs": [{"command": "train", "ranks": 2, "model": "lenet", "dataset": "synthetic", "images": 200,
        "batch": 25, "max-steps": 3, "sync": ["dense", "topk:0.1"], "backend": ["nccl", "shm"]}]}' >train.json
}

@test "collectives: every run, with its own graph and memory; a journal that is gone afterwards" {
    fake sweep c.json -q --json out.json
    [ "$(json out.json 'd["status"], d["world"]["backend"], len(p)')" = "('complete', 'nccl', 14)" ]
    [ "$(json out.json 'sum(q["check"]["wrong"] for q in p)')" = 0 ]
    [ "$(json out.json '{(q["collective"], q["graph"], q["memory"]) for q in p} == {("allreduce", False, "registered"), ("broadcast", True, "registered"), ("all-gather", False, "window")}')" = True ]
    [ "$(json out.json 'all(q["device_us"] > 0 for q in p if q["compress"]["method"] == "none" and q["ranks"] > 1)')" = True ]
    [ ! -e out.json.journal ]
}

@test "training on the GPU whose ranks exchange by NCCL, beside training on the processor" {
    fake sweep train.json -q --json out.json
    [ "$(json out.json 'sorted((t["sync"]["strategy"], t["compute"]["device"]) for t in d["train"])')" = \
        "[('dense', 'cpu'), ('dense', 'cuda'), ('topk:0.1', 'cpu'), ('topk:0.1', 'cuda')]" ]
}

@test "without --ranks there are as many as GPUs; too many are an error before anything is started" {
    echo '{"runs": [{"command": "allreduce", "backend": "nccl", "size": "1K", "iters": 3}]}' >n.json
    FAKE_GPUS=3 fake sweep n.json -q --json out.json
    [ "$(json out.json '{q["ranks"] for q in p}')" = "{3}" ]
    echo '{"runs": [{"command": "allreduce", "backend": ["nccl", "shm"], "ranks": [1, 4], "size": "1K", "iters": 3}]}' >n.json
    FAKE_GPUS=2 run fake sweep n.json --json none.json
    [ "$status" = 69 ]
    error_names "runs[0]" "4 ranks" GPU 2
    [ ! -e none.json ]
}

@test "shared GPUs; an option that a GPU does not support is reported with its run" {
    FAKE_GPUS=1 fake sweep plain.json --share-gpu -q --json out.json
    [ "$(json out.json 'd["note"], {q["algbw_GBps"] for q in p}')" = "('correctness-only', {None})" ]
    sed 's/"nccl", "shm"/"shm"/' train.json >cpu.json
    run fake sweep cpu.json --share-gpu
    [ "$status" = 64 ] || [ "$status" = 78 ]
    error_names GPU
    echo '{"runs": [{"command": "train", "backend": "nccl", "ranks": 2, "device": "cpu", "dataset": "synthetic"}]}' >o.json
    run fake sweep o.json
    [ "$status" = 69 ]
    error_names "runs[0]" "'nccl'" GPU
    echo '{"runs": [{"command": "allreduce", "backend": "nccl", "ranks": 2, "size": 64, "iters": 3, "overlap-compute": true}]}' >o.json
    fake sweep o.json -q --json out.json
    [ "$(json out.json 'all(q["overlap"]["total_us"] > 0 for q in p)')" = True ]
    echo '{"runs": [{"command": "allreduce", "backend": "shm", "ranks": 2, "graph": true}]}' >g.json
    run fake sweep g.json
    [ "$status" = 78 ] || [ "$status" = 64 ]
    error_names GPU
}

@test "a rank dies: finished points are kept, and the same command resumes" {
    # FAKE_NCCL_AT counts the operations of rank 1 on all communicators; it ends in the first run of two ranks
    FAKE_NCCL_AT=20 FAKE_NCCL_FAULT=dies run fake sweep c.json -q --json out.json
    [ "$status" = 13 ]
    [ -s out.json.journal ]
    fake sweep c.json -q --json out.json
    [ "$(json out.json 'd["status"], len(p)')" = "('complete', 14)" ]
}

@test "torchrun: all runs share one world" {
    [ "$(torchrun 2 sweep plain.json -q --json out.json)" = "0 0 " ]
    [ "$(json out.json 'd["status"], d["world"]["launcher"], len(p)')" = "('complete', 'torchrun', 10)" ]
    [ "$(torchrun 2 sweep train.json -q --json out.json)" = "78 78 " ]
    file_says 0.out "'shm'" torchrun
    echo '{"runs": [{"command": "allreduce", "size": "1K", "iters": 3, "graph": [true, false]}]}' >g.json
    [ "$(torchrun 2 sweep g.json -q)" = "78 78 " ]
    file_says 0.out "'graph'"
}

@test "mpiexec: MPI distributes NCCL's id" {
    command -v mpiexec.openmpi >/dev/null || skip "no Open MPI"
    [ -e "$DDPBENCH_MODULE_DIR/ddpbench-mpi-openmpi.so" ] || skip "built without Open MPI"
    export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
    timeout --kill-after=5 60 mpiexec.openmpi --oversubscribe -n 2 "$ddpbench" sweep plain.json -q --json out.json
    [ "$(json out.json 'd["status"], d["world"]["launcher"], d["world"]["backend"], len(p)')" = "('complete', 'mpiexec (Open MPI)', 'nccl', 10)" ]
}
