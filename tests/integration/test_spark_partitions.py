"""Compare partition directories with those of stock Spark: same names, same values, same inferred types."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import holdfast
from holdfast.errors import InvalidRequestError
from tests.integration.spark_session import visible
from tests.unit.table.test_partition_values import KNOWN, UNCLEAR

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
    "boolean": ["true", "false"],
    "date": ["'2020-01-01'", "'0001-01-01'", "'1582-10-04'", "'9999-12-31'"],
    "string": ["'.'", "'..'", "'a '", "' a'", "'a/b'", "'%41'", "'é'", "'_x'", "'a\\nb'", "'05'", "'=1'"],
}
SCHEMA = "id int, " + ", ".join(f"p{index} {kind}" for index, kind in enumerate(VALUES))


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
    """Return rows as text."""
    texts = frame.selectExpr("id", *(f"cast(p{index} as string)" for index in range(len(VALUES))))
    return sorted(tuple(None if one is None else str(one) for one in row) for row in texts.collect())


def directories(root: Path) -> set[str]:
    return {path.rpartition("/")[0] for path in visible(root) if "=" in path}


def test_directories_are_those_of_stock_spark(spark: SparkSession, tmp_path: Path) -> None:
    frame = every_value(spark).coalesce(1)
    by = [f"p{index}" for index in range(len(VALUES))]
    frame.write.partitionBy(*by).parquet(str(tmp_path / "theirs"))
    holdfast.write(frame, str(tmp_path / "ours"), partition_by=by)
    assert directories(tmp_path / "ours") == directories(tmp_path / "theirs")
    given = shown(frame)
    assert shown(spark.read.schema(SCHEMA).parquet(str(tmp_path / "ours"))) == given
    assert shown(holdfast.read(spark, str(tmp_path / "ours"), reader="python")) == given
    assert shown(holdfast.read(spark, str(tmp_path / "ours"))) == given


def test_what_stock_spark_reads_as_something_else_names_no_directory(spark: SparkSession, tmp_path: Path) -> None:
    for index, value in enumerate(("1.5D", "timestamp'2020-11-01 06:30:00Z'", "timestamp_ntz'2020-11-01 06:30:00'")):
        url = str(tmp_path / str(index))
        with pytest.raises(InvalidRequestError, match="a directory name cannot hold this type"):
            holdfast.write(spark.sql(f"select 1 as id, {value} as p"), url, partition_by="p")
        assert visible(url) == []


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
        place.mkdir(parents=True, exist_ok=True)
        shutil.copy(seed, place / "part-0.parquet")
    return str(root / "t")


def texts_of(frame: DataFrame) -> list[tuple[str | None, ...]]:
    found = frame.selectExpr(*(f"cast({name} as string)" for name in frame.columns if name != "id")).collect()
    return sorted((tuple(row) for row in found), key=repr)


@pytest.mark.slow
def test_types_and_values_are_inferred_as_by_stock_spark(spark: SparkSession, tmp_path: Path) -> None:
    many = [texts for texts, _ in KNOWN if texts != [None] and texts]
    leaves = [[texts[row % len(texts)] for texts in many] for row in range(2)]
    for start in range(0, len(many), 15):  # a path has an end
        root = tmp_path / str(start)
        root.mkdir()
        url = other_table(root, [leaf[start : start + 15] for leaf in leaves])
        stock, ours = spark.read.parquet(url), holdfast.read(spark, url, reader="python")
        assert ours.schema.simpleString() == stock.schema.simpleString()
        assert texts_of(ours) == texts_of(stock)


def test_what_is_not_inferred_is_no_string_to_stock_spark(spark: SparkSession, tmp_path: Path) -> None:
    """Each of these is refused for a reason: Spark has another type for most of them."""
    for number, texts in enumerate(UNCLEAR[:5]):
        root = tmp_path / str(number)
        root.mkdir()
        url = other_table(root, [[text] for text in texts])
        assert spark.read.parquet(url).schema["p0"].dataType.typeName() != "string"
        with pytest.raises(InvalidRequestError, match="give a schema"):
            holdfast.read(spark, url, reader="python")


def test_a_partition_is_overwritten_whatever_others_have_called_it(spark: SparkSession, tmp_path: Path) -> None:
    url = other_table(tmp_path, [["01"], ["1"], ["2"]])
    rows = spark.sql("select cast(7 as long) as id, 1 as p0")
    holdfast.write(rows, url, mode="overwrite-partitions", partition_by="p0")
    for read in (spark.read.parquet(url), holdfast.read(spark, url, reader="python")):
        assert sorted(tuple(row) for row in read.select("id", "p0").collect()) == [(1, 2), (7, 1)]
