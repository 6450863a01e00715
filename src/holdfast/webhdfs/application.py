"""Answer requests: find the operation, have it carried out in a thread, and send what it answers.

The loop of uvicorn runs no operation: each blocks on the database or the store. The threads share the commits and reads
of the database (`GroupCommit`), so concurrent requests share round trips and flushes.
"""

from __future__ import annotations

import asyncio
import functools
import logging
from collections.abc import Callable
from typing import Any, TypeVar

from holdfast.errors import HoldfastError
from holdfast.namespace.receipts import RequestAbandonedError
from holdfast.runtime import LoopThreads
from holdfast.webhdfs import metrics
from holdfast.webhdfs.access_log import AccessLog
from holdfast.webhdfs.calls import PREFIX, Answer
from holdfast.webhdfs.carrying import Carrier
from holdfast.webhdfs.connection import ClientTooSlowError
from holdfast.webhdfs.exchange import Exchange, Receive, Send
from holdfast.webhdfs.failures import StandbyError, UnauthenticatedError, java_class_of, make_failure, status_of
from holdfast.webhdfs.operations import OPERATIONS, TRANSFERS, find_operation
from holdfast.webhdfs.refusals import RefusedError
from holdfast.webhdfs.settings import Limits
from holdfast.webhdfs.transfers import LEG, UploadCutError, iter_download, receive_upload

R = TypeVar("R")
_LOG = logging.getLogger("holdfast.webhdfs")
_CREATED = Answer(status=201)
_APPENDED = Answer()

_CLEANING_S = 10.0
"""How long a server that stops waits for files to be discarded, after it has cancelled their uploads."""

_STEP_S = 0.05

FindPage = Callable[[Exchange], "Answer | None"]
"""Returns what the server has at an address outside of WebHDFS; None for nothing. Runs in a thread."""


class CrossSiteError(StandbyError):
    """A page of another site sends the request. Open the page of this server."""

    java_class = "org.apache.hadoop.security.authorize.AuthorizationException"


class Application:
    """Serves one namespace: an application of ASGI.

    Args:
        find_page: for addresses outside of WebHDFS.
    """

    def __init__(self, carrier: Carrier, limits: Limits, log: AccessLog, find_page: FindPage) -> None:
        self._carrier = carrier
        self._clock = carrier.namespace.environment.clock
        self._limits = limits
        self._log = log
        self._find_page = find_page
        self._pool = LoopThreads(limits.threads, "request")
        self._uploads = asyncio.Semaphore(limits.uploads)
        self._in_flight = 0

    async def __call__(self, scope: Any, receive: Receive, send: Send) -> None:
        """Answer one request; uvicorn calls this."""
        exchange = Exchange.of(scope, receive, send, self._clock)
        self._in_flight += 1
        try:
            await self._answer(exchange)
        except (RequestAbandonedError, UploadCutError, ClientTooSlowError, asyncio.CancelledError) as error:
            # Cancelled: the server stops, and has waited long enough.
            if isinstance(error, UploadCutError):
                metrics.CUT_UPLOADS.inc()
            exchange.connection.abort()
        except HoldfastError as error:
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
            await exchange.answer(await self._run(functools.partial(self._answer_page, exchange)))
            return
        self._require_room(exchange)
        exchange.parse()
        if exchange.method not in OPERATIONS:
            raise RefusedError(
                f"{exchange.method} is not a method of WebHDFS", "java.lang.UnsupportedOperationException"
            )
        exchange.operation = find_operation(exchange.method, exchange.parameters)
        if exchange.operation not in TRANSFERS[exchange.method]:
            await exchange.answer(await self._run(functools.partial(self._carrier.carry_out, exchange)))
        elif not exchange.parameters.text(LEG):
            await self._redirect(exchange)
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
            raise StandbyError("the server stops: ask another one")
        if self._in_flight > self._limits.waiting:
            metrics.REFUSED.labels("request").inc()
            raise StandbyError("the server has too much to do: ask another one, or repeat later")
        origin = exchange.headers.get(b"origin", b"").decode("latin-1")
        if origin and origin.partition("://")[2] != exchange.host:
            raise CrossSiteError("a page of another site may not use this server", origin=origin[:100])

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
        await exchange.begin(200, {"content-length": str(length), "content-type": "application/octet-stream"})
        async for piece in iter_download(file, start, length, self._run):
            if exchange.is_gone:
                raise RequestAbandonedError
            exchange.sent_bytes += len(piece)
            await exchange.send_piece(piece, is_last=exchange.sent_bytes >= length)
        if not length:
            await exchange.send_piece(b"", is_last=True)

    async def _receive_file(self, exchange: Exchange) -> None:
        async def receive() -> Any:
            try:
                event = await asyncio.wait_for(exchange.receive(), self._limits.body_s)
            except asyncio.TimeoutError:
                raise ClientTooSlowError from None
            exchange.received_bytes += len(event.get("body", b""))
            return event

        async with self._uploads:
            metrics.UPLOADS.inc()
            try:
                writer = await self._run(functools.partial(self._carrier.open_upload, exchange))
                finish = functools.partial(self._carrier.finish_upload, exchange, writer)
                await receive_upload(writer, receive, self._run, finish)
            finally:
                metrics.UPLOADS.dec()
        await exchange.answer(_CREATED if exchange.operation == "CREATE" else _APPENDED)

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
            exchange.connection.abort()
            return
        if not isinstance(error, HoldfastError):
            document = make_failure("java.lang.RuntimeException", "the server has failed: see its log")
            await exchange.answer(Answer(status=500, document=document))
            return
        java_class = java_class_of(error)
        headers = {"www-authenticate": "Bearer"} if isinstance(error, UnauthenticatedError) else {}
        document = make_failure(java_class, str(error))
        await exchange.answer(Answer(status=status_of(error, java_class), document=document, headers=headers))

    def _note(self, exchange: Exchange) -> None:
        """Count and log a request."""
        operation, age_s = exchange.operation or "-", exchange.age_s()
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
