#!/usr/bin/env bats
# gate and compare never pass if they could not judge a document, a cell or a training run of base.
# The fake command's --train writes training runs without epochs, which have neither a time nor an accuracy.
# shellcheck disable=SC2034,SC2154 # runs, pairs: helpers.bash; stderr: bats
bats_require_minimum_version 1.5.0

setup() {
    load ../helpers.bash
    gate_setup
    runs=1
    pairs=6
}

# The document of a verdict, which a test leaves behind, is valid.
teardown() {
    [ ! -e gate.json ] || keep gate.json
}

teardown_file() {
    load ../helpers.bash
    validate_kept
}

# sweep LR FILE: runs a real sweep with a point and a training run.
sweep() {
    printf '{"runs": [{"command": "allreduce", "ranks": 1, "backend": "self", "size": "64K", "placement": "out", "iters": 30},
        {"command": "train", "ranks": 2, "dataset": "synthetic", "images": 64, "epochs": 1, "lr": %s}]}' "$1" >"$2.sweep"
    "$ddpbench" sweep "$2.sweep" --json "$2" -q >/dev/null
}

@test "gate without --new, --new-env or --selftest would compare a command with itself: 64" {
    gate --base "$fake"
    [ "$status" = 64 ]
    [[ "$stderr" == *"--new"*"--new-env"*"--selftest"* ]]
    gate --base "$fake" --base-env A=b
    [ "$status" = 64 ]
    [ ! -e count ]
    gate --base "$fake" --new-env A=b
    [ "$status" = 0 ]
}

@test "gate: a launch whose document says that data was wrong is a failed launch: 11" {
    local wrong="--status failed --reason 'wrong data: rank 1, element 8192'"
    gate --base "$fake $wrong" --new "$fake $wrong"
    [ "$status" = 11 ]
    [[ "$stderr" == *"wrong data: rank 1, element 8192"* ]]
    [ "$("$PYTHON" -c 'import json; print(json.load(open("gate.json"))["status"])')" = partial ]
    gate --base "$fake" --new "$fake $wrong"
    [ "$status" = 11 ]
    gate --base "$fake --wrong 7" --new "$fake --wrong 7"
    [ "$status" = 11 ]
    [[ "$stderr" == *"'a'"*"7"* ]]
    gate --base "$fake --wrong 0" --new "$fake --wrong 0"
    [ "$status" = 0 ]
}

@test "gate: a launch whose document is not complete, or has no valid iterations, is a failed launch: 69" {
    for bad in "--status partial --reason 'rank 1 was lost'" "--iterations 0"; do
        gate --base "$fake $bad" --new "$fake $bad"
        [ "$status" = 69 ]
        gate --base "$fake" --new "$fake $bad"
        [ "$status" = 69 ]
        [[ "$stderr" == *"rank 1 was lost"* || "$stderr" == *"'a'"* ]]
    done
}

@test "gate: a delay that is injected into one side alone is a failed launch: 69" {
    gate --base "$fake --points a=10,b=20 --inject-delay 50@b" --new "$fake --points a=10,b=29"
    [ "$status" = 69 ]
    [[ "$stderr" == *"'b'"*"50 %"* ]]
    gate --base "$fake --points a=10,b=20" --new "$fake --points a=10,b=20 --inject-delay 50@b"
    [ "$status" = 69 ]
    [[ "$stderr" == *"'b'"*"50 %"* ]]
    [[ "$stderr" == *"none"*"50 %"* ]]
    gate --base "$fake --inject-delay 10@a" --new "$fake --inject-delay 20@a"
    [ "$status" = 69 ]
    [[ "$stderr" == *"'a'"*"10 %"*"20 %"* ]]
    gate --base "$fake --inject-delay 0@a" --new "$fake"
    [ "$status" = 0 ]
    gate --base "$fake --inject-delay 50@a" --new "$fake --inject-delay 50@a"
    [ "$status" = 0 ]
    local real="'$ddpbench' allreduce --ranks 1 --backend self --size 4 -n 6 --placement in -q"
    id=$("$ddpbench" allreduce --ranks 1 --backend self --size 4 -n 6 --placement in --json - | "$PYTHON" -c \
        'import json, sys; print(json.load(sys.stdin)["points"][0]["id"])')
    gate --base "$real --inject-delay 100@$id" --new "$real"
    [ "$status" = 69 ]
    [[ "$stderr" == *"$id"* ]]
}

