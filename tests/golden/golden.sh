#!/usr/bin/env bash
# Compares output of the program with the files in this folder: help, explain, and the shape of table
# and JSON. Prints TAP. After an intended change run UPDATE=1 tests/golden/golden.sh and read the diff.
set -u
here=$(cd "$(dirname "$0")" && pwd)
export DDPBENCH=${DDPBENCH:-$here/../../build/ddpbench} PYTHON=${PYTHON:-/usr/bin/python3}
export LC_ALL=C
unset NO_COLOR COLUMNS

# Masks the values that differ between runs or machines: the facts of build and host in the head, those
# of the machine in the foot, and in a row the measured numbers from the ninth column on. Kept are the
# number of iterations and "wrong"; of a compressed point (22 columns) also the bytes sent and their
# density; of a point with overlap (17 columns) only "wrong". The quality depends on the machine.
mask() {
    sed -E -e 's/^(# ddpbench )[^,]*,/\1VERSION,/' -e 's/^(# host ).*/\1HOST/' -e 's/^(# timer: ).*/\1TIMER/' \
        -e 's/^(# memory baseline \(1 rank\): ).*/\1BASELINE/' -e '/^# [0-9]+ of [0-9]+ points? (is|are) doubtful: /d' |
        awk '/^ *[0-9]/ {
                split(NF == 22 ? "14 15 19 20" : NF == 17 ? "15" : "13 17", list, " ")
                for (i = 9; i <= NF; i++) keep[i] = 0
                for (i in list) keep[list[i]] = 1
                for (i = 9; i <= NF; i++) if (!keep[i] && $i != "-") $i = "N"
                $NF = "Q"
            } { print }'
}
# Prints the keys of a JSON document; a list is represented by its first element.
shape() {
    "$PYTHON" -c '
import json, sys
def walk(path, value):
    if isinstance(value, dict):
        if path == ".environment": value = {}
        if "gpus" in value: value["gpus"] = [] # depends on the machine
        for key in value: walk(path + "." + key, value[key])
    elif isinstance(value, list) and value and isinstance(value[0], (dict, list)): walk(path + "[]", value[0])
    else: print(path or ".")
walk("", json.load(sys.stdin))'
}
export quick="allreduce --ranks 1 --backend self -n 7 -w 1 --size 0,4,1000003"

# name | command
cases=$(
    cat <<'END'
help | "$DDPBENCH" help
help-allreduce | "$DDPBENCH" allreduce -h
help-train | "$DDPBENCH" train -h
explain-busbw | "$DDPBENCH" explain busbw
explain-effective | "$DDPBENCH" explain effective
explain-break-even | "$DDPBENCH" explain break-even
table-self | "$DDPBENCH" $quick | mask
table-compressed | "$DDPBENCH" $quick --compress none,bf16,topk:0.01 | mask
table-overlap | "$DDPBENCH" $quick --overlap-compute | mask
json-self | "$DDPBENCH" $quick --json - | shape
END
)
echo "1..$(wc -l <<<"$cases")"
number=0
status=0
while IFS='|' read -r name command; do
    name=${name% }
    number=$((number + 1))
    got=$(eval "$command" 2>/dev/null; echo "exit $?")
    if [ -n "${UPDATE:-}" ]; then
        printf '%s\n' "$got" >"$here/$name.txt"
    fi
    if difference=$(diff -u "$here/$name.txt" - <<<"$got"); then
        echo "ok $number $name"
    else
        echo "not ok $number $name"
        # shellcheck disable=SC2001 # each line
        sed 's/^/# /' <<<"$difference"
        status=1
    fi
done <<<"$cases"
exit $status
