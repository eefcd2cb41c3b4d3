"""agent.py STORE - an agent in Python: it continues the newest session of its directory.

Each line of its input is a prompt. The model is scripted: it has a tool write the prompt to
note.txt, and answers in parts. Ctrl-C interrupts an answer; so does the prompt "stop".
/fork continues in a fork, /undo takes files and conversation back by a prompt.
"""
import signal
import sys
import time
from pathlib import Path
from typing import Iterator
import agentwal

undo: list[str] = []

def call_model(prompt: str) -> Iterator[tuple[str, str | None]]:
    yield "", "note.txt"
    for text in ("I wrote ", "it ", "down."):
        yield text, None
        if prompt == "stop":
            signal.raise_signal(signal.SIGINT)
        time.sleep(0.02)

def answer(session: agentwal.Session, content: str, stop_reason: str) -> None:
    session.append({"role": "assistant", "content": content, "stopReason": stop_reason})
    print(content)  # durable now

def run_turn(session: agentwal.Session, prompt: str) -> None:
    checkpoint = session.checkpoints.create([])  # of no file yet, for /undo
    undo.extend([checkpoint.id] if checkpoint else [])
    session.append({"role": "user", "content": prompt})
    content, stop_reason = "", "end"
    try:
        for text, file in call_model(prompt):
            if file:
                session.checkpoints.create(file, id=undo[-1])  # before it is changed
                Path(file).write_text(prompt + "\n")
            if text:  # not synced
                session.append({"text": text}, type="message_delta_batch", durability="written")
            content += text
    except KeyboardInterrupt:
        stop_reason = "aborted"
    answer(session, content, stop_reason)

with agentwal.open(sys.argv[1] if len(sys.argv) > 1 else "store") as store:
    session, created = store.open_or_create(cwd=Path.cwd())
    for entry in session:
        print(f"{entry.payload['role']}: {entry.payload['content']}")
    if created:
        session.append({"role": "system", "content": "You take notes."})
    cut = [e for e in session.entries(deltas=True) if e.type != "message"]
    if cut:
        answer(session, "".join(e.payload["text"] for e in cut), "aborted")
    for line in map(str.strip, sys.stdin):
        if line == "/fork":
            session = session.fork()
        elif line != "/undo":
            run_turn(session, line)
        elif undo:
            session.rewind(undo.pop(), head=True)
