"""examples/agent.py: it continues its session, records a file before its tool changes it, keeps an
interrupted answer and that of a killed process, forks and rewinds."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import agentwal

EXAMPLE = Path(__file__).resolve().parents[3] / "examples" / "agent.py"
LINES_MAX = 60


@pytest.fixture
def talk(tmp_path):
    """One run of the agent with prompts; returns the lines that it prints."""
    (tmp_path / "work").mkdir()

    def run(*prompts):
        done = subprocess.run([sys.executable, "-B", "-W", "error", EXAMPLE, tmp_path / "store"],
                              input="".join(prompt + "\n" for prompt in prompts), text=True,
                              capture_output=True, cwd=tmp_path / "work", timeout=60)
        assert done.returncode == 0 and done.stderr == "", done.stderr
        return [line.rstrip() for line in done.stdout.splitlines()]

    return run


def turns(session):
    return [(entry.payload["role"], entry.payload.get("stopReason")) for entry in session]


def test_example__is_short_and_typed(tmp_path):
    assert len(EXAMPLE.read_text(encoding="utf-8").splitlines()) <= LINES_MAX
    environment = {**os.environ, "MYPYPATH": str(Path(agentwal.__file__).parents[1])}
    done = subprocess.run([sys.executable, "-B", "-m", "mypy", "--strict", "--cache-dir", tmp_path,
                           "--python-version", "3.11", EXAMPLE], cwd=tmp_path, env=environment,
                          capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout


def test_example__whole_life(talk, tmp_path):
    note = tmp_path / "work" / "note.txt"
    assert talk("hello", "stop") == ["I wrote it down.", "I wrote"]
    assert note.read_text() == "stop\n"
    with agentwal.open(tmp_path / "store") as store:
        session = store.latest()
        assert turns(session) == [("system", None), ("user", None), ("assistant", "end"),
                                  ("user", None), ("assistant", "aborted")]
        # The first file of the second turn is that of the first one.
        session.rewind(session.checkpoints.list()[1].id)
        assert note.read_text() == "hello\n"

    # The next process continues in a fork, and takes a turn back.
    assert talk("/fork", "more", "/undo", "last") == [
        "system: You take notes.", "user: hello", "assistant: I wrote it down.", "user: stop",
        "assistant: I wrote", "I wrote it down.", "I wrote it down."]
    assert note.read_text() == "last\n"
    with agentwal.open(tmp_path / "store") as store:
        fork = store.latest()
        assert fork.id != session.id and len(store.session(session.id)) == 5
        assert [entry.payload["content"] for entry in fork][5:] == ["last", "I wrote it down."]
        # What a process that died left of an answer becomes a message.
        fork.append({"role": "user", "content": "Go on."})
        for text in ("On it", " goes"):
            fork.append({"text": text}, type="message_delta_batch")
    assert talk()[-1] == "On it goes"
    with agentwal.open(tmp_path / "store") as store:
        last = store.latest()[-1].payload
        assert (last["content"], last["stopReason"]) == ("On it goes", "aborted")
        assert len(store.latest().entries(deltas=True)) == 9
