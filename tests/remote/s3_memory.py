"""An object store in memory that speaks as much S3 as a remote needs.

It does not check signatures. It counts its requests, and can be slow, fail, or
look for an object and create it in two steps, as a store must not.

    s3_memory.py PORT [BYTES_PER_SECOND]

serves until it is ended.
"""
import bisect
import hashlib
import http.server
import random
import socket
import sys
import threading
import time
import urllib.parse
import xml.sax.saxutils

CHUNK = 8192


class Link:
    """The bytes of all connections in one direction, at most a number a second."""

    def __init__(self, bytes_per_second):
        self.bytes_per_second = bytes_per_second
        self.lock = threading.Lock()
        self.free_at = time.monotonic()

    def carry(self, size):
        with self.lock:
            # A thread that wakes late has not lost what the link carries.
            begin = max(self.free_at, time.monotonic() - 0.1)
            self.free_at = begin + size / self.bytes_per_second
            until = self.free_at
        time.sleep(max(0, until - time.monotonic()))


class Bucket:
    def __init__(self):
        self.lock = threading.Lock()
        self.objects = {}
        self.names = []  # sorted
        self.created = []  # names, in this order
        self.replaced = []

    def put(self, name, body, if_absent):
        with self.lock:
            if name in self.objects:
                if if_absent:
                    return False
                self.replaced.append(name)
            else:
                bisect.insort(self.names, name)
                self.created.append(name)
            self.objects[name] = body
            return True

    def remove(self, name):
        with self.lock:
            if self.objects.pop(name, None) is not None:
                self.names.remove(name)

    def page(self, prefix, after, delimiter, most):
        """Keys with their sizes, common prefixes, and whether there are more."""
        keys, folders = [], []
        with self.lock:
            at = bisect.bisect_left(self.names, prefix)
            if after:
                at = max(at, bisect.bisect_right(self.names, after))
            while at < len(self.names) and self.names[at].startswith(prefix):
                name = self.names[at]
                if len(keys) + len(folders) == most:
                    return keys, folders, True
                rest = name[len(prefix):]
                if delimiter and delimiter in rest:
                    folder = prefix + rest.split(delimiter, 1)[0] + delimiter
                    # A page that begins in a folder does not name it again.
                    if not after.startswith(folder):
                        folders.append(folder)
                    at = bisect.bisect_left(self.names, folder[:-1] + "0")
                    continue
                keys.append((name, len(self.objects[name])))
                at += 1
        return keys, folders, False


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def log_message(self, format, *args):
        pass

    def read_body(self):
        left = int(self.headers.get("Content-Length", 0))
        body = bytearray()
        while left > 0:
            chunk = self.rfile.read(min(left, CHUNK if self.server.up else left))
            if not chunk:
                raise ConnectionResetError
            if self.server.up:
                self.server.up.carry(len(chunk))
            body += chunk
            left -= len(chunk)
        return bytes(body)

    def answer(self, status, body=b"", headers=()):
        self.send_response_only(status)
        for name, value in headers:
            self.send_header(name, value)
        if status != 204:
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if not self.server.down:
            self.wfile.write(body)
            return
        for at in range(0, len(body), CHUNK):
            self.server.down.carry(len(body[at:at + CHUNK]))
            self.wfile.write(body[at:at + CHUNK])

    def fail(self, status, code, headers=()):
        self.answer(status, ("<Error><Code>%s</Code></Error>" % code).encode(),
                    [("Content-Type", "application/xml"), *headers])

    def serve(self):
        server = self.server
        body = self.read_body()
        path, _, query = self.path.partition("?")
        bucket, _, name = urllib.parse.unquote(path[1:]).partition("/")
        fields = dict(urllib.parse.parse_qsl(query, keep_blank_values=True))
        verb = "LIST" if self.command == "GET" and not name else self.command
        with server.lock:
            server.requests.append((verb, bucket, name or fields.get("prefix", ""),
                                    dict(self.headers)))
            bucket = server.buckets.setdefault(bucket, Bucket())
        fault = server.fault(verb, name) if server.fault else None
        if fault:
            fault(self, lambda: self.act(verb, bucket, name, fields, body))
        else:
            self.act(verb, bucket, name, fields, body)()

    def act(self, verb, bucket, name, fields, body):
        """Does what is asked, and returns what answers."""
        if verb == "LIST":
            return self.list(bucket, fields)
        if verb == "PUT":
            return self.put(bucket, name, body)
        if verb == "DELETE":
            bucket.remove(name)
            return lambda: self.answer(204)
        with bucket.lock:
            content = bucket.objects.get(name)
        return lambda: self.get(content)

    def put(self, bucket, name, body):
        if_absent = self.headers.get("If-None-Match") == "*"
        if if_absent and self.server.race_s:
            with bucket.lock:
                exists = name in bucket.objects
            time.sleep(self.server.race_s)
            is_put = not exists
            if is_put:
                bucket.put(name, body, False)
        else:
            is_put = bucket.put(name, body, if_absent)
        if not is_put:
            return lambda: self.fail(412, "PreconditionFailed")
        tag = '"%s"' % hashlib.md5(body).hexdigest()
        return lambda: self.answer(200, b"", [("ETag", tag)])

    def get(self, content):
        if content is None:
            self.fail(404, "NoSuchKey")
            return
        first, last = self.headers["Range"].split("=")[1].split("-")
        if int(first) >= len(content):
            self.fail(416, "InvalidRange")
            return
        part = content[int(first):int(last) + 1]
        self.answer(206, part, [("ETag", '"0"'), (
            "Content-Range", "bytes %s-%d/%d" % (first, int(first) + len(part) - 1,
                                                 len(content)))])

    def list(self, bucket, fields):
        after = fields.get("continuation-token", fields.get("start-after", ""))
        keys, folders, has_more = bucket.page(
            fields.get("prefix", ""), after, fields.get("delimiter", ""),
            min(1000, int(fields.get("max-keys", 1000))))
        escape = xml.sax.saxutils.escape
        text = "".join("<Contents><Key>%s</Key><Size>%d</Size></Contents>" %
                       (escape(key), size) for key, size in keys)
        text += "".join("<CommonPrefixes><Prefix>%s</Prefix></CommonPrefixes>" %
                        escape(folder) for folder in folders)
        if has_more:
            text += "<NextContinuationToken>%s</NextContinuationToken>" % escape(
                max([key for key, _ in keys] + folders))
        text = ("<ListBucketResult><IsTruncated>%s</IsTruncated>%s"
                "</ListBucketResult>" % (str(has_more).lower(), text))
        return lambda: self.answer(200, text.encode(),
                                   [("Content-Type", "application/xml")])

    def handle_request(self):
        try:
            self.serve()
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True

    do_GET = do_PUT = do_DELETE = handle_request


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def __init__(self, port=0, bytes_per_second=0, race_s=0):
        """Each direction carries bytes_per_second; 0: as many as come. race_s:
        the seconds between looking for an object and creating it."""
        self.up = Link(bytes_per_second) if bytes_per_second else None
        self.down = Link(bytes_per_second) if bytes_per_second else None
        self.race_s = race_s
        self.lock = threading.Lock()
        self.buckets = {}
        self.requests = []
        self.fault = None  # (verb, name) -> what does it instead, or None
        super().__init__(("127.0.0.1", port), Handler)
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def server_bind(self):
        if self.up:
            # What is in a buffer has not been carried.
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 16 * 1024)
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 16 * 1024)
        super().server_bind()

    def handle_error(self, request, client_address):
        pass  # a client that has given up

    def url(self, bucket):
        return "s3://%s?endpoint=http://127.0.0.1:%d" % (bucket,
                                                         self.server_address[1])

    def take_requests(self):
        """The requests since the last call: (verb, bucket, name, headers)."""
        with self.lock:
            requests, self.requests = self.requests, []
        return requests


def shuffled_faults(seed, share):
    """Faults of a share of all requests, in an order that the seed gives."""
    chance = random.Random(seed)
    lock = threading.Lock()

    def cut_before(handler, _act):
        handler.close_connection = True

    def cut_after(handler, act):
        act()
        handler.close_connection = True

    def late(handler, act):
        threading.Timer(0.3, act).start()
        handler.close_connection = True

    def twice(handler, act):
        answer = act()
        act()
        answer()

    def slow(handler, act):
        time.sleep(0.1)
        act()()

    def busy(handler, _act):
        handler.fail(503, "SlowDown")

    def fails_after(handler, act):
        act()
        handler.fail(500, "InternalError")

    kinds = [cut_before, cut_after, late, twice, slow, busy, fails_after]

    def fault(_verb, _name):
        with lock:
            return chance.choice(kinds) if chance.random() < share else None
    return fault


if __name__ == "__main__":
    served = Server(int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 0)
    print(served.url("bucket"), flush=True)
    threading.Event().wait()
