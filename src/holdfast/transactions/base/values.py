"""Define the values of the transaction database: records, commits and their outcomes."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

MAX_KEY_BYTES = 1024
"""The longest key: what a primary key of every database can hold."""

MAX_VALUE_BYTES = 8 * 1024 * 1024
"""The longest value: half of the smallest default limit for one packet (MariaDB, 16 MiB)."""

MAX_NUMBER = 2**62 - 1
"""The largest number that an add, a bound, a count or a series may name; `-MAX_NUMBER` is the smallest."""

INTEGER = b"i"
"""The first byte of every value that is an integer."""

ABSENT = 0
"""The version of a record that does not exist. No record has this version."""


@dataclass(frozen=True, slots=True)
class Record:
    """A record as it was read.

    Attributes:
        version: identifies the commit that last wrote the record. Versions can only be compared for equality; no two
            commits have the same, so a record that was deleted and created again has another version.
        value: the bytes of the last put or insert; empty for a record that only `Commit.adds` wrote.
        number: the sum of all adds since the last put or insert.
    """

    version: int
    value: bytes
    number: int = 0


def takes_adds(value: bytes) -> bool:
    """Return whether numbers can be added to a record with this value: it is empty, or an integer."""
    return value[:1] in (b"", INTEGER)


@dataclass(frozen=True, slots=True)
class RangeCount:
    """A condition against phantoms: so many records have a key from `start` (included) to `end` (excluded).

    The database counts while it holds an exclusive lock on `guard`. So the condition still holds when the commit takes
    effect, provided that every commit that inserts into the range has `guard` among its reads.

    Attributes:
        count: number of records before the commit's own writes.
    """

    guard: bytes
    start: bytes
    end: bytes
    count: int


@dataclass(frozen=True, slots=True)
class Bound:
    """A condition on a counter: after the commit's add to `key`, its number is at most `most`."""

    key: bytes
    most: int


@dataclass(frozen=True, slots=True)
class Progress:
    """The position of a commit in a series of commits: they take effect in ascending order, each at most once.

    Attributes:
        owner: key of the record that holds the number of the last commit in the series.
        number: the position of this commit, from 1.
    """

    owner: bytes
    number: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Commit:
    """A transaction that is ready to be validated and applied, as one atomic step.

    A key is in at most one of `puts`, `inserts`, `deletes` and `adds`, and may be in `reads` as well; `progress.owner`
    is in none of them.

    Attributes:
        reads: maps each key that the transaction read to the version that it saw, `ABSENT` if there was no record. The
            commit conflicts if one of them has changed.
        puts: records to write, whether they exist or not.
        inserts: records to create. The commit conflicts if one of them exists.
        deletes: records to delete; absent ones are ignored unless they are in `reads`.
        adds: maps counters to what is added to them. A missing counter starts at 0. Adds to a key that is not in
            `reads` never conflict with other adds. The commit conflicts if the record holds a value that is no integer
            (`takes_adds`), or if the add would take its number beyond `MAX_NUMBER`, or below `-MAX_NUMBER`. To add 0
            gives any record another version.
        ranges, bounds: conditions. The commit conflicts if one does not hold; the conflict names its guard or key.
        progress: the commit's place in a series, or None.
    """

    reads: Mapping[bytes, int] = field(default_factory=dict)
    puts: Mapping[bytes, bytes] = field(default_factory=dict)
    inserts: Mapping[bytes, bytes] = field(default_factory=dict)
    deletes: Collection[bytes] = ()
    adds: Mapping[bytes, int] = field(default_factory=dict)
    ranges: Sequence[RangeCount] = ()
    bounds: Sequence[Bound] = ()
    progress: Progress | None = None


# --- outcomes ---------------------------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class Committed:
    """The commit took effect; the records that it wrote have this version."""

    version: int


@dataclass(frozen=True, slots=True)
class Conflict:
    """The commit changed nothing: another transaction was first. Read again and start over.

    Attributes:
        keys: at least one key, in order, that is not as the commit expected; not necessarily all of them.
    """

    keys: tuple[bytes, ...]


@dataclass(frozen=True, slots=True)
class AlreadyDone:
    """The commit changed nothing now: its `Progress` says that it, or a later one of its series, took effect before.

    Attributes:
        number: the number of the last commit in the series.
    """

    number: int


Outcome: TypeAlias = Committed | Conflict | AlreadyDone


@dataclass(frozen=True, slots=True)
class ScanPage:
    """What `TransactionBackend.scan` saw in one snapshot.

    Attributes:
        records: the records of the range in ascending order of their keys.
        more: whether the range has records beyond the limit.
        guards: those of the requested guards that exist.
    """

    records: Sequence[tuple[bytes, Record]]
    more: bool
    guards: Mapping[bytes, Record]
