#!/usr/bin/env python3
"""Compares our collectives with the MPI libraries and Gloo of this machine: `make bench-peers`.

A variant is one way to run a collective: ddpbench with registered or private memory, an MPI library
with certain settings, or a Gloo algorithm. ddpbench measures itself and MPI (through the blocking
MPI call, with private memory); gloo_loop.cc measures Gloo in the same way. Each iteration runs one
operation, its time is that of the slowest rank, and the buffers are rewritten between iterations.
All-reduce and broadcast run in place.

Rounds: A round launches every variant in random order. The ratio of a round is the time of the
fastest peer at that size divided by ours in the same round. All-reduce of 2 ranks up to 64 KiB is
launched three times per round and takes the median, because single launches vary too much: the
fastest of many noisy peers would look faster than it is.

Ping-pong classes: The ping-pong time between two ranks shows how their cores are connected (one
core, shared cache, far). The goals apply to cores that share a cache, so only points of that class
are judged, and two points are compared only if their ping-pongs are similar. A round is left out if
its point of the usually best peer cannot be compared. Other classes get rows of their own if at
least 20 rounds saw them. The scheduler may place ranks differently in every launch, so a launch of
another class is repeated, up to 6 launches in all. Before a repetition the script waits until a
short run of two ddpbench ranks is of the judged class. Two cases have no usable ping-pong of their
own and take the class of such a run before and after the launch: Gloo, which measures none, and more
ranks than cores, where a ping-pong shows the scheduler's time slices.

Results: A size needs at least half of the rounds judged, and at least six if that many ran. Ours
counts as slower only if the 95 % interval of the ratio lies below 1, which also takes six rounds.
The script prints a Markdown table for each collective and number of ranks, marks the sizes that miss
a goal, and writes ratios and medians to --json. It also writes a ddpbench/1 document per peer and per
variant of ours into --documents, with a point per launch (peer_documents.py); with --auto it writes none.

usage: peers.py --ddpbench PATH [--gloo-loop PATH] [--collective NAME,...] [--ranks N,...]
                [--rounds N] [--min BYTES] [--max BYTES] [--only TEXT,...] [--json FILE]
                [--documents DIR]
       peers.py --ddpbench PATH --auto ...    compares auto with each of our own algorithms
Exits with 1 when a goal is missed, a peer fails or is not installed, or nothing was compared. When
interrupted or terminated, it writes the results of the complete rounds and exits with 130. --json is
written after each collective.
"""
import argparse
import itertools
import json
import math
import os
import random
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time

from peer_documents import Launch, PeerDocuments, gloo_document
from where import where

KIB, MIB = 1 << 10, 1 << 20
SIZES = [4 << (2 * i) for i in range(14)]  # 4 B to 256 MiB
# Goals for all-reduce at 2 ranks with registered memory: the time of the best peer divided by ours.
GOALS = {4: 1.5, KIB: 2.8, 16 * KIB: 7, 64 * KIB: 7, MIB: 3.5, 16 * MIB: 1.5, 64 * MIB: 1.9, 256 * MIB: 1.7}
CLASS_RATIO = 1.5
# The ping-pong classes in ns (results/notes/collectives.md). The goals apply to JUDGED. Another class is
# in the table if at least OTHERS_FROM rounds saw it.
CLASSES = {"one core": (0, 75), "shared cache": (75, 400), "far": (400, math.inf)}
JUDGED = "shared cache"
JUDGED_FROM = 6  # fewer rounds give no 95 % interval of a median
OTHERS_FROM = 20
TRIES = 6  # a launch is run at most this often until its points are of the judged class
WAITS, WAIT_S = 1200, 0.5  # waits for the judged class per collective and number of ranks: 10 to 15 minutes in all
OF_NONE = -1  # stands for a ping-pong that changed its class during the launch or is not known
WARMUP = 3  # iterations of each launch before the timed ones
REPEATS = 3  # launches of a variant per round, for short all-reduces at 2 ranks
AUTO_GOAL = 1.1
PROBED = 64 * KIB  # up to this size each of our algorithms is run once to see whether it supports the size
# More goals for all-reduce at 2 ranks: private memory against the best peer, and the mean over sizes.
PRIVATE_GOAL = 0.9
MEAN_GOALS = {"registered": 3.5, "private": 1.5}
BOUND_GOAL, BOUND_FROM = 0.8, 64 * MIB  # registered memory: the fraction of this machine's bound to reach


