#!/usr/bin/env python3
"""Compares the kernels of device cuda with this GPU's copy bandwidth, and with PyTorch if this
python3 has it. Usage: bench_gpu.py --bench PROGRAM --out FILE [--device NAME] [--elements N,...]

Exits with 0 when every goal is met, 1 when one is missed, 69 without a GPU.
"""
import argparse
import json
import platform
import subprocess
import sys

# The goal of each kernel: PyTorch's time for the same work divided by ours.
RATIOS = {"pack f16": 1.0, "pack bf16": 1.0, "unpack bf16 + accumulate": 1.0,
          "threshold + error feedback": 4.0, "top-k": 4.0, "top-k + error feedback": 4.0,
          "scatter-add": 1.2}


def torch_rows(sizes, iterations):
    """Returns {(kernel, n): microseconds} of PyTorch, or the reason why it cannot run."""
    try:
        import torch
    except ImportError:
        return {}, "no PyTorch in this python3"
    if not torch.cuda.is_available():
        return {}, "PyTorch sees no GPU"
    rows = {}
    for n in sizes:
        x, residual = torch.randn(n, device="cuda"), torch.randn(n, device="cuda")
        half, brain, k = x.half(), x.bfloat16(), max(n // 100, 1)
        index = torch.topk(x.abs(), k, sorted=False).indices.sort().values
        values = x[index]
        acc = torch.empty_like(x)

        def threshold():
            torch.add(x, residual, out=acc)
            chosen = acc.abs() >= 3.6
            where = chosen.nonzero().flatten()
            sent = acc[where]
            acc.masked_fill_(chosen, 0)
            return sent

        def topk_feedback():
            torch.add(x, residual, out=acc)
            where = torch.topk(acc.abs(), k, sorted=False).indices
            sent = acc[where]
            acc.index_fill_(0, where, 0)
            return sent

        work = {"pack f16": lambda: x.half(), "pack bf16": lambda: x.bfloat16(),
                "unpack f16": lambda: half.float(),
                "unpack bf16 + accumulate": lambda: acc.add_(brain),
                "threshold + error feedback": threshold,
                "top-k": lambda: torch.topk(x.abs(), k, sorted=False),
                "top-k + error feedback": topk_feedback,
                "scatter-add": lambda: acc.index_add_(0, index, values)}
        for name, call in work.items():
            times = []
            for i in range(3 + iterations):
                begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
                begin.record()
                call()
                end.record()
                torch.cuda.synchronize()
                if i >= 3:
                    times.append(begin.elapsed_time(end) * 1000)
            rows[name, n] = sorted(times)[len(times) // 2]
        del x, residual, half, brain, index, values, acc
        torch.cuda.empty_cache()
    return rows, "PyTorch " + torch.__version__


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--bench", required=True)
    parser.add_argument("--out", required=True)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--elements", default="67108864,268435456")
    parser.add_argument("--iterations", type=int, default=20)
    args = parser.parse_args()
    ran = subprocess.run([args.bench, "--device", args.device, "--elements", args.elements,
                          "--iterations", str(args.iterations)], stdout=subprocess.PIPE, timeout=300)
    if ran.returncode:
        sys.exit(ran.returncode)
    result = json.loads(ran.stdout)
    sizes = [int(n) for n in args.elements.split(",")]
    peers, peer = torch_rows(sizes, args.iterations) if args.device == "cuda" else ({}, None)
    result.update(peer=peer, host=platform.node())
    missed = 0
    print(f"{result['name']}, {result['runtime']}; peer: {peer}")
    print(f"{'kernel':28} {'data':7} {'n':>10} {'us':>10} {'GB/s':>8} {'of copy':>7} {'goal':>5} {'peer us':>10} {'ratio':>6} {'goal':>5}")
    for row in result["rows"]:
        theirs = peers.get((row["kernel"], row["n"]))
        ratio = theirs / row["median_us"] if theirs else None
        wanted = RATIOS.get(row["kernel"]) if ratio else None
        row.update(peer_us=theirs, ratio=ratio, ratio_goal=wanted)
        bad = (row["goal"] and row["fraction_of_copy"] < row["goal"]) or (wanted and ratio < wanted)
        row["missed"] = bool(bad)
        missed += bool(bad)
        print(f"{row['kernel']:28} {row['data']:7} {row['n']:10} {row['median_us']:10.1f} {row['GBps']:8.1f} "
              f"{row['fraction_of_copy']:7.3f} {row['goal'] or '-':>5} {theirs and round(theirs, 1) or '-':>10} "
              f"{ratio and round(ratio, 2) or '-':>6} {wanted or '-':>5}{'  MISSED' if bad else ''}")
    with open(args.out, "w") as out:
        json.dump(result, out, indent=1)
        out.write("\n")
    print(f"{missed} goals missed; written to {args.out}")
    sys.exit(1 if missed else 0)


if __name__ == "__main__":
    main()
