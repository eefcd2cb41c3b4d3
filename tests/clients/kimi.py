"""What a person saw in Kimi Code, of sessions/*/ID/agents/NAME/wire.jsonl: one list of records."""
import os

from shown import Session, image, jsonl, result


def blocks(role, content):
    for block in [content] if isinstance(content, (str, dict)) else content or ():
        block = {"type": "text", "text": block} if isinstance(block, str) else block
        if block.get("type") == "text":
            yield role, block.get("text", ""), True
        elif block.get("type") == "think":
            yield "thinking", block.get("think") or block.get("text") or "", False
        elif block.get("type") == "image_url":
            yield image({"url": block["image_url"]})


def event_items(event):
    kind = event.get("type")
    if kind == "content.part":
        yield from blocks("assistant", event.get("part"))
    elif kind == "tool.call":
        yield "call", (event.get("name"), event.get("args")), True
    elif kind == "tool.result":
        got = event.get("result") or {}
        yield from result(got.get("output") or got.get("message") or ""
                          if isinstance(got, dict) else got)


def read(rows):
    """A prompt is in turn.prompt or turn.steer, in the message after it, or in both. A message of
    another origin than a person is one of the client."""
    items, prompts = [], []
    for row in rows:
        kind = row.get("type")
        if kind in ("turn.prompt", "turn.steer"):
            added = list(blocks("user", row.get("input")))
            prompts += added
            items += added
        elif kind == "context.append_message":
            message = row.get("message") or {}
            origin = (message.get("origin") or {}).get("kind", "user")
            for item in blocks(message.get("role"), message.get("content")):
                if origin != "user":
                    items.append(("note", item[1], False))
                elif item in prompts:
                    prompts.remove(item)
                else:
                    items.append(item)
            for call in message.get("toolCalls") or ():
                items.append(("call", (call.get("name"), call.get("arguments")), True))
        elif kind == "context.append_loop_event":
            items += event_items(row.get("event") or {})
    return items


def read_legacy(rows):
    """The records of Kimi CLI."""
    items = []
    for row in rows:
        message = row.get("message") or {}
        kind, payload = message.get("type"), message.get("payload") or {}
        if kind == "TurnBegin":
            items += blocks("user", payload.get("user_input"))
        elif kind == "ContentPart":
            items += blocks("assistant", payload)
        elif kind == "ToolCall":
            function = payload.get("function") or {}
            items.append(("call", (function.get("name"), function.get("arguments")), True))
        elif kind == "ToolResult":
            items += result((payload.get("return_value") or {}).get("output") or "")
    return items


def sessions(root):
    for path, rows in jsonl(root):
        parts = path.split(os.sep)
        if parts[-1] == "wire.jsonl" and "agents" in parts[:-2]:
            items = read(rows)
            yield Session(parts[-4] if parts[-2] == "main" else None, path, items, items)
        elif parts[-1] == "wire.jsonl":
            items = read_legacy(rows)
            yield Session(parts[-2], path, items, items)
