#!/usr/bin/env bats
# --hosts and --hostfile with a script `ssh` that runs the command on this host. tests/e2e/ssh_hosts.bats has
# a real sshd. 127.1 is an address of this host that needs ssh, because it is not written as a loopback
# address.
# shellcheck disable=SC2154,SC2034 # ddpbench, status, output, stderr: helpers.bash; long: ucx.bash
# jobs: 2
bats_require_minimum_version 1.5.0

setup() {
    load ucx.bash
    ucx_setup
    mkdir bin
    cat >bin/ssh <<'END'
#!/bin/sh
# ssh OPTION... -- HOST COMMAND
echo "$*" >>"$SSH_LOG"
while [ "$1" != -- ]; do shift; done
[ "$2" != unreachable ] || { echo "ssh: cannot connect to $2" >&2; exit 255; }
[ "$2" != broken ] || exit 126
[ "$2" != empty ] || exec sh -c "exec /nonexistent/ddpbench host-agent"
shift 2
exec sh -c "$*"
END
    chmod +x bin/ssh
    export PATH=$PWD/bin:$PATH SSH_LOG=$PWD/ssh.log
    touch ssh.log
}

# A test that fails may leave a job, which would disturb others.
teardown() {
    [ -z "${job:-}" ] || kill "$job" 2>/dev/null || true
}

# ranks_alive: prints the number of processes of this test's job.
ranks_alive() {
    pgrep -fc -- "--label $label" || true
}

# gone: the ranks of the job end within 20 s.
gone() {
    for _ in {1..200}; do
        [ "$(ranks_alive)" != 0 ] || return 0
        sleep 0.1
    done
    pgrep -fa -- "--label $label"
    false
}

# begin: starts a job with one rank on each of two hosts that runs for at least some seconds, and waits for its second
# point.
begin() {
    label=job$$-$BATS_TEST_NUMBER
    : >0.out
    "$ddpbench" "${long[@]}" --hosts 127.1,b -n 3000 --label "$label" -T 20 >0.out 2>&1 3>&- &
    job=$!
    await_second_point
}

@test "ranks on two hosts: right results, one ssh per host, and the secret is on no command line" {
    ok allreduce --hosts 127.1:2,b --size 4,40K --algorithm ring -n 3 -q --label "a b'c" --json out.json
    holds out.json "d['status'] == 'complete' and len(p) == 4 and sum(q['check']['wrong'] for q in p) == 0"
    holds out.json "(d['world']['backend'], d['world']['launcher'], d['world']['ranks']) == ('ucx', 'ddpbench --hosts', 3)"
    holds out.json "d['label'] == \"a b'c\" and not [k for k in d['environment'] if 'SECRET' in k or 'JOB' in k]"
    valid out.json
    [ "$(wc -l <ssh.log)" = 2 ]
    run -1 grep -i secret ssh.log
    grep -q -- '-- b exec ' ssh.log
}

@test "a hostfile, this host without ssh, variables for the ranks, and a rank count below the world's" {
    printf '# comment\n%s slots=2\n\nb:1 # another\n' "$(hostname)" >hosts.txt
    getent hosts "$(hostname)" >/dev/null || skip "this host does not know its own name"
    UCX_TLS=tcp,self ok allreduce --hostfile hosts.txt --ranks 2,3 --size 4K --algorithm ring -n 3 -q --json out.json
    holds out.json "d['environment']['UCX_TLS'] == 'tcp,self' and [q['ranks'] for q in p] == [2, 2, 3, 3]"
    [ "$(wc -l <ssh.log)" = 1 ]
}

@test "training" {
    ok train --hosts 127.1,b --dataset synthetic --images 400 --batch 16 --max-steps 6 -q --json out.json
    holds out.json "d['status'] == 'complete' and len(t) == 1"
}

@test "the exit code and the message of the ranks are those of the command" {
    failed 76 shm -- allreduce --hosts 127.1,b --backend shm --size 4
    failed 64 nonsense -- allreduce --hosts 127.1,b --size 4 --algorithm nonsense
}

@test "an unreachable host, and a host without ddpbench: named, and nothing stays" {
    failed 69 unreachable -- allreduce --hosts 127.1,unreachable --size 4 -q
    hint_names ssh unreachable
    local start=$SECONDS empty
    failed 69 empty "$(realpath "$ddpbench")" -- allreduce --hosts 127.1,empty --size 4 -q
    empty=$((SECONDS - start)) start=$SECONDS
    failed 69 broken "$(realpath "$ddpbench")" -- allreduce --hosts 127.1,broken --size 4 -q
    [ $((SECONDS - start)) -le $((empty + 2)) ] # its ranks get no more time either
}

@test "illegal hosts are refused" {
    refused 64 "'a:0'" -- allreduce --hosts a:0 --size 4
    refused 64 "'-oProxyCommand=x'" -- allreduce --hosts a,-oProxyCommand=x --size 4
    refused 64 "'a:257'" -- allreduce --hosts a:257 --size 4
    refused 64 "'a'" twice -- allreduce --hosts a:1,b,a:2 --size 4
    refused 64 "'localhost'" -- allreduce --hosts localhost,b --size 4
    refused 64 --hosts --hostfile -- allreduce --hosts a --hostfile b --size 4
    echo 'a b c' >hosts.txt
    refused 78 "'a b c'" -- allreduce --hostfile hosts.txt --size 4
    refused 66 missing.txt -- allreduce --hostfile missing.txt --size 4
    RANK=0 WORLD_SIZE=1 MASTER_ADDR=127.0.0.1 refused 64 --hosts torchrun -- allreduce --hosts a --size 4
    [ ! -s ssh.log ]
}

@test "a killed rank ends the job on both hosts, and the results are saved" {
    begin
    kill -s KILL "$(pgrep -f -- "--label $label" | tail -n 1)"
    wait $job && false || [ $? = 13 ]
    file_says 0.out Killed
    holds out.json "d['status'] == 'partial' and len(p) >= 2"
    gone
}

@test "a signal ends the job on both hosts, and the results are saved" {
    begin
    kill -s TERM $job # a shell makes its background jobs ignore SIGINT
    wait $job && false || [ $? = 143 ]
    holds out.json "d['status'] == 'partial' and len(p) >= 2"
    gone
}

@test "the head is killed: the ranks on both hosts end" {
    begin
    kill -s KILL $job
    wait $job || true
    gone
}

@test "a connection ends: the ranks on both hosts end" {
    begin
    kill -s KILL "$(pgrep -P $job | tail -n 1)"
    wait $job && false || [ $? != 0 ]
    gone
}

@test "health: the exit code is that of the verdict, and no host is reported as failed" {
    run --separate-stderr timeout 100 "$ddpbench" health --hosts 127.1,b --max-time 0.1 --must-find 1 --min-effect 0.1 -q --json out.json
    [ "$status" = "$(json out.json "{'HEALTHY': 0, 'DEGRADED': 10, 'CANNOT TELL': 12}[d['health']['verdict']]")" ]
    [ "$status" != 0 ]
    run ! grep -q error <<<"$stderr"
}
