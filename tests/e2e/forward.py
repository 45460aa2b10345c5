#!/usr/bin/python3
"""Connects two network namespaces by a link that delays or loses packets, where the kernel has no netem.

Usage: forward.py NETNS INTERFACE NETNS INTERFACE [--delay-us N] [--loss FRACTION] [--peer ADDRESS]
Makes the two interfaces (TAP devices) and prints "ready". Delay and loss apply to both directions and,
with --peer, only to the packets from and to this IPv4 address. Runs until it is killed. Needs root.
"""
import argparse
import ctypes
import fcntl
import heapq
import os
import random
import select
import socket
import struct
import time

TUNSETIFF, IFF_TAP, IFF_NO_PI, CLONE_NEWNET = 0x400454CA, 2, 0x1000, 0x40000000


def open_tap(namespace, name):
    with open(f"/run/netns/{namespace}", "rb") as file:
        if ctypes.CDLL(None, use_errno=True).setns(file.fileno(), CLONE_NEWNET) != 0:
            raise OSError(ctypes.get_errno(), "setns")
    tap = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(tap, TUNSETIFF, struct.pack("16sH22x", name.encode(), IFF_TAP | IFF_NO_PI))
    return tap


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("end", nargs=4)
    parser.add_argument("--delay-us", type=float, default=0)
    parser.add_argument("--loss", type=float, default=0)
    parser.add_argument("--peer")
    args = parser.parse_args()
    taps = [open_tap(args.end[0], args.end[1]), open_tap(args.end[2], args.end[3])]
    other = {taps[0]: taps[1], taps[1]: taps[0]}
    peer = socket.inet_aton(args.peer) if args.peer else None
    waiting, count = [], 0
    print("ready", flush=True)
    while True:
        now = time.monotonic()
        while waiting and waiting[0][0] <= now:
            _, _, tap, frame = heapq.heappop(waiting)
            try:
                os.write(tap, frame)
            except OSError:  # the interface is down, or its queue is full
                pass
        wait = max(waiting[0][0] - now, 0) if waiting else None
        for tap in select.select(taps, [], [], wait)[0]:
            try:
                frame = os.read(tap, 65536)
            except OSError:
                continue
            count += 1
            is_ip = frame[12:14] == b"\x08\x00"
            chosen = is_ip and (peer is None or peer in (frame[26:30], frame[30:34]))
            if chosen and random.random() < args.loss:
                continue
            due = time.monotonic() + (args.delay_us / 1e6 if chosen else 0)
            heapq.heappush(waiting, (due, count, other[tap], frame))


main()
