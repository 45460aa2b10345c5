#!/usr/bin/python3
"""Writes the seeds of the corpora: corpus/{cifar,pickle,idx,sparse,json,config,journal,sizes,foreign,page,hello}/. They are small and
valid, so that mutations start from accepted inputs."""
import gzip
import json
import os
import struct

HERE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "corpus")


def write(folder, name, data):
    os.makedirs(os.path.join(HERE, folder), exist_ok=True)
    with open(os.path.join(HERE, folder, name), "wb") as f:
        f.write(data)


def record(i):
    return bytes([i % 10]) + bytes((i * 31 + p * 7) % 256 for p in range(3072))


def text(s, put=b""):
    return b"U" + bytes([len(s)]) + s + put


def array(rows, dtype=b"K\0K\1", puts=True):
    q = iter(b"q" + bytes([n]) if puts else b"" for n in range(6, 40))
    return (
        text(b"data")
        + b"cnumpy.core.multiarray\n_reconstruct\n" + next(q) + b"cnumpy\nndarray\n" + next(q)
        + b"K\0\x85" + next(q) + text(b"b") + b"\x87R" + next(q)
        + b"(K\1M" + struct.pack("<H", rows) + b"M\0\x0c\x86"
        + b"cnumpy\ndtype\n" + next(q) + text(b"u1") + dtype + b"\x87R" + next(q)
        + b"(K\3" + text(b"|") + b"NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\0tb"
        + b"\x89T" + struct.pack("<I", rows * 3072)
        + b"".join(record(i)[1:] for i in range(rows)) + b"tb"
    )  # fmt: skip


def labels(n):
    return text(b"labels", b"q\4") + b"]q\5(" + b"".join(b"K" + bytes([i % 10]) for i in range(n)) + b"e"


def names(n):
    return text(b"filenames") + b"]r\1\0\0\0(" + b"".join(text(b"frog_%d.png" % i) for i in range(n)) + b"e"


def pickle(*entries):
    return b"\x80\2}q\1(" + b"".join(entries) + b"u."


batch_label = text(b"batch_label", b"q\2") + text(b"training batch 1 of 5", b"q\3")


def main():
    for n in 1, 3:
        write("cifar", f"{n}-records", b"".join(record(i) for i in range(n)))
        write("pickle", f"{n}-rows", pickle(batch_label, labels(n), array(n), names(n)))
    write("cifar", "cut", record(1)[:3000])
    write("pickle", "later-numpy", pickle(array(1, b"\x89\x88", False), text(b"labels") + b"]K\7a"))
    write("pickle", "no-data", pickle(batch_label, labels(20), names(3)))
    write("pickle", "long-string", pickle(b"T\4\0\0\0data" + text(b"x")))
    idx = bytes([2]) + struct.pack(">IIII", 2051, 3, 4, 5) + bytes(range(60))
    write("idx", "images", idx)
    write("idx", "labels", bytes([0]) + struct.pack(">II", 2049, 10) + bytes(range(10)))
    write("idx", "images-gz", idx[:1] + gzip.compress(idx[1:], mtime=0))
    write("idx", "labels-gz-stored", b"\0" + gzip.compress(struct.pack(">II", 2049, 300) + bytes(300), 0, mtime=0))
    write("idx", "too-large", bytes([2]) + struct.pack(">IIII", 2051, 2**31, 2**31, 4))


    def message(begin, length, count, *words):
        return b"\1" + struct.pack("<IHH", begin, length, count) + struct.pack(f"<{len(words)}I", *words)


    write("sparse", "indices", message(0, 1000, 3, 1, 500, 999, 7, 8, 9))
    write("sparse", "indices-far", message(2**32 - 1000, 1000, 2, 2**32 - 1000, 2**32 - 1, 7, 8))
    write("sparse", "bitmap", message(100, 40, 4, 1 << 31 | 3, 1 << 7, 1, 2, 3, 4))
    write("sparse", "full", message(7, 5, 5, 1, 2, 3, 4, 5))
    write("sparse", "falling", message(0, 1000, 2, 500, 499, 1, 2))
    for word in "none", "fp16:2.5", "topk:0.01", "threshold:1e-3", "oktopk:1", "topk:", "tpok:1":
        write("sparse", "name-" + word.replace(":", "-"), b"\0" + word.encode())

    texts()
    pages()


