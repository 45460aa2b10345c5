#!/usr/bin/python3
"""Validates ddpbench result files: schema, digest, and relations that JSON Schema cannot express.

Usage: ci/validate_json.py FILE...     ("-" is standard input)
       ci/validate_json.py --schema    validates the schema itself, which takes longer than a file
Prints what is wrong with each file. Exits with 1 if a file is invalid, with 2 if it cannot be checked.
The script is independent of the C code on purpose: it computes the digest itself.
"""
import json
import math
import os
import sys

from canonical_json import canonical_digest, fnv1a64

try:
    import jsonschema
except ImportError:
    sys.exit("validate_json: python3-jsonschema is not installed (`make deps` installs it)")

SCHEMA = os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir,
                      "results", "schema", "ddpbench-1.schema.json")
FACTORS = {"allreduce": lambda n: 2 * (n - 1) / n,
           "broadcast": lambda n: 1, "reduce": lambda n: 1, "send-recv": lambda n: 1}


def refuse_duplicates(pairs):
    keys = [key for key, _ in pairs]
    for key in keys:
        if keys.count(key) > 1:
            raise ValueError(f"duplicate key '{key}'")
    return dict(pairs)


def refuse_constant(name):
    raise ValueError(f"'{name}' is not JSON")


def digest_errors(raw, document):
    """Digests of earlier versions cover every byte up to the comma before the last key."""
    got = document["digest"]
    if got.startswith("jcs-"):
        want = canonical_digest(document)
    elif list(document)[-1] != "digest":
        return ["digest: not the last key"]
    else:
        comma = raw.rfind(b",", 0, raw.rfind(b'"digest"'))
        want = f"fnv1a64:{fnv1a64(raw[:comma]):016x}"
    return [] if got == want else [f"digest: the file says {got}, its content gives {want}"]


def close(a, b):
    return math.isclose(a, b, rel_tol=1e-9)


def point_errors(point):
    """Relations between the values of one point."""
    found = []
    time, median = point["time_us"], point["time_us"]["median"]
    ordered = [time[key] for key in ("min", "p25", "median", "p75", "p95", "p99", "max")
               if time[key] is not None]
    if ordered != sorted(ordered):
        found.append(f"time_us: min..max are not in order: {ordered}")
    if time["ci95"] and not time["ci95"][0] <= median <= time["ci95"][1]:
        found.append(f"time_us: the median {median} lies outside its interval {time['ci95']}")
    if point["algbw_GBps"] is not None:
        algbw = point["size_bytes"] / median / 1e3
        if not close(algbw, point["algbw_GBps"]):
            found.append(f"algbw_GBps: {point['algbw_GBps']}, but size/time is {algbw}")
        n = point["ranks"]
        busbw = algbw * FACTORS.get(point["collective"], lambda n: (n - 1) / n)(n)
        if point.get("busiest_bytes"):
            busbw = algbw * point["busiest_bytes"] / point["size_bytes"]
        if point["busbw_GBps"] is not None and not close(busbw, point["busbw_GBps"]):
            found.append(f"busbw_GBps: {point['busbw_GBps']}, but algbw x factor is {busbw}")
    if point["effective_GBps"] is not None:
        n = point["ranks"]
        effective = point["size_bytes"] / median / 1e3 * FACTORS["allreduce"](n)
        if not close(effective, point["effective_GBps"]):
            found.append(f"effective_GBps: {point['effective_GBps']}, but size/time x factor is "
                         f"{effective}")
    interval = point["busbw_ci95_GBps"]
    if interval and not interval[0] <= point["busbw_GBps"] <= interval[1]:
        found.append("busbw_ci95_GBps: does not contain busbw")
    if point["samples_us"] is not None and len(point["samples_us"]) != point["iterations"]:
        found.append("samples_us: not one value per iteration")
    if point["size_bytes"] > point["requested_bytes"]:
        found.append("size_bytes: larger than requested")
    return [f"{point['id']}: {text}" for text in found]


def relation_errors(document):
    found = []
    ids = [(point["id"], point["launch"] or 0) for point in document["points"]]
    found += [f"points: id twice: {i[0]}" for i in sorted(set(ids)) if ids.count(i) > 1]
    for point in document["points"]:
        found += point_errors(point)
    for run in document["train"]:
        epochs = [epoch["epoch"] for epoch in run["epochs"]]
        if epochs != list(range(1, len(epochs) + 1)):
            found.append(f"train: epochs are {epochs}")
    return found


def errors_of(raw, validator):
    try:
        document = json.loads(raw.decode("utf-8"), object_pairs_hook=refuse_duplicates,
                              parse_constant=refuse_constant)
    except ValueError as error:
        return [f"not JSON: {error}"]
    found = ["/".join(map(str, error.absolute_path)) + ": " + error.message.splitlines()[0][:300]
             for error in validator.iter_errors(document)]
    if found:
        return found
    return digest_errors(raw, document) + relation_errors(document)


def main(names):
    if not names:
        print(__doc__, file=sys.stderr)
        return 2
    with open(SCHEMA, encoding="utf-8") as file:
        schema = json.load(file)
    if names == ["--schema"]:
        jsonschema.Draft202012Validator.check_schema(schema)
        return 0
    validator = jsonschema.Draft202012Validator(schema)
    bad = 0
    for name in names:
        try:
            if name == "-":
                raw = sys.stdin.buffer.read()
            else:
                with open(name, "rb") as file:
                    raw = file.read()
        except OSError as error:
            print(f"validate_json: {error}", file=sys.stderr)
            return 2
        found = errors_of(raw, validator)
        bad += bool(found)
        for text in found:
            print(f"{name}: {text}", file=sys.stderr)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
