"""What the tests share."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any, Callable, Iterator

import pytest

import agentwal

LONG = bool(os.environ.get("AGENTWAL_LONG"))
SANITIZED = "asan" in os.environ.get("LD_PRELOAD", "")


@pytest.fixture
def store(tmp_path: Path) -> Iterator[agentwal.Store]:
    """A store in memory, which behaves as one on disk; with AGENTWAL_LONG one on disk."""
    with agentwal.open(tmp_path / "store") if LONG else agentwal.memory() as opened:
        yield opened


@pytest.fixture
def disk_store(tmp_path: Path) -> Iterator[agentwal.Store]:
    with agentwal.open(tmp_path / "store") as opened:
        yield opened


@pytest.fixture
def session(store: agentwal.Store) -> agentwal.Session:
    return store.create()


@pytest.fixture
def run_python() -> Callable[..., "subprocess.CompletedProcess[str]"]:
    """Runs a program in another interpreter, with the same package."""
    def run(program: str, *arguments: Any, check: bool = True, options: tuple[str, ...] = (),
            ) -> "subprocess.CompletedProcess[str]":
        done = subprocess.run([sys.executable, "-B", *options, "-c", program,
                               *map(str, arguments)],
                              capture_output=True, text=True, timeout=120)
        if check:
            assert done.returncode == 0, done.stderr
        return done
    return run


@pytest.fixture
def start_python() -> Iterator[Callable[..., "subprocess.Popen[str]"]]:
    """Starts a program in another interpreter; it is killed at the end of the test."""
    started = []

    def start(program: str, *arguments: Any) -> "subprocess.Popen[str]":
        process = subprocess.Popen([sys.executable, "-B", "-c", program, *map(str, arguments)],
                                   stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
        process.communicate()
