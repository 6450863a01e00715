"""Extend uvicorn's HTTP connection by what a file service needs.

- Java sends paths as raw UTF-8, which the parser refuses: their bytes are percent-encoded first.
- A request head has a limit, and a deadline; what is neither head nor content has a limit, too.
- Each idle connection has a deadline.
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

from uvicorn.protocols.http.httptools_impl import STATUS_LINE, RequestResponseCycle

from holdfast.webhdfs.deliveries import unacknowledged_bytes
from holdfast.webhdfs.failures import STANDBY, make_failure
from holdfast.webhdfs.joining import JoiningTransport
from holdfast.webhdfs.upgrades import UpgradeIgnoringProtocol

MOST_HEAD_BYTES = 64 * 1024
"""The most bytes of a request line and its headers: as in HDFS, and
two paths of 8,000 characters of ASCII, percent-encoded."""

_MOST_HEADERS = 100

_DRAIN_S = 2.0
"""How long a connection stays open for one more request when the server stops: its answer sends the client on."""

_8_BIT = re.compile(rb"[\x80-\xff]")


class RequestHeadError(Exception):
    """The head of a request is too long, or could be understood in two ways."""


class ClientTooSlowError(Exception):
    """The client does not take its answer, or does not go on with its upload."""


class Connection(UpgradeIgnoringProtocol):
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
        self._is_refused = self._is_broken = False
        self._is_in_line = self._is_in_head = True  # of the request that comes, or will
        self._head_bytes = self._hosts = 0
        self._idle_bytes = 0  # since the parser has found anything
        self._head_timer: asyncio.TimerHandle | None = None
        self._running: RequestResponseCycle | None = None
        self._certificate: Any = None
        self._socket: Any = None

    # --- what the application asks ------------------------------------------------------------------------------------
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

    async def wait_for_room(self) -> None:
        """Wait until the client has taken most of what was sent.

        Raises:
            ClientTooSlowError: it takes nothing, for a long time.
        """
        if self.flow.write_paused:
            try:
                await asyncio.wait_for(self.flow.drain(), self.app.limits.answer_s)
            except asyncio.TimeoutError:
                raise ClientTooSlowError from None

    def close_after_refusal(self) -> bool:
        """Return whether the client waits for permission to send a body that nobody wants: what it sends instead, after
        the answer, could be that body or another request.
        """
        cycle = self._running
        return cycle is not None and cycle.waiting_for_100_continue and cycle.more_body

    def abort(self) -> None:
        """End the connection at once: its client must not take what it has got for a whole answer."""
        self.is_lost = True
        if self._running is not None:
            self._running.disconnected = True  # so uvicorn does not miss the answer
        self.transport.abort()

    # --- asyncio ------------------------------------------------------------------------------------------------------
    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn has it
        super().connection_made(transport)
        limits = self.app.limits  # it is a `Service`
        self._joining = JoiningTransport(transport, self.loop, limits.answer_s)
        self.transport = self._joining  # type: ignore[assignment]  # it acts as one
        self._socket = transport.get_extra_info("socket")
        encryption = transport.get_extra_info("ssl_object")
        self._certificate = None if encryption is None else encryption.getpeercert()
        self.app.connections = len(self.connections)
        if self.client is None:  # it was reset before it was accepted: who sent its requests is not known anymore
            self.abort()
            return
        # Many clients read an answer only after their request: answered now, they would see a reset instead.
        self._is_refused = len(self.connections) > limits.connections
        if len(self.connections) > 2 * limits.connections:
            self.transport.abort()
            return
        self._await_head()

    def connection_lost(self, exc: Exception | None) -> None:
        self._unset_head_timer()
        # Over TLS, a client that closes at once resets a connection that the server has closed.
        if (exc is None or self._joining.is_closed) and self._is_idle() and not self.is_lost:
            self.is_ended = True
        else:
            self.is_lost = True
        super().connection_lost(exc)
        self._unset_keepalive_if_required()
        self.app.connections = len(self.connections)

    def eof_received(self) -> None:
        if self.unacknowledged_bytes():
            self.is_lost = True  # a client that has read everything has acknowledged it
        self.transport.close()

    def data_received(self, data: bytes) -> None:
        if self._is_broken or self.transport.is_closing():
            return
        if self._is_refused:
            self._refuse(503, STANDBY, "too many connections: ask another server")
            return
        if self._is_in_head and self._head_timer is None:
            self._await_head()
        if self._is_in_line:
            line, newline, rest = data.partition(b"\n")
            self._is_in_line = not newline
            if not line.isascii():
                data = _8_BIT.sub(lambda found: b"%%%02X" % found[0][0], line) + newline + rest
        self._idle_bytes += len(data)
        super().data_received(data)
        if self._idle_bytes > MOST_HEAD_BYTES and not self.transport.is_closing():
            self.send_400_response("")
        self._require_deadline()

    def _require_deadline(self) -> None:
        """Give a connection a deadline if no request and no head on it has one: the rest of a refused body comes."""
        if self._is_idle() and self._head_timer is None and self.timeout_keep_alive_task is None:
            self.timeout_keep_alive_task = self.loop.call_later(
                self.timeout_keep_alive, self.timeout_keep_alive_handler
            )

    def shutdown(self) -> None:
        self.is_draining = True
        if self._is_idle():
            self.loop.call_later(_DRAIN_S, self._close_if_idle)
        else:
            self.cycle.keep_alive = False

    def _close_if_idle(self) -> None:
        if self._is_idle() and not self.transport.is_closing():
            self._close_silent()

    def timeout_keep_alive_handler(self) -> None:
        if not self.transport.is_closing():
            self._close_silent()

    def _close_silent(self) -> None:
        """Close a connection of which nothing is heard: then what its client has not acknowledged is lost."""
        self.is_lost = self.is_lost or self.unacknowledged_bytes() > 0
        self.transport.close()

    def _is_idle(self) -> bool:
        cycle: RequestResponseCycle | None = self.cycle  # None before the first request
        return cycle is None or cycle.response_complete

    # --- the parser ---------------------------------------------------------------------------------------------------
    def on_message_begin(self) -> None:
        super().on_message_begin()
        self.requests += 1
        self._head_bytes = self._hosts = self._idle_bytes = 0
        if self._head_timer is None:
            self._await_head()
        self.scope["state"]["connection"] = self
        self.scope["state"]["certificate"] = self._certificate

    def on_url(self, url: bytes) -> None:
        self._count_head(len(url))
        super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        self._count_head(len(name) + len(value) + 4)
        lower = name.lower()
        if lower == b"transfer-encoding" and value.strip().lower() != b"chunked":
            raise RequestHeadError  # what it contains would be stored as it is
        self._hosts += lower == b"host"
        if self._hosts > 1:
            raise RequestHeadError
        super().on_header(name, value)

    def on_headers_complete(self) -> None:
        self._unset_head_timer()
        self._is_in_line = False
        super().on_headers_complete()
        self._is_in_head = False
        if self.is_draining:
            self.cycle.keep_alive = False

    def on_body(self, body: bytes) -> None:
        self._idle_bytes = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        self._is_in_line = self._is_in_head = not self._is_offered
        super().on_message_complete()

    def _count_head(self, number: int) -> None:
        self._idle_bytes = 0
        self._head_bytes += number
        if self._head_bytes > MOST_HEAD_BYTES or len(self.headers) >= _MOST_HEADERS:
            raise RequestHeadError

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: Any) -> None:
        self._running = cycle
        super()._start_asgi_task(cycle, app)

    # --- errors and deadlines -----------------------------------------------------------------------------------------
    def _await_head(self) -> None:
        self._head_timer = self.loop.call_later(self.app.limits.head_s, self._end_slow_head)

    def _unset_head_timer(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None

    def _end_slow_head(self) -> None:
        self._head_timer = None
        if not self._is_idle():
            self._await_head()  # requests before it are not answered yet: the client is not to blame
        elif not self.transport.is_closing():
            self._close_silent()

    def send_400_response(self, msg: str) -> None:
        if self._is_idle() and self._is_in_head:
            self._refuse(400, "java.lang.IllegalArgumentException", "the request is no HTTP, or its head is too long")
        elif self._is_idle():
            self.transport.close()  # the body of a request that has its answer
        elif not self.cycle.more_body:
            self._end_after(self.cycle)
        elif self.cycle is not self._running:
            self.pipeline.popleft()
            self._end_after(self.pipeline[0][0] if self.pipeline else self._running)
        elif self.cycle.response_started:
            self.abort()  # a second answer would be taken for the body of the first one
        else:
            self._refuse(400, "java.lang.IllegalArgumentException", "the body of the request is damaged")

    def _end_after(self, cycle: RequestResponseCycle | None) -> None:
        """Answer the requests that have come as a whole, up to one of them; nothing after that makes sense."""
        self._is_broken = True
        self._unset_head_timer()
        if cycle is not None:
            self.cycle = cycle
            cycle.keep_alive = False

    def _refuse(self, status: int, java_class: str, message: str) -> None:
        body = json.dumps(make_failure(java_class, message)).encode()
        head = STATUS_LINE[status] + b"content-length: %d\r\nconnection: close\r\n\r\n" % len(body)
        self.transport.write(head + body)
        self.transport.close()
