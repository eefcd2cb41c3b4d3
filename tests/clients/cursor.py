"""What a person saw in Cursor CLI, of projects/*/agent-transcripts/: a list of messages without ids
and times."""
import os
import re

from shown import Session, jsonl, result


def typed(text):
    """The query of a prompt, without what the client adds."""
    query = re.findall(r"<user_query>\n?(.*?)\n?</user_query>", text, re.S)
    if query:
        return "\n".join(query)
    return re.sub(r"<(timestamp|context)>.*?</\1>", "", text, flags=re.S)


def items_of(row):
    role, content = row.get("role"), (row.get("message") or {}).get("content")
    for block in [content] if isinstance(content, str) else content or ():
        block = {"type": "text", "text": block} if isinstance(block, str) else block
        kind = block.get("type")
        if kind == "text":
            text = block.get("text", "")
            yield role, typed(text) if role == "user" else text, True
        elif kind == "tool_use":
            yield "call", (block.get("name"), block.get("input")), True
        elif kind == "tool_result":
            yield from result(block.get("content"))


def sessions(root):
    for path, rows in jsonl(root):
        if any("role" in row for row in rows):
            items = [item for row in rows for item in items_of(row)]
            yield Session(os.path.basename(path)[:-len(".jsonl")], path, items, items)
