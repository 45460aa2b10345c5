#!/usr/bin/env python3
"""Compares training with PyTorch on this CPU and with matrix products: `make bench-train`.

All runs train SINGA's CNN on Fashion-MNIST with batch 64 per rank and SGD with momentum. One ddpbench
rank on one core is compared with one PyTorch thread on this core; 2 ranks (dense) are compared with
DistributedDataParallel over gloo, with 2 processes, each pinned to a core. PyTorch runs in its usual
form and tuned (channels last, foreach optimiser, gradients as views of buckets); the faster of the two
in each round is the peer. A round runs everything once in random order. The sgemm of the library that
training uses runs on the same core right before and after our one rank. Ratios are taken within a
round only.

The operations counted are those of the dense products, forward and backward, and of the update.
ddpbench skips multiplications by the zeros behind the pools, so its rate by this count is an effective
rate. The script writes a JSON document and prints a Markdown table that marks missed goals.

PyTorch is Debian's python3-torch, run by --python. ddpbench does not depend on it.

usage: train_peers.py --ddpbench PATH --sgemm PATH [--rounds N] [--steps N] [--python PATH] [--json FILE]
"""
import argparse
import json
import math
import os
import random
import statistics
import subprocess
import sys
import tempfile

from peers import interval
from where import where

BATCH = 64
DATA = "/usr/share/datasets/fashion-mnist"
GOALS = {"1 rank": 1.2, "2 ranks": 1.3, "sgemm": 0.65}
HERE = os.path.dirname(os.path.abspath(__file__))


def start(command, what):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=900)
    if done.returncode != 0:
        said = done.stderr.decode(errors="replace").strip().splitlines()
        sys.exit(f"bench-train: {what} ended with {done.returncode}: {said[-1] if said else ''}")
    return done.stdout


def ours(a, cores):
    """The images per second of all ranks, from ddpbench's document."""
    with tempfile.NamedTemporaryFile(suffix=".json") as f:
        start(["taskset", "-c", ",".join(map(str, cores)), a.ddpbench, "train", "--model", "singa-cnn", "--dataset", "fashion-mnist",
               "--data", a.data, "--ranks", str(len(cores)), "--batch", str(BATCH), "--epochs", "1", "--max-steps", str(a.steps),
               "--check-replicas", "epoch", "-q", "--json", f.name], "ddpbench train")
        run = json.load(open(f.name))["train"][0]
    assert run["model"] == "singa-cnn" and run["batch_per_rank"] == BATCH and run["ranks"] == len(cores), run
    return run["epochs"][0]["images_per_second"]


def torch(a, cores, tuned):
    out = start([a.python, os.path.join(HERE, "train_torch.py"), "--data", a.data, "--cores", ",".join(map(str, cores)), "--steps",
                 str(a.steps), "--batch", str(BATCH)] + (["--tuned"] if tuned else []), "PyTorch")
    return json.loads(out.decode().strip().splitlines()[-1])


def sgemm(a, core):
    return json.loads(start(["taskset", "-c", str(core), a.sgemm, str(a.sgemm_seconds)], "sgemm"))


def one_round(a, cores, rng):
    """Returns {name: images/s}, and the facts that sgemm and PyTorch print about themselves."""
    seen, facts = {}, {}

    def own_one():
        before = sgemm(a, cores[0])
        seen["ddpbench 1 rank"] = ours(a, cores[:1])
        after = sgemm(a, cores[0])
        seen["sgemm"] = (before["gflops"] + after["gflops"]) / 2
        facts["sgemm"] = before

    def peer(ranks, tuned):
        out = torch(a, cores[:ranks], tuned)
        facts["torch"] = out["version"]
        seen[f"PyTorch {'tuned ' if tuned else ''}{ranks} rank{'s' if ranks > 1 else ''}"] = out["images_per_second"]

    tasks = [own_one, lambda: peer(1, False), lambda: peer(1, True)]
    if len(cores) > 1:
        tasks += [lambda: seen.update({"ddpbench 2 ranks": ours(a, cores)}), lambda: peer(2, False), lambda: peer(2, True)]
    rng.shuffle(tasks)
    for task in tasks:
        task()
    return seen, facts


