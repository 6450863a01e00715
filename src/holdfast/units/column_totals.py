"""Read a column of a table in one pass: its sum and its largest values, in bounded memory."""

from __future__ import annotations

import heapq
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

from holdfast.errors import InvalidRequestError
from holdfast.records.keys import cell_of, column_bytes
from holdfast.records.row_keys import Row
from holdfast.records.rows import present_value, read_cells, rows_range
from holdfast.records.snapshot import DatabaseSnapshot
from holdfast.records.values import Value

Number: TypeAlias = "int | float"


@dataclass(frozen=True, slots=True)
class LargeCell:
    """A cell with a large value.

    Attributes:
        key: of its record.
    """

    key: bytes
    value: Number

    @property
    def row(self) -> Row:
        """The row."""
        return cell_of(self.key)[0]


@dataclass(frozen=True, slots=True)
class ColumnTotals:
    """A column at one instant.

    Attributes:
        rows: number of rows that have the column.
        sum: of their values; exact if all are integers.
        largest: the cells with the largest values, the largest first; of equal ones, that of the first row.
    """

    rows: int
    sum: Number
    largest: Sequence[LargeCell]


def read_column(snapshot: DatabaseSnapshot, table: str, column: str, most: int) -> ColumnTotals:
    """Read a column.

    Args:
        most: how many of the largest cells to return: no more than these are in memory.

    Raises:
        NotFoundError: there is no such table.
        InvalidRequestError: a value is no finite number: choose another column.
    """
    definition = snapshot.table(table)
    # No row ends with a part of a column's name: its encoding ends with a zero byte, which names do not contain.
    ending = b"\0" + column_bytes(column)
    heap: list[tuple[Number, int, bytes]] = []
    rows, whole, fractions = 0, 0, 0.0
    has_fractions = False
    for key, stored in read_cells(snapshot.reader, *rows_range(definition)):
        found = present_value(definition, key, stored) if key.endswith(ending) else None
        if found is None:
            continue
        value = _number(found, key, table, column)
        rows += 1
        if isinstance(value, int):
            whole += value
        else:
            fractions += value
            has_fractions = True
        if len(heap) < most:
            heapq.heappush(heap, (value, -rows, key))
        elif value > heap[0][0]:
            heapq.heapreplace(heap, (value, -rows, key))
    largest = [LargeCell(key, value) for value, _place, key in sorted(heap, reverse=True)]
    return ColumnTotals(rows, _sum(whole, fractions, table, column) if has_fractions else whole, largest)


def _sum(whole: int, fractions: float, table: str, column: str) -> float:
    try:
        found = whole + fractions
    except OverflowError:
        found = math.inf
    if not math.isfinite(found):
        raise InvalidRequestError(
            "the sum of the column is too large for a float: choose another column, or database integers only",
            table=table,
            column=column,
        )
    return found


def _number(value: Value, key: bytes, table: str, column: str) -> Number:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise InvalidRequestError(
            "the column has a value that is no number: choose another column",
            table=table,
            row=cell_of(key)[0],
            column=column,
            type=type(value).__name__,
        )
    if isinstance(value, float) and not math.isfinite(value):
        raise InvalidRequestError(
            "the column has a value that is not finite: choose another column",
            table=table,
            row=cell_of(key)[0],
            column=column,
            value=value,
        )
    return value
