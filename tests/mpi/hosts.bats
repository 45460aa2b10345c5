#!/usr/bin/env bats
# Under the mpiexec of each MPI, ranks of one host use shared memory, also on several simulated hosts.
# If shared memory cannot be used on a host, all messages go through MPI, and a note says why.
# shellcheck disable=SC2154 # ddpbench, status: mpi.bash
bats_require_minimum_version 1.5.0

setup() {
    load mpi.bash
    mpi_setup
}

# All ranks are on one host: they use shared memory.
one_host() {
    needs "$1"
    mpi "$1" 2 "$ddpbench" allreduce --size 8,64K,4M --placement in --algorithm auto,native -n 3 --json out.json
    [ "$(json out.json '[p["algorithm_used"] for p in d["points"][:3]]')" = "['flat', 'direct', 'direct']" ]
    [ "$(json out.json '{p["memory"] for p in d["points"]}')" = "{'registered'}" ]
    [ "$(json out.json '1 <= d["world"]["hosts"][0]["usable_cores"] <= d["world"]["hosts"][0]["cores"]')" = True ]
    # Every collective is verified with the algorithm that auto selects.
    for c in reduce-scatter all-gather broadcast reduce all-to-all gather scatter send-recv; do
        echo "{\"command\": \"$c\", \"size\": [12, \"64K\", \"4M\"], \"iters\": 2, \"warmup\": 0},"
    done >runs
    echo "{\"runs\": [$(cat runs) {\"command\": \"barrier\", \"iters\": 2}]}" >all.json
    mpi "$1" 3 "$ddpbench" sweep all.json --json out.json
    [ "$(json out.json 'len({p["collective"] for p in d["points"]})')" = 9 ]
    [ "$(json out.json '{p["algorithm_used"] for p in d["points"]} <= {"flat", "direct", "flags"}')" = True ]
}

# A run on several hosts uses the algorithms that --explain-auto prints.
explains() {
    needs "$1"
    export DDPBENCH_SIMULATE_HOSTS=2
    run mpi "$1" 4 "$ddpbench" allreduce --explain-auto
    [ "$status" = 0 ]
    says "4 ranks" "2 hosts" native
    [[ $output != *direct* ]]
    mpi "$1" 4 "$ddpbench" allreduce --size 8,64K -n 1 -w 0 --json out.json
    [ "$(json out.json '{p["algorithm_used"] for p in d["points"]}')" = "{'native'}" ]
    # Groups inside a host do not use shared memory yet.
    run mpi "$1" 4 "$ddpbench" allreduce --groups 2 --explain-auto
    says "2 ranks"
    [[ $output != *direct* ]]
    mpi "$1" 4 "$ddpbench" allreduce --groups 2 --size 8,64K -n 1 -w 0 --json out.json
    [ "$(json out.json '{p["algorithm_used"] for p in d["points"]}')" = "{'native'}" ]
    # The ranks cannot be placed on these hosts.
    DDPBENCH_SIMULATE_HOSTS=3 run mpi "$1" 4 "$ddpbench" allreduce --explain-auto
    error_names DDPBENCH_SIMULATE_HOSTS "'3'"
}

@test "Open MPI: --explain-auto knows simulated hosts" {
    explains openmpi
}

# explains_part FLAVOUR WORLD HOSTS COUNTS: a run uses only COUNTS ranks of a larger world. --explain-auto
# prints a table for each count of --subset `subset`, which names the algorithms that the run uses at 64 KiB and 4 MiB.
explains_part() {
    needs "$1"
    local world=$2 counts=$4
    export DDPBENCH_SIMULATE_HOSTS=$3
    run --separate-stderr mpi "$1" "$world" "$ddpbench" allreduce --explain-auto --ranks "$counts" --subset "${subset:-spread}"
    [ "$status" = 0 ]
    # Prints each table as a line "RANKS SMALL LARGE". Rows after the row of all larger sizes are
    # skipped, because they are for calls that the library refuses.
    table=$(awk '/^auto/ { if (n) print n, small, large; match($0, /[0-9]+ ranks/)
            n = substr($0, RSTART, RLENGTH - 6); small = large = ""; full = 0; next }
        !full { large = $1 == "up" ? $5 : $1 == "then" ? $6 : $1 == "all" ? $3 : $2
            if (small == "") small = large
            full = $1 == "all" || $1 == "larger" }
        END { print n, small, large }' <<<"$output")
    mpi "$1" "$world" "$ddpbench" allreduce --ranks "$counts" --subset "${subset:-spread}" --size 64K,4M \
        --placement in -n 1 -w 0 --json out.json
    [ "$table" = "$(json out.json '"\n".join(
        f"{n} " + " ".join(p["algorithm_used"] for p in d["points"] if p["ranks"] == n)
        for n in ['"$counts"'])')" ]
}

@test "Open MPI: --explain-auto of fewer ranks than the world has" {
    explains_part openmpi 4 2 2
    [[ $table == "2 native ring" ]]
    subset=pack explains_part openmpi 4 2 2
    [[ $table == "2 native hier" ]]
    explains_part openmpi 4 2 2,3
    explains_part openmpi 4 '4*' 2,3
    [[ $table == $'2 native ring\n3 native ring' ]]
    explains_part openmpi 3 1+2 2
}

@test "MPICH: --explain-auto of fewer ranks than the world has" {
    explains_part mpich 4 2 2,3
    explains_part mpich 4 '4*' 2,3
}

# over_tcp FLAVOUR: ranks of one host that use TCP have counters of TCP, but none of a network interface.
over_tcp() {
    needs "$1"
    OMPI_MCA_btl=tcp,self UCX_TLS=tcp,self mpi "$1" 2 "$ddpbench" allreduce --algorithm native --size 4 --placement in \
        -n 100 -w 1 -q --json out.json
    holds out.json 'p[0]["conditions"]["tcp_segments"] >= 100 and p[0]["conditions"]["retransmits"] is not None'
    holds out.json 'p[0]["conditions"]["tcp_timeouts"] is not None and p[0]["conditions"]["nic_errors"] is None'
}

