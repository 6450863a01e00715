"""Test CSV: what is written is read, also by other readers, or the write is refused."""

from __future__ import annotations

import io
import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv as pa_csv
import pytest

from holdfast.errors import CorruptDataError, InvalidRequestError
from holdfast.formats import get_format

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


def strings(*names: str) -> pa.Schema:
    return pa.schema([(name, pa.string()) for name in names])


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


@pytest.mark.parametrize("block_bytes", [1, 5, 7, 16, 1000])
@pytest.mark.parametrize("options", DIALECTS, ids=str)
def test_records_do_not_depend_on_where_a_block_ends(
    monkeypatch: pytest.MonkeyPatch, options: dict[str, str], block_bytes: int
) -> None:
    monkeypatch.setattr("holdfast.formats.lines.BLOCK_BYTES", block_bytes)
    values = [("\ufeffa", "b\n"), ('"\n', "\ufeff"), ("a\r\n", "\\"), ("\r", None), ("", '\\"')] * 3
    batch = pa.RecordBatch.from_pylist([{"x": x, "y": y} for x, y in values], strings("x", "y"))
    assert read(write(batch, **options), batch.schema, **options) == batch.to_pylist()


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
        (None, {}, "in one-column CSV null would be a blank line: set the option nullValue"),
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
    for column in (pa.array([1, None, 3]), pa.array(["", None, "a"]), pa.nulls(2)):
        batch = pa.record_batch({"x": column})
        with pytest.raises(InvalidRequestError, match="set the option nullValue"):
            write(batch)
        assert read(write(batch, nullValue="-"), batch.schema, nullValue="-") == batch.to_pylist()


@pytest.mark.parametrize("header", ["true", "false"])
def test_a_value_may_be_large(header: str) -> None:
    """Defect of Python's own reader: no value above 128 KiB."""
    batch = pa.record_batch({"x": pa.array(["a" * 200_000, 'q"'])})
    assert read(write(batch, header=header), batch.schema, header=header) == batch.to_pylist()


def test_columns_are_found_by_the_names_in_the_header() -> None:
    batch = pa.RecordBatch.from_pylist([{"B": "1", "a": "2", 'c"\n': "3"}])
    data = write(batch, header="true")
    schema = strings("a", "b", "missing")
    assert read(data, schema, header="true") == [{"a": "2", "b": "1", "missing": None}]
    assert read(data, strings('c"\n'), header="true") == [{'c"\n': "3"}]
    assert read(write(batch.slice(0, 0), header="true"), schema, header="true") == []


def test_without_a_header_columns_are_found_by_position() -> None:
    """Later columns are those that the table got after the file was written."""
    data = write(pa.RecordBatch.from_pylist([{"a": "1", "b": "2"}]))
    assert read(data, strings("a", "b", "c"), columns=["c", "b"]) == [{"c": None, "b": "2"}]


@pytest.mark.parametrize("data", [b"1,2,3\n", b"1,2\n3\n", b"1,2\n1,2", b'"1,2\n', b"\xe4,1\n"])
def test_what_is_not_as_it_was_written_is_refused(data: bytes) -> None:
    with pytest.raises(CorruptDataError, match="find out what changed it"):
        read(data, strings("a", "b"))


def test_a_text_of_another_type_is_refused() -> None:
    with pytest.raises(CorruptDataError, match=r"not a value of its column's type.*column='b'"):
        read(b"1,x\n", pa.schema([("a", pa.int64()), ("b", pa.int64())]))


@pytest.mark.parametrize(("name", "options"), [("", {}), ("N", {"nullValue": "N"})])
def test_a_header_that_names_nothing_is_not_written(name: str, options: dict[str, str]) -> None:
    batch = pa.record_batch([["x"], ["y"]], names=[name, "b"])
    with pytest.raises(InvalidRequestError, match="a header cannot contain an empty name"):
        write(batch, header="true", **options)
    assert read(write(batch, **options), batch.schema, **options) == batch.to_pylist()


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
