#!/usr/bin/env python3
"""faults.py PROGRAM: what a driver of S3 reports when the store fails.

The environment has what `ceph.sh start` prints. PROGRAM is driver_call.c. Every
failure has its own status and sentence, and nothing that is printed has a
secret.
"""
import concurrent.futures
import hashlib
import hmac
import http.server
import os
import socket
import ssl
import subprocess
import sys
import threading
import time
import urllib.parse

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import fault_proxy as faults  # noqa: E402

PROGRAM = sys.argv[1]
BUCKET = os.environ["AGENTWAL_TEST_S3_BUCKET"]
ENDPOINT = os.environ["AGENTWAL_TEST_S3_ENDPOINT"]
SECRET = os.environ["AWS_SECRET_ACCESS_KEY"]
TOKEN = "hush-session-token"
RUN = "faults-%d-%d" % (time.time(), os.getpid())

OK, NOTFOUND, EXISTS, NOSPACE = 0, -2, -3, -6
NOTSTORE, ACCESS, REMOTE = -16, -31, -35

proxy = faults.Proxy(urllib.parse.urlsplit(ENDPOINT).port)
PROXY = "http://127.0.0.1:%d" % proxy.port
count = 0


def call(verb, name, *text, endpoint=PROXY, bucket=BUCKET, deadline=20000,
         raw=False, **environment):
    """The status, the text and the lines that the call returned."""
    url = "s3://%s?endpoint=%s" % (bucket, endpoint)
    process = subprocess.run(
        [PROGRAM, url, str(deadline), verb,
         name if raw else "%s/%s" % (RUN, name), *text],
        env={**os.environ, "NO_PROXY": "*", **environment}, timeout=120,
        stdin=subprocess.DEVNULL, capture_output=True, text=True)
    output = process.stdout + process.stderr
    for secret in (SECRET, TOKEN, "hush"):
        assert secret not in output, "a secret in: " + output
    assert process.returncode == 0, output
    assert process.stderr == "", process.stderr
    *result, status, file, sentence = process.stdout.split("\n")[:-1]
    if int(status) == OK:
        assert not sentence, "the error of a success: " + sentence
    else:
        print("%-13s %4s  %s  %s" % (verb, status, file, sentence))
        assert sentence and "127.0.0.1" not in file
    return int(status), sentence, result


def expect(expected, part, got):
    status, sentence, result = got
    assert status == expected, "%d, not %d: %s" % (status, expected, sentence)
    assert part in sentence, "no %r in %r" % (part, sentence)
    return result


def fresh():
    global count
    count += 1
    return "object-%d" % count


VERBS = (("put_if_absent", "x"), ("put", "x"), ("get",), ("head",), ("list",),
         ("remove",))


def each_verb(expected, part, **options):
    """All of them at the same time: most wait for a deadline."""
    with concurrent.futures.ThreadPoolExecutor(len(VERBS)) as pool:
        calls = [pool.submit(call, verb, fresh(), *text, **options)
                 for verb, *text in VERBS]
    for made in calls:
        expect(expected, part, made.result())


def hmac_of(key, text):
    return hmac.new(key, text.encode(), hashlib.sha256).digest()


def check_signature(request):
    """The signature is that of version 4 of AWS, computed anew."""
    method, target, headers = request
    path, _, query = target.partition("?")
    headers = {name.lower(): value.strip() for name, value in headers.items()}
    fields = dict(part.split("=", 1) for part in
                  headers["authorization"].split(" ", 1)[1].split(", "))
    signed = fields["SignedHeaders"].split(";")
    assert signed == sorted(signed)
    assert {"host", *(h for h in headers if h.startswith("x-amz-"))} <= set(signed)
    query = "&".join(sorted(
        "=".join(urllib.parse.quote(part, safe="-._~") for part in pair)
        for pair in urllib.parse.parse_qsl(query, keep_blank_values=True)))
    canonical = "\n".join(
        [method, urllib.parse.quote(path, safe="/-._~"), query,
         *("%s:%s" % (h, headers[h]) for h in signed), "", ";".join(signed),
         headers["x-amz-content-sha256"]])
    scope = fields["Credential"].split("/", 1)[1]
    text = "\n".join(["AWS4-HMAC-SHA256", headers["x-amz-date"], scope,
                      hashlib.sha256(canonical.encode()).hexdigest()])
    key = ("AWS4" + SECRET).encode()
    for part in scope.split("/"):
        key = hmac_of(key, part)
    assert fields["Signature"] == hmac_of(key, text).hex()
    assert SECRET not in str(request)


