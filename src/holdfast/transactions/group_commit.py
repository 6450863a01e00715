"""Let the concurrent callers of one process share round trips and flushes to disk.

One of the callers leads: it runs the requests of all that wait. A single caller pays one uncontended lock, and there is
no thread that all would have to wake. The main thread takes no part, because handlers of signals, such as Ctrl-C, raise
there between any two instructions: it sends its own requests, so no caller waits for a leader that was interrupted.

No caller pays for another member of its group: if others hold a lock that one member needs, or one is refused, each
goes on alone.

Source: "group commit" in databases; the leader-follower form in W. N. Scherer et al. and in LevelDB's writer queue.
"""

from __future__ import annotations

import copy
import threading
from collections.abc import Callable, Collection, Sequence
from contextlib import AbstractContextManager
from itertools import islice
from typing import Generic, TypeVar

from holdfast.errors import HoldfastError, InvalidRequestError, UnavailableError
from holdfast.runtime import Clock, SystemClock
from holdfast.runtime.process import ForkAwareObject
from holdfast.transactions.base import Backend, Commit, LockingTransaction, Outcome, Record, ScanPage, SnapshotReader
from holdfast.transactions.pool import FairSemaphore
from holdfast.transactions.validation import count_independent, keys_of_commit

Q = TypeVar("Q")
A = TypeVar("A")
E = TypeVar("E", bound=BaseException)

_MOST_COMMITS = 128
"""Size of a group. Larger groups gain little (facts: 64 inserts in one transaction cost what 20 cost one by one)."""

_MOST_BYTES = 32 * 1024 * 1024
"""Values of a group: large ones gain nothing from each other, and messages to a database are limited."""

_MOST_READS = 64
_READERS = 2
"""How many groups of reads are on their way to the database at the same time. Commits go in one group at a time."""

_LONGEST_GATHERING_S = 0.005
_PATIENCE_S = 1.0
"""How long a group waits for a lock that another process holds: no commit should hold one so long."""

_HURRY_S = 0.01
"""The same for each member by itself, to find out which of them have to wait. MySQL waits for a second at least."""

_BESIDE = 2
"""How many commits that others hold up go on at the same time. The rest of the connections serve the others."""

_LONGEST_WAIT_S = 30.0


