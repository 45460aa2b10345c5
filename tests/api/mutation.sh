#!/usr/bin/env bash
# Checks that the tests of libddp find defects. In a copy of the tree, one change at a time: every
# function of ddp.h gets an empty body (return 0), then every error that its files detect is
# silenced. The tests (tests/unit/test_ddp_*.c) must fail each time. This takes minutes, so
# `make check` does not run it.
# Usage: tests/api/mutation.sh [functions|errors]   prints each mutant that no test found; 0: none
set -u
export LC_ALL=C CMOCKA_MESSAGE_OUTPUT=TAP
root=$(cd "$(dirname "$0")/../.." && pwd)
what=${1:-all}
copy=$(mktemp -d)
trap 'rm -rf "$copy"' EXIT
cp -r "$root/lib" "$root/cmd" "$root/ci" "$root/tests" "$root/Makefile" "$copy/"
cd "$copy" || exit 70
mapfile -t files < <(ls lib/exchange/ddp_*.c)
mapfile -t tests < <(cd tests/unit && ls test_ddp_*.c | sed 's/\.c$//')

# Builds and runs the tests. Returns 0 if all pass.
passes() {
    local sources
    sources=$(make -s MPI=0 CUDA=0 print-LIBDDP_SRC)
    make -s O=out MPI=0 CUDA=0 WERROR=0 LIB_SRC="$sources" "${tests[@]/#/out/tests/unit/}" >build.log 2>&1 || {
        tail -n 20 build.log >&2
        echo "mutation.sh: cannot build" >&2
        exit 70
    }
    for test in "${tests[@]}"; do
        timeout --kill-after=5 120 "out/tests/unit/$test" >test.log 2>&1 || return 1
    done
}

unnoticed=0
count=0
try() { # FILE NAME: the file is the mutant, FILE.good the original
    count=$((count + 1))
    if cmp -s "$1" "$1.good"; then
        echo "NO MUTANT   $2"
        unnoticed=$((unnoticed + 1))
    elif passes; then
        echo "UNNOTICED   $2"
        unnoticed=$((unnoticed + 1))
    else
        echo "noticed     $2 ($test: $(grep -c '^not ok' test.log) tests)"
    fi
    cp "$1.good" "$1"
}

passes || {
    cat test.log
    echo "mutation.sh: the tests fail without a mutant" >&2
    exit 70
}
for file in "${files[@]}"; do cp "$file" "$file.good"; done

# Functions that the header declares, in the files that define them.
mapfile -t functions < <(perl -0777 -ne 's{/\*.*?\*/}{}gs; print "$1\n" while /\b(ddp_\w+)\([^()]*(?:\([^()]*\)[^()]*)*\)\s*(?:DDP_MUST_CHECK)?;/g' lib/exchange/ddp.h)
for function in "${functions[@]}"; do
    [ "$what" != errors ] || break
    for file in "${files[@]}"; do
        grep -qE "^[a-z].*\b$function\(" "$file" || continue
        F=$function perl -0777 -pi -e 's/^((?:int|void|const char \*|struct ddp_group \*) ?$ENV{F}\([^;{]*?\)\n\{\n).*?^\}$/
            my $h = $1; $h . ($h =~ m{^void} ? "}" : "    return 0;\n}")/mse' "$file"
        try "$file" "$function"
    done
done

# Errors: each place that detects a wrong call or a lost world continues without an error.
for file in "${files[@]}"; do
    [ "$what" != functions ] || break
    places=$(grep -cE 'ddp_fail\(err, DDP_E(USAGE|MISMATCH|UNAVAIL|LOST)\b' "$file")
    for ((k = 1; k <= places; k++)); do
        K=$k perl -0777 -pi -e 'my $i = 0;
            s/ddp_fail\(err, (DDP_E(?:USAGE|MISMATCH|UNAVAIL|LOST)\b)/++$i == $ENV{K} ? "mutant_silent(err, $1" : $&/ge;
            s/(#include "exchange\/ddp_impl.h"\n)/$1static int mutant_silent(struct ddp_err *err, int code, const char *fmt, ...) { return 0; }\n/' "$file"
        try "$file" "$file:$(grep -n 'return mutant_silent\|: mutant_silent\|  mutant_silent' "$file" | head -n 1 | cut -c -110)"
    done
done
echo "$count mutants, $unnoticed unnoticed"
[ "$unnoticed" = 0 ]
