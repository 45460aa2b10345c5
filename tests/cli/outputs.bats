#!/usr/bin/env bats
# Outputs of a run under slow readers, limits, signals and mistakes. A good result of an earlier run is
# kept until the new result replaces it.
# shellcheck disable=SC2154 # stderr: bats
bats_require_minimum_version 1.5.0

setup() {
    load ../helpers.bash
    bench_setup
    quick=(allreduce --ranks 1 --backend self --size 4 -n 1 -w 0)
    export ddpbench
}

# Starts a run whose stdout is a pipe of 8 KiB, which is too small for its table, then runs the Python code
# `acts` (`run` is the process, `reader` the other end). Prints exit code and stderr.
with_pipe() {
    "$PYTHON" - "$1" "${@:2}" <<'END'
import fcntl, os, signal, subprocess, sys, time
reader, writer = os.pipe()
fcntl.fcntl(writer, fcntl.F_SETPIPE_SZ, 8192)
run = subprocess.Popen([os.environ["ddpbench"], "allreduce", "--ranks", "2", "--backend", "shm", "-b",
    "4", "-e", "400", "-i", "4", "--placement", "in", "-n", "1", "-w", "0", "--order", "given",
    "--json", "out.json",
    *sys.argv[2:]], stdout=writer, stderr=subprocess.PIPE, text=True)
os.close(writer)
def full():
    size = -1
    while True:
        time.sleep(0.3)
        last, size = size, int.from_bytes(fcntl.ioctl(reader, 0x541B, b"\0" * 4), "little")
        if size == last and size > 3000:
            return
exec(sys.argv[1])
err = run.communicate(timeout=30)[1]
print(run.returncode, err)
END
}

@test "nobody reads stdout: 74 after the timeout, and no rank is blamed" {
    run with_pipe 'pass' -T 2
    [[ $output == "74 "*"'stdout'"*"--timeout"* ]] || { echo "$output"; false; }
    [[ $output != *"rank 0"* && $output != *"rank 1"* ]]
    [ "$(json out.json 'd["status"]')" = partial ]
    [[ $(json out.json 'd["reason"]') == *"'stdout'"* ]]
    [ "$(json out.json 'len(p)')" -gt 5 ]
}

@test "nobody reads stdout and stderr: the run still ends" {
    run "$PYTHON" - <<'END'
import fcntl, os, subprocess
reader, writer = os.pipe()
fcntl.fcntl(writer, fcntl.F_SETPIPE_SZ, 8192)
run = subprocess.Popen([os.environ["ddpbench"], "allreduce", "--ranks", "2", "--backend", "shm", "-b",
    "4", "-e", "400", "-i", "4", "--placement", "in", "-n", "1", "-w", "0", "-T", "1", "--progress",
    "always"], stdout=writer, stderr=writer)
print(run.wait(20))
END
    [ "$output" = 74 ]
}

@test "a slow reader slows the run down, and nothing else" {
    run with_pipe '
full()
for i in range(4):
    time.sleep(1)
    os.read(reader, 4096)
while os.read(reader, 65536):
    pass' -T 2
    [[ $output == "0 "* ]] || { echo "$output"; false; }
    [ "$(json out.json 'len(p)')" = 100 ]
}

@test "a signal ends a run that nobody reads, at once" {
    run with_pipe 'full(); run.send_signal(signal.SIGINT); began = time.time(); run.wait(10); print(time.time() - began < 3)' -T 60
    [[ $output == "True"*"-2 "* || $output == "True"*"130 "* ]] || { echo "$output"; false; }
    [[ $(json out.json 'd["reason"]') == *"signal 2"* ]]
}

@test "a rank that dies while nobody reads ends the run, and is named" {
    run with_pipe 'full(); os.kill(int(open(f"/proc/{run.pid}/task/{run.pid}/children").read().split()[1]), signal.SIGKILL); began = time.time(); run.wait(10); print(time.time() - began < 3)' -T 60
    [[ $output == "True"*"13 "*"rank 1"*"signal 9"* ]] || { echo "$output"; false; }
}

@test "a good result survives a command line that is wrong" {
    mkdir here # the current folder has files of bats
    cd here
    "$ddpbench" "${quick[@]}" --json good.json >/dev/null 2>&1
    cp good.json before.json
    for wrong in "--format json=good.json" "--format nonsense" "--format table,table" "--backend shn"; do
        # shellcheck disable=SC2086 # words
        run -64 --separate-stderr "$ddpbench" "${quick[@]}" --json good.json $wrong
        [ -z "$output" ]
        cmp good.json before.json
    done
    run -64 "$ddpbench" allreduce --ranks 2 --backend shm --size 4 --json good.json --algorithm direct --memory private
    cmp good.json before.json
    run -64 "$ddpbench" broadcast --ranks 2,4 --backend shm --size 4 --json good.json --root 3
    cmp good.json before.json
    run -64 "$ddpbench" allreduce --ranks 2,3 --groups 2 --size 4 --json good.json
    cmp good.json before.json
    run -73 "$ddpbench" "${quick[@]}" --json good.json --format table=no/such/file
    cmp good.json before.json
    [ "$(find . -type f | sort | tr '\n' ' ')" = "./before.json ./good.json " ] || { find .; false; }
}

@test "usage errors come before any other message, and print nothing on stdout" {
    run -64 --separate-stderr "$ddpbench" allreduce --size 4 --format json,table
    [ -z "$output" ]
    [ "$(wc -l <<<"$stderr")" -le 2 ] # the error and its hint
    run -64 --separate-stderr "$ddpbench" broadcast --size 4 -r 200
    [ -z "$output" ]
    [ "$(wc -l <<<"$stderr")" -le 2 ]
    run -64 --separate-stderr "$ddpbench" allreduce --size 4 --groups 101
    [ "$(wc -l <<<"$stderr")" -le 2 ]
}

