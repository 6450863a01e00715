"""Test that each format reads back what it writes: every supported type, with nulls, extremes and unusual text."""

from __future__ import annotations

import datetime
import io
import math
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from holdfast.errors import CorruptDataError, InvalidRequestError
from holdfast.formats import FORMATS, FileFormat, RowFilter, get_format

UTC = datetime.timezone.utc
ODD_TEXTS = [
    "plain",
    "",
    None,
    'quo"te',
    "back\\slash",
    "ends in \\",
    '\\"',
    "a,b;c\td",
    "line\nfeed",
    "return\r",
    " blanks ",
    "#not a comment",
    "null",
    "NUL\0 and \x01\x7f",
    "é ß 漢字 🎈",
    "\u2028 and \u0085",
]


class Sink:
    """A sink that collects the bytes that a writer sends."""

    def __init__(self) -> None:
        self.data = bytearray()

    def write(self, data: bytes | memoryview, /) -> int:
        self.data += data
        return len(data)


def write(file_format: FileFormat[Any], batches: list[pa.RecordBatch], schema: pa.Schema, options: Any = None) -> bytes:
    sink = Sink()
    options = options or file_format.default_options
    file_format.check_schema(schema)
    writer = file_format.open_writer(sink, schema, options)
    for batch in batches:
        writer.write(batch)
    writer.close()
    return bytes(sink.data)


def read(
    file_format: FileFormat[Any],
    data: bytes,
    schema: pa.Schema,
    columns: list[str] | None = None,
    row_filter: RowFilter | None = None,
    options: Any = None,
) -> pa.Table:
    options = options or file_format.default_options
    names = schema.names if columns is None else columns
    source = io.BytesIO(data)
    batches = list(file_format.read_batches(source, schema, names, row_filter, options, None))
    assert not source.closed
    return pa.Table.from_batches(batches, pa.schema([schema.field(name) for name in names]))


def scalars(rows: int = len(ODD_TEXTS)) -> pa.RecordBatch:
    """Return a batch of the flat types that every format but text supports."""

    def cycle(values: list[Any], kind: pa.DataType) -> Any:
        return pa.array([values[i % len(values)] for i in range(rows)], kind)

    instant = datetime.datetime(2026, 1, 2, 3, 4, 5, 6, UTC)
    old = datetime.datetime(1, 1, 1, tzinfo=UTC)
    return pa.record_batch(
        {
            "text": cycle(ODD_TEXTS, pa.string()),
            "flag": cycle([True, False, None], pa.bool_()),
            "tiny": cycle([-128, 127, None], pa.int8()),
            "small": cycle([-(2**15), 2**15 - 1, None], pa.int16()),
            "number": cycle([-(2**31), 2**31 - 1, None], pa.int32()),
            "big": cycle([-(2**63), 2**63 - 1, 2**53 + 1, None], pa.int64()),
            "single": cycle([0.1, -0.0, None, float("inf"), 3.4e38], pa.float32()),
            "double": cycle([0.1, -0.0, None, float("inf"), -float("inf"), 1e-300, 1e300, 5e-324], pa.float64()),
            "price": cycle(
                [Decimal("12345678901234567890.123456789012345678"), Decimal("-1E-18"), None], pa.decimal128(38, 18)
            ),
            "money": cycle([Decimal("0.01"), None, Decimal("-99999.99")], pa.decimal128(7, 2)),
            "day": cycle(
                [datetime.date(2026, 1, 2), datetime.date(1, 1, 1), datetime.date(9999, 12, 31), None], pa.date32()
            ),
            "instant": cycle([instant, None, old], pa.timestamp("us", "UTC")),
            "local": cycle([instant.replace(tzinfo=None), None, old.replace(tzinfo=None)], pa.timestamp("us")),
        }
    )


def nested() -> pa.RecordBatch:
    """Return a batch of nested lists, maps and structs, with nulls on every level."""
    point = pa.struct([("x", pa.int64()), ("names", pa.list_(pa.string()))])
    return pa.record_batch(
        {
            "id": pa.array([1, 2, 3, 4], pa.int64()),
            "list": pa.array([[1, None, 3], [], None, [4]], pa.list_(pa.int32())),
            "lists": pa.array([[["a"], None, []], None, [], [['"', None]]], pa.list_(pa.list_(pa.string()))),
            "map": pa.array([[("k", 1), ('"\\', None)], [], None, [("z", 3)]], pa.map_(pa.string(), pa.int64())),
            "struct": pa.array(
                [{"x": 1, "names": ["n", None]}, {"x": None, "names": None}, None, {"x": 2, "names": []}], point
            ),
            "points": pa.array(
                [[{"x": 1, "names": ["q"]}, None], None, [], [{"x": 5, "names": None}]], pa.list_(point)
            ),
            "by_name": pa.array(
                [[("p", {"x": 1, "names": ["r"]})], None, [], [("q", None)]], pa.map_(pa.string(), point)
            ),
        }
    )


FLAT = ["parquet", "orc", "avro", "arrow", "json", "csv"]
NESTED = ["parquet", "orc", "avro", "arrow", "json"]


