#!/usr/bin/env python3
"""Runs a command on a pseudo terminal and prints what a person sees: the screen, and above it the lines that have left it.

A line that was broken because it is longer than the terminal begins with "WRAPPED: ". Colours are dropped or, with
--colors, shown as <33>. The exit code is that of the command.

Usage: terminal.py [--columns N] [--rows N] [--term NAME] [--colors] [--act CODE] -- COMMAND...
CODE is Python and runs after each chunk of output. It knows `seen` (the output until now), `pid`, `screen`,
`resize(columns, rows)` and `state`, an empty dictionary.
"""
import argparse
import fcntl
import os
import pty
import re
import struct
import sys
import termios

# Text, or an escape sequence: the letter at its end says what it does.
TOKEN = re.compile(r"\x1b\[([0-9;]*)([A-Za-z])|\r\n|[\r\n]|[^\x1b\r\n]+")


class Screen:
    """Lines of (character, style). The last `rows` lines are on the screen; the cursor cannot move above them."""

    def __init__(self, columns, rows):
        self.columns, self.rows = columns, rows
        self.lines, self.wrapped, self.row, self.column, self.style = [[]], [False], 0, 0, ""

    def next_line(self, wrapped):
        self.row += 1
        self.column = 0
        if self.row == len(self.lines):
            self.lines.append([])
            self.wrapped.append(wrapped)

    def put(self, text):
        for c in text:
            if self.column >= self.columns:
                self.next_line(True)
            line = self.lines[self.row]
            line += [(" ", "")] * (self.column - len(line))
            line[self.column:self.column + 1] = [(c, self.style)]
            self.column += 1

    def feed(self, text):
        for m in TOKEN.finditer(text):
            argument, code = m.group(1), m.group(2)
            if code == "A":
                self.row = max(0, len(self.lines) - self.rows, self.row - int(argument or 1))
            elif code == "J":
                del self.lines[self.row][self.column:], self.lines[self.row + 1:], self.wrapped[self.row + 1:]
            elif code == "K":
                del self.lines[self.row][self.column:]
            elif code == "m":
                self.style = "" if argument in ("", "0") else argument
            elif code:
                raise SystemExit(f"terminal.py: unexpected escape code {m.group(0)!r}")
            elif m.group(0) == "\r":
                self.column = 0
            elif m.group(0) in ("\n", "\r\n"):
                self.next_line(False)
            else:
                self.put(m.group(0))

    def text(self, colors=False):
        texts = []
        for line, wrapped in zip(self.lines, self.wrapped):
            text, style = "WRAPPED: " if wrapped else "", ""
            for c, s in line:
                text += f"<{s}>" if colors and s != style else ""
                text, style = text + c, s
            texts.append(text.rstrip())
        while texts and not texts[-1]:
            texts.pop()
        return texts


def run(argv, columns=80, rows=24, term="xterm-256color", colors=False, act=None):
    """Returns the lines and the exit code."""
    screen = Screen(columns, rows)
    ready, go = os.pipe()
    pid, fd = pty.fork()
    if pid == 0:
        os.read(ready, 1)  # the size is set
        os.environ["TERM"] = term
        os.execvp(argv[0], argv)

    def resize(new_columns, new_rows):
        screen.columns, screen.rows = new_columns, new_rows
        fcntl.ioctl(fd, termios.TIOCSWINSZ, struct.pack("HHHH", new_rows, new_columns, 0, 0))

    resize(columns, rows)
    os.write(go, b"x")
    names = {"seen": "", "pid": pid, "resize": resize, "state": {}, "os": os, "screen": screen}
    code = compile(act, "--act", "exec") if act else None
    rest = b""
    while True:
        try:
            rest += os.read(fd, 65536)
        except OSError:  # the command and its children have ended
            break
        # An escape code or a character at the end may be incomplete.
        cut = re.search(rb"(\x1b(\[[0-9;]*)?|[\xc0-\xff][\x80-\xbf]{0,2})?\Z", rest).start()
        text, rest = rest[:cut].decode(errors="replace"), rest[cut:]
        screen.feed(text)
        names["seen"] += text
        if code:
            exec(code, names)
    _, status = os.waitpid(pid, 0)
    return screen.text(colors), os.waitstatus_to_exitcode(status)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--columns", type=int, default=80)
    parser.add_argument("--rows", type=int, default=24)
    parser.add_argument("--term", default="xterm-256color")
    parser.add_argument("--colors", action="store_true")
    parser.add_argument("--act")
    parser.add_argument("command", nargs="+")
    o = parser.parse_args()
    lines, code = run(o.command, o.columns, o.rows, o.term, o.colors, o.act)
    print("\n".join(lines))
    sys.exit(code if code >= 0 else 128 - code)


if __name__ == "__main__":
    main()
