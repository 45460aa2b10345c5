#!/usr/bin/env python3
"""Compares ddpbench's all-reduce times with an independent loop around MPI_Allreduce: `make bench-agree`.

The loop is mpi_loop.c, which contains no code of ddpbench. Both programs use the same mpiexec, ranks,
thread level, and kind and size of buffers; both run out of place, call a barrier before each operation,
take the slowest rank's time, and report the median. Two settings remove differences that would exceed
the tolerance: DDPBENCH_SIMULATE_HOSTS makes ddpbench use MPI's barrier (its own barrier on one host lets ranks
start closer together), and malloc keeps freed memory (Open MPI allocates scratch memory in every call,
and trimming the heap takes time). The programs run alternately in random order, and only rounds of the
most frequent ping-pong class count. The times agree if the median ratio over rounds is within 5 % from
64 KiB up, and within the larger of 100 ns and 5 % below.
Exits with 0, with 1 when a size disagrees, or with 77 when no MPI can be used.

usage: agree.py --ddpbench PATH --loop PATH --mpiexec PATH [--ranks N] [--rounds N] [--iters N] [--json FILE]
"""
import argparse
import json
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile

SIZES = [8, 1 << 10, 16 << 10, 64 << 10, 1 << 20, 16 << 20]
CLASS_RATIO = 1.5
FROM, PART, NS = 64 << 10, 0.05, 100


def groups(iters):
    """Sizes that share an iteration count."""
    return [([s for s in SIZES if s <= 16 << 10], iters), ([s for s in SIZES if 16 << 10 < s <= 1 << 20], iters), ([s for s in SIZES if s > 1 << 20], max(iters // 50, 20))]


def warmup(iters):
    """Warmup operations. Open MPI is slower in its first few hundred operations at 16 KiB."""
    return iters // 4


def start(a):
    more = ["--oversubscribe"] if "openmpi" in os.path.basename(a.mpiexec) else []
    return [a.mpiexec, "-n", str(a.ranks)] + more


def run(ranks, command):
    keep = "2000000000"
    env = dict(os.environ, OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1", MALLOC_MMAP_THRESHOLD_=keep, MALLOC_TRIM_THRESHOLD_=keep, DDPBENCH_SIMULATE_HOSTS=str(ranks))
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=600)
    if done.returncode != 0:
        sys.exit(f"agree: {' '.join(command)}: exit {done.returncode}: {done.stderr.strip()[-400:]}")
    return done.stdout


def ours(a, sizes, iters):
    with tempfile.NamedTemporaryFile(suffix=".json") as f:
        run(a.ranks, start(a) + [a.ddpbench, "allreduce", "--backend", "mpi", "--algorithm", "native", "--memory", "private", "--placement", "out", "--start", "barrier",
                        "--order", "given", "--check", "off", "--size", ",".join(map(str, sizes)), "-n", str(iters), "-w", str(warmup(iters)), "-q", "--json", f.name])
        points = json.load(open(f.name))["points"]
    return {p["size_bytes"]: p["time_us"]["median"] for p in points}, statistics.median(p["pingpong_ns"]["after"] for p in points)


def theirs(a, sizes, iters):
    out, pingpong = {}, None
    for line in run(a.ranks, start(a) + [a.loop, str(iters), str(warmup(iters))] + [str(s) for s in sizes]).splitlines():
        key, value = line.split()
        if key == "pingpong":
            pingpong = float(value)
        else:
            out[int(key)] = float(value)
    return out, pingpong


def of_one_class(rounds):
    """The rounds whose two ping-pongs are close to their medians over all rounds."""
    usual = [statistics.median(r[k][1] for r in rounds) for k in range(2)]
    return [r for r in rounds if all(max(r[k][1], usual[k]) <= CLASS_RATIO * min(r[k][1], usual[k]) for k in range(2))]


def measure(a, sizes, iters, rng):
    rounds = []
    for _ in range(3 * a.rounds):
        order = [(0, ours), (1, theirs)]
        rng.shuffle(order)
        got = {k: f(a, sizes, iters) for k, f in order}
        rounds.append(got)
        if len(rounds) >= a.rounds and len(of_one_class(rounds)) >= a.rounds:
            break
    return of_one_class(rounds)


def judge(size, rounds):
    us = [statistics.median(r[k][0][size] for r in rounds) for k in range(2)]
    ratio = statistics.median(r[0][0][size] / r[1][0][size] for r in rounds)
    apart = statistics.median((r[0][0][size] - r[1][0][size]) * 1e3 for r in rounds)
    agreed = abs(ratio - 1) <= PART or (size < FROM and abs(apart) <= NS)
    return {"bytes": size, "ours_us": us[0], "loop_us": us[1], "ratio": ratio, "apart_ns": apart, "rounds": len(rounds), "agreed": agreed}


def main():
    a = argparse.ArgumentParser()
    a.add_argument("--ddpbench", required=True)
    a.add_argument("--loop", required=True)
    a.add_argument("--mpiexec", required=True)
    a.add_argument("--ranks", type=int, default=2)
    a.add_argument("--rounds", type=int, default=15)
    a.add_argument("--iters", type=int, default=2000)
    a.add_argument("--seed", type=int, default=1)
    a.add_argument("--json")
    a = a.parse_args()
    a.ddpbench, a.loop = os.path.abspath(a.ddpbench), os.path.abspath(a.loop)
    if not shutil.which(a.mpiexec):
        print(f"agree: no {a.mpiexec} here", file=sys.stderr)
        sys.exit(77)
    rng = random.Random(a.seed)
    rows = []
    print(f"MPI_Allreduce, f32 sum, out of place, {a.ranks} ranks, {a.mpiexec}: ours against a plain loop\n")
    print("| size | ours (us) | loop (us) | ratio | apart (ns) | rounds | agreed |\n|---|---|---|---|---|---|---|")
    for sizes, iters in groups(a.iters):
        rounds = measure(a, sizes, iters, rng)
        for size in sizes:
            r = judge(size, rounds)
            rows.append(r)
            print(f"| {size} | {r['ours_us']:.3f} | {r['loop_us']:.3f} | {r['ratio']:.3f} | {r['apart_ns']:+.0f} | {r['rounds']} | {'yes' if r['agreed'] else 'NO'} |", flush=True)
    if a.json:
        with open(a.json, "w") as f:
            json.dump({"ranks": a.ranks, "mpiexec": a.mpiexec, "sizes": rows}, f, indent=1)
            f.write("\n")
    short = [r for r in rows if r["rounds"] < a.rounds]
    if short:
        print(f"\nonly {short[0]['rounds']} of {a.rounds} rounds were of one ping-pong class")
    sys.exit(0 if all(r["agreed"] for r in rows) else 1)


if __name__ == "__main__":
    main()
