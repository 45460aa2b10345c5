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
    edits "$1" edited <<<"$2" && cat edited-00.json
}

# edits FILE NAME: reads lines "EXPRESSION" or "EXPRESSION|TEXT" from stdin. For each line it changes the parsed
# document d and writes it with a correct digest to NAME-00.json, NAME-01.json, and so on.
edits() {
    cat >"$2.lines"
    rm -f "$2"-*.json
    "$PYTHON" - "$root" "$@" <<'PY'
import json, sys
sys.path.insert(0, sys.argv[1] + "/ci")
from canonical_json import fnv1a64
document = open(sys.argv[2]).read()
for i, line in enumerate(open(sys.argv[3] + ".lines")):
    d = json.loads(document)
    p, t = d["points"], d["train"]
    exec(line.split("|")[0])
    del d["digest"]
    body = json.dumps(d)[:-1]
    with open(f"{sys.argv[3]}-{i:02}.json", "w") as out:
        out.write(body + f', "digest": "fnv1a64:{fnv1a64(body.encode()):016x}"' + "}\n")
PY
}

# refuted FILE: reads lines "EXPRESSION|TEXT" from stdin. The validator refuses the document that each expression
# makes of FILE, with a message that contains TEXT.
refuted() {
    local i=0 text
    edits "$1" wrong
    run valid wrong-*.json
    [ "$status" = 1 ]
    while IFS='|' read -r _ text; do
        grep "^wrong-$(printf %02d $i)\.json: " <<<"$output" | grep -qF -- "$text" || {
            echo "$1, line $((i + 1)), $text: $output"
            return 1
        }
        i=$((i + 1))
    done <wrong.lines
    [ "$i" -gt 0 ]
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
        mv r.json "r$n.json"
    done
    "$ddpbench" allreduce --ranks 3 -n 2 --check off --samples --algorithm all -d f32,u8 -o avg,max \
        --size 1001 --json r.json >table 2>err
    valid r.json r1.json r6.json r20.json r100.json
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
    # With one rank nothing is sent or checked, so the values are null and not 0.
    refuted r.json <<'END'
d["extra"] = 1|'extra' was unexpected
del p[0]["bound"]|'bound' is a required property
p[0]["iterations"] = "6"|'6'
d["reason"] = "why"|reason
d["status"] = "partial"|reason
d["environment"]["MY_TOKEN"] = "x"|MY_TOKEN
[q for q in p if q["ranks"] == 1][0]["busbw_GBps"] = 0|busbw_GBps
[q for q in p if q["size_bytes"] == 0][0]["algbw_GBps"] = 0|algbw_GBps
[q for q in p if q["ranks"] == 2 and q["count"]][0]["busbw_GBps"] = None|busbw_GBps
p[0]["check"]["wrong"] = 3|wrong
p[0]["time_us"]["p99"] = 1|p99
END
}

@test "the schema is strict about compressed points, too" {
    "$ddpbench" allreduce --ranks 2 -n 6 --size 4K --compress none,fp16,topk:0.1 --json r.json >table 2>err
    valid r.json
    refuted r.json <<'END'
p[1]["busbw_GBps"] = 1|busbw_GBps
p[1]["effective_GBps"] = None|effective_GBps
p[0]["effective_GBps"] = 1|effective_GBps
p[0]["pays_below_GBps"] = 1|pays_below_GBps
p[0]["verdict"] = "it pays here"|verdict
p[2]["pays_below_GBps"] = -1|pays_below_GBps
p[0]["phase_us"]["encode"] = 1|encode
p[2]["compress"]["feedback"] = None|feedback
p[2]["break_even"]["f32"]["predicted"] = 1.5|predicted
del p[2]["break_even"]["f16"]["measured"]|break_even
p[1]["effective_GBps"] *= 1.01|size/time x factor
END
}

@test "the validator checks relations that a schema cannot express" {
    measure
    refuted r.json <<'END'
p[-1]["busbw_GBps"] *= 1.01|algbw x factor
p[-1]["time_us"]["min"] = p[-1]["time_us"]["max"] + 1|not in order
p.append(p[0])|id twice
END
}

@test "documents of older versions are valid: pays as a boolean, without link speeds" {
    "$ddpbench" train --ranks 2 --dataset synthetic --images 64 --epochs 1 --compare dense,fp16 --json t.json >table 2>err
    valid t.json
    for pays in True False None '"unclear"'; do
        echo "[q.pop('pays_below_GBps') for q in d['comparison']]; d['comparison'][1]['pays'] = $pays"
    done | edits t.json older
    valid older-0{0,1,2,3}.json
    for n in 0 1 2 3; do
        run -12 "$ddpbench" compare older-0$n.json older-0$n.json # reads both documents; training runs are not judged
    done
    refuted t.json <<'END'
d['comparison'][1]['pays'] = "maybe"|maybe
d['comparison'][1]['pays'] = 1|1
d['comparison'][1]['pays'] = "true"|true
END
    measure
    # The label of older documents was the note. Now it is the user's, who may write anything.
    none="[q.update(dict.fromkeys(('algbw_GBps', 'busbw_GBps', 'effective_GBps', 'busbw_ci95_GBps'))) for q in p]"
    edits r.json older <<END
[(q.pop('pays_below_GBps'), q.pop('verdict')) for q in p]
del d['note']; d['label'] = 'correctness-only'; $none
d['label'] = 'correctness-only'
END
    valid older-0{0,1,2}.json
    refuted r.json <<<"d['label'] = 'correctness-only'; $none|GBps"
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
