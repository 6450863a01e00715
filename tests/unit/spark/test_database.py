"""Read tables through the objects that Spark's processes build, without Spark."""

from __future__ import annotations

import math
import pickle
from collections.abc import Iterator, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("pyspark.sql")

from pyspark.sql.types import (
    ArrayType,
    DataType,
    DoubleType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    _parse_datatype_json_value,
)

from holdfast.errors import ConflictError, CorruptDataError, HoldfastError, InvalidRequestError, NotFoundError
from holdfast.options.database import parse_database_read
from holdfast.records import CellTransaction, Database, Row, Value, open_database
from holdfast.records.keys import cell_key
from holdfast.spark import database
from holdfast.spark.database import DatabaseReader, infer_schema
from holdfast.transactions.base import Commit


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite://{tmp_path}/shop.db"


@pytest.fixture
def db(url: str) -> Iterator[Database]:
    with open_database(url, create=True) as opened:
        opened.create_table("t")
        yield opened


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


# --- schemas ----------------------------------------------------------------------------------------------------------
def test_the_schema_comes_from_a_sample(db: Database, url: str) -> None:
    values = {"i": 1, "f": 0.5, "t": "x", "b": b"x", "j": [1], "a": np.array([1], "i4"), "g": np.array([[0.5]])}
    put_all(db, {"x": values, "y": {"i": 2}})
    assert infer(url) == (
        "struct<row:string,a:array<bigint>,b:binary,f:double,g:array<array<double>>,i:bigint,j:string,t:string>"
    )
    assert infer(url, rowColumn="name").startswith("struct<name:string,a:")


def test_booleans_are_booleans_unless_there_is_other_json(db: Database, url: str) -> None:
    """They are JSON, too."""
    put_all(db, {"x": {"b": True, "j": True, "k": [1]}, "y": {"b": False, "j": [1], "k": False}})
    assert infer(url) == "struct<row:string,b:boolean,j:string,k:string>"
    schema = infer_schema(parse_database_read({"url": url, "table": "t"}))
    assert rows_of(reader(url, schema)) == [("x", True, "true", "[1]"), ("y", False, "[1]", "false")]


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        ([1, 2], "struct<row:bigint,v:bigint>"),
        ([b"x"], "struct<row:binary,v:bigint>"),
        ([("a", 1), ("b", 2)], "struct<x:string,y:bigint,v:bigint>"),
    ],
)
def test_rows_of_every_type(db: Database, url: str, rows: list[Row], expected: str) -> None:
    put_all(db, {row: {"v": 1} for row in rows})
    assert infer(url, rowColumn="x,y" if isinstance(rows[0], tuple) else "row") == expected


