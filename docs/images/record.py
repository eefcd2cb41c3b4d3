#!/usr/bin/env python3
"""Runs the commands of docs/images/demo.txt in a home directory that
tools/example/home.sh makes, and draws what they print on a terminal of 90 columns
as demo.svg.

    docs/images/record.py BIN >docs/images/demo.svg

BIN is the folder of the tools. What differs from run to run, as ids, dates, durations
and sizes, is drawn as fixed; so the same commands that print the same give the same
file, which a test compares.
"""
import html
import os
import pty
import re
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
MAKE_HOME = os.path.join(os.path.dirname(os.path.dirname(HERE)), "tools",
                         "example", "home.sh")
COLUMNS, LINE, WIDTH, MARGIN = 90, 18, 7.8, 16
# Seconds between two commands, and until the output of one.
READ_S, RUN_S = 2.5, 0.5

ID = re.compile(r"01[0-9a-f]{6}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-"
                r"[0-9a-f]{12}")
STYLE = re.compile(r"\x1b\[([\d;]*)m")
CLASSES = {"1": "bold", "2": "dim", "31": "red", "32": "green",
           "33": "yellow", "34": "blue", "35": "magenta", "36": "cyan"}


def fixed(text):
    """The text with what differs between runs replaced."""
    known = {"0199d1c4-7a30-7c52-9b1e-4f0a6d2c8e17": None}
    for match in ID.findall(text):
        if match not in known:
            known[match] = "01a20000-0000-7000-8000-%012d" % len(known)
            text = text.replace(match, known[match])
    # The size of a checkpoint has the length of its root's path.
    text = re.sub(r"(new contents?, )\d+ bytes", r"\g<1>336 bytes", text)
    # The days before this one, of which home.sh makes sessions.
    text = re.sub(r"\b\d d ago", "2 d ago", text)
    text = re.sub(r"\b(?!2026-03-)\d{4}-\d\d-\d\d(?= \d\d:\d\d)", "2026-11-20", text)
    return re.sub(r"\b\d+\.\d s\b", "0.0 s", text)


def run(command, environment, folder):
    """What a command prints: errors through a pipe, which has no progress,
    and the rest on a terminal."""
    master, terminal = pty.openpty()
    done = subprocess.Popen(
        ["bash", "-c", command], cwd=folder, env=environment,
        stdin=subprocess.DEVNULL, stdout=terminal, stderr=subprocess.PIPE)
    os.close(terminal)
    output = b""
    while True:
        try:
            part = os.read(master, 65536)
        except OSError:  # the last process closed the terminal
            part = b""
        if not part:
            break
        output += part
    errors = done.communicate()[1]
    os.close(master)
    if done.returncode != 0:
        sys.exit("record.py: %s: %s" % (command, errors.decode()))
    return (errors + output).decode().replace("\r", "")


def record(binaries):
    """Yields (command, printed text)."""
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([MAKE_HOME, folder], check=True)
        environment = {
            "PATH": binaries + ":/usr/bin:/bin", "HOME": folder, "TZ": "UTC",
            "LC_ALL": "C.UTF-8", "TERM": "xterm", "COLUMNS": str(COLUMNS),
            "PAGER": ""}
        with open(os.path.join(HERE, "demo.txt"), encoding="utf-8") as file:
            for command in file.read().splitlines():
                printed = run(command, environment, folder)
                yield command, printed.replace(folder, "/home/you")


def spans(line):
    """The line as SVG, with its colours."""
    parts, style = "", set()
    for at, piece in enumerate(STYLE.split(line)):
        if at % 2:
            for code in piece.split(";"):
                style = style | {CLASSES[code]} if code in CLASSES else set()
        elif piece:
            text = html.escape(piece, quote=False)
            parts += '<tspan class="%s">%s</tspan>' % (
                " ".join(sorted(style)), text) if style else text
    return parts


def wrapped(line):
    """The line in pieces as wide as the terminal; colours do not count."""
    piece, width = "", 0
    for part in re.findall(r"\x1b\[[\d;]*m|.", line):
        if len(part) == 1 and width == COLUMNS:
            yield piece
            piece, width = "", 0
        piece += part
        width += len(part) == 1
    yield piece


def draw(recording):
    """The recording as an SVG image, in which it runs once."""
    lines, begin = [], 0.0
    for command, printed in recording:
        lines += [(begin, '<tspan class="prompt">$</tspan> ' if first else "",
                   html.escape(piece[2 * first:], quote=False))
                  for first, piece in [
                      (not at, piece) for at, piece in
                      enumerate(wrapped("$ " + command))]]
        lines += [(begin + RUN_S, "", spans(piece))
                  for line in printed.splitlines() for piece in wrapped(line)]
        begin += READ_S if printed else RUN_S * 2
    height = len(lines) * LINE + 2 * MARGIN
    yield ('<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" '
           'role="img">' % (COLUMNS * WIDTH + 2 * MARGIN, height))
    yield "<title>agentwal in a terminal</title>"
    yield """<style>
text{font:13px ui-monospace,Menlo,Consolas,monospace;fill:#e6edf3;white-space:pre}
.prompt,.green{fill:#3fb950}.red{fill:#ff7b72}.yellow{fill:#d29922}.blue{fill:#58a6ff}
.magenta{fill:#bc8cff}.cyan{fill:#39c5cf}.dim{opacity:.65}.bold{font-weight:700}
@keyframes show{from{visibility:hidden}to{visibility:visible}}
text{animation:show 1ms linear both}
@media(prefers-reduced-motion:reduce){text{animation:none}}
</style>"""
    yield '<rect width="100%" height="100%" rx="8" fill="#0d1117"/>'
    for at, (seconds, prompt, text) in enumerate(lines):
        if prompt or text:
            yield ('<text xml:space="preserve" x="%d" y="%d" '
                   'style="animation-delay:%.1fs">%s%s</text>' %
                   (MARGIN, MARGIN + LINE * (at + 0.75), seconds, prompt, text))
    yield "</svg>"


def main():
    if len(sys.argv) != 2:
        sys.exit("Usage: record.py BIN")
    recording = list(record(os.path.abspath(sys.argv[1])))
    print(fixed("\n".join(draw(recording))))


main()
