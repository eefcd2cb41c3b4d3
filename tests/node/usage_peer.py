#!/usr/bin/env python3
"""agentwal usage counts as ccusage does, from the same files of Claude Code,
Codex and pi: tokens of each kind, and stated costs, by day and model; and costs
by list prices, of each day. Where the two differ, EXPLAINED and EXPLAINED_COSTS
say why, and have the figures of both. The files are made; those of
AGENTWAL_FIXTURES come on top.
"""
import datetime
import json
import os
import re
import subprocess
import sys

SOURCE = os.environ["AGENTWAL_SOURCE"]
AGENTWAL = os.path.join(os.environ["WALBIN"], "agentwal")
CCUSAGE = os.path.join(SOURCE, "bindings/node/node_modules/ccusage/src/cli.js")
FIXTURES = os.environ.get("AGENTWAL_FIXTURES")
FOLDERS = {"claude": "projects", "codex": "sessions", "pi": "sessions"}
KINDS = ("inputTokens", "outputTokens", "cacheReadTokens")
ONE = "11111111-2222-4333-8444-555555555555"
TWO = "22222222-2222-4333-8444-555555555555"
THREADS = ["019b2ea4-aaaa-4bbb-8ccc-58208e1f000%d" % i for i in range(3)]
OPUS, HAIKU, GPT = "claude-opus-4-1", "claude-haiku-4-5", "gpt-5.2"


# --- both programs -------------------------------------------------------------

def run(folder, *command):
    environment = {key: value for key, value in os.environ.items()
                   if key not in ("CLAUDE_CONFIG_DIR", "CODEX_HOME")}
    environment |= {"HOME": folder, "TZ": "UTC", "LOG_LEVEL": "0", "NO_COLOR": "1",
                    "AGENTWAL_STORE": os.path.join(folder, "store")}
    if "claude" in command:
        environment["CLAUDE_CONFIG_DIR"] = folder
    elif "codex" in command:
        environment["CODEX_HOME"] = folder
    done = subprocess.run(command, env=environment, text=True, check=False,
                          stdin=subprocess.DEVNULL, capture_output=True)
    assert done.returncode == 0, (command, done)
    return done.stdout


def rounded(cost):
    return round(cost or 0, 9)


def usage(folder, *options):
    return [json.loads(line) for line in
            run(folder, AGENTWAL, "usage", "--json", *options).splitlines()]


def counted_here(folder, client):
    """{(day, model): counts} of agentwal."""
    run(folder, AGENTWAL, "init")
    run(folder, AGENTWAL, "import", os.path.join(folder, FOLDERS[client]))
    counts = {}
    for day in [row["day"] for row in usage(folder) if row["day"]]:
        end = datetime.date.fromisoformat(day) + datetime.timedelta(1)
        for row in usage(folder, "--by", "model", "--since", day, "--until", str(end)):
            last = row["reasoningTokens"] if client == "codex" else rounded(
                (row["cost"] or 0) - (row["computedCost"] or 0))
            counts[day, row["model"]] = (*[row[kind] for kind in KINDS],
                                         row["cacheWriteTokens"], last)
            assert row["totalTokens"] == sum(counts[day, row["model"]][:4]), row
    return counts


def reported(folder, client, *options):
    """The days of ccusage."""
    if client == "pi":
        options += "--pi-path", os.path.join(folder, "sessions")
    report = json.loads(run(folder, "node", CCUSAGE, client, "daily", "--offline", "--json",
                            "--timezone", "UTC", *options))
    return report["daily"] if isinstance(report, dict) else []


def counted_there(folder, client):
    """{(day, model): counts} of ccusage."""
    counts = {}
    for day in reported(folder, client, *(("--mode", "display") if client == "claude" else ())):
        rows = day["models"].items() if client == "codex" else [
            (row["modelName"].removeprefix("[pi] "), row) for row in day["modelBreakdowns"]]
        for model, row in rows:
            last = row["reasoningOutputTokens"] if client == "codex" else rounded(row["cost"])
            counts[day["date"], model] = (*[row[kind] for kind in KINDS],
                                          row["cacheCreationTokens"], last)
    return counts


