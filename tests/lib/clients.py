"""What the clients of each dialect accept, and what they show.

For each dialect a function of the same name gives, of the files that a session
has (path below the client's directory: bytes), the conversation that the
client goes on with: a list of (what, text), what being user, assistant, call
or result. It raises Refused where the client would not read the session as it
was meant, or would not find it. Written from the clients' rules alone.
"""
import json
import re

UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$", re.I)
TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)?$")


class Refused(Exception):
    """The client does not accept it; says why."""


def need(condition, *why):
    if not condition:
        raise Refused(" ".join(map(str, why)))


def id_of(row, *keys):
    """Of a call: some clients' own files have empty ones."""
    for key in keys:
        need(isinstance(row.get(key), str), key, "of", row)


def text_of(row, *keys):
    for key in keys:
        need(isinstance(row.get(key), str) and row[key] != "", key, "of", row)


def lines_of(text):
    need(text.endswith(b"\n"), "no newline at the end")
    rows = []
    for number, line in enumerate(text[:-1].split(b"\n"), 1):
        try:
            row = json.loads(line)
        except ValueError:
            raise Refused("line %d is not JSON" % number) from None
        need(isinstance(row, dict), "line", number, "is no object")
        rows.append(row)
    return rows


def only(files, pattern):
    """The one file whose path fits, and what the pattern found in it."""
    found = [(path, re.match(pattern, path)) for path in files]
    found = [(path, match) for path, match in found if match]
    need(len(found) == 1, len(found), "files of the session, not one:",
         sorted(files)[:3])
    return files[found[0][0]], found[0][1]


def arguments(value):
    """The arguments as text; unwraps what a view put in an object."""
    if isinstance(value, dict) and set(value) == {"walconvArguments"}:
        value = value["walconvArguments"]
    return json.dumps(value, sort_keys=True)


def branch(items, leaf, parent):
    """From the root to the leaf; `items` by id."""
    path = []
    seen = set()
    while leaf is not None:
        need(leaf in items, "no entry", leaf)
        need(leaf not in seen, "parents go round at", leaf)
        seen.add(leaf)
        path.append(items[leaf])
        leaf = parent(items[leaf])
    return path[::-1]


# ------------------------------------------------------------------ pi -----

PI_ROLES = {"user", "assistant", "toolResult", "bashExecution", "custom",
            "branchSummary", "compactionSummary"}


def pi_blocks(blocks, allowed):
    need(isinstance(blocks, list), "content", blocks)
    for block in blocks:
        need(block.get("type") in allowed, "block", block)
        if block["type"] == "text":
            need(isinstance(block["text"], str), block)
        if block["type"] == "image":
            text_of(block, "data", "mimeType")
    return blocks


def pi_usage(usage):
    if usage == {}:
        return
    for key in ("input", "output", "cacheRead", "cacheWrite", "totalTokens"):
        need(isinstance(usage.get(key), (int, float)), key, "of", usage)
    for key in ("input", "output", "cacheRead", "cacheWrite", "total"):
        need(isinstance(usage["cost"].get(key), (int, float)), usage)


def pi_message(message):
    need(message.get("role") in PI_ROLES, "role", message.get("role"))
    need(isinstance(message.get("timestamp"), int), "timestamp", message)
    role = message["role"]
    if role == "user" and isinstance(message["content"], str):
        yield "user", message["content"]
    elif role == "user":
        for block in pi_blocks(message["content"], ("text", "image")):
            if block["type"] == "text":
                yield "user", block["text"]
    elif role == "toolResult":
        text_of(message, "toolName")
        id_of(message, "toolCallId")
        need(isinstance(message.get("isError"), bool), "isError", message)
        blocks = pi_blocks(message["content"], ("text", "image"))
        yield "result", "".join(b["text"] for b in blocks if "text" in b)
    elif role == "assistant":
        text_of(message, "api", "provider", "model")
        need(message.get("stopReason") in ("stop", "length", "toolUse",
                                           "error", "aborted"), message)
        pi_usage(message["usage"])
        for block in pi_blocks(message["content"],
                               ("text", "thinking", "toolCall")):
            if block["type"] == "text":
                yield "assistant", block["text"]
            elif block["type"] == "toolCall":
                text_of(block, "name")
                id_of(block, "id")
                need(isinstance(block["arguments"], dict), "arguments", block)
                yield "call", block["name"] + arguments(block["arguments"])
            else:
                need(isinstance(block["thinking"], str), block)


