"""What an append may change (C12): one rule, over all pairs of types, formats and layouts."""

from __future__ import annotations

import json
from typing import Any

import pytest

from holdfast.errors import ConflictError, CorruptDataError, InvalidRequestError
from holdfast.formats import get_format
from holdfast.table.contract import TableRecord, decode_table, merge_append, require_columns
from holdfast.table.widening import AppendRules, can_represent_without_loss, merge_types, type_text


def field(name: str, kind: Any, **metadata: Any) -> dict[str, Any]:
    return {"name": name, "type": kind, "nullable": True, "metadata": metadata}


def table(*fields: dict[str, Any], file_format: str = "parquet", **layout: Any) -> TableRecord:
    return TableRecord(fields=list(fields), file_format=file_format, **layout)


BASE = table(field("id", "long"), field("name", "string"), field("day", "date"), partition_by=("day",))


def columns(found: TableRecord) -> dict[str, str]:
    return {one["name"]: type_text(one["type"]) for one in found.fields}


# --- columns ----------------------------------------------------------------------------------------------------------
def test_the_same_columns_change_nothing() -> None:
    assert merge_append(BASE, BASE, merge=False) == BASE
    assert merge_append(BASE, BASE, merge=False, written=True) == BASE


def test_order_and_case_of_names_do_not_matter_and_the_table_keeps_its_own() -> None:
    given = table(field("DAY", "date"), field("Name", "string"), field("ID", "long"), partition_by=("DAY",))
    assert merge_append(BASE, given, merge=False) == BASE


def test_a_column_may_be_left_out_and_stays() -> None:
    given = table(field("id", "long"), field("day", "date"), partition_by=("day",))
    assert merge_append(BASE, given, merge=False) == BASE


def test_a_new_column_needs_merge_and_goes_behind() -> None:
    given = table(field("new", "double"), field("id", "long"), field("day", "date"), partition_by=("day",))
    with pytest.raises(InvalidRequestError, match=r"no such column.*mergeSchema=true.*new"):
        merge_append(BASE, given, merge=False)
    assert list(columns(merge_append(BASE, given, merge=True))) == ["id", "name", "day", "new"]


@pytest.mark.parametrize(
    ("known", "given", "after", "after_with_merge"),
    [
        ("long", "integer", "bigint", "bigint"),
        ("integer", "long", None, "bigint"),
        ("byte", "short", None, "smallint"),
        ("double", "float", "double", "double"),
        ("float", "double", None, "double"),
        ("integer", "double", None, "double"),
        ("double", "integer", "double", "double"),
        ("double", "long", None, None),
        ("long", "double", None, None),
        ("float", "integer", None, None),
        ("decimal(10,2)", "decimal(8,2)", "decimal(10,2)", "decimal(10,2)"),
        ("decimal(8,2)", "decimal(10,4)", None, "decimal(10,4)"),
        ("decimal(10,2)", "decimal(10,4)", None, None),
        ("decimal(10,2)", "decimal(11,2)", None, "decimal(11,2)"),
        ("decimal(10,2)", "decimal(10,3)", None, None),
        ("decimal(10,2)", "decimal(10,1)", None, None),
        ("decimal(10,2)", "decimal(9,1)", "decimal(10,2)", "decimal(10,2)"),
        ("string", "integer", None, None),
        ("integer", "string", None, None),
        ("date", "timestamp", None, None),
        ("date", "timestamp_ntz", None, None),
        ("timestamp", "timestamp_ntz", None, None),
        ("binary", "string", None, None),
        ("string", "void", "string", "string"),
        ("void", "string", None, None),
    ],
)
@pytest.mark.parametrize("wrap", ["plain", "struct", "array", "map"])
def test_types(known: str, given: str, after: str | None, after_with_merge: str | None, wrap: str) -> None:
    def wrapped(kind: str) -> Any:
        return {
            "plain": kind,
            "struct": {"type": "struct", "fields": [field("f", kind)]},
            "array": {"type": "array", "elementType": kind, "containsNull": True},
            "map": {"type": "map", "keyType": "string", "valueType": kind, "valueContainsNull": True},
        }[wrap]

    def shown(kind: str) -> str:
        return {"plain": kind, "struct": f"struct<f:{kind}>", "array": f"array<{kind}>", "map": f"map<string,{kind}>"}[
            wrap
        ]

    for merge, wanted in ((False, after), (True, after_with_merge)):
        pair = table(field("c", wrapped(known))), table(field("c", wrapped(given)))
        if wanted is None:
            with pytest.raises(InvalidRequestError, match="another type in the table"):
                merge_append(*pair, merge=merge)
        else:
            assert columns(merge_append(*pair, merge=merge)) == {"c": shown(wanted)}


