#!/usr/bin/env bats
# Backend nccl on fake GPUs: every collective, dtype and operation is verified; options that cannot be
# combined with it are refused.
# jobs: 2
# shellcheck disable=SC2154 # ddpbench: nccl.bash
bats_require_minimum_version 1.5.0

setup() {
    load nccl.bash
    nccl_setup
}

teardown_file() {
    load ../helpers.bash
    validate_kept
}

# correct COLLECTIVE OPTION...: gives correct results in and out of place.
correct() {
    fake "$@" --backend nccl --size 12K -n 2 -w 1 -c all -q --json out.json >/dev/null
    [ "$(json out.json 'd["status"], d["world"]["backend"], {q["algorithm_used"] for q in p}')" = \
        "('complete', 'nccl', {'native'})" ]
    [ "$(json out.json 'min(d["world"]["comm_us"][k] for k in ("init", "split", "destroy")) > 0')" = True ]
    [ "$(json out.json 'sum(q["check"]["wrong"] for q in p)')" = 0 ]
    [ "$(json out.json 'sum(q["check"]["elements"] for q in p) > 1000')" = True ]
}

@test "all-reduce, every operation and floating dtype; in plain memory, as a graph" {
    correct allreduce --ranks 2 -o sum,avg,prod,min,max --graph
    correct allreduce --ranks 3 -d f32,f16,bf16,f64 -o sum,avg --memory private
}

@test "reduce-scatter and reduce" {
    correct reduce-scatter --ranks 3 -o sum,avg
    correct reduce --ranks 3 -o sum,avg -r 1
}

@test "every collective works in windows" {
    for c in allreduce reduce-scatter reduce all-gather broadcast all-to-all all-to-all-v all-gather-v reduce-scatter-v gather scatter send-recv; do
        correct $c --ranks 3 --memory window
    done
    [ "$(json out.json '{q["symmetric"] for q in p}')" = "{'yes'}" ]
}

@test "without symmetric memory the windows work, and the record says so" {
    NCCL_P2P_DISABLE=1 correct allreduce --ranks 2 --memory window
    [ "$(json out.json '{q["symmetric"] for q in p}')" = "{'no'}" ]
    keep out.json
    correct allreduce --ranks 2
    [ "$(json out.json '{q["symmetric"] for q in p}')" = "{None}" ]
}

@test "collectives that only move data, on 3 ranks" {
    for c in all-gather broadcast all-to-all all-to-all-v all-gather-v gather scatter send-recv; do
        correct $c --ranks 3 -d u8
    done
}

@test "collectives that only move data, when the calls of a group are still in progress" {
    export FAKE_NCCL_BUSY=1
    for c in all-to-all all-to-all-v all-gather-v gather scatter send-recv; do
        correct $c --ranks 3
    done
}

@test "collectives that only move data, as a graph" {
    for c in all-to-all all-to-all-v all-gather-v gather send-recv; do
        correct $c --ranks 2 --graph
    done
}

@test "all-to-all-v and all-gather-v with parts of different sizes, also when they are 0, and as a graph" {
    printf '0 1 2\n3 0 0\n0 5 1\n' >tokens
    for split in zipf:2 tokens; do
        correct all-to-all-v --ranks 3 --split $split
        correct all-to-all-v --ranks 3 --split $split --graph
    done
    correct all-gather-v --ranks 3 --split zipf:2
    [ "$(json out.json '{q["imbalance"] > 1 for q in p}')" = "{True}" ]
}

@test "reduce-scatter-v with parts of different sizes, also when they are 0, in progress, and as a graph" {
    echo 0 1 2 >parts
    correct reduce-scatter-v --ranks 3 --split parts -d f32,f16 -o sum,avg,max
    correct reduce-scatter-v --ranks 3 --split zipf:2 --graph
    FAKE_NCCL_BUSY=1 correct reduce-scatter-v --ranks 3 --split parts
    [ "$(json out.json '{q["busiest_bytes"] for q in p}')" = "{12288}" ] # rank 0 has no part
}

@test "8-bit floats are combined on GPUs of compute capability 9.0; older ones only move them" {
    correct allreduce --ranks 3 -d fp8-e4m3,fp8-e5m2 -o sum,avg,prod,min,max
    export FAKE_GPU_CAPABILITY=80
    correct all-gather --ranks 2 -d fp8-e4m3
    for algorithm in auto native; do # a named algorithm is checked before the ranks start
        run fake allreduce --backend nccl --ranks 2 --size 4 -d fp8-e4m3 --algorithm $algorithm
        [ "$status" = "$([ $algorithm = auto ] && echo 69 || echo 64)" ]
        error_names NCCL fp8-e4m3 9.0
    done
}

