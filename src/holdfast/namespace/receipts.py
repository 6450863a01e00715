"""Recognize a request of a server's client that arrives again because its answer was lost.

HTTP clients repeat a request if its connection breaks: Java's do it silently, and Hadoop's at another server too. The
request has no id. So the transaction of a change also writes a *receipt*, which says that the request took effect. Its
key stands for the client and the path: a client has at most one there, that of its newest change. Later, the server
notes in it whether the answer has reached the client (it is *delivered*), or whether the connection broke before (it is
*owed*). An equal request of the same client that finds a receipt

- is new if the answer was delivered: it runs, and its receipt replaces the other;
- is the repeat if the answer is owed, or if its server has said nothing for a few seconds, as a dead one: it gets the
  same answer without another effect, and its own answer is the one to deliver from then on.

So there are never more answers of success than effects, whoever gets them. Another change of the same client at the
same path also shows that the client has got its answer: it replaces the receipt.

An arrival may be slow, and its client may have repeated it elsewhere and gone on meanwhile. Its effect would come too
late. It has read the client's receipt there, so its commit fails, unless it is more than `KEPT_MS` late; and before
each try it asks whether it is still wanted.

A receipt has no answer in it: whatever changes the namespace for a client of a server has one possible answer, and what
changes nothing writes no receipt.
"""

from __future__ import annotations

import enum
import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, TypeVar, overload

from holdfast.errors import MALFORMED
from holdfast.namespace.operation import Changes, Operation, OperationBatch, OperationContext
from holdfast.namespace.paths import NsPath
from holdfast.namespace.permissions import Caller
from holdfast.namespace.phases import OperationRunner
from holdfast.namespace.view import ResolvedPath, View
from holdfast.transactions.base import Backend, Commit, Committed

R = TypeVar("R")

KEPT_MS = 2 * 60_000
"""How long the receipt of a delivered answer is kept for an arrival of the same request that is late."""

LONGEST_REPEAT_MS = 10 * 60_000
"""How long other receipts count. Hadoop's client gives up after about two minutes."""

_PATIENCE_S = 3.0
"""How long a request waits for another server to say whether the answer to an equal one was delivered."""

_STEP_S = 0.02
_GROUP = 100


class RequestRepeatedError(Exception):
    """The request took effect when it came first: answer as then. Not a `HoldfastError`: nothing went wrong.

    Attributes:
        origin: see `Receipt`.
    """

    def __init__(self, origin: str) -> None:
        super().__init__(origin)
        self.origin = origin


class RequestAbandonedError(Exception):
    """Nobody waits for the answer anymore, so nothing was done. Not a `HoldfastError`: there is nobody to tell."""


class AnswerState(str, enum.Enum):
    """What the server knows about the answer to a request."""

    SENT = "sent"
    OWED = "owed"
    DELIVERED = "delivered"


@dataclass(frozen=True, slots=True)
class Receipt:
    """The record that a request took effect.

    Attributes:
        request: what was asked; equal for equal requests, and empty if it only shows that the client has gone on.
        origin: the token of the arrival that took effect.
        server: the token of the process that answered last.
        at_ms: when that was, milliseconds since the epoch.
        state: of that answer.
    """

    request: str
    origin: str
    server: str
    at_ms: int
    state: AnswerState = AnswerState.SENT

    def encode(self) -> bytes:
        """Return the value of the record, as JSON."""
        values = {one.name: getattr(self, one.name) for one in fields(self)}
        return json.dumps(values, separators=(",", ":")).encode()

    @staticmethod
    def decode(value: bytes) -> Receipt | None:
        """Decode the receipt in a record; None if it is damaged: it counts as none, and is replaced."""
        try:
            found = json.loads(value)
            request, origin, server = (str(found[name]) for name in ("request", "origin", "server"))
            return Receipt(request, origin, server, int(found["at_ms"]), AnswerState(found["state"]))
        except MALFORMED:
            return None

    def is_expired(self, now_ms: int) -> bool:
        """Return whether neither a repeat nor a late arrival can come anymore. One from the far future, by a wrong
        clock, is expired too.
        """
        most_ms = KEPT_MS if self.state is AnswerState.DELIVERED else LONGEST_REPEAT_MS
        return abs(now_ms - self.at_ms) > most_ms


@dataclass(frozen=True, slots=True)
class ClientRequest:
    """One arrival of a request.

    Attributes:
        key: of its receipt; see `keys.receipt_key`.
        request: what it asks for, as a text that differs for different requests of this key.
        origin: a token that no other arrival has.
        server: a token of this process.
        others: the keys of the client's receipts at the other paths that it changes.
    """

    key: bytes
    request: str
    origin: str
    server: str
    others: tuple[bytes, ...] = ()


