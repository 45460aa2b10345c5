#!/usr/bin/env python3
"""Reads the outputs of the reporters with the programs and libraries that people read them with.

compare.py of Google Benchmark reads gbench, junitparser reads junit, and pandas reads csv, jsonl and
json. Prints TAP. A test fails if a reader refuses an output, or if a value differs from that of the
JSON document. `make readers` installs the readers. DDPBENCH: the program under test.
"""
import csv
import json
import math
import os
import pathlib
import subprocess
import sys
import tempfile
import traceback

import junitparser
import pandas
from pandas.api.types import is_numeric_dtype, is_string_dtype

ROOT = pathlib.Path(__file__).resolve().parents[2]
DDPBENCH = os.path.abspath(os.environ.get("DDPBENCH", ROOT / "build" / "ddpbench"))
COMPARE = "/usr/share/benchmark/compare.py"  # of the Debian package libbenchmark-tools
FAKE = f"'{sys.executable}' '{ROOT}/tests/gate/fake_launch.py'"
POINTS = ["--ranks", "2", "-n", "12", "--size", "4,64K", "--compress", "none,fp16,topk:0.1"]
TRAIN = ["--ranks", "2", "--dataset", "synthetic", "--images", "128", "--epochs", "2", "--compare", "dense,fp16"]
# The columns of csv that hold text. pandas must find numbers in all others.
TEXT = set("""kind id collective backend algorithm algorithm_used dtype op placement memory compress feedback start stop
wire_bytes_source dense_algorithm_f32 dense_algorithm_f16 bound check model dataset sync optimizer aggregate
partition init init_sync strategy reference pays verdict quality first answer""".split())
# Text in the documents, where csv has other columns.
TEXT_PATHS = TEXT | {"compress.method", "compress.feedback", "dense_algorithm.f32", "dense_algorithm.f16", "bound.kind",
                     "check.mode"}


def run(command, expected=0):
    """Runs ddpbench and checks its exit code."""
    done = subprocess.run([DDPBENCH, *command], capture_output=True, text=True, timeout=120)
    assert done.returncode == expected, f"{command}: exit {done.returncode}: {done.stdout}{done.stderr}"


def outputs(name, *formats):
    return ["--json", f"{name}.json", "--format", ",".join(f"{f}={name}.{f}" for f in formats)]


def load(path):
    with open(path, encoding="utf-8") as f:
        return json.load(f)


def near(a, b):
    """True for equal numbers, and if both are missing."""
    if a is None or b is None or pandas.isna(a) or pandas.isna(b):
        return (a is None or pandas.isna(a)) and (b is None or pandas.isna(b))
    return math.isclose(a, b, rel_tol=1e-12)


def compare_py(a, b):
    """Returns what compare.py found, by the names of benchmarks."""
    command = [sys.executable, COMPARE, "--no-color", "-a", "-d", "diff.json", "benchmarks", a, b]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, f"compare.py: exit {done.returncode}: {done.stdout}{done.stderr}"
    return {e["name"]: e for e in load("diff.json")}, done.stdout


def gbench_points():
    for side in "a", "b":
        run(["allreduce", *POINTS, "--samples", *outputs(side, "gbench")])
    found, printed = compare_py("a.gbench", "b.gbench")
    sides = [{p["id"]: p for p in load(f"{s}.json")["points"]} for s in "ab"]
    assert len(sides[0]) == 6 and set(sides[0]) <= set(found), set(found)  # and OVERALL_GEOMEAN
    for name, point in sides[0].items():
        entry = found[name]
        assert entry["time_unit"] == "ns" and name in printed
        for key, samples in ("real_time", point), ("real_time_other", sides[1][name]):
            times = [m[key] for m in entry["measurements"]]
            assert len(times) == 12 and all(map(near, times, [t * 1e3 for t in samples["samples_us"]])), (name, key)
        assert 0 <= entry["utest"]["time_pvalue"] <= 1 and entry["utest"]["nr_of_repetitions"] == 12


def gbench_medians_and_epochs():
    for side in "a", "b":
        run(["allreduce", *POINTS, *outputs(side, "gbench")])
    found, _ = compare_py("a.gbench", "b.gbench")
    a, b = ({p["id"]: p["time_us"]["median"] for p in load(f"{s}.json")["points"]} for s in "ab")
    for name, median in a.items():
        (times,) = found[name]["measurements"]
        assert near(times["real_time"], median * 1e3) and near(times["real_time_other"], b[name] * 1e3)
        assert abs(times["time"] - (b[name] - median) / median) < 1e-9
    for side in "a", "b":
        run(["train", *TRAIN, *outputs(side, "gbench")])
    found, _ = compare_py("a.gbench", "b.gbench")
    seconds = [e["seconds"] for t in load("a.json")["train"] for e in t["epochs"]]
    times = [m["real_time"] for name, e in found.items() if name.startswith("train/") for m in e["measurements"]]
    assert len(seconds) >= 5 and all(map(near, times, [s * 1e9 for s in seconds])), (times, seconds)


