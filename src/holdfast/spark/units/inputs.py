"""Bring the rows of a job to its tasks: each to the task of its key, in the order of the keys.

Units are identified by their keys, never by a position: after a shuffle, positions are not repeatable (SPARK-23207).
Where a row goes depends on its key alone, so another attempt at a task, even in another application, gets the same
units in the same order.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from operator import itemgetter
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from pyspark.sql.functions import concat, is_valid_utf8, lit, raise_error, when, xxhash64
from pyspark.sql.types import ArrayType, MapType, StructType

from holdfast.errors import InvalidRequestError
from holdfast.records.row_keys import Row
from holdfast.spark.failures import errors_without_traceback
from holdfast.spark.session import is_classic_session, require_dataframe
from holdfast.spark.units.tasks import UnitsTask, extract_unit_key
from holdfast.units.job_input import JobInput, TaskInput, digest_task_units
from holdfast.units.unit import Unit, encode_unit_id
from holdfast.wording import suggest_nearest

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark import RDD
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import DataType

_INTEGERS = ("tinyint", "smallint", "int", "bigint")
_KEY_TYPES = (*_INTEGERS, "string", "binary")
_OTHERS = (
    "cast dates, doubles and booleans to string; take unix_micros of a timestamp, the fields of a struct as columns, "
    "to_json(map_entries(column)) of a map, and to_json(array(column)) of the rest"
)
_OWN_HASH = "holdfast units"
_TASKS_WITHOUT_CONTEXT = 8
_TABLE_ROWS = 1000


_Work: TypeAlias = "Callable[[int, Iterable[Any]], Iterator[tuple[int, bytes]]]"
"""Takes the number of a task and its rows, and yields pairs of that number and a result."""

_RunWork: TypeAlias = "Callable[[_Work], Sequence[Any]]"
"""Runs the same in each of Spark's tasks, and returns what all of them have yielded."""


class UnitInput(NamedTuple):
    """The rows or pairs from which the units of a job are made, before they are shuffled to tasks.

    Attributes:
        keys: where the keys of the units come from.
        parallelism: how many tasks a job has by default.
        arranged: shuffles the rows to a given number of tasks by key; Spark may run the shuffle immediately.
    """

    keys: str
    parallelism: int
    arranged: Callable[[int], ShuffledRows]


@dataclass(frozen=True)
class ShuffledRows:
    """The rows of a job, each in the task of its key.

    Attributes:
        collect: runs a function in each task, over its rows. Spark keeps the files of a shuffle, so the second pass
            over an RDD does not evaluate the source; over Spark Connect, which has no RDDs, each pass does.
        in_slots: returns a function like `collect`, for the same number of tasks but without rows.
        ids_of, pairs_of: return the ids of the units of rows, or their keys and values.
    """

    collect: _RunWork
    in_slots: Callable[[], _RunWork]
    ids_of: Callable[[Iterable[Any]], Iterable[bytes]]
    pairs_of: Callable[[Iterable[Any]], Iterable[tuple[Row, object]]]
    tasks: int

    def survey(self, *, repeats: bool) -> JobInput:
        """Count and digest the units of each task: the first pass over the rows; see `holdfast.units.job_input`.

        Reads all columns: if some are left out, a source may return other rows, such as a CSV file whose malformed
        lines are dropped.
        """
        ids_of = self.ids_of

        def digest_shard(shard: int, rows: Iterable[Any]) -> Iterator[tuple[int, bytes]]:
            with errors_without_traceback():
                yield shard, digest_task_units(ids_of(rows), repeats=repeats).to_bytes()

        found = {int(shard): TaskInput.of(encoded) for shard, encoded in self.collect(digest_shard)}
        return JobInput([found.get(shard, TaskInput()) for shard in range(self.tasks)])

    def run(self, task: UnitsTask) -> None:
        """Run the units in Spark's tasks: the second pass over the rows."""
        pairs_of = self.pairs_of

        def run_shard(shard: int, rows: Iterable[Any]) -> Iterator[tuple[int, bytes]]:
            return task.run_shard(shard, pairs_of(rows))

        ran = self.collect(run_shard)
        if len(ran) < self.tasks:  # Spark knows that there are no rows, and has left the shuffle out
            self.in_slots()(lambda shard, rows: task.run_shard(shard, _consume_rows(rows)))


