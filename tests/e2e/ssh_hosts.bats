#!/usr/bin/env bats
# --hosts with a real sshd on each of several hosts, which are network namespaces. Needs root and openssh-server.
# shellcheck disable=SC2154,SC2034 # ddpbench, hosts, long: ucx.bash, netns.bash
bats_require_minimum_version 1.5.0

setup() {
    load ../mpi/netns.bash # first, because teardown needs it even if the test is skipped
    load ../ucx/ucx.bash
    ucx_setup
    [ -x /usr/sbin/sshd ] || skip "needs openssh-server"
    unshare --uts true 2>err.txt || skip "no namespaces here"
    export UCX_NET_DEVICES=eth0
    daemons=()
}

teardown() {
    local pid
    for pid in ${job:-} "${daemons[@]}"; do
        kill "$pid" 2>/dev/null || true
    done
    hosts_down
}

# sshd_up N: makes N hosts, each with an sshd, and a program `ssh` that finds the key.
# shellcheck disable=SC2016 # the inner shell's
sshd_up() {
    local h i
    hosts_up "$1"
    mkdir -p bin /run/sshd
    ssh-keygen -q -t ed25519 -N '' -f key
    ssh-keygen -q -t ed25519 -N '' -f host_key
    cat >sshd_config <<END
Port 22
HostKey $PWD/host_key
AuthorizedKeysFile $PWD/key.pub
StrictModes no
UsePAM no
PermitRootLogin yes
PidFile none
END
    cat >ssh_config <<END
Host *
    User root
    IdentityFile $PWD/key
    StrictHostKeyChecking no
    UserKnownHostsFile /dev/null
    LogLevel ERROR
END
    printf '#!/bin/sh\nexec /usr/bin/ssh -F %s "$@"\n' "$PWD/ssh_config" >bin/ssh
    chmod +x bin/ssh
    for h in "${hosts[@]}"; do
        ip netns exec "$h" unshare --uts sh -c 'hostname "$0"; exec /usr/sbin/sshd -D -f "$1"' "$h" "$PWD/sshd_config" 3>&- &
        daemons+=($!)
    done
    for ((i = 1; i <= $1; i++)); do
        for _ in {1..50}; do
            ! head ssh "10.77.9.$i" true || continue 2
            sleep 0.1
        done
        false
    done
}

# head COMMAND...: runs the command on the first host.
# shellcheck disable=SC2016 # the inner shell's
head() {
    ip netns exec "${hosts[0]}" unshare --uts env PATH="$PWD/bin:$PATH" \
        sh -c 'hostname "$0"; exec "$@"' "${hosts[0]}" timeout --kill-after=5 120 "$@"
}

# list N EACH: the option's value for N hosts of EACH ranks.
list() {
    local i text=
    for ((i = 1; i <= $1; i++)); do
        text+=,10.77.9.$i:$2
    done
    echo "${text#,}"
}

# begin HOSTS: starts a long job with one rank on each host, and waits for its second point.
begin() {
    label=job$$-$BATS_TEST_NUMBER
    : >0.out
    head "$ddpbench" "${long[@]}" --hosts "$(list "$1" 1)" -n "${iterations:-3000}" --label "$label" -T 20 >0.out 2>&1 3>&- &
    job=$!
    await_second_point
}

# rank_on HOST: prints the process of the rank on this host.
rank_on() {
    local pid
    for pid in $(ip netns pids "$1"); do
        if grep -qaz -- "--hosts" "/proc/$pid/cmdline" && grep -qaz '^RANK=' "/proc/$pid/environ"; then
            echo "$pid"
        fi
    done
}

# head_process: prints the process that started the job.
head_process() {
    local pid
    for pid in $(pgrep -f -- "^$ddpbench .*--label $label"); do
        grep -qaz '^RANK=' "/proc/$pid/environ" || echo "$pid"
    done
}

# gone: no rank is left on any host within 20 s.
gone() {
    local h left
    for _ in {1..200}; do
        left=
        for h in "${hosts[@]}"; do
            left+=$(rank_on "$h")
        done
        [ -n "$left" ] || return 0
        sleep 0.1
    done
    echo "left: $left"
    false
}

