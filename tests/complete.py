#!/usr/bin/env python3
"""Lets a real shell complete the last words of command lines. Reads command lines from stdin and prints for each the
sorted completions in one line.

bash and zsh run on a pseudo terminal: the words are typed, a key inserts all completions, and the finished command
line runs a function in place of ddpbench. fish has a command for this. If there is no completion, the word is printed
as it is.

Usage: complete.py bash|zsh|fish SCRIPT <LINES
"""
import os
import pty
import select
import shutil
import subprocess
import sys
import tempfile
import time

PROMPT, ANSWERED = b"COMPLETE>", b"ANSWERED"
SETUP = {
    "bash": """PS1='COMPLETE>'
bind '"\\C-xa": insert-completions'
. "$SCRIPT"
ddpbench() { printf '%s\\n' "$@" >"$RESULT"; echo ANSWERED; }
""",
    "zsh": """PS1='COMPLETE>'
fpath=("$HOME" $fpath)
autoload -Uz compinit && compinit -u -D
_every() { _main_complete; compstate[insert]=all }
zle -C every complete-word _every
bindkey '^Xa' every
ddpbench() { printf '%s\\n' "$@" >"$RESULT"; echo ANSWERED; }
""",
}


def read_until(fd, seen, done):
    """Returns `seen` with more of the shell's output, until done(parts). A part ends when a command line has run."""
    deadline = time.monotonic() + 60
    while not done(seen.split(ANSWERED)):
        if time.monotonic() > deadline:
            raise SystemExit(f"complete.py: no answer; the shell printed {seen!r}")
        if select.select([fd], [], [], 0.05)[0]:
            seen += os.read(fd, 65536)
    return seen


def start(shell, home):
    if shell == "bash":
        os.execlp("bash", "bash", "--noprofile", "--rcfile", os.path.join(home, "rc"), "-i")
    os.execlp("zsh", "zsh", "-d", "-i")


def on_terminal(shell, script, lines, home):
    """Yields the completions of each line."""
    result = os.path.join(home, "result")
    with open(os.path.join(home, "rc" if shell == "bash" else ".zshrc"), "w", encoding="utf-8") as file:
        file.write(SETUP[shell])
    shutil.copy(script, os.path.join(home, "_ddpbench"))
    pid, fd = pty.fork()
    if pid == 0:
        os.environ.update(HOME=home, ZDOTDIR=home, SCRIPT=os.path.join(home, "_ddpbench"), RESULT=result,
                          TERM="dumb", LC_ALL="C")
        start(shell, home)
    seen = b""
    for n, line in enumerate(lines):
        seen = read_until(fd, seen, lambda parts: len(parts) > n and PROMPT in parts[n])
        os.write(fd, line.encode() + b"\x18a\r")
        seen = read_until(fd, seen, lambda parts: len(parts) > n + 1)
        with open(result, encoding="utf-8") as file:
            words = file.read().splitlines()
        yield words[len(line.split(" ")) - 2:]
    os.close(fd)
    os.waitpid(pid, 0)


def in_fish(script, lines):
    """Yields the completions of each line."""
    for line in lines:
        text = subprocess.run(["fish", "--no-config", "-c", "source $argv[1]; complete -C $argv[2]", script, line],
                              check=True, capture_output=True, text=True).stdout
        yield [match.split("\t")[0] for match in text.splitlines()]


def main():
    shell, script = sys.argv[1:]
    lines = sys.stdin.read().splitlines()
    with tempfile.TemporaryDirectory() as home:
        for words in in_fish(script, lines) if shell == "fish" else on_terminal(shell, script, lines, home):
            print(*sorted(words))


main()
