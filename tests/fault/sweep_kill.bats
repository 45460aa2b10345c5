#!/usr/bin/env bats
# Parent and ranks of a sweep are killed with SIGKILL at random moments: the journal can be read, no
# finished point is lost or measured again, and in the end the result has the same points as an
# uninterrupted sweep. KILLS: the number of kills (default 5; `make torture` makes 100). SEED: default 1.
# shellcheck disable=SC2154 # ddpbench, root, stderr: helpers.bash, bats
bats_require_minimum_version 1.5.0

setup() {
    load ../helpers.bash
    bench_setup
    export ddpbench=${DDPBENCH:-$root/build/ddpbench} PYTHON=${PYTHON:-/usr/bin/python3} root
    export KILLS=${KILLS:-5} SEED=${SEED:-1}
    cat >c.json <<'END'
{"runs": [{"command": "allreduce", "ranks": [1, 2], "size": [8, "4K", "64K"], "dtype": ["f32", "f16"], "placement": "in", "iters": 20},
          {"command": "allreduce", "ranks": 2, "size": ["1M"], "compress": ["fp16", "topk:0.1"], "iters": 10},
          {"command": "all-gather", "ranks": 2, "size": ["64K"], "iters": 10},
          {"command": "train", "ranks": 2, "dataset": "synthetic", "images": 64, "epochs": 2}]}
END
}

@test "killed anywhere, however often, a sweep ends with all its points" {
    "$PYTHON" - <<'END'
import json, os, random, signal, subprocess, sys, time
binary, python, root = os.environ["ddpbench"], os.environ["PYTHON"], os.environ["root"]
kills, rng = int(os.environ["KILLS"]), random.Random(int(os.environ["SEED"]))
command = [binary, "sweep", "c.json", "--launches", "2", "--json", "r.json", "--journal", "j", "-q"]

def start():
    return subprocess.Popen(command, stdout=open("out", "w"), stderr=open("err", "w"), start_new_session=True)

def points(document):
    return {(p["launch"], p["id"]): p["time_us"]["median"] for p in document["points"]}

def whole_lines():
    try:
        raw = open("j", "rb").read()
    except FileNotFoundError:
        return []
    return raw[:raw.rfind(b"\n") + 1].splitlines(keepends=True)

def journal_points(lines):
    entries = [json.loads(line) for line in lines[1:]]
    return [(e["launch"], e["id"]) for e in entries if e["kind"] == "point"]

def group_is_gone(pid):
    for _ in range(300):
        try:
            os.killpg(pid, 0)
        except ProcessLookupError:
            return True
        time.sleep(0.01)
    return False

began = time.time()
run = start()
assert run.wait() == 0, open("err").read()
took = time.time() - began
want = points(json.load(open("r.json")))
assert len(want) == 2 * 16, len(want)
os.remove("j"), os.remove("r.json")

done = finished = most = 0
while done < kills:
    before = whole_lines()
    run = start()
    time.sleep(rng.uniform(0, took * 0.8))
    if run.poll() is not None:
        assert run.returncode == 0, open("err").read()
        finished += 1
        assert points(json.load(open("r.json"))).keys() == want.keys()
        os.remove("j"), os.remove("r.json")
        continue
    os.killpg(run.pid, signal.SIGKILL)
    run.wait()
    assert group_is_gone(run.pid), "a process is left"
    done += 1
    lines = whole_lines()
    # no complete line is lost or written twice
    assert lines[:len(before)] == before
    have = journal_points(lines)
    assert len(set(have)) == len(have)
    most = max(most, len(have))
    # every point in the document is in the journal
    if os.path.exists("r.json"):
        assert subprocess.run([python, root + "/ci/validate_json.py", "r.json"]).returncode == 0
        assert points(json.load(open("r.json"))).keys() <= set(have)

before = whole_lines()
# the complete document contains the points of the last partial one, with the same figures
shown = points(json.load(open("r.json"))) if os.path.exists("r.json") else {}
run = start()
assert run.wait() == 0, open("err").read()
result = points(json.load(open("r.json")))
assert result.keys() == want.keys()
assert shown.items() <= result.items()
assert whole_lines()[:len(before)] == before
assert sorted(journal_points(whole_lines())) == sorted(want)
document = json.load(open("r.json"))
assert document["status"] == "complete" and len(document["train"]) == 2
assert [e["epoch"] for t in document["train"] for e in t["epochs"]] == [1, 2] * 2
print(f"# {done} kills, {finished} sweeps that ended before theirs, up to {most} points in the journal", file=sys.stderr)
END
}

@test "a sweep under mpiexec ends with all its points, too" {
    command -v mpiexec.mpich >/dev/null || skip "no mpiexec.mpich here"
    [ -e "$(dirname "$(realpath "$ddpbench")")/ddpbench-mpi-mpich.so" ] || skip "no module for mpich was built"
    printf '%s' '{"runs": [{"command": "allreduce", "ranks": [1, 2], "size": [8, "64K"], "dtype": ["f32", "f16"], "placement": "in", "iters": 20}]}' >m.json
    for i in 1 2 3; do
        setsid mpiexec.mpich -n 2 "$ddpbench" sweep m.json --json r.json -q >/dev/null 2>&1 3>&- &
        run=$!
        for _ in $(seq 200); do
            [ "$(grep -c '"point"' r.json.journal 2>/dev/null)" -ge "$i" ] 2>/dev/null && break
            kill -0 "$run" 2>/dev/null || break
            sleep 0.01
        done
        kill -KILL -- "-$run" 2>/dev/null || true
        wait "$run" || true
    done
    mpiexec.mpich -n 2 "$ddpbench" sweep m.json --json r.json -q >/dev/null
    "$PYTHON" "$root/ci/validate_json.py" r.json
    [ "$(grep -c '"algorithm_used"' r.json)" = 8 ]
    [ ! -e r.json.journal ]
}