@pytest.mark.parametrize("kind", ["string", "long", {"type": "array", "elementType": "long", "containsNull": True}])
def test_files_of_nulls_without_a_type_are_read_as_another_type_only_where_readers_can(kind: Any) -> None:
    """Spark cannot read a Parquet file's void column as text, a long, an array, …"""

    def pair(file_format: str) -> tuple[TableRecord, TableRecord]:
        return table(field("c", "void"), file_format=file_format), table(field("c", kind), file_format=file_format)

    void, typed = pair("json")
    assert merge_append(void, typed, merge=True) == merge_append(typed, void, merge=False, written=True) == typed
    void, typed = pair("parquet")
    assert merge_append(typed, void, merge=False) == typed  # cast before they are written
    with pytest.raises(InvalidRequestError, match="another type in the table: cast it, or use mode overwrite"):
        merge_append(void, typed, merge=True)
    with pytest.raises(ConflictError):
        merge_append(typed, void, merge=True, written=True)


def test_what_is_there_and_what_helps_is_said() -> None:
    with pytest.raises(InvalidRequestError) as error:
        merge_append(BASE, table(field("id", "string"), field("day", "date"), partition_by=("day",)), merge=True)
    assert "column='id'" in str(error.value) and "table='bigint'" in str(error.value)
    assert "given='string'" in str(error.value) and "mergeSchema" not in str(error.value)


def test_fields_of_structs_are_columns_too() -> None:
    def of(*fields: dict[str, Any]) -> TableRecord:
        return table(field("s", {"type": "struct", "fields": list(fields)}))

    known, given = of(field("a", "long"), field("b", "string")), of(field("B", "string"), field("c", "date"))
    with pytest.raises(InvalidRequestError, match=r"no such column.*s\.c"):
        merge_append(known, given, merge=False)
    assert columns(merge_append(known, given, merge=True)) == {"s": "struct<a:bigint,b:string,c:date>"}


def test_a_collation_is_part_of_the_type() -> None:
    collated = field("c", "string", __COLLATIONS={"c": "icu.UNICODE_CI"})
    with pytest.raises(InvalidRequestError, match="another type"):
        merge_append(table(field("c", "string")), table(collated), merge=True)
    assert merge_append(table(collated), table(collated), merge=False).fields == [collated]


def test_holds_is_an_order() -> None:
    """Reflexive and transitive over all types, so that the order of appends does not matter."""
    kinds = ["byte", "short", "integer", "long", "float", "double", "decimal(8,2)", "decimal(10,2)", "decimal(10,4)"]
    kinds += ["string", "date", "void"]
    assert all(can_represent_without_loss(kind, kind) for kind in kinds)
    for a in kinds:
        for b in kinds:
            for c in kinds:
                if can_represent_without_loss(a, b) and can_represent_without_loss(b, c):
                    assert can_represent_without_loss(a, c), (a, b, c)


# --- text does not tell a float from a double -------------------------------------------------------------------------
@pytest.mark.parametrize("file_format", ["csv", "json"])
def test_files_of_floats_are_never_read_as_doubles_from_text(file_format: str) -> None:
    floats, doubles = (
        table(field("c", "float"), file_format=file_format),
        table(field("c", "double"), file_format=file_format),
    )
    with pytest.raises(InvalidRequestError, match="another type"):
        merge_append(floats, doubles, merge=True)
    assert merge_append(doubles, floats, merge=False) == doubles  # cast before they are written
    with pytest.raises(ConflictError):
        merge_append(doubles, floats, merge=True, written=True)
    rules = AppendRules(file_format=get_format("parquet"), merge=True, written=True)
    assert merge_types("c", "float", "double", rules) == "double"


# --- layout -----------------------------------------------------------------------------------------------------------
def test_another_format_partitioning_or_option_is_refused_with_what_is_there() -> None:
    with pytest.raises(InvalidRequestError, match=r"another file format.*table='parquet'"):
        merge_append(BASE, table(*BASE.fields, file_format="csv", partition_by=("day",)), merge=True)
    for partition_by in ((), ("name",), ("day", "name"), ("name", "day")):
        with pytest.raises(InvalidRequestError, match="other partition columns"):
            merge_append(BASE, table(*BASE.fields, partition_by=partition_by), merge=True)
    csv = table(field("a", "long"), file_format="csv", reader_options={"header": "true", "sep": ","})
    other = table(field("a", "long"), file_format="csv", reader_options={"header": "true", "sep": ";"})
    with pytest.raises(InvalidRequestError, match=r"another sep.*table=','"):
        merge_append(csv, other, merge=True)
    silent = table(field("a", "long"), file_format="csv", reader_options={"header": "true"})
    for pair in ((csv, silent), (silent, csv)):
        with pytest.raises(InvalidRequestError, match="another sep"):
            merge_append(*pair, merge=True)


def test_the_order_of_partition_columns_is_part_of_the_layout() -> None:
    """``day=1/name=a`` beside ``name=a/day=1`` is no table to Spark."""
    known, turned = (table(*BASE.fields, partition_by=names) for names in (("day", "name"), ("name", "day")))
    for written, refusal in ((False, InvalidRequestError), (True, ConflictError)):
        with pytest.raises(refusal):
            merge_append(known, turned, merge=True, written=written)


