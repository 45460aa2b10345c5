#!/usr/bin/env bats
# torchrun's variables on several hosts (network namespaces) with fake GPUs and a fake NCCL: ranks find
# each other over TCP without MPI, also in groups. Needs root, otherwise skipped.
# jobs: 3
# shellcheck disable=SC2154 # ddpbench, hosts: nccl.bash, netns.bash
bats_require_minimum_version 1.5.0

setup() {
    load ../mpi/netns.bash # first, because teardown needs it even if the test is skipped
    load nccl.bash
    nccl_setup
    unshare --uts --mount true 2>err.txt || skip "no mount namespaces here"
}

teardown() {
    hosts_down
}

# across "N M" ARGUMENT...: runs N ranks on the first host and M on the second, and prints the exit codes
# in the order of the ranks. The first host's name resolves to 127.0.1.1, as after Debian's installer.
across() {
    local each world rank=0 h local_rank pids=()
    read -ra each <<<"$1"
    shift
    world=$((each[0] + each[1]))
    printf '127.0.0.1 localhost\n127.0.1.1 %s\n' "${hosts[0]}" >hosts.0
    printf '127.0.0.1 localhost\n10.77.9.1 %s\n' "${hosts[0]}" >hosts.1
    for h in 0 1; do
        for ((local_rank = 0; local_rank < each[h]; local_rank++, rank++)); do
            # shellcheck disable=SC2016 # the inner shell's
            NCCL_HOSTID=${hosts[h]} MASTER_ADDR=${hosts[0]} MASTER_PORT=29400 RANK=$rank WORLD_SIZE=$world LOCAL_RANK=$local_rank \
                LOCAL_WORLD_SIZE=${each[h]} timeout --kill-after=5 60 ip netns exec "${hosts[h]}" unshare --uts --mount sh -c \
                'mount --bind "$1" /etc/hosts && hostname "$2" && shift 2 && exec "$@"' sh "hosts.$h" "${hosts[h]}" \
                "$ddpbench" "$@" >"$rank.out" 2>&1 3>&- &
            pids+=($!)
        done
    done
    for rank in "${pids[@]}"; do
        wait "$rank" && printf '0 ' || printf '%s ' $?
    done
}

@test "2 hosts of 2 ranks: correct, and the document names each rank's host" {
    hosts_up 2
    [ "$(across "2 2" allreduce --size 4,64K -n 3 -q --json out.json)" = "0 0 0 0 " ] || { cat ./*.out && false; }
    [ "$(json out.json 'd["world"]["launcher"], d["world"]["ranks"], sum(q["check"]["wrong"] for q in p), len(p)')" = \
        "('torchrun', 4, 0, 4)" ]
    [ "$(json out.json '[h["name"] for h in d["world"]["hosts"]]')" = "['${hosts[0]}', '${hosts[1]}']" ]
}

@test "a group led by the first host's last rank, with one of the second host" {
    hosts_up 2
    [ "$(across "3 1" allreduce --groups 2 --size 1K -n 3 -T 5 -q)" = "0 0 0 0 " ] || { cat ./*.out && false; }
}

@test "a rank on the other host dies: the others say which" {
    hosts_up 2
    FAKE_NCCL_AT=20 FAKE_NCCL_FAULT=dies run across "1 2" allreduce --size 4 -n 30 -q --json out.json
    [ "$output" = "13 137 13 " ]
    file_says 0.out "rank 1"
    [ "$(json out.json 'd["status"]')" = partial ]
}

@test "the other host cannot be reached: both sides say so" {
    hosts_up 2
    ip -n "${hosts[1]}" link set eth0 down
    run across "1 1" allreduce --size 4 -T 2 -q
    [ "$output" = "13 13 " ]
    file_says 0.out "rank 1" 2 "${hosts[0]}"
    file_says 1.out "rank 1" "rank 0" "${hosts[0]}"
}
