#!/usr/bin/env bash
# The performance gate of a project's CI: is the new build slower than the base?
#
#   ci/gate.sh [--strict] [--ddpbench PATH] [--out DIR] GATE-OPTION...
#   ci/gate.sh --base './base/app allreduce --size 64K,1M' --new './new/app allreduce --size 64K,1M'
#
# All other arguments go to `ddpbench gate`; --base is required, and --new or --new-env. If the gate
# cannot tell (exit code 12), a second round measures twice the pairs, at most 40. If that cannot tell
# either, the check is neutral: it exits with 0 and a warning, so that a noisy machine blocks nobody.
# With --strict it exits with 12 instead. If the only reason is that cells or training runs of base
# were not judged, there is no second round, because more pairs would not change that.
#
# DIR (gate-results) gets gate.json, gate.xml (JUnit), gate.md and gate.log. Under GitHub Actions
# the annotations of the last round are printed, and gate.md is added to the job's summary.
#
# Exits with 0 (not slower, or the gate cannot tell), 10 (slower), 12 (cannot tell, --strict), or the
# exit code of an error: see `ddpbench help exit-codes`.
set -euo pipefail

strict=0
ddpbench=${DDPBENCH:-ddpbench}
out=gate-results
pairs=12
args=()
while [ $# -gt 0 ]; do
    case $1 in
        --strict) strict=1 ;;
        --ddpbench) ddpbench=${2:?--ddpbench takes a path}; shift ;;
        --out) out=${2:?--out takes a folder}; shift ;;
        --pairs) pairs=${2:?--pairs takes a number}; shift ;;
        --pairs=*) pairs=${1#*=} ;;
        --json | --json=* | --format | --format=*)
            echo "gate.sh: ${1%%=*} is set by gate.sh; see DIR in $0" >&2
            exit 64 ;;
        *) args+=("$1") ;;
    esac
    shift
done
case $pairs in
    '' | *[!0-9]*)
        echo "gate.sh: --pairs '$pairs' is not a number" >&2
        exit 64 ;;
esac
mkdir -p "$out"

# round PAIRS: runs one round and sets rc to its exit code. stdout is printed and kept in the log.
round() {
    rc=0
    "$ddpbench" gate "${args[@]}" --pairs "$1" --json "$out/gate.json" \
        --format "table,junit=$out/gate.xml,markdown=$out/gate.md,github=$out/annotations.txt" \
        >"$out/gate.log" || rc=$?
    cat "$out/gate.log"
}

# Succeeds if more pairs can change no cell, but base has cells or training runs that were not judged.
# JSON escapes a quotation mark inside a string, so the name of a cell cannot match.
unjudged() {
    ! grep -Eq '"state": "(uncertain|slower)"' "$out/gate.json" &&
        grep -Eq '"state": "missing"|"side": "base"' "$out/gate.json"
}

rm -f "$out"/gate.json "$out"/gate.xml "$out"/gate.md "$out"/annotations.txt
round "$pairs"
if [ "$rc" = 12 ] && [ "$pairs" -lt 40 ] && ! unjudged; then
    more=$((pairs * 2 > 40 ? 40 : pairs * 2))
    echo "gate.sh: $pairs pairs cannot tell; starting another round with $more" >&2
    round "$more"
fi

github=${GITHUB_ACTIONS:-}
if [ "$github" = true ] && [ -f "$out/annotations.txt" ]; then
    cat "$out/annotations.txt"
fi
if [ "$github" = true ] && [ -n "${GITHUB_STEP_SUMMARY:-}" ] && [ -f "$out/gate.md" ]; then
    cat "$out/gate.md" >>"$GITHUB_STEP_SUMMARY"
fi

if [ "$rc" = 12 ] && [ "$strict" = 0 ]; then
    text='this machine cannot tell whether the new build is slower; the check is neutral'
    if unjudged; then
        text='the gate did not judge all cells and training runs of base; the check is neutral'
    fi
    if [ "$github" = true ]; then
        echo "::warning title=ddpbench gate::$text"
    fi
    echo "gate.sh: $text" >&2
    rc=0
fi
exit "$rc"
