"""Sources like ``holdfast-database`` whose processes die at chosen moments; see test_spark_store.py."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from pyspark import TaskContext
from pyspark.sql.datasource import WriterCommitMessage
from pyspark.sql.types import StructType

from holdfast.options.database import parse_database_write
from holdfast.spark.database.writer import DatabaseWriter, LoadReport
from holdfast.spark.source import HoldfastDatabaseDataSource

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["DyingStoreSource"]


class DyingStoreSource(HoldfastDatabaseDataSource):
    """``dying-database`` takes the options of ``holdfast-database``, and where to die.

    ``die``: ``early`` (in the task, after some batches), ``late`` (in the task, after everything is written),
    ``before`` or ``after`` (in the commit of the job). ``once``: a directory for marks: each partition dies twice.
    """

    @classmethod
    def name(cls) -> str:
        return "dying-database"

    def writer(self, schema: StructType, overwrite: bool) -> DatabaseWriter:
        options = dict(self.options)
        die, once = options.pop("die"), options.pop("once")
        return DyingWriter(die, Path(once), options, schema, overwrite)


class DyingWriter(DatabaseWriter):
    def __init__(self, die: str, once: Path, options: dict[str, str], schema: StructType, overwrite: bool) -> None:
        super().__init__(parse_database_write(options), schema, overwrite)
        self._die = die
        self._once = once

    def write(self, iterator: Iterator[pa.RecordBatch]) -> LoadReport:
        report = super().write(self._until(iterator))
        self._maybe_die("late")
        return report

    def commit(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        if self._die == "before":
            os._exit(3)
        super().commit(messages)
        if self._die == "after":
            os._exit(3)

    def _until(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for number, batch in enumerate(batches):
            if number == 3:
                self._maybe_die("early")
            yield batch

    def _maybe_die(self, when: str) -> None:
        context = TaskContext.get()
        assert context is not None
        mark = self._once / f"{context.partitionId()}-{context.attemptNumber()}"
        if self._die == when and context.attemptNumber() < 2 and not mark.exists():
            mark.touch()
            os._exit(3)