@test "integers work; their averages are refused with the reason" {
    correct allreduce --ranks 2 -d i32,u8,i8,u32,i64,u64 -o sum,prod,max
    run fake allreduce --backend nccl --ranks 2 --size 4 -d i32 -o avg
    [ "$status" = 69 ]
    error_names NCCL i32
}

@test "'all' leaves out types and operations that NCCL lacks, with one message; a named one is an error" {
    fake allreduce --backend nccl --ranks 2 --size 8,1K -d all -o all --placement in -n 2 --json out.json >/dev/null 2>said
    [ "$(json out.json 'len(p), d["status"]')" = "(108, 'complete')" ] # 12 types, 6 of them without avg
    [ "$(json out.json '{(q["dtype"], q["op"]) for q in p} & {("i32", "avg"), ("u8", "avg"), ("i64", "avg")}')" = "set()" ]
    [ "$(grep -c ' i32 avg .*NCCL' said)" = 1 ]
    [ "$(grep -c ' u8 avg .*NCCL' said)" = 1 ]
    fake allreduce --backend nccl --ranks 2 --size 8 -d all -o avg --placement in -n 2 -q --json out.json
    [ "$(json out.json 'len(p)')" = 6 ]
    for more in "-d i32 -o avg --algorithm all" "-d f32,i32 -o avg" "-d all --algorithm ring" "-o all --compress none --algorithm ring"; do
        # shellcheck disable=SC2086 # words
        run fake allreduce --backend nccl --ranks 2 --size 4 $more
        [ "$status" = 69 ] || [ "$status" = 64 ]
    done
    run fake allreduce --backend nccl --ranks 2 --size 4 -d i32 -o avg --algorithm all
    error_names NCCL i32
}

# logged WORD...: the log of the fake NCCL is not empty, and each of its lines has every word.
logged() {
    [ -s log ]
    for word; do
        [ "$(grep -cvw -- "$word" log)" = 0 ]
    done
}

@test "communicators are blocking, or not with --nccl-blocking off; the record says which" {
    export FAKE_NCCL_LOG=$PWD/log
    correct allreduce --ranks 2
    logged blocking
    [ "$(json out.json 'd["world"]["nccl_blocking"]')" = on ]
    keep out.json
    rm log
    for c in allreduce send-recv all-to-all; do
        correct $c --ranks 3 --nccl-blocking off --memory window
    done
    correct allreduce --ranks 2 --nccl-blocking off --graph
    logged nonblocking
    [ "$(json out.json 'd["world"]["nccl_blocking"]')" = off ]
}

@test "buffers are registered with the communicator that runs the operation" {
    export FAKE_NCCL_LOG=$PWD/log
    for memory in registered window; do
        for more in "--ranks 3" "--ranks 4 --groups 2" "--ranks 4 --groups 0,3:1,2"; do
            rm -f log
            # shellcheck disable=SC2086 # words
            fake allreduce --backend nccl --size 12K -n 2 -q --memory $memory $more
            logged registered
        done
    done
    rm log
    fake allreduce --backend nccl --size 12K -n 2 -q --ranks 2 --memory private
    logged registered # the memory does not come from NCCL
}

@test "device_us is the time on the GPU without the host's, the minimum beside the maximum" {
    FAKE_NCCL_HOST_US=20000 fake allreduce --backend nccl --ranks 2 --size 4K -n 6 -w 1 --placement out -q --json out.json
    [ "$(json out.json 'p[0]["time_us"]["min"] > 20000, p[0]["device_us"] < 15000')" = "(True, True)" ]
    [ "$(json out.json '0 < p[0]["device_us"] <= p[0]["device_max_us"]')" = True ]
    FAKE_NCCL_GPU_US=20000 fake allreduce --backend nccl --ranks 2 --size 4K -n 6 -w 1 --placement out -q --json out.json
    [ "$(json out.json 'p[0]["device_us"] > 20000')" = True ]
    keep out.json
}

@test "a graph is captured before the timed iterations, also without a warm-up" {
    FAKE_NCCL_HOST_US=100000 fake allreduce --backend nccl --ranks 2 --size 4K -n 6 -w 0 --graph --check once --placement out -q --json out.json
    [ "$(json out.json 'p[0]["time_us"]["max"] < 80000')" = True ]
}

