"""Read and write Avro object container files through fastavro (``pip install 'holdfast[avro]'``).

Types are mapped as in Spark. Rows are converted to Python objects, so Avro is for exchange, not for speed. Memory: one
block (`_SYNC_BYTES`).
"""

from __future__ import annotations

import lzma
import re
import struct
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.types as pat

from holdfast.errors import CorruptDataError, HoldfastError, InvalidRequestError, UnsupportedError
from holdfast.formats.base import ByteSink, FileFormat, FormatOptions, ReadRequest
from holdfast.formats.columns.arrow_types import child_fields, is_string
from holdfast.formats.columns.conversion import (
    build_record_batch,
    plain_schema,
    reinterpret_bits,
    to_plain_batch,
    transform_child_fields,
)
from holdfast.formats.columns.dates import check_years, has_old_calendar, refuse_old_calendar_values
from holdfast.formats.columns.types import BASE, INTERVALS, NESTED, TIMES, check_map_keys, check_types_supported
from holdfast.stores.provider import make_choice_parser

_SYNC_BYTES = 1024 * 1024
_READ_ROWS = 16 * 1024
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


@dataclass(frozen=True, kw_only=True)
class AvroOptions(FormatOptions):
    """Options of Avro files.

    Attributes:
        codec: the block codec, by the name that Avro gives it. Deflate needs no extra package; snappy, Spark's default,
            does.
        record_name, record_namespace: the name of the top-level record.
    """

    codec: str = "deflate"
    record_name: str = "topLevelRecord"
    record_namespace: str = ""


_CODECS = {
    "none": "null",
    "uncompressed": "null",
    "deflate": "deflate",
    "snappy": "snappy",
    "bzip2": "bzip2",
    "xz": "xz",
    "zstandard": "zstandard",
    "zstd": "zstandard",
}


def _import_fastavro() -> Any:
    try:
        import fastavro
        import fastavro.schema
        import fastavro.write
    except ImportError as error:
        raise UnsupportedError("Avro needs the package fastavro: pip install 'holdfast[avro]'") from error
    return fastavro


# --- types ------------------------------------------------------------------------------------------------------------
_PRIMITIVES = {
    pa.null(): "null",
    pa.bool_(): "boolean",
    pa.int8(): "int",
    pa.int16(): "int",
    pa.int32(): "int",
    pa.int64(): "long",
    pa.float32(): "float",
    pa.float64(): "double",
}


def _avro_type(kind: pa.DataType, nullable: bool, path: str) -> Any:
    inner = _avro_value_type(kind, path)
    return ["null", inner] if nullable and inner != "null" else inner


def _avro_value_type(kind: pa.DataType, path: str) -> Any:
    if kind in _PRIMITIVES:
        return _PRIMITIVES[kind]
    if is_string(kind):
        return "string"
    if pat.is_date32(kind):
        return {"type": "int", "logicalType": "date"}
    if pat.is_timestamp(kind):
        return {"type": "long", "logicalType": "timestamp-micros" if kind.tz else "local-timestamp-micros"}
    if pat.is_decimal(kind):
        return {"type": "bytes", "logicalType": "decimal", "precision": kind.precision, "scale": kind.scale}
    if pat.is_map(kind):
        return {"type": "map", "values": _avro_type(kind.item_type, kind.item_field.nullable, f"{path}.value")}
    if pat.is_struct(kind):
        return _avro_record(path.rpartition(".")[2], child_fields(kind), path)
    if pat.is_nested(kind):
        return {"type": "array", "items": _avro_type(kind.value_type, kind.value_field.nullable, f"{path}.element")}
    return "bytes"


def _avro_record(name: str, fields: Sequence[pa.Field], path: str) -> dict[str, Any]:
    described = []
    for field in fields:
        inner = _avro_type(field.type, field.nullable, f"{path}.{field.name}")
        described.append({"name": field.name, "type": inner})
    return {"type": "record", "name": name, "namespace": path, "fields": described}


