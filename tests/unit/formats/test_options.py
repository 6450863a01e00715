"""Test option strings: Spark's names, exact errors, no option silently ignored."""

from __future__ import annotations

import pickle
from typing import Any

import pyarrow as pa
import pytest

from holdfast.errors import InvalidRequestError
from holdfast.formats import FORMATS, get_format


def test_formats_are_found_by_alias_and_in_any_case() -> None:
    assert get_format(" Parquet ") is FORMATS["parquet"]
    assert get_format("jsonl") is FORMATS["json"]
    assert get_format("feather") is FORMATS["arrow"]


def test_an_unknown_format_is_refused_with_the_nearest() -> None:
    with pytest.raises(InvalidRequestError, match="did you mean parquet format='parket'"):
        get_format("parket")
    with pytest.raises(InvalidRequestError, match="use one of arrow, avro, csv"):
        get_format("xyz")


@pytest.mark.parametrize("name", sorted(FORMATS))
def test_a_format_and_its_options_survive_pickling(name: str) -> None:
    """Spark sends them from process to process."""
    file_format = get_format(name)
    assert pickle.loads(pickle.dumps(file_format)) is file_format
    assert pickle.loads(pickle.dumps(file_format.default_options)) == file_format.default_options


@pytest.mark.parametrize(
    ("name", "given", "field", "value"),
    [
        ("parquet", {"Compression": "ZSTD"}, "compression", "zstd"),
        ("parquet", {"codec": "uncompressed"}, "compression", "none"),
        ("parquet", {"parquet.block.size": "1048576"}, "row_group_bytes", 1048576),
        ("parquet", {"parquet.enable.dictionary": "false"}, "dictionary", False),
        ("csv", {"delimiter": "\\t"}, "separator", "\t"),
        ("csv", {"header": "TRUE"}, "header", True),
        ("csv", {"nullValue": "NULL"}, "null_value", "NULL"),
        ("json", {"ignoreNullFields": "false"}, "ignore_null_fields", False),
        ("orc", {"orc.compress": "ZLIB"}, "compression", "zlib"),
        ("avro", {"recordName": "row"}, "record_name", "row"),
        ("text", {"compression": "bzip2"}, "codec", "bz2"),
        ("arrow", {"compression": "none"}, "compression", ""),
    ],
)
def test_options_are_parsed(name: str, given: dict[str, str], field: str, value: Any) -> None:
    parsed = get_format(name).parse_options(given)
    assert getattr(parsed.options, field) == value
    assert parsed.unknown == ()


@pytest.mark.parametrize(
    ("name", "given", "sentence"),
    [
        ("parquet", {"compression": "snapy"}, "no such choice: did you mean snappy option='compression' value='snapy'"),
        ("parquet", {"compression": "brotli"}, "no such choice"),
        ("parquet", {"parquet.block.size": "big"}, "not a whole number from 65536 to"),
        ("parquet", {"rowGroupRows": "0"}, "not a whole number from 1 to"),
        ("csv", {"header": "yes"}, "not a boolean: use true or false option='header' value='yes' format='csv'"),
        ("csv", {"sep": "||"}, "not a single ASCII character"),
        ("csv", {"sep": ""}, "not a single ASCII character"),
        ("csv", {"quote": "\n"}, "not a single ASCII character"),
        ("csv", {"compression": "snappy"}, "no such choice"),
    ],
)
def test_values_that_cannot_be_honoured_are_refused(name: str, given: dict[str, str], sentence: str) -> None:
    """facts: A-95."""
    with pytest.raises(InvalidRequestError) as raised:
        get_format(name).parse_options(given)
    assert sentence in str(raised.value)


def test_contradicting_spellings_are_refused() -> None:
    with pytest.raises(InvalidRequestError, match="contradict"):
        get_format("csv").parse_options({"sep": ";", "delimiter": ","})
    assert get_format("csv").parse_options({"sep": ";", "delimiter": ";"}).options.separator == ";"


def test_unknown_keys_are_handed_back() -> None:
    assert get_format("csv").parse_options({"hedaer": "true", "maxRecordsPerFile": "5"}).unknown == (
        "hedaer",
        "maxRecordsPerFile",
    )


@pytest.mark.parametrize(
    ("name", "given", "extension"),
    [
        ("parquet", {}, ".snappy.parquet"),
        ("parquet", {"compression": "none"}, ".parquet"),
        ("parquet", {"compression": "gzip"}, ".gz.parquet"),
        ("orc", {}, ".zstd.orc"),
        ("csv", {"compression": "gzip"}, ".csv.gz"),
        ("json", {}, ".json"),
        ("text", {"compression": "zstd"}, ".txt.zst"),
        ("arrow", {}, ".lz4.arrow"),
        ("avro", {}, ".avro"),
    ],
)
def test_extensions(name: str, given: dict[str, str], extension: str) -> None:
    file_format = get_format(name)
    assert file_format.extension(file_format.parse_options(given).options) == extension