@test "--block puts all calls on the GPU before it waits" {
    FAKE_NCCL_HOST_US=10000 FAKE_NCCL_GPU_US=10000 fake allreduce --backend nccl --ranks 2 --size 4K -n 6 -w 1 \
        --block 10 --placement out -q --json out.json
    [ "$(json out.json '10000 < p[0]["time_us"]["min"] < 18000')" = True ]
}

@test "one rank: no graph and no time on the GPU, because 'self' copies" {
    fake allreduce --backend nccl --ranks 1 --size 4K -n 3 --graph -q --json out.json
    [ "$(json out.json '{(q["algorithm_used"], q["graph"], q["device_us"], "graph" in q["id"]) for q in p}')" = \
        "{('self', False, None, False)}" ]
    fake allreduce --backend nccl --ranks 1 --size 4K -n 3 --graph --algorithm native -q --json out.json
    [ "$(json out.json '{(q["graph"], q["device_us"] > 0) for q in p}')" = "{(True, True)}" ]
}

@test "older libraries: without windows before 2.27, and with another result of the call in 2.27" {
    FAKE_NCCL_VERSION=22705 correct allreduce --ranks 2 --memory window --nccl-blocking off
    export DDPBENCH_NCCL_LIB=${DDPBENCH_NCCL_LIB%/*}/old/${DDPBENCH_NCCL_LIB##*/} FAKE_NCCL_VERSION=22304
    correct allreduce --ranks 2
    run fake allreduce --backend nccl --ranks 2 --size 4 --memory window
    [ "$status" = 69 ]
    error_names "NCCL 2.23.4" window
}

@test "a GPU without enough memory, and settings that NCCL rejects, end with the reason" {
    FAKE_GPU_MEMORY=8388608 run fake allreduce --backend nccl --ranks 2 --size 4M # NCCL needs memory, too
    [ "$status" = 71 ]
    error_names ncclMemAlloc
    FAKE_GPU_MEMORY=8388607 run fake allreduce --backend nccl --ranks 2 --size 4M --json out.json
    [ "$status" = 71 ]
    error_names "4 MiB" GPU
    [ ! -e out.json ] # no rank was started
    FAKE_GPUS=1 FAKE_GPU_MEMORY=24000000 run fake allreduce --share-gpu --ranks 3 --size 4M
    [ "$status" = 71 ]
    error_names "3 ranks"
    NCCL_ALGO=none run fake allreduce --backend nccl --ranks 2 --size 4
    [ "$status" = 69 ]
    says NCCL_ALGO
}

@test "barrier, groups, one rank, several rank counts" {
    fake barrier --backend nccl --ranks 3 -n 5 -q
    fake allreduce --backend nccl --ranks 4 --groups 2 --size 1K -n 3 -q
    fake allreduce --backend nccl --ranks 1,2,4 --size 0,1K -n 3 -q --json out.json
    [ "$(json out.json 'sorted({q["ranks"] for q in p})')" = "[1, 2, 4]" ]
    [ "$(json out.json 'all(q["busbw_GBps"] is None for q in p if q["ranks"] == 1)')" = True ]
}

@test "auto uses one GPU per rank if there are enough and the command supports GPUs" {
    FAKE_GPUS=2 fake allreduce --size 4 -n 3 -q --json out.json
    [ "$(json out.json 'd["world"]["backend"], d["world"]["ranks"]')" = "('nccl', 2)" ]
    FAKE_GPUS=1 fake allreduce --size 4 -n 3 -q --json out.json
    [ "$(json out.json 'd["world"]["backend"]')" = shm ]
    FAKE_GPUS=2 fake allreduce --size 4 --ranks 3 -n 3 -q --json out.json
    [ "$(json out.json 'd["world"]["backend"]')" = shm ]
}

@test "--overlap-compute: a computation on the GPU hides an all-reduce" {
    FAKE_GPUS=2 FAKE_NCCL_GPU_US=20000 fake allreduce --size 1K --overlap-compute --placement in -n 5 -w 1 -q --json out.json
    [ "$(json out.json 'd["world"]["backend"], p[0]["id"].split("/")[-1], p[0]["check"]["wrong"]')" = "('nccl', 'overlap', 0)" ]
    # The operation takes 20 ms, and so does the computation. One after the other would take 40 ms.
    [ "$(json out.json 'p[0]["overlap"]["pure_us"] >= 20000 and p[0]["overlap"]["total_us"] >= 20000')" = True ]
    [ "$(json out.json '0 <= p[0]["overlap"]["percent"] <= 100')" = True ]
    for more in "--ranks 1" "--ranks 2 --graph" "--ranks 3 --memory window"; do
        # shellcheck disable=SC2086 # words
        fake allreduce --backend nccl --size 1K --overlap-compute -n 3 -q --json out.json $more
        [ "$(json out.json '[q["overlap"]["total_us"] > 0 for q in p]')" = "[True, True]" ]
    done
}

