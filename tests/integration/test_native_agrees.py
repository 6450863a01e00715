"""Compare both readers on foreign files in odd places and under session settings: both agree, or both refuse."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pyarrow.orc
import pyarrow.parquet
import pytest

import holdfast
from holdfast.commit import read_instant
from holdfast.errors import InvalidRequestError, UnsupportedError
from holdfast.spark import native
from holdfast.spark.native import mismatch_reason

pytestmark = pytest.mark.spark

READERS = ("auto", "python")


def rows(frame: Any) -> list[str]:
    return sorted(repr(tuple(row)) for row in frame.collect())


def is_native(frame: Any) -> bool:
    return "FileScan" in frame._jdf.queryExecution().toString()


def put(path: Path, **columns: Any) -> None:
    """Write a file as another program would."""
    path.parent.mkdir(parents=True, exist_ok=True)
    table = pa.table(
        {name: value if isinstance(value, pa.Array) else pa.array(value) for name, value in columns.items()}
    )
    if path.suffix == ".orc":
        pyarrow.orc.write_table(table, path)
    else:
        pyarrow.parquet.write_table(table, path)


@contextlib.contextmanager
def settings(spark: Any, **values: str) -> Iterator[None]:
    """Change settings of the session inside the block; two underscores stand for a dot."""
    names = {name.replace("__", "."): value for name, value in values.items()}
    before = {name: spark.conf.get(name, None) for name in names}
    for name, value in names.items():
        spark.conf.set(name, value)
    try:
        yield
    finally:
        for name, was in before.items():
            spark.conf.unset(name) if was is None else spark.conf.set(name, was)


def assert_alike(spark: Any, url: Path | str, expected: list[str]) -> Any:
    """Check the rows of `auto`, and of the Python reader if `auto` chose Spark's; return the frame of `auto`."""
    found = holdfast.read(spark, str(url))
    assert rows(found) == expected
    if is_native(found):
        python = holdfast.read(spark, str(url), reader="python")
        assert rows(python) == expected
        assert found.schema == python.schema
    assert holdfast.count(spark, str(url)) == len(expected)
    return found


def assert_refused(spark: Any, url: Path | str, reason: str) -> None:
    """Check that neither reader confuses one layout with another."""
    assert not is_native(holdfast.read(spark, str(url)))
    with pytest.raises(InvalidRequestError, match="files are partitioned differently"):
        holdfast.count(spark, str(url))
    with pytest.raises(UnsupportedError, match=reason):
        holdfast.read(spark, str(url), reader="native")


# --- files of other types ---------------------------------------------------------------------------------------------
OTHERS = {  # a file's column, that of another file, what the second one holds
    "nested": ("parquet", pa.array([[{"x": 1}]]), pa.array([[{"x": 1.5}]])),
    "longs": ("orc", pa.array([1], pa.int32()), pa.array([2**33])),
}


@pytest.mark.parametrize("name", ["nested", pytest.param("longs", marks=pytest.mark.slow)])
def test_a_file_of_another_type_is_an_error(spark: Any, tmp_path: Path, name: str) -> None:
    ending, first, other = OTHERS[name]
    url = tmp_path / "t"
    put(url / f"aa.{ending}", a=first)
    assert not is_native(holdfast.read(spark, str(url))), "there is no table yet"
    holdfast.write(holdfast.read(spark, str(url)), str(url), file_format=ending)
    assert is_native(holdfast.read(spark, str(url))), "the first append has looked at the file"
    put(url / f"z.{ending}", a=other)
    with pytest.raises(Exception, match="does not fit the column's type"):
        holdfast.read(spark, str(url)).collect()
    with pytest.raises(UnsupportedError, match="other programs have added files to the table"):
        holdfast.read(spark, str(url), reader="native")


def test_columns_that_a_file_of_others_has_besides_do_not_count(spark: Any, tmp_path: Path) -> None:
    holdfast.write(spark.sql("select 1L as a"), str(tmp_path))
    put(tmp_path / "z.parquet", A=[2], b=["x"])
    assert not is_native(assert_alike(spark, tmp_path, ["(1,)", "(2,)"]))


def test_nanoseconds_are_read_after_an_append_as_before(spark: Any, tmp_path: Path) -> None:
    put(tmp_path / "a.parquet", t=pa.array([1_577_836_800_000_000_000], pa.timestamp("ns")))
    before = rows(holdfast.read(spark, str(tmp_path)))
    holdfast.write(spark.sql("select cast(null as timestamp_ntz) as t"), str(tmp_path))
    assert rows(holdfast.read(spark, str(tmp_path))) == sorted([*before, "(None,)"])


@pytest.mark.parametrize(
    "names", ["_col0, _col1", *(pytest.param(one, marks=pytest.mark.slow) for one in ("_colour, _collar", "id, _col1"))]
)
def test_columns_of_orc_that_are_called_col_go_by_name(spark: Any, tmp_path: Path, names: str) -> None:
    """Spark matches columns by position if every name in a file starts with these letters."""
    first, second = names.split(", ")
    holdfast.write(spark.sql(f"select 1 as {first}, 2 as {second}"), str(tmp_path), file_format="orc")
    holdfast.write(spark.sql(f"select 3 as {second}"), str(tmp_path), file_format="orc")
    assert_alike(spark, tmp_path, ["(1, 2)", "(None, 3)"])
    assert rows(holdfast.read(spark, str(tmp_path), columns=first)) == ["(1,)", "(None,)"]


