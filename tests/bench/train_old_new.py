#!/usr/bin/env python3
"""Compares the training speed of two builds of ddpbench: `make bench-train OLD=DIR`.

Both builds train SINGA's CNN on Fashion-MNIST with 1 and with 2 ranks, in turns and in random order
within each round. The ratio of images per second, new over old, is taken within a round. The script
prints the median ratio with its 95 % interval, and exits with 10 if the whole interval of a row lies
below 1 - LIMIT.

usage: train_old_new.py --old PATH --new PATH [--rounds N] [--steps N]
"""
import argparse
import json
import random
import statistics
import subprocess
import sys
import tempfile

from peers import interval

LIMIT = 0.05


def speed(binary, ranks, steps):
    """The images per second of all ranks in one epoch of at most `steps` steps."""
    with tempfile.NamedTemporaryFile(suffix=".json") as f:
        subprocess.run([binary, "train", "--ranks", str(ranks), "--epochs", "1", "--max-steps", str(steps), "-q", "--json", f.name],
                       check=True, timeout=600, stdout=subprocess.DEVNULL)
        return json.load(open(f.name))["train"][0]["epochs"][0]["images_per_second"]


def main():
    p = argparse.ArgumentParser(usage=__doc__)
    p.add_argument("--old", required=True)
    p.add_argument("--new", required=True)
    p.add_argument("--rounds", type=int, default=10)
    p.add_argument("--steps", type=int, default=300)
    a = p.parse_args()
    slower = False
    print("| ranks | old (images/s) | new (images/s) | new/old | 95 % interval |")
    print("|---|---|---|---|---|")
    for ranks in (1, 2):
        runs = []
        for _ in range(a.rounds):
            binaries = [("old", a.old), ("new", a.new)]
            random.shuffle(binaries)
            runs.append({name: speed(path, ranks, a.steps) for name, path in binaries})
        ratios = [r["new"] / r["old"] for r in runs]
        middle, (low, high) = interval(ratios)
        old, new = (statistics.median(r[name] for r in runs) for name in ("old", "new"))
        print(f"| {ranks} | {old:.0f} | {new:.0f} | {middle:.3f} | {low:.3f} to {high:.3f} |", flush=True)
        slower |= high < 1 - LIMIT
    return 10 if slower else 0


if __name__ == "__main__":
    sys.exit(main())
