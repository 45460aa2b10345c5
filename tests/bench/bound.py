"""Checks the bound of `ddpbench`: bound.py DDPBENCH [ROUNDS [FOLDER]].

Measures five collectives from 64 KiB to 64 MiB on 2 ranks, in and out of place, in registered and
private memory, ROUNDS times. Prints how many points exceed their bound, and how many bounds agree
within 5 % before and after the point. Then it compares plain loops, compiled with cc, with the
bounds. FOLDER keeps the documents; documents that exist are not measured again. Exits with 1 if more
than 1 % of the points exceed 103 %, if a point exceeds 110 %, or if a loop is below 90 %.
The agreement is printed only, because it depends on the other programs of the machine.
"""
import json
import pathlib
import subprocess
import sys
import tempfile

COLLECTIVES = ["allreduce", "reduce-scatter", "all-gather", "broadcast", "all-to-all"]
SIZES = "64K,256K,1M,4M,16M,64M"
LOOPS = ["copy", "add", "both"]
FLAGS = [["-O3", "-march=native"], ["-O3", "-march=native", "-mprefer-vector-width=512"]]


def measure(ddpbench, folder, rounds):
    points = []
    for number in range(rounds):
        for collective in COLLECTIVES:
            for memory in ("registered", "private"):
                path = folder / f"{collective}-{memory}-{number}.json"
                if not path.exists():
                    subprocess.run([ddpbench, collective, "--backend", "shm", "--ranks", "2", "--size", SIZES, "--placement",
                                    "both", "--memory", memory, "--max-time", "1", "--json", str(path)], check=True, stdout=subprocess.DEVNULL)
                points += json.loads(path.read_text())["points"]
    return points


def name_of(p):
    return f"{p['collective']} {p['size_bytes']} {p['placement']} {p['memory']}"


def check_points(points):
    fractions = [(p["bound"]["fraction"], name_of(p)) for p in points]
    over3 = [f for f in fractions if f[0] > 1.03]
    over10 = [f for f in fractions if f[0] > 1.1]
    agree = [abs(p["bound"]["before_us"] / p["bound"]["after_us"] - 1) <= 0.05 for p in points]
    best = [p["bound"]["us"] / p["time_us"]["min"] for p in points]
    print(f"{len(points)} points: {len(over3)} above 103 %, {len(over10)} above 110 %, the largest is {max(fractions)}")
    print(f"fastest iterations: {sum(b > 1.03 for b in best)} above 103 % of the bound, the largest is {max(best):.2f}")
    print(f"bounds that agree within 5 %: {sum(agree) / len(agree):.0%}")
    return len(over3) <= 0.01 * len(points) and not over10


def check_loops(points):
    """Compares the fastest plain loop with the bound of all-reduce, over arrays of as many bytes.

    In place the loop's arrays are restored before each round, as the sampler restores the input."""
    good = True
    source = pathlib.Path(__file__).with_name("plain_loop.c")
    with tempfile.TemporaryDirectory() as folder:
        binaries = [f"{folder}/plain_loop{i}" for i in range(len(FLAGS))]
        for binary, flags in zip(binaries, FLAGS):
            subprocess.run(["cc", *flags, "-o", binary, str(source)], check=True)
        for placement, arrays, more in (("in", 1, ["restore"]), ("out", 2, [])):
            for size in sorted({p["size_bytes"] for p in points}):
                bound = max(p["bound"]["GBps"] for p in points
                            if (p["collective"], p["placement"], p["size_bytes"]) == ("allreduce", placement, size))
                rate, loop = max((float(subprocess.check_output([binary, loop, str(arrays * size), "2", *more])), loop)
                                 for binary in binaries for loop in LOOPS for _ in range(3))
                good = good and rate >= 0.9 * bound
                print(f"{size:9} {placement:3} bound {bound:6.1f} GB/s, {loop} {rate:6.1f} GB/s: {rate / bound:4.0%}")
    return good


def main():
    if len(sys.argv) not in (2, 3, 4):
        sys.exit(__doc__)
    rounds = int(sys.argv[2]) if len(sys.argv) > 2 else 1
    folder = pathlib.Path(sys.argv[3] if len(sys.argv) > 3 else tempfile.mkdtemp())
    folder.mkdir(parents=True, exist_ok=True)
    points = measure(sys.argv[1], folder, rounds)
    good = check_points(points)
    sys.exit(0 if check_loops(points) and good else 1)


if __name__ == "__main__":
    main()