def page_point(size, us, **more):
    """A point of an all-reduce. more: members that replace others."""
    spec = {"method": "none", "density": None} | more.pop("compress", {})
    name = spec["method"] + (f":{spec['density']}" if spec["density"] else "")
    rate = None if spec["density"] else size / us / 1e3
    return {"id": f"allreduce/shm/auto/f32/sum/r0/in/registered/n2/{size}/{name}/0", "collective": "allreduce", "backend": "shm",
            "algorithm": "auto", "dtype": "f32", "op": "sum", "placement": "in", "memory": "registered", "ranks": 2,
            "requested_bytes": size, "size_bytes": size, "iterations": 9, "compress": spec, "partial": None,
            "time_us": {"median": us, "ci95": [us, 2 * us], "min": us, "p25": us, "p75": us, "max": 3 * us}, "algbw_GBps": rate,
            "busbw_GBps": rate, "busbw_ci95_GBps": None, "pingpong_ns": {"before": 99, "after": None}, "quality": ["busy"]} | more


def pages():
    base = {"schema": "ddpbench/1", "status": "complete", "reason": None, "label": "a<b>&\"c\"",
            "tool": {"version": "0.1", "commit": "<i>", "cflags": "-O3"}, "command": {"name": "x", "argv": ["<script>"]},
            "world": {"ranks": 2, "backend": "shm", "hosts": [{"name": "h", "cpu": "c", "cores": 2}]}, "points": []}
    even = {"f32": {"predicted": 0.9, "estimated": 0.05, "measured": None}}
    sparse = page_point(1024, 7, compress={"method": "topk", "density": 0.01}, wire_bytes_per_rank=10, dense_us={"f32": 5}, break_even=even)
    points = [page_point(8, 1), page_point(1024, 3, quality=[]), sparse, page_point(1024, 4, id="ring", algorithm="ring", ranks=4, busbw_GBps=None)]
    epochs = [{"epoch": e, "steps": 3, "seconds": e, "eval_accuracy": e / 9, "wire_bytes_per_rank": 10} for e in (1, 2)]
    runs = [{"model": "lenet", "dataset": "mnist", "ranks": 2, "seed": 1, "sync": {"strategy": s}, "epochs": epochs} for s in ("dense", "topk:0.1")]
    cell = {"id": "a<b>", "state": "slower", "pairs": 5, "base_us": 1, "new_us": 2, "ratio": 2, "lower": 1.5, "upper": 3, "p": 0.1, "p_holm": 0.2}
    verdict = {"kind": "gate", "outcome": "FAIL", "reason": "<b>", "min_effect": 0.05, "pairs": 5, "base": {"command": "`x`"}, "cells": [cell],
               "unjudged": [{"name": "n", "kind": "cell", "side": "new"}], "accuracy": [{"name": "m", "state": "worse", "seeds": 3, "base": 0.5}]}
    across = {"documents": [{"name": "a"}, {"name": "b<c>"}], "ratios": [{"id": "i", "document": 1, "ratio": 2}],
              "differences": [{"document": 1, "key": "CPU", "base": "x", "value": "<y>"}]}
    for name, more in {"points": {"points": points}, "training": {"train": runs, "points": points[:1]}, "verdict": {"verdict": verdict},
                       "across": {"verdict": {"kind": "across", "outcome": None, "across": across}},
                       "selftest": {"verdict": {"kind": "selftest", "outcome": "PASS", "selftest": {"pairs": 9, "noise_floor": 0.1}}}}.items():
        write("page", name, json.dumps(base | more).encode())


def journal(*lines):
    def line(body):
        check = 0xCBF29CE484222325
        for byte in body.encode():
            check = (check ^ byte) * 0x100000001B3 & 0xFFFFFFFFFFFFFFFF
        return f'{body}, "check": "fnv1a64:{check:016x}"}}\n'

    head = '{"journal": "ddpbench-journal/3", "facts": {"configuration": "7", "mpi": null}'
    return b"\0" + "".join(line(body) for body in (head, *lines)).encode()