def test_partition_columns_keep_their_type_and_have_to_be_there() -> None:
    known = table(field("id", "long"), field("k", "integer"), partition_by=("k",))
    with pytest.raises(InvalidRequestError, match="the type of a partition column cannot change"):
        merge_append(known, table(field("id", "long"), field("k", "long"), partition_by=("k",)), merge=True)
    narrow = table(field("id", "long"), field("k", "short"), partition_by=("k",))
    assert merge_append(known, narrow, merge=False) == known


# --- in the decision --------------------------------------------------------------------------------------------------
def test_what_another_job_changed_meanwhile_is_a_conflict() -> None:
    with pytest.raises(ConflictError, match="another job changed the table in the meantime"):
        merge_append(BASE, table(*BASE.fields, file_format="csv", partition_by=("day",)), merge=True, written=True)


def test_files_by_position_are_the_first_columns_of_the_table() -> None:
    """Two jobs that each add a column to CSV at one time: the second one's would be read as the first one's."""
    known = table(field("a", "long"), field("b", "long"), file_format="csv")
    assert merge_append(known, table(field("a", "long"), file_format="csv"), merge=False, written=True) == known
    with pytest.raises(ConflictError):
        merge_append(known, table(field("a", "long"), field("c", "long"), file_format="csv"), merge=True, written=True)
    with pytest.raises(ConflictError):
        merge_append(known, table(field("b", "long"), field("a", "long"), file_format="csv"), merge=False, written=True)
    shouted = table(field("A", "long"), field("B", "long"), file_format="csv")
    assert merge_append(known, shouted, merge=False, written=True) == known, "names are the same in any case"
    parquet = merge_append(
        table(field("a", "long"), field("b", "long")),
        table(field("a", "long"), field("c", "long")),
        merge=True,
        written=True,
    )
    assert list(columns(parquet)) == ["a", "b", "c"]


# --- the record -------------------------------------------------------------------------------------------------------
def test_the_record_survives_the_log() -> None:
    record = table(*BASE.fields, partition_by=("day",), reader_options={"header": "true"}, file_format="csv")
    assert decode_table(json.loads(json.dumps(record.encode()))) == record


@pytest.mark.parametrize(
    "change",
    [
        {"schema": 1},
        {"schema": "{"},
        {"schema": '{"fields": [1]}'},
        {"schema": "[]"},
        {"schema": '{"fields": [{"name": "a", "type": 1}]}'},
        {"schema": '{"fields": [{"name": "a", "type": {"type": "struct"}}]}'},
        {"schema": '{"fields": [{"name": "a", "type": {"type": "array", "elementType": {"type": "map"}}}]}'},
        {"schema": '{"fields": [{"name": "a", "type": "string", "metadata": 1}]}'},
        {"schema": '{"fields": [{"name": "a", "type": ' + '{"type": "array", "elementType": ' * 999 + "1" + "}" * 999},
        {"format": None},
        {"format_options": []},
        {"partition_by": "day"},
        {"partition_by": ["nothing"]},
    ],
)
def test_a_record_that_cannot_be_read_is_named_corrupt(change: dict[str, Any]) -> None:
    """What comes from a store is data."""
    with pytest.raises(CorruptDataError, match="cannot be read"):
        decode_table({**BASE.encode(), **change})


def column_of(name: str, kind: Any) -> dict[str, Any]:
    return {"name": name, "type": kind, "nullable": True, "metadata": {}}


def struct(**fields: Any) -> dict[str, Any]:
    return {"type": "struct", "fields": [column_of(name, kind) for name, kind in fields.items()]}


def array(kind: Any) -> dict[str, Any]:
    return {"type": "array", "elementType": kind, "containsNull": True}


def a_map(key: Any, value: Any) -> dict[str, Any]:
    return {"type": "map", "keyType": key, "valueType": value, "valueContainsNull": True}


def table_of(kind: Any, file_format: str = "parquet") -> TableRecord:
    return TableRecord(fields=[column_of("a", kind), column_of("b", "string")], file_format=file_format)


VECTOR = {"type": "udt", "class": "x.Vector", "pyClass": "x.Vector", "sqlType": struct(x="double")}


@pytest.mark.parametrize(
    ("wanted", "known", "file_format"),
    [
        ("long", "long", "parquet"),
        ("long", "integer", "parquet"),
        ("decimal(12,2)", "decimal(10,2)", "orc"),
        ("string", "varchar(3)", "parquet"),
        (struct(x="long"), struct(x="integer", y="string"), "parquet"),
        (array(struct(X="double")), array(struct(x="float")), "parquet"),
        (a_map("long", "double"), a_map("integer", "float"), "parquet"),
        (struct(x="double"), VECTOR, "parquet"),
    ],
)
def test_a_column_that_holds_the_tables_exactly(wanted: Any, known: Any, file_format: str) -> None:
    require_columns([column_of("A", wanted)], table_of(known, file_format))


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
        require_columns([column_of("a", wanted)], table_of(known, file_format))
    assert refused.value.variables["column"] == path


def test_a_column_that_is_gone_is_refused() -> None:
    with pytest.raises(InvalidRequestError, match="the table has no such column"):
        require_columns([column_of("c", "long")], table_of("long"))
