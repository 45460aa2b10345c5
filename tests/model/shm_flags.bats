#!/usr/bin/env bats
# Model-checks the shared-memory flag protocol: it is correct, and the classic mistakes are detected.

setup() {
    command -v spin >/dev/null || skip "spin is not installed"
    cd "$BATS_TEST_TMPDIR" || return 1
    model="$BATS_TEST_DIRNAME/shm_flags.pml"
}

# Searches the whole state space of the model with the given macros. The compiler takes longer than the search, so it
# does not optimise.
search() {
    spin -a "$@" "$model" && cc -O0 -w -DSAFETY -o pan pan.c && ./pan -m100000
}

@test "three ranks, one may die: no endless wait, no stale payload" {
    run search
    [ "$status" -eq 0 ]
    [[ "$output" == *"errors: 0"* ]]
    [[ "$output" != *"max search depth too small"* ]]
}

@test "mistake: waits that ignore the abort word wait for ever" {
    run search -DNO_ABORT
    [[ "$output" == *"invalid end state"* ]]
}

@test "mistake: a sequence number posted before its payload delivers stale data" {
    run search -DPOST_FIRST
    [[ "$output" == *"assertion violated"* ]]
}

@test "mistake: a single slot is overwritten while a slow rank reads" {
    run search -DSLOTS=1
    [[ "$output" == *"assertion violated"* ]]
}
