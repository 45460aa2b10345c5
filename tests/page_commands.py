#!/usr/bin/env python3
"""Runs the commands that a page shows: page_commands.py PAGE FOLDER.

FOLDER is prepared for them: build/ddpbench, old.json, new.json and so on lie there. A command is a
line of an indented or `sh` block, or code in a sentence, that begins with ddpbench, build/ddpbench,
mpiexec or make. Commands with a placeholder (a word in capitals, or "...") are not run. Measurements
are shortened: they get `-n 1` or `--max-steps`, 64K is the largest size, training data are small,
mpiexec starts 2 ranks, a sweep is a dry run, a pair of a gate is one run of each command, and a self-test has
one gate. If only a command of ddpbench is named, its help is printed. Of make only the target is checked.
Prints the commands that fail, and their number.
"""
import os
import re
import shlex
import subprocess
import sys

COLLECTIVES = ("allreduce reduce-scatter all-gather broadcast reduce all-to-all all-to-all-v all-gather-v reduce-scatter-v gather scatter send-recv barrier").split()
BEGIN = re.compile(r"(build/)?ddpbench |mpiexec |make |torchrun ")
PLACEHOLDER = re.compile(r"\.\.\.|(^|[ ='])[A-Z]{2,}\b(?!=)|'\./(old|new|A|B)\b|\bPREFIX=|[0-9]\|[0-9]")


def commands(page):
    """Yields the commands of a page, without comments."""
    fence = None
    lines = open(page, encoding="utf-8").read().split("\n")
    for i, line in enumerate(lines):
        if line.startswith("```"):
            fence = None if fence is not None else line[3:]
            continue
        code = fence == "sh" or (fence is None and line.startswith("    "))
        if code:
            text = line.strip()
            while text.endswith("\\"):
                i += 1
                text = text[:-1] + lines[i].strip()
            if BEGIN.match(text):
                yield re.sub(r"\s+#\s.*", "", text)
        elif fence is None:
            paragraph = " ".join(lines[i:i + 2])
            for found in re.finditer(r"`([^`]+)`", paragraph):
                if found.start() < len(line) and BEGIN.match(found[1]) and ("ddpbench" in found[1] or found[1].startswith("make ")):
                    yield found[1]


def shorten(text):
    """Returns the words of a short form of the command, and the exit codes that it may have."""
    words = shlex.split(text.split(" || ")[0])
    good = [0]
    if words[0] == "torchrun":
        # Without torchrun, the first rank's command line is run as one process.
        words = words[words.index("build/ddpbench"):]
        words += ["--backend", "nccl"]
    if words[0] == "mpiexec":
        words[words.index("-n") + 1] = "2"
    at = next(i for i, word in enumerate(words) if word.endswith("ddpbench"))
    command, more = words[at + 1], []
    if "-h" in words or "--help" in words or "--dry-run" in words:
        return words, good
    if at + 2 == len(words) and command not in COLLECTIVES + ["doctor", "list", "help", "train"]:
        return words + ["-h"], good
    if "--selftest" in words:
        base = shlex.join(words[:at + 1] + ["allreduce", "--ranks", "1", "--backend", "self", "--size", "64K", "-n", "9", "-q"])
        return words[:at + 2] + ["--selftest", "--gates", "1,0", "--pairs", "6", "--runs", "1", "--base", base], [0, 10, 12]
    if command in COLLECTIVES:
        words = [re.sub(r"^[0-9]+[MG]$", "64K", word) for word in words]
        more = ["-n", "1", "-w", "0"] if "-n" not in words[at:] else []
        if not {"--size", "-b", "-e"} & set(words):
            more += ["-e", "1K"]
    if command == "train":
        if "--images" in words:
            words[words.index("--images") + 1] = "64"
        more = ["--max-steps", "2"]
    if command == "kernels":
        words = [re.sub(r"^[0-9]+[MG]$", "64K", word) for word in words]
        more = ["--benchmark_min_time=0.001"]
    if command == "pays":
        words = [re.sub(r"^[0-9]+M$", "64K", word) for word in words]
        more = ["--max-time", "0.02"]
    if command == "sweep":
        more = ["--dry-run"]
    if command == "gate":
        words = [re.sub(r" -n [0-9]+\b", " -n 6", re.sub(r"\b[0-9]+[MG]\b", "64K", word)) for word in words]
        more = ["--runs", "1"] if "--runs" not in words else []
    if command in ("gate", "compare"):
        good = [0, 10, 12]
    if command == "doctor" or "nccl" in words or "cuda" in words:
        good = [0, 69]
    return words + more, good


def main():
    page, folder = os.path.abspath(sys.argv[1]), sys.argv[2]
    env = dict(os.environ, PATH=os.path.abspath(folder + "/build") + ":" + os.environ["PATH"])
    failed, count = 0, 0
    for text in dict.fromkeys(commands(page)):
        if PLACEHOLDER.search(text) or "<" in text:
            continue
        if text.split()[0] == "make":
            # CUDA=0: the target is the same, and make looks for no toolkit.
            root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
            words, good = ["env", "CUDA=0", "make", "-n", "-C", root] + shlex.split(text)[1:], [0]
        else:
            words, good = shorten(text)
        count += 1
        done = subprocess.run(["timeout", "60", *words], cwd=folder, env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True)
        if done.returncode not in good:
            failed += 1
            print(f"{text}\n  ran as: {shlex.join(words)}\n  exit code {done.returncode}: {done.stderr[-600:]}")
    print(f"{count} commands, {failed} failed")
    sys.exit(1 if failed or not count else 0)


if __name__ == "__main__":
    main()
