#!/usr/bin/env bash
# Checks the style rules that a search can check: unique file names, lengths, no absolute paths of
# one machine. Runs shellcheck if it is installed. Usage: ci/check_style.sh; JOBS as for make.
set -eu
export LC_ALL=C
cd "$(dirname "$0")/.."
status=0
fail() {
    echo "$*" >&2
    status=1
}

mapfile -t code < <(find lib cmd tests -name '*.[ch]' -o -name '*.cu' -o -name '*.cc' | sort)
mapfile -t scripts < <(find ci tests .ci -name '*.sh' -o -name '*.bats' -o -name '*.bash' -o -name '*.py' -o -name run | sort)

twice=$(printf '%s\n' "${code[@]}" "${scripts[@]}" | sed 's|.*/||' | sort | uniq -d)
[ -z "$twice" ] || fail "two files of one name:" "$twice"

# A file has at most 800 lines. A function has at most 60 lines, in tests at most 100. clang-tidy could
# count the lines of a function too, but it does not read .cu and .cc files.
long=$(awk 'FNR == 801 { print FILENAME }' "${code[@]}")
[ -z "$long" ] || fail "longer than 800 lines:" "$long"
long=$(awk 'FNR == 1 { start = 0 } /^\{$/ { start = FNR }
    /^\}$/ { if (start && FNR - start > (FILENAME ~ /^tests/ ? 100 : 60)) print FILENAME ":" start; start = 0 }' "${code[@]}")
[ -z "$long" ] || fail "functions that are too long:" "$long"

found=$(grep -nE '/(work|root|home/[a-z]+)/' "${code[@]}" "${scripts[@]}" Makefile ci/*.mk ./*.md lib/*.md 2>/dev/null |
    grep -v '^ci/check_style.sh:' || true)
[ -z "$found" ] || fail "paths of one machine:" "$found"

if command -v shellcheck >/dev/null; then
    mapfile -t shell < <(printf '%s\n' "${scripts[@]}" | grep -v '\.py$')
    printf '%s\0' "${shell[@]}" | xargs -0 -n 16 -P "${JOBS:-2}" shellcheck -x -S warning ||
        fail "shellcheck: see above"
else
    echo "check_style.sh: SKIPPED: no shellcheck here" >&2
fi
[ $status = 0 ] || exit 1
echo "  LINT  style (${#code[@]} C files, ${#scripts[@]} scripts)"