# What the gateway itself refuses ----------------------------------------------

def test_wrong_secret():
    each_verb(ACCESS, "the secret access key is not that of the access key",
              endpoint=ENDPOINT, AWS_SECRET_ACCESS_KEY="hush")


def test_unknown_key():
    each_verb(ACCESS, "the object store does not know the access key",
              endpoint=ENDPOINT, AWS_ACCESS_KEY_ID="NOBODY")


def test_bucket_that_does_not_exist():
    each_verb(NOTSTORE, "the bucket does not exist", endpoint=ENDPOINT,
              bucket="no-such-bucket")


def test_no_credentials():
    each_verb(ACCESS, "there are no credentials", endpoint=ENDPOINT,
              AWS_ACCESS_KEY_ID="", AWS_SECRET_ACCESS_KEY="", HOME="/nonexistent",
              AWS_SHARED_CREDENTIALS_FILE="/nonexistent")


def test_object_that_does_not_exist():
    for verb in ("get", "head"):
        expect(NOTFOUND, "there is no such object",
               call(verb, fresh(), endpoint=ENDPOINT))
    expect(OK, "", call("remove", fresh(), endpoint=ENDPOINT))


# What is the same for every call ------------------------------------------------

def test_clock():
    proxy.plan(faults.error(403, "RequestTimeTooSkewed"), endless=True)
    each_verb(ACCESS, "set the clock")
    assert len(proxy.requests) == len(VERBS)


def test_no_permission():
    proxy.plan(faults.error(403, "AccessDenied"), endless=True)
    each_verb(ACCESS, "has no permission")


def test_full():
    proxy.plan(faults.error(403, "QuotaExceeded"), endless=True)
    expect(NOSPACE, "quota", call("put", fresh(), "x"))
    proxy.plan(faults.answer(507), endless=True)
    expect(NOSPACE, "full", call("put_if_absent", fresh(), "x"))


def test_failures_that_pass():
    for fault in (faults.error(500, "InternalError"),
                  faults.error(503, "SlowDown"), faults.answer(502),
                  faults.error(409, "ConditionalRequestConflict"),
                  faults.error(429, "TooManyRequests"),
                  faults.error(400, "RequestTimeout"),
                  faults.cut_before, faults.garbage, faults.delay(0.3)):
        for verb, *text in VERBS:
            name = fresh()
            if verb in ("get", "head"):
                expect(OK, "", call("put", name, "x"))
            proxy.plan(fault, fault)
            expect(OK, "", call(verb, name, *text))


def test_failures_that_last():
    for fault, part in ((faults.error(500, "InternalError"),
                         "the object store failed (HTTP 500 InternalError)"),
                        (faults.error(503, "SlowDown"),
                         "the object store failed (HTTP 503 SlowDown)"),
                        (faults.cut_before, "the object store does not answer"),
                        (faults.delay(5), "the object store does not answer")):
        proxy.plan(fault, endless=True)
        begun = time.monotonic()
        each_verb(REMOTE, part, deadline=1500)
        assert time.monotonic() - begun < 30
        assert len(proxy.requests) > len(VERBS)


def test_nothing_listens():
    # Bound, so that nobody else is given the port.
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        each_verb(REMOTE, "the object store does not answer", deadline=500,
                  endpoint="http://127.0.0.1:%d" % bound.getsockname()[1])


