"""Columns that are asked for have to be the table's: else one column's values would be shown as another's (C12)."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast.errors import InvalidRequestError
from holdfast.table.contract import TableRecord
from holdfast.table.requested import require_known


def field(name: str, kind: Any) -> dict[str, Any]:
    return {"name": name, "type": kind, "nullable": True, "metadata": {}}


def struct(**fields: Any) -> dict[str, Any]:
    return {"type": "struct", "fields": [field(name, kind) for name, kind in fields.items()]}


def array(kind: Any) -> dict[str, Any]:
    return {"type": "array", "elementType": kind, "containsNull": True}


def a_map(key: Any, value: Any) -> dict[str, Any]:
    return {"type": "map", "keyType": key, "valueType": value, "valueContainsNull": True}


def table(kind: Any, file_format: str = "parquet") -> TableRecord:
    return TableRecord(fields=[field("a", kind), field("b", "string")], file_format=file_format)


VECTOR = {"type": "udt", "class": "x.Vector", "pyClass": "x.Vector", "sqlType": struct(x="double")}


@pytest.mark.parametrize(
    ("wanted", "known", "file_format"),
    [
        ("long", "long", "parquet"),
        ("long", "integer", "parquet"),
        ("decimal(12,2)", "decimal(10,2)", "orc"),
        ("string", "timestamp", "csv"),
        (array("string"), array("long"), "json"),
        ("string", "varchar(3)", "parquet"),
        (struct(x="long"), struct(x="integer", y="string"), "parquet"),
        (array(struct(X="double")), array(struct(x="float")), "parquet"),
        (a_map("long", "double"), a_map("integer", "float"), "parquet"),
        (struct(x="double"), VECTOR, "parquet"),
    ],
)
def test_a_column_that_holds_the_tables_exactly(wanted: Any, known: Any, file_format: str) -> None:
    require_known([field("A", wanted)], table(known, file_format))


@pytest.mark.parametrize(
    ("wanted", "known", "file_format", "path"),
    [
        ("integer", "long", "parquet", "a"),
        ("timestamp", "long", "parquet", "a"),
        ("string", "long", "parquet", "a"),
        ("double", "float", "csv", "a"),
        (struct(z="long"), struct(x="long"), "parquet", "a.z"),
        (struct(x="integer"), struct(x="long"), "parquet", "a.x"),
        (array("integer"), array("long"), "orc", "a.element"),
        (array("long"), "long", "parquet", "a"),
        (a_map("integer", "string"), a_map("long", "string"), "parquet", "a.key"),
        (a_map("string", "integer"), a_map("string", "long"), "parquet", "a.value"),
    ],
)
def test_another_column_is_refused(wanted: Any, known: Any, file_format: str, path: str) -> None:
    with pytest.raises(InvalidRequestError, match="build the DataFrame again") as refused:
        require_known([field("a", wanted)], table(known, file_format))
    assert refused.value.variables["column"] == path


def test_a_column_that_is_gone_is_refused() -> None:
    with pytest.raises(InvalidRequestError, match="the table has no such column"):
        require_known([field("c", "long")], table("long"))