def _avro_schema(schema: pa.Schema, options: AvroOptions) -> dict[str, Any]:
    # Nested records are named after their path, so that names are unique.
    record = _avro_record(options.record_name, list(schema), options.record_name)
    return {**record, "namespace": options.record_namespace}


def _check_schema(schema: pa.Schema) -> None:
    _import_fastavro()  # fail before the job starts: if the package is missing, every task would fail
    check_types_supported(AVRO, schema)
    check_map_keys("Avro", plain_schema(schema))
    for field in plain_schema(schema):
        _check_field(field, field.name)


def _check_field(field: pa.Field, path: str) -> None:
    if not _NAME.fullmatch(field.name):
        raise InvalidRequestError(
            "Avro names may contain only letters, digits and _: rename the column or use another format", column=path
        )
    kind = field.type
    for child in child_fields(kind):
        if pat.is_struct(kind):
            _check_field(child, f"{path}.{child.name}")
        elif pat.is_nested(child.type):
            _check_field(pa.field("element", child.type), f"{path}.element")


# --- writing ----------------------------------------------------------------------------------------------------------
def _replace_times_with_integers(field: pa.Field) -> pa.Field:
    """Return the field with dates and timestamps as integers, which are faster than objects and need no zone data."""
    if pat.is_timestamp(field.type):
        return pa.field(field.name, pa.int64(), field.nullable)
    if pat.is_date32(field.type):
        return pa.field(field.name, pa.int32(), field.nullable)
    return pa.field(field.name, transform_child_fields(field.type, _replace_times_with_integers), field.nullable)


def _pairs_to_dictionary(pairs: Sequence[tuple[str, Any]], item: Callable[[Any], Any]) -> dict[str, Any]:
    found = {key: item(value) for key, value in pairs}
    if len(found) < len(pairs):
        raise InvalidRequestError(
            "a map contains a key twice, which Avro's Python writer does not support: use parquet"
        )
    return found


def _make_map_converter(kind: pa.DataType) -> Callable[[Any], Any]:
    """Return a function that turns maps, which pyarrow returns as pairs, into the dictionaries that fastavro needs."""
    if not any(pat.is_nested(child.type) for child in child_fields(kind)) and not pat.is_map(kind):
        return lambda value: value
    if pat.is_map(kind):
        item = _make_map_converter(kind.item_type)
        return lambda pairs: None if pairs is None else _pairs_to_dictionary(pairs, item)
    if pat.is_struct(kind):
        fields = {field.name: _make_map_converter(field.type) for field in child_fields(kind)}
        return lambda row: None if row is None else {name: fields[name](value) for name, value in row.items()}
    element = _make_map_converter(kind.value_type)
    return lambda values: None if values is None else [element(value) for value in values]


class _AvroWriter:
    def __init__(self, sink: ByteSink, schema: pa.Schema, options: AvroOptions) -> None:
        fastavro = _import_fastavro()
        self._plain = plain_schema(schema)
        self._changes = {field.name: _make_map_converter(field.type) for field in self._plain}
        self._numeric = pa.schema([_replace_times_with_integers(field) for field in self._plain])
        try:
            self._writer = fastavro.write.Writer(
                _FastavroOutput(sink), _avro_schema(self._plain, options), options.codec, sync_interval=_SYNC_BYTES
            )
        except ValueError as error:
            raise UnsupportedError(
                "this Avro codec needs an extra package: pip install 'fastavro[codecs]', or use deflate",
                codec=options.codec,
            ) from error
        self._buffered = 0

    @property
    def buffered_bytes(self) -> int:
        return self._buffered

    def write(self, batch: pa.RecordBatch) -> None:
        check_years("Avro's Python reader", batch)
        plain = to_plain_batch(batch, self._plain)
        columns = [
            column if column.type.equals(field.type) else reinterpret_bits(column, field.type)
            for column, field in zip(plain.columns, self._numeric, strict=True)
        ]
        for row in build_record_batch(columns, self._numeric, plain.num_rows).to_pylist():
            self._writer.write({name: self._changes[name](value) for name, value in row.items()})
        self._buffered = min(self._buffered + plain.nbytes, _SYNC_BYTES)

    def close(self) -> None:
        self._writer.flush()