@test "gate: a base cell that is missing in new gives no PASS, and is named" {
    gate --base "$fake --points a=10,lost=20" --new "$fake --points a=10" --format table,github=g.txt,markdown=m.md
    [ "$status" = 12 ]
    [[ "$output" == *"INCONCLUSIVE: "*"lost"* ]]
    grep -q '^::warning .* lost ' g.txt
    grep -q '^| `lost` .* missing |$' m.md
    gate --base "$fake --points a=10,b=20,lost=20" --new "$fake --points a=10,b=30"
    [ "$status" = 10 ]
    [[ "$output" == *"FAIL: "*"lost"* ]]
}

@test "gate: a base cell that the first launch lacks gives no PASS, and is named" {
    gate --base "$fake --late late=20" --new "$fake --late late=20"
    [ "$status" = 12 ]
    [[ "$output" == *"late"* ]]
}

@test "gate: training runs of base without an epoch are not judged: no PASS, and they are named in every output" {
    gate --base "$fake --train 0.05" --new "$fake --train 1e-7" \
        --format table,junit=j.xml,github=g.txt,markdown=m.md,action-smaller=s.json,jsonl=l
    [ "$status" = 12 ]
    [[ "$output" == *"INCONCLUSIVE: "*"singa-cnn dense ranks 2 lr 0.05 seed 1"* ]]
    grep -Eq '^singa-cnn dense .* lr 0.05 seed 1 .* base$' <<<"$output"
    [ "$(verdict '[(u["kind"], u["side"], u["name"].split()[5]) for u in v["unjudged"]]')" = \
        "[('train', 'base', '0.05'), ('train', 'new', '1e-07')]" ]
    keep gate.json
    grep -q '^::warning .*singa-cnn dense ranks 2 lr 0.05 seed 1' g.txt
    grep -q 'singa-cnn dense ranks 2 lr 0.05 seed 1.* base |$' m.md
    "$PYTHON" - <<'END'
import json
import xml.etree.ElementTree as ET
suite = ET.parse("j.xml").getroot().find("testsuite")
skipped = [c.get("name") for c in suite.iter("testcase") if c.find("skipped") is not None]
assert any("lr 0.05" in name for name in skipped) and suite.get("skipped") == str(len(skipped)), skipped
extra = [e["extra"] for e in json.load(open("s.json")) if e["name"] == "not judged" and e["value"] == 1]
assert "lr 0.05" in extra[0], extra
assert json.loads(open("l").read().splitlines()[-1])["verdict"]["unjudged"]
END
    # a slower cell is a FAIL all the same
    gate --base "$fake --train 0.05" --new "$fake --points a=13 --train 0.05"
    [ "$status" = 10 ]
    [[ "$output" == *"FAIL: "*"singa-cnn dense"* ]]
}

@test "gate and compare: cells that only new has are named, and change nothing" {
    gate --base "$fake" --new "$fake --points a=10,more=20 --train 0.05" --format table,github=g.txt,markdown=m.md
    [ "$status" = 0 ]
    [[ "$output" == *"PASS: "*"more; "*"singa-cnn"* ]]
    grep -Eq '^more .* new$' <<<"$output"
    grep -q '^::notice .* more;' g.txt
    ! grep -q '^::warning' g.txt || false
    grep -q '^| `more` .* new |$' m.md
    [ "$(verdict '[(u["kind"], u["side"]) for u in v["unjudged"]]')" = "[('cell', 'new'), ('train', 'new')]" ]
    keep gate.json
    gate --base "$fake" --new "$fake --points a=13,more=20"
    [ "$status" = 10 ]
    document base.json
    document new.json --points a=10,more=20 --train 0.05
    compare base.json new.json
    [ "$status" = 0 ]
    [[ "$output" == *"PASS: "*"more"* ]]
}

@test "compare: the training runs of two sweeps that differ in a setting are missing cells: 12, and they are named" {
    sweep 0.05 good.json
    sweep 1e-7 bad.json
    # the large --min-effect ignores the times of the points
    compare good.json bad.json --min-effect 1000
    [ "$status" = 12 ]
    [[ "$output" == *"INCONCLUSIVE: "*"singa-cnn dense ranks 2 lr 0.05 "* ]]
    [ "$(verdict '[(u["kind"], u["side"]) for u in v["unjudged"]]')" = "[('cell', 'new')]" ]
    keep gate.json
}

