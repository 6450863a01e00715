"""Test reading Avro files of other writers."""

from __future__ import annotations

import datetime
import decimal
import io
import json
from typing import Any

import pyarrow as pa
import pytest

from holdfast.errors import CorruptDataError, InvalidRequestError, NotFoundError, UnsupportedError
from holdfast.formats import get_format

fastavro = pytest.importorskip("fastavro")

DAY = {"type": "int", "logicalType": "date"}
INSTANT = {"type": "long", "logicalType": "timestamp-micros"}
LOCAL = {"type": "long", "logicalType": "local-timestamp-micros"}
INNER = {"type": "record", "name": "inner", "fields": [{"name": "d", "type": ["null", DAY]}]}
TYPES = {
    "d": DAY,
    "t": INSTANT,
    "n": LOCAL,
    "s": ["null", INNER],
    "l": {"type": "array", "items": ["null", INSTANT]},
    "m": {"type": "map", "values": DAY},
}
DAYS, MICROS = -171_500, -14_800_000_000_000_000


@pytest.mark.parametrize(
    ("notes", "is_old"),
    [
        ({}, False),
        ({"org.apache.spark.version": "2.4.8", "org.apache.spark.timeZone": "UTC"}, True),
        ({"org.apache.spark.version": "4.3.0"}, False),
        (
            {
                "org.apache.spark.version": "4.3.0",
                "org.apache.spark.legacyDateTime": "",
                "org.apache.spark.timeZone": "UTC",
            },
            True,
        ),
    ],
)
def test_dates_and_instants_of_the_old_calendar(notes: dict[str, str], is_old: bool) -> None:
    """As for Parquet: Spark's Avro reader uses the same metadata."""
    schema = {"type": "record", "name": "r", "fields": [{"name": n, "type": kind} for n, kind in TYPES.items()]}
    rows: list[dict[str, Any]] = [
        {"d": DAYS, "t": MICROS, "n": MICROS, "s": {"d": DAYS}, "l": [None, MICROS], "m": {"k": DAYS}},
        {"d": 0, "t": 0, "n": 0, "s": None, "l": [], "m": {}},
    ]
    sink = io.BytesIO()
    fastavro.writer(sink, fastavro.parse_schema(schema), rows, metadata=notes)
    sink.seek(0)
    avro = get_format("avro")
    found = avro.read_schema(sink, avro.default_options)
    sink.seek(0)
    batches = avro.read_batches(sink, found, found.names, None, avro.default_options, None)
    if is_old:
        with pytest.raises(UnsupportedError, match="old calendar"):
            list(batches)
        return
    (batch,) = batches
    batch.validate(full=True)
    day = datetime.date(1500, 6, 14)
    local = datetime.datetime(1501, 1, 3, 16, 53, 20)
    instant = local.replace(tzinfo=datetime.timezone.utc)
    start = datetime.datetime(1970, 1, 1)
    assert batch.to_pylist() == [
        {"d": day, "t": instant, "n": local, "s": {"d": day}, "l": [None, instant], "m": [("k", day)]},
        {
            "d": start.date(),
            "t": start.replace(tzinfo=datetime.timezone.utc),
            "n": start,
            "s": None,
            "l": [],
            "m": [],
        },
    ]
    assert batch.schema.equals(pa.schema(found))


def written(kind: Any, values: list[Any], codec: str = "null") -> io.BytesIO:
    """Return a file of one column."""
    sink = io.BytesIO()
    schema = {"type": "record", "name": "r", "fields": [{"name": "a", "type": kind}]}
    fastavro.writer(sink, fastavro.parse_schema(schema), [{"a": value} for value in values], codec=codec)
    sink.seek(0)
    return sink


def read(source: io.BytesIO) -> list[Any]:
    avro = get_format("avro")
    found = avro.read_schema(source, avro.default_options)
    source.seek(0)
    batches = avro.read_batches(source, found, found.names, None, avro.default_options, None)
    return [row["a"] for batch in batches for row in batch.to_pylist()]


ID = "12345678-1234-5678-1234-567812345678"
UUID = {"type": "string", "logicalType": "uuid"}


