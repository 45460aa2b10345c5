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

# absent PATTERN FILE...: no file has a line that matches the pattern.
absent() {
    grep -nE -- "$@" && return 1
    return 0
}

@test "the members of a record are listed once: JSON, CSV and journal are made from its tables" {
    # A table has the row of a member, and neither reporter nor journal names the member again.
    for member in phase_ns overflow_count bucket_bytes; do
        grep -q "($member" lib/record/record_fields.c
        absent "$member" lib/report/report_csv.c lib/report/report_json.c lib/record/journal.c
    done
    absent 'ddp_json_(us|num|count|str)\([a-z]*, "[a-z_]*", [pe]->' lib/report/*.c
}

@test "the journal holds values, not the bytes of structs" {
    absent 'base64|encode64' lib/record/*.c
    absent 'sizeof\(struct ddp_(point|epoch|train_run)\)' cmd/sweep_facts.c
    [ ! -e lib/record/journal_check.c ] && [ ! -e lib/record/journal_line.c ]
}

@test "reporters show figures and marks that record/ computes" {
    absent 'PINGPONG_CHANGE|INTERVAL_WIDE +[0-9]|fm(in|ax)\((lowest|highest|best)' lib/report/*.c
}
