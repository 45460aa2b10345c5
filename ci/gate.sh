#!/usr/bin/env bash
# The performance gate of a project's CI: is the new build slower than the base?
#
#   ci/gate.sh [--strict] [--ddpbench PATH] [--out DIR] GATE-OPTION...
#   ci/gate.sh --base './base/app allreduce --size 64K,1M' --new './new/app allreduce --size 64K,1M'
#
# Every other argument goes to `ddpbench gate`, which see; here it must have --base, and --new or
# --new-env. A gate that cannot tell (12) gets one more round with twice the pairs, at most 40; if it
# still cannot tell the check is neutral: 0, with a warning, so that a noisy machine blocks nobody.
# --strict: then it fails, with 12. A gate that cannot tell only because cells or training runs of
# base were not judged gets no second round, for more pairs would not change that.
#
# DIR (gate-results) gets gate.json, gate.xml (JUnit), gate.md and gate.log. Under GitHub Actions
# the annotations of the last round are printed, and gate.md is added to the job's summary.
#
# Exits 0 (not slower, or nobody can tell), 10 (slower), 12 (cannot tell, --strict), or the code of
# what went wrong: `ddpbench help exit-codes`.
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
            echo "gate.sh: ${1%%=*} is mine; see DIR in $0" >&2
            exit 64 ;;
        *) args+=("$1") ;;
    esac
    shift
done
case $pairs in
    '' | *[!0-9]*)
        echo "gate.sh: --pairs '$pairs' is no number" >&2
        exit 64 ;;
esac
mkdir -p "$out"

# PAIRS: one round; its code in $rc. stdout and stderr go through, and into the log.
round() {
    rc=0
    "$ddpbench" gate "${args[@]}" --pairs "$1" --json "$out/gate.json" \
        --format "table,junit=$out/gate.xml,markdown=$out/gate.md,github=$out/annotations.txt" \
        >"$out/gate.log" || rc=$?
    cat "$out/gate.log"
}

# Succeeds if no cell can gain from more pairs, but base has cells or training runs that were not
# judged. A quotation mark inside a JSON string has a backslash, so that no name matches.
unjudged() {
    ! grep -Eq '"state": "(uncertain|slower)"' "$out/gate.json" &&
        grep -Eq '"state": "missing"|"side": "base"' "$out/gate.json"
}

rm -f "$out"/gate.json "$out"/gate.xml "$out"/gate.md "$out"/annotations.txt
round "$pairs"
if [ "$rc" = 12 ] && [ "$pairs" -lt 40 ] && ! unjudged; then
    more=$((pairs * 2 > 40 ? 40 : pairs * 2))
    echo "gate.sh: $pairs pairs cannot tell; once more with $more" >&2
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
