#!/usr/bin/env bats
# `ddpbench train` learns, gives the same losses for the same command, and refuses bad data with the
# right exit code before anything runs.
# shellcheck disable=SC2154 # stderr is set by run --separate-stderr
bats_require_minimum_version 1.5.0

setup() {
    load ../helpers.bash
    bench_setup
    job=(train --epochs 1)
}

# Writes a folder of IDX files with 200 + 50 images of 28 x 28, gzipped unless plain is given.
images() {
    mkdir -p images
    "$PYTHON" - "${1:-gz}" <<'PY'
import gzip, random, struct, sys
random.seed(1)
def put(name, data):
    if sys.argv[1] == "plain":
        open(f"images/{name}", "wb").write(data)
    else:
        gzip.open(f"images/{name}.gz", "wb").write(data)
for name, n in ("train", 200), ("t10k", 50):
    put(f"{name}-images-idx3-ubyte", struct.pack(">IIII", 2051, n, 28, 28) + random.randbytes(n * 784))
    put(f"{name}-labels-idx1-ubyte", struct.pack(">II", 2049, n) + bytes(i % 10 for i in range(n)))
PY
}

# Prints losses, accuracies and bytes of every epoch of a run, without times.
results() {
    "$PYTHON" -c '
import json, sys
keys = "train_loss", "train_accuracy", "eval_loss", "eval_accuracy", "wire_bytes_per_rank"
for t in json.load(open(sys.argv[1]))["train"]:
    for e in t["epochs"]:
        print(*(repr(e[k]) for k in keys))' "$1"
}

# train NAME OPTION...: trains on images/ and writes the document NAME.json. Reads epochs, batch and
# ranks, if they are set.
train() {
    local name=$1
    shift
    "$ddpbench" train --data images --epochs "${epochs:-2}" --batch "${batch:-16}" --ranks "${ranks:-2}" --json "$name.json" "$@" \
        >"$name.table" 2>"$name.err" || { cat "$name.err"; return 1; }
}

@test "the memory copy control is measured before and after the run" {
    "$ddpbench" train --ranks 2 --dataset synthetic --images 128 --epochs 1 --json c.json -q >table
    "$PYTHON" -c 'import json; c = json.load(open("c.json"))["control"]; assert len(c) == 2 and all(x["ranks"] == 2 and x["copy_GBps"] > 0 for x in c), c'
    [ "$(grep -c '^# .*2 ranks.* copy.* GB/s' table)" = 2 ]
}

@test "Fashion-MNIST: 60 steps teach it most of the classes" {
    [ -d /usr/share/datasets/fashion-mnist ] || skip "dataset-fashion-mnist is not installed"
    "$ddpbench" train --ranks 2 --max-steps 60 --lr 0.02 --json run.json >table
    "$PYTHON" -c '
import json
e = json.load(open("run.json"))["train"][0]["epochs"][0]
assert e["eval_accuracy"] > 0.6, e
assert e["images_per_second"] > 0 and e["exchange_seconds"] > 0, e'
}

@test "the same command twice: the same losses, bit for bit; another seed: others" {
    images
    train a
    train b
    train c --seed 2
    [ "$(results a.json)" = "$(results b.json)" ]
    [ "$(results a.json)" != "$(results c.json)" ]
    [ "$(results a.json | wc -l)" = 2 ]
}

@test "buckets, threads and plain files change nothing in the result" {
    images
    train a
    train buckets --bucket-bytes 4K --check-replicas step
    train threads --launch threads
    rm -r images
    images plain
    train plain
    for other in buckets threads plain; do
        [ "$(results a.json)" = "$(results $other.json)" ] || { echo $other; false; }
    done
}

@test "one rank with batches of 32 gives the same result as two ranks with 16" {
    images
    train two
    ranks=1 batch=32 train one
    "$PYTHON" -c '
import json
a, b = (json.load(open(f"{n}.json"))["train"][0]["epochs"] for n in ("one", "two"))
for x, y in zip(a, b):
    assert abs(x["train_loss"] - y["train_loss"]) < 1e-5 * x["train_loss"], (x, y)'
}

