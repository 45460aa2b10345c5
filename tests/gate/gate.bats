#!/usr/bin/env bats
# gate and compare: outcomes, exit codes and outputs, with child processes whose times are known.
# jobs: 3
# shellcheck disable=SC2034,SC2154 # runs, pairs: helpers.bash; stderr: bats
bats_require_minimum_version 1.5.0

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

@test "nothing changed: PASS, exit 0" {
    gate --base "$fake --points a=10,b=20,c=30" --new "$fake --points a=10,b=20,c=30"
    [ "$status" = 0 ]
    grep -q '^PASS: .*5 %' <<<"$output"
    [ "$(json gate.json 'v["outcome"], v["pairs"], len(v["cells"])')" = "('PASS', 8, 3)" ]
}

@test "one cell of three is 10 % slower: FAIL, exit 10, and no other cell" {
    gate --base "$fake --points a=10,b=20,c=30" --new "$fake --points a=10,b=22,c=30"
    [ "$status" = 10 ]
    [ "$(json gate.json '[c["state"] for c in v["cells"]]')" = "['same', 'slower', 'same']" ]
    [ "$(json gate.json '1.08 < v["cells"][1]["ratio"] < 1.12')" = True ]
    [ "$(json gate.json 'v["cells"][1]["p"] == 2.0**-8')" = True ]
}

@test "slower by less than matters: PASS; with a smaller --min-effect: FAIL" {
    gate --base "$fake --points a=10" --new "$fake --points a=10.3" --pairs 20
    [ "$status" = 0 ]
    gate --base "$fake --points a=10" --new "$fake --points a=10.3" --pairs 20 --min-effect 1
    [ "$status" = 10 ]
}

@test "too noisy to say: INCONCLUSIVE, exit 12" {
    gate --base "$fake --points a=10 --noise 25" --new "$fake --points a=10 --noise 25"
    [ "$status" = 12 ]
    [[ "$output" == *"INCONCLUSIVE"* && "$output" != *busy* ]]
    gate --base "$fake --points a=10 --noise 25 --busy" --new "$fake --points a=10 --noise 25"
    [ "$status" = 12 ]
    grep -Eq '^INCONCLUSIVE: .* ([0-9]+) of [0-9]+ runs \(busy\)' <<<"$output"
}

@test "a cell that is missing in new is inconclusive, never a PASS" {
    gate --base "$fake --points a=10,b=20" --new "$fake --points a=10"
    [ "$status" = 12 ]
    grep -q '^INCONCLUSIVE: .*1 of 2 cells' <<<"$output"
    grep -Eq '^b .* - +- +- +- +- +- missing$' <<<"$output"
    [ "$(json gate.json '[c[k] for c in v["cells"][1:] for k in ("new_us", "ratio", "p", "p_holm")]')" = "[None, None, None, None]" ]
}

@test "cells that only new has are not judged, and this is reported" {
    gate --base "$fake --points a=10" --new "$fake --points a=10,b=20,c=30"
    [ "$status" = 0 ]
    grep -q '^PASS: .*2 cells' <<<"$output"
    [ "$(json gate.json 'len(v["cells"])')" = 1 ]
}

@test "too few pairs to ever show anything are refused after the first" {
    gate --base "$fake --points a=1,b=1,c=1,d=1" --new "$fake --points a=1,b=1,c=1,d=1" --pairs 6
    [ "$status" = 64 ]
    error_names "6 pairs" "4 cells"
    hint_names "--pairs 7"
    [ "$(wc -c <count)" = 2 ]
}

@test "launches on another machine: 76" {
    gate --base "$fake" --new "$fake --host other"
    [ "$status" = 76 ]
    error_names "'$fake --host other'"
}

@test "a pair whose ping-pong class changed is run again, twice at most, then kept and counted" {
    gate --base "$fake --pingpong 100" --new "$fake --pingpong 500" --pairs 5
    [ "$(json gate.json 'v["pairs_rerun"], v["pairs_mixed"]')" = "(10, 5)" ]
    [ "$(wc -c <count)" = 30 ]
}

@test "PASS becomes INCONCLUSIVE if the control was faster for new, and stands if it was slower" {
    gate --base "$fake --points a=10 --pingpong 120" --new "$fake --points a=10 --pingpong 100"
    [ "$status" = 12 ]
    grep -q '^INCONCLUSIVE: .*ping-pong' <<<"$output"
    gate --base "$fake --points a=10 --pingpong 100" --new "$fake --points a=10 --pingpong 120"
    [ "$status" = 0 ]
}

