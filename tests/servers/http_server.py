"""Run a small HTTP server on loopback whose replies a function decides; it can forward requests to another server.

Worked composition, a proxy that loses every reply to a PUT::

    def reply(request: Request) -> Reply | None:
        found = forward(request, "127.0.0.1:8333")
        return None if request.method == "PUT" else found

    with LoopbackServer(reply) as proxy:
        store = S3Store("b", S3Options(endpoint_url=proxy.url))
"""

from __future__ import annotations

import http.client
import http.server
import socketserver
import threading
from collections.abc import Callable
from dataclasses import dataclass
from types import TracebackType

_HOP_BY_HOP = frozenset(("connection", "keep-alive", "transfer-encoding", "proxy-connection", "te", "upgrade"))
_POLL_S = 0.02
_STOP_S = 10.0
_UPSTREAM_TIMEOUT_S = 60.0

_Headers = tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Request:
    """A request as the client sent it.

    Attributes:
        path: the path, with its query.
        headers: the headers, with their names as the client wrote them.
    """

    method: str
    path: str
    headers: _Headers
    body: bytes


@dataclass(frozen=True)
class Reply:
    """A reply for the client.

    Attributes:
        reason: the reason phrase; None for the standard phrase of the status.
        headers: the headers, without ``Content-Length``.
        body: the body; it is not sent in reply to a HEAD.
        content_length: the value of ``Content-Length``; None for the length of the body. If the body is shorter than
            this value, the connection is closed after the body.
    """

    status: int
    reason: str | None = None
    headers: _Headers = ()
    body: bytes = b""
    content_length: int | None = None


class LoopbackServer:
    """An HTTP/1.1 server on a free loopback port, with a thread for each connection.

    Guarantee: after the ``with`` block, no new connection is accepted.

    Args:
        reply: returns the reply to a request, or None to close the connection without a reply. Several threads call
            this function.
    """

    def __init__(self, reply: Callable[[Request], Reply | None]) -> None:
        self._server = _Server(("127.0.0.1", 0), _handler(reply))
        self._thread = threading.Thread(target=self._server.serve_forever, args=(_POLL_S,), daemon=True)

    @property
    def url(self) -> str:
        """Return the url at which the server listens."""
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self) -> LoopbackServer:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Stop listening. Safe to call twice."""
        if self._thread.ident is not None:  # shutdown would wait forever for a loop that never ran
            self._server.shutdown()
            self._thread.join(_STOP_S)
        self._server.server_close()


def forward(request: Request, upstream: str) -> Reply:
    """Send a request to another server, unchanged, and return its reply.

    Args:
        upstream: ``host:port``.

    Raises:
        OSError: the server cannot be reached.
    """
    connection = http.client.HTTPConnection(upstream, timeout=_UPSTREAM_TIMEOUT_S)
    try:
        connection.putrequest(request.method, request.path, skip_host=True, skip_accept_encoding=True)
        for name, value in request.headers:  # even Host, because the signature covers it
            if name.lower() not in _HOP_BY_HOP and name.lower() != "expect":
                connection.putheader(name, value)
        connection.endheaders(request.body)
        response = connection.getresponse()
        body = response.read()
    finally:
        connection.close()
    kept = [
        (name, value)
        for name, value in response.getheaders()
        if name.lower() not in _HOP_BY_HOP and name.lower() != "content-length"
    ]
    length = int(response.getheader("Content-Length") or 0) if request.method == "HEAD" else len(body)
    return Reply(response.status, response.reason, tuple(kept), body, length)


class _Server(socketserver.ThreadingMixIn, http.server.HTTPServer):
    daemon_threads = True  # the connection of a killed client may never end

    def handle_error(self, request: object, client_address: object) -> None:
        """Ignore connection errors, because a client that is killed resets its connections."""


def _handler(reply: Callable[[Request], Reply | None]) -> type[http.server.BaseHTTPRequestHandler]:
    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def _handle(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            found = reply(Request(self.command, self.path, tuple(self.headers.items()), body))
            if found is None:
                self.close_connection = True
                return
            length = len(found.body) if found.content_length is None else found.content_length
            self.send_response_only(found.status, found.reason)
            for name, value in (*found.headers, ("Content-Length", str(length))):
                self.send_header(name, value)
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(found.body)
                self.close_connection = self.close_connection or length > len(found.body)

        do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = _handle

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002  # the base class names it so
            """Print nothing."""

    return Handler
