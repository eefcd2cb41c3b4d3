"""Appending: payloads, lines, options of an entry, durability, tickets, batches."""

from __future__ import annotations

import json
import math
import os
import select
import signal
import threading
import time

import pytest

import agentwal
from agentwal import DocumentChange, HeadMove, NewEntry


def test_append__dict_is_read_back(session):
    result = session.append({"role": "user", "content": "Grüße ☃"})
    assert result.appended == 1 and result.duplicates == 0 and result.sequence > 0
    entry = session[0]
    assert entry.id == result.last_id and entry.sequence == result.sequence
    assert entry.payload == {"role": "user", "content": "Grüße ☃"}
    assert entry.payload_bytes == '{"role":"user","content":"Grüße ☃"}'.encode()
    assert entry.text == entry.payload_bytes.decode()
    assert entry.type == "message" and entry.parent_id is None and entry.is_root


@pytest.mark.parametrize("value", [None, True, 0, -1.5, 2 ** 80, "", "text", [], [1, [2]], {},
                                   {"a": {"b": [None]}}])
def test_append__any_json_value_is_read_back(session, value):
    session.append(value)
    assert session[-1].payload == value


def test_append__all_options_of_an_entry_are_kept(session):
    session.append({"n": 1}, id="a", type="custom", timestamp="2026-01-02T03:04:05Z",
                   run_id="run-1", stream=0, meta={"tokens": 3})
    entry = session.entry("a")
    assert (entry.id, entry.type, entry.timestamp, entry.run_id, entry.meta, entry.stream) == (
        "a", "custom", "2026-01-02T03:04:05Z", "run-1", {"tokens": 3}, 0)
    session.append({"n": 2}, id="t", stream=1)
    assert [e.id for e in session.entries(stream=1)] == ["t"]


def test_append__text_and_line_in_place_of_a_payload(session):
    session.append(text='{"b" : 1}')
    assert session[-1].payload_bytes == b'{"b" : 1}' and not session[-1].is_line
    session.append(line=b"\xff\xfe not JSON")
    entry = session[-1]
    assert entry.is_line and entry.payload_bytes == b"\xff\xfe not JSON"
    assert entry.text == "\ufffd\ufffd not JSON"
    with pytest.raises(agentwal.BadJSON):
        entry.payload


def test_append__one_of_payload_text_and_line(session):
    for arguments in ({}, {"text": "1", "line": "1"}):
        with pytest.raises(agentwal.Invalid, match="one of payload, text and line"):
            session.append(**arguments)
    with pytest.raises(agentwal.Invalid):
        session.append({"a": 1}, text="1")
    assert len(session) == 0


def test_append__new_entry_excludes_other_arguments(session):
    session.append(NewEntry({"a": 1}, id="x"))
    assert session[0].id == "x"
    with pytest.raises(agentwal.Invalid):
        session.append(NewEntry({"a": 1}), id="y")


def test_append__parents_make_a_tree(session):
    first = session.append({"n": 1}).last_id
    second = session.append({"n": 2}).last_id
    third = session.append({"n": 3}, parent_id=first)
    assert session.head() == second
    session.append({"n": 4}, parent_id=session.entry(third.last_id), move_head=True)
    assert [e.payload["n"] for e in session] == [1, 3, 4]
    session.append({"n": 5}, parent_id=None, move_head=False)
    assert [e.payload["n"] for e in session] == [1, 3, 4]
    with pytest.raises(agentwal.NoParent) as caught:
        session.append({}, parent_id="nowhere")
    assert caught.value.code == "WAL_ENOPARENT" and isinstance(caught.value, LookupError)


def test_append__repeated_id_is_a_duplicate_or_exists(session):
    session.append({"n": 1}, id="a")
    assert session.append({"n": 1}, id="a") == (0, 1, 0, "a")
    with pytest.raises(agentwal.Exists) as caught:
        session.append({"n": 2}, id="a")
    assert caught.value.code == "WAL_EEXISTS" and caught.value.actual == "a"


def test_append__expect_tail(session):
    first = session.append({"n": 1}, expect_tail=None).last_id
    session.append({"n": 2}, expect_tail=first)
    with pytest.raises(agentwal.Conflict) as caught:
        session.append({"n": 3}, expect_tail=first)
    assert caught.value.expectation == "tail" and caught.value.actual == session.head()
    with pytest.raises(agentwal.Conflict):
        session.append({"n": 3}, expect_tail=None)
    assert len(session) == 2


@pytest.mark.parametrize("durability", ["durable", "written", "queued"])
def test_append__each_durability(session, durability):
    session.append({"n": 1}, durability=durability)
    session.store.sync()
    assert len(session) == 1


def test_append_many__is_atomic(session):
    result = session.append_many([{"n": 1}, NewEntry({"n": 2}, id="b"), "text"])
    assert result.appended == 3 and [e.payload for e in session] == [{"n": 1}, {"n": 2}, "text"]
    with pytest.raises(agentwal.Exists):
        session.append_many([{"n": 4}, NewEntry({"n": 5}, id="b")])
    assert len(session) == 3


def test_append_many__generator_that_fails_appends_nothing(session):
    def entries():
        yield {"n": 1}
        raise RuntimeError("stop")

    with pytest.raises(RuntimeError, match="stop"):
        session.append_many(entries())
    assert len(session) == 0


@pytest.mark.parametrize("entries", [{"a": 1}, "text", b"text", 3, None, NewEntry({})])
def test_append_many__not_an_iterable_of_entries(session, entries):
    with pytest.raises(agentwal.InvalidType, match="entries"):
        session.append_many(entries)


