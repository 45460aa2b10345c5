#!/usr/bin/env bats
# Tests ci/results_tables.py: the committed tables agree with their files, and every disagreement, wrong
# marker, missing file and doubtful point is reported.
# shellcheck disable=SC2154 # ddpbench, root: helpers.bash
bats_require_minimum_version 1.5.0

setup() {
    load ../helpers.bash
    bench_setup
    export PYTHONDONTWRITEBYTECODE=1
    mkdir -p t/results
    : >t/README.md
    : >t/results/README.md
}

tables() { # OPTION...: runs the script on the pages below t
    run --separate-stderr "$PYTHON" "$root/ci/results_tables.py" --root t "$@"
}

marker() { # PAGE WORD...: appends an empty table to a page
    printf '%s\n' "<!-- results-table ${*:2} -->" '<!-- end of results-table -->' >>"t/$1"
}

refuses() { # SUBJECT...: the script fails, and stderr names every SUBJECT
    tables --check
    [ "$status" = 1 ] && names "stderr" "$stderr" "$@"
}

measured() { # FILE EXPRESSION: a small document d, changed by a Python statement, as results/FILE
    [ -e small.json ] || "$ddpbench" allreduce --ranks 2 --size 8,4K -n 20 --placement in --json small.json -q >/dev/null
    "$PYTHON" - "t/results/$1" "$2" <<'PY'
import json, sys
d = json.load(open("small.json"))
for point in d["points"]:
    point["quality"] = []
exec(sys.argv[2])
json.dump(d, open(sys.argv[1], "w"))
PY
}

@test "the committed tables agree with their files, and the documents are valid" {
    mkdir copy
    cp "$root/README.md" copy
    cp -r "$root/results" copy
    "$PYTHON" "$root/ci/results_tables.py" --root copy
    diff -r "$root/README.md" copy/README.md
    diff -r "$root/results" copy/results
    [ "$(grep -c "^<!-- results-table " copy/README.md)" -ge 1 ]
    mapfile -t documents < <(grep -l '"schema": *"ddpbench/1"' "$root"/results/*.json)
    [ "${#documents[@]}" -ge 2 ]
    valid "${documents[@]}"
    run ! grep -nE '"/(work|root|home)/' "${documents[@]}"
}

@test "a table that disagrees with its file is reported, and rewritten" {
    measured small.json 'd["points"][0]["time_us"]["median"] = 1.25'
    marker README.md bandwidth results/small.json
    refuses README.md
    tables
    [ "$status" = 0 ]
    file_says t/README.md '| 8 B |' '| 1.25 |'
    tables --check
    [ "$status" = 0 ] && [ -z "$output" ]
    measured small.json 'd["points"][0]["time_us"]["median"] = 1.26'
    cp t/README.md before
    tables --check
    [ "$status" = 1 ]
    [ "$(grep -c '^-.* 1.25 ' <<<"$output")/$(grep -c '^+.* 1.26 ' <<<"$output")" = 1/1 ]
    cmp t/README.md before # --check writes nothing
    tables
    sed -i 's/ 1.26 / 1.20 /' t/README.md
    refuses README.md
}

@test "a marker that names a missing file, another folder, no kind, or has no end is an error" {
    marker results/README.md bandwidth results/gone.json
    refuses results/README.md results/gone.json
    marker README.md bandwidth ../small.json
    refuses ../small.json results/gone.json
    : >t/README.md
    : >t/results/README.md
    measured small.json pass
    marker README.md speeds results/small.json
    refuses speeds
    echo '<!-- results-table bandwidth results/small.json -->' >t/README.md
    refuses README.md:1
    : >t/README.md
    marker README.md bandwidth results/small.json sizes=8,2K
    refuses results/small.json '2 KiB'
    : >t/README.md
    echo '{"schema": "ddpbench/1", "points": [{}]}' >t/results/small.json
    marker README.md bandwidth results/small.json
    refuses results/small.json
    echo '{"points": []}' >t/results/small.json
    refuses results/small.json
}

@test "a document without a table is an error, and a document that does not exist yet is named" {
    tables --check
    [ "$status" = 0 ]
    names "stderr" "$stderr" results/quick.json results/bandwidth.json results/convergence.json
    measured bandwidth.json pass
    refuses results/bandwidth.json
    marker README.md bandwidth results/bandwidth.json # results/README.md must have it as well
    tables
    refuses results/bandwidth.json
    marker results/README.md bandwidth results/bandwidth.json
    tables
    [ "$status" = 0 ]
    tables --check
    [ "$status" = 0 ]
}

@test "tables show doubtful points and documents that are not complete" {
    marker README.md collectives results/small.json
    marker README.md bandwidth results/small.json
    measured small.json pass
    tables
    run ! grep -q 'doubtful\|busy' t/README.md
    measured small.json 'd["points"][0]["quality"] = ["wide-interval", "busy"]; d["points"][1]["quality"] = ["busy"]'
    tables
    [ "$(grep -c '^2 of 2 points .*busy (2), wide-interval (1)' t/README.md)" = 2 ]
    grep -q '^| allreduce .* busy; wide-interval (8 B) |$' t/README.md
    grep -q '^| 8 B .* busy; wide-interval |$' t/README.md
    grep -q '^| 4 KiB .* busy |$' t/README.md
    run ! grep -q 'partial' t/README.md
    measured small.json 'd["status"] = "partial"; d["reason"] = "rank 1 was lost"; [p.pop("quality") for p in d["points"]]'
    tables
    [ "$(grep -c '\*\*partial\*\*: rank 1 was lost' t/README.md)" = 2 ]
    grep -q '^| 8 B .* unknown |$' t/README.md
}

@test "convergence.json on made data: an interrupted sweep keeps finished runs; ten strategies in the table" {
    "$PYTHON" - "$root/configs/convergence.json" <<'PY'
import json, sys
config = json.load(open(sys.argv[1]))
(run,) = config["runs"]
run.update({"dataset": "synthetic", "images": 128, "epochs": 1})
json.dump(config, open("c.json", "w"))
PY
    sweep=("$ddpbench" sweep c.json --json t/results/convergence.json --journal j -q)
    "${sweep[@]}" >/dev/null
    seconds='{(t["seed"], t["sync"]["strategy"]): t["epochs"][0]["seconds"] for t in d["train"]}'
    "$PYTHON" -c "import json; d = json.load(open('t/results/convergence.json')); json.dump([[*k, v] for k, v in $seconds.items()], open('whole', 'w'))"
    awk '{ print } /"kind": "end"/ && ++n == 26 { exit }' j >finished # 26 of 30 runs are finished
    mv finished j
    rm t/results/convergence.json
    "${sweep[@]}" >/dev/null
    valid t/results/convergence.json
    [ "$("$PYTHON" -c "
import json
d, whole = json.load(open('t/results/convergence.json')), json.load(open('whole'))
now = $seconds
print(len(now), sum(now[seed, sync] == seconds for seed, sync, seconds in whole) >= 26)")" = "30 True" ]
    marker results/README.md strategies results/convergence.json
    tables
    [ "$status" = 0 ]
    for strategy in dense fp16 bf16 topk:0.01 topk:0.001 threshold:0.028 oktopk:0.01 partial:4 local:4 none; do
        [ "$(grep -c "^| $strategy | 3 | 0\.[0-9]* (0\.[0-9]* to 0\.[0-9]*) |" t/results/README.md)" = 1 ] || { cat t/results/README.md; false; }
    done
    file_says t/results/README.md 'singa-cnn on synthetic' 'seeds 1, 2, 3'
}