@test "2 hosts of 2 ranks: right results, hosts and devices in the document" {
    sshd_up 2
    head "$ddpbench" allreduce --hosts "$(list 2 2)" --size 40K,1M --algorithm ring,auto -n 3 -q --json out.json
    holds out.json "d['status'] == 'complete' and len(p) == 8 and sum(q['check']['wrong'] for q in p) == 0"
    holds out.json "d['world']['launcher'] == 'ddpbench --hosts' and 'tcp/eth0' in d['world']['transports']"
    holds out.json "[h['name'] for h in d['world']['hosts']] == ['${hosts[0]}', '${hosts[1]}']"
    valid out.json
}

@test "4 hosts: the first result comes within 5 s" {
    sshd_up 4
    local began
    began=$(date +%s%N)
    head "$ddpbench" allreduce --hosts "$(list 4 1)" --size 4K -n 10 -q --json out.json
    took_ms=$((($(date +%s%N) - began) / 1000000))
    echo "# 4 hosts: $took_ms ms from the command to its end" >&3
    [ "$took_ms" -lt 5000 ]
    holds out.json "len(d['world']['hosts']) == 4"
}

@test "a killed rank is named within 2 s, with its host; all hosts end and the results are saved" {
    sshd_up 4
    iterations=300 begin 4
    local began victim
    victim=$(rank_on "${hosts[2]}")
    began=$(date +%s%N)
    kill -s KILL "$victim"
    for _ in {1..100}; do
        ! grep -q "rank 2.*${hosts[2]}" 0.out || break
        sleep 0.05
    done
    named_ms=$((($(date +%s%N) - began) / 1000000))
    echo "# named after $named_ms ms" >&3
    [ "$named_ms" -lt 2000 ]
    wait $job && false || [ $? = 13 ]
    holds out.json "d['status'] == 'partial' and len(p) >= 2"
    gone
}

@test "the head is killed, a host's sshd sessions are killed, and a signal: all hosts end" {
    local how
    sshd_up 2
    for how in head session signal; do
        begin 2
        case $how in
        head) kill -s KILL "$(head_process)" ;;
        session)
            for pid in $(ip netns pids "${hosts[1]}"); do
                ! grep -qa '^sshd: root' "/proc/$pid/cmdline" || kill -s KILL "$pid"
            done
            ;;
        signal) kill -s TERM "$(head_process)" ;;
        esac
        wait $job && false || [ $? != 0 ]
        gone
    done
}

# link_down DEADLINE CODE: the link of the last host goes down. The job ends in time with this exit code.
link_down() {
    local began code=0
    sshd_up 3
    : >0.out
    head "$ddpbench" "${long[@]}" --hosts "$(list 3 1)" -n 300 -T "$1" >0.out 2>&1 3>&- &
    job=$!
    await_second_point
    began=$(date +%s%N)
    ip -n "${hosts[2]}" link set eth0 down
    wait $job || code=$?
    ended_ms=$((($(date +%s%N) - began) / 1000000))
    echo "# ended after $ended_ms ms: $(json out.json 'd["reason"]')" >&3
    echo "exit $code"
    cat 0.out
    [ "$code" = "$2" ]
    [ "$ended_ms" -lt $((($1 + 5) * 1000)) ]
    holds out.json "d['status'] == 'partial' and 'host ${hosts[2]} (rank 2) no longer answers' in d['reason']"
    gone
}

@test "a link goes down: the document names the host, and the job ends within its deadline plus 5 s" {
    link_down 3 13
}

@test "a link goes down: ssh notices it before a long deadline, and the document names the host" {
    link_down 30 69
    [ "$ended_ms" -lt 10000 ]
}

@test "a host without sshd is named" {
    sshd_up 2
    kill "${daemons[1]}"
    run --separate-stderr head "$ddpbench" allreduce --hosts "$(list 2 1)" --size 4K -q
    [ "$status" = 69 ]
    error_names 10.77.9.2
    gone
}
