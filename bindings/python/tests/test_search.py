"""Full-text search."""

from __future__ import annotations

import asyncio
import datetime
import gc
import os
import pickle
import threading

import pytest

import agentwal
from agentwal import aio


def say(session, role, text, id=None):
    session.append(agentwal.NewEntry({"role": role, "content": text}, id=id))


def ids(sessions):
    """The hits as "SESSION:ENTRY"; "-" for a title."""
    return ["%s:%s" % (found.session_id, hit.entry_id or "-")
            for found in sessions for hit in found.hits]


def marked(hit):
    return [hit.snippet[start:end] for start, end in hit.matches]


def fill_roles(store):
    session = store.create(id="s", title="needle title")
    say(session, "user", "needle", "user")
    session.append(agentwal.NewEntry(
        {"role": "assistant", "content": [
            {"type": "text", "text": "I read"},
            {"type": "toolCall", "id": "1", "name": "Read",
             "arguments": {"path": "/src/needle.c"}}]}, id="call"))
    say(session, "assistant", "needle there", "assistant")
    say(session, "tool", "needle in a result", "result")
    session.append(agentwal.NewEntry({"summary": "needle was sought", "firstKeptEntryId": "user"},
                                     id="summary", type="compaction_summary"))
    return session


@pytest.fixture
def large(disk_store):
    """A store with many messages."""
    session = disk_store.create(id="large")
    for i in range(40):
        session.append_many([{"role": "user",
                              "content": "number %d of many words that are indexed" % (i * 500 + j)}
                             for j in range(500)], durability="written")
    return disk_store


def test_find__words_phrases_beginnings_and_exclusions(store):
    session = store.create(id="s", title="Totals", cwd="/srv", project="tax")
    say(session, "user", "The invoice total is wrong", "a")
    say(session, "assistant", "The total invoice was rounded", "b")
    with store.search() as search:
        found, = search.find("INVOICE total")
        assert (found.session_id, found.title, found.cwd, found.project_id, found.matches) == (
            "s", "Totals", "/srv", "tax", 2)
        assert found.updated == session.info().updated
        first, second = found.hits
        assert (first.entry_id, first.role, first.tool) == ("a", "user", None)
        assert first.snippet == "The invoice total is wrong"
        assert first.matches == ((4, 11), (12, 17))
        assert first.score > second.score > 0
        assert first.time == datetime.datetime.fromisoformat(first.timestamp)
        assert first.sequence == session.entry("a").sequence
        assert ids(search.find('"total invoice"')) == ["s:b"]
        assert ids(search.find("round*")) == ["s:b"]
        assert ids(search.find("invoice -wrong")) == ["s:b"]
        assert search.find("absent") == []


def test_find__scripts_without_spaces(store):
    say(store.create(id="s"), "user", "全文検索機能を作る", "a")
    with store.search() as search:
        for part in ("検索", "検索機", "機能"):
            assert marked(search.find(part)[0].hits[0]) == [part]
        assert ids(search.find("文")) == ["s:a"]
        assert search.find("索検") == []


def test_find__offsets_are_characters(store):
    say(store.create(id="s"), "user", "😀 é 𝒳𝒴 needle ü 😀 needle 検", "a")
    with store.search() as search:
        hit = search.find("needle")[0].hits[0]
        assert hit.matches == ((7, 13), (18, 24))
        assert marked(hit) == ["needle", "needle"]
        assert marked(search.find("検")[0].hits[0]) == ["検"]


def test_find__roles_tools_and_results(store):
    fill_roles(store)
    with store.search() as search:
        hits = search.find("needle", hits=10, deep=True)[0].hits
        assert {hit.role: hit.entry_id for hit in hits} == {
            "title": None, "user": "user", "assistant": "assistant", "tool": "call",
            "result": "result", "summary": "summary"}
        assert "s:result" not in ids(search.find("needle", hits=10))
        assert len(ids(search.find("needle"))) == 3
        assert ids(search.find("needle", roles=["user", "title"])) == ["s:-", "s:user"]
        assert ids(search.find("needle", roles=["result"])) == ["s:result"]
        hit, = search.find("needle", tool="Read")[0].hits
        assert (hit.entry_id, hit.role, hit.tool) == ("call", "tool", "Read")
        assert ids(search.find("", tool="Read")) == ["s:call"]


