"""Read through Spark's own reader: whole jobs only, and the same rows as through the Python reader."""

from __future__ import annotations

import contextlib
import datetime
import itertools
import shutil
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

import holdfast
from holdfast.commit import read_snapshot
from holdfast.commit.recovery import recover
from holdfast.errors import InvalidRequestError, NotFoundError, UnsupportedError
from holdfast.spark import native
from tests.integration.dying_jobs import dying_overwrite

pytestmark = pytest.mark.spark

READERS = ["native", "python"]
UTC = datetime.timezone.utc


def rows(frame: Any) -> list[str]:
    """Return the rows as text, in which NaN equals itself and -0.0 differs from 0.0."""
    return sorted(repr(tuple(row)) for row in frame.collect())


def is_native(frame: Any) -> bool:
    return "FileScan" in frame._jdf.queryExecution().toString()


@pytest.mark.slow
def test_a_job_is_seen_whole_or_not_at_all_at_every_call_of_its_commit(spark: Any, tmp_path: Path) -> None:
    """C4 holds whatever a plain listing shows between the decision and the end of its publication."""
    old, new = spark.range(2).selectExpr("id", "id as k"), spark.range(10, 13).selectExpr("id", "id % 2 as k")
    before, after = rows(old), rows(new)
    holdfast.write(old, str(tmp_path / "old"), partition_by="k")
    seen = []
    mixed = 0
    for nth in itertools.count(1):
        url = str(shutil.copytree(tmp_path / "old", tmp_path / f"t{nth}"))
        ended = dying_overwrite(new, url, nth)
        found = holdfast.read(spark, url, reader="native")
        assert is_native(found)
        shown = rows(found)
        assert shown in (before, after)
        seen.append(shown == after)
        mixed += spark.read.parquet(url).count() not in (2, 3)
        if ended:
            break
    assert seen == sorted(seen), "once it is there, it stays"
    assert not seen[0] and seen[-1]
    assert mixed, "a plain reader did see half a job: the test can fail"


def test_a_frame_keeps_its_snapshot(spark: Any, tmp_path: Path) -> None:
    url = str(tmp_path / "t")
    holdfast.write(spark.range(3), url)
    before = holdfast.read(spark, url)
    holdfast.write(spark.range(4), url)
    assert (before.count(), holdfast.read(spark, url).count()) == (3, 7)


@pytest.mark.parametrize(
    "name",
    ["x{1,2}", *(pytest.param(one, marks=pytest.mark.slow) for one in ("a b%20c", "st*r[a]?", "ü#+=&", "back\\slash"))],
)
def test_a_path_is_a_path(spark: Any, tmp_path: Path, name: str) -> None:
    """Spark treats paths as patterns by default."""
    url = str(tmp_path / name)
    holdfast.write(spark.range(4).selectExpr("id", "concat('p{*} %', id % 2) as k"), url, partition_by="k")
    (tmp_path / "x1").mkdir(exist_ok=True)
    native, python = (holdfast.read(spark, url, reader=reader) for reader in READERS)
    assert rows(native) == rows(python) and native.count() == 4
    assert native.schema == python.schema


def test_a_frame_that_is_cached_answers_for_itself_alone(spark: Any, tmp_path: Path) -> None:
    """Spark considers two reads of one path equal; only its own writers invalidate its cache."""
    url = str(tmp_path / "t")
    holdfast.write(spark.range(3), url)
    cached = holdfast.read(spark, url).cache()
    try:
        assert cached.count() == 3
        holdfast.write(spark.range(3, 7), url)
        assert (cached.count(), holdfast.read(spark, url).count()) == (3, 7)
    finally:
        cached.unpersist()


@pytest.mark.parametrize("damage", [Path.unlink, lambda path: path.write_bytes(b"PAR1 is not all of it")])
def test_lost_rows_are_an_error_whatever_the_session_says(spark: Any, tmp_path: Path, damage: Any) -> None:
    url = tmp_path / "t"
    holdfast.write(spark.range(100).repartition(2), str(url))
    names = ("spark.sql.files.ignoreMissingFiles", "spark.sql.files.ignoreCorruptFiles")
    for name in names:
        spark.conf.set(name, "true")
    try:
        found = holdfast.read(spark, str(url))
        damage(min(url.glob("part-*")))
        with pytest.raises(Exception, match="FAILED_READ_FILE"):
            found.count()
    finally:
        for name in names:
            spark.conf.unset(name)