def oversubscribed(ranks):
    """True if there are more ranks than cores, so that operations may last for whole time slices."""
    return ranks > len(os.sched_getaffinity(0))


def groups(largest, ranks):
    """Yields (sizes, iterations): sizes of one launch, which then takes about a second."""
    plan = [(64 * KIB, 200), (MIB, 100), (16 * MIB, 20), (64 * MIB, 10), (1 << 40, 6)]
    if oversubscribed(ranks):
        plan = [(MIB, 30), (1 << 40, 6)]
    low = 0
    for high, iters in plan:
        sizes = [s for s in SIZES if low < s <= min(high, largest)]
        if sizes:
            yield sizes, iters
        low = high


class Gloo:
    """A Gloo variant, which tests/bench/gloo_loop.cc runs instead of ddpbench."""

    def __init__(self, program, collective, algorithm, ranks):
        self.words = [program, collective, algorithm, str(ranks)]
        self.collective, self.algorithm, self.ranks = collective, algorithm, ranks


def placement_of(collective):
    """The placement that applications use most; it is the same for all variants."""
    return "in" if collective in ("allreduce", "broadcast") else "out"


def missing(a, library, why):
    """Reports a missing library. The run falls short without it, unless --only excludes it."""
    print(f"peers: no {library} here: {why}", file=sys.stderr)
    if not a.only or any(o in library or library in o for o in a.only.split(",")):
        a.missing.append(library)


def gloo_variants(a):
    algorithms = {"allreduce": ["ring", "bcube", "hd"], "all-gather": ["default"], "broadcast": ["default"], "all-to-all": ["default"]}
    if not a.gloo_loop or not os.path.exists(a.gloo_loop):
        missing(a, "Gloo", "--gloo-loop names no program (make bench-peers builds it with Debian's libgloo-dev)")
        return {}
    if a.collective not in algorithms:
        print(f"peers: Gloo has no {a.collective}", file=sys.stderr)
    return {f"Gloo {n}": Gloo(a.gloo_loop, a.collective, n, a.ranks) for n in algorithms.get(a.collective, [])}


class Limited:
    """One of our algorithms that supports only some sizes."""

    def __init__(self, words, sizes):
        self.words, self.sizes = words, sizes


def own_algorithms(a):
    """Returns `auto` and each algorithm that can run here, with the sizes that it supports. An algorithm
    that supports PROBED is taken to support all larger sizes."""
    own = [a.ddpbench, a.collective, "--backend", "shm", "--ranks", str(a.ranks), "--memory", "registered"]
    probed = [s for s in SIZES if s <= PROBED]
    with tempfile.NamedTemporaryFile(suffix=".json") as f:
        words = ["--algorithm", "all", "--size", ",".join(map(str, probed)), "-n", "1", "-w", "0", "--placement", placement_of(a.collective), "-q", "--json", f.name]
        done = subprocess.run(own + words, stdout=subprocess.DEVNULL)
        if done.returncode == 64:
            return {}  # ddpbench has printed the reason, for example that a barrier has no size
        done.check_returncode()
        carried = {}
        for p in json.load(open(f.name))["points"]:
            carried.setdefault(p["algorithm"], set()).add(p["requested_bytes"])
    out = {"ddpbench auto": own}
    for name, sizes in sorted(carried.items()):
        sizes |= {s for s in SIZES if s > PROBED} if PROBED in sizes else set()
        out[f"ddpbench {name}"] = Limited(own + ["--algorithm", name], sizes)
    return out


