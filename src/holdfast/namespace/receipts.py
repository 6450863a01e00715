"""Recognize a request of a server's client that arrives again because its answer was lost.

HTTP clients repeat a request if its connection breaks: Java's do it silently, and Hadoop's at another server too. The
request has no id. So the transaction of a change also writes a *receipt*, which says that the request took effect. Its
key stands for the client and all that the request says. Each process of a server numbers its answers, and publishes
which of them have reached their clients (`AnswerBook`): they are *delivered*, or *lost* if the connection broke before.
An equal request of the same client that finds a receipt

- is new if the answer was delivered: it runs, and its receipt replaces the other;
- is the repeat if the answer is lost, or if its server has said nothing for a few seconds, as a dead one, and if there
  is nothing to do: it gets the same answer, and its own answer is the one to deliver from then on;
- may be either if there is something to do again, because somebody has changed the path since: then it is refused, and
  the next one is new. To do it could undo what others have done; to say that it is done would not be true.

So there are never more answers of success than effects, whoever gets them; except if a process dies before it has
published that an answer was delivered, the client asks for the same again, and there is nothing to do. A request that
has an id, such as an upload, is never refused: whoever sends it again while its answer is lost repeats it.

An arrival may be slow, and its client may have repeated it elsewhere and gone on meanwhile. Its effect would come too
late. It has read the request's receipt, so its commit fails, unless it is more than `KEPT_MS` late; and before each try
it asks whether it is still wanted. Only if the server has not noticed that the connection broke, it is a new request
then.

A receipt has no answer in it: whatever changes the namespace for a client of a server has one possible answer, and what
changes nothing writes no receipt.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar, overload

from holdfast.errors import MALFORMED, HoldfastError, UnavailableError
from holdfast.namespace.errors import PathNotFoundError, RepeatUnclearError, XattrError
from holdfast.namespace.keys import ANSWERS, answers_key, kind_range
from holdfast.namespace.operation import Changes, Operation, OperationBatch, OperationContext, RequestAbandonedError
from holdfast.namespace.operations.attributes import SetXattr, stored_xattr_name
from holdfast.namespace.operations.base import ReadInode
from holdfast.namespace.operations.names import Delete, Rename
from holdfast.namespace.paths import ROOT, NsPath
from holdfast.namespace.permissions import Caller
from holdfast.namespace.phases import OperationRunner
from holdfast.namespace.view import ResolvedPath, View, scan_pages
from holdfast.transactions.base import Backend, Commit, Committed

R = TypeVar("R")

KEPT_MS = 2 * 60_000
"""How long a receipt is kept at least: for an arrival of the same request that is late."""

LONGEST_REPEAT_MS = 5 * 60_000
"""How long a receipt counts. Hadoop's client gives up after about two minutes."""

_PATIENCE_S = 3.0
"""How long a request waits for another server to say whether the answer to an equal one was delivered."""

ANSWER_STEP_S = 0.02
"""How long it waits before it looks again."""
_PAGE = 1000


class RequestRepeatedError(Exception):
    """The request took effect when it came first: answer as then. Not a `HoldfastError`: nothing went wrong.

    Args:
        content: see `Receipt`.
    """

    def __init__(self, content: str) -> None:
        super().__init__()
        self.content = content


@dataclass(frozen=True, slots=True)
class Receipt:
    """The record that a request took effect.

    Attributes:
        server: the token of the process that answered last.
        number: of that answer, among those of the process.
        at_ms: when that was, milliseconds since the epoch.
        content: what stands for the bytes that came with the request; empty for none. It has no space.
    """

    server: str
    number: int
    at_ms: int
    content: str = ""

    def encode(self) -> bytes:
        """Return the value of the record."""
        return f"2 {self.at_ms} {self.number} {self.server} {self.content}".encode()

    @staticmethod
    def decode(value: bytes) -> Receipt | None:
        """Decode the receipt in a record; None if it is damaged, or of another release: it counts as none."""
        try:
            version, at_ms, number, server, content = value.decode().split(" ")
            return Receipt(server, int(number), int(at_ms), content) if version == "2" else None
        except MALFORMED:
            return None

    def is_expired(self, now_ms: int) -> bool:
        """Return whether no repeat can come anymore. One from the far future, by a wrong clock, is expired too."""
        return abs(now_ms - self.at_ms) > LONGEST_REPEAT_MS

    @staticmethod
    def is_record_expired(value: bytes, now_ms: int) -> bool:
        """Return whether the record of a receipt is not needed anymore."""
        found = Receipt.decode(value)
        return found is None or found.is_expired(now_ms)


