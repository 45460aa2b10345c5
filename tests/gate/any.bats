#!/usr/bin/env bats
# gate for programs other than ddpbench: --metric wall and --read. Stopped and slow child processes.
# jobs: 4
# shellcheck disable=SC2154 # stderr: bats
bats_require_minimum_version 1.5.0

# Starts three gates whose first launch takes 31 seconds. The last test reads what they said; the other
# tests run meanwhile.
setup_file() {
    cd "$BATS_FILE_TMPDIR" || return
    export XDG_STATE_HOME=$BATS_FILE_TMPDIR/state
    local slow="sh -c '[ -e \$0 ] || { touch \$0; sleep 31; }'" ddpbench=${DDPBENCH:-$BATS_TEST_DIRNAME/../../build/ddpbench}
    {
        "$ddpbench" gate --metric wall --base "$slow a" --new true --pairs 5 --runs 1 2>gate.log &
        "$ddpbench" gate --selftest --metric wall --base "$slow b" --gates 1,0 --pairs 5 --runs 1 2>selftest.log &
        "$ddpbench" gate -q --metric wall --base "$slow c" --new true --pairs 5 --runs 1 2>quiet.log &
        wait
        touch ended
    } >/dev/null 3>&- &
}

setup() {
    load ../helpers.bash
    gate_setup
}

# The document of a verdict, which a test leaves behind, is valid.
teardown() {
    [ ! -e gate.json ] || keep gate.json
}

teardown_file() {
    load ../helpers.bash
    validate_kept
}

# script NAME: makes an executable shell script from stdin.
script() {
    { echo '#!/bin/sh'; cat; } >"$1"
    chmod +x "$1"
}

@test "--metric wall: a command that takes longer is slower" {
    gate --metric wall --base 'sleep 0.05' --new 'sleep 0.5' --pairs 5 --runs 1
    [ "$status" = 10 ]
    [ "$(json gate.json '[(c["id"], c["state"]) for c in v["cells"]]')" = "[('wall', 'slower')]" ]
    [ "$(json gate.json '50000 < v["cells"][0]["base_us"] < 500000 < v["cells"][0]["new_us"]')" = True ]
}

@test "--metric wall: the same command passes; nothing is appended, stdin is empty, warm-ups are not counted" {
    script app <<'END'
echo "$# $(cat | wc -c)" >>calls
echo x >>"$1"
exec sleep 0.1
END
    gate --metric wall --base './app base' --new './app new' --pairs 5 --min-effect 60
    [ "$status" = 0 ]
    [ "$(sort -u calls)" = "1 0" ]
    # three warm-ups of each side, then the same odd number of runs of both in each of 5 pairs
    runs=$(json gate.json 'v["runs"]')
    [[ $runs =~ ^[135]$ ]]
    [ "$(wc -l <base)" = $((3 + 5 * runs)) ]
    [ "$(wc -l <new)" = $((3 + 5 * runs)) ]
}

@test "--metric wall: a command that fails, or is missing, is an error" {
    gate --metric wall --base true --new false
    [ "$status" = 69 ]
    message_names "'false'" "exit code 1"
    gate --metric wall --base true --new ./missing
    [ "$status" = 69 ]
    message_names "'./missing'"
}

@test "options that contradict each other are refused" {
    gate --metric wall --read gbench --base true --new true
    [ "$status" = 64 ]
    error_names --read "--metric wall"
    gate --runs 1 --read xml --base true --new true
    [ "$status" = 64 ]
    error_names --read "'xml'"
    gate --metric cpu --base true --new true
    [ "$status" = 64 ]
    error_names --metric "'cpu'"
    gate --selftest --read osu
    [ "$status" = 64 ]
    error_names --read --base
}

@test "a result without values, and one in another format, are errors that name the command" {
    gate --runs 1 --read osu --base 'echo nothing' --new true
    [ "$status" = 65 ]
    error_names "'echo nothing'" "'osu'"
    gate --runs 1 --read gbench --base 'echo nothing' --new true
    [ "$status" = 65 ]
    hint_names "'echo nothing'"
    echo '[{"name": "a", "unit": "us"}]' >no-value
    gate --runs 1 --read action-smaller --base 'cat no-value' --new true
    [ "$status" = 65 ]
    error_names "[0]" "'value'"
}

@test "the gate reads back what the reporters write" {
    ok allreduce --ranks 2 -q --size 64K,1M --algorithm ring,direct -n 20 \
        --format json=json,gbench=gbench,action-smaller=action-smaller,action-bigger=action-bigger,nccl-tests=nccl-tests,osu=osu
    for format in gbench action-smaller action-bigger nccl-tests osu; do
        # alternately from stdout and from a file
        base="cat $format" new="cp $format {json}"
        gate --runs 1 --read $format --base "$base" --new "$new" --pairs 8
        [ "$status" = 0 ]
        keep gate.json
        "$PYTHON" - $format <<'END'
import json, sys
kind = sys.argv[1]
points = json.load(open("json"))["points"]
if kind == "osu": # points in place are comments there
    points = [p for p in points if p["placement"] == "out"]
cells = {c["id"]: c for c in json.load(open("gate.json"))["verdict"]["cells"]}
assert len(points) == len(cells) == (4 if kind == "osu" else 8)
for p in points:
    algorithm, place, size = p["algorithm"], p["placement"], p["size_bytes"]
    want, id, slack = p["time_us"]["median"], p["id"], 1e-9
    if kind == "action-bigger":
        want = 1 / p["busbw_GBps"]
    if kind == "nccl-tests":
        place = {"in": "in-place", "out": "out-of-place"}[place]
        id = f"allreduce, 2 ranks, algorithm {algorithm}, {p['memory']} memory: {size} float sum -1 {place}"
        slack = (0.06 if want < 10000 else 0.6) / want # times from 10 ms on have no decimals
    if kind == "osu":
        id = f"ddpbench Allreduce Latency, 2 ranks, f32 sum, out of place, {p['memory']} memory, algorithm {algorithm}: {size}"
        want = p["rank_mean_us"]["avg"]
        slack = 0.006 / want
    c = cells[id]
    assert c["base_us"] == c["new_us"] and c["ratio"] == 1
    assert abs(c["base_us"] / want - 1) <= slack, (id, c["base_us"], want)
END
    done
}