@pytest.mark.parametrize(
    ("kind", "values", "found"),
    [
        ({"type": "int", "logicalType": "time-millis"}, [5], [datetime.time(microsecond=5000)]),
        ({"type": "long", "logicalType": "time-micros"}, [5], [datetime.time(microsecond=5)]),
        # A logical type on the wrong base type is ignored.
        ({"type": "string", "logicalType": "decimal", "precision": 5, "scale": 2}, ["1.2"], ["1.2"]),
        ({"type": "string", "logicalType": "date"}, ["x"], ["x"]),
        ({"type": "long", "logicalType": "time-millis"}, [5], [5]),
        (["null"], [None], [None]),
        ({"type": "fixed", "size": 12, "name": "d", "logicalType": "duration"}, [b"x" * 12], [b"x" * 12]),
    ],
)
def test_logical_types(kind: Any, values: list[Any], found: list[Any]) -> None:
    assert read(written(kind, values)) == found


@pytest.mark.parametrize(
    ("kind", "value"), [(DAY, 99_999_999), (DAY, -99_999_999), (INSTANT, 2**62), (LOCAL, -(2**62))]
)
def test_years_that_python_does_not_have_end_in_a_sentence(kind: Any, value: int) -> None:
    with pytest.raises(CorruptDataError, match="outside the years 1 to 9999"):
        read(written(kind, [value]))


def test_a_file_cut_anywhere_ends_in_a_sentence() -> None:
    """If only the schema is left, the file has no rows: Avro files do not contain their number of rows."""
    whole = written(["null", "string"], [None, ID] * 3).getvalue()
    read(io.BytesIO(whole))
    refused = 0
    for length in range(len(whole)):
        try:
            assert read(io.BytesIO(whole[:length])) in ([], [None, ID] * 3)
        except CorruptDataError:
            refused += 1
    assert refused > len(whole) // 2


@pytest.mark.parametrize(
    ("codec", "start", "reason"),
    [("deflate", 20, "while decompressing"), ("bzip2", 40, "Invalid data"), ("xz", 40, "Corrupt input")],
)
def test_a_damaged_compressed_block_ends_in_a_sentence(codec: str, start: int, reason: str) -> None:
    values = [f"{number}" for number in range(100)]
    data = written("string", values, codec=codec).getvalue()
    assert read(io.BytesIO(data)) == values
    start += data.index(data[-16:])  # after the marker, the number of rows, the size and the codec's header
    with pytest.raises(CorruptDataError, match=rf"an Avro file is damaged.*{reason}"):
        read(io.BytesIO(data[:start] + b"\xff" * 30 + data[start + 30 :]))


def test_a_codec_that_is_not_installed_is_no_damage() -> None:
    data = written("string", ["a"]).getvalue().replace(b"avro.codec\x08null", b"avro.codec\x06lz4")
    with pytest.raises(UnsupportedError, match="Avro files compressed with lz4 need an extra package: pip install lz4"):
        read(io.BytesIO(data))


def test_a_map_with_a_key_twice_is_refused() -> None:
    avro = get_format("avro")
    schema = pa.schema([("m", pa.map_(pa.string(), pa.int64()))])
    writer = avro.open_writer(io.BytesIO(), schema, avro.default_options)
    with pytest.raises(InvalidRequestError, match="contains a key twice"):
        writer.write(pa.record_batch([pa.array([[("k", 1), ("k", 2)]], schema.field(0).type)], schema=schema))


class Gone(io.BytesIO):
    """A file that is deleted while it is being read."""

    read_bytes = 0  # the number of reads before the deletion

    def read(self, size: int | None = -1, /) -> bytes:
        if self.tell() >= self.read_bytes:
            raise NotFoundError("no such file: check the key")
        return super().read(size)


def test_an_error_of_the_store_is_no_damage() -> None:
    avro = get_format("avro")
    with pytest.raises(NotFoundError, match="no such file"):
        avro.read_schema(Gone(), avro.default_options)
    source = Gone(written("string", ["a"]).getvalue())
    source.read_bytes = len(source.getvalue()) - 16
    with pytest.raises(NotFoundError, match="no such file"):
        read(source)


# --- types with names -------------------------------------------------------------------------------------------------
POINT = {"type": "record", "name": "P", "fields": [{"name": "x", "type": ["null", "string"]}]}


def test_a_named_type_is_used_again() -> None:
    fields = [
        {"name": "a", "type": POINT},
        {"name": "b", "type": "P"},
        {"name": "c", "type": ["null", "P"]},
        {"name": "d", "type": {"type": "array", "items": "P"}},
        {"name": "e", "type": {"type": "map", "values": {"type": "enum", "name": "E", "symbols": ["u", "v"]}}},
        {"name": "f", "type": ["null", "E"]},
    ]
    point = {"x": "t"}
    row = {"a": point, "b": point, "c": None, "d": [point, {"x": None}], "e": {"k": "u"}, "f": "v"}
    sink = io.BytesIO()
    fastavro.writer(sink, fastavro.parse_schema({**RECORD, "namespace": "n.s", "fields": fields}), [row])
    assert rows(sink) == [{**row, "e": [("k", "u")]}]