@pytest.mark.parametrize(
    ("cells", "options", "message"),
    [
        ({}, {}, "there are no rows.*pass a schema"),
        ({"a": {"v": 1}, "b": {"v": "x"}}, {}, "values of different types: pass a schema.*column='v'"),
        ({"a": {"v": 1}, "b": {"v": 0.5}}, {}, "values of different types"),
        ({"a": {"v": 2**63}}, {}, "no obvious type: pass a schema.*column='v' type='int'"),
        ({"a": {"v": np.array([1j])}}, {}, "no obvious type.*array <c16"),
        ({"a": {"v": np.array(1)}}, {}, "no obvious type.*array <i8"),
        ({"a": {"v": 1}, 5: {"v": 1}}, {}, "rows whose names have different types"),
        ({"a": {"v": 1}}, {"rowColumn": "x,y"}, "another number of parts"),
        ({("a", 1): {"v": 1}}, {}, "another number of parts.*rowColumn"),
        ({"a": {"Row": 1}}, {}, "the same name for Spark.*rowColumn"),
        ({"a": {"v": 1, "V": 1}}, {}, "the same name for Spark"),
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
    with pytest.raises(InvalidRequestError, match="row='a' column='row' type='bigint'"):
        rows_of(reader(url, schema_of(row=LongType())))
    with pytest.raises(InvalidRequestError, match="row='a' column='x' type='string'"):
        rows_of(reader(url, schema_of(x=StringType()), rowColumn="x,y"))


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
    """After the first full batch, each row would be a batch of its own."""
    monkeypatch.setattr(database, "_BATCH_BYTES", 200)
    put_all(db, {f"r{number}": {"text": "x" * 100} for number in range(7)})
    source = reader(url, schema_of(row=StringType(), text=StringType()), partitions="1")
    [partition] = source.partitions()
    assert [batch.num_rows for batch in source.read(partition)] == [2, 2, 2, 1]


def test_small_tables_are_one_partition(db: Database, url: str) -> None:
    put_all(db, {"a": {"x": 1}})
    assert len(reader(url, schema_of(row=StringType())).partitions()) == 1


def test_a_table_that_is_replaced_during_the_read(db: Database, url: str) -> None:
    put_all(db, {"a": {"x": 1}})
    source = reader(url, schema_of(row=StringType()))
    partitions = source.partitions()
    db.create_table("other")
    db.rename_table("other", "t", replace=True)
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
    schema = schema_of(u=StringType(), n=LongType())
    assert rows_of(reader(url, schema, rowColumn="u,n", filters='[["U", ">", "a"]]')) == [("b", 1), ("b", 2)]
    assert rows_of(reader(url, schema_of(n=LongType()), rowColumn="u,n", filters='[["u", "=", "a"]]')) == [(1,), (2,)]


# --- values -----------------------------------------------------------------------------------------------------------
def kind_of(text: str) -> DataType:
    """Return a type by its name in JSON."""
    if text.startswith("array<"):
        return ArrayType(kind_of(text[len("array<") : -1]))
    return _parse_datatype_json_value(text)


@pytest.mark.parametrize(
    ("kind", "value", "expected"),
    [
        ("byte", -128, -128),
        ("long", 2**63 - 1, 2**63 - 1),
        ("decimal(5,2)", 999, Decimal(999)),
        ("double", 2**53, 2.0**53),
        ("double", 0.1, 0.1),
        ("string", "x", "x"),
        ("string", 5, "5"),
        ("string", 0.1, "0.1"),
        ("string", {"é": [1, None]}, '{"é":[1,null]}'),
        ("string", True, "true"),
        ("boolean", True, True),
        ("binary", b"\0", b"\0"),
        ("array<double>", np.array([1, 2], "f4"), [1.0, 2.0]),
        ("array<array<long>>", np.array([[1], [2]], "u1"), [[1], [2]]),
        ("array<string>", ["a", None], ["a", None]),
        ("array<boolean>", np.array([True]), [True]),
    ],
)
def test_what_a_type_holds(db: Database, url: str, kind: str, value: Any, expected: Any) -> None:
    put_all(db, {"a": {"c": value}})
    [(found,)] = rows_of(reader(url, schema_of(c=kind_of(kind))))
    assert found == expected and type(found) is type(expected)


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        ("byte", 128),
        ("long", 2**63),
        ("long", 1.0),
        ("long", True),
        ("long", "1"),
        ("decimal(5,2)", 1000),
        ("decimal(5,2)", 0.5),
        ("double", 2**53 + 1),
        ("double", 10**400),
        ("double", True),
        ("string", b"x"),
        pytest.param("string", 10**5000, id="many digits"),
        ("string", np.array([1])),
        ("binary", "x"),
        ("boolean", 1),
        ("array<long>", np.array(5)),
        ("array<long>", np.array([0.5])),
        ("array<long>", np.array([[1]])),
        ("array<long>", np.array(["2026-01-01"], "M8[ns]")),
        ("array<long>", np.array([2**64 - 1], "u8")),
        ("array<double>", np.array([1j])),
        ("array<long>", {"a": 1}),
        ("array<long>", "12"),
    ],
)
def test_what_a_type_does_not_hold(db: Database, url: str, kind: str, value: Any) -> None:
    put_all(db, {"a": {}, "b": {"c": value}, "c": {"d": 1}})
    with pytest.raises(InvalidRequestError, match=r"does not hold what a row has.*row='b' column='c'"):
        rows_of(reader(url, schema_of(c=kind_of(kind))))


def test_nulls_in_an_array_that_has_none(db: Database, url: str) -> None:
    put_all(db, {"a": {"c": [1]}, "b": {"c": [1, None]}})
    with pytest.raises(InvalidRequestError, match="row='b' column='c'"):
        rows_of(reader(url, schema_of(c=ArrayType(LongType(), containsNull=False))))


def test_nan_is_a_double(db: Database, url: str) -> None:
    put_all(db, {"a": {"c": math.nan}})
    assert math.isnan(rows_of(reader(url, schema_of(c=DoubleType())))[0][0])


@pytest.mark.parametrize(
    ("schema", "message"),
    [
        (schema_of(c=kind_of("date")), "column='c' type='date'"),
        (schema_of(c=kind_of("array<float>")), "column='c' type='array<float>'"),
        (schema_of(row=DoubleType()), "the name of a row is no double"),
        (schema_of(row=ArrayType(LongType())), "column='row'"),
        (schema_of(), "the schema has no columns"),
    ],
)
def test_types_that_no_value_has_are_refused(url: str, schema: StructType, message: str) -> None:
    with pytest.raises(InvalidRequestError, match=message):
        reader(url, schema)


def test_the_password_is_in_no_error() -> None:
    secret = "postgresql://me:hunter2@127.0.0.1:1/shop"
    given = {"url": secret, "table": "t"}
    schema = schema_of(row=StringType(), x=LongType())
    for use in (
        lambda: infer_schema(parse_database_read(given)),
        lambda: DatabaseReader(parse_database_read(given), schema).partitions(),
    ):
        with pytest.raises(HoldfastError) as caught:
            use()
        assert "hunter2" not in f"{caught.value!r} {caught.value}"
