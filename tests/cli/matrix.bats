#!/usr/bin/env bats
# `ddpbench matrix`: its document, the table in a pipe, the heat map on a terminal, `show`, and refusals.
# shellcheck disable=SC2154 # stderr is set by run --separate-stderr
bats_require_minimum_version 1.5.0

setup() {
    load ../helpers.bash
    bench_setup
    short=(-n 6 --max-time 0.05 --size 64K)
}

teardown_file() {
    load ../helpers.bash
    validate_kept
}

# square KEY: all values of the matrix off the diagonal are positive, and those on it are null.
square() {
    [ "$(json m.json "all((v is None) == (i == j) and (i == j or v > 0) for i, row in enumerate(d['matrix']['$1']) for j, v in enumerate(row))")" = True ]
}

@test "every pair has a latency and three bandwidths, and the document is valid" {
    for ranks in 2 3 4; do
        ok matrix --ranks $ranks "${short[@]}" --json m.json
        keep m.json
        for key in latency_us GBps both_GBps; do square $key; done # with few repetitions there is no interval
        [ "$(json m.json "len(d['matrix']['ends']), d['matrix']['by'], d['matrix']['message_bytes'], d['matrix']['rounds'] == d['matrix']['all_rounds']")" = \
            "($ranks, 'rank', 65536, True)" ]
        [ "$(grep -c '^ *[0-9]' <<<"$output")" = $((ranks * (ranks - 1))) ]
    done
}

@test "by host: the lowest rank of each host; --launch threads" {
    DDPBENCH_SIMULATE_HOSTS=1+2+1 ok matrix --ranks 4 --by host "${short[@]}" --json m.json
    [ "$(json m.json "[e['rank'] for e in d['matrix']['ends']], d['matrix']['by']")" = "([0, 1, 3], 'host')" ]
    square GBps
    ok matrix --ranks 2 --launch threads "${short[@]}" --json m.json
    square GBps
}

@test "--rounds: some rounds, drawn by the seed; the others are null, and the table says so" {
    ok matrix --ranks 6 --rounds 2 "${short[@]}" --json m.json
    [ "$(json m.json "sum(v is not None for row in d['matrix']['GBps'] for v in row)")" = 12 ]
    says "2 of 5 rounds"
    ok matrix --ranks 6 --rounds 2 "${short[@]}" --json again.json
    [ "$(json m.json "[[v is None for v in row] for row in d['matrix']['GBps']]")" = "$(json again.json "[[v is None for v in row] for row in d['matrix']['GBps']]")" ]
}

@test "show prints the stored matrix again; formats that cannot show it are refused" {
    ok matrix --ranks 3 "${short[@]}" --json m.json
    grep '^ *[0-9]\|^# slowest\|^# median' <<<"$output" >printed
    ok show m.json
    grep '^ *[0-9]\|^# slowest\|^# median' <<<"$output" | diff - printed
    refused 64 csv matrix -- show m.json --format csv
    refused 64 junit matrix -- matrix --ranks 2 --format junit=m.xml
    edit() { "$PYTHON" -c "import json; d = json.load(open('m.json')); $1; json.dump(d, open('e.json', 'w'))"; }
    edit "d['matrix']['GBps'][1].pop()"
    refused 65 matrix.GBps -- show --edited e.json
}

@test "on a terminal: a heat map that fits, in numbers or in digits" {
    "$PYTHON" "$root/tests/terminal.py" --columns 60 -- "$ddpbench" matrix --ranks 4 "${short[@]}" -q >screen
    [ "$(grep -cE '^ +[0-3]( +([0-9.]+)){4}$' screen)" = 4 ]
    "$PYTHON" "$root/tests/terminal.py" --columns 40 -- "$ddpbench" matrix --ranks 7 "${short[@]}" -q >screen
    [ "$(grep -cE '^ +[0-6] [0-9.]{7}$' screen)" = 7 ]
    run grep -E '^.{41,}' screen
    [ -z "$output" ]
}

@test "one rank, several rank counts, arguments and GPUs are refused" {
    refused 64 "2 ranks" -- matrix --ranks 1
    refused 64 "number of ranks" -- matrix --ranks 2,3
    refused 64 extra -- matrix extra
    echo '{"runs": [{"command": "matrix", "ranks": 2}]}' >sweep.json
    refused 78 matrix -- sweep sweep.json
    refused 69 -- matrix --backend nccl
}

@test "Ctrl-C: the document is partial and has no matrix" {
    run -130 timeout --preserve-status -s INT 1 "$ddpbench" matrix --ranks 3 --max-time 5 -n 1000 --size 16M --json m.json
    says interrupted m.json
    keep m.json
    [ "$(json m.json "d['status'], d['matrix']")" = "('partial', None)" ]
}
