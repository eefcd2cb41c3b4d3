#!/usr/bin/env python3
"""Makes a home directory of clients, for cli_adopt.

make_home.py HOME COUNT: COUNT sessions each of Claude Code, Codex and pi, with
planted secrets in what the clients keep next to them.
"""
import json
import os
import sys
import uuid

SECRET = "sk-planted-secret-%s"


def write(home, path, text):
    path = os.path.join(home, path)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def lines(*rows):
    return "".join(json.dumps(row, separators=(",", ":")) + "\n"
                   for row in rows)


def claude(home, n):
    session = str(uuid.UUID(int=n + (1 << 100)))
    rows, parent = [], None
    for i in range(4):
        rows.append({
            "parentUuid": parent, "isSidechain": False, "type": "user",
            "cwd": "/srv/app_%d" % (n % 3), "sessionId": session,
            "message": {"role": "user", "content": "question %d of %d" % (i, n)},
            "uuid": str(uuid.UUID(int=n * 10 + i + (1 << 90))),
            "timestamp": "2026-01-%02dT10:%02d:00.000Z" % (n % 28 + 1, i)})
        parent = rows[-1]["uuid"]
    # Some clients' folder names keep a character that others replace.
    write(home, ".claude/projects/-srv-app_%d/%s.jsonl" % (n % 3, session),
          lines(*rows))


def codex(home, n):
    session = str(uuid.UUID(int=n + (2 << 100)))
    time = "2026-02-%02dT10:00:00.000Z" % (n % 28 + 1)
    write(home, ".codex/sessions/2026/02/%02d/rollout-2026-02-%02dT10-00-00-%s"
          ".jsonl" % (n % 28 + 1, n % 28 + 1, session), lines(
              {"timestamp": time, "type": "session_meta",
               "payload": {"id": session, "timestamp": time, "cwd": "/srv/c",
                           "originator": "cli", "cli_version": "0.9"}},
              {"timestamp": time, "type": "response_item",
               "payload": {"type": "message", "role": "user", "content": [
                   {"type": "input_text",
                    "text": "<environment_context>x</environment_context>"}]}},
              {"timestamp": time, "type": "response_item",
               "payload": {"type": "message", "role": "user", "content": [
                   {"type": "input_text", "text": "codex asks %d" % n}]}}))


def pi(home, n):
    session = str(uuid.UUID(int=n + (3 << 100)))
    time = "2026-03-%02dT10:00:00.000Z" % (n % 28 + 1)
    write(home, ".pi/agent/sessions/--srv-p--/%s_%s.jsonl" % (
        time.replace(":", "-").replace(".", "-"), session), lines(
            {"type": "session", "version": 3, "id": session, "timestamp": time,
             "cwd": "/srv/p"},
            {"type": "message", "id": "a%07x" % n, "parentId": None,
             "timestamp": time, "message": {
                 "role": "user", "content": "pi asks %d" % n,
                 "timestamp": 1770109201000}}))


def secrets(home):
    for n, path in enumerate((
            ".claude/.credentials.json", ".claude/settings.json",
            ".claude/settings.local.json", ".claude/history.jsonl",
            ".claude/shell-snapshots/snapshot-bash-1.sh",
            ".claude/statsig/statsig.cached", ".claude/todos/1.json",
            ".claude/file-history/1/2", ".claude/projects/-srv-app_0/.env",
            ".claude/projects/-srv-app_0/notes.md", ".claude.json",
            ".claude/projects/-srv-app_0/auth.jsonl",
            ".claude/projects/-srv-app_0/credentials.jsonl",
            ".pi/agent/sessions/--srv-p--/oauth.jsonl",
            ".codex/auth.json", ".codex/config.toml", ".codex/history.jsonl",
            ".codex/state_5.sqlite", ".codex/state_5.sqlite-wal",
            ".codex/log/codex-tui.log", ".codex/shell_snapshots/1.sh",
            ".codex/sessions/2026/02/01/notes.jsonl",
            ".pi/agent/auth.json", ".pi/agent/settings.json",
            ".pi/agent/models.json", ".pi/agent/sessions/--srv-p--/x.db",
            ".ssh/id_ed25519", "work/.env", "work/data.jsonl")):
        text = SECRET % n
        write(home, path, text if not path.endswith((".json", ".jsonl")) else
              lines({"key": text}))


def main():
    home, count = sys.argv[1], int(sys.argv[2])
    for n in range(count):
        claude(home, n)
        codex(home, n)
        pi(home, n)
    secrets(home)


main()
