"""Test CSV: files of other writers, other readers, and rejected input."""

from __future__ import annotations

import csv
import io
import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv as pa_csv
import pytest

from holdfast.errors import CorruptDataError, InvalidRequestError
from holdfast.formats import get_format
from holdfast.formats.csv_records import Dialect, read_records

CSV = get_format("csv")
ALPHABET = ["a", '"', "'", "\\", "\n", "\r", " ", ",", ";", "#", "\t", "1", "é", "\u2028", "\ufeff", "|"]
DIALECTS = [
    {},
    {"escape": '"'},
    {"header": "true", "sep": "\t"},
    {"sep": ";", "quote": "'"},
    {"quote": "'", "escape": "'"},
    {"nullValue": "NULL"},
    {"quoteAll": "true"},
    {"quote": "a", "escape": "|", "sep": "1"},
]


class Sink(bytearray):
    def write(self, data: bytes | memoryview, /) -> int:
        self.extend(data)
        return len(data)


def write(batch: pa.RecordBatch, **given: str) -> bytes:
    sink = Sink()
    writer = CSV.open_writer(sink, batch.schema, CSV.parse_options(given).options)
    writer.write(batch)
    writer.close()
    return bytes(sink)


def read(data: bytes | str, schema: pa.Schema, columns: list[str] | None = None, **given: str) -> list[dict[str, Any]]:
    source = io.BytesIO(data.encode() if isinstance(data, str) else data)
    names = schema.names if columns is None else columns
    found = CSV.read_batches(source, schema, names, None, CSV.parse_options(given).options, None)
    return [row for batch in found for row in batch.to_pylist()]


def inferred(data: str, **given: str) -> pa.Schema:
    return CSV.read_schema(io.BytesIO(data.encode()), CSV.parse_options(given).options)


def strings(*names: str) -> pa.Schema:
    return pa.schema([(name, pa.string()) for name in names])


def test_a_time_alone_is_a_text_and_can_be_read() -> None:
    """It is not a timestamp, because Spark would add the day of the read."""
    data = b"v,w,x\n12:00:00,T1:2,2020-01-01 00:00:00\n1:02:03.5Z,12:00,23:59\n"
    options = CSV.parse_options({"header": "true", "timeZone": "UTC"}).options
    schema = CSV.read_schema(io.BytesIO(data), options)
    assert schema == strings("v", "w", "x")
    assert read(data, schema, header="true")[0] == {"v": "12:00:00", "w": "T1:2", "x": "2020-01-01 00:00:00"}


# --- what is written is read ------------------------------------------------------------------------------------------
@pytest.mark.parametrize("options", DIALECTS, ids=str)
def test_any_strings_come_back(options: dict[str, str]) -> None:
    draw = random.Random(str(options))  # the same cases in every run
    for _ in range(100):
        rows = [
            {name: draw.choice([None, "", draw_text(draw), draw_text(draw)]) for name in ("x", "y")} for _ in range(4)
        ]
        batch = pa.RecordBatch.from_pylist(rows, strings("x", "y"))
        assert read(write(batch, **options), batch.schema, **options) == rows


def draw_text(draw: random.Random) -> str:
    return "".join(draw.choices(ALPHABET, k=draw.randint(1, 6)))


@pytest.mark.parametrize("block_bytes", [4, 5, 7, 16, 1000])
def test_only_the_file_begins_with_a_byte_order_mark(monkeypatch: pytest.MonkeyPatch, block_bytes: int) -> None:
    """A later value that starts with that character keeps it, even at the start of a block."""
    monkeypatch.setattr("holdfast.formats.lines.blocks.BLOCK_BYTES", block_bytes)
    values = [("\ufeffa", "b"), ("\ufeff", "\ufeff"), ("a", "\ufeffb")] * 3
    data = "\ufeff" + "".join(f"{x},{y}\n" for x, y in values)
    wanted = [{"x": x, "y": y} for x, y in values]
    assert read(data, strings("x", "y")) == wanted
    header = "\ufeffx,y\n"
    assert read(header + data.removeprefix("\ufeff"), strings("x", "y"), header="true") == wanted


def test_reader_options_read_what_was_written() -> None:
    """These options are given to Spark. Holdfast's own reader interprets them in the same way."""
    for given in DIALECTS:
        options = CSV.parse_options(given).options
        batch = pa.RecordBatch.from_pylist([{"x": "", "y": "b\\"}, {"x": None, "y": "\r"}], strings("x", "y"))
        assert read(write(batch, **given), batch.schema, **CSV.reader_options(options)) == batch.to_pylist()