class GroupCommit(Backend):
    """Wraps a database, and sends the concurrent commits and reads of this process's threads to it in groups.

    Guarantee: each caller has the guarantees of the inner database. A conflict affects only its own caller; a lock that
    is held for long delays only the commits that need it, and others by about `_PATIENCE_S`.
    """

    def __init__(self, inner: Backend, clock: Clock | None = None) -> None:
        self._inner = inner
        self.reads_ahead = inner.reads_ahead
        self._clock = clock or SystemClock()
        self._commits: RequestCombiner[Commit, Outcome | None] = RequestCombiner(
            self._commit_as_group, limit=_MOST_COMMITS, take=_count_groupable_commits, clock=self._clock
        )
        self._reads: RequestCombiner[Collection[bytes], dict[bytes, Record] | None] = RequestCombiner(
            self._read_together, limit=_MOST_READS, leaders=_READERS
        )
        self._beside = FairSemaphore(max(1, min(_BESIDE, inner.connections - 1)))  # leaves a connection for the others
        self._held: frozenset[bytes] = frozenset()  # keys of commits that wait, because others hold one of them

    # --- reads --------------------------------------------------------------------------------------------------------
    def _read_together(self, requests: list[Collection[bytes]]) -> Sequence[dict[bytes, Record] | None]:
        """Read for several callers; None if each has to read by itself, because one of them is refused."""
        if len(requests) == 1:
            return [self._inner.get_many(requests[0])]
        try:
            found = self._inner.get_many({key for keys in requests for key in keys})
        except InvalidRequestError:
            return [None] * len(requests)
        return [{key: found[key] for key in keys if key in found} for keys in requests]

    def get_many(self, keys: Collection[bytes]) -> dict[bytes, Record]:
        found = None if _is_main_thread() else self._reads.submit(keys)
        return self._inner.get_many(keys) if found is None else found

    def scan(self, start: bytes, end: bytes, limit: int, guards: Collection[bytes] = ()) -> ScanPage:
        return self._inner.scan(start, end, limit, guards)

    # --- commits ------------------------------------------------------------------------------------------------------
    def commit(self, commit: Commit) -> Outcome:
        if _is_main_thread():
            return self._inner.commit(commit)
        is_free = not self._held or self._held.isdisjoint(keys_of_commit(commit))
        outcome = self._commits.submit(commit) if is_free else None
        return self._commit_outside_group(commit) if outcome is None else outcome

    def commit_group(self, commits: Sequence[Commit]) -> list[Outcome]:
        return self._inner.commit_group(commits)

    def commit_and_read(self, commit: Commit, keys: Collection[bytes]) -> tuple[Outcome, dict[bytes, Record] | None]:
        return self._inner.commit_and_read(commit, keys) if _is_main_thread() else (self.commit(commit), None)

    def _commit_as_group(self, commits: Sequence[Commit]) -> Sequence[Outcome | None]:
        """Commit a group; return None for each member if one is refused, or has to wait for a lock of others."""
        if len(commits) == 1:
            return self._inner.try_commit_group(commits, _PATIENCE_S) or [None]
        try:
            found = self._inner.try_commit_group(commits, _PATIENCE_S)
        except InvalidRequestError:  # nothing was sent; a mistake of one caller does not reach the others
            found = None
        return found or [None] * len(commits)

    def _commit_outside_group(self, commit: Commit) -> Outcome:
        """Commit beside the groups. If others hold a lock, wait for it as long as the database does."""
        found = self._inner.try_commit_group([commit], _HURRY_S)
        if found is not None:
            self._held -= keys_of_commit(commit)  # others hold none of these
            return found[0]
        self._held |= keys_of_commit(commit)
        with self._beside.hold(self._clock, _LONGEST_WAIT_S) as is_held:
            if not is_held:
                raise UnavailableError("too many commits wait for records that others hold: repeat later")
            try:
                return self._inner.commit(commit)
            finally:
                self._held = frozenset()  # whether others hold them still, the next group finds out

    # --- the rest -----------------------------------------------------------------------------------------------------
    def snapshot(self) -> AbstractContextManager[SnapshotReader]:
        return self._inner.snapshot()

    def begin_locking_transaction(self) -> AbstractContextManager[LockingTransaction]:
        return self._inner.begin_locking_transaction()

    def make_durable(self) -> None:
        self._inner.make_durable()

    def close(self) -> None:
        self._inner.close()


def _is_main_thread() -> bool:
    return threading.get_ident() == threading.main_thread().ident


def _count_groupable_commits(commits: Sequence[Commit]) -> int:
    """Return how many transactions from the start of the list may form a group: at least one."""
    size = 0
    if len(commits) == 1:
        return 1
    for number, commit in enumerate(commits):
        size += sum(map(len, commit.inserts.values())) + sum(map(len, commit.puts.values()))
        if number and size > _MOST_BYTES:
            return count_independent(commits[:number])
    return count_independent(commits)


class _QueuedRequest(Generic[Q, A]):
    """A request, and its caller.

    Attributes:
        wake: the lock on which the caller sleeps; released with the answer, or with the lead.
        leads: whether the caller has the lead, or is about to get it.
    """

    __slots__ = ("answer", "error", "is_done", "leads", "request", "wake")

    def __init__(self, request: Q) -> None:
        self.request = request
        self.answer: A | None = None
        self.error: BaseException | None = None
        self.is_done = False
        self.leads = False
        self.wake = threading.Lock()
        self.wake.acquire()