def texts():
    write("json", "values", b'{"a": [1, -2.5e3, true, false, null, "x\\u00e9\\n<\\ud83d\\ude00"], "b": {"c": {}}, "d": []}')
    write("json", "digest", b'{\n  "a": 1,\n  "digest": "fnv1a64:3ae16671fa1f9602"\n}\n')
    write("json", "canonical-digest", b'{"b": null, "digest": "jcs-fnv1a64:83f5955077bf8551", "a": [15e-1, "x"]}\n')
    write("json", "deep", b"[" * 20 + b"]" * 20)
    write("json", "numbers", b"[0, -0, 1e400, 5e-324, 0.1, 123456789012345678901234567890, 9007199254740993]")
    write("config", "axes", b'{"description": "d", "runs": [{"command": "allreduce", "ranks": [1, 2], "size": [8, "64K"],'
          b' "partial": 4}, {"command": "train", "lr": 0.005, "overlap": "on", "samples": true, "x": [true, false]}]}')
    write("config", "one", b'{"runs": [{"command": "barrier"}]}')
    write("config", "unknown-key", b'{"runs": [{"command": "a"}], "rums": 1}')
    entry = '{"line": %d, "kind": "%s", "launch": 1, "cell": 3, "id": "a b"'
    control = ', "control": {"ranks": 2, "bytes_per_rank": 64, "copy_GBps": 1.5, "read_GBps": null}'
    write("journal", "text", journal(entry % (2, "begin"), entry % (3, "control") + control, entry % (4, "end")))
    write("journal", "cut", journal(entry % (2, "begin"), entry % (3, "end"))[:-7])
    for i in range(5):
        write("journal", f"change-{i}", b"\1" + struct.pack("<H", 1000 * i) + b'": null, "x": 1')
    for i, word in enumerate(("allreduce", "bf16", "avg", "1e3", "-1.5", "0.005", "64M", "64MiB", "1.5G", "64MB", "1e6", "0",
                              "9223372036854775807", "9223372036854775808", "8 EiB", "0x10", "1e-3")):
        write("sizes", f"{i:02d}", bytes([0 if i < 3 else 1 if i < 6 else 2]) + word.encode())
    run = '{"name": "a/8", "run_name": "a/8", "run_type": "%s", "aggregate_name": "%s", "real_time": 2.5, "time_unit": "us"}'
    write("foreign", "gbench", b'\0{"benchmarks": [' + (run % ("iteration", "")).encode() + b"]}")
    write("foreign", "gbench-median", b'\0{"benchmarks": [' + (run % ("aggregate", "median")).encode() + b"]}")
    write("foreign", "action-smaller", b'\1[{"name": "a", "unit": "ms", "value": 3}, {"name": "a", "unit": "ms", "value": 5}]')
    write("foreign", "action-bigger", b'\2[{"name": "a", "unit": "GB/s", "value": 3}]')
    row = b"1024 256 float sum -1 12.5 0.1 0.1 0 N/A N/A N/A N/A\n"
    write("foreign", "nccl-tests", b"\3# all-reduce, 2 ranks, algorithm ring, private memory\n" + row + row)
    write("foreign", "osu", b"\4# OSU MPI Allreduce Latency Test v7\n# Datatype: MPI_INT.\n# Size  Avg Latency(us)\n4  1.5\n")
    write("foreign", "osu-rate", b"\4# OSU MPI Bandwidth Test v7\n# Size  Bandwidth (MB/s)\n4  1.5 Pass\n")
    # magic, version, rank, size, port, token, context, has_secret, reserved, nonce; then the proof
    for name, mode, version, rank, secret in (
        ("no-secret", 0, 2, 1, 0), ("proven", 3, 2, 1, 1), ("unproven", 1, 2, 2, 1), ("in-parts", 7, 2, 3, 1),
        ("version", 0, 1, 1, 0), ("rank-0", 0, 2, 0, 0), ("secret-of-one", 1, 2, 1, 0),
    ):  # fmt: skip
        hello = b"ddphello" + struct.pack("<IIIIQQII", version, rank, 4, 4711, 0x1122334455667788, 0, secret, 0) + b"n" * 32
        write("hello", name, bytes([mode]) + hello + b"p" * 32)
    write("foreign", "hyperfine", b'\5{"results": [{"command": "./a 1", "median": 0.5}]}')


if __name__ == "__main__":
    main()