def pi(files):
    text, match = only(files, r"sessions/--(.*)--/([^_]*)_([^/]*)\.jsonl$")
    rows = lines_of(text)
    header = rows[0]
    need(text.index(b"\n") <= 512 or b'"id"' in text[:512], "long header")
    need(header.get("type") == "session" and header.get("version") == 3,
         "header", header)
    text_of(header, "id", "cwd")
    need(TIME.match(header.get("timestamp", "")), "timestamp of", header)
    need(re.match(r"\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d-\d\d\dZ$", match[2]),
         "name", match[0])
    items = {}
    for row in rows[1:]:
        text_of(row, "type")
        need(re.match(r"[0-9a-f]{8}$", row.get("id", "")), "id", row)
        need(row["id"] not in items, "id twice", row)
        need("parentId" in row and
             (row["parentId"] is None or row["parentId"] in items),
             "parent", row)
        need(TIME.match(row.get("timestamp", "")), "timestamp", row)
        items[row["id"]] = row
        for key in ("targetId", "fromId", "firstKeptEntryId"):
            need(key not in row or row[key] in items or row[key] == "root",
                 key, row)
        need(row["type"] != "message" or list(pi_message(row["message"])) or
             True, row)
        if row["type"] == "model_change":
            text_of(row, "provider", "modelId")
        if row["type"] == "compaction":
            need(isinstance(row.get("tokensBefore"), int), row)
            need(isinstance(row.get("summary"), str), row)
    path = branch(items, rows[-1].get("id") if items else None,
                  lambda row: row["parentId"])
    for at, row in enumerate(path):
        if row["type"] == "compaction":
            need(row["firstKeptEntryId"] in [r["id"] for r in path[:at + 1]],
                 "kept range of", row)
    return [shown for row in path if row["type"] == "message"
            for shown in pi_message(row["message"])]


# -------------------------------------------------------------- claude -----

def claude_drawn(row, text):
    """A person's words: a command without its tags, and no output of one."""
    if row["type"] != "user" or not re.match(r"\s*<(command-|bash-|local-command-)", text):
        return text
    text = re.sub(r"<(command-message|(bash|local-command)-(stdout|stderr|caveat))>.*?</\1>", "",
                  text, flags=re.S)
    return re.sub(r"</?(command-name|command-args|bash-input)>", "", text)


def claude_blocks(row):
    message = row["message"]
    content = message["content"]
    if isinstance(content, str):
        yield row["type"], claude_drawn(row, content)
        return
    need(isinstance(content, list), "content", row)
    for block in content:
        text_of(block, "type")
        if block["type"] == "text":
            need(isinstance(block["text"], str), block)
            yield row["type"], claude_drawn(row, block["text"])
        elif block["type"] == "tool_use":
            need(row["type"] == "assistant", "a call of", row["type"])
            text_of(block, "name")
            id_of(block, "id")
            need(isinstance(block["input"], dict), "input", block)
            yield "call", block["name"] + arguments(block["input"])
        elif block["type"] == "tool_result":
            need(row["type"] == "user", "a result of", row["type"])
            id_of(block, "tool_use_id")
            inner = block.get("content", "")
            if not isinstance(inner, str):
                inner = "".join(b.get("text", "") for b in inner)
            yield "result", inner


def claude_row(row, above, session):
    text_of(row, "uuid", "sessionId", "cwd", "version", "userType")
    need(UUID.match(row["uuid"]), "uuid", row)
    need(row["uuid"] not in above, "uuid twice", row)
    need(row["sessionId"] == session, "sessionId", row)
    need(TIME.match(row.get("timestamp", "")), "timestamp", row)
    need(isinstance(row.get("isSidechain"), bool), "isSidechain", row)
    need("parentUuid" in row and
         (row["parentUuid"] is None or row["parentUuid"] in above),
         "parent", row)
    need(row.get("logicalParentUuid") in (None, *above), "logical", row)
    if row["type"] == "assistant":
        message = row["message"]
        text_of(message, "id", "model", "type", "role")
        need(isinstance(message["content"], list), "content", row)
        need("stop_reason" in message and
             isinstance(message.get("usage"), dict), row)
    if row["type"] in ("user", "assistant"):
        need(row["message"]["role"] == row["type"], "role", row)
        list(claude_blocks(row))


def claude_listed(text, rows):
    """A prompt or a title near one of the file's ends."""
    for part in (text[:65536], text[-65536:]):
        for line in part.split(b"\n"):
            try:
                row = json.loads(line)
            except ValueError:
                continue
            if row.get("type") in ("summary", "custom-title", "ai-title",
                                   "last-prompt"):
                return True
            if row.get("type") == "user" and not row.get("isMeta") and any(
                    what == "user" for what, _ in claude_blocks(row)):
                return True
    return not any(row["type"] == "user" and not row.get("isMeta") and
                   any(what == "user" for what, _ in claude_blocks(row))
                   for row in rows)


