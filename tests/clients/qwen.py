"""What a person saw in Qwen Code, of projects/*/chats/*.jsonl: rows of a tree, as Claude Code has
them, with parts of Google's API."""
import os

import claude
from google import parts
from shown import Session, jsonl


def items_of(row):
    message, kind = row.get("message"), row.get("type")
    payload = row.get("systemPayload") or {}
    subtype = row.get("subtype")
    if isinstance(message, dict) and kind in ("user", "assistant", "tool_result"):
        if "parts" not in message:  # as older versions write it
            yield from claude.message(row)
            return
        role = "user" if kind == "user" else "assistant" if kind == "assistant" else "result"
        is_shown = subtype in (None, "mid_turn_user_message") and \
            row.get("provenance") in (None, "real_user")
        if is_shown and payload.get("displayText"):
            # What the model got has more in it than what was typed.
            yield "user", payload["displayText"], True
            for _, value, _ in parts(role, message["parts"]):
                yield "note", value, False
        else:
            yield from parts(role, message["parts"], is_shown)
    elif subtype == "slash_command":
        yield "command", payload.get("rawCommand") or "", False
        for item in payload.get("outputHistoryItems") or ():
            yield "note", item.get("text") or "", False
    elif row.get("subtype") == "chat_compression":
        for content in payload.get("compressedHistory") or ():
            for _, value, _ in parts("note", content.get("parts")):
                yield "note", value if isinstance(value, str) else "", False


def sessions(root):
    for path, rows in jsonl(root):
        by_id = {row["uuid"]: row for row in rows if "uuid" in row}
        said = [row for row in rows if "message" in row]
        if not said:
            continue
        live = rows
        if by_id:
            live, at = [], rows[-1]
            while at is not None and not any(at is row for row in live):
                live.append(at)
                at = by_id.get(at.get("parentUuid"))
            live.reverse()
        yield Session(said[0].get("sessionId") or os.path.basename(path)[:-6], path,
                      [item for row in rows for item in items_of(row)],
                      [item for row in live for item in items_of(row)])
