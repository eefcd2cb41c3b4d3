"""What a person saw in Claude Code, of the files below ~/.claude (projects/...).

A line is a row of a tree. Rows `user` and `assistant` are messages; a prompt that was typed during
an answer is an `attachment` of kind queued_command, or only a queue-operation.
"""
import os
import re

from shown import Session, image, jsonl, result

# Of a row that is written again with the same uuid.
CHANGES = ("cwd", "gitBranch", "version", "slug", "sessionId", "forkedFrom")


def unwrapped(text):
    """A prompt as the client draws it, or None: what is in tags is no word of a person."""
    command = re.search(r"<command-name>(.*?)</command-name>", text, re.S)
    if command:
        words = re.search(r"<command-args>(.*?)</command-args>", text, re.S)
        return (command[1].strip() + " " + (words[1].strip() if words else "")).strip()
    for tag in ("bash-input",):
        inner = re.fullmatch(r"\s*<%s>(.*?)</%s>\s*" % (tag, tag), text, re.S)
        if inner:
            return inner[1]
    if re.match(r"\s*<(local-command-|command-|bash-std|system-reminder|task-notification"
                r"|user-memory-input|teammate-message)", text):
        return None
    return text


def message(row):
    """The items of a row: (kind, text, shown)."""
    content = row["message"].get("content")
    seen = not row.get("isMeta") and not row.get("isCompactSummary")
    blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
    for block in blocks if isinstance(blocks, list) else ():
        block = {"type": "text", "text": block} if isinstance(block, str) else block
        kind = block.get("type") if isinstance(block, dict) else None
        if kind == "text" and row["type"] == "user":
            text = unwrapped(block["text"]) if seen else None
            yield "user", block["text"] if text is None else text, text is not None
        elif kind == "text":
            yield row["type"], block["text"], True
        elif kind in ("thinking", "redacted_thinking"):
            yield "thinking", block.get("thinking", ""), False
        elif kind in ("tool_use", "server_tool_use"):
            yield "call", (block["name"], block.get("input")), True
        elif kind == "image":
            yield image(block["source"], seen)
        elif kind and kind.endswith("tool_result"):
            yield from result(block.get("content"))


def queued(row):
    """The prompt of an attachment, or None."""
    attached = row.get("attachment")
    if row.get("type") != "attachment" or not isinstance(attached, dict) or \
            attached.get("type") != "queued_command" or \
            attached.get("commandMode", "prompt") != "prompt":
        return None
    prompt = attached.get("prompt")
    if isinstance(prompt, list):
        return "".join(block.get("text", "") for block in prompt)
    return prompt


def items_of(row):
    if isinstance(row.get("message"), dict) and row.get("type") in ("user", "assistant"):
        yield from message(row)
    elif queued(row) is not None:
        text = unwrapped(queued(row))
        yield "user", text or queued(row), text is not None
    elif isinstance(row.get("content"), str) and row.get("type") == "system":
        yield "note", row["content"], False
    elif isinstance(row.get("summary"), str):
        yield "note", row["summary"], False


def only_queued(rows):
    """Prompts that are in no row and no attachment: those that were taken back."""
    said = {queued(row) for row in rows} | {
        text for row in rows for kind, text, _ in items_of(row) if kind == "user"}
    waiting = []
    for row in rows:
        if row.get("type") != "queue-operation":
            continue
        if row.get("operation") == "enqueue" and isinstance(row.get("content"), str):
            waiting.append(row["content"])
        elif waiting and row.get("operation") == "dequeue":
            waiting.pop(0)
        elif waiting and row.get("operation") in ("remove", "popAll"):
            text = waiting.pop(0)
            if text not in said and unwrapped(text) is not None:
                yield "user", text, True


def branch(rows):
    """The rows on the way to the last message, those of parallel calls with them."""
    all_ids, by_id, parents = {}, {}, {}
    for at, row in enumerate(rows):
        if "uuid" in row:
            all_ids.setdefault(row["uuid"], at)
    for at, row in enumerate(rows):
        if "uuid" not in row and not isinstance(row.get("message"), dict):
            continue
        parent = row.get("parentUuid") or row.get("logicalParentUuid")
        before = next(reversed(parents), None)
        # An unknown parent, as in the end of a file, is the row before.
        parents[at] = by_id.get(parent, all_ids.get(parent, before)) \
            if parent or "parentUuid" not in row or \
            row.get("subtype") == "compact_boundary" else None
        by_id[row.get("uuid")] = at
    tips = [at for at in parents if rows[at].get("type") in ("user", "assistant") and
            not (rows[at].get("isSidechain") and not rows[0].get("isSidechain"))]
    at, way = (tips[-1] if tips else None), set()
    while at is not None and at not in way:
        way.add(at)
        at = parents[at]
    answers = {rows[at]["message"].get("id") for at in way if rows[at]["type"] == "assistant"}
    for at in parents:
        row = rows[at]
        if row.get("type") == "assistant" and row["message"].get("id") in answers - {None}:
            way.add(at)
        elif row.get("type") == "user" and parents[at] in way and \
                rows[parents[at]]["type"] == "assistant" and \
                all(kind in ("result", "image") for kind, _, _ in items_of(row)):
            way.add(at)
    return way


def sessions(root):
    for path, rows in jsonl(root):
        seen, kept = set(), []
        for row in rows:
            mark = repr(sorted((k, repr(v)) for k, v in row.items() if k not in CHANGES))
            if "uuid" not in row or mark not in seen:
                kept.append(row)
            seen.add(mark)
        if not any(row.get("type") in ("user", "assistant") for row in kept):
            continue
        way = branch(kept)
        extra = list(only_queued(kept))
        yield Session(
            os.path.basename(path)[:-len(".jsonl")], path,
            [item for row in kept for item in items_of(row)] + extra,
            [item for at in sorted(way) for item in items_of(kept[at])] + extra)
