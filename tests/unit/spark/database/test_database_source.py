"""Read and load tables through the objects that Spark's processes build, without Spark."""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

pytest.importorskip("pyspark.sql")

from pyspark import TaskContext
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DataType,
    DoubleType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
)

from holdfast.errors import ConflictError, CorruptDataError, HoldfastError, InvalidRequestError, NotFoundError
from holdfast.options.database import parse_database_read, parse_database_write
from holdfast.records import CellTransaction, Database, Row, Value, open_database
from holdfast.records import batches as row_batches
from holdfast.records.keys import cell_key, dropped_range, loads_range
from holdfast.records.load_task import LoadRow, LoadTask
from holdfast.spark.database import reader as db_reader
from holdfast.spark.database import writer as db_writer
from holdfast.spark.database.reader import DatabaseReader, infer_schema
from holdfast.spark.database.writer import DatabaseWriter
from holdfast.transactions.base import Commit


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite://{tmp_path}/shop.db"


@pytest.fixture
def db(url: str) -> Iterator[Database]:
    with open_database(url, create=True) as opened:
        opened.create_table("t")
        yield opened


@pytest.fixture(autouse=True)
def _task() -> Iterator[None]:
    context = TaskContext()
    context._partitionId, context._localProperties = 0, {}
    TaskContext._setTaskContext(context)
    yield
    TaskContext._taskContext = None


def schema_of(**columns: DataType) -> StructType:
    return StructType([StructField(name, kind) for name, kind in columns.items()])


def put_all(db: Database, cells: dict[Row, dict[str, Value]]) -> None:
    def put(txn: CellTransaction) -> None:
        for row, columns in cells.items():
            for column, value in columns.items():
                txn.put("t", row, value, column=column)

    db.transact(put)


def reader(url: str, schema: StructType, **options: str) -> DatabaseReader:
    parsed = parse_database_read({"url": url, "table": "t", **options})
    return DatabaseReader(parsed, schema)


def rows_of(source: DatabaseReader, partitions: Sequence[Any] | None = None) -> list[tuple[Any, ...]]:
    found = []
    for partition in source.partitions() if partitions is None else partitions:
        for batch in source.read(pickle.loads(pickle.dumps(partition))):
            found += [tuple(row.values()) for row in batch.to_pylist()]
    return found


def infer(url: str, **options: str) -> str:
    return infer_schema(parse_database_read({"url": url, "table": "t", **options})).simpleString()


def write(
    url: str, schema: StructType, rows: Sequence[tuple[Any, ...]], *, overwrite: bool = False, **options: str
) -> None:
    columns = [[row[at] for row in rows] for at in range(len(schema))]
    batch = pa.record_batch([pa.array(column) for column in columns], names=schema.names)
    writer = DatabaseWriter(parse_database_write({"url": url, "table": "t", **options}), schema, overwrite)
    try:
        report = pickle.loads(pickle.dumps(writer)).write(iter([batch]))
        pickle.loads(pickle.dumps(writer)).commit([report])
    except HoldfastError:
        writer.abort([None])
        raise


# --- schemas ----------------------------------------------------------------------------------------------------------
def test_the_schema_comes_from_a_sample(db: Database, url: str) -> None:
    values = {"i": 1, "f": 0.5, "t": "x", "b": b"x", "j": [1], "a": np.array([1], "i4"), "g": np.array([[0.5]])}
    put_all(db, {"x": values, "y": {"i": 2}})
    assert infer(url) == (
        "struct<row:string,a:array<bigint>,b:binary,f:double,g:array<array<double>>,i:bigint,j:string,t:string>"
    )
    assert infer(url, rowColumn="name", columns="t,i") == "struct<name:string,t:string,i:bigint>"


