#!/usr/bin/env bash
# Compares the skipped tests of a run with the list of expected ones. Usage:
#   ci/check_skips.sh TAP_DIR EXPECTED
# Prints nothing when they agree. A difference is a failure in CI (CI=true) and a remark elsewhere,
# because a developer's machine may lack software that CI has.
set -eu
dir=$1
expected=$(realpath "$2")

status=0
cd "$dir"
skips=$(grep -HiE '^ *(ok|not ok|1\.\.0).*# *skip' ./*.tap | sed 's|^\./||' || true)
while read -r count text; do
    case $count in '' | '#'*) continue ;; esac
    seen=$(printf '%s\n' "$skips" | grep -cF -- "$text" || true)
    skips=$(printf '%s\n' "$skips" | grep -vF -- "$text" || true)
    if [ "$count" != '*' ] && [ "$seen" != "$count" ]; then
        echo "skips: $seen instead of $count tests skipped with: $text" >&2
        status=1
    fi
done <"$expected"
if [ -n "$skips" ]; then
    echo "skips: tests skipped that $expected does not list:" >&2
    printf '%s\n' "$skips" | sed 's/^/  /' >&2
    status=1
fi
[ "${CI:-}" = true ] || status=0
exit $status
