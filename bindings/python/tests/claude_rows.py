"""What the tests of agentwal.claude share."""

from __future__ import annotations

PROJECT = "-srv-app"
SESSION = "f4c1aaaa-0000-4000-8000-000000000001"
MAIN = {"project_key": PROJECT, "session_id": SESSION}
AGENT = {**MAIN, "subpath": "subagents/agent-77"}


def uuid(number):
    return "00000000-0000-4000-8000-%012x" % number


def message(number, **fields):
    """A row of a user or of an assistant, under the row before."""
    kind = "user" if number % 2 == 1 else "assistant"
    text = "%s %d" % (kind, number)
    return {
        "parentUuid": None if number == 1 else uuid(number - 1), "isSidechain": False,
        "cwd": "/srv/app", "sessionId": SESSION, "version": "2.1.0", "gitBranch": "main",
        "type": kind, "message": {"role": kind, "content": text}, "uuid": uuid(number),
        "timestamp": "2026-02-03T09:%02d:%02d.000Z" % divmod(number, 60), **fields}


def messages(count, **fields):
    return [message(number, **fields) for number in range(1, count + 1)]


def row(kind, **fields):
    return {"type": kind, **fields}


def fold(previous, key, entries):
    """A fold as the SDK's: what is set first, what is set last, and a count."""
    data = {} if previous is None else dict(previous["data"])
    for entry in entries:
        data.setdefault("created_at", entry.get("timestamp"))
        data["rows"] = data.get("rows", 0) + 1
        if isinstance(entry.get("customTitle"), str):
            data["custom_title"] = entry["customTitle"]
    return {"session_id": key["session_id"], "mtime": 0, "data": data}