def row_of(name, values, goal):
    m, ci = interval(values)
    return {"row": name, "value": m, "ci95": ci, "goal": goal, "rounds": len(values), "short": m < goal}


def report(a, rounds, facts):
    rows = []
    for ranks in ("1 rank", "2 ranks"):
        if f"ddpbench {ranks}" in rounds[0]:
            ratio = [r[f"ddpbench {ranks}"] / max(r[f"PyTorch {ranks}"], r[f"PyTorch tuned {ranks}"]) for r in rounds]
            rows.append(row_of(f"{ranks}, times PyTorch", ratio, GOALS[ranks]))
    g = facts["sgemm"]
    flops = g["flops_per_image"] + g["update_flops"] / BATCH
    part = [r["ddpbench 1 rank"] * flops / (r["sgemm"] * 1e9) for r in rounds]
    rows.append(row_of("1 rank, dense operations, of sgemm's rate", part, GOALS["sgemm"]))
    medians = {n: statistics.median(r[n] for r in rounds) for n in rounds[0]}
    print(f"\nsinga-cnn, Fashion-MNIST, batch {BATCH} a rank, SGD with momentum, {a.steps} steps, {len(rounds)} interleaved rounds")
    print(f"PyTorch {facts['torch']}; {g['library']}; {flops / 1e6:.2f} MFLOP an image (dense products and update; ours skips zeros behind the pools); sgemm {medians['sgemm']:.1f} GFLOP/s at {g['size']}\n")
    print("| images/s | median |\n|---|---|")
    for name in sorted(n for n in medians if n != "sgemm"):
        print(f"| {name} | {medians[name]:.0f} |")
    print("\n| ratio | median | 95 % interval | goal |\n|---|---|---|---|")
    for r in rows:
        lo, hi = r["ci95"]
        span = "-" if math.isnan(lo) else f"{lo:.3f} to {hi:.3f}"
        print(f"| {r['row']} | {r['value']:.3f} | {span} | {r['goal']:.2f}{' **short**' if r['short'] else ''} |")
    for r in rows:
        if r["short"]:
            print(f"falls short: {r['row']}: {r['value']:.3f}, goal {r['goal']}")
    doc = {"where": facts["where"], "torch": facts["torch"], "sgemm": g, "flops_per_image": flops, "batch": BATCH, "steps": a.steps, "rounds": rounds,
           "images_per_second": medians, "rows": rows}
    doc = json.loads(json.dumps(doc), parse_constant=lambda _: None)
    os.makedirs(os.path.dirname(a.json) or ".", exist_ok=True)
    with open(a.json, "w") as f:
        json.dump(doc, f, indent=1)
        f.write("\n")


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--ddpbench", required=True)
    p.add_argument("--sgemm", required=True)
    p.add_argument("--python", default="/usr/bin/python3")
    p.add_argument("--data", default=DATA)
    p.add_argument("--rounds", type=int, default=15)
    p.add_argument("--steps", type=int, default=300)
    p.add_argument("--sgemm-seconds", type=float, default=0.5)
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--json", default="results/train-peers.json")
    a = p.parse_args()
    if subprocess.run([a.python, "-c", "import torch"], stderr=subprocess.DEVNULL).returncode != 0:
        sys.exit(f"bench-train: {a.python} has no torch; Debian: apt-get install python3-torch (it is not a dependency); or make bench-train TORCH_PYTHON=venv/bin/python")
    rng = random.Random(a.seed)
    cores = sorted(os.sched_getaffinity(0))[:2]
    if len(cores) < 2:
        print("bench-train: one core only: no 2 ranks", file=sys.stderr)
    rounds, facts, here = [], {}, where(a.ddpbench)
    for r in range(a.rounds):
        seen, facts = one_round(a, cores, rng)
        rounds.append(seen)
        print(f"bench-train: round {r + 1} of {a.rounds}", file=sys.stderr)
    report(a, rounds, {**facts, "where": here})


if __name__ == "__main__":
    main()
