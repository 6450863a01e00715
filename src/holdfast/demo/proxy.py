"""A way to stop in the middle of a job commit: a proxy that lets only so many uploads be completed.

The driver under test runs unchanged; to it, the server just does not answer for a while.
"""

from __future__ import annotations

import http.client
import http.server
import socketserver
import threading
from types import TracebackType
from urllib.parse import parse_qs, urlsplit

from holdfast.runtime import ThreadExecutor

__all__ = ["StallingProxy"]

_HOP_BY_HOP = frozenset(("connection", "keep-alive", "transfer-encoding", "proxy-connection", "te", "upgrade"))
_UPSTREAM_TIMEOUT_S = 60.0


class StallingProxy:
    """Forwards HTTP to a server on this machine; from the `allowed`-th CompleteMultipartUpload on, none passes.

    Guarantee: what is stalled never reaches the server: on `close` it is dropped.

    Args:
        upstream: url of the server.
        allowed: completions that pass.
    """

    def __init__(self, upstream: str, allowed: int) -> None:
        self._allowed = allowed
        self._lock = threading.Lock()
        self._passed = 0
        self._stalled = 0
        self._closing = threading.Event()
        self._server = _Server(("127.0.0.1", 0), _handler(self, urlsplit(upstream).netloc))
        self._background = ThreadExecutor(1)

    @property
    def url(self) -> str:
        """Where the proxy listens."""
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    @property
    def stalled(self) -> int:
        """Completions that are waiting now."""
        with self._lock:
            return self._stalled

    def __enter__(self) -> StallingProxy:
        self._background.submit(self._server.serve_forever)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Drop what is stalled and stop listening. Safe to call twice."""
        self._closing.set()
        self._server.shutdown()
        self._server.server_close()
        self._background.close()

    def admit(self, method: str, path: str) -> bool:
        """Whether a request may pass; waits, and says no, for a completion that is one too many."""
        query = parse_qs(urlsplit(path).query, keep_blank_values=True)
        if method != "POST" or "uploadId" not in query:
            return True
        with self._lock:
            if self._passed < self._allowed:
                self._passed += 1
                return True
            self._stalled += 1
        self._closing.wait()
        return False


class _Server(socketserver.ThreadingMixIn, http.server.HTTPServer):
    daemon_threads = True  # a connection whose client was killed may never end by itself

    def handle_error(self, request: object, client_address: object) -> None:
        """A killed client resets its connections: that is what the demo is about, not an error."""


def _handler(proxy: StallingProxy, upstream: str) -> type[http.server.BaseHTTPRequestHandler]:
    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def _forward(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            if not proxy.admit(self.command, self.path):
                self.close_connection = True
                return
            connection = http.client.HTTPConnection(upstream, timeout=_UPSTREAM_TIMEOUT_S)
            try:
                connection.putrequest(self.command, self.path, skip_host=True, skip_accept_encoding=True)
                for name, value in self.headers.items():  # the Host header too: it is part of the signature
                    if name.lower() not in _HOP_BY_HOP and name.lower() != "expect":
                        connection.putheader(name, value)
                connection.endheaders(body)
                self._answer(connection.getresponse())
            finally:
                connection.close()

        def _answer(self, response: http.client.HTTPResponse) -> None:
            data = response.read()
            self.send_response_only(response.status, response.reason)
            for name, value in response.getheaders():
                if name.lower() not in _HOP_BY_HOP and name.lower() != "content-length":
                    self.send_header(name, value)
            length = response.getheader("Content-Length") if self.command == "HEAD" else str(len(data))
            self.send_header("Content-Length", length or "0")
            self.end_headers()
            self.wfile.write(data)

        do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = _forward

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002  # the base class names it so
            """Requests are not the demo's output."""

    return Handler
