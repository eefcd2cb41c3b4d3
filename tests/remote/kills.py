#!/usr/bin/env python3
"""kills.py: agentwal remote is killed at each request that it makes.

The environment has what `ceph.sh start` prints. A process is killed when its
Nth request arrives, or when that was done and before it has the answer, for
each N. The next process goes on, and what the remote has then is what the
store has. A takeover has many requests: one in STEP of them, unless
AGENTWAL_LONG is set.
"""
import os
import signal
import subprocess
import sys
import threading
import time
import urllib.parse

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import fault_proxy as faults  # noqa: E402

AGENTWAL = os.path.join(os.environ["AGENTWAL_BUILD"], "bin/agentwal")
BUCKET = os.environ["AGENTWAL_TEST_S3_BUCKET"]
ENDPOINT = os.environ["AGENTWAL_TEST_S3_ENDPOINT"]
RUN = "kills-%d-%d" % (time.time(), os.getpid())
ENVIRONMENT = {**os.environ, "NO_PROXY": "*"}
LONG = bool(os.environ.get("AGENTWAL_LONG"))
STRIDE = int(os.environ.get("AGENTWAL_STRIDE", "1"))
STEP = 1 if LONG else 5 * STRIDE

proxy = faults.Proxy(urllib.parse.urlsplit(ENDPOINT).port)


class Machine:
    """A store below the working directory."""

    def __init__(self, name):
        self.path = os.path.abspath(name)

    def command(self, *arguments):
        return [AGENTWAL, "--store", self.path, *arguments]

    def run(self, *arguments, stdin="", expected=0):
        process = subprocess.run(self.command(*arguments), input=stdin,
                                 env=ENVIRONMENT, capture_output=True,
                                 text=True, timeout=120)
        assert process.returncode == expected, "%s: %d: %s" % (
            " ".join(arguments), process.returncode, process.stderr)
        return process.stdout

    def append(self, text):
        self.run("append", "one",
                 stdin='{"type":"note","payload":{"text":"%s"}}\n' % text)

    def content(self):
        return self.run("cat", "one")


def url_of(name):
    return "s3://%s/%s/%s?endpoint=http://127.0.0.1:%d" % (
        BUCKET, RUN, name, proxy.port)


def pass_on(handler, body):
    handler.pass_on(body)


class Killed:
    """A command that is killed at a request."""

    def __init__(self, command, number, after):
        self.process = None
        self.started = threading.Event()
        self.reached = False
        self.after = after
        proxy.plan(*[pass_on] * (number - 1), self.kill)
        self.process = subprocess.Popen(
            command, env=ENVIRONMENT, stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        self.started.set()
        self.errors = self.process.communicate(timeout=120)[1]
        if self.reached:
            assert self.process.returncode == -signal.SIGKILL
        else:
            assert self.process.returncode == 0, self.errors
        proxy.plan()

    def kill(self, handler, body):
        self.started.wait()
        if self.after:
            handler.ask(body)
        self.reached = True
        self.process.kill()
        self.process.wait()
        handler.close_connection = True


def check_pulled(machine, url, name):
    """The remote has what the machine has."""
    other = Machine(name)
    other.run("remote", "pull", url, other.path)
    assert machine.content() == other.content(), "another content"


def test_push(after):
    """Killed in each push of a store that goes on."""
    name = "push-after" if after else "push-before"
    machine = Machine(name)
    machine.run("create", "--id", "one")
    machine.run("remote", "add", url_of(name))
    number = 1
    while True:
        machine.append("entry %d" % number)
        killed = Killed(machine.command("remote", "push"), number, after)
        machine.append("entry %d, later" % number)
        machine.run("remote", "push")
        check_pulled(machine, url_of(name), "%s.%d" % (name, number))
        if not killed.reached:
            break
        number += 1
    return number - 1


def test_first_push(after):
    """Killed in the first push of a store, which makes the first epoch."""
    number = 1
    while True:
        name = "first-%d-%d" % (after, number)
        machine = Machine(name)
        machine.run("create", "--id", "one")
        machine.run("remote", "add", url_of(name))
        machine.append("entry")
        killed = Killed(machine.command("remote", "push"), number, after)
        machine.run("remote", "push")
        check_pulled(machine, url_of(name), name + ".pulled")
        if not killed.reached:
            break
        number += 1
    return number - 1


def test_take_over(after):
    """Killed in a takeover: the same command goes on."""
    number = 1
    while True:
        name = "over-%d-%d" % (after, number)
        old, new = Machine(name), Machine(name + ".new")
        old.run("create", "--id", "one")
        old.run("remote", "add", url_of(name))
        old.append("first")
        old.run("remote", "push")
        take_over = ("remote", "pull", "--take-over", url_of(name), new.path)
        killed = Killed(new.command(*take_over), number, after)
        if killed.reached:
            new.run(*take_over)
        assert new.content() == old.content(), "another content"
        new.append("second")
        new.run("remote", "push")
        old.append("lost")
        old.run("remote", "push", expected=1)
        check_pulled(new, url_of(name), name + ".pulled")
        if not killed.reached:
            break
        number += STEP
    return number - 1


def main():
    # With a sanitizer, whose processes start slowly, only the first push.
    tests = (test_push, test_first_push, test_take_over) \
        if LONG or STRIDE == 1 else (test_first_push,)
    for test in tests:
        for after in (False, True) if LONG or test is test_push else (True,):
            count = test(after)
            print("%s, killed %s each of %d requests" % (
                test.__name__, "after" if after else "at", count), flush=True)
            assert count >= 3, "too few requests"


main()