def test_booleans_are_booleans_unless_there_is_other_json(db: Database, url: str) -> None:
    put_all(db, {"x": {"b": True, "j": True, "k": [1]}, "y": {"b": False, "j": [1], "k": False}})
    assert infer(url) == "struct<row:string,b:boolean,j:string,k:string>"
    schema = infer_schema(parse_database_read({"url": url, "table": "t"}))
    assert rows_of(reader(url, schema)) == [("x", True, "true", "[1]"), ("y", False, "[1]", "false")]


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        ([1, 2], "struct<row:bigint,v:bigint>"),
        ([b"x"], "struct<row:binary,v:bigint>"),
        ([("a", 1), ("b", 2)], "struct<row_1:string,row_2:bigint,v:bigint>"),
    ],
)
def test_rows_of_every_type(db: Database, url: str, rows: list[Row], expected: str) -> None:
    put_all(db, {row: {"v": 1} for row in rows})
    assert infer(url) == expected


def test_a_column_may_have_the_name_of_a_part_if_the_names_have_no_parts(db: Database, url: str) -> None:
    put_all(db, {"a": {"row_1": 1}})
    assert infer(url) == "struct<row:string,row_1:bigint>"
    put_all(db, {"a": {"row_1": 2}})
    assert rows_of(reader(url, schema_of(row=StringType(), row_1=LongType()))) == [("a", 2)]


@pytest.mark.parametrize(
    ("cells", "options", "message"),
    [
        ({}, {}, "no rows that would show a schema: pass a schema"),
        ({"a": {"v": 1}, "b": {"v": "x"}}, {}, "values of different types: pass a schema.*column='v'"),
        ({"a": {"v": "x"}, "b": {"v": [1]}}, {}, "values of different types"),
        ({"a": {"v": 2**63}}, {}, "no obvious type: pass a schema.*column='v' type='int'"),
        ({"a": {"v": np.array([1j])}}, {}, "no obvious type.*array <c16"),
        ({"a": {"v": 1}, 5: {"v": 1}}, {}, "names of different types"),
        ({"a": {"v": 1}}, {"rowColumn": "x,y"}, "another number of parts"),
        ({"a": {"row": 1}}, {}, "the same name for Spark.*rowColumn"),
        ({("a", 1): {"row": 1}}, {}, "the name of a row column.*rowColumn.*column='row'"),
        ({("a", 1): {"row_3": 1}}, {}, "the name of a row column.*rowColumn.*column='row_3'"),
        ({"a": {"word": 1}}, {"columns": "wort"}, "no such column.*did you mean word"),
        ({"a": {"word": 1}}, {"columns": "row,word"}, "the row's name is always read: leave it out of columns"),
    ],
)
def test_schemas_that_are_not_clear(
    db: Database, url: str, cells: dict[Row, dict[str, Value]], options: dict[str, str], message: str
) -> None:
    put_all(db, cells)
    with pytest.raises(InvalidRequestError, match=message):
        infer(url, **options)


def test_a_missing_table_is_named(db: Database, url: str) -> None:
    db.create_table("words")
    for look in (
        lambda: infer_schema(parse_database_read({"url": url, "table": "wrods"})),
        lambda: DatabaseReader(
            parse_database_read({"url": url, "table": "wrods"}), schema_of(row=StringType())
        ).partitions(),
    ):
        with pytest.raises(NotFoundError, match="did you mean words"):
            look()


# --- reading ----------------------------------------------------------------------------------------------------------
def test_absent_cells_are_null_and_columns_may_be_left_out(db: Database, url: str) -> None:
    put_all(db, {"a": {"n": 1, "other": b"?"}, "b": {"other": b"?"}})
    assert rows_of(reader(url, schema_of(n=LongType(), row=StringType()))) == [(1, "a"), (None, "b")]
    assert rows_of(reader(url, schema_of(row=StringType()))) == [("a",), ("b",)]