@test "sync none sends nothing; shards and other first weights work" {
    images
    train none --sync none
    [ "$(results none.json | awk '{ s += $5 } END { print s }')" = 0 ]
    train shard --partition shard --init glorot --init-sync average --check-replicas step
    train seed --init-sync seed --target-accuracy 1
    grep -A 3 '"target"' seed.json | grep -q '"epoch": *null' # never reached
}

@test "progress goes to stderr, and only on request" {
    images
    epochs=20 train always --progress always
    grep -q 'images/s' always.err
    run ! grep -q ', step [0-9]' always.table
    epochs=20 train never --progress never
    run ! grep -q 'images/s' never.err
}

@test "hostile data: each kind is refused with 65 and named" {
    images plain
    cp -r images good
    head -c 1000 good/train-images-idx3-ubyte >images/train-images-idx3-ubyte
    refused 65 train-images-idx3-ubyte -- "${job[@]}" --data images
    cp good/train-images-idx3-ubyte images/
    echo x >>images/t10k-images-idx3-ubyte
    refused 65 t10k-images-idx3-ubyte -- "${job[@]}" --data images
    printf 'not IDX at all, but long enough' >images/t10k-images-idx3-ubyte
    refused 65 t10k-images-idx3-ubyte -- "${job[@]}" --data images
    printf '\0\0\10\3\377\377\377\377\377\377\377\377\377\377\377\377' >images/t10k-images-idx3-ubyte
    refused 65 t10k-images-idx3-ubyte -- "${job[@]}" --data images
    # 64 MiB of zeros, compressed to 64 KiB, after a header for 50 images.
    rm images/t10k-images-idx3-ubyte
    { head -c 16 good/t10k-images-idx3-ubyte; head -c 64M /dev/zero; } |
        gzip -9 >images/t10k-images-idx3-ubyte.gz
    refused 65 t10k-images-idx3-ubyte -- "${job[@]}" --data images
    rm images/t10k-images-idx3-ubyte.gz
    cp good/t10k-images-idx3-ubyte images/
    cp good/train-labels-idx1-ubyte images/t10k-labels-idx1-ubyte
    refused 65 t10k 200 50 -- "${job[@]}" --data images
}

@test "missing, unreadable, of another shape, too large: 66, 77, 64, 71" {
    images plain
    refused 66 "'nowhere'" -- "${job[@]}" --data nowhere
    refused 66 images/train-labels-idx1-ubyte -- "${job[@]}" --data images/train-labels-idx1-ubyte
    refused 66 "'nowhere'" -- "${job[@]}" --dataset mnist --data nowhere
    hint_names --data
    DDPBENCH_DATA_DIR=nowhere refused 66 "nowhere" -- "${job[@]}" 
    refused 71 GiB -- "${job[@]}" --data images --batch 1048576 --ranks 200
    printf '\0\0\10\3\0\0\0\1\0\0\0\1\0\0\0\1\0' | tee images/t10k-images-idx3-ubyte \
        >images/train-images-idx3-ubyte
    printf '\0\0\10\1\0\0\0\1\0' | tee images/t10k-labels-idx1-ubyte >images/train-labels-idx1-ubyte
    echo good >kept.json
    refused 64 "1 x 28 x 28" -- "${job[@]}" --data images --ranks 1 --json kept.json
    [ "$(cat kept.json)" = good ]
    chmod 000 images/train-images-idx3-ubyte
    if [ "$(id -u)" = 0 ]; then
        # Root gives away the capabilities that let it read every file.
        read_all=-dac_override,-dac_read_search
        plain_root=(setpriv "--inh-caps=$read_all" "--bounding-set=$read_all")
        run "${plain_root[@]}" test -r images/train-images-idx3-ubyte
        [ "$status" = 1 ] || skip "root may not give capabilities away"
        run --separate-stderr "${plain_root[@]}" "$ddpbench" train --data images
        [ "$status" = 77 ]
        error_names images/train-images-idx3-ubyte
    else
        refused 77 "train-images" -- "${job[@]}" --data images
    fi
}

