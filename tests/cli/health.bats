#!/usr/bin/env bats
# `ddpbench health` on this host: its document, the exit code of each verdict, --reference, `show`, and refusals.
# shellcheck disable=SC2154 # stderr is set by run --separate-stderr
bats_require_minimum_version 1.5.0

setup() {
    load ../helpers.bash
    bench_setup
    short=(--ranks 2 --max-time 0.5)
}

teardown_file() {
    load ../helpers.bash
    validate_kept
}

# health ARGUMENT...: runs health, whose exit code is that of the verdict in the document h.json.
health() {
    run --separate-stderr timeout 100 "$ddpbench" health "${short[@]}" "$@" --json h.json
    keep h.json
    local code
    code=$(json h.json "{'HEALTHY': 0, 'DEGRADED': 10, 'CANNOT TELL': 12}[d['health']['verdict']]")
    [ "$status" = "$code" ] || { echo "exit $status, expected $code: $output $stderr"; return 1; }
    [ -z "$(grep -a '^ddpbench: error' <<<"$stderr")" ]
    says "$(json h.json "d['health']['verdict']"): "
}

@test "two simulated hosts: the document has the matrix, the ranks and a verdict" {
    export DDPBENCH_SIMULATE_HOSTS=2
    health
    holds h.json "d['status'] == 'complete' and len(d['health']['ranks']) == 2 and d['matrix']['by'] == 'host'"
    holds h.json "all(q['compute_ms'] > 0 for q in d['health']['ranks']) and d['health']['passes'] >= 3"
    holds h.json "len(d['health']['power']) == 5 and d['matrix']['both_GBps'][0][1] is None"
    # two hosts have no third one to compare with
    holds h.json "d['health']['power'][0]['host_factor'] is None and d['health']['verdict'] != 'HEALTHY'"
    run -0 "$ddpbench" show h.json
    says "$(json h.json "d['health']['verdict']")"
    run -0 "$ddpbench" report h.json -o page.html
    file_says page.html "$(json h.json "d['health']['verdict']"): "
}

@test "--reference: a run that is far slower than its reference is DEGRADED" {
    health
    grep -qE '(a|slow) rank .*would be found' <<<"$output" # on one host, ranks are compared
    run ! grep -E '(a|slow) host .*would be found' <<<"$output"
    "$PYTHON" -I - "$root/ci" <<'PY'
import json, sys
sys.path.insert(0, sys.argv[1])
from canonical_json import canonical_digest
d = json.load(open("h.json"))
d["matrix"]["GBps"] = [[v and v * 1e250 for v in row] for row in d["matrix"]["GBps"]]
d["health"].update(verdict="CANNOT TELL", findings=[])
d["digest"] = canonical_digest(d)
json.dump(d, open("fast.json", "w"))
d["world"]["backend"] = "ucx"
d["digest"] = canonical_digest(d)
json.dump(d, open("other.json", "w"))
PY
    health --reference fast.json
    holds h.json "d['health']['verdict'] == 'DEGRADED' and d['health']['reference'] == 'fast.json'"
    holds h.json "any(f['figure'] == 'bandwidth' and f['from_reference'] and f['factor'] > 5 for f in d['health']['findings'])"
    says reference
    cp h.json bad.json
    refused 64 bad.json -- health "${short[@]}" --reference bad.json
    refused 76 fast.json -- health --ranks 2 --size 32K --reference fast.json
    refused 76 other.json "backend ucx" -- health "${short[@]}" --reference other.json
    refused 64 fast.json -- health "${short[@]}" --reference fast.json --json fast.json
}

@test "a document of another command, one rank, and formats without a matrix are refused" {
    ok matrix --ranks 2 -n 3 --max-time 0.01 --size 1K --json m.json
    refused 65 m.json -- health "${short[@]}" --reference m.json
    refused 66 none.json -- health "${short[@]}" --reference none.json
    refused 64 "2 ranks" -- health --ranks 1
    refused 64 csv health -- health "${short[@]}" --format csv
    refused 64 extra -- health extra
    refused 64 "--exit-code" launcher -- health --hosts a,b --exit-code host
    refused 64 "--exit-code" launcher -- health "${short[@]}" --exit-code host
    echo '{"runs": [{"command": "health", "ranks": 2}]}' >sweep.json
    refused 78 health -- sweep sweep.json
}
