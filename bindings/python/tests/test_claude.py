"""agentwal.claude: the contracts of the SDK's SessionStore, and what a transcript is."""

from __future__ import annotations

import asyncio
import json
import re
import textwrap
import time

import pytest

import agentwal
from agentwal.claude import AgentwalSessionStore, _sessions
from agentwal.claude._summary import read_summary
from claude_rows import AGENT, MAIN, PROJECT, SESSION, fold, message, messages, row, uuid
from test_processes import in_child

OTHER = {"project_key": "-srv-other", "session_id": SESSION}


def run(main, store, **options):
    """Runs main(adapter, store)."""
    async def with_adapter():
        async with AgentwalSessionStore(store, fold_session_summary=fold, **options) as adapter:
            await main(adapter, store)

    asyncio.run(asyncio.wait_for(with_adapter(), 60))


# ---------------------------------------------------------- contracts ---

def test_load__what_was_appended_in_its_order(store):
    async def main(adapter, store):
        entries = [*messages(3), row("x", uuid="b", n=1), row("x", uuid="a", n=2),
                   row("snapshot", a=[1, None, {"b": "ü"}], text="\u2028 \x00 \"\\", n=1e21)]
        await adapter.append(MAIN, entries)
        assert await adapter.load(MAIN) == entries
        for number in range(10):
            await adapter.append(MAIN, [row("n", i=2 * number), row("n", i=2 * number + 1)])
        assert [entry["i"] for entry in (await adapter.load(MAIN))[6:]] == list(range(20))

    run(main, store)


def test_load__of_an_unknown_key_is_none(store):
    async def main(adapter, store):
        assert await adapter.load(MAIN) is None
        await adapter.append(MAIN, messages(1))
        assert await adapter.load({**MAIN, "subpath": "nope"}) is None
        assert await adapter.load({**MAIN, "session_id": "nope"}) is None

    run(main, store)


def test_append__without_entries_touches_nothing(store):
    async def main(adapter, store):
        before = store.info().last_sequence
        await adapter.append(MAIN, [])
        assert store.info().last_sequence == before and await adapter.load(MAIN) is None
        assert await adapter.list_sessions(PROJECT) == []

    run(main, store)


def test_keys__subpaths_and_projects_are_apart(store):
    async def main(adapter, store):
        await adapter.append(MAIN, messages(2))
        await adapter.append(AGENT, messages(1, isSidechain=True))
        await adapter.append(OTHER, messages(3))
        assert [len(await adapter.load(key)) for key in (MAIN, AGENT, OTHER)] == [2, 1, 3]
        assert [len(await adapter.list_sessions(key["project_key"])) for key in (MAIN, OTHER)] == [
            1, 1]

    run(main, store)


def test_list__sessions_of_a_project(store):
    async def main(adapter, store):
        begin = int(time.time() * 1000)
        await adapter.append(AGENT, messages(1))
        assert await adapter.list_sessions(PROJECT) == []
        for session in (SESSION, "second"):
            await adapter.append({**MAIN, "session_id": session}, messages(1))
        await adapter.append({**OTHER, "session_id": "third"}, messages(1))
        listed = await adapter.list_sessions(PROJECT)
        assert sorted(found["session_id"] for found in listed) == sorted([SESSION, "second"])
        assert all(begin <= found["mtime"] <= time.time() * 1000 + 1 for found in listed)
        assert await adapter.list_sessions("-unknown") == []

    run(main, store)


def test_list__reads_one_document_of_each_session_of_the_project(store, monkeypatch):
    places, read = [], []
    place_of, get = _sessions.place_of, agentwal.Documents.get
    monkeypatch.setattr(_sessions, "place_of",
                        lambda info: places.append(info.id) or place_of(info))
    monkeypatch.setattr(agentwal.Documents, "get",
                        lambda self, key: read.append(key) or get(self, key))

    async def main(adapter, store):
        for session in "a", "b":
            await adapter.append({**MAIN, "session_id": session}, messages(1))
            await adapter.append({**OTHER, "session_id": "other " + session}, messages(1))
        store.session("b").append({"by": "another program"})
        places.clear(), read.clear()
        listed = await adapter.list_sessions(PROJECT)
        assert sorted(places) == ["a", "b"] and read == ["claude/fold"] * 2
        assert {found["session_id"]: found["mtime"] for found in listed} == {
            id: read_summary(store.session(id)).modified_ms for id in ("a", "b")}

    run(main, store)