def test_find__sessions_projects_directories_and_times(store):
    for id, day in (("a", 1), ("b", 2), ("c", 3)):
        session = store.create(id=id, cwd="/srv/%s" % id, project="p-%s" % id)
        session.append(agentwal.NewEntry(
            {"role": "user", "content": "%s word %s" % ("long " * 50, "text " * 50)},
            id="%s1" % id, timestamp="2026-01-%02dT00:00:00.000Z" % day))
    second = datetime.datetime(2026, 1, 2, tzinfo=datetime.timezone.utc)
    with store.search() as search:
        assert ids(search.find("word", session="b")) == ["b:b1"]
        assert ids(search.find("word", project="p-a")) == ["a:a1"]
        assert ids(search.find("word", cwd="/srv/c")) == ["c:c1"]
        assert ids(search.find("word", since=second)) == ["c:c1", "b:b1"]
        assert ids(search.find("word", until=second.timestamp())) == ["a:a1"]
        assert ids(search.find("word", limit=2)) == ["c:c1", "b:b1"]
        short = search.find("word", snippet=10)[0].hits[0]
        long = search.find("word", snippet=200)[0].hits[0]
        assert len(short.snippet) < 40 and len(long.snippet) > 300
        assert marked(short) == marked(long) == ["word"]
        with pytest.raises(agentwal.NotFound):
            search.find("word", session="none")


def test_find__substring(store):
    say(store.create(id="s"), "user", "a misunderstanding", "a")
    with store.search() as search:
        assert search.find("understand") == []
        assert marked(search.find("understand", substring=True)[0].hits[0]) == ["understand"]
        with pytest.raises(agentwal.Invalid):
            search.find("un", substring=True)


def test_find__what_was_redacted_or_deleted_is_not_found(disk_store):
    session, other = disk_store.create(id="kept"), disk_store.create(id="gone")
    say(session, "user", "secret password", "a")
    say(session, "user", "secret plan", "b")
    say(other, "user", "secret plan too", "c")
    with disk_store.search() as search:
        assert len(ids(search.find("secret"))) == 3
        session.redact("a")
        other.delete()
        for update in (False, True):
            assert ids(search.find("secret", update=update)) == ["kept:b"]
        session.trash()
        assert search.find("secret") == []
        with pytest.raises(agentwal.Trashed):
            search.find("secret", session="kept")


@pytest.mark.parametrize("text, options", [
    (None, {}), (5, {}), ("", {}), ("-word", {}), ("\ud800", {}), ("x" * 5000, {}),
    ("word", {"roles": "user"}), ("word", {"roles": ["person"]}), ("word", {"roles": [None]}),
    ("word", {"limit": 0}), ("word", {"limit": True}), ("word", {"limit": 2 ** 32}),
    ("word", {"hits": -1}), ("word", {"snippet": 1.5}), ("word", {"since": "today"}),
    ("word", {"until": float("nan")}), ("word", {"session": 5}), ("word", {"cwd": b"x"}),
    ("word", {"on_progress": 5})])
def test_find__wrong_arguments(store, text, options):
    with store.search() as search:
        with pytest.raises(agentwal.Invalid):
            search.find(text, **options)


def test_find__the_index_as_it_is(store):
    session = store.create(id="s")
    say(session, "user", "first word", "a")
    with store.search() as search:
        assert ids(search.find("word")) == ["s:a"]
        say(session, "user", "second word", "b")
        assert ids(search.find("word", update=False)) == ["s:a"]
        assert sorted(ids(search.find("word"))) == ["s:a", "s:b"]


