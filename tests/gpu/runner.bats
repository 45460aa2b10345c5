#!/usr/bin/env bats
# Tests that run_tests.py (`make test-gpu`) reports programs that pass, skip, fail and hang, and ends.

bats_require_minimum_version 1.5.0

setup() {
    runner=$BATS_TEST_DIRNAME/run_tests.py
    cd "$BATS_TEST_TMPDIR" || return
}

# program NAME LINE...: makes a program that prints these lines, then runs $end.
program() {
    local name=$1
    shift
    printf '#!/bin/sh\n' >"$name"
    printf 'echo "%s"\n' "$@" >>"$name"
    echo "${end:-exit 0}" >>"$name"
    chmod +x "$name"
}

# json EXPRESSION: prints a Python expression over the document d.
json() {
    "${PYTHON:-python3}" -c 'import json, sys
d = json.load(open("out.json"))
print(eval(sys.argv[1]))' "$1"
}

@test "skipped tests keep their reason, in the form of bats and of cmocka" {
    program a "1..2" "ok 1 - right" "not ok 2 # SKIP kernels" "# cuda: no usable GPU"
    program b "1..1" "ok 1 two ranks # skip no NCCL"
    run "$runner" --out out.json ./a ./b
    [ "$status" = 0 ]
    [ "$(json 'd["count"]')" = "{'passed': 1, 'failed': 0, 'skipped': 2}" ]
    [ "$(json '[(t["test"], t["reason"]) for t in d["tests"]]')" = \
        "[('right', None), ('kernels', 'cuda: no usable GPU'), ('two ranks', 'no NCCL')]" ]
}

@test "a program that fails, dies, prints nothing or does not exist has failed" {
    program a "not ok 1 - wrong"
    end='kill -9 $$' program b "ok 1 - right"
    end='exit 0' program c ""
    run "$runner" --out out.json ./a ./b ./c ./none
    [ "$status" = 1 ]
    [ "$(json '[(t["file"], t["reason"]) for t in d["tests"] if t["result"] == "failed"]')" = \
        "[('a', None), ('b', 'ended with -9'), ('c', 'no test ran'), ('none', 'cannot start ./none: No such file or directory')]" ]
}

@test "a program that hangs is ended with its children; earlier results are kept, the rest has failed" {
    end='sleep 1000 & echo $! >pid; wait' program a "ok 1 - right"
    program b "ok 1 - right"
    run "$runner" --limit 1 --out out.json ./a ./b
    [ "$status" = 1 ]
    [ "$(json 'd["count"]')" = "{'passed': 1, 'failed': 2, 'skipped': 0}" ]
    [[ $(json '[t["reason"] for t in d["tests"]]') == "[None, 'ended after 1 s: "*"', 'not run: "* ]]
    for _ in $(seq 100); do # a zombie has no exe link either
        [ -e "/proc/$(cat pid)/exe" ] || return 0
        sleep 0.01
    done
    return 1
}
