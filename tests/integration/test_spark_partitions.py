"""Compare partition directories with those of stock Spark: same names, same values, same inferred types."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import holdfast
from holdfast.errors import InvalidRequestError
from tests.integration.spark_session import visible
from tests.unit.table.test_partition_values import MANY, ONE

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytest.importorskip("pyspark.sql")

pytestmark = [pytest.mark.spark, pytest.mark.filterwarnings("ignore")]

VALUES = {
    "byte": ["-128", "5"],
    "short": ["-32768", "32767"],
    "long": ["-9223372036854775808", "0"],
    "decimal(38,0)": ["'" + "9" * 38 + "'", "-5"],
    "decimal(38,38)": ["'1e-38'", "'-0.1'"],
    "decimal(10,2)": ["1.5", "0"],
    "float": ["'0.1'", "'1.4E-45'", "'-0.0'", "'NaN'", "'3.4028235E38'", "16777216"],
    "double": ["'4.9E-324'", "'0.1'", "'-0.0'", "'0.0'", "'NaN'", "'-Infinity'", "'1.7976931348623157E308'", "'1e-5'"],
    "boolean": ["true", "false"],
    "date": ["'2020-01-01'", "'+10000-01-01'", "'0000-01-01'", "'-0001-03-04'", "'1582-10-04'", "'+5881580-07-11'"],
    "timestamp": [
        *("'2020-01-01 00:00:00.1'", "'2020-11-01 05:30:00Z'", "'2020-03-08 07:30:00Z'", "'1700-01-01 12:00:00Z'"),
        *(
            "'+10000-07-01 00:00:00'",
            "'-0001-01-01 00:00:00'",
            "'2050-07-01 12:00:00Z'",
            "'1969-12-31 23:59:59.999999'",
        ),
    ],
    "timestamp_ntz": ["'2020-03-08 02:30:00'", "'+10000-01-01 00:00:00.12'", "'-0001-01-01 00:00:00'"],
    "string": ["'.'", "'..'", "'a '", "' a'", "'a/b'", "'%41'", "'é'", "'_x'", "'a\\nb'", "'05'", "'=1'"],
}
SCHEMA = "id int, " + ", ".join(f"p{index} {kind}" for index, kind in enumerate(VALUES))


@pytest.fixture
def zone(spark: SparkSession, request: pytest.FixtureRequest) -> Iterator[str]:
    before = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", request.param)
    yield request.param
    spark.conf.set("spark.sql.session.timeZone", before)


def every_value(spark: SparkSession) -> DataFrame:
    """Return rows with every value of every type, and a row of nulls."""
    longest = max(map(len, VALUES.values()))
    selects = [
        f"select {row} as id, "
        + ", ".join(
            f"cast({'null' if row == longest else texts[row % len(texts)]} as {kind}) as p{index}"
            for index, (kind, texts) in enumerate(VALUES.items())
        )
        for row in range(longest + 1)
    ]
    return spark.sql(" union all ".join(selects))


def shown(frame: DataFrame) -> list[tuple[str | None, ...]]:
    """Return rows as text with the sign of zero and every fraction, because Python has no dates after the year 9999."""
    texts = frame.selectExpr("id", *(f"cast(p{index} as string)" for index in range(len(VALUES))))
    return sorted(tuple(None if one is None else str(one) for one in row) for row in texts.collect())


def directories(root: Path) -> set[str]:
    return {path.rpartition("/")[0] for path in visible(root) if "=" in path}


@pytest.mark.parametrize(
    "zone", ["America/New_York", pytest.param("Asia/Kolkata", marks=pytest.mark.slow)], indirect=True
)
def test_directories_are_those_of_stock_spark(spark: SparkSession, tmp_path: Path, zone: str) -> None:
    frame = every_value(spark).coalesce(1)
    by = [f"p{index}" for index in range(len(VALUES))]
    frame.write.partitionBy(*by).parquet(str(tmp_path / "theirs"))
    holdfast.write(frame, str(tmp_path / "ours"), partition_by=by)
    assert directories(tmp_path / "ours") == directories(tmp_path / "theirs")
    given = shown(frame)
    assert shown(spark.read.schema(SCHEMA).parquet(str(tmp_path / "ours"))) == given
    assert shown(holdfast.read(spark, str(tmp_path / "ours"), reader="python")) == given
    assert shown(holdfast.read(spark, str(tmp_path / "ours"))) == given


@pytest.mark.slow
def test_instants_are_the_same_in_a_session_of_another_zone(spark: SparkSession, tmp_path: Path) -> None:
    """facts: the table records the time zone of its directories; stock Spark has an option for it."""
    before = spark.conf.get("spark.sql.session.timeZone")
    text = "select 1 as id, timestamp'2020-11-01 06:30:00Z' as at union all select 2, timestamp'2020-11-01 05:30:00Z'"
    try:
        spark.conf.set("spark.sql.session.timeZone", "UTC")
        holdfast.write(spark.sql(text), str(tmp_path / "t"), partition_by="at")
        spark.conf.set("spark.sql.session.timeZone", "America/New_York")
        seconds = "cast(at as long)"
        expected = sorted(spark.sql(text).selectExpr("id", seconds).collect())
        for read in (
            holdfast.read(spark, str(tmp_path / "t")),
            holdfast.read(spark, str(tmp_path / "t"), reader="python"),
            spark.read.option("timeZone", "UTC").parquet(str(tmp_path / "t")),
        ):
            assert sorted(read.selectExpr("id", seconds).collect()) == expected
        # In New York's directories the two would be one.
        with pytest.raises(InvalidRequestError, match="a timestamp is ambiguous"):
            holdfast.write(spark.sql(text), str(tmp_path / "u"), partition_by="at")
        assert visible(tmp_path / "u") == []
    finally:
        spark.conf.set("spark.sql.session.timeZone", before)


def test_texts_that_no_directory_keeps_apart_are_refused(spark: SparkSession, tmp_path: Path) -> None:
    for index, value in enumerate(("''", "'__HIVE_DEFAULT_PARTITION__'", "repeat('x', 300)", "cast(X'ff' as string)")):
        url = str(tmp_path / str(index))
        with pytest.raises(InvalidRequestError, match="partition"):
            holdfast.write(spark.sql(f"select 1 as id, {value} as p"), url, partition_by="p")
        assert visible(url) == []


def test_a_text_with_nul_comes_back(spark: SparkSession, tmp_path: Path) -> None:
    """Stock Spark cannot write it, because it does not escape NUL."""
    holdfast.write(spark.sql("select 1 as id, concat('a', char(0), 'b') as p"), str(tmp_path / "t"), partition_by="p")
    assert spark.read.parquet(str(tmp_path / "t")).first().p == "a\0b"
    assert holdfast.read(spark, str(tmp_path / "t"), reader="python").first().p == "a\0b"


# --- directories of others --------------------------------------------------------------------------------------------
def other_table(root: Path, leaves: list[list[str | None]]) -> str:
    """Write a table with one file per leaf; its directories are columns p0, p1 and so on with these values."""
    seed = root / "seed.parquet"
    pq.write_table(pa.table({"id": [1]}), seed)
    for leaf in leaves:
        names = (f"p{i}={'__HIVE_DEFAULT_PARTITION__' if text is None else text}" for i, text in enumerate(leaf))
        place = root.joinpath("t", *names)
        place.mkdir(parents=True)
        shutil.copy(seed, place / "part-0.parquet")
    return str(root / "t")


def texts_of(frame: DataFrame) -> list[tuple[str | None, ...]]:
    found = frame.selectExpr(*(f"cast({name} as string)" for name in frame.columns if name != "id")).collect()
    return sorted((tuple(row) for row in found), key=repr)


@pytest.mark.slow
def test_types_and_values_are_inferred_as_by_stock_spark(spark: SparkSession, tmp_path: Path) -> None:
    texts = [text for many in ONE.values() for text in many]
    for start in range(0, len(texts), 30):  # a path has an end
        root = tmp_path / str(start)
        root.mkdir()
        url = other_table(root, [[*texts[start : start + 30]]])
        stock, ours = spark.read.parquet(url), holdfast.read(spark, url, reader="python")
        assert ours.schema.simpleString() == stock.schema.simpleString()
        assert texts_of(ours) == texts_of(stock)


def test_conflicts_of_types_are_settled_as_by_stock_spark(spark: SparkSession, tmp_path: Path) -> None:
    many = [texts for texts, _ in MANY if texts]
    leaves = [[texts[row % len(texts)] for texts in many] for row in range(3)]
    url = other_table(tmp_path, leaves)
    stock, ours = spark.read.parquet(url), holdfast.read(spark, url, reader="python")
    assert ours.schema.simpleString() == stock.schema.simpleString()
    assert texts_of(ours) == texts_of(stock)


def test_a_partition_is_overwritten_whatever_others_have_called_it(spark: SparkSession, tmp_path: Path) -> None:
    url = other_table(tmp_path, [["01"], ["1"], ["2"]])
    rows = spark.sql("select cast(7 as long) as id, 1 as p0")
    holdfast.write(rows, url, mode="overwrite-partitions", partition_by="p0")
    for read in (spark.read.parquet(url), holdfast.read(spark, url, reader="python")):
        assert sorted(tuple(row) for row in read.select("id", "p0").collect()) == [(1, 2), (7, 1)]
