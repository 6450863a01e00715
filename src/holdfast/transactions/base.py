"""Define the interface of transaction databases: versioned records, optimistic transactions and their outcomes.

Keys and values are bytes. A transaction reads records without locks, remembers their versions, buffers its writes, and
asks for its commit in one call, which validates what was read and applies the writes.

Worked composition::

    backend = MemoryBackend()
    seen = backend.get_many([b"a", b"b"])                          # read phase: {} so far
    reads = {key: seen[key].version if key in seen else ABSENT for key in (b"a", b"b")}
    outcome = backend.commit(Commit(reads=reads, puts={b"a": b"1"}))
    assert isinstance(outcome, Committed)
    again = backend.commit(Commit(reads=reads, puts={b"a": b"2"}))  # b"a" has changed since
    assert again == Conflict((b"a",))

`holdfast.transactions.transaction` wraps this for callers, and repeats transactions that conflict.

Source: paper 004 (3), and the design of the database in paper 003 (4.1).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Protocol, TypeAlias

from holdfast.errors import UnsupportedError

MAX_KEY_BYTES = 1024
"""The longest key: what a primary key of every database can hold."""

MAX_VALUE_BYTES = 8 * 1024 * 1024
"""The longest value: half of the smallest default limit for one packet (MariaDB, 16 MiB)."""

MAX_NUMBER = 2**62 - 1
"""The largest number that an add, a bound or a count may name; `-MAX_NUMBER` is the smallest."""

INTEGER = b"i"
"""The first byte of every value that is an integer."""

ABSENT = 0
"""The version of a record that does not exist. No record has this version."""


@dataclass(frozen=True, slots=True)
class Record:
    """A record of the database, as of the time of the read.

    Attributes:
        version: identifies the commit that last wrote the record. Versions can only be compared for equality; no two
            commits have the same version, so a record that was deleted and created again has a new one.
        value: the bytes of the last put or insert; empty for a record that only `Commit.adds` wrote.
        number: the sum of all adds since the last put or insert.
    """

    version: int
    value: bytes
    number: int = 0


def takes_adds(value: bytes) -> bool:
    """Return whether `Commit.adds` may add to a record with this value: the value is empty, or an encoded integer."""
    return value[:1] in (b"", INTEGER)


@dataclass(frozen=True, slots=True)
class RangeCount:
    """A condition of a commit: exactly `count` records have a key from `start` (included) to `end` (excluded).

    The condition protects a scanned range against phantoms: records that others insert after the scan. The database
    counts the records while it holds an exclusive lock on `guard`. So the condition still holds when the commit takes
    effect, provided that every commit that inserts into the range has `guard` among its reads.

    Attributes:
        guard: key of the record that is locked for the whole range; it need not exist.
        count: number of records before the commit's own writes.
    """

    guard: bytes
    start: bytes
    end: bytes
    count: int


@dataclass(frozen=True, slots=True)
class Bound:
    """A condition of a commit on a counter: after the commit's add to `key`, the record's number is at most `most`."""

    key: bytes
    most: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Commit:
    """A transaction that is ready to be validated and applied, as one atomic step.

    A key is in at most one of `puts`, `inserts`, `deletes` and `adds`, and may be in `reads` as well.

    Attributes:
        reads: maps each key that the transaction read to the version that it saw, `ABSENT` if there was no record. The
            commit conflicts if one of them has changed.
        puts: maps keys to the values to write, whether the records exist or not.
        inserts: maps keys of records to create to their values. The commit conflicts if one of them exists.
        deletes: keys of records to delete; absent ones are ignored unless they are in `reads`.
        adds: maps keys of counters to the numbers to add. A missing counter starts at 0. Adds to a key that is not in
            `reads` never conflict with other adds. The commit conflicts if the record's value is not an integer
            (`takes_adds`), or if its number would exceed `MAX_NUMBER` or fall below `-MAX_NUMBER`. Adding 0 is valid
            for any value, and gives the record a new version.
        ranges, bounds: conditions. The commit conflicts if one does not hold; the conflict names its guard or key.
    """

    reads: Mapping[bytes, int] = field(default_factory=dict)
    puts: Mapping[bytes, bytes] = field(default_factory=dict)
    inserts: Mapping[bytes, bytes] = field(default_factory=dict)
    deletes: Collection[bytes] = ()
    adds: Mapping[bytes, int] = field(default_factory=dict)
    ranges: Sequence[RangeCount] = ()
    bounds: Sequence[Bound] = ()


# --- outcomes ---------------------------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class Committed:
    """The outcome of a commit that took effect.

    Attributes:
        version: the new version of the written records.
    """

    version: int


@dataclass(frozen=True, slots=True)
class Conflict:
    """The outcome of a commit that changed nothing, because another transaction was first. Read again and start over.

    Attributes:
        keys: sorted keys of records that did not meet the commit's expectations: at least one, not necessarily all.
    """

    keys: tuple[bytes, ...]


Outcome: TypeAlias = Committed | Conflict


@dataclass(frozen=True, slots=True)
class ScanPage:
    """The result of `SnapshotReader.scan`: the first records of a range and the requested guards, from one snapshot.

    Attributes:
        records: keys and records of the range in ascending order of their keys.
        more: whether the range has records beyond the limit.
        guards: the existing records of the requested guard keys (`RangeCount.guard`), by key.
    """

    records: Sequence[tuple[bytes, Record]]
    more: bool
    guards: Mapping[bytes, Record]


# --- the calls of a database ------------------------------------------------------------------------------------------
class SnapshotReader(Protocol):
    """Reads records by key and by range. Each call reads one snapshot; under `Backend.snapshot`, all read the same."""

    def get_many(self, keys: Collection[bytes]) -> dict[bytes, Record]:
        """Return the records that exist among `keys`, by key.

        Guarantee: all of them come from one snapshot, which contains every commit that returned before this call began.
        """
        ...

    def scan(self, start: bytes, end: bytes, limit: int, guards: Collection[bytes] = ()) -> ScanPage:
        """Return the first `limit` records with `start` <= key < `end`, and the existing records of the keys `guards`.

        Guarantee: everything on the page comes from one snapshot, which contains every commit that returned before this
        call began. Different pages come from different snapshots.
        """
        ...


class LockingTransaction(Protocol):
    """A pessimistic transaction: it locks the records that it reads until it ends (paper 004, 2.3)."""

    def read(self, keys: Collection[bytes], *, exclusive: bool) -> dict[bytes, Record]:
        """Lock the records of `keys`, in the order of their keys, and return those that exist.

        An absent record is not locked.

        Args:
            exclusive: whether to take exclusive locks, which also exclude the shared locks of other transactions.
        """
        ...

    def scan(self, start: bytes, end: bytes, limit: int) -> ScanPage:
        """Return the first `limit` records of a range, without locking them: `read` the range's guard first."""
        ...

    def apply(self, commit: Commit) -> Outcome:
        """Validate and apply a commit, and end the transaction, which releases its locks. Call this at most once."""
        ...


