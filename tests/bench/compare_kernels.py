"""Compares the kernels of two builds: `make bench-kernels OLD=DIR`.

Usage: compare_kernels.py FOLDER [ROUNDS]. FOLDER contains kernels_old_*.so and kernels_new_*.so:
tests/bench/bench_kernels.c, linked with one build's kernels at several code offsets. Every round
measures each kernel of all libraries, in turns and in the same memory. The time of a build is that
of its fastest library, because the address of a loop matters. The ratio of a round is new / old.
Prints the median of the ratios and its 95 % interval. Exits with 1 if a whole interval lies above
1.05. DDPBENCH_SIMD chooses the SIMD level.
"""
import ctypes
import glob
import math
import mmap
import os
import sys

LEVELS = ["scalar", "avx2", "avx512"]
SIZES = [2048, 49152, 4 << 20]
LIMIT = 1.05


def load(path):
    lib = ctypes.CDLL(os.path.abspath(path))
    lib.ddp_bench_memory.restype = ctypes.c_size_t
    lib.ddp_bench_memory.argtypes = [ctypes.c_size_t]
    lib.ddp_bench_open.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    lib.ddp_bench_open.restype = None
    lib.ddp_bench_name.argtypes = [ctypes.c_int, ctypes.c_char_p, ctypes.c_size_t]
    lib.ddp_bench_ns.restype = ctypes.c_double
    return lib


def names_of(lib):
    name, names = ctypes.create_string_buffer(64), []
    while lib.ddp_bench_name(len(names), name, len(name)):
        names.append(name.value.decode())
    return names


def interval(values):
    """Returns the median and its 95 % interval by order statistics."""
    v, n = sorted(values), len(values)
    below, k = 0.0, 0
    while below + math.comb(n, k) / 2**n <= 0.025:
        below += math.comb(n, k) / 2**n
        k += 1
    k = max(k, 1)
    return v[n // 2], v[k - 1], v[n - k]


def compare(builds, level, n, rounds):
    """builds: {"old": libraries, "new": libraries}"""
    libraries = [(build, lib) for pair in zip(*([(b, x) for x in builds[b]] for b in builds))
                 for build, lib in pair]
    memory = mmap.mmap(-1, builds["new"][0].ddp_bench_memory(n))
    address = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    names = names_of(builds["new"][0])
    ratios = {i: [] for i in range(len(names))}
    spent = {i: [] for i in range(len(names))}
    for _, lib in libraries:
        lib.ddp_bench_open(address, n, level)
    for turn in range(rounds):
        for i in ratios:
            ns = {"old": math.inf, "new": math.inf}
            for build, lib in libraries if turn % 2 == 0 else reversed(libraries):
                ns[build] = min(ns[build], lib.ddp_bench_ns(i))
            if ns["old"] > 0:
                ratios[i].append(ns["new"] / ns["old"])
                spent[i].append(ns["new"])
    print(f"\n{n} elements, {LEVELS[level]}, {rounds} rounds: new / old, median and 95 % interval")
    slower = 0
    for i, name in enumerate(names):
        if not ratios[i]:
            continue
        middle, low, high = interval(ratios[i])
        verdict = "  slower" if low > LIMIT else ""
        slower += low > LIMIT
        us = sorted(spent[i])[rounds // 2] / 1e3
        print(f"{name:32} {us:10.1f} us  {middle:6.3f}  {low:6.3f} .. {high:6.3f}{verdict}")
    return slower


def main():
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    builds = {build: [load(f) for f in sorted(glob.glob(f"{sys.argv[1]}/kernels_{build}_*.so"))]
              for build in ("old", "new")}
    if names_of(builds["old"][0]) != names_of(builds["new"][0]):
        sys.exit("compare_kernels.py: the libraries do not measure the same kernels")
    best = LEVELS[builds["new"][0].ddp_cpu_best_simd()]
    level = LEVELS.index(os.environ.get("DDPBENCH_SIMD") or best)
    rounds = int(sys.argv[2]) if len(sys.argv) == 3 else 15
    slower = sum(compare(builds, level, n, rounds) for n in SIZES)
    if slower:
        sys.exit(f"{slower} kernels are more than {LIMIT - 1:.0%} slower")


if __name__ == "__main__":
    main()