# --- files in odd places ----------------------------------------------------------------------------------------------
@pytest.mark.slow
@pytest.mark.parametrize("name", ["parquet"])
def test_a_directory_like_a_partition_hides_no_table(spark: Any, tmp_path: Path, name: str) -> None:
    url = tmp_path / "t"
    holdfast.write(spark.sql("select * from values (1L), (2L) as v(a)"), str(url), file_format=name)
    assert is_native(assert_alike(spark, url, ["(1,)", "(2,)"]))
    put(url / f"p=1/x.{name}", a=[3])
    with pytest.raises(Exception, match="files are partitioned differently"):
        holdfast.read(spark, str(url)).collect()
    assert_refused(spark, url, "not the table's partitions")


@pytest.mark.slow
def test_a_file_beside_the_partitions_is_not_dropped(spark: Any, tmp_path: Path) -> None:
    url = tmp_path / "t"
    holdfast.write(spark.sql("select 1L as a, 1 as p"), str(url), partition_by="p")
    assert is_native(assert_alike(spark, url, ["(1, 1)"]))
    (url / "_metadata").write_bytes(b"no rows")
    assert_alike(spark, url, ["(1, 1)"])
    put(url / "x.parquet", a=[5])
    assert_refused(spark, url, "not the table's partitions")


@pytest.mark.slow
def test_files_in_plain_directories_of_a_table_are_read(spark: Any, tmp_path: Path) -> None:
    url = tmp_path / "t"
    holdfast.write(spark.sql("select 1L as a"), str(url))
    (url / "nothing").mkdir()
    (url / "nothing/empty.parquet").touch()
    assert_alike(spark, url, ["(1,)"])
    put(url / "2026/01/x.parquet", a=[2])
    assert not is_native(assert_alike(spark, url, ["(1,)", "(2,)"]))
    with pytest.raises(UnsupportedError, match=r"directories that are not the table's partitions"):
        holdfast.read(spark, str(url), reader="native")
    parted = tmp_path / "p"
    holdfast.write(spark.sql("select 1L as a, 1 as p"), str(parted), partition_by="p")
    put(parted / "p=1/deep/x.parquet", a=[2])
    assert_alike(spark, parted, ["(1, 1)", "(2, 1)"])
    put(parted / "p=1/deep/q=7/x.parquet", a=[3])
    assert_refused(spark, parted, "CONFLICTING_|not the table's partitions")


