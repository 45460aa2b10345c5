#!/usr/bin/env bats
# `ddpbench allreduce --compress` and `--partial`: verified points, counted bytes, messages and refused
# options. tests/unit/test_compressed_point.c tests wrong kernels.
# shellcheck disable=SC2154 # stderr is set by run --separate-stderr
bats_require_minimum_version 1.5.0

setup() {
    load ../helpers.bash
    bench_setup
    few=(-n 6 -w 1)
    small=(allreduce --ranks 2 --size 4)
    all=none,fp16,bf16,q8,q4,fp8-e4m3:32,fp8-e5m2,sign,powersgd:1,powersgd:4:2,topk:0.01,threshold:2.5,oktopk:0.01
}

teardown_file() {
    load ../helpers.bash
    validate_kept
}

@test "every method on 1 to 4 ranks: verified, valid, no bus bandwidth" {
    for ranks in 1 2 3 4; do
        ok allreduce --ranks $ranks -n 3 -w 0 --size 0,4,100004 --compress "$all" -o sum,avg --json r.json
        keep r.json
        [ "$(json r.json 'len(p)')" = 78 ]
        [ "$(json r.json 'sum(q["check"]["wrong"] for q in p)')" = 0 ]
        [ "$(json r.json 'all(q["busbw_GBps"] is None for q in p if q["compress"]["method"] != "none")')" = True ]
        [ "$(json r.json '{q["placement"] for q in p}')" = "{'in'}" ]
        [ "$(json r.json 'm("fp16")["overflow_count"], m("topk:0.01")["overflow_count"]')" = "(0, None)" ]
    done
}

@test "8 ranks, every algorithm, verified in every iteration" {
    ok allreduce --ranks 8 -n 3 -w 0 --size 40004 --compress fp16,q8:64,q4,sign:256,powersgd:2,topk:0.01,threshold:2.5,oktopk:0.01 \
        --algorithm all --check all --gradient heavy-tail --json r.json
    keep r.json
    [ "$(json r.json 'len({q["algorithm_used"] for q in p if q["compress"]["method"] == "topk"}) >= 3')" = True ]
    [ "$(json r.json 'sum(q["check"]["wrong"] for q in p)')" = 0 ]
    # block and rank distinguish the points of a method
    [ "$(json r.json '[(q["block"], q["rank"]) for q in (m(x)["compress"] for x in ("fp16", "q8:64", "q4", "sign:256", "powersgd:2", "topk:0.01"))]')" = \
        "[(None, None), (64, None), (128, None), (256, None), (None, 2), (None, None)]" ]
}

@test "stochastic rounding: verified in every iteration, and the same seed gives the same training" {
    ok allreduce --ranks 3 -n 4 -w 1 --size 40004 --compress q8+sr,q4:64+sr,fp8-e4m3+sr,fp8-e5m2:32+sr \
        --check all --gradient heavy-tail --json r.json
    valid r.json
    [ "$(json r.json 'sum(q["check"]["wrong"] for q in p), {q["check"]["operations"] >= 5 for q in p}')" = "(0, {True})" ]
    [ "$(json r.json '[(q["method"], q["block"], q["stochastic"]) for q in (m(x)["compress"] for x in ("q8+sr", "q4:64+sr"))]')" = "[('q8', 128, True), ('q4', 64, True)]" ]
    for seed in 1 1 2; do
        ok train --ranks 2 --dataset synthetic --images 128 --epochs 1 --seed $seed --sync q4+sr -q --json t.json
        json t.json 't[0]["epochs"][0]["train_loss"]' >>losses
    done
    [ "$(uniq losses | wc -l)" = 2 ]
}

