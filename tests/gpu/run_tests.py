#!/usr/bin/env python3
"""Runs the GPU's tests and writes what they said. Usage: run_tests.py --out FILE PROGRAM...

Each program prints TAP. Exits 1 when a test fails; a GPU that is not there is said, not hidden.
"""
import json
import re
import subprocess
import sys
import os


def main():
    out, programs = sys.argv[2], sys.argv[3:]
    rows = []
    for program in programs:
        command = ["bats", "--tap", program] if program.endswith(".bats") else [program]
        env = dict(os.environ, CMOCKA_MESSAGE_OUTPUT="TAP")
        ran = subprocess.run(command, env=env, text=True, stdout=subprocess.PIPE,
                             stderr=subprocess.STDOUT, timeout=420)
        print(ran.stdout, end="")
        found = 0
        for line in ran.stdout.splitlines():
            match = re.match(r"(not )?ok (\d+)\s+(?:- )?(# SKIP )?(.*)", line, re.I)
            if match:
                found += 1
                skipped = bool(match[3]) or "# skip" in line.lower()
                rows.append({"file": os.path.basename(program), "test": match[4],
                             "result": "skipped" if skipped else "failed" if match[1] else "passed"})
        if found == 0 or (ran.returncode and not any(r["result"] == "failed" for r in rows)):
            rows.append({"file": os.path.basename(program), "test": "(all)", "result": "failed"})
    count = {r: sum(row["result"] == r for row in rows) for r in ("passed", "failed", "skipped")}
    with open(out, "w") as file:
        json.dump({"count": count, "tests": rows}, file, indent=1)
        file.write("\n")
    print(f"{count['passed']} passed, {count['failed']} failed, {count['skipped']} skipped; written to {out}")
    sys.exit(1 if count["failed"] else 0)


if __name__ == "__main__":
    main()
