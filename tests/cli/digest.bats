#!/usr/bin/env bats
# The digest of a document: programs that keep all values keep it valid. Python computes the same
# digest as ddpbench.
# shellcheck disable=SC2154 # set by helpers.bash and bats
bats_require_minimum_version 1.5.0

setup() {
    load ../helpers
    bench_setup
    "$ddpbench" allreduce --ranks 2 -n 20 --size 4K --json r.json >/dev/null
}

# compares FILE: compare accepts the file, so that its digest is right.
compares() {
    run --separate-stderr "$ddpbench" compare r.json "$1" --json /dev/null
    [ "$status" != 65 ] || { echo "$1: $stderr"; return 1; }
}

@test "a document that was formatted again stays valid" {
    "$PYTHON" -m json.tool r.json >tool.json
    "$PYTHON" -m json.tool --sort-keys --indent 7 r.json >sorted.json
    "$PYTHON" -c 'import json; json.dump(json.load(open("r.json")), open("short.json", "w"), separators=(",", ":"))'
    for file in tool sorted short; do
        ! cmp -s r.json "$file.json"
        compares "$file.json"
        valid "$file.json"
    done
    if command -v jq >/dev/null; then
        jq . r.json >jq.json
        compares jq.json
    fi
    sed 's/"iterations": 20/"iterations": 21/' tool.json >changed.json
    run -65 "$ddpbench" compare r.json changed.json
    error_names changed.json
}

@test "Python and ddpbench agree on the digest of any keys, texts and numbers" {
    "$PYTHON" - "$root" <<'END'
import json, math, random, struct, sys
sys.path.insert(0, sys.argv[1] + "/ci")
from canonical_json import canonical_digest
rng = random.Random(1)
values = [struct.unpack("<d", rng.randbytes(8))[0] for _ in range(20000)]
values = [v for v in values if math.isfinite(v)]
values += [sign * math.ldexp(1, e) for e in range(-1074, 1024) for sign in (1, -1)]
values += [rng.randrange(10**rng.randrange(1, 22)) / 10**rng.randrange(9) for _ in range(20000)]
values += [0.0, -0.0, 10**20, 10**21, 10**22, 2**53 + 1, 5e-324]
texts = ["".join(chr(rng.choice([rng.randrange(1, 0x80), rng.randrange(0xE000, 0x10FFFF)])) for _ in range(9)) for _ in range(500)]
doc = json.load(open("r.json"))
doc["environment"] = {"numbers": values, "texts": texts, "keys": dict.fromkeys(texts + ["\ufb33", "\U0001f600", "\u20ac"])}
doc["digest"] = canonical_digest(doc)
json.dump(doc, open("any.json", "w"))
doc["environment"]["numbers"][7] = math.nextafter(values[7], 0)
json.dump(doc, open("other.json", "w"))
END
    compares any.json
    run -65 "$ddpbench" compare r.json other.json
    error_names other.json
}