@pytest.mark.slow
def test_files_by_name_are_looked_at_too(spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """While a decision is unfinished, Spark gets single files and still finds partitions in their paths."""
    monkeypatch.setattr(native, "read_instant", lambda ctx: replace(read_instant(ctx), waiting=frozenset([1])))
    url = tmp_path / "t"
    holdfast.write(spark.sql("select 1L as a"), str(url))
    put(url / "2026/x.parquet", a=[2])
    assert_alike(spark, url, ["(1,)", "(2,)"])
    put(url / "p=1/x.parquet", a=[3])
    assert_refused(spark, url, "CONFLICTING_|not the table's partitions")


def test_the_look_at_a_listing_asks_the_same_of_any_number_of_files(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """File names are not copied to Python, which would take longer than Spark's own listing."""
    client = spark._jvm._gateway_client
    send = client.send_command
    calls: list[str] = []

    def counted(command: str, *args: Any, **kwargs: Any) -> Any:
        calls.append(command)
        return send(command, *args, **kwargs)

    monkeypatch.setattr(client, "send_command", counted)
    asked = []
    for count in (2, 60):
        for number in range(count):
            put(tmp_path / f"{count}/p={number}/x.parquet", a=[number])
        frame = spark.read.parquet(str(tmp_path / str(count)))
        calls.clear()
        table: Any = SimpleNamespace(partition_by=("p",), adopted="")
        assert "other programs have added files" in mismatch_reason(frame, SimpleNamespace(), table)  # type: ignore[arg-type] # not needed
        asked.append(
            sum(1 for call in calls if call.startswith("c\n"))
        )  # without the commands of py4j's garbage collection
    assert asked[0] == asked[1] < 40


# --- settings of the session ------------------------------------------------------------------------------------------
def test_a_struct_without_the_wanted_fields_is_there(spark: Any, tmp_path: Path) -> None:
    url = str(tmp_path / "t")
    holdfast.write(spark.sql("select 1 as id, named_struct('a', 1) as s"), url)
    holdfast.write(spark.sql("select 2 as id, named_struct('a', 1, 'b', 2) as s"), url, mergeSchema=True)
    with settings(spark, spark__sql__legacy__parquet__returnNullStructIfAllFieldsMissing="true"):
        found = holdfast.read(spark, url).where("s is not null").select("id", "s.b")
        assert rows(found) == ["(1, None)", "(2, 2)"]
        with pytest.raises(UnsupportedError, match="returnNullStructIfAllFieldsMissing=true Spark may read other"):
            holdfast.read(spark, url, reader="native")


def test_columns_of_orc_go_by_name(spark: Any, tmp_path: Path) -> None:
    url = tmp_path / "t"
    holdfast.write(spark.sql("select 1L as a, 2L as b"), str(url), file_format="orc")
    put(url / "x.orc", b=[4], a=[3])
    with settings(spark, orc__force__positional__evolution="true"):
        assert_alike(spark, url, ["(1, 2)", "(3, 4)"])


@pytest.mark.parametrize("name", ["parquet", pytest.param("orc", marks=pytest.mark.slow)])
def test_names_are_found_in_any_case(spark: Any, tmp_path: Path, name: str) -> None:
    url = tmp_path / "t"
    holdfast.write(spark.sql("select 1L as a, named_struct('x', 2L) as s"), str(url), file_format=name)
    put(url / f"x.{name}", A=[3], S=pa.array([{"X": 4}]))
    with settings(spark, spark__sql__caseSensitive="true"):
        assert_alike(spark, url, ["(1, Row(x=2))", "(3, Row(x=4))"])


@pytest.mark.slow
def test_what_directories_hold_does_not_depend_on_the_session(spark: Any, tmp_path: Path) -> None:
    put(tmp_path / "t=2026-01-01/n=01/x.parquet", a=[1])
    plain = assert_alike(spark, tmp_path, ["(1, datetime.date(2026, 1, 1), 1)"])
    for values in (
        {"spark__sql__timestampType": "TIMESTAMP_NTZ"},
        {"spark__sql__sources__partitionColumnTypeInference__enabled": "false"},
        {"spark__sql__sources__validatePartitionColumns": "false"},
        {"spark__sql__sources__useV1SourceList": ""},
    ):
        with settings(spark, **values):
            for reader in READERS:
                assert holdfast.read(spark, str(tmp_path), reader=reader).schema == plain.schema, values
            with pytest.raises(UnsupportedError, match="Spark's own reader cannot read this"):
                holdfast.read(spark, str(tmp_path), reader="native")


def test_types_of_others_files_do_not_depend_on_the_session(spark: Any, tmp_path: Path) -> None:
    put(tmp_path / "x.parquet", b=[b"x"], t=pa.array([0], pa.timestamp("us")))
    plain = holdfast.read(spark, str(tmp_path))
    assert plain.schema.simpleString() == "struct<b:binary,t:timestamp_ntz>"
    with settings(
        spark, spark__sql__parquet__binaryAsString="true", spark__sql__parquet__inferTimestampNTZ__enabled="false"
    ):
        for reader in READERS:
            assert holdfast.read(spark, str(tmp_path), reader=reader).schema == plain.schema


@pytest.mark.slow
def test_a_partition_column_that_is_in_the_files_too_keeps_its_place(spark: Any, tmp_path: Path) -> None:
    put(tmp_path / "p=1/x.parquet", p=[7], a=[2])
    assert_alike(spark, tmp_path, ["(1, 2)"])
    assert holdfast.read(spark, str(tmp_path)).columns == spark.read.parquet(str(tmp_path)).columns == ["p", "a"]


@pytest.mark.slow
def test_field_ids_are_left_to_the_python_reader(spark: Any, tmp_path: Path) -> None:
    from pyspark.sql.types import LongType, StructField, StructType

    url = str(tmp_path / "t")
    inner = StructType([StructField("x", LongType(), metadata={"parquet.field.id": 7})])
    holdfast.write(spark.createDataFrame([((1,),)], StructType([StructField("s", inner)])), url)
    with settings(spark, spark__sql__parquet__fieldId__read__enabled="true"):
        assert_alike(spark, url, ["(Row(x=1),)"])
        with pytest.raises(UnsupportedError, match=r"by ids, which files may lack"):
            holdfast.read(spark, url, reader="native")


# --- columns and values -----------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("name", "column", "expected"),
    [
        ("s", "named_struct('x`y', 1)", "(Row(x`y=1),)"),
        *(
            pytest.param(*one, marks=pytest.mark.slow)
            for one in (
                ("a`b", "named_struct('x', 1)", "(Row(x=1),)"),
                ("s", "array(map('k', named_struct('x`y', 1)))", "([{'k': Row(x`y=1)}],)"),
                ("", "1", "(1,)"),
                ("s", "named_struct('', 1)", "(Row(=1),)"),
            )
        ),
    ],
)
def test_odd_names_of_orc(spark: Any, tmp_path: Path, name: str, column: str, expected: str) -> None:
    url = tmp_path / "t"
    frame = spark.sql(f"select {column} as x").toDF(name)
    holdfast.write(frame, str(url), file_format="orc")
    assert_alike(spark, url, [expected])
    with pytest.raises(UnsupportedError, match="not find ORC columns whose name is empty or contains a backtick"):
        holdfast.read(spark, str(url), reader="native")
