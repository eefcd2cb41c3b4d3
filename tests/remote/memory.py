#!/usr/bin/env python3
"""memory.py [NAME]: remotes in an object store in memory.

What the program does where the store is slow, racy, gone or hangs, and how many
requests each verb makes. NAME is part of the names of tests.
"""
import json
import os
import re
import signal
import socket
import ssl
import subprocess
import sys
import threading
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import s3_memory  # noqa: E402

BUILD = os.environ["AGENTWAL_BUILD"]
AGENTWAL = BUILD + "/bin/agentwal"
DRIVER_CALL = BUILD + "/tests/remote_driver_call"
OK, NEGATIVE, FAILED = 0, 1, 3
os.environ.update(AWS_ACCESS_KEY_ID="key", AWS_SECRET_ACCESS_KEY="secret",
                  NO_PROXY="*")
for variable in ("AWS_REGION", "AWS_DEFAULT_REGION", "AWS_ENDPOINT_URL",
                 "AWS_ENDPOINT_URL_S3", "AWS_CA_BUNDLE", "CURL_CA_BUNDLE",
                 "SSL_CERT_FILE", "AGENTWAL_STORE"):
    os.environ.pop(variable, None)
count = 0


def agentwal(store, *words, code=OK, lines="", **environment):
    done = subprocess.run([AGENTWAL, "--store", store, *words], input=lines,
                          capture_output=True, text=True, timeout=300,
                          env={**os.environ, **environment})
    assert done.returncode == code, (words, done)
    return done


