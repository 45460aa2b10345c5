#!/usr/bin/env python3
"""Runs one training by PyTorch, which train_peers.py compares with `ddpbench train`.

It trains SINGA's CNN on Fashion-MNIST with cross entropy and SGD with momentum and weight decay. The
images lie in memory as bytes and each step converts its own, as in ddpbench. Each process has one
thread. With --world 2 this process starts the ranks, each on a core of its own, and wraps the net
in DistributedDataParallel over gloo. Prints one line of JSON.

usage: train_torch.py --data DIR --cores N[,N...] [--steps N] [--warmup N] [--batch N] [--tuned]
"""
import argparse
import gzip
import json
import os
import tempfile
import time


def read_idx(path):
    """The bytes behind the header of an IDX file, plain or gzipped."""
    if os.path.exists(path):
        raw = open(path, "rb").read()
    else:
        raw = gzip.open(path + ".gz", "rb").read()
    return raw[4 + 4 * raw[3] :]


def make_net(torch):
    nn = torch.nn
    return nn.Sequential(
        nn.Conv2d(1, 20, 5), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(20, 50, 5), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(800, 500), nn.ReLU(), nn.Linear(500, 10),
    )


def train(rank, a, cores, meeting):
    os.sched_setaffinity(0, {cores[rank]})
    import torch

    torch.set_num_threads(1)
    torch.manual_seed(1)
    images = torch.frombuffer(bytearray(read_idx(f"{a.data}/train-images-idx3-ubyte")), dtype=torch.uint8)
    images = images.view(-1, 1, 28, 28)
    labels = torch.frombuffer(bytearray(read_idx(f"{a.data}/train-labels-idx1-ubyte")), dtype=torch.uint8).long()
    net = make_net(torch)
    assert sum(p.numel() for p in net.parameters()) == 431080
    if a.tuned:
        net = net.to(memory_format=torch.channels_last)
    model = net
    if len(cores) > 1:
        import torch.distributed as dist

        dist.init_process_group("gloo", init_method="file://" + meeting, rank=rank, world_size=len(cores))
        model = torch.nn.parallel.DistributedDataParallel(net, gradient_as_bucket_view=a.tuned)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.005, momentum=0.9, weight_decay=1e-5, foreach=a.tuned)
    loss_of = torch.nn.CrossEntropyLoss()
    order = torch.randperm(len(images))
    total = 0.0
    for step in range(-a.warmup, a.steps):
        if step == 0:
            if len(cores) > 1:
                dist.barrier()
            start = time.perf_counter()
        first = (step % (len(images) // (a.batch * len(cores))) * len(cores) + rank) * a.batch
        at = order[first : first + a.batch]
        x = images[at].float().div_(255)
        if a.tuned:
            x = x.contiguous(memory_format=torch.channels_last)
        optimizer.zero_grad(set_to_none=len(cores) == 1)
        loss = loss_of(model(x), labels[at])
        loss.backward()
        optimizer.step()
        total += loss.item()
    if len(cores) > 1:
        dist.barrier()
    seconds = time.perf_counter() - start
    if rank == 0:
        out = {"version": torch.__version__, "capability": "AVX2" if "AVX2" in torch.__config__.show() else "",
               "images_per_second": a.steps * a.batch * len(cores) / seconds, "mean_loss": total / (a.steps + a.warmup)}
        print(json.dumps(out), flush=True)


def main():
    a = argparse.ArgumentParser()
    a.add_argument("--data", required=True)
    a.add_argument("--cores", required=True)
    a.add_argument("--steps", type=int, default=300)
    a.add_argument("--warmup", type=int, default=20)
    a.add_argument("--batch", type=int, default=64)
    a.add_argument("--tuned", action="store_true", help="channels last, foreach optimiser, gradients as views of buckets")
    a = a.parse_args()
    cores = [int(c) for c in a.cores.split(",")]
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ[name] = "1"
    with tempfile.TemporaryDirectory() as folder:
        meeting = os.path.join(folder, "meeting")
        children = []
        for rank in range(1, len(cores)):
            pid = os.fork()
            if pid == 0:
                train(rank, a, cores, meeting)
                os._exit(0)
            children.append(pid)
        train(0, a, cores, meeting)
        for pid in children:
            if os.waitpid(pid, 0)[1] != 0:
                raise SystemExit("a rank failed")


if __name__ == "__main__":
    main()
