"""Bring the rows of a job to its tasks: each to the task of its key, in the order of the keys.

Units are identified by their keys, never by a position: after a shuffle, positions are not repeatable (SPARK-23207).
Where a row goes depends on its key alone, so another attempt at a task, even in another application, gets the same
units in the same order.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from holdfast.errors import InvalidRequestError, UnsupportedError
from holdfast.records.row_keys import Row
from holdfast.spark.failures import one_sentence
from holdfast.spark.session import is_classic, require_dataframe
from holdfast.spark.units.tasks import UnitsTask, key_of_row
from holdfast.units.unit import Unit
from holdfast.wording import nearest

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark import RDD
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["Input", "as_input", "run_workers"]

_INTEGERS = ("tinyint", "smallint", "int", "bigint")
_KEY_TYPES = (*_INTEGERS, "string", "binary")
_FIGURES = "figures string"
_TASKS_WITHOUT_CONTEXT = 8
_TABLE_ROWS = 1000


class Input(Protocol):
    """The rows of a job."""

    @property
    def keys(self) -> str:
        """What says to which task a row goes: the types of its key."""
        ...

    @property
    def parallelism(self) -> int:
        """How many tasks a job has if nobody says."""
        ...

    def run(self, task: UnitsTask) -> list[str]:
        """Run the units in the tasks of the job; return what each task has returned."""
        ...


def as_input(data: Any, key: str | Sequence[str] | None) -> Input:
    """Return the rows of a DataFrame, or the pairs of an RDD.

    Raises:
        InvalidRequestError: it is neither, or has no such key.
        UnsupportedError: the RDD's application is not classic.
    """
    if hasattr(type(data), "repartitionAndSortWithinPartitions"):  # a DataFrame of Spark Connect has every attribute
        if key is not None:
            raise InvalidRequestError("the key of an RDD's pair is its first part: leave out the argument key")
        return _PairInput(data)
    require_dataframe(data)
    columns = _key_columns(data, key)
    return _ClassicInput(data, columns) if is_classic(data.sparkSession) else _ConnectInput(data, columns)


def _key_columns(df: DataFrame, key: str | Sequence[str] | None) -> tuple[str, ...]:
    names = [key] if isinstance(key, str) else list(key or ())
    if not names:
        raise InvalidRequestError(
            "a job needs to know which rows are which: pass key='column', or several columns", columns=df.columns
        )
    has_cases = str(df.sparkSession.conf.get("spark.sql.caseSensitive")).lower() == "true"
    for name in names:
        found = [one for one in df.schema.fields if one.name == name]
        same = found if has_cases else [one for one in df.schema.fields if one.name.lower() == name.lower()]
        if not found or len(same) > 1:
            hint = nearest(name, df.columns) if not found else "several columns have it, rename them"
            raise InvalidRequestError(f"the DataFrame has no such column for the key: {hint}", column=name)
        kind = found[0].dataType.simpleString()
        if kind not in _KEY_TYPES:
            raise InvalidRequestError(
                "the key of a unit is a text, an integer or bytes: cast the column to string", column=name, type=kind
            )
    return tuple(names)


def _types(df: DataFrame, columns: tuple[str, ...]) -> str:
    """Return the types of the key. Integers are one type: a key that fits into fewer bits is the same key."""
    kinds = [df.schema[name].dataType.simpleString() for name in columns]
    return "columns: " + ", ".join("bigint" if kind in _INTEGERS else kind for kind in kinds)


def _arranged(df: DataFrame, columns: tuple[str, ...], tasks: int) -> DataFrame:
    """Bring each row to the task of its key. Spark's hash of an integer depends on its width, so all get the same."""
    names = [f"`{name.replace('`', '``')}`" for name in columns]
    places = [
        df[name].cast("bigint") if df.schema[column].dataType.simpleString() in _INTEGERS else df[name]
        for name, column in zip(names, columns, strict=True)
    ]
    return df.repartition(tasks, *places).sortWithinPartitions(*names)


class _ClassicInput:
    """The rows of a DataFrame of classic Spark."""

    def __init__(self, df: DataFrame, columns: tuple[str, ...]) -> None:
        self._df = df
        self._columns = columns

    @property
    def keys(self) -> str:
        return _types(self._df, self._columns)

    @property
    def parallelism(self) -> int:
        return int(self._df.sparkSession.sparkContext.defaultParallelism)

    def run(self, task: UnitsTask) -> list[str]:
        columns = self._columns

        def run(shard: int, rows: Iterable[Any]) -> Iterator[str]:
            return task.run_shard(shard, ((key_of_row(row, columns), row) for row in rows))

        arranged = _arranged(self._df, columns, task.job.shards)
        found = list(arranged.rdd.mapPartitionsWithIndex(run).collect())
        if len(found) < task.job.shards:  # Spark knows that there are no rows, and has left the shuffle out
            found = _run_without_rows(self._df.sparkSession, task)
        return found


