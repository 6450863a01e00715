"""Generate random jobs on one table: most of them fit, and some differ from the table in one respect."""

from __future__ import annotations

import datetime
from decimal import Decimal
from typing import Any

from hypothesis import strategies as st

from tests.property.table_model import Fields, Job

__all__ = ["FORMATS", "jobs"]

FORMATS = ("parquet", "orc", "csv", "json", "avro", "arrow")

_FAMILIES: dict[str, tuple[str, ...]] = {
    "n": ("int", "long", "byte", "short", "double", "string"),
    "f": ("float", "double"),
    "d": ("decimal(5,2)", "decimal(10,2)", "decimal(12,4)"),
    "t": ("string", "date", "timestamp_ntz"),
}
_VALUES: dict[str, tuple[Any, ...]] = {
    "byte": (0, -128, 127),
    "short": (1, -(2**15), 2**15 - 1),
    "int": (2, -(2**31), 2**31 - 1),
    "long": (3, -(2**63), 2**63 - 1),
    "float": (0.5, 0.10000000149011612, -0.0),
    "double": (0.1, 1e300, -0.0),
    "decimal(5,2)": (Decimal("1.50"), Decimal("-999.99")),
    "decimal(10,2)": (Decimal("2.25"), Decimal("99999999.99")),
    "decimal(12,4)": (Decimal("0.0001"), Decimal("-99999999.9999")),
    "string": ("a", 'say "b", c', "c:\\d", "é🎈"),
    "date": (datetime.date(2026, 1, 2), datetime.date(1969, 12, 31)),
    "timestamp_ntz": (datetime.datetime(2026, 3, 8, 2, 30), datetime.datetime(2026, 7, 2, 3, 4, 5, 6)),
}
_PARTITIONS: dict[str, tuple[Any, ...]] = {"p": ("x", "a b", None), "q": (1, 2)}
_OPTIONS = (
    (("header", "true"),),
    (("header", "false"),),
    (("header", "true"), ("sep", ";")),
    (("header", "true"), ("nullValue", "NULL")),
    (("header", "true"), ("quote", "'")),
)


def _type(draw: Any, name: str) -> Any:
    if name in _FAMILIES:
        return draw(st.sampled_from(_FAMILIES[name]))
    inner = tuple((one, draw(st.sampled_from(_FAMILIES[one]))) for one in draw(_some("nft")))
    struct = ("struct", inner or (("n", "int"),))
    return {"s": struct, "l": ("array", struct), "m": ("map", struct)}[name]


def _some(names: str) -> Any:
    return st.lists(st.sampled_from(names), unique=True, max_size=len(names))


def _value(draw: Any, kind: Any) -> Any:
    if draw(st.integers(0, 4)) == 4:
        return None
    if isinstance(kind, str):
        return draw(st.sampled_from(_VALUES[kind]))
    if kind[0] == "struct":
        return {name: _value(draw, one) for name, one in kind[1]}
    few = draw(st.integers(0, 2))
    if kind[0] == "array":
        return [_value(draw, kind[1]) for _ in range(few)]
    return {f"k{number}": _value(draw, kind[1]) for number in range(few)}


@st.composite
def jobs(draw: Any, most: int = 6) -> list[Job]:
    """Draw a sequence of jobs on one destination."""
    file_format = draw(st.sampled_from(FORMATS))
    nested = "" if file_format == "csv" else "slm"
    partition_by = tuple(draw(st.permutations("pq")))[: draw(st.integers(0, 2))]
    options = draw(st.sampled_from(_OPTIONS)) if file_format == "csv" else ()
    types = {name: _type(draw, name) for name in "nfdt" + nested}
    made = []
    for _ in range(draw(st.integers(2, most))):
        odd = draw(st.integers(0, 9))
        if odd == 0:
            file_format = draw(
                st.sampled_from([one for one in FORMATS if one != "csv" and not ("s" in types and one == "csv")])
            )
            options = ()
        layout = tuple(reversed(partition_by)) if odd == 1 else partition_by[1:] if odd == 2 else partition_by
        if odd == 3 and file_format == "csv":
            options = draw(st.sampled_from(_OPTIONS))
        names = [*draw(_some("nfdt" + nested)), *sorted({*partition_by, *draw(_some("pq"))})]
        here = {name: types[name] if name in types and draw(st.integers(0, 3)) else None for name in names}
        fields: list[tuple[str, Any]] = [("id", "long")]
        for name in names:
            kind = {"p": "string", "q": "int"}.get(name) or here[name] or _type(draw, name)
            fields.append((name.upper() if draw(st.integers(0, 5)) == 5 else name, kind))
        spelled = {name.lower(): name for name, _ in fields}
        made.append(
            Job(
                mode=draw(st.sampled_from(("append", "append", "append", "overwrite-partitions", "overwrite"))),
                fields=tuple(draw(st.permutations(fields))),
                rows=[_row(draw, tuple(fields)) for _ in range(draw(st.integers(0, 3)))],
                file_format=file_format,
                partition_by=tuple(spelled[name] for name in layout),
                options=options,
                merge=draw(st.booleans()),
                tasks=draw(st.integers(1, 2)),
            )
        )
    return made


def _row(draw: Any, fields: Fields) -> dict[str, Any]:
    row = {}
    for name, kind in fields:
        if name.lower() in _PARTITIONS:
            row[name] = draw(st.sampled_from(_PARTITIONS[name.lower()]))
        else:
            row[name] = draw(st.integers(0, 99)) if name == "id" else _value(draw, kind)
    return row
