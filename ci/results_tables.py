#!/usr/bin/env python3
"""Writes the tables between the markers of README.md and results/README.md: `make results-tables`.

A marker names the kind of a table, the file below results/ that has its figures, and options:
    <!-- results-table KIND FILE [sizes=SIZE,...] -->
    <!-- end of results-table -->
The lines between the two markers are replaced. Kinds:
    collectives  times of all collectives of a ddpbench/1 document, one column per size
    bandwidth    one row per size and placement of a ddpbench/1 document
    strategies   the strategies that a ddpbench/1 document compares, one row each
    peers        ddpbench next to MPI and Gloo, one row per size (a file of tests/bench/peers.py)
    peer-ratios  the same, one row per collective and number of ranks
    train-peers  training next to PyTorch (a file of tests/bench/train_peers.py)
sizes: the sizes to show; a size that the file does not have is an error. Default: all sizes.

usage: ci/results_tables.py [--check] [--root DIR]
--check changes nothing and prints the difference to the pages. Exits with 1 if a page differs
(--check), if a marker is wrong or names a missing file, or if a document of EXPECTED exists but
results/README.md has no table of it. A document of EXPECTED that does not exist is named on stderr.
"""
import argparse
import difflib
import json
import os
import re
import statistics
import sys

PAGES = ("README.md", "results/README.md")
EXPECTED = {
    "results/quick.json": "build/ddpbench sweep configs/quick.json --json results/quick.json",
    "results/bandwidth.json": "build/ddpbench allreduce --ranks 2 -b 8 -e 64M -f 2 --placement in --json results/bandwidth.json",
    "results/convergence.json": "build/ddpbench sweep configs/convergence.json --json results/convergence.json",
}
MARKER = re.compile(r"^<!-- results-table (.*) -->$")
END = "<!-- end of results-table -->"
UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}
DASH = "-"


class Wrong(Exception):
    """A marker or a document that no table can be made of. The text names it."""