def suite(path, name, tests, failures, skipped):
    """Returns the cases of the only suite of a file, by name."""
    (found,) = junitparser.JUnitXml.fromfile(path)
    assert found.name == name and found.timestamp, (found.name, found.timestamp)
    assert (found.tests, found.failures, found.skipped, found.errors) == (tests, failures, skipped, 0), path
    cases = list(found)
    assert len(cases) == tests
    kinds = [type(r) for c in cases for r in c.result]
    assert kinds.count(junitparser.Failure) == failures and kinds.count(junitparser.Skipped) == skipped
    counted = junitparser.TestSuite("counted")
    counted.add_testcases(cases)
    assert (counted.tests, counted.failures, counted.skipped) == (tests, failures, skipped)
    assert len({c.name for c in cases}) == tests, path  # CI systems merge cases of one name
    return {c.name: c for c in cases}


def junit_points():
    run(["allreduce", *POINTS, *outputs("r", "junit")])
    points = load("r.json")["points"]
    cases = suite("r.junit", "ddpbench allreduce", len(points), 0, 0)
    for p in points:
        assert abs(cases[p["id"]].time - p["time_us"]["median"] * 1e-6) < 1e-9
        assert cases[p["id"]].classname == "ddpbench.point"
    run(["train", *TRAIN, *outputs("t", "junit")])
    # a run on one rank for the speed-up, dense and fp16; their names differ
    assert len(suite("t.junit", "ddpbench train", 3, 0, 0)) == len(load("t.json")["train"]) == 3
    pathlib.Path("c.conf").write_text('{"runs": [{"command": "allreduce", "ranks": 2, "size": 4, "iters": 6}]}', encoding="utf-8")
    run(["sweep", "c.conf", "--launches", "2", *outputs("s", "junit")])
    points = load("s.json")["points"]
    assert len(suite("s.junit", "ddpbench sweep", len(points), 0, 0)) == len(points) >= 2


def junit_gate():
    command = ["gate", "--base", f"{FAKE} --state n --points a=10,b=20,c=30",
               "--new", f"{FAKE} --state n --points a=10,b=24,d=30"]
    run([*command, *outputs("g", "junit", "markdown")], expected=10)
    cells = {c["id"]: c for c in load("g.json")["verdict"]["cells"]}
    cases = suite("g.junit", "ddpbench gate", 4, 1, 2)
    assert set(cases) == {*cells, "d"} == {"a", "b", "c", "d"}
    (slower,) = cases["b"].result
    assert isinstance(slower, junitparser.Failure)
    assert slower.message.startswith(f'{cells["b"]["ratio"]:.3f} '), slower.message
    assert abs(cases["b"].time - cells["b"]["new_us"] * 1e-6) < 1e-9 and not cases["a"].result
    assert isinstance(cases["c"].result[0], junitparser.Skipped)  # missing in new
    assert isinstance(cases["d"].result[0], junitparser.Skipped)  # not judged


def junit_compare():
    for name, us in ("old", 10), ("new", 15):
        subprocess.run([sys.executable, str(ROOT / "tests/gate/fake_launch.py"), "--points", f"a={us},b=20",
                        "--json", f"{name}.json"], check=True, timeout=60)
    run(["compare", "old.json", "new.json", *outputs("c", "junit")], expected=10)
    cases = suite("c.junit", "ddpbench compare", 2, 1, 0)
    assert isinstance(cases["a"].result[0], junitparser.Failure) and cases["a"].classname == "ddpbench.compare"


def check_types(frame, text):
    """Every column has text, or numbers, or no value at all."""
    for column in frame:
        values = frame[column].dropna()
        if column in text:
            assert is_string_dtype(frame[column]) or values.empty, (column, frame[column].dtype)
            assert all(isinstance(v, str) for v in values), column
        elif not values.empty:
            assert is_numeric_dtype(frame[column]) or all(isinstance(v, bool) for v in values), \
                (column, frame[column].dtype)


def pandas_csv():
    pathlib.Path("c.conf").write_text(json.dumps({"runs": [
        {"command": "allreduce", "ranks": 2, "size": [4, 65536], "iters": 12, "compress": "topk:0.1"},
        {"command": "train", "ranks": 2, "dataset": "synthetic", "images": 128, "epochs": 2, "sync": ["dense", "fp16"]}]}),
        encoding="utf-8")
    run(["sweep", "c.conf", "--json", "s.json", "--format", "csv=s.csv"])
    frame, doc = pandas.read_csv("s.csv"), load("s.json")
    with open("s.csv", encoding="utf-8", newline="") as f:
        rows = list(csv.reader(f))
    assert list(frame) == rows[0] and len(frame) == len(rows) - 1
    check_types(frame, TEXT)
    assert TEXT <= set(frame), TEXT - set(frame)
    points = frame[frame.kind == "point"].reset_index()
    assert len(points) == len(doc["points"]) == 2
    for i, p in enumerate(doc["points"]):
        assert points.id[i] == p["id"] and points.size_bytes[i] == p["size_bytes"]
        for column, value in (("time_median_us", p["time_us"]["median"]), ("pays_below_GBps", p["pays_below_GBps"]),
                              ("dense_f32_us", p["dense_us"]["f32"]), ("time_p99_us", p["time_us"]["p99"])):
            assert near(points[column][i], value), (column, points[column][i], value)
    epochs = frame[frame.kind == "epoch"].set_index(["sync", "epoch"])  # in the order of measurement
    losses = {(t["sync"]["strategy"], e["epoch"]): e["train_loss"] for t in doc["train"] for e in t["epochs"]}
    assert len(losses) == len(epochs) == 4 and all(near(epochs.train_loss[k], v) for k, v in losses.items())
    comparison = frame[frame.kind == "comparison"].set_index("strategy")
    assert list(comparison.index) == [c["strategy"] for c in doc["comparison"]] == ["dense", "fp16"]
    assert comparison.pays["fp16"] == doc["comparison"][1]["pays"] in ("yes", "no", "unclear")
    assert pandas.isna(comparison.pays["dense"])


