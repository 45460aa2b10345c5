#!/usr/bin/env bats
# `ddpbench train --model ...`: every model uses its own training rule, reports it, and refuses data of
# another shape; CIFAR-10 is read in both formats; synthetic data are marked as such.
# shellcheck disable=SC2154 # stderr is set by run --separate-stderr
bats_require_minimum_version 1.5.0

setup() {
    load ../helpers.bash
    bench_setup
    job=(train --epochs 1)
}

teardown_file() {
    load ../helpers.bash
    validate_kept
}

# cifar N: writes CIFAR-10's six files with N images each, the same in both formats: bin/ and py/.
cifar() {
    "$PYTHON" - "$root" "$1" <<'PY'
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

@test "each model brings its own rule" {
    small=(--dataset synthetic --images 300 --epochs 1 --ranks 2)
    while read -r model parameters rule; do
        "$ddpbench" train --model "$model" "${small[@]}" --json run.json >table
        [ "$(json run.json 't[0]["parameters"]')" = "$parameters" ]
        got=$(json run.json '(lambda o: (o["name"], o["lr"], o["momentum"], o["weight_decay"], t[0]["sync"]["init"], t[0]["batch_per_rank"]))(t[0]["optimizer"])')
        [ "$got" = "$rule" ] || { echo "$model: $got"; return 1; }
        keep run.json
    done <<'END'
singa-cnn 431080 ('sgd', 0.005, 0.9, 1e-05, 'he', 64)
lenet 60170 ('sgd', 0.04, 0, 0, 'glorot', 64)
resnet9 431946 ('adam', 0.001, None, 0.001, 'he', 64)
nnabla-tiny 2060 ('adam', 0.001, None, 0, 'glorot', 32)
END
}

@test "synthetic data: marked in table and JSON, and the same with the same seed" {
    tiny=(train --model nnabla-tiny --images 500 --epochs 2 --ranks 1)
    "$ddpbench" "${tiny[@]}" --json a.json >table
    "$ddpbench" "${tiny[@]}" --json b.json >/dev/null
    "$ddpbench" "${tiny[@]}" --seed 2 --json c.json >/dev/null
    grep -q '^# .*synthetic.* 500 .*100 images\|^# .*synthetic (500 + 100 ' table
    [ "$(json a.json 't[0]["dataset"], t[0]["synthetic"], t[0]["train_images"], t[0]["eval_images"]')" = "('synthetic', True, 500, 100)" ]
    [ "$(json a.json '[e["train_loss"] for e in t[0]["epochs"]]')" = "$(json b.json '[e["train_loss"] for e in t[0]["epochs"]]')" ]
    [ "$(json a.json 't[0]["epochs"][0]["train_loss"]')" != "$(json c.json 't[0]["epochs"][0]["train_loss"]')" ]
}

@test "options of the user override the model's rule" {
    "$ddpbench" train --model resnet9 --dataset synthetic --images 200 --epochs 1 --ranks 1 \
        --optimizer sgd --lr 0.02 --momentum 0.5 --weight-decay 0 --init glorot --batch 7 --json run.json >table
    got=$(json run.json '(lambda o: (o["name"], o["lr"], o["momentum"], o["weight_decay"], t[0]["sync"]["init"], t[0]["batch_per_rank"]))(t[0]["optimizer"])')
    [ "$got" = "('sgd', 0.02, 0.5, 0, 'glorot', 7)" ]
    "$ddpbench" train --model lenet --dataset synthetic --images 200 --epochs 1 --ranks 2 --global-batch 9 \
        --json run.json >table
    [ "$(json run.json 't[0]["batch_per_rank"]')" = 5 ]
}

@test "options that do not go together are refused before anything runs" {
    refused 64 "'resnet9'" "'mnist'" -- "${job[@]}" --model resnet9 --dataset mnist
    hint_names "'resnet9'" cifar10 synthetic
    refused 64 "'nnabla-tiny'" 2 "'fashion-mnist'" -- "${job[@]}" --model nnabla-tiny --dataset fashion-mnist
    refused 64 "'lenet'" "'cifar10'" -- "${job[@]}" --model lenet --dataset cifar10
    refused 64 "'adam'" --lr -- "${job[@]}" --model lenet --optimizer adam
    refused 64 --momentum "'adam'" -- "${job[@]}" --model resnet9 --momentum 0.9
    refused 64 --batch --global-batch -- "${job[@]}" --batch 3 --global-batch 6
    refused 64 --images "'fashion-mnist'" -- "${job[@]}" --images 100
    refused 64 "--data" "'synthetic'" -- "${job[@]}" --model nnabla-tiny --data images
    refused 64 batch 1 "2 ranks" -- "${job[@]}" --model nnabla-tiny --global-batch 1 --partition shard --ranks 2
    refused 66 "'$BATS_TEST_TMPDIR'" -- "${job[@]}" --model resnet9 --data "$BATS_TEST_TMPDIR"
    hint_names --data
}

@test "CIFAR-10 in binary and in python form: the same images, the same losses" {
    cifar 40
    for form in bin py; do
        "$ddpbench" train --model resnet9 --data $form --epochs 2 --ranks 2 --json $form.json >table
        [ "$(json $form.json 't[0]["train_images"], t[0]["eval_images"], t[0]["synthetic"]')" = "(200, 40, False)" ]
    done
    losses='[(e["train_loss"], e["eval_loss"]) for e in t[0]["epochs"]]'
    [ "$(json bin.json "$losses")" = "$(json py.json "$losses")" ]
}

@test "hostile CIFAR-10: each kind is refused with 65 and named" {
    cifar 2
    r=(--model resnet9 --ranks 1)
    printf x >>bin/data_batch_2.bin
    refused 65 data_batch_2.bin 3073 -- "${job[@]}" "${r[@]}" --data bin
    cp bin/data_batch_1.bin bin/data_batch_2.bin
    printf '\12' | dd of=bin/data_batch_2.bin conv=notrunc status=none
    refused 65 data_batch_2.bin 9 -- "${job[@]}" "${r[@]}" --data bin
    rm bin/data_batch_2.bin
    refused 66 "data_batch_2.bin" -- "${job[@]}" "${r[@]}" --data bin
    "$PYTHON" -c '
import os, pickle
class Trap:
    def __reduce__(self):
        return os.system, ("touch trapped",)
pickle.dump({b"data": Trap(), b"labels": [1]}, open("py/data_batch_1", "wb"), 2)'
    refused 65 py/data_batch_1 -- "${job[@]}" "${r[@]}" --data py
    cp py/data_batch_3 py/data_batch_1
    sed -i 's/cnumpy$/cposix/; s/^_reconstruct/system/' py/data_batch_1
    refused 65 py/data_batch_1 -- "${job[@]}" "${r[@]}" --data py
    [ ! -e trapped ]
    truncate -s 40M py/data_batch_1
    refused 65 py/data_batch_1 33554432 -- "${job[@]}" "${r[@]}" --data py
}
