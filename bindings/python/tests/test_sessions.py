"""Sessions and documents: creating, listing, changing, the trash, claims, schema versions."""

from __future__ import annotations

import pathlib

import pytest

import agentwal


def test_create__all_options(store):
    parent = store.create()
    session = store.create(id="mine", cwd=pathlib.Path("/srv/app"), project="p", title="Titel ☃",
                           parent_id=parent.id, source="file", metadata={"a": [1]},
                           schema_version=3)
    info = store.session("mine").info()
    assert (info.id, info.cwd, info.project, info.title, info.parent_id, info.source,
            info.metadata, info.schema_version) == (
        "mine", "/srv/app", "p", "Titel ☃", parent.id, "file", {"a": [1]}, 3)
    assert session.id == "mine" and "mine" in repr(session) and session.store is store
    assert not (info.is_fork or info.is_damaged or info.is_deleted or info.is_trashed
                or info.is_moved)
    with pytest.raises(agentwal.Exists) as caught:
        store.create(id="mine")
    assert caught.value.actual == "mine"
    with pytest.raises(agentwal.NotFound):
        store.session("other")


def test_open_or_create__latest_of_a_directory(store):
    session, created = store.open_or_create(cwd="/a", title="First")
    assert created
    again, created = store.open_or_create(cwd="/a")
    assert not created and again.id == session.id
    assert store.open_or_create(id="x")[1] and not store.open_or_create(id="x")[1]
    assert store.latest(cwd="/a").id == session.id and store.latest(cwd="/b") is None
    assert store.latest().id == "x"


def test_list__filters_and_pages(store):
    for number in range(25):
        store.create(id="s%02d" % number, project="even" if number % 2 == 0 else "odd",
                     created=1000000000 + number)
    page = store.list(limit=10)
    assert [info.id for info in page] == ["s%02d" % n for n in range(24, 14, -1)]
    ids = [info.id for info in page]
    while page.next is not None:
        page = store.list(limit=10, after=page.next)
        ids += [info.id for info in page]
    assert ids == ["s%02d" % n for n in range(24, -1, -1)]
    assert [info.id for info in store.sessions()] == ids
    assert len(store.list(project="odd")) == 12
    assert [info.id for info in store.list(prefix="s0", limit=2)] == ["s09", "s08"]
    page = store.list(limit=25)
    assert len(page) == 25 and page.next is None and page[0].metadata is None
    for limit in (0, -1, "x", 1.5):
        with pytest.raises(agentwal.Invalid, match="limit"):
            store.list(limit=limit)
    with pytest.raises(agentwal.Invalid):
        store.list(after="nonsense")


def test_list__parents_and_lineage(store):
    root = store.create(id="root")
    root.append({"n": 1})
    child = root.fork(id="child")
    child.fork(id="grandchild")
    assert [info.id for info in store.list(parent="root")] == ["child"]
    lineage = [info.id for info in store.sessions(lineage_of="grandchild")]
    assert lineage == ["child", "root"]
    recorded = store.info().last_sequence
    assert store.list(recorded_after=recorded) == []
    root.append({"n": 2})
    assert [info.id for info in store.list(recorded_after=recorded)] == ["root"]


def test_update__fields_and_function(session):
    session.update(title="One", metadata={"n": 1}, cwd="/x", project="p")
    session.update(lambda now: {"metadata": {"n": now.metadata["n"] + 1, "was": now.title}})
    info = session.info()
    assert info.metadata == {"n": 2, "was": "One"} and info.cwd == "/x" and info.project == "p"


def test_update__exception_of_the_function_is_raised(session):
    class Stop(Exception):
        pass

    def change(now):
        raise Stop("enough")

    with pytest.raises(Stop, match="enough"):
        session.update(change)
    for wrong in (lambda now: None, lambda now: {"titel": 1}, lambda now: {"title": 1},
                  lambda now: {"metadata": []}):
        with pytest.raises(agentwal.Invalid):
            session.update(wrong)
    with pytest.raises(agentwal.Invalid):
        session.update()
    with pytest.raises(agentwal.Invalid):
        session.update(lambda now: {}, title="x")
    with pytest.raises(agentwal.InvalidType):
        session.update("x")
    assert session.info().title == ""


