"""Record the input of a job before its first unit runs, and refuse other rows in every attempt at a task.

The input of a job is its units: the ids of all rows. Two passes read them. The first one runs nothing: it refuses rows
that cannot be units, and takes digests, which the job's record keeps as one. Every later run of the job is compared
with that before it runs anything. The second pass runs the units. A source need not give it the same rows as the first
one: a table grows, or a lost part of a shuffle is computed again. So a task collects its units in blocks, and runs a
block only if its digest is that of the first pass. Whatever the source does, no unit runs that is not in the job's
input.

Blocks begin small, so that large values fit into memory, and grow, so that the digests of 10^8 rows do.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b
from itertools import groupby
from typing import TypeVar

from holdfast.errors import InvalidRequestError
from holdfast.records.row_keys import decode_row
from holdfast.units.unit import Unit, format_key

T = TypeVar("T")

_DIGEST_BYTES = 8
"""Of a block: that another one has the same by chance happens once in 10^19 times."""

_FIRST_ROWS = 64
_BLOCKS_OF_A_SIZE = 1024
_COUNT_BYTES = 8


@dataclass(frozen=True, slots=True)
class TaskInput:
    """The number and digests of the units of one task, as the first pass over its rows has found them.

    Attributes:
        units: the number of units.
        digests: the concatenated digests of blocks of units.
    """

    units: int = 0
    digests: bytes = b""

    def to_bytes(self) -> bytes:
        """Encode the input as bytes, for `of`."""
        return self.units.to_bytes(_COUNT_BYTES, "big") + self.digests

    @staticmethod
    def of(found: bytes) -> TaskInput:
        """Decode an input that `to_bytes` has encoded."""
        return TaskInput(int.from_bytes(found[:_COUNT_BYTES], "big"), bytes(found[_COUNT_BYTES:]))


@dataclass(frozen=True)
class JobInput:
    """The number and digests of the units of all tasks of a job, by the number of the task."""

    tasks: Sequence[TaskInput]

    @cached_property
    def units(self) -> int:
        """Return how many units the job has."""
        return sum(task.units for task in self.tasks)

    @cached_property
    def digest(self) -> str:
        """Return the digest of the ids of all units, and of how many rows each has."""
        found = blake2b(digest_size=16)
        for task in self.tasks:
            found.update(blake2b(task.to_bytes(), digest_size=16).digest())
        return found.hexdigest()


def digest_task_units(row_ids: Iterable[bytes], *, repeats: bool) -> TaskInput:
    """Count and digest the units of a task, in a first pass over its rows that runs none of them.

    Args:
        row_ids: the id of the unit of each row, sorted.
        repeats: whether several rows may belong to one unit.

    Raises:
        InvalidRequestError: a key occurs twice, or the rows are not sorted.
    """
    units, digests = 0, bytearray()
    for block, digest in _iter_digested_blocks(_iter_distinct_units(row_ids, repeats)):
        units += len(block)
        digests += digest
    return TaskInput(units, bytes(digests))


def _iter_distinct_units(row_ids: Iterable[bytes], repeats: bool) -> Iterator[tuple[bytes, bytes, int]]:
    last = b""
    for unit_id, same in groupby(row_ids):
        rows = sum(1 for _ in same)
        if rows > 1 and not repeats:
            raise InvalidRequestError(
                "two units have the same key: choose columns that identify each row, or use TransactionalReduce",
                unit=format_key(decode_row(unit_id)[0]),
            )
        if unit_id < last:
            raise InvalidRequestError(
                "the units of a task are not sorted by their keys: report it",
                unit=format_key(decode_row(unit_id)[0]),
                after=format_key(decode_row(last)[0]),
            )
        last = unit_id
        yield unit_id, unit_id, rows


def iter_verified_units(units: Iterable[tuple[Unit, int]], expected: TaskInput) -> Iterator[Unit]:
    """Yield the units of a task in the second pass over its rows, after comparing them with the first pass.

    Guarantee: each yielded unit was in the first pass; if nothing is raised, all units of the first pass were yielded.

    Args:
        units: each with its number of rows, sorted.
        expected: the result of the first pass.

    Raises:
        InvalidRequestError: the units differ from the first pass. Units before the difference may have been yielded.
    """
    seen = 0
    for block, digest in _iter_digested_blocks((unit, unit.id, rows) for unit, rows in units):
        if digest != expected.digests[seen : seen + _DIGEST_BYTES]:
            raise _changed_rows_error()
        seen += _DIGEST_BYTES
        yield from block
    if seen < len(expected.digests):
        raise _changed_rows_error()


def _changed_rows_error() -> InvalidRequestError:
    return InvalidRequestError(
        "the rows have changed since the job was started, and what is new in them was not run: let their source give "
        "the same rows each time it is read"
    )


def _iter_digested_blocks(units: Iterable[tuple[T, bytes, int]]) -> Iterator[tuple[list[T], bytes]]:
    """Yield blocks with their digests.

    Args:
        units: what is to be in a block, the unit's id, and how many rows it has.
    """
    block: list[T] = []
    parts: list[bytes] = []
    left = size = _FIRST_ROWS
    count = 0
    for one, unit_id, rows in units:
        block.append(one)
        # No id begins with a zero byte, as a number of rows does.
        parts.append(unit_id if rows == 1 else unit_id + rows.to_bytes(_COUNT_BYTES, "big"))
        left -= rows
        if left <= 0:
            yield block, _digest_parts(parts)
            block, parts = [], []
            count += 1
            left = size = size * 2 if count % _BLOCKS_OF_A_SIZE == 0 else size
    if block:
        yield block, _digest_parts(parts)


def _digest_parts(parts: list[bytes]) -> bytes:
    return blake2b(b"".join(parts), digest_size=_DIGEST_BYTES).digest()
