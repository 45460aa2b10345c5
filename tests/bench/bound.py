"""Checks the bound of `ddpbench`: bound.py DDPBENCH [ROUNDS [FOLDER]].

Measures five collectives from 64 KiB to 64 MiB on 2 ranks, in and out of place, in registered and
private memory, ROUNDS times. After each round it times plain loops, compiled with cc. Prints how many
points exceed their bound, how many bounds agree within 5 % before and after the point, and the
fastest loops beside the bounds. FOLDER keeps the documents; documents that exist are not measured
again. Exits with 1 if more than 1 % of the points exceed 103 %, if a point exceeds 110 %, or if a
loop is below 90 %.
The agreement is printed only, because it depends on the other programs of the machine.
"""
import json
import pathlib
import subprocess
import sys
import tempfile

COLLECTIVES = ["allreduce", "reduce-scatter", "all-gather", "broadcast", "all-to-all"]
SIZES = [65536 << (2 * i) for i in range(6)]  # 64 KiB to 64 MiB
LOOPS = ["copy", "add", "both"]
FLAGS = [["-O3", "-march=native"], ["-O3", "-march=native", "-mprefer-vector-width=512"]]


def measure(ddpbench, folder, number):
    points = []
    for collective in COLLECTIVES:
        for memory in ("registered", "private"):
            path = folder / f"{collective}-{memory}-{number}.json"
            if not path.exists():
                subprocess.run([ddpbench, collective, "--backend", "shm", "--ranks", "2", "--size", ",".join(map(str, SIZES)), "--placement",
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


def compile_loops(folder):
    source = pathlib.Path(__file__).with_name("plain_loop.c")
    binaries = [f"{folder}/plain_loop{i}" for i in range(len(FLAGS))]
    for binary, flags in zip(binaries, FLAGS):
        subprocess.run(["cc", *flags, "-o", binary, str(source)], check=True)
    return binaries


def time_loops(binaries, rates):
    """Times plain loops over arrays of as many bytes as an all-reduce has, and keeps the fastest in `rates`.

    In place the loop's arrays are restored before each round, as the sampler restores the input."""
    for placement, arrays, more in (("in", 1, ["restore"]), ("out", 2, [])):
        for size in SIZES:
            rate, loop = max((float(subprocess.check_output([binary, loop, str(arrays * size), "2", *more])), loop)
                             for binary in binaries for loop in LOOPS for _ in range(3))
            rates[placement, size] = max(rates.get((placement, size), (0, "")), (rate, loop))


def check_loops(points, rates):
    good = True
    for (placement, size), (rate, loop) in rates.items():
        bound = max(p["bound"]["GBps"] for p in points
                    if (p["collective"], p["placement"], p["size_bytes"]) == ("allreduce", placement, size))
        good = good and rate >= 0.9 * bound
        print(f"{size:9} {placement:3} bound {bound:6.1f} GB/s, {loop} {rate:6.1f} GB/s: {rate / bound:4.0%}")
    return good


def main():
    if len(sys.argv) not in (2, 3, 4):
        sys.exit(__doc__)
    rounds = int(sys.argv[2]) if len(sys.argv) > 2 else 1
    folder = pathlib.Path(sys.argv[3] if len(sys.argv) > 3 else tempfile.mkdtemp())
    folder.mkdir(parents=True, exist_ok=True)
    points, rates = [], {}
    with tempfile.TemporaryDirectory() as built:
        binaries = compile_loops(built)
        for number in range(rounds):
            points += measure(sys.argv[1], folder, number)
            time_loops(binaries, rates)
    good = check_points(points)
    sys.exit(0 if check_loops(points, rates) and good else 1)


if __name__ == "__main__":
    main()