def variants(a):
    ddpbench, ranks = a.ddpbench, a.ranks
    own = [ddpbench, a.collective, "--backend", "shm", "--ranks", str(ranks)]
    mpi = [a.collective, "--backend", "mpi", "--algorithm", "native", "--memory", "private"]
    out = {
        "ddpbench registered": own + ["--memory", "registered"],
        "ddpbench private": own + ["--memory", "private"],
    }
    if shutil.which("mpiexec.openmpi"):
        run = ["mpiexec.openmpi", "-n", str(ranks), "--oversubscribe"]
        tuned = ["--mca", "coll_tuned_use_dynamic_rules", "1"]
        ompi = {"default": []}
        names = {1: "linear", 2: "nonoverlapping", 3: "recursive doubling", 4: "ring", 5: "segmented ring", 6: "rabenseifner"}
        if a.collective == "allreduce":
            for number, name in names.items():
                ompi[name] = tuned + ["--mca", "coll_tuned_allreduce_algorithm", str(number)]
            ompi["segmented ring"] += ["--mca", "coll_tuned_allreduce_algorithm_segmentsize", str(MIB)]
        ompi["UCX"] = ["--mca", "pml", "ucx", "--mca", "osc", "ucx", "--mca", "pml_ucx_tls", "any", "--mca", "pml_ucx_devices", "any"]
        for name, flags in ompi.items():
            out["Open MPI " + name] = run + flags + [ddpbench] + mpi
        out["Open MPI malloc thresholds"] = ["env", "MALLOC_MMAP_THRESHOLD_=2000000000", "MALLOC_TRIM_THRESHOLD_=2000000000"] + run + [ddpbench] + mpi
    else:
        missing(a, "Open MPI", "no mpiexec.openmpi")
    if shutil.which("mpiexec.mpich"):
        out["MPICH default"] = ["mpiexec.mpich", "-n", str(ranks), ddpbench] + mpi
    else:
        missing(a, "MPICH", "no mpiexec.mpich")
    out.update(gloo_variants(a))
    return out


def measure_gloo(gloo, sizes, iters):
    with tempfile.TemporaryDirectory() as folder:  # for the files of its rendezvous, removed on an interrupt, too
        words = gloo.words + [str(iters), str(WARMUP)] + [str(s) for s in sizes]
        done = subprocess.run(words, env=dict(os.environ, TMPDIR=folder), stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=600)
    if done.returncode != 0:
        return None, done.stderr.decode(errors="replace").strip()[-300:]
    return gloo_launch(gloo, done.stdout.decode()), ""


def gloo_launch(gloo, printed):
    """The launch of Gloo that printed these lines. launch_alone() sets its ping-pongs."""
    measured = {}
    for line in printed.splitlines():
        size, *times = line.split()
        means, samples = [float(t) for t in times[:gloo.ranks]], [float(t) for t in times[gloo.ranks:]]
        ci95 = list(interval(samples)[1])
        measured[int(size)] = (means, samples, None if math.isnan(ci95[0]) else ci95)
    shape = {"collective": gloo.collective, "algorithm": gloo.algorithm, "ranks": gloo.ranks, "placement": placement_of(gloo.collective), "warmup": WARMUP}
    points = {size: (statistics.median(samples), OF_NONE, None) for size, (_, samples, _) in measured.items()}
    return Launch(points, gloo_document(shape, measured))


