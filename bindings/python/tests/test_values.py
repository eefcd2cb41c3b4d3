"""Arguments that are wrong: the package's exceptions, and nothing changes."""

from __future__ import annotations

import datetime
import enum
import json
import math
import random
import sys

import pytest

import agentwal
from agentwal import NewEntry, _json, _wal

HALF_PAIR = "\ud83d"


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, {"a": [math.nan]}])
def test_payload__nan_is_refused(session, value):
    with pytest.raises(agentwal.BadJSON) as caught:
        session.append(value)
    assert caught.value.code == "WAL_EBADJSON" and isinstance(caught.value, ValueError)
    assert len(session) == 0


@pytest.mark.parametrize("value", [object(), b"bytes", {1, 2}, {"a": object()}, {(1, 2): 3}, 1j,
                                   datetime.datetime.now()])
def test_payload__type_that_json_lacks(session, value):
    with pytest.raises(agentwal.InvalidType) as caught:
        session.append(value)
    assert isinstance(caught.value, TypeError) and "payload" in str(caught.value)


def test_payload__cycle_and_depth(session):
    cycle = []
    cycle.append(cycle)
    with pytest.raises(agentwal.BadJSON):
        session.append(cycle)
    deep = []
    for _ in range(100000):
        deep = [deep]
    with pytest.raises(agentwal.BadJSON):
        session.append(deep)
    while deep:
        deep = deep[0]
    session.append(line="[" * 100000)
    with pytest.raises(agentwal.BadJSON):
        session[-1].payload


def test_payload__is_encoded_after_one_that_was_refused(session):
    value = {"list": [1, "a\n\"☃", None, True, 2.5], "same": {}}
    for wrong in (math.nan, [value, object()], {"a": {(1,): 2}}):
        with pytest.raises(agentwal.Invalid):
            session.append(wrong)
        session.append([value, value])
        assert session[-1].payload == [value, value]


@pytest.mark.parametrize("make", [None, lambda: None])
def test_payload__is_encoded_without_what_json_does_not_document(monkeypatch, make):
    with monkeypatch.context() as patch:
        patch.setattr(json.encoder, "c_make_encoder", make)
        pieces = _json._encode_pieces()
    assert "".join(pieces({"a": ["☃", 1]}, 0)) == '{"a":["☃",1]}'


@pytest.mark.parametrize("text", ["{", "", "NaN", '{"a":1}x', b"\xff\xfe", '"\udcff"'])
def test_text__that_is_no_json(session, text):
    with pytest.raises(agentwal.Invalid):
        session.append(text=text)
    assert len(session) == 0


def test_line__nan_is_no_json(session):
    session.append(line='{"a": NaN}')
    with pytest.raises(agentwal.BadJSON, match="NaN"):
        session[0].payload


def test_line__integer_that_python_does_not_convert(session):
    session.append(line="1" * 5000)
    with pytest.raises(agentwal.BadJSON):
        session[0].payload


def test_half_pair__is_kept_as_an_escape_within_json(session):
    session.append({"text": "a" + HALF_PAIR, HALF_PAIR: "☃"})
    assert session[0].payload == {"text": "a" + HALF_PAIR, HALF_PAIR: "☃"}
    assert b"\\ud83d" in session[0].payload_bytes
    session.append({"a": 1}, meta={"m": HALF_PAIR})
    assert session[1].meta == {"m": HALF_PAIR}
    session.documents.put("key", HALF_PAIR)
    assert session.documents.get("key").value == HALF_PAIR


def test_half_pair__is_refused_elsewhere(store, session):
    calls = [lambda: session.append({}, id=HALF_PAIR), lambda: session.append({}, type=HALF_PAIR),
             lambda: session.append({}, parent_id=HALF_PAIR), lambda: session.entry(HALF_PAIR),
             lambda: store.session(HALF_PAIR), lambda: store.create(title=HALF_PAIR),
             lambda: store.list(prefix=HALF_PAIR), lambda: session.documents.get(HALF_PAIR),
             lambda: session.update(title=HALF_PAIR), lambda: session.head(HALF_PAIR),
             lambda: session.append(line=HALF_PAIR), lambda: store.blobs.put(HALF_PAIR),
             lambda: agentwal.open("/nowhere/" + HALF_PAIR)]
    for call in calls:
        with pytest.raises(agentwal.Invalid):
            call()
    assert len(session) == 0


