#!/usr/bin/env bats
# gate and compare judge training runs: their step times as cells, their accuracies over seeds.
# shellcheck disable=SC2034,SC2154 # runs, pairs: helpers.bash; stderr: bats
bats_require_minimum_version 1.5.0

setup() {
    load ../helpers.bash
    gate_setup
    runs=1
    pairs=8
    five=1=0.90,2=0.91,3=0.92,4=0.90,5=0.91
    near=1=0.901,2=0.909,3=0.921,4=0.899,5=0.911
    lost=1=0.86,2=0.85,3=0.87,4=0.84,5=0.86
    wide=1=0.88,2=0.93,3=0.91,4=0.92,5=0.90
}

# The document of a verdict, which a test leaves behind, is valid.
teardown() {
    [ ! -e gate.json ] || keep gate.json
}

teardown_file() {
    load ../helpers.bash
    validate_kept
}

@test "gate: the step time of a training run is a cell, with and without points in the document" {
    for points in "" --no-points; do
        gate --base "$fake --seeds $five $points" --new "$fake --seeds $near $points"
        [ "$status" = 0 ]
        [[ "$output" == *" 0.01 "* ]]
        [ "$(verdict 'sorted(c["id"] for c in v["cells"] if c["id"] != "a")[0]')" = "m dense ranks 2 lr 0.05 seed 1 epochs 7 step" ]
        [ "$(verdict 'sum(c["id"].endswith(" step") and abs(c["base_us"] - 1000) < 30 for c in v["cells"])')" = 5 ]
        [ "$(verdict 'v["unjudged"]')" = "[]" ]
        keep gate.json
        gate --base "$fake --seeds $five $points" --new "$fake --seeds $near --step 1200 $points"
        [ "$status" = 10 ]
        [ "$(verdict 'sum(c["state"] == "slower" and c["id"].endswith(" step") for c in v["cells"])')" = 5 ]
        [ "$(verdict '[a["state"] for a in v["accuracy"]]')" = "['not-worse']" ]
    done
}

@test "gate: an accuracy that is worse by more than the margin is a FAIL, in every output" {
    gate --base "$fake --seeds $five" --new "$fake --seeds $lost" --format table,junit=j.xml,github=g.txt,markdown=m.md,action-smaller=s.json
    [ "$status" = 10 ]
    [[ "$output" == *"FAIL: "*" -0.0520"*"m dense ranks 2 lr 0.05 epochs 7"* ]]
    # differences -0.04 -0.06 -0.05 -0.06 -0.05: deviation 0.00836660, t(4) = 2.131847
    [ "$(verdict '[(a["name"], a["seeds"], round(a["difference"], 6), round(a["lower"], 6), round(a["upper"], 6), a["margin"],
        a["seeds_needed"], a["state"]) for a in v["accuracy"]]')" = \
        "[('m dense ranks 2 lr 0.05 epochs 7', 5, -0.052, -0.059977, -0.044023, 0.01, None, 'worse')]" ]
    keep gate.json
    grep -q '^::error .*m dense ranks 2 lr 0.05 epochs 7 -0.0520' g.txt
    grep -Eq '^\| `m dense ranks 2 lr 0.05 epochs 7` \| 5 \| 0.9080 \| 0.8560 \| -0.0520 .*\*\*worse\*\* \|$' m.md
    "$PYTHON" - <<'END'
import json
import xml.etree.ElementTree as ET
failed = [c.get("name") for c in ET.parse("j.xml").getroot().iter("testcase") if c.find("failure") is not None]
assert failed == ["m dense ranks 2 lr 0.05 epochs 7"], failed
loss = [e["value"] for e in json.load(open("s.json")) if e["name"].endswith("accuracy loss")]
assert abs(loss[0] - 0.052) < 1e-9 and len(loss) == 1, loss
END
    gate --base "$fake --seeds $five" --new "$fake --seeds $lost" --accuracy-margin 0.1
    [ "$status" = 0 ]
    for bad in 0 1.5 x; do
        gate --base "$fake" --new "$fake --points a=10" --accuracy-margin "$bad"
        [ "$status" = 64 ]
        [[ "$stderr" == *"accuracy-margin"* ]]
    done
}

@test "gate: too few seeds are INCONCLUSIVE, say how many are needed, and do not run more pairs" {
    gate --base "$fake --seeds $five" --new "$fake --seeds $wide" --format table,junit=j.xml,github=g.txt
    [ "$status" = 12 ]
    needed=$(verdict 'v["accuracy"][0]["seeds_needed"]')
    # differences -0.02 0.02 -0.01 0.02 -0.01: deviation 0.0187, t(n-1) * 0.0187 / sqrt(n) < 0.01 from n = 12 on
    [ "$needed" = 12 ]
    [[ "$output" == *"5 seeds"*" 12 "*"m dense"* ]]
    keep gate.json
    grep -q '^::warning .*accuracies uncertain' g.txt
    grep -q 'skipped message="5 seeds.* 12 ' j.xml
    rm count
    run --separate-stderr "$ddpbench" gate -q --runs 1 --json gate.json --base "$fake --seeds 1=0.9" --new "$fake --seeds 1=0.9"
    echo "$status: $output $stderr"
    [ "$status" = 12 ]
    [[ "$output" == *"accuracy: 1 seed, at least 2 are needed (--seeds 1,2)"* ]]
    [ "$(wc -c <count)" = 16 ] # the first look, after 8 pairs
    rm count
    run --separate-stderr "$ddpbench" gate -q --runs 1 --json gate.json --base "$fake --seeds $five" --new "$fake --seeds $wide"
    [ "$status" = 12 ]
    [ "$(wc -c <count)" = 16 ]
}