def claude(files):
    text, match = only(files, r"projects/([^/]*)/([^/]*)"
                       r"(/subagents/agent-[^/]*)?\.jsonl$")
    if text == b"":
        return []  # no message yet
    rows = lines_of(text)
    above = {}
    messages = {}
    need(UUID.match(match[2]), "name", match[2])
    need(re.match(r"[a-zA-Z0-9-]{1,208}$", match[1]), "folder", match[1])
    for line, row in zip(text.split(b"\n"), rows):
        bare = re.sub(rb'"(?:[^"\\]|\\.)*"', b'""', line)
        need(b" " not in bare, "blanks in", line[:200])
        text_of(row, "type")
        if "uuid" not in row:
            need(line.startswith(b'{"type":"'), "type is not first", line[:99])
            need(row["type"] not in ("user", "assistant", "system",
                                     "attachment", "progress"), "no uuid", row)
            continue
        claude_row(row, above, match[2])
        need(above or match[3] or not row["isSidechain"],
             "begins with a side chain")
        above[row["uuid"]] = row
        if row["type"] == "assistant":
            known = messages.setdefault(row["message"]["id"], row["message"])
            need(known["model"] == row["message"]["model"], "answer", row)
        if row.get("subtype") == "compact_boundary":
            need(row["parentUuid"] is None, "boundary", row)
            need(isinstance(row.get("compactMetadata"), dict), row)
    need(match[3] or claude_listed(text, rows), "not listed")
    parents = {row.get("parentUuid") for row in above.values()}
    tips = [row["uuid"] for row in above.values()
            if row["uuid"] not in parents and
            (match[3] or not row["isSidechain"]) and
            row["type"] in ("user", "assistant")]
    tips = tips or [row["uuid"] for row in above.values()
                    if row["uuid"] not in parents and not row["isSidechain"]]
    path = branch(above, tips[-1] if tips else None,
                  lambda row: row["parentUuid"] or
                  row.get("logicalParentUuid"))
    return claude_shown(path, above)


def claude_shown(path, above):
    """With the results of calls made side by side: each is under the row of
    its call, and only one of them is on the way."""
    on_path = {row["uuid"] for row in path}
    answers = {row["message"]["id"] for row in path
               if row["type"] == "assistant"}
    shown = []
    for row in above.values():
        parent = above.get(row["parentUuid"])
        is_parallel_result = parent is not None and \
            parent["type"] == "assistant" and \
            parent["message"]["id"] in answers and row["type"] == "user" and \
            row["uuid"] not in on_path and \
            all(what == "result" for what, _ in claude_blocks(row)) and \
            parent["uuid"] in on_path
        if (row["uuid"] in on_path or is_parallel_result) and \
                row["type"] in ("user", "assistant") and \
                not row.get("isMeta") and not row.get("isCompactSummary"):
            shown += claude_blocks(row)
    return shown


# --------------------------------------------------------------- codex -----

CODEX_EVENTS = {"user": "user_message", "assistant": "agent_message"}


def codex_item(payload):
    kind = payload.get("type")
    if kind == "message":
        need(payload.get("role") in ("user", "assistant", "developer",
                                     "system"), payload)
        inner = "output_text" if payload["role"] == "assistant" else \
            "input_text"
        for block in payload["content"]:
            need(block.get("type") in (inner, "input_image",
                                             "encrypted_content"), block)
            if "text" in block and payload["role"] in CODEX_EVENTS:
                yield payload["role"], block["text"]
    elif kind == "function_call":
        text_of(payload, "name")
        id_of(payload, "call_id")
        need(isinstance(payload["arguments"], str), payload)
        try:
            value = json.loads(payload["arguments"])
        except ValueError:
            value = payload["arguments"] or {}
        yield "call", payload["name"] + arguments(value)
    elif kind == "custom_tool_call":
        text_of(payload, "name", "call_id")
        yield "call", payload["name"] + arguments({"input": payload["input"]})
    elif kind in ("function_call_output", "custom_tool_call_output"):
        id_of(payload, "call_id")
        output = payload["output"]
        if isinstance(output, list):
            output = "".join(b.get("text", "") for b in output)
        elif isinstance(output, dict):
            output = output.get("content") or arguments(output)
        yield "result", output
    elif kind == "reasoning":
        need(isinstance(payload.get("summary"), list), payload)
        need(payload.get("encrypted_content") is None or
             isinstance(payload["encrypted_content"], str), payload)


