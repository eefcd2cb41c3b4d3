"""Reading, following, forks and heads."""

from __future__ import annotations

import io
import itertools
import threading
import time

import pytest

import agentwal
from agentwal import NewEntry


@pytest.fixture
def numbers(session):
    session.append_many(NewEntry({"n": number}, id="e%d" % number) for number in range(1000))
    return session


def payloads(entries):
    return [entry.payload["n"] for entry in entries]


def test_iteration__in_order(numbers):
    assert payloads(numbers) == list(range(1000)) and len(numbers) == 1000
    assert [entry.depth for entry in numbers] == list(range(1000))
    assert [entry.parent_id for entry in numbers][:3] == [None, "e0", "e1"]


def test_iteration__entries_is_iterated_anew(numbers):
    entries = numbers.entries(skip=990)
    assert payloads(entries) == payloads(entries) == list(range(990, 1000))
    assert len(entries) == 10 and entries.first().id == "e990" and len(entries.to_list()) == 10
    assert numbers.entries(skip=2000).first() is None


@pytest.mark.parametrize("index", [0, 1, 500, 999, -1, -2, -1000])
def test_index__is_that_of_a_list(numbers, index):
    assert numbers[index].payload["n"] == list(range(1000))[index]


@pytest.mark.parametrize("index", [1000, -1001, 2 ** 40])
def test_index__out_of_range(numbers, index):
    with pytest.raises(IndexError):
        numbers[index]


@pytest.mark.parametrize("positions", [
    slice(None), slice(-10, None), slice(5), slice(990, None), slice(-5, -2), slice(3, 9, 2),
    slice(None, None, -1), slice(9, 3, -2), slice(-2000, None), slice(5, 2), slice(0, 0),
    slice(None, None, 333), slice(-10, None, 3), slice(1005, None)])
def test_slice__is_that_of_a_list(numbers, positions):
    assert payloads(numbers[positions]) == list(range(1000))[positions]


def test_index__of_an_empty_session(session):
    assert session[-3:] == [] and session[:] == [] and list(session) == [] and len(session) == 0
    assert bool(session) and session.head() is None and session.heads() == []
    with pytest.raises(IndexError):
        session[0]
    with pytest.raises(IndexError):
        session[-1]
    with pytest.raises(agentwal.InvalidType):
        session["a"]


def test_entry__by_id(numbers):
    assert numbers.entry("e7").payload == {"n": 7}
    assert numbers.entry("missing") is None


def test_entries__last_up_to_and_head(numbers):
    assert payloads(numbers.entries(last=3)) == [997, 998, 999]
    assert payloads(numbers.entries(up_to="e4", last=2)) == [3, 4]
    assert payloads(numbers.entries(up_to=numbers[2])) == [0, 1, 2]
    numbers.move_head("e9", name="mark")
    assert len(numbers.entries(head="mark")) == 10
    with pytest.raises(agentwal.NotFound):
        list(numbers.entries(up_to="missing"))
    with pytest.raises(agentwal.NotFound):
        list(numbers.entries(head="missing"))
    with pytest.raises(agentwal.Invalid, match="last"):
        numbers.entries(last=0)
    with pytest.raises(agentwal.Invalid, match="mode"):
        numbers.entries(mode="tree")


def test_entries__mode_all_has_every_branch(numbers):
    numbers.append({"n": -1}, parent_id="e0")
    assert len(numbers) == 1000 and len(numbers.entries(mode="all")) == 1001


def test_iterator__remaining(numbers):
    iterator = iter(numbers)
    assert iterator.remaining() == 1000
    for left in range(999, 0, -1):
        next(iterator)
        assert iterator.remaining() == left
    assert len(list(iterator)) == 1 and iterator.remaining() == 0
    assert next(iterator, None) is None


def test_iterator__large_payloads_are_read_a_few_at_a_time(session):
    for number in range(20):
        session.append({"n": number, "text": "x" * 300000}, durability="queued")
    session.store.flush()
    assert [entry.payload["n"] for entry in session] == list(range(20))


def test_iterator__entry_that_was_redacted_meanwhile(numbers):
    numbers.redact("e900", reason="secret")
    assert 900 not in payloads(e for e in numbers if e.type == "message")
    with pytest.raises(agentwal.Redacted):
        numbers.entry("e900")
    redacted = numbers.entries(redacted=True).to_list()[900]
    assert redacted.is_redacted and redacted.payload["reason"] == "secret"
    numbers.unredact("e900")
    assert 900 in payloads(e for e in numbers if e.type == "message")
    with pytest.raises(agentwal.NotFound):
        numbers.unredact("e900")
    numbers.redact("e900")
    numbers.store.compact(erase=True)
    with pytest.raises(agentwal.Redacted):
        numbers.unredact("e900")


def test_entries__since_compaction(numbers):
    compaction = numbers.compact(first_kept="e998", summary="Counted.")
    assert compaction.session is numbers
    entries = numbers.entries(since_compaction=True).to_list()
    assert entries[0].id == "e998" and entries[-1].type == "compaction_summary"
    fork, result = numbers.compact(first_kept=numbers.entry("e999"), summary="Again.",
                                   into={"title": "Fork"})
    assert fork.info().title == "Fork" and fork.info().parent_id == numbers.id
    assert fork.head() == result.last_id


def test_deltas__are_read_when_asked_for(session):
    session.append({"n": 0})
    session.append({"text": "par"}, type="message_delta_batch")
    assert len(session) == 1 and len(session.entries(deltas=True)) == 2