@test "--overlap-compute: a rank that dies or hangs beside the computation ends the run" {
    FAKE_NCCL_AT=20 FAKE_NCCL_FAULT=dies run fake allreduce --backend nccl --ranks 3 --size 4 --overlap-compute -n 30 -q
    [ "$status" = 13 ]
    says "rank 1"
    FAKE_NCCL_AT=20 FAKE_NCCL_FAULT=op-hangs run fake allreduce --backend nccl --ranks 2 --size 4 --overlap-compute -n 30 -q -T 1
    [ "$status" = 13 ]
}

@test "ranks run on the processors near their GPUs" {
    mapfile -t cpus < <("$PYTHON" -c 'import os; print(*sorted(os.sched_getaffinity(0)), sep="\n")')
    [ "${#cpus[@]}" -ge 2 ] || skip "this process may use one processor only"
    FAKE_GPU_CPUS=${cpus[1]} "$ddpbench" allreduce --backend nccl --ranks 2 --size 4 -n 10000000 --max-time 2 -q >out 2>err 3>&- &
    for _ in $(seq 500); do
        near=$(cat /proc/"$(pgrep -P $! | tail -n 1)"/status 2>/dev/null | sed -n 's/^Cpus_allowed_list:\t//p')
        [ "$near" != "${cpus[1]}" ] || break
        sleep 0.01
    done
    kill $!
    wait $! || true
    [ "$near" = "${cpus[1]}" ]
}

@test "no group is made to measure its time if opening the communicator took long" {
    fake allreduce --backend nccl --ranks 2 --size 4 -n 1 -q --json out.json
    [ "$(json out.json 'd["world"]["comm_us"]["split"] > 0')" = True ]
    FAKE_NCCL_INIT_US=2100000 fake allreduce --backend nccl --ranks 2 --size 4 -n 1 -q --json out.json
    [ "$(json out.json 'd["world"]["comm_us"]["split"]')" = None ]
}

@test "the record: libraries, the device's time, the schema; ids say memory and graph" {
    fake allreduce --backend nccl --ranks 2 --size 4K --memory window --graph -n 8 -q --json out.json
    [ "$(json out.json 'd["tool"]["features"]["nccl"][:5], d["tool"]["features"]["cuda"]')" = "('NCCL ', 'CUDA fake')" ]
    [ "$(json out.json 'all(0 < q["device_us"] < 1e6 for q in p)')" = True ]
    [ "$(json out.json 'p[0]["id"]')" = allreduce/nccl/auto/f32/sum/r0/in/window/n2/4096/none/0/graph ]
    [ "$(json out.json 'p[0]["graph"], p[0]["memory"], p[0]["page_bytes"]')" = "(True, 'window', None)" ]
    keep out.json
}

@test "fewer GPUs than ranks are an error; --share-gpu shares them and shows no bandwidth" {
    FAKE_GPUS=1 run fake allreduce --backend nccl --ranks 4 --size 4
    [ "$status" = 69 ]
    error_names "--ranks 4" GPU 1
    FAKE_GPUS=1 run fake allreduce --share-gpu --ranks 4 --size 4,64K -n 5 -q --json out.json
    [ "$status" = 0 ]
    [ "$(json out.json 'd["note"]')" = correctness-only ]
    [ "$(json out.json '{q[k] for q in p for k in ("algbw_GBps", "busbw_GBps", "effective_GBps")}')" = "{None}" ]
    keep out.json
    [ "$(json out.json 'd["environment"]["NCCL_P2P_DISABLE"], d["environment"]["NCCL_ALGO"]')" = "('1', 'Ring')" ]
    NCCL_ALGO=Tree FAKE_GPUS=1 fake allreduce --share-gpu --ranks 2 --size 4 -n 3 -q --json out.json
    [ "$(json out.json 'd["environment"]["NCCL_ALGO"]')" = Tree ]
}

@test "GPU options on a backend without GPUs, and options that do not run on GPUs, are refused" {
    for more in --share-gpu --graph "--memory window"; do
        # shellcheck disable=SC2086 # words
        run fake allreduce --backend shm --ranks 2 --size 4 $more
        [ "$status" = 64 ]
    done
    run fake allreduce --share-gpu --launch threads --ranks 2 --size 4
    [ "$status" = 64 ]
}

