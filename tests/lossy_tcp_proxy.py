"""A TCP proxy that interferes with chosen requests: their replies are lost, or they themselves, or all goes silent.

Worked composition::

    with LossyTcpProxy(server.port) as proxy:
        proxy.interfere_once(lambda request: request.endswith(b"COMMIT"), Fault.LOSE_REPLY)
        ...                                            # a client of proxy.port
        assert proxy.faults == [Fault.LOSE_REPLY]
"""

from __future__ import annotations

import enum
import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from types import TracebackType

from tests.patience import PATIENCE_S

__all__ = ["Fault", "LossyTcpProxy"]

_CHUNK_BYTES = 1 << 20


class Fault(enum.Enum):
    """What happens to a request."""

    LOSE_REPLY = "the server gets the request; its reply closes the connection to the client instead"
    LOSE_REQUEST = "the server does not get the request; both connections are closed"
    SILENCE = "the server gets neither the request nor the end of the connection, and the client no reply"


class LossyTcpProxy:
    """Forwards connections to a loopback port.

    Attributes:
        refuses: whether new connections are closed at once.
        faults: what has happened so far.
    """

    def __init__(self, upstream_port: int) -> None:
        self.refuses = False
        self.faults: list[Fault] = []
        self._upstream_port = upstream_port
        self._choose: Callable[[bytes], Fault | None] = lambda request: None
        self._lock = threading.Lock()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._sockets: list[socket.socket] = [self._listener]
        self._threads: list[threading.Thread] = []

    @property
    def port(self) -> int:
        """Where the proxy listens."""
        return int(self._listener.getsockname()[1])

    def interfere_once(self, chooses: Callable[[bytes], bool], fault: Fault) -> None:
        """Interfere with the next request that the function chooses."""
        before = len(self.faults)
        self._choose = lambda request: fault if len(self.faults) == before and chooses(request) else None

    def interfere(self, chooses: Callable[[bytes], bool], fault: Fault) -> None:
        """Interfere with all requests that the function chooses."""
        self._choose = lambda request: fault if chooses(request) else None

    def cut(self) -> None:
        """Close all connections of this moment, while the server may be busy with their requests."""
        for one in self._sockets:
            if one is not self._listener:
                _close(one)

    def __enter__(self) -> LossyTcpProxy:
        self._start(self._accept)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, raised: BaseException | None, traceback: TracebackType | None
    ) -> None:
        _close(self._listener)
        self._threads[0].join(PATIENCE_S)  # now there are no new connections
        for one in self._sockets:
            _close(one)
        for thread in self._threads:
            thread.join(PATIENCE_S)

    def _start(self, target: Callable[..., None], *arguments: object) -> None:
        thread = threading.Thread(target=target, args=arguments, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            self._sockets.append(client)
            if self.refuses:
                _close(client)
                continue
            try:
                server = socket.create_connection(("127.0.0.1", self._upstream_port))
            except OSError:
                _close(client)
                continue
            self._sockets.append(server)
            with suppress(OSError):  # the client may have gone
                for one in (client, server):
                    one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            loses_reply = threading.Event()
            self._start(self._pass_requests, client, server, loses_reply)
            self._start(self._pass_replies, client, server, loses_reply)

    def _pass_requests(self, client: socket.socket, server: socket.socket, loses_reply: threading.Event) -> None:
        with suppress(OSError):
            while data := client.recv(_CHUNK_BYTES):
                with self._lock:
                    fault = self._choose(data)
                    if fault is not None:
                        self.faults.append(fault)
                if fault is Fault.SILENCE:
                    while client.recv(_CHUNK_BYTES):
                        pass
                    return  # the server does not learn that the client is gone
                if fault is Fault.LOSE_REQUEST:
                    break
                if fault is Fault.LOSE_REPLY:
                    loses_reply.set()
                server.sendall(data)
        _close(client)
        _close(server)

    @staticmethod
    def _pass_replies(client: socket.socket, server: socket.socket, loses_reply: threading.Event) -> None:
        with suppress(OSError):
            while data := server.recv(_CHUNK_BYTES):
                if loses_reply.is_set():
                    break
                client.sendall(data)
        _close(client)
        _close(server)


def _close(one: socket.socket) -> None:
    with suppress(OSError):
        one.shutdown(socket.SHUT_RDWR)  # wakes the thread that reads from it
    one.close()
