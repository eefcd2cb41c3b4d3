#!/usr/bin/env python3
"""How fast does agentwal serve answer, and how much memory does it take?

    bench_serve.py BUILD [--small]

BUILD is a build with AGENTWAL_BENCH. Prints a line of JSON for each measurement:

  list     milliseconds until the newest 50 of 100,000 sessions are there, on a port
  latency  milliseconds from before a durable append in one process until the event is
           read in another one
  clients  1,000 clients of the events while 1,000 entries a second are written for 20 s
  stream   an export of a session of 1 GB

Memory is RssAnon of the server: its heap and stacks. VmHWM and VmRSS count the pages of
the store's files that are mapped too, which the system takes back when it needs them.
"""
import http.client
import json
import os
import re
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time


class Run:
    def __init__(self, build, small):
        self.load = os.path.join(build, "bench", "bench_serve_load")
        self.agentwal = os.path.join(build, "bin", "agentwal")
        self.small = small
        self.folder = tempfile.mkdtemp(prefix="bench_serve", dir=os.getcwd())

    def store(self, name):
        path = os.path.join(self.folder, name)
        subprocess.run([self.agentwal, "--store", path, "init"], check=True,
                       capture_output=True)
        return path

    def write(self, *arguments):
        return subprocess.run([self.load, *map(str, arguments)], check=True,
                              capture_output=True, text=True).stdout


class Server:
    def __init__(self, run, store, *options):
        self.process = subprocess.Popen(
            [run.agentwal, "--store", store, "serve", "--json",
             *(options or ("--socket", os.path.join(run.folder, "serve.sock")))],
            stdout=subprocess.PIPE, text=True)
        self.place = json.loads(self.process.stdout.readline())
        self.peak_kb = 0
        self.ends = threading.Event()
        self.watcher = threading.Thread(target=self.watch)
        self.watcher.start()

    def memory(self, key="RssAnon"):
        with open("/proc/%d/status" % self.process.pid, encoding="ascii") as file:
            return int(re.search(key + r":\s+(\d+)", file.read()).group(1))

    def watch(self):
        while not self.ends.wait(0.01):
            self.peak_kb = max(self.peak_kb, self.memory())

    def stop(self):
        self.ends.set()
        self.watcher.join()
        self.process.terminate()
        self.process.wait()

    def connect(self):
        sock = socket.socket(socket.AF_UNIX)
        sock.connect(self.place["socket"])
        return sock


def report(name, **values):
    print(json.dumps({"bench": name, **values}), flush=True)


def quantiles(times):
    times = sorted(times)
    return {"p50_ms": round(statistics.median(times), 3),
            "p99_ms": round(times[int(len(times) * 0.99)], 3)}


def bench_list(run):
    count = 5000 if run.small else 100000
    store = run.store("sessions")
    run.write("sessions", store, count)
    server = Server(run, store, "--token-file", os.path.join(run.folder, "token"))
    with open(server.place["tokenFile"], encoding="ascii") as file:
        token = file.read().strip()
    port = int(re.search(r":(\d+)/", server.place["url"]).group(1))
    connection = http.client.HTTPConnection("127.0.0.1", port)
    times = []
    for _ in range(1000):
        begin = time.perf_counter()
        connection.request("GET", "/api/v1/sessions?limit=50", headers={
            "Authorization": "Bearer " + token})
        body = connection.getresponse().read()
        times.append((time.perf_counter() - begin) * 1000)
    if len(json.loads(body)["sessions"]) != 50:
        sys.exit("bench_serve.py: not 50 sessions")
    report("list", sessions=count, **quantiles(times),
           rss_anon_kb=server.memory())
    server.stop()


def bench_latency(run):
    store = run.store("latency")
    server = Server(run, store)
    sock = server.connect()
    sock.sendall(b"GET /api/v1/events HTTP/1.1\r\nHost: x\r\n\r\n")
    count = 100 if run.small else 500
    writer = threading.Thread(target=run.write, args=(
        "paced", store, "s", 50, count, 1))
    writer.start()
    times, data = [], b""
    while len(times) < count:
        data += sock.recv(65536)
        now = time.monotonic_ns()
        found = re.findall(rb'"kind":"text","text":"(\d+)"', data)
        times += [(now - int(ns)) / 1e6 for ns in found]
        data = data[data.rfind(b"\n") + 1:] if found else data
    writer.join()
    sock.close()
    report("latency", appends=count, **quantiles(times))
    server.stop()


def bench_clients(run):
    clients = 50 if run.small else 1000
    seconds = 2 if run.small else 20
    store = run.store("clients")
    server = Server(run, store, "--connections", str(clients + 100), "--socket",
                    os.path.join(run.folder, "serve.sock"))
    run.write("paced", store, "s", 1000, 1, 1)
    time.sleep(1)
    before = server.memory()
    reader = subprocess.Popen(
        [run.load, "clients", server.place["socket"], str(clients),
         str(1000 * seconds)], stdout=subprocess.PIPE, text=True)
    reader.stdout.readline()  # all are connected
    time.sleep(1)
    connected = server.memory()
    server.peak_kb = 0
    begin = time.monotonic()
    wrote = json.loads(run.write("paced", store, "s", 1000, 1000 * seconds, 0))
    result = json.loads(reader.stdout.read())
    reader.wait()
    report("clients", **result, written_in_s=wrote["seconds"],
           all_read_after_s=round(time.monotonic() - begin, 2),
           rss_anon_before_kb=before, rss_anon_connected_kb=connected,
           rss_anon_peak_kb=server.peak_kb)
    server.stop()


def bench_stream(run):
    size = 50 * 10**6 if run.small else 10**9
    store = run.store("stream")
    run.write("big", store, "s", size)
    server = Server(run, store)
    for path in ("/api/v1/sessions/s/export?dialect=entries",
                 "/api/v1/sessions/s/export?dialect=claude",
                 "/api/v1/sessions/s/tree", "/session/s/message"):
        server.peak_kb = 0
        idle = server.memory()
        begin = time.monotonic()
        sock = server.connect()
        sock.sendall(b"GET %s HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
                     % path.encode())
        total = 0
        while piece := sock.recv(1 << 20):
            total += len(piece)
        sock.close()
        took = time.monotonic() - begin
        report("stream", path=path, bytes=total, seconds=round(took, 2),
               mb_per_s=round(total / 1e6 / took), rss_anon_idle_kb=idle,
               rss_anon_peak_kb=server.peak_kb, vm_hwm_kb=server.memory("VmHWM"))
    server.stop()


def main():
    names = [name for name in sys.argv[1:] if not name.startswith("--")]
    run = Run(os.path.abspath(names[0]), "--small" in sys.argv)
    for name, bench in (("list", bench_list), ("latency", bench_latency),
                        ("clients", bench_clients), ("stream", bench_stream)):
        if len(names) < 2 or name in names[1:]:
            bench(run)


main()
