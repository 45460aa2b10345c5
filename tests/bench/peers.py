#!/usr/bin/env python3
"""All-reduce against the MPI libraries of this machine, interleaved: `make bench-peers`.

Every variant, ours and theirs, is measured by the same sampler (ours; theirs through the blocking
MPI_Allreduce, private memory): one operation at a time, max over ranks, in place, buffers rewritten
between iterations. A round runs every variant once, in random order; ratios are taken within a round
only, against the best peer of that round at that size, and only where both points saw one ping-pong
class. Writes results/peers.json and prints a Markdown table; a row that falls short of its goal is
marked.

usage: peers.py --ddpbench PATH [--ranks N] [--rounds N] [--max BYTES] [--json FILE] [--quick]
"""
import argparse
import json
import math
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile

KIB, MIB = 1 << 10, 1 << 20
SIZES = [4 << (2 * i) for i in range(14)]  # 4 B to 256 MiB
# Goals of issue "Speed" at 2 ranks: times the best peer, registered memory.
GOALS = {4: 1.5, KIB: 2.8, 16 * KIB: 7, 64 * KIB: 7, MIB: 3.5, 16 * MIB: 1.5, 64 * MIB: 1.9, 256 * MIB: 1.7}
CLASS_RATIO = 1.5


def groups(largest):
    """Sizes that share an iteration count, so that a launch takes about a second."""
    plan = [(64 * KIB, 200), (MIB, 100), (16 * MIB, 20), (64 * MIB, 10), (1 << 40, 6)]
    low = 0
    for high, iters in plan:
        sizes = [s for s in SIZES if low < s <= min(high, largest)]
        if sizes:
            yield sizes, iters
        low = high


def variants(ddpbench, ranks):
    own = [ddpbench, "allreduce", "--backend", "shm", "--ranks", str(ranks)]
    mpi = ["allreduce", "--backend", "mpi", "--algorithm", "native", "--memory", "private"]
    out = {
        "ddpbench registered": own + ["--memory", "registered"],
        "ddpbench private": own + ["--memory", "private"],
    }
    if shutil.which("mpiexec.openmpi"):
        run = ["mpiexec.openmpi", "-n", str(ranks), "--oversubscribe"]
        tuned = ["--mca", "coll_tuned_use_dynamic_rules", "1"]
        ompi = {"default": []}
        names = {1: "linear", 2: "nonoverlapping", 3: "recursive doubling", 4: "ring", 5: "segmented ring", 6: "rabenseifner"}
        for number, name in names.items():
            ompi[name] = tuned + ["--mca", "coll_tuned_allreduce_algorithm", str(number)]
        ompi["segmented ring"] += ["--mca", "coll_tuned_allreduce_algorithm_segmentsize", str(MIB)]
        ompi["UCX"] = ["--mca", "pml", "ucx", "--mca", "osc", "ucx", "--mca", "pml_ucx_tls", "any", "--mca", "pml_ucx_devices", "any"]
        for name, flags in ompi.items():
            out["Open MPI " + name] = run + flags + [ddpbench] + mpi
        out["Open MPI malloc thresholds"] = ["env", "MALLOC_MMAP_THRESHOLD_=2000000000", "MALLOC_TRIM_THRESHOLD_=2000000000"] + run + [ddpbench] + mpi
    if shutil.which("mpiexec.mpich"):
        out["MPICH default"] = ["mpiexec.mpich", "-n", str(ranks), ddpbench] + mpi
    return out


