"""Bring the rows of a job to its tasks: each to the task of its key, in the order of the keys.

Units are identified by their keys, never by a position: after a shuffle, positions are not repeatable (SPARK-23207).
Where a row goes depends on its key alone, so another attempt at a task, even in another application, gets the same
units in the same order.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from operator import itemgetter
from typing import TYPE_CHECKING, Any, NamedTuple

from pyspark.sql.functions import concat, is_valid_utf8, lit, raise_error, when, xxhash64
from pyspark.sql.types import ArrayType, MapType, StructType

from holdfast.errors import InvalidRequestError, UnsupportedError
from holdfast.records.row_keys import Row
from holdfast.spark.failures import one_sentence
from holdfast.spark.session import is_classic, require_dataframe
from holdfast.spark.units.tasks import UnitsTask, key_of, key_of_row
from holdfast.units.job_input import JobInput, TaskInput, surveyed
from holdfast.units.unit import Unit, id_of
from holdfast.wording import nearest

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark import RDD, SparkContext
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import DataType

_INTEGERS = ("tinyint", "smallint", "int", "bigint")
_KEY_TYPES = (*_INTEGERS, "string", "binary")
_AS_JSON = "with unix_micros of timestamps in it, since another text may be that of two values"
_AS_KEY = {
    "decimal": "take to_json(array(column)), since a text depends on spark.sql.ansi.enabled",
    "timestamp": "take unix_micros of the column, since a text depends on the time zone, and may be that of two",
    "struct": "take the fields as columns, since a text may be that of two values",
    "map": f"take to_json(map_entries(column)), {_AS_JSON}",
    **dict.fromkeys(("array", "variant"), f"take to_json of the column, {_AS_JSON}"),
}
"""What to do with columns of other types, if a text is not the same key: as texts, ["x, y"] and ["x", "y"] are one."""

_NUMBER = "number long"
_OWN_HASH = "holdfast units"
_TASKS_WITHOUT_CONTEXT = 8
_TABLE_ROWS = 1000


def as_input(data: Any, key: str | Sequence[str] | None) -> _FrameInput | _PairInput:
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
    if not is_classic(data.sparkSession):  # its client keeps what columns a DataFrame had; the server reads them anew
        data = data.select("*")
    return _FrameInput(data, _key_columns(data, key))


class _KeyColumn(NamedTuple):
    """A column of the key. Integers are one type: a key that fits into fewer bits is the same key."""

    name: str
    type: str


def _key_columns(df: DataFrame, key: str | Sequence[str] | None) -> tuple[_KeyColumn, ...]:
    names = [key] if isinstance(key, str) else list(key or ())
    if not names:
        raise InvalidRequestError(
            "a job needs to know which rows are which: pass key='column', or several columns", columns=df.columns
        )
    has_cases = str(df.sparkSession.conf.get("spark.sql.caseSensitive")).lower() == "true"
    columns = []
    for name in names:
        found = [one for one in df.schema.fields if one.name == name]
        same = found if has_cases else [one for one in df.schema.fields if one.name.lower() == name.lower()]
        if not found or len(same) > 1:
            hint = nearest(name, df.columns) if not found else "several columns have it, rename them"
            raise InvalidRequestError(f"the DataFrame has no such column for the key: {hint}", column=name)
        kind = found[0].dataType.simpleString()
        if kind not in _KEY_TYPES:
            advice = _AS_KEY.get(re.split("[<(]", kind)[0], "cast the column to string")
            raise InvalidRequestError(
                f"the key of a unit is a text, an integer or bytes: {advice}", column=name, type=kind
            )
        columns.append(_KeyColumn(name, "bigint" if kind in _INTEGERS else kind))
    return tuple(columns)


def _with_true_texts(df: DataFrame, columns: Sequence[_KeyColumn]) -> DataFrame:
    """Return a DataFrame that fails for a key that is no true text, before any row reaches Python.

    A text of Spark may be any bytes, such as a line of a file in Latin-1. Python gets the same character for each of
    them that is not UTF-8, so two keys would become one. The check is in the column, which nothing leaves out, and not
    in what tells the task: with a single task, Spark does not look at that.
    """
    for column in columns:
        if column.type == "string":
            refused = InvalidRequestError(
                "the key of a unit is a text that is not UTF-8: cast the column to binary, or decode it",
                column=column.name,
            )
            # Two literals, since Spark shows them in errors about the query, and a line end, since it adds words
            told = concat(
                lit(f"{InvalidRequestError.__module__}."), lit(f"{InvalidRequestError.__name__}: {refused}\n")
            )
            text = df[_quoted(column)]
            df = df.withColumn(column.name, when(~is_valid_utf8(text), raise_error(told)).otherwise(text))
    return df


def _quoted(column: _KeyColumn) -> str:
    return f"`{column.name.replace('`', '``')}`"


@dataclass(frozen=True)
class _FrameInput:
    """The rows of a DataFrame."""

    df: DataFrame
    columns: tuple[_KeyColumn, ...]

    @property
    def keys(self) -> str:
        """Where the keys of the units come from."""
        return "columns: " + ", ".join(f"{column.name} {column.type}" for column in self.columns)

    @property
    def parallelism(self) -> int:
        """How many tasks a job has by default."""
        spark = self.df.sparkSession
        return int(spark.sparkContext.defaultParallelism) if is_classic(spark) else _TASKS_WITHOUT_CONTEXT

    def arranged(self, tasks: int) -> _RddRows | _ConnectRows:
        """Bring each row to the task of its key. Spark's hash of an integer depends on its width: all get the same.

        What tells the task is a hash of the key and a constant, by which nothing else is partitioned. The key itself
        could be that of a table's buckets, and its hash that of a shuffle in the query. Spark leaves the shuffle out
        then, because the rows are in place, and next reads the table without its buckets, or merges the partitions of
        the other shuffle, because nothing needs them (`EnsureRequirements`, `DisableUnnecessaryBucketedScan`,
        `CoalesceShufflePartitions`).
        """
        df = _with_true_texts(self.df, self.columns)
        quoted = list(map(_quoted, self.columns))
        places = [df[name].cast(column.type) for name, column in zip(quoted, self.columns, strict=True)]
        df = df.repartition(tasks, xxhash64(lit(_OWN_HASH), *places)).sortWithinPartitions(*quoted)
        names = tuple(column.name for column in self.columns)
        if not is_classic(df.sparkSession):
            return _ConnectRows(df, names, tasks)
        return _RddRows(df.rdd, partial(_ids_of_rows, names), partial(_pairs_of_rows, names), tasks)


@dataclass(frozen=True)
class _PairInput:
    """The pairs of an RDD: key and value."""

    rdd: RDD[Any]

    @property
    def keys(self) -> str:
        return "pairs"

    @property
    def parallelism(self) -> int:
        return int(self.rdd.context.defaultParallelism)

    def arranged(self, tasks: int) -> _RddRows:
        rdd = self.rdd.mapPartitions(_with_ids).repartitionAndSortWithinPartitions(tasks, zlib.crc32)
        return _RddRows(rdd, partial(map, itemgetter(0)), partial(map, itemgetter(1)), tasks)


@dataclass(frozen=True)
class _RddRows:
    """An RDD after a shuffle. Spark keeps the files of the shuffle, so the second pass does not evaluate the source."""

    rdd: RDD[Any]
    ids_of: Callable[[Iterable[Any]], Iterable[bytes]]
    pairs_of: Callable[[Iterable[Any]], Iterable[tuple[Row, object]]]
    tasks: int

    def survey(self, *, repeats: bool) -> JobInput:
        """Return which units each task has: the first pass over the rows; see `holdfast.units.job_input`."""
        ids_of = self.ids_of

        def survey(shard: int, rows: Iterable[Any]) -> Iterator[tuple[int, bytes]]:
            with one_sentence():
                yield shard, surveyed(ids_of(rows), repeats=repeats).to_bytes()

        return _job_input(self.tasks, self.rdd.mapPartitionsWithIndex(survey).collect())

    def run(self, task: UnitsTask) -> None:
        """Run the units in the tasks of the job: the second pass."""
        pairs_of = self.pairs_of

        def run(shard: int, rows: Iterable[Any]) -> Iterator[int]:
            return task.run_shard(shard, pairs_of(rows))

        found = self.rdd.mapPartitionsWithIndex(run).collect()
        if len(found) < self.tasks:  # Spark knows that there are no rows, and has left the shuffle out
            _run_in_slots(self.rdd.context, self.tasks, partial(_run_without_rows, task))


@dataclass(frozen=True)
class _ConnectRows:
    """A DataFrame of Spark Connect, which has no RDDs. Each pass evaluates the source.

    The first one, too, takes all columns: a source may have other rows if some are left out, as a CSV file has whose
    malformed lines are dropped.
    """

    df: DataFrame
    names: tuple[str, ...]
    tasks: int

    def survey(self, *, repeats: bool) -> JobInput:
        names = self.names

        def survey(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            import pyarrow as pa

            columns = ([batch.column(name).to_pylist() for name in names] for batch in batches)
            rows = chain.from_iterable(zip(*lists, strict=True) for lists in columns)
            with one_sentence():
                found = surveyed((id_of(key_of(row, names)) for row in rows), repeats=repeats)
            yield pa.RecordBatch.from_pydict({"shard": [_partition()], "input": [found.to_bytes()]})

        return _job_input(self.tasks, self.df.mapInArrow(survey, "shard long, input binary").collect())

    def run(self, task: UnitsTask) -> None:
        names, schema = self.names, self.df.schema

        def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            yield from _as_batches(task.run_shard(_partition(), _pairs_of_rows(names, _rows_of(batches, schema))))

        found = self.df.mapInArrow(run, _NUMBER).collect()
        if len(found) < self.tasks:  # as above
            _run_in_connect_slots(self.df.sparkSession, self.tasks, partial(_run_without_rows, task))


def _job_input(tasks: int, found: Iterable[Any]) -> JobInput:
    by_shard = {int(shard): TaskInput.of(encoded) for shard, encoded in found}
    return JobInput([by_shard.get(shard, TaskInput()) for shard in range(tasks)])


def _ids_of_rows(names: tuple[str, ...], rows: Iterable[Any]) -> Iterator[bytes]:
    return (id_of(key_of_row(row, names)) for row in rows)


def _pairs_of_rows(names: tuple[str, ...], rows: Iterable[Any]) -> Iterator[tuple[Row, object]]:
    return ((key_of_row(row, names), row) for row in rows)


def _run_without_rows(task: UnitsTask, shard: int) -> Iterator[int]:
    return task.run_shard(shard, ())


def run_workers(spark: SparkSession, task: UnitsTask) -> None:
    """Run a worker in each task of a job."""
    if is_classic(spark):
        _run_in_slots(spark.sparkContext, task.job.shards, task.run_worker)
    else:
        _run_in_connect_slots(spark, task.job.shards, task.run_worker)


def _run_in_slots(context: SparkContext, slots: int, work: Callable[[int], Iterator[int]]) -> None:
    """Call a function in each task of a job."""
    context.parallelize(range(slots), slots).mapPartitionsWithIndex(lambda slot, _rows: work(slot)).collect()


def _run_in_connect_slots(spark: SparkSession, slots: int, work: Callable[[int], Iterator[int]]) -> None:
    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for _batch in batches:
            pass
        yield from _as_batches(work(_partition()))

    spark.range(0, slots, 1, slots).mapInArrow(run, _NUMBER).collect()


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


def _rows_of(batches: Iterable[pa.RecordBatch], schema: StructType) -> Iterator[Any]:
    """Yield rows as Spark's client would.

    Raises:
        InvalidRequestError: the columns are others than when the run began, or in another order: values would come
            under other names.
    """
    import pyarrow as pa
    from pyspark.sql.conversion import ArrowTableToRowsConversion

    for batch in batches:
        if not _has_fields(pa.struct(list(batch.schema)), schema):
            raise InvalidRequestError(
                "the source has other columns than when the run began, or in another order: run the job again",
                columns=batch.schema.names,
                before=schema.names,
            )
        for start in range(0, batch.num_rows, _TABLE_ROWS):
            table = pa.Table.from_batches([batch.slice(start, _TABLE_ROWS)])
            yield from ArrowTableToRowsConversion.convert(table, schema)


def _has_fields(found: pa.DataType, known: DataType) -> bool:
    """Tell whether an Arrow type has the fields of a Spark type: by name, in their order, at any depth."""
    fields = [found.field(number) for number in range(found.num_fields)]
    if isinstance(known, StructType):
        inner = [field.dataType for field in known]
        if [field.name for field in fields] != known.names:
            return False
    elif isinstance(known, ArrayType):
        inner = [known.elementType]
    elif isinstance(known, MapType):
        inner = [StructType().add("key", known.keyType).add("value", known.valueType)]  # as Arrow has it
    else:
        return True
    return len(fields) == len(inner) and all(map(_has_fields, (field.type for field in fields), inner))


def _as_batches(numbers: Iterator[int]) -> Iterator[pa.RecordBatch]:
    import pyarrow as pa

    for one in numbers:
        yield pa.RecordBatch.from_pydict({"number": [one]})
