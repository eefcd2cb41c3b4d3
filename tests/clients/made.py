"""Small sessions of each client, as it writes them: what a reader must not miss."""
import json
import os
import shutil
import sqlite3

PNG = "iVBORw0KGgo="
ID = "11111111-2222-4333-8444-%012d"
THREAD = "019b2ea4-0000-4000-8000-%012d"


def write(path, rows):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as file:
        for row in rows:
            file.write((row if isinstance(row, str) else json.dumps(
                row, separators=(",", ":"))) + "\n")


# --- Claude Code ---

class Tree:
    """The rows of a session; each is the child of the one before, unless it says otherwise."""

    def __init__(self, session):
        self.session, self.rows, self.last = session, [], None

    def row(self, kind, **members):
        number = len(self.rows) + 1
        row = {"parentUuid": self.last, "isSidechain": False, "userType": "external",
               "cwd": "/srv/app", "sessionId": self.session, "version": "2.1.0", "type": kind,
               "uuid": "00000000-0000-4000-8000-%012d" % number,
               "timestamp": "2026-03-01T10:00:%02d.000Z" % (number % 60)} | members
        self.rows.append(row)
        self.last = row["uuid"]
        return row["uuid"]

    def user(self, content, **members):
        return self.row("user", message={"role": "user", "content": content}, **members)

    def answer(self, *blocks, message="msg_1", **members):
        return self.row("assistant", message={
            "id": message, "type": "message", "role": "assistant", "model": "claude-opus-4-5",
            "content": list(blocks), "stop_reason": None,
            "usage": {"input_tokens": 1, "output_tokens": 1}}, **members)

    def result(self, call, content, **members):
        return self.user([{"type": "tool_result", "tool_use_id": call, "content": content}],
                         **members)


def text(words):
    return {"type": "text", "text": words}


def call(number, **arguments):
    return {"type": "tool_use", "id": "toolu_%d" % number, "name": "Bash", "input": arguments}


def claude_sessions():
    tree = Tree(ID % 1)
    tree.user("Parallel calls")
    tree.answer(text("Three at once."))
    calls = [tree.answer(call(number, command="echo %d" % number)) for number in (1, 2, 3)]
    for number, parent in zip((2, 3, 1), (calls[1], calls[2], calls[0])):
        tree.result("toolu_%d" % number, "result %d" % number, parentUuid=parent)
    tree.answer(text("All have ended."), message="msg_2")
    yield tree
    tree = Tree(ID % 2)
    start = tree.user("Which way?")
    tree.answer(text("The first way."))
    tree.user("A question about the first way")
    tree.user("Rather the second way", parentUuid=start)
    tree.answer(text("The second way."), message="msg_2")
    tree.user([text("With an image"), {"type": "image", "source": {
        "type": "base64", "media_type": "image/png", "data": PNG}}])
    tree.answer(call(4, path="a\nb \"é\" \ud83d\ude00"), message="msg_3")
    tree.result("toolu_4", [text("one, "), text("two"), {"type": "image", "source": {
        "type": "base64", "media_type": "image/png", "data": PNG + "AAAA"}}])
    tree.answer({"type": "thinking", "thinking": "Hidden thought", "signature": "c2ln"},
                message="msg_4")
    tree.answer(text("The same text."), message="msg_4")
    tree.answer(text("The same text."), message="msg_5")
    yield tree
    tree = Tree(ID % 3)
    tree.user("Before the compaction")
    tree.answer(text("An answer before it."))
    last = tree.last
    tree.row("system", parentUuid=None, logicalParentUuid=last, subtype="compact_boundary",
             content="Conversation compacted",
             compactMetadata={"trigger": "auto", "preTokens": 9})
    tree.user("The summary of it.", isCompactSummary=True, isVisibleInTranscriptOnly=True)
    tree.user("After the compaction")
    tree.answer(text("An answer after it."), message="msg_2")
    yield tree
    tree = Tree(ID % 4)
    tree.user("<local-command-caveat>Caveat: it is no prompt</local-command-caveat>", isMeta=True)
    tree.user("<command-name>/model</command-name>\n<command-message>model</command-message>\n"
              "<command-args>opus</command-args>")
    tree.user("<local-command-stdout>Set model to opus</local-command-stdout>")
    tree.user("A typed prompt")
    tree.answer(text("At work."))
    tree.rows.append({"type": "queue-operation", "operation": "enqueue", "sessionId": ID % 4,
                      "timestamp": "2026-03-01T10:00:30.000Z", "content": "A queued prompt"})
    tree.rows.append({"type": "queue-operation", "operation": "remove", "sessionId": ID % 4,
                      "timestamp": "2026-03-01T10:00:31.000Z"})
    tree.row("attachment", attachment={"type": "queued_command", "prompt": "A queued prompt",
                                       "commandMode": "prompt"})
    tree.rows.append({"type": "api-request-blob", "sessionId": ID % 4, "message": {
        "role": "user", "content": "A queued prompt that " + "is sent to the model " * 20}})
    tree.answer(text("Both are done."), message="msg_2")
    yield tree


