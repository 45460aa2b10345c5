#!/usr/bin/env bats
# `allreduce --compress` and `--partial` on fake GPUs: every method is measured and verified as on the
# processor, and the host does not access the GPU's memory (a program that tries is killed).
# shellcheck disable=SC2154 # ddpbench: nccl.bash
bats_require_minimum_version 1.5.0

setup() {
    load nccl.bash
    nccl_setup
}

# measured OPTION...: the run is measured and verified, and its document is complete.
measured() {
    fake allreduce --backend nccl -n 3 -w 1 -c all -q --json out.json "$@" >table
    [ "$(json out.json 'd["status"], d["world"]["backend"], sum(q["check"]["wrong"] for q in p)')" = "('complete', 'nccl', 0)" ]
    [ "$(json out.json 'all(q["check"]["elements"] > 0 and q["time_us"]["median"] > 0 for q in p)')" = True ]
    [ "$(json out.json '{q["wire_bytes_source"] for q in p if q["compress"]["method"] in ("fp16", "bf16", "topk", "none")} <= {"model"}')" = True ]
    [ "$(json out.json '{q["wire_bytes_source"] for q in p if q["compress"]["method"] == "threshold"} <= {"counted"}')" = True ]
    [ "$(json out.json '{q["busbw_GBps"] for q in p}')" = "{None}" ]
}

@test "every method, sums and averages, with the facts about each in the document" {
    measured --ranks 2 --size 4K,48K -o sum,avg --compress fp16,bf16,topk:0.01,threshold:2,oktopk:0.02
    [ "$(json out.json 'len(p)')" = 20 ]
    [ "$(json out.json '{q["compress"]["method"]: q["algorithm_used"] for q in p}')" = \
        "{'fp16': 'native', 'bf16': 'native', 'topk': 'allgather', 'threshold': 'allgather', 'oktopk': 'oktopk'}" ]
    # 8 bytes per entry, and for a threshold the lengths of 8 blocks; the density is the mean of both ranks
    [ "$(json out.json 'all(q["wire_bytes_per_rank"] == 8 * round(q["compress"]["achieved_density"] * q["size_bytes"] / 4) for q in p if q["compress"]["method"] == "topk")')" = True ]
    [ "$(json out.json 'all(1 <= (q["wire_bytes_per_rank"] - 32) / (2 * q["compress"]["achieved_density"] * q["size_bytes"]) < 1.1 for q in p if q["compress"]["method"] == "threshold")')" = True ]
    [ "$(json out.json 'all(q["wire_bytes_per_rank"] == q["size_bytes"] / 2 for q in p if q["compress"]["method"] == "fp16")')" = True ]
    [ "$(json out.json '{round(q["compress"]["achieved_density"], 4) for q in p if q["compress"]["method"] == "topk" and q["size_bytes"] == 49152}')" = "{0.01}" ]
    [ "$(json out.json 'all(min(q["phase_us"][x] for x in ("encode", "exchange", "decode")) > 0 for q in p)')" = True ]
    [ "$(json out.json 'all(q["break_even"]["f32"]["predicted"] is not None for q in p if q["compress"]["method"] == "topk")')" = True ]
    valid out.json
}

@test "3 ranks, without feedback, in parts, in groups, in private memory" {
    measured --ranks 3 --size 4K -o sum,avg --compress fp16,topk:0.1,threshold:0.1,oktopk:0.1 --feedback off
    measured --ranks 2 --size 4K --compress fp16,bf16,threshold:0.1 --feedback on
    measured --ranks 3 --size 4K -o avg --compress none,bf16,topk:0.1 --partial 4
    measured --ranks 4 --groups 2 --size 4K --compress topk:0.1,oktopk:0.1 --memory private
    measured --ranks 1 --size 4K --compress fp16:0.5,topk:0.1
}

@test "break-even by bisection; shared GPUs have none, and no bandwidth" {
    measured --ranks 2 --size 16K --compress topk:0.01 --break-even
    [ "$(json out.json 'p[0]["break_even"]["f32"]["measured"] is not None')" = True ]
    FAKE_GPUS=1 fake allreduce --share-gpu --ranks 2 --size 16K --compress topk:0.01 -n 3 -q --json out.json
    [ "$(json out.json 'd["note"], p[0]["effective_GBps"], p[0]["break_even"]')" = "('correctness-only', None, None)" ]
    valid out.json
}

@test "auto uses the GPUs; algorithms of the processor are refused, or left out of 'all'" {
    FAKE_GPUS=2 fake allreduce --size 4K --compress fp16 -n 3 -q --json out.json
    [ "$(json out.json 'd["world"]["backend"]')" = nccl ]
    run fake allreduce --backend nccl --ranks 2 --size 4K --compress topk:0.1 --algorithm rd -n 3 -q
    [ "$status" = 69 ]
    error_names "'rd'"
    measured --ranks 2 --size 4K --compress topk:0.1 --algorithm all
    [ "$(json out.json '[q["algorithm"] for q in p]')" = "['allgather']" ]
    run fake allreduce --backend nccl --ranks 2 --size 4K --compress fp16 --graph
    [ "$status" = 64 ]
}

@test "wrong data is found: exit code 11, and no figures" {
    FAKE_NCCL_FAULT=wrong FAKE_NCCL_AT=4 run fake allreduce --backend nccl --ranks 2 --size 4K --compress topk:0.1 -n 5 -c all -q
    [ "$status" = 11 ]
    error_names rank element
}
