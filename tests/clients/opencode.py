"""What a person saw in OpenCode until 1.1, of the tree storage/."""
import json
import os

from shown import Session, image


def documents(folder):
    names = sorted(os.listdir(folder)) if os.path.isdir(folder) else []
    for name in names:
        try:
            with open(os.path.join(folder, name), encoding="utf-8") as file:
                yield json.load(file)
        except (ValueError, IsADirectoryError):
            continue


def part_items(role, part):
    kind, state = part.get("type"), part.get("state") or {}
    if kind == "text":
        shown = not part.get("synthetic") and not part.get("ignored")
        yield role, part.get("text", ""), shown
    elif kind == "reasoning":
        yield "thinking", part.get("text", ""), False
    elif kind == "tool":
        yield "call", (part.get("tool"), state.get("input")), True
        if state.get("status") == "error":
            yield "result", state.get("error", ""), True
        elif state.get("status") not in ("pending", "running"):
            yield "result", state.get("output", ""), True
            for file in state.get("attachments") or ():
                yield image(file)
    elif kind == "file" and str(part.get("mime", "")).startswith("image/"):
        yield image(part)


def sessions(root):
    for folder, folders, _ in os.walk(root):
        folders.sort()
        if not {"session", "message"} <= set(folders):
            continue
        parts = {}
        for below, _, _ in sorted(os.walk(os.path.join(folder, "part"))):
            for part in documents(below):
                parts.setdefault(part.get("messageID") or os.path.basename(below), []).append(part)
        for project in sorted(os.listdir(os.path.join(folder, "session"))):
            for info in documents(os.path.join(folder, "session", project)):
                items = []
                for message in documents(os.path.join(folder, "message", info["id"])):
                    for part in parts.get(message["id"], ()):
                        found = list(part_items(message["role"], part))
                        if message.get("summary") is True:
                            found = [("note", value, False) for _, value, _ in found]
                        items += found
                yield Session(info["id"], None, items, items)