def test_columns_of_csv_are_read_by_name(spark: Any, tmp_path: Path) -> None:
    """Spark's own reader would mix up the columns; files that other programs added later are refused."""
    url = str(tmp_path / "t")
    holdfast.write(spark.sql("select '1' as a, '2' as b"), url, file_format="csv", header=True)
    holdfast.write(spark.sql("select '7' as b, '6' as a"), url, file_format="csv", header=True)
    with pytest.raises(UnsupportedError, match="Parquet and ORC only"):
        holdfast.read(spark, url, reader="native")
    assert rows(holdfast.read(spark, url)) == ["('1', '2')", "('6', '7')"]
    spark.sql("select '7' as b, '6' as a").write.mode("append").csv(url, header=True)
    with pytest.raises(InvalidRequestError, match="csv files that no log describes"):
        holdfast.read(spark, url).collect()


def test_a_column_is_no_place_for_corrupt_lines(spark: Any, tmp_path: Path) -> None:
    """Spark's text readers reserve a column of that name, and the session may choose another name."""
    url = str(tmp_path / "t")
    holdfast.write(spark.sql("select 'x' as _corrupt_record, 'y' as s, 1 as a"), url, file_format="json")
    for chosen in ("_corrupt_record", "s"):
        spark.conf.set("spark.sql.columnNameOfCorruptRecord", chosen)
        try:
            for reader in ("auto", "python"):
                assert rows(holdfast.read(spark, url, reader=reader)) == ["('x', 'y', 1)"]
        finally:
            spark.conf.unset("spark.sql.columnNameOfCorruptRecord")


def dead_overwrite(frame: Any, url: str, mark: str, there: bool) -> None:
    """Overwrite with a driver that dies right after its decision, or right after the decision's mark."""
    nth = 1
    while True:
        home = f"{url}{nth}"
        shutil.copytree(url, home)
        dying_overwrite(frame, home, nth)
        if any(Path(home).glob(f"_holdfast/log/*2.{mark}")) == there:
            shutil.rmtree(url)
            Path(home).rename(url)
            return
        nth += 1


