#!/usr/bin/env bats
# Every document that the program can write is valid against results/schema, including its digest, and
# the validator detects errors.
# shellcheck disable=SC2154 # ddpbench, root, stderr: helpers.bash, bats
bats_require_minimum_version 1.5.0

setup() {
    load ../helpers.bash
    bench_setup
}

# invalid FILE TEXT: the validator refuses the file with a message that contains TEXT.
invalid() {
    run valid "$1"
    [ "$status" = 1 ] && [[ $output == *"$2"* ]] || { echo "exit $status: $output"; return 1; }
}

# edit FILE EXPRESSION: changes the parsed document d and prints it with a correct digest.
edit() {
    "$PYTHON" - "$root" "$@" <<'PY'
import json, sys
sys.path.insert(0, sys.argv[1] + "/ci")
from validate_json import fnv1a64
d = json.load(open(sys.argv[2]))
p, t = d["points"], d["train"]
exec(sys.argv[3])
del d["digest"]
body = json.dumps(d)[:-1]
print(body + f', "digest": "fnv1a64:{fnv1a64(body.encode()):016x}"' + "}")
PY
}

# described FILE: every property of a schema has a description of one sentence, which names the unit
# that its key names, and says when the value is null and whether older documents lack it. Every
# object is strict, so that no document has a key without a description.
described() {
    "$PYTHON" - "$1" <<'PY'
import json, re, sys
UNITS = {"ns": "nanoseconds", "us": "microseconds", "ms": "milliseconds", "seconds": "seconds", "bytes": "bytes",
         "GBps": "GB/s", "MHz": "MHz", "C": "degrees Celsius", "W": "watts", "percent": "percent"}
schema = json.load(open(sys.argv[1]))
count = 0

def target(node):
    return schema["$defs"][node["$ref"].split("/")[-1]] if "$ref" in node else node

def nullable(node):
    node = target(node)
    return "null" in node.get("type", []) or None in node.get("enum", []) or any(map(nullable, node.get("anyOf", [])))

def unit(key):
    return next((UNITS[word] for word in key.split("_") if word in UNITS), None)

def check(path, node, required, words):
    """words: the unit that the key names, or that of the object around it."""
    text = node.get("description", "")
    for holds, why in [
        (text, "no description"),
        (re.fullmatch(r"[^.!?]((?![.!?]\s).)*\.", text), "not one sentence with a full stop at its end"),
        (not words or words in text, f"the unit '{words}' is missing"),
        (nullable(node) == bool(re.search(r"\bnull\b", text)), "when it is null"),
        (required == ("absent in older documents" not in text), "whether older documents lack it"),
    ]:
        if not holds:
            print(f"{path}: {why}: {text}")
            return

def walk(path, node, around):
    global count
    if "properties" in node and node.get("additionalProperties") is not False:
        print(f"{path}: it may have other keys")
    for key, child in node.get("properties", {}).items():
        words = unit(key) or around
        count += 1
        check(f"{path}.{key}", child, key in node["required"], words)
        walk(f"{path}.{key}", child, words)
    for part in [node["items"]] if "items" in node else node.get("anyOf", []):
        walk(path, part, around)

walk("", schema, None)
for name, node in schema["$defs"].items():
    walk(name, node, None)
print(f"{count} properties")
PY
}

measure() {
    "$ddpbench" allreduce --ranks 1,2 -n "${1:-6}" --size 0,4,4K --json r.json >table 2>err
}

@test "the schema is a valid JSON Schema" {
    run -0 valid --schema
}

@test "all-reduce: one and two ranks, any number of iterations" {
    for n in 1 6 20 100; do
        measure "$n"
        valid r.json
    done
    "$ddpbench" allreduce --ranks 3 -n 2 --check off --samples --algorithm all -d f32,u8 -o avg,max \
        --size 1001 --json r.json >table 2>err
    valid r.json
}

@test "the document holds the environment without secrets" {
    OMP_NUM_THREADS=2 UCX_TLS='' UCX_PASSWORD=hunter2 NCCL_API_KEY=hunter2 HOME=/hunter2 measure
    valid r.json
    grep -q '"OMP_NUM_THREADS": *"2"' r.json
    grep -q '"UCX_TLS": *""' r.json
    ! grep -q hunter2 r.json
}

@test "arguments that are not UTF-8, and seeds up to 2^53 - 1, are kept" {
    "$ddpbench" allreduce --ranks 1 -n 1 --size 4 --seed 9007199254740991 \
        --json "$(printf 'r\377"\\.json')" >table 2>err
    valid r*.json
    grep -q '"seed": *9007199254740991' r*.json
}

