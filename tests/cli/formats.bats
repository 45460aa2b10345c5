#!/usr/bin/env bats
# Reads every format as its consumers do: Python's csv and xml.etree, Google Benchmark's compare.py, the
# regular expressions of superbenchmark and ReFrame, the keys of github-action-benchmark. Also checks
# that arguments of a run cannot inject text into a format.
# jobs: 3
# shellcheck disable=SC2154 # stderr: bats
bats_require_minimum_version 1.5.0

setup() {
    load ../helpers.bash
    bench_setup
}

# measure FORMAT ARGUMENT...: runs an all-reduce on 2 ranks and writes r.json, and r.txt in the format.
measure() {
    local format=$1
    shift
    "$ddpbench" allreduce --ranks 2 -n 12 --size 4,64K,1M --json r.json --format "$format=r.txt" "$@" -q
}

# train FORMAT: does the same with a training run of a few steps.
train() {
    "$ddpbench" train --ranks 2 --dataset synthetic --images 128 --epochs 2 --json r.json --format "$1=r.txt" -q
}

@test "nccl-tests: as superbenchmark reads it" {
    measure nccl-tests
    "$PYTHON" - <<'END'
import json, re
content = open("r.txt").read().splitlines()
# superbenchmark, cuda_nccl_bw_performance.py: columns by the words of the head, then rows that begin with a number
for line in content:
    if "time" in line and "busbw" in line:
        words = re.sub(r" +", " ", line[1:].strip(" ")).split(" ")
        size, out_time, out_busbw = words.index("size"), words.index("time"), words.index("busbw")
        out_algbw, in_algbw = words.index("algbw"), len(words) - 1 - words[::-1].index("algbw")
        in_time, in_busbw = (len(words) - 1 - words[::-1].index(w) for w in ("time", "busbw"))
        break
rows = []
for line in content:
    words = re.sub(r" +", " ", line.strip(" ")).split(" ")
    if not re.match(r"\d+", words[0]):
        continue
    rows.append((int(words[size]), *(float(words[i]) for i in
                 (out_time, out_algbw, out_busbw, in_time, in_algbw, in_busbw))))
points = {(p["size_bytes"], p["placement"]): p for p in json.load(open("r.json"))["points"]}
assert [r[0] for r in rows] == [4, 65536, 1048576], rows
for bytes_, *figures in rows:
    for placement, (time, algbw, busbw) in ("out", figures[:3]), ("in", figures[3:]):
        p = points[bytes_, placement]
        digit = .1 if time < 1e4 else 1  # the last digit of a time
        assert abs(time - p["time_us"]["median"]) <= .51 * digit, (time, p["time_us"])
        assert abs(algbw - p["algbw_GBps"]) <= 0.0051 and abs(busbw - p["busbw_GBps"]) <= 0.0051
END
}

@test "nccl-tests: as ReFrame's checks read it, and one rank" {
    measure nccl-tests
    grep -qP '^# Out of bounds values\s*:\s*0\s+OK' r.txt
    grep -qP '^# Avg bus bandwidth\s*:\s*\d+(\.\d+)?(e[+-]\d+)?\s*$' r.txt
    grep -qP '^\s+1048576\s+262144\s+float\s+sum\s+-1(\s+[\d.]+){3}\s+0(\s+[\d.]+){3}\s+0$' r.txt
    "$ddpbench" broadcast --ranks 2 -n 3 --size 4 --placement in -d half -r 1 --check off --format nccl-tests -q >r.txt
    grep -qP '^\s+4\s+2\s+half\s+none\s+1(\s+0\.00){3}\s+N/A(\s+[\d.]+){3}\s+N/A$' r.txt
    "$ddpbench" allreduce --ranks 1 -n 3 --size 4 --format nccl-tests -q | grep -qP '^\s+4\s.*\s0\.00\s+0\.00\s+0$'
}

