"""Answer requests: find the operation, have it carried out in a thread, and send what it answers.

The loop of uvicorn runs no operation: each blocks on the database or the store. The threads share the commits and reads
of the database (`GroupCommit`), so concurrent requests share round trips and flushes.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import logging
import zlib
from collections.abc import Callable
from typing import Any, TypeVar

from holdfast.errors import HoldfastError
from holdfast.namespace.errors import RepeatUnclearError
from holdfast.namespace.operation import RequestAbandonedError
from holdfast.runtime import LoopThreads
from holdfast.webhdfs import metrics
from holdfast.webhdfs.access_log import AccessLog
from holdfast.webhdfs.batches import Batches
from holdfast.webhdfs.calls import PREFIX, Answer
from holdfast.webhdfs.carrying import Carrier
from holdfast.webhdfs.connection import ClientTooSlowError
from holdfast.webhdfs.exchange import Exchange, Receive, Send
from holdfast.webhdfs.failures import (
    IO_ERROR,
    STANDBY,
    UNSUPPORTED,
    RequestRefusedError,
    java_class_of,
    make_failure,
    status_of,
)
from holdfast.webhdfs.operations import OPERATIONS, REDIRECTED, find_operation
from holdfast.webhdfs.settings import Limits
from holdfast.webhdfs.sites import SiteGate
from holdfast.webhdfs.transfers import (
    FEW_BYTES,
    LEAVING_S,
    LEG,
    SENT_BYTES,
    UploadCutError,
    discard_upload,
    read_piece,
    receive_upload,
)

R = TypeVar("R")
_LOG = logging.getLogger("holdfast.webhdfs")
_TOO_LONG = "the request has taken too long, and was given up: ask for less at once, such as a part of a tree"
_CREATED = Answer(status=201)
_APPENDED = Answer()

_CLEANING_S = 10.0
"""How long a server that stops waits for files to be discarded, after it has cancelled their uploads."""

_STEP_S = 0.05

_MOST_UNSENT_BYTES = 256 * 1024 * 1024
"""So much is in memory for clients that do not take what they have asked for; then each costs little."""

_LOOK_S = 1.0
"""How often an upload that waits looks whether its client is still there."""

_TOGETHER = frozenset(("GETFILESTATUS", "GETFILELINKSTATUS"))
"""Operations of which those that come at one moment are carried out together: a third of all requests of Spark."""

_CHANGED_TOGETHER = frozenset(("MKDIRS", "RENAME", "DELETE"))
"""The same for changes, which are tried together."""

FindPage = Callable[[Exchange], "Answer | None"]
"""Returns what the server has at an address outside of WebHDFS; None for nothing. Runs in a thread."""


class Application:
    """Serves one namespace: an application of ASGI.

    Args:
        find_page: for addresses outside of WebHDFS.
        gate: refuses what pages of other sites send.
    """

    def __init__(self, carrier: Carrier, limits: Limits, log: AccessLog, find_page: FindPage, gate: SiteGate) -> None:
        self._carrier = carrier
        self._clock = carrier.namespace.environment.clock
        self._limits = limits
        self._log = log
        self._find_page = find_page
        self._gate = gate
        self._pool = LoopThreads(limits.threads, "request")
        self._statuses: Batches[Exchange, Answer] = Batches(self._pool, carrier.find_statuses)
        self._changes: Batches[Exchange, Answer | None] = Batches(self._pool, carrier.change_together)
        self._uploads = asyncio.Semaphore(limits.uploads)
        self._in_flight = self._waiting_uploads = 0
        self._unsent_bytes = 0  # of downloads

    async def __call__(self, scope: Any, receive: Receive, send: Send) -> None:
        """Answer one request; uvicorn calls this."""
        exchange = Exchange.of(scope, receive, send, self._clock)
        self._in_flight += 1
        try:
            await self._answer(exchange)
        except (UploadCutError, ClientTooSlowError, asyncio.CancelledError) as error:
            # Cancelled: the server stops, and has waited long enough.
            if isinstance(error, UploadCutError):
                metrics.CUT_UPLOADS.inc()
            exchange.connection.abort()
        except RequestAbandonedError:
            await self._answer_failure(exchange, RequestRefusedError(_TOO_LONG, IO_ERROR))
        except (HoldfastError, RequestRefusedError) as error:
            await self._answer_failure(exchange, error)
        except Exception as error:  # noqa: BLE001  # it is logged; the server goes on
            _LOG.exception("a request failed")
            await self._answer_failure(exchange, error)
        finally:
            self._in_flight -= 1
            self._note(exchange)

    async def _answer(self, exchange: Exchange) -> None:
        path = exchange.raw_path
        if path != PREFIX.encode() and not path.startswith(f"{PREFIX}/".encode()):
            if path.startswith(b"/page/"):
                self._require_room(exchange)  # the others tell an operator what is the matter
            await exchange.answer(await self._run(functools.partial(self._answer_page, exchange)))
            return
        self._require_room(exchange)
        exchange.parse()
        if exchange.method not in OPERATIONS:
            raise RequestRefusedError(f"{exchange.method} is not a method of WebHDFS", UNSUPPORTED)
        exchange.operation = find_operation(exchange.method, exchange.parameters)
        if exchange.operation in _TOGETHER:
            await exchange.answer(await self._statuses.ask(exchange))
        elif exchange.operation in _CHANGED_TOGETHER:
            answer = await self._changes.ask(exchange)
            if answer is None:
                answer = await self._run(functools.partial(self._carrier.carry_out, exchange))
            await exchange.answer(answer)
        elif exchange.operation in REDIRECTED and not exchange.parameters.text(LEG):
            await self._redirect(exchange)
        elif exchange.operation in OPERATIONS[exchange.method]:
            await exchange.answer(await self._run(functools.partial(self._carrier.carry_out, exchange)))
        elif exchange.operation == "OPEN":
            await self._send_file(exchange)
        else:
            await self._receive_file(exchange)

    async def _run(self, work: Callable[[], R]) -> R:
        """Run a function in a thread."""
        return await self._pool.run(work)

    def _require_room(self, exchange: Exchange) -> None:
        """Refuse a request if the server stops or has too much to do, or if another site's page sends it."""
        if exchange.connection.is_draining:
            raise RequestRefusedError("the server stops: ask another one", STANDBY)
        if self._in_flight - self._waiting_uploads > self._limits.waiting:
            metrics.REFUSED.labels("request").inc()
            raise RequestRefusedError("the server has too much to do: ask another one, or repeat later", STANDBY)
        origin, site = (exchange.headers.get(name, b"").decode("latin-1") for name in (b"origin", b"sec-fetch-site"))
        self._gate.check(exchange.host, origin, site)

    # --- bytes of files -----------------------------------------------------------------------------------------------
    async def _redirect(self, exchange: Exchange) -> None:
        """Send the client to this server again, for the bytes."""
        await self._run(functools.partial(self._carrier.check_transfer, exchange))
        url = exchange.url_with(LEG, self._carrier.new_leg())
        if exchange.parameters.truth("noredirect", False):
            await exchange.answer(Answer(document={"Location": url}))
        else:
            await exchange.answer(Answer(status=307, headers={"location": url}))

    async def _send_file(self, exchange: Exchange) -> None:
        file, start, length = await self._run(functools.partial(self._carrier.open_download, exchange))
        position, end = start, start + length
        while position < end or not exchange.status:
            size = SENT_BYTES if self._unsent_bytes < _MOST_UNSENT_BYTES else FEW_BYTES
            piece = await self._run(functools.partial(read_piece, file, position, end, size))
            position += len(piece)
            self._unsent_bytes += len(piece)
            try:
                await self._send_piece(exchange, piece, length, is_last=position == end)
            finally:
                self._unsent_bytes -= len(piece)

    async def _send_piece(self, exchange: Exchange, piece: bytes, length: int, *, is_last: bool) -> None:
        """Send a piece of a file, the first one with the head of the answer; wait until the client has taken most."""
        is_first = not exchange.status
        with exchange.connection.hold_writes():
            if is_first:
                headers = {"content-length": str(length), "content-type": "application/octet-stream"}
                await exchange.begin(200, {**headers, "x-content-type-options": "nosniff"})
            await exchange.send_piece(piece, is_last=is_last)
        await exchange.connection.wait_for_room()
        if is_first and not is_last:
            await asyncio.sleep(LEAVING_S)
        if exchange.is_gone and not is_last:
            raise RequestAbandonedError

    async def _receive_file(self, exchange: Exchange) -> None:
        async def receive() -> Any:
            try:
                event = await asyncio.wait_for(exchange.receive(), self._limits.body_s)
            except asyncio.TimeoutError:
                raise ClientTooSlowError from None
            body = event.get("body", b"")
            exchange.received_bytes += len(body)
            if exchange.operation == "APPEND":
                exchange.checksum = zlib.crc32(body, exchange.checksum)
            return event

        await self._wait_for_turn(exchange)
        metrics.UPLOADS.inc()
        try:
            writer = await self._run(functools.partial(self._carrier.open_upload, exchange))
            if writer is None:
                await discard_upload(receive)
                self._carrier.require_same_content(exchange)
            else:
                finish = functools.partial(self._carrier.finish_upload, exchange, writer)
                await receive_upload(writer, receive, self._run, finish)
        finally:
            metrics.UPLOADS.dec()
            self._uploads.release()
        await exchange.answer(_CREATED if exchange.operation == "CREATE" else _APPENDED)

    async def _wait_for_turn(self, exchange: Exchange) -> None:
        """Wait until one more file may be received: perhaps for long, but not without a proof of the user, nor for a
        client that has gone, nor in the way of other requests.
        """
        if not self._uploads.locked():
            await self._uploads.acquire()
            return
        await self._run(functools.partial(self._carrier.make_call_patiently, exchange))
        self._waiting_uploads += 1
        try:
            while True:
                with contextlib.suppress(asyncio.TimeoutError):
                    await asyncio.wait_for(self._uploads.acquire(), _LOOK_S)
                    return
                if exchange.is_gone:
                    raise UploadCutError
        finally:
            self._waiting_uploads -= 1

    # --- the rest -----------------------------------------------------------------------------------------------------
    def _answer_page(self, exchange: Exchange) -> Answer:
        found = self._find_page(exchange)
        return found or Answer(
            status=404,
            body=f"nothing is here: WebHDFS is at {PREFIX}/\n".encode(),
            headers={"content-type": "text/plain"},
        )

    async def _answer_failure(self, exchange: Exchange, error: Exception) -> None:
        """Send an error, unless an answer has begun: then cut it, so that it is not taken for whole."""
        if exchange.status or exchange.is_gone:
            if not exchange.is_gone:
                _LOG.warning("a download ends early, path=%r: %s", exchange.path, error)
            exchange.connection.abort()
            return
        if not isinstance(error, RepeatUnclearError):  # its answer is the one to deliver
            exchange.note_unknown_outcome()
        if not isinstance(error, (HoldfastError, RequestRefusedError)):
            document = make_failure("java.lang.RuntimeException", "the server has failed: see its log")
            await exchange.answer(Answer(status=500, document=document))
            return
        java_class = java_class_of(error)
        status, headers = status_of(error, java_class), dict[str, str]()
        if status == 401 and exchange.headers.get(b"user-agent", b"").startswith(b"Java/"):
            status = 403  # of a 401, Hadoop's client shows the status only, not what to do
        elif status == 401:
            headers["www-authenticate"] = "Bearer"
        await exchange.answer(Answer(status=status, document=make_failure(java_class, str(error)), headers=headers))

    def _note(self, exchange: Exchange) -> None:
        """Count and log a request."""
        operation, age_s = exchange.operation or metrics.NO_OPERATION, exchange.age_s()
        metrics.note_request(operation, exchange.status, age_s)
        if exchange.received_bytes:
            metrics.BYTES.labels("received").inc(exchange.received_bytes)
        if exchange.sent_bytes:
            metrics.BYTES.labels("sent").inc(exchange.sent_bytes)
        self._log.write(exchange)

    def measure(self, connections: int) -> None:
        """Set the gauges of what goes on at this moment."""
        metrics.CONNECTIONS.set(connections)
        metrics.IN_FLIGHT.set(self._in_flight)

    async def wait_until_idle(self) -> None:
        """Wait for what cleans up after requests that were cancelled; not for long."""
        for _ in range(int(_CLEANING_S / _STEP_S)):
            if not self._in_flight:
                return
            await asyncio.sleep(_STEP_S)

    def close(self) -> None:
        """End the threads, after what they do."""
        self._pool.close()
