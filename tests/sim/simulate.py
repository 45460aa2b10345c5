#!/usr/bin/env python3
"""Runs the shipped algorithms on simulated networks (SimGrid's SMPI; configs/platforms): `make sim-1024`.

Only the network takes time; computation takes none. alpha and beta come from a ping-pong between the
first and the last rank on the same platform.

check: A short run of a few seconds. Compares the time with cost() on the star at 32, 19 and 13 ranks,
       and checks that a shared link slows messages on the tree.
full:  Star: compares every algorithm with cost() at 256 ranks. Fat tree: runs every algorithm of every
       collective at 1024 ranks (the last of --ranks), and all-reduce also at 16, 64 and 256 ranks. Finds the density
       below which each sparse all-reduce is faster than the best dense one, and compares the bytes of oktopk
       with its bound. Writes --json and --markdown.

usage: simulate.py --ddpsim PATH [--json FILE] [--markdown FILE] [--ranks N,...] check|full
Exits with 1 when simulated time and cost() differ by more than a quarter on the star, or oktopk
sends more bytes than its bound.
"""
import argparse
import json
import math
import os
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
OPTIONS = [
    "smpi/simulate-computation:no",
    "smpi/privatization:no",  # the program's few variables are meant to be shared
    "smpi/send-is-detached-thresh:0",  # SimGrid 3.32 looks through all open detached sends at each end of one
    "network/model:CM02",
    "network/latency-factor:1",
    "network/bandwidth-factor:1",
]
MIB = 1 << 20
TOLERANCE = 0.25
ELEMENTS = 1 << 18  # of the gradient in the search for the break-even: 1 MiB; 1024 ranks of rd need 5 GiB
DENSITIES = [10 ** (e / 4) for e in range(-20, -1)]  # 1e-5 to 0.3
# Bytes per peer that a rank of oktopk may send in addition to 24k(P-1)/P bytes and the words it swaps: notes, regions, selection.
OKTOPK_PER_PEER = 12 + 4 + 512
# Algorithms that send no messages or are for one rank. All others must run.
LEFT_OUT = {"direct", "staged", "flat", "flags", "hier", "self"}


class Simulator:
    def __init__(self, ddpsim):
        self.ddpsim = os.path.abspath(ddpsim)
        self.quick = os.path.join(os.path.dirname(self.ddpsim), "quick.so")
        if not os.path.exists(self.quick):
            raise SystemExit(f"simulate: no {self.quick}: make builds it beside ddpsim")

    def run(self, platform, ranks, *words):
        """Returns the lines of one run as dictionaries, the link first. smpirun exits with 0 even if a rank
        failed; the last line shows whether one did."""
        command = ["smpirun", "-np", str(ranks), "-platform", f"{ROOT}/configs/platforms/{platform}.xml"]
        with tempfile.NamedTemporaryFile("w", prefix="hosts") as hosts:
            hosts.write("".join(f"node-{i}\n" for i in range(ranks)))
            hosts.flush()
            command += ["-hostfile", hosts.name, "--log=root.thres:warning"]
            command += [f"--cfg={o}" for o in OPTIONS] + [self.ddpsim, *words]
            done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, stdin=subprocess.DEVNULL,
                                  env={**os.environ, "LD_PRELOAD": " ".join([self.quick, *os.environ.get("LD_PRELOAD", "").split()])})
        lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
        where = f"simulate: {' '.join(words)} on {ranks} ranks of {platform}"
        if done.returncode != 0 or lines[-1:] != [{"what": "end"}]:
            own = [line for line in done.stderr.splitlines() if line.startswith("ddpsim:")]
            raise SystemExit(f"{where}: " + ("\n".join(own) or done.stderr[-1500:] or f"ended with {done.returncode}"))
        for line in lines:
            if line["what"] == "left out" and line["algorithm"] not in LEFT_OUT:
                raise SystemExit(f"{where}: {line['algorithm']} did not run: {line['reason']}")
        return [line for line in lines if line["what"] not in ("left out", "end")]


def name_of(point):
    return f"{point['collective']} {point['algorithm']}" if point["what"] == "dense" else f"sparse {point['algorithm']}"


def against_cost(points):
    """Returns the points whose time differs from cost() by more than a quarter; for a cost that is a
    bound, those that take longer than that."""
    wrong = []
    for p in points:
        ratio = p["time_us"] / p["cost_us"]
        low = 1 / (1 + TOLERANCE) if p.get("exact", True) else 0
        if not low <= ratio <= 1 + TOLERANCE:
            wrong.append(f"{name_of(p)}, {p['ranks']} ranks: {p['time_us']:.1f} us simulated, {p['cost_us']:.1f} us by cost()")
    return wrong