@test "a drift of the control turns FAIL into INCONCLUSIVE" {
    gate --base "$fake --points a=10 --pingpong 100" --new "$fake --points a=12 --pingpong 120"
    [ "$status" = 12 ]
    grep -q '^INCONCLUSIVE: .*ping-pong' <<<"$output"
}

@test "a control that was faster for new cannot be the cause of a FAIL" {
    gate --base "$fake --points a=10 --pingpong 120" --new "$fake --points a=12 --pingpong 100"
    [ "$status" = 10 ]
    gate --base "$fake --points a=10 --copy 40" --new "$fake --points a=12 --copy 50"
    [ "$status" = 10 ]
}

@test "a drift of the control has the same effect with few pairs" {
    for pairs in 5 8 9; do
        gate --base "$fake --points a=10 --pingpong 100" --new "$fake --points a=12 --pingpong 120"
        [ "$status" = 12 ]
        grep -q '^INCONCLUSIVE: .*ping-pong' <<<"$output"
    done
    pairs="" gate --base "$fake --points a=10 --pingpong 100" --new "$fake --points a=12 --pingpong 100" --pairs 5
    [ "$status" = 10 ]
}

@test "memory copies of different sizes, as of two versions, are not compared" {
    gate --base "$fake --points a=10 --copy 40" --new "$fake --points a=10 --copy 50 --copy-bytes 4194304"
    [ "$status" = 0 ]
    [ "$(json gate.json 'v["control"]["memory"]')" = "{'ratio': None, 'p': None}" ]
}

@test "a drift of the memory copy turns FAIL into INCONCLUSIVE; one of both sides, or a small one, does not" {
    gate --base "$fake --points a=10 --copy 50" --new "$fake --points a=12 --copy 40"
    [ "$status" = 12 ]
    grep -q '^INCONCLUSIVE: .*+2' <<<"$output"
    [ "$(json gate.json '1.2 < v["control"]["memory"]["ratio"] < 1.3 and v["control"]["memory"]["p"] < 0.001')" = True ]
    gate --base "$fake --points a=10 --copy 40" --new "$fake --points a=12 --copy 40"
    [ "$status" = 10 ]
    gate --base "$fake --points a=10 --copy 50" --new "$fake --points a=12 --copy 49"
    [ "$status" = 10 ]
    gate --base "$fake --points a=10" --new "$fake --points a=12"
    [ "$status" = 10 ]
    [ "$(json gate.json 'v["control"]["memory"]')" = "{'ratio': None, 'p': None}" ]
}

@test "a launch that fails: its own code, its last words, a partial document" {
    gate --base "$fake" --new "$fake --exit 11"
    [ "$status" = 11 ]
    [[ "$stderr" == *"told to fail"* ]]
    [ "$("$PYTHON" -c 'import json; print(json.load(open("gate.json"))["status"])')" = partial ]
    gate --base "$fake" --new "$fake --exit 3"
    [ "$status" = 69 ]
    gate --base "./no-such-program" --new "./no-such-program"
    [ "$status" = 69 ]
    error_names "'./no-such-program'"
    # a long output is cut to complete lines; of one long line the end is kept, and marked
    printf '#!/bin/sh\nseq -f "complaint %%g" 100 >&2\nexit 3\n' >long.sh
    printf '#!/bin/sh\nprintf "%%0600d end\\n" 0 >&2\nexit 3\n' >wide.sh
    printf '#!/bin/sh\necho "{" >"$2"\n' >torn.sh
    chmod +x long.sh wide.sh torn.sh
    run "$ddpbench" gate --base ./long.sh --new ./long.sh
    [ "$status" = 69 ]
    [[ "$output" == *": complaint "*" complaint 100"* ]]
    run "$ddpbench" gate --base ./wide.sh --new ./wide.sh
    [[ "$output" == *": ...0"*"0 end"* ]]
    run "$ddpbench" gate --base ./torn.sh --new ./torn.sh
    [ "$status" = 65 ]
    hint_names "'./torn.sh'"
}

@test "commands are words, not shell lines" {
    gate --base "$fake; touch harm" --new "$fake; touch harm"
    [ "$status" = 64 ]
    error_names ";"
    [ ! -e harm ]
    gate --base "$fake 'open" --new "$fake 'open"
    [ "$status" = 64 ]
    gate
    [ "$status" = 64 ]
    gate --base "$fake" --new-env NOVALUE
    [ "$status" = 64 ]
}