@pytest.mark.parametrize("name", FLAT)
def test_flat_types_round_trip(name: str) -> None:
    batch = scalars()
    if name == "orc":  # dates before 1582 and instants before 1900 are rejected: test_orc.py
        batch = batch.drop_columns(["instant", "day"])
    data = write(get_format(name), [batch, batch.slice(3, 5), batch.slice(0, 0)], batch.schema)
    expected = pa.Table.from_batches([batch, batch.slice(3, 5)])
    result = read(get_format(name), data, batch.schema)
    assert result.to_pylist() == expected.to_pylist()


@pytest.mark.parametrize("name", FLAT)
def test_the_sign_of_zero_and_nan_survive(name: str) -> None:
    """facts: A-92."""
    batch = pa.record_batch({"id": pa.array(range(4)), "x": pa.array([-0.0, math.nan, 0.0, None])})
    values = read(get_format(name), write(get_format(name), [batch], batch.schema), batch.schema)["x"].to_pylist()
    assert math.copysign(1, values[0]) == -1
    assert math.isnan(values[1])
    assert math.copysign(1, values[2]) == 1
    assert values[3] is None


@pytest.mark.parametrize("name", NESTED)
def test_nested_types_round_trip(name: str) -> None:
    batch = nested()
    data = write(get_format(name), [batch, batch.slice(1, 2), batch.slice(3)], batch.schema)
    expected = pa.Table.from_batches([batch, batch.slice(1, 2), batch.slice(3)])
    assert read(get_format(name), data, batch.schema).to_pylist() == expected.to_pylist()


@pytest.mark.parametrize("name", ["parquet", "avro", "arrow", "json"])
def test_binary_and_null_columns_round_trip(name: str) -> None:
    batch = pa.record_batch(
        {"id": pa.array([1, 2, 3]), "b": pa.array([b"\0\xff", b"", None], pa.binary()), "n": pa.nulls(3)}
    )
    data = write(get_format(name), [batch], batch.schema)
    assert read(get_format(name), data, batch.schema).to_pylist() == batch.to_pylist()


@pytest.mark.parametrize("name", ["parquet", "orc", "arrow"])
def test_durations_round_trip(name: str) -> None:
    batch = pa.record_batch({"d": pa.array([datetime.timedelta(days=-1, microseconds=1), None], pa.duration("us"))})
    data = write(get_format(name), [batch], batch.schema)
    assert read(get_format(name), data, batch.schema).to_pylist() == batch.to_pylist()


@pytest.mark.parametrize("name", FLAT)
def test_dictionary_encoded_input_is_written_plain(name: str) -> None:
    values = pa.array(["a", None, "b", "a"]).dictionary_encode()
    batch = pa.record_batch({"k": values, "n": pa.array([1, 2, 3, 4])})
    data = write(get_format(name), [batch], batch.schema)
    plain = pa.schema([("k", pa.string()), ("n", pa.int64())])
    assert read(get_format(name), data, plain)["k"].to_pylist() == ["a", None, "b", "a"]
    if get_format(name).tells_types:
        found = get_format(name).read_schema(io.BytesIO(data), get_format(name).default_options)
        assert found.field(0).type == pa.string()


@pytest.mark.parametrize("name", ["parquet", "orc", "avro", "arrow"])
def test_a_file_without_rows_carries_its_schema(name: str) -> None:
    schema = nested().schema
    data = write(get_format(name), [], schema)
    found = get_format(name).read_schema(io.BytesIO(data), get_format(name).default_options)
    assert found.names == schema.names
    assert found.field("struct").type.get_field_index("names") == 1
    assert read(get_format(name), data, schema).num_rows == 0


@pytest.mark.parametrize("name", FLAT)
def test_columns_filter_missing_and_widened(name: str) -> None:
    """A reader's schema may have more columns and wider types than the file, in another order."""
    batch = pa.record_batch({"a": pa.array([1, 2, 3], pa.int32()), "b": pa.array(["x", "y", None])})
    with_header = {"header": "true"} if name == "csv" else {}
    options = get_format(name).parse_options(with_header).options
    data = write(get_format(name), [batch], batch.schema, options)
    schema = pa.schema([("new", pa.string()), ("b", pa.string()), ("A", pa.int64())])
    number = schema.names[2]
    row_filter = RowFilter(pc.field(number) >= 2, frozenset({number}))
    result = read(get_format(name), data, schema, ["b", "new"], row_filter, options)
    assert result.to_pylist() == [{"b": "y", "new": None}, {"b": None, "new": None}]


@pytest.mark.parametrize("name", FLAT)
def test_no_columns_still_count_rows(name: str) -> None:
    batch = pa.record_batch({"a": pa.array([1, 2, 3], pa.int32())})
    file_format = get_format(name)
    data = write(file_format, [batch], batch.schema)
    found = file_format.read_batches(io.BytesIO(data), batch.schema, [], None, file_format.default_options, None)
    assert sum(one.num_rows for one in found) == 3


@pytest.mark.parametrize("name", ["parquet", "orc", "avro", "arrow"])
def test_a_file_of_another_format_is_named_corrupt(name: str) -> None:
    with pytest.raises(CorruptDataError, match=r"not an? "):
        get_format(name).read_schema(
            io.BytesIO(b"something else entirely, long enough to be looked at"), get_format(name).default_options
        )


