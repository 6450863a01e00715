"""Let the concurrent callers of one process share round trips and flushes to disk.

Nobody pays for another member of a group: if others hold a lock that one member needs, or one is refused, the rest goes
on without it, and it goes on alone.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Sequence
from contextlib import AbstractContextManager, suppress
from enum import Enum
from typing import TypeAlias

from holdfast.errors import HoldfastError, InvalidRequestError, UnavailableError
from holdfast.runtime import Clock, SystemClock
from holdfast.transactions.base import (
    Backend,
    Commit,
    LockedTransaction,
    NoWaitBackend,
    Outcome,
    Record,
    ScanPage,
    SnapshotReader,
    independent,
    keys_of,
)
from holdfast.transactions.combining import Combiner, copy_of
from holdfast.transactions.seats import Seat, Seats

_MOST_COMMITS = 128
"""Size of a group. Larger groups gain little (facts: 64 inserts in one transaction cost what 20 cost one by one)."""

_MOST_BYTES = 32 * 1024 * 1024
"""Values of a group: large ones gain nothing from each other, and messages to a database are limited."""

_MOST_READS = 64
_PATIENCE_S = 1.0
"""How long a group waits for a lock that somebody outside of this process holds: no commit should hold one so long."""

_SHORT_S, _HURRY_S = 0.1, 0.01
"""The same while the group looks for the members that have to wait: for many members, and for one."""

_SEARCH_S = 3.0
"""How long it looks for them at most. MySQL waits for a lock for a second at least."""

_BESIDE = 2
"""How many commits that others hold up go on at the same time. The rest of the connections serve the others."""

_LONGEST_WAIT_S = 30.0


class _Way(Enum):
    """How a member of a group goes on that was not committed with it."""

    ALONE = "by itself"
    BESIDE = "by itself, when few others wait for locks that are held"


_Answer: TypeAlias = Outcome | HoldfastError | _Way


class GroupCommit:
    """A database that holds another one, and commits and reads concurrent requests together.

    Guarantee: the same as that of the inner database, for each caller. A conflict costs only the caller that has it
    and a lock that others hold for long delays only those who need it, apart from `_PATIENCE_S`.

    Args:
        committers: how many groups are on their way to the database at the same time. Two keep it busy while the next
            group is made.
        readers: the same for groups of reads.
        connections: how many the inner database has at most; commits that wait for locks leave the others one at least,
            if there are two.
    """

    def __init__(
        self,
        inner: Backend,
        *,
        committers: int = 1,
        readers: int = 2,
        connections: int = 8,
        clock: Clock | None = None,
    ) -> None:
        self._inner = inner
        self._hasty = inner if isinstance(inner, NoWaitBackend) else None
        self._clock = clock or SystemClock()
        self._commits: Combiner[Commit, _Answer] = Combiner(
            self._commit, limit=_MOST_COMMITS, take=_group_size, leaders=committers, clock=self._clock
        )
        self._reads: Combiner[Collection[bytes], dict[bytes, Record] | None] = Combiner(
            self._read, limit=_MOST_READS, leaders=readers, repeats=True
        )
        self._beside = Seats(max(1, min(_BESIDE, connections - 1)))
        self._held: frozenset[bytes] = frozenset()  # keys that others held, while commits wait for them
        self._suspects: frozenset[bytes] = frozenset()  # keys that others perhaps insert, while commits wait

    # --- reads --------------------------------------------------------------------------------------------------------
    def _read(self, requests: list[Collection[bytes]]) -> Sequence[dict[bytes, Record] | None]:
        """Read for several callers; None for those who have to read by themselves, because one of them is refused."""
        if len(requests) == 1:
            return [self._inner.get_many(requests[0])]
        try:
            found = self._inner.get_many({key for keys in requests for key in keys})
        except InvalidRequestError:
            return [None] * len(requests)
        return [{key: found[key] for key in keys if key in found} for keys in requests]

    def get_many(self, keys: Collection[bytes]) -> dict[bytes, Record]:
        found = self._reads.submit(keys)
        return self._inner.get_many(keys) if found is None else found

    def scan(self, start: bytes, end: bytes, limit: int, guards: Collection[bytes] = ()) -> ScanPage:
        return self._inner.scan(start, end, limit, guards)

    # --- commits ------------------------------------------------------------------------------------------------------
    def commit(self, commit: Commit) -> Outcome:
        answer = self._likely_answer(commit)
        if answer is None:
            answer = self._commits.submit(commit)
        if isinstance(answer, HoldfastError):
            raise answer
        if answer is _Way.ALONE:
            return self._inner.commit(commit)
        if answer is _Way.BESIDE:
            return self._commit_beside(commit)
        return answer

    def _likely_answer(self, commit: Commit) -> _Answer | None:
        """Return how a commit goes on that would hold up its group; None for others."""
        held, suspects = self._held, self._suspects
        if not held and not suspects:
            return None
        keys = keys_of(commit)
        if not held.isdisjoint(keys):
            return _Way.BESIDE
        if self._hasty is None or suspects.isdisjoint(keys):
            return None
        found = _try([commit], self._hasty)
        return _Way.BESIDE if found is None else found[0]

    def _commit(self, commits: Sequence[Commit]) -> Sequence[_Answer]:
        """Commit a group; for those who have to go on alone, return how."""
        try:
            if self._hasty is None:
                return self._inner.commit_group(commits)
            found = self._hasty.try_commit_group(commits, _PATIENCE_S)
            return self._commit_free(self._hasty, commits) if found is None else found
        except InvalidRequestError:  # nothing was sent
            if len(commits) == 1:
                raise
            return [_Way.ALONE] * len(commits)  # a mistake of one caller does not reach the others

    def _commit_free(self, backend: NoWaitBackend, commits: Sequence[Commit]) -> Sequence[_Answer]:
        """Commit those members of a group whose locks nobody else holds.

        The database knows who holds a record, but not who is about to insert one. So if it does not know enough, each
        member is tried by itself, as long as there is time.
        """
        keys = [keys_of(commit) for commit in commits]
        held: set[bytes] = set()
        with suppress(HoldfastError):  # then nobody knows who is held up
            held = backend.held_keys(set().union(*keys))
        answers: list[_Answer] = [_Way.BESIDE] * len(commits)
        free = [number for number, one in enumerate(keys) if held.isdisjoint(one)]
        parts = deque([free] if held and free else [[number] for number in free])
        suspects: set[bytes] = set()
        end_s = self._clock.elapsed_s() + _SEARCH_S
        while parts and self._clock.elapsed_s() < end_s:
            part = parts.popleft()
            found = _try([commits[number] for number in part], backend)
            if found is not None:
                for number, answer in zip(part, found, strict=True):
                    answers[number] = answer
            elif len(part) > 1:
                parts += [[number] for number in part]
            else:
                suspects |= _absent(backend, keys[part[0]])
        self._held, self._suspects = frozenset(held), frozenset(suspects)
        return answers

    def _commit_beside(self, commit: Commit) -> Outcome:
        """Wait for the locks as long as the database does, beside the groups."""
        seat = Seat()
        try:
            try:
                if not self._beside.take(seat, self._clock, _LONGEST_WAIT_S):
                    raise UnavailableError("too many commits wait for records that others hold: repeat later")
                return self._inner.commit(commit)
            finally:
                self._beside.leave(seat)
                self._held = self._suspects = frozenset()  # whether others hold them still, the next group finds out
        except BaseException:
            self._beside.leave(seat)  # the first call may have been interrupted
            raise

    def commit_group(self, commits: Sequence[Commit]) -> list[Outcome]:
        return self._inner.commit_group(commits)

    # --- the rest -----------------------------------------------------------------------------------------------------
    def snapshot(self) -> AbstractContextManager[SnapshotReader]:
        return self._inner.snapshot()

    def locked(self) -> AbstractContextManager[LockedTransaction]:
        return self._inner.locked()

    def make_durable(self) -> None:
        self._inner.make_durable()

    def close(self) -> None:
        self._inner.close()


def _try(commits: Sequence[Commit], backend: NoWaitBackend) -> Sequence[_Answer] | None:
    """Commit a part of a group; return None if others hold a lock. The other parts have their own answers."""
    try:
        return backend.try_commit_group(commits, _SHORT_S if len(commits) > 1 else _HURRY_S)
    except InvalidRequestError as error:
        return [_Way.ALONE] * len(commits) if len(commits) > 1 else [error]
    except HoldfastError as error:
        return [copy_of(error) for _ in commits]


def _absent(backend: NoWaitBackend, keys: Collection[bytes]) -> set[bytes]:
    """Return the keys that have no record; none if the database cannot tell."""
    with suppress(HoldfastError):
        return set(keys) - backend.get_many(keys).keys()
    return set()


def _group_size(commits: Sequence[Commit]) -> int:
    """Return how many transactions from the start of the list may form a group: at least one."""
    size = 0
    if len(commits) == 1:
        return 1
    for number, commit in enumerate(commits):
        size += sum(map(len, commit.inserts.values())) + sum(map(len, commit.puts.values()))
        if number and size > _MOST_BYTES:
            return independent(commits[:number])
    return independent(commits)