def oktopk_bound(point):
    ranks = point["ranks"]
    words = 2 * sum(4 * (bin(i).count("1") if ranks > 16 else 1) for i in range(1, ranks))  # once a bit of its distance
    return 24 * point["k"] * (ranks - 1) / ranks + OKTOPK_PER_PEER * (ranks - 1) + words


def check(sim):
    wrong = []
    for ranks in (32, 19, 13):  # more than oktopk sends at once, too
        points = sim.run("star-1024", ranks, "dense", f"bytes={MIB // ranks // 4 * ranks * 4}")[1:]
        for collective in ("all-to-all-v", "all-gather-v", "reduce-scatter-v"):
            points += sim.run("star-1024", ranks, "dense", f"collective={collective}", "split=zipf:1", f"bytes={MIB // ranks // 4 * ranks * 4}")[1:]
        points += sim.run("star-1024", ranks, "sparse", "elements=100000", "density=0.01")[1:]
        for p in points:
            print(f"{ranks} ranks, {name_of(p)}: {p['time_us']:.1f} us, cost {p['cost_us']:.1f} us")
        wrong += against_cost(points)
        okay = [p for p in points if p["algorithm"] == "oktopk"]
        if not okay or okay[0]["wire_bytes"] > oktopk_bound(okay[0]):
            wrong.append(f"{ranks} ranks: oktopk sends more than its bound, or did not run: {okay}")
    # The partners of rd's last two steps are in other racks, but cost() assumes that every rank has its own link.
    rd = sim.run("tree-64", 64, "dense", "collective=allreduce", "algorithm=rd", f"bytes={MIB}")[1]
    if rd["time_us"] < 2 * rd["cost_us"]:
        wrong.append("tree-64: the shared links between racks are not felt")
    return wrong


def measure_sparse(sim, ranks, algorithm, density):
    words = ["sparse", f"elements={ELEMENTS}", f"density={density:.6g}", f"algorithm={algorithm}"]
    return sim.run("fat-tree-1024", ranks, *words)[1]


def break_even(sim, ranks, algorithm, dense_us, seen, near):
    """Returns the largest density at which the algorithm takes no longer than dense_us, and the index of the
    last of DENSITIES where that is true (-1: none). The search starts at `near`, the result for fewer ranks, and
    doubles its steps, then bisects. It repeats this beyond the first slower density, because times fall where
    bitmaps begin to replace indices. The result is interpolated linearly between the two neighbours."""
    low, high = -1, len(DENSITIES)  # faster at low, slower at high
    times = {}

    def faster(i):
        if i not in times:
            point = measure_sparse(sim, ranks, algorithm, DENSITIES[i])
            seen.append(point)
            times[i] = point["time_us"]
            print(f"simulate: {ranks} ranks, {algorithm} at {DENSITIES[i]:.2g}: {point['time_us']:.0f} us, dense {dense_us:.0f}", file=sys.stderr)
        return times[i] <= dense_us

    middle, step = max(near, 0), 1
    while high - low > 1:
        if faster(middle):
            low = middle
        else:
            high = middle
        if low >= 0 and high < len(DENSITIES):
            middle = (low + high) // 2
        else:
            middle = min(low + step, high - 1) if low >= 0 else max(high - step, 0)
            step *= 2
    if low >= 0 and high + 1 < len(DENSITIES) and faster(high + 1):
        low, high = high + 1, high + 2
        while high < len(DENSITIES) and faster(high):
            low, high = high, high + 1
    if low < 0:
        return 0.0, low
    if high == len(DENSITIES):
        return DENSITIES[low], low
    a, b = times[low], times[high]
    share = (dense_us - a) / (b - a) if b > a else 0
    return DENSITIES[low] + share * (DENSITIES[high] - DENSITIES[low]), low


