#!/usr/bin/env python3
"""Runs peers.py with made-up launches, to test how it evaluates their times.

usage: peers_made_up.py CORES TIMES OPTION...
TIMES is JSON: {variant: [[us, ping-pong ns, fraction of the bound (default: null)], ...]} with one
entry per launch; after the last entry the first is used again. An entry [] is a launch that fails,
"interrupt" one that is interrupted. The variant "cores apart" gives the launches that peers.py makes
to see the ping-pong of two ranks (default: 100 ns). Waits take no time. Gloo's own ping-pong is
ignored. "not here" lists the libraries that are not installed. "documents" has the document of each
launch of "ddpbench", which stands for MPI as well, and what a launch of "Gloo" printed for 2 ranks. The
names of all launches are written in order to the file launches.
"""
import json
import os
import sys

import peers


def main():
    cores, times = int(sys.argv[1]), json.loads(sys.argv[2])
    times.setdefault("cores apart", [[1, 100]])
    launches = []

    def measure(command, _collective, sizes, _iters):
        variant = command if isinstance(command, str) else command.words[0] if isinstance(command, peers.Gloo) else "cores apart"
        got = times[variant][launches.count(variant) % len(times[variant])]
        launches.append(variant)
        if got == "interrupt":
            raise KeyboardInterrupt
        document = made_up.get("Gloo" if isinstance(command, peers.Gloo) else "ddpbench")
        return (peers.Launch({size: (*got, None)[:3] for size in sizes}, document), "") if got else (None, "it died")

    gone, made_up = times.pop("not here", []), times.pop("documents", {})
    if "Gloo" in made_up:
        made_up["Gloo"] = peers.gloo_launch(peers.Gloo("", "allreduce", "ring", 2), made_up["Gloo"]).document
    names = {name: name for name in times if name != "cores apart"}
    names.update({name: peers.Gloo(name, "", "", 0) for name in names if name.startswith("Gloo")})
    os.sched_getaffinity = lambda _process: set(range(cores))
    peers.measure, peers.where = measure, lambda _ddpbench: {}
    peers.time.sleep = lambda _seconds: None
    peers.variants = peers.own_algorithms = lambda a: a.missing.extend(gone) or names
    sys.argv = ["peers.py", "--ddpbench", "none", "--json", "r.json"] + sys.argv[3:]
    try:
        peers.main()
    finally:
        with open("launches", "w") as f:
            f.writelines(name + "\n" for name in launches)


main()
