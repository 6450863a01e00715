"""Find out which answers have reached their clients, and note it in their receipts (`holdfast.namespace.receipts`).

An answer has reached its client if the client sends another request on the same connection, or closes the connection in
order; or if its kernel has acknowledged all bytes, and the connection still stands a moment later. (A client that gives
up resets the connection.) It is lost if the connection breaks before that. If the server itself ends the connection, as
a client may ask for, nothing more is heard of it: then the answer counts as delivered.

Behind a proxy, this is what the proxy has got: an answer that is lost between proxy and client counts as delivered.
"""

from __future__ import annotations

import fcntl
import struct
import termios
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

from holdfast.namespace.receipts import Receipt, settle_receipts
from holdfast.runtime import Clock
from holdfast.transactions.base import Backend

_STANDS_S = 0.2
"""How long a connection has to stand after its last byte was acknowledged."""

_MOST = 1000
"""The most receipts that are settled in one step."""


class AnsweredConnection(Protocol):
    """What must be known of a connection to tell whether an answer has reached its client."""

    is_lost: bool
    is_ended: bool
    requests: int

    def unacknowledged_bytes(self) -> int:
        """Return how many bytes the client's kernel has not acknowledged."""
        ...


@dataclass(slots=True)
class SentAnswer:
    """The answer to a change.

    Attributes:
        key: of the receipt.
        origin: of the receipt.
        request: the number of the request on its connection.
        sent_s: when its last byte was written, by the monotonic clock; None before.
        is_delivered: None as long as it is not known.
    """

    key: bytes
    origin: str
    connection: AnsweredConnection
    request: int
    sent_s: float | None = None
    is_delivered: bool | None = None

    def observe(self, now_s: float) -> bool | None:
        """Look at the connection, and return whether the answer was delivered, as far as that is known."""
        if self.is_delivered is None:
            if self.connection.is_lost and self.connection.requests == self.request:
                self.is_delivered = False
            elif self.sent_s is not None and (self.connection.requests > self.request or self.connection.is_ended):
                self.is_delivered = True
            elif self.sent_s is not None and now_s - self.sent_s >= _STANDS_S:
                self.is_delivered = True if self.connection.unacknowledged_bytes() == 0 else None
        return self.is_delivered


class Deliveries:
    """The answers of this process whose receipts are not settled. All methods may be called from several threads.

    Attributes:
        server: the token of this process.
    """

    def __init__(self, database: Backend, clock: Clock, server: str) -> None:
        self.server = server
        self._database = database
        self._clock = clock
        self._answers: dict[int, SentAnswer] = {}  # each by itself: one origin may be answered twice

    def expect(self, answer: SentAnswer) -> None:
        """Note that a change is carried out, and will be answered."""
        self._answers[id(answer)] = answer

    def forget(self, answer: SentAnswer) -> None:
        """Note that the change did not take effect."""
        self._answers.pop(id(answer), None)

    def find(self, receipt: Receipt) -> bool | None:
        """Return whether an answer to the request of a receipt was delivered; None if that is not known yet."""
        now_s = self._clock.elapsed_s()
        seen = [one.observe(now_s) for one in list(self._answers.values()) if one.origin == receipt.origin]
        if any(seen):
            return True
        return False if seen and all(one is False for one in seen) else None

    def settle(self) -> int:
        """Note in the database what is known by now; return how many answers that were.

        Raises:
            HoldfastError: the database failed: call again.
        """
        known = list(self._iter_known())[:_MOST]
        answers: dict[bytes, tuple[str, bool]] = {}
        for one in known:
            earlier = answers.get(one.key)
            if earlier is None or not (earlier[0] == one.origin and earlier[1]):
                answers[one.key] = (one.origin, bool(one.is_delivered))
        settle_receipts(self._database, answers, self.server)
        for one in known:
            self.forget(one)
        return len(known)

    def _iter_known(self) -> Iterator[SentAnswer]:
        now_s = self._clock.elapsed_s()
        for one in list(self._answers.values()):
            if one.observe(now_s) is not None:
                yield one


def unacknowledged_bytes(descriptor: int) -> int:
    """Return how many bytes of a socket its peer has not acknowledged; 1 if this system does not tell."""
    try:
        return int(struct.unpack("i", fcntl.ioctl(descriptor, termios.TIOCOUTQ, b"\0\0\0\0"))[0])
    except OSError:
        return 1