def test_an_absent_cell_of_a_column_that_is_not_nullable(db: Database, url: str) -> None:
    put_all(db, {"a": {"n": 1}, "b": {"m": 1}})
    schema = StructType([StructField("row", StringType()), StructField("n", LongType(), nullable=False)])
    with pytest.raises(InvalidRequestError, match="row='b' column='n'"):
        rows_of(reader(url, schema))


def test_a_value_that_does_not_fit_is_named(db: Database, url: str) -> None:
    put_all(db, {"a": {"n": 1}, "b": {"n": 2**40}})
    with pytest.raises(InvalidRequestError, match="row='b' column='n' type='int'"):
        rows_of(reader(url, schema_of(n=IntegerType())))
    with pytest.raises(InvalidRequestError, match=r"name of a row.*row='a' column='row'"):
        rows_of(reader(url, schema_of(row=LongType())))


def test_a_damaged_value_is_named(db: Database, url: str) -> None:
    put_all(db, {"a": {"n": 1}})
    db.backend.commit(Commit(puts={cell_key(db.table("t").id, "b", b"n"): b"?"}))
    with pytest.raises(CorruptDataError, match="row='b' column='n'"):
        rows_of(reader(url, schema_of(n=LongType())))
    assert rows_of(reader(url, schema_of(row=StringType()))) == [("a",), ("b",)]  # nothing reads it


def test_counters_and_deleted_cells_of_a_history(url: str, db: Database) -> None:
    db.add("t", "a", 5)
    assert rows_of(reader(url, schema_of(row=StringType(), value=LongType()))) == [("a", 5)]
    db.drop_table("t")
    db.create_table("t", history=True)
    put_all(db, {"a": {"value": 1}, "b": {"value": 2}})
    db.delete("t", "a")
    assert rows_of(reader(url, schema_of(row=StringType(), value=LongType()))) == [("b", 2)]


def test_partitions_hold_each_row_once_while_rows_come_and_go(db: Database, url: str) -> None:
    put_all(db, {number: {"x": number, "y": number} for number in range(0, 2000, 2)})
    source = reader(url, schema_of(row=LongType(), x=LongType(), y=LongType()), partitions="6")
    partitions = source.partitions()
    assert len(partitions) == 6
    found: list[tuple[Any, ...]] = []
    for number, partition in enumerate(partitions):
        put_all(db, {row: {"x": row, "y": row} for row in range(2 * number + 1, 2000, 13)})
        found += rows_of(source, [partition])
    rows = [row for row, _x, _y in found]
    assert len(rows) == len(set(rows)) and set(rows) >= set(range(0, 2000, 2))
    assert all(row == x == y for row, x, y in found)