def test_failures_that_no_repetition_mends():
    proxy.plan(faults.error(501, "NotImplemented"), endless=True)
    expect(REMOTE, "does not support", call("put_if_absent", fresh(), "x"))
    proxy.plan(faults.error(400, "InvalidRequest"), endless=True)
    each_verb(REMOTE, "did not understand the request")
    assert len(proxy.requests) == len(VERBS)


def test_redirects_are_not_followed():
    proxy.plan(faults.answer(307, headers=[("Location", ENDPOINT + "/x")]),
               endless=True)
    each_verb(NOTSTORE, "redirects")
    assert len(proxy.requests) == len(VERBS)


def test_another_server():
    page = b"<html>Please sign in</html>"
    proxy.plan(faults.answer(200, page), endless=True)
    expect(REMOTE, "what answered is not S3", call("put", fresh(), "x"))
    expect(REMOTE, "what answered is not S3",
           call("put_if_absent", fresh(), "x"))
    expect(REMOTE, "does not answer with the range", call("get", fresh()))
    expect(REMOTE, "does not answer with the range", call("head", fresh()))
    expect(REMOTE, "cannot be read", call("list", fresh()))
    proxy.plan(faults.answer(404, page), endless=True)
    each_verb(REMOTE, "what answered is not S3")


# Writes whose outcome is unknown ----------------------------------------------

def test_cut_after_the_store_has_stored():
    name = fresh()
    proxy.plan(faults.cut_after)
    expect(EXISTS, "the object exists", call("put_if_absent", name, "mine"))
    first, second = proxy.requests
    same = ("x-amz-content-sha256", "If-None-Match", "Content-Length")
    assert [first[2][h] for h in same] == [second[2][h] for h in same]
    assert expect(OK, "", call("get", name)) == ["mine"]
    name = fresh()
    proxy.plan(faults.cut_after, faults.cut_after)
    expect(OK, "", call("put", name, "mine"))
    proxy.plan(faults.cut_after)
    expect(OK, "", call("remove", name))
    expect(NOTFOUND, "no such object", call("head", name))


def test_object_is_sent_once():
    proxy.plan()
    expect(OK, "", call("put_if_absent", fresh(), "x"))
    assert [r[0] for r in proxy.requests] == ["PUT"]


# Reads ----------------------------------------------------------------------------

def test_content_that_is_cut():
    name = fresh()
    text = "0123456789" * 1000
    expect(OK, "", call("put", name, text))
    proxy.plan(faults.half, faults.half)
    assert expect(OK, "", call("get", name)) == [text]
    proxy.plan(faults.half, endless=True)
    expect(REMOTE, "does not answer", call("get", name, deadline=1000))


def page(keys, truncated, extra=""):
    return faults.answer(200, ("<ListBucketResult>%s<IsTruncated>%s</IsTruncated>"
                               "%s</ListBucketResult>" % (
                                   "".join("<Contents><Key>%s</Key><Size>1</Size>"
                                           "</Contents>" % key for key in keys),
                                   "true" if truncated else "false",
                                   extra)).encode(), "application/xml")


def names(*planned):
    proxy.plan(*planned)
    return call("list", "l/", raw=True)


def test_pages():
    token = "<NextContinuationToken>a/+=</NextContinuationToken>"
    assert expect(OK, "", names(page(["l/a"], True, token), page([], True, token),
                                page(["l/b", "l/b~", "l/c/"], True),
                                page(["l/d"], False))) == [
        "l/a 1", "l/b 1", "l/d 1"]
    paths = [r[1].split("?")[1] for r in proxy.requests]
    assert paths == ["list-type=2&max-keys=1000&prefix=l%2F"] + 2 * [
        "continuation-token=a%2F%2B%3D&list-type=2&max-keys=1000&prefix=l%2F"] + [
        "list-type=2&max-keys=1000&prefix=l%2F&start-after=l%2Fc%2F"]


