#!/usr/bin/env python3
"""Replaces a measuring command of the gate: writes a result document with the given times.

usage: fake_launch.py --points ID=US[,ID=US...] [--noise PCT] [--pingpong NS] [--copy GBPS [--copy-bytes N]] [--host NAME]
                      [--status WORD [--reason TEXT]] [--wrong N] [--busy] [--iterations N] [--train LR[,LR...]]
                      [--ranks N] [--backend NAME] [--cpu MODEL] [--usable-cores N] [--kernel RELEASE] [--mpi NAME]
                      [--seeds SEED=ACCURACY[,...] [--sync NAME] [--lr LR] [--step US] [--epochs N]] [--late ID=US] [--label TEXT] [--inject-delay PCT@ID] [--exit N [--exit-after N]] [--state FILE] --json FILE
--train: training runs without epochs, with these learning rates. --seeds: a training run per seed, each with this
accuracy in its last 3 epochs (nan: it diverges, diverged runs still have an accuracy). --late: a point that the first call leaves out.
--state FILE: counts the calls, so that each has other, but reproducible, noise. --copy: of the memory control; without
it the document has none. --ranks: of the world; points have 2. Without --usable-cores, --kernel or --mpi the document
lacks the value. --wrong, --iterations, --busy (a quality code): of the first point. --inject-delay: the point ID takes so much longer.
"""
# Tests start this a thousand times, so it imports no module that is slow to load (argparse, json, random).
import math
import sys
from _random import Random

# The type of each option, and its value if it is not given.
OPTIONS = {
    "points": (str, "a=10"), "noise": (float, 1.0), "pingpong": (float, 100.0), "copy": (float, None), "copy_bytes": (int, 1 << 24), "host": (str, "h"),
    "ranks": (int, 2), "backend": (str, "shm"), "cpu": (str, "x"), "usable_cores": (int, None), "kernel": (str, None), "mpi": (str, None),
    "status": (str, "complete"), "reason": (str, None), "wrong": (int, None), "iterations": (int, 20), "train": (str, None),
    "seeds": (str, ""), "sync": (str, "dense"), "lr": (float, 0.05), "step": (float, 1000.0), "epochs": (int, 7),
    "eval_images": (int, 10000), "no_points": (None, False), "busy": (None, False), "late": (str, None), "label": (str, None), "inject_delay": (str, None),
    "exit": (int, 0), "exit_after": (int, None), "state": (str, None), "json": (str, None),
}


class Arguments:
    def __init__(self, words):
        for name, (_, default) in OPTIONS.items():
            setattr(self, name, default)
        words = iter(words)
        for word in words:
            name, equals, value = word.partition("=")
            name = name.removeprefix("--").replace("-", "_")
            if not word.startswith("--") or name not in OPTIONS:
                sys.exit(f"fake_launch: unknown option {word}")
            kind = OPTIONS[name][0]
            setattr(self, name, True if kind is None else kind(value if equals else next(words)))


class Noise:
    """Normally distributed numbers that depend only on a text."""

    def __init__(self, text):
        self.random = Random(int.from_bytes(text.encode(), "big"))

    def gauss(self, deviation):
        uniform = 1 - self.random.random()
        return deviation * math.sqrt(-2 * math.log(uniform)) * math.cos(2 * math.pi * self.random.random())


def dumps(x):
    """The value as JSON text."""
    if isinstance(x, dict):
        return "{" + ", ".join(f"{dumps(key)}: {dumps(value)}" for key, value in x.items()) + "}"
    if isinstance(x, list):
        return "[" + ", ".join(map(dumps, x)) + "]"
    if isinstance(x, str):
        return '"' + x.replace("\\", "\\\\").replace('"', '\\"') + '"'
    return {None: "null", True: "true", False: "false"}[x] if x is None or isinstance(x, bool) else repr(x)


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
        "seconds": 20 * a.step * 1e-6 * math.exp(rng.gauss(a.noise / 100)),
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
    a = Arguments(sys.argv[1:])
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
    rng = Noise(f"{count} {a.points}")
    points = []
    for item in (a.points + ("," + a.late if a.late and count else "")).split(","):
        name, us = item.split("=")
        us = float(us) * math.exp(rng.gauss(a.noise / 100))
        injected = None
        if a.inject_delay and a.inject_delay.split("@", 1)[1] == name:
            injected = float(a.inject_delay.split("@")[0])
            us *= 1 + injected / 100
        points.append(point(name, us, a.pingpong) | {"injected_percent": injected})
    points[0]["iterations"] = a.iterations
    if a.busy:
        points[0]["quality"] = ["drifting", "busy"]
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
        doc["control"] = [{"ranks": 2, "bytes_per_rank": a.copy_bytes, "copy_GBps": a.copy * (1 + rng.gauss(a.noise / 100)),
                           "read_GBps": a.copy}]
    doc["train"] += [trained(a, *item.split("="), rng) for item in a.seeds.split(",") if item]
    if a.no_points:
        doc["points"] = []
    body = dumps(doc)[:-1].encode()
    with open(a.json, "wb") as f:
        f.write(body + b',"digest": "' + digest(body).encode() + b'"}\n')


main()