def codex_completed(rows):
    """The messages that are drawn of a paginated thread: those of turns that were begun. It is
    resumed, and its lines are found, by their ordinals."""
    ordinals = [row.get("ordinal") for row in rows]
    need(all(isinstance(ordinal, int) for ordinal in ordinals), "no ordinal", ordinals)
    need(all(a < b for a, b in zip(ordinals, ordinals[1:])), "ordinals", ordinals)
    turn = None
    for payload in (row["payload"] for row in rows if row["type"] == "event_msg"):
        if payload["type"] in ("task_started", "task_complete"):
            text_of(payload, "turn_id")
            turn = payload["turn_id"] if payload["type"] == "task_started" else None
        item = payload.get("item") if payload["type"] == "item_completed" else None
        if item is None:
            continue
        text_of(payload, "thread_id", "turn_id")
        text_of(item, "type", "id")
        if payload["turn_id"] != turn:
            continue
        if item["type"] == "UserMessage":
            need({block["type"] for block in item["content"]} <= {"text", "image"}, item)
            yield "user_message", "".join(b.get("text", "") for b in item["content"])
        if item["type"] == "AgentMessage":
            need({block["type"] for block in item["content"]} <= {"Text"}, item)
            yield "agent_message", "".join(b["text"] for b in item["content"])


def codex(files):
    text, match = only(files, r"sessions/(\d{4})/(\d\d)/(\d\d)/rollout-"
                       r"(\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d)-(.*)\.jsonl$")
    rows = lines_of(text)
    shown, turns, events = [], [], []
    need(UUID.match(match[5]), "name", match[5])
    need(match[4].startswith("%s-%s-%s" % match.group(1, 2, 3)), match[0])
    for row in rows:
        need(TIME.match(row.get("timestamp", "")), "timestamp", row)
        text_of(row, "type")
        need(isinstance(row.get("payload"), dict), "payload", row)
    need(rows[0]["type"] == "session_meta", "first line", rows[0])
    text_of(rows[0]["payload"], "id", "timestamp", "cwd", "originator",
            "cli_version")
    need(rows[0]["payload"]["id"] == match[5], "id", rows[0], match[5])
    if rows[0]["payload"]["originator"] == "walconv":
        text_of(rows[0]["payload"], "model_provider")
    is_paginated = rows[0]["payload"].get("history_mode") == "paginated"
    if is_paginated:
        events = list(codex_completed(rows))
    for row in rows[1:]:
        payload = row["payload"]
        if row["type"] == "turn_context":
            text_of(payload, "cwd", "approval_policy", "model", "summary")
            need(isinstance(payload.get("sandbox_policy"), dict), row)
        if row["type"] == "compacted":
            need(isinstance(payload.get("message"), str), row)
        if row["type"] == "event_msg":
            need(isinstance(payload.get("type"), str), row)
            if payload["type"] in CODEX_EVENTS.values() and not is_paginated:
                events.append((payload["type"], payload["message"]))
            if payload["type"] == "user_message":
                turns.append(len(shown))
            if payload["type"] == "thread_rolled_back":
                count = payload["num_turns"]
                del shown[turns[-count]:]
                del turns[-count:]
        if row["type"] == "response_item":
            shown += codex_item(payload)
    for row in rows:
        payload = row["payload"]
        if row["type"] == "response_item" and payload["type"] == "message" \
                and payload["role"] == "assistant":
            joined = "".join(b.get("text", "") for b in payload["content"])
            need(joined == "" or any(kind == "agent_message" and
                     message.replace("\n", "") == joined.replace("\n", "")
                     for kind, message in events), "no event says", row)
    if rows[0]["payload"]["originator"] == "walconv" and not is_paginated:
        prompts = [row["payload"] for row in rows[1:] if row["type"] == "response_item" and
                   row["payload"].get("role") == "user" and "walconvMeta" not in row["payload"]]
        need([block["image_url"] for prompt in prompts for block in prompt["content"]
              if block["type"] == "input_image"] ==
             [image for row in rows[1:] if row["payload"].get("type") == "user_message"
              for image in row["payload"].get("images", ())], "images that are not drawn")
    recorded = ["".join(m.split()) for k, m in events if k == "user_message"]
    return [(what, text) for what, text in shown if what != "user" or
            any("".join(text.split()) in message for message in recorded)]


# ------------------------------------------------------------ rollouts -----

def rollouts_message(message):
    role, content = message.get("role"), message.get("content")
    need(role in ("user", "assistant", "system", "tool"), "role", message)
    if role == "tool":
        id_of(message, "tool_call_id")
    blocks = content if isinstance(content, list) else []
    if isinstance(content, str):
        blocks = [{"type": "text", "text": content}]
    need(content is None or isinstance(content, (str, list)), message)
    inside = []
    for block in blocks:
        kind = block.get("type")
        if kind == "text":
            need(isinstance(block["text"], str), block)
            inside.append(block["text"])
            if role in ("user", "assistant"):
                yield role, block["text"]
        elif kind == "thinking":
            need(isinstance(block["thinking"], str), block)
        elif kind == "toolCall":
            text_of(block, "name")
            id_of(block, "id")
            need("arguments" in block, block)
            value = block["arguments"]
            try:
                value = json.loads(value) if isinstance(value, str) else value
            except ValueError:
                pass
            yield "call", block["name"] + arguments(value)
        else:
            need(kind == "image", "block", block)
            text_of(block, "image_url")
    if role == "tool":
        yield "result", "".join(inside)


