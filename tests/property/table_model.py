"""Model a table as a list of rows, and define independently of the tested code which job may follow which.

Types are strings (``int``, ``decimal(5,2)``) or tuples: ``("struct", ((name, type), …))``, ``("array", type)``,
``("map", type)`` with strings as keys. Values are Python's; a float of type ``float`` is already rounded to single
precision.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Any

__all__ = ["Job", "RefusedError", "Table", "after", "ddl", "json_type", "plain", "shown"]

Type = Any
Fields = tuple[tuple[str, Type], ...]


class RefusedError(Exception):
    """The job must be refused."""


@dataclass(frozen=True)
class Job:
    """A write.

    Attributes:
        mode: ``append``, ``overwrite`` or ``overwrite-partitions``.
        fields: the columns of its rows.
        required: those that are declared NOT NULL; has no effect.
        rows: by column.
        layout: format, partition columns, reader options.
    """

    mode: str
    fields: Fields
    rows: Sequence[Mapping[str, Any]]
    file_format: str
    partition_by: tuple[str, ...] = ()
    options: tuple[tuple[str, str], ...] = ()
    merge: bool = False
    required: bool = False
    tasks: int = 1


@dataclass(frozen=True)
class Table:
    """What readers must find: rows by case-folded names, with values of the table's types."""

    fields: Fields
    file_format: str
    partition_by: tuple[str, ...]
    options: tuple[tuple[str, str], ...]
    rows: Sequence[Mapping[str, Any]] = field(default_factory=tuple)


def after(table: Table | None, job: Job) -> Table:
    """Return the table after the job.

    Raises:
        RefusedError: the job does not fit.
    """
    if job.mode == "overwrite-partitions" and not job.partition_by:
        raise RefusedError("there are no partitions")
    if table is None or job.mode == "overwrite":
        empty = Table(job.fields, job.file_format, job.partition_by, job.options)
        return replace(empty, rows=tuple(_converted(row, job.fields, job.fields) for row in job.rows))
    folded = tuple(name.lower() for name in table.partition_by)
    if (table.file_format, table.options) != (job.file_format, job.options):
        raise RefusedError("format")
    if folded != tuple(name.lower() for name in job.partition_by):
        raise RefusedError("partitioning")
    fields = _merged(table.fields, job.fields, job)
    types, before = _folded(fields), _folded(table.fields)
    if any(types[name] != before[name] for name in folded):
        raise RefusedError("a partition column's type")
    kept = tuple(_converted(row, table.fields, fields) for row in table.rows)
    new = tuple(_converted(row, job.fields, fields) for row in job.rows)
    if job.mode == "overwrite-partitions":
        written = {tuple(row[name] for name in folded) for row in new}
        kept = tuple(row for row in kept if tuple(row[name] for name in folded) not in written)
    return replace(table, fields=fields, rows=(*kept, *new))


def _folded(fields: Fields) -> dict[str, Type]:
    return {name.lower(): kind for name, kind in fields}


def _merged(known: Fields, given: Fields, job: Job) -> Fields:
    found = _folded(given)
    fields = []
    for name, kind in known:
        other = found.pop(name.lower(), None)
        fields.append((name, kind if other is None else _common(kind, other, job)))
    if found and not job.merge:
        raise RefusedError("a new column")
    return (*fields, *((name, kind) for name, kind in given if name.lower() in found))


def _common(known: Type, given: Type, job: Job) -> Type:
    if isinstance(known, tuple) and isinstance(given, tuple) and known[0] == given[0]:
        if known[0] == "struct":
            return ("struct", _merged(known[1], given[1], job))
        return (known[0], _common(known[1], given[1], job))
    if known == given or (_fits(given, known)):
        return known
    # Text does not distinguish a float from a double: existing values would become other numbers.
    in_text = job.file_format in ("csv", "json") and known == "float"
    if _fits(known, given) and job.merge and not in_text:
        return given
    raise RefusedError("a type")


_WIDER: Mapping[str, tuple[str, ...]] = {
    "byte": ("short", "int", "long", "double"),
    "short": ("int", "long", "double"),
    "int": ("long", "double"),
    "float": ("double",),
    "decimal(5,2)": ("decimal(10,2)", "decimal(12,4)"),
    "decimal(10,2)": ("decimal(12,4)",),
}


def _fits(narrow: Type, wide: Type) -> bool:
    return isinstance(narrow, str) and wide in _WIDER.get(narrow, ())


# --- values -----------------------------------------------------------------------------------------------------------
def _converted(row: Mapping[str, Any], given: Fields, fields: Fields) -> dict[str, Any]:
    values = {name.lower(): value for name, value in row.items()}
    types = _folded(given)
    return {
        name.lower(): _value(values.get(name.lower()), types.get(name.lower(), kind), kind) for name, kind in fields
    }


def _value(value: Any, given: Type, kind: Type) -> Any:
    if value is None:
        return None
    if isinstance(kind, tuple):
        if kind[0] == "struct":
            return _converted(value, given[1], kind[1])
        if kind[0] == "array":
            return [_value(one, given[1], kind[1]) for one in value]
        return {key: _value(one, given[1], kind[1]) for key, one in value.items()}
    if kind == "double":
        return float(value)
    if str(kind).startswith("decimal"):
        return Decimal(value).quantize(Decimal(1).scaleb(-int(kind[:-1].split(",")[1])))
    return value


def shown(row: Mapping[str, Any]) -> str:
    """Return a row as text for comparison: names folded and sorted, numbers with every digit."""

    def text(value: Any) -> Any:
        if isinstance(value, dict):
            return {name: text(one) for name, one in sorted(value.items())}
        if isinstance(value, list):
            return [text(one) for one in value]
        return str(value) if isinstance(value, Decimal) else value

    return repr(text({name.lower(): value for name, value in row.items()}))


def plain(value: Any, kind: Type) -> Any:
    """Convert a value from Arrow to the model's form: maps come as lists of pairs, and names are case-folded."""
    if value is None or isinstance(kind, str):
        return value
    if kind[0] == "struct":
        types = _folded(kind[1])
        return {name.lower(): plain(one, types[name.lower()]) for name, one in value.items()}
    if kind[0] == "array":
        return [plain(one, kind[1]) for one in value]
    return {key: plain(one, kind[1]) for key, one in value}


# --- types in Spark's notation ----------------------------------------------------------------------------------------
_JSON = {"int": "integer"}


def json_type(kind: Type, *, required: bool = False) -> Any:
    """Return the type as in the JSON of a Spark schema."""
    if isinstance(kind, str):
        return _JSON.get(kind, kind)
    if kind[0] == "struct":
        fields = [
            {"name": name, "type": json_type(one), "nullable": not required, "metadata": {}} for name, one in kind[1]
        ]
        return {"type": "struct", "fields": fields}
    if kind[0] == "array":
        return {"type": "array", "elementType": json_type(kind[1]), "containsNull": True}
    return {"type": "map", "keyType": "string", "valueType": json_type(kind[1]), "valueContainsNull": True}


def ddl(fields: Fields) -> str:
    """Return a schema as DDL."""
    return ", ".join(f"`{name}` {_sql(kind)}" for name, kind in fields)


def _sql(kind: Type) -> str:
    if isinstance(kind, str):
        return kind
    if kind[0] == "struct":
        return "struct<" + ", ".join(f"`{name}`: {_sql(one)}" for name, one in kind[1]) + ">"
    return f"array<{_sql(kind[1])}>" if kind[0] == "array" else f"map<string, {_sql(kind[1])}>"
