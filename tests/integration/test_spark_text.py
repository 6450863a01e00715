"""Exchange CSV, JSON and text with stock Spark, and check the recorded answers that the unit tests rely on."""

from __future__ import annotations

import contextlib
import io
import json
import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import holdfast
from holdfast.errors import CorruptDataError
from holdfast.formats import get_format

pytest.importorskip("pyspark.sql")

from tests.integration.spark_answers import ANSWERS, WIDTH, answer, csv_rows, written
from tests.integration.test_spark_formats import write

pytestmark = [
    pytest.mark.spark,
    # PySpark's own imports warn about pandas and deprecated modules; the subject here is the files.
    pytest.mark.filterwarnings("ignore"),
]

CSV = get_format("csv")
NO_VALUE = CSV.reader_options(CSV.default_options)["nullValue"]
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


@pytest.mark.slow
def test_the_answers_are_those_of_spark(spark: Any) -> None:
    questions = json.loads(ANSWERS.read_text())
    assert written(answer(spark, json.loads(ANSWERS.read_text()))) == written(questions)


@pytest.mark.slow
@pytest.mark.parametrize("options", [{}, {"escape": '"'}, {"quote": "a", "escape": "1"}, {"lineSep": "\n"}], ids=str)
def test_any_text_gives_the_records_of_spark(spark: Any, options: dict[str, str]) -> None:
    """One job reads thousands of short files."""
    draw = random.Random(str(options))  # the same cases in every run
    alphabets = ['a,"\\\n\r #1', 'a,"\\\n', ["a", '"', ",", "\n", "\r\n", "\\"], 'a,"\n ']
    texts = ["".join(draw.choices(draw.choice(alphabets), k=draw.randint(5, 14))) for _ in range(2000)]
    # univocity inspects a file of up to four characters twice, and loses its line ends.
    texts = [text for text in texts if len(text) > 4 and text.count(",") < WIDTH]
    reading = {"nullValue": NO_VALUE, **options}
    schema = pa.schema([(f"c{index}", pa.string()) for index in range(WIDTH)])
    parsed = CSV.parse_options(options).options
    compared = 0
    for text, rows in zip(texts, csv_rows(spark, texts, reading), strict=True):
        batches = CSV.read_batches(io.BytesIO(text.encode()), schema, schema.names, None, parsed, None)
        with contextlib.suppress(CorruptDataError):  # lines that end in different ways
            assert [list(row.values()) for batch in batches for row in batch.to_pylist()] == rows, text
            compared += 1
    assert compared > len(texts) * 0.75


def test_columns_of_csv_without_a_header_are_counted_in_the_whole_record(spark: Any, tmp_path: Path) -> None:
    """This also holds if only some columns are selected."""
    frame = spark.createDataFrame([(1, "x", None), (2, None, 2.5)], "a int, b string, c double").coalesce(1)
    holdfast.write(frame, str(tmp_path / "ours"), file_format="csv")
    found = holdfast.read(spark, str(tmp_path / "ours"), columns=["c", "b"])
    assert sorted(found.collect(), key=str) == [(2.5, None), (None, "x")]
    frame.write.csv(str(tmp_path / "stock"))
    stock = holdfast.read(spark, str(tmp_path / "stock"), columns=["_c1"])
    assert {row._c1 for row in stock.collect()} == {"x", None}


def test_a_timestamp_without_a_zone_is_local_to_the_session(spark: Any, tmp_path: Path) -> None:
    (tmp_path / "part-0.csv").write_text("2020-07-01 00:00:00\n2020-07-01T00:00:00Z\n")
    (tmp_path / "part-1.csv").write_text("2020-7-1 1:00\n")
    found = holdfast.read(spark, str(tmp_path))
    stock = spark.read.csv(str(tmp_path), inferSchema=True)
    assert found.schema == stock.schema
    text = "cast(_c0 as string)"
    assert sorted(found.selectExpr(text).collect()) == sorted(stock.selectExpr(text).collect())


JSON_FILES = [
    ['{"a":1,"n":{"x":1},"l":[1],"k":null,"d":1,"s":1}', '{"s":"text"}'],
    ['{"a":1.5,"n":{"y":"t"},"l":[null,"x"],"k":null,"d":12345678901234567890,"e":""}', '{"a":null,"l":[]}'],
    ['{"b":true,"n":null,"l":null,"m":[{"p":1}]}', '{"m":[{"q":[1.5]},{"p":"t"}],"n":{"x":2.5}}', "{}"],
]


def test_json_is_inferred_from_all_files_as_spark_does(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The last line of each file counts, for any block size."""
    for number, lines in enumerate(JSON_FILES):
        (tmp_path / f"{number}.json").write_text("\n".join(lines))
    monkeypatch.setattr("holdfast.formats.lines.blocks.BLOCK_BYTES", 16)
    stock = spark.read.json(str(tmp_path))
    for reader in ("auto", "python"):
        found = holdfast.read(spark, str(tmp_path), reader=reader)
        assert found.schema == stock.schema
        assert sorted(found.collect(), key=repr) == sorted(stock.collect(), key=repr)


CSV_FILES = [
    ["1,2,x,2020-01-01,,1", "2,3,y,2020-01-02,,2147483648", "3,9,,2020-01-03,,"],
    ["4,2.5,1,2020-01-01 00:00:00,,99999999999999999999", "x,1e3,,,,1"],
    [",,,,,", "5,1,2,,,true"],
]


@pytest.mark.parametrize("header", ["", "a,b,c,d,e,f\n"])
def test_csv_is_inferred_from_all_files_as_spark_does(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, header: str
) -> None:
    for number, lines in enumerate(CSV_FILES):
        (tmp_path / f"{number}.csv").write_text(header + "\n".join(lines))
    monkeypatch.setattr("holdfast.formats.lines.blocks.BLOCK_BYTES", 16)
    stock = spark.read.options(header=str(bool(header)), inferSchema="true", multiLine="true").csv(str(tmp_path))
    found = holdfast.read(spark, str(tmp_path), file_format="csv", header=bool(header))
    assert found.schema == stock.schema
    assert sorted(found.collect(), key=repr) == sorted(stock.collect(), key=repr)


def test_columns_of_any_csv_header_are_there(spark: Any, tmp_path: Path) -> None:
    """Spark uses the first header and drops further columns of other files."""
    (tmp_path / "0.csv").write_text("a\n1\n")
    (tmp_path / "1.csv").write_text("B,a\nx,2\n")
    found = holdfast.read(spark, str(tmp_path), header=True)
    assert found.schema.simpleString() == "struct<a:int,B:string>"
    assert sorted(found.collect()) == [(1, None), (2, "x")]
    (tmp_path / "0.csv").write_text("1\n")
    wider = holdfast.read(spark, str(tmp_path))
    with pytest.raises(Exception, match="more values than columns"):
        wider.collect()


@pytest.mark.slow
def test_a_header_that_stands_for_null_loses_no_column(spark: Any, tmp_path: Path) -> None:
    for number, (name, options) in enumerate([("N", {"null_value": "N"}), ("", {})]):
        frame = spark.sql(f"select 'x' as `{name or 'N'}`, 1 as b").toDF(name, "b")
        url = str(tmp_path / str(number))
        with pytest.raises(Exception, match="a header cannot contain an empty name"):
            holdfast.write(frame, url, file_format="csv", header=True, **options)
        holdfast.write(frame, url, file_format="csv", **options)
        assert holdfast.read(spark, url).collect() == [("x", 1)]