def compare(folder, client):
    """The groups that differ, with both counts. None: the program has no such group, or one
    without tokens."""
    there, here = counted_there(folder, client), counted_here(folder, client)
    pairs = {}
    for group in there.keys() | here.keys():
        pair = tuple(counts.get(group) for counts in (there, here))
        pair = tuple(counts if counts and any(counts) else None for counts in pair)
        if pair[0] != pair[1]:
            pairs[group] = pair
    return pairs, sum(any(counts) for counts in here.values())


def compare_costs(folder, client, differences):
    """{day: costs} of the days that differ in nothing but their costs."""
    there = {day["date"]: rounded(day.get("totalCost", day.get("costUSD")))
             for day in reported(folder, client)}
    here = {row["day"]: rounded(row["cost"]) for row in usage(folder) if row["day"]}
    days = (there.keys() | here.keys()) - {day for day, _ in differences}
    pairs = {day: (there.get(day, 0), here.get(day, 0)) for day in days}
    return {day: pair for day, pair in pairs.items() if abs(pair[0] - pair[1]) > 2e-9}


def write(path, rows):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as file:
        for row in rows:
            if not isinstance(row, str):
                row = json.dumps(row, separators=(",", ":"))
            file.write(row + "\n")


# --- Claude Code ---------------------------------------------------------------

def row(message, request, counts=(1, 2, 3, 4), *, model=OPUS, time="10:00:00.000Z",
        session=ONE, usage_members=None, **members):
    row.number += 1
    counted = dict(zip(("input_tokens", "output_tokens", "cache_read_input_tokens",
                        "cache_creation_input_tokens"), counts)) | (usage_members or {})
    day = "" if "T" in time else "2026-03-01T"
    built = {"parentUuid": None, "isSidechain": False, "userType": "external", "cwd": "/srv/app",
             "sessionId": session, "version": "2.1.0", "type": "assistant",
             "message": {"id": message, "type": "message", "role": "assistant", "model": model,
                         "content": [], "usage": counted},
             "uuid": "00000000-0000-4000-8000-%012d" % row.number, "timestamp": day + time,
             "requestId": request} | members
    for part, name in ((built, "requestId"), (built["message"], "model")):
        if part[name] is None:
            del part[name]
    return built


row.number = 0


def progress(inner):
    """A row of a subagent's answer in the session that runs it."""
    inner = {key: value for key, value in inner.items()
             if key not in ("sessionId", "cwd", "version", "parentUuid", "isSidechain")}
    return {"type": "progress", "uuid": "p-" + inner["uuid"], "parentUuid": None, "sessionId": ONE,
            "timestamp": inner["timestamp"], "cwd": "/srv/app", "version": "2.1.0",
            "data": {"type": "agent_progress", "message": inner}}


def advised(output):
    return {"iterations": [
        {"type": "message", "input_tokens": 1, "output_tokens": 2},
        {"type": "advisor_message", "model": HAIKU, "input_tokens": 10, "output_tokens": output,
         "cache_read_input_tokens": 0, "cache_creation_input_tokens": 0}]}


def claude(sessions):
    return {"projects/-srv-app/%s.jsonl" % name: rows for name, rows in sessions.items()}