def test_update__function_may_use_the_store_but_not_close_it(store, session):
    def change(now):
        session.append({"n": 1})
        with pytest.raises(agentwal.Busy, match="close it when the call has returned"):
            store.close()
        return {"title": "T"}

    session.update(change)
    assert session.info().title == "T" and len(session) >= 1 and store.is_open


def test_update__function_that_closes_its_session(session):
    def change(now):
        session.close()
        return {"title": "T"}

    store, name = session.store, session.id
    session.update(change)
    with pytest.raises(agentwal.Closed):
        session.info()
    assert store.session(name).info().title == "T"


def test_update__of_several_writers_are_all_kept(store, session):
    others = [store.session(session.id) for _ in range(3)]
    session.update(metadata={"n": 0})
    once = iter(others)

    def change(now):
        other = next(once, None)
        if other is not None:
            other.update(lambda now: {"metadata": {"n": now.metadata["n"] + 1}})
        return {"metadata": {"n": now.metadata["n"] + 1}}

    session.update(change)
    assert session.info().metadata == {"n": 4}


def test_migrate__one_version_at_a_time(session):
    seen = []

    def step(now):
        seen.append(now.schema_version)
        return {"metadata": {"version": now.schema_version + 1}}

    session.migrate(4, step)
    assert seen == [1, 2, 3] and session.info().schema_version == 4
    with pytest.raises(agentwal.SchemaMismatch):
        session.migrate(2, step)
    with pytest.raises(agentwal.SchemaMismatch):
        session.migrate(9)


def test_schema_version__writer_of_another_is_refused():
    with agentwal.memory(schema_version=2) as store:
        with pytest.raises(agentwal.SchemaMismatch) as caught:
            store.create(schema_version=1)
        assert caught.value.code == "WAL_ESCHEMA"
        assert store.create().info().schema_version == 2


def test_trash__and_undelete(store, session):
    session.append({"n": 1})
    session.trash()
    assert session.info().is_trashed and store.list() == []
    assert [info.id for info in store.list(trash=True)] == [session.id]
    with pytest.raises(agentwal.Trashed):
        session.append({"n": 2})
    with pytest.raises(agentwal.Trashed):
        store.session(session.id)
    store.undelete(session.id)
    session.append({"n": 2})
    assert len(store.session(session.id)) == 2
    with pytest.raises(agentwal.NotFound):
        store.undelete(session.id)


def test_delete__for_good(store, session):
    session.delete()
    with pytest.raises(agentwal.NotFound):
        session.info()
    with pytest.raises(agentwal.NotFound):
        store.session(session.id)


def test_claim__by_one_handle(tmp_path):
    with agentwal.open(tmp_path / "store") as store:
        session = store.create()
        other = store.session(session.id)
        with session.claimed():
            with pytest.raises(agentwal.Claimed) as caught:
                other.claim()
            assert isinstance(caught.value, agentwal.Locked) and caught.value.holder > 0
            [claim] = store.claims()
            assert claim.own and claim.session_id == session.id
        other.claim()
        other.close()
        session.claim()
        session.unclaim()
        assert store.claims() == []


def test_accept_damage__of_what_is_sound(store, session):
    session.accept_damage()
    store.accept_damage()


# ------------------------------------------------------------- documents ---

def test_documents__versions(session):
    documents = session.documents
    first = documents.put("key", {"n": 1})
    second = documents.put("key", {"n": 2}, expect=first)
    assert second > first and documents.get("key").value == {"n": 2}
    assert documents.get("key", version=first).value == {"n": 1}
    with pytest.raises(agentwal.Conflict) as caught:
        documents.put("key", {"n": 3}, expect=first)
    assert caught.value.expectation == "document" and caught.value.actual == str(second)
    with pytest.raises(agentwal.Conflict):
        documents.put("key", {"n": 3}, expect=0)
    documents.delete("key", expect=second)
    assert documents.get("key") is None and "key" not in documents
    with pytest.raises(agentwal.NotFound):
        documents.delete("key")
    history = documents.list(history=True)
    assert [d.deleted for d in history] == [True, False, False]
    assert [d.value for d in history] == [None, {"n": 2}, {"n": 1}]