@dataclass(frozen=True, slots=True)
class AnswerBook:
    """What a process of a server says about its answers.

    Attributes:
        at_ms: when it was published, milliseconds since the epoch; again at least every minute.
        through: the number up to which all answers were delivered, but for those that follow.
        unknown: the numbers of those of which it is not known yet.
        lost: the numbers of those that were lost.
    """

    at_ms: int = 0
    through: int = 0
    unknown: Collection[int] = ()
    lost: Collection[int] = ()

    def encode(self) -> bytes:
        """Return the value of the record, as JSON."""
        return json.dumps([1, self.at_ms, self.through, sorted(self.unknown), sorted(self.lost)]).encode()

    @staticmethod
    def decode(value: bytes) -> AnswerBook:
        """Decode the book in a record; one that is damaged says nothing."""
        try:
            version, at_ms, through, unknown, lost = json.loads(value)
            if version == 1:
                return AnswerBook(int(at_ms), int(through), frozenset(map(int, unknown)), frozenset(map(int, lost)))
        except MALFORMED:
            pass
        return AnswerBook()

    @staticmethod
    def is_record_expired(value: bytes, now_ms: int) -> bool:
        """Return whether the record of a book is not needed anymore: all receipts of its process have expired."""
        return abs(now_ms - AnswerBook.decode(value).at_ms) > 2 * LONGEST_REPEAT_MS

    def was_delivered(self, number: int) -> bool | None:
        """Return whether an answer was delivered (True) or lost (False); None if that is not known."""
        if number in self.lost:
            return False
        return True if number <= self.through and number not in self.unknown else None


@dataclass(frozen=True, slots=True)
class ClientRequest:
    """One arrival of a request.

    Attributes:
        key: of its receipt, which equal requests of a client share: see `keys.receipt_key`.
        server: the token of this process.
        number: of the answer to this arrival; no other one of the process has it.
        has_id: whether only its own client can send an equal one, and does so only when it has the answer, or lost it.
        is_wanted: returns whether the client still waits for the answer.
        was_delivered: returns whether another answer of this process was delivered (True) or lost (False); None if that
            is not known yet.
        content: returns what stands for the bytes that have come with the request, for its receipt.
    """

    key: bytes
    server: str
    number: int
    has_id: bool = False
    is_wanted: Callable[[], bool] = lambda: True
    was_delivered: Callable[[int], bool | None] = lambda number: None
    content: Callable[[], str] = str


@dataclass(frozen=True, slots=True)
class _Earlier:
    """An equal request took effect before.

    Attributes:
        would_change: whether the operation would change something again.
    """

    receipt: Receipt
    would_change: bool


@dataclass(frozen=True, slots=True)
class _Once:
    """The operation of a request, with its receipt; the result is that of the operation, or `_Earlier`.

    Attributes:
        delivered: an earlier receipt whose answer is known to have been delivered.
    """

    operation: Operation[Any]
    request: ClientRequest
    delivered: Receipt | None = None

    @property
    def paths(self) -> Sequence[NsPath]:
        return self.operation.paths

    def extra_keys(self, chains: Sequence[ResolvedPath]) -> Collection[bytes]:
        return (*self.operation.extra_keys(chains), self.request.key)

    def extra_range(self, chains: Sequence[ResolvedPath]) -> tuple[bytes, bytes] | None:
        return self.operation.extra_range(chains)

    def execute(self, view: View, context: OperationContext) -> Changes[Any]:
        if not self.request.is_wanted():
            raise RequestAbandonedError
        value = view.value(self.request.key)
        earlier = None if value is None else Receipt.decode(value)
        if earlier is not None and self._may_be_repeated(earlier, context.now_ms):
            return Changes(_Earlier(earlier, self._would_change(view, context)))
        changes = self.operation.execute(view, context)
        if not changes.is_empty:
            made = Receipt(self.request.server, self.request.number, context.now_ms, self.request.content())
            changes.values[self.request.key] = made.encode()  # the view has the record, or that there is none
        return changes

    def _may_be_repeated(self, earlier: Receipt, now_ms: int) -> bool:
        return earlier != self.delivered and not earlier.is_expired(now_ms)

    def _would_change(self, view: View, context: OperationContext) -> bool:
        """Return whether the path is not as the operation has left it."""
        target = view.chains[0].target
        is_back = target is not None and isinstance(self.operation, (Delete, Rename))
        try:
            changes = self.operation.execute(view, context)
        except UnavailableError:
            raise
        except PathNotFoundError:  # it is not there, or what was added to it
            return is_back
        except XattrError:  # it was removed, or has the value
            assert isinstance(self.operation, SetXattr), "no other operation says so"
            name, wanted = stored_xattr_name(self.operation.name), self.operation.value
            return wanted is not None and (target is None or target.xattrs.get(name) != wanted)
        except HoldfastError:
            return True
        return is_back or changes.differs_from(view)


