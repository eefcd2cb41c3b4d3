"""agentwal.claude: the SessionStore of the Claude Agent SDK on a store of agentwal.

    from claude_agent_sdk import ClaudeAgentOptions, query
    from agentwal.claude import AgentwalSessionStore

    options = ClaudeAgentOptions(session_store=AgentwalSessionStore("sessions"))
    async for message in query(prompt="Hi", options=options): ...

Needs no package of the SDK; docs/adapters.md says what becomes of keys and entries. The adapter of
the package for Node.js keeps the same sessions: one store serves both languages.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import dataclasses
import functools
import threading
from typing import TYPE_CHECKING, Any, Callable, Literal, Mapping, Sequence, TypeVar

from .._errors import Closed, Damaged, Error, Invalid, NotFound, Trashed, wrong_type
from .._handle import AsyncClosing
from .._info import SessionInfo
from .._loop import running_loop
from .._session import Session
from .._store import Store
from .._values import Path
from ._append import AppendQueue
from ._fork import fork_session
from ._key import Key
from ._owner import Owner, Stats
from ._rows import serialize
from ._sessions import delete_tree, find_session, info_of, list_mains, list_subs
from ._summary import Fold, read_modified_ms, read_summary
from ._transcript import read_transcript

if TYPE_CHECKING:
    from .._values import LocalDurability

__all__ = ["AgentwalSessionStore", "Stats"]

_QUEUES_MAX = 256  # That are kept while idle.
_THREADS_MAX = 16

T = TypeVar("T")


class AgentwalSessionStore(AsyncClosing):
    """Keeps the transcripts that the SDK mirrors.

    Keys, entries and results are the dicts of the SDK for Python. Call it from asyncio; the work
    is done by threads, and any number of loops may use one object.

    Durability: when append() returns, all its entries and the summary that covers them are on
    stable storage, as one batch: after a crash there are all or none of them.
    Order: entries of one object keep the order of the calls; those of other processes are in the
    order of their commits. Any number of processes may append to one session.
    Errors: those of agentwal. An append that fails has written nothing; where the code is WAL_EIO
    or WAL_EPOISONED, which it raises after three attempts, the outcome is unknown, and the same
    entries may be appended again.
    Cancellation: an append that is cancelled happens as a whole or not at all.
    """

    def __init__(self, store: Store | Path, *, durability: LocalDurability = "durable",
                 fold_session_summary: Fold | None = None,
                 damaged: Literal["raise", "skip"] = "raise") -> None:
        """store: an open Store, which close() leaves open; or the path of one, which is opened,
        and created if there is none, by the first call. fold_session_summary: the SDK's function;
        None: that of the package claude_agent_sdk, or without it no summaries. damaged: what
        load() does when entries are damaged on disk; "skip" leaves them out.
        """
        self._owner = Owner(store, durability, fold_session_summary, damaged)
        self._queues: dict[str, AppendQueue] = {}
        self._lock = threading.Lock()
        self._executor = concurrent.futures.ThreadPoolExecutor(_THREADS_MAX, "agentwal-claude")
        self._is_closed = False

    @property
    def stats(self) -> Stats:
        """What this object did."""
        return dataclasses.replace(self._owner.stats)

    async def append(self, key: Mapping[str, Any], entries: Sequence[Any]) -> None:
        """Appends entries in order. One whose uuid the transcript has is left out. Without entries
        it touches nothing. Raises Trashed when the session is in the trash, and Damaged when it
        lost entries, until that is accepted."""
        place = Key(key)
        rows = serialize(entries)
        self._check()
        if rows:
            loop = running_loop()
            await asyncio.wrap_future(self._add(place, rows), loop=loop)

    async def load(self, key: Mapping[str, Any]) -> list[dict[str, Any]] | None:
        """All entries in log order; None if there is no such transcript, it was deleted, or is in
        the trash. Entries that were redacted are left out."""
        return await self._run(functools.partial(self._load, Key(key)))

    def _load(self, place: Key) -> list[dict[str, Any]] | None:
        session = find_session(self._owner.open(), place)
        info = None if session is None else info_of(session)
        if session is None or info is None or (info.entries == 0 and not info.is_damaged):
            return None
        skips = self._owner.skips_damage
        if info.is_damaged and not skips:
            raise Damaged('session "%s" lost entries to damage; accept the damage, or use '
                          'damaged="skip"' % info.id)
        try:
            rows, unreadable = read_transcript(session, self._count_damage if skips else None)
        except NotFound:
            return None
        self._owner.count(unreadable=unreadable)
        return [row.value for row in rows]

    def _count_damage(self, error: Error) -> None:
        self._owner.count(unreadable=1)

    async def list_sessions(self, project_key: str) -> list[dict[str, Any]]:
        """The main transcripts of a project, in no order; imported sessions of Claude Code and
        forks are among them. `mtime` is when the newest entry was stored, in milliseconds since
        1970."""
        found = await self._run(lambda: self._mains(project_key, read_modified_ms))
        return [{"session_id": key.session_id, "mtime": modified} for key, modified in found]

    async def list_session_summaries(self, project_key: str) -> list[dict[str, Any]]:
        """Summaries, with the `mtime` of list_sessions(). Each one covers all entries; a session
        whose summary does not is left out, and the SDK loads it."""
        found = await self._run(
            lambda: self._mains(project_key, lambda session, _: read_summary(session)))
        return [{"session_id": key.session_id, "mtime": state.modified_ms, "data": state.data}
                for key, state in found if state.data is not None]

    def _mains(self, project_key: str,
               read: Callable[[Session, SessionInfo], T]) -> list[tuple[Key, T]]:
        if not isinstance(project_key, str):
            raise wrong_type("project_key", "a str", project_key)
        store = self._owner.open()
        found = []
        for key, info in list_mains(store, project_key):
            try:
                found.append((key, read(store.session(info.id), info)))
            except (NotFound, Trashed):
                pass
        return found

    async def delete(self, key: Mapping[str, Any]) -> None:
        """Deletes a transcript for good; of a main transcript its subpaths go first. Forks keep
        what they share. Deleting what does not exist succeeds."""
        await self._run(functools.partial(self._delete, Key(key)))

    def _delete(self, place: Key) -> None:
        self._wait(place)
        delete_tree(self._owner.open(), place)

    async def list_subkeys(self, key: Mapping[str, Any]) -> list[str]:
        """The subpaths of a session."""
        main = Key({"project_key": key["project_key"], "session_id": key["session_id"]})

        def subpaths() -> list[str]:
            return [sub.subpath or "" for sub in list_subs(self._owner.open(), main)]

        return await self._run(subpaths)

    async def fork(self, key: Mapping[str, Any], *, up_to_message_id: str | None = None,
                   title: str | None = None, session_id: str | None = None) -> str:
        """Forks a session without copying it, and returns the id of the fork.

        The fork shares the entries of the branch up to `up_to_message_id` (None: all). In it,
        entries have the fork's `sessionId`, and those that were shared have `forkedFrom`. title:
        None: the title of the session and " (fork)". session_id: None: a new UUID; raises Exists
        when it is taken, and Invalid unless it can be the id of a session as it is: at most 160
        bytes, no control characters, no half of a surrogate pair, no "~" at its start.
        Subpaths are not part of it. A crash leaves no fork that is listed but one that is
        complete.
        """
        place = Key(key)
        if not place.is_main:
            raise Invalid("the key to fork has a subpath")

        def forked() -> str:
            self._wait(place)
            return fork_session(self._owner, place, up_to_message_id, title, session_id)

        return await self._run(forked)

    async def session(self, key: Mapping[str, Any]) -> Session | None:
        """The session that has a transcript, or None."""
        place = Key(key)

        def found() -> Session | None:
            session = find_session(self._owner.open(), place)
            return session if session is not None and info_of(session) is not None else None

        return await self._run(found)

    async def close(self) -> None:
        """Completes every append; closes the store if it was given by its path. May be called
        again."""
        if not self._is_closed:
            self._owner.check()
            self._is_closed = True
        await running_loop().run_in_executor(None, self._close)

    def _close(self) -> None:
        # The threads end when no append is left.
        self._executor.shutdown(wait=True)
        self._owner.close()

    def _check(self) -> None:
        self._owner.check()
        if self._is_closed:
            raise Closed("the session store was closed")

    async def _run(self, function: Callable[[], T]) -> T:
        self._check()
        return await running_loop().run_in_executor(None, function)

    def _add(self, place: Key, rows: Sequence[Any]) -> concurrent.futures.Future[None]:
        with self._lock:
            queue = self._queues.pop(place.source, None)
            if queue is None:
                self._drop_idle()
                queue = AppendQueue(self._owner, place, self._executor)
            # The one that was used last is at the end.
            self._queues[place.source] = queue
            return queue.add(rows)

    def _drop_idle(self) -> None:
        for source in [source for source, queue in self._queues.items() if queue.is_idle]:
            if len(self._queues) < _QUEUES_MAX:
                return
            del self._queues[source]

    def _wait(self, place: Key) -> None:
        """Waits for the appends of a key, and of a main key's subpaths."""
        with self._lock:
            queues = [queue for queue in self._queues.values()
                      if queue.key.source == place.source
                      or (place.is_main and queue.key.group == place.group)]
        for queue in queues:
            queue.wait()