def claude(root):
    for tree in claude_sessions():
        write("%s/projects/-srv-app/%s.jsonl" % (root, tree.session), tree.rows)
    child = Tree(ID % 1)
    child.user("The task of a subagent", isSidechain=True, agentId="a1")
    child.answer(text("The answer of a subagent."), isSidechain=True, agentId="a1",
                 message="msg_9")
    write("%s/projects/-srv-app/%s/subagents/agent-a1.jsonl" % (root, ID % 1), child.rows)


# --- Codex ---

def line(number, kind, **payload):
    return {"timestamp": "2026-03-01T10:00:%02d.000Z" % number, "ordinal": number, "type": kind,
            "payload": payload}


def item(number, kind, **members):
    return line(number, "response_item", type=kind, **members)


def message(number, role, *texts):
    inner = "output_text" if role == "assistant" else "input_text"
    return item(number, "message", role=role,
                content=[{"type": inner, "text": words} for words in texts])


def completed(number, kind, words):
    return line(number, "event_msg", type="item_completed", thread_id=THREAD % 2, turn_id="t",
                item={"type": kind, "id": "i%d" % number, "content": [
                    {"type": "Text" if kind == "AgentMessage" else "text", "text": words}]})


def header(number, thread, **members):
    return line(number, "session_meta", id=THREAD % thread, timestamp="2026-03-01T10:00:00.000Z",
                cwd="/srv/tool", originator="codex_cli_rs", cli_version="0.150.0", source="cli",
                **members)


def codex(root):
    legacy = [
        header(0, 1),
        message(1, "user", "<environment_context>\n<cwd>/srv</cwd>\n</environment_context>"),
        message(1, "user", "# AGENTS.md instructions for /srv/tool\n\n<INSTRUCTIONS>\nBe exact."
                "\n</INSTRUCTIONS>", "<environment_context>\n<cwd>/srv</cwd>\n"
                "</environment_context>"),
        message(2, "user", "A prompt"),
        line(2, "event_msg", type="user_message", message="A prompt", images=[]),
        line(3, "event_msg", type="agent_message", message="I look."),
        message(3, "assistant", "I look."),
        item(4, "function_call", name="shell", arguments='{"command":["ls"]}', call_id="call_1"),
        item(5, "function_call_output", call_id="call_1", output="a\nb"),
        item(6, "custom_tool_call", name="apply_patch", input="*** Begin", call_id="call_2"),
        item(7, "custom_tool_call_output", call_id="call_2",
             output={"type": "input_text", "text": "Done."}),
        message(8, "assistant", "I look."),
        line(8, "event_msg", type="agent_message", message="I look."),
        line(9, "event_msg", type="user_message", message="A second prompt", images=[]),
        message(9, "user", "A second prompt"),
        line(10, "event_msg", type="agent_message", message="Done with all."),
        message(10, "assistant", "Done with all."),
        message(11, "user", "<turn_aborted>\nThe turn was interrupted.\n</turn_aborted>"),
        message(12, "user", "<user_shell_command>\n<command>\nls\n</command>\n<result>\n"
                "Exit code: 0\n</result>\n</user_shell_command>"),
        message(13, "user", "<skill>\n<name>x</name>\nHow to do it.\n</skill>"),
        message(14, "user", "<subagent_notification>\n{\"agent_id\":\"a\"}\n"
                "</subagent_notification>")]
    paginated = [
        header(0, 2, history_mode="paginated", history_base=None),
        completed(1, "UserMessage", "A prompt of a page"),
        message(2, "user", "A prompt of a page"),
        message(3, "assistant", "An answer of a page."),
        completed(4, "AgentMessage", "An answer of a page.")]
    for number, rows in ((1, legacy), (2, paginated)):
        write("%s/sessions/2026/03/01/rollout-2026-03-01T10-00-00-%s.jsonl" % (
            root, THREAD % number), rows)


