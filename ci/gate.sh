#!/usr/bin/env bash
# The performance gate of a project's CI: is the new build slower than the base?
#
#   ci/gate.sh [--strict] [--ddpbench PATH] [--out DIR] GATE-OPTION...
#   ci/gate.sh --base './base/app allreduce --size 64K,1M' --new './new/app allreduce --size 64K,1M'
#   ci/gate.sh --metric wall --base './base/app input' --new './new/app input'
#   ci/gate.sh --read gbench --base './base/bench --benchmark_format=json' --new './new/bench --benchmark_format=json'
#
# All other arguments go to `ddpbench gate`; --base is required, and --new or --new-env. The gate runs
# pairs until it is sure, at most --max-pairs. If it cannot tell (exit code 12), the check is
# neutral: it exits with 0 and a warning, so that a noisy machine blocks nobody. With --strict it exits
# with 12 instead.
#
# DIR (gate-results) gets gate.json, gate.xml (JUnit), gate.md and gate.log. Under GitHub Actions
# the annotations are printed, and gate.md is added to the job's summary.
#
# Exits with 0 (not slower, or the gate cannot tell), 10 (slower), 12 (cannot tell, --strict), or the
# exit code of an error: see `ddpbench help exit-codes`.
set -euo pipefail

strict=0
ddpbench=${DDPBENCH:-ddpbench}
out=gate-results
args=()
while [ $# -gt 0 ]; do
    case $1 in
        --strict) strict=1 ;;
        --ddpbench) ddpbench=${2:?--ddpbench takes a path}; shift ;;
        --out) out=${2:?--out takes a folder}; shift ;;
        --json | --json=* | --format | --format=*)
            echo "gate.sh: ${1%%=*} is set by gate.sh; see DIR in $0" >&2
            exit 64 ;;
        *) args+=("$1") ;;
    esac
    shift
done
mkdir -p "$out"

# Succeeds if more pairs can change no cell, but base has cells or training runs that were not judged.
# JSON escapes a quotation mark inside a string, so the name of a cell cannot match.
unjudged() {
    ! grep -Eq '"state": "(uncertain|slower)"' "$out/gate.json" &&
        grep -Eq '"state": "missing"|"side": "base"' "$out/gate.json"
}

rm -f "$out"/gate.json "$out"/gate.xml "$out"/gate.md "$out"/annotations.txt
rc=0
"$ddpbench" gate "${args[@]}" --json "$out/gate.json" \
    --format "table,junit=$out/gate.xml,markdown=$out/gate.md,github=$out/annotations.txt" \
    >"$out/gate.log" || rc=$?
cat "$out/gate.log"

github=${GITHUB_ACTIONS:-}
if [ "$github" = true ] && [ -f "$out/annotations.txt" ]; then
    cat "$out/annotations.txt"
fi
if [ "$github" = true ] && [ -n "${GITHUB_STEP_SUMMARY:-}" ] && [ -f "$out/gate.md" ]; then
    cat "$out/gate.md" >>"$GITHUB_STEP_SUMMARY"
fi

if [ "$rc" = 12 ] && [ "$strict" = 0 ]; then
    text='the gate cannot tell whether the new build is slower or less accurate; the check is neutral'
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