def test_reader_options_of_csv_are_all_that_changes_what_a_reader_finds() -> None:
    """Each has one spelling, so that two writes can be compared. The codec is part of the file names.

    With Spark's own default for nullValue, its reader would read empty strings as null.
    """
    csv = get_format("csv")

    def reader_options(**given: str) -> dict[str, str]:
        return dict(csv.reader_options(csv.parse_options(given).options))

    assert reader_options() == {"header": "false", "sep": ",", "quote": '"', "escape": "\\", "nullValue": "\ufdd0"}
    assert reader_options(Header="TRUE", delimiter="\\t", QUOTE="'", escape="'", nullvalue="NULL") == {
        "header": "true",
        "sep": "\t",
        "quote": "'",
        "escape": "'",
        "nullValue": "NULL",
    }
    assert reader_options(quoteAll="true", compression="gzip") == reader_options()
    again = csv.parse_options(reader_options(header="true", sep="\\t"))
    assert (again.unknown, again.options.header, again.options.separator) == ((), True, "\t")


@pytest.mark.parametrize("name", sorted(set(FORMATS) - {"csv"}))
def test_other_formats_need_no_options_to_be_read(name: str) -> None:
    file_format = get_format(name)
    assert dict(file_format.reader_options(file_format.default_options)) == {}


@pytest.mark.parametrize(
    ("name", "kind", "sentence"),
    [
        (
            "csv",
            pa.list_(pa.int64()),
            "store to_json(column) or use arrow or use avro or use json or use orc or use parquet",
        ),
        ("csv", pa.binary(), "csv does not support this type"),
        ("csv", pa.map_(pa.string(), pa.int64()), "csv does not support this type"),
        (
            "json",
            pa.duration("us"),
            "json does not support this type, JSON has no interval type: cast the column to a string or use arrow",
        ),
        ("avro", pa.duration("us"), "avro does not support this type"),
        ("orc", pa.null(), "orc does not support this type"),
        ("text", pa.int64(), "text does not support this type"),
        ("parquet", pa.uint64(), "parquet does not support this type: cast the column"),
        ("parquet", pa.decimal256(50, 2), "parquet does not support this type"),
        ("json", pa.struct([("a", pa.list_(pa.duration("us")))]), "column='c.a."),
        ("parquet", pa.struct([]), "a struct without fields"),
        (
            "parquet",
            pa.struct([("a", pa.int8()), ("A", pa.int8())]),
            "two names are equal or differ only by case: rename one",
        ),
    ],
)
def test_types_that_a_format_cannot_hold_are_refused(name: str, kind: pa.DataType, sentence: str) -> None:
    with pytest.raises(InvalidRequestError) as raised:
        get_format(name).check_schema(pa.schema([("c", kind)]))
    assert sentence in str(raised.value)


@pytest.mark.parametrize("name", sorted(set(FORMATS) - {"text"}))
def test_columns_that_differ_only_by_case_are_refused(name: str) -> None:
    """facts: A-92. Spark's readers would find neither of them."""
    for names in (("id", "ID"), ("id", "id")):
        with pytest.raises(InvalidRequestError, match="differ only by case"):
            get_format(name).check_schema(pa.schema([(one, pa.int64()) for one in names]))


def test_text_takes_one_string_column() -> None:
    with pytest.raises(InvalidRequestError, match="one string column"):
        get_format("text").check_schema(pa.schema([("a", pa.string()), ("b", pa.string())]))


@pytest.mark.parametrize("name", ["parquet", "orc", "csv"])
def test_a_file_needs_a_column(name: str) -> None:
    with pytest.raises(InvalidRequestError, match="needs at least one column"):
        get_format(name).check_schema(pa.schema([]))


@pytest.mark.parametrize("name", ["a b", "1st", "ä"])
def test_avro_names(name: str) -> None:
    for schema in (pa.schema([(name, pa.int64())]), pa.schema([("ok", pa.struct([(name, pa.int64())]))])):
        with pytest.raises(InvalidRequestError, match="Avro names"):
            get_format("avro").check_schema(schema)


def test_avro_map_keys() -> None:
    with pytest.raises(InvalidRequestError, match="string keys"):
        get_format("avro").check_schema(pa.schema([("m", pa.list_(pa.map_(pa.int32(), pa.string())))]))