# --- pi ---

def entry(number, parent, **members):
    return {"type": "message", "id": "%08x" % number, "parentId": parent and "%08x" % parent,
            "timestamp": "2026-03-01T10:00:%02d.000Z" % number} | members


def said(number, parent, role, *blocks, **members):
    return entry(number, parent, message={"role": role, "content": list(blocks),
                                          "timestamp": 1772359200000 + number} | members)


def answered(number, parent, *blocks):
    return said(number, parent, "assistant", *blocks, api="a", provider="p", model="m",
                usage={}, stopReason="stop")


def pi(root):
    image = {"type": "image", "data": PNG, "mimeType": "image/png"}
    rows = [
        {"type": "session", "version": 3, "id": "s-1", "cwd": "/srv/app",
         "timestamp": "2026-03-01T10:00:00.000Z"},
        said(1, None, "user", text("A prompt"), image),
        answered(2, 1, text("A look."), {"type": "toolCall", "id": "c1", "name": "read",
                                         "arguments": {"path": "a"}}),
        said(3, 2, "toolResult", text("its text"), image, toolCallId="c1", toolName="read",
             isError=False),
        answered(4, 3, text("An abandoned answer.")),
        answered(5, 3, text("A better answer."), text("In two blocks.")),
        entry(6, 5, message={"role": "bashExecution", "command": "ls -l", "output": "total 0",
                             "exitCode": 0, "timestamp": 1772359206000}),
        said(7, 6, "user", text("Go on"))]
    write(root + "/sessions/--srv-app--/2026-03-01T10-00-00-000Z_s-1.jsonl", rows)
    first = [{key: value for key, value in row.items()
              if key not in ("id", "parentId", "version")} for row in rows[1:4]]
    write(root + "/sessions/--srv-app--/2026-03-01T10-00-00-000Z_s-0.jsonl", [
        {"type": "session", "id": "s-0", "cwd": "/srv/app", "provider": "p", "modelId": "m",
         "timestamp": "2026-03-01T10:00:00.000Z"}, *first])


def omp(root):
    pi(root)
    for folder, _, names in list(os.walk(root)):
        for name in names:
            with open(os.path.join(folder, name), "r+", encoding="utf-8") as file:
                rows = file.read()
                file.seek(0)
                file.write(json.dumps({"type": "title", "v": 1, "title": "Made",
                                       "pad": " " * 180}) + "\n" + rows)


# --- OpenCode ---

def opencode(root):
    session = "ses_7fffffffffffBBBBBBBBBBBBBB"
    place = root + "/storage"
    made = {"created": 1772359200000, "updated": 1772359209000}
    write("%s/session/global/%s.json" % (place, session), [
        {"id": session, "version": "1.0.0", "projectID": "global", "directory": "/srv/app",
         "title": "Made", "time": made}])
    messages = [
        ("user", [{"type": "text", "text": "A prompt"},
                  {"type": "text", "text": "Read by the client", "synthetic": True},
                  {"type": "file", "mime": "image/png", "filename": "a.png",
                   "url": "data:image/png;base64," + PNG}]),
        ("assistant", [
            {"type": "step-start"}, {"type": "reasoning", "text": "Hidden thought",
                                     "time": {"start": 1, "end": 2}},
            {"type": "text", "text": "An answer."},
            {"type": "tool", "callID": "c1", "tool": "bash", "state": {
                "status": "completed", "input": {"command": "ls"}, "output": "a\nb",
                "title": "ls", "metadata": {}, "time": {"start": 1, "end": 2}}},
            {"type": "tool", "callID": "c2", "tool": "read", "state": {
                "status": "error", "input": {"path": "b"}, "error": "No such file",
                "time": {"start": 1, "end": 2}}},
            {"type": "text", "text": "The end."}])]
    for at, (role, parts) in enumerate(messages):
        name = "msg_b7ca9907%04dBBBBBBBBBBBBBB" % at
        info = {"id": name, "sessionID": session, "role": role, "time": made, "agent": "build"}
        if role == "user":
            info["model"] = {"providerID": "p", "modelID": "m"}
        else:
            info |= {"parentID": "msg_b7ca99070000BBBBBBBBBBBBBB", "modelID": "m", "mode": "build",
                     "providerID": "p", "path": {"cwd": "/srv/app", "root": "/"}, "cost": 0,
                     "tokens": {"input": 1, "output": 1, "reasoning": 0,
                                "cache": {"read": 0, "write": 0}}}
        write("%s/message/%s/%s.json" % (place, session, name), [info])
        for number, part in enumerate(parts):
            part_name = "prt_b7ca9907%d%03dBBBBBBBBBBBBBB" % (at, number)
            write("%s/part/%s/%s.json" % (place, name, part_name), [
                {"id": part_name, "sessionID": session, "messageID": name} | part])


