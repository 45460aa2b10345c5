#!/usr/bin/python3
"""Tests that a run with an injected fault ends as documented, in time, and leaves nothing behind.

Usage: tests/fault/walk.py [--all] [--only TEXT]     prints TAP
Without --all it runs 50 fixed cases, chosen below; with --all every point and action, for the first and
the last of 2 to 4 ranks. --only: only cases whose name contains TEXT. FAULTY: a binary built with
FAULTS=1 (default: the one of `make faults`), which also lists the fault points.
"""
import json
import os
import re
import resource
import signal
import struct
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass

ROOT = os.path.realpath(os.path.join(os.path.dirname(__file__), os.pardir, os.pardir))
sys.path.insert(0, os.path.join(ROOT, "ci"))
import validate_json  # noqa: E402

TIMEOUT_S = 1  # --timeout of every run
SEEN_S = 0.050  # the supervisor must notice a death within this time
END_S = 2.0  # and the run must end within this time after that
DEADLINE_S = 30  # after this time the test ends a run itself
DEATHS = {"kill9": signal.SIGKILL, "segv": signal.SIGSEGV, "abort": signal.SIGABRT}
ACTIONS = [*DEATHS, "stop", "sleep", "errno", "flip"]

REDUCE = "allreduce --size 64K -n 3 -w 1 --placement in --check all"
TRAIN = "train --model singa-cnn --data images --epochs 1 --batch 8"
# The points that need another command than REDUCE. PASSAGES: later passages, so that some work is done.
COMMANDS = {"data-load": TRAIN, "train-step": TRAIN, "group": REDUCE + " --groups {groups}",
            "send": REDUCE + " --algorithm ring", "recv": REDUCE + " --algorithm ring"}
PASSAGES = {"exchange": 4, "barrier": 2, "wait": 7, "coll-enter": 3, "coll-leave": 2, "recv": 3,
            "collector-write": 2, "fork": 2}


@dataclass(frozen=True)
class Point:
    name: str
    code: int  # the errno value
    flips: bool
    home: bool


@dataclass(frozen=True)
class Case:
    point: Point
    action: str
    rank: int  # -1: the collector
    ranks: int

    @property
    def fault(self):
        # A flip must hit a message of the operation that is verified, which is the first.
        n = 1 if self.action == "flip" else PASSAGES.get(self.point.name, 1)
        value = "=200" if self.action == "sleep" else ""
        at = f"@{self.rank}" if self.rank >= 0 else ""
        return f"{self.point.name}:{n}:{self.action}{value}{at}"

    @property
    def command(self):
        groups = 2 if self.ranks % 2 == 0 else self.ranks
        return COMMANDS.get(self.point.name, REDUCE).format(groups=groups)

    def __str__(self):
        return f"{self.fault} of {self.ranks} ranks"


def points(binary):
    listed = json.loads(subprocess.run([binary, "list", "fault", "--json"], check=True,
                                       stdout=subprocess.PIPE).stdout)
    found = []
    for row in listed:
        how = re.search(r"; actions: errno \(the run ends with exit code (\d+)\)(, flip \(changes data\))?"
                        r"(; occurs in the collector)?$", row["summary"])
        found.append(Point(row["name"], int(how[1]), bool(how[2]), bool(how[3])))
    return found


def all_cases(all_points):
    for point in all_points:
        for action in ACTIONS:
            if action == "flip" and not point.flips:
                continue
            for ranks in (2, 3, 4):
                if point.home:
                    yield Case(point, action, -1, ranks)
                else:
                    yield Case(point, action, 0, ranks)
                    if point.name != "send-collector":
                        yield Case(point, action, ranks - 1, ranks)


def fixed_cases(all_points):
    """Each point gets a kill and an error, some points also the other actions. The ranks alternate."""
    others = {"flip": ["coll-leave", "send", "train-step"], "stop": ["coll-enter", "attach", "exit"],
              "sleep": ["wait", "fork", "send-collector"], "segv": ["coll-leave", "alloc"],
              "abort": ["exchange"]}
    wanted = [(p, a) for p in all_points for a in ("kill9", "errno")]
    wanted += [(p, a) for a, names in others.items() for p in all_points if p.name in names]
    for i, (point, action) in enumerate(wanted):
        ranks = 2 + i % 3
        last = i // 2 % 2 == 1 and point.name != "send-collector"
        yield Case(point, action, -1 if point.home else ranks - 1 if last else 0, ranks)