def measure(command, sizes, iters):
    """{size: (median us, ping-pong ns)} of one launch; None when it failed."""
    with tempfile.NamedTemporaryFile(suffix=".json") as f:
        args = ["--placement", "in", "--size", ",".join(map(str, sizes)), "-n", str(iters), "-w", "3", "-q", "--json", f.name]
        env = dict(os.environ, OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
        done = subprocess.run(command + args, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, timeout=600)
        if done.returncode != 0:
            return None, done.stderr.decode(errors="replace").strip()[-300:]
        points = json.load(open(f.name))["points"]
    out = {}
    for p in points:
        pp = [v for v in p["pingpong_ns"].values() if v]
        out[p["size_bytes"]] = (p["time_us"]["median"], statistics.median(pp) if pp else math.nan)
    return out, ""


def interval(values):
    """Median with its exact 95 % interval (order statistics), or None below 6 values."""
    values = sorted(values)
    n = len(values)
    median = statistics.median(values)
    tail, lo = 0.0, 0
    for k in range(n // 2):
        tail += math.comb(n, k) / 2**n
        if tail > 0.025:
            break
        lo = k + 1
    return median, (values[lo - 1], values[n - lo]) if lo else (math.nan, math.nan)


def same_class(a, b):
    return not (a > CLASS_RATIO * b or b > CLASS_RATIO * a)


def main():
    a = argparse.ArgumentParser()
    a.add_argument("--ddpbench", required=True)
    a.add_argument("--ranks", type=int, default=2)
    a.add_argument("--rounds", type=int, default=9)
    a.add_argument("--max", type=int, default=256 * MIB)
    a.add_argument("--seed", type=int, default=1)
    a.add_argument("--only", default="", help="comma separated parts of variants' names")
    a.add_argument("--json", default="results/peers.json")
    a = a.parse_args()
    rng = random.Random(a.seed)
    plan = variants(os.path.abspath(a.ddpbench), a.ranks)
    if a.only:
        plan = {n: c for n, c in plan.items() if n.startswith("ddpbench") or any(o in n for o in a.only.split(","))}
    rounds, failed = [], {}
    for r in range(a.rounds):
        seen = {}
        for sizes, iters in groups(a.max):
            names = [n for n in plan if n not in failed]
            rng.shuffle(names)
            for name in names:
                got, why = measure(plan[name], sizes, iters)
                if got is None:
                    failed[name] = why
                    print(f"peers: left out: {name}: {why}", file=sys.stderr)
                    continue
                for size, point in got.items():
                    seen.setdefault(size, {})[name] = point
        rounds.append(seen)
        print(f"peers: round {r + 1} of {a.rounds}", file=sys.stderr)
    report(a, rounds, plan, failed)


def ratios(rounds, size, ours, peers):
    """Peer's time over ours, per round of one class; (list, names of the best)."""
    out, best_names = [], []
    for seen in rounds:
        row = seen.get(size, {})
        if ours not in row:
            continue
        candidates = [(row[p][0], p) for p in peers if p in row and same_class(row[p][1], row[ours][1])]
        if candidates:
            t, name = min(candidates)
            out.append(t / row[ours][0])
            best_names.append(name)
    return out, best_names


def report(a, rounds, plan, failed):
    peers = [n for n in plan if not n.startswith("ddpbench") and n not in failed]
    defaults = [n for n in peers if n.endswith("default")]
    doc = {"ranks": a.ranks, "rounds": a.rounds, "failed": failed, "sizes": []}
    print(f"\nAll-reduce, f32 sum, in place, {a.ranks} ranks, {a.rounds} interleaved rounds; ratio: peer's time over ours\n")
    print("| size | ours (us) | best peer | registered, of best | goal | private, of best | registered, of defaults |")
    print("|---|---|---|---|---|---|---|")
    short, logs, private_logs = [], [], []
    for size in [s for s in SIZES if s <= a.max]:
        reg, names = ratios(rounds, size, "ddpbench registered", peers)
        pri, _ = ratios(rounds, size, "ddpbench private", peers)
        dft = [ratios(rounds, size, "ddpbench registered", [d])[0] for d in defaults]
        if not reg or not pri:
            continue
        m, ci = interval(reg)
        pm, pci = interval(pri)
        goal = GOALS.get(size) if a.ranks == 2 else None
        logs.append(math.log(m))
        private_logs.append(math.log(pm))
        ours = statistics.median(seen[size]["ddpbench registered"][0] for seen in rounds if size in seen)
        best = max(set(names), key=names.count)
        least = min((interval(d)[0] for d in dft if d), default=math.nan)
        mark = " **short**" if goal and m < goal else ""
        if mark:
            short.append((size, m, goal))
        print(f"| {size} | {ours:.2f} | {best} | {m:.2f} ({ci[0]:.2f} to {ci[1]:.2f}){mark} | {goal or '-'} | {pm:.2f} ({pci[0]:.2f} to {pci[1]:.2f}) | {least:.2f} |")
        doc["sizes"].append({"bytes": size, "ours_us": ours, "best_peer": best, "registered": {"ratio": m, "ci95": ci, "rounds": len(reg)},
                             "private": {"ratio": pm, "ci95": pci, "rounds": len(pri)}, "least_of_defaults": least, "goal": goal,
                             "peers_us": {p: statistics.median(s[size][p][0] for s in rounds if size in s and p in s[size]) for p in plan if any(p in s.get(size, {}) for s in rounds)}})
    if logs:
        geo = math.exp(sum(logs) / len(logs))
        pgeo = math.exp(sum(private_logs) / len(private_logs))
        doc["geometric_mean"] = {"registered": geo, "private": pgeo}
        print(f"\ngeometric mean: registered {geo:.2f} (goal 3.5), private {pgeo:.2f} (goal 1.5)")
    for size, m, goal in short:
        print(f"falls short: {size} bytes: {m:.2f}, goal {goal}")
    doc = json.loads(json.dumps(doc), parse_constant=lambda _: None)
    os.makedirs(os.path.dirname(a.json) or ".", exist_ok=True)
    with open(a.json, "w") as f:
        json.dump(doc, f, indent=1)
        f.write("\n")


if __name__ == "__main__":
    main()