def opencode_database(root):
    """The tree of `opencode` as rows of version 1, and a session of version 2."""
    tree = root + "-tree"
    opencode(tree)
    os.makedirs(root)
    db = sqlite3.connect(root + "/opencode.db")
    db.executescript("""
        CREATE TABLE session (id, project_id, parent_id, slug, directory, title, version,
                              time_created, time_updated);
        CREATE TABLE message (id, session_id, time_created, time_updated, data);
        CREATE TABLE part (id, message_id, session_id, time_created, time_updated, data);
        CREATE TABLE session_v2 (id, project_id, parent_id, fork_session_id, slug, directory, title,
                                 version, time_created, time_updated);
        CREATE TABLE session_message (id, session_id, type, seq, time_created, time_updated, data);
        """)
    at = 1772359200000

    def put(table, *values):
        db.execute("INSERT INTO %s VALUES (%s)" % (table, ", ".join("?" * len(values))), values)

    for folder, _, names in sorted(os.walk(tree)):
        for name in sorted(names):
            with open(os.path.join(folder, name), encoding="utf-8") as file:
                value = json.load(file)
            data = json.dumps({key: member for key, member in value.items()
                               if key not in ("id", "sessionID", "messageID")})
            if "/part/" in folder:
                put("part", value["id"], value["messageID"], value["sessionID"], at, at, data)
            elif "/message/" in folder:
                put("message", value["id"], value["sessionID"], at, at, data)
            else:
                put("session", value["id"], "global", None, "made", "/srv/app", "Made", "1.4.0",
                    at, at)
    shutil.rmtree(tree)
    second = "ses_7ffffffffff0CCCCCCCCCCCCCC"
    put("session_v2", second, "global", None, None, "second", "/srv/app", "Second", "2.0.0", at, at)
    tool = {"type": "tool", "time": {"created": at, "completed": at}}
    for seq, (kind, data) in enumerate((
            ("user", {"text": "A prompt of version 2", "files": [
                {"data": PNG, "mime": "image/png", "source": {"type": "inline"}}]}),
            ("assistant", {"agent": "build", "model": {"id": "m", "providerID": "p"}, "content": [
                {"type": "reasoning", "text": "Hidden thought"}, text("I look."),
                tool | {"id": "c1", "name": "shell", "state": {
                    "status": "completed", "input": {"command": "ls"}, "content": [
                        text("a\nb"), {"type": "file", "mime": "image/png",
                                       "uri": "data:image/png;base64," + PNG}]}},
                tool | {"id": "c2", "name": "read", "state": {
                    "status": "error", "input": {"path": "c"},
                    "error": {"type": "tool", "message": "No such file"}}}]}),
            ("shell", {"shellID": "s", "command": "pwd", "status": "exited", "exit": 0,
                       "output": {"output": "/srv/app", "cursor": 8, "size": 8}}),
            ("synthetic", {"text": "Read by the client"}),
            ("assistant", {"agent": "build", "model": {"id": "m", "providerID": "p"},
                           "content": [text("The end.")]})), 1):
        put("session_message", "msg_b7ca9907%04dCCCCCCCCCCCCCC" % seq, second, kind, seq, at + seq,
            at + seq, json.dumps(data | {"time": {"created": at + seq}}))
    db.commit()
    db.close()


# --- clients whose lines have one form ---

def rows_of(make, folder, *lines):
    """Lines as make(number, line), from 1 on."""
    write(folder, [make(number, row) for number, row in enumerate(lines, 1)])