@test "hyperfine's medians, by the names of its commands; a missing command is not a PASS" {
    for side in base new; do
        slower=$([ $side = base ] || echo 1)
        echo '{"results": [{"command": "a", "median": 0.5'"$slower"'}, {"command": "b", "mean": 9, "median": 0.25}]}' >$side.json
    done
    gate --runs 1 --read hyperfine --base 'cp base.json {json}' --new 'cp new.json {json}' --min-effect 1
    [ "$status" = 10 ]
    [ "$(json gate.json '[(c["id"], c["base_us"], c["state"]) for c in v["cells"]]')" = "[('a', 500000, 'slower'), ('b', 250000, 'same')]" ]
    echo '{"results": [{"command": "a", "median": 0.5}]}' >new.json
    gate --runs 1 --read hyperfine --base 'cp base.json {json}' --new 'cp new.json {json}'
    [ "$status" = 12 ]
    [ "$(json gate.json '[c["state"] for c in v["cells"]]')" = "['same', 'missing']" ]
}

@test "action-bigger: a smaller value is slower" {
    echo '[{"name": "a", "unit": "GB/s", "value": 10}]' >high
    echo '[{"name": "a", "unit": "GB/s", "value": 8}]' >low
    gate --runs 1 --read action-bigger --base 'cat high' --new 'cat low'
    [ "$status" = 10 ]
    [ "$(json gate.json '[(c["ratio"], c["base_us"]) for c in v["cells"]]')" = "[(1.25, 0.1)]" ]
    gate --runs 1 --read action-bigger --base 'cat low' --new 'cat high'
    [ "$status" = 0 ]
}

@test "wrong data is 11, and a benchmark that failed is 69" {
    echo '1024 256 float sum -1 12.5 0.1 0.1 3 12.5 0.1 0.1 0' >wrong
    gate --runs 1 --read nccl-tests --base 'cat wrong' --new 'cat wrong'
    [ "$status" = 11 ]
    message_names "'cat wrong'" "line 1"
    echo '{"benchmarks": [{"name": "b", "run_type": "iteration", "error_occurred": true, "error_message": "no file"}]}' >failed
    gate --runs 1 --read gbench --base 'cat failed' --new 'cat failed'
    [ "$status" = 69 ]
    message_names "'b'" "no file"
}

@test "a self-test of a wall time finds its simulated delay" {
    gate --selftest --metric wall --base 'sleep 0.05' --gates 1,1 --pairs 5 --inject 90 --min-effect 20
    [ "$status" = 12 ] # too few gates for a floor
    [ "$(json gate.json '[v["selftest"][k] for k in ("same_gates", "false_alarms", "injected_gates", "found", "cells")]')" = "[1, 0, 1, 1, 1]" ]
}

@test "a self-test of another program finds its simulated delay, and stores a floor of its own" {
    echo '[{"name": "a", "unit": "us", "value": 10}, {"name": "b", "unit": "us", "value": 20}]' >values
    gate --selftest --runs 1 --read action-smaller --base 'cat values' --gates 29,2 --pairs 6
    [ "$status" = 0 ]
    [ "$(json gate.json '[v["selftest"][k] for k in ("false_alarms", "injected_gates", "found", "elsewhere", "cells")]')" = "[0, 2, 2, 0, 2]" ]
    [ -f "$(echo state/ddpbench/noise-action-smaller-*.json)" ]
    gate --runs 1 --read action-smaller --base 'cat values' --new 'cat values'
    [ "$(json gate.json 'v["noise_floor"]')" = 0 ]
    gate --base "$fake --points a=10" --new "$fake --points a=10"
    [ "$(json gate.json 'v["noise_floor"]')" = None ]
}

@test "a child process that is stopped, and continues, is reported while it is stopped" {
    script stops <<'END'
[ -e stopped ] || {
    echo $$ >stopped
    (sleep 3; cp log seen; kill -CONT $$) &
    kill -STOP $$
}
exec sleep 0.01
END
    timeout 60 "$ddpbench" gate -q --metric wall --base ./stops --new ./stops --pairs 5 --min-effect 1000 2>log || [ $? = 12 ]
    pid=$(cat stopped)
    file_says seen "'./stops'" "process $pid" "signal 19"
    [ "$(grep -c "process $pid" seen)" = 1 ]
    [ "$(grep -c "process $pid" log)" = 2 ]
    tail -n 1 log | grep -q continues
}

@test "in a pipe a line of progress appears every 30 seconds; -q silences it" {
    cd "$BATS_FILE_TMPDIR"
    for _ in {1..600}; do
        [ ! -e ended ] || break
        sleep 0.1
    done
    [ -e ended ]
    [ "$(grep -c 'gate: pair 1 ' gate.log)" = 1 ]
    [ "$(grep -c 'self-test: gate 1 ' selftest.log)" = 1 ]
    run ! grep pair quiet.log
    run ! grep $'\r' gate.log selftest.log
}