def run_workers(spark: SparkSession, task: UnitsTask) -> None:
    """Run one worker of a work list's job in each of Spark's tasks, until the list has no units left."""

    def run_worker(slot: int, rows: Iterable[Any]) -> Iterator[tuple[int, bytes]]:
        _consume_rows(rows)
        return task.run_worker(slot)

    _make_worker_runner(spark, task.job.shards)(run_worker)


def _consume_rows(rows: Iterable[Any]) -> tuple[()]:
    for _row in rows:  # Spark requires the rows to be consumed
        pass
    return ()


def _make_worker_runner(spark: SparkSession, tasks: int) -> _RunWork:
    return _make_dataframe_runner(spark.range(0, tasks, 1, tasks))


def _make_rdd_runner(rdd: RDD[Any]) -> _RunWork:
    return lambda work: rdd.mapPartitionsWithIndex(work).collect()


def _make_dataframe_runner(df: DataFrame) -> _RunWork:
    if is_classic_session(df.sparkSession):
        return _make_rdd_runner(df.rdd)
    schema = df.schema

    def run_work_in_tasks(work: _Work) -> Sequence[Any]:
        def run_work_in_task(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            import pyarrow as pa
            from pyspark import TaskContext

            context = TaskContext.get()
            assert context is not None, "Spark calls this in tasks only"
            for number, found in work(context.partitionId(), _convert_batches_to_rows(batches, schema)):
                yield pa.RecordBatch.from_pydict({"number": [number], "found": [found]})

        return df.mapInArrow(run_work_in_task, "number long, found binary").collect()

    return run_work_in_tasks


def parse_input(data: Any, key: str | Sequence[str] | None) -> UnitInput:
    """Check the data and the key of a job: the rows of a DataFrame, or the pairs of an RDD.

    Raises:
        InvalidRequestError: the data is neither of the two, or does not have the key.
    """
    if hasattr(type(data), "repartitionAndSortWithinPartitions"):  # a DataFrame of Spark Connect has every attribute
        if key is not None:
            raise InvalidRequestError("the key of an RDD's pair is its first part: leave out the argument key")
        return UnitInput("pairs", int(data.context.defaultParallelism), partial(_shuffle_pairs_by_key, data))
    require_dataframe(data)
    spark = data.sparkSession
    parallelism = _TASKS_WITHOUT_CONTEXT
    if is_classic_session(spark):
        parallelism = int(spark.sparkContext.defaultParallelism)
    else:  # its client keeps what columns a DataFrame had; the server reads them anew
        data = data.select("*")
    columns = _key_columns(data, key)
    keys = "columns: " + ", ".join(f"{column.name} {column.type}" for column in columns)
    return UnitInput(keys, parallelism, partial(_shuffle_rows_by_key, data, columns))


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
            hint = suggest_nearest(name, df.columns) if not found else "several columns have it, rename them"
            raise InvalidRequestError(f"the DataFrame has no such column for the key: {hint}", column=name)
        kind = found[0].dataType.simpleString()
        if kind not in _KEY_TYPES:
            raise InvalidRequestError(
                f"the key of a unit is a text, an integer or bytes: {_OTHERS}", column=name, type=kind
            )
        columns.append(_KeyColumn(name, "bigint" if kind in _INTEGERS else kind))
    return tuple(columns)


def _require_valid_texts(df: DataFrame, columns: Sequence[_KeyColumn]) -> DataFrame:
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
            text = df[_quote_column(column)]
            df = df.withColumn(column.name, when(~is_valid_utf8(text), raise_error(told)).otherwise(text))
    return df


def _quote_column(column: _KeyColumn) -> str:
    return f"`{column.name.replace('`', '``')}`"


def _shuffle_rows_by_key(df: DataFrame, columns: tuple[_KeyColumn, ...], tasks: int) -> ShuffledRows:
    """Bring each row to the task of its key. Spark's hash of an integer depends on its width: all are cast to the same.

    A hash of the key and a constant, by which nothing else is partitioned, determines the task. The key itself
    could be that of a table's buckets, and its hash that of a shuffle in the query. Spark leaves the shuffle out
    then, because the rows are in place, and next reads the table without its buckets, or merges the partitions of
    the other shuffle, because nothing needs them (`EnsureRequirements`, `DisableUnnecessaryBucketedScan`,
    `CoalesceShufflePartitions`).
    """
    spark = df.sparkSession
    df = _require_valid_texts(df, columns)
    quoted = list(map(_quote_column, columns))
    places = [df[name].cast(column.type) for name, column in zip(quoted, columns, strict=True)]
    df = df.repartition(tasks, xxhash64(lit(_OWN_HASH), *places)).sortWithinPartitions(*quoted)
    names = tuple(column.name for column in columns)
    in_slots = partial(_make_worker_runner, spark, tasks)
    return ShuffledRows(
        _make_dataframe_runner(df), in_slots, partial(_ids_of_rows, names), partial(_pairs_of_rows, names), tasks
    )


def _shuffle_pairs_by_key(rdd: RDD[Any], tasks: int) -> ShuffledRows:
    pairs = rdd.mapPartitions(_add_ids_to_pairs).repartitionAndSortWithinPartitions(tasks, zlib.crc32)

    def make_runner_without_rows() -> _RunWork:
        return _make_rdd_runner(rdd.context.parallelize(range(tasks), tasks))

    return ShuffledRows(
        _make_rdd_runner(pairs),
        make_runner_without_rows,
        partial(map, itemgetter(0)),
        partial(map, itemgetter(1)),
        tasks,
    )


def _ids_of_rows(names: tuple[str, ...], rows: Iterable[Any]) -> Iterator[bytes]:
    return (encode_unit_id(extract_unit_key(row, names)) for row in rows)


def _pairs_of_rows(names: tuple[str, ...], rows: Iterable[Any]) -> Iterator[tuple[Row, object]]:
    return ((extract_unit_key(row, names), row) for row in rows)


def _add_ids_to_pairs(pairs: Iterable[object]) -> Iterator[tuple[bytes, tuple[Row, object]]]:
    with errors_without_traceback():
        for pair in pairs:
            if not isinstance(pair, tuple) or len(pair) != 2:
                raise InvalidRequestError("the elements of the RDD are no pairs: map them to (key, value)")
            unit = Unit.of(*pair)  # a value that Spark cannot copy either: its own message would not name the unit
            yield unit.id, (unit.key, pair[1])


def _convert_batches_to_rows(batches: Iterable[pa.RecordBatch], schema: StructType) -> Iterator[Any]:
    """Yield rows as Spark's client would.

    Raises:
        InvalidRequestError: the columns are others than when the run began, or in another order: values would come
            under other names.
    """
    import pyarrow as pa
    from pyspark.sql.conversion import ArrowTableToRowsConversion

    for batch in batches:
        if not _has_same_field_names(pa.struct(list(batch.schema)), schema):
            raise InvalidRequestError(
                "the source has other columns than when the run began, or in another order: run the job again",
                columns=batch.schema.names,
                before=schema.names,
            )
        for start in range(0, batch.num_rows, _TABLE_ROWS):
            table = pa.Table.from_batches([batch.slice(start, _TABLE_ROWS)])
            yield from ArrowTableToRowsConversion.convert(table, schema)


def _has_same_field_names(found: pa.DataType, known: DataType) -> bool:
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
    return len(fields) == len(inner) and all(map(_has_same_field_names, (field.type for field in fields), inner))