def rollouts(files):
    text, _ = only(files, r"sessions/--[^/]*--/\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d_"
                   r"[^/]*\.jsonl$")
    rows = lines_of(text)
    shown = []
    need(rows[0].get("type") == "session", "header", rows[0])
    text_of(rows[0], "id", "timestamp", "cwd", "provider", "model")
    for row in rows[1:]:
        need(row.get("type") in ("message", "config_change"), "type", row)
        text_of(row, "timestamp")
        if row["type"] == "message":
            shown += rollouts_message(row["message"])
    return shown


# ------------------------------------------------------------- copilot -----

def copilot_files(files):
    """Attachments of a message, or contents of a result."""
    for file in files:
        text_of(file, "type")
        if file["type"] in ("blob", "image"):
            text_of(file, "mimeType")
            need("data" in file or "omittedReason" in file, "image", file)


def copilot_event(row):
    data = row["data"]
    if "agentId" in row or "parentToolCallId" in data:
        return  # of a subagent
    if row["type"] == "user.message":
        need(isinstance(data.get("content"), str), "content", row)
        copilot_files(data.get("attachments", []))
        if not data.get("source", "").startswith("skill-"):
            yield "user", data["content"]
    elif row["type"] == "assistant.message":
        need(isinstance(data.get("content"), str), "content", row)
        yield "assistant", data["content"]
        for call in data.get("toolRequests", []):
            text_of(call, "name")
            id_of(call, "toolCallId")
            value = call["arguments"]
            try:
                value = json.loads(value) if isinstance(value, str) else value
            except ValueError:
                pass
            yield "call", call["name"] + arguments(value)
    elif row["type"] == "tool.execution_complete":
        id_of(data, "toolCallId")
        need(isinstance(data.get("success"), bool), "success", row)
        result = data.get("result", {"content": ""})
        need(isinstance(result.get("content"), str), "result", row)
        copilot_files(result.get("contents", []))
        yield "result", result["content"]
    elif row["type"] == "tool.execution_start":
        id_of(data, "toolCallId", "toolName")
    elif row["type"] == "session.compaction_complete":
        need(isinstance(data.get("success"), bool), "success", row)


def copilot(files):
    text, match = only(files, r"session-state/([^/]*)/events\.jsonl$")
    rows = lines_of(text)
    need(UUID.match(match[1]), "folder", match[1])
    need(rows[0].get("type") == "session.start", "header", rows[0])
    start = rows[0]["data"]
    need(start.get("sessionId") == match[1], "sessionId", start)
    need(start.get("version") == 1, "version", start)
    text_of(start, "producer", "copilotVersion")
    need(TIME.match(start.get("startTime", "")), "startTime", start)
    text_of(start["context"], "cwd")
    ids = set()
    shown = []
    for row in rows:
        text_of(row, "type", "id")
        need(row["id"] not in ids, "id twice", row)
        ids.add(row["id"])
        need(TIME.match(row.get("timestamp", "")), "timestamp", row)
        need("parentId" in row, "no parentId", row)
        need(isinstance(row.get("data"), dict), "data", row)
        shown += copilot_event(row)
    return shown


# -------------------------------------------------------------- gemini -----

def gemini_parts(content):
    """(what, text) of a list of parts."""
    if isinstance(content, str):
        content = [{"text": content}]
    for part in content if isinstance(content, list) else [content]:
        if "functionCall" in part:
            yield "call", part["functionCall"]["name"] + arguments(
                part["functionCall"]["args"])
        elif "functionResponse" in part:
            response = part["functionResponse"]["response"]
            yield "result", response.get("output", response.get("error", ""))
        elif "text" in part and not part.get("thought"):
            yield None, part["text"]
        else:
            need("inlineData" in part or "fileData" in part or
                 part.get("thought"), "part", part)


def gemini_message(row):
    need(row.get("type") in ("user", "gemini", "info", "warning", "error"),
         "type", row)
    need(TIME.match(row.get("timestamp", "")), "timestamp", row)
    role = {"user": "user", "gemini": "assistant"}.get(row["type"])
    for what, text in gemini_parts(row.get("displayContent", row["content"])):
        if what or role:
            yield what or role, text
    calls = row.get("toolCalls", [])
    need(not calls or role == "assistant", "calls of", row)
    for call in calls:
        text_of(call, "name", "status", "timestamp")
        id_of(call, "id")
        need(isinstance(call.get("args"), dict), "args", call)
        yield "call", call["name"] + arguments(call["args"])
    for call in calls:
        for what, text in gemini_parts(call.get("result") or []):
            yield what or "result", text
    for thought in row.get("thoughts", []):
        need(isinstance(thought.get("description"), str), "thought", thought)


