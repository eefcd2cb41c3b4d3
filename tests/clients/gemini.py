"""What a person saw in Gemini CLI and Tabnine, of tmp/PROJECT/chats/: lines that change a list of
messages, or, older, one object with the list."""
import json
import os

from google import parts
from shown import Session, objects


def items_of(message):
    kind = message.get("type")
    if kind == "user":
        seen = message.get("displayContent")
        yield from parts("user", message.get("content"), seen is None)
        yield from parts("user", seen)
    elif kind in ("gemini", "tabnine", "model"):
        for thought in message.get("thoughts") or ():
            for key in ("subject", "description"):
                yield "thinking", thought.get(key) or "", False
        yield from parts("assistant", message.get("content", message.get("parts")))
        for call in message.get("toolCalls") or ():
            yield "call", (call.get("name"), call.get("args")), True
            yield from parts("result", call.get("result"))
            if not call.get("result") and isinstance(call.get("resultDisplay"), str):
                yield "result", call["resultDisplay"], True
    else:
        for item in parts("note", message.get("content")):
            yield item[0], item[1], False


def read(rows):
    """The messages that are left, and all that were there."""
    live, everything = [], []
    for row in rows:
        change = row.get("$set")
        added = change.get("messages", []) if isinstance(change, dict) else \
            row.get("messages", [row] if "type" in row else [])
        if isinstance(change, dict) and "messages" in change:
            live = []
        if "$rewindTo" in row:
            ids = [message.get("id") for message in live]
            live = live[:ids.index(row["$rewindTo"]) if row["$rewindTo"] in ids else 0]
        for message in added:
            same = [at for at, other in enumerate(live) if other.get("id") == message.get("id")]
            if same and message.get("id"):
                live[same[0]] = message
            else:
                live.append(message)
            everything.append(message)
    return live, everything


def sessions(root):
    for folder, _, names in sorted(os.walk(root)):
        for name in sorted(names):
            path = os.path.join(folder, name)
            if name.endswith(".json"):
                with open(path, encoding="utf-8") as file:
                    rows = [json.load(file)]
            elif name.endswith(".jsonl"):
                rows = list(objects(path))
            else:
                continue
            head = next((row for row in rows if "sessionId" in row), None)
            if head is None:
                continue
            live, everything = read(rows)
            yield Session(head["sessionId"], path,
                          [item for message in everything for item in items_of(message)],
                          [item for message in live for item in items_of(message)])