def test_files_that_go_while_spark_is_told_of_them(spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The snapshot is taken before another process finishes an overwrite; Spark gets its names after that."""
    url = str(tmp_path / "t")
    holdfast.write(spark.range(2).selectExpr("id", "id as k"), url, partition_by="k")
    new = spark.range(10, 13).selectExpr("id", "id % 2 as k")
    dead_overwrite(new, url, "json", there=True)

    def overtaken(ctx: Any) -> Any:
        found = read_snapshot(ctx)
        recover(ctx, older_than_s=0)
        return found

    monkeypatch.setattr(native, "read_snapshot", overtaken)
    found = holdfast.read(spark, url, reader="native")
    assert rows(found) == rows(new)


@pytest.mark.slow
def test_nothing_is_there_while_the_first_job_is_not_visible(spark: Any, tmp_path: Path) -> None:
    url = str(tmp_path / "t")
    frame = spark.range(2).selectExpr("id", "id as k")
    for nth in itertools.count(1):
        if dying_overwrite(frame, f"{url}{nth}", nth):
            break
        for reader in READERS:
            with contextlib.suppress(NotFoundError, UnsupportedError):  # there is no table yet
                assert rows(holdfast.read(spark, f"{url}{nth}", reader=reader)) == rows(frame)


@pytest.mark.slow
def test_columns_mean_the_same_and_conditions_are_for_one_reader(spark: Any, tmp_path: Path) -> None:
    url = str(tmp_path / "t")
    frame = spark.sql("select * from values (1, 'a', 1), (2, 'b', 1), (4, '', 2) as v(n, s, k)")
    holdfast.write(frame, url, partition_by="k")
    for reader in READERS:
        assert rows(holdfast.read(spark, url, reader=reader, columns=["k", "S"])) == ["(1, 'a')", "(1, 'b')", "(2, '')"]
        with pytest.raises(InvalidRequestError, match=r"no such column.*did you mean"):
            holdfast.read(spark, url, reader=reader, columns=["kk"])
    some = holdfast.read(spark, url, filters=[("k", "=", 1)])
    assert not is_native(some) and some.count() == 2
    with pytest.raises(UnsupportedError, match="filter the DataFrame"):
        holdfast.read(spark, url, reader="native", filters=[("k", "=", 1)])
    with pytest.raises(InvalidRequestError, match="a condition's column is not read"):
        holdfast.read(spark, url, columns=["s"], filters=[("k", "=", 1)])
    collated = str(tmp_path / "collated")
    holdfast.write(spark.sql("select 'A' collate UTF8_LCASE as s"), collated)
    with pytest.raises(InvalidRequestError, match=r"has a collation.*filter the DataFrame"):
        holdfast.read(spark, collated, filters=[("s", "=", "a")])


def test_what_cannot_be_native_is_python_or_refused(spark: Any, tmp_path: Path) -> None:
    url = str(tmp_path / "t")
    holdfast.write(spark.sql("select 1 as id, '' as s union all select 2, null"), url)
    for reader in READERS:
        assert rows(holdfast.read(spark, url, reader=reader)) == ["(1, '')", "(2, None)"]
    with pytest.raises(UnsupportedError, match=r"Spark's own reader cannot read this: .*splitSize"):
        holdfast.read(spark, url, reader="native", splitSize="1m")
    arrow = str(tmp_path / "arrow")
    holdfast.write(spark.range(2), arrow, file_format="arrow")
    assert not is_native(holdfast.read(spark, arrow)) and holdfast.read(spark, arrow).count() == 2
    with pytest.raises(UnsupportedError, match="Parquet and ORC only"):
        holdfast.read(spark, arrow, reader="native")
    for reader in ("auto", *READERS):
        with pytest.raises(NotFoundError, match="nothing to read"):
            holdfast.read(spark, str(tmp_path / "missing"), reader=reader)
        (tmp_path / "empty").mkdir(exist_ok=True)
        with pytest.raises(NotFoundError, match="nothing to read"):
            holdfast.read(spark, str(tmp_path / "empty"), reader=reader)
    with pytest.raises(InvalidRequestError, match="no such choice"):
        holdfast.read(spark, arrow, reader="nativ")


def test_an_emptied_table_has_its_columns(spark: Any, tmp_path: Path) -> None:
    url = str(tmp_path / "t")
    holdfast.write(spark.range(3).selectExpr("id", "id % 2 as k"), url, partition_by="k")
    holdfast.write(spark.range(0).selectExpr("id", "id % 2 as k"), url, partition_by="k", mode="overwrite")
    for reader in READERS:
        found = holdfast.read(spark, url, reader=reader)
        assert (found.columns, found.count()) == (["id", "k"], 0)


@pytest.mark.slow
def test_rows_are_counted_alike(spark: Any, tmp_path: Path) -> None:
    """Counts send no row to Spark: with partitions, added columns, and CSV, whose columns are positional."""
    for file_format in ("parquet", "csv", "json", "arrow"):
        url = str(tmp_path / file_format)
        frame = spark.range(20).selectExpr("id", "id % 3 as k", "concat('n', id) as s")
        holdfast.write(frame, url, partition_by="k", file_format=file_format)
        holdfast.write(frame.drop("s"), url, partition_by="k", file_format=file_format)
        for filters in ([], [("k", "=", 1)], [("id", "<", 5), ("s", "!=", "n1")]):
            wanted = holdfast.read(spark, url, filters=filters, reader="python").count()
            assert 0 < wanted <= 40
            assert holdfast.count(spark, url, filters=filters) == wanted
            assert holdfast.count(spark, url, filters=filters, reader="python") == wanted
    with pytest.raises(NotFoundError, match="nothing to read"):
        holdfast.count(spark, str(tmp_path / "none"))
    with pytest.raises(InvalidRequestError, match="a condition's column is not read"):
        holdfast.count(spark, url, filters=[("kk", "=", 1)])


def test_files_that_spark_leaves_out_are_read(spark: Any, tmp_path: Path) -> None:
    """Spark's reader silently skips directories that are not partitions."""
    url = str(tmp_path / "files")
    with holdfast.job(spark, url) as job:

        def save(task: Any, numbers: Any) -> None:
            for number in numbers:
                with task.open(f"{number.id % 3}/{number.id}.txt") as file:
                    file.write(str(number.id).encode())

        job.run(spark.range(0, 20, 1, 2).rdd, save)
    assert rows(holdfast.read(spark, url)) == sorted(repr((str(number),)) for number in range(20))
    with pytest.raises(UnsupportedError, match="no log describes a table here"):
        holdfast.read(spark, url, reader="native")


def test_files_of_two_formats_are_refused_by_both_readers(spark: Any, tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text('{"id": 5}\n')
    (tmp_path / "b.txt").write_text("text\n")
    for reader in ("auto", "python"):
        with pytest.raises(InvalidRequestError, match="files have different formats"):
            holdfast.read(spark, str(tmp_path), reader=reader)


def test_damaged_pages_are_errors(spark: Any, tmp_path: Path) -> None:
    url = str(tmp_path / "t")
    holdfast.write(spark.range(5000).selectExpr("rand(7) as x").coalesce(1), url, compression="none")
    [path] = (tmp_path / "t").glob("part-*")
    column = pq.ParquetFile(path).metadata.row_group(0).column(0)
    data = bytearray(path.read_bytes())
    data[column.data_page_offset + column.total_compressed_size - 5] ^= 1
    path.write_bytes(data)
    assert spark.read.parquet(url).count() == 5000 and spark.read.parquet(url).selectExpr("sum(x)").collect()
    for reader in READERS:
        with pytest.raises(Exception, match=r"FAILED_READ_FILE|bytes of the file are damaged"):
            holdfast.read(spark, url, reader=reader).selectExpr("sum(x)").collect()