def size_text(size):
    for unit, factor in (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if size >= factor and size % factor == 0:
            return f"{size // factor} {unit}"
    return f"{size} B"


def parse_size(text):
    match = re.fullmatch(r"([0-9]+)([KMG]?)", text)
    if not match:
        raise Wrong(f"'{text}' is no size; a size is a number with K, M or G")
    return int(match[1]) * UNITS[match[2]]


def number(value, digits):
    return DASH if value is None else f"{value:.{digits}f}"


def significant(value):
    """A time or rate with about three digits."""
    if value is None:
        return DASH
    return f"{value:.{2 if value < 10 else 1 if value < 100 else 0}f}"


def time_text(us):
    if us < 10:
        return f"{us:.2f} us"
    return f"{us:.0f} us" if us < 10000 else f"{us / 1000:.1f} ms"


def grid(head, rows):
    """The lines of a Markdown table. The first column is text, the others are set as numbers."""
    lines = ["| " + " | ".join(head) + " |", "|:--|" + "--:|" * (len(head) - 1)]
    return lines + ["| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in rows]


def pick_sizes(available, options):
    """The sizes to show, in ascending order."""
    if "sizes" not in options:
        return sorted(available)
    wanted = [parse_size(text) for text in options["sizes"].split(",")]
    for size in wanted:
        if size not in available:
            raise Wrong(f"sizes={options['sizes']}: the file has no point of {size_text(size)}")
    return wanted


# Documents of schema ddpbench/1.


def caption(doc):
    """How and where the document was made. A document that is not complete says so."""
    world, tool = doc["world"], doc["tool"]
    hosts = [f"{h['cpu'] or 'unknown processor'} ({h['usable_cores'] or h['cores']} cores, load {number(h['load'], 1)} at the start)" for h in world["hosts"]]
    text = (f"`{' '.join(doc['command']['argv'])}`: {'; '.join(hosts)}, backend {world['backend']}, "
            f"ddpbench {tool['version']} ({tool['commit']}), {doc['started'][:10]}.")
    if doc["status"] != "complete":
        text += f" **{doc['status']}**: {doc['reason']}."
    return [text, ""]


def doubts(point):
    """The codes of `quality`. A document that is older than these codes has none to show."""
    return point.get("quality", ["unknown"])


def doubt_line(points):
    """The sentence that ddpbench prints below its tables, or nothing if no point is doubtful."""
    doubtful = [p for p in points if doubts(p)]
    if not doubtful:
        return []
    codes = [code for p in doubtful for code in doubts(p)]
    named = ", ".join(f"{code} ({codes.count(code)})" for code in sorted(set(codes)))
    return ["", f"{len(doubtful)} of {len(points)} points are doubtful: {named} (`ddpbench explain quality`)."]


def by_size(points, size):
    """The points of a size. A barrier has no data and stands in the column of 0 B."""
    return [p for p in points if p["requested_bytes"] == size]


def variant(point):
    """The options that make a row of its own, apart from those that most points have."""
    words = [] if point["algorithm"] == "auto" else [point["algorithm"]]
    if point["memory"] != "registered":
        words.append(point["memory"])
    compress = point["compress"]
    if compress["method"] != "none":
        detail = compress["density"] if compress["density"] is not None else compress["threshold"]
        words.append(compress["method"] + (f":{detail:g}" if detail is not None else ""))
    if point["partial"]:
        words.append(f"partial:{point['partial']}")
    return " ".join([f"{point['placement']} place" if point["placement"] == "in" else "out of place"] + words)


def row_key(point):
    return (point["collective"], point["ranks"], point["dtype"] or DASH, variant(point))


def doubt_cell(points):
    """Each code with the sizes that have it, or the code alone if all points of the row have it."""
    codes = {}
    for p in points:
        for code in doubts(p):
            codes.setdefault(code, set()).add(p["requested_bytes"])
    every = {p["requested_bytes"] for p in points}
    texts = [code if sizes == every else f"{code} ({', '.join(size_text(s) for s in sorted(sizes))})" for code, sizes in sorted(codes.items())]
    return "; ".join(texts) or DASH


def collectives(doc, options):
    sizes = pick_sizes({p["requested_bytes"] for p in doc["points"]}, options)
    shown = [p for p in doc["points"] if p["requested_bytes"] in sizes]
    rows = {}
    for p in shown:
        rows.setdefault(row_key(p), []).append(p)
    head = ["collective", "ranks", "type", "buffers"] + [f"{size_text(s)} (us)" for s in sizes] + ["quality"]
    lines = []
    for key, points in rows.items():
        times = [[p["time_us"]["median"] for p in by_size(points, s)] for s in sizes]
        lines.append([*map(str, key)] + [significant(statistics.median(t)) if t else DASH for t in times] + [doubt_cell(points)])
    return caption(doc) + grid(head, lines) + doubt_line(shown)


def interval_percent(point):
    """The larger side of the interval of the median, in percent of the median."""
    low_high, median = point["time_us"]["ci95"], point["time_us"]["median"]
    if not low_high or not median:
        return None
    return max(low_high[1] - median, median - low_high[0]) / median * 100


def bandwidth(doc, options):
    sizes = pick_sizes({p["requested_bytes"] for p in doc["points"]}, options)
    shown = [p for s in sizes for p in by_size(doc["points"], s)]
    head = ["size", "collective", "ranks", "buffers", "algorithm", "time (us)", "95 % interval (%)", "busbw (GB/s)", "bound (%)", "quality"]
    rows = []
    for p in shown:
        bound = p["bound"] and p["bound"]["fraction"] * 100
        rows.append([size_text(p["requested_bytes"]), p["collective"], str(p["ranks"]), variant(p), p["algorithm_used"],
                     significant(p["time_us"]["median"]), number(interval_percent(p), 1), significant(p["busbw_GBps"]),
                     number(bound, 0), doubt_cell([p])])
    return caption(doc) + grid(head, rows) + doubt_line(shown)


def spread_text(spread, form):
    return DASH if not spread else f"{spread['mean']:{form}} ({spread['min']:{form}} to {spread['max']:{form}})"


def strategies(doc, _options):
    if not doc["comparison"]:
        raise Wrong("the document compares no strategies: it has fewer than two training runs")
    head = ["strategy", "runs", "accuracy (least to most)", "minus reference", "images/s", "times as fast", "sent per rank and step (MB)", "entries sent (%)"]
    rows = []
    for row in doc["comparison"]:
        density = row["achieved_density"]
        sent = row["wire_bytes_per_step"]
        rows.append([row["strategy"], str(row["runs"]), spread_text(row["accuracy"], ".4f"), spread_text(row["difference"], "+.4f"),
                     number(row["images_per_second"], 0), number(row["reference_speedup"], 2),
                     number(sent / 1e6 if sent is not None else None, 3), number(density * 100 if density is not None else None, 3)])
    runs = [t for t in doc["train"] if not t["baseline"]]
    tasks = sorted({f"{t['model']} on {t['dataset']}" for t in runs})
    seeds = sorted({t["seed"] for t in runs})
    epochs = sorted({len(t["epochs"]) for t in runs})
    reference = sorted({row["reference"] for row in doc["comparison"]})
    note = (f"{', '.join(tasks)}; {' or '.join(map(str, epochs))} epochs, seeds {', '.join(map(str, seeds))}. Accuracy: mean over seeds of the last "
            f"three epochs. Reference: {', '.join(reference)}. Differences are taken per seed; parentheses show the least and the most.")
    return caption(doc) + [note, ""] + grid(head, rows)


# Files of tests/bench/peers.py and train_peers.py.


def where_text(doc):
    host, tool = doc["where"]["host"], doc["where"]["tool"]
    load = f", load {host['load']:.1f} at the start" if host.get("load") is not None else ""
    day = f", {doc['where']['started'][:10]}" if "started" in doc["where"] else ""
    return f"{host['cpu']} ({host['usable_cores']} cores{load}), ddpbench {tool['version']} ({tool['commit']}){day}"


def ratio_text(row):
    """The ratio with its interval, which a row of fewer than six rounds does not have."""
    if not row:
        return DASH
    low, high = row["ci95"]
    return f"{row['ratio']:.2f}" + ("" if low is None or high is None else f" ({low:.2f} to {high:.2f})")


def peers(doc, options):
    results = [r for r in doc["results"] if "sizes" in r]
    if len(results) != 1:
        raise Wrong(f"the file has {len(results)} comparisons, and a table of kind peers shows one; use peer-ratios")
    found = results[0]
    rows_of_size = {s["bytes"]: s for s in found["sizes"]}
    rows = []
    for size in pick_sizes(rows_of_size, options):
        row = rows_of_size[size]
        times = [row["us"].get(name) for name in ("ddpbench registered", "Open MPI default", "MPICH default")]
        rows.append([size_text(size)] + [time_text(us) if us is not None else DASH for us in times] +
                    [ratio_text(row["registered"]), ratio_text(row["private"]), row["best_peer"], "; ".join(row["missed"]) or DASH])
    head = [f"{found['collective']} of", "ddpbench", "Open MPI, default", "MPICH, default", "best peer / ddpbench", "the same, private memory", "best peer", "misses its goal"]
    return [f"{where_text(doc)}; {found['ranks']} ranks, {found['rounds']} rounds.", ""] + grid(head, rows)


def peer_ratios(doc, _options):
    rows = []
    for found in doc["results"]:
        ratios = [(s["registered"]["ratio"], s) for s in found["sizes"] if s["registered"]]
        least = min(ratios, key=lambda pair: pair[0], default=None)
        mean = found["geometric_mean"]
        rows.append([found["collective"], str(found["ranks"]), str(found["rounds"]), str(len(ratios)), number(mean.get("registered"), 2),
                     number(mean.get("private"), 2), f"{ratio_text(least[1]['registered'])} at {size_text(least[1]['bytes'])}" if least else DASH,
                     str(len(found["short"]))])
    head = ["collective", "ranks", "rounds", "sizes", "best peer / ddpbench, geometric mean", "the same, private memory", "least ratio", "missed goals"]
    return [f"{where_text(doc)}.", ""] + grid(head, rows)


def train_peers(doc, _options):
    rows = []
    medians = doc["images_per_second"]
    for ranks in ("1 rank", "2 ranks"):
        ratio = next(r for r in doc["rows"] if r["row"] == f"{ranks}, times PyTorch")
        low, high = ratio["ci95"]
        rows.append([ranks, number(medians[f"ddpbench {ranks}"], 0), number(max(medians[f"PyTorch {ranks}"], medians[f"PyTorch tuned {ranks}"]), 0),
                     f"{ratio['value']:.2f} ({low:.2f} to {high:.2f})"])
    head = [f"singa-cnn, batch {doc['batch']} per rank", "images/s", f"PyTorch {doc['torch']}, the faster of tuned and default settings", "ddpbench / PyTorch"]
    return [f"{where_text(doc)}; {len(doc['rounds'])} rounds.", ""] + grid(head, rows)


# Each kind: the function that makes its lines, and whether its file is of schema ddpbench/1.
KINDS = {
    "collectives": (collectives, True),
    "bandwidth": (bandwidth, True),
    "strategies": (strategies, True),
    "peers": (peers, False),
    "peer-ratios": (peer_ratios, False),
    "train-peers": (train_peers, False),
}


def read_document(root, name):
    if not re.fullmatch(r"results/[A-Za-z0-9_.-]+(/[A-Za-z0-9_.-]+)*\.json", name) or ".." in name:
        raise Wrong(f"'{name}' is no JSON file below results/")
    try:
        with open(os.path.join(root, name), encoding="utf-8") as file:
            return json.load(file)
    except FileNotFoundError:
        made = EXPECTED.get(name)
        raise Wrong(f"'{name}' does not exist" + (f"; make it with `{made}`" if made else "")) from None
    except ValueError as error:
        raise Wrong(f"'{name}' is not JSON: {error}") from None


def parse_marker(words):
    """Returns the kind, the file and the options that a marker names."""
    if len(words) < 2:
        raise Wrong("a marker must name a kind and a file")
    kind, name = words[:2]
    if kind not in KINDS:
        raise Wrong(f"'{kind}' is no kind of table; kinds: {', '.join(KINDS)}")
    options = dict(word.partition("=")[::2] for word in words[2:])
    for key in options:
        if key != "sizes":
            raise Wrong(f"'{key}' is no option of a marker; the only one is sizes=")
    return kind, name, options


def table_of(root, kind, name, options):
    make, is_document = KINDS[kind]
    doc = read_document(root, name)
    if is_document and doc.get("schema") != "ddpbench/1":
        raise Wrong(f"'{name}' is no document of schema ddpbench/1, which kind {kind} needs")
    try:
        return make(doc, options)
    except Wrong as error:
        raise Wrong(f"'{name}': {error}") from None
    except (KeyError, TypeError, ValueError, StopIteration) as error:
        raise Wrong(f"'{name}' does not have the form that kind {kind} needs: {type(error).__name__}: {error}") from None


def rewrite(root, page, text):
    """Returns the page with new tables, the files that it names, and the problems of its markers."""
    out, named, problems, lines = [], [], [], text.splitlines()
    at = 0
    while at < len(lines):
        line = lines[at]
        out.append(line)
        at += 1
        marker = MARKER.match(line)
        if not marker:
            if line.startswith("<!-- results-table") or line == END:
                problems.append(f"{page}:{at}: '{line}' is no marker, or ends no table")
            continue
        begin = at
        while at < len(lines) and lines[at] != END and not MARKER.match(lines[at]):
            at += 1
        if at == len(lines) or lines[at] != END:
            problems.append(f"{page}:{begin}: the table has no line '{END}'")
            out += lines[begin:at]
            continue
        try:
            kind, name, options = parse_marker(marker[1].split())
            named.append(name)
            out += ["", *table_of(root, kind, name, options), ""]
        except Wrong as error:
            problems.append(f"{page}:{begin}: {error}")
            out += lines[begin:at]
        out.append(END)
        at += 1
    return "\n".join(out) + "\n" * text.endswith("\n"), named, problems


def unshown(root, named):
    """Returns a problem for each expected document without a table, and names the missing ones."""
    problems = []
    for name, made in EXPECTED.items():
        if name in named:
            continue
        if os.path.exists(os.path.join(root, name)):
            problems.append(f"results/README.md: '{name}' has no table; add a marker for it")
        else:
            print(f"results_tables: skipped '{name}', which does not exist yet; make it with `{made}`", file=sys.stderr)
    return problems


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--root", default=os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir))
    options = parser.parse_args()
    problems = []
    for page in PAGES:
        path = os.path.join(options.root, page)
        with open(path, encoding="utf-8") as file:
            old = file.read()
        new, named, found = rewrite(options.root, page, old)
        problems += found
        if page == "results/README.md":
            problems += unshown(options.root, named)
        if new != old and options.check:
            problems.append(f"{page}: a table and its file disagree; run `make results-tables`")
            sys.stdout.writelines(difflib.unified_diff(old.splitlines(keepends=True), new.splitlines(keepends=True), page, f"{page} (regenerated)"))
        elif new != old:
            with open(path, "w", encoding="utf-8") as file:
                file.write(new)
    for text in problems:
        print(f"results_tables: {text}", file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
