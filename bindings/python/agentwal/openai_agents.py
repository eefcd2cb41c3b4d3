"""agentwal.openai_agents: the Session of the OpenAI Agents SDK on a store of agentwal.

    from agents import Agent, Runner
    from agentwal.openai_agents import AgentwalSession

    session = AgentwalSession("sessions", session_id="user-7")
    await Runner.run(Agent(name="helper"), "What did I ask before?", session=session)

Needs no package of the SDK. A history is the branch of the head `main` of a session, and an item is
an entry: docs/adapters.md. The adapter of the package for Node.js keeps the same histories.
"""

from __future__ import annotations

import asyncio
import base64
import functools
import math
import os
import threading
import uuid
from typing import TYPE_CHECKING, Any, Callable, Sequence, TypeVar

from . import _json
from ._change import HeadMove
from ._documents import DocumentChange
from ._entry import NewEntry
from ._errors import (BadJSON, Closed, Conflict, Corrupt, Error, Exists, Forked, Invalid, NotFound,
                      wrong_type)
from ._handle import AsyncClosing
from ._library import open as open_store
from ._loop import running_loop
from ._names import check_name, session_id as id_of_name
from ._session import Session
from ._store import Store
from ._values import Path, one_of
from ._wal import Entry, DURABLE, WRITTEN

if TYPE_CHECKING:
    from typing import Literal

__all__ = ["AgentwalSession"]

T = TypeVar("T")

_KIND = "openai"
_EPOCH = "openai/epoch"
_MESSAGE = "message"
_ITEM = "openai.item"
_MAX_DEPTH = 256
_MAX_ATTEMPTS = 1000
_READ_ALL = 65536
_NUMBERS = {"nan": math.nan, "infinity": math.inf, "-infinity": -math.inf, "-0": -0.0}

Special = list[tuple[str, "tuple[str | int, ...]"]]


class AgentwalSession(AsyncClosing):
    """A history of the OpenAI Agents SDK in a store.

    Each call is one atomic batch. Any number of processes may use one history at the same time:
    the items of one add_items() are together, and each item is popped once. Nothing is
    overwritten: a pop or a clear moves the head, and moving it back undoes it.
    Call it from asyncio; the work is done in the default executor of the loop. A call that is
    cancelled happens as a whole or not at all.
    Errors: those of agentwal; what failed has changed nothing.
    """

    session_id: str
    session_settings: Any = None
    """Of the SDK; its `limit` is that of get_items()."""

    def __init__(self, store: Store | Path, *, session_id: str | None = None,
                 id: str | None = None,
                 durability: Literal["durable", "written"] = "durable") -> None:
        """store: an open Store, which close() leaves open; or the path of one, which is opened,
        and created if there is none, by the first call. session_id: None: a random UUID. id: of
        the session in the store; None: "openai/SESSION_ID"."""
        if not isinstance(store, (Store, str, bytes, os.PathLike)):
            raise wrong_type("store", "a Store or the path of one", store)
        one_of("durability", {"durable": DURABLE, "written": WRITTEN}, durability)
        self.session_id = (str(uuid.uuid4()) if session_id is None
                           else check_name("session_id", session_id))
        self._id = (id_of_name(_KIND, self.session_id) if id is None
                    else check_name("id", id, 255))
        self._durability: Literal["durable", "written"] = durability
        self._store = store if isinstance(store, Store) else None
        self._path = None if isinstance(store, Store) else store
        self._lock = threading.Lock()
        self._pid = os.getpid()
        self._is_closed = False

    async def get_items(self, limit: int | None = None) -> list[Any]:
        """The items of the history; with a limit the last ones, in their order."""
        if limit is None:
            limit = getattr(self.session_settings, "limit", None)
        if limit is not None and (isinstance(limit, bool) or not isinstance(limit, int)):
            raise wrong_type("limit", "an int or None", limit)
        empty: list[Any] = []
        return await self._read(empty, lambda session: [
            decode_item(entry) for entry in _last_items(session, session.head(), limit)])

    async def add_items(self, items: Sequence[Any]) -> None:
        """Adds items, all or none."""
        if not isinstance(items, (list, tuple)):
            raise wrong_type("items", "a list", items)
        entries = [encode_item(item) for item in items]
        if not entries:
            self._open()  # raises Closed
        else:
            await self._run(lambda: _retry(lambda: self._append(entries)))

    def _append(self, entries: list[NewEntry]) -> None:
        session, _ = self._open().open_or_create(
            id=self._id, source="openai-agents",
            metadata={"openai": {"sessionId": self.session_id}})
        session.append_many(entries, durability=self._durability)

    async def pop_item(self) -> Any:
        """Removes and returns the last item; None when there is none."""
        return await self._read(None, self._pop)

    def _pop(self, session: Session) -> Any:
        head = session.head()
        items = _last_items(session, head, 1)
        if not items:
            return None
        # Both the tail and the head are expected: a head that is at its target already is left
        # there, whatever is expected of it, and two callers would pop the same item.
        session.commit(heads=[HeadMove(items[0].parent_id, expect=head)], expect_tail=head,
                       durability=self._durability)
        return decode_item(items[0])

    async def clear_session(self) -> None:
        """Removes all items."""
        id = "clear/%s" % uuid.uuid4()

        def clear(session: Session) -> None:
            session.commit(
                entries=[NewEntry({}, id=id, type="openai.clear", parent_id=None, move_head=True)],
                documents=[DocumentChange(_EPOCH, id)], durability=self._durability)

        await self._read(None, clear)

    async def close(self) -> None:
        """Closes the store if it was given by its path. May be called again."""
        self._check_process()

        def close() -> None:
            with self._lock:
                self._is_closed = True
                if self._path is not None and self._store is not None:
                    self._store.close()

        await running_loop().run_in_executor(None, close)

    def _check_process(self) -> None:
        if os.getpid() != self._pid:
            raise Forked("the history is that of the parent process: make one in this process")

    def _open(self) -> Store:
        with self._lock:
            if self._is_closed:
                raise Closed("the history was closed")
            if self._store is None:
                assert self._path is not None
                self._store = open_store(self._path)
            return self._store

    async def _run(self, function: Callable[[], T]) -> T:
        self._check_process()
        return await running_loop().run_in_executor(None, function)

    async def _read(self, none: T, function: Callable[[Session], T]) -> T:
        """The function's result; `none` when there is no session."""
        def call() -> T:
            try:
                session = self._open().session(self._id)
            except NotFound:
                return none
            return function(session)

        return await self._run(functools.partial(_retry, call))


