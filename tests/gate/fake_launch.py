#!/usr/bin/env python3
"""Replaces a measuring command of the gate: writes a result document with the given times.

usage: fake_launch.py --points ID=US[,ID=US...] [--noise PCT] [--pingpong NS] [--copy GBPS] [--host NAME]
                      [--status WORD [--reason TEXT]] [--wrong N] [--iterations N] [--train LR[,LR...]]
                      [--ranks N] [--backend NAME] [--cpu MODEL] [--usable-cores N] [--kernel RELEASE] [--mpi NAME]
                      [--seeds SEED=ACCURACY[,...] [--sync NAME] [--lr LR] [--step US] [--epochs N]] [--late ID=US] [--label TEXT] [--inject-delay PCT@ID] [--exit N [--exit-after N]] [--state FILE] --json FILE
--train: training runs without epochs, with these learning rates. --seeds: a training run per seed, each with this
accuracy in its last 3 epochs (nan: it diverges, diverged runs still have an accuracy). --late: a point that the first call leaves out.
--state FILE: counts the calls, so that each has other, but reproducible, noise.
"""
import argparse
import json
import math
import random
import sys


def digest(body):
    h = 0xCBF29CE484222325
    for byte in body:
        h = (h ^ byte) * 0x100000001B3 & 0xFFFFFFFFFFFFFFFF
    return f"fnv1a64:{h:016x}"


def run(lr):
    return {"model": "singa-cnn", "ranks": 2, "seed": 1, "sync": {"strategy": "dense"}, "optimizer": {"lr": lr}}


def trained(a, seed, accuracy, rng):
    diverged = accuracy == "nan"
    epochs = [{
        "epoch": e + 1, "steps": 20, "train_loss": None if diverged else 0.5, "eval_loss": None if diverged else 0.5,
        "eval_accuracy": 0.1 if diverged or e < a.epochs - 3 else float(accuracy),
        "seconds": 20 * a.step * 1e-6 * math.exp(rng.gauss(0, a.noise / 100)),
    } for e in range(a.epochs)]
    return {"model": "m", "ranks": 2, "seed": int(seed), "launch": None, "sync": {"strategy": a.sync}, "optimizer": {"lr": a.lr},
            "eval_images": a.eval_images, "epochs": epochs}


def point(name, us, pingpong):
    size, ranks = 65536, 2
    gbps = size / (us * 1e3)
    return {
        "id": name, "collective": "allreduce", "ranks": ranks, "size_bytes": size, "iterations": 20,
        "compress": {"method": "none"}, "partial": None,
        "time_us": {"median": us, "ci95": [us * 0.99, us * 1.01], "min": us * 0.98, "p25": us,
                    "p75": us, "max": us * 1.02},
        "algbw_GBps": gbps, "busbw_GBps": gbps, "busbw_ci95_GBps": None,
        "pingpong_ns": {"before": pingpong, "after": pingpong},
    }


def main():
    a = argparse.ArgumentParser()
    a.add_argument("--points", default="a=10")
    a.add_argument("--noise", type=float, default=1.0)
    a.add_argument("--pingpong", type=float, default=100.0)
    a.add_argument("--copy", type=float, help="of the memory control; without it the document has none")
    a.add_argument("--host", default="h")
    a.add_argument("--ranks", type=int, default=2, help="of the world; points have 2")
    a.add_argument("--backend", default="shm")
    a.add_argument("--cpu", default="x")
    a.add_argument("--usable-cores", type=int, help="without this, --kernel or --mpi the document lacks the value")
    a.add_argument("--kernel")
    a.add_argument("--mpi")
    a.add_argument("--status", default="complete")
    a.add_argument("--reason")
    a.add_argument("--wrong", type=int, help="elements of the first point")
    a.add_argument("--iterations", type=int, default=20, help="of the first point")
    a.add_argument("--train", metavar="LR[,LR...]")
    a.add_argument("--seeds", metavar="SEED=ACCURACY[,...]", default="")
    a.add_argument("--sync", default="dense")
    a.add_argument("--lr", type=float, default=0.05)
    a.add_argument("--step", type=float, default=1000, metavar="US")
    a.add_argument("--epochs", type=int, default=7)
    a.add_argument("--eval-images", type=int, default=10000)
    a.add_argument("--no-points", action="store_true")
    a.add_argument("--late", metavar="ID=US")
    a.add_argument("--label")
    a.add_argument("--inject-delay", metavar="PCT@ID", help="the point ID takes so much longer")
    a.add_argument("--exit", type=int, default=0)
    a.add_argument("--exit-after", type=int, metavar="N", help="with --state: fails from the N-th launch on")
    a.add_argument("--state")
    a.add_argument("--json", required=True)
    a = a.parse_args()
    count = 0
    if a.state:
        try:
            count = len(open(a.state).read())
        except FileNotFoundError:
            pass
        open(a.state, "a").write("x")
    if a.exit and (a.exit_after is None or count >= a.exit_after):
        print("fake_launch: told to fail", file=sys.stderr)
        sys.exit(a.exit)
    rng = random.Random(f"{count} {a.points}")
    points = []
    for item in (a.points + ("," + a.late if a.late and count else "")).split(","):
        name, us = item.split("=")
        us = float(us) * math.exp(rng.gauss(0, a.noise / 100))
        injected = None
        if a.inject_delay and a.inject_delay.split("@", 1)[1] == name:
            injected = float(a.inject_delay.split("@")[0])
            us *= 1 + injected / 100
        points.append(point(name, us, a.pingpong) | {"injected_percent": injected})
    points[0]["iterations"] = a.iterations
    if a.wrong is not None:
        points[0]["check"] = {"mode": "once", "elements": 1000, "wrong": a.wrong}
    doc = {
        "schema": "ddpbench/1", "status": a.status, "reason": a.reason, "label": a.label,
        "tool": {"version": "0", "commit": "c", "cflags": "-O3"},
        "world": {"ranks": a.ranks, "backend": a.backend, "hosts": [{"name": a.host, "cpu": a.cpu, "cores": 2}]},
        "points": points, "train": [run(float(lr)) for lr in a.train.split(",")] if a.train else [], "verdict": None,
    }
    host = doc["world"]["hosts"][0]
    if a.usable_cores:
        host["usable_cores"] = a.usable_cores
    if a.kernel:
        host["kernel"] = a.kernel
    if a.mpi:
        doc["tool"]["features"] = {"mpi": None if a.mpi == "none" else a.mpi}
    if a.copy:
        doc["control"] = [{"ranks": 2, "bytes_per_rank": 1 << 24, "copy_GBps": a.copy * (1 + rng.gauss(0, a.noise / 100)),
                           "read_GBps": a.copy}]
    doc["train"] += [trained(a, *item.split("="), rng) for item in a.seeds.split(",") if item]
    if a.no_points:
        doc["points"] = []
    body = json.dumps(doc)[:-1].encode()
    with open(a.json, "wb") as f:
        f.write(body + b',"digest": "' + digest(body).encode() + b'"}\n')


main()
