#!/usr/bin/env bash
# Is every C file as clang-format 14 would write it? Usage: ci/check_format.sh [--fix]
# Another version formats differently, so without version 14 nothing is checked, and that is said.
set -eu
cd "$(dirname "$0")/.."
mode=(--dry-run -Werror)
[ "${1:-}" != --fix ] || mode=(-i)

tool=
for name in clang-format-14 clang-format; do
    if [ -z "$tool" ] && "$name" --version 2>/dev/null | grep -q 'version 14\.'; then tool=$name; fi
done
if [ -z "$tool" ]; then
    echo "check_format.sh: SKIPPED: no clang-format 14 here" >&2
    exit 0
fi
find lib cmd tests \( -name '*.[ch]' -o -name '*.cu' -o -name '*.cc' \) -print0 |
    xargs -0 -n 8 -P "${JOBS:-2}" "$tool" "${mode[@]}" || {
    echo "check_format.sh: run 'make format'" >&2
    exit 1
}
echo "  LINT  format"