def gemini(files):
    text, match = only(files, r"tmp/[a-z0-9-]+/chats/session-"
                       r"\d{4}-\d\d-\d\dT\d\d-\d\d-([0-9a-f-]{36})\.jsonl$")
    rows = lines_of(text)
    text_of(rows[0], "sessionId", "projectHash", "startTime", "lastUpdated")
    need(UUID.match(rows[0]["sessionId"]), "sessionId", rows[0])
    need(rows[0]["sessionId"].startswith(match[1]), "name", match[0])
    need(rows[0].get("kind") == "main", "kind", rows[0])
    messages = {}
    for row in rows[1:]:
        if "$rewindTo" in row:
            ids = list(messages)
            at = ids.index(row["$rewindTo"]) if row["$rewindTo"] in ids else 0
            for gone in ids[at:]:
                del messages[gone]
        elif "id" in row:
            messages[row["id"]] = list(gemini_message(row))
        elif "messages" in row.get("$set", {}):
            messages = {message["id"]: list(gemini_message(message))
                        for message in row["$set"]["messages"]}
        else:
            need("$set" in row, "row", row)
    return [shown for message in messages.values() for shown in message]


# ------------------------------------------------------ sdk and spec11 -----

def sdk_content(row):
    """A string as the document has it, or blocks as its code has them."""
    content = row.get("content")
    if isinstance(content, list):
        for block in content:
            if block["type"] == "text":
                yield row["role"], block["text"]
            elif block["type"] == "tool_use":
                yield "call", block["name"] + arguments(block["input"])
        return
    need(isinstance(content, (str, type(None))), row)
    if row["role"] == "tool":
        id_of(row, "tool_call_id")
        yield "result", content
    elif row["role"] in ("user", "assistant") and content:
        yield row["role"], content


def sdk(files, prefix=r"[^/]+/"):
    metadata, _ = only(files, prefix + r"metadata\.json$")
    metadata = json.loads(metadata)
    text, _ = only(files, prefix + r"messages\.jsonl$")
    text_of(metadata, "created_at")
    need("session_id" in metadata or "id" in metadata, metadata)
    shown, taken = [], set()
    for row in lines_of(text) if text else []:
        row = {**row, **row.get("message", {})}
        text_of(row, "uuid", "timestamp", "role")
        need(row["uuid"] not in taken, "uuid twice", row)
        taken.add(row["uuid"])
        shown += sdk_content(row)
        for call in row.get("tool_calls") or []:
            id_of(call, "id")
            text_of(call["function"], "name")
            value = call["function"]["arguments"]
            need(isinstance(value, str), call)
            try:
                value = json.loads(value)
            except ValueError:
                pass
            shown.append(("call", call["function"]["name"] +
                          arguments(value)))
    return shown


def spec11(files):
    return sdk(files, r"sessions/[^/]+/")


# ------------------------------------------------------------- entries -----

def entries(files):
    text, _ = only(files, r"sessions/[^/]*\.jsonl$")
    rows = lines_of(text)
    need(rows[0].get("type") == "session_header", "header", rows[0])
    need("version" in rows[0] or "version" in rows[0]["payload"], rows[0])
    taken = set()
    for row in rows:
        text_of(row, "id", "type", "timestamp")
        need(row["id"] not in taken, "id twice", row)
        need(row.get("parentId") is None or row["parentId"] in taken,
             "parent", row)
        need("payload" in row, row)
        taken.add(row["id"])
    return None


# ------------------------------------------------------------ opencode -----

def opencode_tool(part):
    id_of(part, "callID", "tool")
    state = part["state"]
    need(state.get("status") in ("pending", "running", "completed", "error"),
         "status", part)
    need(isinstance(state.get("input"), dict), "input", part)
    yield "call", part["tool"] + arguments(state["input"])
    if state["status"] == "completed":
        need(isinstance(state.get("output"), str), "output", part)
        need(isinstance(state.get("title"), str), "title", part)
        need(isinstance(state.get("metadata"), dict), "metadata", part)
        need({"start", "end"} <= set(state["time"]), "time", part)
        yield "result", state["output"]
    if state["status"] == "error":
        need(isinstance(state.get("error"), str), "error", part)
        need({"start", "end"} <= set(state["time"]), "time", part)
        yield "result", state["error"]