@test "libraries that are missing, too old, of another major version, or something else" {
    FAKE_NCCL_VERSION=21805 run fake allreduce --backend nccl --ranks 2
    [ "$status" = 69 ]
    error_names 2.18.5
    FAKE_NCCL_VERSION=30000 run fake allreduce --backend nccl --ranks 2
    [ "$status" = 69 ]
    DDPBENCH_NCCL_LIB=$PWD/none.so run fake allreduce --backend nccl --ranks 2
    [ "$status" = 69 ]
    error_names NCCL "$PWD/none.so"
    DDPBENCH_NCCL_LIB=$PWD/none.so run fake doctor
    [ "$(grep -c "^WARN .*nccl: .*NCCL.* $PWD/none.so: " <<<"$output")" = 1 ]
    DDPBENCH_NCCL_LIB=libm.so.6 run fake allreduce --backend nccl --ranks 2
    [ "$status" = 69 ]
    error_names "'nccl"
    FAKE_GPUS=0 run fake allreduce --backend nccl --ranks 2
    [ "$status" = 69 ]
    error_names GPU 35
}

# Runs tests/gpu/bench_nccl.py, which `make bench-gpu NCCL_TESTS=...` starts.
beside() {
    run "${PYTHON:-python3}" "$BATS_TEST_DIRNAME/../gpu/bench_nccl.py" --ddpbench "$ddpbench" --nccl-tests "$PWD/perf" \
        --ranks 2 --most 16 --rounds 2 --out beside.json
}

@test "the comparison with nccl-tests: the median of each, by memory, size and placement" {
    cat >perf <<'END'
#!/bin/sh
echo "$@" >asked
n=$(cat runs 2>/dev/null || echo 0)
echo $((n + 1)) >runs
echo "#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw #wrong"
echo "           4             1     float     sum      -1    $((30 - n)).5    0.00    0.00      0    12.25    0.00    0.00    N/A"
echo "          16             4     float     sum      -1    13.5    0.00    0.00      0    14.25    0.00    0.00    N/A"
END
    chmod +x perf
    beside
    [ "$status" = 0 ]
    [ "$(cat asked)" = "-b 4 -e 16 -f 4 -g 2 -n 20 -w 5 -c 0 -R 2" ]
    [ "$("${PYTHON:-python3}" -c 'import json
rows = [r for r in json.load(open("beside.json"))["rows"] if (r["memory"], r["nccl_blocking"]) == ("private", "on")]
print([(r["size_bytes"], r["placement"], r["peer_us"]) for r in rows], all(r["us"] > 0 for r in rows))')" = \
        "[(4, 'in', 12.25), (4, 'out', 30.0), (16, 'in', 14.25), (16, 'out', 13.5)] True" ]
}

@test "the comparison with nccl-tests: nccl-tests that are missing, fail or print nothing give no result" {
    beside
    [ "$status" = 69 ]
    for body in "exit 3" "echo nothing"; do
        printf '#!/bin/sh\n%s\n' "$body" >perf
        chmod +x perf
        beside
        [ "$status" = 69 ]
    done
    FAKE_GPUS=0 beside
    [ "$status" = 69 ]
    says GPU
    [ ! -e beside.json ]
}

@test "with a real GPU its scripts are not skipped, and the script for machines without a GPU is" {
    FAKE_GPUS=1 DDPBENCH=$ddpbench run bats --filter "averages of three" "$BATS_TEST_DIRNAME/../gpu/share_gpu.bats"
    [ "$status" = 0 ]
    says "ok 1 averages of three ranks, whose thirds are rounded before the sum"
    [[ $output != *"# skip"* ]]
    DDPBENCH=$ddpbench run bats "$BATS_TEST_DIRNAME/no_gpu.bats"
    [ "$status" = 0 ]
    [ "$(grep -c "# skip there is a GPU" <<<"$output")" = "$(grep -c "^ok" <<<"$output")" ]
}

@test "the record and nccl-tests' list of devices tell the GPU of each rank" {
    fake allreduce --ranks 2 --backend nccl --size 4K -n 2 -w 1 -q --json out.json --format nccl-tests=nccl.txt
    [ "$(json out.json '[q["device"] for q in d["world"]["rank_devices"]]')" = "[0, 1]" ]
    for rank in 0 1; do
        bus=$(json out.json "d['world']['rank_devices'][$rank]['bus']")
        grep -q "^#  Rank  $rank Group  0 Pid .* device  $rank \[${bus%.*}\] " nccl.txt || { cat nccl.txt; false; }
    done
}
