"""What a person saw in Copilot CLI, of session-state/ID/events.jsonl: a chain of events."""
from shown import Session, image, jsonl, result


def items_of(event, asked):
    kind, data = event.get("type"), event.get("data") or {}
    seen = not data.get("parentToolCallId") and not event.get("agentId")
    text = data.get("content")
    if kind == "user.message":
        is_typed = not str(data.get("source") or "").startswith("skill-") and \
            not str(text).lstrip().startswith("<skill-context")
        yield "user", text or "", seen and is_typed
        yield "note", data.get("transformedContent") or "", False
        for file in data.get("attachments") or ():
            if str(file.get("mimeType")).startswith("image/") and file.get("data"):
                yield image(file, seen)
    elif kind == "assistant.message":
        yield "thinking", data.get("reasoningText") or "", False
        yield "assistant", text or "", seen
        for call in data.get("toolRequests") or ():
            asked.add(call.get("toolCallId"))
            yield "call", (call.get("name"), call.get("arguments")), seen
    elif kind == "tool.execution_start" and data.get("toolCallId") not in asked:
        yield "call", (data.get("toolName"), data.get("arguments")), seen
    elif kind == "tool.execution_complete":
        output = data.get("result") if data.get("result") is not None else data.get("error") or {}
        for block in output.get("contents") or () if isinstance(output, dict) else ():
            if block.get("type") == "image":
                yield image(block, seen)
        output = output.get("content") or output.get("message") or "" \
            if isinstance(output, dict) else output
        for name, value, is_shown in result(output):
            yield name, value, is_shown and seen
    elif isinstance(text, str):
        yield "note", text, False


def sessions(root):
    for path, rows in jsonl(root):
        start = next((row for row in rows if row.get("type") == "session.start"), None)
        if start is not None:
            asked = set()
            items = [item for row in rows for item in items_of(row, asked)]
            yield Session(start["data"].get("sessionId"), path, items, items)
