#!/usr/bin/env python3
"""Runs the cases of bindings/conformance.json by the Python package: conformance.py FILE

In the current directory; reports each case that fails. bindings/conformance.md describes the file.
"""

from __future__ import annotations

import json
import sys
from typing import Any, Callable

import agentwal
from agentwal import UNSET, DocumentChange, HeadMove, NewEntry


def text_of(value: Any) -> Any:
    """A text of a step: a string, {"repeat": [text, count]} or {"hex": digits}."""
    if isinstance(value, dict) and "repeat" in value:
        text, count = value["repeat"]
        return text * count
    if isinstance(value, dict) and "hex" in value:
        return bytes.fromhex(value["hex"])
    return value


def pick(step: dict[str, Any], **names: str) -> dict[str, Any]:
    """The members of a step that are there, under the names of the package."""
    return {name: text_of(step[member]) for name, member in names.items() if member in step}


def new_entry(value: dict[str, Any]) -> NewEntry:
    return NewEntry(**pick(value, id="id", parent_id="parentId", type="type",
                           timestamp="timestamp", run_id="runId", stream="stream", text="text",
                           line="line", move_head="moveHead"),
                    payload=value.get("payload", UNSET), meta=value.get("meta"))


def entry_result(entry: agentwal.Entry) -> dict[str, Any]:
    result = {"id": entry.id, "parentId": entry.parent_id, "type": entry.type,
              "timestamp": entry.timestamp, "runId": entry.run_id, "stream": entry.stream,
              "depth": entry.depth, "isLine": entry.is_line, "isRedacted": entry.is_redacted,
              "meta": entry.meta}
    if entry.is_line:
        return {**result, "text": entry.text}
    return {**result, "payload": entry.payload}


def info_result(info: agentwal.SessionInfo) -> dict[str, Any]:
    def text(value: str) -> str | None:
        return value or None

    return {"id": info.id, "title": text(info.title), "cwd": text(info.cwd),
            "project": text(info.project), "parentId": text(info.parent_id),
            "source": text(info.source), "head": info.head, "firstText": text(info.first_text),
            "entries": info.entries, "inherited": info.inherited, "isFork": info.is_fork,
            "metadata": info.metadata}