def test_fork__shares_up_to_an_entry(numbers):
    fork = numbers.fork(at=numbers[4], title="Fork", metadata={"a": 1})
    assert payloads(fork) == [0, 1, 2, 3, 4]
    info = fork.info()
    assert info.is_fork and info.parent_id == numbers.id and info.inherited == 5
    assert info.title == "Fork" and info.metadata == {"a": 1}
    fork.append({"n": "fork"})
    assert len(fork) == 6 and len(numbers) == 1000
    assert len(numbers.fork()) == 1000
    with pytest.raises(agentwal.NotFound):
        numbers.fork(at="missing")


def test_heads__move_and_remove(numbers):
    assert numbers.head() == "e999"
    assert numbers.move_head("e5", note="undo") == "e999"
    assert payloads(numbers)[-1] == 5
    assert numbers.move_head("e9", name="mark", stream=0, expect=None) is None
    heads = {head.name: head for head in numbers.heads()}
    assert heads["main"].note == "undo" and heads["mark"].entry_id == "e9"
    with pytest.raises(agentwal.Conflict) as caught:
        numbers.move_head("e7", expect="e999")
    assert caught.value.expectation == "head" and caught.value.actual == "e5"
    assert numbers.move_head(None, name="mark") == "e9" and numbers.head("mark") is None
    with pytest.raises(agentwal.NotFound):
        numbers.move_head("missing")


# ------------------------------------------------------------- following ---

def test_follow__yields_what_is_appended_later(session):
    session.append({"n": 0})
    followed = session.follow(timeout=10)

    def append():
        for number in range(1, 50):
            session.append({"n": number}, durability="written")

    writer = threading.Thread(target=append)
    writer.start()
    assert payloads(itertools.islice(followed, 49)) == list(range(1, 50))
    writer.join()


def test_follow__from_the_start_and_from_a_sequence(session):
    results = [session.append({"n": number}) for number in range(5)]
    assert payloads(session.follow("start", timeout=0)) == [0, 1, 2, 3, 4]
    assert payloads(session.follow(results[2].sequence, timeout=0)) == [3, 4]
    assert payloads(session.follow(timeout=0)) == []
    assert payloads(session.follow("start", durability="durable", timeout=0)) == [0, 1, 2, 3, 4]


def test_follow__only_of_its_session(store, session):
    other = store.create()
    followed = session.follow(timeout=0.3)
    other.append({"n": 9})
    session.append({"n": 1})
    other.append({"n": 9})
    assert payloads(followed) == [1]


def test_follow__misses_nothing_when_earlier_entries_go(session):
    """Positions in log order change by a redaction, between two reads and within one."""
    session.append_many(NewEntry({"n": number}, id="e%d" % number) for number in range(5))
    followed = session.follow("start", timeout=0.3)
    assert payloads(itertools.islice(followed, 5)) == [0, 1, 2, 3, 4]
    session.append({"n": 5})
    assert payloads(itertools.islice(followed, 1)) == [5]
    session.append({"n": 6})
    assert payloads(itertools.islice(followed, 1)) == [6]
    session.redact("e1")
    session.redact("e2")
    session.append({"n": 7})
    assert [entry.type for entry in followed] == ["redaction", "redaction", "message"]


def test_follow__continues_after_a_redaction(session):
    session.append_many(NewEntry({"n": number}, id="e%d" % number) for number in range(5))
    followed = session.follow("start", timeout=0.3)
    assert payloads(itertools.islice(followed, 5)) == [0, 1, 2, 3, 4]
    session.redact("e1")
    session.append({"n": 5})
    rest = list(followed)
    assert [entry.type for entry in rest] == ["redaction", "message"]
    assert rest[1].payload == {"n": 5}


def test_follow__ends_with_closed(tmp_path):
    store = agentwal.open(tmp_path / "store")
    followed = store.create().follow()
    closer = threading.Timer(0.2, store.close)
    closer.start()
    with pytest.raises(agentwal.Closed):
        next(followed)
    closer.join()


def test_follow__store(store, session):
    followed = store.follow(timeout=5)
    sequence = session.append({"n": 1}).sequence
    assert next(followed) == sequence
    start = time.monotonic()
    assert list(store.follow(timeout=0.2)) == [] and time.monotonic() - start > 0.15
    assert next(store.follow(0, timeout=0)) == sequence


@pytest.mark.parametrize("arguments", [{"after": "end"}, {"after": -1}, {"after": True},
                                       {"durability": "queued"}, {"timeout": "soon"}])
def test_follow__wrong_arguments(session, arguments):
    with pytest.raises(agentwal.Invalid):
        session.follow(**arguments)


# --------------------------------------------------------------- entries ---

def test_entry__payload_is_parsed_once_and_kept(session):
    session.append({"n": 1}, meta={"m": 1})
    entry = session[0]
    assert entry.payload is entry.payload and entry.meta is entry.meta
    entry.payload["changed"] = True
    assert entry.payload["changed"] and b"changed" not in entry.payload_bytes


def test_entry__payload_view_is_read_only_and_keeps_what_it_needs(tmp_path):
    with agentwal.open(tmp_path / "store") as store:
        session = store.create()
        session.append({"n": 1})
        view = session[0].payload_view
    assert bytes(view) == b'{"n":1}' and view.readonly
    with pytest.raises(TypeError):
        view[0] = 0
    with pytest.raises(TypeError):
        io.BytesIO(b"x").readinto(view.obj)


def test_entry__attributes_cannot_be_set(session):
    session.append({"n": 1})
    for name in ("id", "payload", "other"):
        with pytest.raises(AttributeError):
            setattr(session[0], name, 1)
    with pytest.raises(TypeError):
        agentwal.Entry()
    with pytest.raises(TypeError):
        class Derived(agentwal.Entry):
            pass
    assert "message" in repr(session[0])
