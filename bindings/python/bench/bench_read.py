#!/usr/bin/env python3
"""Reads 100,000 entries of 2 KB, and the same rows by the standard sqlite3 module.

Usage: bench_read.py [--entries N] [--rounds N] [--json]

Each round reads everything, one after the other in turn; the best round of each is printed. The
time is that of the processor in the reading thread, so that what else the machine does counts
little; both read memory in that thread alone. "id" touches the id of an entry, "row" the
fields that the row of SQLite has: id, parent, type, time and the payload as bytes. The rows of
SQLite are made into Python objects by its cursor, so that "row" is the same work.
"""

from __future__ import annotations

import argparse
import json
import sqlite3
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, Callable

import agentwal

PAYLOAD_SIZE = 2048
TARGET_PER_SECOND = 600000
TARGET_RATIO = 3.0


def fill(store: agentwal.Store, database: sqlite3.Connection, count: int) -> agentwal.Session:
    session = store.create()
    text = "x" * (PAYLOAD_SIZE - 60)
    for start in range(0, count, 1000):
        session.append_many(({"role": "assistant", "n": number, "content": text}
                             for number in range(start, min(count, start + 1000))),
                            durability="queued")
    store.sync()
    database.execute("CREATE TABLE entries (sequence INTEGER PRIMARY KEY, id TEXT, parent TEXT,"
                     " type TEXT, time TEXT, payload BLOB)")
    with database:
        database.executemany(
            "INSERT INTO entries VALUES (?, ?, ?, ?, ?, ?)",
            ((entry.sequence, entry.id, entry.parent_id, entry.type, entry.timestamp,
              entry.payload_bytes) for entry in session))
    return session


def read_ids(session: agentwal.Session) -> int:
    count = 0
    for entry in session:
        entry.id
        count += 1
    return count


def read_objects(session: agentwal.Session) -> int:
    count = 0
    for _ in session:
        count += 1
    return count


def read_rows(session: agentwal.Session) -> int:
    count = 0
    for entry in session:
        (entry.id, entry.parent_id, entry.type, entry.timestamp, entry.payload_bytes)
        count += 1
    return count


def read_payloads(session: agentwal.Session) -> int:
    count = 0
    for entry in session:
        entry.payload
        count += 1
    return count


def read_sqlite(database: sqlite3.Connection) -> int:
    count = 0
    for _ in database.execute("SELECT id, parent, type, time, payload FROM entries"
                              " ORDER BY sequence"):
        count += 1
    return count


def read_sqlite_payloads(database: sqlite3.Connection) -> int:
    count = 0
    for row in database.execute("SELECT id, parent, type, time, payload FROM entries"
                                " ORDER BY sequence"):
        json.loads(row[4])
        count += 1
    return count


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--entries", type=int, default=100000)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        database = sqlite3.connect(Path(folder) / "rows.db")
        database.execute("PRAGMA mmap_size = 1073741824")
        with agentwal.open(Path(folder) / "store") as store:
            session = fill(store, database, arguments.entries)
            runs: dict[str, Callable[[], int]] = {
                "agentwal, objects": lambda: read_objects(session),
                "agentwal, id": lambda: read_ids(session),
                "agentwal, row": lambda: read_rows(session),
                "agentwal, payload parsed": lambda: read_payloads(session),
                "sqlite3, row": lambda: read_sqlite(database),
                "sqlite3, payload parsed": lambda: read_sqlite_payloads(database),
            }
            best: dict[str, float] = {}
            for _ in range(arguments.rounds):
                for name, run in runs.items():
                    start = time.thread_time()
                    assert run() == arguments.entries
                    seconds = time.thread_time() - start
                    best[name] = min(seconds, best.get(name, seconds))
        database.close()
    rates: dict[str, Any] = {name: round(arguments.entries / seconds)
                             for name, seconds in best.items()}
    if arguments.json:
        print(json.dumps(rates))
        return 0
    for name, rate in rates.items():
        print("%-26s %9d /s" % (name, rate))
    for name in ("id", "row"):
        rate = rates["agentwal, " + name]
        print("%s: %d/s (target %d), %.1f times sqlite3 (target %.0f)" % (
            name, rate, TARGET_PER_SECOND, rate / rates["sqlite3, row"], TARGET_RATIO))
    return 0


sys.exit(main())
