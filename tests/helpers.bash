# Functions for all scripts of tests/ that start the program and check its output. Sourced by bats.
# A test checks the exit code and the subject that a message names (an option, a file, a value, a
# rank), never the sentence around it, so that a message can be reworded. tests/golden keeps prose.
# shellcheck shell=bash disable=SC2034,SC2154 # set here or by bats, read by the scripts

# Called by setup(): sets root, ddpbench and PYTHON, and goes to the test's own folder.
bench_setup() {
    root=$(cd "${BASH_SOURCE[0]%/*}/.." && pwd)
    ddpbench=$(realpath -s "${DDPBENCH:-$root/build/ddpbench}")
    export PYTHON=${PYTHON:-/usr/bin/python3}
    cd "$BATS_TEST_TMPDIR" || return
}

# names WHERE TEXT SUBJECT...: fails, and shows TEXT, unless TEXT contains every SUBJECT.
names() {
    local where=$1 text=$2 subject
    for subject in "${@:3}"; do
        [[ $text == *"$subject"* ]] || {
            echo "$where does not name $subject (exit $status): $text"
            return 1
        }
    done
}

# says SUBJECT...: what the last run printed, on stdout or stderr, names every SUBJECT.
says() {
    names "the output" "$output${stderr:+ $stderr}" "$@"
}

# file_says FILE SUBJECT...: the file names every SUBJECT.
file_says() {
    names "$1" "$(cat "$1")" "${@:2}"
}

# error_names SUBJECT...: the error line of the last run names every SUBJECT.
error_names() {
    names "the error" "$(grep -am 1 '^ddpbench: error: ' <<<"$output"$'\n'"${stderr:-}")" "$@"
}

# hint_names SUBJECT...: the hint below the error line of the last run names every SUBJECT.
hint_names() {
    names "the hint" "$(grep -am 1 -A 1 '^ddpbench: error: ' <<<"$output"$'\n'"${stderr:-}" | tail -n +2)" "$@"
}

# message_names SUBJECT...: the error line of the last run or its hint names every SUBJECT.
message_names() {
    names "the message" "$(grep -am 1 -A 1 '^ddpbench: error: ' <<<"$output"$'\n'"${stderr:-}")" "$@"
}

# ok ARGUMENT...: ddpbench with these arguments succeeds; its stdout is in $output, stderr in $stderr.
ok() {
    run --separate-stderr timeout 150 "$ddpbench" "$@"
    [ "$status" = 0 ] || {
        echo "ddpbench $*: exit $status; stdout: $output; stderr: $stderr"
        return 1
    }
}

# failed CODE SUBJECT... -- ARGUMENT...: ddpbench with these arguments ends with CODE, and the error
# line on stderr names every SUBJECT.
failed() {
    local code=$1 subjects=()
    shift
    while [ $# -gt 0 ] && [ "$1" != -- ]; do
        subjects+=("$1")
        shift
    done
    shift
    run --separate-stderr timeout 150 "$ddpbench" "$@"
    [ "$status" = "$code" ] && error_names "${subjects[@]}" || {
        echo "ddpbench $*: exit $status, expected $code; stdout: $output; stderr: $stderr"
        return 1
    }
}

# refused CODE SUBJECT... -- ARGUMENT...: as failed, and stdout is empty, for nothing was run.
refused() {
    failed "$@" || return
    [ -z "$output" ] || {
        echo "refused $*: stdout: $output"
        return 1
    }
}

# json FILE EXPRESSION: prints a Python expression over the document d, its points p, its training
# runs t, its comparison c and its verdict v; m(METHOD) is its last point with that compression.
# Tests call this function a thousand times. It does not import json, which takes as long as Python's start.
json() {
    "$PYTHON" -I -S - "$@" <<'PY'
import _json, sys
class context:
    strict, memo, object_hook, object_pairs_hook = True, {}, None, None
    parse_int, parse_float, parse_constant = int, float, float
with open(sys.argv[1]) as file:
    text = file.read()
d, end = _json.make_scanner(context)(text, 0)
assert not text[end:].strip(), "text follows the document"
p, t, c, v = (d.get(key) for key in ("points", "train", "comparison", "verdict"))
def m(method):
    return [q for q in p if q["id"].split("/")[10] == method][-1]
print(eval(sys.argv[2]))
PY
}

# is_sanitized: the binary was built with AddressSanitizer or UndefinedBehaviorSanitizer.
is_sanitized() { grep -qE '__(asan|ubsan)_' "$ddpbench"; }

# holds FILE EXPRESSION: the expression of json is True.
holds() {
    local value
    value=$(json "$@") && [ "$value" = True ] || {
        echo "$1: $2 is $value"
        return 1
    }
}

# valid FILE...: the documents agree with the schema, digest included.
valid() {
    "$PYTHON" "$root/ci/validate_json.py" "$@"
}

# keep FILE...: keeps copies of documents. validate_kept, which the file's teardown_file calls, checks that they are
# valid. The start of the validator takes longer than the validation of a document, so a file starts it once.
keep() {
    local file
    for file; do
        cp "$file" "$(mktemp "$BATS_FILE_TMPDIR/kept-$BATS_TEST_NUMBER-XXXXXX.json")" || return
    done
}

validate_kept() {
    local kept=("$BATS_FILE_TMPDIR"/kept-*.json)
    [ ! -e "${kept[0]}" ] ||
        "${PYTHON:-/usr/bin/python3}" "${BASH_SOURCE[0]%/*}/../ci/validate_json.py" "${kept[@]}"
}

# Called by setup() in tests/gate. Sets launch, a command that writes a document with known times,
# and fake, which does so in each of several pairs.
gate_setup() {
    bench_setup
    export XDG_STATE_HOME=$BATS_TEST_TMPDIR/state # ignores a noise floor of this machine
    unset GITHUB_ACTIONS GITHUB_STEP_SUMMARY
    launch="'$PYTHON' -S -E '$root/tests/gate/fake_launch.py'"
    fake="$launch --state count"
}

# gate OPTION...: judges two commands with $pairs pairs of $runs runs each, if these are set, and leaves gate.json.
gate() {
    run --separate-stderr "$ddpbench" gate -q ${runs:+--runs "$runs"} ${pairs:+--pairs "$pairs"} --json gate.json "$@"
    echo "$status: $output $stderr"
}

# compare ARGUMENT...: judges two documents and leaves gate.json and out.md.
compare() {
    run --separate-stderr "$ddpbench" compare --json gate.json --format table,markdown=out.md "$@"
    echo "$status: $output $stderr"
}

# document FILE OPTION...: writes a document without noise.
document() {
    eval "$launch --noise 0 --json '$1' ${*:2}"
}

# verdict EXPRESSION: a value of the verdict v in gate.json.
verdict() { json gate.json "$1"; }
