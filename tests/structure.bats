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

# none PATTERN FILE...: fails, and shows the lines, if a line of the files matches the pattern.
none() {
    ! grep -nE -- "$@"
}

@test "option tables are arrays of rows, not macros, and choices are arrays of names" {
    none '#define \w+_ROWS?\b' cmd/*.h
    none 'struct ddp_opt_choices' cmd/*.[ch] lib/base/opt.h
    none '\.kind = DDP_OPT_|\{"[a-z-]+", (0|.[a-z].), DDP_OPT_' cmd/*.[ch]
    # Only the names of models, data sets and aggregations come from a registry.
    [ "$(cat cmd/*.c | grep -cE '^static const char \*\w+_(word|choice)\(int')" -le 3 ]
}

@test "the collectives are one table" {
    [ "$(grep -c '^COLLECTIVE(' cmd/collectives.c)" -eq 10 ]
    for symbol in $(sed -n 's/^COLLECTIVE(\(\w*\),.*/\1/p' cmd/collectives.c); do
        [ ! -e "cmd/$symbol.c" ]
        grep -q "DDP_COMMAND($symbol)" cmd/command_list.h
    done
}

@test "an unknown name is reported by one function" {
    none 'ddp_nearest\(' cmd/*.c lib/bench/*.c lib/base/conf.c lib/base/fault*.c
    none 'char legal\[[0-9]+\]' cmd/*.c lib/base/*.c lib/bench/*.c
}

@test "lib/base is one file for each thing, and names no parser twice" {
    for gone in opt_parse.c opt_set.c opt_row.h json_scan.c json_print.c json_impl.h fault_parse.c \
        fault_impl.h sysinfo_cgroup.c sysinfo_cgroup.h interference.c interference.h cache.c cache.h; do
        [ ! -e "lib/base/$gone" ]
    done
    none 'ddp_opt_set\(|DDP_OPT_CUSTOM|ddp_strbuf_clear' lib/base/*.[ch]
}

@test "an allocation that fails is reported by DDP_NEW" {
    none 'ENOMEM, "no memory' lib/model/layers*.c cmd/kernels*.c cmd/nccl_flags.c cmd/doctor*.c
    grep -q '#define DDP_NEW' lib/base/mem.h
}
