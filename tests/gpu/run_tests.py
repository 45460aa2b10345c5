#!/usr/bin/env python3
"""Runs the GPU's tests and writes their results. Usage: run_tests.py [--limit SECONDS] --out FILE PROGRAM...

Each program prints TAP. All programs together have --limit seconds (default 480). A program that still
runs then is ended; it and the programs that have not started count as failed. Exits with 1 when a test
fails. Without a GPU the results say that the tests were skipped, and why.
"""
import argparse
import json
import os
import re
import signal
import subprocess
import sys
import time


def run(program, seconds):
    """Returns the output of a program, and an error if it did not end well, otherwise None."""
    command = ["bats", "--tap", program] if program.endswith(".bats") else [program]
    env = dict(os.environ, CMOCKA_MESSAGE_OUTPUT="TAP")
    if seconds <= 0:
        return "", "not run: no time was left"
    try:
        ran = subprocess.Popen(command, env=env, text=True, errors="replace", stdin=subprocess.DEVNULL,
                               stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True)
    except OSError as e:
        return "", f"cannot start {command[0]}: {e.strerror}"
    try:
        text, _ = ran.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        os.killpg(ran.pid, signal.SIGKILL)
        text, _ = ran.communicate()
        return text, f"ended after {seconds:.0f} s: no time was left"
    return text, f"ended with {ran.returncode}" if ran.returncode else None


def rows_of(text):
    """Returns the tests, with the reasons of those skipped: bats prints it in the same line, cmocka in the
    next."""
    rows = []
    for line in text.splitlines():
        match = re.match(r"(not )?ok \d+\s+(?:- )?(.*)", line)
        if match:
            skip = re.match(r"(.*?)\s*# skip\b\s*(.*)", match[2], re.I)
            row = {"test": match[2], "result": "failed" if match[1] else "passed", "reason": None}
            if skip:
                row = {"test": skip[1] or skip[2], "result": "skipped", "reason": skip[1] and skip[2] or None}
            rows.append(row)
        elif line.startswith("# ") and rows and rows[-1]["result"] == "skipped" and not rows[-1]["reason"]:
            rows[-1]["reason"] = line[2:]
    return rows


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--limit", type=float, default=480)
    parser.add_argument("--out", required=True)
    parser.add_argument("programs", nargs="+")
    args = parser.parse_args()
    rows, until = [], time.monotonic() + args.limit
    for program in args.programs:
        text, wrong = run(program, until - time.monotonic())
        print(text, end="", flush=True)
        found = rows_of(text)
        if not found or (wrong and not any(r["result"] == "failed" for r in found)):
            found.append({"test": "(all)", "result": "failed", "reason": wrong or "no test ran"})
            print(f"not ok - {os.path.basename(program)}: {found[-1]['reason']}")
        rows += [{"file": os.path.basename(program), **row} for row in found]
    count = {r: sum(row["result"] == r for row in rows) for r in ("passed", "failed", "skipped")}
    with open(args.out, "w") as file:
        json.dump({"count": count, "tests": rows}, file, indent=1)
        file.write("\n")
    print(f"{count['passed']} passed, {count['failed']} failed, {count['skipped']} skipped; written to {args.out}")
    sys.exit(1 if count["failed"] else 0)


if __name__ == "__main__":
    main()
