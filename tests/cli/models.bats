#!/usr/bin/env bats
# `ddpbench train --model ...`: every model runs by its own rule, says so, and refuses data that it
# cannot take; CIFAR-10 in both its forms; made data are marked as such.
# shellcheck disable=SC2154 # stderr is set by run --separate-stderr
bats_require_minimum_version 1.5.0

setup() {
    root=$(cd "$BATS_TEST_DIRNAME/../.." && pwd)
    ddpbench=${DDPBENCH:-$root/build/ddpbench}
    python=${PYTHON:-/usr/bin/python3}
    cd "$BATS_TEST_TMPDIR" || return
}

# A folder with CIFAR-10's six files, $1 images each, both forms of the same: bin/ and py/.
cifar() {
    "$python" - "$root" "$1" <<'PY'
import importlib.util, os, sys
spec = importlib.util.spec_from_file_location("corpus", sys.argv[1] + "/tests/fuzz/corpus.py")
corpus = importlib.util.module_from_spec(spec)
spec.loader.exec_module(corpus)
n = int(sys.argv[2])
os.makedirs("bin"); os.makedirs("py")
for name in [f"data_batch_{i}" for i in range(1, 6)] + ["test_batch"]:
    with open(f"bin/{name}.bin", "wb") as f:
        f.write(b"".join(corpus.record(i) for i in range(n)))
    with open(f"py/{name}", "wb") as f:
        f.write(corpus.pickle(corpus.batch_label, corpus.labels(n), corpus.array(n), corpus.names(n)))
PY
}

# field EXPRESSION FILE: of the first training run, t.
field() {
    "$python" -c 'import json, sys
t = json.load(open(sys.argv[2]))["train"][0]
print(eval(sys.argv[1]))' "$1" "$2"
}

refused() {
    local code=$1 text=$2
    shift 2
    run --separate-stderr timeout 60 "$ddpbench" train --epochs 1 "$@"
    if [ "$status" != "$code" ] || [[ $stderr != *"ddpbench: error:"*"$text"* ]]; then
        echo "train $*: exit $status, not $code with '$text'; stdout: $output; stderr: $stderr"
        return 1
    fi
}

@test "each model brings its own rule" {
    small=(--dataset synthetic --images 300 --epochs 1 --ranks 2)
    while read -r model parameters rule; do
        "$ddpbench" train --model "$model" "${small[@]}" --json run.json >table
        [ "$(field 't["parameters"]' run.json)" = "$parameters" ]
        got=$(field '(lambda o: (o["name"], o["lr"], o["momentum"], o["weight_decay"], t["sync"]["init"], t["batch_per_rank"]))(t["optimizer"])' run.json)
        [ "$got" = "$rule" ] || { echo "$model: $got"; return 1; }
        "$python" "$root/ci/validate_json.py" run.json
    done <<'END'
singa-cnn 431080 ('sgd', 0.005, 0.9, 1e-05, 'he', 64)
lenet 60170 ('sgd', 0.04, 0, 0, 'glorot', 64)
resnet9 431946 ('adam', 0.001, None, 0.001, 'he', 64)
nnabla-tiny 2060 ('adam', 0.001, None, 0, 'glorot', 32)
END
}

@test "made data: marked in table and JSON, the same from the same seed" {
    tiny=(train --model nnabla-tiny --images 500 --epochs 2 --ranks 1)
    "$ddpbench" "${tiny[@]}" --json a.json >table
    "$ddpbench" "${tiny[@]}" --json b.json >/dev/null
    "$ddpbench" "${tiny[@]}" --seed 2 --json c.json >/dev/null
    grep -q 'on synthetic (500 + 100 images)' table
    [ "$(field 't["dataset"], t["synthetic"], t["train_images"], t["eval_images"]' a.json)" = "('synthetic', True, 500, 100)" ]
    [ "$(field '[e["train_loss"] for e in t["epochs"]]' a.json)" = "$(field '[e["train_loss"] for e in t["epochs"]]' b.json)" ]
    [ "$(field 't["epochs"][0]["train_loss"]' a.json)" != "$(field 't["epochs"][0]["train_loss"]' c.json)" ]
}

