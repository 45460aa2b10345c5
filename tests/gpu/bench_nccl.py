#!/usr/bin/env python3
"""Compares all-reduce by backend nccl with NVIDIA's nccl-tests on the same GPUs. Usage: bench_nccl.py
--ddpbench PROGRAM --nccl-tests PROGRAM --out FILE [--ranks N]

It sums f32 from 4 B to 256 MiB by powers of 4, in and out of place, in private memory (nccl-tests: -R 0),
in registered memory (-R 1) and in a window (-R 2), on blocking and on non-blocking communicators. The
two programs run one after the other in --rounds rounds, and the median of the rounds counts. Both put 20
calls on the stream and wait once. Exits with 0 when both ran, with ddpbench's exit code when it failed,
or with 69 when nccl-tests does not run.
"""
import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile

CALLS = 20
MEMORY = {"private": "0", "registered": "1", "window": "2"}  # and the value of -R of nccl-tests


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


def ours(program, args, memory, blocking):
    """Returns ddpbench's times as {(bytes, placement): microseconds}. `auto` would not call NCCL for one
    rank."""
    with tempfile.TemporaryDirectory() as folder:
        out = os.path.join(folder, "run.json")
        run([program, "allreduce", "--backend", "nccl", "--ranks", str(args.ranks), "--algorithm", "native", "--memory", memory,
             "--nccl-blocking", blocking, "-b", "4", "-e", args.most, "-f", "4", "--block", str(CALLS), "-n", "5",
             "-q", "--progress", "never", "--json", out])
        with open(out) as file:
            points = json.load(file)["points"]
    return {(p["size_bytes"], p["placement"]): p["time_us"]["median"] for p in points}


def theirs(program, args, memory):
    """Returns the times of nccl-tests in the same form. A row has size, count, type, op and root, then
    time, algbw, busbw and wrong, first out of place, then in place."""
    times = {}
    text = run([program, "-b", "4", "-e", args.most, "-f", "4", "-g", str(args.ranks), "-n", str(CALLS), "-w", "5", "-c", "0",
                "-R", MEMORY[memory]])
    for words in (line.split() for line in text.splitlines()):
        if len(words) >= 13 and words[0].isdigit() and words[2] == "float":
            times[int(words[0]), "out"], times[int(words[0]), "in"] = float(words[5]), float(words[9])
    if not times:
        print(f"bench_nccl: {program} printed no rows of all_reduce_perf", file=sys.stderr)
        sys.exit(69)
    return times


def measure(args, memory):
    """Returns a row for each kind of communicator, size and placement."""
    rounds = []
    for _ in range(args.rounds):
        rounds.append([ours(args.ddpbench, args, memory, "on"), ours(args.ddpbench, args, memory, "off"), theirs(args.nccl_tests, args, memory)])
    rows = []
    for key in sorted(set.intersection(*(set(times) for one in rounds for times in one))):
        on, off, peer = (statistics.median(one[i][key] for one in rounds) for i in range(3))
        for blocking, time in ("on", on), ("off", off):
            rows.append({"memory": memory, "nccl_blocking": blocking, "size_bytes": key[0], "placement": key[1], "us": time, "peer_us": peer,
                         "ratio": peer / time if time else None})
    return rows


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--ddpbench", required=True)
    parser.add_argument("--nccl-tests", required=True)
    parser.add_argument("--out", required=True)
    parser.add_argument("--ranks", type=int, default=1)
    parser.add_argument("--most", default="256M")
    parser.add_argument("--rounds", type=int, default=3)
    args = parser.parse_args()
    rows = [row for memory in MEMORY for row in measure(args, memory)]
    print(f"{'memory':>10} {'blocking':>8} {'size':>10} {'place':>5} {'us':>10} {'nccl-tests':>10} {'ratio':>6}")
    for row in rows:
        print(f"{row['memory']:>10} {row['nccl_blocking']:>8} {row['size_bytes']:10} {row['placement']:>5} {row['us']:10.2f} "
              f"{row['peer_us']:10.2f} {row['ratio'] or 0:6.2f}")
    with open(args.out, "w") as file:
        json.dump({"host": platform.node(), "ranks": args.ranks, "rows": rows}, file, indent=1)
        file.write("\n")
    print(f"written to {args.out}")


if __name__ == "__main__":
    main()
