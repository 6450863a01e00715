"""Find the columns of a DataFrame that hold the names of rows, and turn conditions on them into ranges of keys."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from holdfast.errors import InvalidRequestError
from holdfast.options.conditions import Condition
from holdfast.options.database import DatabaseTable
from holdfast.records.keys import cells_range
from holdfast.records.row_keys import Part, prefix_range
from holdfast.records.tables import Table
from holdfast.wording import nearest

_PART = re.compile(r"row_([1-9]\d?)", re.IGNORECASE)


def default_names(parts: int) -> tuple[str, ...]:
    """Return the names of the row columns if the user gives none: ``row``, or ``row_1``, ``row_2``, ….

    Args:
        parts: of the names; 1 for names that are no tuples.
    """
    return ("row",) if parts == 1 else tuple(f"row_{number}" for number in range(1, parts + 1))


def find_row_columns(table: DatabaseTable, names: Sequence[str]) -> dict[str, int | None]:
    """Return those of a schema's columns that hold names of rows: which part of a tuple, or None for the whole name."""
    if table.row_columns is None:
        whole = [name for name in names if name.lower() == "row"]
        if whole:
            return dict.fromkeys(whole)
        return {name: int(found[1]) - 1 for name in names if (found := _PART.fullmatch(name)) is not None}
    wanted = {name.lower(): at for at, name in enumerate(table.row_columns)}
    single = len(table.row_columns) == 1
    return {name: None if single else wanted[name.lower()] for name in names if name.lower() in wanted}


@dataclass(frozen=True, slots=True)
class RowBounds:
    """A range of rows.

    Attributes:
        start, end: encoded rows, or the beginnings of such: where the range begins, and where it ends. No end is None.
    """

    start: bytes = b""
    end: bytes | None = None

    def within(self, operator: str, part: Part) -> RowBounds:
        """Return the rows in the range whose name, or the first part of it, meets a condition.

        Args:
            operator: ``= < <= > >=``, or ``starts`` for texts.

        Raises:
            InvalidRequestError: no row has such a name.
        """
        low, high = prefix_range(part) if operator == "starts" else prefix_range((part,))
        start = {">": high, ">=": low, "=": low, "starts": low}.get(operator, b"")
        end = {"<": low, "<=": high, "=": high, "starts": high}.get(operator)
        ends = [one for one in (self.end, end) if one is not None]
        return RowBounds(max(self.start, start), min(ends, default=None))

    def in_table(self, table: Table) -> tuple[bytes, bytes]:
        """Return the range of keys; it is empty if the start is not before the end."""
        first, last = cells_range(table.id)
        return first + self.start, last if self.end is None else first + self.end


EVERYTHING = RowBounds()


def bounds_of(conditions: Sequence[Condition], table: DatabaseTable) -> RowBounds:
    """Return the range of rows that meet all conditions of a read.

    Raises:
        InvalidRequestError: a condition is none that names of rows have an order for.
    """
    names = ("row", "row_1") if table.row_columns is None else table.row_columns[:1]
    bounds = EVERYTHING
    for one in conditions:
        if one.column.lower() not in [name.lower() for name in names]:
            raise InvalidRequestError(
                "a read takes conditions on the names of rows only, filter the DataFrame instead: "
                + nearest(one.column, names),
                column=one.column,
            )
        if one.operator in ("in", "!=") or isinstance(one.value, bool) or not isinstance(one.value, str | int):
            raise InvalidRequestError(
                "a row's name is compared with a text or an integer, by = < <= > >=: filter the DataFrame instead",
                operator=one.operator,
                value=one.value,
            )
        bounds = bounds.within(one.operator, one.value)
    return bounds