def test_delete__main_with_its_subpaths_and_nothing_else(store):
    async def main(adapter, store):
        await adapter.delete(MAIN)
        gone = [MAIN, AGENT, {**MAIN, "subpath": "subagents/agent-78"}, {**MAIN, "subpath": "x/y"}]
        kept = [OTHER, {**OTHER, "subpath": AGENT["subpath"]}, {**MAIN, "session_id": "second"},
                {**MAIN, "session_id": SESSION + "0", "subpath": AGENT["subpath"]}]
        for key in gone + kept:
            await adapter.append(key, messages(1))
        await adapter.delete(gone[3])
        assert sorted(await adapter.list_subkeys(MAIN)) == [key["subpath"] for key in gone[1:3]]
        await adapter.delete(MAIN)
        assert [await adapter.load(key) for key in gone] == [None] * 4
        assert [await adapter.load(key) for key in kept] == [messages(1)] * 4
        assert await adapter.list_subkeys(MAIN) == []
        await adapter.append(MAIN, messages(1))
        store.session(SESSION).trash()
        assert await adapter.load(MAIN) is None
        with pytest.raises(agentwal.Trashed):
            await adapter.append(MAIN, [message(2)])
        with pytest.raises(agentwal.Trashed):
            await adapter.append(MAIN, messages(1))
        await adapter.append(MAIN, [])
        await adapter.delete(MAIN)
        await adapter.append(MAIN, messages(2))
        assert len(await adapter.load(MAIN)) == 2

    run(main, store)


def test_list__subkeys_leave_the_main_transcript_out(store):
    async def main(adapter, store):
        await adapter.append(MAIN, messages(1))
        assert await adapter.list_subkeys(MAIN) == []
        await adapter.append(AGENT, messages(1))
        await adapter.append({**MAIN, "session_id": "x", "subpath": "subagents/agent-x"},
                             messages(1))
        assert await adapter.list_subkeys(MAIN) == [AGENT["subpath"]]
        assert await adapter.list_subkeys({**MAIN, "session_id": "never"}) == []

    run(main, store)


def test_summaries__cover_all_entries(store):
    async def main(adapter, store):
        rows = [message(1), row("custom-title", customTitle="One"), message(2)]
        await adapter.append(MAIN, rows[:2])
        await adapter.append(AGENT, messages(3))
        await adapter.append(OTHER, messages(1))
        await adapter.append(MAIN, rows[2:])
        [summary] = await adapter.list_session_summaries(PROJECT)
        [listed] = await adapter.list_sessions(PROJECT)
        assert summary == {**fold(None, MAIN, rows), "mtime": listed["mtime"]}
        assert await adapter.list_session_summaries("-unknown") == []
        # Another program wrote: the summary does not cover that.
        store.session(SESSION).append(line=json.dumps(message(3)))
        assert await adapter.list_session_summaries(PROJECT) == []
        await adapter.append(MAIN, [message(4)])
        [summary] = await adapter.list_session_summaries(PROJECT)
        assert summary["data"] == fold(None, MAIN, [*rows, message(3), message(4)])["data"]
        await adapter.delete(MAIN)
        assert await adapter.list_session_summaries(PROJECT) == []

    run(main, store)


def test_summaries__without_the_sdk_there_are_none(store):
    async def main():
        async with AgentwalSessionStore(store) as adapter:
            await adapter.append(MAIN, messages(1))
            assert await adapter.list_session_summaries(PROJECT) == []
            assert len(await adapter.list_sessions(PROJECT)) == 1

    asyncio.run(main())


def test_summaries__a_fold_that_fails_does_not_stop_the_append(store):
    async def main():
        def failing(previous, key, entries):
            raise KeyError("x")

        async with AgentwalSessionStore(store, fold_session_summary=failing) as adapter:
            await adapter.append(MAIN, messages(1))
            assert await adapter.load(MAIN) == messages(1)
            assert await adapter.list_session_summaries(PROJECT) == []

    asyncio.run(main())


# ------------------------------------------------------------ mapping ---

