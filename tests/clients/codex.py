"""What a person saw in Codex, of rollout-*.jsonl.

A legacy thread has people's words twice: as events, which the client draws, and as items, which the
model gets. A paginated one has events item_completed instead. Files of 2025 are items without an
envelope.
"""
import json
import re

from shown import Session, image, jsonl, result

INJECTED = re.compile(r"\s*(<(environment_context|user_instructions|turn_aborted|permissions"
                      r"|INSTRUCTIONS|skill|user_shell_command|subagent_notification)\b"
                      r"|# AGENTS\.md instructions)")


def texts(content):
    """The texts of a content, each block one."""
    if isinstance(content, str):
        return [content]
    return [block.get("text") or "" for block in content or () if isinstance(block, dict)]


def item(payload):
    """The items of what the model gets, but for its messages."""
    kind = payload.get("type")
    if kind in ("function_call", "tool_call"):
        name = payload.get("name") or payload.get("function", {}).get("name")
        yield "call", (name, payload.get("arguments")), True
    elif kind == "custom_tool_call":
        yield "call", (payload.get("name"), {"input": payload.get("input")}), True
    elif kind == "local_shell_call":
        yield "call", ("local_shell", payload.get("action")), True
    elif kind == "web_search_call":
        yield "call", ("web_search", payload.get("action")), True
    elif kind in ("function_call_output", "custom_tool_call_output", "function_result",
                  "tool_result"):
        output = payload.get("output", payload.get("result"))
        if isinstance(output, dict) and isinstance(output.get("content"), (str, list)):
            output = output["content"]
        if isinstance(output, dict) and "text" not in output:
            output = json.dumps(output)
        yield from result(output)
    elif kind == "reasoning":
        for part in (payload.get("summary") or []) + (payload.get("content") or []):
            yield "thinking", part.get("text", ""), False


def event(payload):
    """(role, texts, images) that an event draws, or None."""
    kind = payload.get("type")
    if kind == "user_message":
        return "user", [payload.get("message") or ""], payload.get("images") or []
    if kind == "agent_message":
        return "assistant", [payload.get("message") or ""], []
    done = payload.get("item") if kind == "item_completed" else None
    if isinstance(done, dict) and done.get("type") == "UserMessage":
        return "user", texts(done.get("content")), [
            block.get("image_url") for block in done.get("content") or ()
            if block.get("type") == "image"]
    if isinstance(done, dict) and done.get("type") == "AgentMessage":
        return "assistant", texts(done.get("content")), []
    return None


def said(payload):
    """(role, texts, images) of a message that the model gets, or None."""
    if payload.get("type") not in ("message", None) or \
            payload.get("role") not in ("user", "assistant"):
        return None
    content = payload.get("content", payload.get("message"))
    images = [block["image_url"] for block in content if isinstance(block, dict) and
              block.get("type") == "input_image" and block.get("image_url")] \
        if isinstance(content, list) else []
    return payload["role"], texts(content), images


def squeezed(blocks):
    return "".join("".join(blocks).split())


class Message:
    """One that a person sees, or `shown` is false."""

    def __init__(self, form, entry, shown):
        self.form, (self.role, self.texts, self.images), self.shown = form, entry, shown

    def merge(self, other):
        """The item has the blocks of the text."""
        if other.form == "response_item":
            self.texts = other.texts
        self.images = self.images or other.images
        self.form = None

    def items(self):
        for text in self.texts:
            yield self.role, text, self.shown
        for address in self.images:
            yield image({"url": address}, self.shown)


def turns(rows):
    """Lists of messages and items, from one prompt to the next, and those that were rolled back. A
    message that is an event and an item is one: they are in the same turn."""
    drawn = [event(row["payload"]) for row in rows if row.get("type") == "event_msg"
             and isinstance(row.get("payload"), dict)]
    prompts = [squeezed(entry[1]) for entry in drawn if entry and entry[0] == "user"]
    found, gone, pending = [[]], [], []
    for row in rows:
        is_enveloped = isinstance(row.get("payload"), dict)
        payload = row["payload"] if is_enveloped else row
        form = row.get("type") if is_enveloped else "response_item"
        entry, shown = None, True
        if form == "event_msg":
            entry = event(payload)
            if payload.get("type") == "thread_rolled_back":
                left = [turn for turn in found[1:] if not any(turn is other for other in gone)]
                gone += left[-payload.get("num_turns", 0):]
                found.append([])
        elif form == "response_item":
            entry = said(payload)
            if entry and entry[0] == "user":
                shown = not INJECTED.match("".join(entry[1])) and (
                    not prompts or any(squeezed(entry[1]) in prompt for prompt in prompts))
            if not entry:
                found[-1] += item(payload)
        elif form == "compacted":
            found[-1].append(("note", payload.get("message") or "", False))
        if not entry or not (squeezed(entry[1]) or entry[2]):
            continue
        message = Message(form, entry, shown)
        copies = [other for other in pending if other.role == message.role and
                 other.form not in (None, form) and
                 squeezed(other.texts) == squeezed(message.texts)]
        if copies:
            copies[0].merge(message)
            continue
        pending = [other for other in pending if other.role == message.role] + [message]
        if message.role == "user" and shown:
            found.append([])
        found[-1].append(message)
    return found, gone


def read(rows):
    """The items of all turns, and of those that are left."""
    found, gone = turns(rows)
    flat = [[(part.items() if isinstance(part, Message) else [part]) for part in turn]
            for turn in found]
    flat = [[entry for part in turn for entry in part] for turn in flat]
    return [entry for turn in flat for entry in turn], [
        entry for turn, items in zip(found, flat) for entry in items
        if not any(turn is other for other in gone)]


def sessions(root):
    files = {}
    for path, rows in jsonl(root):
        head = next((row["payload"] for row in rows if row.get("type") == "session_meta"), {})
        files[path] = (re.search(r"([0-9a-f-]{36})\.jsonl$", path), head, rows)
    rollouts = {match[1]: path for path, (match, _, _) in files.items() if match}

    def records(path, depth=0):
        """Those of its base before its own."""
        _, head, rows = files[path]
        base = head.get("history_base") or {}
        if depth < 100 and base.get("thread_id") in rollouts:
            end = base.get("end_ordinal_exclusive", 0)
            return [row for row in records(rollouts[base["thread_id"]], depth + 1)
                    if row.get("ordinal", 0) < end and row.get("type") != "session_meta"] + rows
        return rows

    for path, (_, head, rows) in files.items():
        if not rows:
            continue
        everything, live = read(records(path))
        if everything:
            yield Session(head.get("id") or path, path, everything, live)