class _FastavroOutput:
    """Present a sink as the file object that fastavro writes to."""

    def __init__(self, sink: ByteSink) -> None:
        self.write = sink.write

    def seekable(self) -> bool:
        return False

    def flush(self) -> None:
        """Do nothing: this class buffers no data."""


# --- reading ----------------------------------------------------------------------------------------------------------
# The errors that fastavro raises for bytes that are not an Avro file. An OSError comes from bzip2, not from a store:
# stores raise HoldfastError.
_NO_FILE = (ValueError, OverflowError, EOFError, IndexError, KeyError, TypeError, OSError)
_DAMAGED: tuple[type[Exception], ...] = (*_NO_FILE, struct.error, zlib.error, lzma.LZMAError)
_LACKS = re.compile(r"(\w+) codec is supported but you need to install .*'([\w.-]+)'")


_ARROW_TYPES: Mapping[str, pa.DataType] = {
    "null": pa.null(),
    "boolean": pa.bool_(),
    "int": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "string": pa.string(),
    "enum": pa.string(),
    "bytes": pa.binary(),
    "fixed": pa.binary(),
}
# A logical type on any other underlying type is ignored, as Avro's specification requires and as fastavro does.
_LOGICAL: Mapping[tuple[str, str], pa.DataType] = {
    ("int", "date"): pa.date32(),
    ("long", "timestamp-micros"): pa.timestamp("us", "UTC"),
    ("long", "timestamp-millis"): pa.timestamp("us", "UTC"),
    ("long", "local-timestamp-micros"): pa.timestamp("us"),
    ("long", "local-timestamp-millis"): pa.timestamp("us"),
    ("long", "time-micros"): pa.time64("us"),
    ("int", "time-millis"): pa.time64("us"),
}
_LARGEST_PRECISION = 38


def _arrow_type(avro: Any) -> pa.DataType:
    """Return the Arrow type for an expanded Avro type.

    Raises:
        InvalidRequestError: no Arrow type corresponds to the Avro type.
    """
    if isinstance(avro, list):
        present = [one for one in avro if one != "null"]
        if len(present) > 1:
            raise InvalidRequestError("unions of several types are not supported: use another file", union=str(avro))
        return _arrow_type(present[0]) if present else pa.null()
    if isinstance(avro, str):
        avro = {"type": avro}
    kind = avro["type"]
    if kind in ("bytes", "fixed") and avro.get("logicalType") == "decimal" and "precision" in avro:
        return _decimal_type(avro["precision"], avro.get("scale", 0))
    if (kind, avro.get("logicalType")) in _LOGICAL:
        return _LOGICAL[kind, avro["logicalType"]]
    if kind == "record":
        return pa.struct([(field["name"], _arrow_type(field["type"])) for field in avro["fields"]])
    if kind == "array":
        return pa.list_(_arrow_type(avro["items"]))
    if kind == "map":
        return pa.map_(pa.string(), _arrow_type(avro["values"]))
    if kind not in _ARROW_TYPES or avro.get("logicalType") == "uuid":  # fastavro returns objects in place of its texts
        raise InvalidRequestError("an Avro type is not supported: read it with Spark's Avro package", type=str(avro))
    return _ARROW_TYPES[kind]


def _decimal_type(precision: int, scale: int) -> pa.DataType:
    if not (0 < precision <= _LARGEST_PRECISION and 0 <= scale <= precision):
        raise InvalidRequestError(
            "a decimal in an Avro file has more digits than Spark's 38, or none: use another file",
            precision=precision,
            scale=scale,
        )
    return pa.decimal128(precision, scale)


