#!/usr/bin/env bash
# Reports the line coverage of the objects below a folder, after a run. Usage: ci/coverage.sh OBJECT_DIR
# gcovr writes build/coverage/index.html and a table; without gcovr, gcov's summary is printed.
# A process that ends by _exit or a signal (a rank of our launcher) writes no counts.
set -eu
cd "$(dirname "$0")/.."
out=build/coverage
rm -rf "$out"
mkdir -p "$out"
if command -v gcovr >/dev/null; then
    gcovr --root . --object-directory "$1" --filter 'lib/' --filter 'cmd/' \
        --html-details "$out/index.html" --txt "$out/summary.txt" "$1"
    cat "$out/summary.txt"
else
    find "$1" -name '*.gcda' -path '*/lib/*' -exec gcov -n {} + 2>/dev/null |
        awk '/^File .*(lib|cmd)\// { file = $2 } /^Lines/ && file { print file, $0; file = "" }' |
        sort -u | tee "$out/summary.txt"
fi
