#!/usr/bin/env python3
"""The numbers and plots of docs/benchmarks.md are what docs/bench/results.json gives.

Each question that has a target is among the rows, was measured, and in five
turns at least; the plots are small, well-formed, and what bench/plots.py draws.
"""
import os
import re
import sys
import xml.etree.ElementTree

ROOT = os.environ.get("AGENTWAL_SOURCE") or os.path.dirname(
    os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(ROOT, "bench"))

import report  # noqa: E402  pylint: disable=wrong-import-position

FOLDER = os.path.join(ROOT, "docs", "bench")
PLOT_SIZE = 32 << 10
TURNS = 5

# Questions, as regular expressions, with their targets.
AIMS = (
    (r"durable append, 1 thread, mixed, p50 to a bare write \+ sync",
     "<=", 1.05),
    (r"durable append, 16 threads, mixed, to bare batches, fdatasync",
     ">=", 0.5),
    (r"durable append, 64 threads, mixed, to bare batches, fdatasync",
     ">=", 0.6),
    (r"durable append, 16 threads, mixed, to the best peer as it is used",
     ">=", 1.8),
    (r"durable append, 64 threads, mixed, to the best peer as it is used",
     ">=", 3.5),
    (r"durable append, 16 threads, mixed, to the best peer grouped by .*",
     ">=", 1.3),
    (r"durable append, 64 threads, mixed, to the best peer grouped by .*",
     ">=", 2.0),
    (r"durable append, 64 threads, mixed, p99 to that of the best peer .*",
     "<=", 0.4),
    (r"8 processes x 1 thread to 8 JSONL files, mixed", ">=", 1.0),
    (r"written append, 4 threads, 64 MiB, to write\(2\) of new files",
     ">=", 0.5),
    (r"written append, 4 threads, 64 MiB, to jsonl-shared-written", ">=", 1.0),
    (r"submitting 1 KiB, processor time of the caller, .*", "<=", 2.0),
    (r"replay, .*, populated maps, to a bare CRC pass", ">=", 0.85),
    (r"replay, .*, fresh process, to lmdb", ">=", 0.85),
    (r"replay, .*, fresh process, to rocksdb \(verifies\)", ">=", 1.0),
    (r"replay, .*, fresh process, to leveldb \(verifies\)", ">=", 1.0),
    (r"read by id, verified before, median", "<=", 1.0),
    (r"durable fork of 10000 entries, to a bare write \+ sync", "<=", 1.3),
    (r"100000 sessions, closed: open", "<=", 2.0),
    (r"100000 sessions, closed: list the newest 50", "<=", 1.0),
    (r"100000 sessions, closed: list all", "<=", 12.0),
    (r"100000 sessions, closed: latest of a directory", "<=", 0.1),
    (r"100000 sessions: anonymous memory, 100 in use", "<=", 64.0),
    (r"log with indexes to payloads, 1 writer", "<=", 1.20),
    (r"log with indexes to payloads, 4 writers", "<=", 1.10),
)

# It needs --long: the rows say so, or that they were left out.
LARGE = r"1000000 sessions: anonymous memory, 100 in use"

complaints = []


def expect(condition, what):
    if not condition:
        complaints.append(what)


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def check_large(found):
    rows = [row for row in found["rows"]
            if re.fullmatch(LARGE, row["question"])]
    expect(all(row["target"] == 64.0 for row in rows),
           "1,000,000 sessions: the target is 64 MiB")
    expect(rows or any(each["left_out"] == "1000000 sessions"
                       for each in found["omissions"]),
           "1,000,000 sessions are neither measured nor left out")


def check_aims(rows):
    for pattern, sense, target in AIMS:
        fitting = [row for row in rows
                   if re.fullmatch(pattern, row["question"])]
        expect(fitting, "no row for " + pattern)
        for row in fitting:
            expect((row["sense"], row["target"]) == (sense, target),
                   "%s: the target is %s %s" % (row["question"], sense,
                                                target))
            expect(row["turns"] >= TURNS, "%s: %d turns" %
                   (row["question"], row["turns"]))
    for row in rows:
        expect(row["target"] is None or row["verdict"],
               row["question"] + ": was not measured")


def check_page(found):
    page = read(os.path.join(ROOT, "docs", "benchmarks.md"))
    expect(report.fill(page, report.page_part(found)) == page,
           "docs/benchmarks.md: the table is not that of docs/bench/results.json")
    for plot in report.PLOTS:
        expect("bench/%s.svg" % plot.name in page,
               "docs/benchmarks.md does not show %s.svg" % plot.name)


def check_plots(found):
    drawn = report.drawings(found)
    expect(sorted(drawn) == sorted(plot.name + ".svg"
                                   for plot in report.PLOTS),
           "points of a plot are missing")
    expect(sorted(os.listdir(FOLDER)) == sorted([*drawn, "results.json"]),
           "docs/bench holds other files")
    for name, text in drawn.items():
        path = os.path.join(FOLDER, name)
        expect(os.path.exists(path) and read(path) == text,
               name + " is not what plots.py draws")
        expect(len(text) <= PLOT_SIZE, name + " is large")
        xml.etree.ElementTree.fromstring(text)


def main():
    found = report.of_json(os.path.join(FOLDER, "results.json"))
    check_aims(found["rows"])
    check_large(found)
    check_page(found)
    check_plots(found)
    for complaint in complaints:
        print(complaint, file=sys.stderr)
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