class _ConnectInput:
    """The rows of a DataFrame of Spark Connect, which has no RDDs."""

    def __init__(self, df: DataFrame, columns: tuple[str, ...]) -> None:
        self._df = df
        self._columns = columns

    @property
    def keys(self) -> str:
        return _types(self._df, self._columns)

    @property
    def parallelism(self) -> int:
        return _TASKS_WITHOUT_CONTEXT

    def run(self, task: UnitsTask) -> list[str]:
        columns, schema = self._columns, self._df.schema

        def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            rows = (row for batch in batches for row in _rows_of(batch, schema))
            pairs = ((key_of_row(row, columns), row) for row in rows)
            yield from _as_batches(task.run_shard(_partition(), pairs))

        arranged = _arranged(self._df, columns, task.job.shards)
        found = [row[0] for row in arranged.mapInArrow(run, _FIGURES).collect()]
        if len(found) < task.job.shards:  # Spark knows that there are no rows, and has left the shuffle out
            found = _run_without_rows(self._df.sparkSession, task)
        return found


class _PairInput:
    """The pairs of an RDD: key and value."""

    def __init__(self, rdd: RDD[Any]) -> None:
        self._rdd = rdd

    @property
    def keys(self) -> str:
        return "pairs"

    @property
    def parallelism(self) -> int:
        return int(self._rdd.context.defaultParallelism)

    def run(self, task: UnitsTask) -> list[str]:
        def run(shard: int, pairs: Iterable[tuple[bytes, tuple[Row, object]]]) -> Iterator[str]:
            return task.run_shard(shard, (pair for _unit_id, pair in pairs))

        sorted_pairs = self._rdd.mapPartitions(_with_ids).repartitionAndSortWithinPartitions(
            task.job.shards, zlib.crc32
        )
        return list(sorted_pairs.mapPartitionsWithIndex(run).collect())


def run_workers(spark: SparkSession, task: UnitsTask) -> list[str]:
    """Run a worker in each task of a job; return what each has returned."""
    return _run_in_slots(spark, task, task.run_worker)


def _run_without_rows(spark: SparkSession, task: UnitsTask) -> list[str]:
    return _run_in_slots(spark, task, lambda shard: task.run_shard(shard, ()))


def _run_in_slots(spark: SparkSession, task: UnitsTask, work: Callable[[int], Iterator[str]]) -> list[str]:
    """Call a function in each task of a job; return what each has returned."""
    slots = task.job.shards
    if is_classic(spark):
        return list(spark.sparkContext.parallelize(range(slots), slots).mapPartitionsWithIndex(_called(work)).collect())
    return [row[0] for row in spark.range(0, slots, 1, slots).mapInArrow(_called_in_arrow(work), _FIGURES).collect()]


def _called(work: Callable[[int], Iterator[str]]) -> Callable[[int, Iterable[int]], Iterator[str]]:
    return lambda slot, _rows: work(slot)


def _called_in_arrow(
    work: Callable[[int], Iterator[str]],
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for _batch in batches:
            pass
        yield from _as_batches(work(_partition()))

    return run


def _with_ids(pairs: Iterable[object]) -> Iterator[tuple[bytes, tuple[Row, object]]]:
    with one_sentence():
        for pair in pairs:
            if not isinstance(pair, tuple) or len(pair) != 2:
                raise InvalidRequestError("the elements of the RDD are no pairs: map them to (key, value)")
            unit = Unit.of(*pair)  # a value that Spark cannot copy either: its own message would not name the unit
            yield unit.id, (unit.key, pair[1])


def _partition() -> int:
    from pyspark import TaskContext

    context = TaskContext.get()
    if context is None:
        raise UnsupportedError("units run in Spark tasks only")
    return int(context.partitionId())


def _rows_of(batch: pa.RecordBatch, schema: Any) -> Iterator[Any]:
    """Yield the rows of a batch as Spark's client would."""
    import pyarrow as pa
    from pyspark.sql.conversion import ArrowTableToRowsConversion

    for start in range(0, batch.num_rows, _TABLE_ROWS):
        yield from ArrowTableToRowsConversion.convert(pa.Table.from_batches([batch.slice(start, _TABLE_ROWS)]), schema)


def _as_batches(figures: Iterator[str]) -> Iterator[pa.RecordBatch]:
    import pyarrow as pa

    for one in figures:
        yield pa.RecordBatch.from_pydict({"figures": [one]})