@test "{json} stands for the result's path; environments differ by side" {
    cat >probe.sh <<END
#!/bin/sh
echo "\$SIDE" >>sides
exec $fake "\$@"
END
    chmod +x probe.sh
    gate --base "./probe.sh --json={json}" --base-env SIDE=b --new-env SIDE=n --pairs 6
    [ "$status" != 64 ]
    [ "$(grep -c b sides)" = 6 ]
    [ "$(grep -c n sides)" = 6 ]
    # Each block of four is ABBA or BAAB.
    [[ "$(tr -d '\n' <sides)" =~ ^(bnnb|nbbn)(bnnb|nbbn)(bnnb|nbbn)$ ]]
    # With three runs of each command in a pair, two pairs are three blocks of four.
    rm sides
    runs=3 gate --base "./probe.sh --json={json}" --base-env SIDE=b --new-env SIDE=n --pairs 6
    [[ "$(tr -d '\n' <sides)" =~ ^(bnnbbnnbbnnb|nbbnnbbnnbbn)(bnnbbnnbbnnb|nbbnnbbnnbbn)(bnnbbnnbbnnb|nbbnnbbnnbbn)$ ]]
}

@test "the median over the runs of a pair counts; without --runs their number is odd and takes half a second" {
    cat >outlier.sh <<END
#!/bin/sh
# Every fifth launch is three times as slow.
n=\$(cat count 2>/dev/null | wc -c)
[ \$((n % 5)) = 0 ] && us=30 || us=10
sleep 0.1
exec $fake --noise 0 --points a=\$us "\$@"
END
    chmod +x outlier.sh
    runs=3 gate --base ./outlier.sh --new-env X=1 --pairs 6
    [ "$(wc -c <count)" = 36 ]
    holds gate.json '(v["runs"], v["cells"][0]["base_us"], v["cells"][0]["ratio"]) == (3, 10, 1)'
    gate --base ./outlier.sh --new-env X=1 --pairs 6
    [ "$status" = 12 ]
    rm count
    run --separate-stderr "$ddpbench" gate -q --json gate.json --base "env X=1 ./outlier.sh" --new ./outlier.sh --pairs 5
    runs=$(json gate.json 'v["runs"]')
    [ $((runs % 2)) = 1 ] && [ "$runs" -le 5 ] # a run takes at least 0.1 s
    [ "$(wc -c <count)" = $((10 * runs)) ]
}

@test "a value with a comma: the hint says what to do, and it works" {
    gate --base "$fake" --new-env A=b,c --pairs 5
    [ "$status" = 64 ]
    error_names "'c'"
    hint_names "--new 'env K=a,b CMD'"
    gate --base "$fake" --new "env A=b,c $fake" --pairs 5
    [ "$status" != 64 ]
}

@test "the folder of the launches is in TMPDIR, and gone afterwards" {
    mkdir mine
    TMPDIR=$PWD/mine gate --base "$fake --points a=10" --new "sh -c 'echo {json} >where; $fake --points a=10 --json {json}'"
    [ "$status" = 0 ]
    [[ "$(cat where)" == "$PWD/mine/ddpbench-gate-"* ]]
    [ -z "$(ls mine)" ]
    TMPDIR=$PWD/none gate --base "$fake --points a=10" --new "$fake --points a=10"
    [ "$status" = 73 ]
    error_names "'$PWD/none'" "No such file or directory"
}

# there FILE: waits until the file exists.
there() {
    for _ in $(seq 500); do
        [ -s "$1" ] && return
        sleep 0.02
    done
    return 1
}

# gone PID: waits until the process has ended.
gone() {
    for _ in $(seq 500); do
        kill -0 "$1" 2>/dev/null || return 0
        sleep 0.02
    done
    return 1
}

@test "SIGHUP to a gate under nohup changes nothing" {
    cat >slow.sh <<END
#!/bin/sh
echo \$\$ >launch.pid
until [ -e go ]; do sleep 0.02; done
exec $fake --points a=10 "\$@"
END
    chmod +x slow.sh
    (trap '' HUP && exec "$ddpbench" gate -q --runs 1 --base ./slow.sh --new ./slow.sh --pairs 5 --json gate.json) >/dev/null 2>&1 3>&- &
    gate=$!
    there launch.pid
    kill -HUP "$gate"
    touch go
    wait "$gate" || false
    [ -s gate.json ]
}