@test "nccl-tests: one device line a rank, and a mean of each algorithm" {
    measure nccl-tests --algorithm direct,rd --compress none,topk:0.1 --placement in
    "$PYTHON" - <<'END'
import json, re
text = open("r.txt").read()
d = json.load(open("r.json"))
# the expression of cloudai's and of other parsers; a processor has no bus id and no index
ranks = re.findall(r"^#\s+Rank\s+(\d+)\s+Group\s+\d+\s+Pid\s+\d+\s+on\s+(\S+)\s+device\s+(\d+)\s+\[([0-9a-f:]+)\]\s+(.+)$", text, re.M)
host = d["world"]["hosts"][0]
assert ranks == [(str(r), host["name"], "0", "0000:00:00", host["cpu"]) for r in range(2)], ranks
# cloudai takes rows of 13 words, and drops those whose figures are no numbers
rows = [line.split() for line in text.splitlines() if re.match(r"\s*\d", line)]
assert len(rows) == 6 and all(len(r) == 13 for r in rows), rows
assert all(float(w) >= 0 for r in rows for w in r[5:8] + r[9:12])
dense = [p for p in d["points"] if p["compress"]["method"] == "none"]
means = dict(re.findall(r"^# mean bus bandwidth of .*algorithm (\w+),.*: (\S+)$", text, re.M))
assert set(means) == {"direct", "rd"}, means
for name, mean in means.items():
    figures = [p["busbw_GBps"] for p in dense if p["algorithm"] == name]
    assert abs(float(mean) - sum(figures) / len(figures)) < 1e-4 * float(mean)
assert re.search(r"^# 65536 bytes, topk:0.1: ", text, re.M) and "partial" not in text
assert text.index("# Using devices") < text.index("out-of-place") < text.index("Out of bounds values")
assert text.count("out-of-place") == 1  # superbenchmark looks for the last one
END
}

