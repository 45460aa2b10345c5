#!/usr/bin/env bats
# `ddpbench isolate` on this host: healthy ranks are never DEGRADED, injected faults of a rank, a link and a
# host are named, and refusals. The delays are far above the noise of a busy machine.
# shellcheck disable=SC2154 # stderr is set by run --separate-stderr
bats_require_minimum_version 1.5.0

setup() {
    load ../helpers.bash
    bench_setup
}

teardown_file() {
    load ../helpers.bash
    validate_kept
}

# isolate ARGUMENT...: runs isolate, whose exit code is that of the verdict in the document i.json.
isolate() {
    run --separate-stderr timeout 100 "$ddpbench" isolate "$@" --json i.json
    keep i.json
    local code
    code=$(json i.json "{'HEALTHY': 0, 'DEGRADED': 10, 'CANNOT TELL': 12}[d['health']['verdict']]")
    [ "$status" = "$code" ] || { echo "exit $status, expected $code: $output $stderr"; return 1; }
    [ -z "$(grep -a '^ddpbench: error' <<<"$stderr")" ]
    says "$(json i.json "d['health']['verdict']"): "
}

# named EXPRESSION ARGUMENT...: isolate names only what the expression says about the findings f (place, rank,
# other rank). On a busy machine the times may scatter too much for a verdict, so there are 5 attempts.
named() {
    local expression=$1
    shift
    for _ in 1 2 3 4 5; do
        isolate "$@"
        [ "$status" -eq 12 ] || break
        holds i.json "d['health']['findings'] == []"
    done
    [ "$status" -eq 10 ]
    holds i.json "(lambda f: $expression)([(q['place'], q['rank'], q['to']) for q in d['health']['findings']])"
}

@test "two and three ranks: CANNOT TELL, and nothing is measured" {
    for ranks in 2 3; do
        isolate --ranks "$ranks"
        [ "$status" -eq 12 ]
        holds i.json "d['status'] == 'complete' and d['health']['rounds'] == 0 and d['health']['passes'] is None"
    done
}

@test "four healthy ranks are never DEGRADED" {
    for collective in all_to_all allreduce; do
        isolate --ranks 4 --max-time 1 --collective "$collective"
        [ "$status" -ne 10 ]
        holds i.json "d['health']['rounds'] >= 3 and d['health']['group_ends'] == 2 and d['health']['findings'] == []"
        holds i.json "d['health']['collective'] == '$collective' and d['matrix'] is None and d['health']['ranks'] == []"
        holds i.json "[p['figure'] for p in d['health']['power']] == ['collective']"
    done
    run -0 "$ddpbench" show i.json
    says "$(json i.json "d['health']['verdict']")"
}

@test "--inject-delay: the rank is named" {
    named "f == [('unit', 2, None)]" --ranks 4 --inject-delay 200@2
    holds i.json "d['health']['findings'][0]['value'] >= 200 and not d['health']['findings'][0]['of_host'] and '200 ms' in d['note']"
    says "rank 2"
    run -0 "$ddpbench" show i.json
    says "rank 2"
    run -0 "$ddpbench" report i.json -o page.html
    file_says page.html "rank 2"
}

@test "--inject-delay: the link is named" {
    named "[(p, {a, b}) for p, a, b in f] == [('link', {1, 3})]" --ranks 5 --inject-delay 200@1-3
}

@test "--inject-delay: the simulated host of the rank is named by its lowest rank" {
    export DDPBENCH_SIMULATE_HOSTS=4
    named "f == [('unit', 4, None)]" --ranks 8 --inject-delay 200@5
    holds i.json "d['health']['findings'][0]['of_host']"
}

@test "--rounds and --max-time end a search: CANNOT TELL" {
    isolate --ranks 4 --rounds 1
    [ "$status" -eq 12 ]
    holds i.json "d['health']['rounds'] == 1"
    isolate --ranks 6 --max-time 0.001
    [ "$status" -eq 12 ]
    holds i.json "d['health']['rounds'] == 1"
}

@test "one rank, formats without a verdict, and illegal delays are refused" {
    refused 64 "2 ranks" -- isolate --ranks 1
    refused 64 csv isolate -- isolate --ranks 4 --format csv
    refused 64 extra -- isolate extra
    refused 64 "one number" -- isolate --ranks 2,4
    for delay in 5 5@ @2 0@2 5@2-2 5@-1 5@2-3x 5@2-; do
        refused 64 inject-delay -- isolate --ranks 4 --inject-delay "$delay"
    done
    refused 64 inject-delay "0 to 3" -- isolate --ranks 4 --inject-delay 5@4
    echo '{"runs": [{"command": "isolate", "ranks": 4}]}' >sweep.json
    refused 78 isolate -- sweep sweep.json
}
