"""Run functions as optimistic transactions, and repeat those that conflict: Algorithm 1 of paper 004.

A `Transaction` collects what a function reads and writes, until all of it can be committed in one call.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import TypeVar

from holdfast.errors import InvalidRequestError, OutcomeUnknownError, TransactionConflictError, UnavailableError
from holdfast.runtime import Backoff, Environment
from holdfast.transactions.base import (
    ABSENT,
    MAX_NUMBER,
    Backend,
    Bound,
    Commit,
    Committed,
    Conflict,
    Outcome,
    RangeCount,
    Record,
    SnapshotReader,
    takes_adds,
)

_log = logging.getLogger(__name__)

T = TypeVar("T")

_PAGE = 1000
"""Records that one call of a scan reads at most."""

_ATTEMPTS = 10
_BACKOFF = Backoff(first_s=0.002, longest_s=0.1)
_NAMED_KEYS = 3


class Transaction:
    """A running transaction: its reads with their versions, and its writes, which only it sees so far.

    Worked composition::

        transaction = Transaction(database)
        record = transaction.get(b"a")
        transaction.put(b"b", b"" if record is None else record.value)
        outcome = database.commit(transaction.to_commit())

    `run_transaction` does this, and repeats conflicts.

    Guarantee: each record is read from the database at most once; later reads return the same, except for the
    transaction's own writes. Records that were read in different calls come from different snapshots, so together they
    may show a state that never existed. The commit, which compares their versions, then conflicts.

    A record that the transaction itself has written has the version `ABSENT`. The instance belongs to one thread.

    Args:
        ahead: records that were read from one snapshot before the transaction; None for keys without a record. The
            commit validates only those that the transaction then asks for.

    Source: paper 004 (3.2: per-transaction snapshot).
    """

    __slots__ = ("_ahead", "_backend", "_bounds", "_inserts", "_ranges", "_seen", "_snapshots", "_writes")

    def __init__(self, backend: SnapshotReader, ahead: Mapping[bytes, Record | None] | None = None) -> None:
        self._backend = backend
        self._ahead = ahead or {}
        self._seen: dict[bytes, Record | None] = {}
        self._ranges: list[RangeCount] = []
        self._snapshots = 1 if ahead else 0
        # What each written record will be: a record; a number to add to what it is; None for a deleted one.
        self._writes: dict[bytes, Record | int | None] = {}
        self._inserts: set[bytes] = set()
        self._bounds: dict[bytes, int] = {}

    # --- reads --------------------------------------------------------------------------------------------------------
    def get(self, key: bytes) -> Record | None:
        """Return the record of a key, as the transaction sees it, or None if it does not exist."""
        self._read((key,))
        return self._apply_own_write(key)

    def get_many(self, keys: Collection[bytes]) -> dict[bytes, Record]:
        """Return the existing records of several keys, after this transaction's own writes. Those that it has not read
        before come from one snapshot."""
        self._read(keys)
        return {key: record for key in keys if (record := self._apply_own_write(key)) is not None}

    def scan(self, start: bytes, end: bytes, limit: int | None = None, *, guard: bytes) -> list[tuple[bytes, Record]]:
        """Return the first `limit` records, or all, whose key is at least `start` and less than `end`, in order.

        Guarantee: when the commit takes effect, the range contains no other records; if `limit` was reached, this
        holds for the range up to the last returned record.

        Args:
            guard: the key that protects the range: every transaction that may create a record in the range must read
                it. It need not exist.
        """
        if limit is not None and limit < 1:
            raise InvalidRequestError("a scan returns at least one record: pass a larger limit, or none", limit=limit)
        if start >= end:
            return []
        fresh: list[bytes] = []
        covered, more = start, True
        while more:
            page = self._backend.scan(covered, end, _PAGE if limit is None else min(limit, _PAGE))
            self._snapshots += 1
            for key, record in page.records:
                # What was seen stays as it was; an insert expects that there is no record.
                if key not in self._seen and key not in self._inserts and not self._is_key_scanned(key):
                    self._seen[key] = record
                    fresh.append(key)
            covered = _next_key(page.records[-1][0]) if page.more else end
            more = page.more and (limit is None or len(self._list_records_with_writes(start, covered)) < limit)
        shown = self._list_records_with_writes(start, covered)
        if limit is not None and len(shown) >= limit:
            del shown[limit:]
            covered = min(covered, _next_key(shown[-1][0]))
            for key in fresh:
                if key >= covered:
                    del self._seen[key]
        count = sum(record is not None and start <= key < covered for key, record in self._seen.items())
        self._ranges.append(RangeCount(guard, start, covered, count))
        return shown

    # --- writes -------------------------------------------------------------------------------------------------------
    def put(self, key: bytes, value: bytes) -> None:
        """Write a record, whether it exists or not. Its number becomes 0."""
        self._writes[key] = Record(ABSENT, value)

    def insert(self, key: bytes, value: bytes) -> None:
        """Create a record. The commit conflicts if another transaction has created it.

        Raises:
            InvalidRequestError: the transaction has seen or written the record. Put it instead.
        """
        if key in self._writes:
            exists = self._writes[key] is not None
        else:
            exists = self._seen.get(key) is not None
            if not exists:
                self._inserts.add(key)
        if exists:
            raise InvalidRequestError("the record exists, and cannot be inserted: put it instead", key=key)
        self._writes[key] = Record(ABSENT, value)

    def delete(self, key: bytes) -> None:
        """Delete the record of a key, if it exists."""
        if key in self._inserts:
            self._inserts.remove(key)
            del self._writes[key]
            self._seen.setdefault(key, None)
            self._snapshots += 2  # this absence was assumed, not read: the commit has to look
        elif key in self._seen and self._seen[key] is None:
            self._writes.pop(key, None)
        else:
            self._writes[key] = None

    def add(self, key: bytes, delta: int) -> None:
        """Add to the number of a record, which is created with an empty value and 0 if it does not exist.

        Adds of several transactions do not conflict with each other. But reading the record, before or after, makes
        the transaction depend on its version.

        Raises:
            InvalidRequestError: the transaction has put, inserted or deleted the record, which set its number.
        """
        write = self._writes.get(key, 0)
        if not isinstance(write, int):
            raise InvalidRequestError(
                "the transaction has put, inserted or deleted the record: add to another record, or in another "
                "transaction",
                key=key,
            )
        self._writes[key] = write + delta

    def require_at_most(self, key: bytes, most: int) -> None:
        """Require at the commit that the number of a record, to which the transaction adds, is at most `most`.

        Otherwise the commit conflicts.
        """
        self._bounds[key] = min(most, self._bounds.get(key, most))

    # --- the end ------------------------------------------------------------------------------------------------------
    @property
    def has_read_one_snapshot(self) -> bool:
        """Return whether everything that was read comes from one snapshot, so that it was true at one instant."""
        return self._snapshots < 2

    @property
    def is_read_only(self) -> bool:
        """Return whether the transaction writes nothing."""
        return not self._writes and not self._bounds

    def to_commit(self) -> Commit:
        """Return the reads and writes as a `Commit`, to be validated and applied."""
        puts: dict[bytes, bytes] = {}
        inserts: dict[bytes, bytes] = {}
        adds: dict[bytes, int] = {}
        deletes: list[bytes] = []
        for key, write in self._writes.items():
            if write is None:
                deletes.append(key)
            elif isinstance(write, int):
                adds[key] = write
            else:
                (inserts if key in self._inserts else puts)[key] = write.value
        return Commit(
            reads=self._versions(),
            puts=puts,
            inserts=inserts,
            deletes=deletes,
            adds=adds,
            ranges=tuple(self._ranges),
            bounds=tuple(Bound(key, most) for key, most in self._bounds.items()),
        )

    def to_validation(self) -> Commit:
        """Return a `Commit` that writes nothing, and only checks whether everything that was read is still true."""
        return Commit(reads=self._versions(), ranges=tuple(self._ranges))

    # --- the state ----------------------------------------------------------------------------------------------------
    def _versions(self) -> dict[bytes, int]:
        return {key: ABSENT if record is None else record.version for key, record in self._seen.items()}

    def _read(self, keys: Iterable[bytes]) -> None:
        """Read those records from the database that are not known yet."""
        missing = {key: None for key in keys if not self._is_key_known(key)}
        if self._ahead:
            for key in [key for key in missing if key in self._ahead]:
                self._seen[key] = self._ahead[key]
                del missing[key]
        if missing:
            found = self._backend.get_many(missing)
            self._snapshots += 1
            for key in missing:
                self._seen[key] = found.get(key)

    def _is_key_known(self, key: bytes) -> bool:
        return key in self._seen or not isinstance(self._writes.get(key, 0), int) or self._is_key_scanned(key)

    def _is_key_scanned(self, key: bytes) -> bool:
        """Check whether the key is in a range that was read: if it was not seen there, it is absent."""
        return any(one.start <= key < one.end for one in self._ranges)

    def _apply_own_write(self, key: bytes) -> Record | None:
        """Return a known record with the transaction's own write."""
        seen = self._seen.get(key)
        if key not in self._writes:
            return seen
        write = self._writes[key]
        if not isinstance(write, int):
            return write
        return Record(ABSENT, b"", write) if seen is None else Record(ABSENT, seen.value, seen.number + write)

    def _list_records_with_writes(self, start: bytes, end: bytes) -> list[tuple[bytes, Record]]:
        keys = sorted({key for known in (self._seen, self._writes) for key in known if start <= key < end})
        return [(key, record) for key in keys if (record := self._apply_own_write(key)) is not None]


