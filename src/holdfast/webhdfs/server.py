"""Run the processes of a server: sockets, signals, and what starts and ends with a process.

Every process serves all requests by itself: nothing is shared but the listening socket and the database. uvicorn starts
the processes, and others in place of those that die.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import gc
import logging
import math
import os
import signal
import socket
import ssl
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import uvicorn
from uvicorn.supervisors import Multiprocess

from holdfast.errors import HoldfastError, InvalidRequestError, UnavailableError
from holdfast.namespace import open_namespace
from holdfast.runtime import SystemClock, repeat_in_thread
from holdfast.webhdfs.connection import Connection
from holdfast.webhdfs.settings import ServerSettings, check_settings
from holdfast.webhdfs.users_file import WatchedUsersFile

_LOG = logging.getLogger("holdfast.webhdfs")

_PUBLISH_S = 0.1
_DUTIES_S = 5.0
_HEALTH_S = 60
"""How long a process may be too busy to say that it lives."""

_COLLECT_EVERY = 10_000
"""After so many new objects, garbage is looked for: there is hardly any in cycles."""

_START_AGAIN_S = 2.0

_KEEP_ALIVE_S = 75
"""How long an idle connection stays. Java's closes its own after five seconds."""


# --- a process --------------------------------------------------------------------------------------------------------
class Service:
    """One process of a server: an application of ASGI that begins and ends with the process.

    Args:
        parent: the process that starts others in place of those that die; 0 for none.
    """

    def __init__(self, settings: ServerSettings, parent: int = 0) -> None:
        # What counts must be imported after `serve` has said where: prometheus_client looks once.
        from holdfast.webhdfs.access_log import AccessLog
        from holdfast.webhdfs.application import Application
        from holdfast.webhdfs.carrying import Carrier
        from holdfast.webhdfs.duties import Duties
        from holdfast.webhdfs.hadoop_tokens import KIND
        from holdfast.webhdfs.identities import Identities
        from holdfast.webhdfs.pages import Pages
        from holdfast.webhdfs.sites import SiteGate
        from holdfast.webhdfs.tokens import TokenStore

        self.limits = settings.limits
        self.connections = 0
        self._parent = parent
        self._users_file = WatchedUsersFile(settings.users_file)
        users = self._users_file.read()
        self._namespace = open_namespace(settings.url, database=settings.database, store_options=settings.store_options)
        database, environment = self._namespace.database, self._namespace.environment
        tokens = TokenStore(database, environment)
        self._identities = Identities(tokens, users, environment.clock, believes_names=settings.does_believe_names)
        kind = KIND if settings.certificate is None else f"S{KIND}"
        self._carrier = Carrier(self._namespace, self._identities, tokens, settings, kind)
        self._duties = Duties(self._namespace, tokens, settings, self._carrier.deliveries.server)
        self._log = AccessLog(settings.access_log)
        pages = Pages(self._carrier, settings)
        gate = SiteGate.of(settings)
        self._application = Application(self._carrier, settings.limits, self._log, pages.find, gate)
        self._running = contextlib.ExitStack()

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Answer a request, or begin and end with the process."""
        if scope["type"] == "http":
            await self._application(scope, receive, send)
        elif scope["type"] == "lifespan":
            with contextlib.suppress(asyncio.CancelledError):  # a second Ctrl-C: the process ends at once
                await self._live(receive, send)

    async def _live(self, receive: Any, send: Any) -> None:
        await receive()
        publishing = asyncio.create_task(self._publish_deliveries())
        self._running.enter_context(repeat_in_thread(self._follow_files, _DUTIES_S))
        self._running.enter_context(repeat_in_thread(self._duties.run_round, _DUTIES_S))  # it may take hours
        gc.freeze()  # what has been imported is not looked at again: a change takes an eighth less time
        gc.set_threshold(_COLLECT_EVERY)
        await send({"type": "lifespan.startup.complete"})
        await receive()
        await self._application.wait_until_idle()
        publishing.cancel()
        await asyncio.get_running_loop().run_in_executor(None, self._end)
        await send({"type": "lifespan.shutdown.complete"})

    def _follow_files(self) -> None:
        """Read the users again if their file has changed, and go on in a new log if the old one was renamed."""
        try:
            self._identities.users = self._users_file.read()
        except InvalidRequestError as error:
            _LOG.warning("the users stay as they were: %s", error)
        self._log.follow()

    async def _publish_deliveries(self) -> None:
        loop, is_waiting = asyncio.get_running_loop(), False
        while True:
            await asyncio.sleep(_PUBLISH_S)
            self._application.measure(self.connections)
            if self._parent not in (0, os.getppid()):
                signal.raise_signal(signal.SIGTERM)  # nobody replaces or stops this process anymore: free the port
            try:
                await loop.run_in_executor(None, self._carrier.deliveries.publish)
                is_waiting = False
            except HoldfastError as error:
                if not is_waiting:  # one line for each time that the database is away
                    _LOG.warning("the database does not answer, and is tried again: %s", error)
                is_waiting = True

    def _end(self) -> None:
        """End threads, leadership, and connections to the database."""
        self._duties.stop()
        self._running.close()
        for end in (self._carrier.deliveries.publish, self._duties.end, self._namespace.close):
            with contextlib.suppress(HoldfastError):
                end()
        self._application.close()
        self._log.close()


# --- the processes of a server ----------------------------------------------------------------------------------------
def serve(settings: ServerSettings, on_ready: Callable[[str], None]) -> None:
    """Serve a namespace until a signal ends it: SIGTERM and SIGINT let requests end first.

    Args:
        on_ready: called with the address once the socket listens.

    Raises:
        InvalidRequestError: certificates cannot be used, or the address does not exist.
        UnavailableError: another process has the port.
    """
    check_settings(settings)
    with contextlib.ExitStack() as stack:
        if settings.workers > 1:
            directory = stack.enter_context(tempfile.TemporaryDirectory(prefix="holdfast-metrics-"))
            os.environ["PROMETHEUS_MULTIPROC_DIR"] = directory  # the processes inherit it
            settings = replace(settings, metrics_directory=directory)
        listener = stack.enter_context(listen(settings.host, settings.port))
        settings = replace(settings, port=listener.getsockname()[1])
        config = make_config(settings)
        on_ready(address_of(settings))
        if settings.workers > 1:
            _Processes(config, [listener]).run()
        else:
            uvicorn.Server(config).run([listener])


class _Processes(Multiprocess):
    """The processes of a server. The signal that ends them ends this process, too, as it does without others."""

    def __init__(self, config: uvicorn.Config, sockets: list[socket.socket]) -> None:
        self._handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
        self._ended_by: int | None = None
        super().__init__(config, sockets)

    def run(self) -> None:
        super().run()
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, self._handlers[number])
        if self._ended_by is None:
            raise UnavailableError("a process of the server cannot start: see its message above")
        signal.raise_signal(self._ended_by)

    def handle_int(self) -> None:
        self._ended_by = signal.SIGINT
        super().handle_int()

    def handle_term(self) -> None:
        self._ended_by = signal.SIGTERM
        super().handle_term()


def _start(settings: ServerSettings, parent: int) -> Service:
    """Return the application of a process. One of several waits until it can start: the others go on."""
    if not parent:
        return Service(settings, parent)
    with _ended_by_signals():
        while True:
            try:
                return Service(settings, parent)
            except HoldfastError as error:
                _LOG.error("a process cannot start, and tries again: %s", error)
            SystemClock().sleep(_START_AGAIN_S)
            if os.getppid() != parent:
                raise SystemExit("the server has ended")


@contextlib.contextmanager
def _ended_by_signals() -> Iterator[None]:
    """Let signals end the process at once: uvicorn's handlers tell a loop that does not run yet."""
    numbers = (signal.SIGINT, signal.SIGTERM)
    handlers = [signal.signal(number, signal.SIG_DFL) for number in numbers]
    try:
        yield
    finally:
        for number, handler in zip(numbers, handlers, strict=True):
            signal.signal(number, handler)


