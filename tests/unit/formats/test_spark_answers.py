"""Test that foreign CSV and JSON files give the results of stock Spark, or are rejected where Spark loses data."""

from __future__ import annotations

import io
import json
import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.types as pat
import pytest

from holdfast.errors import CorruptDataError, HoldfastError, InvalidRequestError
from holdfast.formats import get_format

ANSWERS: dict[str, Any] = json.loads(Path(__file__).with_name("spark_answers.json").read_text())
WIDTH = 6
ZONE = "America/Los_Angeles"
TYPES = {
    "string": pa.string(),
    "boolean": pa.bool_(),
    "byte": pa.int8(),
    "int": pa.int32(),
    "float": pa.float32(),
    "double": pa.float64(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", "UTC"),
    "timestamp_ntz": pa.timestamp("us"),
    "binary": pa.binary(),
    "decimal(5,2)": pa.decimal128(5, 2),
}

ONLY_UNIVOCITY = re.compile("a quote in a CSV file is neither escaped|mixes line ends")
# Spark silently loses data here, or guesses the meaning of a zone's abbreviation; these are rejected.
LOSSY = {
    "date": {"2020-01-01 junk", "2020-01-01T12:00"},
    "timestamp": {"2020-01-01T01:02:03.123456789", "2020-01-01T01:02:03 PST"},
    "timestamp_ntz": {"2020-01-01T01:02:03.1234567"},
    "decimal(5,2)": {"1.005"},
}
# Spark accepts digits of other scripts. These are rejected as well.
OTHER_DIGITS = {"\u0661", "\u0967"}
# Only Spark's parser reads these; here they are refused.
ONLY_SPARK = {
    "{'a':1}",
    """{'a':'it\\'s "so"'}""",
    '{"a":{"x": 1 }}',
    '{"a":[1, "\\u00e9"]}',
    '{"a":+Infinity}',
    '{"a":-INF}',
    '{"a":[{"s":{"k": [1 ]}},{"s":"t"}]}',
}
# Spark reads these as null. Here the schema may spell names in another case, in every format.
OTHER_CASE = {'{"A":1}': '{"a":1}', '{"a":{"B":1}}': '{"a":{"b":1}}'}


def read(name: str, text: str, schema: pa.Schema, **given: str) -> pa.Table:
    file_format = get_format(name)
    options = file_format.parse_options({"timeZone": ZONE, **given}).options
    source = io.BytesIO(text.encode())
    return pa.Table.from_batches(
        list(file_format.read_batches(source, schema, schema.names, None, options, None)), schema
    )


@pytest.mark.parametrize("case", ANSWERS["csv_rows"], ids=lambda case: json.dumps(case["options"]))
def test_csv_records(case: dict[str, Any]) -> None:
    schema = pa.schema([(f"c{index}", pa.string()) for index in range(WIDTH)])
    assert len(case["texts"]) > 50
    equal = 0
    for text, rows in zip(case["texts"], case["rows"], strict=True):
        try:
            table = read("csv", text, schema, **case["options"])
        except CorruptDataError as error:
            if not ONLY_UNIVOCITY.search(str(error)):
                raise
            continue
        assert [list(row.values()) for row in table.to_pylist()] == rows, text
        equal += 1
    assert equal > len(case["texts"]) / 3


@pytest.mark.parametrize("case", ANSWERS["csv_rows"], ids=lambda case: json.dumps(case["options"]))
def test_csv_records_do_not_depend_on_where_a_block_ends(case: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("holdfast.formats.lines.blocks.BLOCK_BYTES", 4)
    test_csv_records(case)


@pytest.mark.parametrize("case", ANSWERS["csv_values"], ids=lambda case: str(case["type"]))
def test_csv_values(case: dict[str, Any]) -> None:
    """A value equals Spark's, or is rejected where Spark reads an invalid value as null or loses information."""
    kind = TYPES[case["type"]]
    refused = LOSSY.get(case["type"], set()) | OTHER_DIGITS
    for text, spark in zip(case["texts"], case["spark"], strict=True):
        if text and (spark is None or text in refused):
            with pytest.raises(InvalidRequestError, match="correct the file or use another schema"):
                read("csv", f"{text}|\n", pa.schema([("a", kind), ("b", pa.string())]), sep="|")
            continue
        table = read("csv", f"{text}|\n", pa.schema([("a", kind), ("b", pa.string())]), sep="|")
        assert number_or_text(table["a"], kind) == spark_value(spark, kind), text


def number_or_text(column: Any, kind: pa.DataType) -> Any:
    """Return a value in the form of `spark_value`."""
    if pat.is_date(kind) or pat.is_timestamp(kind):  # Python's calendar has a smaller range than Spark's
        return column.cast(pa.int32() if pat.is_date(kind) else pa.int64())[0].as_py()
    return repr(column[0].as_py())


def spark_value(text: str | None, kind: pa.DataType) -> Any:
    if pat.is_date(kind) or pat.is_timestamp(kind):
        return int(text) if text is not None else None
    if text is None:
        return "None"
    if pat.is_floating(kind):
        return repr(pa.scalar(float(text), kind).as_py())
    return repr({"true": True, "false": False}[text] if pat.is_boolean(kind) else pa.scalar(text).cast(kind).as_py())


# Spark drops values without a column.
SURPLUS = {"a;b\n1;2;3\n4\n", "a,b\n1,2,3\n"}
# Spark reads a time as one of the current day.
TIMES = {"12:00;a\n": "struct<_c0:string,_c1:string>"}


@pytest.mark.parametrize(
    ("text", "options", "schema"),
    [
        (text, case["options"], TIMES.get(text, schema))
        for case in ANSWERS["csv_schema"]
        for text, schema in zip(case["texts"], case["schema"], strict=True)
    ],
)
def test_inferred_csv_schema(text: str, options: dict[str, str], schema: str) -> None:
    csv = get_format("csv")
    if text in SURPLUS:
        with pytest.raises(CorruptDataError, match="more values than columns"):
            csv.read_schema(io.BytesIO(text.encode()), csv.parse_options(options).options)
        return
    found = csv.read_schema(io.BytesIO(text.encode()), csv.parse_options(options).options)
    assert simple_string(pa.struct(list(found))) == schema


@pytest.mark.parametrize("text", [text for text in ANSWERS["json_schema"] if "'" not in text])
def test_inferred_json_schema(text: str) -> None:
    found = get_format("json").read_schema(io.BytesIO(text.encode()), get_format("json").default_options)
    assert simple_string(pa.struct(list(found))) == ANSWERS["json_schema"][text]


def simple_string(kind: pa.DataType) -> str:
    """Return a type as Spark prints it."""
    if pat.is_struct(kind):
        return "struct<" + ",".join(f"{field.name}:{simple_string(field.type)}" for field in kind) + ">"
    if pat.is_list(kind):
        return f"array<{simple_string(kind.value_type)}>"
    if pat.is_decimal(kind):
        return f"decimal({kind.precision},{kind.scale})"
    if pat.is_timestamp(kind):
        return "timestamp" if kind.tz else "timestamp_ntz"
    names = {pa.int32(): "int", pa.int64(): "bigint", pa.bool_(): "boolean", pa.date32(): "date"}
    return names.get(kind, str(kind))


JSON_SCHEMAS = {
    "a struct<b:int,c:double>, d int": pa.schema(
        [("a", pa.struct([("b", pa.int32()), ("c", pa.float64())])), ("d", pa.int32())]
    ),
    "a array<int>": pa.schema([("a", pa.list_(pa.int32()))]),
    "a map<string,int>": pa.schema([("a", pa.map_(pa.string(), pa.int32()))]),
    "a array<struct<s:string>>": pa.schema([("a", pa.list_(pa.struct([("s", pa.string())])))]),
}


def json_schema(ddl: str) -> pa.Schema:
    return JSON_SCHEMAS.get(ddl) or pa.schema([("a", TYPES[ddl.partition(" ")[2]])])


@pytest.mark.parametrize("case", ANSWERS["json_rows"], ids=lambda case: str(case["schema"]))
def test_json_rows(case: dict[str, Any]) -> None:
    """Spark's results are JSON as well. The reader under test reads them as one text of plain JSON."""
    schema = json_schema(case["schema"])
    spark = list(case["rows"])
    for line in OTHER_CASE.keys() & set(case["lines"]):
        spark[case["lines"].index(line)] = OTHER_CASE[line]  # each earlier line is one row
    for line in sorted(ONLY_SPARK & set(case["lines"]), key=case["lines"].index, reverse=True):
        del spark[case["lines"].index(line)]
        with pytest.raises(HoldfastError, match=r"a line is not JSON|use spark.read"):
            read("json", line, schema)
    given = [line for line in case["lines"] if line not in ONLY_SPARK]
    for lines in (given, given[::-1]):
        tables = [read("json", line, schema) for line in lines] or [read("json", "", schema)]
        rows = pa.concat_tables(tables[:: 1 if lines == given else -1])
        assert_same_rows(rows, "\n".join(spark), schema)


def assert_same_rows(found: pa.Table, spark: str, schema: pa.Schema) -> None:
    expected = read("json", spark, schema)
    assert repr(found.to_pylist()) == repr(expected.to_pylist())


@pytest.mark.parametrize(
    ("ddl", "line"), [(case["schema"], line) for case in ANSWERS["json_rows"] for line in case["refused"]]
)
def test_json_that_spark_would_read_as_null_is_refused(ddl: str, line: str) -> None:
    with pytest.raises(HoldfastError):
        read("json", line, json_schema(ddl))
