#!/usr/bin/env bats
# Sweeps: the points and their order, refused configurations, and resuming an interrupted sweep.
# shellcheck disable=SC2154 # stderr: bats
bats_require_minimum_version 1.5.0

setup() {
    load ../helpers.bash
    bench_setup
    cat >c.json <<'END'
{"description": "small",
 "runs": [{"command": "allreduce", "ranks": [1, 2], "size": [8, "4K"], "dtype": ["f32", "f16"], "placement": "in", "iters": 7},
          {"command": "broadcast", "ranks": 2, "size": 4096, "iters": 7},
          {"command": "train", "ranks": 2, "sync": ["dense", "topk:0.01"], "dataset": "synthetic", "images": 128, "epochs": 2}]}
END
}

teardown_file() {
    load ../helpers.bash
    validate_kept
}

ids='[(p["launch"], p["id"]) for p in d["points"]]'

@test "every combination, in the order of the file, valid, and no journal left" {
    "$ddpbench" sweep c.json --json r.json >table
    keep r.json
    [ "$(json r.json 'len(d["points"]), len(d["train"]), d["status"], d["command"]["name"]')" = "(10, 2, 'complete', 'sweep')" ]
    [ "$(json r.json '[(p["collective"], p["ranks"], p["dtype"], p["size_bytes"]) for p in d["points"]][:5]')" = \
        "[('allreduce', 1, 'f32', 8), ('allreduce', 1, 'f32', 4096), ('allreduce', 1, 'f16', 8), ('allreduce', 1, 'f16', 4096), ('allreduce', 2, 'f32', 8)]" ]
    [ "$(json r.json '[t["sync"]["strategy"] for t in d["train"]]')" = "['dense', 'topk:0.01']" ]
    [ "$(json r.json 'sorted(p["order"] for p in d["points"]) == list(range(10))')" = True ]
    [ "$(grep -c '^ .*\(self\|flat\|direct\)' table)" = 10 ]
    [ "$(echo *)" = "c.json r.json table" ]
}

@test "the order is drawn by the seed" {
    for seed in 1 1 2 3; do
        "$ddpbench" sweep c.json --seed "$seed" --json "r$seed.json" -q >/dev/null
        json "r$seed.json" '[p["order"] for p in d["points"]]' >>orders
    done
    [ "$(sed -n 1p orders)" = "$(sed -n 2p orders)" ]
    [ "$(sort -u orders | wc -l)" -ge 2 ]
    [ "$(json r3.json 'd["seed"]')" = 3 ]
}

@test "the plan, its memory and its time, without measuring" {
    run -0 --separate-stderr "$ddpbench" sweep c.json --dry-run --launches 2 --json r.json
    grep -q '^# .*c.json.* 10 points.* 2 repetitions' <<<"$output"
    grep -q '^# memory.* [0-9.]* [MG]iB' <<<"$output"
    grep -q '^# time.* [0-9.]* ' <<<"$output"
    [ "$(grep -c '^allreduce/shm/auto/' <<<"$output")" = 16 ]
    [ "$(grep -c '^train --' <<<"$output")" = 4 ]
    [ ! -e r.json ] && [ ! -e r.json.journal ]
}

@test "launches: every point is measured once per launch and marked with its number" {
    "$ddpbench" sweep c.json --launches 3 --json r.json --format csv=r.csv -q
    keep r.json
    [ "$(json r.json 'len(d["points"]), [p["launch"] for p in d["points"]] == [1] * 10 + [2] * 10 + [3] * 10')" = "(30, True)" ]
    [ "$(json r.json '[t["launch"] for t in d["train"]]')" = "[1, 1, 2, 2, 3, 3]" ]
    [ "$(grep -v ^comparison, r.csv | cut -d, -f2 | sort | uniq -c | tr -s ' \n' ' ')" = " 14 1 14 2 14 3 1 launch " ]
}

# Cuts the journal j after its n-th line of a kind, and removes the result.
cut_journal() {
    "$PYTHON" - "$@" <<'END'
import sys
kind, n, keep = sys.argv[1], int(sys.argv[2]), []
for line in open("j"):
    keep.append(line)
    n -= f'"kind": "{kind}"' in line
    if n == 0:
        break
open("j", "w").writelines(keep)
END
    rm -f r.json
}