@test "Open MPI, one host over TCP: retransmissions are counted" {
    over_tcp openmpi
}

@test "MPICH, one host over TCP: retransmissions are counted" {
    over_tcp mpich
}

# alone FLAVOUR RANKS TABLE LARGER: each rank has a host of its own. --explain-auto prints the table with
# lines "SIZE ALGORITHM", and a run uses the algorithm LARGER from 4 MiB on.
alone() {
    needs "$1"
    export DDPBENCH_SIMULATE_HOSTS=$2
    run --separate-stderr mpi "$1" "$2" "$ddpbench" allreduce --explain-auto
    [ "$status" = 0 ]
    table=$(awk 'NR > 1 { print ($1 == "up" ? $3 $4 " " $5 : $1 == "all" ? $1 " " $3 : $1 " " $2) }' <<<"$output")
    [ "$(head -n "$(wc -l <<<"$3")" <<<"$table")" = "$3" ]
    mpi "$1" "$2" "$ddpbench" allreduce --size 1M,4M --placement in -d f32,f16 -n 1 -w 0 --json out.json
    [ "$(json out.json "{(p['size_bytes'] >> 20, p['algorithm_used']) for p in d['points']} == {(1, 'native'), (4, '$4')}")" = True ]
    [ "$(json out.json 'sum(p["check"]["wrong"] for p in d["points"])')" = 0 ]
}

@test "Open MPI: auto takes ring across 2 to 4 hosts of one rank each, from 4 MiB on" {
    for ranks in 2 4; do
        alone openmpi $ranks $'2MiB native\nlarger ring' ring
    done
}

@test "auto takes the library's all-reduce across more hosts, and under MPICH" {
    alone openmpi 5 "all native" native
    alone mpich 4 "all native" native
}

@test "a group whose ranks are alone on their hosts takes ring, too" {
    needs openmpi
    export DDPBENCH_SIMULATE_HOSTS='2*'
    mpi openmpi 4 "$ddpbench" allreduce --groups 2 --size 4M --placement in -n 1 -w 0 --json out.json
    [ "$(json out.json '{p["algorithm_used"] for p in d["points"]}')" = "{'ring'}" ]
}

@test "Open MPI: ranks of one host exchange through its memory" {
    one_host openmpi
}

@test "MPICH: ranks of one host exchange through its memory" {
    one_host mpich
}

# A limit on file sizes below the size of the segment prevents shared memory.
refusing() {
    needs "$1"
    run mpi "$1" 2 sh -c 'ulimit -f 1000000; exec "$@"' sh "$ddpbench" allreduce --size 8,1M -n 2 \
        -w 0 --json out.json
    [ "$status" = 0 ]
    says "rank 0: "
    [ "$(json out.json '{(p["algorithm_used"], p["memory"]) for p in d["points"]}')" = "{('native', 'private')}" ]
    run mpi "$1" 2 sh -c 'ulimit -f 1000000; exec "$@"' sh "$ddpbench" allreduce --size 8 \
        --memory registered
    [ "$status" != 0 ]
    error_names registered "rank 0"
    run mpi "$1" 2 sh -c 'ulimit -f 1000000; exec "$@"' sh "$ddpbench" allreduce --size 8 \
        --algorithm hier
    error_names "'hier'" "rank 0"
}

@test "Open MPI: a host that refuses to share memory" {
    refusing openmpi
}

@test "MPICH: a host that refuses to share memory" {
    refusing mpich
}

several() {
    needs "$1"
    DDPBENCH_SIMULATE_HOSTS=2 mpi "$1" 4 "$ddpbench" allreduce --algorithm hier --size 8,40K,3M -d f32,f16 -o sum,avg \
        --check all -n 2 -w 0 --json out.json
    [ "$(json out.json '(len(d["points"]), sum(p["check"]["wrong"] for p in d["points"]))')" = "(24, 0)" ]
    [ "$(json out.json '{p["wire_bytes_source"] for p in d["points"]}')" = "{'counted'}" ]
    [ "$(json out.json 'd["environment"]["DDPBENCH_SIMULATE_HOSTS"]')" = 2 ]
    # Groups inside a host and across hosts, and two threads of one rank inside MPI.
    DDPBENCH_SIMULATE_HOSTS='2*' mpi "$1" 4 "$ddpbench" allreduce --groups 2 --algorithm hier --size 40K -n 2 -w 0 &&
        return 1
    DDPBENCH_SIMULATE_HOSTS=2 mpi "$1" 4 "$ddpbench" allreduce --groups 2 --algorithm hier --size 40K -n 2 -w 0
    DDPBENCH_SIMULATE_HOSTS=2 mpi "$1" 2 "$ddpbench" allreduce --algorithm native,ring --overlap-compute \
        --size 8,100K -n 3 -w 1 --json out.json
    [ "$(json out.json 'all(p["overlap"] for p in d["points"])')" = True ]
    DDPBENCH_SIMULATE_HOSTS=2 run mpi "$1" 4 "$ddpbench" allreduce --algorithm direct --size 8
    [ "$status" = 69 ]
    error_names "'direct'" "2 hosts"
    DDPBENCH_SIMULATE_HOSTS=3 run mpi "$1" 4 "$ddpbench" allreduce --size 8
    [ "$status" = 64 ]
    error_names DDPBENCH_SIMULATE_HOSTS "'3'"
}

@test "Open MPI: several hosts" {
    several openmpi
}

@test "MPICH: several hosts" {
    several mpich
}