def test_text_is_one_line_per_row() -> None:
    batch = pa.record_batch({"value": pa.array(["é 🎈", "", "\u2028"])})
    data = write(get_format("text"), [batch], batch.schema)
    assert data == "é 🎈\n\n\u2028\n".encode()
    assert read(get_format("text"), data, batch.schema)["value"].to_pylist() == ["é 🎈", "", "\u2028"]


@pytest.mark.parametrize(
    ("value", "sentence"),
    [(None, "text files cannot store null"), ("a\nb", "line end"), ("a\r", "line end"), ("\ufeffa", "byte order mark")],
)
def test_text_that_would_be_read_as_something_else_is_refused(value: str | None, sentence: str) -> None:
    batch = pa.record_batch({"value": pa.array(["a", value])})
    with pytest.raises(InvalidRequestError, match=sentence):
        write(get_format("text"), [batch], batch.schema)


@pytest.mark.parametrize(
    ("data", "lines"),
    [
        (b"\xef\xbb\xbfa\rb\r\nc\n\nd", ["a", "b", "c", "", "d"]),
        (b"a\n\xef\xbb\xbfb\n", ["a", "\ufeffb"]),
        (b"a\r", ["a"]),
        (b"a\r\r\nb", ["a", "", "b"]),
        (b"a\0b\n", ["a\0b"]),
        (b"\n", [""]),
        (b"\xef\xbb\xbf\n", [""]),
        (b"\xef\xbb\xbf", []),
        (b"", []),
    ],
)
def test_lines_of_others_are_those_of_spark(data: bytes, lines: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    schema = pa.schema([("value", pa.string())])
    assert read(get_format("text"), data, schema)["value"].to_pylist() == lines
    monkeypatch.setattr("holdfast.formats.lines.BLOCK_BYTES", 4)
    assert read(get_format("text"), data, schema)["value"].to_pylist() == lines


@pytest.mark.parametrize("name", ["json", "text"])
def test_what_is_not_utf8_is_refused(name: str) -> None:
    """Spark silently replaces invalid bytes, or makes the whole row null."""
    data = b'{"value": "\xe4"}\n' if name == "json" else b"\xe4\n"
    with pytest.raises(CorruptDataError, match="not UTF-8: convert it"):
        read(get_format(name), data, pa.schema([("value", pa.string())]))


@pytest.mark.parametrize("name", ["csv", "json", "text"])
@pytest.mark.parametrize(("codec", "extension"), [("gzip", ".gz"), ("bzip2", ".bz2"), ("zstd", ".zst"), ("none", "")])
def test_text_formats_compress_as_a_whole(name: str, codec: str, extension: str) -> None:
    file_format = get_format(name)
    options = file_format.parse_options({"Compression": codec}).options
    batch = pa.record_batch({"value": pa.array([f"row {i}" for i in range(2000)])})
    data = write(file_format, [batch, batch], batch.schema, options)
    assert file_format.extension(options).endswith(extension or name.replace("text", "txt"))
    assert read(file_format, data, batch.schema, options=options).num_rows == 4000
    if codec != "none":
        assert len(data) < 20_000
        with pytest.raises(CorruptDataError):
            read(file_format, b"not compressed at all", batch.schema, options=options)


@pytest.mark.parametrize(
    ("name", "codec"),
    [
        *(("parquet", codec) for codec in ("none", "uncompressed", "snappy", "gzip", "zstd", "lz4", "lz4_raw")),
        *(("orc", codec) for codec in ("none", "snappy", "zlib", "zstd")),
        *(("avro", codec) for codec in ("none", "deflate", "bzip2", "xz")),
        *(("arrow", codec) for codec in ("none", "lz4", "zstd")),
    ],
)
def test_codecs(name: str, codec: str) -> None:
    file_format = get_format(name)
    options = file_format.parse_options({"compression": codec}).options
    batch = pa.record_batch({"value": pa.array(["same"] * 1000)})
    data = write(file_format, [batch], batch.schema, options)
    assert read(file_format, data, batch.schema).num_rows == 1000


def test_a_value_that_would_lose_digits_is_refused() -> None:
    batch = pa.record_batch({"t": pa.array([1], pa.timestamp("ns"))})
    with pytest.raises(InvalidRequestError, match="does not fit"):
        write(get_format("parquet"), [batch], batch.schema)


def test_every_format_is_tried_here() -> None:
    assert {*FLAT, "text"} == set(FORMATS)


@pytest.mark.parametrize("block_bytes", [1, 2, 3, 4])
@pytest.mark.parametrize(("data", "lines"), [(b"a\r\nbc\r\n", ["a", "bc"]), (b"a\r\r\n\nb\r", ["a", "", "", "b"])])
def test_a_line_end_that_two_blocks_share_is_one(
    data: bytes, lines: list[str], block_bytes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("holdfast.formats.lines.BLOCK_BYTES", block_bytes)
    assert read(get_format("text"), data, pa.schema([("value", pa.string())]))["value"].to_pylist() == lines
