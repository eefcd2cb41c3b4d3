"""agentwal.openai_agents: the Session protocol of the SDK, against a list as a model."""

from __future__ import annotations

import asyncio
import math
import os
import random
import textwrap
from typing import Any, Protocol, runtime_checkable

import pytest

import agentwal
from agentwal.openai_agents import AgentwalSession
from test_processes import in_child


@runtime_checkable
class SessionOfTheSDK(Protocol):
    session_id: str
    session_settings: Any

    async def get_items(self, limit=None): ...
    async def add_items(self, items): ...
    async def pop_item(self): ...
    async def clear_session(self): ...


def run(main, store, **options):
    async def with_session():
        async with AgentwalSession(store, session_id="user-7", **options) as session:
            await main(session)

    asyncio.run(asyncio.wait_for(with_session(), 60))


def said(text, **fields):
    return {"role": "user", "content": text, **fields}


CALL = {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"}


def test_session__has_the_protocol(store):
    session = AgentwalSession(store)
    assert isinstance(session, SessionOfTheSDK) and len(session.session_id) == 36
    assert AgentwalSession(store).session_id != session.session_id


def test_items__are_added_popped_and_cleared(store):
    async def main(session):
        assert await session.get_items() == [] and await session.pop_item() is None
        await session.clear_session()
        await session.add_items([])
        assert store.list() == []
        await session.add_items([said("a"), CALL])
        await session.add_items([said("b")])
        assert await session.get_items() == [said("a"), CALL, said("b")]
        assert await session.get_items(2) == [CALL, said("b")]
        assert await session.get_items(9) == [said("a"), CALL, said("b")]
        assert await session.get_items(0) == [] == await session.get_items(-1)
        assert await session.pop_item() == said("b") and await session.pop_item() == CALL
        await session.add_items([said("c")])
        assert await session.get_items() == [said("a"), said("c")]
        await session.clear_session()
        assert await session.get_items() == [] and await session.pop_item() is None
        await session.add_items([said("d")])
        assert await session.get_items(5) == [said("d")]

    run(main, store)


def test_items__are_entries_of_a_session(store):
    async def main(session):
        await session.add_items([said("a"), CALL])
        found = store.session("openai/user-7")
        assert [entry.type for entry in found] == ["message", "openai.item"]
        assert found.info().source == "openai-agents"
        assert found.info().metadata == {"openai": {"sessionId": "user-7"}}
        head = found.head()
        await session.clear_session()
        found.move_head(head)
        assert await session.get_items() == [said("a"), CALL]
        found.redact(found[0])
        found.append({"x": 1}, type="other")
        assert await session.get_items(1) == [CALL]
        fork = AgentwalSession(store, id=found.fork(id="f").id)
        assert await fork.get_items() == [CALL]

    run(main, store)


def test_items__as_they_were_added(store):
    items = [said("ü \ud800 \u2028"), {"a": [1, 2.5, -0.0, None, True, {}], "b": {"c": [[]]}},
             {"bytes": b"\x00\xff", "list": [b"", bytearray(b"x")], "nan": math.nan,
              "numbers": [math.inf, -math.inf, 10 ** 30]}, {}]

    async def main(session):
        await session.add_items(items)
        text, plain, special, empty = await session.get_items()
        assert [text, plain, empty] == [items[0], items[1], {}]
        assert math.copysign(1, plain["a"][2]) == -1
        assert special["bytes"] == b"\x00\xff" and special["list"] == [b"", b"x"]
        assert math.isnan(special["nan"]) and special["numbers"] == items[2]["numbers"]
        text["content"] = "changed"
        assert (await session.get_items(4))[0] == items[0]

    run(main, store)


@pytest.mark.parametrize("openai", [
    5, {"special": 5}, {"special": [5]}, {"special": [["nan"]]}, {"special": [["nan", []]]},
    {"special": [["bytes", ["none"]]]}, {"special": [["nan", ["none", "x"]]]},
    {"special": [["nan", ["content", "x"]]]}, {"special": [["bytes", ["list", 1]]]},
    {"special": [["bytes", ["list"]]]}])
def test_items__whose_special_values_are_not_there_are_damaged(store, openai):
    async def main(session):
        await session.add_items([said("a")])
        stored = store.session("openai/user-7")
        id = stored.append({"content": "b", "list": [None]}, meta={"openai": openai}).last_id
        with pytest.raises(agentwal.Corrupt, match=id):
            await session.get_items()

    run(main, store)


def test_settings__limit_of_the_sdk_is_used(store):
    class Settings:
        limit = 1

    async def main(session):
        await session.add_items([said("a"), said("b")])
        session.session_settings = Settings()
        assert await session.get_items() == [said("b")]
        assert len(await session.get_items(2)) == 2

    run(main, store)


def test_calls__at_random_are_those_of_a_list(store):
    seed = int(os.environ.get("AGENTWAL_SEED") or random.randrange(2 ** 32))
    print("AGENTWAL_SEED=%d" % seed)
    choose = random.Random(seed)
    model: list[Any] = []

    async def main(session):
        for number in range(300):
            call = choose.choice(("add", "add", "pop", "get", "limit", "clear" if number % 9 == 0
                                  else "get"))
            if call == "add":
                items = [said("%d" % number, n=n) for n in range(choose.randrange(4))]
                await session.add_items(items)
                model.extend(items)
            elif call == "pop":
                assert await session.pop_item() == (model.pop() if model else None)
            elif call == "clear":
                await session.clear_session()
                model.clear()
            elif call == "get":
                assert await session.get_items() == model
            else:
                limit = choose.randrange(6)
                assert await session.get_items(limit) == (model[-limit:] if limit else [])

    run(main, store)


def test_input__that_is_wrong_is_refused(store):
    loop: dict[str, Any] = {}
    loop["self"] = loop

    async def main(session):
        for items in (None, "text", {"a": 1}, [1], [None], [[]], [said("x"), object()],
                      [{"a": object()}], [{1: 2}], [loop], [{"a": {1, 2}}]):
            with pytest.raises(agentwal.Invalid):
                await session.add_items(items)
        for limit in ("1", 1.5, True):
            with pytest.raises(agentwal.Invalid):
                await session.get_items(limit)
        assert store.list() == []

    run(main, store)
    for arguments in (dict(session_id=""), dict(session_id=5), dict(session_id="x" * 5000),
                      dict(id=""), dict(durability="queued")):
        with pytest.raises(agentwal.Invalid):
            AgentwalSession(store, **arguments)
    with pytest.raises(agentwal.Invalid):
        AgentwalSession(5)


@pytest.mark.parametrize("name", ["a/b", "%", "\x00", "\ud800", "x" * 300, "ü" * 200])
def test_names__of_any_form_are_kept_apart(store, name):
    async def main():
        await AgentwalSession(store, session_id=name).add_items([said(name[:5])])
        await AgentwalSession(store, session_id=name + "2").add_items([said("other")])
        assert await AgentwalSession(store, session_id=name).get_items() == [said(name[:5])]

    asyncio.run(main())


POPPER = textwrap.dedent("""
    import asyncio, sys
    from agentwal.openai_agents import AgentwalSession

    async def main():
        async with AgentwalSession(sys.argv[1], session_id="s") as session:
            while (item := await session.pop_item()) is not None:
                print(item["content"])

    asyncio.run(main())
""")


def test_pop__each_item_once_by_three_processes(tmp_path, start_python):
    async def fill():
        async with AgentwalSession(tmp_path / "store", session_id="s") as session:
            await session.add_items([said("%d" % number) for number in range(60)])

    asyncio.run(fill())
    started = [start_python(POPPER, tmp_path / "store") for _ in range(3)]
    popped = [int(line) for process in started for line in process.communicate(timeout=60)[0]
              .split()]
    assert sorted(popped) == list(range(60))


def test_close__of_a_path_closes_the_store(tmp_path):
    async def main():
        session = AgentwalSession(tmp_path / "store", session_id="s")
        await session.add_items([said("a")])
        await session.close()
        await session.close()
        for call in (session.get_items, session.pop_item, session.clear_session,
                     lambda: session.add_items([said("b")]), lambda: session.add_items([])):
            with pytest.raises(agentwal.Closed):
                await call()
        with agentwal.open(tmp_path / "store") as store:
            async with AgentwalSession(store, session_id="s") as again:
                assert await again.get_items() == [said("a")]
            assert store.is_open

            def child():
                with pytest.raises(agentwal.Forked):
                    asyncio.run(again.get_items())

            in_child(child)

    asyncio.run(main())