@test "what the user says goes before the model's rule" {
    "$ddpbench" train --model resnet9 --dataset synthetic --images 200 --epochs 1 --ranks 1 \
        --optimizer sgd --lr 0.02 --momentum 0.5 --weight-decay 0 --init glorot --batch 7 --json run.json >table
    got=$(field '(lambda o: (o["name"], o["lr"], o["momentum"], o["weight_decay"], t["sync"]["init"], t["batch_per_rank"]))(t["optimizer"])' run.json)
    [ "$got" = "('sgd', 0.02, 0.5, 0, 'glorot', 7)" ]
    "$ddpbench" train --model lenet --dataset synthetic --images 200 --epochs 1 --ranks 2 --global-batch 9 \
        --json run.json >table
    [ "$(field 't["batch_per_rank"]' run.json)" = 5 ]
}

@test "options that do not go together are refused before anything runs" {
    refused 64 "data set 'mnist' has not" --model resnet9 --dataset mnist
    [[ $stderr == *"data sets for 'resnet9': cifar10, synthetic"* ]]
    refused 64 "of at most 2 classes" --model nnabla-tiny --dataset fashion-mnist
    refused 64 "has not" --model lenet --dataset cifar10
    refused 64 "needs --lr" --model lenet --optimizer adam
    refused 64 "--momentum is for" --model resnet9 --momentum 0.9
    refused 64 "not both" --batch 3 --global-batch 6
    refused 64 "--images is for" --images 100
    refused 64 "--data has no meaning" --model nnabla-tiny --data images
    refused 64 "too small" --model nnabla-tiny --global-batch 1 --partition shard --ranks 2
    refused 66 "--data" --model resnet9 --data "$BATS_TEST_TMPDIR"
}

@test "CIFAR-10 in binary and in python form: the same images, the same losses" {
    cifar 40
    for form in bin py; do
        "$ddpbench" train --model resnet9 --data $form --epochs 2 --ranks 2 --json $form.json >table
        [ "$(field 't["train_images"], t["eval_images"], t["synthetic"]' $form.json)" = "(200, 40, False)" ]
    done
    losses='[(e["train_loss"], e["eval_loss"]) for e in t["epochs"]]'
    [ "$(field "$losses" bin.json)" = "$(field "$losses" py.json)" ]
}

@test "hostile CIFAR-10: each kind is refused with 65 and named" {
    cifar 2
    r=(--model resnet9 --ranks 1)
    printf x >>bin/data_batch_2.bin
    refused 65 "not records of 3073" "${r[@]}" --data bin
    cp bin/data_batch_1.bin bin/data_batch_2.bin
    printf '\12' | dd of=bin/data_batch_2.bin conv=notrunc status=none
    refused 65 "at most 9 is legal" "${r[@]}" --data bin
    rm bin/data_batch_2.bin
    refused 66 "data_batch_2.bin" "${r[@]}" --data bin
    "$python" -c '
import os, pickle
class Trap:
    def __reduce__(self):
        return os.system, ("touch trapped",)
pickle.dump({b"data": Trap(), b"labels": [1]}, open("py/data_batch_1", "wb"), 2)'
    refused 65 "a key is no string" "${r[@]}" --data py
    cp py/data_batch_3 py/data_batch_1
    sed -i 's/cnumpy$/cposix/; s/^_reconstruct/system/' py/data_batch_1
    refused 65 "no CIFAR-10 batch" "${r[@]}" --data py
    [ ! -e trapped ]
    truncate -s 40M py/data_batch_1
    refused 65 "at most 33554432 are accepted" "${r[@]}" --data py
}
