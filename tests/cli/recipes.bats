#!/usr/bin/env bats
# The recipes of cmd/README.md: each test runs the fenced commands below a heading, and checks what they
# print with values that it takes from the documents by itself.
# shellcheck disable=SC2154 # root, ddpbench, status, output: helpers.bash, bats
bats_require_minimum_version 1.5.0

# fenced HEADING LANGUAGE: prints the code in this language below a heading of the page.
fenced() {
    awk -v heading="$1" -v fence="\`\`\`$2" '/^#/ && !code { here = $0 == heading } here && $0 == fence { code = 1; next }
        /^```/ { code = 0 } here && code' "$BATS_TEST_DIRNAME/../../cmd/README.md"
}

# folder DIR: prepares a folder in which the commands of the page find build/ddpbench and results/.
folder() {
    local top=$BATS_TEST_DIRNAME/../..
    mkdir -p "$1/build"
    ln -s "$(realpath "$top/results")" "$1/results"
    ln -s "$(realpath -s "${DDPBENCH:-$top/build/ddpbench}")" "$1/build/ddpbench"
}

# Runs the commands that write the documents.
setup_file() {
    folder "$BATS_FILE_TMPDIR"
    cd "$BATS_FILE_TMPDIR" || return
    fenced '## Recipes' sh >documents.sh
    timeout 120 bash -e documents.sh >log 2>&1 || { cat log; return 1; }
}

setup() {
    load ../helpers.bash
    bench_setup
    cd "$BATS_FILE_TMPDIR" || return
}

# recipe HEADING: runs the shell commands of a recipe.
recipe() {
    fenced "### $1" sh >recipe.sh
    [ -s recipe.sh ] || { echo "no recipe '$1'"; return 1; }
    run --separate-stderr bash -e -o pipefail recipe.sh
    [ "$status" = 0 ] && [ -z "$stderr" ] || { echo "$1: exit $status: $output $stderr"; return 1; }
}

# pandas_recipe HEADING: runs the Python code of a recipe, or skips the test without pandas.
pandas_recipe() {
    "$PYTHON" -c 'import pandas' 2>/dev/null || skip "no pandas, which make readers installs"
    fenced "### $1" python >recipe.py
    [ -s recipe.py ] || { echo "no recipe '$1'"; return 1; }
    run --separate-stderr "$PYTHON" recipe.py
    [ "$status" = 0 ] || { echo "$1: exit $status: $output $stderr"; return 1; }
}

# table FILE EXPRESSION: prints rows, computed from the document by the expression of json, like @tsv.
table() {
    json "$1" "'\n'.join('\t'.join(map(str, row)) for row in $2)"
}

# same EXPECTED: the output has these lines; numbers may have another precision.
same() {
    "$PYTHON" - "$1" "$output" <<'PY' || { printf 'expected:\n%s\nprinted:\n%s\n' "$1" "$output"; return 1; }
import math, sys
def number(text):
    try:
        return float(text)
    except ValueError:
        return None
def equal(a, b):
    return a == b or None not in (number(a), number(b)) and math.isclose(number(a), number(b), rel_tol=1e-4)
want, got = ([line.split() for line in text.splitlines()] for text in sys.argv[1:])
sys.exit(not (want and len(want) == len(got) and all(
    len(a) == len(b) and all(map(equal, a, b)) for a, b in zip(want, got))))
PY
}

@test "The best bandwidth of each size" {
    recipe "$BATS_TEST_DESCRIPTION"
    same "$(table results/quick.json '[[*k] + [max((q for q in p if q["busbw_GBps"] and (q["collective"], q["size_bytes"]) == k),
        key=lambda q: q["busbw_GBps"])[x] for x in ("busbw_GBps", "ranks", "dtype", "algorithm_used")]
        for k in sorted({(q["collective"], q["size_bytes"]) for q in p if q["busbw_GBps"]})]')"
}

@test "A table of medians with their intervals" {
    recipe "$BATS_TEST_DESCRIPTION"
    same "size_bytes place median_us from_us to_us
$(table a.json '[[q["size_bytes"], q["placement"], q["time_us"]["median"], *q["time_us"]["ci95"]] for q in p]')"
    # without an interval
    cp a.json all.json
    build/ddpbench allreduce --ranks 2 --size 4 --placement in -n 5 --json a.json >log 2>&1
    recipe "$BATS_TEST_DESCRIPTION"
    mv all.json a.json
    [ "${#lines[@]}" = 2 ] && [[ ${lines[1]} == $'4\tin\t'*$'\t-\t-' ]]
}

@test "Two runs side by side" {
    recipe "$BATS_TEST_DESCRIPTION"
    paste <(table a.json '[[q["id"], q["time_us"]["median"]] for q in p]') <(table b.json '[[q["id"], q["time_us"]["median"]] for q in p]') |
        awk '$1 == $3 { print $1, $2, $4, $4 / $2 }' >expected
    [ "$(wc -l <expected)" = 12 ]
    same "$(cat expected)"
}

@test "The doubtful points" {
    recipe "$BATS_TEST_DESCRIPTION"
    same "$(table results/quick.json '[[q["id"], ", ".join(q["quality"])] for q in p if q["quality"]]')"
}

@test "Accuracy over seconds" {
    recipe "$BATS_TEST_DESCRIPTION"
    output=$(tr -d '"' <accuracy.csv | tr , ' ')
    same "strategy seed epoch seconds accuracy
$(table train.json '[[r["sync"]["strategy"], r["seed"], e["epoch"], sum(f["seconds"] for f in r["epochs"][: e["epoch"]]), e["eval_accuracy"]]
    for r in t if not r["baseline"] for e in r["epochs"]]')"
}

@test "CSV with pandas" {
    pandas_recipe "$BATS_TEST_DESCRIPTION"
    output=$(tail -n +4 <<<"$output")
    same "$(table a.json '[[s] + [f(next(q for q in p if q["size_bytes"] == s and q["placement"] == x))
        for f in (lambda q: q["time_us"]["median"], lambda q: q["busbw_GBps"]) for x in ("in", "out")]
        for s in sorted({q["size_bytes"] for q in p})]')"
}

@test "Documents with pandas" {
    pandas_recipe "$BATS_TEST_DESCRIPTION"
    # The name of the strategy stands only in its first row.
    output=$(tail -n +3 <<<"$output" | sed -E 's/^(dense|topk:0.1)? +//')
    same "$(table train.json '[[i + 1, sum(sum(e["seconds"] for e in r["epochs"][: i + 1]) for r in t if r["sync"]["strategy"] == s and not r["baseline"]) / 2,
        sum(r["epochs"][i]["eval_accuracy"] for r in t if r["sync"]["strategy"] == s and not r["baseline"]) / 2] for s in ("dense", "topk:0.1") for i in range(3)]')"
}

@test "Exit codes in CI" {
    folder ci
    fenced "### $BATS_TEST_DESCRIPTION" sh | sed '/^jq/,$d' >ci/recipe.sh
    fenced "### $BATS_TEST_DESCRIPTION" sh | sed -n '/^jq/,$p' >ci/jq.sh
    cd ci
    local fake=("$PYTHON" -S -E "$root/tests/gate/fake_launch.py" --noise 0)
    "${fake[@]}" --points a=10,b=10 --json a.json
    while read -r code points word; do
        "${fake[@]}" --points "$points" --json b.json
        XDG_STATE_HOME=$PWD run bash -e recipe.sh
        [ "$status" = "$code" ] && says b.json "$word" || { echo "$points: exit $status: $output"; return 1; }
    done <<<$'0 a=10,b=10 not slower\n1 a=20,b=10 is slower\n0 a=10 do not tell'
    rm b.json
    XDG_STATE_HOME=$PWD run bash -e recipe.sh
    [ "$status" = 66 ]
    echo '{"points": [{"quality": []}, {"quality": []}]}' >a.json
    run bash jq.sh
    [ "$status" = 0 ]
    echo '{"points": [{"quality": []}, {"quality": ["busy"]}]}' >a.json
    run bash jq.sh
    [ "$status" = 1 ]
}

@test "every recipe has a test" {
    diff <(sed -n 's/^@test "\([A-Z].*\)" {$/\1/p' "$BATS_TEST_FILENAME" | sort) \
        <(sed -n '/^## Recipes/,$s/^### //p' "$root/cmd/README.md" | sort)
}