def test_pages_that_are_wrong():
    for planned in ([page(["l/b", "l/a"], False)], [page(["l/a", "l/a"], False)],
                    [page(["m/a"], False)], [page(["l/a"], True), page(["l/a"], False)],
                    [page(["l/" + "k" * 2000], False)]):
        expect(REMOTE, "not in order", names(*planned))
    expect(REMOTE, "does not end", names(page([], True)))
    token = "<NextContinuationToken>t</NextContinuationToken>"
    expect(REMOTE, "does not end", names(*[page([], True, token)] * 100))
    expect(REMOTE, "cannot be read", names(
        faults.answer(200, b"<!DOCTYPE x [<!ENTITY a 'b'>]><ListBucketResult>"
                      b"<IsTruncated>false</IsTruncated></ListBucketResult>")))
    expect(REMOTE, "longer than was asked for",
           names(faults.answer(200, b" " * 9000000)))


# Credentials and certificates ---------------------------------------------------

def test_token():
    proxy.plan(page([], False))
    expect(OK, "", call("list", "l/", raw=True, AWS_SESSION_TOKEN=TOKEN))
    request = proxy.requests[0][2]
    assert request["x-amz-security-token"] == TOKEN
    assert "x-amz-security-token" in request["Authorization"]


def test_signatures():
    token = "<NextContinuationToken>a/+= ~*</NextContinuationToken>"
    expect(OK, "", names(page(["l/a"], True), page(["l/b ("], True, token),
                         page([], False)))
    seen = proxy.requests
    proxy.plan(page([], False), *[faults.answer(200, b"", headers=[("ETag", "0")])] * 4)
    expect(OK, "", call("list", "l/", raw=True, AWS_SESSION_TOKEN=TOKEN))
    for verb, *text in VERBS:
        call(verb, fresh(), *text, AWS_SESSION_TOKEN=TOKEN)
    seen += proxy.requests
    assert len(seen) == 3 + 1 + len(VERBS)
    for request in seen:
        check_signature(request)


def test_credentials_that_end():
    command = ("echo called >>calls; echo '{\"Version\":1,\"AccessKeyId\":\"%s\","
               "\"SecretAccessKey\":\"%s\"}'" %
               (os.environ["AWS_ACCESS_KEY_ID"], SECRET))
    environment = {"AGENTWAL_REMOTE_CREDENTIALS_COMMAND": command,
                   "AWS_ACCESS_KEY_ID": "", "AWS_SECRET_ACCESS_KEY": "",
                   "AWS_SHARED_CREDENTIALS_FILE": "/nonexistent"}
    proxy.plan(faults.error(400, "ExpiredToken"))
    expect(OK, "", call("put", fresh(), "x", **environment))
    with open("calls", encoding="ascii") as file:
        assert file.read() == "called\n" * 2
    proxy.plan(faults.error(400, "ExpiredToken"), endless=True)
    expect(ACCESS, "has expired", call("put", fresh(), "x", **environment))
    assert len(proxy.requests) == 2


def test_certificate_that_nobody_signed():
    subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes",
                    "-keyout", "key.pem", "-out", "certificate.pem", "-days", "2",
                    "-subj", "/CN=localhost", "-addext",
                    "subjectAltName=DNS:localhost,IP:127.0.0.1"],
                   check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain("certificate.pem", "key.pem")
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), faults.Handler)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    server.handle_error = lambda *_: None
    threading.Thread(target=server.serve_forever, daemon=True).start()
    each_verb(REMOTE, "cannot reach the object store",
              endpoint="https://127.0.0.1:%d" % server.server_address[1])


def main():
    failed = 0
    for name, test in list(globals().items()):
        if name.startswith("test_"):
            try:
                proxy.plan()
                test()
                print("ok    ", name, flush=True)
            except (AssertionError, subprocess.TimeoutExpired) as fault:
                failed += 1
                print("FAILED", name, fault, flush=True)
    return 1 if failed else 0


sys.exit(main())
