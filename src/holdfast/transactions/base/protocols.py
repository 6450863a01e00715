"""Define the calls of a transaction database."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from contextlib import AbstractContextManager
from typing import Protocol, runtime_checkable

from holdfast.transactions.base.values import Commit, Outcome, Record, ScanPage


class TransactionBackend(Protocol):
    """A database of versioned records that commits optimistic transactions.

    All methods may be called from several threads. Besides the errors in its own docstring, any method may raise
    `AccessDeniedError` (wrong password, missing rights), `NotFoundError` (missing database), `UnavailableError` (the
    server cannot be reached; nothing happened), `StorageFullError` (nothing happened) and `CorruptDataError`.
    """

    def get_many(self, keys: Collection[bytes]) -> dict[bytes, Record]:
        """Read records.

        Guarantee: all of them come from one snapshot, which contains every commit that returned before this call began.

        Returns:
            The existing records by key.
        """
        ...

    def scan(self, start: bytes, end: bytes, limit: int, guards: Collection[bytes] = ()) -> ScanPage:
        """Read the first `limit` records whose key is at least `start` and less than `end`, and the guards.

        Guarantee: everything on the page comes from one snapshot, which contains every commit that returned before this
        call began. Different pages come from different snapshots.
        """
        ...

    def commit(self, commit: Commit) -> Outcome:
        """Validate and apply one transaction.

        Guarantee: the transaction takes effect in one step, durably, or not at all. While it does, its reads hold.

        Raises:
            InvalidRequestError: a key or a value is too long, or a key occurs twice; nothing happened.
            OutcomeUnknownError: the server went away, and did not come back in time to tell the outcome. Read the
                records before you repeat.
        """
        ...

    def commit_group(self, commits: Sequence[Commit]) -> list[Outcome]:
        """Validate and apply several independent transactions in one round trip and with one flush to disk.

        Guarantee: each transaction succeeds or fails by itself; they take effect in the order of the list.

        Args:
            commits: transactions of which none writes what another one reads or writes, except that several may add to
                one counter: see `holdfast.transactions.base.independent`.

        Raises: like `commit`, for all of them.
        """
        ...

    def close(self) -> None:
        """Release connections. May be called twice."""
        ...


class SnapshotReader(Protocol):
    """Reads one snapshot of a database."""

    def get_many(self, keys: Collection[bytes]) -> dict[bytes, Record]:
        """Read records; see `TransactionBackend.get_many`."""
        ...

    def scan(self, start: bytes, end: bytes, limit: int, guards: Collection[bytes] = ()) -> ScanPage:
        """Read a range; see `TransactionBackend.scan`. All pages come from the same snapshot."""
        ...


class SnapshotBackend(TransactionBackend, Protocol):
    """A database with snapshots that last."""

    def snapshot(self) -> AbstractContextManager[SnapshotReader]:
        """Keep a snapshot, which contains every commit that returned before this call began.

        For checks and collections that must see all records at one moment. It delays the clean-up inside the database,
        so end it within minutes.
        """
        ...


class LockedTransaction(Protocol):
    """A transaction that holds locks while it works: the pessimistic way of paper 004 (2.3)."""

    def read(self, keys: Collection[bytes], *, exclusive: bool) -> dict[bytes, Record]:
        """Lock records, in the order of their keys, and read them. An absent record is not locked."""
        ...

    def scan(self, start: bytes, end: bytes, limit: int) -> ScanPage:
        """Read a range as it is now. Lock the guard first."""
        ...

    def apply(self, commit: Commit) -> Outcome:
        """Validate and apply, and end the transaction: the locks are released. Call this at most once."""
        ...


class LockingBackend(TransactionBackend, Protocol):
    """A database with pessimistic transactions."""

    def locked(self) -> AbstractContextManager[LockedTransaction]:
        """Begin a transaction that locks what it reads. It is rolled back unless `apply` was called."""
        ...


@runtime_checkable
class NoWaitBackend(TransactionBackend, Protocol):
    """A database in which others may hold the locks of some records for long, while those of other records are free."""

    def try_commit_group(self, commits: Sequence[Commit], patience_s: float) -> list[Outcome] | None:
        """Commit a group like `commit_group`, unless others hold one of its locks.

        Args:
            patience_s: about how long to wait for one lock.

        Returns:
            None if a lock was not free in time; nothing happened.
        """
        ...

    def held_keys(self, keys: Collection[bytes]) -> set[bytes]:
        """Return those of the keys whose records others have locked just now, as far as the database can tell."""
        ...


@runtime_checkable
class ReadAheadBackend(TransactionBackend, Protocol):
    """A database that can read for the next transaction in the round trip of a commit."""

    def commit_and_read(self, commit: Commit, keys: Collection[bytes]) -> tuple[Outcome, dict[bytes, Record] | None]:
        """Commit, then read records as they are afterwards.

        Raises: see `commit`.

        Returns:
            The outcome of the commit; and those of the records that exist, from one snapshot, or None if they could not
            be read: read them in another call.
        """
        ...


class DurableBackend(TransactionBackend, Protocol):
    """A database whose commits may be faster than its disk."""

    def make_durable(self) -> None:
        """Return when everything that was committed before this call is durable.

        A commit is durable when it returns, unless the URL or the server asks for less: ``synchronous=normal``
        (SQLite), ``synchronous_commit=off`` (PostgreSQL), ``innodb_flush_log_at_trx_commit`` and ``sync_binlog``
        (MySQL). Afterwards it survives a crash of the machine anyway.

        Raises:
            UnavailableError: it is unknown whether it is durable: repeat later.
            UnsupportedError: the server does not let this user flush its log.
        """
        ...


class Backend(DurableBackend, LockingBackend, SnapshotBackend, Protocol):
    """Everything that the backends of Holdfast can do."""