def _open_avro_file(source: BinaryIO) -> tuple[Any, Mapping[str, Any]]:
    """Return fastavro's reader and the file's columns with their types."""
    fastavro = _import_fastavro()
    try:
        file = fastavro.reader(source)
        schema = fastavro.schema.expand_schema(file.writer_schema)
    except HoldfastError:
        raise  # from the store
    except (*_DAMAGED, fastavro.schema.SchemaParseException) as error:
        raise CorruptDataError("not an Avro file: check what wrote it") from error
    if not isinstance(schema, dict) or schema.get("type") != "record":
        kind = schema.get("type") if isinstance(schema, dict) else schema
        raise InvalidRequestError(
            "an Avro file contains values other than records, so it has no columns: use another file", type=str(kind)
        )
    return file, {field["name"]: field["type"] for field in schema["fields"]}


def _iter_rows(file: Any) -> Iterator[dict[str, Any]]:
    """Yield the file's rows; turn fastavro's errors into Holdfast's."""
    try:
        yield from file
    except HoldfastError:
        raise
    except _DAMAGED as error:
        if lacks := _LACKS.match(str(error)):
            raise UnsupportedError(
                f"Avro files compressed with {lacks[1]} need an extra package: pip install {lacks[2]}"
            ) from error
        raise CorruptDataError(
            "an Avro file is damaged, or contains a date or timestamp outside the years 1 to 9999, which its Python "
            "reader does not support: read it with Spark's Avro package",
            reason=f"{type(error).__name__}: {error}"[:200],
        ) from error


def _read_schema(source: BinaryIO, options: AvroOptions) -> pa.Schema:
    _, found = _open_avro_file(source)
    return pa.schema([(name, _arrow_type(kind)) for name, kind in found.items()])


def _read_batches(
    source: BinaryIO, wanted: ReadRequest, options: AvroOptions, groups: Sequence[int] | None
) -> Iterator[Any]:
    file, found = _open_avro_file(source)
    names = {name.lower() for name in wanted.needed.names}
    present = pa.schema([(name, _arrow_type(kind)) for name, kind in found.items() if name.lower() in names])
    rows: list[dict[str, Any]] = []
    old_calendar = has_old_calendar({key.encode(): str(value).encode() for key, value in file.metadata.items()})

    def build_batch() -> pa.RecordBatch:
        try:
            arrays = [pa.array([row[name] for row in rows], present.field(name).type) for name in present.names]
        except pa.ArrowInvalid as error:
            raise CorruptDataError(
                "an Avro file contains a value that does not match its schema, such as a decimal with too many digits: "
                "use another file"
            ) from error
        batch = build_record_batch(arrays, present, len(rows))
        rows.clear()
        return refuse_old_calendar_values(batch) if old_calendar else batch

    for row in _iter_rows(file):
        rows.append(row)
        if len(rows) == _READ_ROWS:
            yield build_batch()
    if rows:
        yield build_batch()


AVRO: FileFormat[AvroOptions] = FileFormat(
    name="avro",
    default_options=AvroOptions(),
    parsers={
        "compression": ("codec", make_choice_parser(_CODECS)),
        "codec": ("codec", make_choice_parser(_CODECS)),
        "recordname": ("record_name", str),
        "recordnamespace": ("record_namespace", str),
    },
    holds=BASE | NESTED | {"null", "binary"},
    reasons={
        **dict.fromkeys(INTERVALS, "Avro has no interval type: cast the column to a string"),
        **dict.fromkeys(TIMES, "Spark does not support times in Avro: cast the column to a string"),
        "variant": "Avro has no VARIANT: store to_json(column)",
        "collated string": "Avro does not store collations: cast to string collate UTF8_BINARY",
        "user-defined": "Avro stores only the underlying type of a user-defined type: store its parts",
    },
    magic=b"Obj\x01",
    extension=lambda options: ".avro",
    check_schema=_check_schema,
    open_writer=_AvroWriter,
    read_schema=_read_schema,
    read=_read_batches,
)