# Writes a folder of IDX files with 40 + 20 images of 28 x 28, on which training takes little time.
images() {
    mkdir -p images
    "$PYTHON" - <<'PY'
import random, struct
random.seed(1)
for name, n in ("train", 40), ("t10k", 20):
    with open(f"images/{name}-images-idx3-ubyte", "wb") as f:
        f.write(struct.pack(">IIII", 2051, n, 28, 28) + random.randbytes(n * 784))
    with open(f"images/{name}-labels-idx1-ubyte", "wb") as f:
        f.write(struct.pack(">II", 2049, n) + bytes(i % 10 for i in range(n)))
PY
}

@test "train: with and without a target, cut off by steps" {
    images
    "$ddpbench" train --data images --epochs 2 --batch 8 --ranks 2 --target-accuracy 0.01 \
        --json t.json >table 2>err || { cat err; false; }
    valid t.json
    grep -q '"eval_images": *20' t.json
    "$ddpbench" train --data images --epochs 2 --max-steps 1 --batch 8 --ranks 1 --json t.json \
        >table 2>err || { cat err; false; }
    valid t.json
}

@test "a run that never began leaves no document" {
    run "$ddpbench" train --data nowhere --json n.json
    [ "$status" = 66 ]
    [ ! -e n.json ]
}

@test "a run that failed leaves a partial document, with its reason" {
    run "$ddpbench" train --ranks 1 --blas libnothing.so --json r.json
    [ "$status" = 69 ]
    valid r.json
    grep -q '"status": *"partial"' r.json
    grep -q '"reason": *".*libnothing' r.json
}

@test "a run that was killed leaves a partial document with every point that was printed" {
    # The points run in the order of the table, and take far longer than the test waits.
    "$ddpbench" allreduce --ranks 2 -n 1000 -b 8 -e 64M -f 2 --check all --order given \
        --json r.json >table 2>err &
    local pid=$!
    for _ in $(seq 200); do
        [ "$(grep -vc '^#' table)" -ge 3 ] && break
        sleep 0.05
    done
    kill -9 "$pid"
    wait "$pid" || true
    valid r.json
    [ "$(grep -vc '^#' table)" -ge 3 ]
    [ "$(grep -c '"algorithm_used"' r.json)" -ge "$(grep -vc '^#' table)" ]
    grep -q '"status": *"partial"' r.json
}

@test "the validator finds a flipped byte, a missing digest, duplicate keys and NaN" {
    measure
    sed 's/"cores": *\([0-9]\)/"cores": 9\1/' r.json >flipped.json
    invalid flipped.json digest
    sed 's/fnv1a64:\(.\)/fnv1a64:x\1/' r.json >bad.json
    invalid bad.json digest
    printf '{"schema": "ddpbench/1", "schema": "ddpbench/1"}' >twice.json
    invalid twice.json "duplicate key 'schema'"
    printf '{"a": NaN}' >nan.json
    invalid nan.json "not JSON"
    head -c 500 r.json >cut.json
    invalid cut.json "not JSON"
    run valid missing.json
    [ "$status" = 2 ]
}

@test "the schema is strict: keys, types, null rules" {
    measure
    edit r.json 'pass' >same.json
    valid same.json
    edit r.json 'd["extra"] = 1' >e.json
    invalid e.json "'extra' was unexpected"
    edit r.json 'del p[0]["bound"]' >e.json
    invalid e.json "'bound' is a required property"
    edit r.json 'p[0]["iterations"] = "6"' >e.json
    invalid e.json "'6'"
    edit r.json 'd["reason"] = "why"' >e.json
    invalid e.json reason
    edit r.json 'd["status"] = "partial"' >e.json
    invalid e.json reason
    edit r.json 'd["environment"]["MY_TOKEN"] = "x"' >e.json
    invalid e.json MY_TOKEN
    # with one rank nothing is sent or checked, so the values are null, never 0
    edit r.json '[q for q in p if q["ranks"] == 1][0]["busbw_GBps"] = 0' >e.json
    invalid e.json busbw_GBps
    edit r.json '[q for q in p if q["size_bytes"] == 0][0]["algbw_GBps"] = 0' >e.json
    invalid e.json algbw_GBps
    edit r.json '[q for q in p if q["ranks"] == 2 and q["count"]][0]["busbw_GBps"] = None' >e.json
    invalid e.json busbw_GBps
    edit r.json 'p[0]["check"]["wrong"] = 3' >e.json
    invalid e.json wrong
    edit r.json 'p[0]["time_us"]["p99"] = 1' >e.json
    invalid e.json p99
}

