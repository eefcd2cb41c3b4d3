#!/usr/bin/env python3
"""Durable appends by asyncio, with as many in flight as are asked for, and the same from C.

Usage: bench_aio.py --native PROGRAM [--appends N] [--in-flight N] [--size BYTES] [--rounds N]
                    [--directory DIR] [--json]

PROGRAM is agentwal_node_bench of the build (bindings/node/bench/native.c), which submits the same
entries by the library alone. Python and C run in turn, each on a new store in DIR; the best round
of each is printed. Neither counts its start: the clock runs from the first append to the last
acknowledgement, after a tenth as many appends to warm up. A store in memory shows the cost of the
calls alone: --directory /dev/shm.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from agentwal import aio

TARGET_RATIO = 0.6


async def append_all(session: aio.Session, count: int, in_flight: int, text: str) -> None:
    """Tasks of which each has one append in flight."""
    left = iter(range(count))

    async def append() -> None:
        for _ in left:
            await session.append({"role": "user", "content": text})

    await asyncio.gather(*(append() for _ in range(in_flight)))


async def measure(path: Path, count: int, in_flight: int, size: int) -> float:
    """Appends in a second."""
    text = "x" * (size - len('{"role":"user","content":""}'))
    async with aio.open(path) as store:
        session = await store.create()
        await append_all(session, count // 10, in_flight, text)
        begin = time.monotonic()
        await append_all(session, count, in_flight, text)
        seconds = time.monotonic() - begin
        assert await session.count() == count // 10 + count
    return count / seconds


def measure_native(program: str, path: Path, count: int, in_flight: int, size: int) -> float:
    done = subprocess.run([program, "append", path, str(count), str(in_flight), str(size)],
                          check=True, capture_output=True, text=True)
    return float(json.loads(done.stdout)["rate"])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--native", required=True)
    parser.add_argument("--appends", type=int, default=200000)
    parser.add_argument("--in-flight", type=int, default=64)
    parser.add_argument("--size", type=int, default=1024)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--directory")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    work = (arguments.appends, arguments.in_flight, arguments.size)
    best = {"python": 0.0, "c": 0.0}
    for _ in range(arguments.rounds):
        with tempfile.TemporaryDirectory(dir=arguments.directory) as folder:
            rate = asyncio.run(measure(Path(folder) / "python", *work))
            best["python"] = max(best["python"], rate)
            rate = measure_native(arguments.native, Path(folder) / "c", *work)
            best["c"] = max(best["c"], rate)
    ratio = best["python"] / best["c"]
    if arguments.json:
        print(json.dumps({**best, "ratio": ratio}))
    else:
        print("%d durable appends of %d bytes, %d in flight" % (
            arguments.appends, arguments.size, arguments.in_flight))
        print("python %9d /s\nc      %9d /s\nratio  %.2f (target %.1f)" % (
            best["python"], best["c"], ratio, TARGET_RATIO))
    return 0


sys.exit(main())
