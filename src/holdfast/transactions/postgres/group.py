"""Turn a group of transactions into the arguments of the function `commit_group`, and its result into outcomes.

Arrays are encoded here, in PostgreSQL's binary format: the driver encodes lists as text and element by element, which
took a quarter of the client's time of a commit.

Source: PostgreSQL's ``array_recv``: number of dimensions, a flag for nulls, type of the elements, their number, lower
bound; then the length and the bytes of each element.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from operator import itemgetter
from struct import Struct
from typing import Any

from psycopg import Connection, pq
from psycopg.abc import Buffer
from psycopg.adapt import Dumper

from holdfast.errors import CorruptDataError, InvalidRequestError
from holdfast.transactions.base import Commit, Committed, Conflict, Outcome
from holdfast.transactions.validation import Step, StepKind, steps_of_group

_KEY = itemgetter(0)
_MOST_BYTES = 900_000_000
"""Of keys and values: a message to the server is limited to 1 GB."""


_HEADER = Struct("!iiIii").pack
_LENGTH = Struct("!i").pack


class BinaryArray(bytearray):
    """An array in PostgreSQL's binary format, which the driver sends as it is. The query determines its SQL type."""

    __slots__ = ()


class _ArrayDumper(Dumper):
    """Sends an array as it is."""

    format = pq.Format.BINARY

    def dump(self, obj: Buffer) -> Buffer:
        return obj


def register_arrays(connection: Connection[tuple[object, ...]]) -> None:
    """Teach a connection to send `BinaryArray` objects."""
    connection.adapters.register_dumper(BinaryArray, _ArrayDumper)


def _array_header(element_oid: int, count: int) -> BinaryArray:
    """Return the beginning of an array. An empty one has no dimension."""
    return BinaryArray(_HEADER(1, 0, element_oid, count, 1) if count else _HEADER(0, 0, element_oid, 0, 0)[:12])


def byte_array(values: Collection[bytes]) -> BinaryArray:
    """Encode values as a ``bytea[]``, copying them once: there may be many megabytes of them."""
    array = _array_header(17, len(values))
    for value in values:
        array += _LENGTH(len(value))
        array += value
    return array


def _make_integer_encoder(element_oid: int, form: str) -> Callable[[Sequence[int]], BinaryArray]:
    """Return what encodes an array of integers; `form` is that of a length and an element."""
    size, pack = Struct(form).size - 4, Struct(form).pack

    def encode_integers(values: Sequence[int]) -> BinaryArray:
        array = _array_header(element_oid, len(values))
        array += b"".join([pack(size, value) for value in values])
        return array

    return encode_integers


_int2s, _int4s, _int8s = (
    _make_integer_encoder(21, "!ih"),
    _make_integer_encoder(23, "!ii"),
    _make_integer_encoder(20, "!iq"),
)


@dataclass(frozen=True, slots=True)
class PostgresGroup:
    """A group of transactions as arguments of the SQL function `commit_group`, which validates and applies it.

    Attributes:
        steps: in the order in which the function takes them. One step may stand for the same read by several
            transactions, since files created at the same time often have the same parent directories.
        sharers: for each further transaction that shares a step: the step's index, from 1 as in SQL, and the
            transaction's index.
    """

    commits: Sequence[Commit]
    steps: Sequence[Step]
    sharers: Sequence[tuple[int, int]]

    @staticmethod
    def of(commits: Sequence[Commit]) -> PostgresGroup:
        """Break a group of transactions into the steps that the SQL function takes.

        Raises:
            InvalidRequestError: see `steps_of_group`.
        """
        steps: list[Step] = []
        sharers: list[tuple[int, int]] = []
        key: bytes | None = None
        version = 0
        for step in steps_of_group(commits):
            if step.kind is not StepKind.READ:
                key = None
            elif step.key == key and step.expected == version:
                sharers.append((len(steps), step.call))
                continue
            else:
                key, version = step.key, step.expected
            steps.append(step)
        return PostgresGroup(commits, steps, sharers)

    def arguments(self, session: int, base: int) -> list[object]:
        """Return the arguments of the SQL function `commit_group`, in the order of its parameters.

        Args:
            session: id of the session that counts the versions.
            base: the version that the first transaction would give to its records.

        Raises:
            InvalidRequestError: they are too large for a message to the server.
        """
        if sum(len(step.key) + len(step.value) for step in self.steps) > _MOST_BYTES:
            raise InvalidRequestError("a transaction in PostgreSQL is limited to 900 MB: split it")
        steps = _encode_columns(self.steps, byte_array, _int4s, _int2s, _int8s, byte_array, _int8s)
        sharers = _encode_columns(self.sharers, _int4s, _int4s)
        return [session, base, len(self.commits), *steps, *sharers, *self._encode_conditions()]

    def _encode_conditions(self) -> Sequence[object]:
        if not any(commit.ranges or commit.bounds for commit in self.commits):
            return _NO_CONDITIONS
        ranges = [
            (
                call,
                self._find_first_step_number(one.guard),
                one.start,
                one.end,
                one.count + _count_created_in_range(commit, one.start, one.end),
            )
            for call, commit in enumerate(self.commits)
            for one in commit.ranges
        ]
        bounds = [
            (call, self._find_first_step_number(bound.key), bound.most)
            for call, commit in enumerate(self.commits)
            for bound in commit.bounds
        ]
        return [
            *_encode_columns(ranges, _int4s, _int4s, byte_array, byte_array, _int8s),
            *_encode_columns(bounds, _int4s, _int4s, _int8s),
        ]

    def _find_first_step_number(self, key: bytes) -> int:
        return bisect_left(self.steps, key, key=_KEY) + 1

    def outcomes(self, status: Sequence[int], base: int) -> list[Outcome]:
        """Return the outcome of each transaction, given the result of the SQL function.

        Args:
            status: for each transaction, the number of the step that conflicts, or 0.
            base: see `arguments`.

        Raises:
            CorruptDataError: the numbers are not a result of this group.
        """
        if not all(0 <= step <= len(self.steps) for step in status):
            raise CorruptDataError("the database reports an unknown outcome: report this", status=status)
        return [
            Conflict((self.steps[step - 1].key,)) if step else Committed(base + call)
            for call, step in enumerate(status)
        ]


def _encode_columns(rows: Collection[Sequence[Any]], *encoders: Callable[[Sequence[Any]], BinaryArray]) -> list[object]:
    """Encode each column of rows as an array."""
    columns: Iterable[Sequence[Any]] = zip(*rows, strict=True) if rows else [()] * len(encoders)
    return [encode(column) for encode, column in zip(encoders, columns, strict=True)]


_NO_CONDITIONS = _encode_columns((), _int4s, _int4s, byte_array, byte_array, _int8s, _int4s, _int4s, _int8s)


def _count_created_in_range(commit: Commit, start: bytes, end: bytes) -> int:
    """Return how many records of a range exist only because the transaction's inserts come before the count."""
    return sum(start <= key < end for key in commit.inserts)
