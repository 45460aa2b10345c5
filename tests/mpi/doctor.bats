#!/usr/bin/env bats
# `mpiexec ddpbench doctor`: rank 0 prints the findings of all ranks and hosts. failing_rank.bats has
# the jobs whose ranks cannot be connected.
# jobs: 4
# shellcheck disable=SC2154 # ddpbench, output, status, hosts: mpi.bash, netns.bash
bats_require_minimum_version 1.5.0

setup() {
    load mpi.bash
    mpi_setup
}

teardown() {
    [ -z "${hosts[*]:-}" ] || hosts_down
}

# bound FLAVOUR CORES ARGUMENT...: runs two ranks; rank i may use only the i-th of the CORES ("0 1").
bound() {
    local flavour=$1 cores=$2
    needs "$flavour"
    shift 2
    # shellcheck disable=SC2016 # the inner shell's
    run --separate-stderr mpi "$flavour" 2 sh -c '
        eval "rank=\$$1"
        cores=$2
        shift 2
        set -- "$@" $cores
        eval "core=\${$(($# - 1 + rank))}"
        exec taskset -c "$core" "$doctor" doctor $json' sh "$(rank_variable "$flavour")" "$cores"
    [ "$status" = 0 ] || { echo "$status: $output $stderr"; false; }
}

# own_cores FLAVOUR: two ranks with a core each are no problem, but two ranks with one core are.
own_cores() {
    local usable
    export doctor=$ddpbench json=
    mapfile -t usable < <("$PYTHON" -c 'import os; print(*sorted(os.sched_getaffinity(0)), sep="\n")')
    [ "${#usable[@]}" -ge 2 ] || skip "needs two cores"
    bound "$1" "${usable[0]} ${usable[1]}"
    grep '^OK    cores: ' <<<"$output"
    [ "$(grep -c '  cores: ' <<<"$output")" = 1 ]
    [ "$(grep -c '  BLAS: ' <<<"$output")" = 1 ]
    ! grep "$host" <<<"$output" || false
    bound "$1" "${usable[0]} ${usable[0]}"
    grep '^WARN  cores: ' <<<"$output"
    json=--json
    bound "$1" "${usable[0]} ${usable[1]}"
    echo "$output" >job.json
    "$PYTHON" - "$host" <<'PY'
import json, sys
d = json.load(open("job.json"))
assert d["hosts"] == [sys.argv[1]] and d["ranks"] == 2 and d["failures"] == 0, d
assert d["warnings"] == sum(f["verdict"] == "WARN" for f in d["findings"])
(cores,) = [f for f in d["findings"] if f["subject"] == "cores"]
assert cores["verdict"] == "OK" and cores["hosts"] == d["hosts"] and cores["ranks"] == [0, 1], cores
PY
}

@test "Open MPI: the doctor counts the cores of all ranks" { own_cores openmpi; }
@test "MPICH: the doctor counts the cores of all ranks" { own_cores mpich; }

# odd_host FLAVOUR: the last of three hosts has a wrong data folder, smaller packets and another
# congestion control. A finding that all hosts have is
# one line, and the last host is named.
odd_host() {
    needs "$1"
    load netns.bash
    hosts_up 3
    ip -n "${hosts[2]}" link set eth0 mtu 1400
    ip netns exec "${hosts[2]}" sh -c 'echo reno >/proc/sys/net/ipv4/tcp_congestion_control'
    # MPICH sometimes hangs in MPI_Finalize (netns.bats). The test then tries again.
    for _ in 1 2 3 4 5 6; do
        # shellcheck disable=SC2016 # the inner shell's
        run mpi "$1" 6 sh -c '[ "$(hostname)" != "$1" ] || export DDPBENCH_DATA_DIR=/nonexist; exec "$2" doctor' \
            sh "${hosts[2]}" "$ddpbench"
        [ "$status" != 0 ] && [ "$1" = mpich ] || break
    done
    [ "$status" = 0 ] || { echo "$status: $output"; false; }
    grep "^WARN  ${hosts[2]}: data folder: .*DDPBENCH_DATA_DIR" <<<"$output"
    grep "^WARN  ${hosts[2]}: host: .*data folder" <<<"$output"
    grep "^WARN  ${hosts[2]}: host: .*MTU" <<<"$output"
    grep "^WARN  ${hosts[2]}: host: .*congestion control" <<<"$output"
    grep "^OK    ${hosts[2]}: MTU: 1400 " <<<"$output"
    grep '^OK    all 3 hosts: nic: eth0' <<<"$output"
    grep '^OK    all 3 hosts: shared memory: ' <<<"$output"
    # Each rank has its own number in the fact about the launcher.
    grep "^OK    all 3 hosts: launcher: .* (on rank 0; other ranks differ)" <<<"$output"
    [ "$(grep -c '  shared memory: \|: shared memory: ' <<<"$output")" = 1 ]
    # mpiexec writes warnings of its own, which begin with "[HOST:PROCESS]".
    ! grep -v '^\[' <<<"$output" | grep "${hosts[0]}\|${hosts[1]}" || false
}

@test "Open MPI: the doctor names the odd host" { odd_host openmpi; }
@test "MPICH: the doctor names the odd host" { odd_host mpich; }