def qwen(root):
    session = ID % 5
    name = "00000000-0000-4000-8000-%012d"

    def row(number, members):
        return {"uuid": name % number, "parentUuid": name % (number - 1) if number > 1 else None,
                "sessionId": session, "timestamp": "2026-03-01T10:00:%02d.000Z" % number,
                "cwd": "/srv/app", "version": "0.5.0"} | members

    def said(kind, role, *parts, **members):
        return {"type": kind, "message": {"role": role, "parts": list(parts)}} | members

    rows_of(row, "%s/projects/-srv-app/chats/%s.jsonl" % (root, session),
            said("user", "user", {"text": "A prompt of Qwen"},
                 {"inlineData": {"mimeType": "image/png", "data": PNG}}),
            said("assistant", "model", {"text": "Hidden thought", "thought": True},
                 {"text": "I look."}, {"functionCall": {
                     "id": "c1", "name": "read_file", "args": {"path": "a"}}}, model="qwen3"),
            said("tool_result", "user", {"functionResponse": {
                "id": "c1", "name": "read_file", "response": {"output": "the file's text"}}}),
            said("assistant", "model", {"functionCall": {
                "id": "c2", "name": "read_file", "args": {"path": "b"}}}, model="qwen3"),
            said("tool_result", "user", {"functionResponse": {
                "id": "c2", "name": "read_file", "response": {"error": "No such file"}}}),
            said("assistant", "model", {"text": "An abandoned answer."}, model="qwen3"),
            said("assistant", "model", {"text": "The better answer."}, model="qwen3",
                 parentUuid=name % 5),
            said("user", "user", {"text": "Typed in between"}, subtype="mid_turn_user_message"),
            said("user", "user", {"text": "Look at @a\n--- a ---\nits text"},
                 systemPayload={"displayText": "Look at @a"}, provenance="real_user"),
            said("user", "user", {"text": "<task>done</task>"}, subtype="notification",
                 systemPayload={"displayText": "Background agent completed"}),
            {"type": "system", "subtype": "slash_command", "systemPayload": {
                "phase": "invocation", "rawCommand": "/about"}},
            {"type": "system", "subtype": "slash_command", "systemPayload": {
                "phase": "result", "rawCommand": "/about", "outputHistoryItems": [
                    {"type": "info", "text": "A version"}]}},
            said("assistant", "model", {"text": "Seen."}, model="qwen3"))


def gemini(root):
    chats = root + "/tmp/app/chats/session-2026-03-01T10-00-"

    def row(number, members):
        return {"id": "m%d" % number, "timestamp": "2026-03-01T10:00:%02d.000Z" % number} | \
            members if "type" in members else members

    def head(session):
        return {"sessionId": session, "projectHash": "abc", "kind": "main",
                "startTime": "2026-03-01T10:00:00.000Z", "directories": ["/srv/app"],
                "lastUpdated": "2026-03-01T10:00:00.000Z"}

    def call(name, output):
        return {"id": name, "name": "run_shell_command", "args": {"command": "ls " + name},
                "status": "success", "timestamp": "2026-03-01T10:00:02.000Z",
                "result": [{"functionResponse": {"id": name, "name": "run_shell_command",
                                                 "response": {"output": output}}}]}

    rows_of(row, chats + "11111111.jsonl", head(ID % 6),
            {"type": "user", "content": [{"text": "A prompt of Gemini"}]},
            {"type": "gemini", "content": "", "model": "gemini-3-pro", "toolCalls": [
                call("t1", "one"), call("t2", "two")], "thoughts": [
                    {"subject": "Hidden", "description": "a thought"}]},
            {"type": "gemini", "content": "Both are listed.", "model": "gemini-3-pro"},
            {"$set": {"lastUpdated": "2026-03-01T10:00:05.000Z"}},
            {"type": "user", "content": "A prompt to take back"},
            {"type": "gemini", "content": "An answer to take back.", "model": "gemini-3-pro"},
            {"$rewindTo": "m6"},
            {"type": "user", "content": "@a.txt with its text", "displayContent": "@a.txt"},
            {"type": "gemini", "content": "The last an", "model": "gemini-3-pro", "id": "last"},
            {"type": "gemini", "content": "The last answer.", "model": "gemini-3-pro",
             "id": "last"},
            {"type": "info", "content": "Request cancelled."})
    rows_of(row, chats + "22222222.jsonl", head(ID % 7), {"$set": {"messages": [
        row(1, {"type": "user", "content": [{"text": "All at once"}]}),
        row(2, {"type": "gemini", "content": [{"text": "In one line."}]})]}})
    write(chats + "33333333.json", [json.dumps({**head(ID % 8), "messages": [
        row(1, {"type": "user", "content": "All in one object"}),
        row(2, {"type": "gemini", "content": "", "toolCalls": [call("t1", "one")]}),
        row(3, {"type": "gemini", "content": [{"text": "In several lines."}]})]}, indent=2)])