@test "the schema is strict about compressed points, too" {
    "$ddpbench" allreduce --ranks 2 -n 6 --size 4K --compress none,fp16,topk:0.1 --json r.json >table 2>err
    valid r.json
    edit r.json 'p[1]["busbw_GBps"] = 1' >e.json
    invalid e.json busbw_GBps
    edit r.json 'p[1]["effective_GBps"] = None' >e.json
    invalid e.json effective_GBps
    edit r.json 'p[0]["effective_GBps"] = 1' >e.json
    invalid e.json effective_GBps
    edit r.json 'p[0]["pays_below_GBps"] = 1' >e.json
    invalid e.json pays_below_GBps
    edit r.json 'p[0]["verdict"] = "it pays here"' >e.json
    invalid e.json verdict
    edit r.json 'p[2]["pays_below_GBps"] = -1' >e.json
    invalid e.json pays_below_GBps
    edit r.json 'p[0]["phase_us"]["encode"] = 1' >e.json
    invalid e.json encode
    edit r.json 'p[2]["compress"]["feedback"] = None' >e.json
    invalid e.json feedback
    edit r.json 'p[2]["break_even"]["f32"]["predicted"] = 1.5' >e.json
    invalid e.json predicted
    edit r.json 'del p[2]["break_even"]["f16"]["measured"]' >e.json
    invalid e.json break_even
    edit r.json 'p[1]["effective_GBps"] *= 1.01' >e.json
    invalid e.json "size/time x factor"
}

@test "the validator checks relations that a schema cannot express" {
    measure
    edit r.json 'p[-1]["busbw_GBps"] *= 1.01' >e.json
    invalid e.json "algbw x factor"
    edit r.json 'p[-1]["time_us"]["min"] = p[-1]["time_us"]["max"] + 1' >e.json
    invalid e.json "not in order"
    edit r.json 'p.append(p[0])' >e.json
    invalid e.json "id twice"
}

@test "documents of older versions are valid: pays as a boolean, without link speeds" {
    "$ddpbench" train --ranks 2 --dataset synthetic --images 64 --epochs 1 --compare dense,fp16 --json t.json >table 2>err
    valid t.json
    for pays in True False None '"unclear"'; do
        edit t.json "[q.pop('pays_below_GBps') for q in d['comparison']]; d['comparison'][1]['pays'] = $pays" >e.json
        valid e.json
        run -12 "$ddpbench" compare e.json e.json # reads both documents; training runs are not judged
    done
    for pays in '"maybe"' 1 '"true"'; do
        edit t.json "d['comparison'][1]['pays'] = $pays" >e.json
        invalid e.json "${pays//\"/}"
    done
    measure
    edit r.json "[(q.pop('pays_below_GBps'), q.pop('verdict')) for q in p]" >e.json
    valid e.json
    # The label of older documents was the note. Now it is the user's, who may write anything.
    none="[q.update(dict.fromkeys(('algbw_GBps', 'busbw_GBps', 'effective_GBps', 'busbw_ci95_GBps'))) for q in p]"
    edit r.json "del d['note']; d['label'] = 'correctness-only'; $none" >e.json
    valid e.json
    edit r.json "d['label'] = 'correctness-only'" >e.json
    valid e.json
    edit r.json "d['label'] = 'correctness-only'; $none" >e.json
    invalid e.json GBps
}

@test "every property of every schema has a description of one sentence with its unit" {
    for schema in "$root"/results/schema/*.json; do
        run described "$schema"
        [ "$status" = 0 ] && [ "${#lines[@]}" = 1 ] || { echo "$output"; return 1; }
    done
    # The check finds each kind of mistake.
    while IFS='|' read -r wrong edit; do
        "$PYTHON" - "$root/results/schema/ddpbench-1.schema.json" "$edit" >bad.json <<'PY'
import json, sys
d = json.load(open(sys.argv[1]))
p = d["$defs"]["point"]["properties"]
t = p["time_us"]["properties"]["p95"]
exec(sys.argv[2])
json.dump(d, sys.stdout)
PY
        run described bad.json
        [ "${#lines[@]}" = 2 ] && [[ ${lines[0]} == *"$wrong"* ]] || { echo "$edit: $output"; return 1; }
    done <<'EOF'
point.op: no description|del p["op"]["description"]
point.op: not one sentence|p["op"]["description"] = "Sum or average. Null for a broadcast."
point.op: not one sentence|p["op"]["description"] = "sum or average"
p95: the unit 'microseconds'|t["description"] = "The 95th percentile; null with fewer than 20 iterations."
p95: when it is null|t["description"] = "The 95th percentile in microseconds."
point.groups: when it is null|p["groups"]["description"] = "The number of groups; null without groups."
point.quality: whether older documents lack it|p["quality"]["description"] = "The codes."
point.op: whether older documents lack it|p["op"]["description"] = "Sum or average; null or absent in older documents."
side: it may have other keys|del d["$defs"]["side"]["additionalProperties"]
EOF
}
