#!/usr/bin/env python3
"""Measures a training step of singa-cnn on this GPU: eager, as a graph, and PyTorch's eager step if
this python3 has PyTorch. Usage: bench_layers.py --ddpbench PROGRAM --out FILE [--batches 64,1024]

The time of a step is the seconds of an epoch, without evaluation, divided by its steps, as the median
of all epochs but the first. Both programs use images of 28 x 28 that lie on the GPU and are gathered
there, SGD with momentum and weight decay, and f32 without TF32. Exits with 0 when the goals are met,
1 when one is missed, 69 without a GPU.
"""
import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time

IMAGES = 65536
# For each batch size: how many times faster a graph must be than PyTorch's eager step and our own.
GOALS = {64: (1.5, 2.0), 1024: (1.0, None)}


def ours(program, batch, graph, epochs):
    """Returns the microseconds per step, and the name of the library that computed the layers."""
    with tempfile.TemporaryDirectory() as folder:
        out = os.path.join(folder, "run.json")
        ran = subprocess.run([program, "train", "--device", "cuda", "--ranks", "1", "--model", "singa-cnn",
                              "--dataset", "synthetic", "--images", str(IMAGES), "--batch", str(batch),
                              "--epochs", str(epochs), "--cuda-graph", graph, "-q", "--progress", "never",
                              "--json", out],
                             stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, timeout=240)
        if ran.returncode:
            sys.stderr.write(ran.stderr)
            sys.exit(ran.returncode)
        run = json.load(open(out))["train"][0]
    steps = -(-IMAGES // batch)
    return statistics.median(e["seconds"] for e in run["epochs"][1:]) / steps * 1e6, run["compute"]["library"]


def peer(batch, epochs):
    """Returns the microseconds of PyTorch's eager step, or None and the reason."""
    try:
        import torch
        from torch import nn
    except ImportError:
        return None, "no PyTorch in this python3"
    if not torch.cuda.is_available():
        return None, "PyTorch sees no GPU"
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    pixels = torch.randint(0, 256, (IMAGES, 1, 28, 28), dtype=torch.uint8, device="cuda")
    labels = torch.randint(0, 10, (IMAGES,), device="cuda")
    net = nn.Sequential(nn.Conv2d(1, 20, 5), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(20, 50, 5), nn.ReLU(),
                        nn.MaxPool2d(2), nn.Flatten(), nn.Linear(800, 500), nn.ReLU(), nn.Linear(500, 10)).cuda()
    rule = torch.optim.SGD(net.parameters(), lr=0.005, momentum=0.9, weight_decay=1e-5)
    criterion, total, times = nn.CrossEntropyLoss(), torch.zeros((), device="cuda"), []
    for _ in range(epochs):
        order = torch.randperm(IMAGES, device="cuda")
        torch.cuda.synchronize()
        begin = time.perf_counter()
        for at in range(0, IMAGES, batch):
            index = order[at:at + batch]
            x, y = pixels[index].float().div_(255), labels[index]
            rule.zero_grad(set_to_none=True)
            loss = criterion(net(x), y)
            loss.backward()
            rule.step()
            total += loss.detach()
        torch.cuda.synchronize()
        times.append(time.perf_counter() - begin)
    return statistics.median(times[1:]) / -(-IMAGES // batch) * 1e6, "PyTorch " + torch.__version__


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--ddpbench", required=True)
    parser.add_argument("--out", required=True)
    parser.add_argument("--batches", default="64,1024")
    parser.add_argument("--epochs", type=int, default=6)
    args = parser.parse_args()
    rows, missed = [], 0
    print(f"{'batch':>6} {'eager us':>9} {'graph us':>9} {'PyTorch us':>10} {'x PyTorch':>9} {'goal':>5} {'x eager':>8} {'goal':>5}")
    for batch in (int(b) for b in args.batches.split(",")):
        eager, library = ours(args.ddpbench, batch, "off", args.epochs)
        graph, _ = ours(args.ddpbench, batch, "on", args.epochs)
        theirs, what = peer(batch, args.epochs)
        goal, goal_eager = GOALS.get(batch, (None, None))
        over, over_eager = theirs / graph if theirs else None, eager / graph
        bad = bool((over and goal and over < goal) or (goal_eager and over_eager < goal_eager))
        missed += bad
        rows.append({"model": "singa-cnn", "batch": batch, "eager_us": eager, "graph_us": graph, "peer_us": theirs,
                     "peer": what, "library": library, "over_peer": over, "over_peer_goal": goal,
                     "over_eager": over_eager, "over_eager_goal": goal_eager, "missed": bad})
        print(f"{batch:6} {eager:9.1f} {graph:9.1f} {theirs and round(theirs, 1) or '-':>10} "
              f"{over and round(over, 2) or '-':>9} {goal or '-':>5} {over_eager:8.2f} {goal_eager or '-':>5}"
              f"{'  MISSED' if bad else ''}")
    with open(args.out, "w") as out:
        json.dump({"host": platform.node(), "rows": rows}, out, indent=1)
        out.write("\n")
    print(f"{missed} goals missed; written to {args.out}")
    sys.exit(1 if missed else 0)


if __name__ == "__main__":
    main()
