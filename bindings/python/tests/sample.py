"""A program that uses the package as its types say: test_typing.py checks it with mypy."""

from __future__ import annotations

import datetime
import pathlib
from typing import Iterator, Literal

import agentwal
from agentwal import aio


def texts(session: agentwal.Session) -> Iterator[str]:
    for entry in session.entries(last=10, since_compaction=True):
        payload: object = entry.payload
        yield entry.text if payload else entry.id


def run(path: pathlib.Path) -> list[agentwal.SessionInfo]:
    with agentwal.open(path, lock_timeout=1.5, key=agentwal.Secret(b"k" * 32)) as store:
        session, created = store.open_or_create(cwd=path, metadata={"a": [1, 2]})
        result: agentwal.AppendResult = session.append({"role": "user"}, durability="written")
        ticket = session.submit(["any", {"json": None}], parent_id=result.last_id)
        number: int = ticket.wait(timeout=5.0).sequence + result.appended
        first: agentwal.Entry = session[0]
        last: list[agentwal.Entry] = session[-number:]
        fork = session.fork(at=first, title=first.type)
        fork.append_many([agentwal.NewEntry({"n": 1}, meta={"m": 1}), "text", 5])
        fork.update(lambda now: {"title": now.title + "!"})
        found = fork.entry("id")
        if found is not None and found.parent_id is not None:
            view: memoryview = found.payload_view
            print(len(view), found.payload_bytes.decode(), found.sequence + found.depth)
        try:
            session.append({}, expect_tail=None)
        except agentwal.Conflict as error:
            print(error.actual.upper(), error.expectation or "", error.errno + error.holder,
                  error.result.last_id if error.result else "")
        document = session.documents.get("key")
        version: int = session.documents.put("key", 1, expect=document.version if document else 0)
        session.commit(entries=last, documents=[agentwal.DocumentChange("k", version)],
                       heads=[agentwal.HeadMove(None, name="x")], change={"title": "T"})
        moment: datetime.datetime = session.info().updated
        digest: str = store.blobs.put(b"content")
        content: bytes | None = store.blobs.get(digest)
        for sequence in store.follow(timeout=0):
            print(sequence + 1, content, moment, created)
        with store.search(memory=True) as search:
            roles: list[Literal["user", "title"]] = ["user"]
            sessions: list[agentwal.SearchSession] = search.find("x", roles=roles, since=moment)
            for hit in sessions[0].hits:
                ends: list[tuple[int, int]] = list(hit.matches)
                print(hit.snippet.upper(), hit.time or moment, ends, search.update().built + 1)
        print(*texts(session))
        return list(store.sessions(cwd="/srv", changed_after=moment))


async def run_in_loop(path: pathlib.Path) -> int:
    async with aio.open(path, queue_limit=64) as store:
        session: aio.Session = await store.create(title="T")
        result: agentwal.AppendResult = await session.append({"n": 1}, durability="written")
        await session.commit(entries=[result.sequence], expect_tail=result.last_id)
        async for entry in session.follow("start", timeout=0.0):
            last: agentwal.Entry = entry
            print(last.depth)
        search: aio.Search = await store.search()
        words: list[agentwal.SearchSession] = await search.find("x", roles=["user"])
        print(words)
        digest: str = await store.run(lambda blocking: blocking.blobs.put(b"content"))
        compacted: agentwal.CompactResult = await store.run(agentwal.Store.compact, erase=True)
        print(digest, compacted)
        return len([entry.text async for entry in session.entries(last=5)])
