"""Check what an append may change, with `holdfast.write`, `holdfast.read` and stock Spark."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import holdfast
from holdfast.commit import TWO_PHASE, CommitContext, SaveMode, open_context, read_history
from holdfast.errors import ConflictError, InvalidRequestError
from tests.integration.spark_session import assert_clean, visible
from tests.variants import variants

pytestmark = pytest.mark.spark

READERS = ["native", "python"]
NOT_NATIVE = ("auto", "python")  # foreign JSON is never read by Spark's reader


def rows(frame: Any) -> list[tuple[Any, ...]]:
    return sorted((tuple(row) for row in frame.collect()), key=repr)


def abort_jobs(url: str, count: int) -> None:
    ctx: CommitContext = open_context(url)
    try:
        for _ in range(count):
            job = TWO_PHASE.setup_job(ctx.with_settings(log_retention_entries=1), SaveMode.APPEND)
            assert job is not None
            TWO_PHASE.abort_job(ctx.with_settings(log_retention_entries=1), job)
    finally:
        ctx.close()


def test_a_narrow_append_hides_nothing(spark: Any, tmp_path: Path) -> None:
    """Readers see the union of the columns, filled with nulls, in the table's order, spelling and types."""
    url = str(tmp_path / "t")
    holdfast.write(spark.sql("select 1L as id, 'a' as name, 1.5D as price, 1 as part"), url, partition_by="part")
    holdfast.write(spark.sql("select 2 as ID, 1 as part"), url, partition_by="part")
    abort_jobs(url, 3)  # push both decisions out of a log that keeps one
    holdfast.write(spark.sql("select 2 as part, cast(2.5 as float) as Price, 3L as id"), url, partition_by="part")
    wanted = sorted([(1, "a", 1.5, 1), (2, None, None, 1), (3, None, 2.5, 2)], key=repr)
    for reader in READERS:
        found = holdfast.read(spark, url, reader=reader)
        assert found.schema.simpleString() == "struct<id:bigint,name:string,price:double,part:int>"
        assert rows(found) == wanted
    stock = spark.read.schema("id long, name string, price double, part int").parquet(url)
    assert rows(stock) == wanted
    assert_clean(url)


@pytest.mark.slow
def test_merge_schema_widens_and_adds(spark: Any, tmp_path: Path) -> None:
    url = str(tmp_path / "t")
    holdfast.write(spark.sql("select 1 as id, named_struct('a', 1) as s, cast(0.1 as float) as f"), url)
    wider = spark.sql("select 3000000000L as id, named_struct('a', 2L, 'b', 'x') as s, 0.1D as f, array(1) as more")
    with pytest.raises(InvalidRequestError, match=r"another type in the table.*mergeSchema=true.*table='int'"):
        holdfast.write(wider, url)
    holdfast.write(wider, url, merge_schema=True)
    for reader in READERS:
        found = holdfast.read(spark, url, reader=reader)
        assert found.schema.simpleString() == ("struct<id:bigint,s:struct<a:bigint,b:string>,f:double,more:array<int>>")
        narrow, wide = sorted(found.collect(), key=lambda row: row.id)
        assert (narrow.id, narrow.s, narrow.more) == (1, (1, None), None)
        assert narrow.f == pytest.approx(0.1, abs=1e-8) and narrow.f != 0.1, "the float that was written, widened"
        assert (wide.id, wide.s, wide.f, wide.more) == (3000000000, (2, "x"), 0.1, [1])
    assert_clean(url)


REFUSED = [
    ({"file_format": "csv"}, {"file_format": "json"}, "another file format"),
    ({}, {"partition_by": "k"}, "other partition columns"),
    ({"partition_by": "k"}, {}, "other partition columns"),
    ({"file_format": "csv"}, {"file_format": "csv", "header": True}, "another header"),
    ({"file_format": "csv", "header": True}, {"file_format": "csv", "header": True, "sep": ";"}, "another sep"),
]


@pytest.mark.parametrize(("first", "second", "sentence"), REFUSED)
def test_another_layout_is_refused_with_what_is_there(
    spark: Any, tmp_path: Path, first: dict[str, Any], second: dict[str, Any], sentence: str
) -> None:
    url = str(tmp_path / "t")
    frame = spark.range(4).selectExpr("id", "id % 2 as k")
    holdfast.write(frame, url, **first)
    before = visible(url)
    for mode in ("append", *(["overwrite-partitions"] if "partition_by" in second else [])):
        with pytest.raises(InvalidRequestError, match=sentence):
            holdfast.write(frame, url, mode=mode, **second)
    assert visible(url) == before
    assert_clean(url)
    holdfast.write(frame, url, mode="overwrite", **second)
    assert rows(holdfast.read(spark, url)) == rows(frame.select(*holdfast.read(spark, url).columns))


