#!/usr/bin/env bats
# `ddpbench allreduce --compress` and `--partial`: verified points, counted bytes, what is said of
# them, what is refused. Kernels gone wrong: tests/unit/test_compressed_point.c.
# shellcheck disable=SC2154 # stderr is set by run --separate-stderr
bats_require_minimum_version 1.5.0

setup() {
    root=$(cd "$BATS_TEST_DIRNAME/../.." && pwd)
    ddpbench=${DDPBENCH:-$root/build/ddpbench}
    python=${PYTHON:-/usr/bin/python3}
    few=(-n 6 -w 1)
    all=none,fp16,bf16,topk:0.01,threshold:2.5,oktopk:0.01
    cd "$BATS_TEST_TMPDIR" || return
}

# ok ARGUMENT...: the all-reduce succeeds; stdout in $output, stderr in $stderr.
ok() {
    run --separate-stderr timeout 60 "$ddpbench" allreduce "$@"
    if [ "$status" != 0 ]; then
        echo "ddpbench allreduce $*: exit $status; stdout: $output; stderr: $stderr"
        return 1
    fi
}

# refused CODE TEXT ARGUMENT...: exit CODE, and stderr says TEXT.
refused() {
    local code=$1 text=$2
    shift 2
    run --separate-stderr timeout 60 "$ddpbench" allreduce --ranks 2 --size 4 "$@"
    [ "$status" = "$code" ] && [[ $stderr == *"$text"* ]] || {
        echo "exit $status: $stderr"
        return 1
    }
}

# json FILE EXPRESSION: prints a Python expression over the document d, its points p, by method m.
json() {
    "$python" -c 'import json, sys
d = json.load(open(sys.argv[1]))
p = d["points"]
m = {q["id"].split("/")[10]: q for q in p}
print(eval(sys.argv[2]))' "$1" "$2"
}

@test "every method on 1 to 4 ranks: verified, valid, no bus bandwidth" {
    for ranks in 1 2 3 4; do
        ok --ranks $ranks "${few[@]}" --size 0,4,100004 --compress "$all" -o sum,avg --json r.json
        "$python" "$root/ci/validate_json.py" r.json
        [ "$(json r.json 'len(p)')" = 36 ]
        [ "$(json r.json 'sum(q["check"]["wrong"] for q in p)')" = 0 ]
        [ "$(json r.json 'all(q["busbw_GBps"] is None for q in p if q["compress"]["method"] != "none")')" = True ]
        [ "$(json r.json '{q["placement"] for q in p}')" = "{'in'}" ]
        [ "$(json r.json 'm["fp16"]["overflow_count"], m["topk:0.01"]["overflow_count"]')" = "(0, None)" ]
    done
}

@test "8 ranks, every algorithm, verified in every iteration" {
    ok --ranks 8 -n 3 -w 0 --size 40004 --compress fp16,topk:0.01,threshold:2.5,oktopk:0.01 \
        --algorithm all --check all --gradient heavy-tail --json r.json
    "$python" "$root/ci/validate_json.py" r.json
    [ "$(json r.json 'len({q["algorithm_used"] for q in p if q["compress"]["method"] == "topk"}) >= 3')" = True ]
    [ "$(json r.json 'sum(q["check"]["wrong"] for q in p)')" = 0 ]
}

@test "counted bytes: the all-gather sends 8k(P-1), oktopk less than 24k(P-1)/P and notes" {
    for ranks in 2 4 8; do
        ok --ranks $ranks "${few[@]}" --size 1M --compress topk:0.01 --algorithm allgather --json r.json
        [ "$(json r.json "p[0]['wire_bytes_per_rank'] == 8 * 2622 * ($ranks - 1)")" = True ]
        [ "$(json r.json "p[0]['wire_bytes_source'], p[0]['compress']['achieved_density'] * 2**18")" = \
            "('counted', 2622.0)" ]
        ok --ranks $ranks "${few[@]}" --size 1M --compress oktopk:0.01 --json r.json
        [ "$(json r.json "p[0]['wire_bytes_per_rank'] <= 24 * 2622 * ($ranks - 1) / $ranks + 600 * $ranks")" = True ]
    done
}