class Runner:
    def __init__(self, path: str) -> None:
        self.path = path
        self.store = agentwal.open(path)
        self.sessions: dict[str, agentwal.Session] = {}
        self.saved: dict[str, Any] = {}

    def number(self, step: dict[str, Any], name: str, without: Any = None) -> Any:
        """A number, or the saved one that "$name" names."""
        value = step.get(name, without)
        return self.saved[value[1:]] if isinstance(value, str) else value

    def session(self, step: dict[str, Any]) -> agentwal.Session:
        return self.sessions[step["session"]]

    def documents(self, step: dict[str, Any]) -> agentwal.Documents:
        return self.session(step).documents if "session" in step else self.store.documents

    def add(self, session: agentwal.Session) -> None:
        self.sessions[session.id] = session

    # --- stores and sessions -------------------------------------------

    def call_close(self, step: dict[str, Any]) -> None:
        self.store.close()

    def call_reopen(self, step: dict[str, Any]) -> None:
        self.store.close()
        self.sessions.clear()
        self.store = agentwal.open(self.path, **pick(step, create="create", exclusive="exclusive",
                                                     read_only="readOnly"))

    def call_open(self, step: dict[str, Any]) -> None:
        agentwal.open(self.path + step.get("path", ""),
                      **pick(step, create="create", exclusive="exclusive",
                             read_only="readOnly")).close()

    def call_sync(self, step: dict[str, Any]) -> None:
        self.store.sync()

    def call_create(self, step: dict[str, Any]) -> None:
        self.add(self.store.create(**self.session_options(step)))

    @staticmethod
    def session_options(step: dict[str, Any]) -> dict[str, Any]:
        return {**pick(step, id="id", cwd="cwd", project="project", title="title",
                       parent_id="parentId", source="source"),
                **({"metadata": step["metadata"]} if "metadata" in step else {})}

    def call_session(self, step: dict[str, Any]) -> None:
        self.add(self.store.session(text_of(step["id"])))

    def call_fork(self, step: dict[str, Any]) -> None:
        self.add(self.session(step).fork(text_of(step.get("at")), **self.session_options(step)))

    def call_info(self, step: dict[str, Any]) -> Any:
        return info_result(self.session(step).info())

    def call_update(self, step: dict[str, Any]) -> None:
        self.session(step).update(lambda now: change_of(step["change"]))

    def call_delete(self, step: dict[str, Any]) -> None:
        self.session(step).delete()

    def call_trash(self, step: dict[str, Any]) -> None:
        self.session(step).trash()

    def call_undelete(self, step: dict[str, Any]) -> None:
        self.store.undelete(step["id"])

    def call_list(self, step: dict[str, Any]) -> Any:
        return [info.id for info in self.store.sessions(**pick(
            step, prefix="prefix", project="project", cwd="cwd", source="source", parent="parent",
            trash="trash"))]

    # --- entries, heads -------------------------------------------------

    def call_append(self, step: dict[str, Any]) -> Any:
        documents = [DocumentChange(text_of(one["key"]), one.get("value", UNSET),
                                    one.get("delete", False), self.number(one, "expect"))
                     for one in step.get("documents", ())]
        heads = [HeadMove(one["entry"], **pick(one, name="name", note="note", expect="expect"))
                 for one in step.get("heads", ())]
        result = self.session(step).commit(
            entries=map(new_entry, step.get("entries", ())), documents=documents, heads=heads,
            change=change_of(step["change"]) if "change" in step else None,
            expect_tail=step.get("expectTail", UNSET))
        return {"appended": result.appended, "duplicates": result.duplicates,
                "lastId": result.last_id}

    call_commit = call_append

    def call_read(self, step: dict[str, Any]) -> Any:
        return [entry_result(entry) for entry in self.session(step).entries(**pick(
            step, mode="mode", stream="stream", up_to="upTo", head="head", skip="skip",
            last="last", redacted="redacted", deltas="deltas"))]

    def call_entry(self, step: dict[str, Any]) -> Any:
        entry = self.session(step).entry(step["id"])
        return None if entry is None else entry_result(entry)

    def call_redact(self, step: dict[str, Any]) -> None:
        self.session(step).redact(step["id"], step.get("reason"))

    def call_unredact(self, step: dict[str, Any]) -> None:
        self.session(step).unredact(step["id"])

    def call_head(self, step: dict[str, Any]) -> Any:
        return self.session(step).head(step.get("name", "main"))

    def call_heads(self, step: dict[str, Any]) -> Any:
        return [{"name": head.name, "entryId": head.entry_id, "note": head.note or None}
                for head in self.session(step).heads()]

    def call_moveHead(self, step: dict[str, Any]) -> Any:  # noqa: N802
        return self.session(step).move_head(text_of(step["entry"]), **pick(
            step, name="name", note="note", expect="expect"))

    # --- documents, blobs -----------------------------------------------

    def call_putDocument(self, step: dict[str, Any]) -> Any:  # noqa: N802
        return self.documents(step).put(text_of(step["key"]), step["value"],
                                        expect=self.number(step, "expect"))

    def call_deleteDocument(self, step: dict[str, Any]) -> None:  # noqa: N802
        self.documents(step).delete(step["key"], expect=self.number(step, "expect"))

    def call_getDocument(self, step: dict[str, Any]) -> Any:  # noqa: N802
        found = self.documents(step).get(step["key"], version=self.number(step, "version", 0))
        return None if found is None else {"value": found.value}

    def call_listDocuments(self, step: dict[str, Any]) -> Any:  # noqa: N802
        return [one.key for one in self.documents(step).list(step.get("prefix", ""))]

    def call_putBlob(self, step: dict[str, Any]) -> Any:  # noqa: N802
        return self.store.blobs.put(text_of(step["content"]))

    def call_blobSize(self, step: dict[str, Any]) -> Any:  # noqa: N802
        content = self.store.blobs.get(step["digest"])
        return None if content is None else len(content)

    def call_search(self, step: dict[str, Any]) -> Any:
        with self.store.search() as search:
            return [{"sessionId": found.session_id, "title": found.title, "matches": found.matches,
                     "hits": [{"entryId": hit.entry_id, "role": hit.role, "tool": hit.tool,
                               "snippet": hit.snippet,
                               "marked": [hit.snippet[start:end] for start, end in hit.matches]}
                              for hit in found.hits]}
                    for found in search.find(**pick(
                        step, text="text", project="project", cwd="cwd", session="session",
                        tool="tool", roles="roles", hits="hits", limit="limit", snippet="snippet",
                        deep="deep", substring="substring"))]

    # ---------------------------------------------------------------------

    def run(self, step: dict[str, Any]) -> str | None:
        """Makes the call of a step; returns what is wrong with its outcome, or None."""
        call: Callable[[dict[str, Any]], Any] = getattr(self, "call_" + step["call"])
        wanted = step.get("error")
        try:
            result = call(step)
        except agentwal.Error as error:
            return None if error.code == wanted else "%s: %s" % (error.code, error)
        if "save" in step:
            self.saved[step["save"]] = result
        if wanted is not None or ("returns" in step and not is_expected(result, step["returns"])):
            return "succeeded, %s" % json.dumps(result)
        return None


def change_of(change: dict[str, Any]) -> agentwal.SessionChange:
    return {name: text_of(value) for name, value in change.items()}  # type: ignore[return-value]


def is_expected(result: Any, expected: Any) -> bool:
    """Whether a result has all that is expected: members that are not named may have any value."""
    if isinstance(expected, dict) and isinstance(result, dict):
        return all(name in result and is_expected(result[name], value)
                   for name, value in expected.items())
    if isinstance(expected, list) and isinstance(result, list):
        return len(result) == len(expected) and all(map(is_expected, result, expected))
    return type(result) is type(expected) and result == expected


def run_case(case: dict[str, Any], number: int) -> bool:
    runner = Runner("store-%d" % number)
    try:
        for index, step in enumerate(case["steps"], 1):
            fault = runner.run(step)
            if fault is not None:
                print("%s, step %d: %s: %s" % (case["name"], index, step["call"], fault),
                      file=sys.stderr)
                return False
        return True
    finally:
        runner.store.close()


def main() -> int:
    with open(sys.argv[1], encoding="utf-8") as file:
        cases = json.load(file)["cases"]
    failed = sum(not run_case(case, number) for number, case in enumerate(cases))
    print("%d cases, %d failed" % (len(cases), failed))
    return 1 if failed or not cases else 0


sys.exit(main())
