#!/usr/bin/env python3
"""Mutation tests: does a wrong edit of an algorithm or a kernel make a test fail?

    tests/mutants/mutants.py [WORD...]    run the mutants whose name contains a WORD, or all of them
    tests/mutants/mutants.py --check      only check that every edit of the list fits the tree

list.txt describes the mutants. The script copies the source tree to a temporary folder and builds
it once, without MPI and CUDA. For each mutant it applies the edit there, builds what has changed,
runs the unit tests and the command lines of the mutant, and reverts the edit. A unit test finds a
mutant if it fails. A command line finds a mutant if ddpbench ends with a code other than 0, for
example 11 for wrong data. Equivalent mutants are not run, but their old text must exist.

The script fails if the unit tests miss a mutant, or if the command lines find fewer than 95 %.
"""
import collections
import os
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
OUT = "build/mutants"
CLI_SHARE = 0.95
# The number of iterations is fixed, to save time. The verification is that of the defaults.
CLI_OPTIONS = ["-n", "10", "-T", "5", "-q"]
UNIT_TIMEOUT, CLI_TIMEOUT, BUILD_TIMEOUT = 60, 60, 900
KEYS = ("file", "old", "new", "unit", "run", "equivalent")


class Mutant:
    def __init__(self, name):
        self.name = name
        self.values = collections.defaultdict(list)

    def one(self, key):
        return self.values[key][0]


def fail(message):
    sys.exit("mutants: " + message)


def read_list(path):
    """Reads the mutants. A text may continue on lines that begin with '|'."""
    mutants, key = [], None
    with open(path, encoding="utf-8") as lines:
        for number, line in enumerate(lines, 1):
            line = line.rstrip("\n")
            if not line.strip() or line.startswith("#"):
                continue
            word, _, rest = line.partition(" ")
            if word == "mutant":
                mutants.append(Mutant(rest.strip()))
            elif word == "|" and key in ("old", "new"):
                mutants[-1].values[key][-1] += "\n" + rest
            elif word in KEYS and mutants:
                is_text = word in ("old", "new")
                mutants[-1].values[word].append(rest if is_text else rest.strip())
                key = word
            else:
                fail(f"{path}:{number}: '{word}' must be one of: mutant, {', '.join(KEYS)}")
    return mutants


def edited(root, mutant):
    """Returns the path of the mutant's file, its text and its edited text."""
    path = os.path.join(root, mutant.one("file"))
    with open(path, encoding="utf-8") as f:
        text = f.read()
    old, new = mutant.one("old"), "\n".join(mutant.values["new"][:1])
    if text.count(old) != 1:
        fail(f"'{mutant.name}': the old text must occur once in {mutant.one('file')}, "
             f"but occurs {text.count(old)} times")
    return path, text, text.replace(old, new)


def check(mutants):
    """Checks the whole list before anything is built."""
    names = [m.name for m in mutants]
    for m in mutants:
        need = ("file", "old") if m.values["equivalent"] else ("file", "old", "new", "unit", "run")
        for key in need:
            if not m.values[key]:
                fail(f"'{m.name}' must have a line '{key}'")
        if names.count(m.name) != 1:
            fail(f"'{m.name}' is listed twice")
        edited(ROOT, m)


def copy_tree(to):
    listed = subprocess.run(["git", "ls-files", "-co", "--exclude-standard", "-z"], cwd=ROOT,
                            check=True, stdout=subprocess.PIPE).stdout.decode().split("\0")
    for name in filter(None, listed):
        source, target = os.path.join(ROOT, name), os.path.join(to, name)
        if os.path.isfile(source) and not os.path.islink(source):
            os.makedirs(os.path.dirname(target), exist_ok=True)
            shutil.copy2(source, target)


