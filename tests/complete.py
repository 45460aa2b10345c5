#!/usr/bin/env python3
"""Lets a real shell complete the last word of a command line, and prints every completion on a line of its own.

bash and zsh run on a pseudo terminal: the words are typed, a key inserts all completions, and the finished command
line runs a function in place of ddpbench. fish has a command for this. If there is no completion, the word is printed
as it is.

Usage: complete.py bash|zsh|fish SCRIPT LINE
"""
import os
import pty
import select
import shutil
import subprocess
import sys
import tempfile
import time

PROMPT = b"COMPLETE>"
SETUP = {
    "bash": """PS1='COMPLETE>'
bind '"\\C-xa": insert-completions'
. "$SCRIPT"
ddpbench() { printf '%s\\n' "$@" >"$RESULT.new"; mv "$RESULT.new" "$RESULT"; }
""",
    "zsh": """PS1='COMPLETE>'
fpath=("$HOME" $fpath)
autoload -Uz compinit && compinit -u -D
_every() { _main_complete; compstate[insert]=all }
zle -C every complete-word _every
bindkey '^Xa' every
ddpbench() { printf '%s\\n' "$@" >"$RESULT.new"; mv "$RESULT.new" "$RESULT"; }
""",
}


def read_until(fd, done, deadline):
    seen = b""
    while not done(seen):
        if time.monotonic() > deadline:
            raise SystemExit(f"complete.py: no answer; the shell printed {seen!r}")
        if select.select([fd], [], [], 0.05)[0]:
            seen += os.read(fd, 65536)
    return seen


def start(shell, home):
    if shell == "bash":
        os.execlp("bash", "bash", "--noprofile", "--rcfile", os.path.join(home, "rc"), "-i")
    os.execlp("zsh", "zsh", "-d", "-i")


def on_terminal(shell, script, line, home):
    result = os.path.join(home, "result")
    with open(os.path.join(home, "rc" if shell == "bash" else ".zshrc"), "w", encoding="utf-8") as file:
        file.write(SETUP[shell])
    shutil.copy(script, os.path.join(home, "_ddpbench"))
    pid, fd = pty.fork()
    if pid == 0:
        os.environ.update(HOME=home, ZDOTDIR=home, SCRIPT=os.path.join(home, "_ddpbench"), RESULT=result,
                          TERM="dumb", LC_ALL="C")
        start(shell, home)
    deadline = time.monotonic() + 60
    read_until(fd, lambda seen: PROMPT in seen, deadline)
    os.write(fd, line.encode() + b"\x18a\r")
    read_until(fd, lambda seen: os.path.exists(result), deadline)
    os.close(fd)
    os.waitpid(pid, 0)
    with open(result, encoding="utf-8") as file:
        words = file.read().splitlines()
    return words[len(line.split(" ")) - 2:]


def main():
    shell, script, line = sys.argv[1:]
    if shell == "fish":
        text = subprocess.run(["fish", "--no-config", "-c", "source $argv[1]; complete -C $argv[2]", script, line],
                              check=True, capture_output=True, text=True).stdout
        completions = [match.split("\t")[0] for match in text.splitlines()]
    else:
        with tempfile.TemporaryDirectory() as home:
            completions = on_terminal(shell, script, line, home)
    print("\n".join(completions))


main()