@pytest.mark.parametrize("name, value", [
    ("id", 5), ("id", b"a"), ("parent_id", 5), ("type", None), ("type", 5), ("timestamp", 5),
    ("run_id", []), ("stream", "0"), ("stream", 1.0), ("stream", -1), ("stream", 2 ** 32),
    ("stream", 2 ** 80), ("stream", 256), ("meta", []), ("meta", "{}"), ("meta", {"a": math.nan}),
    ("move_head", 1), ("durability", "soon"), ("durability", []), ("expect_tail", 5),
    ("id", "x" * 256), ("timestamp", "x" * 65), ("parent_id", "")])
def test_append__wrong_argument(session, name, value):
    with pytest.raises(agentwal.Invalid):
        session.append({"n": 1}, **{name: value})
    assert len(session) == 0


@pytest.mark.parametrize("arguments", [
    {"text": 5}, {"text": [b"1"]}, {"line": 5}, {"line": ["x"]}])
def test_append__wrong_content(session, arguments):
    with pytest.raises(agentwal.InvalidType, match="payload"):
        session.append(**arguments)


def test_append__buffers_are_taken_for_lines(session):
    session.append(line=bytearray(b"one"))
    session.append(line=memoryview(b"two"))
    session.append(line=session[0].payload_view)
    assert [entry.payload_bytes for entry in session] == [b"one", b"two", b"one"]


def test_create__wrong_arguments(store):
    for arguments in ({"id": 5}, {"cwd": b"/x"}, {"cwd": 5}, {"title": b"x"}, {"metadata": []},
                      {"metadata": {"a": math.inf}}, {"schema_version": -1},
                      {"created": "today"}, {"created": 10 ** 400},
                      {"created": datetime.datetime.min}, {"created": math.nan}, {"created": True},
                      {"title": "x" * 5000}, {"id": "x" * 256}):
        with pytest.raises(agentwal.Invalid):
            store.create(**arguments)
    assert store.list() == []


def test_open__wrong_arguments(tmp_path):
    for arguments in ({"queue_limit": "x"}, {"queue_limit": -1}, {"lock_timeout": "x"},
                      {"lock_timeout": -1}, {"lock_timeout": math.nan}, {"group_align": 7},
                      {"schema_version": 2 ** 33}):
        with pytest.raises(agentwal.Invalid):
            agentwal.open(tmp_path / "store", **arguments)
    for path in (5, None, object()):
        with pytest.raises(agentwal.InvalidType):
            agentwal.open(path)
    with pytest.raises(agentwal.Invalid, match="NUL"):
        agentwal.open("a\0b")
    assert list(tmp_path.iterdir()) == []


def test_times__datetime_and_seconds(store):
    moment = datetime.datetime(2026, 1, 2, 3, 4, 5, 678000, datetime.timezone.utc)
    for created in (moment, moment.timestamp(), moment.astimezone()):
        info = store.create(created=created).info()
        assert info.created == moment and info.created_ms == 1767323045678
    assert [info.created_ms for info in store.list(changed_after=moment.timestamp() - 1)] == [
        1767323045678] * 3
    assert store.list(changed_after=moment) == []


def test_enums_and_subclasses_are_what_they_derive_from(session):
    class Text(str):
        pass

    class Number(enum.IntEnum):
        ONE = 1

    session.append({"n": Number.ONE}, id=Text("a"), stream=Number.ONE)
    assert session.entries(stream=1).first().payload == {"n": 1}


def test_classes__are_not_made_by_hand():
    for make in (lambda: agentwal.Store(5, ""), lambda: agentwal.Session(None, 5),
                 lambda: agentwal.Store(None, "")):
        with pytest.raises(agentwal.InvalidType):
            make()
    for kind in (_wal.Handle, _wal.Entry, _wal.EntryIterator):
        with pytest.raises(TypeError):
            kind()


# -------------------------------------------------- the extension itself ---

def calls_of_the_extension():
    return sorted(name for name in vars(_wal) if not name.startswith("_") and name.islower())


