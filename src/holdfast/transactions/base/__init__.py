"""Define what a namespace and computation units need from a database: versioned records and optimistic transactions.

Keys and values are bytes. A transaction reads records without locks, remembers their versions, buffers its writes, and
asks for its commit in one call, which validates and applies it.

Worked composition::

    database = MemoryBackend()
    seen = database.get_many([b"a", b"b"])                          # read phase: {} so far
    reads = {key: seen[key].version if key in seen else ABSENT for key in (b"a", b"b")}
    outcome = database.commit(Commit(reads=reads, puts={b"a": b"1"}))
    assert isinstance(outcome, Committed)
    again = database.commit(Commit(reads=reads, puts={b"a": b"2"}))  # b"a" has changed since
    assert again == Conflict((b"a",))

`holdfast.transactions.transaction` wraps this for callers, and `holdfast.transactions.retry` repeats conflicts.

Source: paper 004 (3), and the design of the database in paper 003 (4.1).
"""

from holdfast.transactions.base.judgment import Judgment, judge, seen_count, version_of
from holdfast.transactions.base.protocols import (
    Backend,
    DurableBackend,
    LockedTransaction,
    LockingBackend,
    NoWaitBackend,
    ReadAheadBackend,
    SnapshotBackend,
    SnapshotReader,
    TransactionBackend,
)
from holdfast.transactions.base.steps import ANY, Kind, Step, check_commit, independent, keys_of, steps_of
from holdfast.transactions.base.values import (
    ABSENT,
    INTEGER,
    MAX_KEY_BYTES,
    MAX_NUMBER,
    MAX_VALUE_BYTES,
    AlreadyDone,
    Bound,
    Commit,
    Committed,
    Conflict,
    Outcome,
    Progress,
    RangeCount,
    Record,
    ScanPage,
    takes_adds,
)

__all__ = [
    "ABSENT",
    "ANY",
    "INTEGER",
    "MAX_KEY_BYTES",
    "MAX_NUMBER",
    "MAX_VALUE_BYTES",
    "AlreadyDone",
    "Backend",
    "Bound",
    "Commit",
    "Committed",
    "Conflict",
    "DurableBackend",
    "Judgment",
    "Kind",
    "LockedTransaction",
    "LockingBackend",
    "NoWaitBackend",
    "Outcome",
    "Progress",
    "RangeCount",
    "ReadAheadBackend",
    "Record",
    "ScanPage",
    "SnapshotBackend",
    "SnapshotReader",
    "Step",
    "TransactionBackend",
    "check_commit",
    "independent",
    "judge",
    "keys_of",
    "seen_count",
    "steps_of",
    "takes_adds",
    "version_of",
]
