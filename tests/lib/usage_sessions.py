#!/usr/bin/env python3
"""Writes the sessions of verbs_usage.sh to a directory: claude, codex and pi.

usage_sessions.py DIR
"""
import json
import os
import sys

CLAUDE = ("11111111-2222-4333-8444-555555555555", "22222222-2222-4333-8444-555555555555")
CODEX = "019b2ea4-aaaa-4bbb-8ccc-58208e1f0001"
SUBAGENTS = ["019b2ea4-aaaa-4bbb-8ccc-58208e1f000%d" % number for number in range(2, 6)]


def write(path, rows):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as file:
        for row in rows:
            file.write(json.dumps(row, separators=(",", ":")) + "\n")


def claude(session):
    """Rows of a streamed answer, two without requestId, an old one with a cost, a copy in a side
    chain, an advisor's, and a subagent's; the same in each session, as in a copy of it."""
    def row(number, kind, message, **members):
        return {"parentUuid": "%s-%d" % (session, number - 1) if number else None,
                "isSidechain": False, "userType": "external", "cwd": "/srv/app",
                "sessionId": session, "version": "2.1.0", "type": kind, "message": message,
                "uuid": "%s-%d" % (session, number),
                "timestamp": "2026-02-03T09:00:%02d.000Z" % number, **members}

    def answer(number, message, output, iterations=(), **members):
        usage = {"input_tokens": 10, "cache_creation_input_tokens": 100,
                 "cache_read_input_tokens": 1000, "output_tokens": output,
                 "iterations": iterations}
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
            answer(6, "msg_1", 3, requestId="req_2", costUSD=0.25),
            answer(7, "msg_1", 9000, requestId="req_9", isSidechain=True),
            answer(8, "msg_3", 5, requestId="req_3", iterations=[
                {"type": "message", "input_tokens": 10, "output_tokens": 5},
                {"type": "advisor_message", "model": "claude-haiku-4-5", "input_tokens": 7,
                 "output_tokens": 8}]),
            {**row(9, "progress", None), "data": {
                "type": "agent_progress", "message": answer(10, "msg_4", 6, requestId="req_4")}}]


def codex():
    """Rows of a thread: an event again, one without counts, one with totals only, one of another
    kind, and one after a record of the same counts; and those of subagents that begin with the
    thread's, at new times: each names the thread in another way, and all have the same own
    event; one states from where on its lines are its own."""
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
    def header(thread, second=0, **members):
        return line(second, "session_meta", {
            "id": thread, "timestamp": "2026-02-04T10:00:00.000Z", "cwd": "/srv/tool",
            "originator": "codex_cli_rs", "cli_version": "0.51.0", **members})

    written = {**tokens(50, 10, 10, 1), "cache_write_input_tokens": 10}
    rows = [header(CODEX), line(1, "turn_context", {"cwd": "/srv/tool", "model": "gpt-5.2"}),
            event(2, both), event(3, both), event(4, None),
            event(5, {"total_token_usage": tokens(150, 80, 30, 5)}),
            line(6, "event_msg", {"type": "turn.completed", "usage": tokens(9, 9, 9, 9)}),
            line(7, "token_usage_record", {"response_id": "resp_1", "usage": written}),
            event(8, {"last_token_usage": written, "total_token_usage": {
                **tokens(200, 90, 40, 6), "cache_write_input_tokens": 10}})]
    later = [{**row, "timestamp": "2026-02-04T11:00:00.000Z"} for row in rows]
    own = event(9, {"last_token_usage": tokens(70, 0, 30, 0), "total_token_usage": {
        **tokens(270, 90, 70, 6), "cache_write_input_tokens": 10}})
    inherited = event(9, {"last_token_usage": tokens(200, 90, 40, 6),
                          "total_token_usage": tokens(200, 90, 40, 6)})
    spawn = {"subagent": {"thread_spawn": {"parent_thread_id": CODEX, "depth": 1}}}
    links = [{"source": spawn}, {"forked_from_id": CODEX}, {"parent_thread_id": CODEX}]
    files = {CODEX: rows}
    for name, link in zip(SUBAGENTS, links):
        files[name] = [header(name, 9, **link), *later, own]
    files[SUBAGENTS[3]] = [
        {**row, "ordinal": ordinal} for ordinal, row in enumerate((
            header(SUBAGENTS[3], 9, source=spawn, subagent_history_start_ordinal=3),
            later[1], inherited, own))]
    return files


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
    for thread, rows in codex().items():
        write("%s/codex/rollout-2026-02-04T10-00-00-%s.jsonl" % (root, thread), rows)
    for session in ("one", "two"):
        write("%s/pi/%s.jsonl" % (root, session), pi(session))


main()
