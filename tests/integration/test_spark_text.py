"""Exchange CSV with stock Spark."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import holdfast
from holdfast.errors import InvalidRequestError
from holdfast.formats import get_format

pytest.importorskip("pyspark.sql")

from tests.integration.test_spark_formats import write

pytestmark = [
    pytest.mark.spark,
    # PySpark's own imports warn about pandas and deprecated modules; the subject here is the files.
    pytest.mark.filterwarnings("ignore"),
]

CSV = get_format("csv")
TEXTS = [
    "plain",
    "",
    None,
    'q"q',
    "b\\s",
    "end\\",
    '\\"',
    "\\\\",
    "a,b",
    " pad ",
    "line\nfeed",
    "x\r",
    "#c",
    "'",
    "é🎈",
]


@pytest.mark.parametrize(
    "options",
    [{}, {"header": "true", "sep": "\t"}, {"escape": '"', "nullValue": "-"}, {"quote": "'", "sep": ";"}],
    ids=str,
)
def test_spark_reads_csv_with_the_reader_options(spark: Any, tmp_path: Path, options: dict[str, str]) -> None:
    """Empty strings differ from nulls, and line ends need no option, whichever value comes first."""
    expected: dict[int, str | None] = {}
    paths = []
    for number, first in enumerate(TEXTS):
        values = dict(enumerate([first, *TEXTS], number * 100))
        batch = pa.record_batch({"s": pa.array(list(values.values()), pa.string()), "i": pa.array(list(values))})
        directory = tmp_path / str(number)
        directory.mkdir()
        paths.append(write(directory, "csv", batch, options))
        expected |= values
    reading = CSV.reader_options(CSV.parse_options(options).options)
    found = spark.read.schema("s string, i int").options(multiLine="true", **reading).csv(paths).collect()
    assert {row.i: row.s for row in found} == expected
    assert len(found) == len(expected)


def test_columns_of_csv_without_a_header_are_counted_in_the_whole_record(spark: Any, tmp_path: Path) -> None:
    """This also holds if only some columns are selected."""
    frame = spark.createDataFrame([(1, "x", None), (2, None, 2.5)], "a int, b string, c double").coalesce(1)
    holdfast.write(frame, str(tmp_path / "ours"), file_format="csv")
    found = holdfast.read(spark, str(tmp_path / "ours"), columns=["c", "b"])
    assert sorted(found.collect(), key=str) == [(2.5, None), (None, "x")]
    frame.write.csv(str(tmp_path / "stock"))
    with pytest.raises(InvalidRequestError, match="csv files that no log describes are read by Spark only"):
        holdfast.read(spark, str(tmp_path / "stock"))


@pytest.mark.slow
def test_a_header_that_stands_for_null_loses_no_column(spark: Any, tmp_path: Path) -> None:
    for number, (name, options) in enumerate([("N", {"null_value": "N"}), ("", {})]):
        frame = spark.sql(f"select 'x' as `{name or 'N'}`, 1 as b").toDF(name, "b")
        url = str(tmp_path / str(number))
        with pytest.raises(Exception, match="a header cannot contain an empty name"):
            holdfast.write(frame, url, file_format="csv", header=True, **options)
        holdfast.write(frame, url, file_format="csv", **options)
        assert holdfast.read(spark, url).collect() == [("x", 1)]