def make_config(settings: ServerSettings) -> uvicorn.Config:
    """Return uvicorn's configuration of a process."""
    return uvicorn.Config(
        partial(_start, settings, os.getpid() if settings.workers > 1 else 0),
        factory=True,
        http=Connection,
        ws="none",
        lifespan="on",
        interface="asgi3",
        proxy_headers=False,
        server_header=False,
        access_log=False,
        log_config=None,
        log_level=logging.WARNING,
        workers=settings.workers,
        timeout_worker_healthcheck=_HEALTH_S,
        backlog=2048,
        timeout_keep_alive=_KEEP_ALIVE_S,
        timeout_graceful_shutdown=math.ceil(settings.limits.grace_s),
        ssl_certfile=settings.certificate,
        ssl_keyfile=settings.key,
        ssl_ca_certs=None if settings.client_ca is None else str(settings.client_ca),
        ssl_cert_reqs=ssl.CERT_NONE if settings.client_ca is None else ssl.CERT_OPTIONAL,
    )


def listen(host: str, port: int) -> socket.socket:
    """Return a listening socket.

    Raises:
        InvalidRequestError: the address does not exist here, or the port is for the administrator only.
        UnavailableError: another process has the port.
    """
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        return socket.create_server((host, port), family=family, backlog=2048)
    except (OSError, UnicodeError) as error:
        if isinstance(error, (socket.gaierror, UnicodeError)) or error.errno == errno.EADDRNOTAVAIL:
            raise InvalidRequestError("this machine has no such address: change the host", host=host) from error
        if isinstance(error, PermissionError):
            raise InvalidRequestError(
                "you may not open the port: choose one from 1024 on", host=host, port=port
            ) from error
        raise UnavailableError(
            "the port cannot be opened: choose another one, or stop what uses it", host=host, port=port
        ) from error


def address_of(settings: ServerSettings) -> str:
    """Return the address of a server, as its clients write it."""
    host = f"[{settings.shown_host}]" if ":" in settings.shown_host else settings.shown_host
    return f"http{'' if settings.certificate is None else 's'}://{host}:{settings.port}"