def _next_key(key: bytes) -> bytes:
    """Return the smallest key that is greater."""
    return key + b"\0"


# --- attempts ---------------------------------------------------------------------------------------------------------
def run_transaction(
    backend: Backend,
    function: Callable[[Transaction], T],
    environment: Environment,
    *,
    attempts: int = _ATTEMPTS,
) -> T:
    """Run a function in a transaction, and repeat both after a conflict, up to a limit, with growing random waits.

    Guarantee: the function's reads and writes take effect in one step, once, or not at all. The result is that of the
    attempt that took effect. An error of the function reaches the caller only if what the function had read was true
    at one instant; otherwise the attempt is repeated, as after a conflict.

    Args:
        function: reads and writes through the transaction, and does nothing else that others can see: it may run many
            times. It may see records that never existed together (`Transaction`), so its loops must end anyway.
        attempts: how often the function runs at most.

    Returns:
        What the function returned.

    Raises:
        TransactionConflictError: other transactions were first in every attempt. Nothing happened; start over later.
        InvalidRequestError: a number is added to a record that holds no integer, or it would leave its limits. Nothing
            happened.
        OutcomeUnknownError: the reply of the commit was lost. Read the records before you repeat.

    Crash: the transaction has taken effect, or nothing happened.

    Source: paper 004 (3.4 to 3.6).
    """
    if attempts < 1:
        raise InvalidRequestError("a transaction needs at least one attempt: pass a larger number", attempts=attempts)
    conflict = Conflict(())
    for attempt in range(attempts):
        if attempt:
            _BACKOFF.wait(attempt, environment.clock, environment.chance)
        transaction = Transaction(backend)
        try:
            result = function(transaction)
            outcome = _commit_or_validate_reads(backend, transaction)
        except OutcomeUnknownError:
            raise
        except Exception:
            outcome = _validate_reads(backend, transaction)
            if not isinstance(outcome, Conflict):
                raise
        if isinstance(outcome, Committed):
            return result
        conflict = outcome
        if (hopeless := error_of_refused_add(backend, transaction.to_commit(), conflict)) is not None:
            raise hopeless
    raise TransactionConflictError(
        "other transactions were first in every attempt: repeat later, or change fewer records at a time",
        attempts=attempts,
        keys=conflict.keys[:_NAMED_KEYS],
    )


