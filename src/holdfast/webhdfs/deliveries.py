"""Find out which answers have reached their clients, and publish it (`holdfast.namespace.receipts.AnswerBook`).

An answer has reached its client if the client then begins another request on the same connection, or closes the
connection in order; or if its kernel has acknowledged all bytes, and the connection still stands a moment later. (A
client that gives up resets the connection.) It is lost if the connection breaks before that. If the server itself ends
the connection, as a client may ask for, nothing more is heard of it: then the answer counts as delivered.

Behind a proxy, this is what the proxy has got: an answer that is lost between proxy and client counts as delivered.
"""

from __future__ import annotations

import fcntl
import struct
import termios
import threading
from collections import deque
from dataclasses import dataclass, replace
from typing import Protocol

from holdfast.namespace.keys import answers_key
from holdfast.namespace.receipts import KEPT_MS, LONGEST_REPEAT_MS, AnswerBook, delete_receipts
from holdfast.runtime import Clock
from holdfast.transactions.base import Backend, Commit

_STANDS_S = 0.2
"""How long a connection has to stand after its last byte was acknowledged."""

_PUBLISH_S = 60.0
_GROUP = 500
"""The most receipts that are deleted in one transaction."""


class AnsweredConnection(Protocol):
    """What must be known of a connection to tell whether an answer has reached its client.

    Attributes:
        is_lost, is_ended: whether it broke, or ended in order.
        requests: how many have begun on it.
    """

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
        number: among the answers of this process.
        key: of the receipt.
        requests: how many requests had begun on the connection when its last byte was written.
        sent_s: when that was, by the monotonic clock; None before.
        is_without_effect: whether nothing was changed, so that it does not matter whether it was delivered.
        was_delivered: None as long as it is not known.
    """

    number: int
    key: bytes
    connection: AnsweredConnection
    requests: int = 0
    sent_s: float | None = None
    is_without_effect: bool = False
    was_delivered: bool | None = None

    def note_sent(self, now_s: float) -> None:
        """Note that the whole answer was given to the connection."""
        connection = self.connection
        if connection.is_lost or connection.is_ended:
            self.was_delivered = self.is_without_effect
        else:
            self.requests, self.sent_s = connection.requests, now_s

    def observe(self, now_s: float) -> bool | None:
        """Look at the connection, and return whether the answer was delivered, as far as that is known."""
        if self.was_delivered is None:
            connection = self.connection
            if self.is_without_effect or (self.sent_s is not None and connection.requests > self.requests):
                self.was_delivered = True
            elif connection.is_lost:
                self.was_delivered = False
            elif self.sent_s is not None and connection.is_ended:
                self.was_delivered = True
            elif self.sent_s is not None and now_s - self.sent_s >= _STANDS_S:
                self.was_delivered = True if connection.unacknowledged_bytes() == 0 else None
        return self.was_delivered


class Deliveries:
    """The answers of this process to changes. All methods may be called from several threads.

    Attributes:
        server: the token of this process.
    """

    def __init__(self, database: Backend, clock: Clock, server: str) -> None:
        self.server = server
        self._database = database
        self._clock = clock
        self._lock = threading.Lock()
        self._publishing = threading.Lock()
        self._last = 0  # number
        self._answers: dict[int, SentAnswer] = {}  # those of which it is not known
        self._lost: dict[int, float] = {}  # with when that was, by the monotonic clock
        self._settled: deque[tuple[float, bytes, int]] = deque()  # whose receipts are deleted later
        self._published = AnswerBook()
        self._published_s = float("-inf")

    def expect(self, key: bytes, connection: AnsweredConnection) -> SentAnswer:
        """Return the answer to a change that is about to be carried out; its receipt has a key."""
        with self._lock:
            self._last += 1
            answer = self._answers[self._last] = SentAnswer(self._last, key, connection)
        return answer

    def was_delivered(self, number: int) -> bool | None:
        """Return whether an answer was delivered (True) or lost (False); None if that is not known yet."""
        answer = self._answers.get(number)
        if answer is not None:
            return answer.observe(self._clock.elapsed_s())
        return number not in self._lost

    def publish(self) -> None:
        """Publish what is known by now, and delete receipts that nobody needs anymore.

        Raises:
            HoldfastError: the database failed: call again.
        """
        with self._publishing:
            self._settle(self._clock.elapsed_s())
            with self._lock:
                book = AnswerBook(0, self._last, frozenset(self._answers), frozenset(self._lost))
            self._write(book)
            self._delete_receipts()

    def _settle(self, now_s: float) -> None:
        for number, answer in list(self._answers.items()):
            was_delivered = answer.observe(now_s)
            if was_delivered is None:
                continue
            if was_delivered is False:
                self._lost[number] = now_s
            del self._answers[number]
            if not answer.is_without_effect and was_delivered:
                self._settled.append((now_s, answer.key, number))
        for number, since_s in list(self._lost.items()):
            if now_s - since_s > LONGEST_REPEAT_MS / 1000:
                del self._lost[number]

    def _write(self, book: AnswerBook) -> None:
        now_s = self._clock.elapsed_s()
        if book == replace(self._published, at_ms=0) and now_s - self._published_s < _PUBLISH_S:
            return
        book = replace(book, at_ms=int(self._clock.now_s() * 1000))
        self._database.commit(Commit(puts={answers_key(self.server): book.encode()}))
        self._published, self._published_s = book, now_s

    def _delete_receipts(self) -> None:
        oldest_s = self._clock.elapsed_s() - KEPT_MS / 1000
        while self._settled and self._settled[0][0] < oldest_s:
            group: dict[bytes, int] = {}
            while self._settled and self._settled[0][0] < oldest_s and len(group) < _GROUP:
                _, key, number = self._settled.popleft()
                group[key] = number
            delete_receipts(self._database, self.server, group)


def unacknowledged_bytes(descriptor: int) -> int:
    """Return how many bytes of a socket its peer has not acknowledged; 1 if this system does not tell."""
    try:
        return int(struct.unpack("i", fcntl.ioctl(descriptor, termios.TIOCOUTQ, b"\0\0\0\0"))[0])
    except OSError:
        return 1