def claude_cases():
    streamed = [row("msg_1", "req_1", (1, output, 3, 4)) for output in (2, 9, 5)]
    yield "streamed rows", {ONE: streamed}
    yield "streamed input", {ONE: [row("msg_1", "req_1", (n, 9, 3, 4)) for n in (1, 100)]}
    yield "answers", {ONE: [row("msg_1", "req_1"), row("msg_2", "req_2", model=HAIKU),
                            row("msg_3", "req_3", time="2026-03-02T00:00:00.000Z")]}
    yield "another request", {ONE: [row("msg_1", "req_1"), row("msg_1", "req_2")]}
    yield "stated cost", {ONE: [row("msg_1", "req_1", costUSD=0.25), row("msg_2", "req_2")]}
    yield "copied session", {ONE: [row("msg_1", "req_1")], TWO: [
        row("msg_1", "req_1", session=TWO), row("msg_2", "req_2", session=TWO)]}
    yield "subagent", {ONE: [row("msg_1", "req_1")], ONE + "/subagents/agent-a1": [
        row("msg_2", "req_2", isSidechain=True, agentId="a1")]}
    yield "copied to a side chain", {ONE: [row("msg_1", "req_1")], ONE + "/subagents/agent-a1": [
        row("msg_1", "req_9", (1, 2, 3000, 4), isSidechain=True, agentId="a1"),
        row("msg_2", "req_2", isSidechain=True, agentId="a1")]}
    yield "side chain first", {ONE: [row("msg_1", "req_9", (1, 2, 3000, 4), isSidechain=True)],
                               TWO: [row("msg_1", "req_1"), row("msg_1", "req_1", (1, 8, 3, 4))]}
    yield "advisor", {ONE: [row("msg_1", "req_1", usage_members=advised(n)) for n in (5, 20)]}
    yield "progress", {ONE: [row("msg_1", "req_1"), progress(row("msg_2", "req_2", model=HAIKU))]}
    yield "progress and subagent", {
        ONE: [row("msg_1", "req_1"), progress(row("msg_2", "req_2", (1, 1, 3, 4)))],
        ONE + "/subagents/agent-a1": [row("msg_2", "req_2", isSidechain=True, agentId="a1")]}
    yield "error", {ONE: [row("e-1", None, (0, 0, 0, 0), model="<synthetic>",
                              isApiErrorMessage=True)]}
    yield "result of a tool", {ONE: [row("msg_1", "req_1"), {
        "type": "user", "uuid": "u-1", "parentUuid": None, "sessionId": ONE,
        "timestamp": "2026-03-01T10:00:05.000Z", "message": {"role": "user", "content": []},
        "toolUseResult": {"usage": {"input_tokens": 55, "output_tokens": 66}}}]}
    yield "no request", {ONE: [row("msg_1", None), row("msg_1", None, time="10:00:05.000Z")]}
    yield "over midnight", {ONE: [
        row("msg_1", "req_1", time="23:59:59.000Z"),
        row("msg_1", "req_1", (1, 9, 3, 4), time="2026-03-02T00:00:01.000Z")]}
    yield "microseconds", {ONE: [row("msg_1", "req_1", time="10:00:00.123456Z")]}
    yield "blanks", {ONE: [json.dumps(row("msg_1", "req_1"))]}
    yield "no model", {ONE: [row("msg_1", "req_1", model=None)]}
    yield "synthetic", {ONE: [row("msg_1", "req_1", model="<synthetic>")]}
    yield "an hour", {ONE: [row("msg_1", "req_1", (1, 2, 3, 40000), usage_members={
        "cache_creation": {"ephemeral_5m_input_tokens": 10000,
                           "ephemeral_1h_input_tokens": 30000}})]}
    yield "a large request", {ONE: [row("msg_1", "req_1", (150000, 1000, 100000, 50000),
                                        model="claude-sonnet-4-5-20250929")]}
    yield "an unknown model", {ONE: [row("msg_1", "req_1", model="claude-unknown-9")]}
    yield "fast", {ONE: [row("msg_1", "req_1", usage_members={"speed": "fast"})]}


# --- Codex ---------------------------------------------------------------------

def line(second, kind, payload, hour=10):
    return {"timestamp": "2026-03-01T%d:00:%02d.000Z" % (hour, second), "type": kind,
            "payload": payload}


def header(thread, hour=10, **members):
    return line(0, "session_meta", {
        "id": thread, "timestamp": "2026-03-01T%d:00:00.000Z" % hour, "cwd": "/srv/tool",
        "originator": "codex_cli_rs", "cli_version": "0.99.0", "source": "cli"} | members, hour)


def tokens(counts, written=None):
    named = dict(zip(("input_tokens", "cached_input_tokens", "output_tokens",
                      "reasoning_output_tokens"), counts))
    return named | ({} if written is None else {"cache_write_input_tokens": written}) | {
        "total_tokens": counts[0] + counts[2]}


