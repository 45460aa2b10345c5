#!/usr/bin/env bats
# There is one way to do each thing: these tests find a second way that came back.

setup() {
    root=$(cd "${BATS_TEST_DIRNAME}/.." && pwd)
    cd "$root" || return
}

# none PATTERN FILE...: fails, and shows the lines, if a line of the files matches the pattern.
none() {
    ! grep -nE -- "$@"
}

@test "kernels are functions with constant arguments, which a debugger can show" {
    none 'DEFINE_KERNEL|FIXED_F32_SUM|src_count \* 16' -r lib/device --include='*.h'
    # No macro of the kernels has more than ten lines.
    awk '/\\$/ { if (++lines > 10) { print FILENAME ": " FNR; bad = 1 } next } { lines = 0 }
        END { exit bad }' lib/device/cpu/kernels_cpu.inc.h
    none 'nontemporal' lib/device/device.h lib/bench/bound.c
}

@test "an element type is one row of dtype_list.h and its kernels" {
    for type in I32 U8; do
        none "DDP_$type\\b" lib/base/*.c lib/base/dtype*.h lib/coll/coll_acc.[ch] lib/comm/mpi/* lib/comm/nccl/* \
            lib/bench/verify.c
    done
    [ "$(grep -c '^DDP_DTYPE(' lib/base/dtype_list.h)" -ge 6 ]
}

@test "images are unfolded by one function on the processor" {
    [ "$(cat lib/model/nn_*.h | grep -cE '^static void (im2col|unfold)\(')" -eq 1 ]
    [ ! -e lib/model/nn_general.inc.h ]
}