@test "gate: seeds are the samples, however many pairs repeat them" {
    pairs=20 gate --base "$fake --seeds 1=0.90,2=0.91" --new "$fake --seeds 1=0.89,2=0.93"
    [ "$status" = 12 ]
    [ "$(verdict 'v["accuracy"][0]["seeds"], v["accuracy"][0]["state"]')" = "(2, 'uncertain')" ]
}

@test "gate and compare: a run of new that diverges is worse; base must not have diverged" {
    gate --base "$fake --seeds $five" --new "$fake --seeds ${near/3=0.921/3=nan}"
    [ "$status" = 10 ]
    [[ "$output" == *"FAIL: "*"new "*"seed 3"* ]]
    [ "$(verdict 'v["accuracy"][0]["diverged_seed"]')" = 3 ]
    keep gate.json
    document base.json --seeds "${five/3=0.92/3=nan}"
    document new.json --seeds "${near/3=0.921/3=nan}"
    compare base.json new.json
    [ "$status" = 0 ]
    [ "$(verdict 'v["accuracy"][0]["seeds"]')" = 4 ]
}

@test "compare: accuracies and step times of stored results" {
    document base.json --seeds "$five"
    document near.json --seeds "$near"
    document lost.json --seeds "$lost"
    document slow.json --seeds "$near" --step 1300
    document short.json --seeds "$near" --epochs 5
    document base5.json --seeds "$five" --epochs 5
    compare base.json near.json
    [ "$status" = 0 ]
    compare base.json lost.json
    [ "$status" = 10 ]
    compare base.json lost.json --accuracy-margin 0.1
    [ "$status" = 0 ]
    compare base.json slow.json
    [ "$status" = 10 ]
    # five epochs give no interval
    compare base5.json short.json
    [ "$status" = 12 ]
    [ "$(verdict '{c["state"] for c in v["cells"] if c["id"] != "a"}')" = "{'uncertain'}" ]
    # another number of epochs is another run
    compare base.json short.json
    [ "$status" = 12 ]
    [[ "$output" == *"5 of 6 "* ]]
}

@test "compare: coarse accuracies do not decide by chance" {
    document base.json --seeds 1=0.9,2=0.9 --eval-images 50
    compare base.json base.json
    [ "$status" = 12 ]
    document base.json --seeds 1=0.9,2=0.9
    compare base.json base.json
    [ "$status" = 0 ]
}

@test "--vary: training runs that differ by design are compared; a key that is not one is refused: 64" {
    document dense.json --seeds "$five"
    document bf16.json --seeds "$near" --sync bf16
    document frozen.json --seeds "$lost" --lr 0
    compare dense.json bf16.json
    [ "$status" = 12 ]
    [[ "$output" == *"no seed is in both base and new"* ]]
    compare dense.json bf16.json --vary sync
    [ "$status" = 0 ]
    compare dense.json frozen.json --vary sync,lr
    [ "$status" = 10 ]
    gate --base "$fake --seeds $five" --new "$fake --seeds $near --sync bf16" --vary sync
    [ "$status" = 0 ]
    compare dense.json bf16.json --vary seed
    [ "$status" = 64 ]
    [[ "$stderr" == *vary*seed* ]]
    gate --base "$fake" --new "$fake --lr 1" --vary x
    [ "$status" = 64 ]
    # both runs would have the same name
    "$ddpbench" train --ranks 1 --backend self --dataset synthetic --images 64 --epochs 1 --compare dense,bf16 --json two.json -q >/dev/null
    compare two.json two.json --vary sync
    [ "$status" = 65 ]
    [[ "$stderr" == *"occurs twice"*"--vary"* ]]
}

@test "real training: with --lr 0 the accuracy is worse, and the step times are cells" {
    local train="'$ddpbench' train --ranks 2 --model nnabla-tiny --dataset synthetic --images 320 --batch 16 --epochs 3 --seeds 1,2,3 -q"
    run --separate-stderr "$ddpbench" gate -q --runs 1 --pairs 6 --min-effect 1000 --vary lr --json gate.json --base "$train" --new "$train --lr 0"
    echo "$status: $output $stderr"
    [ "$status" = 10 ]
    [[ "$output" == *"accuracy is worse"* ]]
    keep gate.json
    [ "$(verdict '[(a["seeds"], a["state"], a["difference"] < -0.1) for a in v["accuracy"]]')" = "[(3, 'worse', True)]" ]
    [ "$(verdict 'len(v["cells"]), v["unjudged"]')" = "(3, [])" ]
}