def event(second, total, last, hour=10):
    info = {"total_token_usage": total, "last_token_usage": last}
    return line(second, "event_msg", {"type": "token_count", "info": {
        key: value for key, value in info.items() if value}}, hour)


def record(second, response, counts):
    return line(second, "token_usage_record", {"response_id": response, "usage": counts,
                                               "model": GPT})


def codex(threads):
    path = "sessions/2026/03/0%d/rollout-2026-03-0%dT10-00-00-%s.jsonl"
    return {path % (day, day, thread): rows for (thread, day), rows in threads.items()}


def codex_cases():
    first, second = tokens((100, 60, 10, 4)), tokens((50, 20, 20, 1))
    both, three = tokens((150, 80, 30, 5)), tokens((200, 100, 50, 6))
    other = tokens((90, 60, 10, 4))
    one, two, third = THREADS
    context = line(1, "turn_context", {"cwd": "/srv/tool", "model": GPT})
    start = [header(one), context]
    history = start + [event(2, first, first), event(3, both, second)]

    def fork(hour, **members):
        """A thread that begins with the history of another one, with new times."""
        return [header(two, 11, **members), header(one, 11), context,
                event(4, first, first, hour),
                event(4, both, second, hour),
                line(8, "turn_context", {"cwd": "/srv/tool", "model": GPT}, 11),
                event(9, three, second, 11)]

    spawned = {"subagent": {"thread_spawn": {"parent_thread_id": one, "depth": 1}}}
    yield "events", {(one, 1): history}
    yield "repeated events", {(one, 1): history[:3] + history[2:] + history[-1:]}
    yield "totals only", {(one, 1): start + [event(2, first, None), event(3, both, None)]}
    yield "last only", {(one, 1): start + [event(2, None, first), event(3, None, first)]}
    yield "totals begin again", {(one, 1): start + [event(2, both, both), event(3, first, first)]}
    yield "more cached than input", {(one, 1): start + [event(2, None, tokens((10, 20, 1, 0)))]}
    yield "a large request", {(one, 1): [header(one), line(1, "turn_context", {"model": "gpt-5.4"}),
                                         event(2, *[tokens((300000, 100000, 1000, 0))] * 2)]}
    yield "cache writes", {(one, 1): start + [event(2, *[tokens((100, 60, 10, 4), 7)] * 2)]}
    yield "another model", {(one, 1): history[:3] + [
        line(3, "turn_context", {"model": "gpt-6"}), history[3]]}
    yield "no model", {(one, 1): [header(one), event(2, first, first)]}
    yield "records", {(one, 1): start + [
        record(2, "resp_1", first), event(2, first, first), record(3, "resp_2", second),
        event(3, both, second)]}
    yield "copied thread", {(one, 1): history[:3], (one, 2): history}
    yield "fork", {(one, 1): history, (two, 1): fork(10, forked_from_id=one)}
    yield "fork with new times", {(one, 1): history, (two, 1): fork(11, forked_from_id=one)}
    yield "subagent with history", {(one, 1): history, (two, 1): fork(11, source=spawned)}
    for name, seconds in (("subagents", (5, 6)), ("subagents at one time", (5, 5))):
        yield name, {(one, 1): history, **{
            (thread, 1): [header(thread, 11, source=spawned), context, event(at, other, other, 11)]
            for thread, at in zip((two, third), seconds)}}
    yield "fork of a deleted thread", {(two, 1): fork(11, forked_from_id=one)}


# --- pi ------------------------------------------------------------------------

def entry(number, **members):
    return {"id": "a1f03c2%d" % number, "parentId": "a1f03c2%d" % (number - 1) if number else None,
            "timestamp": "2026-03-01T09:00:0%d.000Z" % number} | members


def billed(counts, cost):
    named = dict(zip(("input", "output", "cacheRead", "cacheWrite"), counts))
    return named | {"totalTokens": sum(counts)} | (
        {} if cost is None else {"cost": {"input": 0, "total": cost}})