def test_documents__list_and_iterate(store):
    for key in ("b", "a/2", "a/1"):
        store.documents.put(key, key)
    assert [d.key for d in store.documents] == ["a/1", "a/2", "b"]
    assert [d.value for d in store.documents.list("a/")] == ["a/1", "a/2"]
    assert [d.value for d in store.documents.list(keys=True)] == [None] * 3
    assert "b" in store.documents and 5 not in store.documents
    assert store.documents.get("b").modified.year >= 2024


def test_documents__null_is_a_value(session):
    session.documents.put("key", None)
    document = session.documents.get("key")
    assert document is not None and document.value is None and not document.deleted


@pytest.mark.parametrize("key, value", [(5, 1), ("", 1), ("k" * 2000, 1), ("k", object()),
                                        ("k", float("nan")), ("k", agentwal.UNSET)])
def test_documents__wrong_arguments(session, key, value):
    with pytest.raises(agentwal.Invalid):
        session.documents.put(key, value)
    assert session.documents.list() == []


def test_entry_id__empty_is_refused_and_changes_nothing(session):
    """The library takes it for none: a fork of everything, the branch of the head."""
    session.append_many([{"n": number} for number in range(3)])
    for call in (lambda: session.fork(at=""), lambda: list(session.entries(up_to="")),
                 lambda: session.append({}, expect_tail=""),
                 lambda: session.append({}, parent_id=""), lambda: session.redact(""),
                 lambda: session.compact(first_kept="", summary="x"),
                 lambda: session.commit(heads=[agentwal.HeadMove("", "main")])):
        with pytest.raises(agentwal.Invalid, match="1 to 255 bytes"):
            call()
    assert len(session) == 3 and len(session.store.list()) == 1


def test_expect_sequence__another_writer_was_there(store):
    session = store.create(id="s")
    session.append({"n": 1}, id="a")
    before = session.info().last_sequence
    store.session("s").append({"n": 2}, id="b")
    now = session.info().last_sequence
    for call in (lambda: session.delete(expect_sequence=before),
                 lambda: session.trash(expect_sequence=before),
                 lambda: session.update(title="x", expect_sequence=before),
                 lambda: session.update(lambda now: {"title": "x"}, expect_sequence=before),
                 lambda: session.commit(entries=[{"n": 3}], expect_sequence=before),
                 lambda: session.commit(change={"title": "x"}, expect_sequence=before),
                 lambda: session.submit_commit(entries=[{"n": 3}], expect_sequence=before).wait()):
        with pytest.raises(agentwal.Conflict) as caught:
            call()
        assert caught.value.expectation == "sequence" and caught.value.actual == str(now)
    assert session.info().last_sequence == now
    session.update(title="y", expect_sequence=now)
    assert session.info().title == "y"
    session.commit(entries=[agentwal.NewEntry({"n": 3}, id="c")],
                   expect_sequence=session.info().last_sequence)
    session.commit(entries=[agentwal.NewEntry({"n": 3}, id="c")], expect_sequence=0)
    session.trash(expect_sequence=session.info().last_sequence)
    store.undelete("s")
    session.delete(expect_sequence=session.info().last_sequence)
    with pytest.raises(agentwal.NotFound):
        session.delete(expect_sequence=1)


@pytest.mark.parametrize("wrong", [-1, 0.5, "1", 2 ** 64, object()])
def test_expect_sequence__is_no_number(session, wrong):
    for call in (lambda: session.delete(expect_sequence=wrong),
                 lambda: session.trash(expect_sequence=wrong),
                 lambda: session.update(title="x", expect_sequence=wrong),
                 lambda: session.commit(expect_sequence=wrong)):
        with pytest.raises(agentwal.Invalid, match="expect_sequence"):
            call()
    assert session.info().title == ""
