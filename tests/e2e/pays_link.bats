#!/usr/bin/env bats
# `ddpbench pays` predicts the steps of `train` between two hosts whose links are limited. The hosts are
# network namespaces. Needs root and Open MPI.
# shellcheck disable=SC2154,SC2034 # ddpbench, hosts: mpi.bash, netns.bash; limit: read by mpi
bats_require_minimum_version 1.5.0

setup() {
    load ../mpi/mpi.bash
    load ../mpi/netns.bash # after mpi.bash, whose function mpi it replaces
    mpi_setup
    needs openmpi
    limit=100
    # By default Open MPI asks the receiver before it sends a long message. The answer waits behind the data
    # that the receiver sends, so a slow link often transfers in one direction at a time.
    export OMPI_MCA_btl_tcp_eager_limit=16777216 OMPI_MCA_btl_tcp_rndv_eager_limit=16777216
}

teardown() {
    hosts_down
}

# predicts RATE SPEED BURST MODEL BATCH STEPS: every method's step is predicted within 15 % (or 0.5 ms), and the
# method that is fastest by more than 10 % is named. The step time without the exchange is that with an exchange
# of a thousandth of the parameters, because it contains the waits of the ranks for each other. While the ranks
# compute, a link saves up BURST, which it then passes at once. The fastest epoch of at most three tries counts,
# because other programs may run.
predicts() {
    local try
    rm -f try*.json
    for try in 1 2 3; do
        predicts_once "$@" && return
    done
    return 1
}

predicts_once() {
    local speed=$2 model=$4 batch=$5 images=$(($6 * $5 * 2)) sync
    links "$1" "$3"
    for sync in partial:1000 bf16 q8 topk:0.01; do
        mpi openmpi 2 "$ddpbench" train --model "$model" --dataset synthetic --images "$images" --epochs 4 \
            --batch "$batch" --sync $sync --json "try$try-$sync.json" -q >/dev/null
    done
    "$ddpbench" pays --params "$(json "try$try-bf16.json" 't[0]["parameters"]')" --step-time 1ms --ranks 2 \
        --link "$speed,20us" --compress q8,topk:0.01 -q --json pays.json >/dev/null
    "$PYTHON" - "$1 $model" "${3%kb}" <<'PY' >&3
import glob, json, sys
link = json.load(open("pays.json"))["pays"]["links"][0]

def step(sync):
    runs = [json.load(open(file))["train"][0] for file in glob.glob(f"try*-{sync}.json")]
    return min(e["seconds"] / e["steps"] * 1e3 for run in runs for e in run["epochs"])

base, measured, bad = step("partial:1000"), {}, []
for m in link["methods"][1:]:
    saved = min(float(sys.argv[2]) * 1024, m["sent_bytes"]) / link["GBps"] / 1e6
    predicted = m["step_us"]["median"] / 1e3 - 1 + base - saved
    measured[m["method"]] = one = step(m["method"])
    print(f"# {sys.argv[1]}, {m['method']}: predicted {predicted:.2f} ms, measured {one:.2f} ms, base {base:.2f} ms")
    if abs(predicted - one) > max(0.15 * one, 0.5):
        bad.append(m["method"])
first, second = sorted(measured, key=measured.get)[:2]
if measured[second] > 1.1 * measured[first] and link["first"] != first:
    bad.append(f"{first} is fastest, not {link['first']}")
sys.exit(", ".join(bad) or None)
PY
}

@test "predicted steps are within 15 % of measured steps at 0.1 Gbit/s" {
    hosts_up 2
    predicts 100mbit 0.1Gbit/s 5kb singa-cnn 16 20
    predicts 100mbit 0.1Gbit/s 5kb resnet9 2 8
}

@test "predicted steps are within 15 % of measured steps at 1 Gbit/s" {
    hosts_up 2
    predicts 1gbit 1Gbit/s 128kb singa-cnn 16 50
    predicts 1gbit 1Gbit/s 128kb resnet9 2 20
}