def write_images(folder):
    """Writes IDX files with 48 + 24 images of 28 x 28, on which training takes little time."""
    os.mkdir(folder)
    for name, n in ("train", 48), ("t10k", 24):
        pixels = bytes((i * 7919 >> 3) % 256 for i in range(n * 784))
        with open(f"{folder}/{name}-images-idx3-ubyte", "wb") as file:
            file.write(struct.pack(">IIII", 2051, n, 28, 28) + pixels)
        with open(f"{folder}/{name}-labels-idx1-ubyte", "wb") as file:
            file.write(struct.pack(">II", 2049, n) + bytes(i % 10 for i in range(n)))


def session_members(session):
    """The processes of the session, without zombies of other parents."""
    members = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/stat", encoding="latin-1") as file:
                fields = file.read().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[3]) == session and fields[0] != "Z":
            members.append(int(pid))
    return members


def shm_names():
    """The names in /dev/shm, except those of MPI libraries, which other runs may use."""
    return {name for name in os.listdir("/dev/shm")
            if not name.startswith(("vader_segment", "mpich", "sm_segment", "ucx_shm"))}


class Run:
    """One run of the binary with a fault: its exit code, and each line of stderr with its time."""

    def __init__(self, binary, case):
        arguments = [binary, *case.command.split(), "--ranks", str(case.ranks),
                     "--timeout", str(TIMEOUT_S), "--json", "out.json"]
        env = {k: v for k, v in os.environ.items() if not k.startswith(("OMPI_", "PMI", "SLURM"))}
        self.lines = []
        process = subprocess.Popen(arguments, env=env | {"DDPBENCH_FAULT": case.fault},
                                   stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                   stderr=subprocess.PIPE, start_new_session=True)
        ending = threading.Timer(DEADLINE_S, os.killpg, (process.pid, signal.SIGKILL))
        ending.start()
        if case.rank < 0 and case.action == "stop":
            # The collector stops itself, as after Ctrl-Z; when continued it must work as before.
            os.waitid(os.P_PID, process.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)
            time.sleep(0.3)
            os.kill(process.pid, signal.SIGCONT)
        for line in process.stderr:
            self.lines.append((time.monotonic(), line.decode(errors="replace").rstrip()))
        self.code = process.wait()
        self.ended = time.monotonic()
        ending.cancel()
        process.stderr.close()
        self.left = session_members(process.pid)
        for _ in range(100):  # ranks end shortly after a killed parent
            if not self.left:
                break
            time.sleep(0.01)
            self.left = session_members(process.pid)

    def find(self, pattern):
        """Returns (time, match) of the first line that matches."""
        for when, line in self.lines:
            match = re.search(pattern, line)
            if match:
                return when, match
        raise AssertionError(f"nothing on stderr matches '{pattern}'")


def seconds(text):
    number, unit = text.split()
    return float(number) * {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0}[unit]


def expect(condition, what):
    if not condition:
        raise AssertionError(what)


class Late(AssertionError):
    """A run took too long. Another program may have had the processor, so the case is run once more."""


def expect_in_time(condition, message):
    if not condition:
        raise Late(message)


def judge_seen(run, rank):
    """Checks that the supervisor noticed the death in time, and returns when."""
    when, match = run.find(rf"rank {rank}: injected fault '.*', seen after (\S+ \S+)$")
    expect_in_time(seconds(match[1]) < SEEN_S, f"seen after {match[1]}")
    return when


def judge_death(run, case):
    number = DEATHS[case.action]
    if case.rank < 0:
        expect(run.code == -number, f"exit {run.code}, not by signal {number}")
        return
    expect(run.code == 13, f"exit {run.code}, not 13")
    seen = judge_seen(run, case.rank)
    run.find(rf"rank {case.rank} \(pid \d+, host [^)]*\) was killed by signal {number} ")
    expect_in_time(run.ended - seen < END_S, f"ended {run.ended - seen:.3f} s after it was seen")