@test "counted bytes: quantised blocks send 2(P-1) chunks" {
    for ranks in 2 3 4; do
        ok allreduce --ranks $ranks "${few[@]}" --size 1M --compress q8,q4:64,fp8-e4m3:32 --feedback on --json r.json
        # 262,144 elements: blocks of 128, 64 and 32 elements have 132, 36 and 36 bytes.
        [ "$(json r.json "[q['wire_bytes_per_rank'] - 2 * ($ranks - 1) * -(-262144 // b // $ranks) * n
            for q, b, n in zip(sorted(p, key=lambda q: ['q8', 'q4', 'fp8-e4m3'].index(q['compress']['method'].split(':')[0])),
                               (128, 64, 32), (132, 36, 36))]")" = "[0, 0, 0]" ]
    done
    refused 64 block -- allreduce --ranks 2 --size 4 --compress q8:100
    refused 64 fp16 +sr -- allreduce --ranks 2 --size 4 --compress fp16+sr
    refused 64 sign +sr -- allreduce --ranks 2 --size 4 --compress sign+sr
    refused 64 +ef -- allreduce --ranks 2 --size 4 --compress q8:64+ef
    refused 64 dense+sr -- train --ranks 2 --dataset synthetic --sync dense+sr
    refused 64 block -- allreduce --ranks 2 --size 4 --compress sign:64
    refused 64 ring -- allreduce --ranks 2 --size 4 --compress q8 --algorithm ring
    hint_names two-phase
}

@test "counted bytes: signs send every bit to every other rank" {
    for ranks in 2 3 4; do
        ok allreduce --ranks $ranks "${few[@]}" --size 400004 --compress sign,sign:2048 --json r.json
        # 100,001 elements: 782 blocks of 128 have 20 bytes each, and 49 blocks of 2,048 have 260.
        [ "$(json r.json "sorted(q['wire_bytes_per_rank'] / ($ranks - 1) for q in p)")" = "[12740.0, 15640.0]" ]
        [ "$(json r.json '{(q["algorithm_used"], q["feedback"] if "feedback" in q else q["compress"]["feedback"]) for q in p}')" = "{('allgather', 'on')}" ]
    done
    refused 64 two-phase -- allreduce --ranks 2 --size 4 --compress sign --algorithm two-phase
    hint_names allgather
}

@test "counted bytes: powersgd:R sends two factors, and whole gradients at first" {
    for ranks in 2 4; do
        # 10,000 elements are a matrix of 100 x 100. The factors of rank 60 are larger than the matrix.
        ok allreduce --ranks $ranks -n 4 -w 0 --size 40000 --compress powersgd:2,powersgd:2:100,powersgd:60 --json r.json
        [ "$(json r.json "sorted(round(q['wire_bytes_per_rank'] * $ranks / 2 / ($ranks - 1) / 4) for q in p)")" = "[400, 10000, 10000]" ]
        [ "$(json r.json 'sorted(q["compress"]["achieved_density"] for q in p)')" = "[0.04, 1, 1]" ]
    done
}

@test "counted bytes: the all-gather sends 8k(P-1), oktopk less than its bound" {
    for ranks in 2 4 8; do
        ok allreduce --ranks $ranks "${few[@]}" --size 1M --compress topk:0.01 --algorithm allgather --json r.json
        [ "$(json r.json "p[0]['wire_bytes_per_rank'] == 8 * 2622 * ($ranks - 1)")" = True ]
        [ "$(json r.json "p[0]['wire_bytes_source'], p[0]['compress']['achieved_density'] * 2**18")" = \
            "('counted', 2622.0)" ]
        ok allreduce --ranks $ranks "${few[@]}" --size 1M --compress oktopk:0.01 --json r.json
        [ "$(json r.json "p[0]['wire_bytes_per_rank'] <= 24 * 2622 * ($ranks - 1) / $ranks + 600 * $ranks")" = True ]
    done
}

@test "error feedback: by default for the sparse methods, on or off for all" {
    ok allreduce --ranks 2 "${few[@]}" --size 4K --compress fp16,topk:0.1 --json r.json
    [ "$(json r.json '[q["compress"]["feedback"] for q in p]')" = "['off', 'on']" ]
    ok allreduce --ranks 2 "${few[@]}" --size 4K --compress fp16,topk:0.1 --feedback on --check all --json r.json
    [ "$(json r.json '[q["compress"]["feedback"] for q in p]')" = "['on', 'on']" ]
    ok allreduce --ranks 2 "${few[@]}" --size 4K --compress fp16,topk:0.1 --feedback off --check all --json r.json
    [ "$(json r.json '[q["compress"]["feedback"] for q in p]')" = "['off', 'off']" ]
}

@test "a threshold's density is that of the distribution" {
    # P(|x| >= 2.5) of a normal distribution is 0.01242; without feedback nothing accumulates
    ok allreduce --ranks 2 "${few[@]}" --size 4M --compress threshold:2.5 --feedback off --json r.json
    [ "$(json r.json 'abs(p[0]["compress"]["achieved_density"] - 0.01242) < 0.0003')" = True ]
    [ "$(json r.json 'p[0]["compress"]["threshold"], p[0]["compress"]["density"]')" = "(2.5, None)" ]
}

@test "partial sends one of K chunks, a K-th of the bytes, dense and sparse" {
    ok allreduce --ranks 2 -n 8 --size 64K --partial 4 --compress none,topk:0.01 --check all --json r.json
    keep r.json
    [ "$(json r.json '[(q["partial"], q["busbw_GBps"], q["break_even"]) for q in p]')" = \
        "[(4, None, None), (4, None, None)]" ]
    [ "$(json r.json 'm("none")["compress"]["achieved_density"], m("none")["wire_bytes_per_rank"]')" = \
        "(0.25, 16384)" ]
    # with fewer elements than chunks every iteration still exchanges data
    ok allreduce --ranks 2 -n 3 --size 0,4,8 --partial 16 --json r.json
    keep r.json
    [ "$(json r.json '[(q["wire_bytes_per_rank"], q["compress"]["achieved_density"]) for q in p[1:]]')" = "[(4, 1), (4, 0.5)]" ]
}

@test "one line says that it is slower than dense over shared memory, and below which rate it would pay" {
    ! is_sanitized || skip "times under a sanitizer say nothing"
    # other processes may disturb a run, so there are three tries
    for _ in 1 2 3; do
        ok allreduce --ranks 2 -n 11 --size 64K,4M --compress topk:0.01 --json r.json
        [ "$(json r.json 'p[1]["dense_us"]["f32"] < p[1]["time_us"]["median"]')" != True ] || break
    done
    holds r.json 'p[1]["dense_us"]["f32"] < p[1]["time_us"]["median"]'
    [ "$(grep -c '^# topk:0.01' <<<"$output")" = 1 ]
    grep -Eq '^# topk:0.01.* 4 MiB .*2 ranks.* dense f32 .*[0-9.]+ [GM]B/s' <<<"$output"
    [ "$(json r.json 'p[1]["phase_us"]["encode"] > 0')" = True ]
}

@test "the document, CSV and Markdown have the link speed and the sentence of the table" {
    ok allreduce --ranks 2 -n 7 --size 0,64K,4M --compress none,topk:0.01 --json r.json --format csv=r.csv,markdown=r.md,table
    keep r.json
    printf '%s\n' "$output" >table
    "$PYTHON" - <<'END'
import csv, json
points = json.load(open("r.json"))["points"]
table, markdown = open("table").read(), open("r.md").read()
for p, row in zip(points, csv.DictReader(open("r.csv", newline="")), strict=True):
    assert row["verdict"] == (p["verdict"] or ""), row["verdict"]
    assert row["pays_below_GBps"] == "" if p["pays_below_GBps"] is None else float(row["pays_below_GBps"]) == p["pays_below_GBps"]
dense, sparse = ([p for p in points if (p["compress"]["method"] == "none") == want] for want in (True, False))
assert len(dense) == len(sparse) == 3
assert all(p["verdict"] is None and p["pays_below_GBps"] is None for p in dense + sparse[:1])
for p in sparse[1:]:
    dense_us, median_us = p["dense_us"]["f32"], p["time_us"]["median"]
    if median_us > dense_us:
        saved = p["size_bytes"] - p["wire_bytes_per_rank"]
        assert abs(p["pays_below_GBps"] / (saved / (median_us - dense_us) / 1e3) - 1) < 1e-6
assert f'# {sparse[2]["verdict"]}\n' in table and f'- {sparse[2]["verdict"]}\n' in markdown
assert sparse[1]["verdict"] not in table + markdown  # a summary has the largest size only
assert markdown.splitlines().count("|:--|--:|:--|--:|:--|:--|--:|--:|--:|--:|--:|:--|") == 1
END
}

@test "break-even: predicted and estimated always, measured on request" {
    ok allreduce --ranks 2 -n 3 --size 256K --compress topk:0.01,fp16 --json r.json
    [ "$(json r.json 'm("fp16")["break_even"], m("topk:0.01")["break_even"]["f32"]["measured"]')" = "(None, None)" ]
    # with bitmaps it is 2/P - 1/32 against f32 and 1/P - 1/32 against f16 (explain break-even)
    [ "$(json r.json 'abs(m("topk:0.01")["break_even"]["f32"]["predicted"] - 31/32) < 1e-3')" = True ]
    [ "$(json r.json 'abs(m("topk:0.01")["break_even"]["f16"]["predicted"] - 15/32) < 1e-3')" = True ]
    [ "$(json r.json '0 <= m("topk:0.01")["break_even"]["f32"]["estimated"] <= 1')" = True ]
    ok allreduce --ranks 2 -n 3 --size 256K --compress topk:0.01 --break-even --json r.json
    keep r.json
    [ "$(json r.json 'all(0 <= p[0]["break_even"][b]["measured"] <= 1 for b in ("f32", "f16"))')" = True ]
}

@test "groups, private memory, samples" {
    ok allreduce --ranks 4 --groups 2 "${few[@]}" --size 64K --compress fp16,topk:0.01,oktopk:0.01 --check all
    ok allreduce --ranks 2 "${few[@]}" --size 64K --compress fp16,topk:0.01 --memory private --samples --json r.json
    keep r.json
    [ "$(json r.json 'p[0]["memory"], len(p[0]["samples_us"])')" = "('private', 6)" ]
}

@test "recorded gradients are replayed" {
    "$PYTHON" - <<'PY'
import numpy
x = numpy.zeros((4, 1000), dtype="<f4")
x[:, 7::100] = 3.5
numpy.save("g.npy", x)
PY
    ok allreduce --ranks 2 "${few[@]}" --size 4000 --compress threshold:1 --gradient g.npy --feedback off --json r.json
    [ "$(json r.json 'p[0]["compress"]["achieved_density"]')" = 0.01 ]
    ok allreduce --ranks 3 "${few[@]}" --size 9000 --compress topk:0.01 --gradient g.npy,g.npy --check all
    failed 66 "'no.npy'" -- "${small[@]}" --compress fp16 --gradient no.npy
    head -c 100 g.npy >cut.npy
    failed 65 "'cut.npy'" -- "${small[@]}" --compress fp16 --gradient cut.npy
}

@test "options that are refused, with the reason" {
    refused 64 "'tpok'" -- "${small[@]}" --compress tpok:0.1
    hint_names "'topk'"
    refused 64 "'topk" -- "${small[@]}" --compress topk
    refused 64 2 -- "${small[@]}" --compress topk:2
    refused 64 "'fp16'" -- "${small[@]}" --compress fp16,fp16
    refused 64 --compress f32 "'f16'" -- "${small[@]}" --compress topk:0.1 -d f16
    refused 64 --compress sum avg "'max'" -- "${small[@]}" --compress topk:0.1 -o max
    refused 64 --compress --placement -- "${small[@]}" --compress fp16 --placement out
    refused 64 --partial --placement -- "${small[@]}" --partial 2 --placement out
    refused 64 "'ring'" -- "${small[@]}" --compress topk:0.1 --algorithm ring
    message_names "auto, all, direct, allgather, rd"
    refused 64 --feedback --compress -- "${small[@]}" --feedback off
    refused 64 --break-even --compress -- "${small[@]}" --break-even
    refused 64 --feedback '--compress none' -- "${small[@]}" --compress none --feedback on
    refused 64 --feedback -- "${small[@]}" --partial 2 --feedback on
    refused 64 --break-even --partial -- "${small[@]}" --compress topk:0.1 --partial 2 --break-even
    refused 64 --break-even topk -- "${small[@]}" --compress fp16,threshold:1 --break-even
    refused 64 --gradient "'heavytail'" -- "${small[@]}" --compress fp16 --gradient heavytail
    hint_names "'heavy-tail'"
    refused 64 --partial "'0'" 1024 -- "${small[@]}" --partial 0
    for command in reduce-scatter broadcast barrier; do
        run "$ddpbench" $command --compress fp16
        [ "$status" = 64 ]
    done
}

@test "dry run: methods are in the ids, their memory in the sum" {
    ok allreduce --ranks 2 --size 64M --compress fp16,topk:0.01 --partial 4 --dry-run
    [[ $output == *"/67108864/fp16/4"* && $output == *"/67108864/topk:0.01/4"* ]]
    total=$(sed -n 's/^# .*2 ranks.* 64 MiB.* = \([0-9]*\)[0-9.]* MiB.*/\1/p' <<<"$output")
    [ "$total" -gt 256 ] # the buffers alone take 256
}