@dataclass(slots=True)
class RequestRunner(OperationRunner):
    """Runs the change that a request asks for at most once, however often the request arrives."""

    request: ClientRequest = None  # type: ignore[assignment]  # given by `of`
    has_taken_over: bool = False  # the answer to an earlier arrival, perhaps

    @staticmethod
    def of(runner: OperationRunner, request: ClientRequest) -> RequestRunner:
        """Return a runner for one request that shares database and caches with another runner."""
        return RequestRunner(
            runner.database,
            runner.environment,
            runner.hints,
            runner.times,
            runner.reclaim,
            runner.tries_without_locks,
            request,
        )

    @overload
    def run(self, operation: Operation[R], caller: Caller) -> R: ...

    @overload
    def run(self, operation: OperationBatch, caller: Caller) -> None: ...

    def run(self, operation: Operation[R] | OperationBatch, caller: Caller) -> R | None:
        """Run the operation of the request; for the guarantee and other errors, see `OperationRunner.run`.

        Raises:
            RequestRepeatedError: the request took effect before.
            RepeatUnclearError: it may have taken effect before; it did not now.
            RequestAbandonedError: the client does not wait for the answer anymore; nothing happened.
        """
        assert not isinstance(operation, OperationBatch), "a request changes one thing"
        clock, delivered = self.environment.clock, None
        begun_s = clock.elapsed_s()
        while True:
            once = _Once(operation, self.request, delivered)
            found = super(RequestRunner, self).run(once, caller)
            if not isinstance(found, _Earlier):
                return found  # type: ignore[no-any-return]  # the result of the operation
            earlier = found.receipt
            if (earlier.server, earlier.number) == (self.request.server, self.request.number):
                self._refuse_if_unclear(found, operation)
                raise RequestRepeatedError(earlier.content)  # an earlier try, whose outcome was unknown
            was_delivered = self._find_delivery(earlier)
            if was_delivered:
                delivered = earlier
            elif was_delivered is None and clock.elapsed_s() - begun_s < _PATIENCE_S:
                clock.sleep(ANSWER_STEP_S)
            elif self._take_over(earlier):
                self._refuse_if_unclear(found, operation)
                raise RequestRepeatedError(earlier.content)

    def once(self, operation: Operation[Any]) -> Operation[Any]:
        """Return the operation of the request with its receipt, for `OperationRunner.try_together`."""
        return _Once(operation, self.request)

    def require_new(self, caller: Caller) -> None:
        """Check that the request did not take effect before; for the errors, see `run`."""
        self.run(ReadInode(ROOT), caller)

    def _find_delivery(self, found: Receipt) -> bool | None:
        if found.server == self.request.server:
            return self.request.was_delivered(found.number)
        key = answers_key(found.server)
        record = self.database.get_many([key]).get(key)
        return None if record is None else AnswerBook.decode(record.value).was_delivered(found.number)

    def _refuse_if_unclear(self, found: _Earlier, operation: Operation[Any]) -> None:
        if self.has_taken_over and found.would_change and not self.request.has_id:
            raise RepeatUnclearError(
                "the server cannot tell whether this is the repeat of a request that has taken effect, and the path "
                "has been changed since: look, and ask again",
                path=str(operation.paths[0]),
            )

    def _take_over(self, found: Receipt) -> bool:
        """Make the answer to this arrival the one to deliver; return False if another arrival was first."""
        self.has_taken_over = True
        key = self.request.key
        record = self.database.get_many([key]).get(key)
        if record is None or Receipt.decode(record.value) != found:
            return False
        mine = replace(found, server=self.request.server, number=self.request.number, at_ms=self.now_ms())
        commit = Commit(reads={key: record.version}, puts={key: mine.encode()})
        return isinstance(self.database.commit(commit), Committed)


def delete_receipts(database: Backend, server: str, numbers: Mapping[bytes, int]) -> None:
    """Delete receipts of a process, given the number of the answer for each key, unless others have replaced them."""
    versions = {}
    for key, record in (database.get_many(numbers) if numbers else {}).items():
        found = Receipt.decode(record.value)
        if found is not None and (found.server, found.number) == (server, numbers[key]):
            versions[key] = record.version
    if versions:
        database.commit(Commit(reads=versions, deletes=versions))  # a conflict: a collection deletes them later


def delete_old_receipts(database: Backend, now_ms: int) -> None:
    """Delete the receipts of requests that cannot come again, and the books of dead processes. Safe at any time."""
    for (start, end), is_expired in (
        (kind_range(b"q"), Receipt.is_record_expired),
        ((ANSWERS, ANSWERS + b"\xff"), AnswerBook.is_record_expired),
    ):
        for page in scan_pages(database, start, end, _PAGE):
            gone = {key: record.version for key, record in page.records if is_expired(record.value, now_ms)}
            if gone:  # a conflict is a new request: the next call deletes the others
                database.commit(Commit(reads=gone, deletes=gone))
