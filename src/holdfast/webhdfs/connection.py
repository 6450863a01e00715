"""Extend uvicorn's HTTP connection by what a file service needs.

- Java sends paths as raw UTF-8, which the parser refuses: their bytes are percent-encoded first.
- A request head has a limit, and a deadline.
- An error has no Content-Type: Hadoop's client without Jersey fails on any.
- `deliveries` asks whether an answer has arrived.
- The application gets the certificate of the client.

Source: measured with Hadoop 3.5's client. The parser must see a body end: an upload is a file only then.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol, RequestResponseCycle

from holdfast.webhdfs.deliveries import unacknowledged_bytes
from holdfast.webhdfs.failures import make_failure

MOST_HEAD_BYTES = 64 * 1024
"""The most bytes of a request line and its headers: two paths of 8,000 characters, percent-encoded."""

_MOST_HEADERS = 100
_DRAIN_S = 2.0
"""How long a connection stays open for one more request when the server stops: its answer sends the client on."""

_8_BIT = re.compile(rb"[\x80-\xff]")


class _JoiningTransport:
    """A transport that can hold several writes back, to send them as one: each costs a system call, and a packet."""

    def __init__(self, transport: asyncio.Transport) -> None:
        self._transport = transport
        self._held: list[bytes] | None = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def write(self, data: bytes) -> None:
        if self._held is None:
            self._transport.write(data)
        else:
            self._held.append(data)

    def close(self) -> None:
        self.release()
        self._transport.close()

    def hold(self) -> None:
        self._held = []

    def release(self) -> None:
        held, self._held = self._held, None
        if held:
            self._transport.write(b"".join(held))


class RequestHeadError(Exception):
    """The head of a request is too long."""


class Connection(HttpToolsProtocol):
    """One connection of a client.

    Attributes:
        is_lost: whether it broke before the last answer was acknowledged.
        is_ended: whether it ended in order.
        requests: how many requests have begun on it.
        is_draining: whether the server stops.
    """

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self.is_lost = self.is_ended = False
        self.requests = 0
        self.is_draining = False
        self._is_in_line = True
        self._head_bytes = 0
        self._head_timer: asyncio.TimerHandle | None = None
        self._certificate: Any = None
        self._socket: Any = None

    # --- what deliveries ask ------------------------------------------------------------------------------------------
    def unacknowledged_bytes(self) -> int:
        """Return how many bytes of the answers so far the client's kernel has not acknowledged."""
        if self.is_lost or self.is_ended or self._socket is None:
            return 1
        try:
            return int(self.transport.get_write_buffer_size()) + unacknowledged_bytes(self._socket.fileno())
        except (OSError, ValueError):
            return 1

    @contextmanager
    def hold_writes(self) -> Iterator[None]:
        """Send all that the block writes as one."""
        self._joining.hold()
        try:
            yield
        finally:
            self._joining.release()

    # --- asyncio ------------------------------------------------------------------------------------------------------
    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn has it
        super().connection_made(transport)
        self.transport = self._joining = _JoiningTransport(transport)  # type: ignore[assignment]  # it acts as one
        self._socket = transport.get_extra_info("socket")
        encryption = transport.get_extra_info("ssl_object")
        self._certificate = None if encryption is None else encryption.getpeercert()
        if len(self.connections) > self.app.limits.connections:  # it is a `Service`
            self._refuse(503, "org.apache.hadoop.ipc.StandbyException", "too many connections: ask another server")
            return
        self._await_head()

    def connection_lost(self, exc: Exception | None) -> None:
        self._unset_head_timer()
        if exc is None and self._is_idle() and not self.is_lost:
            self.is_ended = True
        else:
            self.is_lost = True
        super().connection_lost(exc)

    def eof_received(self) -> None:
        if self.unacknowledged_bytes():
            self.is_lost = True  # a client that has read everything has acknowledged it

    def data_received(self, data: bytes) -> None:
        if self._is_in_line:
            line, newline, rest = data.partition(b"\n")
            self._is_in_line = not newline
            if not line.isascii():
                data = _8_BIT.sub(lambda found: b"%%%02X" % found[0][0], line) + newline + rest
        super().data_received(data)

    def shutdown(self) -> None:
        self.is_draining = True
        if self._is_idle():
            self.loop.call_later(_DRAIN_S, self._close_if_idle)
        else:
            self.cycle.keep_alive = False

    def _close_if_idle(self) -> None:
        if self._is_idle() and not self.transport.is_closing():
            self.transport.close()

    def _is_idle(self) -> bool:
        cycle: RequestResponseCycle | None = self.cycle  # None before the first request
        return cycle is None or cycle.response_complete

    # --- the parser ---------------------------------------------------------------------------------------------------
    def on_message_begin(self) -> None:
        super().on_message_begin()
        self.requests += 1
        self._head_bytes = 0
        if self._head_timer is None:
            self._await_head()
        self.scope["state"]["connection"] = self
        self.scope["state"]["certificate"] = self._certificate

    def on_url(self, url: bytes) -> None:
        self._count_head(len(url))
        super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        self._count_head(len(name) + len(value) + 4)
        super().on_header(name, value)

    def on_headers_complete(self) -> None:
        self._unset_head_timer()
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        self._is_in_line = True
        super().on_message_complete()

    def _count_head(self, number: int) -> None:
        self._head_bytes += number
        if self._head_bytes > MOST_HEAD_BYTES or len(self.headers) >= _MOST_HEADERS:
            raise RequestHeadError

    # --- errors and deadlines -----------------------------------------------------------------------------------------
    def _await_head(self) -> None:
        self._head_timer = self.loop.call_later(self.app.limits.head_s, self._end_slow_head)

    def _unset_head_timer(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None

    def _end_slow_head(self) -> None:
        self._head_timer = None
        if not self.transport.is_closing():
            self.transport.close()

    def send_400_response(self, msg: str) -> None:
        if not self._is_idle() and self.cycle.response_started:
            self.transport.abort()  # in the middle of an answer: a second one would be taken for its body
            return
        self._refuse(400, "java.lang.IllegalArgumentException", "the request is no HTTP, or its head is too long")

    def _refuse(self, status: int, java_class: str, message: str) -> None:
        body = json.dumps(make_failure(java_class, message)).encode()
        head = STATUS_LINE[status] + b"content-length: %d\r\nconnection: close\r\n\r\n" % len(body)
        self.transport.write(head + body)
        self.transport.close()