def _retry(call: Callable[[], T]) -> T:
    """Calls until it does not fail because another writer was faster. Each such failure is another
    writer's success; the bound is for bugs."""
    for _ in range(_MAX_ATTEMPTS):
        try:
            return call()
        except (Conflict, Exists, NotFound):
            pass
    return call()


def _last_items(session: Session, head: str | None, limit: int | None) -> list[Entry]:
    """The last items of a branch, at most `limit`; other entries are left out."""
    if head is None or (limit is not None and limit <= 0):
        return []
    last = _READ_ALL if limit is None else limit
    while True:
        is_all = last >= _READ_ALL
        entries = list(session.entries(up_to=head, last=None if is_all else last))
        items = list(filter(_is_item, entries))
        if is_all or (limit is not None and len(items) >= limit) or len(entries) < last:
            return items if limit is None else items[-limit:]
        last *= 4


def _is_item(entry: Entry) -> bool:
    return (entry.type in (_MESSAGE, _ITEM) and not entry.is_line
            and isinstance(entry.payload, dict))


# ---------------------------------------------------------------- items ---


def encode_item(item: Any) -> NewEntry:
    """An item as an entry: its payload is the item's JSON. What JSON does not have (bytes, NaN,
    infinities) is listed in the entry's meta, as [kind, path] pairs."""
    if not isinstance(item, dict):
        raise wrong_type("items", "a list of dicts", item)
    special: Special = []
    payload = _encode(item, (), special)
    meta = {"openai": {"special": [[kind, list(path)] for kind, path in special]}}
    is_message = item.get("type") in (None, "message")
    return NewEntry(text=_json.encode(payload, "item"), type=_MESSAGE if is_message else _ITEM,
                    meta=meta if special else None)


def _encode(value: Any, path: tuple[str | int, ...], special: Special) -> Any:
    if len(path) > _MAX_DEPTH:
        raise BadJSON("an item is nested too deeply, or contains itself")
    if isinstance(value, dict):
        for key in value:
            if not isinstance(key, str):
                raise wrong_type("a key of an item", "a str", key)
        return {key: _encode(member, path + (key,), special) for key, member in value.items()}
    if isinstance(value, (list, tuple)):
        return [_encode(member, path + (index,), special) for index, member in enumerate(value)]
    if isinstance(value, (bytes, bytearray, memoryview)):
        special.append(("bytes", path))
        return base64.b64encode(value).decode()
    if isinstance(value, float) and not math.isfinite(value):
        special.append(("nan" if math.isnan(value) else "infinity" if value > 0 else "-infinity",
                        path))
        return None
    return value


def decode_item(entry: Entry) -> Any:
    """The item of an entry; a copy that the caller may change."""
    item = _json.decode(entry.text)
    try:
        _restore(item, (entry.meta or {}).get("openai", {}).get("special", []))
    except Error:
        raise
    except (AttributeError, LookupError, TypeError, ValueError) as error:
        raise Corrupt('the item of entry "%s" has no value where its meta names one'
                      % entry.id) from error
    return item


def _restore(item: Any, special: list[Any]) -> None:
    # Of a list that had several, the last one first: removing a member moves no other.
    for kind, path in reversed(special):
        parent = item
        for key in path[:-1]:
            parent = parent[key]
        key = path[-1]
        if kind == "bytes":
            parent[key] = base64.b64decode(parent[key])
        elif kind in _NUMBERS:
            parent[key] = _NUMBERS[kind]
        elif kind == "undefined" and isinstance(parent, dict):
            # JavaScript's undefined: in an object as if it were not there.
            parent.pop(key, None)
        elif kind != "undefined":
            raise Invalid("an item has a value of kind %r, which this version does not know" % kind)
