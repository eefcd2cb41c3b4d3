"""Types: the package, the stub of the extension and a sample, as mypy checks them."""

from __future__ import annotations

import os
import subprocess
import sys
import types
from pathlib import Path

import pytest

import agentwal

PACKAGE = Path(agentwal.__file__).parent
TESTS = Path(__file__).resolve().parent


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    """One for all runs: most of their time is that of the standard library's types."""
    return tmp_path_factory.mktemp("cache")


def run(*command, cwd):
    done = subprocess.run([sys.executable, "-B", *map(str, command)], capture_output=True,
                          text=True, cwd=cwd, timeout=300,
                          env={**os.environ, "MYPYPATH": str(PACKAGE.parent)})
    return done.returncode, done.stdout + done.stderr


def test_mypy__package_and_sample(tmp_path, cache):
    status, text = run("-m", "mypy", "--strict", "--cache-dir", cache, "--python-version",
                       "3.11", "-p", "agentwal", cwd=tmp_path)
    assert status == 0, text
    status, text = run("-m", "mypy", "--strict", "--cache-dir", cache, "--python-version",
                       "3.11", TESTS / "sample.py", cwd=tmp_path)
    assert status == 0, text


def test_mypy__wrong_uses_are_found(tmp_path, cache):
    program = tmp_path / "wrong.py"
    lines = ["store.create(titel='x')", "session.append({}, durability='soon')",
             "session['a']", "session.entry('x').id", "entry.payload = 1", "store.list(limit='x')",
             "agentwal.open(5)", "agentwal.open('x', key=b'k')", "agentwal.Passphrase(b'p')",
             "session.commit(change={'titel': 'x'})", "session.heads().name"]
    program.write_text("import agentwal\n"
                       "def f(store: agentwal.Store, session: agentwal.Session,"
                       " entry: agentwal.Entry) -> None:\n" +
                       "".join("    %s\n" % line for line in lines))
    status, text = run("-m", "mypy", "--strict", "--cache-dir", cache, program, cwd=tmp_path)
    assert status == 1
    for number, line in enumerate(lines, 3):
        assert "wrong.py:%d:" % number in text, (line, text)


def test_stubtest__extension_has_what_its_stub_says(tmp_path, cache):
    allowed = tmp_path / "allowed"
    # The limited interface gives functions without signatures; buffers have no method.
    allowed.write_text("agentwal\\._wal\\.(Entry|EntryIterator)\\.__.*__\n")
    (tmp_path / "mypy.ini").write_text("[mypy]\ncache_dir = %s\n" % cache)
    status, text = run("-m", "mypy.stubtest", "agentwal._wal", "--allowlist", allowed,
                       "--mypy-config-file", tmp_path / "mypy.ini", "--ignore-unused-allowlist",
                       cwd=tmp_path)
    assert status == 0, text


def test_all__names_are_there_and_described():
    assert sorted(agentwal.__all__) == sorted(set(agentwal.__all__))
    public = {name for name, thing in vars(agentwal).items()
              if not name.startswith("_") and not isinstance(thing, types.ModuleType)}
    assert public - {"annotations"} == set(agentwal.__all__) - {"__version__"}
    for name in agentwal.__all__:
        thing = getattr(agentwal, name)
        if callable(thing):
            assert thing.__doc__, name
    for kind in (agentwal.Store, agentwal.Session, agentwal.Ticket, agentwal.Documents,
                 agentwal.Blobs, agentwal.View, agentwal.Checkpoints):
        for name, method in vars(kind).items():
            if callable(method) and not name.startswith("_"):
                assert method.__doc__, "%s.%s" % (kind.__name__, name)
