"""Read one snapshot of a database."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from holdfast.errors import InvalidRequestError
from holdfast.records.cells import VALUE, Content
from holdfast.records.keys import cell_key, column_bytes, counter_of, history_range, row_prefix
from holdfast.records.row_keys import Row, after_prefix
from holdfast.records.rows import after_row, contents_of, present_value, read_cells, read_value, rows_of, rows_range
from holdfast.records.tables import Table, TablesRead
from holdfast.records.values import Value
from holdfast.transactions.base import Backend, SnapshotReader


class DatabaseSnapshot:
    """Tables as they were at one instant.

    Attributes:
        reader: reads the records of the snapshot.
    """

    def __init__(self, reader: SnapshotReader, database: Backend) -> None:
        self.reader = reader
        self._tables = TablesRead(reader, database)

    def table(self, name: str) -> Table:
        """Return a table.

        Raises:
            NotFoundError: there was none with this name.
        """
        return self._tables.get(name)

    def get(self, table: str, row: Row, *, column: str = VALUE, default: Value | None = None) -> Value | None:
        """Return the value of a cell, or `default`."""
        return self.get_many(table, [row], column=column).get(row, default)

    def get_many(self, table: str, rows: Iterable[Row], *, column: str = VALUE) -> dict[Row, Value]:
        """Return the values of those rows that have the column."""
        definition, name = self._tables.get(table), column_bytes(column)
        keys = {cell_key(definition.id, row, name): row for row in rows}
        found: dict[Row, Value] = {}
        for key, record in self.reader.get_many(list(keys)).items():
            value = present_value(definition, key, Content(record.value, record.number))
            if value is not None:
                found[keys[key]] = value
        return found

    def get_row(self, table: str, row: Row) -> dict[str, Value]:
        """Return the values of a row by column."""
        definition = self._tables.get(table)
        prefix = row_prefix(definition.id, row)
        cells = read_cells(self.reader, prefix, after_prefix(prefix))
        return next((columns for _row, columns in rows_of(definition, cells)), {})

    def scan(
        self,
        table: str,
        *,
        start: Row | None = None,
        end: Row | None = None,
        prefix: Row | None = None,
        after: Row | None = None,
    ) -> Iterator[tuple[Row, dict[str, Value]]]:
        """Yield rows in order, each with its values by column.

        Args:
            start, end, prefix: see `Database.scan`.
            after: go on behind this row, of the same scan.
        """
        definition, cells = self._cells(table, start, end, prefix, after)
        return rows_of(definition, cells)

    def names(
        self,
        table: str,
        *,
        start: Row | None = None,
        end: Row | None = None,
        prefix: Row | None = None,
        after: Row | None = None,
    ) -> Iterator[Row]:
        """Yield the names of the rows that `scan` would yield, also if their values cannot be read."""
        for row, _contents in contents_of(*self._cells(table, start, end, prefix, after)):
            yield row

    def history(self, table: str, row: Row, *, column: str = VALUE) -> list[tuple[int, Value | None]]:
        """Return the values of a cell with their update counters, the oldest first; None where it was deleted.

        Raises:
            InvalidRequestError: the table has no history.
        """
        definition = self._tables.get(table)
        if not definition.history:
            raise InvalidRequestError("the table keeps no history: create another one that does", table=table)
        first, last = history_range(cell_key(definition.id, row, column_bytes(column)))
        return [
            (counter_of(key), read_value(content, row, column) if content.encoded else None)
            for key, content in read_cells(self.reader, first, last)
        ]

    def _cells(
        self, table: str, start: Row | None, end: Row | None, prefix: Row | None, after: Row | None
    ) -> tuple[Table, Iterator[tuple[bytes, Content]]]:
        definition = self._tables.get(table)
        first, last = rows_range(definition, start, end, prefix)
        if after is not None:
            first = max(first, after_row(definition, after))
        return definition, read_cells(self.reader, first, last)
