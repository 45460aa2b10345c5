"""The ddpbench/1 documents of peers.py: one per peer and per variant of ours, with a point per launch.

A launch of ddpbench, also under mpiexec, writes a document itself; the documents of all launches of a
variant are merged. Gloo is measured by gloo_loop.cc, and its points are made here from the times of all
iterations. They have no verification, ping-pong and quality. `tool` and `hosts` of a document of Gloo are
those of ddpbench's documents of the same run.
"""
import copy
import json
import math
import os
import re
import statistics
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir, os.pardir, "ci"))
from canonical_json import canonical_digest  # noqa: E402

ELEMENT_BYTES = 4  # f32
SERIES_MIN, DRIFT_Z, AUTOCORRELATION_Z = 20, 2.3263, 2.0537  # those of lib/stats/series.c
# The factor from algbw to busbw of the collectives that gloo_loop.cc runs.
FACTORS = {"allreduce": lambda n: 2 * (n - 1) / n, "broadcast": lambda n: 1.0,
           "all-gather": lambda n: (n - 1) / n, "all-to-all": lambda n: (n - 1) / n}


class Launch(dict):
    """The points of a launch, {size: (median us, ping-pong ns, fraction of the bound)}, and its document."""

    def __init__(self, points, document=None):
        super().__init__(points)
        self.document = document


