"""Write the rows of one task of a load: batch by batch, as often as the task is repeated."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import partial

from holdfast.errors import ConflictError, CorruptDataError, InvalidRequestError
from holdfast.records.cell_transaction import CellTransaction
from holdfast.records.cells import apply_writes, head_record
from holdfast.records.keys import cell_key, column_bytes, history_key, row_prefix, table_key
from holdfast.records.loads import (
    AttemptReport,
    Load,
    Loaded,
    cell_digest,
    require_open,
    require_table,
    until_known,
)
from holdfast.records.row_keys import Row
from holdfast.records.tables import read_table
from holdfast.records.values import Value, encode_value
from holdfast.runtime import Environment
from holdfast.transactions.base import Backend, Record
from holdfast.transactions.transaction import Transaction

LoadRow = tuple[Row, Mapping[str, "Value | None"]]
"""A row with its values by column; None for no value."""


class LoadTask:
    """One attempt at a task of a load.

    Guarantee: several attempts at a task, one after the other or at once, have the effect of one, if their rows are the
    same. If not, the end of a load that makes or replaces a table fails; one that appends keeps what was first.

    Args:
        task: the number of the task in the load: the same for all attempts.
    """

    def __init__(self, backend: Backend, environment: Environment, load: Load, task: int) -> None:
        self._loaded = Loaded()
        self._backend = backend
        self._environment = environment
        self._load = load
        self._task = task
        self._attempt = environment.ids.token()
        self._key = row_prefix(load.id, (task, self._attempt))
        self._batches = 0

    def write(self, rows: Sequence[LoadRow]) -> None:
        """Write rows in one transaction; call it with a few hundred.

        In a load that appends, a cell for which there is no value is deleted.

        Raises:
            FencedError: the load has ended: stop.
            ConflictError: the table was dropped or replaced meanwhile; or the database has lost what this attempt had
                written: run the task again.
            InvalidRequestError: a value cannot be stored, or a row occurs twice; the error names the row.
        """
        _refuse_twice(rows)
        self._loaded += self._append(rows) if self._load.appends else self._write_hidden(rows)
        self._batches += 1

    def finish(self) -> AttemptReport:
        """Report what was written, for `finish_load`: everything, and durably.

        Raises:
            FencedError: the load has ended: stop.
            ConflictError: the database has lost something of it: run the task again.
        """
        if self._batches:
            self._backend.make_durable()
            found = self._backend.get_many([self._load.key, self._key])
            if self._key not in found:
                require_open(self._load, found.get(self._load.key))
            self._require_batches(found.get(self._key), self._batches)
        return AttemptReport(self._loaded, self._key, self._batches)

    def _require_batches(self, record: Record | None, *counts: int) -> None:
        """Check that the database has as many batches of this attempt as it has written.

        Raises:
            ConflictError: it has fewer.
        """
        if (b"0" if record is None else record.value) not in [b"%d" % count for count in counts]:
            raise ConflictError(
                "the database has lost rows, perhaps in a crash: run the task again", table=self._load.table
            )

    def _advance(self, transaction: Transaction, record: Record | None) -> None:
        """Count a batch, together with its rows; it may be there already, if a reply was lost.

        Raises: like `_require_batches`.
        """
        self._require_batches(record, self._batches, self._batches + 1)
        transaction.put(self._key, b"%d" % (self._batches + 1))

    def _write_hidden(self, rows: Sequence[LoadRow]) -> Loaded:
        load, loaded = self._load, Loaded()
        records: dict[bytes, bytes] = {}
        for row, columns in rows:
            cells: dict[bytes, bytes] = {}
            for column, value in columns.items():
                if value is not None:
                    key, encoded = _encoded(load.hidden, row, column, value)
                    cells[key] = head_record(1, encoded) if load.history else encoded
                    if load.history:
                        records[history_key(key, 1)] = encoded
            records |= cells
            loaded += Loaded(bool(cells), len(cells), sum(cell_digest(*cell) for cell in cells.items()))

        def write(transaction: Transaction) -> None:
            found = transaction.get_many([load.key, self._key])
            require_open(load, found.get(load.key))
            self._advance(transaction, found.get(self._key))
            for key, value in records.items():
                transaction.put(key, value)

        until_known(self._backend, write, self._environment)
        return loaded

    def _append(self, rows: Sequence[LoadRow]) -> Loaded:
        load = self._load
        marks = {row_prefix(load.hidden, row): row for row, _columns in rows}
        own = json.dumps([self._task, self._attempt, self._batches]).encode()
        for row, columns in rows:
            for column, value in columns.items():
                if value is not None:
                    _encoded(load.hidden, row, column, value)  # refuse it before anything is written

        def write(transaction: Transaction) -> None:
            found = transaction.get_many([load.key, self._key, table_key(load.table), *marks])
            require_open(load, found.get(load.key))
            require_table(load, found.get(table_key(load.table)))
            self._advance(transaction, found.get(self._key))
            done = {row for key, row in marks.items() if key in found and self._is_done(row, found[key], own)}
            cells = CellTransaction(transaction, partial(read_table, reader=transaction, database=self._backend))
            fresh = [(row, columns) for row, columns in rows if row not in done]
            if load.history:  # which reads what it writes
                cells.prefetch(cells.cell_key(load.table, row, column) for row, columns in fresh for column in columns)
            for row, columns in fresh:
                for column, value in columns.items():
                    if value is None:
                        cells.delete(load.table, row, column=column)
                    else:
                        cells.put(load.table, row, value, column=column)
                transaction.put(row_prefix(load.hidden, row), own)
            cells.end_unit()
            apply_writes(cells.writes, transaction)

        until_known(self._backend, write, self._environment)
        counts = [sum(value is not None for value in columns.values()) for _row, columns in rows]
        return Loaded(sum(map(bool, counts)), sum(counts))

    def _is_done(self, row: Row, mark: Record, own: bytes) -> bool:
        """Check whether this task has written a row before: in an earlier attempt, or in a commit with a lost reply.

        Raises:
            InvalidRequestError: another task has written it, or this attempt has, in an earlier batch.
        """
        if mark.value == own:
            return True
        try:
            task, attempt, _batch = json.loads(mark.value)
        except (ValueError, TypeError) as error:
            raise CorruptDataError("the mark of a row cannot be read: report it", row=row) from error
        if task != self._task or attempt == self._attempt:
            raise _twice(row)
        return True


def _encoded(table_id: int, row: Row, column: str, value: Value) -> tuple[bytes, bytes]:
    """Return the key and the bytes of a cell.

    Raises:
        InvalidRequestError: it cannot be stored; the error names the row and the column.
    """
    try:
        return cell_key(table_id, row, column_bytes(column)), encode_value(value)
    except InvalidRequestError as error:
        given = {**error.variables, "row": row, "column": column}
        raise InvalidRequestError(error.message, **given) from error


def _refuse_twice(rows: Sequence[LoadRow]) -> None:
    seen: set[Row] = set()
    for row, _columns in rows:
        if row in seen:
            raise _twice(row)
        seen.add(row)


def _twice(row: Row) -> InvalidRequestError:
    return InvalidRequestError("two of the rows have the same name: aggregate them, or drop one", row=row)
