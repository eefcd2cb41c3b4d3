#!/usr/bin/env python3
"""rados_faults.py PROGRAM: what a driver of rados:// reports when it fails.

The environment has what `ceph.sh start` prints. PROGRAM is driver_call.c. Every
failure has its own status and sentence, and nothing that is printed has a key.
"""
import os
import re
import socket
import subprocess
import sys
import time
import urllib.parse

PROGRAM = sys.argv[1]
URL = os.environ["AGENTWAL_TEST_RADOS"]
POOL = urllib.parse.urlsplit(URL).netloc
OPTIONS = dict(urllib.parse.parse_qsl(urllib.parse.urlsplit(URL).query))
CONF, USER = OPTIONS["conf"], OPTIONS["id"]
RUN = "faults-%d-%d" % (time.time(), os.getpid())

OK, NOTFOUND, EXISTS, TOOBIG = 0, -2, -3, -5
INVALID, NOTSTORE, ACCESS, REMOTE = -1, -16, -31, -35

VERBS = (("put_if_absent", "x"), ("put", "x"), ("get",), ("head",), ("list",),
         ("remove",))

with open(os.path.join(os.path.dirname(CONF), USER + ".keyring"),
          encoding="ascii") as keyring:
    SECRET = re.search(r"key = (\S+)", keyring.read()).group(1)


def call(verb, name, *text, pool=POOL, conf=CONF, user=USER, deadline=20000,
         **environment):
    """The status, the text and the lines that the call returned."""
    url = "rados://%s?conf=%s&id=%s" % (pool, conf, user)
    process = subprocess.run(
        [PROGRAM, url, str(deadline), verb, "%s/%s" % (RUN, name), *text],
        env={**os.environ, **environment}, timeout=120,
        stdin=subprocess.DEVNULL, capture_output=True, text=True)
    output = process.stdout + process.stderr
    for secret in (SECRET, "hush"):
        assert secret not in output, "a secret in: " + output
    assert process.returncode == 0, output
    assert process.stderr == "", process.stderr
    *result, status, file, sentence = process.stdout.split("\n")[:-1]
    if int(status) == OK:
        assert not sentence, "the error of a success: " + sentence
    else:
        print("%-13s %4s  %s  %s" % (verb, status, file, sentence))
        assert sentence
    return int(status), sentence, result


def expect(expected, part, got):
    status, sentence, result = got
    assert status == expected, "%d, not %d: %s" % (status, expected, sentence)
    assert part in sentence, "no %r in %r" % (part, sentence)
    return result


def each_verb(expected, part, **options):
    for verb, *text in VERBS:
        expect(expected, part, call(verb, "object", *text, **options))


def configuration(name, text):
    """A configuration in the working directory, and its path."""
    path = os.path.abspath(name)
    with open(path, "w", encoding="ascii") as file:
        file.write(text)
    return path


def own_text():
    """The configuration without the user's section."""
    with open(CONF, encoding="ascii") as file:
        return file.read().split("[client.")[0]


def with_keyring(name, user, key):
    ring = configuration(name + ".keyring",
                         "[client.%s]\n\tkey = %s\n" % (user, key))
    return configuration(name + ".conf", own_text() +
                         "[client.%s]\nkeyring = %s\n" % (user, ring))


def test_wrong_key():
    key = SECRET[:-6] + ("AAAA==" if SECRET[-6:] != "AAAA==" else "BBBA==")
    each_verb(ACCESS, "the key is not the user's",
              conf=with_keyring("wrong", USER, key))


def test_unknown_user():
    each_verb(ACCESS, "the cluster does not know the user", user="nobody",
              conf=with_keyring("unknown", "nobody", SECRET))


def test_text_that_is_no_key():
    each_verb(ACCESS, "there is no keyring with a key of the user",
              conf=with_keyring("none", USER, "hush"))


def test_no_keyring():
    path = configuration("missing.conf", own_text().replace(
        "keyring = ", "keyring = /nonexistent/"))
    each_verb(ACCESS, "there is no keyring with a key of the user", conf=path)


def test_no_configuration():
    each_verb(INVALID, "cannot read the configuration of Ceph",
              conf="/nonexistent")


def test_pool_that_does_not_exist():
    each_verb(NOTSTORE, "the pool does not exist", pool="no-such-pool")


def test_pool_of_another():
    status = call("put_if_absent", "x", "x", pool=".rgw.root")
    expect(ACCESS, "the user has no permission for this pool", status)


def test_cluster_that_does_not_answer():
    """A monitor's port that takes connections and is silent."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        path = configuration("silent.conf", re.sub(
            "(?m)^mon host = .*$",
            "mon host = v2:127.0.0.1:%d" % silent.getsockname()[1],
            own_text()) + "[client.%s]\nkeyring = %s\n" % (
                USER, os.path.join(os.path.dirname(CONF), USER + ".keyring")))
        start = time.monotonic()
        expect(REMOTE, "the cluster does not answer in time",
               call("get", "x", conf=path, deadline=2000))
        took = time.monotonic() - start
        assert 1.5 < took < 20, "%.1f s" % took


def test_object_that_does_not_exist():
    for verb in ("get", "head"):
        expect(NOTFOUND, "there is no such object", call(verb, "absent"))
    expect(OK, "", call("remove", "absent"))


def test_object_that_exists():
    expect(OK, "", call("put_if_absent", "twice", "first"))
    expect(EXISTS, "the object exists", call("put_if_absent", "twice", "other"))
    assert expect(OK, "", call("get", "twice")) == ["first"]


def rados(*arguments):
    subprocess.run(["rados", "-c", CONF, "--id", USER, "-p", POOL, *arguments],
                   check=True, timeout=60, stdin=subprocess.DEVNULL)


def test_name_of_a_writer_that_was_killed():
    """The index has the name, and there is no object."""
    expect(OK, "", call("put", "killed/before", "x"))
    rados("setomapval", RUN + "/~index", "killed/at", "")
    expected = ["%s/killed/before 1" % RUN]
    assert expect(OK, "", call("list", "killed/")) == expected
    expect(OK, "", call("put_if_absent", "killed/at", "xyz"))
    expected.insert(0, "%s/killed/at 3" % RUN)
    assert expect(OK, "", call("list", "killed/")) == expected
    expect(OK, "", call("remove", "killed/at"))
    assert expect(OK, "", call("list", "killed/")) == expected[1:]


def test_object_that_an_osd_does_not_take():
    """An object that no write can hold is refused before it is sent."""
    path = os.path.abspath("large")
    with open(path, "wb") as file:
        file.truncate(89 << 20)
    process = subprocess.run([PROGRAM, URL, "20000", "put_file", RUN + "/large",
                              path], capture_output=True, text=True,
                             timeout=120, stdin=subprocess.DEVNULL, check=True)
    status, _, sentence = process.stdout.split("\n")[:-1]
    expect(TOOBIG, "an object of a pool has at most 88 MiB",
           (int(status), sentence, []))
    with open(path, "wb") as file:
        file.truncate(88 << 20)
    process = subprocess.run([PROGRAM, URL, "60000", "put_file", RUN + "/large",
                              path], capture_output=True, text=True,
                             timeout=120, stdin=subprocess.DEVNULL, check=True)
    assert process.stdout.split("\n")[0] == "0", process.stdout
    os.unlink(path)
    expect(OK, "", call("remove", "large"))


for name, test in sorted(globals().items()):
    if name.startswith("test_"):
        print("--", name, flush=True)
        test()