def run(command, cwd, timeout, variables=None):
    """Returns the exit code; 124 after `timeout` seconds."""
    quiet = {s: subprocess.DEVNULL for s in ("stdin", "stdout", "stderr")}
    child = subprocess.Popen(command, cwd=cwd, env={**os.environ, **(variables or {})},
                             start_new_session=True, **quiet)
    try:
        return child.wait(timeout)
    except subprocess.TimeoutExpired:
        os.killpg(child.pid, 9)
        child.wait()
        return 124


def build(tree, units):
    targets = [f"{OUT}/ddpbench"] + [f"{OUT}/tests/{u}" for u in sorted(units)]
    command = ["make", "-s", "-j2", "MPI=0", "CUDA=0", "OPT=-O1 -g", f"O={OUT}"] + targets
    done = subprocess.run(command, cwd=tree, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          timeout=BUILD_TIMEOUT, check=False)
    if done.returncode != 0:
        fail("the build failed:\n" + done.stdout.decode(errors="replace")[-3000:])


def found_by_unit(tree, mutant):
    return any(run([f"{OUT}/tests/{u}"], tree, UNIT_TIMEOUT) != 0 for u in mutant.values["unit"])


def run_cli(tree, line):
    words = shlex.split(line)
    variables = dict(w.split("=", 1) for w in words if "=" in w and w.split("=")[0].isupper())
    command = [f"{OUT}/ddpbench", *words[len(variables):], *CLI_OPTIONS]
    return run(command, tree, CLI_TIMEOUT, variables)


def found_by_cli(tree, mutant):
    return any(run_cli(tree, line) != 0 for line in mutant.values["run"])


def run_one(tree, mutant):
    path, text, changed = edited(tree, mutant)
    began = time.monotonic()
    with open(path, "w", encoding="utf-8") as f:
        f.write(changed)
    try:
        build(tree, mutant.values["unit"])
        unit, cli = found_by_unit(tree, mutant), found_by_cli(tree, mutant)
    finally:
        with open(path, "w", encoding="utf-8") as f:
            f.write(text)
    words = ("found" if unit else "MISSED", "found" if cli else "MISSED")
    print(f"{mutant.name:44} unit {words[0]:7} command line {words[1]:7} "
          f"{time.monotonic() - began:4.0f} s", flush=True)
    return unit, cli


def run_unedited(tree, mutants):
    """Without an edit, every unit test and every command line must pass."""
    build(tree, {u for m in mutants for u in m.values["unit"]})
    for unit in sorted({u for m in mutants for u in m.values["unit"]}):
        if run([f"{OUT}/tests/{unit}"], tree, UNIT_TIMEOUT) != 0:
            fail(f"without a mutant, {unit} fails")
    for line in sorted({r for m in mutants for r in m.values["run"]}):
        if run_cli(tree, line) != 0:
            fail(f"without a mutant, this command line fails: {line}")


def main():
    words = sys.argv[1:]
    mutants = read_list(os.path.join(HERE, "list.txt"))
    check(mutants)
    if words == ["--check"]:
        return
    equivalent = [m for m in mutants if m.values["equivalent"]]
    chosen = [m for m in mutants if m not in equivalent
              and (not words or any(w in m.name for w in words))]
    if not chosen:
        fail("no mutant has " + " or ".join(f"'{w}'" for w in words) + " in its name")
    # Mutants of one file follow each other, because each file that changes is compiled again.
    chosen.sort(key=lambda m: m.one("file"))
    began = time.monotonic()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # removes the temporary folder
    tree = tempfile.mkdtemp(prefix="ddpbench-mutants-")
    try:
        copy_tree(tree)
        run_unedited(tree, chosen)
        results = [run_one(tree, m) for m in chosen]
    finally:
        shutil.rmtree(tree)
    unit, cli = sum(u for u, _ in results), sum(c for _, c in results)
    print(f"# {len(chosen)} mutants: unit tests find {unit}, command lines find {cli}; "
          f"{len(equivalent)} equivalent; {(time.monotonic() - began) / 60:.0f} min")
    sys.exit(0 if unit == len(chosen) and cli >= CLI_SHARE * len(chosen) else 1)


if __name__ == "__main__":
    main()
