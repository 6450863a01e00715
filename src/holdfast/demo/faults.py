"""Make two task attempts fail on purpose, in a data source that otherwise is Holdfast's own."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.types import StructType

from holdfast.options.write import WriteOptions, parse_write_options
from holdfast.spark.source import HoldfastDataSource
from holdfast.spark.task_report import TaskReport
from holdfast.spark.writer import HoldfastWriter

KILLED = "killed"
FAILED = "failed"
_KILLED_TASK, _FAILED_TASK = 0, 1
_KILLED_AFTER_BATCHES = 5
_MARKS = "faultmarks"


class InjectedError(RuntimeError):
    """Raised on purpose."""


class FaultyDataSource(HoldfastDataSource):
    """The data source ``holdfast_demo``; an additional option names a directory in which it records injected faults."""

    @classmethod
    def name(cls) -> str:
        return "holdfast_demo"

    def writer(self, schema: StructType, overwrite: bool) -> HoldfastWriter:
        """Return a writer for an ordinary job, except that two of its attempts will fail."""
        options = {key: value for key, value in self.options.items() if key.lower() != _MARKS}
        marks = {key.lower(): value for key, value in self.options.items()}[_MARKS]
        return _FaultyWriter(parse_write_options(options, overwrite), schema, Path(marks))


class _FaultyWriter(HoldfastWriter):
    def __init__(self, options: WriteOptions, schema: StructType, marks: Path) -> None:
        super().__init__(options, schema)
        self._marks = marks

    def write(self, iterator: Iterator[pa.RecordBatch]) -> TaskReport:
        context = TaskContext.get()
        assert context is not None, "write runs in tasks only"
        first, task = context.attemptNumber() == 0, context.partitionId()
        if first and task == _KILLED_TASK:
            return super().write(self._until_death(iterator, task))
        report = super().write(iterator)
        if first and task == _FAILED_TASK:
            self._mark(FAILED, task)
            raise InjectedError("the demo makes this attempt fail after its upload and before its report")
        return report

    def _until_death(self, batches: Iterator[pa.RecordBatch], task: int) -> Iterator[pa.RecordBatch]:
        for number, batch in enumerate(batches):
            if number == _KILLED_AFTER_BATCHES:
                self._mark(KILLED, task)
                os._exit(137)  # without exception or cleanup, like the kernel's out-of-memory killer
            yield batch

    def _mark(self, what: str, task: int) -> None:
        (self._marks / f"{what}-task-{task}").touch(exist_ok=False)