def test_mapping__a_transcript_is_a_session_and_a_row_a_line(store):
    async def main(adapter, store):
        rows = [row("mode", mode="normal"), message(1), row("custom-title", customTitle="Cents"),
                message(2), message(3, isSidechain=True), message(4, parentUuid=uuid(99)),
                message(5, parentUuid=None), message(6, parentUuid=uuid(2)),
                row("message_delta_batch", uuid="d")]
        await adapter.append(MAIN, rows[:2])
        await adapter.append(MAIN, rows[2:])
        session = await adapter.session(MAIN)
        info = session.info()
        assert (info.id, info.project, info.cwd, info.title) == (SESSION, PROJECT, "/srv/app",
                                                                 "Cents")
        assert info.source == "claude 0 projects/%s/%s.jsonl" % (PROJECT, SESSION)
        assert info.first_text == "user 1"
        entries = session.entries(mode="all").to_list()
        assert all(entry.is_line for entry in entries)
        assert [entry.type for entry in entries] == [found["type"] for found in rows[:-1]] + [
            "line"]
        assert [entry.parent_id for entry in entries][:8] == [
            None, None, uuid(1), uuid(1), uuid(2), uuid(2), None, uuid(2)]
        made = [entry.id for entry in entries if "uuid" not in entry.payload]
        assert made == sorted(made)
        assert re.fullmatch("[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}",
                            made[0])
        await adapter.append(AGENT, messages(1))
        sub = store.session(SESSION + "~agent-77").info()
        assert sub.parent_id == SESSION
        assert sub.source == "claude 0 projects/%s/%s/subagents/agent-77.jsonl" % (
            PROJECT, SESSION)

    run(main, store)


@pytest.mark.parametrize("name", [
    "a/b", "..", ".hidden", "%", "%41", "a\x00b", "a\nb", "\ud800", "ü" * 700, "x" * 300, "~x",
    "a b", "\U0001f600", "x" * 5000])
def test_mapping__names_of_any_form_are_kept_apart(store, name):
    async def main(adapter, store):
        keys = [{"project_key": name, "session_id": "s"}, {"project_key": "p", "session_id": name},
                {"project_key": "p", "session_id": "s", "subpath": name}]
        for number, key in enumerate(keys, 1):
            await adapter.append(key, messages(number))
        for number, key in enumerate(keys, 1):
            assert await adapter.load(key) == messages(number)
        assert [found["session_id"] for found in await adapter.list_sessions(name)] == ["s"]
        assert name in [found["session_id"] for found in await adapter.list_sessions("p")]
        assert await adapter.list_subkeys({"project_key": "p", "session_id": "s"}) == [name]

    run(main, store)


def test_duplicates__by_uuid_are_left_out(store):
    async def main(adapter, store):
        await adapter.append(MAIN, messages(3))
        await adapter.append(MAIN, messages(4))
        await adapter.append(MAIN, [message(1, cwd="/other"), row("tag"), row("tag")])
        assert await adapter.load(MAIN) == [*messages(4), row("tag"), row("tag")]
        stats = adapter.stats
        assert (stats.appended, stats.duplicates, stats.ignored) == (6, 3, 1)

    run(main, store)


def test_head__moved_elsewhere_gives_the_branch(store):
    async def main(adapter, store):
        await adapter.append(MAIN, messages(4))
        session = store.session(SESSION)
        session.move_head(uuid(2))
        loaded = await adapter.load(MAIN)
        assert uuid(2) in [entry.get("uuid") for entry in loaded]
        session.move_head(uuid(4))
        session.redact(uuid(2))
        loaded = await adapter.load(MAIN)
        assert [entry["uuid"] for entry in loaded] == [uuid(1), uuid(3), uuid(4)]
        assert loaded[1]["parentUuid"] == uuid(1)
        session.append({"role": "user", "content": "by an agent"})
        assert "by an agent" in json.dumps(await adapter.load(MAIN))

    run(main, store)


