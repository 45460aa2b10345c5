#!/usr/bin/env bash
# Compares output of the program with the files in this folder: help, explain, and the shape of table
# and JSON. Prints TAP. After an intended change run UPDATE=1 tests/golden/golden.sh and read the diff.
set -u
here=$(cd "$(dirname "$0")" && pwd)
export DDPBENCH=${DDPBENCH:-$here/../../build/ddpbench} PYTHON=${PYTHON:-/usr/bin/python3}
export LC_ALL=C
unset NO_COLOR COLUMNS

# Masks the values that differ between runs or machines: the facts of build and host in the head, those
# of the machine in the foot, and in a row the measured numbers from the tenth column on. Kept are the
# number of iterations and "wrong"; of a compressed point (23 columns) also the bytes sent and their
# density; of a point with overlap (18 columns) only "wrong". The quality depends on the machine.
mask() {
    sed -E -e 's/^(# ddpbench )[^,]*,/\1VERSION,/' -e 's/^(# host ).*/\1HOST/' -e 's/^(# timer: ).*/\1TIMER/' \
        -e 's/^(# memory baseline \(1 rank\): ).*/\1BASELINE/' -e '/^# [0-9]+ of [0-9]+ points? (is|are) doubtful: /d' |
        awk '/^ *[0-9]/ {
                split(NF == 23 ? "15 16 20 21" : NF == 18 ? "16" : "14 18", list, " ")
                for (i = 10; i <= NF; i++) keep[i] = 0
                for (i in list) keep[list[i]] = 1
                for (i = 10; i <= NF; i++) if (!keep[i] && $i != "-") $i = "N"
                $NF = "Q"
            } { print }'
}
# Runs a command on a terminal of this many columns, and masks the measured numbers, the quality, and the
# facts about the machine. Columns that depend on the length of a number are one space apart.
on_terminal() {
    "$PYTHON" "$here/../terminal.py" --columns "$1" -- "${@:2}" |
        sed -E -e ':more; /^[0-9]+ of [0-9]+ points? (is|are) doubtful: /{/explain quality/d; N; b more}' \
            -e '/^ddpbench [0-9]/,/^timer: /d' \
            -e '/^ *[0-9]/{s/ (slow-pingpong|wide-interval|drifting|stolen|throttled|busy|clock)[a-z,+0-9 -]*$//
                s/[0-9.]+ (ns|us|ms|s|[kMG]B\/s|%)( |$)/N\2/g; s/  +/ /g; s/ $//}'
    return "${PIPESTATUS[0]}"
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
# Measures two algorithms, replaces the times by fixed ones, and draws them. $1: the metric.
plot() {
    local document
    document=$(mktemp) || return
    "$DDPBENCH" allreduce --ranks 2 -n 7 -w 1 --placement in --size 8,1K,32K,1M --algorithm ring,direct -q --json "$document" >/dev/null
    "$PYTHON" - "$document" <<'PY'
import json, sys
d = json.load(open(sys.argv[1]))
for p in d["points"]:
    us = (0.5 + p["size_bytes"] / 2e4) * (3 if p["algorithm"] == "ring" else 1)
    p["time_us"].update(median=us, ci95=[0.7 * us, 1.5 * us], min=0.6 * us, p25=0.7 * us, p75=1.5 * us, p95=2 * us, p99=2 * us, max=2 * us)
    p["bound"].update(us=us / 5, fraction=0.2)
    p["busbw_ci95_GBps"] = [p["size_bytes"] / us / 1.5e3, p["size_bytes"] / us / 0.7e3]
    p["algbw_GBps"] = p["busbw_GBps"] = p["size_bytes"] / us / 1e3
json.dump(d, open(sys.argv[1], "w"))
PY
    "$DDPBENCH" show --edited "$document" --plot "$1" | sed -n '/^$/,$p'
    rm "$document"
}
export quick="allreduce --ranks 1 --backend self -n 7 -w 1 --size 0,4,1000003"

# name | command
cases=$(
    cat <<'END'
help | "$DDPBENCH" help
help-allreduce | "$DDPBENCH" allreduce --help
help-allreduce-short | "$DDPBENCH" allreduce -h
help-train | "$DDPBENCH" train --help
help-train-short | "$DDPBENCH" train -h
explain-busbw | "$DDPBENCH" explain busbw
explain-effective | "$DDPBENCH" explain effective
explain-break-even | "$DDPBENCH" explain break-even
explain-words | for word in cell baseline exposed auto sync topk; do "$DDPBENCH" explain $word; echo; done
table-self | "$DDPBENCH" $quick | mask
table-compressed | "$DDPBENCH" $quick --compress none,bf16,topk:0.01 | mask
table-overlap | "$DDPBENCH" $quick --overlap-compute | mask
terminal-self-80 | on_terminal 80 "$DDPBENCH" $quick
terminal-self-120 | on_terminal 120 "$DDPBENCH" $quick -v
terminal-compressed-80 | on_terminal 80 "$DDPBENCH" $quick --compress none,bf16,topk:0.01
terminal-compressed-120 | on_terminal 120 "$DDPBENCH" $quick --compress none,bf16,topk:0.01
terminal-overlap-80 | on_terminal 80 "$DDPBENCH" $quick --overlap-compute
terminal-overlap-120 | on_terminal 120 "$DDPBENCH" $quick --overlap-compute
plot-braille | LC_ALL=C.UTF-8 plot busbw
plot-ascii | plot time
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