def run_until_known(
    backend: Backend,
    function: Callable[[Transaction], T],
    environment: Environment,
    *,
    lost_replies: int,
    attempts: int = _ATTEMPTS,
) -> T:
    """Run a function in a transaction, and run it again if the commit's reply is lost, so it may take effect twice.

    Only for a function for which this is harmless, or that checks whether it has already taken effect.

    Args:
        function: see `run_transaction`.
        lost_replies: how many lost replies to accept.
        attempts: how often the function runs at most for each reply.

    Raises:
        OutcomeUnknownError: too many replies were lost in a row. Read the records before you repeat.
        HoldfastError: see `run_transaction`.
    """
    for _ in range(lost_replies):
        try:
            return run_transaction(backend, function, environment, attempts=attempts)
        except OutcomeUnknownError as error:
            _log.info("a reply was lost, and the transaction is repeated: %s", error)
    return run_transaction(backend, function, environment, attempts=attempts)


def error_of_refused_add(backend: Backend, commit: Commit, conflict: Conflict) -> InvalidRequestError | None:
    """Return the error for a conflict that every attempt would meet again, because an add is impossible; else None.

    An add conflicts if its bound does not hold, if its record was read and has changed, if the record's value is not an
    integer, or if the record's number would leave its limits. Only the last two conflicts recur.
    """
    bounded = {bound.key for bound in commit.bounds}
    if not conflict.keys or any(key not in commit.adds or key in bounded for key in conflict.keys):
        return None
    now = backend.get_many(conflict.keys)
    versions = {key: now[key].version if key in now else ABSENT for key in conflict.keys}
    if any(commit.reads.get(key, version) != version for key, version in versions.items()):
        return None
    # A record that was created and deleted since has the version that was read, and one that was lowered has room.
    for key, record in now.items():
        if commit.adds[key] and not takes_adds(record.value):
            return InvalidRequestError("only an integer can be added to: put a new value instead", key=key)
        if abs(record.number + commit.adds[key]) > max(MAX_NUMBER, abs(record.number)):
            return InvalidRequestError("a counter would leave the range of 62 bits: put a new value", key=key)
    return None


def _commit_or_validate_reads(backend: Backend, transaction: Transaction) -> Outcome:
    return (
        _validate_reads(backend, transaction) if transaction.is_read_only else backend.commit(transaction.to_commit())
    )


def _validate_reads(backend: Backend, transaction: Transaction) -> Outcome:
    """Check whether everything that was read was true at one instant.

    What one call has read was true when it was read. Only reads of several calls need another one.
    """
    if transaction.has_read_one_snapshot:
        return Committed(ABSENT)  # no record has this version
    try:
        return backend.commit(transaction.to_validation())
    except OutcomeUnknownError as error:
        raise UnavailableError("the database did not confirm what was read, nothing happened: repeat later") from error
