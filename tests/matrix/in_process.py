"""Run the Python side of the data source in this process, without Spark: the same calls in the same order.

This is what Spark's Python workers run: the same batches, the same checks, the same commit.
"""

from __future__ import annotations

import contextlib
import pickle
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import pyarrow as pa
from pyspark import TaskContext

from holdfast.spark.source import HoldfastDataSource

__all__ = ["read_table", "write_batches"]


def write_batches(
    tasks: Iterable[Iterable[Any]], schema: Any, options: Mapping[str, str], *, overwrite: bool = False
) -> None:
    """Write a job with one task for each element of `tasks`.

    Args:
        tasks: the record batches of each task, as Spark would pass them.
        schema: Spark's schema.
        options: the options of the write, including `path`.
        overwrite: whether to replace the table.

    Raises:
        HoldfastError: the error that Spark would report; the job is aborted.
    """
    writer = HoldfastDataSource(dict(options)).writer(schema, overwrite)
    messages: list[Any] = []
    try:
        for number, batches in enumerate(tasks):
            with _task(number):
                messages.append(pickle.loads(pickle.dumps(writer)).write(iter(batches)))
        writer.commit(messages)
    except BaseException:
        writer.abort([*messages, None])
        raise


def read_table(options: Mapping[str, str], schema: Any = None) -> tuple[Any, Any]:
    """Scan a table.

    Returns:
        Spark's schema, and the rows as an Arrow table.
    """
    source = HoldfastDataSource(dict(options))
    schema = source.schema() if schema is None else schema
    reader = source.reader(schema)
    batches: list[Any] = []
    for partition in reader.partitions():
        batches += pickle.loads(pickle.dumps(reader)).read(partition)
    arrow = batches[0].schema if batches else None
    return schema, pa.Table.from_batches(batches, arrow) if batches else None


@contextlib.contextmanager
def _task(number: int) -> Iterator[None]:
    """Set up what a task can get from Spark: the number of its partition."""
    before = TaskContext._taskContext
    context = TaskContext()  # becomes the current one
    context._partitionId = number
    context._localProperties = {}
    try:
        yield
    finally:
        TaskContext._taskContext = before