def opencode_parts(files, session, message):
    folder = "storage/part/%s/" % message["id"]
    results = []  # yielded after the other parts of their step
    for path in sorted(p for p in files if p.startswith(folder)):
        part = json.loads(files[path])
        need(path == folder + part.get("id", "") + ".json", path, part)
        need(re.match(r"prt_[0-9A-Za-z]{26}$", part["id"]), part)
        need(part.get("sessionID") == session, "sessionID", part)
        need(part.get("messageID") == message["id"], "messageID", part)
        text_of(part, "type")
        if part["type"] == "step-start":
            yield from results
            results = []
        if part["type"] == "text":
            need(isinstance(part["text"], str), part)
            if not part.get("synthetic"):
                yield message["role"], part["text"]
        elif part["type"] == "tool":
            need(message["role"] == "assistant", "a call of", message)
            call, *result = opencode_tool(part)
            yield call
            results += result
        elif part["type"] == "file":
            text_of(part, "mime", "url")
    yield from results


def opencode(files):
    text, match = only(files, r"storage/session/([^/]*)/([^/]*)\.json$")
    info = json.loads(text)
    need(info.get("id") == match[2] and
         re.match(r"ses_[0-9A-Za-z]{26}$", match[2]), "id", info)
    need(info.get("projectID") == match[1], "projectID", info)
    text_of(info, "version", "directory", "title")
    need({"created", "updated"} <= set(info["time"]), "time", info)
    folder = "storage/message/%s/" % info["id"]
    shown, known, has_user = [], set(), False
    for path in sorted(p for p in files if p.startswith(folder)):
        message = json.loads(files[path])
        need(path == folder + message.get("id", "") + ".json", path, message)
        need(re.match(r"msg_[0-9A-Za-z]{26}$", message["id"]), message)
        need(message.get("sessionID") == info["id"], "sessionID", message)
        need(message.get("role") in ("user", "assistant"), "role", message)
        need(isinstance(message["time"]["created"], int), "time", message)
        if message["role"] == "user":
            text_of(message, "agent")
            text_of(message["model"], "providerID", "modelID")
        else:
            text_of(message, "modelID", "providerID", "mode", "agent")
            need(message.get("parentID") in known or not has_user, message)
            text_of(message["path"], "cwd", "root")
            need(isinstance(message.get("cost"), (int, float)), message)
            for key in ("input", "output", "reasoning"):
                need(isinstance(message["tokens"].get(key), (int, float)),
                     key, message)
            need({"read", "write"} <= set(message["tokens"]["cache"]), message)
        known.add(message["id"])
        has_user = has_user or message["role"] == "user"
        parts = list(opencode_parts(files, info["id"], message))
        if message["role"] == "user" or not message.get("summary"):
            shown += parts
    for path in files:
        if path.startswith("storage/part/"):
            need(folder + path.split("/")[2] + ".json" in files, "part", path)
    return shown


# ---------------------------------------------- parts of Google's API -----

def google_parts(content, role):
    need(isinstance(content.get("parts"), list), "parts", content)
    for part in content["parts"]:
        need(isinstance(part, dict) and len(set(part) & {
            "text", "thought", "functionCall", "functionResponse",
            "inlineData", "fileData"}) > 0, "part", part)
        if "functionCall" in part:
            call = part["functionCall"]
            text_of(call, "name")
            id_of(call, "id")
            need(isinstance(call["args"], dict), "args", call)
            yield "call", call["name"] + arguments(call["args"])
        elif "functionResponse" in part:
            result = part["functionResponse"]
            id_of(result, "id")
            response = result["response"]
            need(isinstance(response, dict), "response", result)
            for key in ("output", "error"):
                if isinstance(response.get(key), str):
                    yield "result", response[key]
                    break
            else:
                yield "result", json.dumps(response)
        elif "text" in part and not part.get("thought"):
            need(isinstance(part["text"], str), part)
            yield role, part["text"]
        elif "inlineData" in part:
            text_of(part["inlineData"], "mimeType", "data")


# ---------------------------------------------------------------- qwen -----

def qwen(files):
    text, match = only(files, r"projects/[^/]*/chats/([^/]*)\.jsonl$")
    need(re.match(r"[0-9a-fA-F-]{32,36}$", match[1]), "name", match[1])
    rows = lines_of(text)
    items = {}
    for row in rows:
        text_of(row, "uuid", "timestamp", "cwd")
        need(row.get("sessionId") == match[1], "sessionId", row)
        need(row.get("type") in ("user", "assistant", "tool_result",
                                 "system"), "type", row)
        need(row["uuid"] not in items, "uuid twice", row)
        need(row["parentUuid"] is None or row["parentUuid"] in items,
             "parent", row)
        items[row["uuid"]] = row
    path = branch(items, rows[-1]["uuid"] if rows else None,
                  lambda row: row["parentUuid"])
    shown = []
    for row in path:
        if row["type"] == "system" or "message" not in row or \
                row.get("provenance") == "system":
            continue
        message = row["message"]
        if "parts" not in message:
            shown += claude_blocks({**row, "type": {
                "assistant": "assistant"}.get(row["type"], "user")})
            continue
        need(message.get("role") in ("user", "model"), "role", row)
        shown += google_parts(message, "assistant" if message["role"] ==
                              "model" else "user")
    return shown


