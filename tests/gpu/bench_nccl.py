#!/usr/bin/env python3
"""Compares all-reduce by backend nccl with NVIDIA's nccl-tests on the same GPUs. Usage: bench_nccl.py
--ddpbench PROGRAM --nccl-tests PROGRAM --out FILE [--ranks N]

It sums f32 from 4 B to 256 MiB by powers of 4, in and out of place. The two programs run one after the
other in --rounds rounds, and the smallest time of each counts. nccl-tests (all_reduce_perf) puts 20
calls on the stream and waits once; ddpbench waits for each call, so its short messages take longer by
the time of a wait. Exits with 0 when both ran, with ddpbench's exit code when it failed, or with 69
when nccl-tests does not run.
"""
import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile

CALLS = 20


def run(command, **more):
    """Returns the output of a command. If the command fails, this program exits."""
    try:
        ran = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=120, **more)
    except (OSError, subprocess.TimeoutExpired) as e:
        print(f"bench_nccl: {e}", file=sys.stderr)
        sys.exit(69)
    if ran.returncode:
        sys.stderr.write(ran.stderr)
        print(f"bench_nccl: {command[0]} ended with {ran.returncode}", file=sys.stderr)
        sys.exit(ran.returncode if command[1] == "allreduce" and ran.returncode > 0 else 69)
    return ran.stdout


def ours(program, args):
    """Returns ddpbench's times as {(bytes, placement): microseconds}."""
    with tempfile.TemporaryDirectory() as folder:
        out = os.path.join(folder, "run.json")
        run([program, "allreduce", "--backend", "nccl", "--ranks", str(args.ranks), "-b", "4", "-e", args.most, "-f", "4",
             "--block", str(CALLS), "-n", "5", "-q", "--progress", "never", "--json", out])
        with open(out) as file:
            points = json.load(file)["points"]
    return {(p["size_bytes"], p["placement"]): p["time_us"]["min"] for p in points}


def theirs(program, args):
    """Returns the times of nccl-tests in the same form. A row has size, count, type, op and root, then
    time, algbw, busbw and wrong, first out of place, then in place."""
    times = {}
    text = run([program, "-b", "4", "-e", args.most, "-f", "4", "-g", str(args.ranks), "-n", str(CALLS), "-w", "5", "-c", "0"])
    for words in (line.split() for line in text.splitlines()):
        if len(words) >= 13 and words[0].isdigit() and words[2] == "float":
            times[int(words[0]), "out"], times[int(words[0]), "in"] = float(words[5]), float(words[9])
    if not times:
        print(f"bench_nccl: {program} printed no rows of all_reduce_perf", file=sys.stderr)
        sys.exit(69)
    return times


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--ddpbench", required=True)
    parser.add_argument("--nccl-tests", required=True)
    parser.add_argument("--out", required=True)
    parser.add_argument("--ranks", type=int, default=1)
    parser.add_argument("--most", default="256M")
    parser.add_argument("--rounds", type=int, default=3)
    args = parser.parse_args()
    best = [{}, {}]
    for _ in range(args.rounds):
        for least, times in zip(best, (ours(args.ddpbench, args), theirs(args.nccl_tests, args))):
            for key, time in times.items():
                least[key] = min(time, least.get(key, time))
    rows = []
    print(f"{'size':>10} {'place':>5} {'us':>10} {'nccl-tests':>10} {'ratio':>6}")
    for key in sorted(best[0].keys() & best[1].keys()):
        row = {"size_bytes": key[0], "placement": key[1], "us": best[0][key], "peer_us": best[1][key]}
        row["ratio"] = row["peer_us"] / row["us"] if row["us"] else None
        rows.append(row)
        print(f"{key[0]:10} {key[1]:>5} {row['us']:10.2f} {row['peer_us']:10.2f} {row['ratio'] or 0:6.2f}")
    with open(args.out, "w") as file:
        json.dump({"host": platform.node(), "ranks": args.ranks, "rows": rows}, file, indent=1)
        file.write("\n")
    print(f"written to {args.out}")


if __name__ == "__main__":
    main()