def test_find__sixteen_threads(large):
    """Half of them on one search."""
    one = large.search()
    searches = [one if i < 8 else large.search() for i in range(16)]
    found, failures = {}, []

    def find(number):
        try:
            sessions = searches[number].find('"number %d of"' % (1000 + number))
            found[number] = sessions[0].hits[0].snippet
        except Exception as error:  # it is asserted on in the main thread
            failures.append(error)

    threads = [threading.Thread(target=find, args=(i,)) for i in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert found == {i: "number %d of many words that are indexed" % (1000 + i)
                     for i in range(16)}
    for search in searches:
        search.close()


def test_find__other_threads_run(large):
    """The interpreter's lock is released."""
    seen = []

    def count():
        while not done.wait(0.0005):
            seen.append(1)

    done = threading.Event()
    thread = threading.Thread(target=count)
    thread.start()
    with large.search(memory=True) as search:
        before = len(seen)
        search.update(deep=True)
        turns = len(seen) - before
    done.set()
    thread.join()
    assert turns > 3


def test_progress__is_reported_and_its_exception_stops_the_update(large):
    calls = []
    with large.search(memory=True) as search:
        with pytest.raises(ZeroDivisionError):
            search.find("number", on_progress=lambda done, total: 1 / 0)
        assert ids(search.find('"number 7 of"', on_progress=lambda *call: calls.append(call)))
        assert calls and all(done <= total for done, total in calls)
        with pytest.raises(agentwal.Busy, match="used by another call"):
            search.update(deep=True, on_progress=lambda done, total: search.find("number"))
        with pytest.raises(agentwal.Busy, match="cannot be closed by a function"):
            search.update(deep=True, on_progress=lambda done, total: large.close())
        assert search.update(deep=True).built > 0


def test_update__makes_files(large):
    names = lambda: {name[16:] for name in os.listdir("%s/index" % large.path) if ".fts" in name}
    with large.search() as search:
        result = search.update()
        assert result.segments >= result.built > 0 and result.unwritten == 0
        assert result.read_bytes > 0 and result.text_bytes > 0 and result.index_bytes > 0
        assert search.update().built == 0
        assert not any("deep" in name for name in names())
        search.update(deep=True)
        assert any("deep" in name for name in names())


def test_close__of_a_search(store):
    say(store.create(id="s"), "user", "a word", "a")
    search = store.search()
    search.close()
    search.close()
    for call in (lambda: search.find("word"), search.update):
        with pytest.raises(agentwal.Closed, match="a search was closed"):
            call()
    search = store.search()
    with search:
        assert ids(search.find("word")) == ["s:a"]
    with pytest.raises(agentwal.Closed):
        search.find("word")


def test_close__of_the_store_first(tmp_path):
    store = agentwal.open(tmp_path / "store")
    fill_roles(store)
    idle, search = store.search(), store.search()
    assert ids(search.find("needle", roles=["result"])) == ["s:result"]
    store.close()
    for one in (idle, search):
        for call in (lambda: one.find("word"), one.update):
            with pytest.raises(agentwal.Closed, match="the store was closed"):
                call()
        one.close()
        one.close()
    with pytest.raises(agentwal.Closed):
        store.search()


@pytest.mark.parametrize("first", ["search", "store"])
def test_close__while_a_find_runs(large, first):
    """The find is completed, or has not begun."""
    search, begun, results = large.search(memory=True), threading.Event(), []

    def find():
        try:
            results.append(ids(search.find('"number 7 of"', on_progress=lambda *_: begun.set())))
        except agentwal.Closed:
            results.append(None)

    threads = [threading.Thread(target=find) for _ in range(3)]
    for thread in threads:
        thread.start()
    begun.wait()
    (search if first == "search" else large).close()
    (large if first == "search" else search).close()
    for thread in threads:
        thread.join()
    assert len(results) == 3 and any(results)


def test_collection__of_searches(store):
    say(store.create(id="s"), "user", "a word", "a")
    for _ in range(50):
        store.search()
        assert ids(store.search().find("word")) == ["s:a"]
    gc.collect()
    search = store.search()
    search.find("word")
    del search


def test_search__is_of_one_process(large):
    search = large.search()
    with pytest.raises(agentwal.InvalidType, match="pickled"):
        pickle.dumps(search)
    locked = threading.Event()
    holder = threading.Thread(target=lambda: search.find("number",
                                                         on_progress=lambda *_: locked.set()))
    holder.start()
    locked.wait()
    child = os.fork()
    if child == 0:
        try:
            search.find("number")
        except agentwal.Forked:
            search.close()
            os._exit(0)
        finally:
            os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    holder.join()
    assert search.find("number 7")
    search.close()


def test_search__store_without_files(store):
    fill_roles(store)
    with store.search() as search:
        assert ids(search.find("needle", roles=["user"])) == ["s:user"]


def test_search__memory_makes_no_file(disk_store):
    fill_roles(disk_store)
    folder = "%s/index" % disk_store.path
    files = lambda: [name for name in os.listdir(folder) if ".fts" in name]
    with disk_store.search(memory=True) as search:
        assert ids(search.find("needle", roles=["user"])) == ["s:user"]
        assert search.update().unwritten > 0
    assert files() == []
    with disk_store.search() as search:
        search.update()
    assert files()


def test_search__read_only_store(tmp_path):
    with agentwal.open(tmp_path / "store") as store:
        fill_roles(store)
    with agentwal.open(tmp_path / "store", read_only=True) as store:
        with store.search() as search:
            assert ids(search.find("needle", roles=["user"])) == ["s:user"]
            assert search.update().unwritten > 0
    assert not [name for name in os.listdir(tmp_path / "store" / "index") if ".fts" in name]


def test_aio__search(tmp_path):
    async def main():
        async with aio.open(tmp_path / "store") as store:
            session = await store.create(id="s")
            await session.append({"role": "user", "content": "a word of many"})
            async with await store.search() as search:
                found = await asyncio.gather(*(search.find("word") for _ in range(16)))
                assert [[one.session_id for one in sessions] for sessions in found] == [["s"]] * 16
                assert (await search.update(deep=True)).built > 0
                with pytest.raises(agentwal.Invalid):
                    await search.find("")
            with pytest.raises(agentwal.Closed):
                await search.find("word")
            late = await store.search(memory=True)
        with pytest.raises(agentwal.Closed):
            await late.find("word")
        await late.close()

    asyncio.run(main())