def answer(number, counts, cost, **members):
    message = {"role": "assistant", "content": [], "usage": billed(counts, cost)}
    message |= {"model": "m-1"} if members.pop("has_model", True) else {}
    return entry(number, type="message", message=message | members)


def pi(sessions):
    return {"sessions/--srv-app--/2026-03-01T09-00-00-000Z_%s.jsonl" % name: rows
            for name, rows in sessions.items()}


def pi_cases(folder):
    def head(name, second=0, **members):
        return {"type": "session", "version": 3, "id": name, "cwd": "/srv/app",
                "timestamp": "2026-03-01T09:00:%02d.000Z" % second} | members

    asked = entry(0, type="message", message={"role": "user", "content": "Go"})
    start = [asked, answer(1, (1, 2, 3, 4), 0.5)]
    more = answer(2, (10, 20, 30, 40), 0.25)
    source = os.path.join(folder, "pi-fork", *pi({"s1": []}))
    yield "answers", {"s1": [head("s1"), *start, more]}
    yield "no cost", {"s1": [head("s1"), asked, answer(1, (1, 2, 3, 4), None)]}
    yield "an error", {"s1": [head("s1"), *start, answer(2, (0, 0, 0, 0), 0, stopReason="error")]}
    yield "fork", {"s1": [head("s1"), *start],
                   "s2": [head("s2", 30, parentSession=source), *start, more]}
    yield "first version", {"s1": [{"type": "session", "id": "s1", "cwd": "/srv/app",
                                    "timestamp": "2026-03-01T09:00:00.000Z", "provider": "p",
                                    "modelId": "m-1"}] + [
        {key: value for key, value in a.items() if key not in ("id", "parentId")}
        for a in (*start, more)]}
    yield "copied session", {"s1": [head("s1"), *start], "s2": [head("s2"), *start]}
    yield "compaction", {"s1": [head("s1"), *start, entry(
        2, type="compaction", summary="s", firstKeptEntryId="a1f03c21", tokensBefore=9,
        usage=billed((10, 20, 30, 40), 0.25))]}
    yield "no model", {"s1": [head("s1"), asked, answer(1, (1, 2, 3, 4), 0.5, has_model=False)]}


# --- what differs --------------------------------------------------------------

DAY, NEXT = "2026-03-01", "2026-03-02"
# Case: {(day, model): (ccusage, agentwal)}; input, output, cache read, cache
# write, and reasoning of Codex or cost of the others.
EXPLAINED = {
    # Each row without requestId is an answer to ccusage. Rows with one message.id
    # are one answer to agentwal.
    "claude no request": {(DAY, OPUS): ((2, 4, 6, 8, 0), (1, 2, 3, 4, 0))},
    # The time of an answer is that of its last row, or of its first one.
    "claude over midnight": {(DAY, OPUS): (None, (1, 9, 3, 4, 0)),
                             (NEXT, OPUS): ((1, 9, 3, 4, 0), None)},
    # ccusage reads times with three digits after the second, or none.
    "claude microseconds": {(DAY, OPUS): (None, (1, 2, 3, 4, 0))},
    # It looks for "usage":{ without a blank.
    "claude blanks": {(DAY, OPUS): (None, (1, 2, 3, 4, 0))},
    # What has no model, or none that was asked, is in the sum of a day only.
    "claude synthetic": {(DAY, "<synthetic>"): (None, (1, 2, 3, 4, 0))},
    "claude no model": {(DAY, None): (None, (1, 2, 3, 4, 0))},
    "pi no model": {(DAY, None): (None, (1, 2, 3, 4, 0.5))},
    # The name of a model that answers fast ends in -fast.
    "claude fast": {(DAY, OPUS): (None, (1, 2, 3, 4, 0)),
                    (DAY, OPUS + "-fast"): ((1, 2, 3, 4, 0), None)},
    # Without a turn_context ccusage takes this model.
    "codex no model": {(DAY, "gpt-5"): ((40, 10, 60, 0, 4), None),
                       (DAY, None): (None, (40, 10, 60, 0, 4))},
    # Events with one time, model and counts are one event to ccusage.
    "codex subagents at one time": {(DAY, GPT): ((100, 40, 140, 0, 9), (130, 50, 200, 0, 13))},
    # Without the source ccusage leaves out events within a second of the first.
    "codex fork of a deleted thread": {(DAY, GPT): ((30, 20, 20, 0, 1), (100, 50, 100, 0, 6))},
    # A copy of pi that does not name its source counts again.
    "pi copied session": {(DAY, "m-1"): ((2, 4, 6, 8, 1), (1, 2, 3, 4, 0.5))},
    # ccusage counts messages only.
    "pi compaction": {(DAY, None): (None, (10, 20, 30, 40, 0.25))},
}