@test "a limit on file sizes is an error, not a silent death, and leaves nothing" {
    run bash -c "ulimit -f 1; \"$ddpbench\" ${quick[*]} --json u.json"
    [ "$status" = 74 ]
    error_names u.json "File too large"
    [ -z "$(ls -A)" ]
}

@test "every signal that would end the run is reported, and ends the ranks" {
    for signal in HUP INT QUIT TERM ALRM USR1 USR2 XCPU; do
        rm -f s.json
        # bash starts background jobs with SIGINT and SIGQUIT ignored, so Python starts the run
        "$PYTHON" -c '
import os, signal, sys
signal.signal(signal.SIGINT, signal.SIG_DFL)
signal.signal(signal.SIGQUIT, signal.SIG_DFL)
os.execv(sys.argv[1], sys.argv[1:])' \
            "$ddpbench" allreduce --ranks 2 --backend shm --size 4 -n 10000000 --json s.json >/dev/null 2>err &
        pid=$!
        for _ in $(seq 100); do
            [ -e s.json ] && break
            sleep 0.05
        done
        kill -s "$signal" "$pid"
        code=0
        wait "$pid" || code=$?
        number=$(kill -l "$signal")
        [ "$code" = $((128 + number)) ] || { echo "$signal: $code"; cat err; false; }
        [[ $(json s.json 'd["reason"]') == *"signal $number "* ]] || { echo "$signal: $(json s.json 'd["reason"]')"; false; }
        [ "$signal" = INT ] || grep -q "signal $number" err
    done
}

@test "a signal during start-up leaves no document with the status running" {
    for delay in 0 0.001 0.002 0.004 0.008 0.012 0.016 0.02 0.03; do
        rm -f s.json
        "$ddpbench" allreduce --ranks 2 --backend shm --size 4 -n 10000000 --json s.json >/dev/null 2>&1 &
        pid=$!
        sleep "$delay"
        kill "$pid"
        code=0
        wait "$pid" || code=$?
        [ "$code" = 143 ]
        [ ! -e s.json ] || [[ $(json s.json 'd["reason"]') == *"signal 15 "* ]] || {
            echo "after $delay s: $(json s.json 'd["reason"]')"
            false
        }
    done
}

@test "too few descriptors: 71, and the limit is named" {
    local seen=
    for n in 4 5 6 7 8 9 10 11 12 13 14; do
        run bash -c "exec 3>&- 4>&- 5>&- 6>&- 7>&- 8>&- 9>&-; ulimit -n $n
            exec \"$ddpbench\" allreduce --ranks 4 --backend shm --size 4 -n 1 -w 0 --json d.json"
        [ "$status" != 71 ] || seen=yes
        [ "$status" = 0 ] || { [ "$status" = 71 ] && [[ $output == *"ulimit -n"* ]]; } || {
            echo "$n: $status $output"
            false
        }
    done
    [ "$seen" = yes ]
}

@test "a named pipe nobody reads: says so, and ends at --timeout" {
    mkfifo p
    began=$(date +%s)
    run -74 --separate-stderr "$ddpbench" "${quick[@]}" -T 1 --json p
    [ $(($(date +%s) - began)) -le 5 ]
    [ "$(grep -c "'p'" <<<"$stderr")" = 2 ] # a note when the wait begins, and the error
    error_names "'p'"
    "$ddpbench" "${quick[@]}" --json p >/dev/null 2>&1 &
    sleep 0.3
    cat p >late.json
    wait $!
    [ "$(json late.json 'd["status"]')" = complete ]
}

@test "temporary files of a killed run are removed by the next run" {
    echo half >.k.json.ddpbench.tmp
    "$ddpbench" "${quick[@]}" --json k.json >/dev/null 2>&1
    [ "$(ls -A)" = k.json ]
}

# spared FILE ARGUMENT... OUTPUT: a run that would overwrite FILE is refused with 64 and changes nothing.
spared() {
    cp "$1" before
    run -64 --separate-stderr "$ddpbench" "${@:2}"
    local written=${!#}
    written=${written##*=}
    # the protected file, or the file that two outputs share
    error_names "'$1'" || error_names "'$written'"
    cmp "$1" before
}

@test "no output overwrites a configuration, a journal, a result to compare, a gradient or a noise floor" {
    echo '{"runs": [{"command": "allreduce", "size": 8, "ranks": 1, "iters": 7}]}' >c.json
    "$ddpbench" sweep c.json --json a.json --journal j -q >table
    "$ddpbench" sweep c.json --json b.json -q >table
    spared c.json sweep c.json --json c.json
    spared c.json sweep c.json --format table,csv=./c.json
    spared j sweep c.json --json a.json --journal j --format table,jsonl=j
    spared c.json sweep c.json --json new.json --journal new.json
    spared c.json sweep c.json --json new.json --format csv=new.json.journal
    [ ! -e new.json ] && [ ! -e new.json.journal ]
    spared a.json compare a.json b.json --json a.json
    ln -s b.json link
    spared b.json compare a.json b.json --format markdown=link
    echo x >n.json
    spared n.json gate --base true --noise-floor n.json --min-effect 5 --selftest --json n.json
    echo x >g.npy
    spared g.npy allreduce --ranks 1 --size 8 --compress fp16 --gradient g.npy --json g.npy
}
