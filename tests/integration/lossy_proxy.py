"""Lose replies: a proxy forwards chosen requests to the server, waits for the reply, and drops it."""

from __future__ import annotations

import http.client
import http.server
import threading
from collections.abc import Callable
from types import TracebackType

from tests.patience import PATIENCE_S

Loses = Callable[[str, str], bool]


class LossyProxy:
    """A proxy for one upstream that remembers what it dropped.

    Args:
        upstream: ``host:port``.

    Attributes:
        loses: decides by method and path whether the answer is dropped.
        dropped: method, path and the status that the caller never saw.
    """

    def __init__(self, upstream: str) -> None:
        self.loses: Loses = lambda method, path: False
        self.dropped: list[tuple[str, str, int]] = []
        proxy = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def forward(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                connection = http.client.HTTPConnection(upstream, timeout=PATIENCE_S)
                try:
                    connection.putrequest(self.command, self.path, skip_host=True, skip_accept_encoding=True)
                    for name, value in self.headers.items():
                        if name.lower() not in ("expect", "connection"):
                            connection.putheader(name, value)  # keep Host: the signature covers it
                    connection.endheaders(body)
                    answer = connection.getresponse()
                    data = answer.read()
                finally:
                    connection.close()
                if proxy.loses(self.command, self.path):
                    proxy.dropped.append((self.command, self.path.partition("?")[0], answer.status))
                    self.close_connection = True
                    return
                self.send_response(answer.status)
                for name, value in answer.getheaders():
                    if name.lower() not in ("content-length", "transfer-encoding", "connection", "server", "date"):
                        self.send_header(name, value)
                length = answer.getheader("Content-Length") if self.command == "HEAD" else str(len(data))
                self.send_header("Content-Length", length or "0")
                self.end_headers()
                self.wfile.write(data)

            do_GET = do_PUT = do_POST = do_DELETE = do_HEAD = forward

            def log_message(self, *_: object) -> None:
                """Log nothing."""

        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)

    @property
    def url(self) -> str:
        """Return the URL of the proxy."""
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def lose_once(self, method: str, part_of_path: str) -> None:
        """Drop the reply to the next such request."""
        before = len(self.dropped)
        self.loses = lambda seen, path: seen == method and part_of_path in path and len(self.dropped) == before

    def __enter__(self) -> LossyProxy:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, raised: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(10)