@pytest.mark.slow
def test_csv_columns_are_written_in_the_tables_order(spark: Any, tmp_path: Path) -> None:
    """Stock Spark matches columns by position and ignores the header."""
    url = str(tmp_path / "t")
    holdfast.write(spark.sql("select 'a1' as a, 'b1' as b"), url, file_format="csv", header=True)
    holdfast.write(spark.sql("select 'b2' as b, 'a2' as a"), url, file_format="csv", header=True)
    holdfast.write(spark.sql("select '' as b"), url, file_format="csv", header=True)
    holdfast.write(spark.sql("select 'c4' as c"), url, file_format="csv", header=True, mergeSchema=True)
    wanted = sorted([("a1", "b1", None), ("a2", "b2", None), (None, "", None), (None, None, "c4")], key=repr)
    assert rows(holdfast.read(spark, url)) == wanted
    stock = spark.read.schema("a string, b string, c string").csv(url, header=True, multiLine=True, nullValue="\uffff")
    assert rows(stock) == wanted


@pytest.mark.parametrize(
    ("write", "options", "sentence"),
    [
        (lambda frame, url: frame.write.csv(url, header=True), {}, "another file format"),
        (lambda frame, url: frame.write.partitionBy("k").parquet(url), {}, "other partition columns"),
        (lambda frame, url: frame.write.parquet(url), {"partition_by": "k"}, "other partition columns"),
        (lambda frame, url: frame.write.csv(url), {"file_format": "csv"}, "holds csv files that no log describes"),
        (lambda frame, url: frame.write.json(url), {"file_format": "json"}, "holds json files that no log describes"),
        (lambda frame, url: frame.selectExpr("'x' as id", "k").write.parquet(url), {}, "another type"),
        (lambda frame, url: frame.selectExpr("id").write.parquet(url), {}, "no such column"),
    ],
)
def test_a_directory_of_others_is_looked_at_before_the_first_write(
    spark: Any, tmp_path: Path, write: Any, options: dict[str, Any], sentence: str
) -> None:
    url = str(tmp_path / "t")
    frame = spark.range(4).selectExpr("id", "id % 2 as k")
    write(frame, url)
    before = visible(url)
    with pytest.raises(InvalidRequestError, match=sentence):
        holdfast.write(frame, url, **options)
    assert visible(url) == before


@pytest.mark.slow
def test_a_directory_of_others_that_fits_is_added_to(spark: Any, tmp_path: Path) -> None:
    """Both readers and stock Spark then see one table of stock Spark's files and ours."""
    frame = spark.range(4).selectExpr("id", "timestamp '1500-01-01 00:00:00' as t", "id % 2 as k")
    url = str(tmp_path / "t")
    frame.write.partitionBy("k").parquet(url)
    holdfast.write(frame.selectExpr("id + 10 as id", "t", "k"), url, partition_by="k")
    both = rows(frame.union(frame.selectExpr("id + 10 as id", "t", "k")))
    for reader in READERS:
        assert rows(holdfast.read(spark, url, reader=reader).select("id", "t", "k")) == both, reader


@pytest.mark.slow
def test_a_column_that_others_never_left_empty_may_be_null(spark: Any, tmp_path: Path) -> None:
    """A required column of foreign files binds their rows only: Spark would answer ``is null`` by the schema."""
    inner = pa.struct([pa.field("x", pa.int64(), nullable=False)])
    schema = pa.schema([pa.field("id", pa.int64(), nullable=False), pa.field("s", inner, nullable=False)])
    for name in ("parquet", "arrow"):
        (tmp_path / name).mkdir()
        table = pa.table({"id": [1], "s": [{"x": 1}]}, schema)
        if name == "parquet":
            pq.write_table(table, tmp_path / name / "f.parquet")
        else:
            with pa.ipc.new_file(str(tmp_path / name / "f.arrow"), schema) as file:
                file.write_table(table)
        url = str(tmp_path / name)
        added = spark.sql("select cast(null as bigint) as id, cast(null as struct<x: bigint>) as s")
        holdfast.write(added, url, file_format=name)
        for reader in ("auto", "python"):
            found = holdfast.read(spark, url, reader=reader)
            assert found.schema == added.schema
            assert (found.where("id is null").count(), found.where("s.x is null").count()) == (1, 1), (name, reader)


