#!/usr/bin/env bats
# Cells that --vary matches, machines that can be compared, ratios across machines, edited results.
# shellcheck disable=SC2154 # ddpbench, root, stderr: helpers.bash, bats
bats_require_minimum_version 1.5.0

setup() {
    load ../helpers.bash
    gate_setup
    fake="$launch --noise 0"
}

# The document of a verdict, which a test leaves behind, is valid.
teardown() {
    [ ! -e gate.json ] || keep gate.json
}

# id ALGORITHM [BYTES]: the id of a point.
id() { echo "allreduce/shm/$1/f32/sum/r0/in/registered/n2/${2:-4096}/none/0"; }

# make FILE OPTION...: writes a result document.
make_result() { eval "$fake --json $1 ${*:2}"; }

teardown_file() {
    load ../helpers.bash
    validate_kept
}

@test "gate --vary matches cells that differ in a key, and records the key" {
    run --separate-stderr "$ddpbench" gate -q --runs 1 --json gate.json --format table,markdown=out.md --vary algorithm \
        --base "$fake --points $(id auto)=10,$(id auto 8192)=20" --new "$fake --points $(id ring)=15,$(id ring 8192)=20"
    echo "$status: $output $stderr"
    [ "$status" = 10 ]
    [[ $output == *"# varied"*": algorithm"* ]]
    file_says out.md "varied" "algorithm"
    [ "$(verdict '[c["id"] for c in v["cells"]], [c["state"] for c in v["cells"]], v["varied"], v["unjudged"]')" = \
        "(['$(id '*')', '$(id '*' 8192)'], ['slower', 'same'], ['algorithm'], [])" ]
    run --separate-stderr "$ddpbench" gate -q --runs 1 --json gate.json --pairs 6 \
        --base "$fake --points $(id auto)=10" --new "$fake --points $(id ring)=10"
    [ "$status" = 12 ]
    [ "$(verdict 'v["cells"][0]["state"], v["varied"]')" = "('missing', [])" ]
}

@test "gate --vary ranks,backend allows them to differ; other machines stay refused" {
    local new="--ranks 4 --backend mpi --mpi MPICH"
    points="--points $(id ring)=10"
    run -76 "$ddpbench" gate -q --runs 1 --pairs 6 --base "$fake $points" --new "$fake $points $new"
    hint_names --vary
    run -76 "$ddpbench" gate -q --runs 1 --pairs 6 --vary ranks --base "$fake $points" --new "$fake $points $new"
    run -0 "$ddpbench" gate -q --runs 1 --pairs 6 --vary ranks,backend --base "$fake $points" --new "$fake $points $new"
    run -76 "$ddpbench" gate -q --runs 1 --pairs 6 --vary ranks,backend --base "$fake $points" --new "$fake $points --cpu y"
    error_names "'y'" || error_names "CPU y"
    run -76 "$ddpbench" gate -q --runs 1 --pairs 6 --vary ranks,backend --base "$fake $points" --new "$fake $points --host other"
    error_names other
}

@test "two points of one document that become the same cell are named: 64" {
    points="--points $(id auto)=10,$(id ring)=10"
    run -64 "$ddpbench" gate -q --runs 1 --vary algorithm --base "$fake $points" --new "$fake $points"
    error_names "$(id auto)" "$(id ring)" algorithm
    make_result twice.json "$points"
    run -64 "$ddpbench" compare --vary algorithm twice.json twice.json
    error_names "$(id auto)" "$(id ring)" algorithm twice.json
    run -0 "$ddpbench" compare --vary memory,dtype twice.json twice.json
    make_result other.json --points a=1
    run -64 "$ddpbench" compare --vary algorithm other.json other.json
    error_names "'a'" other.json
}

@test "an unknown key is refused with the legal ones; a self-test has no keys" {
    for command in "gate --base x --new y" "compare a b"; do
        # shellcheck disable=SC2086 # words
        run -64 "$ddpbench" $command --vary algoritm
        message_names algoritm "'algorithm'"
    done
    run -64 "$ddpbench" gate --selftest --vary ranks
    error_names --vary --selftest
}

@test "compare: host names, builds and minor kernel versions may differ; the other facts may not" {
    facts="--points $(id ring)=10 --usable-cores 4 --kernel 6.8.0-1 --mpi none"
    make_result base.json "$facts --host runner-1"
    for same in "$facts --host runner-2" "$facts --kernel 6.11.0"; do
        make_result new.json "$same"
        compare base.json new.json
        [ "$status" = 0 ]
    done
    for differs in "CPU --cpu y" "cores --usable-cores 2" "kernel --kernel 5.15" "MPI --mpi MPICH" "ranks --ranks 4" \
        "backend --backend mpi"; do
        make_result new.json "$facts ${differs#* }"
        compare base.json new.json
        [ "$status" = 76 ]
        error_names "${differs%% *}"
        hint_names --across
    done
    # A fact that one result lacks is not assumed to be equal.
    make_result new.json --points "$(id ring)=10" --usable-cores 4 --mpi none
    compare base.json new.json
    [ "$status" = 76 ]
    error_names kernel unknown
    compare new.json new.json
    [ "$status" = 0 ]
    make_result new.json "$facts --ranks 4 --backend mpi --mpi MPICH"
    compare --vary ranks base.json new.json
    [ "$status" = 76 ]
    error_names backend
    compare --vary ranks,backend base.json new.json
    [ "$status" = 0 ]
    [ "$(verdict 'v["fingerprint"], v["varied"]')" = "('CPU x; usable cores 4; kernel 6', ['backend', 'ranks'])" ]
}