def append(store, first, number, size=20):
    # Of one time, so that no list of sessions has another hour.
    lines = "".join(json.dumps({
        "type": "n", "timestamp": "2026-01-02T03:04:05Z", "payload": {
            "number": i, "text": os.urandom(size // 2).hex()}}) + "\n"
        for i in range(first, first + number))
    agentwal(store, "append", "s", lines=lines)


def new_store(number=3):
    global count
    count += 1
    store = "store.%d" % count
    agentwal(store, "create", "--id", "s")
    append(store, 0, number)
    return store


def start(store, *words):
    return subprocess.Popen([AGENTWAL, "--store", store, *words],
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                            text=True)


def hang(handler, _act):
    time.sleep(30)
    handler.close_connection = True


def took(begun):
    return time.monotonic() - begun


# Links that are slow ----------------------------------------------------------

def test_body_takes_longer_than_the_deadline():
    server = s3_memory.Server(bytes_per_second=300000)
    with open("body", "wb") as file:
        file.write(os.urandom(1500000))
    for verb, *text in (("put_file", "body"), ("get",)):
        done = subprocess.run(
            [DRIVER_CALL, server.url("bucket"), "1500", verb, "large", *text],
            capture_output=True, check=True)
        assert done.stdout.endswith(b"0\n\n\n"), done.stdout[-200:]


def test_store_that_sends_no_byte_is_left():
    server = s3_memory.Server()
    server.fault = lambda verb, name: hang
    begun = time.monotonic()
    done = subprocess.run([DRIVER_CALL, server.url("bucket"), "2000", "get", "x"],
                          capture_output=True, check=True, text=True)
    assert "no byte came or went" in done.stdout, done.stdout
    assert took(begun) < 15


def test_push_over_a_slow_link_has_few_bytes_on_the_way():
    server = s3_memory.Server(bytes_per_second=400000)
    store = new_store()
    for i in range(12):
        append(store, 100 * i + 3, 50, 6000)
    on_way, most, lock = [0], [0], threading.Lock()
    read_body = s3_memory.Handler.read_body

    def read(handler):
        size = int(handler.headers.get("Content-Length", 0))
        with lock:
            on_way[0] += size
            most[0] = max(most[0], on_way[0])
        try:
            return read_body(handler)
        finally:
            with lock:
                on_way[0] -= size
    s3_memory.Handler.read_body = read
    try:
        agentwal(store, "remote", "add", server.url("bucket"))
        agentwal(store, "remote", "push")
    finally:
        s3_memory.Handler.read_body = read_body
    assert most[0] < 2500000, most[0]
    agentwal("x", "remote", "pull", server.url("bucket"), store + ".pulled")


def test_large_push_sends_its_bytes_once():
    """A base of few large parts would send them again."""
    server = s3_memory.Server()
    store = new_store()
    for i in range(10):
        append(store, 1000 * i, 500, 16000)
    log = json.loads(agentwal(store, "stats", "--json").stdout)["logBytes"]
    agentwal(store, "remote", "add", server.url("bucket"))
    agentwal(store, "remote", "push")
    objects = server.buckets["bucket"].objects
    assert log < sum(map(len, objects.values())) < 1.1 * log
    agentwal(store, "remote", "compact", "--now")
    assert sum(map(len, objects.values())) > 1.9 * log


def test_session_that_was_handed_off_comes_without_its_store():
    server = s3_memory.Server()
    store = new_store(20)
    agentwal(store, "create", "--id", "large")
    lines = "".join('{"type":"n","payload":"%s"}\n' % os.urandom(5000).hex()
                    for _ in range(400))
    agentwal(store, "append", "large", lines=lines)
    agentwal(store, "remote", "add", server.url("bucket"))
    agentwal(store, "remote", "handoff", "s")
    stored = sum(map(len, server.buckets["bucket"].objects.values()))
    server.take_requests()
    done = agentwal(store + ".desk", "resume", "--remote", server.url("bucket"), "s",
                    "--json")
    result = json.loads(done.stdout.splitlines()[0])
    assert result["parts"] == 0 and result["bytes"] < stored / 20, (result, stored)
    assert not any("/part/" in name for verb, _, name, _ in server.take_requests()
                   if verb == "GET")


def test_session_of_a_large_store_comes_without_it():
    server = s3_memory.Server()
    store = new_store(20)
    for number in range(8):
        agentwal(store, "create", "--id", "large%d" % number)
        lines = "".join('{"type":"n","payload":"%s"}\n' % os.urandom(5000).hex()
                        for _ in range(100))
        agentwal(store, "append", "large%d" % number, lines=lines)
    agentwal(store, "remote", "add", server.url("bucket"))
    agentwal(store, "remote", "push")
    agentwal(store, "remote", "compact", "--now")
    stored = sum(len(body) for name, body in server.buckets["bucket"].objects.items()
                 if "/seg/" in name)
    desk = store + ".desk"
    done = agentwal(desk, "resume", "--remote", server.url("bucket"), "s", "--json")
    result = json.loads(done.stdout.splitlines()[0])
    assert result["parts"] == 0 and result["bytes"] < stored / 8, (result, stored)
    done = agentwal(desk, "resume", "--remote", server.url("bucket"), "large3", "--json")
    result = json.loads(done.stdout.splitlines()[0])
    assert result["parts"] == 0 and result["bytes"] < stored / 3, (result, stored)
    assert result["entries"] == 100


# Stores that are none ---------------------------------------------------------

def test_store_that_looks_before_it_creates():
    server = s3_memory.Server(race_s=0.02)
    store = new_store()
    done = agentwal(store, "remote", "add", server.url("bucket"), code=NEGATIVE)
    assert "looks for the object before it creates it" in done.stderr
    assert not server.buckets["bucket"].objects


def test_store_that_ignores_the_condition():
    server = s3_memory.Server()
    store = new_store()
    agentwal(store, "remote", "add", server.url("bucket"))
    put = s3_memory.Bucket.put
    s3_memory.Bucket.put = lambda self, name, body, _if_absent: put(
        self, name, body, False)
    try:
        done = agentwal(store, "remote", "push", code=NEGATIVE)
        assert "the remote ignores If-None-Match" in done.stderr, done
    finally:
        s3_memory.Bucket.put = put


def test_bucket_that_has_other_objects():
    """Names between which no store can be are not listed one page after the other."""
    server = s3_memory.Server()
    store = new_store()
    agentwal(store, "remote", "add", server.url("bucket"))
    agentwal(store, "remote", "push")
    bucket = server.buckets["bucket"]
    for form in (".hidden/%06d", "0/%06d", "Photos/%06d", "aaaa%06d.jpg", "b%039x",
                 "data/%06d", "ffff/%06d", "fff%029x", "ffff%028x/%%06d", "zebra%06d"):
        for i in range(3000):
            bucket.put(form % i if "%%" not in form else form % 0 % i, b"", False)
    server.take_requests()
    done = agentwal("x", "remote", "list", server.url("bucket"), "--json")
    [row] = [json.loads(line) for line in done.stdout.splitlines()]
    assert row["lastSequence"] > 0
    lists = sum(verb == "LIST" for verb, *_ in server.take_requests())
    # 30 pages of 1,000. Some are of one form, and some of what is between.
    assert lists < 25, lists


# Stores that are not there ----------------------------------------------------

def test_nobody_is_there():
    # Bound, so that nobody else is given the port; nobody listens.
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        port = bound.getsockname()[1]
        plain = s3_memory.Server()
        for endpoint in ("http://127.0.0.1:%d" % port, "http://no-such-host.invalid",
                         "https://127.0.0.1:%d" % plain.server_address[1]):
            begun = time.monotonic()
            done = agentwal("x", "remote", "list", "s3://bucket?endpoint=" + endpoint,
                            code=FAILED)
            assert took(begun) < 30, (endpoint, took(begun))
            assert "; trying on" in done.stderr, done.stderr
            assert "the object store does not answer" in done.stderr


def test_store_says_when_to_ask_again():
    server = s3_memory.Server()
    asked = []

    def busy(handler, _act):
        handler.fail(503, "SlowDown", [("Retry-After", "2")])

    def fault(_verb, _name):
        asked.append(time.monotonic())
        return busy if len(asked) == 1 else None
    server.fault = fault
    agentwal("x", "remote", "list", server.url("bucket"))
    assert asked[1] - asked[0] >= 2


# Signals while a request hangs ------------------------------------------------

def test_signal_ends_a_follower_whose_request_hangs():
    server = s3_memory.Server()
    store = new_store()
    agentwal(store, "remote", "add", server.url("bucket"))
    agentwal(store, "remote", "push")
    follower = start("x", "remote", "pull", "--follow", server.url("bucket"),
                     store + ".pulled")
    follower.stdout.readline()
    server.fault = lambda verb, name: hang
    time.sleep(2.5)
    begun = time.monotonic()
    follower.send_signal(signal.SIGINT)
    assert follower.wait(60) == OK
    assert took(begun) < 15, took(begun)


def test_shipper_that_is_ended_says_what_is_not_stored():
    server = s3_memory.Server()
    store = new_store()
    agentwal(store, "remote", "add", server.url("bucket"))
    shipper = start(store, "remote", "push", "--follow")
    shipper.stdout.readline()
    while not any("/part/" in name for name in server.buckets["bucket"].objects):
        time.sleep(0.1)
    server.fault = lambda verb, name: hang
    append(store, 3, 1)
    time.sleep(1)
    begun = time.monotonic()
    shipper.send_signal(signal.SIGINT)
    _, text = shipper.communicate(timeout=60)
    assert shipper.returncode == FAILED, shipper.returncode
    assert "ended before everything was stored" in text, text
    assert took(begun) < 20, took(begun)


def test_shipper_that_is_ended_stores_the_rest():
    server = s3_memory.Server()
    store = new_store()
    agentwal(store, "remote", "add", server.url("bucket"))
    shipper = start(store, "remote", "push", "--follow")
    shipper.stdout.readline()
    append(store, 3, 1)
    shipper.send_signal(signal.SIGINT)
    _, text = shipper.communicate(timeout=60)
    assert shipper.returncode == OK, text
    agentwal("x", "remote", "pull", server.url("bucket"), store + ".pulled")
    assert '"number": 3' in agentwal(store + ".pulled", "cat", "--json", "s").stdout


# Takeovers --------------------------------------------------------------------

def test_writer_that_goes_on_is_taken_over():
    """It may store what it has on the way, 16 parts before it looks for another
    writer, and those of the 2 s between two looks."""
    rate = 100
    most = 16 + 16 + 2 * rate + rate // 4
    server = s3_memory.Server()
    slow = s3_memory.Server()
    slow.buckets = server.buckets
    slow.fault = lambda verb, name: lambda handler, act: (time.sleep(0.1), act()())
    store = new_store()
    agentwal(store, "remote", "add", server.url("bucket"))
    shipper = start(store, "remote", "push", "--follow", "--rate", str(rate))
    shipper.stdout.readline()
    writing = subprocess.Popen(
        [AGENTWAL, "--store", store, "append", "--each", "--durability", "cluster",
         "s"], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL, text=True)

    def write():
        try:
            for i in range(100000):
                writing.stdin.write('{"type":"n","payload":{"number":%d}}\n' % i)
                writing.stdin.flush()
        except (BrokenPipeError, OSError):
            pass
    threading.Thread(target=write, daemon=True).start()
    time.sleep(2)
    begun = time.monotonic()
    agentwal("x", "remote", "pull", "--take-over", slow.url("bucket"), store + ".taken")
    seconds = took(begun)
    assert shipper.wait(60) == NEGATIVE
    writing.kill()
    created = server.buckets["bucket"].created
    [epoch] = [i for i, name in enumerate(created) if name.endswith("/epoch/%016x" % 2)]
    later = sum("/part/%016x/" % 1 in name for name in created[epoch:])
    print("taken over after %.1f s, %d parts later" % (seconds, later))
    assert later <= most, later
    assert not [name for name in server.buckets["bucket"].replaced
                if not name.endswith("/sessions")]


def test_many_small_parts_are_read_at_the_same_time():
    """So that a pull is faster than a writer of 100 parts a second, where a
    request takes 200 ms."""
    together = 24
    server = s3_memory.Server()
    store = new_store()
    agentwal(store, "remote", "add", server.url("bucket"))
    for i in range(together):
        append(store, i + 3, 1)
        agentwal(store, "remote", "push")
    barrier = threading.Barrier(together)

    def wait(handler, act):
        barrier.wait(60)
        act()()
    server.fault = lambda verb, name: wait if "/part/" in name and verb == "GET" else None
    agentwal("x", "remote", "pull", server.url("bucket"), store + ".pulled")
    assert not barrier.broken


def test_slow_request_does_not_stop_the_others():
    """While one takes long, more are answered than are read at the same time."""
    number, answered = 150, threading.Semaphore(0)
    server = s3_memory.Server()
    store = new_store()
    agentwal(store, "remote", "add", server.url("bucket"))
    shipper = start(store, "remote", "push", "--follow", "--rate", "200")
    shipper.stdout.readline()
    agentwal(store, "append", "--each", "--durability", "cluster", "s", lines="".join(
        '{"type":"n","payload":{"number":%d}}\n' % i for i in range(number)))
    shipper.terminate()
    shipper.wait()
    stopped = []

    def wait(handler, act):
        for _ in range(100):
            if not answered.acquire(timeout=60):
                stopped.append(handler)
                break
        act()()

    def answer(handler, act):
        act()()
        answered.release()
    server.fault = lambda verb, name: (
        None if "/part/" not in name or verb != "GET" else
        wait if name.endswith("/%016x" % 1) else answer)
    agentwal("x", "remote", "pull", server.url("bucket"), store + ".pulled")
    assert not stopped


# The environment --------------------------------------------------------------

def test_certificate_of_a_private_authority():
    subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes",
                    "-keyout", "key.pem", "-out", "ca.pem", "-days", "2",
                    "-subj", "/CN=localhost", "-addext",
                    "subjectAltName=DNS:localhost,IP:127.0.0.1"],
                   check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain("ca.pem", "key.pem")
    server = s3_memory.Server()
    server.socket = context.wrap_socket(server.socket, server_side=True)
    url = server.url("bucket").replace("http:", "https:")
    done = agentwal("x", "remote", "list", url, code=FAILED)
    assert "cannot reach the object store" in done.stderr
    for name in ("AWS_CA_BUNDLE", "CURL_CA_BUNDLE", "SSL_CERT_FILE"):
        agentwal("x", "remote", "list", url, **{name: "ca.pem"})
    agentwal("x", "remote", "list", url, code=FAILED,
             AWS_CA_BUNDLE="no-such-file", SSL_CERT_FILE="ca.pem")


def test_endpoint_and_region_of_the_environment():
    server = s3_memory.Server()
    endpoint = "http://127.0.0.1:%d" % server.server_address[1]
    agentwal("x", "remote", "list", "s3://bucket", AWS_ENDPOINT_URL=endpoint,
             AWS_REGION="eu-north-1")
    [(_, bucket, _, headers)] = server.take_requests()
    assert bucket == "bucket" and "/eu-north-1/s3/" in headers["Authorization"]


# What it costs ----------------------------------------------------------------

def requests_of(server, act):
    server.take_requests()
    act()
    made = [verb for verb, *_ in server.take_requests()]
    return tuple(made.count(verb) for verb in ("LIST", "GET", "PUT", "DELETE"))


def test_requests_are_as_documented():
    """The table of docs/machines.md is that of the requests that are made."""
    documented = {}
    with open(os.path.join(os.environ["AGENTWAL_SOURCE"], "docs", "machines.md"),
              encoding="utf-8") as page:
        for row in page:
            cells = [cell.strip() for cell in row.strip().strip("|").split("|")]
            if len(cells) == 5 and all(re.fullmatch("[0-9]+", c) for c in cells[1:]):
                documented[cells[0]] = tuple(map(int, cells[1:]))
    server = s3_memory.Server()
    url = server.url("bucket")
    store = new_store()
    taken, desk = store + ".taken", store + ".desk"
    measured = {}

    def measure(what, *words, at=store):
        measured[what] = requests_of(server, lambda: agentwal(at, *words))
    measure("`remote add`", "remote", "add", url)
    measure("the first push", "remote", "push")
    append(store, 3, 1)
    measure("a push with news", "remote", "push")
    measure("a push without", "remote", "push")
    measure("`remote list`, of a store", "remote", "list", url)
    measure("`remote sessions`, of a store", "remote", "sessions", url)
    measure("a pull to a new directory, of 2 parts", "remote", "pull", url, taken)
    measure("a pull that goes on, without news", "remote", "pull", url, taken)
    append(store, 4, 1)
    agentwal(store, "remote", "push")
    measure("a pull that goes on, of a part", "remote", "pull", url, taken)
    measure("`pull --take-over` of a replica", "remote", "pull", "--take-over", url,
            taken)
    agentwal(desk, "create", "--id", "other")
    measure("`resume --remote`, of 3 parts", "resume", "--remote", url, "s", at=desk)
    agentwal(desk, "remote", "add", url)
    agentwal(desk, "remote", "push")
    measure("`remote handoff`", "remote", "handoff", "s", at=desk)
    # Without an id, the order of the two stores' ids is that of the search.
    desk_id = json.loads(agentwal(desk, "stats", "--json").stdout)["uuid"]
    measure("`resume --remote --store-id`, of a session that was handed off", "resume",
            "--remote", url, "--store-id", desk_id, "s", at=store + ".third")
    for what, counts in measured.items():
        print("| %s | %d | %d | %d | %d |" % (what, *counts))
    assert measured == documented, documented


def main():
    failed = 0
    for name, test in list(globals().items()):
        if name.startswith("test_") and (len(sys.argv) < 2 or sys.argv[1] in name):
            try:
                test()
                print("ok    ", name, flush=True)
            except (AssertionError, subprocess.SubprocessError) as fault:
                failed += 1
                print("FAILED", name, str(fault)[-1500:], flush=True)
    return 1 if failed else 0


sys.exit(main())
