#!/usr/bin/env python3
"""Compares compressor powersgd with PyTorch's powerSGD_hook over 50 recorded gradients of two ranks.

In every step the hook starts from the Q and the residuals of ddpbench. The average and the residuals of the step must
agree. The hook also runs freely, from the first Q only, and must agree in the first 4 steps. Later free steps differ
more and more: error feedback amplifies rounding errors, and the hook in f32 differs from itself in f64 as well.

A difference is relative to the largest magnitude of the tensor's average, and must be at most 1e-5.

Usage: powersgd_torch.py DDPBENCH POWERSGD_STEPS"""
import os
import subprocess
import sys
import tempfile

import numpy as np
import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch.distributed.algorithms.ddp_comm_hooks import powerSGD_hook as powersgd

RANKS, STEPS, FREE_STEPS, TOLERANCE = 2, 50, 4, 1e-5
# The tensors of model lenet: weights as matrices with a row per output, and biases.
SHAPES = [(6, 25), (6,), (16, 54), (16,), (120, 400), (120,), (84, 120), (84,), (10, 84), (10,)]
COUNTS = [int(np.prod(s)) for s in SHAPES]


class Bucket:
    """The functions of torch.distributed.GradBucket that the hook calls."""

    def __init__(self, flat):
        self.flat = flat

    def index(self):
        return 0

    def is_last(self):
        return True

    def buffer(self):
        return self.flat

    def gradients(self):
        return [part.view(shape) for part, shape in zip(torch.split(self.flat, COUNTS), SHAPES)]


class Hook:
    """The hook with a state of its own, in one process."""

    def __init__(self, rank, dtype):
        self.rank, self.dtype = rank, dtype
        self.matrices = [s for s in SHAPES if len(s) > 1 and rank * sum(s) < s[0] * s[1]]
        self.state = powersgd.PowerSGDState(None, rank, start_powerSGD_iter=2, min_compression_rate=1)
        for _ in range(2):  # The first two steps of the hook are dense.
            powersgd.powerSGD_hook(self.state, Bucket(torch.zeros(sum(COUNTS), dtype=dtype))).wait()

    def start_from(self, factors, residual):
        ends = np.cumsum([self.rank * cols for _, cols in self.matrices])
        parts = np.split(factors, ends[:-1])
        q = [torch.from_numpy(part.reshape(self.rank, -1).T.copy()).flatten() for part in parts]
        self.state.q_memory_dict[0] = torch.cat(q).to(self.dtype)
        self.state.p_memory_dict[0] = torch.empty(self.rank * sum(rows for rows, _ in self.matrices), dtype=self.dtype)
        self.state.error_dict[0] = torch.from_numpy(residual.copy()).to(self.dtype)

    def step(self, gradient):
        """Returns the average and the residual."""
        bucket = Bucket(torch.from_numpy(gradient.copy()).to(self.dtype))
        average = powersgd.powerSGD_hook(self.state, bucket).wait().numpy().copy()
        return np.stack([average, self.state.error_dict[0].numpy()])


def torch_rank(me, folder, rank, factors, residuals, gradients):
    """Runs the hook in one process and stores [step][average, residual]."""
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{folder}/meet", rank=me, world_size=RANKS)
    hooks = {"same": Hook(rank, torch.float32), "free": Hook(rank, torch.float32), "f64": Hook(rank, torch.float64)}
    results = {name: [] for name in hooks}
    for step in range(STEPS):
        for name, hook in hooks.items():
            if step == 0 or name == "same":
                hook.start_from(factors[step], residuals[step - 1, me] if step else np.zeros_like(residuals[0, me]))
            results[name].append(hook.step(gradients[step, me]))
    np.savez(f"{folder}/torch{me}.npz", **results)
    dist.destroy_process_group()


def record(folder):
    """Returns the gradients [step][rank][element] of a training run."""
    subprocess.run([sys.argv[1], "train", "--model", "lenet", "--dataset", "synthetic", "--images", "3200", "--batch", "32",
                    "--ranks", str(RANKS), "--max-steps", str(STEPS), "--dump-gradients", folder, "--dump-every", "1", "-q"],
                   check=True, stdout=subprocess.DEVNULL)
    return np.stack([np.load(f"{folder}/rank{r}.npy")[:STEPS] for r in range(RANKS)], axis=1)


def run_mine(rank, gradients):
    """Returns the factors [step][...], the averages [step][element] and the residuals [step][rank][element]."""
    tensors = [f"{s[0]}x{s[1] if len(s) > 1 else 0}" for s in SHAPES]
    made = subprocess.run([sys.argv[2], f"powersgd:{rank}", str(RANKS), *tensors], input=gradients.tobytes(),
                          stdout=subprocess.PIPE, check=True).stdout
    made, total = np.frombuffer(made, dtype=np.float32).reshape(STEPS, -1), sum(COUNTS)
    at = made.shape[1] - (1 + RANKS) * total
    return made[:, :at], made[:, at : at + total], made[:, at + total :].reshape(STEPS, RANKS, total)


def worst(mine, theirs, averages, matrices_only=False):
    """The largest difference of arrays [step][element], relative to the average of each step and tensor."""
    ends = np.cumsum(COUNTS)[:-1]
    return max((np.abs(a - b).max(axis=1) / np.abs(c).max(axis=1)).max()
               for a, b, c, s in zip(*(np.split(x, ends, axis=1) for x in (mine, theirs, averages)), SHAPES)
               if len(s) > 1 or not matrices_only)


def compare(rank, gradients, folder):
    """Returns the differences by name."""
    factors, averages, residuals = run_mine(rank, gradients)
    if os.path.exists(f"{folder}/meet"):
        os.remove(f"{folder}/meet")
    mp.spawn(torch_rank, (folder, rank, factors, residuals, gradients), nprocs=RANKS)
    theirs = [np.load(f"{folder}/torch{r}.npz") for r in range(RANKS)]
    free, f64 = theirs[0]["free"][:, 0], theirs[0]["f64"][:, 0]
    print(f"# powersgd:{rank}, free, {STEPS} steps: {worst(averages, free, averages):.2g};"
          f" the hook in f32 and f64: {worst(free, f64, averages):.2g}")
    return {
        "average": worst(averages, theirs[0]["same"][:, 0], averages),
        # The hook also keeps residuals of vectors, which add up to 0 over the ranks.
        "residuals": max(worst(residuals[:, r], theirs[r]["same"][:, 1], averages, True) for r in range(RANKS)),
        f"first {FREE_STEPS} free steps": worst(averages[:FREE_STEPS], free[:FREE_STEPS], averages[:FREE_STEPS]),
    }


def main():
    failed = number = 0
    print("1..6")
    with tempfile.TemporaryDirectory() as folder:
        gradients = record(folder)
        assert gradients.shape == (STEPS, RANKS, sum(COUNTS)), gradients.shape
        for rank in (1, 4):
            for name, difference in compare(rank, gradients, folder).items():
                number += 1
                wrong = not difference <= TOLERANCE
                print(f"{'not ok' if wrong else 'ok'} {number} - powersgd:{rank}, {name}: {difference:.2g}")
                failed += wrong
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
