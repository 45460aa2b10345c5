#!/usr/bin/env python3
"""Checks the accuracy verdict of `ddpbench compare` on real training: `make bench-accuracy`.

For several disjoint sets of seeds, the script trains with dense f32 gradients, with bf16 gradients, with --lr 0 (nothing is
learned), and with topk:0.01 without error feedback. It compares the last three with dense. bf16 must pass in at least 80 % of
the sets. The other two must never pass, and must fail in at least 80 % of the sets. Times are ignored (--min-effect 1000).
The documents of the training runs stay in --work, so that an interrupted experiment continues.

The exit code is 10 if a comparison does not have the expected outcomes. The times of the training runs are in the result.
"""
import argparse
import json
import os
import subprocess
import sys

from where import where

CONFIGS = {
    "dense": [],
    "bf16": ["--sync", "bf16"],
    "lr 0": ["--lr", "0"],
    "topk:0.01, feedback off": ["--sync", "topk:0.01", "--feedback", "off"],
}
SHARE = 0.8


def read(path):
    with open(path) as f:
        return json.load(f)


def finished(path, command):
    """Whether the document is complete and comes from this command line."""
    try:
        doc = read(path)
    except (FileNotFoundError, json.JSONDecodeError):
        return False
    return doc["status"] == "complete" and doc["command"]["argv"][1:] == command[1:]


def train(a, config, seeds):
    """Trains once per seed unless this is done already. Returns the path of the document."""
    path = os.path.join(a.work, f"{config.replace(' ', '-').replace(',', '')}-{seeds[0]}-{seeds[-1]}.json")
    command = [a.ddpbench, "train", "--ranks", str(a.ranks), "--dataset", a.dataset, "--epochs", str(a.epochs),
               "--seeds", ",".join(map(str, seeds)), "-q", "--json", path] + CONFIGS[config]
    if a.images:
        command += ["--images", str(a.images)]
    if not finished(path, command):
        print(f"# {config}: seeds {seeds[0]} to {seeds[-1]}", flush=True)
        subprocess.run(command, check=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    return path


def compare(a, base, new):
    """Compares two documents. Returns the outcome and the verdict on the accuracy."""
    path = os.path.join(a.work, "verdict.json")
    done = subprocess.run([a.ddpbench, "compare", base, new, "--vary", "sync,feedback,lr", "--min-effect", "1000",
                           "--accuracy-margin", str(a.margin), "--json", path],
                          stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    if done.returncode not in (0, 10, 12):
        raise SystemExit(f"ddpbench compare ended with {done.returncode}")
    verdict = read(path)["verdict"]
    (accuracy,) = verdict["accuracy"]
    return verdict["outcome"], accuracy


def expected(config, outcomes):
    """Whether the outcomes of all sets are as they must be."""
    least = SHARE * len(outcomes)
    if config == "bf16":
        return outcomes.count("PASS") >= least
    return "PASS" not in outcomes and outcomes.count("FAIL") >= least


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--ddpbench", required=True)
    p.add_argument("--json", required=True, help="file of results")
    p.add_argument("--work", required=True, help="folder for the documents of the training runs")
    p.add_argument("--sets", type=int, default=5)
    p.add_argument("--seeds", type=int, default=5, help="seeds of a set")
    p.add_argument("--epochs", type=int, default=10)
    p.add_argument("--ranks", type=int, default=2)
    p.add_argument("--dataset", default="fashion-mnist")
    p.add_argument("--images", type=int, help="of the data set synthetic")
    p.add_argument("--margin", type=float, default=0.01)
    a = p.parse_args()
    if a.epochs < 6:
        p.error("--epochs must be at least 6: with fewer, a stored step time has no interval, and nothing passes")
    os.makedirs(a.work, exist_ok=True)
    comparisons = {config: [] for config in CONFIGS if config != "dense"}
    seconds = {config: [] for config in CONFIGS}
    for k in range(a.sets):
        seeds = list(range(k * a.seeds + 1, (k + 1) * a.seeds + 1))
        paths = {config: train(a, config, seeds) for config in CONFIGS}
        for config, path in paths.items():
            seconds[config] += [run["final"]["seconds"] for run in read(path)["train"] if not run["baseline"]]
        for config, found in comparisons.items():
            outcome, accuracy = compare(a, paths["dense"], paths[config])
            found.append({"seeds": seeds, "outcome": outcome, "accuracy": accuracy})
            print(f"{config}: seeds {seeds[0]} to {seeds[-1]}: {outcome}, {accuracy['difference']:+.4f} "
                  f"({accuracy['lower']:+.4f} to {accuracy['upper']:+.4f})", flush=True)
    result = where(a.ddpbench)
    result["experiment"] = {key: getattr(a, key) for key in ("sets", "seeds", "epochs", "ranks", "dataset", "images", "margin")}
    result["seconds_per_run"] = {config: sum(times) / len(times) for config, times in seconds.items()}
    result["comparisons"] = comparisons
    result["as_expected"] = {config: expected(config, [f["outcome"] for f in found]) for config, found in comparisons.items()}
    with open(a.json, "w") as f:
        json.dump(result, f, indent=1)
        f.write("\n")
    print(f"as expected: {result['as_expected']}")
    return 0 if all(result["as_expected"].values()) else 10


if __name__ == "__main__":
    sys.exit(main())