def measure(command, collective, sizes, iters):
    """Runs one launch. Returns (Launch, "") or (None, why it failed)."""
    if isinstance(command, Gloo):
        return measure_gloo(command, sizes, iters)
    if isinstance(command, Limited):
        sizes = [s for s in sizes if s in command.sizes]
        return measure(command.words, collective, sizes, iters) if sizes else (Launch({}), "")
    with tempfile.NamedTemporaryFile(suffix=".json") as f:
        args = ["--placement", placement_of(collective), "--size", ",".join(map(str, sizes)), "-n", str(iters), "-w", str(WARMUP), "-q", "--json", f.name]
        env = dict(os.environ, OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
        done = subprocess.run(command + args, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, timeout=600)
        if done.returncode != 0:
            return None, done.stderr.decode(errors="replace").strip()[-300:]
        document = json.load(open(f.name))
    out = Launch({}, document)
    for p in document["points"]:
        if p["count"] == 0:
            continue  # the size is less than one element per rank, so nothing was sent
        seen = of_one_class(p["pingpong_ns"]["before"], p["pingpong_ns"]["after"])
        out[p["requested_bytes"]] = (p["time_us"]["median"], seen, (p["bound"] or {}).get("fraction"))
    return out, ""


def launch(command, collective, sizes, iters):
    """As measure(), but a launch that hangs or writes no valid document has failed."""
    try:
        return measure(command, collective, sizes, iters)
    except (subprocess.SubprocessError, ValueError, KeyError, TypeError) as e:
        return None, f"{type(e).__name__}: {e}"


def interval(values):
    """The median and its exact 95 % interval by order statistics, which is NaN below 6 values."""
    values = sorted(values)
    n = len(values)
    median = statistics.median(values)
    tail, lo = 0.0, 0
    for k in range(n // 2):
        tail += math.comb(n, k) / 2**n
        if tail > 0.025:
            break
        lo = k + 1
    return median, (values[lo - 1], values[n - lo]) if lo else (math.nan, math.nan)


def same_class(a, b):
    return not (a > CLASS_RATIO * b or b > CLASS_RATIO * a)


def in_class(ping_pong, name):
    low, high = CLASSES[name]
    return low <= ping_pong < high


def class_of(ping_pong):
    """The name of the class of a ping-pong time, or None for OF_NONE."""
    return next((name for name in CLASSES if in_class(ping_pong, name)), None)


def of_one_class(before, after):
    """The median of a point's two ping-pongs, or OF_NONE if they are of different classes or unknown."""
    known = [v for v in (before, after) if v]
    return statistics.median(known) if len({class_of(v) for v in known}) == 1 else OF_NONE


def cores_ping_pong(a):
    """Runs two ddpbench ranks alone and returns their ping-pong in ns, or OF_NONE if it is not known. If
    the run fails, no launch waits for the judged class any more."""
    got, why = launch([a.ddpbench, "allreduce", "--backend", "shm", "--ranks", "2"], "allreduce", [8], 1)
    if got is None:
        print(f"peers: no ping-pong: {why}", file=sys.stderr)
        a.waits = 0
    return got[8][1] if got else OF_NONE


def cores_apart(a):
    """The class of two ddpbench ranks that run alone, or None if it is not known."""
    return class_of(cores_ping_pong(a))


def wait_for_judged(a, seen):
    """Waits until two ddpbench ranks see the judged class or no waits are left. Returns the class seen last."""
    if seen != JUDGED and a.waits == WAITS:  # the first wait of this collective and number of ranks
        print(f"peers: the cores are {seen or 'of no class'}: waiting until they are {JUDGED}", file=sys.stderr)
    while seen != JUDGED and a.waits > 0:
        a.waits -= 1
        time.sleep(WAIT_S)
        seen = cores_apart(a)
    return seen


def seen_by(got, ping_pong):
    """The points with their ping-pong replaced."""
    return Launch({size: (point[0], ping_pong, *point[2:]) for size, point in got.items()}, got.document)


def measure_oversubscribed(a, variant, sizes, iters):
    """As measure(), but the ping-pong is that of two ddpbench ranks before and after the launch. The
    class seen after a launch is kept in a.apart and serves as the class before the next launch."""
    before = wait_for_judged(a, a.apart or cores_apart(a))
    got, why = launch(variant, a.collective, sizes, iters)
    a.apart = cores_apart(a)
    if got is None:
        return None, why
    seen = CLASSES[before][0] if before and before == a.apart else OF_NONE
    return seen_by(got, seen), why


def launch_alone(a, variant, sizes, iters):
    """As launch(), but Gloo's points get the ping-pong of two ddpbench ranks before and after the launch."""
    if not isinstance(variant, Gloo):
        return launch(variant, a.collective, sizes, iters)
    before = cores_ping_pong(a)
    got, why = launch(variant, a.collective, sizes, iters)
    seen = of_one_class(before, cores_ping_pong(a)) if got else OF_NONE
    return got and seen_by(got, seen), why


def measure_until_judged(a, variant, sizes, iters):
    """Repeats a launch until every size has a point of the judged class, at most TRIES times. Returns
    {size: list of points, one per launch}, the documents of the launches, and "". If a launch fails,
    returns None, the documents of those before it, and why it failed."""
    points, documents = {}, []
    for _ in range(TRIES):
        if oversubscribed(a.ranks):
            if points and a.waits == 0:
                break
            got, why = measure_oversubscribed(a, variant, sizes, iters)
        else:
            if points and a.waits > 0:
                wait_for_judged(a, cores_apart(a))
            got, why = launch_alone(a, variant, sizes, iters)
        if got is None:
            return None, documents, why
        documents.append(got.document)
        for size, point in got.items():
            points.setdefault(size, []).append(point)
        if all(any(in_class(point[1], JUDGED) for point in p) for p in points.values()):
            break
    return points, documents, ""


def has_goals(a):
    return a.collective == "allreduce" and a.ranks == 2


def in_turn(rng, names, times):
    """Yields each name `times` times: all names once in random order, then all again in a new order."""
    for _ in range(times):
        yield from rng.sample(names, len(names))


def repeats(a, sizes):
    once = a.auto or oversubscribed(a.ranks) or not has_goals(a) or max(sizes) > 64 * KIB
    return 1 if once else REPEATS


def collect(a, plan):
    """Returns the rounds, each {size: {variant: [(us, ping-pong, fraction of the bound)]}}, and
    {variant: reason} of those that failed. An interrupt ends it with the complete rounds so far."""
    rng = random.Random(a.seed)
    rounds, failed = [], {}
    try:
        for r in range(a.rounds):
            rounds.append(one_round(a, plan, rng, failed))
            print(f"peers: {a.collective}, {a.ranks} ranks: round {r + 1} of {a.rounds}", file=sys.stderr)
    except KeyboardInterrupt:
        a.interrupted = True
        print(f"peers: interrupted: {a.collective}, {a.ranks} ranks: {len(rounds)} whole rounds of {a.rounds}", file=sys.stderr)
        a.rounds = len(rounds)
    return rounds, failed


def one_round(a, plan, rng, failed):
    seen = {}
    for sizes, iters in groups(a.max, a.ranks):
        sizes = [s for s in sizes if s >= a.min]
        for name in in_turn(rng, list(plan), repeats(a, sizes) if sizes else 0):
            if name in failed:
                continue
            got, documents, why = measure_until_judged(a, plan[name], sizes, iters)
            a.collected.add(name, documents)
            if got is None:
                failed[name] = why
                a.collected.fail(name, why)
                print(f"peers: left out: {name}: {why}", file=sys.stderr)
                continue
            for size, points in got.items():
                seen.setdefault(size, {}).setdefault(name, []).extend(points)
    return seen


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--ddpbench", required=True)
    p.add_argument("--gloo-loop", default="")
    p.add_argument("--collective", default="allreduce", help="comma separated")
    p.add_argument("--ranks", type=several_ranks, default=[2], help="comma separated")
    p.add_argument("--rounds", type=at_least(1), default=9)
    p.add_argument("--min", type=at_least(1), default=4)
    p.add_argument("--max", type=at_least(1), default=256 * MIB)
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--only", default="", help="comma separated parts of variants' names")
    p.add_argument("--auto", action="store_true", help="auto against each of our own algorithms")
    p.add_argument("--json", default="results/peers.json")
    p.add_argument("--documents", help="default: the file of --json without .json; without that ending none are written")
    a = p.parse_args()
    if a.documents is None and a.json.endswith(".json") and not a.auto:
        a.documents = a.json[:-len(".json")]
    a.collected = PeerDocuments(None if a.auto else a.documents, sys.argv)
    a.ddpbench = os.path.abspath(a.ddpbench)
    if not any(a.min <= s <= a.max for s in SIZES):
        p.error(f"of the sizes, 4 bytes and up by powers of 4, none is from {a.min} to {a.max}")
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        sys.exit(run(a))
    except OSError as e:
        sys.exit(f"peers: {e}")  # the text names the file
    except KeyboardInterrupt:
        sys.exit(130)


def at_least(least):
    def number(text):
        if int(text) < least:
            raise argparse.ArgumentTypeError(f"at least {least}")
        return int(text)

    return number


def several_ranks(text):
    return [at_least(2)(n) for n in text.split(",")]


def run(a):
    os.makedirs(os.path.dirname(a.json) or ".", exist_ok=True)
    here = where(a.ddpbench)
    new = not os.path.exists(a.json)
    with open(a.json, "a"):
        pass  # a file that cannot be written is reported now, not after hours
    docs, short, interrupted = [], False, False
    for collective, ranks in itertools.product(a.collective.split(","), a.ranks):
        job = argparse.Namespace(**dict(vars(a), collective=collective, ranks=ranks, waits=WAITS, apart=None, interrupted=False, missing=[]))
        try:
            doc = one(job)
        except KeyboardInterrupt:  # before the first round
            doc, job.interrupted = None, True
        a.collected.write(job.interrupted)
        if doc:
            docs.append(doc)
            with open(a.json, "w") as f:
                json.dump({"where": here, "results": docs}, f, indent=1)
                f.write("\n")
        short = short or not doc or bool(doc["short"])
        interrupted = job.interrupted
        if interrupted:
            break
    if not docs:
        print("peers: nothing was compared", file=sys.stderr)
        if new:
            os.remove(a.json)
    if interrupted:
        return 130
    return 1 if short else 0


def one(a):
    plan = own_algorithms(a) if a.auto else variants(a)
    ours = ["ddpbench auto"] if a.auto else ["ddpbench registered", "ddpbench private"]
    if a.only:
        plan = {n: c for n, c in plan.items() if n in ours or any(o in n for o in a.only.split(","))}
    if all(n in ours for n in plan):
        print(f"peers: {a.collective}, {a.ranks} ranks: nothing to compare with", file=sys.stderr)
        return None
    rounds, failed = collect(a, plan)
    if not rounds:
        return None
    doc = report_auto(a, rounds, plan, failed) if a.auto else report(a, rounds, plan, failed)
    return json.loads(json.dumps(doc), parse_constant=lambda _: None)  # NaN becomes null


def report_auto(a, rounds, plan, failed):
    """Prints and returns the ratio of auto's time to that of our fastest algorithm in the same round."""
    doc = {"collective": a.collective, "ranks": a.ranks, "rounds": a.rounds, "failed": failed, "auto": [], "short": [f"{name} failed" for name in failed]}
    print(f"\n{a.collective}, {a.ranks} ranks, registered: auto's time over the fastest of our own algorithms (goal: 1.1)\n")
    print("| size | auto (us) | fastest | auto / fastest |\n|---|---|---|---|")
    every, rounds = rounds, of_class(rounds, JUDGED)
    for size in sizes_seen(every):
        others = [n for n in plan if n != "ddpbench auto"]
        inverse, names = ratios(rounds, size, "ddpbench auto", others)
        few = too_few(a, every, rounds, size, "ddpbench auto", others, inverse)
        doc["short"] += [f"{size} bytes: {text}" for text in few]
        if few:
            print(f"| {size} | | | {'; '.join(few)} |")
        if not inverse:
            continue
        m, ci = interval([1 / r for r in inverse])
        # The whole interval must be above the goal: the minimum of several noisy times is low by chance.
        mark = " **short**" if ci[0] > AUTO_GOAL else ""
        us = median_of(rounds, size, "ddpbench auto")
        best = max(set(names), key=names.count)
        doc["auto"].append({"bytes": size, "auto_us": us, "fastest": best, "ratio": m, "ci95": ci})
        if mark:
            doc["short"].append(f"{size} bytes: {m:.2f}, goal {AUTO_GOAL}")
        print(f"| {size} | {us:.2f} | {best[len('ddpbench '):]} | {m:.2f} ({ci[0]:.2f} to {ci[1]:.2f}){mark} |")
    if not doc["auto"]:
        doc["short"].append("nothing was compared")
    return told(doc)


def told(doc):
    for text in doc["short"]:
        print(f"falls short: {text}")
    return doc


def of_class(rounds, name):
    """Returns each round with only the points of one ping-pong class, as medians over the launches."""
    out = []
    for seen in rounds:
        rows = {size: {v: [p for p in points if in_class(p[1], name)] for v, points in row.items()} for size, row in seen.items()}
        out.append({size: {v: tuple(map(middle, zip(*p))) for v, p in row.items() if p} for size, row in rows.items()})
    return out


def middle(values):
    """The median of the values that are not None."""
    known = [v for v in values if v is not None]
    return statistics.median(known) if known else None


def median_of(rounds, size, variant, column=0):
    """The median over rounds of one column of a variant's points. Column 0 holds the times."""
    return middle(row[variant][column] for row in rows_of(rounds, size, variant))


def sizes_seen(rounds):
    """The sizes that ddpbench measured. Only Gloo runs with fewer elements than ranks."""
    return sorted({size for seen in rounds for size, row in seen.items() if any(v.startswith("ddpbench") for v in row)})


def rows_of(rounds, size, ours):
    """The points of this size of each round in which `ours` has a point."""
    return [seen[size] for seen in rounds if ours in seen.get(size, {})]


def compared(row, ours, peer):
    return peer in row and same_class(row[peer][1], row[ours][1])


def usual_best(rounds, size, ours, peers):
    """The peer with the smallest median time among those compared in at least half of the rounds."""
    rows = rows_of(rounds, size, ours)
    times = {p: [row[p][0] for row in rows if compared(row, ours, p)] for p in peers}
    medians = {p: statistics.median(t) for p, t in times.items() if t and 2 * len(t) >= len(rows)}
    return min(medians, key=medians.get, default=None)


def ratios(rounds, size, ours, peers):
    """Returns the fastest peer's time divided by ours for each round, and the names of these peers. A
    round without the usual best peer is left out, because its other peers may all be slow."""
    out, best_names = [], []
    usual = usual_best(rounds, size, ours, peers)
    for row in rows_of(rounds, size, ours):
        if compared(row, ours, usual):
            t, name = min((row[p][0], p) for p in peers if compared(row, ours, p))
            out.append(t / row[ours][0])
            best_names.append(name)
    return out, best_names


def against(rounds, size, ours, peers):
    """Returns (median ratio, interval, names of the best peers, ratio of each round), or None if no round
    could be compared."""
    values, names = ratios(rounds, size, ours, peers)
    return (*interval(values), names, values) if values else None


def row_doc(row):
    """The row as JSON. It holds each round's ratio and best peer, so that several runs can be merged."""
    return {"ratio": row[0], "ci95": row[1], "ratios": row[3], "best": row[2]} if row else None


def slower(row):
    """True if the whole 95 % interval of the ratio lies below 1."""
    m, ci = row[0], row[1]
    return m < 1 and ci[1] < 1


def unjudged(a, rounds_judged):
    """Returns a list with a message if fewer than half of the rounds, or fewer than an interval needs,
    were judged."""
    if 2 * rounds_judged < a.rounds or a.rounds >= JUDGED_FROM > rounds_judged:
        return [f"judged in {rounds_judged} of {a.rounds} rounds only"]
    return []


def unseen(every, judged, size, ours, peers):
    """Returns a message for each peer that was measured but could be compared in less than half of the
    rounds."""
    rows = rows_of(judged, size, ours)
    counts = {p: sum(compared(row, ours, p) for row in rows) for p in peers if any(s.get(size, {}).get(p) for s in every)}
    return [f"{p} judged in {n} of {len(rows)} rounds only" for p, n in sorted(counts.items()) if 2 * n < len(rows)]


def too_few(a, every, judged, size, ours, peers, values):
    """Returns a message for each of our variants and peers that has too few judged rounds. values: the
    ratio of each judged round."""
    return unjudged(a, len(values)) + unseen(every, judged, size, ours, peers)


def goals_missed(a, size, reg, pri, dft, bound):
    """Returns a message for each goal that a row misses."""
    out = []
    goal = GOALS.get(size) if has_goals(a) else None
    if goal and not reg[0] >= goal:
        out.append(f"registered {reg[0]:.2f}, goal {goal}")
    if slower(reg):
        out.append(f"registered is slower: {reg[0]:.2f}")
    if not has_goals(a):
        return out
    if pri and pri[0] < PRIVATE_GOAL:
        out.append(f"private {pri[0]:.2f}, goal {PRIVATE_GOAL}")
    out += [f"private is slower than a default: {d[0]:.2f}" for d in dft["private"] if slower(d)]
    if size >= BOUND_FROM and bound is None:
        out.append("the bound is not known")
    elif size >= BOUND_FROM and bound < BOUND_GOAL:
        out.append(f"registered {bound:.2f} of the bound, goal {BOUND_GOAL}")
    if size in (64 * MIB, 256 * MIB):
        out += [f"registered {d[0]:.2f} of a default, goal 5" for d in dft["registered"] if d[0] < 5]
    return out


def cell(row):
    return f"{row[0]:.2f} ({row[1][0]:.2f} to {row[1][1]:.2f})" if row else "-"


def other_classes(rounds, peers):
    """Prints and returns the rows of the classes that have no goals, if enough rounds saw them."""
    out = []
    for name in [n for n in CLASSES if n != JUDGED]:
        seen = of_class(rounds, name)
        for size in sizes_seen(seen):
            values, names = ratios(seen, size, "ddpbench registered", peers)
            if len(values) < OTHERS_FROM:
                continue
            reg = (*interval(values), names, values)
            pri = against(seen, size, "ddpbench private", peers)
            us = median_of(seen, size, "ddpbench registered")
            best = max(set(names), key=names.count)
            print(f"| {size} ({name}, {len(values)} rounds) | {us:.2f} | {best} | {cell(reg)} | - | {cell(pri)} | - |  |")
            out.append({"class": name, "bytes": size, "rounds": len(values), "ours_us": us, "best_peer": best,
                        "registered": row_doc(reg), "private": row_doc(pri)})
    return out


def report(a, rounds, plan, failed):
    peers = [n for n in plan if not n.startswith("ddpbench") and n not in failed]
    defaults = [n for n in peers if n.endswith("default") and not n.startswith("Gloo")]
    doc = {"collective": a.collective, "ranks": a.ranks, "rounds": a.rounds, "repeats": repeats(a, [a.min]), "failed": failed, "sizes": [], "short": []}
    where = "in place" if placement_of(a.collective) == "in" else "out of place"
    print(f"\n{a.collective}, f32, {where}, {a.ranks} ranks, {a.rounds} interleaved rounds; ratio: peer's time over ours\n")
    print("| size | ours (us) | best peer | registered, of best | goal | private, of best | registered, of defaults | short of |")
    print("|---|---|---|---|---|---|---|---|")
    logs = {"registered": [], "private": []}
    every, rounds = rounds, of_class(rounds, JUDGED)
    for size in sizes_seen(every):
        reg = against(rounds, size, "ddpbench registered", peers)
        pri = against(rounds, size, "ddpbench private", peers)
        few = too_few(a, every, rounds, size, "ddpbench registered", peers, reg[3] if reg else [])
        if not few and has_goals(a):
            few = [f"private memory: {text}" for text in too_few(a, every, rounds, size, "ddpbench private", peers, pri[3] if pri else [])]
        if not reg:
            doc["short"] += [f"{size} bytes: {text}" for text in few]
            continue
        dft = {m: [r for r in (against(rounds, size, f"ddpbench {m}", [d]) for d in defaults) if r] for m in logs}
        for memory, row in (("registered", reg), ("private", pri)):
            if row:
                logs[memory].append(math.log(row[0]))
        bound = median_of(rounds, size, "ddpbench registered", column=2)
        missed = goals_missed(a, size, reg, pri, dft, bound) + few
        doc["short"] += [f"{size} bytes: {text}" for text in missed]
        ours_us = median_of(rounds, size, "ddpbench registered")
        best = max(set(reg[2]), key=reg[2].count)
        least = min((d[0] for d in dft["registered"]), default=math.nan)
        goal = GOALS.get(size, 1) if has_goals(a) else 1
        print(f"| {size} | {ours_us:.2f} | {best} | {cell(reg)} | {goal} | {cell(pri)} | {least:.2f} | {'; '.join(missed) and '**' + '; '.join(missed) + '**'} |")
        doc["sizes"].append({
            "bytes": size, "rounds_judged": len(reg[2]), "launches": sum(len(p) for s in every for p in s.get(size, {}).values()), "ours_us": ours_us, "best_peer": best, "goal": goal, "of_bound": bound, "least_of_defaults": least, "missed": missed,
            "registered": row_doc(reg), "private": row_doc(pri),
            "us": {v: median_of(rounds, size, v) for v in plan if rows_of(rounds, size, v)}})
    doc["other_classes"] = other_classes(every, peers)
    geo = {m: math.exp(sum(v) / len(v)) for m, v in logs.items() if v}
    doc["geometric_mean"] = geo
    print("\ngeometric mean: " + ", ".join(f"{m} {g:.2f}" for m, g in geo.items()))
    if has_goals(a) and a.min <= 4 and a.max >= 256 * MIB:
        doc["short"] += [f"geometric mean, {m}: {geo[m]:.2f}, goal {g}" for m, g in MEAN_GOALS.items() if m in geo and geo[m] < g]
    doc["short"] += [f"{name} failed" for name in failed] + [f"{library} is not here" for library in a.missing]
    if not peers:
        doc["short"].append("every peer failed: nothing was compared")
    elif not doc["sizes"]:
        doc["short"].append("nothing was compared")
    return told(doc)


if __name__ == "__main__":
    main()
