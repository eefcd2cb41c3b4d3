"""What a person saw in pi, of sessions/*/*.jsonl: a tree of entries since version 2, a list of them
in version 1."""
from shown import Session, image, jsonl, result


def blocks(role, content):
    if isinstance(content, str):
        content = [{"type": "text", "text": content}]
    for block in content or ():
        kind = block.get("type")
        if kind == "text":
            yield role, block["text"], True
        elif kind == "thinking":
            yield "thinking", block.get("thinking", ""), False
        elif kind == "toolCall":
            yield "call", (block["name"], block.get("arguments")), True
        elif kind == "image":
            yield image(block)


def items_of(row):
    message = row.get("message") if row.get("type") == "message" else None
    if not isinstance(message, dict):
        for key in ("summary", "content", "label"):
            if isinstance(row.get(key), str):
                yield "note", row[key], False
        if row.get("type") == "custom_message" and isinstance(row.get("content"), list):
            for kind, value, _ in blocks("note", row["content"]):
                yield kind, value, False
        return
    role = message.get("role")
    if role in ("user", "assistant"):
        yield from blocks(role, message.get("content"))
    elif role == "toolResult":
        yield from result(message.get("content"))
    elif role == "bashExecution":
        # A person's own command.
        yield "call", ("bash", message.get("command", "")), True
        yield "result", message.get("output", ""), True
    else:
        for kind, value, _ in blocks("note", message.get("content") or message.get("summary")):
            yield kind, value, False


def sessions(root):
    for path, rows in jsonl(root):
        rows = rows[1:] if rows and rows[0].get("type") == "title" else rows  # of omp
        if not rows or rows[0].get("type") != "session":
            continue
        parents, known, before = {}, {}, None
        for row in rows[1:]:
            # The parent of OpenClaw's results is the call: the line before.
            known[row.get("id")] = row
            parents[id(row)] = known.get(row["parentId"], before) if row.get("parentId") else \
                before if "parentId" not in row else None
            before = row
        live = []
        while before is not None and before not in live:
            live.append(before)
            before = parents[id(before)]
        live.reverse()
        yield Session(rows[0].get("id"), path,
                      [item for row in rows[1:] for item in items_of(row)],
                      [item for row in live for item in items_of(row)])