# Case: {day: (ccusage, agentwal)}.
EXPLAINED_COSTS = {
    # More than 200,000 tokens of input make each token of the request dearer.
    # To ccusage they do so from the 200,001st token of one kind on, but not of Codex.
    "claude a large request": {DAY: (0.6825, 1.3575)},
    # ccusage gives a name that it does not know, gpt-6, the price of a similar one.
    "codex another model": {DAY: (0.0008805, 0.0002205)},
}


# --- real sessions -------------------------------------------------------------

def as_written(text):
    """A line as its client writes it: some of the files have blanks between tokens, and times
    with microseconds; ccusage does not read either."""
    try:
        text = json.dumps(json.loads(text), separators=(",", ":"), ensure_ascii=False)
    except ValueError:
        return text
    return re.sub(r'("timestamp":"[^"]*\.\d{3})\d+', r"\1", text)


def copy_fixtures(folder, client):
    source = os.path.join(FIXTURES, client)
    for directory, _, names in os.walk(source):
        for name in names:
            # The layout of a client: a folder of projects, dates, or directories.
            below = os.path.relpath(directory, source).removeprefix("projects/")
            path = os.path.join(folder, FOLDERS[client], "files" if below == "." else below, name)
            with open(os.path.join(directory, name), encoding="utf-8",
                      errors="surrogateescape") as file:
                lines = file.read().split("\n")
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "w", encoding="utf-8", errors="surrogateescape") as file:
                file.write("\n".join(map(as_written, lines)))


def main():
    work = os.getcwd()
    layouts = {"claude": claude, "codex": codex, "pi": pi}
    cases = {"claude": claude_cases(), "codex": codex_cases(), "pi": pi_cases(work)}
    found, dearer, count, failed = {}, {}, 0, False
    for client, made in cases.items():
        for name, files in made:
            folder = os.path.join(work, "%s-%s" % (client, name.replace(" ", "-")))
            for path, rows in layouts[client](files).items():
                write(os.path.join(folder, path), rows)
            differences, _ = compare(folder, client)
            count += 1
            costs = compare_costs(folder, client, differences)
            if differences:
                found["%s %s" % (client, name)] = differences
            if costs:
                dearer["%s %s" % (client, name)] = costs
    for got, explained in ((found, EXPLAINED), (dearer, EXPLAINED_COSTS)):
        for name in sorted(got.keys() | explained.keys()):
            if got.get(name) != explained.get(name):
                print("%s: found %s, explained %s" % (name, got.get(name), explained.get(name)))
                failed = True
    for client in layouts if FIXTURES else ():
        folder = os.path.join(work, "real-" + client)
        copy_fixtures(folder, client)
        differences, groups = compare(folder, client)
        guessed = {group for group in differences if client == "codex" and group[1] == "gpt-5"}
        for day, model in guessed:  # as in the case of Codex without a model
            if differences[day, model][0] == differences.get((day, None), (0, 0))[1]:
                del differences[day, model], differences[day, None]
        costs = compare_costs(folder, client, guessed)
        print("%s: %d groups of real sessions, %d differ, and costs of %d days" % (
            client, groups, len(differences), len(costs)))
        if differences or costs or groups == 0:
            print("%s: %s, %s" % (client, differences, costs))
            failed = True
    print("%d cases, %d differences are explained" % (count, len(EXPLAINED) + len(EXPLAINED_COSTS)))
    return 1 if failed else 0


sys.exit(main())