@test "error feedback: by default for the sparse methods, on or off for all" {
    ok --ranks 2 "${few[@]}" --size 4K --compress fp16,topk:0.1 --json r.json
    [ "$(json r.json '[q["compress"]["feedback"] for q in p]')" = "['off', 'on']" ]
    ok --ranks 2 "${few[@]}" --size 4K --compress fp16,topk:0.1 --feedback on --check all --json r.json
    [ "$(json r.json '[q["compress"]["feedback"] for q in p]')" = "['on', 'on']" ]
    ok --ranks 2 "${few[@]}" --size 4K --compress fp16,topk:0.1 --feedback off --check all --json r.json
    [ "$(json r.json '[q["compress"]["feedback"] for q in p]')" = "['off', 'off']" ]
}

@test "a threshold's density is what the distribution says" {
    # P(|x| >= 2.5) of a normal: 0.01242; without feedback nothing accumulates
    ok --ranks 2 "${few[@]}" --size 4M --compress threshold:2.5 --feedback off --json r.json
    [ "$(json r.json 'abs(p[0]["compress"]["achieved_density"] - 0.01242) < 0.0003')" = True ]
    [ "$(json r.json 'p[0]["compress"]["threshold"], p[0]["compress"]["density"]')" = "(2.5, None)" ]
}

@test "partial: one of K chunks, a K-th of the bytes, dense and sparse" {
    ok --ranks 2 -n 8 --size 64K --partial 4 --compress none,topk:0.01 --check all --json r.json
    "$python" "$root/ci/validate_json.py" r.json
    [ "$(json r.json '[(q["partial"], q["busbw_GBps"], q["break_even"]) for q in p]')" = \
        "[(4, None, None), (4, None, None)]" ]
    [ "$(json r.json 'm["none"]["compress"]["achieved_density"], m["none"]["wire_bytes_per_rank"]')" = \
        "(0.25, 16384)" ]
    # fewer elements than chunks: no iteration exchanges nothing
    ok --ranks 2 -n 3 --size 0,4,8 --partial 16 --json r.json
    "$python" "$root/ci/validate_json.py" r.json
    [ "$(json r.json '[(q["wire_bytes_per_rank"], q["compress"]["achieved_density"]) for q in p[1:]]')" = "[(4, 1), (4, 0.5)]" ]
}

@test "one sentence says that it does not pay over shared memory, and where it would" {
    # neighbours may disturb a run; three in a row would be another machine
    for _ in 1 2 3; do
        ok --ranks 2 -n 11 --size 64K,4M --compress topk:0.01 --json r.json
        [[ ! $output =~ "# topk:0.01, 4 MiB on 2 ranks: "[0-9.]+"x slower than dense f32 " ]] || break
    done
    [[ $output =~ "# topk:0.01, 4 MiB on 2 ranks: "[0-9.]+"x slower than dense f32 " ]]
    [[ $output =~ ": it does not pay here; it would pay on links below about "[0-9.]+" "[GM]"B/s a rank" ]]
    [ "$(grep -c '^# topk:0.01' <<<"$output")" = 1 ]
    [ "$(json r.json 'p[1]["dense_us"]["f32"] < p[1]["time_us"]["median"]')" = True ]
    [ "$(json r.json 'p[1]["phase_us"]["encode"] > 0')" = True ]
}