def judge_stop(run, case):
    if case.rank < 0:
        expect(run.code == 0, f"exit {run.code}, though it continued")
        return
    expect(run.code == 13, f"exit {run.code}, not 13")
    seen = judge_seen(run, case.rank)
    run.find(rf"rank {case.rank} \(pid \d+, host [^)]*\) was stopped by signal 19 .*"
             r"\b1 s\b")
    run.find(rf"error: rank {case.rank} .* did not continue within 1 s")
    took = run.ended - seen
    expect(took > TIMEOUT_S - 0.2, f"ended {took:.3f} s after the stop")
    expect_in_time(took < TIMEOUT_S + 1, f"ended {took:.3f} s after the stop")


def judge_flip(run, case):
    expect(run.code == 11, f"exit {run.code}, not 11")
    if case.point.name == "train-step":
        run.find(rf"parameters differ after step \d+: the hash of rank 0 is [0-9a-f]+, but that of rank \d+")
    elif case.point.name == "coll-leave":
        run.find(rf"wrong data: rank {case.rank}, element \d+ .*xor 0x")
    else:
        run.find(r"wrong data: rank \d+, element \d+ .*xor 0x")


def judge_code(run, case):
    expect(run.code == case.point.code, f"exit {run.code}, not {case.point.code}")
    # If one rank cannot allocate registered memory, the first rank that learns of it reports the error.
    run.find(rf"error: .*(Input/output error|rank {case.rank} cannot allocate)")


def judge_sleep(run, case):
    expect(run.code == 0, f"exit {run.code}, though it slept less than the deadline")


JUDGES = {"stop": judge_stop, "sleep": judge_sleep, "errno": judge_code, "flip": judge_flip}


def status_due(case):
    """Returns the expected status of the document, or None if the run had not begun."""
    if case.action == "sleep" or (case.rank < 0 and case.action == "stop"):
        return "complete"
    if case.point.name == "data-load":
        return None
    return "failed" if case.action == "flip" else "partial"


def judge_document(case, validator):
    due = status_due(case)
    if due is None:
        expect(not os.path.exists("out.json"), "a document of a run that had not begun")
        return
    with open("out.json", "rb") as file:
        raw = file.read()
    wrong = validate_json.errors_of(raw, validator)
    expect(not wrong, f"out.json: {wrong}")
    status = json.loads(raw)["status"]
    expect(status == due, f"the document says {status}, not {due}")


def judge(case, binary, validator):
    before = shm_names()
    run = Run(binary, case)
    try:
        JUDGES.get(case.action, judge_death)(run, case)
        judge_document(case, validator)
        expect(not run.left, f"processes left: {run.left}")
        expect(shm_names() <= before, f"left in /dev/shm: {shm_names() - before}")
        expect(not any("never reached" in line for _, line in run.lines), "the fault was missed")
        # A collector that is killed while it writes leaves a temporary file.
        left = [n for n in os.listdir() if n.startswith(".out.json")]
        expect(not left or (case.rank < 0 and case.action in DEATHS), f"files left: {left}")
    except AssertionError as problem:
        said = "".join(f"\n#   {line}" for _, line in run.lines)
        raise type(problem)(f"{problem}; exit {run.code}, said:{said}") from None


def run_case(case, binary, validator):
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        if case.command.startswith("train"):
            write_images("images")
        try:
            judge(case, binary, validator)
        finally:
            os.chdir("/")


def main(arguments):
    usual = os.path.dirname(os.path.realpath(os.path.join(ROOT, "build/ddpbench")))
    binary = os.path.realpath(os.environ.get("FAULTY", usual + "-faults/ddpbench"))
    if not os.access(binary, os.X_OK):
        print("1..0 # SKIP no build with FAULTS=1 (`make faults`)")
        return 0
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    only = arguments[arguments.index("--only") + 1] if "--only" in arguments else ""
    choose = all_cases if "--all" in arguments else fixed_cases
    cases = [c for c in choose(points(binary)) if only in str(c)]
    with open(validate_json.SCHEMA, encoding="utf-8") as file:
        validator = validate_json.jsonschema.Draft202012Validator(json.load(file))
    print(f"1..{len(cases)}", flush=True)
    failed = 0
    for i, case in enumerate(cases, 1):
        try:
            try:
                run_case(case, binary, validator)
            except Late:
                run_case(case, binary, validator)
            print(f"ok {i} - {case}", flush=True)
        except AssertionError as problem:
            failed += 1
            print(f"not ok {i} - {case}\n# {problem}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
