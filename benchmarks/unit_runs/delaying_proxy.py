"""Forward TCP connections and deliver all bytes later, as a network does: ``python -m … DELAY_S PORT [PORT ...]``.

For each port of this machine, the proxy listens on a port of its own. It prints these as a JSON list on one line, and
ends when its standard input does. Both directions are delayed; nothing else is limited: bytes that arrive while others
wait are delivered as late as those, not later.
"""

from __future__ import annotations

import json
import select
import socket
import sys
import time
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

__all__ = ["main"]

_CHUNK_BYTES = 1 << 18
_MOST_WAITING_BYTES = 32 << 20
"""Of one direction: no more is read then, so that a sender is slowed down as TCP slows it down."""


class _Direction:
    """What one side has sent, on its way to the other side."""

    def __init__(self, source: socket.socket, target: socket.socket, delay_s: float) -> None:
        self.source = source
        self.target = target
        self._delay_s = delay_s
        self._waiting: deque[tuple[float, memoryview]] = deque()
        self._bytes = 0
        self.has_ended = False  # the source sends nothing any more
        self.is_over = False  # and everything was delivered

    @property
    def reads(self) -> bool:
        """Whether more is read from the source now."""
        return not self.has_ended and self._bytes < _MOST_WAITING_BYTES

    @property
    def due_s(self) -> float | None:
        """When the next bytes are due; None if none wait."""
        return self._waiting[0][0] if self._waiting else None

    def read(self, now_s: float) -> None:
        """Take what the source has sent."""
        try:
            data = self.source.recv(_CHUNK_BYTES)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self.has_ended = True
        self._bytes += len(data)
        self._waiting.append((now_s + self._delay_s, memoryview(data)))

    def deliver(self, now_s: float) -> bool:
        """Send what is due; return whether the target takes no more at the moment."""
        while self._waiting and self._waiting[0][0] <= now_s:
            due_s, data = self._waiting[0]
            try:
                if not data:
                    self.is_over = True
                    self.target.shutdown(socket.SHUT_WR)
                sent = self.target.send(data) if data else 0
            except BlockingIOError:
                return True
            except OSError:
                self.has_ended = self.is_over = True
                self._waiting.clear()
                return False
            self._bytes -= sent
            if sent == len(data):
                self._waiting.popleft()
            else:
                self._waiting[0] = (due_s, data[sent:])
        return False


class _Proxy:
    """The connections of all ports, served by one thread.

    Args:
        ports: where to forward to.
        delay_s: of each direction.
    """

    def __init__(self, ports: Sequence[int], delay_s: float) -> None:
        self._delay_s = delay_s
        self._listeners = {socket.create_server(("127.0.0.1", 0)): port for port in ports}
        self._directions: list[_Direction] = []

    @property
    def ports(self) -> list[int]:
        """Where the proxy listens, in the order of the ports to which it forwards."""
        return [listener.getsockname()[1] for listener in self._listeners]

    def serve(self) -> None:
        """Forward until the standard input ends."""
        stuck: list[_Direction] = []  # have something to deliver that their target does not take
        while True:
            dues = [due_s for one in self._directions if one not in stuck and (due_s := one.due_s) is not None]
            wait_s = max(0.0, min(dues) - time.monotonic()) if dues else None
            readers: dict[Any, _Direction] = {one.source: one for one in self._directions if one.reads}
            # Not epoll, whose waits are whole milliseconds.
            ready, _, _ = select.select(
                [sys.stdin, *self._listeners, *readers], [one.target for one in stuck], [], wait_s
            )
            now_s = time.monotonic()
            for source in ready:
                if source is sys.stdin:
                    return
                if source in self._listeners:
                    self._accept(source)
                else:
                    readers[source].read(now_s)
            stuck = [one for one in self._directions if one.deliver(now_s)]
            if any(one.is_over for one in self._directions):
                self._forget_closed()

    def _accept(self, listener: socket.socket) -> None:
        client, _ = listener.accept()
        try:
            server = socket.create_connection(("127.0.0.1", self._listeners[listener]))
        except OSError:
            client.close()
            return
        for one in (client, server):
            one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            one.setblocking(False)
        self._directions += [
            _Direction(client, server, self._delay_s),
            _Direction(server, client, self._delay_s),
        ]

    def _forget_closed(self) -> None:
        over = {frozenset((one.source, one.target)) for one in self._directions if one.is_over}
        open_still = {frozenset((one.source, one.target)) for one in self._directions if not one.is_over}
        for pair in over - open_still:
            for one in pair:
                with suppress(OSError):
                    one.close()
        self._directions = [
            one for one in self._directions if frozenset((one.source, one.target)) not in over - open_still
        ]


def main(arguments: Sequence[str] | None = None) -> None:
    """Be the proxy."""
    delay, *ports = sys.argv[1:] if arguments is None else arguments
    proxy = _Proxy([int(port) for port in ports], float(delay))
    print(json.dumps(proxy.ports), flush=True)
    proxy.serve()


if __name__ == "__main__":
    main()