def test_files_of_a_job_are_no_table(spark: Any, tmp_path: Path) -> None:
    (tmp_path / "t").mkdir()
    (tmp_path / "t" / "model.bin").write_bytes(b"weights")
    with pytest.raises(InvalidRequestError, match="files that are not a table"):
        holdfast.write(spark.range(1), str(tmp_path / "t"))


@pytest.mark.slow
def test_two_first_jobs_with_two_layouts(spark: Any, tmp_path: Path) -> None:
    """The second job starts before the first is decided: its decision checks the layout again."""
    url = str(tmp_path / "t")
    frame = spark.range(4).selectExpr("id", "id % 2 as k")
    from holdfast.options.write import parse_write_options
    from holdfast.spark.table_job import TableJob

    late = TableJob.of(parse_write_options({"path": url, "partitionBy": "k"}, overwrite=False), frame.schema)
    with late.open_destination() as ctx:
        from holdfast.commit.two_phase.decision_log import read_log

        late = late.fit_to_table(ctx, read_log(ctx))
        job = TWO_PHASE.setup_job(ctx, SaveMode.APPEND, late.details)
        assert job is not None
        with TWO_PHASE.setup_task(ctx, job, 0) as attempt:
            late.write_rows(iter(frame.toArrow().to_batches()), attempt)
            commit = attempt.commit()
    holdfast.write(frame, url)
    with late.open_destination() as ctx:
        with pytest.raises(ConflictError, match="another job changed the table in the meantime"):
            TWO_PHASE.commit_job(ctx, job, [commit], 1)
        TWO_PHASE.abort_job(ctx, job)
    assert rows(holdfast.read(spark, url)) == rows(frame)
    assert_clean(url)


def test_a_write_id_is_an_idempotency_key(spark: Any, tmp_path: Path) -> None:
    url = str(tmp_path / "t")
    first = holdfast.write(spark.range(3), url, write_id="2026-11-21/flights")
    again = holdfast.write(spark.range(99), url, write_id="2026-11-21/flights", mode="overwrite", file_format="csv")
    assert again == first and first.rows == 3
    spark.range(99).write.format("holdfast").mode("append").option("writeId", "2026-11-21/flights").save(url)
    assert holdfast.read(spark, url).count() == 3
    broken = spark.range(3).selectExpr("if(id = 2, raise_error('boom'), id) as id")
    with pytest.raises(Exception, match="boom"):
        holdfast.write(broken, url, write_id="second")
    assert holdfast.write(spark.range(4), url, write_id="second").rows == 4, "a failed write leaves its name free"
    ctx = open_context(url)
    try:
        job = TWO_PHASE.setup_job(ctx, SaveMode.APPEND, {"write_id": "third"})
        with pytest.raises(ConflictError, match="is running"):
            holdfast.write(spark.range(5), url, write_id="third")
        assert job is not None
        TWO_PHASE.abort_job(ctx, job)
        assert len([one for one in read_history(ctx).decisions if one.entry.kind.value == "commit"]) == 2
    finally:
        ctx.close()
    assert_clean(url)


@pytest.mark.parametrize("name", variants(["csv", "parquet", "avro"]))
def test_a_frame_that_was_made_before_an_overwrite(spark: Any, tmp_path: Path, name: str) -> None:
    """It finds its columns in the current table, or reports that they no longer exist (C12)."""
    url = str(tmp_path / "t")
    holdfast.write(spark.sql("select 1 as a, 2 as b"), url, file_format=name)
    found = holdfast.read(spark, url, reader="python")
    holdfast.write(spark.sql("select 20 as b, 10 as a"), url, file_format=name, mode="overwrite")
    assert rows(found.select("a", "b")) == [(10, 20)]
    for query in ("select 5 as c, 10 as a", "select 10 as a, timestamp '2026-01-01' as b", "select 1L as a, 2 as b"):
        holdfast.write(spark.sql("select 1 as a, 2 as b"), url, file_format=name, mode="overwrite")
        found = holdfast.read(spark, url, reader="python")
        holdfast.write(spark.sql(query), url, file_format=name, mode="overwrite")
        with pytest.raises(Exception, match="build the DataFrame again"):
            found.collect()