def test_a_batch_begins_with_no_bytes(db: Database, url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both ways: after the first full batch, each row would be a batch of its own."""
    monkeypatch.setattr(db_reader, "_BATCH_BYTES", 200)
    monkeypatch.setattr(row_batches, "_BATCH_BYTES", 200)
    written: list[int] = []
    monkeypatch.setattr(db_writer, "LoadTask", lambda *given: _Noted(written, *given))
    rows = [(f"r{number}", "x" * 100) for number in range(7)]
    schema = schema_of(row=StringType(), text=StringType())
    write(url, schema, rows)
    source = reader(url, schema, partitions="1")
    [partition] = source.partitions()
    assert [batch.num_rows for batch in source.read(partition)] == written == [2, 2, 2, 1]


class _Noted(LoadTask):
    """Notes how many rows each batch has."""

    def __init__(self, written: list[int], *given: Any) -> None:
        super().__init__(*given)
        self._written = written

    def write(self, rows: Sequence[LoadRow]) -> None:
        self._written.append(len(rows))
        super().write(rows)


def test_small_tables_are_one_partition(db: Database, url: str) -> None:
    put_all(db, {"a": {"x": 1}})
    assert len(reader(url, schema_of(row=StringType())).partitions()) == 1


def test_a_table_that_is_replaced_during_the_read(db: Database, url: str) -> None:
    put_all(db, {"a": {"x": 1}})
    source = reader(url, schema_of(row=StringType()))
    partitions = source.partitions()
    write(url, schema_of(row=StringType(), x=LongType()), [("b", 2)], overwrite=True)
    with pytest.raises(ConflictError, match="replaced after the read began"):
        rows_of(source, partitions)


def test_conditions_on_rows(db: Database, url: str) -> None:
    put_all(db, {name: {"x": 1} for name in ("a", "aa", "ab", "a\0", "b", "c")})

    def found(filters: str) -> list[str]:
        return [row for (row,) in rows_of(reader(url, schema_of(row=StringType()), filters=filters))]

    assert found('[["row", "=", "a"]]') == ["a"]
    assert found('[["row", ">", "a"], ["row", "<=", "b"]]') == ["a\0", "aa", "ab", "b"]
    assert found('[["row", "=", "a"], ["row", "=", "b"]]') == []
    assert found('[["row", ">=", "aa"], ["row", "<", "b"]]') == ["aa", "ab"]
    assert found('[["row", ">", "ab"], ["row", ">=", "a"]]') == ["b", "c"]
    assert found('[["row", "<", "ab"], ["row", "<=", "c"], ["row", ">", "a\\u0000"]]') == ["aa"]


@pytest.mark.parametrize("filters", ['[["x", "=", 1]]', '[["row", "!=", "a"]]', '[["row", "=", 0.5]]'])
def test_conditions_that_no_range_of_rows_meets(db: Database, url: str, filters: str) -> None:
    with pytest.raises(InvalidRequestError, match="filter the DataFrame instead"):
        reader(url, schema_of(row=StringType()), filters=filters)


def test_conditions_on_the_first_part_of_tuples(db: Database, url: str) -> None:
    put_all(db, {(user, number): {"x": 1} for user in "ab" for number in (1, 2)})
    schema = schema_of(row_1=StringType(), row_2=LongType())
    assert rows_of(reader(url, schema, filters='[["row_1", ">", "a"]]')) == [("b", 1), ("b", 2)]
    assert rows_of(reader(url, schema_of(n=LongType()), rowColumn="u,n", filters='[["u", "=", "a"]]')) == [(1,), (2,)]


# --- writing ----------------------------------------------------------------------------------------------------------
def test_rows_are_written_with_any_names(db: Database, url: str) -> None:
    write(url, schema_of(a=StringType(), b=LongType(), x=DoubleType()), [("u", 1, 0.5)], rowColumn="a,b")
    write(url, schema_of(Word=BinaryType(), x=DoubleType()), [(b"w", 1.5)], rowColumn="word")
    assert dict(db.scan("t")) == {("u", 1): {"x": 0.5}, b"w": {"x": 1.5}}


@pytest.mark.parametrize(
    ("schema", "options", "message"),
    [
        (schema_of(word=StringType(), n=LongType()), {}, "no column has the names of the rows"),
        (schema_of(row=StringType()), {}, "no columns beside"),
        (schema_of(row=DoubleType(), n=LongType()), {}, "a string, an integer or binary"),
        (schema_of(row=StringType(), n=schema_of(x=LongType())), {}, "cannot be stored: cast it.*column='n'"),
        (schema_of(row=StringType(), n=ArrayType(StringType())), {}, "cannot be stored"),
        (schema_of(row=StringType(), n=LongType()), {"jsonColumns": "m"}, "no such column"),
        (schema_of(row_1=StringType(), n=LongType()), {}, "no column has the names of the rows"),
    ],
)
def test_schemas_are_refused_before_anything_happens(
    db: Database, url: str, schema: StructType, options: dict[str, str], message: str
) -> None:
    with pytest.raises(InvalidRequestError, match=message):
        DatabaseWriter(parse_database_write({"url": url, "table": "new", **options}), schema, False)
    assert db.backend.scan(*loads_range(), 10).records == []


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([("a", "[1]"), (None, "[1]")], "name of a row is null.*column='row'"),
        ([("a", "[1]"), ("b", "5")], "a JSON value is a list.*row='b' column='j'"),
        ([("a", "[1]"), ("b", "[12345678901234567.1234]")], "more digits than a float keeps.*row='b' column='j'"),
        ([("a", "[1]"), ("b", '{"x": 1, "x": 2}')], "has a key twice.*row='b' column='j' key='x'"),
        ([("a", "[1]"), ("b", "[NaN]")], "JSON has no infinities.*row='b' column='j'"),
        ([("a", "[1]"), ("b" * 2000, "[2]")], "shorten them.*column='j'"),
        ([("a", "[1]"), ("a", "[2]")], "the same name.*row='a'"),
    ],
)
@pytest.mark.parametrize("overwrite", [False, True])
def test_what_cannot_be_stored_leaves_the_table_as_it_was(
    db: Database, url: str, rows: list[tuple[Any, ...]], message: str, overwrite: bool
) -> None:
    put_all(db, {"old": {"j": [0]}})
    schema = schema_of(row=StringType(), j=StringType())
    with pytest.raises(InvalidRequestError, match=message):
        write(url, schema, rows, overwrite=overwrite, jsonColumns="j")
    assert dict(db.scan("t")) == {"old": {"j": [0]}}
    assert db.backend.scan(*loads_range(), 10).records == []


def test_a_string_that_is_no_text_is_refused(db: Database, url: str) -> None:
    offsets, raw = np.array([0, 1], "i4"), b"\xff"
    broken = pa.StringArray.from_buffers(1, pa.py_buffer(offsets), pa.py_buffer(raw))
    for names in (["row", "x"], ["x", "row"]):
        schema = schema_of(**dict.fromkeys(names, StringType()))
        batch = pa.record_batch([broken, pa.array(["a"])], names=names)
        writer = DatabaseWriter(parse_database_write({"url": url, "table": "t"}), schema, True)
        with pytest.raises(InvalidRequestError, match=f"not valid UTF-8: cast its bytes to binary column='{names[0]}'"):
            writer.write(iter([batch]))
        writer.abort([None])


def test_nothing_is_left_behind_a_load(db: Database, url: str) -> None:
    """Neither what it replaced, nor the marks of its rows, nor what it has written before it failed."""
    schema = schema_of(row=StringType(), x=LongType())
    for overwrite in (False, True, False):
        write(url, schema, [("a", 1), ("b", 2)], overwrite=overwrite)
        assert not db.backend.scan(*dropped_range(), 9).records
    with pytest.raises(InvalidRequestError, match="the same name"):
        write(url, schema, [("a", 1), ("b", 2), ("a", 3)], overwrite=True, batchRows="2")
    assert not db.backend.scan(*dropped_range(), 9).records
    assert dict(db.scan("t")) == {"a": {"x": 1}, "b": {"x": 2}}


def test_a_task_without_a_report_is_not_committed(db: Database, url: str) -> None:
    writer = DatabaseWriter(
        parse_database_write({"url": url, "table": "t"}), schema_of(row=StringType(), x=LongType()), True
    )
    with pytest.raises(InvalidRequestError, match="has not reported"):
        writer.commit([None])
    writer.abort([None])


def test_the_password_is_in_no_error() -> None:
    secret = "postgresql://me:hunter2@127.0.0.1:1/shop"
    given = {"url": secret, "table": "t"}
    schema = schema_of(row=StringType(), x=LongType())
    for use in (
        lambda: infer_schema(parse_database_read(given)),
        lambda: DatabaseReader(parse_database_read(given), schema).partitions(),
        lambda: DatabaseWriter(parse_database_write(given), schema, False),
    ):
        with pytest.raises(HoldfastError) as caught:
            use()
        assert "hunter2" not in f"{caught.value!r} {caught.value}"