# ---------------------------------------------------------------- kimi -----

def kimi_content(content, role):
    for part in [{"type": "text", "text": content}] if isinstance(content, str) else content:
        need(part.get("type") in ("text", "think", "image_url"), "part", part)
        if part["type"] == "text":
            need(isinstance(part["text"], str), part)
            yield role, part["text"]
        elif part["type"] == "think":
            need(isinstance(part.get("think", part.get("encrypted")), str), part)
        else:
            text_of(part["imageUrl"], "url")


def kimi_found(files):
    """The records of the session that the index and the state name."""
    text, match = only(files, r"(sessions/wd_[^/]+/([^/]+))/agents/main/wire\.jsonl$")
    state = json.loads(files[match[1] + "/state.json"])
    text_of(state, "title", "workDir")
    need(TIME.match(state["createdAt"]) and TIME.match(state["updatedAt"]), "times", state)
    main = state["agents"]["main"]
    need(main["type"] == "main" and main["parentAgentId"] is None, "agents", state)
    need(main["homedir"].endswith(match[1] + "/agents/main"), "homedir", state)
    row, = lines_of(files["session_index.jsonl"])
    need(row["sessionId"] == match[2], "sessionId", row)
    need(row["sessionDir"].endswith(match[1]), "sessionDir", row)
    need(row["workDir"] == state["workDir"], "workDir", row)
    return lines_of(text)


def kimi(files):
    rows = kimi_found(files)
    need(re.match(r"1\.[0-5]$", rows[0].get("protocol_version", "")) and
         rows[0]["type"] == "metadata" and isinstance(rows[0]["created_at"], int), rows[0])
    shown, step, calls, prompted = [], None, set(), []
    for row in rows[1:]:
        need(isinstance(row.get("time"), int), "time", row)
        kind, event = row["type"], row.get("event", {})
        if kind in ("turn.prompt", "turn.steer"):
            prompted = list(kimi_content(row.get("input", []), "user"))
            shown += prompted
        elif kind == "context.append_message":
            message = row["message"]
            role = message["role"]
            need(role in ("user", "assistant", "system", "tool"), "role", row)
            items = list(kimi_content(message["content"],
                                      "result" if role == "tool" else role))
            if message.get("origin", {}).get("kind", "user") == "user" and \
                    role != "system" and items != prompted:
                shown += items
            for call in message["toolCalls"]:
                shown.append(("call", call["name"] + arguments(json.loads(call["arguments"]))))
                calls.add(call["id"])
        elif kind == "context.append_loop_event":
            need(event["type"] != "step.begin" or step is None, "a step in a step", row)
            if event["type"] == "step.begin":
                text_of(event, "uuid")
                step = event["uuid"]
            elif event["type"] == "step.end":
                need(event["uuid"] == step, "the end of another step", row)
                step = None
            elif event["type"] == "content.part":
                need(step is not None, "no step", row)
                shown += kimi_content([event["part"]], "assistant")
            elif event["type"] == "tool.call":
                need(step is not None, "no step", row)
                text_of(event, "name")
                id_of(event, "toolCallId")
                need(isinstance(event["args"], dict), "args", row)
                shown.append(("call", event["name"] + arguments(event["args"])))
                calls.add(event["toolCallId"])
            elif event["type"] == "tool.result":
                shown.append(("result", "".join(
                    text for _, text in kimi_content(event["result"]["output"], "result"))))
    return shown


CLIENTS = {"pi": pi, "claude": claude, "qwen": qwen, "codex": codex, "rollouts": rollouts,
           "sdk": sdk, "spec11": spec11, "entries": entries,
           "opencode": opencode, "gemini": gemini, "copilot": copilot,
           "kimi": kimi}


def misses(before, after):
    """What of `before` is not in `after`, in its order; None when all is.

    Another client may add placeholders, and join texts.
    """
    place, offset = 0, 0
    for what, text in before:
        text = "".join(text.split())
        if text == "":
            continue
        while place < len(after):
            found = -1
            if after[place][0] == what:
                there = "".join(after[place][1].split())
                found = there.find(text, offset)
            if found >= 0:
                offset = found + len(text)
                break
            place, offset = place + 1, 0
        else:
            return what, text
    return None


def misses_any_result(before, after):
    """The same where results have no order among other messages: OpenCode has
    each in the part of its call."""
    results = {"".join(text.split()) for what, text in after
               if what == "result"}
    for what, text in before:
        text = "".join(text.split())
        if what == "result" and text and not any(text in r for r in results):
            return what, text
    return misses([row for row in before if row[0] != "result"],
                  [row for row in after if row[0] != "result"])