@test "the record holds path and hash of the data, and the name of a known data set" {
    images gz
    of() { "$PYTHON" -c 'import json; t = json.load(open("data.json"))["train"][0]; print(t["dataset"], t["data"]["path"], t["data"]["hash"])'; }
    "$ddpbench" train --ranks 1 --max-steps 1 --data images --json data.json >/dev/null 2>&1
    first=$(of)
    [[ $first == "custom images fnv1a64:"* ]]
    "$ddpbench" train --ranks 1 --max-steps 1 --data images --dataset mnist --json data.json >/dev/null 2>&1
    [ "$(of)" = "mnist images ${first##* }" ]
    "$PYTHON" - <<'PY'
import gzip, json
state = 0xcbf29ce484222325
for name, head in ("train-images-idx3", 16), ("train-labels-idx1", 8), ("t10k-images-idx3", 16), ("t10k-labels-idx1", 8):
    for byte in gzip.open(f"images/{name}-ubyte.gz").read()[head:]:
        state = (state ^ byte) * 0x100000001b3 & 0xffffffffffffffff
assert json.load(open("data.json"))["train"][0]["data"]["hash"] == f"fnv1a64:{state:016x}"
PY
}

@test "illegal options are refused before any data is read" {
    refused 64 "'densse'" -- "${job[@]}" --data nowhere --sync densse
    hint_names "'dense'"
    refused 64 "'dense:4'" -- "${job[@]}" --data nowhere --sync dense:4
    refused 64 --momentum "'1.5'" -- "${job[@]}" --data nowhere --momentum 1.5
    refused 64 "'resnet'" -- "${job[@]}" --data nowhere --model resnet
    message_names "'resnet9'"
}

@test "--partition weights:3,1 trains as one rank with the same images" {
    images
    ok train --data images --epochs 2 --batch 64 --ranks 1 --json one.json
    batch=32 train weighted --partition weights:3,1 --format csv=weighted.csv
    "$PYTHON" - <<'PY'
import csv, json
one, two = (json.load(open(f + ".json"))["train"][0] for f in ("one", "weighted"))
assert two["sync"]["partition"] == "weights:3,1" and two["batch_per_rank"] == 48, two
for a, b in zip(one["epochs"], two["epochs"], strict=True):
    for key in "train_loss", "eval_loss":
        assert abs(a[key] - b[key]) < 2e-6 * a[key], (key, a[key], b[key])
assert {row["partition"] for row in csv.DictReader(open("weighted.csv")) if row["partition"]} == {"weights:3,1"}
PY
    "$PYTHON" "$root/ci/validate_json.py" weighted.json
    ok train --compare dense,none --partition weights:3,1 --dataset synthetic --images 100 --epochs 1 --ranks 2
    refused 64 weights 3 -- train --dataset synthetic --ranks 3 --partition weights:3,1
    refused 64 --partition weights:0,1 -- train --dataset synthetic --ranks 2 --partition weights:0,1
}

@test "epochs have the bus bandwidth of the dense exchange, and of no other" {
    ok train --dataset synthetic --images 300 --epochs 1 --ranks 3 --compare dense,fp16 --json bus.json --format csv=bus.csv
    "$PYTHON" "$root/ci/validate_json.py" bus.json
    "$PYTHON" - <<'PY'
import csv, json
for run in json.load(open("bus.json"))["train"]:
    for e in run["epochs"]:
        gbps = e["exchange_busbw_GBps"]
        if run["sync"]["strategy"] == "dense" and not run["baseline"]:
            want = e["steps"] * run["parameters"] * 4 * (2 * 2 / 3) / e["exchange_seconds"] / 1e9
            assert gbps > 0 and abs(gbps / want - 1) < 1e-6, (gbps, want)
        else:
            assert gbps is None, run
assert sum(row["exchange_busbw_GBps"] != "" for row in csv.DictReader(open("bus.csv"))) == 1
PY
}
