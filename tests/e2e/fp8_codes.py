#!/usr/bin/env python3
"""Compares the codecs of 8-bit floats with ml-dtypes, bit for bit: every code, and 10^7 random values.

Usage: fp8_codes.py FP8_CONVERT"""
import subprocess
import sys

import ml_dtypes
import numpy as np

TYPES = {"fp8-e4m3": ml_dtypes.float8_e4m3fn, "fp8-e5m2": ml_dtypes.float8_e5m2}
VALUES = 10**7


def convert(name, direction, data):
    return subprocess.run([sys.argv[1], name, direction], input=data.tobytes(), stdout=subprocess.PIPE, check=True).stdout


def differences(mine, theirs, source):
    """Returns the number of different elements and prints the first one."""
    wrong = np.flatnonzero(mine != theirs)
    if len(wrong):
        i = wrong[0]
        print(f"# {source[i]!r}: {mine[i]:#x}, but ml-dtypes has {theirs[i]:#x}")
    return len(wrong)


def inputs(reference):
    """Random f32: half have random bits, half are near the codes and near the limits between codes."""
    random = np.random.default_rng(33)
    anything = random.integers(0, 2**32, VALUES // 2, dtype=np.uint32).view(np.float32)
    codes = np.arange(256, dtype=np.uint8).view(reference).astype(np.float32)
    finite = np.sort(np.unique(np.abs(codes[np.isfinite(codes)])))
    points = np.concatenate([finite, (finite[1:] + finite[:-1]) / 2, finite[-1:] * np.float32([1.03, 1.04, 1.07, 2])])
    near = random.choice(points, VALUES - len(anything)).view(np.uint32)
    steps = random.integers(-2, 3, len(near)).astype(np.uint32)
    near = np.where(near == 0, near, near + steps).view(np.float32)
    return np.concatenate([anything, near * random.choice(np.float32([-1, 1]), len(near))])


def main():
    failed = 0
    print(f"1..{2 * len(TYPES)}")
    for n, (name, reference) in enumerate(TYPES.items()):
        codes = np.arange(256, dtype=np.uint8)
        wide = np.frombuffer(convert(name, "widen", codes), dtype=np.uint32)
        wrong = differences(wide, codes.view(reference).astype(np.float32).view(np.uint32), codes)
        print(f"{'not ok' if wrong else 'ok'} {2 * n + 1} - {name}: all 256 codes ({wrong} differ)")
        values = inputs(reference)
        narrow = np.frombuffer(convert(name, "narrow", values), dtype=np.uint8)
        with np.errstate(all="ignore"):
            differ = differences(narrow, values.astype(reference).view(np.uint8), values)
        print(f"{'not ok' if differ else 'ok'} {2 * n + 2} - {name}: {len(values)} values ({differ} differ)")
        failed += wrong + differ
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
