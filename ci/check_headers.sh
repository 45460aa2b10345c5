#!/usr/bin/env bash
# Checks that every header compiles by itself, included twice, as C without a warning, and that all
# headers compile together, as C and as C++, so that no public name means two things.
# Usage: ci/check_headers.sh [HEADER...]; CC, CXX and JOBS mean the same as for make.
# *_list.h and *.inc.h are parts of other files and are not checked.
set -eu
export LC_ALL=C
cd "$(dirname "$0")/.."
export CC=${CC:-cc} CXX=${CXX:-g++}

if [ $# = 0 ]; then
    mapfile -t headers < <(find lib cmd -name '*.h' ! -name '*_list.h' ! -name '*.inc.h' | sort)
    set -- "${headers[@]}"
fi
command -v "$CXX" >/dev/null || {
    echo "check_headers.sh: SKIPPED as C++: no $CXX here" >&2
    CXX=
}

one() {
    flags=(-fsyntax-only -D_GNU_SOURCE -Ilib -Icmd -DDDP_FAULTS=0 -DDDP_GBENCH=0 -Wall -Wextra -Werror -Wundef
        -Wno-unused-parameter)
    printf '#include "%s"\n' "$1" "$1" | "$CC" -x c -std=gnu11 -Wstrict-prototypes "${flags[@]}" -I. - || {
        echo "$1: not self-contained" >&2
        return 1
    }
}
export -f one
# shellcheck disable=SC2016 # $1 is the inner shell's
printf '%s\0' "$@" | xargs -0 -n 1 -P "${JOBS:-2}" bash -c 'one "$1"' one || exit 1
together() {
    printf '#include "%s"\n' "${@:2}" | $1 -fsyntax-only -D_GNU_SOURCE -Ilib -Icmd -I. -DDDP_FAULTS=0 -DDDP_GBENCH=0 \
        -Wall -Wextra -Werror -Wundef -Wno-unused-parameter - || {
        echo "the headers do not compile together with $1" >&2
        exit 1
    }
}
together "$CC -x c -std=gnu11" "$@"
[ -z "$CXX" ] || together "$CXX -x c++ -std=c++23" "$@"
echo "  LINT  headers ($#)"