RECORD = {"type": "record", "name": "r"}
WIDE = {"type": "bytes", "logicalType": "decimal", "precision": 50, "scale": 2}


@pytest.mark.parametrize(
    ("kind", "value", "sentence"),
    [
        (WIDE, decimal.Decimal("1.23"), "more digits than Spark's 38"),
        (["null", "r"], None, "an Avro type is not supported: read it with Spark's Avro package"),
        ({"type": "array", "items": ["null", UUID]}, [ID], "an Avro type is not supported"),
        (["int", "string"], 5, "unions of several types"),
    ],
)
def test_a_type_that_cannot_be_read_leaves_the_other_columns(kind: Any, value: Any, sentence: str) -> None:
    sink = io.BytesIO()
    fields = [{"name": "a", "type": kind}, {"name": "b", "type": "int"}]
    fastavro.writer(sink, fastavro.parse_schema({**RECORD, "fields": fields}), [{"a": value, "b": 1}])
    with pytest.raises(InvalidRequestError, match=sentence):
        rows(sink)
    assert rows(sink, pa.schema([("b", pa.int32())])) == [{"b": 1}]


def test_a_decimal_of_more_digits_than_it_says_is_damage() -> None:
    sink = io.BytesIO()
    kind = {"type": "bytes", "logicalType": "decimal", "precision": 4}
    plain = {**RECORD, "fields": [{"name": "a", "type": "bytes"}]}
    fastavro.writer(sink, fastavro.parse_schema(plain), [{"a": (2**31 - 1).to_bytes(4, "big")}])
    as_decimal = json.dumps({**RECORD, "fields": [{"name": "a", "type": kind}]}).encode()
    written = _with_schema(sink.getvalue(), as_decimal)
    with pytest.raises(CorruptDataError, match="a decimal with too many digits"):
        rows(io.BytesIO(written))


@pytest.mark.parametrize(("precision", "scale"), [(0, 0), (-1, 0), (4, 5), (4, -1)])
def test_a_decimal_without_valid_digits_is_refused(precision: int, scale: int) -> None:
    sink = io.BytesIO()
    plain = {**RECORD, "fields": [{"name": "a", "type": "bytes"}]}
    fastavro.writer(sink, fastavro.parse_schema(plain), [])
    kind = {"type": "bytes", "logicalType": "decimal", "precision": precision, "scale": scale}
    written = _with_schema(sink.getvalue(), json.dumps({**RECORD, "fields": [{"name": "a", "type": kind}]}).encode())
    with pytest.raises((CorruptDataError, InvalidRequestError), match=r"not an Avro file|more digits .*, or none"):
        rows(io.BytesIO(written))


def _with_schema(file: bytes, schema: bytes) -> bytes:
    """Replace the schema in the header of a file; both schemas are short enough for a length of two bytes."""
    key = b"avro.schema"
    start = file.index(key) + len(key)
    length = (file[start] & 0x7F | file[start + 1] << 7) // 2  # zigzag encoding
    new = len(schema) * 2
    return file[:start] + bytes([new & 0x7F | 0x80, new >> 7]) + schema + file[start + 2 + length :]


@pytest.mark.parametrize("schema", ["string", {"type": "array", "items": "int"}])
def test_a_file_without_records_has_no_columns(schema: Any) -> None:
    sink = io.BytesIO()
    fastavro.writer(sink, fastavro.parse_schema(schema), ["x"] if schema == "string" else [[1]])
    for known in (None, pa.schema([("a", pa.int32())])):
        with pytest.raises(InvalidRequestError, match="values other than records, so it has no columns"):
            rows(sink, known)


def test_a_schema_that_cannot_be_is_damage() -> None:
    data = written({**WIDE, "precision": 4}, []).getvalue().replace(b'"precision": 4', b'"precision": 1')
    with pytest.raises(CorruptDataError, match="not an Avro file"):
        rows(io.BytesIO(data))


def rows(source: io.BytesIO, known: pa.Schema | None = None) -> list[Any]:
    avro = get_format("avro")
    source.seek(0)
    schema = known or avro.read_schema(source, avro.default_options)
    source.seek(0)
    batches = avro.read_batches(source, schema, schema.names, None, avro.default_options, None)
    return [row for batch in batches for row in batch.to_pylist()]
