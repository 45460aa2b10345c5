#!/usr/bin/env bash
# Checks that every C file is formatted as by clang-format 14. Usage: ci/check_format.sh [--fix]
# Other versions format differently, so without version 14 the check is skipped with a message.
set -eu
cd "$(dirname "$0")/.."

tool=
for name in clang-format-14 clang-format; do
    if [ -z "$tool" ] && "$name" --version 2>/dev/null | grep -q 'version 14\.'; then tool=$name; fi
done
if [ -z "$tool" ]; then
    echo "check_format.sh: SKIPPED: no clang-format 14 here" >&2
    exit 0
fi
run() { # OPTION...: runs the tool on all files
    find lib cmd tests \( -name '*.[ch]' -o -name '*.cu' -o -name '*.cc' \) -print0 |
        xargs -0 -n 8 -P "${JOBS:-2}" "$tool" "$@"
}
if [ "${1:-}" = --fix ]; then
    run -i
elif ! said=$(run --dry-run -Werror 2>&1); then
    sed -n 's/: error: .*clang-formatted.*//p' <<<"$said" | sort -t: -k1,1 -k2,2n >&2
    echo "check_format.sh: clang-format 14 formats these places differently; run 'make format'" >&2
    exit 1
else
    echo "  LINT  format"
fi