def test_submit__ticket_reports_the_outcome(session):
    ticket = session.submit({"n": 1}, id="a")
    result = ticket.wait()
    assert result.last_id == "a" and ticket.done() and ticket.wait(0) == result


def test_submit__failure_is_raised_each_time(session):
    session.append({"n": 1}, id="a")
    ticket = session.submit({"n": 2}, id="a")
    for _ in range(2):
        with pytest.raises(agentwal.Exists):
            ticket.wait(10)
    assert ticket.done()


def test_submit__tickets_in_flight_complete_when_the_store_is_closed(tmp_path):
    store = agentwal.open(tmp_path / "store")
    session = store.create()
    tickets = [session.submit({"n": number}) for number in range(100)]
    store.close()
    assert [ticket.wait(0).appended for ticket in tickets] == [1] * 100
    with agentwal.open(tmp_path / "store") as again:
        assert len(again.session(session.id)) == 100


def test_submit__completion_descriptor_becomes_readable(store, session):
    descriptor = store.completion_fd()
    assert store.completion_fd() == descriptor
    ticket = session.submit({"n": 1})
    assert select.select([descriptor], [], [], 10)[0] == [descriptor]
    end = time.monotonic() + 10
    while not ticket.done() and time.monotonic() < end:
        time.sleep(0.001)
    assert ticket.wait(0).appended == 1


def test_submit__many_and_written(session):
    assert session.submit_many([{"n": 1}, {"n": 2}], durability="written").wait().appended == 2


def test_submit__queued_failure_is_raised_by_flush(session):
    session.append({"n": 1}, id="a")
    session.append({"n": 2}, id="a", durability="queued")
    with pytest.raises(agentwal.Exists):
        session.store.flush()


def test_commit__all_parts_at_once(session):
    result = session.commit(
        entries=[NewEntry({"n": 1}, id="a")],
        documents=[DocumentChange("key", {"x": 1}), DocumentChange("of-store", 2, store=True)],
        heads=[HeadMove("a", name="mark", note="here")], change={"title": "Title"})
    assert result.appended == 1
    assert session.documents.get("key").value == {"x": 1}
    assert session.store.documents.get("of-store").value == 2
    assert session.head("mark") == "a" and session.info().title == "Title"


def test_commit__conflict_of_one_part_changes_nothing(session):
    version = session.documents.put("key", 1)
    session.documents.put("key", 2)
    with pytest.raises(agentwal.Conflict) as caught:
        session.commit(entries=[{"n": 1}], documents=[DocumentChange("key", 3, expect=version)])
    assert caught.value.expectation == "document"
    assert len(session) == 0 and session.documents.get("key").value == 2
    with pytest.raises(agentwal.Conflict) as caught:
        session.commit(change={"title": "x"}, expect_version=session.info().metadata_version + 9)
    assert caught.value.expectation == "metadata"


def test_commit__submitted(session):
    version = session.info().metadata_version
    ticket = session.submit_commit(entries=[{"n": 1}], change={"title": "T"},
                                   expect_version=version)
    assert ticket.wait().appended == 1 and session.info().title == "T"


def test_commit__nothing_is_invalid(session):
    with pytest.raises(agentwal.Invalid):
        session.commit()
    with pytest.raises(agentwal.Invalid):
        session.commit(entries=[{}], expect_version=1)
    with pytest.raises(agentwal.Invalid, match="delete"):
        session.commit(documents=[DocumentChange("key")])
    with pytest.raises(agentwal.Invalid, match="no field 'titel'"):
        session.commit(change={"titel": "x"})


def test_append__payload_that_is_kept_as_a_blob(session):
    text = "x" * 400000
    session.append({"text": text})
    assert session[0].payload == {"text": text}
    entry = session.entries(out_of_line=True).first()
    assert entry.is_out_of_line and entry.payload_size == len(json.dumps({"text": text})) - 1
    assert session.store.blobs.get(entry.digest) == session[0].payload_bytes
    for read in (lambda: entry.payload, lambda: entry.text, lambda: entry.payload_bytes,
                 lambda: entry.payload_view):
        with pytest.raises(agentwal.Invalid, match="digest"):
            read()


def test_ticket__is_waited_for_in_a_signal_handler(session, monkeypatch):
    """The handler runs in the thread that waits for the same ticket, amid that wait."""
    outcomes = []
    ticket = session.submit({"n": 1}, id="a")
    wait = agentwal._wal.ticket_wait

    def interrupted(handle, timeout_ms):
        if not outcomes:
            outcomes.append(None)
            os.kill(os.getpid(), signal.SIGUSR1)
        return wait(handle, timeout_ms)

    def handler(number, frame):
        outcomes.append(ticket.wait().last_id)

    # Else a lock that the thread cannot take again would hold the test for ever.
    guard = threading.Timer(60, os._exit, (1,))
    guard.start()
    monkeypatch.setattr(agentwal._wal, "ticket_wait", interrupted)
    before = signal.signal(signal.SIGUSR1, handler)
    try:
        assert ticket.wait().last_id == "a"
    finally:
        signal.signal(signal.SIGUSR1, before)
        guard.cancel()
    assert outcomes == [None, "a"]


@pytest.mark.parametrize("timeout", [math.inf, 10 ** 400])
def test_wait__without_a_limit(store, session, tmp_path, timeout):
    assert session.submit({"n": 1}, id="a").wait(timeout).last_id == "a"
    assert next(iter(session.follow("start", timeout=timeout))).id == "a"
    assert next(iter(store.follow(0, timeout=timeout))) > 0
    (tmp_path / "a.jsonl").write_text('{"n":1}\n')
    with store.follow_import(tmp_path, select="all") as followed:
        assert followed.next(timeout).appended == 1