def percentile(samples, percent):
    """The percentile of sorted samples by nearest rank, as in lib/stats/summary.h."""
    return samples[-(-percent * len(samples) // 100) - 1]


def time_of(samples, ci95):
    """time_us of a point."""
    samples = sorted(samples)
    return {"median": statistics.median(samples), "ci95": ci95, "mean": statistics.fmean(samples),
            "stddev": statistics.stdev(samples) if len(samples) > 1 else None, "min": samples[0], "p25": percentile(samples, 25),
            "p75": percentile(samples, 75), "p95": percentile(samples, 95) if len(samples) >= 20 else None,
            "p99": percentile(samples, 99) if len(samples) >= 100 else None, "max": samples[-1]}


def middle_ranks(samples):
    """The rank of each sample in sorted order, less the mean rank. Equal samples have the mean of their ranks."""
    order = sorted(range(len(samples)), key=lambda i: samples[i])
    ranks, first = [0.0] * len(samples), 0
    while first < len(order):
        after = first
        while after < len(order) and samples[order[after]] == samples[order[first]]:
            after += 1
        for i in order[first:after]:
            ranks[i] = (first + 1 + after) / 2 - (len(samples) + 1) / 2
        first = after
    return ranks


def series_of(samples):
    """`series` of a point, computed as lib/stats/series.h describes. None below SERIES_MIN samples."""
    n = len(samples)
    if n < SERIES_MIN:
        return None
    ranks, times = middle_ranks(samples), [i - (n - 1) / 2 for i in range(n)]
    squares, time_squares = sum(r * r for r in ranks), n * (n * n - 1) / 12
    products = sum(r * t for r, t in zip(ranks, times))
    trend = correlation = 0.0
    drifting = correlated = False
    if squares > 0:
        left = [r - products / time_squares * t for r, t in zip(ranks, times)]
        left_squares = sum(x * x for x in left)
        correlation = sum(x * y for x, y in zip(left, left[1:])) / left_squares if left_squares > 0 else 0.0
        trend = products / math.sqrt(squares * time_squares)
        correlated = correlation * math.sqrt(n) > AUTOCORRELATION_Z
        enlarged = (1 + correlation) / max(1 - correlation, 1 / n) if correlated else 1
        drifting = abs(trend) * math.sqrt((n - 1) / enlarged) > DRIFT_Z
    begin, end = statistics.median(samples[:n // 3]), statistics.median(samples[n - n // 3:])
    return {"drifting": drifting, "autocorrelated": correlated, "trend": trend, "autocorrelation": correlation,
            "shift": end / begin - 1 if begin > 0 else 0.0}


def gloo_point(shape, size, rank_means, samples, ci95):
    """A point of Gloo. shape: collective, algorithm, ranks, placement and warm-up iterations."""
    collective, ranks = shape["collective"], shape["ranks"]
    time_us = time_of(samples, ci95)
    factor = FACTORS[collective](ranks)
    algbw = size / time_us["median"] / 1e3 if time_us["median"] else None
    return {
        "id": f"{collective}/gloo/{shape['algorithm']}/f32/sum/r0/{shape['placement']}/private/n{ranks}/{size}/none/0",
        "collective": collective, "backend": "gloo", "algorithm": shape["algorithm"], "algorithm_used": shape["algorithm"],
        "dtype": "f32", "op": "sum" if collective == "allreduce" else None, "root": 0 if collective == "broadcast" else None, "placement": shape["placement"], "memory": "private",
        "graph": False, "ranks": ranks, "groups": 1, "group_list": None, "requested_bytes": size, "size_bytes": size, "count": size // ELEMENT_BYTES,
        "compress": {"method": "none", "density": None, "threshold": None, "feedback": None, "achieved_density": None},
        "partial": None, "launch": None, "order": None, "iterations": len(samples), "warmup": shape["warmup"], "invalid": 0,
        "start": "barrier", "stop": "count", "block": None, "injected_percent": None, "time_us": time_us, "series": series_of(samples),
        "rank_mean_us": {"min": min(rank_means), "avg": statistics.fmean(rank_means), "max": max(rank_means)},
        "algbw_GBps": algbw, "busbw_GBps": algbw and algbw * factor,
        "busbw_ci95_GBps": [size / us / 1e3 * factor for us in reversed(ci95)] if ci95 and ci95[0] else None,
        "effective_GBps": None, "wire_bytes_per_rank": None, "wire_bytes_source": None,
        "phase_us": {"encode": None, "exchange": None, "decode": None}, "dense_us": {"f32": None, "f16": None},
        "dense_algorithm": {"f32": None, "f16": None}, "break_even": None, "overflow_count": None, "overlap": None,
        "device_us": None, "skew_us": {"start": None, "exit": None}, "pingpong_ns": {"before": None, "after": None}, "page_bytes": None,
        "conditions": {"steal_ms": None, "throttled_ms": None, "involuntary_switches": None}, "bound": None,
        "check": {"mode": "off", "operations": None, "elements": None, "wrong": None}, "samples_us": None}


def gloo_document(shape, measured):
    """The points of a launch of Gloo. measured: {size: (means of the ranks, samples, interval)}. Sizes that
    gloo_loop.cc rounds to another number of elements are left out."""
    points, left_out = [], []
    for size, (rank_means, samples, ci95) in sorted(measured.items()):
        count, ranks = size // ELEMENT_BYTES, shape["ranks"]
        if count < ranks or (shape["collective"] not in ("allreduce", "broadcast") and count % ranks):
            left_out.append({"what": f"{size} bytes", "ranks": ranks, "points": 1, "reason": "Gloo was measured with another number of elements"})
        else:
            points.append(gloo_point(shape, size, rank_means, samples, ci95))
    for order, point in enumerate(points):
        point["order"] = order
    return {"points": points, "left_out": left_out, "ranks": shape["ranks"]}


def file_name(variant):
    return re.sub(r"[^a-z0-9]+", "-", variant.lower()).strip("-") + ".json"


class PeerDocuments:
    """Collects the launches of all variants. folder: where write() puts the documents, None: nowhere."""

    def __init__(self, folder, argv):
        self.folder, self.argv = folder, argv
        self.launches = {}  # {variant: documents of its launches}
        self.failed = {}  # {variant: reason}

    def add(self, variant, documents):
        self.launches.setdefault(variant, []).extend(d for d in documents if d)

    def fail(self, variant, reason):
        self.failed.setdefault(variant, reason or "it failed without a message")

    def head(self, documents):
        """Everything of the document of the launch with most ranks except for its results."""
        whole = [d for d in documents if "tool" in d]
        return copy.deepcopy(max(whole, key=lambda d: d["world"]["ranks"], default=None))

    def merged(self, variant, interrupted):
        """The document of a variant, or None if none of its launches, or for Gloo of any variant, has one."""
        documents = self.launches[variant]
        own = self.head(documents)
        doc = own or self.head([d for launches in self.launches.values() for d in launches])
        if not doc:
            return None
        if own:
            whole = [d for d in documents if "tool" in d]
            doc["started"], doc["finished"] = whole[0]["started"], whole[-1]["finished"]
            doc["control"] = [c for d in whole for c in d["control"]]
        else:
            ranks = max(d["ranks"] for d in documents)
            doc["seed"], doc["control"], doc["environment"] = None, [], {}
            doc["timer"].update(cost_ns=None, resolution_ns=None)
            doc["world"].update(ranks=ranks, backend="gloo", launcher="gloo_loop", launch="processes", subset=None)
            doc["world"]["comm_us"] = dict.fromkeys(doc["world"]["comm_us"])
            doc["world"]["hosts"][0]["ranks"] = ranks
        doc["command"] = {"name": "peers", "argv": self.argv}
        doc["label"] = variant
        doc["points"] = [dict(p, launch=n) for n, d in enumerate(documents, start=1) for p in d["points"]]
        doc["left_out"] = [json.loads(text) for text in dict.fromkeys(json.dumps(x) for d in documents for x in d["left_out"])]
        doc["reason"] = self.failed.get(variant) or ("interrupted" if interrupted else None)
        doc["status"] = "partial" if doc["reason"] else "complete"
        doc.pop("digest")
        doc["digest"] = canonical_digest(doc)
        return doc

    def write(self, interrupted):
        """Writes a document per variant. A file is replaced as a whole."""
        if not self.folder or not any(self.launches.values()):
            return
        os.makedirs(self.folder, exist_ok=True)
        for variant, launches in self.launches.items():
            doc = self.merged(variant, interrupted) if launches else None
            if not doc:
                print(f"peers: no document of {variant}: no launch has one", file=sys.stderr)
                continue
            path = os.path.join(self.folder, file_name(variant))
            with open(path + ".new", "w", encoding="utf-8") as f:
                json.dump(doc, f)
                f.write("\n")
            os.replace(path + ".new", path)