@test "an all_reduce_perf command line runs after the name alone is changed" {
    run -0 --separate-stderr "$ddpbench" all_reduce_perf -b 8 -e 128K -f 2 -g 1 -n 20 -w 5 -c 1 -o sum -d float
    [ "$(grep -cP '^ +\d+ +\d+ +float +sum +-1 ' <<<"$output")" = 15 ]
    [[ $output == *"# Avg bus bandwidth"* ]]
    # as in nccl-tests: sizes are binary, a factor overrides a step, and without both the step is 1M
    run -0 --separate-stderr "$ddpbench" all_reduce_perf --minbytes 1KB --maxbytes=4k --stepfactor 2 -i 1 --dry-run --ranks 2
    [ "$(grep -c '^allreduce/.*/in/' <<<"$output")" = 3 ]
    [[ $output == *"/1024/none"*"/2048/none"*"/4096/none"* && $output == *" 20 iterations, after 1 warm-up "* ]]
    run -0 --separate-stderr "$ddpbench" all_reduce_perf -b 1M -e 3M --dry-run --ranks 2
    [ "$(grep -c '^allreduce/.*/in/' <<<"$output")" = 3 ]
    run -0 --separate-stderr "$ddpbench" all_reduce_perf -b8 -e8 -o all -d all -t 1 -p 0 -z 0 -G 0 -a 3 -R 1 -T 0 -m 1 -N 1 --dry-run --ranks 2
    [ "$(grep -c '^allreduce/.*/in/registered' <<<"$output")" = 60 ]
    # -g GPUs of -t threads are as many ranks
    run -0 --separate-stderr "$ddpbench" all_reduce_perf -b 8 -e 8 -t 1 -g 3 -d int8 --dry-run
    [[ $output == *allreduce/*/i8/*/n3/8/* ]] || { echo "$output"; false; }
    "$ddpbench" all_reduce_perf -b 8 -e 8 -t 2 -g 2 -n 3 -d uint64,f8e4m3 --backend shm --json four.json
    [ "$(json four.json '{(q["ranks"], q["dtype"]) for q in d["points"]} == {(4, "u64"), (4, "fp8-e4m3")}')" = True ]
    # names of all types, as nccl-tests prints them
    run -0 --separate-stderr "$ddpbench" all_reduce_perf -b 64 -e 64 -n 1 -d all --backend shm --ranks 2
    for name in float half bfloat16 double int32 uint8 int8 uint32 int64 uint64 f8e4m3 f8e5m2; do
        grep -qP "^ +64 +\d+ +$name +sum " <<<"$output" || { echo "$name: $output"; false; }
    done
    for other in all_gather reduce_scatter broadcast reduce alltoall gather scatter sendrecv; do
        run -0 --separate-stderr "$ddpbench" "${other}_perf" -b 1K -e 1K -o sum -d half -n 3 --ranks 2
        [ "$(grep -cP '^ +1024 +512 +half ' <<<"$output")" = 1 ] || { echo "$other: $output"; false; }
    done
    # options of ddpbench may be mixed with those of nccl-tests
    run -0 --separate-stderr "$ddpbench" all_reduce_perf -b 8 -e 8 --json r.json -n 3 --backend shm --ranks 2
    [ -z "$output" ] || [[ $output != "# nccl"* ]]
    [ -s r.json ]
}

@test "a flag of nccl-tests that has no meaning here is named, with what to do instead" {
    for flag in "-t 0" "-g x" "-p 1" "-z 1" "-G x" "-a 1" "-a 0" "-m 4" "-N 3" "-y 1" "-C 1" "-x 2" "-J out.json" "-R 3"; do
        # shellcheck disable=SC2086 # words
        run -64 --separate-stderr "$ddpbench" all_reduce_perf -b 8 -e 8 $flag
        [ -z "$output" ]
        error_names "${flag%%[ =0-9]*}" || { echo "$flag: $stderr"; false; }
    done
    run -64 "$ddpbench" all_reduce_perf -g 8 --ranks 2
    error_names --ranks -g
    run -64 env OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_SIZE=2 OMPI_COMM_WORLD_LOCAL_RANK=0 \
        OMPI_COMM_WORLD_LOCAL_SIZE=2 "$ddpbench" all_reduce_perf --ngpus=8
    error_names "-g 8" launcher
    # A graph and windows need backend nccl.
    for flag in "-G 1" "--cudagraph=4" "-R 2"; do
        # shellcheck disable=SC2086 # words
        run "$ddpbench" all_reduce_perf -b 8 -e 8 $flag --backend shm --ranks 2
        [ "$status" = 64 ]
        error_names shm || { echo "$flag: $output"; false; }
    done
    run -64 "$ddpbench" all_reduce_perf -b
    run -64 "$ddpbench" all_reduce_perf -d int4
    run -64 "$ddpbench" hypercube_perf
    run -0 "$ddpbench" all_reduce_perf -h
}

@test "osu: as ReFrame's osu checks read it" {
    measure osu --placement in
    "$PYTHON" - <<'END'
import json, re
text = open("r.txt").read()
for p in json.load(open("r.json"))["points"]:
    found = re.findall(rf"^{p['size_bytes']}\s+(\S+)\s+(\S+)\s+(\S+)\s+(\d+)\s+Pass$", text, re.M)
    assert len(found) == 1, text
    mean = p["rank_mean_us"]
    assert all(abs(float(a) - b) <= 0.0051 for a, b in zip(found[0], (mean["avg"], mean["min"], mean["max"])))
    assert int(found[0][3]) == p["iterations"]
assert re.search(r"^# OSU ddpbench Allreduce Latency Test", text) and "OSU MPI" not in text
for p in json.load(open("r.json"))["points"]:
    assert f"# algorithm that ran: {p['algorithm_used']} " in text
assert re.search(r"^# Size +Avg Latency\(us\)", text, re.M)
END
}

@test "osu: a size has one row, a point in place is a comment, and a barrier has no size" {
    measure osu --order given
    "$PYTHON" - <<'END'
import json, re
text = open("r.txt").read()
points = json.load(open("r.json"))["points"]
rows = dict(re.findall(r"^(\d+)\s+(\S+).*\s+Pass$", text, re.M))
assert len(rows) == len(re.findall(r"^\d", text, re.M)) == 3, text
for p in points:
    mean = f"{p['rank_mean_us']['avg']:.2f}"
    if p["placement"] == "out":
        assert rows[str(p["size_bytes"])] == mean
    else:
        assert f"# in place, {p['size_bytes']} bytes: average {mean} us" in text
assert text.count("# OSU ") == 1 and text.count("# Size ") == 1
END
    measure osu --check off
    grep -qP '^# Size +Avg Latency\(us\) +Min Latency\(us\) +Max Latency\(us\) +Iterations$' r.txt
    grep -qP '^4 +[\d.]+ +[\d.]+ +[\d.]+ +12$' r.txt
    measure osu --compress fp16,topk:0.1 --size 4K
    [ "$(grep -cP '^4096 .*Pass$' r.txt)" = 2 ]
    "$ddpbench" barrier --ranks 2 -n 6 --format osu=r.txt -q
    grep -qP '^# Avg Latency\(us\) +Min Latency\(us\) +Max Latency\(us\) +Iterations$' r.txt
    grep -qP '^ +[\d.]+ +[\d.]+ +[\d.]+ +6$' r.txt
    run ! grep -w -e place -e Size r.txt
}

@test "csv: as Python's csv module reads it" {
    for what in "measure csv" "train csv" "measure csv --compress none,fp16,topk:0.1 --samples"; do
        $what
        "$PYTHON" - <<'END'
import csv, json, math
d = json.load(open("r.json"))
with open("r.txt", newline="") as file:
    raw = file.read()
assert raw.endswith("\r\n") and raw.count("\n") == raw.count("\r\n")
rows = list(csv.DictReader(raw.splitlines(), strict=True))
assert all(None not in row and None not in row.values() for row in rows)
def same(text, value):
    return text == "" if value is None else math.isclose(float(text), value, rel_tol=1e-12)
points = [row for row in rows if row["kind"] == "point"]
epochs = [row for row in rows if row["kind"] == "epoch"]
assert len(points) == len(d["points"]) and len(epochs) == sum(len(t["epochs"]) for t in d["train"])
for row, p in zip(points, d["points"]):
    assert (row["collective"], row["dtype"], row["compress"].split(":")[0]) == (p["collective"], p["dtype"], p["compress"]["method"])
    for key in "ranks", "size_bytes", "count", "iterations", "busbw_GBps", "effective_GBps", "wire_bytes_per_rank":
        assert same(row[key], p[key]), (key, row[key], p[key])
    for key in "median", "mean", "min", "p95", "max":
        assert same(row[f"time_{key}_us"], p["time_us"][key]), key
    assert same(row["phase_encode_us"], p["phase_us"]["encode"]) and same(row["dense_f32_us"], p["dense_us"]["f32"])
    even = (p["break_even"] or {}).get("f16") or {}
    assert same(row["break_even_f16_predicted"], even.get("predicted")), row["break_even_f16_predicted"]
    assert row["feedback"] == (p["compress"]["feedback"] or "") and same(row["overflow_count"], p["overflow_count"])
for row, e in zip(epochs, [e for t in d["train"] for e in t["epochs"]]):
    for key in "epoch", "train_loss", "eval_accuracy", "seconds", "images_per_second", "wire_bytes_per_rank":
        assert same(row[key], e[key]), (key, row[key], e[key])
    assert row["model"] == d["train"][0]["model"] and row["sync"] == "dense"
END
    done
}

@test "csv: the first columns are those of version 0.1, and a barrier has no type" {
    first=kind,launch,collective,backend,algorithm,algorithm_used,dtype,op,root,placement,memory,ranks,groups,requested_bytes
    last=eval_accuracy,seconds,compute_seconds,exchange_seconds,exposed_seconds,images_per_second
    "$ddpbench" barrier --ranks 2 -n 6 --format csv=r.txt -q
    head -1 r.txt | cut -d, -f1-14 | grep -qx "$first"
    [ "$(head -1 r.txt | cut -d, -f67-72)" = "$last" ]
    [ "$(sed -n 2p r.txt | cut -d, -f1,3,7)" = "point,barrier," ]
}

@test "junit: as xml.etree reads it" {
    measure junit
    "$PYTHON" - <<'END'
import json, xml.etree.ElementTree as tree
suite = tree.parse("r.txt").getroot().find("testsuite")
cases = suite.findall("testcase")
assert int(suite.get("tests")) == len(cases) == 6 and suite.get("failures") == "0" == suite.get("skipped")
assert [c.get("name") for c in cases] == [p["id"] for p in json.load(open("r.json"))["points"]]
assert all(float(c.get("time")) > 0 and all(e.tag == "system-out" for e in c) for c in cases)
assert abs(float(suite.get("time")) - sum(float(c.get("time")) for c in cases)) < 1e-8
# JUnit.xsd of Ant's JUnit task: the attributes of a suite, and its elements in this order
assert {"id", "package", "name", "timestamp", "hostname", "tests", "failures", "errors", "time"} <= set(suite.keys())
assert suite.get("id") == "0" and suite.get("hostname") == json.load(open("r.json"))["world"]["hosts"][0]["name"]
assert [e.tag for e in suite] == ["properties"] + ["testcase"] * 6 + ["system-out", "system-err"]
END
    run -69 "$ddpbench" train --ranks 1 --dataset synthetic --images 64 --blas '/no/<lib>"&' --format junit=r.txt
    "$PYTHON" - <<'END'
import xml.etree.ElementTree as tree
suite = tree.parse("r.txt").getroot().find("testsuite")
failure = suite.find("testcase/failure")
assert suite.get("failures") == "1" and '/no/<lib>"&' in failure.get("message") and failure.get("type") == "partial"
END
}

@test "junit: training runs have different names, with the settings that differ" {
    echo '{"runs": [{"command": "train", "ranks": [1, 2], "dataset": "synthetic", "images": 64, "epochs": 1, "lr": [0.01, 0.02]}]}' >c.json
    "$ddpbench" sweep c.json --launches 2 --format junit=r.txt -q
    "$PYTHON" - <<'END'
import xml.etree.ElementTree as tree
names = [c.get("name") for c in tree.parse("r.txt").iter("testcase")]
assert len(set(names)) == len(names) >= 8, names
assert sum("lr 0.01" in n for n in names) == sum("lr 0.02" in n for n in names) == 4, names
END
}

@test "gbench: as Google Benchmark's compare.py reads it" {
    measure gbench --samples
    mv r.txt a.json
    measure gbench --samples
    mv r.txt b.json
    "$PYTHON" - <<'END'
import json, math
# the checks of tools/gbench/util.py (load_benchmark_results) and report.py of version 1.7
def load(name):
    results = json.load(open(name))
    results["benchmarks"] = sorted(results["benchmarks"], key=lambda b: b["per_family_instance_index"] if "per_family_instance_index" in b else -1)
    return sorted_by_family(results)
def sorted_by_family(results):
    results["benchmarks"].sort(key=lambda b: b["family_index"] if "family_index" in b else -1)
    return results
def names(results):
    seen, out = set(), []
    for b in results["benchmarks"]:
        if b["name"] not in seen:
            seen.add(b["name"])
            out.append(b["name"])
    return out
def partition(a, b):
    for name in [n for n in names(a) if n in names(b)]:
        unit = None
        for side in a, b:
            for x in side["benchmarks"]:
                if x["name"] == name and x.get("time_unit"):
                    unit = unit or x["time_unit"]
        yield [[x for x in side["benchmarks"] if x["name"] == name and x["time_unit"] == unit] for side in (a, b)]
a, b = load("a.json"), load("b.json")
ids = [p["id"] for p in json.load(open("r.json"))["points"]]
assert names(a) == ids == names(b)
for old, new in partition(a, b):
    # compare.py's U test needs at least UTEST_OPTIMAL_REPETITIONS = 9 repetitions
    assert len(old) == len(new) == old[0]["repetitions"] == 12 >= 9
    for x, y in zip(old, new):
        for key in "real_time", "cpu_time":
            assert math.isfinite((float(y[key]) - float(x[key])) / abs(float(x[key])))
        assert x["run_type"] == "iteration" and x["iterations"] == 1 and x["time_unit"] == "ns"
    assert [x["repetition_index"] for x in old] == list(range(12))
for key in "date", "host_name", "num_cpus", "mhz_per_cpu", "caches", "library_build_type":
    assert key in a["context"]
times = sorted(x["real_time"] for x in b["benchmarks"] if x["name"] == ids[0])
samples = sorted(json.load(open("r.json"))["points"][0]["samples_us"])
assert len(times) == len(samples) and all(math.isclose(t, 1e3 * s) for t, s in zip(times, samples))
END
}

@test "jsonl: each line is complete and is written as soon as it is known" {
    "$ddpbench" sweep "$(printf '{"runs": [{"command": "allreduce", "ranks": 2, "size": [4, 64], "iters": 7},
        {"command": "train", "ranks": 2, "dataset": "synthetic", "images": 128, "epochs": 2}]}' >c.json; echo c.json)" \
        --json r.json --format jsonl=r.txt -q
    "$PYTHON" - <<'END'
import json
d = json.load(open("r.json"))
lines = [json.loads(line) for line in open("r.txt")]
kinds = [line.pop("kind") for line in lines]
assert kinds[0] == "run" and kinds[-1] == "end" and sorted(kinds[1:-1]) == ["epoch"] * 2 + ["point"] * 4, kinds
assert [line for line, kind in zip(lines, kinds) if kind == "point"] == d["points"]
epochs = [line for line, kind in zip(lines, kinds) if kind == "epoch"]
assert all(line.items() >= e.items() for line, e in zip(epochs, d["train"][0]["epochs"]))
for key in "comm_us", "rank_devices":  # not known before
    lines[0]["world"][key] = lines[-1][key]
assert [r["device"] for r in lines[-1]["rank_devices"]] == [None, None]
assert lines[0]["command"] == d["command"] and lines[0]["world"] == d["world"]
assert lines[-1]["status"] == "complete" and lines[-1]["points"] == 4 and lines[-1]["train"][0]["final"] == d["train"][0]["final"]
END
}

@test "github-action-benchmark: both forms have the required keys" {
    measure action-smaller
    "$PYTHON" - <<'END'
import json
a, d = json.load(open("r.txt")), json.load(open("r.json"))
assert [(e["name"], e["unit"], e["value"]) for e in a] == [(p["id"], "us", p["time_us"]["median"]) for p in d["points"]]
assert all(isinstance(e["range"], str) for e in a)
END
    measure action-bigger
    "$PYTHON" - <<'END'
import json
a, d = json.load(open("r.txt")), json.load(open("r.json"))
assert [(e["name"], e["unit"], e["value"]) for e in a] == [(p["id"], "GB/s", p["busbw_GBps"]) for p in d["points"]]
END
    train action-bigger
    "$PYTHON" -c 'import json; (e,) = json.load(open("r.txt")); assert e["unit"] == "eval accuracy" and 0 <= e["value"] <= 1'
}

# Prints all formats of the binary.
formats() { "$ddpbench" list reporters | awk '$1 == "reporter" || $1 == "format" { print $2 }'; }

@test "arguments of a run are escaped in every format" {
    hostile=$'h\e[31m\nBREAK</script>]]>&"`|.json'
    mkdir dir
    cd dir
    for format in $(formats); do
        "$ddpbench" allreduce --ranks 1 -n 6 --size 4 --format "$format=../$format.txt" --json "${hostile//\//_}" -q
        ! grep -aq $'^BREAK\|\e' "../$format.txt" || { echo "$format"; false; }
    done
    cd ..
    [ "$(echo ./*.txt | wc -w)" -ge 11 ]
    "$PYTHON" - <<'END'
import json, xml.etree.ElementTree as tree
assert any("BREAK" in a and "\x1b" in a for a in json.load(open("json.txt"))["command"]["argv"])
tree.parse("junit.txt")
[json.loads(line) for line in open("jsonl.txt")]
END
    ! grep -q '<' markdown.txt
}

@test "--label: every format shows the user's name for the run, and a wrong one is refused" {
    label='Büro <7>, "a|b"'
    outputs=()
    for format in $(formats); do
        outputs+=(--format "$format=$format.txt")
    done
    "$ddpbench" allreduce --ranks 2 -n 6 --size 4 --block 2 --label "$label" "${outputs[@]}" -q
    mv json.txt r.json
    run "$ddpbench" compare r.json r.json --label "$label" --format github=github.txt,markdown=verdict.txt,table=compare.txt
    [ "$status" = 12 ] # blocks have no interval
    "$ddpbench" report r.json -o page.txt
    "$PYTHON" "$root/tests/terminal.py" --columns 80 -- "$ddpbench" show r.json >terminal.txt
    "$PYTHON" - "$label" "$(formats)" <<'END'
import csv, html, json, sys, xml.etree.ElementTree as tree
label, code = sys.argv[1], f"`{sys.argv[1].replace('<', '?').replace('|', chr(92) + '|')}`"
def of_actions(text):
    entries = json.loads(text)
    return len(entries) == 2 and all(f"label: {label}" in e["extra"] for e in entries)
checks = {
    "table": lambda text: f"# label: {label}\n" in text and "# NOTE: blocks of 2 calls\n" in text,
    "jsonl": lambda text: json.loads(text.splitlines()[0])["label"] == label,
    "csv": lambda text: [row["label"] for row in csv.DictReader(text.splitlines(), strict=True)] == [label] * 2,
    "markdown": lambda text: text.startswith(f"# ddpbench allreduce: {code}\n"),
    "nccl-tests": lambda text: f"# label: {label}\n" in text,
    "osu": lambda text: text.startswith(f"# label: {label}\n"),
    "gbench": lambda text: json.loads(text)["context"]["label"] == label,
    "junit": lambda text: [p.attrib for p in tree.fromstring(text).iter("property")] == [{"name": "label", "value": label}],
    "github": lambda text: f" title=ddpbench compare {label.replace(',', '%2C')}::" in text,
    "action-smaller": of_actions,
    "action-bigger": of_actions,
}
d = json.load(open("r.json"))
assert (d["label"], d["note"]) == (label, "blocks of 2 calls")
assert sorted([*checks, "json"]) == sorted(sys.argv[2].split())
checks |= {
    "verdict": lambda text: text.startswith(f"## INCONCLUSIVE: {code}\n"),
    "compare": lambda text: f"# label: {label}\n" in text and f"r.json ({label}, blocks of 2 calls)" in text,
    "page": lambda text: f"<h1>{html.escape(label, quote=False)}</h1>" in text.replace("&quot;", '"'),
    "terminal": lambda text: f"label: {label}" in text and "NOTE: blocks of 2 calls" in text,
}
for name, check in checks.items():
    text = open(f"{name}.txt", encoding="utf-8", newline="").read()
    assert check(text.replace("\r\n", "\n")), (name, text)
END
    for wrong in '' "$(printf '%064d' 0)" $'a\nb' $'a\177' $'a\302\205' $'a\377'; do
        refused 64 --label -- allreduce --ranks 1 --size 4 --dry-run --label "$wrong"
        refused 64 --label -- compare r.json r.json --label "$wrong"
    done
    ok allreduce --ranks 1 --size 4 --dry-run --label "$(printf '%063d' 0)"
}

@test "a secret in the environment is in no output" {
    export UCX_PASSWORD=canary-4711 NCCL_API_KEY=canary-4711 SLURM_JWT=canary-4711 AWS_SECRET_ACCESS_KEY=canary-4711 \
        OMPI_MCA_token=canary-4711 GITHUB_TOKEN=canary-4711 MY_VAR=canary-4711 LD_AUDIT_X=canary-4711
    outputs=()
    for format in $(formats); do
        outputs+=(--format "$format=$format.txt")
    done
    [ "${#outputs[@]}" -ge 22 ]
    "$ddpbench" allreduce --ranks 2 -n 6 --size 4 "${outputs[@]}" -v >out 2>err
    printf '%s' '{"runs": [{"command": "allreduce", "ranks": 2, "size": 4, "iters": 6}]}' >c.json
    "$ddpbench" sweep c.json --json s.json --journal journal -v >>out 2>>err
    "$ddpbench" doctor >>out 2>>err || true
    "$ddpbench" train --ranks 1 --dataset synthetic --images 64 --epochs 1 --json t.json "${outputs[@]//=/=t-}" >>out 2>>err
    # a gate's commands inherit the environment; the values of --base-env must be in no output
    export XDG_STATE_HOME=$PWD/state
    run_of="'$PYTHON' -S -E '$root/tests/gate/fake_launch.py'"
    "$ddpbench" gate --base "$run_of" --base-env UCX_TOKEN=canary-4711,OMP_NUM_THREADS=1 --new-env=MY=canary-4711 --pairs 5 --runs 1 --json g.json "${outputs[@]//=/=g-}" -q >>out 2>>err || [ $? = 12 ]
    "$ddpbench" compare s.json s.json "${outputs[@]//=/=c-}" >>out 2>>err || [ $? = 12 ]
    "$ddpbench" gate --selftest --base "$run_of" --gates 1,0 --pairs 5 --runs 1 --json f.json -q >>out 2>>err || [ $? = 12 ]
    grep -q 'UCX_TOKEN=\*\*\*,OMP_NUM_THREADS=1' g.json
    grep -q -e '--new-env=MY=\*\*\*' g.json
    [ -s g.json ] && [ -s g-junit.txt ] && [ -s f.json ] && [ -s t-csv.txt ]
    ! grep -rlq canary-4711 . || { grep -rl canary-4711 .; false; }
}