def full(sim, doc):
    wrong = []
    began = time.time()
    print("simulate: star, 256 ranks", file=sys.stderr)
    doc["star"] = sim.run("star-1024", 256, "dense", f"bytes={MIB}")[1:] + sim.run("star-1024", 256, "sparse", "elements=262144", "density=0.01")[1:]
    wrong += against_cost(doc["star"])
    doc["allreduce"], doc["sparse"], doc["break_even"] = [], [], []
    near = {"allgather": len(DENSITIES) // 2, "rd": len(DENSITIES) // 2, "oktopk": len(DENSITIES) // 2}
    for ranks in doc["ranks"]:
        print(f"simulate: fat tree, {ranks} ranks", file=sys.stderr)
        most = ranks == doc["ranks"][-1]  # a ring of so many sends millions of messages: once
        points = sim.run("fat-tree-1024", ranks, "dense", f"bytes={4 * ELEMENTS}", *([] if most else ["collective=allreduce"]))[1:]
        if most:
            doc["fat_tree"] = points
        dense = sorted((p for p in points if p["collective"] == "allreduce"), key=lambda p: p["time_us"])
        doc["allreduce"] += dense
        for algorithm in near:
            density, near[algorithm] = break_even(sim, ranks, algorithm, dense[0]["time_us"], doc["sparse"], near[algorithm])
            if algorithm == "oktopk":  # its bound also where entries are most of what it sends
                doc["sparse"].append(measure_sparse(sim, ranks, algorithm, 0.01))
            doc["break_even"].append({"ranks": ranks, "algorithm": algorithm, "dense": dense[0]["algorithm"], "dense_us": dense[0]["time_us"], "density": density})
    for p in doc["sparse"]:
        if p["algorithm"] == "oktopk" and p["wire_bytes"] > oktopk_bound(p):
            wrong.append(f"oktopk, {p['ranks']} ranks, density {p['density']:.2g}: {p['wire_bytes']} bytes, bound {oktopk_bound(p):.0f}")
    doc["seconds"] = round(time.time() - began)
    return wrong


def markdown(doc):
    out = ["# Simulated networks", "", "Written by `make sim-1024` (tests/sim/simulate.py): the shipped algorithms under SimGrid. Times are of the network alone;",
           "computation takes none, so a sparse exchange looks better here than where it must also select and merge.", ""]
    out += ["## Star, 256 ranks, 1 MiB (sparse: 262144 elements, 1 %): simulated time against cost()", "", "| algorithm | simulated, us | cost(), us | ratio |", "|---|---|---|---|"]
    for p in doc["star"]:
        bound = "" if p.get("exact", True) else " (a bound)"
        out.append(f"| {name_of(p)} | {p['time_us']:.1f} | {p['cost_us']:.1f}{bound} | {p['time_us'] / p['cost_us']:.2f} |")
    out += ["", f"## Fat tree: all-reduce of {4 * ELEMENTS // MIB} MiB, f32, fastest first", "", "| ranks | first | second | third | fourth |", "|---|---|---|---|---|"]
    for ranks in doc["ranks"]:
        row = [f"{p['algorithm']} {p['time_us']:.0f} us" for p in doc["allreduce"] if p["ranks"] == ranks]
        out.append(f"| {ranks} | " + " | ".join(row) + " |")
    out += ["", "## Fat tree: the density below which a sparse exchange of the same gradient is faster than the best dense one", "",
            "Entries at random places, different on every rank: no two ranks agree on what is large.", "",
            "| ranks | dense, us | allgather | rd | oktopk | oktopk sent, of its bound |", "|---|---|---|---|---|---|"]
    for ranks in doc["ranks"]:
        rows = {b["algorithm"]: b for b in doc["break_even"] if b["ranks"] == ranks}
        share = max(p["wire_bytes"] / oktopk_bound(p) for p in doc["sparse"] if p["ranks"] == ranks and p["algorithm"] == "oktopk")
        cell = lambda b: f"{100 * b['density']:.2g} %" if b["density"] > 0 else "none"
        out.append(f"| {ranks} | {rows['rd']['dense_us']:.0f} | {cell(rows['allgather'])} | {cell(rows['rd'])} | {cell(rows['oktopk'])} | {share:.2f} |")
    out += ["", f"Bound of oktopk: 24k(P-1)/P + {OKTOPK_PER_PEER}(P-1) bytes, and at most 4P log2 P for counts and regions. Densities looked at: {DENSITIES[0]:.0e} to {DENSITIES[-1]:.1g}; \"none\": slower at the lowest, too.", "",
            f"## Fat tree, {doc['ranks'][-1]} ranks, {4 * ELEMENTS // MIB} MiB: every algorithm that sends messages", "", "| algorithm | simulated, us |", "|---|---|"]
    out += [f"| {name_of(p)} | {p['time_us']:.1f} |" for p in doc["fat_tree"]]
    return "\n".join(out) + "\n"


def main():
    a = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    a.add_argument("--ddpsim", required=True)
    a.add_argument("--json", default=os.path.join(ROOT, "results", "sim-1024.json"))
    a.add_argument("--markdown", default=os.path.join(ROOT, "results", "sim-1024.md"))
    a.add_argument("--ranks", default="16,64,256,1024", help="on the fat tree")
    a.add_argument("what", choices=["check", "full"])
    a = a.parse_args()
    sim = Simulator(a.ddpsim)
    if a.what == "check":
        wrong = check(sim)
    else:
        doc = {"ranks": [int(n) for n in a.ranks.split(",")], "options": OPTIONS, "elements": ELEMENTS, "densities": DENSITIES}
        wrong = full(sim, doc)
        doc["wrong"] = wrong
        with open(a.json, "w") as f:
            json.dump(doc, f, indent=1)
            f.write("\n")
        with open(a.markdown, "w") as f:
            f.write(markdown(doc))
        print(markdown(doc))
        print(f"simulate: {doc['seconds']} s", file=sys.stderr)
    for line in wrong:
        print(f"simulate: {line}", file=sys.stderr)
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