@test "an interrupted sweep resumes and measures nothing twice" {
    "$ddpbench" sweep c.json --json r.json --journal j -q >/dev/null
    json r.json "$ids" >whole
    cp j all
    for point in 1 4 9; do
        cp all j
        cut_journal point "$point"
        cp j before
        run -0 --separate-stderr "$ddpbench" sweep c.json --json r.json --journal j
        grep -q "'j'.* $point points" <<<"$stderr" || { echo "$stderr"; false; }
        keep r.json
        [ "$(json r.json "$ids")" = "$(cat whole)" ]
        head -c "$(stat -c %s before)" j | cmp - before
        # the journal holds each point once
        [ "$(grep -o '"point".*"id": "[^"]*"' j | sort | uniq -d)" = "" ]
        [ "$(grep -c '"kind": "point"' j)" = 10 ]
        # the table includes the points of the journal
        [ "$(grep -c '^ .*\(self\|flat\|direct\)' <<<"$output")" = 10 ]
    done
}

@test "an interrupted training run starts again; a finished one does not" {
    "$ddpbench" sweep c.json --json r.json --journal j -q >/dev/null
    json r.json '[[e["train_loss"] for e in t["epochs"]] for t in d["train"]]' >losses
    cut_journal epoch 3
    "$ddpbench" sweep c.json --json r.json --journal j -q >/dev/null
    keep r.json
    [ "$(json r.json '[[e["train_loss"] for e in t["epochs"]] for t in d["train"]]')" = "$(cat losses)" ]
    [ "$(grep -c '"kind": "epoch"' j)" = 5 ] # 3 before the cut, and 2 of the second run
    [ "$(grep -c '"kind": "trained"' j)" = 2 ]
}

@test "a training run is resumed although the path of its data has quotes and markup" {
    "$PYTHON" - <<'END'
import json, os, random, struct
random.seed(1)
folder = "it's \"mine\" & <yours> `|`"
os.mkdir(folder)
for name, n in ("train", 40), ("t10k", 20):
    with open(f"{folder}/{name}-images-idx3-ubyte", "wb") as f:
        f.write(struct.pack(">IIII", 2051, n, 28, 28) + random.randbytes(n * 784))
    with open(f"{folder}/{name}-labels-idx1-ubyte", "wb") as f:
        f.write(struct.pack(">II", 2049, n) + bytes(i % 10 for i in range(n)))
run = {"command": "train", "ranks": 1, "batch": 8, "data": folder, "sync": ["dense", "fp16"]}
json.dump({"runs": [run]}, open("c.json", "w"))
END
    "$ddpbench" sweep c.json --json r.json --journal j -q >/dev/null
    json r.json '[t["data"]["path"] for t in d["train"]]' >paths
    cut_journal end 1
    "$ddpbench" sweep c.json --json r.json --journal j -q >/dev/null
    keep r.json
    grep -q yours paths
    [ "$(json r.json '[t["data"]["path"] for t in d["train"]]')" = "$(cat paths)" ]
    [ "$(grep -c '"kind": "trained"' j)" = 2 ]
}

@test "a journal of another configuration, seed or build is refused; --restart starts anew" {
    "$ddpbench" sweep c.json --json r.json --journal j -q >/dev/null
    cp j before
    run -76 "$ddpbench" sweep c.json --json r.json --journal j --seed 2
    error_names "'j'" --seed "'1'" "'2'"
    hint_names --restart
    sed 's/"iters": 7/"iters": 8/' c.json >d.json
    run -76 "$ddpbench" sweep d.json --json r.json --journal j
    error_names "'j'" configuration
    run -76 "$ddpbench" sweep c.json --json r.json --journal j --launches 2
    cmp j before
    run -0 --separate-stderr "$ddpbench" sweep d.json --json r.json --journal j --restart
    [[ $stderr != *"'j'"* ]]
    [ "$(grep -c '"kind": "point"' j)" = 10 ]
}

@test "a journal of another launch method, other cores or simulated hosts is refused" {
    "$ddpbench" sweep c.json --json r.json --journal j -q >/dev/null
    cp j before
    run -76 "$ddpbench" sweep c.json --json r.json --journal j --launch threads
    error_names launcher "processes'" "threads'"
    DDPBENCH_SIMULATE_HOSTS=2 run -76 "$ddpbench" sweep c.json --json r.json --journal j
    error_names DDPBENCH_SIMULATE_HOSTS "''" "'2'"
    cmp j before
    "$ddpbench" sweep c.json --json r.json --journal j --timeout 50 -q >/dev/null # another timeout is accepted
    "$PYTHON" -c 'import os; exit(len(os.sched_getaffinity(0)) < 2)' || return 0
    one=$("$PYTHON" -c 'import os; print(min(os.sched_getaffinity(0)))')
    run -76 taskset -c "$one" "$ddpbench" sweep c.json --json r.json --journal j
    error_names hosts "$(nproc --all)"
    cmp j before
}

@test "a damaged journal is an error that names the line, a torn one is not" {
    "$ddpbench" sweep c.json --json r.json --journal j -q >/dev/null
    cp j good
    sed -i '5s/launch": 1/launch": 2/' j
    cp r.json before.json
    run -65 "$ddpbench" sweep c.json --json r.json --journal j
    error_names "'j'" 5
    cmp r.json before.json
    head -c -3 good >j
    run -0 "$ddpbench" sweep c.json --json r.json --journal j -q
    keep r.json
    printf 'notes\n' >notes
    run -65 "$ddpbench" sweep c.json --json r.json --journal notes --restart
    [ "$(cat notes)" = notes ]
    run -73 "$ddpbench" sweep c.json --json r.json --journal no/such/j
    run -73 "$ddpbench" sweep c.json --json r.json --journal /dev/null
}

# rejected CONFIGURATION CODE SUBJECT...: the sweep ends with CODE, names every SUBJECT and leaves no files.
rejected() {
    printf '%s' "$1" >bad.json
    run "-$2" --separate-stderr "$ddpbench" sweep bad.json --json out.json
    [ -z "$output" ] && message_names "${@:3}" || { echo "$1: $stderr"; return 1; }
    [ ! -e out.json ] && [ ! -e out.json.journal ]
}

@test "mistakes are named, with run and option" {
    rejected '{"runs": [' 65 "bad.json"
    rejected '{"runns": []}' 78 "'runns'"
    rejected '{"runs": [{"command": "alreduce"}]}' 78 "runs[0]" "'alreduce'"
    rejected '{"runs": [{"command": "alreduce"}]}' 78 "'allreduce'"
    rejected '{"runs": [{"command": "sweep"}]}' 78 "'sweep'"
    rejected '{"runs": [{"command": "doctor"}]}' 78 "'doctor'"
    rejected '{"runs": [{"command": "barrier", "ranks": 1}, {"command": "allreduce", "sise": 8}]}' 78 "runs[1]" "'--sise'"
    rejected '{"runs": [{"command": "allreduce", "sise": 8}]}' 78 "'--size'"
    rejected '{"runs": [{"command": "allreduce", "size": ["8x"]}]}' 78 "'8x'"
    rejected '{"runs": [{"command": "allreduce", "dtype": ["f32", "f33"]}]}' 78 "--dtype"
    rejected '{"runs": [{"command": "allreduce", "size": 8, "max-bytes": 16}]}' 78 --size --max-bytes
    rejected '{"runs": [{"command": "allreduce", "json": "x"}]}' 78 "'json'"
    rejected '{"runs": [{"command": "allreduce", "timeout": 3}]}' 78 "'timeout'"
    rejected '{"runs": [{"command": "allreduce", "timeout": 3}]}' 78 --timeout
    rejected '{"runs": [{"command": "allreduce", "explain-auto": true}]}' 78 explain-auto
    rejected '{"runs": [{"command": "allreduce", "ranks": "1,2"}]}' 78 "'ranks'"
    rejected '{"runs": [{"command": "allreduce", "ranks": 0}]}' 78 "'ranks'"
    rejected '{"runs": [{"command": "allreduce", "backend": "shn"}]}' 78 "'shn'"
    rejected '{"runs": [{"command": "allreduce", "backend": "self", "ranks": 2, "size": 8}]}' 78 "'self'"
    rejected '{"runs": [{"command": "allreduce", "ranks": 2, "size": 8, "iters": [7, 8]}]}' 78 "'bad.json'" /n2/8/
    rejected '{"runs": [{"command": "broadcast", "ranks": 2, "size": 8, "root": 2}]}' 78 "root"
    rejected '{"runs": [{"command": "train", "ranks": 2, "batch": 1048576, "dataset": "synthetic"}]}' 71 "runs[0]" ||
        rejected '{"runs": [{"command": "allreduce", "ranks": 2, "size": "1T"}]}' 71 "runs[0]"
    rejected '{"runs": [{"command": "train", "ranks": 1, "data": "/no/such/data"}]}' 66 "'/no/such/data'"
    run -66 "$ddpbench" sweep none.json
    run -64 "$ddpbench" sweep
    run -64 "$ddpbench" sweep c.json c.json
    run -64 "$ddpbench" sweep c.json --restart
}

@test "backends as an axis; --ranks and --backend of sweep itself" {
    printf '%s' '{"runs": [{"command": "allreduce", "ranks": 1, "backend": ["self", "shm"], "size": 8, "iters": 3, "placement": "in"}]}' >b.json
    "$ddpbench" sweep b.json --json r.json -q >/dev/null
    [ "$(json r.json '[p["backend"] for p in d["points"]]')" = "['self', 'shm']" ]
    printf '%s' '{"runs": [{"command": "allreduce", "size": 8, "iters": 3, "placement": "in"}]}' >b.json
    "$ddpbench" sweep b.json --ranks 1,2,3 --json r.json -q >/dev/null
    [ "$(json r.json '[p["ranks"] for p in d["points"]]')" = "[1, 2, 3]" ]
    "$ddpbench" sweep b.json --ranks 2 --launch threads --json r.json -q >/dev/null
    keep r.json
}

@test "a second run on the same journal is refused" {
    printf '%s' '{"runs": [{"command": "allreduce", "ranks": 2, "size": "16M", "iters": 100000}]}' >long.json
    "$ddpbench" sweep long.json --json r.json -q >/dev/null 3>&- &
    for _ in $(seq 100); do
        [ -s r.json.journal ] && break
        sleep 0.05
    done
    run -73 "$ddpbench" sweep long.json --json r2.json --journal r.json.journal
    kill -TERM $!
    wait $! || true
    error_names "'r.json.journal'"
}

@test "progress shows the position and the remaining time" {
    run -0 --separate-stderr "$ddpbench" sweep c.json --progress always
    says "[1/5" "[5/5"
}

@test "every configuration that is shipped can be planned, and quick is" {
    for config in "$root"/configs/*.json; do
        grep -q "\`$(basename "$config")\`" "$root/configs/README.md"
        case $config in
        */convergence.json) [ -d /usr/share/datasets/fashion-mnist ] || continue ;;
        esac
        run "$ddpbench" sweep "$config" --dry-run
        [ "$status" = 0 ] || [ "$status" = 71 ] || { echo "$config: $output"; false; }
    done
    run -0 "$ddpbench" sweep "$root/configs/ci-gate.json" --dry-run
    grep -q '^# .* 12 points.* 1 repetition' <<<"$output"
}

@test "convergence.json: each strategy with each seed is a run of its own" {
    [ -d /usr/share/datasets/fashion-mnist ] || skip "dataset-fashion-mnist is not installed"
    run -0 "$ddpbench" sweep "$root/configs/convergence.json" --dry-run
    [ "$(grep -c '^train .*--model=singa-cnn .*--epochs=10 ' <<<"$output")" = 30 ]
    for strategy in dense fp16 bf16 topk:0.01 topk:0.001 threshold:0.028 oktopk:0.01 partial:4 local:4 none; do
        for seed in 1 2 3; do
            [ "$(grep -c "^train .*--seed=$seed .*--sync=$strategy\$" <<<"$output")" = 1 ] || { echo "$strategy, seed $seed: $output"; false; }
        done
    done
}