def pandas_points():
    run(["allreduce", *POINTS, *outputs("r", "jsonl")])
    doc = load("r.json")
    frame = pandas.json_normalize(doc["points"])
    ranges = [f"phase_us.{phase}_ci95" for phase in ("encode", "exchange", "decode")]
    check_types(frame.drop(columns=["time_us.ci95", "busbw_ci95_GBps", "quality", *ranges]), TEXT_PATHS)
    assert list(frame["time_us.median"]) == [p["time_us"]["median"] for p in doc["points"]]
    whole = pandas.read_json("r.json", typ="series")
    assert whole["schema"] == "ddpbench/1" and len(whole["points"]) == len(frame) == 6
    assert pandas.Timestamp(doc["started"]) <= pandas.Timestamp(doc["finished"])
    lines = pandas.read_json("r.jsonl", lines=True, precise_float=True)
    assert list(lines.kind) == ["run"] + 6 * ["point"] + ["end"]
    points = lines[lines.kind == "point"]
    assert is_numeric_dtype(lines.size_bytes) and list(points.size_bytes) == [p["size_bytes"] for p in doc["points"]]
    assert [t["median"] for t in points.time_us] == list(frame["time_us.median"])
    assert set(points.verdict.dropna()) == {p["verdict"] for p in doc["points"] if p["verdict"]}


def pandas_training():
    run(["train", *TRAIN, *outputs("t", "jsonl")])
    doc = load("t.json")
    frame = pandas.json_normalize(doc["train"], "epochs", [["sync", "strategy"], "seed"]).infer_objects()
    check_types(frame, TEXT_PATHS | {"sync.strategy", "parameter_hash"})
    assert list(frame.train_loss) == [e["train_loss"] for t in doc["train"] for e in t["epochs"]]
    comparison = pandas.json_normalize(doc["comparison"])
    check_types(comparison, TEXT_PATHS)
    assert comparison.pays[1] == doc["comparison"][1]["pays"] and comparison.pays[1] in ("yes", "no", "unclear")
    lines = pandas.read_json("t.jsonl", lines=True, precise_float=True)
    assert list(lines[lines.kind == "epoch"].train_loss) == list(frame.train_loss)


def pandas_verdict():
    command = ["gate", "--base", f"{FAKE} --state n --points a=10,b=20", "--new", f"{FAKE} --state n --points a=10,b=24"]
    run([*command, *outputs("g", "jsonl", "csv", "action-smaller", "gbench")], expected=10)
    verdict = load("g.json")["verdict"]
    cells = pandas.json_normalize(verdict["cells"]).set_index("id")
    check_types(cells, {"state"})
    assert list(cells.state) == ["same", "slower"] and 1.15 < cells.ratio["b"] < 1.25
    assert is_numeric_dtype(cells.p_holm) and cells.pairs["b"] == verdict["pairs"]
    lines = pandas.read_json("g.jsonl", lines=True, precise_float=True)
    assert lines[lines.kind == "end"].iloc[0].verdict["cells"] == verdict["cells"]
    charted = pandas.read_json("g.action-smaller").set_index("name")
    assert is_numeric_dtype(charted.value) and near(charted.value["b"], cells.ratio["b"]), charted
    frame = pandas.read_csv("g.csv")
    assert len(frame) == 0 and TEXT <= set(frame)


def main():
    tests = [gbench_points, gbench_medians_and_epochs, junit_points, junit_gate, junit_compare, pandas_csv,
             pandas_points, pandas_training, pandas_verdict]
    failures = 0
    print(f"1..{len(tests)}")
    with tempfile.TemporaryDirectory() as folder:
        os.environ["XDG_STATE_HOME"] = folder  # ignores a noise floor of this machine
        for number, test in enumerate(tests, 1):
            os.mkdir(f"{folder}/{number}")
            os.chdir(f"{folder}/{number}")
            try:
                test()
            except Exception:
                traceback.print_exc()
                failures += 1
                print("not ", end="")
            print(f"ok {number} - {test.__name__}", flush=True)
        os.chdir("/")
    return failures > 0


sys.exit(main())
