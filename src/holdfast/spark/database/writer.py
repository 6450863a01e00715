"""Load a DataFrame into a table of a database: the write side of ``holdfast-database``.

Spark runs `__init__` (on the driver), `write` (in tasks), `commit` and `abort` in different processes and gives each
process a copy of the object that `__init__` built. So its fields are plain values, and each phase opens the database.
What makes it exactly once is in `holdfast.records.loads`.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any

from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceArrowWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from holdfast.errors import HoldfastError, InvalidRequestError
from holdfast.options.database import DatabaseWriteOptions
from holdfast.records import Database, Row, Value, open_database
from holdfast.records.batches import batches
from holdfast.records.keys import column_bytes
from holdfast.records.load_task import LoadRow, LoadTask
from holdfast.records.loads import AttemptReport, Load, abort_load, begin_load, finish_load
from holdfast.spark.database.values import Misfit, default_names, find_row_columns, part_from_row, to_value
from holdfast.spark.failures import one_sentence, refuse_table
from holdfast.wording import nearest

if TYPE_CHECKING:
    import pyarrow as pa

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class LoadReport(WriterCommitMessage):
    """The report of a task: what it has written."""

    attempt: AttemptReport


class DatabaseWriter(DataSourceArrowWriter):
    """The writer of one load, as Spark expects it.

    Guarantee: mode ``overwrite``, and ``append`` to a table that does not exist, take effect in one step, in `commit`,
    with exactly the rows of the DataFrame; or not at all. ``append`` to an existing table updates and inserts rows as
    its tasks go on, each row once.

    Args:
        options: the options of the write.
        schema: the schema of the rows.
        overwrite: whether the rows replace those of the table.

    Raises:
        InvalidRequestError: the request is invalid.
        HoldfastError: the database cannot be used; see the message.

    Crash: a load remains that nobody ends; `Database.collect` gives it up a week later.
    """

    def __init__(self, options: DatabaseWriteOptions, schema: StructType, overwrite: bool) -> None:
        self._options = options
        self._schema = schema
        _Rows(options, schema)  # refuse what cannot be stored before any task runs
        target = options.target
        with open_database(target.url, create=True) as database:
            self._load: Load = begin_load(database.backend, database.environment, target.table, overwrite=overwrite)

    def write(self, iterator: Iterator[pa.RecordBatch]) -> LoadReport:
        """Write one partition.

        Crash: what was written is overwritten or left out by the next attempt.
        """
        with one_sentence():
            context = TaskContext.get()
            assert context is not None, "Spark calls write in tasks only"
            refuse_table(context)
            rows = _Rows(self._options, self._schema)
            with self._opened() as database:
                task = LoadTask(database.backend, database.environment, self._load, context.partitionId())
                for batch in batches(chain.from_iterable(map(rows.of, iterator)), self._options.batch_rows, _row_bytes):
                    task.write(batch)
                return LoadReport(task.finish())

    def commit(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        """Let the load take effect, and delete what it replaced."""
        with one_sentence():
            reports = [message for message in messages if isinstance(message, LoadReport)]
            if len(reports) != len(messages):
                raise InvalidRequestError("a task has not reported what it wrote: write the rows again")
            with self._opened() as database:
                finish_load(database.backend, database.environment, self._load, [report.attempt for report in reports])
                _collect(database)

    def abort(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        """Give the load up, unless it has taken effect: Spark also calls this if a process died after that."""
        with one_sentence():
            with self._opened() as database:
                if abort_load(database.backend, database.environment, self._load):
                    _log.warning("the rows were loaded before the driver failed: table=%s", self._load.table)
                _collect(database)

    def _opened(self) -> Database:
        return open_database(self._options.target.url)


def _collect(database: Database) -> None:
    """Delete what nobody sees anymore. The load has ended, so an error is no error of the load."""
    try:
        database.collect()
    except HoldfastError as error:
        _log.warning("what the load has replaced will be deleted by the next collection: %s", error)


# --- rows -------------------------------------------------------------------------------------------------------------
class _Rows:
    """Converts Arrow batches to rows of a database.

    Raises:
        InvalidRequestError: the schema has no row column, or a type that cannot be stored.
    """

    def __init__(self, options: DatabaseWriteOptions, schema: StructType) -> None:
        found = find_row_columns(options.target, schema.names)
        wanted = options.target.row_columns or default_names(max(len(found), 1))
        by_part = sorted(found, key=lambda name: found[name] or 0)
        if [name.lower() for name in by_part] != [name.lower() for name in wanted]:
            missing = next((name for name in wanted if name.lower() not in map(str.lower, found)), wanted[0])
            raise InvalidRequestError(
                f"no column has the names of the rows, name it in rowColumn: {nearest(missing, schema.names)}",
                column=missing,
            )
        self._row_at = [schema.names.index(name) for name in by_part]
        self._parts = [part_from_row(schema[name].dataType, name) for name in by_part]
        self._names = by_part
        self._columns: list[tuple[int, str, Callable[[Any], Value]]] = []
        json_columns = {name.lower() for name in options.json_columns}
        for at, field in enumerate(schema.fields):
            if at not in self._row_at:
                column_bytes(field.name)
                is_json = field.name.lower() in json_columns
                self._columns.append((at, field.name, to_value(field.dataType, field.name, is_json=is_json)))
        for name in options.json_columns:
            if name.lower() not in [column.lower() for _at, column, _convert in self._columns]:
                raise InvalidRequestError(f"no such column: {nearest(name, schema.names)}", column=name)
        if not self._columns:
            raise InvalidRequestError("there are no columns beside the names of the rows: add one")

    def of(self, batch: pa.RecordBatch) -> Iterator[LoadRow]:
        """Yield the rows of a batch."""
        columns = [_values(name, column) for name, column in zip(batch.schema.names, batch.columns, strict=True)]
        for number in range(batch.num_rows):
            row = self._row([columns[at][number] for at in self._row_at])
            yield row, {name: _stored(columns[at][number], row, name, convert) for at, name, convert in self._columns}

    def _row(self, parts: Sequence[Any]) -> Row:
        for name, part in zip(self._names, parts, strict=True):
            if part is None:
                raise InvalidRequestError("the name of a row is null: filter such rows out", column=name)
        return parts[0] if len(parts) == 1 else tuple(parts)


def _values(name: str, column: pa.Array) -> list[Any]:
    try:
        values: list[Any] = column.to_pylist()
    except UnicodeDecodeError as error:  # in Spark, a cast makes a string of any bytes
        raise InvalidRequestError("a string is not valid UTF-8: cast its bytes to binary", column=name) from error
    return values


def _stored(value: Any, row: Row, column: str, convert: Callable[[Any], Value]) -> Value | None:
    if value is None:
        return None
    try:
        return convert(value)
    except Misfit:
        raise InvalidRequestError(
            "an array cannot be stored unless it is regular and has no nulls: fill it, or store JSON",
            row=row,
            column=column,
        ) from None
    except InvalidRequestError as error:
        raise InvalidRequestError(error.message, row=row, column=column, **error.variables) from error


def _row_bytes(row: LoadRow) -> int:
    """Return about how many bytes the values of a row need."""
    return sum(
        getattr(value, "nbytes", 0) or (len(value) if isinstance(value, str | bytes | list | dict) else 8)
        for value in row[1].values()
    )
