#!/usr/bin/env bats
# gate --selftest, and the use of the noise floor that it stores, with child processes of known times.
# shellcheck disable=SC2034,SC2154 # runs, pairs: helpers.bash; stderr: bats
bats_require_minimum_version 1.5.0

# Runs a self-test that stores a floor: 29 A/A gates and two with a delay, six pairs each, without noise.
setup_file() {
    cd "$BATS_FILE_TMPDIR" || return
    local root=$BATS_TEST_DIRNAME/../..
    XDG_STATE_HOME=$PWD/state "${DDPBENCH:-$root/build/ddpbench}" gate --selftest --runs 1 --gates 29,2 --pairs 6 -q --json gate.json \
        --base "'${PYTHON:-/usr/bin/python3}' -S -E '$BATS_TEST_DIRNAME/fake_launch.py' --state count --points a=10,b=20" >output 2>stderr
    echo $? >status
}

setup() {
    load ../helpers.bash
    gate_setup
    runs=1
}

# The document of a verdict, which a test leaves behind, is valid.
teardown() {
    [ ! -e gate.json ] || keep gate.json
}

teardown_file() {
    load ../helpers.bash
    validate_kept
}

# Runs a self-test of two A/A gates and two with a delay, six pairs each, which are too few for a floor.
selftest() { gate --selftest --gates 2,2 --pairs 6 "$@"; }

stored() { echo state/ddpbench/noise-*.json; }

# Restores the state after setup_file's self-test.
with_floor() { cp -r "$BATS_FILE_TMPDIR/state" .; }

# edit EXPRESSION: changes the stored floor d and updates its digest.
edit() {
    "$PYTHON" - "$root" "$(stored)" "$1" <<'END'
import json, sys
sys.path.insert(0, sys.argv[1] + "/ci")
from canonical_json import fnv1a64
d = json.load(open(sys.argv[2]))
exec(sys.argv[3])
del d["digest"]
body = json.dumps(d)[:-1]
open(sys.argv[2], "w").write(body + f', "digest": "fnv1a64:{fnv1a64(body.encode()):016x}"' + "}\n")
END
}

