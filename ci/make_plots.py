#!/usr/bin/env python3
"""Writes results/plots/*.svg, which README.md and results/README.md show: `make plots`.

`ddpbench report --svg` draws the plots and the terminal picture of the documents of schema ddpbench/1 in results/. The
figures of results/peers.json, which tests/bench/peers.py wrote, become one such document for each
library first. A document that does not exist yet is named on stderr and has no plot.

usage: ci/make_plots.py --ddpbench PROGRAM [--root DIR] [--out DIR]
--root: the folder that has results/. --out: the folder of the plots (default: results/plots).
"""
import argparse
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from canonical_json import canonical_digest  # noqa: E402

# The plots to keep: the document, the name that ddpbench gives the plot, and the name of the file.
PLOTS = (
    ("bandwidth.json", "allreduce-bus-bandwidth-over-size", "bandwidth-busbw"),
    ("bandwidth.json", "allreduce-time-over-size", "bandwidth-time"),
    ("bandwidth.json", "screen", "screen"),
    ("convergence.json", "singa-cnn-on-fashion-mnist-accuracy-over-seconds", "accuracy-seconds"),
    ("convergence.json", "singa-cnn-on-fashion-mnist-accuracy-over-bytes", "accuracy-bytes"),
    ("peers.json", "allreduce-bus-bandwidth-over-size", "peers-busbw"),
    ("peers.json", "allreduce-time-over-size", "peers-time"),
    ("peers.json", "allreduce-time-ratio-over-size", "peers-ratio"),
)
# The documents that are made of peers.json: label, memory, and a pattern of the variants. With several
# variants, the figure of a size is that of the fastest one.
LIBRARIES = (
    ("ddpbench", "registered", r"ddpbench registered"),
    ("ddpbench, private memory", "private", r"ddpbench private"),
    ("Open MPI", "private", r"Open MPI .*"),
    ("MPICH", "private", r"MPICH .*"),
    ("Gloo", "private", r"Gloo .*"),
)


def label_of(label, variants):
    """Says how many variants the fastest one was chosen from."""
    return label if len(variants) == 1 else f"{label}, fastest of {len(variants)} settings"


def point_of(found, size, us, memory):
    """A point of an all-reduce in place. Its interval is unknown."""
    algbw = size / us / 1e3
    return {"id": f"allreduce/peers/auto/f32/sum/r0/in/{memory}/n{found['ranks']}/{size}/none/0", "collective": "allreduce",
            "backend": None, "algorithm": None, "dtype": "f32", "op": "sum", "placement": "in", "memory": memory,
            "ranks": found["ranks"], "requested_bytes": size, "size_bytes": size, "count": size // 4, "iterations": found["rounds"],
            "compress": {"method": "none"}, "partial": None,
            "time_us": {"median": us, "ci95": None, "min": None, "p25": None, "p75": None, "max": None},
            "algbw_GBps": algbw, "busbw_GBps": algbw * 2 * (found["ranks"] - 1) / found["ranks"], "busbw_ci95_GBps": None,
            "pingpong_ns": {"before": None, "after": None}}


def peer_documents(path, folder):
    """Writes the documents of LIBRARIES into the folder and returns their paths."""
    with open(path, encoding="utf-8") as file:
        peers = json.load(file)
    where = peers["where"]
    (found,) = (r for r in peers["results"] if r["collective"] == "allreduce" and "sizes" in r)
    paths = []
    for number, (label, memory, pattern) in enumerate(LIBRARIES):
        variants = sorted({name for size in found["sizes"] for name in size["us"] if re.fullmatch(pattern, name)})
        points = []
        for size in found["sizes"]:
            times = [size["us"][name] for name in variants if size["us"].get(name)]
            if times:
                points.append(point_of(found, size["bytes"], min(times), memory))
        doc = {"schema": "ddpbench/1", "status": "complete", "reason": None, "label": label_of(label, variants), "tool": where["tool"],
               "command": {"name": "peers", "argv": []}, "started": where["started"], "finished": None,
               "world": {"ranks": found["ranks"], "backend": None, "hosts": [dict(where["host"], name="peers", ranks=found["ranks"])]},
               "points": points}
        doc["digest"] = canonical_digest(doc)
        paths.append(os.path.join(folder, f"{number}.json"))
        with open(paths[-1], "w", encoding="utf-8") as file:
            json.dump(doc, file)
    return paths


def draw(ddpbench, documents, folder):
    subprocess.run([ddpbench, "report", "--vary", "memory", *documents, "--svg", folder], check=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ddpbench", required=True)
    parser.add_argument("--root", type=pathlib.Path, default=pathlib.Path(__file__).resolve().parents[1])
    parser.add_argument("--out", type=pathlib.Path)
    options = parser.parse_args()
    results = options.root / "results"
    out = options.out or results / "plots"
    out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        for name in dict.fromkeys(plot[0] for plot in PLOTS):
            path = results / name
            if not path.exists():
                print(f"make_plots: '{path}' does not exist, so it has no plot", file=sys.stderr)
                continue
            svg = os.path.join(folder, name + ".svg")
            documents = peer_documents(path, folder) if name == "peers.json" else [str(path)]
            draw(options.ddpbench, documents, svg)
            for document, plot, file in PLOTS:
                if document == name:
                    shutil.copyfile(os.path.join(svg, plot + ".svg"), out / (file + ".svg"))
    return 0


if __name__ == "__main__":
    sys.exit(main())