def test_a_carriage_return_in_the_first_line_does_not_set_the_line_end() -> None:
    """Readers take the line end of the file from the first one, even within quotes."""
    batch = pa.RecordBatch.from_pylist([{"x": "\r", "y": "1"}, {"x": "b", "y": None}], strings("x", "y"))
    assert write(batch) == b'\n"\r",1\nb,\n'
    assert read(write(batch), batch.schema) == batch.to_pylist()


@pytest.mark.parametrize(
    ("value", "options", "sentence"),
    [
        ("NULL", {"nullValue": "NULL"}, "equals nullValue"),
        (None, {}, "in one-column CSV null and the empty string look the same: set the option nullValue"),
        ("\0", {"escape": '"'}, "NUL"),
        ("a", {"sep": '"'}, "sep equals the quote"),
        ("a", {"nullValue": "a,b"}, "nullValue contains a character that needs quotes"),
    ],
)
def test_values_that_would_be_read_as_something_else_are_refused(
    value: str | None, options: dict[str, str], sentence: str
) -> None:
    batch = pa.RecordBatch.from_pylist([{"x": value}], strings("x"))
    with pytest.raises(InvalidRequestError, match=sentence):
        write(batch, **options)


def test_null_in_the_only_column() -> None:
    """No reader treats a blank line as a record."""
    batch = pa.record_batch({"x": pa.array([1, None, 3])})
    assert write(batch) == b'1\n""\n3\n'
    assert read(write(batch), batch.schema) == batch.to_pylist()
    texts = pa.record_batch({"x": pa.array(["", None, "a"])})
    assert read(write(texts, nullValue="-"), texts.schema, nullValue="-") == texts.to_pylist()
    voids = pa.record_batch({"x": pa.nulls(2)})
    with pytest.raises(InvalidRequestError, match="null and the empty string look the same"):
        write(voids)  # the column may become a string column
    assert read(write(voids, nullValue="-"), strings("x"), nullValue="-") == voids.to_pylist()


def test_other_readers(tmp_path: Path) -> None:
    """Uses the options that docs/reference/formats.md lists for these readers."""
    duckdb, pandas, polars = pytest.importorskip("duckdb"), pytest.importorskip("pandas"), pytest.importorskip("polars")
    texts = ["plain", "", None, 'q"q', "b\\s", "end\\", '\\"', "a,b", "line\nfeed", "x\r", " pad ", "#c", "é🎈", "null"]
    batch = pa.record_batch({"x": pa.array(texts), "y": pa.array(range(len(texts)))})
    path = tmp_path / "part-0.csv"
    path.write_bytes(write(batch, header="true", escape='"'))
    by_pyarrow = pa_csv.read_csv(
        path,
        parse_options=pa_csv.ParseOptions(newlines_in_values=True),
        convert_options=pa_csv.ConvertOptions(
            null_values=[""], strings_can_be_null=True, quoted_strings_can_be_null=False
        ),
    )
    assert by_pyarrow["x"].to_pylist() == texts
    columns = "{'x': 'VARCHAR', 'y': 'BIGINT'}"
    by_duckdb = duckdb.sql(
        f"select x from read_csv('{path}', header=true, escape='\"', allow_quoted_nulls=false, columns={columns})"
    )
    assert [row[0] for row in by_duckdb.fetchall()] == texts
    assert polars.read_csv(path)["x"].to_list() == texts
    by_pandas = pandas.read_csv(
        path, keep_default_na=False
    )  # pandas does not distinguish an absent value from an empty string
    assert list(by_pandas["x"]) == [text or "" for text in texts]


# --- files of other writers -------------------------------------------------------------------------------------------
def test_what_python_writes_is_read_with_doubled_quotes() -> None:
    rows = [['say "hi"', "c:\\temp\\new"], ["a\nb", ""], ["", "x,y"]]
    text = io.StringIO()
    csv.writer(text).writerows(rows)
    found = read(text.getvalue(), strings("a", "b"), escape='"')
    assert [[value or "" for value in row.values()] for row in found] == rows


@pytest.mark.parametrize(
    ("data", "options"),
    [
        ('"say ""hi""",1\n', {}),
        ('a,b\n"say ""hi""",1\n', {"header": "true"}),
        ('1,"a"b\n', {}),
        ('1,"a" \n', {}),
        ('1,"a"b\n', {"escape": '"'}),
        ('1,"a\n2,3\n', {}),
        ('1,"a""\n2,3\n', {"escape": '"'}),
    ],
)
@pytest.mark.parametrize("block_bytes", [4, 1000])
def test_quotes_that_only_univocity_understands_are_refused(
    monkeypatch: pytest.MonkeyPatch, data: str, options: dict[str, str], block_bytes: int
) -> None:
    monkeypatch.setattr("holdfast.formats.lines.blocks.BLOCK_BYTES", block_bytes)
    with pytest.raises(CorruptDataError, match=r"a quote in a CSV file is neither escaped .*with spark.read"):
        read(data, strings("a", "b"), **options)