@dataclass(frozen=True, slots=True)
class _Once:
    """The operation of a request, with its receipt; the result is that of the operation, or the receipt of an equal
    request that took effect before.

    Attributes:
        is_wanted: returns whether the client still waits for the answer.
        delivered: the origin of an earlier receipt whose answer is known to have been delivered.
    """

    operation: Operation[Any]
    request: ClientRequest
    is_wanted: Callable[[], bool]
    delivered: str = ""

    @property
    def paths(self) -> Sequence[NsPath]:
        return self.operation.paths

    def extra_keys(self, chains: Sequence[ResolvedPath]) -> Collection[bytes]:
        return (*self.operation.extra_keys(chains), self.request.key)

    def extra_range(self, chains: Sequence[ResolvedPath]) -> tuple[bytes, bytes] | None:
        return self.operation.extra_range(chains)

    def execute(self, view: View, context: OperationContext) -> Changes[Any]:
        if not self.is_wanted():
            raise RequestAbandonedError
        request, value = self.request, view.value(self.request.key)
        earlier = None if value is None else Receipt.decode(value)
        if earlier is not None and self._may_be_repeated(earlier, context.now_ms):
            return Changes(earlier)
        changes = self.operation.execute(view, context)
        if not changes.is_empty:
            made = Receipt(request.request, request.origin, request.server, context.now_ms)
            values = changes.new_values if value is None else changes.values
            values[request.key] = made.encode()
            blank = replace(made, request="", state=AnswerState.DELIVERED).encode()
            changes.values.update({key: blank for key in request.others if key != request.key})
        return changes

    def _may_be_repeated(self, earlier: Receipt, now_ms: int) -> bool:
        is_settled = earlier.state is AnswerState.DELIVERED or earlier.origin == self.delivered
        return earlier.request == self.request.request and not is_settled and not earlier.is_expired(now_ms)


@dataclass(slots=True)
class RequestRunner(OperationRunner):
    """Runs the change that a request asks for at most once, however often the request arrives.

    Attributes:
        request: the arrival.
        is_wanted: returns whether its client still waits for the answer.
        find_delivery: returns whether the answer to the request of a receipt of this process was delivered (True) or
            lost (False); None if that is not known yet.
    """

    request: ClientRequest = None  # type: ignore[assignment]  # given by `of`
    is_wanted: Callable[[], bool] = lambda: True
    find_delivery: Callable[[Receipt], bool | None] = lambda receipt: None

    @staticmethod
    def of(
        runner: OperationRunner,
        request: ClientRequest,
        is_wanted: Callable[[], bool],
        find_delivery: Callable[[Receipt], bool | None],
    ) -> RequestRunner:
        """Return a runner for one request that shares database and caches with another runner."""
        shared = {one.name: getattr(runner, one.name) for one in fields(OperationRunner)}
        return RequestRunner(**shared, request=request, is_wanted=is_wanted, find_delivery=find_delivery)

    @overload
    def run(self, operation: Operation[R], caller: Caller) -> R: ...

    @overload
    def run(self, operation: OperationBatch, caller: Caller) -> None: ...

    def run(self, operation: Operation[R] | OperationBatch, caller: Caller) -> R | None:
        """Run the operation of the request; for the guarantee and other errors, see `OperationRunner.run`.

        Raises:
            RequestRepeatedError: the request took effect before.
            RequestAbandonedError: the client does not wait for the answer anymore; nothing happened.
        """
        assert not isinstance(operation, OperationBatch), "a request changes one thing"
        clock, delivered = self.environment.clock, ""
        begun_s, seen = clock.elapsed_s(), None
        while True:
            once = _Once(operation, self.request, self.is_wanted, delivered)
            found = super(RequestRunner, self).run(once, caller)
            if not isinstance(found, Receipt):
                return found  # type: ignore[no-any-return]  # the result of the operation
            if found.origin == self.request.origin:
                raise RequestRepeatedError(found.origin)  # an earlier try, whose outcome was unknown
            if found != seen:
                begun_s, seen = clock.elapsed_s(), found
            is_delivered = self._find_delivery(found)
            if is_delivered:
                delivered = found.origin
            elif is_delivered is None and clock.elapsed_s() - begun_s < _PATIENCE_S:
                clock.sleep(_STEP_S)
            elif self._take_over(found):
                raise RequestRepeatedError(found.origin)

    def _find_delivery(self, found: Receipt) -> bool | None:
        if found.state is AnswerState.OWED:
            return False
        return self.find_delivery(found) if found.server == self.request.server else None

    def _take_over(self, found: Receipt) -> bool:
        """Make the answer to this arrival the one to deliver; return False if another arrival was first."""
        key = self.request.key
        record = self.database.get_many([key]).get(key)
        if record is None or Receipt.decode(record.value) != found:
            return False
        mine = replace(found, server=self.request.server, at_ms=self.now_ms(), state=AnswerState.SENT)
        commit = Commit(reads={key: record.version}, puts={key: mine.encode()})
        return isinstance(self.database.commit(commit), Committed)


def settle_receipts(database: Backend, answers: Mapping[bytes, tuple[str, bool]], server: str) -> None:
    """Note which answers were delivered, and which ones are lost.

    Receipts that another request has replaced, or whose answer another server gives again, are left alone.

    Args:
        answers: for the keys of receipts: their origins, and whether the answer was delivered.
        server: this process.
    """
    records = database.get_many(answers) if answers else {}
    commits = []
    for key, record in records.items():
        found, (origin, is_delivered) = Receipt.decode(record.value), answers[key]
        if found is None or found.origin != origin or found.state is AnswerState.DELIVERED:
            continue
        if is_delivered or found.server == server:
            state = AnswerState.DELIVERED if is_delivered else AnswerState.OWED
            commits.append(Commit(reads={key: record.version}, puts={key: replace(found, state=state).encode()}))
    for start in range(0, len(commits), _GROUP):
        database.commit_group(commits[start : start + _GROUP])  # a conflict is a newer request of the client


def iter_expired_receipts(records: Iterable[tuple[bytes, bytes]], now_ms: int) -> Iterator[bytes]:
    """Yield the keys of those receipts, given by key and value, that are not needed anymore."""
    for key, value in records:
        found = Receipt.decode(value)
        if found is None or found.is_expired(now_ms):
            yield key