@test "break-even: predicted and estimated always, measured on request" {
    ok --ranks 2 -n 3 --size 256K --compress topk:0.01,fp16 --json r.json
    [ "$(json r.json 'm["fp16"]["break_even"], m["topk:0.01"]["break_even"]["f32"]["measured"]')" = "(None, None)" ]
    # bitmaps: 2/P - 1/32 against f32, 1/P - 1/32 against f16 (explain break-even)
    [ "$(json r.json 'abs(m["topk:0.01"]["break_even"]["f32"]["predicted"] - 31/32) < 1e-3')" = True ]
    [ "$(json r.json 'abs(m["topk:0.01"]["break_even"]["f16"]["predicted"] - 15/32) < 1e-3')" = True ]
    [ "$(json r.json '0 <= m["topk:0.01"]["break_even"]["f32"]["estimated"] <= 1')" = True ]
    ok --ranks 2 -n 3 --size 256K --compress topk:0.01 --break-even --json r.json
    "$python" "$root/ci/validate_json.py" r.json
    [ "$(json r.json 'all(0 <= p[0]["break_even"][b]["measured"] <= 1 for b in ("f32", "f16"))')" = True ]
}

@test "groups, private memory, samples" {
    ok --ranks 4 --groups 2 "${few[@]}" --size 64K --compress fp16,topk:0.01,oktopk:0.01 --check all
    ok --ranks 2 "${few[@]}" --size 64K --compress fp16,topk:0.01 --memory private --samples --json r.json
    "$python" "$root/ci/validate_json.py" r.json
    [ "$(json r.json 'p[0]["memory"], len(p[0]["samples_us"])')" = "('private', 6)" ]
}

@test "recorded gradients are replayed" {
    "$python" - <<'PY'
import numpy
x = numpy.zeros((4, 1000), dtype="<f4")
x[:, 7::100] = 3.5
numpy.save("g.npy", x)
PY
    ok --ranks 2 "${few[@]}" --size 4000 --compress threshold:1 --gradient g.npy --feedback off --json r.json
    [ "$(json r.json 'p[0]["compress"]["achieved_density"]')" = 0.01 ]
    ok --ranks 3 "${few[@]}" --size 9000 --compress topk:0.01 --gradient g.npy,g.npy --check all
    refused 66 "no.npy" --compress fp16 --gradient no.npy
    head -c 100 g.npy >cut.npy
    refused 65 "cut.npy" --compress fp16 --gradient cut.npy
}

@test "what is refused, with its reason" {
    refused 64 "did you mean 'topk'" --compress tpok:0.1
    refused 64 "'topk:D'" --compress topk
    refused 64 "above 0 and at most 1" --compress topk:2
    refused 64 "given twice" --compress fp16,fp16
    refused 64 "f32 gradients, not 'f16'" --compress topk:0.1 -d f16
    refused 64 "sum and avg, not 'max'" --compress topk:0.1 -o max
    refused 64 "in place, as training does" --compress fp16 --placement out
    refused 64 "in place, as training does" --partial 2 --placement out
    refused 64 "legal: auto, all, direct, allgather, rd" --compress topk:0.1 --algorithm ring
    refused 64 "means nothing without --compress" --feedback off
    refused 64 "means nothing without --compress" --break-even
    refused 64 "means nothing to 'none'" --compress none --feedback on
    refused 64 "--feedback means nothing where nothing is compressed" --partial 2 --feedback on
    refused 64 "--break-even is not for --partial" --compress topk:0.1 --partial 2 --break-even
    refused 64 "--break-even means nothing without topk" --compress fp16,threshold:1 --break-even
    refused 64 "did you mean 'heavy-tail'" --compress fp16 --gradient heavytail
    refused 64 "1..1024" --partial 0
    for command in reduce-scatter broadcast barrier; do
        run "$ddpbench" $command --compress fp16
        [ "$status" = 64 ]
    done
}

@test "dry run: methods are in the ids, their memory in the sum" {
    ok --ranks 2 --size 64M --compress fp16,topk:0.01 --partial 4 --dry-run
    [[ $output == *"/67108864/fp16/4"* && $output == *"/67108864/topk:0.01/4"* ]]
    [[ $output == *" to compress = "* ]]
}
