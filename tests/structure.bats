#!/usr/bin/env bats
# The structure of the sources: there is one way to do each thing. Each test names what must not return.

setup() {
    root=$(cd "$BATS_TEST_DIRNAME/.." && pwd)
    cd "$root" || return
}

@test "all headers of lib and cmd compile together" {
    find lib cmd -name '*.h' ! -name '*_list.h' ! -name '*.inc.h' | sort | sed 's/.*/#include "&"/' |
        "${CC:-cc}" -x c -std=gnu11 -fsyntax-only -D_GNU_SOURCE -Ilib -Icmd -I. -DDDP_FAULTS=0 -DDDP_GBENCH=0 -
}

@test "the compiler rejects functions that cannot be used safely" {
    for name in strcpy strcat stpcpy sprintf vsprintf gets strtok atoi atol atoll atof alloca rand srand; do
        ! echo "void *f(void) { return (void *)$name; }" |
            "${CC:-cc}" -x c -fsyntax-only -Ilib -include base/banned.h - 2>/dev/null || return
    done
}

@test "clang-tidy and cppcheck are part of lint" {
    [ -s .clang-tidy ]
    grep -q check_tools.sh ci/lint.mk
}