def copilot(root):
    def event(number, members):
        kind, data = members
        return {"type": kind, "data": data, "id": "00000000-0000-4000-8000-%012d" % number,
                "timestamp": "2026-03-01T10:00:%02d.000Z" % number, "parentId":
                "00000000-0000-4000-8000-%012d" % (number - 1) if number > 1 else None}

    def asked(name, arguments):
        return {"toolCallId": name, "name": "bash", "arguments": arguments, "type": "function"}

    def done(name, **members):
        return "tool.execution_complete", {"toolCallId": name, "success": "result" in members} | \
            members

    rows_of(event, "%s/session-state/%s/events.jsonl" % (root, ID % 8),
            ("session.start", {"sessionId": ID % 8, "version": 1, "producer": "copilot-agent",
                               "copilotVersion": "1.0.71", "context": {"cwd": "/srv/app"},
                               "startTime": "2026-03-01T10:00:00.000Z"}),
            ("system.message", {"role": "system", "content": "Rules"}),
            ("user.message", {"content": "A prompt of Copilot", "transformedContent":
                              "A prompt of Copilot, and the time"}),
            ("assistant.message", {"messageId": "m1", "content": "I look.", "reasoningText":
                                   "Hidden thought", "toolRequests": [
                                       asked("c1", {"command": "ls"}),
                                       asked("c2", '{"command": "cat"}')]}),
            ("tool.execution_start", {"toolCallId": "c1", "toolName": "bash",
                                      "arguments": {"command": "ls"}}),
            done("c2", error={"message": "No such file"}),
            done("c1", result={"content": "a\nb"}),
            ("user.message", {"content": "A steering prompt", "delivery": "steering"}),
            ("user.message", {"content": "<skill-context>not typed</skill-context>",
                              "source": "skill-x"}),
            ("assistant.message", {"messageId": "m2", "content": "The end.", "toolRequests": []}))


def kimi(root):
    place = "%s/sessions/wd_app_0123456789ab/session_1" % root

    def record(number, members):
        return members | {"time": 1772359200000 + number}

    def loop(kind, **members):
        return {"type": "context.append_loop_event", "event": {
            "type": kind, "uuid": "u-" + kind, "turnId": "t1", "step": 0} | members}

    def prompt(words):
        return {"type": "context.append_message", "message": {
            "role": "user", "content": [text(words)], "toolCalls": []}}

    write(place + "/state.json", [{"title": "Made", "workDir": "/srv/app", "agents": {
        "main": {"type": "main"}}}])
    rows_of(record, place + "/agents/main/wire.jsonl",
            {"type": "metadata", "protocol_version": "1.4", "created_at": 1772359200000},
            {"type": "turn.prompt", "input": [text("A prompt of Kimi")],
             "origin": {"kind": "user"}},
            prompt("A prompt of Kimi"), loop("step.begin"),
            loop("content.part", part={"type": "think", "think": "Hidden thought"}),
            loop("content.part", part=text("I look.")),
            loop("tool.call", toolCallId="c1", name="Shell", args={"command": "ls"}),
            loop("tool.result", toolCallId="c1", result={"output": "a\nb", "isError": False}),
            loop("step.end", finishReason="end_turn"),
            prompt("Only in the context"), loop("step.begin"),
            loop("content.part", part=text("I do two things.")),
            loop("tool.call", toolCallId="c2", name="ReadFile", args={"path": "a"}),
            loop("tool.call", toolCallId="c3", name="Shell", args={"command": "rm a"}),
            loop("tool.result", toolCallId="c3", result={
                "output": "", "isError": True, "message": "Not allowed"}),
            loop("tool.result", toolCallId="c2", result={"isError": False, "output": [
                text("What a has"), {"type": "image_url", "image_url": {
                    "url": "data:image/png;base64," + PNG}}]}),
            {"type": "turn.steer", "input": [text("And b"), {
                "type": "image_url", "image_url": {"url": "data:image/png;base64," + PNG}}],
             "origin": {"kind": "user"}},
            {"type": "context.append_message", "message": {
                "role": "user", "content": [text("<system-reminder>Be brief</system-reminder>")],
                "toolCalls": [], "origin": {"kind": "injection"}}},
            loop("content.part", part=text("The end.")))
    rows_of(record, place + "/agents/coder-1/wire.jsonl",
            {"type": "metadata", "protocol_version": "1.4", "created_at": 1772359200000},
            {"type": "turn.prompt", "input": [text("What the main agent asks")],
             "origin": {"kind": "user"}},
            loop("content.part", part=text("What the subagent says")))
    # Kimi CLI, before Kimi Code.
    legacy = "%s/sessions/0123456789abcdef0123456789abcdef/%s/wire.jsonl" % (root, ID % 11)
    rows_of(lambda number, row: {"timestamp": 1772359200.5 + number, "message": dict(
                zip(("type", "payload"), row))} if isinstance(row, tuple) else row, legacy,
            {"type": "metadata", "protocol_version": "1.1"},
            ("TurnBegin", {"user_input": "A prompt of Kimi CLI"}), ("StepBegin", {"n": 1}),
            ("ContentPart", {"type": "think", "think": "Hidden thought"}),
            ("ContentPart", text("I look.")),
            ("ToolCall", {"type": "function", "id": "c1", "function": {
                "name": "Shell", "arguments": json.dumps({"command": "ls"})}}),
            ("ToolResult", {"tool_call_id": "c1", "return_value": {
                "is_error": False, "output": "a b", "message": "done", "display": []}}),
            ("StatusUpdate", {"token_usage": {"input_other": 1, "output": 2}}),
            ("ContentPart", text("The end.")), ("TurnEnd", {}))


