"""The data source's Python side without Spark: the calls that Spark makes, in its order, in this process.

It is what Spark's Python workers run, minus the workers: the same batches, the same checks, the same commit.
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
    """Write a job, each of `tasks` as one task.

    Args:
        tasks: record batches, as Spark would hand them over.
        schema: Spark's.
        options: of the write, `path` among them.

    Raises:
        HoldfastError: what Spark would report; the job is aborted.
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
    """A scan.

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
    """What a task can ask of Spark: the number of its partition."""
    before = TaskContext._taskContext
    context = TaskContext()  # which makes itself the current one
    context._partitionId = number
    context._localProperties = {}
    try:
        yield
    finally:
        TaskContext._taskContext = before
