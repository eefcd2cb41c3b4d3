"""One store for two languages: what one adapter writes, that of the other language reads."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from agentwal.claude import AgentwalSessionStore  # noqa: E402
from agentwal.openai_agents import AgentwalSession  # noqa: E402
from claude_rows import AGENT, MAIN, PROJECT, SESSION, fold, message, messages, row  # noqa: E402


class Node:
    """An adapter in a process of Node.js."""

    def __init__(self, path, kind, session_id=""):
        build = os.environ.get("AGENTWAL_BUILD") or HERE.parents[3] / "build" / "gcc"
        environment = {"AGENTWAL_SOURCE": str(HERE.parents[3]),
                       "AGENTWAL_NODE_BINARY": "%s/node/agentwal.node" % build, **os.environ}
        self.process = subprocess.Popen(
            ["node", HERE / "node.mjs", str(path), kind, session_id], stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, text=True, env=environment)

    def call(self, method, *arguments):
        self.process.stdin.write(json.dumps([method, *arguments]) + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def close(self):
        self.process.stdin.close()
        self.process.stdout.read()
        assert self.process.wait(60) == 0


@pytest.fixture
def node():
    started = []

    def start(*arguments):
        started.append(Node(*arguments))
        return started[-1]

    yield start
    for one in started:
        if one.process.poll() is None:
            one.close()
        one.process.stdout.close()


def node_key(key):
    names = {"project_key": "projectKey", "session_id": "sessionId", "subpath": "subpath"}
    return {names[name]: text for name, text in key.items()}


NAMES = ["a/b", "..", "%41", "x\ny", "ü" * 700, "x" * 300, "~x", "\U0001f600 \ud800", "x" * 5000,
         "subagents/x/agent-1"]
KEYS = [MAIN, AGENT, *({"project_key": name, "session_id": "s"} for name in NAMES),
        *({"project_key": "p", "session_id": name} for name in NAMES),
        *({"project_key": "p", "session_id": "s", "subpath": name} for name in NAMES)]


@pytest.mark.parametrize("writer", ["python", "node"])
def test_claude__every_key_is_found_by_the_other_language(tmp_path, node, writer):
    other = node(tmp_path / "store", "claude")

    async def main():
        async with AgentwalSessionStore(tmp_path / "store", fold_session_summary=fold) as adapter:
            for number, key in enumerate(KEYS, 1):
                if writer == "python":
                    await adapter.append(key, messages(number))
                    assert other.call("load", node_key(key)) == messages(number), key
                else:
                    other.call("append", node_key(key), messages(number))
                    assert await adapter.load(key) == messages(number), key
            main_key = {"project_key": "p", "session_id": "s"}
            assert sorted(await adapter.list_subkeys(main_key)) == sorted(
                other.call("listSubkeys", node_key(main_key))) == sorted(NAMES)
            for project in (PROJECT, "p", *NAMES):
                ours = {one["session_id"]: one["mtime"]
                        for one in await adapter.list_sessions(project)}
                theirs = {one["sessionId"]: one["mtime"]
                          for one in other.call("listSessions", project)}
                assert ours == theirs and ours

    asyncio.run(asyncio.wait_for(main(), 120))


def test_claude__appends_of_both_in_turn(tmp_path, node):
    other = node(tmp_path / "store", "claude")

    async def main():
        async with AgentwalSessionStore(tmp_path / "store", fold_session_summary=fold) as adapter:
            rows = []
            for number in range(1, 21):
                batch = [message(number), row("custom-title", customTitle="T%d" % number)]
                rows += batch
                if number % 3 == 0:
                    other.call("append", node_key(MAIN), batch)
                    [summary] = other.call("listSessionSummaries", PROJECT)
                    assert summary["data"] == {"rows": len(rows), "customTitle": "T%d" % number}
                    # Of the other SDK's fields nothing is known here.
                    assert await adapter.list_session_summaries(PROJECT) == []
                else:
                    await adapter.append(MAIN, batch)
                    [summary] = await adapter.list_session_summaries(PROJECT)
                    assert summary["data"] == fold(None, MAIN, rows)["data"]
                    assert other.call("listSessionSummaries", PROJECT) == []
            assert await adapter.load(MAIN) == other.call("load", node_key(MAIN)) == rows
            await adapter.append(MAIN, rows[::2])
            other.call("append", node_key(MAIN), rows[::2])
            assert await adapter.load(MAIN) == rows and adapter.stats.duplicates == 20

    asyncio.run(asyncio.wait_for(main(), 120))


def test_claude__forks_redactions_and_deletion(tmp_path, node):
    other = node(tmp_path / "store", "claude")

    async def main():
        async with AgentwalSessionStore(tmp_path / "store", fold_session_summary=fold) as adapter:
            await adapter.append(MAIN, [*messages(2), row("mode"), *messages(5)[2:], row("tag")])
            theirs = other.call("fork", node_key(MAIN), {"title": "Theirs"})["sessionId"]
            ours = await adapter.fork(MAIN, title="Ours")
            for id in (theirs, ours, SESSION):
                key = {**MAIN, "session_id": id}
                loaded = await adapter.load(key)
                assert loaded == other.call("load", node_key(key)) and len(loaded) >= 7
            assert {one["session_id"] for one in await adapter.list_sessions(PROJECT)} == {
                one["sessionId"] for one in other.call("listSessions", PROJECT)} == {
                theirs, ours, SESSION}
            (await adapter.session(MAIN)).redact(message(2)["uuid"])
            assert await adapter.load(MAIN) == other.call("load", node_key(MAIN))
            other.call("delete", node_key(MAIN))
            assert await adapter.load(MAIN) is None
            await adapter.delete({**MAIN, "session_id": theirs})
            assert other.call("load", node_key({**MAIN, "session_id": theirs})) is None

    asyncio.run(asyncio.wait_for(main(), 120))


@pytest.mark.parametrize("name", ["user-7", "a/b", "%", "x\ny", "\U0001f600 \ud800", "x" * 300])
def test_openai__items_of_both_in_turn(tmp_path, node, name):
    other = node(tmp_path / "store", "openai", name.encode("utf-8", "replace").decode())
    name = name.encode("utf-8", "replace").decode()

    async def main():
        async with AgentwalSession(tmp_path / "store", session_id=name) as session:
            items = []
            for number in range(12):
                item = {"role": "user", "content": "ü %d" % number, "n": [number, {"a": None}]}
                items.append(item)
                if number % 2:
                    other.call("addItems", [item])
                else:
                    await session.add_items([item])
                assert await session.get_items() == other.call("getItems") == items
                assert await session.get_items(3) == other.call("getItems", 3)
            assert await session.pop_item() == items.pop()
            assert other.call("popItem") == items.pop()
            assert await session.get_items() == other.call("getItems") == items
            other.call("applyHistoryTransaction", {"operationId": "o", "transaction": {
                "type": "append_items", "items": [{"type": "x"}]}})
            assert await session.get_items(1) == [{"type": "x"}]
            other.call("clearSession")
            assert await session.get_items() == []
            await session.add_items([{"role": "user", "content": "again", "b": float("nan")}])
            assert other.call("getItems")[0]["content"] == "again"
            await session.clear_session()
            assert other.call("getItems") == []

    asyncio.run(asyncio.wait_for(main(), 120))