def test_a_backslash_is_nothing_special_outside_of_quotes() -> None:
    data = 'c:\\temp\\new,"c:\\temp\\new"\nends in \\,"ends in \\\\"\n'
    assert read(data, strings("a", "b")) == [
        {"a": "c:\\temp\\new", "b": "c:\\temp\\new"},
        {"a": "ends in \\", "b": "ends in \\"},
    ]


def test_records_with_fewer_values_end_in_nulls() -> None:
    assert read("1,2\n3\n\n4,,\n", strings("a", "b")) == [
        {"a": "1", "b": "2"},
        {"a": "3", "b": None},
        {"a": "4", "b": None},
    ]


@pytest.mark.parametrize("record", ["1,2,3", "1,2,3,", "1,2,,4"])
def test_records_with_more_values_are_refused(record: str) -> None:
    """Spark drops the surplus values."""
    with pytest.raises(CorruptDataError, match=rf"more values than columns.*record='{record}'"):
        read(f"a,b\n{record}\n", strings("a", "b"))


@pytest.mark.parametrize("data", ["a,b\n1,x\r\n2,y\n", "a,b\r\nc,d\ne,f\r\n", "a,b\rc,d\ne,f\r"])
def test_mixed_line_ends_are_refused(data: str) -> None:
    with pytest.raises(CorruptDataError, match="mixes line ends"):
        read(data, strings("a", "b"))


def test_line_ends_within_quotes_become_line_feeds() -> None:
    found = read('a,b\r\nc,"b\nc"\r\nd,"\r\n"\r\n', strings("a", "b"))
    assert [row["b"] for row in found] == ["b", "b\nc", "\n"]


def test_columns_are_found_by_the_names_in_the_header() -> None:
    """Spark matches by position, which puts values into the wrong columns."""
    data = "B,a,extra\n1,2,3\n"
    schema = strings("a", "b", "missing")
    assert read(data, schema, header="true") == [{"a": "2", "b": "1", "missing": None}]
    with pytest.raises(InvalidRequestError, match="none of the schema's column names"):
        read(data, strings("x", "y", "z"), header="true")


@pytest.mark.parametrize(("name", "options"), [("", {}), ("N", {"nullValue": "N"})])
def test_a_header_that_names_nothing_is_not_written(name: str, options: dict[str, str]) -> None:
    batch = pa.record_batch([["x"], ["y"]], names=[name, "b"])
    with pytest.raises(InvalidRequestError, match="a header cannot contain an empty name"):
        write(batch, header="true", **options)
    assert read(write(batch, **options), batch.schema, **options) == batch.to_pylist()


def test_names_in_the_header_are_those_of_a_schema_or_those_that_were_inferred() -> None:
    """Spark numbers repeated and missing names."""
    data = "N,a,A,,c\n1,2,3,4,5\n"
    options = {"header": "true", "nullValue": "N"}
    names = inferred(data, **options).names
    assert names == ["_c0", "a1", "A2", "_c3", "c"]
    assert list(read(data, strings(*names), **options)[0].values()) == ["1", "2", "3", "4", "5"]
    assert read(data, strings("n", "A", "a", "C"), **options) == [{"n": "1", "A": "3", "a": "2", "C": "5"}]
    with pytest.raises(InvalidRequestError, match=r"a column twice.*column='b'"):
        read("b,b,c\n1,2,3\n", strings("b", "c"), header="true")


@pytest.mark.parametrize("name", ["a1", "A1"])
def test_a_name_that_is_that_of_a_numbered_column_is_refused(name: str) -> None:
    with pytest.raises(InvalidRequestError, match="equals the generated name of another column"):
        inferred(f"a,a,{name}\n1,2,3\n", header="true")


@pytest.mark.parametrize("number", [2**31 - 1, 2**31, -(2**31), -(2**31) - 1, 2**63 - 1, -(2**63)])
def test_whole_numbers_that_32_bits_hold_are_integers(number: int) -> None:
    kind = pa.int32() if -(2**31) <= number < 2**31 else pa.int64()
    assert inferred(f"{number},x\n0,x\n").field("_c0").type == kind


