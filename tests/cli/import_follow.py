#!/usr/bin/env python3
"""agentwal import --follow: a line is in the store shortly after it was written,
nothing runs meanwhile, and an interrupt ends it; so does it end an import."""
import json
import os
import resource
import signal
import statistics
import subprocess
import sys
import tempfile
import time

WALBIN = os.environ["WALBIN"]
AGENTWAL = os.path.join(WALBIN, "agentwal")
LINES = 10
LATENCY_S = 2.0  # of the median; it is a few milliseconds on an idle machine
IDLE_S = 3.0


def fail(text):
    sys.exit("import_follow.py: " + text)


def row(session, number):
    return json.dumps({
        "parentUuid": None if number == 1 else "%s-%d" % (session, number - 1),
        "isSidechain": False, "type": "user", "cwd": "/srv",
        "sessionId": session, "uuid": "%s-%d" % (session, number),
        "message": {"role": "user", "content": "text"},
        "timestamp": "2026-02-03T09:00:00.000Z"}) + "\n"


def add(path, text):
    with open(path, "a", encoding="utf-8") as file:
        file.write(text)


def run(store, *arguments):
    return subprocess.run([AGENTWAL, "--store", store, *arguments],
                          capture_output=True, text=True, check=False)


def measure(process, project):
    """Seconds from writing a line to the report of its import."""
    times = []
    for number in range(2, LINES + 2):
        begin = time.monotonic()
        add(os.path.join(project, "a.jsonl"), row("a", number))
        report = json.loads(process.stdout.readline())
        times.append(time.monotonic() - begin)
        if report["appended"] != 1 or report["sessionId"] != "a":
            fail("the report of a line: %r" % report)
        time.sleep(0.05)
    return times


def cpu_of(pid):
    with open("/proc/%d/stat" % pid, encoding="ascii") as file:
        fields = file.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def check_follow(folder):
    store = os.path.join(folder, "store")
    project = os.path.join(folder, "home/.claude/projects/-srv")
    os.makedirs(project)
    add(os.path.join(project, "a.jsonl"), row("a", 1))
    process = subprocess.Popen(
        [AGENTWAL, "--store", store, "import", "--json", "--follow",
         os.path.join(folder, "home")],
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        if json.loads(process.stdout.readline())["appended"] != 1:
            fail("the first import")
        times = measure(process, project)
        if statistics.median(times) > LATENCY_S:
            fail("latency: %r" % times)
        # Durable when it is reported: another process reads it.
        entries = json.loads(run(store, "list", "--json").stdout)["entries"]
        if entries != LINES + 1:
            fail("%d entries" % entries)
        check_export(process, store, folder)
        before = cpu_of(process.pid)
        time.sleep(IDLE_S)
        used = cpu_of(process.pid) - before
        if used > 0.05 * IDLE_S:
            fail("%.2f s of processor time while nothing happened" % used)
        process.send_signal(signal.SIGINT)
        if process.wait(timeout=30) != 0:
            fail("exit code %d after an interrupt" % process.returncode)
    finally:
        process.kill()
    print("median %.1f ms, idle %.3f s" % (
        1000 * statistics.median(times), used))


def check_export(process, store, folder):
    """A file that is exported to a followed folder is a view, and no other session."""
    pi = os.path.join(folder, "b.jsonl")
    add(pi, json.dumps({"type": "session", "version": 3, "id": "b", "cwd": "/srv",
                        "timestamp": "2026-02-03T09:00:00.000Z"}) + "\n")
    add(pi, json.dumps({"type": "message", "id": "a1f03c22", "parentId": None,
                        "timestamp": "2026-02-03T09:00:00.000Z",
                        "message": {"role": "user", "content": "text"}}) + "\n")
    root = os.path.join(folder, "home/.claude")
    for arguments in (("import", pi), ("export", "--dialect", "claude", "--session", "b", root)):
        if run(store, *arguments).returncode != 0:
            fail("cannot %s" % arguments[0])
    exported = [os.path.join(root, "projects/-srv", name)
                for name in os.listdir(os.path.join(root, "projects/-srv")) if name != "a.jsonl"]
    with open(exported[0], encoding="utf-8") as file:
        last = json.loads(file.readlines()[-1])
    add(exported[0], json.dumps(dict(last, uuid="b-2", parentUuid=last["uuid"])) + "\n")
    report = {"appended": 0}
    while report["appended"] == 0:
        report = json.loads(process.stdout.readline())
    if report["appended"] != 1 or report["sessionId"] != "b":
        fail("a line of an exported file: %r" % report)


def check_interrupt(folder):
    """An import that is interrupted says how to go on, and is continued."""
    store = os.path.join(folder, "store2")
    many = os.path.join(folder, "many/.claude/projects/-srv")
    os.makedirs(many)
    for n in range(200):
        add(os.path.join(many, "s%d.jsonl" % n),
            "".join(row("s%d" % n, i) for i in range(1, 60)))
    process = subprocess.Popen(
        [AGENTWAL, "--store", store, "import", "--json",
         os.path.join(folder, "many")],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    process.stdout.readline()
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    if process.returncode != -signal.SIGINT or \
            "run it again to go on" not in errors:
        fail("an interrupt: %d, %r" % (process.returncode, errors))
    if run(store, "check").returncode != 0:
        fail("the store is not sound after an interrupt")
    result = run(store, "import", os.path.join(folder, "many"))
    if result.returncode != 0 or \
            not result.stdout.startswith("200 sessions, "):
        fail("the second import: %r" % result)
    rows = run(store, "list", "--json").stdout.splitlines()
    if len(rows) != 200 or any(json.loads(r)["entries"] != 59 for r in rows):
        fail("%d sessions" % len(rows))


def main():
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with tempfile.TemporaryDirectory() as folder:
        check_follow(folder)
        check_interrupt(folder)


main()