def test_fork__shares_and_is_a_session_of_the_project(store):
    async def main(adapter, store):
        rows = [*messages(2), row("custom-title", customTitle="T"), *messages(4)[2:]]
        await adapter.append(MAIN, rows)
        whole = await adapter.fork(MAIN)
        part = await adapter.fork(MAIN, up_to_message_id=uuid(2), title="Part", session_id="part")
        assert part == "part"
        assert sorted(found["session_id"] for found in await adapter.list_sessions(PROJECT)) == (
            sorted([SESSION, whole, part]))
        loaded = await adapter.load({**MAIN, "session_id": part})
        assert [entry.get("uuid") for entry in loaded] == [uuid(1), uuid(2), None]
        assert loaded[0]["sessionId"] == "part"
        assert loaded[0]["forkedFrom"] == {"sessionId": SESSION, "messageUuid": uuid(1)}
        assert loaded[2]["customTitle"] == "Part"
        titles = {info.id: info.title for info in store.list()}
        assert (titles[part], titles[whole]) == ("Part", "T (fork)")
        loaded = await adapter.load({**MAIN, "session_id": whole})
        assert [entry.get("customTitle") for entry in loaded] == [
            None, None, "T", None, None, "T (fork)"]
        await adapter.append({**MAIN, "session_id": part}, [message(9, parentUuid=uuid(2))])
        assert len(await adapter.load({**MAIN, "session_id": part})) == 4
        assert len(await adapter.load(MAIN)) == 5
        with pytest.raises(agentwal.NotFound):
            await adapter.fork(MAIN, up_to_message_id="unknown")
        with pytest.raises(agentwal.NotFound):
            await adapter.fork({**MAIN, "session_id": "unknown"})
        with pytest.raises(agentwal.Exists):
            await adapter.fork(MAIN, session_id="part")
        with pytest.raises(agentwal.Invalid):
            await adapter.fork(AGENT)
        for id in ["", "~x", "a\0b", "a\nb", "\ud800", "x" * 161, "x" * 300]:
            with pytest.raises(agentwal.Invalid):
                await adapter.fork(MAIN, session_id=id)
        for id in ["..", "a/b", "%", "e\u0301", "x" * 160]:
            assert await adapter.fork(MAIN, session_id=id) == id
            assert len(await adapter.load({**MAIN, "session_id": id})) == 6
        await adapter.delete(MAIN)
        assert len(await adapter.load({**MAIN, "session_id": whole})) == 6

    run(main, store)


@pytest.mark.parametrize("cwd", ["/work/x", ""])
def test_fork__belongs_to_its_project_key_and_to_no_other_one(store, cwd):
    async def main(adapter, store):
        key = {"project_key": "tenant", "session_id": "s"}
        await adapter.append(key, [message(1, cwd=cwd)])
        fork = await adapter.fork(key)
        for project in ("-work-x", ""):
            other = {"project_key": project, "session_id": fork}
            assert await adapter.list_sessions(project) == []
            assert await adapter.load(other) is None
            await adapter.delete(other)
        assert len(await adapter.load({**key, "session_id": fork})) >= 1

    run(main, store)


# ----------------------------------------- bad input, races, lifetime ---

def test_input__that_is_wrong_is_refused(store):
    async def main(adapter, store):
        before = store.info().last_sequence
        for key in (None, {}, {"project_key": "p"}, {"project_key": 1, "session_id": "s"},
                    {"project_key": "p", "session_id": ""}, {**MAIN, "subpath": ""},
                    {**MAIN, "subpath": 5}):
            for call in (lambda: adapter.append(key, messages(1)), lambda: adapter.load(key),
                         lambda: adapter.delete(key)):
                with pytest.raises(agentwal.Invalid):
                    await call()
        loop = {}
        loop["self"] = loop
        for entries in (None, "text", [1], [None], [["a"]], [row("x", n=float("nan"))],
                        [row("x", n=object())], [row("x", n=b"\xff")], [loop], [messages(1)]):
            with pytest.raises(agentwal.Invalid):
                await adapter.append(MAIN, entries)
        with pytest.raises(agentwal.Invalid):
            await adapter.list_sessions(None)
        assert store.info().last_sequence == before

    run(main, store)
    for arguments in (dict(store=5), dict(store=store, durability="soon"),
                      dict(store=store, damaged="maybe")):
        with pytest.raises(agentwal.Invalid):
            AgentwalSessionStore(**arguments)


def test_append__at_the_same_time_keeps_the_order_of_the_calls(store):
    async def main(adapter, store):
        await asyncio.gather(*(adapter.append(MAIN, [row("n", n=number)])
                               for number in range(200)))
        assert [entry["n"] for entry in await adapter.load(MAIN)] == list(range(200))
        [summary] = await adapter.list_session_summaries(PROJECT)
        assert summary["data"]["rows"] == 200

    run(main, store)