def test_a_schema_of_the_users_goes_by_the_tables_names(spark: Any, tmp_path: Path) -> None:
    url = str(tmp_path / "t")
    holdfast.write(spark.sql("select 1 as a, '02' as b"), url, file_format="csv")
    reader = spark.read.format("holdfast")
    assert rows(reader.schema("b string, a int").load(url).select("a", "b")) == [(1, "02")]
    assert rows(reader.schema("A int").load(url)) == [(1,)]
    with pytest.raises(Exception, match="the table has no such column"):
        reader.schema("a int, c int").load(url).collect()


@pytest.mark.slow
def test_what_other_tables_note_at_their_columns_is_left_behind(spark: Any, tmp_path: Path) -> None:
    """A default of a Spark table would fill our nulls; the length of a CHAR would pad texts on read."""
    spark.sql("create table noted (a int, b int default 42, c char(5)) using parquet")
    try:
        spark.sql("insert into noted values (5, 6, 'ab')")
        for name in ("parquet", "orc", "json"):
            url = str(tmp_path / name)
            holdfast.write(spark.table("noted"), url, file_format=name)
            holdfast.write(spark.sql("select 7 as a, 'cd' as c"), url, file_format=name)
            for reader in READERS[name == "json" :]:  # Spark's own reader reads no JSON
                found = holdfast.read(spark, url, reader=reader)
                assert rows(found) == [(5, 6, "ab   "), (7, None, "cd")], (name, reader)
            schema = holdfast.read(spark, url).schema
            assert rows(spark.read.schema(schema).format(name).load(url)) == [(5, 6, "ab   "), (7, None, "cd")]
    finally:
        spark.sql("drop table noted")


def put_parquet(directory: Path, **files: pa.Table) -> str:
    for name, table in files.items():
        pq.write_table(table, directory / f"{name}.parquet")
    return str(directory)


def test_columns_of_any_file_are_the_tables(spark: Any, tmp_path: Path) -> None:
    """Wider types count as well."""
    one, two = pa.table({"a": pa.array([1], pa.int32())}), pa.table({"A": [2], "b": ["x"]})
    url = put_parquet(tmp_path, o=one, t=two)
    (tmp_path / "z.parquet").touch()
    with pytest.raises(InvalidRequestError, match=r"another type in the table.*column='b' table='string'"):
        holdfast.write(spark.sql("select 3L a, 5L b"), url, merge_schema=True)
    holdfast.write(spark.sql("select 3 a, 'y' b"), url)
    for reader in READERS:
        found = holdfast.read(spark, url, reader=reader)
        assert found.schema.simpleString() == "struct<a:bigint,b:string>"
        assert rows(found) == [(1, None), (2, "x"), (3, "y")], reader
    assert rows(spark.read.schema("a long, b string").parquet(url)) == [(1, None), (2, "x"), (3, "y")]


def test_files_of_others_that_do_not_agree_are_refused(spark: Any, tmp_path: Path) -> None:
    url = put_parquet(tmp_path, a=pa.table({"a": [1]}), b=pa.table({"a": [1], "b": [5]}), c=pa.table({"b": ["x"]}))
    before = visible(url)
    with pytest.raises(InvalidRequestError, match=r"different types of a column.*'b'.*first='b\.par.*other='c\.par"):
        holdfast.write(spark.sql("select 3L a"), url)
    assert visible(url) == before


@pytest.mark.slow
def test_nulls_without_a_type_stay_nulls(spark: Any, tmp_path: Path) -> None:
    """CSV cannot tell a null that stands alone from an empty string."""
    url = str(tmp_path / "alone")
    nothing, text = spark.sql("select null as a from range(2)"), spark.sql("select 'x' as a")
    for frame, by in ((nothing, []), (nothing.selectExpr("a", "1 as k"), ["k"])):
        with pytest.raises(Exception, match="null would be a blank line"):
            holdfast.write(frame, url, file_format="csv", partition_by=by)
    for options in ({"file_format": "csv", "null_value": "-"}, {"file_format": "json"}):
        url = str(tmp_path / options["file_format"])
        holdfast.write(nothing, url, **options)
        holdfast.write(text, url, merge_schema=True, **options)
        assert rows(holdfast.read(spark, url)) == [("x",), (None,), (None,)], options