@test "the self-test reports its findings and stores the floor" {
    cp -r "$BATS_FILE_TMPDIR"/* .
    [ "$(cat status)" = 0 ]
    output=$(cat output)
    keep gate.json
    [ "$(json gate.json 'v["kind"], v["outcome"], v["pairs"]')" = "('selftest', 'PASS', 6)" ]
    [ "$(json gate.json '[v["selftest"][k] for k in ("same_gates", "false_alarms", "injected_gates", "found", "elsewhere", "cells")]')" = "[29, 0, 2, 2, 0, 2]" ]
    [ "$(json gate.json '0.005 < v["noise_floor"] < 0.05 < v["selftest"]["detectable"] < 0.1')" = True ]
    [ "$(wc -c <count)" = 372 ]
    [ -f "$(stored)" ]
    [ ! -e "$(stored).journal" ]
    [[ "$output" == *"/ddpbench/noise-"* ]]
    [ -z "$(find . -name '*.tmp')" ]
}

@test "too few gates store no floor, report the number needed, and are kept for a longer self-test" {
    selftest --base "$fake"
    [ "$status" = 12 ]
    [ "$(json gate.json 'v["outcome"], v["selftest"]["same_gates"]')" = "('INCONCLUSIVE', 2)" ]
    grep -q ' 29 .* 2.*--gates 29,2' <<<"$output"
    [ ! -e "$(stored)" ]
    gate --base "$fake" --new "$fake" --pairs 6
    says --selftest
    bytes=$(wc -c <count)
    gate --selftest --gates 3,2 --pairs 6 --base "$fake"
    [[ "$stderr" == *".journal'"*" 4 gates"* ]]
    [ "$(wc -c <count)" = $((bytes + 12)) ]
}

@test "a machine that is too noisy: 12, and the floor says why" {
    selftest --base "$fake --points a=10 --noise 20"
    [ "$status" = 12 ]
    [ "$(json gate.json 'v["noise_floor"] > 0.1 and v["selftest"]["found"] < 2')" = True ]
    # later gates use the floor as the least effect that matters, so there is no false alarm
    rm -r state
    with_floor
    edit 'd["noise_floor"] = 0.15'
    gate --pairs 6 --base "$fake --points a=10 --noise 0.1" --new "$fake --points a=11 --noise 0.1"
    [ "$status" = 0 ]
    [ "$(json gate.json 'v["min_effect"] == v["noise_floor"] > 0.1')" = True ]
    # an explicit --min-effect overrides the floor
    gate --pairs 6 --base "$fake --points a=10 --noise 0.1" --new "$fake --points a=11 --noise 0.1" --min-effect 5
    [ "$status" = 10 ]
    says "5 %" "/ddpbench/noise-"
}

@test "a quiet machine: 5 % stays; without a floor it says how to get one" {
    gate --base "$fake" --new "$fake" --pairs 6
    says "5 %" "\`ddpbench gate --selftest\`"
    [ "$(json gate.json 'v["noise_floor"], v["min_effect"]')" = "(None, 0.05)" ]
    with_floor
    gate --base "$fake" --new "$fake" --pairs 6
    says "5 %"
    [ "$(json gate.json '0 < v["noise_floor"] < 0.05 == v["min_effect"]')" = True ]
    [[ "$output" == *"$PWD/state/ddpbench/noise-"* ]]
}

@test "an interrupted self-test resumes with the next gate" {
    # a child process of the third gate fails
    selftest --base "$fake --points a=10,b=20 --exit 11 --exit-after 30"
    [ "$status" = 11 ]
    [ "$(grep -c '"kind": *"gate"' state/ddpbench/noise-*.json.journal)" = 2 ]
    rm count
    # another command is another self-test
    selftest --base "$fake --points a=10,b=20"
    [ "$status" = 76 ]
    error_names "the command was \`'$PYTHON' "
    [[ $stderr != *"''"* ]]
    selftest --base "$fake --points a=10,b=20 --exit 11 --exit-after 30"
    [ "$status" = 12 ]
    [[ "$stderr" == *".journal'"*" 2 gates"* ]]
    [ "$(wc -c <count)" = 24 ]
    [ "$(json gate.json 'v["selftest"]["same_gates"] + v["selftest"]["injected_gates"]')" = 4 ]
}

@test "a later self-test can add gates; --restart discards the earlier ones" {
    selftest --base "$fake --exit 11 --exit-after 30"
    [ "$status" = 11 ]
    gate --selftest --gates 4,2 --pairs 7 --base "$fake --exit 11 --exit-after 30"
    [ "$status" = 76 ]
    error_names --pairs "'6'" "'7'"
    rm count
    gate --selftest --gates 1,0 --pairs 7 --base "$fake --exit 11 --exit-after 30" --restart
    [ "$status" = 12 ]
    [ "$(wc -c <count)" = 14 ]
}

@test "the journal cut at every byte: no crash, and complete gates are kept" {
    selftest --base "$fake --exit 11 --exit-after 30"
    [ "$status" = 11 ]
    journal=$(echo state/ddpbench/noise-*.json.journal)
    cp "$journal" whole
    bytes=$(wc -c <whole)
    for ((n = 0; n < bytes; n += 311)); do
        head -c "$n" whole >"$journal"
        # the next child process fails, so only the journal is read
        selftest --base "$fake --exit 11 --exit-after 30"
        [ "$status" = 11 ] || return 1
    done
    # a changed byte is detected
    "$PYTHON" -c 'd = bytearray(open("whole", "rb").read()); d[len(d) // 2] ^= 1; open("'"$journal"'", "wb").write(d)'
    selftest --base "$fake --exit 11 --exit-after 30"
    [ "$status" = 65 ]
}

@test "a stored floor is not trusted: damage 65, another machine's 76, absent 66" {
    with_floor
    file=$(stored)
    cp "$file" good
    sed -i 's/"pairs": 6/"pairs": 7/' "$file"
    gate --base "$fake" --new "$fake"
    [ "$status" = 65 ]
    cp good "$file"
    edit 'd["noise_floor"] = -1'
    gate --base "$fake" --new "$fake"
    [ "$status" = 65 ]
    cp good "$file"
    edit 'd["noise_floor"] = 1e300'
    gate --base "$fake" --new "$fake"
    [ "$status" = 65 ]
    cp good "$file"
    edit 'd["more"] = 1'
    gate --base "$fake" --new "$fake"
    [ "$status" = 65 ]
    cp good "$file"
    edit 'd["machine"]["kernel"] = "other"'
    gate --base "$fake" --new "$fake"
    [ "$status" = 76 ]
    gate --base "$fake" --new "$fake" --noise-floor absent.json
    [ "$status" = 66 ]
    [ ! -e count ] # none of these started a child process
    gate --base "$fake" --new "$fake" --noise-floor good --pairs 6
    [ "$(json gate.json '0 < v["noise_floor"] < 0.05')" = True ]
}

@test "compare: the larger of 10 % and the floor, of this machine's results" {
    "$ddpbench" allreduce --ranks 1 --backend self --size 4 -n 8 --json mine.json -q
    run "$ddpbench" compare mine.json mine.json --json c.json --format table
    says "10 %" --selftest
    with_floor
    edit 'd["noise_floor"] = 0.15'
    run "$ddpbench" compare mine.json mine.json --json gate.json --format table
    [ "$(json gate.json 'v["min_effect"] == v["noise_floor"] > 0.1')" = True ]
    eval "$fake --noise 0 --json other.json"
    run "$ddpbench" compare other.json other.json --json gate.json --format table
    says "10 %"
    [ "$(json gate.json 'v["noise_floor"], v["min_effect"]')" = "(None, 0.1)" ]
    run "$ddpbench" compare other.json other.json --min-effect 20 --json gate.json --format table
    [ "$(json gate.json 'v["min_effect"], "as asked" in v["min_effect_from"]')" = "(0.2, True)" ]
    run "$ddpbench" compare other.json other.json --min-effect 3 --json gate.json --format table
    [ "$(json gate.json 'v["min_effect"], "as asked" in v["min_effect_from"]')" = "(0.1, False)" ]
    run "$ddpbench" compare mine.json mine.json --min-effect 3 --json gate.json --format table
    [ "$(json gate.json 'v["min_effect"]')" = 0.1 ]
}

@test "contradictions are usage errors; nothing runs" {
    gate --selftest --new "$fake"
    [ "$status" = 64 ]
    gate --selftest --gates 2,3
    [ "$status" = 64 ]
    gate --selftest --gates 0,0
    [ "$status" = 64 ]
    gate --base "$fake" --new "$fake" --gates 2,3
    [ "$status" = 64 ]
    gate --base "$fake" --new "$fake" --restart
    [ "$status" = 64 ]
    [ ! -e count ]
    XDG_STATE_HOME='' HOME='' gate --selftest
    [ "$status" = 73 ]
    XDG_STATE_HOME=/dev/null/x gate --selftest
    [ "$status" = 73 ]
}

@test "this program against itself" {
    gate --selftest --gates 1,1 --pairs 1 --base "'$ddpbench' allreduce --size 64K,256K --ranks 1 -n 6 -q --placement out" --min-effect 500
    [ "$status" = 64 ]
    error_names "1 pair" "2 cells"
    [ -z "$(ls state/ddpbench)" ] # a journal without a gate is not kept
    # Other tests may disturb a gate so that it is inconclusive; then it is repeated.
    for _ in 1 2 3 4 5; do
        gate --selftest --restart --gates 1,1 --pairs 6 --base "'$ddpbench' allreduce --size 64K --ranks 1 -n 6 -q --placement out" --inject 900
        [ "$status" = 12 ]
        [ "$(json gate.json 'v["selftest"]["found"]')" = 1 ] && return
    done
    false
}
