#!/usr/bin/env bats
# Tests ci/gate.sh, the gate in a project's CI: rounds, exit codes, annotations, and the job's summary.
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
    run --separate-stderr "$root/ci/gate.sh" --ddpbench "$ddpbench" -q "$@"
    echo "$status: $output $stderr"
}

launches() { wc -c <count; }

@test "same: 0 after one round; all files exist and are valid" {
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

@test "cannot tell: one more round with twice the pairs, then neutral with a warning" {
    GITHUB_ACTIONS=true ci --base "$fake --points a=10 --noise 40" --new "$fake --points a=10 --noise 40" --pairs 5
    [ "$status" = 0 ]
    [ "$(launches)" = 30 ]
    [[ "$stderr" == *" 10"* ]]
    grep -q '^::warning title=ddpbench gate::' <<<"$output"
    [ "$(grep -c '^::notice ' <<<"$output")" = 1 ]
}

@test "--strict: cannot tell is 12" {
    ci --strict --base "$fake --points a=10 --noise 40" --new "$fake --points a=10 --noise 40" --pairs 5
    [ "$status" = 12 ]
    [ "$(launches)" = 30 ]
}

@test "a second round that can tell decides" {
    # more pairs show a slow-down of 10 % under noise of 4 %
    ci --base "$fake --points a=10 --noise 4" --new "$fake --points a=11 --noise 4" --pairs 5
    [ "$status" = 10 ]
    [ "$(launches)" = 30 ]
    [[ "$stderr" == *" 10"* ]]
    ! grep '^::warning' <<<"$output"
}

@test "the second round depends on gate.json, not on the words of the outcome" {
    # the tool with other words
    printf '#!/bin/sh\n"%s" "$@" >words; rc=$?; sed "s/^INCONCLUSIVE: .*/INCONCLUSIVE: other words/" words; exit $rc\n' "$ddpbench" >tool
    chmod +x tool
    ddpbench=$PWD/tool ci --base "$fake --points a=10,b=20" --new "$fake --points a=10" --pairs 6
    [ "$status" = 0 ]
    [ "$(launches)" = 12 ]
    rm count
    ddpbench=$PWD/tool ci --base "$fake --train 0.05" --new "$fake" --pairs 6
    [ "$(launches)" = 12 ]
    # what only new has is no reason to end
    rm count
    ddpbench=$PWD/tool ci --base "$fake --noise 40" --new "$fake --noise 40 --train 0.05" --pairs 5
    [ "$(launches)" = 30 ]
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