class RequestCombiner(ForkAwareObject, Generic[Q, A]):
    """Runs a function over batches of requests that several threads submit concurrently.

    A caller that finds no leader becomes the leader: it runs the function over all waiting requests, up to the limit,
    and wakes their callers. Then the first caller that is still waiting becomes the leader. Not for the main
    thread: an interrupt must not strike a caller.

    Args:
        run: called with requests, returns their answers in the same order. If it raises, all callers of the batch get
            the error.
        limit: the most requests in a batch.
        take: returns how many requests, from the start of the list, may form a batch: at least one.
        leaders: how many batches run at the same time.
        clock: if given, a leader waits until as many requests have come as the last batch had, at most as long as that
            batch took. Otherwise, the first caller to return after a batch would run alone while all others wait: every
            second batch would have one request.
    """

    def __init__(
        self,
        run: Callable[[list[Q]], Sequence[A]],
        *,
        limit: int,
        take: Callable[[list[Q]], int] = len,
        leaders: int = 1,
        clock: Clock | None = None,
    ) -> None:
        self._run = run
        self._limit = limit
        self._take = take
        self._leaders = leaders
        self._clock = clock
        super().__init__()

    def _renew(self) -> None:
        self._mutex = threading.Lock()
        self._queue: list[_QueuedRequest[Q, A]] = []
        self._leading = 0
        self._gathering: _QueuedRequest[Q, A] | None = None
        self._last_size = 1
        self._last_s = 0.0

    def submit(self, request: Q) -> A:
        """Wait until a batch with this request has run; return the request's answer, or raise the run's error."""
        own: _QueuedRequest[Q, A] = _QueuedRequest(request)
        with self._mutex:
            self._queue.append(own)
            if self._leading < self._leaders:
                self._leading += 1
                own.leads = True
            gathering = self._gathering if len(self._queue) >= self._last_size else None
        if gathering is not None:
            _wake_caller(gathering)
        if not own.leads:
            own.wake.acquire()
        if not own.is_done:
            self._run_batches_as_leader(own)
        if own.error is not None:
            raise own.error
        return own.answer  # type: ignore[return-value]  # set when the request is done

    def _run_batches_as_leader(self, own: _QueuedRequest[Q, A]) -> None:
        """Run batches until the own request is done, then hand over the lead."""
        while not own.is_done:
            if self._clock is not None and len(self._queue) < self._last_size:
                self._wait_for_previous_callers(own)
            with self._mutex:
                batch = self._take_batch(own)
            self._run_batch(batch, own)
        with self._mutex:
            successor = next((one for one in self._queue if not one.leads), None)
            if successor is None:
                self._leading -= 1
            else:
                successor.leads = True
        if successor is not None:
            _wake_caller(successor)

    def _wait_for_previous_callers(self, own: _QueuedRequest[Q, A]) -> None:
        """Wait for the callers of the last batch. Whoever completes them wakes this one."""
        with self._mutex:
            if len(self._queue) >= self._last_size:
                return
            self._gathering = own
        own.wake.acquire(timeout=min(self._last_s, _LONGEST_GATHERING_S))
        self._gathering = None

    def _take_batch(self, own: _QueuedRequest[Q, A]) -> Sequence[_QueuedRequest[Q, A]]:
        """Take a batch off the queue: what other leaders will not answer, the oldest first."""
        if self._queue == [own]:
            self._queue = []
            return [own]
        waiting = list(islice((one for one in self._queue if one is own or not one.leads), self._limit))
        batch = waiting[: self._take([one.request for one in waiting])]
        taken = set(map(id, batch))
        self._queue = [one for one in self._queue if id(one) not in taken]
        return batch

    def _run_batch(self, batch: Sequence[_QueuedRequest[Q, A]], own: _QueuedRequest[Q, A]) -> None:
        begun_s = 0.0 if self._clock is None else self._clock.elapsed_s()
        try:
            answers = self._run([one.request for one in batch])
            for one, answer in zip(batch, answers, strict=True):
                one.answer = answer
        except BaseException as error:  # noqa: BLE001  # it is raised to each caller
            for one in batch:
                one.error = error if one is own else copy_error(error)
        if self._clock is not None:
            self._last_size, self._last_s = len(batch), self._clock.elapsed_s() - begun_s
        for one in batch:
            one.is_done = True
            if one is not own:
                _wake_caller(one)


def _wake_caller(entry: _QueuedRequest[Q, A]) -> None:
    try:  # noqa: SIM105  # `suppress` takes four times as long, and this runs for each caller of a batch
        entry.wake.release()
    except RuntimeError:  # it was woken already
        pass


def copy_error(error: E) -> E:
    """Return a copy of a `HoldfastError` to raise in another thread: two threads must not add tracebacks to one object.

    Any other error is returned itself, since it may be impossible to copy.
    """
    if not isinstance(error, HoldfastError):
        return error
    twin = copy.copy(error)
    twin.__cause__ = error.__cause__
    return twin
