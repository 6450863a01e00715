"""An HTTP proxy that forwards every request and drops chosen replies: a lost reply."""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType

from tests.servers.http_server import LoopbackServer, Reply, Request, forward

Loses = Callable[[str, str], bool]


class LossyProxy:
    """Forwards to one upstream, and records the replies that it drops.

    Args:
        upstream: ``host:port``.

    Attributes:
        loses: decides by method and path whether to drop the reply.
        dropped: method, path and status of each dropped reply.
    """

    def __init__(self, upstream: str) -> None:
        self.loses: Loses = lambda method, path: False
        self.dropped: list[tuple[str, str, int]] = []
        self._upstream = upstream
        self._server = LoopbackServer(self._reply)

    def _reply(self, request: Request) -> Reply | None:
        reply = forward(request, self._upstream)
        if not self.loses(request.method, request.path):
            return reply
        self.dropped.append((request.method, request.path.partition("?")[0], reply.status))
        return None

    @property
    def url(self) -> str:
        """Where the proxy listens."""
        return self._server.url

    def lose_once(self, method: str, part_of_path: str) -> None:
        """Drop the next reply to such a request."""
        before = len(self.dropped)
        self.loses = lambda seen, path: seen == method and part_of_path in path and len(self.dropped) == before

    def __enter__(self) -> LossyProxy:
        self._server.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, raised: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._server.close()