class Backend(SnapshotReader, Protocol):
    """A database of versioned records that commits optimistic transactions.

    A backend inherits from this class. It need not override the methods that have a body.

    All methods may be called from several threads. Besides the errors in its own docstring, any method may raise
    `AccessDeniedError` (wrong password, missing rights), `NotFoundError` (missing database), `UnavailableError` (the
    server cannot be reached; nothing happened), `StorageFullError` (nothing happened) and `CorruptDataError`.

    Attributes:
        reads_ahead: whether `commit_and_read` takes one round trip.
        connections: how many calls may run at the same time; others wait.
    """

    reads_ahead: bool = False
    connections: int = 8

    def commit(self, commit: Commit) -> Outcome:
        """Validate and apply one transaction, and return whether it took effect or conflicts.

        Guarantee: the transaction takes effect in one step, durably, or not at all. At that moment, everything that it
        read is unchanged.

        Raises:
            InvalidRequestError: a key or a value is too long, or a key occurs twice; nothing happened.
            OutcomeUnknownError: the connection to the server was lost, and not restored in time to learn the outcome.
                Read the records before you repeat.
        """
        return self.commit_group([commit])[0]

    def commit_group(self, commits: Sequence[Commit]) -> list[Outcome]:
        """Validate and apply several independent transactions in one round trip and with one flush to disk.

        Guarantee: each transaction succeeds or fails by itself; they take effect in the order of the list.

        Args:
            commits: transactions of which none writes what another one reads or writes, except that several may add to
                one counter: see `holdfast.transactions.validation.count_independent`.

        Returns:
            The outcome of each transaction.

        Raises: like `commit`, for all of them.
        """
        ...

    def try_commit_group(self, commits: Sequence[Commit], patience_s: float) -> list[Outcome] | None:
        """Commit a group like `commit_group`, but give up if another transaction holds one of its locks (NOWAIT).

        `GroupCommit` uses this so that a commit that waits for a lock does not delay the rest of its group.

        Args:
            patience_s: about how many seconds to wait for one lock.

        Returns:
            None if a lock was not free in time; nothing happened.
        """
        return self.commit_group(commits)

    def commit_and_read(self, commit: Commit, keys: Collection[bytes]) -> tuple[Outcome, dict[bytes, Record] | None]:
        """Commit a transaction, then read records as they are afterwards, for the next transaction.

        Raises: see `commit`.

        Returns:
            The outcome of the commit; and the existing records of `keys`, from one snapshot, or None if the caller must
            read them in another call.
        """
        return self.commit(commit), None

    def snapshot(self) -> AbstractContextManager[SnapshotReader]:
        """Open a snapshot for a ``with`` block: a reader whose calls all see the same state of the records.

        The snapshot contains every commit that returned before this call began. Use it for checks and
        garbage collections that must see one state. It delays vacuum or purge in the database: end it within minutes.
        """
        raise UnsupportedError("this database has no lasting snapshots: use another one")

    def begin_locking_transaction(self) -> AbstractContextManager[LockingTransaction]:
        """Begin a pessimistic transaction, which locks what it reads, for a ``with`` block.

        At the end of the block, it is rolled back unless `LockingTransaction.apply` was called.
        """
        raise UnsupportedError("this database has no pessimistic transactions: use the optimistic mode")

    def make_durable(self) -> None:
        """Flush the database's log, so that everything that was committed before survives a crash of the machine.

        A commit is durable when it returns, unless the URL or the server asks for less: ``synchronous=normal``
        (SQLite), ``synchronous_commit=off`` (PostgreSQL), ``innodb_flush_log_at_trx_commit`` and ``sync_binlog``
        (MySQL).

        Raises:
            UnavailableError: the flush may have failed: repeat later.
            UnsupportedError: the server does not let this user flush its log.
        """
        ...

    def close(self) -> None:
        """Close the connections to the database. May be called twice."""
        ...