@pytest.mark.parametrize("block_bytes", [4, 1000])
def test_values_that_are_missing_further_on_change_no_type(monkeypatch: pytest.MonkeyPatch, block_bytes: int) -> None:
    monkeypatch.setattr("holdfast.formats.lines.blocks.BLOCK_BYTES", block_bytes)
    schema = inferred("1,0.5,x\n,,y\n,,z\n" * 2 + ",,\n" * 3)
    assert schema.types == [pa.int32(), pa.float64(), pa.string()]


@pytest.mark.parametrize("block_bytes", [8, 4096])
def test_whole_numbers_behind_a_decimal_are_decimals_wherever_a_block_ends(
    monkeypatch: pytest.MonkeyPatch, block_bytes: int
) -> None:
    monkeypatch.setattr("holdfast.formats.lines.blocks.BLOCK_BYTES", block_bytes)
    assert inferred("9999999999999999999\n" + "3000000000\n7\n0\n" * 3).types == [pa.decimal128(19, 0)]
    assert inferred("5.\n" + "3000000000\n0\n" * 3).types == [pa.decimal128(10, 0)]


def test_only_the_file_s_own_byte_order_mark_is_dropped() -> None:
    assert read("\ufeffa,b\n\ufeffx,y\n", strings("a", "b"), header="true") == [{"a": "\ufeffx", "b": "y"}]
    assert read("\ufeff\ufeffx,y\n", strings("a", "b")) == [{"a": "\ufeffx", "b": "y"}]


def test_without_a_header_columns_are_found_by_position() -> None:
    assert read("1,2,3\n", strings("a", "b", "c"), columns=["c", "a"]) == [{"c": "3", "a": "1"}]


def test_an_instant_without_a_zone_needs_one() -> None:
    schema = pa.schema([("a", pa.timestamp("us", "UTC"))])
    with pytest.raises(InvalidRequestError, match="set the option timeZone"):
        read("2020-01-01 00:00:00\n", schema)
    assert (
        read("2020-01-01 00:00:00\n", schema, timeZone="Asia/Tokyo")[0]["a"].isoformat() == "2019-12-31T15:00:00+00:00"
    )


@pytest.mark.parametrize(
    ("text", "zone", "instant"),
    [  # the offsets of java.time
        ("2036-07-01 00:00:00", "America/Los_Angeles", 2_098_508_400),
        ("2037-07-01 00:00:00", "America/Los_Angeles", 2_130_044_400),
        ("2050-07-01 00:00:00", "America/Los_Angeles", 2_540_271_600),
        ("2100-07-01 12:00:00", "Europe/Berlin", 4_118_119_200),
        ("9999-07-01 00:00:00", "America/Los_Angeles", 253_386_428_400),
    ],
)
def test_summer_time_goes_on_in_late_years(text: str, zone: str, instant: int) -> None:
    schema = pa.schema([("x", pa.timestamp("us", "UTC"))])
    (row,) = read(f"{text}\n", schema, timezone=zone)
    assert row["x"].timestamp() == instant


@pytest.mark.parametrize("data", ["", "\n\n", "a,b\n", "\ufeffa,b\n\n"])
def test_files_without_rows(data: str) -> None:
    assert read(data, strings("a", "b"), header="true") == []


# --- the records ------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("options", [('"', "\\"), ('"', '"'), ("a", "1")], ids=str)
def test_both_ways_to_take_a_text_apart_agree(options: tuple[str, str]) -> None:
    """The fast parser, through pyarrow, and the one for records of different lengths."""
    draw = random.Random(str(options))  # the same cases in every run
    dialect = Dialect(",", *options)
    schema = strings(*"abcdefgh")
    compared = 0
    for _ in range(1000):
        text = "".join(draw.choices('a,"\\\n 1', k=draw.randint(5, 30)))
        try:
            records, used = dialect.take(text.encode(), final=True)
        except CorruptDataError:
            continue
        assert used == len(text)
        rows = [row for row, _ in dialect.rows(records)]
        if max((len(row) for row in rows), default=0) <= len(schema):
            found = read(text, schema, quote=options[0], escape=options[1], lineSep="\n")
            assert [list(row.values()) for row in found] == [[*row, *[None] * (8 - len(row))] for row in rows], text
            compared += 1
    assert compared > 200


def test_a_run_of_records_is_as_long_as_a_chunk() -> None:
    """Values with line ends, separators and escapes do not cut it."""
    data = b'1,plain,"with, separator","two\nlines",c:\\path,5" pipe\n2,"say \\"hi\\"","ends in \\\\"\n' * 500
    (records,) = read_records(io.BytesIO(data), "", lambda end: Dialect(",", '"', "\\", end))
    assert records.doubled and records.data.count(b'"say ""hi"""') == 500