@test "SIGTERM ends the gate and the launch it waits for" {
    cat >sleeper.sh <<'END'
#!/bin/sh
echo $$ >launch.pid
exec sleep 60
END
    chmod +x sleeper.sh
    "$ddpbench" gate -q --runs 1 --base ./sleeper.sh --new ./sleeper.sh --json gate.json >/dev/null 2>&1 3>&- &
    gate=$!
    for _ in $(seq 200); do
        [ -s launch.pid ] && break
        sleep 0.02
    done
    kill -TERM "$gate"
    rc=0
    wait "$gate" || rc=$?
    [ "$rc" = 143 ]
    ! kill -0 "$(cat launch.pid)" 2>/dev/null
}

@test "SIGINT after finished pairs: their ratios, without a verdict, in the table and in the document" {
    # the fifth run, which belongs to the third pair, waits for the signal
    cat >runs.sh <<'END'
#!/bin/sh
[ "$(wc -c 2>/dev/null <count)" != 4 ] || { echo waits >waits; exec sleep 60; }
exec "$@"
END
    chmod +x runs.sh
    (trap - INT; exec "$PYTHON" -c 'import os, signal, sys
signal.signal(signal.SIGINT, signal.SIG_DFL)
os.execv(sys.argv[1], sys.argv[1:])' "$ddpbench" gate -q --runs 1 --base "./runs.sh $fake" --new "./runs.sh $fake" \
        --json gate.json >out 2>err 3>&-) &
    gate=$!
    there waits
    kill -INT "$gate"
    rc=0
    wait "$gate" || rc=$?
    [ "$rc" = 130 ]
    grep -Eq '^a .* uncertain$' out
    file_says out partial "2 finished pairs"
    run ! grep -E 'PASS|FAIL|INCONCLUSIVE' out
    [ "$(json gate.json 'v["outcome"], v["pairs"], len(v["cells"]), v["cells"][0]["ratio"] > 0')" = "(None, 2, 1, True)" ]
}

@test "the advice names the option that was given; --pairs and --max-pairs contradict each other: 64" {
    gate --base "$fake --noise 25" --new "$fake --noise 25" --pairs 5
    [ "$status" = 12 ]
    says "larger --pairs"
    gate --base "$fake" --new "$fake" --pairs 6 --max-pairs 40
    [ "$status" = 64 ]
    error_names --pairs --max-pairs
}

@test "SIGKILL of the gate ends the launch, with its ranks, too; the next gate removes the folder it left" {
    mkdir mine
    cat >launch.sh <<'END'
#!/bin/sh
echo $$ >launch.pid
exec "$@"
END
    chmod +x launch.sh
    # shellcheck disable=SC2154
    command="./launch.sh '$ddpbench' allreduce --ranks 2 --size 4 -n 10000000 --json {json} -q"
    TMPDIR=$PWD/mine "$ddpbench" gate -q --base "$command" --new "$command" \
        >/dev/null 2>&1 3>&- &
    gate=$!
    there launch.pid
    launch=$(cat launch.pid)
    for _ in $(seq 500); do
        ranks=$(cat "/proc/$launch/task/$launch/children" 2>/dev/null || true)
        [ "$(wc -w <<<"$ranks")" -ge 2 ] && break
        sleep 0.02
    done
    [ "$(wc -w <<<"$ranks")" -ge 2 ]
    kill -KILL "$gate"
    wait "$gate" || true
    gone "$launch"
    for rank in $ranks; do
        gone "$rank"
    done
    left=$(echo mine/ddpbench-gate-*)
    [ -d "$left" ]
    echo '{}' >"$left/launch.json"
    echo '{' >"$left/.launch.json.ddpbench.tmp" # of a child that was killed while it wrote
    # folders with other files, and folders locked by a running gate, are kept
    mkdir mine/ddpbench-gate-other mine/ddpbench-gate-locked
    touch mine/ddpbench-gate-other/file
    flock mine/ddpbench-gate-locked sh -c 'echo locked >locked; exec sleep 60' 3>&- &
    holder=$!
    there locked
    TMPDIR=$PWD/mine gate --base "$fake --points a=10" --new "$fake --points a=10" --pairs 5
    [ "$status" = 0 ]
    kill "$holder"
    [ ! -e "$left" ]
    [ "$(ls mine | tr '\n' ' ')" = "ddpbench-gate-locked ddpbench-gate-other " ]
    [ -e mine/ddpbench-gate-other/file ]
}

@test "a launch over its time is ended: 13" {
    gate --base "sh -c 'sleep 60' {json}" --new "sh -c 'sleep 60' {json}" --launch-timeout 1
    [ "$status" = 13 ]
    error_names "sleep 60"
}

@test "JUnit, GitHub annotations and chart data are valid for their readers" {
    gate --base "$fake --points a=10,b=20" --new "$fake --points a=10,b=30" \
        --format "junit=j.xml,github=g.txt,action-smaller=s.json"
    [ "$status" = 10 ]
    "$PYTHON" - <<'END'
import json
import xml.etree.ElementTree as ET
suite = ET.parse("j.xml").getroot().find("testsuite")
assert suite.get("tests") == "2" and suite.get("failures") == "1", suite.attrib
failed = [c.get("name") for c in suite.iter("testcase") if c.find("failure") is not None]
assert failed == ["b"], failed
lines = open("g.txt").read().splitlines()
assert sum(line.startswith("::error ") for line in lines) == 1, lines
assert "b 1." in lines[0], lines
entries = json.load(open("s.json"))
assert {e["name"] for e in entries} == {"a", "b"}
assert all(isinstance(e["value"], float) and e["unit"] for e in entries)
END
}

@test "compare: stored results, labelled as weaker" {
    eval "$fake --points a=10,b=20 --noise 0 --json base.json"
    eval "$fake --points a=10,b=20 --noise 0 --json same.json"
    eval "$fake --points a=10,b=25 --noise 0 --json slow.json"
    eval "$fake --points a=10,b=25 --noise 0 --cpu other --json other.json"
    run "$ddpbench" compare base.json same.json
    [ "$status" = 0 ]
    [[ "$output" == *"STORED RESULTS"* ]]
    [[ "$output" != *nan* ]]
    [ "$(grep -Ec '^[ab] .* - +- not slower$' <<<"$output")" = 2 ]
    run "$ddpbench" compare base.json slow.json
    [ "$status" = 10 ]
    run "$ddpbench" compare base.json other.json
    [ "$status" = 76 ]
    run "$ddpbench" compare base.json absent.json
    [ "$status" = 66 ]
    run "$ddpbench" compare base.json
    [ "$status" = 64 ]
    sed 's/10/11/' base.json >bent.json
    run "$ddpbench" compare base.json bent.json
    [ "$status" = 65 ]
    [[ "$output" == *digest* ]]
}

@test "compare: a base that was cut off gives no PASS, and marks of a result are reported" {
    eval "$fake --points a=10 --noise 0 --status partial --json part.json"
    eval "$fake --points a=10,b=20 --noise 0 --label 'the new build' --json whole.json"
    eval "$fake --points a=15,b=20 --noise 0 --json slow.json"
    run "$ddpbench" compare part.json whole.json --json gate.json --format table
    [ "$status" = 12 ]
    grep -q '^# .*part.json (partial)' <<<"$output"
    grep -q '^# .*whole.json (the new build)' <<<"$output"
    grep -q '^INCONCLUSIVE: .*1 cell' <<<"$output"
    keep gate.json
    [ "$(json gate.json 'v["outcome"]')" = INCONCLUSIVE ]
    run "$ddpbench" compare part.json slow.json
    [ "$status" = 10 ]
    run "$ddpbench" compare whole.json part.json
    [ "$status" = 12 ]
}

@test "the id of a cell cannot inject a command of GitHub Actions" {
    for id in '::error::pwned' '##[error]pwned' ' ::error::pwned'; do
        eval "$fake --points '$id=10' --json hostile.json"
        run -65 "$ddpbench" compare hostile.json hostile.json
        error_names "'hostile.json'"
        gate --base "$fake --points a=10" --new "$fake --points '$id=10'"
        [ "$status" = 65 ]
        ! grep -E '^ *(::|##)' <<<"$output$stderr" || false
    done
}

@test "a real pair of runs" {
    command="'$ddpbench' allreduce --size 64K --ranks 2 -n 6 -q --placement in"
    gate --base "$command" --new "$command" --pairs 5
    [[ "$status" = 0 || "$status" = 10 || "$status" = 12 ]]
    [ "$(json gate.json 'v["cells"][0]["base_us"] > 0')" = True ]
}

@test "no memory for the arguments of a child process is an error" {
    cat >shim.c <<'END'
#include <stdlib.h>
#include <string.h>
char *strdup(const char *s) { return strcmp(s, "--json") == 0 ? NULL : strcpy(malloc(strlen(s) + 1), s); }
END
    cc -shared -fPIC -fno-builtin -o shim.so shim.c
    LD_PRELOAD=$PWD/shim.so "$ddpbench" --version >/dev/null 2>&1 || skip "nothing can be preloaded into this binary"
    LD_PRELOAD=$PWD/shim.so gate --base "$fake --points a=10" --new "$fake --points a=10"
    [ "$status" = 71 ]
}