def test_append__refused_in_a_shared_batch_fails_alone(store):
    async def main(adapter, store):
        big = row("n", text="x" * (33 << 20))
        results = await asyncio.gather(
            adapter.append(MAIN, messages(1)), adapter.append(MAIN, [big]),
            adapter.append(MAIN, [message(2)]), return_exceptions=True)
        assert results[0] is None and results[2] is None
        loaded = [entry.get("uuid") for entry in await adapter.load(MAIN)]
        assert [found for found in loaded if found] == [uuid(1), uuid(2)]

    run(main, store)


def test_append__cancelled_happens_as_a_whole_or_not(store):
    async def main(adapter, store):
        tasks = [asyncio.create_task(adapter.append(MAIN, [row("n", n=n), row("n", n=n)]))
                 for n in range(50)]
        await asyncio.sleep(0)
        for task in tasks[::2]:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        numbers = [entry["n"] for entry in await adapter.load(MAIN)]
        assert numbers[::2] == numbers[1::2] == sorted(numbers[::2])
        assert set(range(1, 50, 2)) <= set(numbers)

    run(main, store)


WRITER = textwrap.dedent("""
    import asyncio, sys
    sys.path.insert(0, sys.argv[3])
    from agentwal.claude import AgentwalSessionStore
    from claude_rows import MAIN, fold, row

    async def main():
        async with AgentwalSessionStore(sys.argv[1], fold_session_summary=fold) as adapter:
            for n in range(25):
                await adapter.append(MAIN, [row("n", uuid="%s-%d" % (sys.argv[2], n)), row("n")])

    asyncio.run(main())
""")


def test_append__of_three_processes_to_one_session(tmp_path, start_python, request):
    started = [start_python(WRITER, tmp_path / "store", name, request.path.parent)
               for name in "abc"]
    for process in started:
        assert process.wait(60) == 0

    async def main():
        async with AgentwalSessionStore(tmp_path / "store", fold_session_summary=fold) as adapter:
            loaded = await adapter.load(MAIN)
            assert len(loaded) == 150
            for name in "abc":
                own = [entry["uuid"] for entry in loaded
                       if entry.get("uuid", "").startswith(name)]
                assert own == ["%s-%d" % (name, n) for n in range(25)]
            [summary] = await adapter.list_session_summaries(PROJECT)
            assert summary["data"]["rows"] == 150

    asyncio.run(main())


def test_close__completes_appends_and_refuses_later_calls(tmp_path):
    async def main():
        adapter = AgentwalSessionStore(tmp_path / "store")
        tasks = [asyncio.create_task(adapter.append(MAIN, [row("n", n=n)])) for n in range(50)]
        await asyncio.sleep(0)
        await adapter.close()
        await adapter.close()
        assert await asyncio.gather(*tasks) == [None] * 50
        for call in (lambda: adapter.append(MAIN, messages(1)), lambda: adapter.load(MAIN),
                     lambda: adapter.list_sessions(PROJECT), lambda: adapter.delete(MAIN)):
            with pytest.raises(agentwal.Closed):
                await call()
        async with AgentwalSessionStore(tmp_path / "store") as again:
            assert len(await again.load(MAIN)) == 50

    asyncio.run(main())


def test_fork__of_the_process_is_refused_in_the_child(tmp_path):
    async def main():
        async with AgentwalSessionStore(tmp_path / "store") as adapter:
            await adapter.append(MAIN, messages(1))

            def child():
                async def in_loop():
                    for call in (lambda: adapter.append(MAIN, messages(1)), adapter.close,
                                 lambda: adapter.load(MAIN)):
                        with pytest.raises(agentwal.Forked):
                            await call()

                asyncio.run(in_loop())

            in_child(child)
            assert await adapter.load(MAIN) == messages(1)

    asyncio.run(main())


def test_calls__without_an_event_loop_of_asyncio_begin_nothing(store):
    adapter = AgentwalSessionStore(store)
    for call in (adapter.append(MAIN, messages(1)), adapter.load(MAIN), adapter.fork(MAIN),
                 adapter.close()):
        with pytest.raises(agentwal.Invalid, match="asyncio"):
            call.send(None)
    assert store.list() == []
