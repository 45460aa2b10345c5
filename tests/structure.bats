#!/usr/bin/env bats
# There is one way to do each thing: these tests find a second way that came back.

setup() {
    cd "${BATS_TEST_DIRNAME}/.." || return
}

# absent PATTERN FOLDER...: fails, and shows the lines, if a line of a file matches the pattern.
absent() {
    ! grep -rnE -- "$@"
}

@test "coll: all-reduce is a row in the table of each family of algorithms" {
    for family in flat direct self native; do
        grep -qE "\(allreduce_$family, DDP_ALLREDUCE" "lib/coll/coll_$family.c"
        [ "$(grep -rlE "\.name = \"$family\"" lib/coll/*.c lib/coll/allreduce | wc -l)" = 1 ]
    done
    [ "$(grep -rlE '\.name = "(ring|binomial)"' lib/coll/*.c lib/coll/allreduce | wc -l)" = 2 ]
}

@test "coll: one function copies, one rounds to cache lines, one refuses send-recv in place" {
    [ "$(grep -rhE '\bcopy_nt\(' lib/coll | wc -l)" = 1 ]
    [ "$(grep -rhE '^(static (inline )?)?size_t \w*round\w*line\(' lib | wc -l)" = 1 ]
    [ "$(grep -rh 'no in-place form' lib/coll | wc -l)" = 1 ]
    [ "$(grep -rhE '^(static (inline )?)?int \w*wait_all\(.*flag_slot' lib/coll lib/comm | wc -l)" = 1 ]
}

@test "coll: struct ddp_reduction alone decides about wider types and early division" {
    [ "$(grep -rlE '\bDDP_(I32|U8|F64)\b' lib/coll --include=*.[ch])" = lib/coll/coll_p2p.c ]
    absent 'ddp_(has_wider_acc|acc_dtype|pre_scales|to_acc|from_acc)\(' lib/coll
}

@test "coll: costs are counted, and the families in shared memory share one formula" {
    absent 'static void \w+_cost\(int ranks, const struct ddp_coll_shape' lib/coll
    [ "$(grep -rhE 'sent_bytes \+?=' lib/coll/*.c lib/coll/allreduce | wc -l)" -le 5 ]
}

@test "coll: the table of auto has only rows that can be taken" {
    absent 'DDP_DISTANCE|ddp_distance' lib cmd
    [ "$(grep -c 'ddp_coll_auto_explain(' cmd/collective.c)" = 1 ]
}

@test "coll: no function that only tests call" {
    absent 'ddp_(all_gather_v|async_start|async_test)\(' lib
}
