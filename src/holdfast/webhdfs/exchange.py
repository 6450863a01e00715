"""Hold what is known of one request while it is answered."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from holdfast.runtime import Clock
from holdfast.webhdfs.calls import PREFIX, Answer
from holdfast.webhdfs.connection import Connection
from holdfast.webhdfs.deliveries import SentAnswer
from holdfast.webhdfs.documents import encode
from holdfast.webhdfs.parameters import Parameters, check_host, decode_text

Receive = Callable[[], Awaitable[Any]]
Send = Callable[[Any], Awaitable[None]]


@dataclass(slots=True)
class Exchange:
    """A request and what was answered so far.

    Attributes:
        begun_s: when it came, by the monotonic clock.
        parameters, operation, path, user: what it asks for, as far as that is known.
        real_user: who acts for the user; empty for the user.
        delivery: of the answer to a change.
        is_outcome_unknown: whether a change may have taken effect although its call failed.
        checksum: of the bytes that were appended so far.
        stored: what an earlier arrival of this request has appended; None if there was none: see `content`.
        status: of the answer; 0 for none.
        received_bytes, sent_bytes: of the content of files.
    """

    scope: Mapping[str, Any] = field(repr=False)  # it has secrets
    receive: Receive
    send: Send
    clock: Clock
    begun_s: float
    parameters: Parameters = Parameters({})  # noqa: RUF009  # a frozen value
    operation: str = ""
    path: str = ""
    user: str = ""
    real_user: str = ""
    delivery: SentAnswer | None = None
    is_outcome_unknown: bool = False
    checksum: int = 0
    stored: str | None = None
    status: int = 0
    received_bytes: int = 0
    sent_bytes: int = 0
    headers: dict[bytes, bytes] = field(default_factory=dict, repr=False)

    @staticmethod
    def of(scope: Mapping[str, Any], receive: Receive, send: Send, clock: Clock) -> Exchange:
        """Return the exchange of a request that has just come."""
        return Exchange(scope, receive, send, clock, clock.elapsed_s(), headers=dict(scope["headers"]))

    @property
    def connection(self) -> Connection:
        """The connection on which the request came."""
        return self.scope["state"]["connection"]  # type: ignore[no-any-return]  # `Connection` puts itself there

    @property
    def method(self) -> str:
        """The method of HTTP."""
        return str(self.scope["method"])

    @property
    def client(self) -> str:
        """The address of the client."""
        return str(self.scope["client"][0]) if self.scope["client"] else ""

    @property
    def raw_path(self) -> bytes:
        """The path of the request as it came, percent-encoded."""
        return self.scope["raw_path"]  # type: ignore[no-any-return]  # by ASGI

    @property
    def host(self) -> str:
        """The server as the client has named it, with its port."""
        named = self.headers.get(b"host", b"").decode("latin-1")
        if named:
            return named
        host, port = self.scope["server"]
        return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"

    @property
    def is_gone(self) -> bool:
        """Whether nobody receives the answer anymore."""
        return self.connection.is_lost or self.connection.is_ended

    def content(self) -> str:
        """Return what stands for the bytes that have come: with others, it is another request, whatever its address."""
        return f"{self.received_bytes:x}-{self.checksum:x}"

    def age_s(self) -> float:
        """Return how long ago the request came."""
        return self.clock.elapsed_s() - self.begun_s

    def parse(self) -> None:
        """Parse parameters and path.

        Raises:
            RequestRefusedError: they are not UTF-8, or the client names the server in an impossible way.
        """
        check_host(self.host)
        self.parameters = Parameters.parse(self.scope["query_string"])
        self.path = decode_text(self.raw_path[len(PREFIX) :], "path").rstrip("/") or "/"

    def url_with(self, name: str, value: str) -> str:
        """Return the address of this very request with one more parameter."""
        query = self.scope["query_string"].decode("ascii")
        return f"{self.scope['scheme']}://{self.host}{self.raw_path.decode('ascii')}?{query}&{name}={value}"

    def note_no_effect(self) -> None:
        """Note that the change has failed: if it is known to have no effect, nobody needs to know whether the answer is
        delivered.
        """
        if self.delivery is not None and not self.is_outcome_unknown:
            self.delivery.is_without_effect = True

    def note_unknown_outcome(self) -> None:
        """Note that the client gets an error. If the change may have taken effect, its answer counts as lost."""
        if self.delivery is not None and self.is_outcome_unknown:
            self.delivery.was_delivered = False

    async def begin(self, status: int, headers: Mapping[str, str]) -> None:
        """Send status and headers.

        Raises:
            ClientTooSlowError: the client does not take its answers.
        """
        await self.connection.wait_for_room()
        self.status = status
        if self.connection.close_after_refusal():
            headers = {**headers, "connection": "close"}
        pairs = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in headers.items()]
        await self.send({"type": "http.response.start", "status": status, "headers": pairs})

    async def send_piece(self, piece: bytes, *, is_last: bool) -> None:
        """Send a part of a file."""
        self.sent_bytes += len(piece)
        await self.send({"type": "http.response.body", "body": piece, "more_body": not is_last})

    async def answer(self, answer: Answer) -> None:
        """Send a whole answer."""
        body = answer.body if answer.document is None else encode(answer.document)
        headers = {"content-length": str(len(body)), **answer.headers}
        if not body and answer.status in (200, 201):
            headers["content-type"] = "application/octet-stream"  # as HDFS says, and its tests check
        with self.connection.hold_writes():
            await self.begin(answer.status, headers)
            await self.send({"type": "http.response.body", "body": body})
        if self.delivery is not None:
            self.delivery.note_sent(self.clock.elapsed_s())