def test_extension__any_arguments_raise(store, session, tmp_path):
    """Random arguments: no crash, and no exception but those of the package."""
    seed = random.randrange(2 ** 32)
    print("seed", seed)
    generator = random.Random(seed)
    handles = [store._handle, session._handle, session.submit({})._handle,
               _wal.blob_create_named(store._handle),
               _wal.blob_open(store._handle, store.blobs.put(b"abc"))]
    row = (0, 0, None, None, "message", None, None, "{}", None)
    values = [None, True, 0, 1, -1, 2 ** 31, 2 ** 64, 2 ** 80, 1.5, "", "a", "\udcff", b"", b"x",
              (), (1,), ((),), (row,), (row[:-1],), [], {}, object(), len, math.nan, (None,) * 6,
              (None,) * 7, (0,) * 6, (0,) * 9, ("a",) * 6, (b"a",), ("a",), "a" * 64, *handles]
    # These end the handles, or write elsewhere.
    left_out = {"store_close", "handle_close", "open", "migrate", "salvage", "import_tree",
                "import_scan", "import_follow_open", "store_backup", "bundle_write", "bundle_read",
                "store_wait", "ticket_wait", "import_clients", "view_open", "bundle_detect",
                "session_remove"}
    names = [name for name in calls_of_the_extension() if name not in left_out]
    assert len(names) > 50
    for _ in range(20000):
        name = generator.choice(names)
        count = generator.randrange(6)
        arguments = [generator.choice(values) for _ in range(count)]
        if count and generator.random() < 0.7:
            arguments[0] = generator.choice(handles)
        try:
            getattr(_wal, name)(*arguments)
        except agentwal.Error:
            pass
        except TypeError as error:  # a function that was given as a callback
            assert "len" in str(error) or "callable" in str(error), (name, arguments)
    assert session.info().id == session.id


def test_extension__wrong_handles_and_counts(store, session):
    for name in calls_of_the_extension():
        for arguments in ((), (5,), (store._handle,) * 9):
            if name in ("version", "view_dialects", "import_dialects", "import_clients"):
                arguments += (1,)
            if name in ("is_open", "store_info"):
                continue
            try:
                getattr(_wal, name)(*arguments)
            except agentwal.Invalid:
                continue
            assert (name, len(arguments)) in {("store_sync", 1), ("store_flush", 1)}, name
    with pytest.raises(agentwal.InvalidType, match="a store is needed, not a session"):
        _wal.store_info(session._handle)
    with pytest.raises(agentwal.InvalidType):
        _wal.handle_close(store._handle)


def test_extension__rows_of_wrong_lengths(session):
    for rows in (((),), (NewEntry({}),), ((0,) * 20,), [()], {}, None):
        with pytest.raises(agentwal.InvalidType):
            _wal.append(session._handle, rows, (0, 0, None))
    with pytest.raises(agentwal.InvalidType):
        _wal.append(session._handle, (), (0, 0))
    with pytest.raises(agentwal.Invalid):
        _wal.append(session._handle, (), (0, 0, None))


def test_references__are_neither_lost_nor_kept(store, session):
    """Of the objects that calls take and refuse."""
    text, rows = "x" * 100, []
    before = [sys.getrefcount(value) for value in (text, rows, None)]
    for _ in range(1000):
        for call in (lambda: _wal.append(session._handle, rows, text),
                     lambda: _wal.session_open(store._handle, text),
                     lambda: _wal.head_get(session._handle, 0, text),
                     lambda: _wal.store_compact(store._handle, (0, 0, 0, 0), rows)):
            try:
                call()
            except agentwal.Error:
                pass
    after = [sys.getrefcount(value) for value in (text, rows, None)]
    assert all(abs(a - b) < 50 for a, b in zip(after, before)), (before, after)


@pytest.mark.parametrize("call", [
    lambda store, session: session.commit(documents=None),
    lambda store, session: session.commit(documents="ab"),
    lambda store, session: session.commit(heads=3),
    lambda store, session: store.create(created=1e308),
    lambda store, session: store.create(created=10 ** 400),
    lambda store, session: store.merge(agentwal.memory(), sessions=3),
    lambda store, session: session.compact(first_kept="a", summary="s", into={1: 2}),
    lambda store, session: store.search(memory=True).find("x", roles=None),
    lambda store, session: store.blobs.open(store.blobs.put(b"abc")).read("x"),
    lambda store, session: store.blobs.open(store.blobs.put(b"abc")).read_at(None),
    lambda store, session: store.blobs.open(store.blobs.put(b"abc")).seek("x"),
])
@pytest.mark.filterwarnings("ignore::ResourceWarning")
def test_argument__of_a_wrong_type_raises_an_error_of_the_package(store, session, call):
    with pytest.raises(agentwal.Error):
        call(store, session)