@test "compare: runs that differ in their batch are two training runs" {
    printf '{"runs": [{"command": "train", "ranks": 1, "backend": "self", "dataset": "synthetic", "images": 64,
        "epochs": 1, "batch": [8, 16]}]}' >train.sweep
    "$ddpbench" sweep train.sweep --json train.json -q >/dev/null
    compare train.json train.json
    [ "$(verdict 'sorted((" batch 16 " in c["id"], " batch 8 " in c["id"]) for c in v["cells"])')" = \
        "[(False, True), (True, False)]" ]
}

@test "gate: what new alone has is listed once for all launches" {
    gate --base "$fake" --new "$fake --points a=10,z=20,m=20 --train 0.05"
    [ "$status" = 0 ]
    [ "$(verdict '[u["name"][0] for u in v["unjudged"]]')" = "['m', 'z', 's']" ]
}

@test "compare: a document that failed, has wrong data or no valid iterations is refused: 65" {
    document good.json
    document failed.json --status failed --reason "'wrong data: rank 1'"
    document wrong.json --wrong 7
    document empty.json --iterations 0
    for bad in failed wrong empty; do
        compare "$bad.json" good.json
        [ "$status" = 65 ]
        [[ "$stderr" == *"'$bad.json'"* ]]
        [[ "$stderr" == *"wrong data: rank 1"* || "$stderr" == *"'a'"* ]]
        compare good.json "$bad.json"
        [ "$status" = 65 ]
        [[ "$stderr" == *"'$bad.json'"* ]]
    done
}

@test "compare: no PASS when new was cut off, or one side alone has an injected delay" {
    document good.json
    document part.json --status partial
    document delayed.json --inject-delay 50@a
    compare good.json part.json
    [ "$status" = 12 ]
    [[ "$output" == *"new was cut off"* ]]
    compare delayed.json good.json
    [ "$status" = 12 ]
    [[ "$output" == *"'a'"*"50 %"*"none"* ]]
    compare good.json delayed.json
    [ "$status" = 12 ]
    compare delayed.json delayed.json
    [ "$status" = 0 ]
    # no delay is 0 or less
    document zero.json --inject-delay 0@a
    compare good.json zero.json
    [ "$status" = 0 ]
    document other.json --inject-delay 70@a
    compare delayed.json other.json
    [[ "$output" == *"'a'"*"50 %"*"70 %"* ]]
}

@test "compare: a base cell that is missing in new gives no PASS, and is named" {
    document base.json --points a=10,lost=20
    document new.json
    compare base.json new.json
    [ "$status" = 12 ]
    [[ "$output" == *"lost"* ]]
}

@test "a self-test of a command that trains is refused, for it could not judge the training" {
    run --separate-stderr "$ddpbench" gate --selftest --runs 1 --gates 1,0 --pairs 6 -q --base "$fake --seeds 1=0.9"
    [ "$status" = 76 ]
    [[ "$stderr" == *"m dense ranks 2 lr 0.05 seed 1"* ]]
    run --separate-stderr "$ddpbench" gate --selftest --runs 1 --gates 1,0 --pairs 5 -q --base "$fake --train 0.05"
    [ "$status" = 76 ]
    [[ "$stderr" == *"singa-cnn dense ranks 2 lr 0.05 seed 1"* ]]
}

@test "ci/gate.sh: the warning says that cells were not judged" {
    run --separate-stderr "$root/ci/gate.sh" --ddpbench "$ddpbench" --runs 1 -q --pairs 6 --base "$fake --train 0.05" --new "$fake --train 0.05"
    echo "$status: $output $stderr"
    [ "$status" = 0 ]
    [ "$(wc -c <count)" = 12 ]
    [[ "$stderr" == *"did not judge"* ]]
    rm count
    run --separate-stderr "$root/ci/gate.sh" --ddpbench "$ddpbench" --runs 1 --strict -q --pairs 6 --base "$fake --points a=10,b=10" --new "$fake"
    [ "$status" = 12 ]
    [ "$(wc -c <count)" = 12 ]
    # a noisy cell keeps the gate running until --max-pairs
    rm count
    run --separate-stderr "$root/ci/gate.sh" --ddpbench "$ddpbench" --runs 1 -q --max-pairs 12 --base "$fake --train 0.05 --noise 40" --new "$fake --train 0.05 --noise 40"
    [ "$(wc -c <count)" = 24 ]
}