@test "compare --across: ratios with intervals and differences, no verdict, exit 0" {
    make_result a.json --points a=10,b=20 --usable-cores 4
    make_result b.json --points a=20,c=5 --cpu y --host other --usable-cores 4
    make_result c.json --points a=5,b=20 --ranks 4 --status partial --usable-cores 4
    compare --across a.json b.json c.json
    [ "$status" = 0 ]
    [[ $output != *PASS* && $output != *FAIL* && $output != *INCONCLUSIVE* && $output != *nan* ]]
    says "c.json (partial)" CPU "'y'" "'x'" "'other'" "'h'" verdict
    [ "$(grep -Ec '^a  +1 +10.00 +20.00 +2.000 +1.960 +2.040$' <<<"$output")" = 1 ]
    [ "$(grep -Ec '^b  +1 +20.00 +- +- +- +-$' <<<"$output")" = 1 ]
    [ "$(grep -Ec '^c  +1 +- +5.000 +- +- +-$' <<<"$output")" = 1 ]
    file_says out.md "| \`a\` | 2 | 10.00 | 5.00 | 0.500 | 0.490 | 0.510 |" "differs in ranks: \`4\`"
    [ "$(verdict 'v["kind"], v["outcome"], v["cells"], len(v["across"]["ratios"]), len(v["across"]["documents"])')" = \
        "('across', None, [], 5, 3)" ]
    [ "$(verdict '[(d["document"], d["key"]) for d in v["across"]["differences"]]')" = \
        "[(1, 'CPU'), (1, 'host names'), (2, 'ranks')]" ]
    run -0 "$ddpbench" compare --across a.json b.json --format junit=j.xml,github,jsonl=l.jsonl,action-smaller=s.json
    "$PYTHON" -c 'import xml.etree.ElementTree as e; e.parse("j.xml")'
    says "::notice"
    run -64 "$ddpbench" compare --across a.json
    run -64 "$ddpbench" compare a.json b.json c.json
    run -64 "$ddpbench" compare --across a.json b.json --min-effect 5
    error_names --min-effect
    run -64 "$ddpbench" compare --across a.json b.json --accuracy-margin 0.02
    error_names --accuracy-margin
    run -65 "$ddpbench" compare --across a.json a.json /dev/null
    run -64 "$ddpbench" compare --across a.json b.json --json b.json
}

@test "compare --edited accepts a changed result and says so; without it 65" {
    make_result a.json --points a=10
    sed 's/"commit": "c"/"commit": "mine"/' a.json >b.json
    compare a.json b.json
    [ "$status" = 65 ]
    error_names b.json digest
    hint_names --edited
    compare --edited a.json b.json
    [ "$status" = 0 ]
    says "b.json (edited)" "new was changed"
    file_says out.md "b.json (edited)"
    [ "$(verdict 'v["base"]["edited"], v["new"]["edited"], "new was changed" in v["reason"]')" = "(False, True, True)" ]
    "$PYTHON" -c 'import json; d = json.load(open("a.json")); del d["digest"]; json.dump(d, open("none.json", "w"))'
    compare none.json a.json
    [ "$status" = 65 ]
    compare --across --edited none.json a.json
    [ "$status" = 0 ]
    [ "$(verdict '[d["edited"] for d in v["across"]["documents"]]')" = "[True, False]" ]
    sed 's/"median": 10/"median": 99/' a.json >wrong.json # figures that contradict each other stay refused
    compare --edited a.json wrong.json
    [ "$status" = 65 ]
    error_names wrong.json
}

@test "compare of 100,000 cells takes seconds, not minutes" {
    "$PYTHON" - "$BATS_TEST_DIRNAME" <<'END'
import json, subprocess, sys
subprocess.run([sys.executable, sys.argv[1] + "/fake_launch.py", "--json", "one.json"], check=True)
d = json.load(open("one.json"))
p = d["points"][0]
d["points"] = [p | {"id": f"{(i * 7919) % 100000:0150d}"} for i in range(100000)]
json.dump(d, open("many.json", "w"))
END
    run -0 timeout 120 "$ddpbench" compare --edited many.json many.json --json gate.json
    [ "$("$PYTHON" -c 'import json; print(len(json.load(open("gate.json"))["verdict"]["cells"]))')" = 100000 ]
}
