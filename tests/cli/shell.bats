#!/usr/bin/env bats
# Manners in a shell: a closed pipe, Ctrl-C, and what is printed without a terminal.
# shellcheck disable=SC2154 # stderr: bats
bats_require_minimum_version 1.5.0

setup() {
    load ../helpers.bash
    bench_setup
    export ddpbench XDG_STATE_HOME=$BATS_TEST_TMPDIR
}

# closed COMMAND...: runs ddpbench with a pipe whose reader closes it before the first byte is written.
# Prints the exit code and stderr.
closed() {
    "$PYTHON" - "$@" <<'END'
import os, subprocess, sys
reader, writer = os.pipe()
os.close(reader)
run = subprocess.Popen([os.environ["ddpbench"], *sys.argv[1:]], stdout=writer, stderr=subprocess.PIPE, text=True)
os.close(writer)
err = run.communicate(timeout=60)[1]
print(run.returncode, err)
END
}

# interrupt SIGNAL STARTED COMMAND...: starts ddpbench, sends it the signal as soon as the Python expression
# STARTED is true (`seen` is its stdout), and prints its exit code and stderr.
interrupt() {
    "$PYTHON" - "$@" <<'END'
import json, os, signal, subprocess, sys, threading, time
def restore():  # a shell without job control starts background jobs with SIGINT ignored
    signal.signal(signal.SIGINT, signal.SIG_DFL)
number, started, command = getattr(signal, sys.argv[1]), sys.argv[2], sys.argv[3:]
run = subprocess.Popen([os.environ["ddpbench"], *command], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                       text=True, preexec_fn=restore)
lines, errors = [], []
threads = [threading.Thread(target=lambda f, to: to.extend(iter(f.readline, "")), args=a)
           for a in ((run.stdout, lines), (run.stderr, errors))]
for t in threads:
    t.start()
def document(path):
    try:
        with open(path) as f:
            return json.load(f)
    except (OSError, ValueError):
        return {}
end = time.time() + 60
while time.time() < end and run.poll() is None:
    seen = "".join(lines)
    if eval(started):
        break
    time.sleep(0.02)
run.send_signal(number)
run.wait(30)
for t in threads:
    t.join()
print(run.returncode, "".join(errors))
END
}

@test "a closed pipe ends the program silently" {
    for command in list "list backends" help "help --man" "explain busbw" "completion bash" \
        "allreduce -h" "allreduce --size 4 --ranks 2 --dry-run" "--version"; do
        # shellcheck disable=SC2086 # words
        run closed $command
        [ "$output" = "141 " ] || { echo "$command: $output"; false; }
    done
    run -0 bash -c "set -o pipefail; \"$ddpbench\" list --json | cat >/dev/null"
}

@test "a closed pipe ends a run silently, and the finished points are saved" {
    run closed allreduce --ranks 2 --size 4,8,16 -n 10 --json p.json --format table -q
    [ "$output" = "141 " ] || { echo "$output"; false; }
    [ "$(json p.json 'd["status"]')" = partial ]
    [[ $(json p.json 'd["reason"]') == *stdout* ]]
    # the reader leaves after the first row
    run --separate-stderr bash -c "\"$ddpbench\" allreduce --ranks 2 --size 4,8,16,32,64,128 -n 10 --order given \
        --placement in --json q.json -q | grep -m 1 '^ *[0-9]' >/dev/null; echo \${PIPESTATUS[0]}"
    [ "$output" = 141 ] || [ "$output" = 0 ] # 0: the last write was earlier than grep's exit
    [ -z "$stderr" ] || { echo "$stderr"; false; }
    run closed train --ranks 2 --dataset synthetic --images 128 -q
    [ "$output" = "141 " ] || { echo "$output"; false; }
}

@test "a pipe other than stdout that is closed is an error that names the file" {
    run bash -c "\"$ddpbench\" allreduce --ranks 1 --backend self --size 4,8 -n 1 -q --format csv=/dev/fd/5 5> >(:)"
    [ "$status" = 74 ]
    error_names "'/dev/fd/5'" "Broken pipe"
    run -74 --separate-stderr bash -c "\"$ddpbench\" list >/dev/full"
    error_names stdout
}

@test "the helper of kernels ends silently too" {
    [ -x "${ddpbench%/*}/ddpbench-kernels" ] || skip "ddpbench-kernels is not built"
    run bash -c "\"$ddpbench\" kernels --size 4K --benchmark_filter=copy --benchmark_min_time=0.01 2>err | true
        echo \${PIPESTATUS[0]}"
    [ "$output" = 141 ]
    run ! grep ddpbench: err
}

@test "Ctrl-C says how many points are done and where they are saved" {
    run interrupt SIGINT 'len(document("p.json").get("points", [])) == 2' allreduce --ranks 2 \
        --size 4,8,64M --placement in --order given -n 2000 --json p.json --format csv=p.csv -q
    [[ $output == "130 "*" 2 of 3 "*p.json*p.csv ]] || { echo "$output"; false; }
    [[ $(json p.json 'd["reason"]') == *"signal 2 "*"2 of 3 "* ]]
    run interrupt SIGTERM 'len(document("q.json").get("points", [])) == 1' allreduce --ranks 1,2 \
        --size 4,8 --placement in --order given -n 300000 --json q.json -q
    [[ $output == "143 "*"signal 15 "*" 1 of 4 "*q.json ]] ||
        { echo "$output"; false; }
    # -v also says where rank 0 was
    run interrupt SIGINT '"timer:" in seen and time.sleep(0.2) is None' allreduce --ranks 2 --size 4 -n 10000000 -v
    [[ $output == "130 "*"debug: "*"rank 0"*$'\n'*" 0 of 2 "* ]] || { echo "$output"; false; }
}

@test "Ctrl-C says how many epochs, runs and pairs are done" {
    run interrupt SIGINT 'sum(len(t["epochs"]) for t in document("t.json").get("train", []) if not t["baseline"]) >= 2' \
        train --ranks 2 --dataset synthetic --images 256 --epochs 1000 --compare dense,fp16 --json t.json -q
    [[ $output == "130 "*" "[2-9]*" of 2000 "*t.json ]] || { echo "$output"; false; }
    echo '{"runs": [{"command": "allreduce", "ranks": 2, "size": 8, "iters": 7},
        {"command": "allreduce", "ranks": 2, "size": 16, "iters": 10000000}]}' >c.json
    run interrupt SIGINT 'os.path.exists("s.json")' sweep c.json --json s.json -q
    [[ $output == "130 "*" "[01]" of 2 "*s.json* ]] ||
        { echo "$output"; false; }
    run interrupt SIGINT 'os.path.exists("third")' gate --metric wall --pairs 20 -q \
        --base "$PYTHON -c 'import os, time
for n in \"one\", \"two\", \"third\":
    if not os.path.exists(n):
        open(n, \"w\"); break
time.sleep(0.1)'" --new 'sleep 0.1'
    [[ $output == "130 "*" "[0-9]*"20 pairs"* ]] || { echo "$output"; false; }
}
