#!/usr/bin/env bash
# Runs clang-tidy (.clang-tidy lists its checks) and cppcheck on lib/ and cmd/. Every finding is an
# error. Usage: ci/check_tools.sh; JOBS as for make. It needs compile_commands.json (lint.mk).
set -eu
export LC_ALL=C
cd "$(dirname "$0")/.."
jobs=${JOBS:-2}
tidy=$(command -v clang-tidy-14 || true)
if [ -n "$tidy" ]; then
    mapfile -t files < <(sed -n 's/.*"file": "\(\(lib\|cmd\)\/[^"]*\.c\)".*/\1/p' compile_commands.json)
    [ "${#files[@]}" -gt 0 ] || { echo "check_tools.sh: compile_commands.json names no file" >&2; exit 1; }
    printf '%s\n' "${files[@]}" | xargs -P "$jobs" -n 16 "$tidy" --quiet -p . 2>&1 |
        { ! grep -vE '^[0-9]+ (warnings?|errors?)( and [0-9]+ errors?)? generated\.$|^Suppressed '; } || exit 1
else
    echo "check_tools.sh: SKIPPED: no clang-tidy 14 here" >&2
    [ -z "${CI:-}" ]
    files=()
fi
if command -v cppcheck >/dev/null; then
    cppcheck --quiet --enable=warning,portability --std=c11 -Ilib -Icmd -DDDP_FAULTS=0 -DDDP_GBENCH=0 \
        '-D__attribute__(x)=' --suppressions-list=ci/cppcheck.txt --error-exitcode=1 -j "$jobs" lib cmd
else
    echo "check_tools.sh: SKIPPED: no cppcheck here" >&2
    [ -z "${CI:-}" ]
fi
echo "  LINT  clang-tidy (${#files[@]} files), cppcheck"
