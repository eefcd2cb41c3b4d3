"""A proxy before an S3 gateway on loopback that fails as it is asked to.

Each request takes the next of the proxy's faults; without one it is passed on.
Headers are passed on unchanged, so that signatures stay valid.
"""
import http.client
import http.server
import threading
import time


def error(status, code):
    """The answer of S3 with that code, which did not reach the gateway."""
    body = ("<?xml version=\"1.0\"?><Error><Code>%s</Code><Message>m</Message>"
            "</Error>" % code)
    return answer(status, body.encode(), "application/xml")


def answer(status, body=b"", kind="text/html", headers=()):
    def fault(handler, _body):
        handler.reply(status, [("Content-Type", kind), *headers], body)
    return fault


def cut_before(handler, _body):
    """Closes the connection; the gateway sees nothing."""
    handler.close_connection = True


def cut_after(handler, body):
    """Passes the request on, and closes the connection without the answer."""
    handler.ask(body)
    handler.close_connection = True


def half(handler, body):
    """Closes the connection in the middle of the answer's content."""
    status, headers, content = handler.ask(body)
    handler.send_response_only(status)
    for name, value in headers:
        handler.send_header(name, value)
    handler.end_headers()
    handler.wfile.write(content[:len(content) // 2])
    handler.wfile.flush()
    handler.close_connection = True


def garbage(handler, _body):
    """Answers something that is not HTTP."""
    handler.wfile.write(b"\x00\x01 this is not HTTP\r\n\r\n")
    handler.wfile.flush()
    handler.close_connection = True


def delay(seconds):
    def fault(handler, body):
        time.sleep(seconds)
        handler.pass_on(body)
    return fault


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, format, *args):
        pass

    def ask(self, body):
        """Passes the request on: the answer's status, headers and content."""
        gateway = http.client.HTTPConnection("127.0.0.1",
                                             self.server.upstream, timeout=60)
        gateway.putrequest(self.command, self.path, skip_host=True,
                           skip_accept_encoding=True)
        for name, value in self.headers.items():
            if name.lower() not in ("expect", "connection"):
                gateway.putheader(name, value)
        gateway.endheaders(body)
        got = gateway.getresponse()
        content = got.read()
        headers = [(name, value) for name, value in got.getheaders()
                   if name.lower() not in ("connection", "transfer-encoding")]
        gateway.close()
        return got.status, headers, content

    def reply(self, status, headers, content):
        self.send_response_only(status)
        for name, value in headers:
            if name.lower() != "content-length":
                self.send_header(name, value)
        if status != 204:
            self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def pass_on(self, body):
        self.reply(*self.ask(body))

    def handle_request(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        with self.server.lock:
            self.server.requests.append(
                (self.command, self.path, dict(self.headers)))
            faults = self.server.faults
            fault = None
            if faults:
                fault = faults[0] if len(faults) == 1 and \
                    self.server.is_endless else faults.pop(0)
        try:
            if fault is None:
                self.pass_on(body)
            else:
                fault(self, body)
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True

    do_GET = do_PUT = do_DELETE = do_HEAD = handle_request


class Proxy(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, upstream):
        super().__init__(("127.0.0.1", 0), Handler)
        self.upstream = upstream
        self.lock = threading.Lock()
        self.plan()
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def handle_error(self, request, client_address):
        pass  # a client that has given up

    @property
    def port(self):
        return self.server_address[1]

    def plan(self, *faults, endless=False):
        """Sets the faults of the next requests; endless repeats the last."""
        with self.lock:
            self.faults = list(faults)
            self.is_endless = endless
            self.requests = []