def cursor(root):
    def row(_, members):
        role, *content = members
        return {"role": role, "message": {"content": content}}

    rows_of(row, "%s/projects/srv-app/agent-transcripts/%s/%s.jsonl" % (root, ID % 9, ID % 9),
            ("user", text("<timestamp>Sunday, Mar 1, 2026, 10:00 AM (UTC)</timestamp>\n"
                          "<user_query>\nA prompt of Cursor\n</user_query>")),
            ("assistant", text("I look."), {"type": "tool_use", "name": "Shell",
                                            "input": {"command": "ls"}}),
            ("assistant", text("The end.")))


def antigravity(root):
    def row(number, members):
        return {"step_index": number, "created_at": "2026-03-01T10:00:%02dZ" % number} | members

    def model(kind, words, **members):
        return {"source": "MODEL", "type": kind, "status": "DONE", "content": words} | members

    rows_of(row, "%s/brain/%s/.system_generated/logs/transcript.jsonl" % (root, ID % 11),
            {"source": "USER_EXPLICIT", "type": "USER_INPUT", "content": "<USER_REQUEST>\nA prompt "
             "of Antigravity\n</USER_REQUEST>\n<ADDITIONAL_METADATA>\n{\"cwd\":\"/srv/app\"}\n"
             "</ADDITIONAL_METADATA>"},
            {"source": "SYSTEM", "type": "CHECKPOINT", "content": "not said by anybody"},
            model("PLANNER_RESPONSE", "I look.", thinking="a thought", tool_calls=[
                {"name": "run_command", "args": {"command": "ls"}},
                {"name": "view_file", "args": {"path": "a"}}]),
            model("RUN_COMMAND", "a\nb"), model("VIEW_FILE", "the file", status="ERROR"),
            model("CODE_ACTION", "an edit"), model("PLANNER_RESPONSE", "The end."))


def droid(root):
    def row(number, members):
        return {"id": "d%d" % number, "timestamp": "2026-03-01T10:00:%02d.000Z" % number,
                "type": "message", "message": members} if "role" in members else members

    rows_of(row, "%s/sessions/-srv-app/%s.jsonl" % (root, ID % 10),
            {"type": "session_start", "id": ID % 10, "cwd": "/srv/app", "title": "Made"},
            {"role": "user", "content": [text("A prompt of Droid")]},
            {"role": "assistant", "content": [text("I look."), call(1, command="ls")]},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "toolu_1",
                                          "content": "a\nb"}]},
            {"role": "assistant", "content": [text("The end.")]})
