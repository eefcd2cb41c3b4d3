"""What a person saw in OpenCode since 1.2, of its database: rows of `session`, `message` and `part`
of version 1, rows of `session_v2` and `session_message` of version 2."""
import json
import os
import sqlite3

from opencode import part_items
from shown import Session, image, result


def second_items(kind, data):
    """A message of version 2 has its parts in it."""
    if kind == "user":
        yield "user", data.get("text", ""), True
        for file in data.get("files") or ():
            if str(file.get("mime", "")).startswith("image/"):
                yield image(file)
    elif kind == "assistant":
        for block in data.get("content") or ():
            state = block.get("state") or {}
            if block["type"] == "text":
                yield "assistant", block["text"], True
            elif block["type"] == "reasoning":
                yield "thinking", block["text"], False
            elif block["type"] == "tool":
                yield "call", (block["name"], state.get("input")), True
                if state.get("status") == "error":
                    yield "result", (state.get("error") or {}).get("message", ""), True
                elif state.get("status") == "completed":
                    yield from result([part for part in state["content"]
                                       if part["type"] == "text"])
                    for part in state["content"]:
                        if part["type"] == "file":
                            yield image({"url": part["uri"]})
    elif kind == "shell":
        yield "call", ("shell", {"command": data.get("command")}), True
        yield "result", (data.get("output") or {}).get("output", ""), True
    else:
        for key in ("text", "summary"):
            if data.get(key):
                yield "note", data[key], False


def first_items(db, session):
    for message, data in db.execute(
            "SELECT id, data FROM message WHERE session_id = ? ORDER BY time_created, id",
            (session,)).fetchall():
        info = json.loads(data)
        for part, in db.execute("SELECT data FROM part WHERE message_id = ? ORDER BY id",
                                (message,)):
            for kind, value, shown in part_items(info["role"], json.loads(part)):
                yield ("note", value, False) if info.get("summary") is True else \
                    (kind, value, shown)


def sessions(root):
    for name in sorted(os.listdir(root)):
        if not name.endswith(".db"):
            continue
        db = sqlite3.connect("file:%s?mode=ro" % os.path.join(root, name), uri=True)
        tables = {table for table, in db.execute("SELECT name FROM sqlite_master")}
        if "session_v2" in tables:
            for session, in db.execute("SELECT id FROM session_v2").fetchall():
                items = [item for kind, data in db.execute(
                    "SELECT type, data FROM session_message WHERE session_id = ? ORDER BY seq",
                    (session,)) for item in second_items(kind, json.loads(data))]
                yield Session(session, None, items, items)
        if "session" in tables:
            for session, in db.execute("SELECT id FROM session").fetchall():
                items = list(first_items(db, session))
                yield Session(session, None, items, items)
        db.close()
