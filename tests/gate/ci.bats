#!/usr/bin/env bats
# Tests ci/gate.sh, the gate in a project's CI: number of pairs, exit codes, annotations, and the job's summary.
# shellcheck disable=SC2154 # stderr: bats
bats_require_minimum_version 1.5.0

setup() {
    load ../helpers.bash
    bench_setup
    export XDG_STATE_HOME=$BATS_TEST_TMPDIR/state
    unset GITHUB_ACTIONS GITHUB_STEP_SUMMARY
    fake="'$PYTHON' -S -E '$BATS_TEST_DIRNAME/fake_launch.py' --state count"
}

ci() {
    run --separate-stderr "$root/ci/gate.sh" --ddpbench "$ddpbench" -q --runs 1 "$@"
    echo "$status: $output $stderr"
}

launches() { wc -c <count; }

@test "same: 0; all files exist and are valid" {
    ci --base "$fake --points a=10,b=20" --new "$fake --points a=10,b=20" --pairs 8
    [ "$status" = 0 ]
    [ "$(launches)" = 16 ]
    "$PYTHON" "$root/ci/validate_json.py" gate-results/gate.json
    "$PYTHON" -c 'import xml.etree.ElementTree as t; t.parse("gate-results/gate.xml")'
    grep -q '^## PASS' gate-results/gate.md
    grep -q '^PASS: ' gate-results/gate.log
    [[ "$output" != *"::"* ]]
}

@test "slower: 10, with an annotation and a summary under GitHub Actions" {
    GITHUB_ACTIONS=true GITHUB_STEP_SUMMARY=$PWD/summary ci --base "$fake --points a=10" --new "$fake --points a=13" --pairs 8 --out o
    [ "$status" = 10 ]
    [ "$(grep -c '^::error ' <<<"$output")" = 1 ]
    grep -q '^## FAIL' summary
    [ -s o/gate.json ]
    [ "$(launches)" = 16 ]
}

@test "cannot tell: neutral with a warning after --max-pairs" {
    GITHUB_ACTIONS=true ci --base "$fake --points a=10 --noise 40" --new "$fake --points a=10 --noise 40" --max-pairs 12
    [ "$status" = 0 ]
    [ "$(launches)" = 24 ]
    grep -q '^::warning title=ddpbench gate::' <<<"$output"
    [ "$(grep -c '^::notice ' <<<"$output")" = 1 ]
}

@test "--strict: cannot tell is 12" {
    ci --strict --base "$fake --points a=10 --noise 40" --new "$fake --points a=10 --noise 40" --pairs 5
    [ "$status" = 12 ]
    [ "$(launches)" = 10 ]
}

@test "the gate runs more pairs until it is sure" {
    # more than 8 pairs show a slow-down of 10 % under noise of 6 %
    ci --base "$fake --points a=10 --noise 6" --new "$fake --points a=11 --noise 6"
    [ "$status" = 10 ]
    [ "$(launches)" -gt 16 ]
    [ "$(launches)" -lt 64 ]
    ! grep '^::warning' <<<"$output"
}

@test "the gate stops at the first look if only unjudged cells are in doubt" {
    ci --base "$fake --points a=10,b=20" --new "$fake --points a=10"
    [ "$status" = 0 ]
    [ "$(launches)" = 16 ]
    [[ "$stderr" == *"did not judge"* ]]
    # a cell that only new has does not end the gate
    rm count
    ci --base "$fake --noise 40" --new "$fake --noise 40 --points a=10,b=10,c=10,d=10" --max-pairs 12
    [ "$(launches)" = 24 ]
}

@test "errors keep their exit codes; options that the script sets are refused" {
    ci --base "$fake --exit 11" --new "$fake --exit 11"
    [ "$status" = 11 ]
    ci --pairs 8
    [ "$status" = 64 ]
    ci --base "$fake" --new "$fake" --json x.json
    [ "$status" = 64 ]
    ci --base "$fake" --new "$fake" --pairs many
    [ "$status" = 64 ]
}

@test "the workflow file is YAML and calls only the script" {
    "$PYTHON" -c 'import yaml' 2>/dev/null || skip "no PyYAML here"
    "$PYTHON" - "$root/ci/workflow-gate.yml" <<'END'
import sys, yaml
w = yaml.safe_load(open(sys.argv[1]))
runs = [s["run"] for s in w["jobs"]["gate"]["steps"] if "run" in s]
assert len(runs) == 3 and runs[2].startswith("new/ci/gate.sh ") and "--base '" in runs[2]
assert all(r.startswith("make -C ") for r in runs[:2])
assert w["permissions"] == {"contents": "read"}
END
}

@test "the workflow file for other programs is YAML, and its gates accept their options" {
    "$PYTHON" -c 'import yaml' 2>/dev/null || skip "no PyYAML here"
    "$PYTHON" - "$root/ci/workflow-gate-any.yml" >gates <<'END'
import shlex, sys, yaml
w = yaml.safe_load(open(sys.argv[1]))
assert w["permissions"] == {"contents": "read"}
runs = [s["run"] for s in w["jobs"]["gate"]["steps"] if "run" in s]
assert all(r.startswith("make -C ") for r in runs[:3]) and len(runs) == 5
for r in runs[3:]:
    words = shlex.split(r)
    assert words[:3] == ["ddpbench/ci/gate.sh", "--ddpbench", "ddpbench/build/ddpbench"]
    print(*(w for w in words[words.index("--out") + 2:] if w in ("--metric", "wall", "--read", "gbench")))
END
    [ "$(cat gates)" = $'--metric wall\n--read gbench' ]
    echo '{"benchmarks": [{"name": "a", "run_type": "iteration", "real_time": 5, "time_unit": "ns"}]}' >values
    while read -r option value; do
        ci "$option" "$value" --base 'cat values' --new 'cat values' --pairs 5 --min-effect 900
        [ "$status" = 0 ]
        "$PYTHON" "$root/ci/validate_json.py" gate-results/gate.json
    done <gates
}
