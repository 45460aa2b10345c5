#!/usr/bin/env bats
# Clocks that differ: one rank runs in a time namespace 1000 s ahead, as if on another host. --start
# window synchronises the clocks by messages. Needs root and time namespaces, otherwise skipped.
# shellcheck disable=SC2154 # ddpbench, output, status: bats and mpi.bash
bats_require_minimum_version 1.5.0

setup() {
    load mpi.bash
    mpi_setup
    unshare -T --fork --monotonic 1000 true 2>/dev/null || skip "no time namespaces here"
}

# ahead FLAVOUR ARGUMENT...: runs two ranks; the second rank's clock is 1000 s ahead.
ahead() {
    local flavour=$1
    needs "$flavour"
    shift
    # shellcheck disable=SC2016 # the inner shell's
    run mpi "$flavour" 2 sh -c '
        eval "rank=\$$1"
        shift
        [ "$rank" = 0 ] || set -- unshare -T --fork --monotonic 1000 "$@"
        exec "$@"' sh "$(rank_variable "$flavour")" \
        "$ddpbench" allreduce --algorithm native --size 8,64K --placement out -q --json out.json "$@"
    echo "exit $status: $output"
}

@test "a clock 1000 s ahead is synchronised: starts within microseconds, times as by barrier" {
    for flavour in openmpi mpich; do
        command -v "mpiexec.$flavour" >/dev/null || continue
        # --oversubscribe makes ranks yield while they wait, which costs microseconds
        DDPBENCH_SIMULATE_HOSTS=2 ahead "$flavour" --start window -n 40
        [ "$status" = 0 ]
        [ "$(json out.json '[p["start"] for p in d["points"]]')" = "['window', 'window']" ]
        [ "$(json out.json 'all(p["skew_us"]["start"] < 50 for p in d["points"])')" = True ]
        [ "$(json out.json 'all(p["skew_us"]["exit"] < 1000 for p in d["points"])')" = True ]
        [ "$(json out.json 'all(0 < p["time_us"]["median"] < 1e5 for p in d["points"])')" = True ]
        DDPBENCH_SIMULATE_HOSTS=2 ahead "$flavour" --start barrier -n 40
        [ "$status" = 0 ]
        [ "$(json out.json 'all(p["skew_us"]["start"] < 1e5 for p in d["points"])')" = True ]
    done
}

@test "if ranks with different clocks count as one host, --start window fails instead of waiting forever" {
    ahead openmpi --start window -n 40 -T 20
    [ "$status" = 69 ]
    error_names window
    ahead openmpi --start barrier -n 40 -T 20
    [ "$status" = 0 ]
}
