#!/usr/bin/env bash
# Is every C file as clang-format 14 would write it? Usage: ci/check_format.sh [--fix]
# Another version formats differently, so without version 14 nothing is checked, and that is said.
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
run() { # OPTION...: the tool over all files
    find lib cmd tests \( -name '*.[ch]' -o -name '*.cu' -o -name '*.cc' \) -print0 |
        xargs -0 -n 8 -P "${JOBS:-2}" "$tool" "$@"
}
if [ "${1:-}" = --fix ]; then
    run -i
elif ! said=$(run --dry-run -Werror 2>&1); then
    sed -n 's/: error: .*clang-formatted.*//p' <<<"$said" | sort -t: -k1,1 -k2,2n >&2
    echo "check_format.sh: these places are not as clang-format 14 writes them; run 'make format'" >&2
    exit 1
else
    echo "  LINT  format"
fi
