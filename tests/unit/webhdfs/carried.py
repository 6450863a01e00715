"""Carry out requests as a server does, without HTTP: each comes on a connection of which the test knows what happens.

Worked composition::

    world = World()
    server = CarryingServer(world)
    first = server.receive("DELETE", "/f", "op=DELETE")
    assert server.answer(first) == TRUE
    first.connection.is_lost = True
"""

from __future__ import annotations

import asyncio
import contextlib
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, cast

from holdfast.transactions.base import Backend
from holdfast.webhdfs.access_log import AccessLog
from holdfast.webhdfs.application import Application
from holdfast.webhdfs.calls import PREFIX, Answer
from holdfast.webhdfs.carrying import Carrier
from holdfast.webhdfs.exchange import Exchange
from holdfast.webhdfs.identities import Identities
from holdfast.webhdfs.operations import find_operation
from holdfast.webhdfs.settings import Limits, ServerSettings
from holdfast.webhdfs.sites import SiteGate
from holdfast.webhdfs.tokens import TokenStore
from holdfast.webhdfs.users_file import UsersFile
from tests.namespace_world import SUPERUSER, World

__all__ = ["CarryingServer", "KnownConnection", "take_event"]


@dataclass
class KnownConnection:
    """A connection whose fate the test decides; it takes every answer.

    Attributes:
        unacknowledged: bytes that the client has not acknowledged.
    """

    is_lost: bool = False
    is_ended: bool = False
    is_draining: bool = False
    requests: int = 1
    unacknowledged: int = 1

    def unacknowledged_bytes(self) -> int:
        """Return what the test has said."""
        return self.unacknowledged

    hold_writes = staticmethod(contextlib.nullcontext)

    async def wait_for_room(self) -> None:
        """Take every answer at once."""

    def close_after_refusal(self) -> bool:
        """Return False: no client waits for permission."""
        return False


async def take_event(event: object) -> None:
    """Send nothing, to nobody."""


@dataclass
class CarryingServer:
    """What carries out the requests of a process of a server, for a namespace in memory."""

    world: World
    database: Backend | None = None
    carrier: Carrier = field(init=False)

    def __post_init__(self) -> None:
        namespace, environment = self.world.client(database=self.database), self.world.environment
        tokens = TokenStore(namespace.database, environment)
        identities = Identities(tokens, UsersFile(groups={}), environment.clock, believes_names=True)
        self.carrier = Carrier(namespace, identities, tokens, ServerSettings(url=""), "")

    def receive(
        self, method: str, path: str, query: str, *, user: str = SUPERUSER, client: str = "10.0.0.1"
    ) -> Exchange:
        """Return a request that has just come on a new connection, and is not carried out yet."""
        scope = {
            "client": (client, 40000),
            "headers": [(b"host", b"server:9870")],
            "method": method,
            "query_string": f"{query}&user.name={user}".encode(),
            "raw_path": f"{PREFIX}{path}".encode(),
            "state": {"connection": KnownConnection(), "certificate": None},
        }
        nothing = cast("Any", None)  # nothing is received or sent
        exchange = Exchange.of(scope, nothing, nothing, self.world.clock)
        exchange.parse()
        exchange.operation = find_operation(method, exchange.parameters)
        return exchange

    def answer(self, exchange: Exchange) -> Answer:
        """Carry out a request, tried together with others first if its operation is such a one."""
        if exchange.operation in ("MKDIRS", "RENAME", "DELETE"):
            (found,) = self.carrier.change_together([exchange])
            if found is not None:
                assert isinstance(found, Answer)
                return found
        return self.carrier.carry_out(exchange)

    def answer_and_lose(self, exchange: Exchange) -> Answer:
        """Carry out a request whose answer does not reach its client."""
        found = self.answer(exchange)
        exchange.connection.is_lost = True
        self.carrier.deliveries.publish()
        return found

    def upload(self, exchange: Exchange, data: bytes) -> None:
        """Carry out the second request of an upload."""
        writer = self.carrier.open_upload(exchange)
        exchange.received_bytes, exchange.checksum = len(data), zlib.crc32(data)
        if writer is None:
            self.carrier.require_same_content(exchange)
        else:
            self.carrier.finish_upload(exchange, writer, data)

    def answer_failure(self, exchange: Exchange, error: Exception) -> None:
        """Answer a request by an error, on a connection that takes it."""

        async def answer() -> None:
            with self.application() as ours:
                await ours._answer_failure(exchange, error)

        exchange.send = take_event
        asyncio.run(answer())

    @contextlib.contextmanager
    def application(self, limits: Limits | None = None) -> Iterator[Application]:
        """Return what sends the answers of this process; end its threads at the end."""
        gate = SiteGate.of(ServerSettings(url=""))
        found = Application(self.carrier, limits or Limits(), AccessLog(""), lambda exchange: None, gate)
        try:
            yield found
        finally:
            found.close()
