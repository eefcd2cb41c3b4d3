#!/usr/bin/env python3
"""Writes the sessions of verbs_usage.sh to a directory: claude, codex and pi.

usage_sessions.py DIR
"""
import json
import os
import sys

CLAUDE = ("11111111-2222-4333-8444-555555555555", "22222222-2222-4333-8444-555555555555")
CODEX = "019b2ea4-aaaa-4bbb-8ccc-58208e1f0001"


def write(path, rows):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as file:
        for row in rows:
            file.write(json.dumps(row, separators=(",", ":")) + "\n")


def claude(session):
    """Rows of a streamed answer, two without requestId, an old one with a cost; the same in
    each session, as in a copy of it."""
    def row(number, kind, message, **members):
        return {"parentUuid": "%s-%d" % (session, number - 1) if number else None,
                "isSidechain": False, "userType": "external", "cwd": "/srv/app",
                "sessionId": session, "version": "2.1.0", "type": kind, "message": message,
                "uuid": "%s-%d" % (session, number),
                "timestamp": "2026-02-03T09:00:%02d.000Z" % number, **members}

    def answer(number, message, output, **members):
        usage = {"input_tokens": 10, "cache_creation_input_tokens": 100,
                 "cache_read_input_tokens": 1000, "output_tokens": output}
        return row(number, "assistant",
                   {"id": message, "type": "message", "role": "assistant",
                    "model": "claude-opus-4-1", "content": [{"type": "text", "text": "x"}],
                    "stop_reason": None, "usage": usage}, **members)

    return [row(0, "user", {"role": "user", "content": "Go"}),
            answer(1, "msg_1", 1, requestId="req_1"),
            answer(2, "msg_1", 50, requestId="req_1"),
            answer(3, "msg_1", 7, requestId="req_1"),
            answer(4, "msg_2", 5),
            answer(5, "msg_2", 5),
            answer(6, "msg_1", 3, requestId="req_2", costUSD=0.25)]


def codex():
    """An event again, one without counts, one with totals only, and one of another kind."""
    def line(second, kind, payload):
        return {"timestamp": "2026-02-04T10:00:%02d.000Z" % second, "type": kind,
                "payload": payload}

    def tokens(*counts):
        return dict(zip(("input_tokens", "cached_input_tokens", "output_tokens",
                         "reasoning_output_tokens"), counts))

    def event(second, info):
        return line(second, "event_msg", {"type": "token_count", "info": info})

    first = tokens(100, 60, 10, 4)
    both = {"total_token_usage": first, "last_token_usage": first}
    return [line(0, "session_meta", {"id": CODEX, "timestamp": "2026-02-04T10:00:00.000Z",
                                     "cwd": "/srv/tool", "originator": "codex_cli_rs",
                                     "cli_version": "0.51.0"}),
            line(1, "turn_context", {"cwd": "/srv/tool", "model": "gpt-5.2"}),
            event(2, both), event(3, both), event(4, None),
            event(5, {"total_token_usage": tokens(150, 80, 30, 5)}),
            line(6, "event_msg", {"type": "turn.completed", "usage": tokens(9, 9, 9, 9)})]


def pi(session):
    """Costs, a compaction with its own; the same lines in each session."""
    def usage(counts, cost):
        return {**dict(zip(("input", "output", "cacheRead", "cacheWrite"), counts)),
                "cost": {"input": 0.1, "total": cost}}

    def line(number, **members):
        return {"id": "a1f03c2%d" % number,
                "parentId": "a1f03c2%d" % (number - 1) if number else None,
                "timestamp": "2026-02-05T09:00:0%d.000Z" % number, **members}

    return [{"type": "session", "version": 3, "id": session,
             "timestamp": "2026-02-05T09:00:00.000Z", "cwd": "/srv/app"},
            line(0, type="message", message={"role": "user", "content": "Go"}),
            line(1, type="message", message={"role": "assistant", "content": [],
                                             "model": "m-1", "usage": usage((1, 2, 3, 4), 0.5)}),
            line(2, type="compaction", summary="s", firstKeptEntryId="a1f03c21", tokensBefore=9,
                 usage=usage((10, 20, 0, 0), 0.25))]


def main():
    root = sys.argv[1]
    for session in CLAUDE:
        write("%s/claude/%s.jsonl" % (root, session), claude(session))
    write("%s/codex/rollout-2026-02-04T10-00-00-%s.jsonl" % (root, CODEX), codex())
    for session in ("one", "two"):
        write("%s/pi/%s.jsonl" % (root, session), pi(session))


main()
