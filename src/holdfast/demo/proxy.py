"""Stop a driver in the middle of its job commit: a proxy that lets only some of the uploads complete.

The driver runs unchanged code. From its point of view, the server does not answer for a while.
"""

from __future__ import annotations

import threading
from types import TracebackType
from urllib.parse import parse_qs, urlsplit

from holdfast.testing.http_server import LoopbackServer, Reply, Request, forward


class StallingProxy:
    """A proxy for a server on this machine that stalls every CompleteMultipartUpload after the first `allowed`.

    Guarantee: a stalled request never reaches the server; `close` drops the request.

    Args:
        upstream: url of the server.
        allowed: number of completions to forward.
    """

    def __init__(self, upstream: str, allowed: int) -> None:
        self._upstream = urlsplit(upstream).netloc
        self._allowed = allowed
        self._lock = threading.Lock()
        self._forwarded = 0
        self._stalled = 0
        self._closing = threading.Event()
        self._server = LoopbackServer(self._reply)

    @property
    def url(self) -> str:
        """Return the url at which the proxy listens."""
        return self._server.url

    @property
    def stalled(self) -> int:
        """Return the number of stalled completions."""
        with self._lock:
            return self._stalled

    def __enter__(self) -> StallingProxy:
        self._server.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Drop the stalled requests and stop listening. Safe to call twice."""
        self._closing.set()
        self._server.close()

    def _reply(self, request: Request) -> Reply | None:
        query = parse_qs(urlsplit(request.path).query, keep_blank_values=True)
        if request.method == "POST" and "uploadId" in query and not self._admit():
            self._closing.wait()
            return None
        return forward(request, self._upstream)

    def _admit(self) -> bool:
        """Count a completion, and return whether to forward it."""
        with self._lock:
            if self._forwarded < self._allowed:
                self._forwarded += 1
                return True
            self._stalled += 1
            return False
