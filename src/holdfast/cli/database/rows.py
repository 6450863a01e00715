"""Open the database that a command names; parse how users write rows; show rows and values.

In JSON, texts, integers, floats, booleans, lists and dictionaries are what they are, and a row that is a tuple is a
list. Everything else is a dictionary with one name that begins with ``$``: ``{"$bytes": base64}``, ``{"$array": base64,
"dtype": …, "shape": […]}``, ``{"$float": "nan"}`` (or ``inf``, ``-inf``), ``{"$int": "0x…"}`` for integers of more than
4,000 digits, and ``{"$json": …}`` for a dictionary of the user that has such a name.
"""

from __future__ import annotations

import base64
import json
import math
import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any

from holdfast.cli.arguments import WordChoice, refuse_empty_value, refuse_password
from holdfast.cli.command import CommandRun, argument, option
from holdfast.errors import InvalidRequestError, NotFoundError

if TYPE_CHECKING:
    from holdfast.records import Database, Row
    from holdfast.records import Table as Definition
    from holdfast.records.row_keys import Part
    from holdfast.records.values import Value

_VARIABLE_PREFIX = "HOLDFAST_DATABASE_"
_MOST_DIGITS = 4000
_LARGEST_DECIMAL_BITS = 14_000
_MOST_ELEMENTS = 16
_ROW_TYPES = "How rows are given: text, int, or json for tuples."

Table = Annotated[str, argument()]
Key = Annotated[str, argument("ROW", type=refuse_empty_value)]
RowType = Annotated[str, option("--row-type", _ROW_TYPES, type=WordChoice(["text", "int", "json"]), default="text")]


# --- databases --------------------------------------------------------------------------------------------------------
def open_given_database(run: CommandRun, given: str, *, create: bool = False) -> Database:
    """Open a database, and close it at the end of the command.

    Args:
        given: a URL, or a NAME whose variable ``HOLDFAST_DATABASE_<NAME>`` contains the URL.
        create: whether to create what Holdfast needs in the database.

    Raises:
        HoldfastError: see `holdfast.records.open_database`; or the URL contains a password (which the message does not
            show), or is ``memory://``, which no other process can open.
    """
    from holdfast.records import open_database

    url = _resolve_database_url(given)
    if url.startswith("memory://"):
        raise InvalidRequestError("memory:// exists in one process only, and ends with this command: name a database")
    try:
        return run.closing.enter_context(open_database(url, create=create))
    except NotFoundError as error:
        if create:
            raise
        what = error.message.partition(":")[0]
        hint = "check the url, or make the database with holdfast database create"
        raise NotFoundError(f"{what}: {hint}", **error.variables) from error


def _resolve_database_url(given: str) -> str:
    if "://" not in given and not given.startswith("sqlite:"):  # if its slashes are missing, the error says so
        return _read_url_variable(given)
    refuse_password(given, f"{_VARIABLE_PREFIX}SHOP, and give shop in its place")
    return given


def _read_url_variable(name: str) -> str:
    if not name.replace("-", "_").isidentifier():
        raise InvalidRequestError(
            "a database is named by its url: write sqlite:///directory/file.db for a file",
            given="(not shown, it may hold a password)" if "@" in name else name,
        )
    variable = _VARIABLE_PREFIX + name.upper().replace("-", "_")
    url = os.environ.get(variable, "")
    if "://" not in url:  # not shown: it may hold a password
        raise InvalidRequestError(
            f"no such database: give its url, such as sqlite:///directory/file.db, or set {variable} to it",
            given=name,
        )
    return url


# --- rows -------------------------------------------------------------------------------------------------------------
def parse_row(text: str, kind: str, *, is_prefix: bool = False) -> Row:
    """Parse a row (the key of a row of cells) that a user typed, as a value of the type `kind`."""
    if kind == "int":
        return parse_integer(text, "row")
    return parse_json_row(text, is_prefix=is_prefix) if kind == "json" else text


def parse_integer(text: str, what: str) -> int:
    """Parse a decimal integer.

    Args:
        what: what the integer is, for the error.

    Raises:
        InvalidRequestError: the text is not an integer, or has more than 4,000 digits.
    """
    digits = text[1:] if text[:1] in ("+", "-") else text
    if not digits.isascii() or not digits.isdigit() or len(digits) > _MOST_DIGITS:
        raise InvalidRequestError(f"the {what} is not an integer: write digits, at most {_MOST_DIGITS:,}", given=text)
    return int(text)


# --- JSON -------------------------------------------------------------------------------------------------------------
def row_key_to_json(row: Row) -> object:
    """Convert the key of a row to a JSON value, as described at the top of this module."""
    if isinstance(row, tuple):
        return [row_key_to_json(part) for part in row]
    return cell_value_to_json(row)


def cell_value_to_json(value: Value) -> object:
    """Convert the value of a cell to a JSON value, as described at the top of this module."""
    if isinstance(value, bytes):
        return {"$bytes": base64.b64encode(value).decode("ascii")}
    if isinstance(value, bool | str | list):
        return value
    if isinstance(value, int):
        return value if value.bit_length() <= _LARGEST_DECIMAL_BITS else {"$int": hex(value)}
    if isinstance(value, float):
        return value if math.isfinite(value) else {"$float": str(value)}
    if isinstance(value, dict):
        return {"$json": value} if any(name.startswith("$") for name in value) else value
    return {
        "$array": base64.b64encode(value.tobytes()).decode("ascii"),
        "dtype": value.dtype.str,
        "shape": list(value.shape),
    }


def json_row_with_values(row: Row, columns: Mapping[str, Value]) -> dict[str, object]:
    """Convert a row and the values of its cells, by column, to one JSON object."""
    return {
        "row": row_key_to_json(row),
        "columns": {name: cell_value_to_json(value) for name, value in columns.items()},
    }


def dump_json_line(form: object) -> str:
    """Serialize a JSON value to text on one line."""
    return json.dumps(form, ensure_ascii=False)


def parse_json_row(text: str, *, is_prefix: bool = False) -> Row:
    """Parse JSON text into the key of a row.

    Args:
        is_prefix: whether a list is the beginning of a tuple, however short.

    Raises:
        InvalidRequestError: the text is not a row in JSON.
    """
    try:
        form = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InvalidRequestError("""the row is not JSON: write it as '["user1", 5]'""", row=text) from error
    if not isinstance(form, list):
        return _parse_row_part(form, text)
    parts = tuple(_parse_row_part(one, text) for one in form)
    return parts[0] if len(parts) == 1 and not is_prefix else parts


def _parse_row_part(form: Any, text: str) -> Part:
    if isinstance(form, str | int) and not isinstance(form, bool):
        return form
    if isinstance(form, dict) and list(form) == ["$bytes"] and isinstance(form["$bytes"], str):
        try:
            return base64.b64decode(form["$bytes"], validate=True)
        except ValueError as error:
            raise InvalidRequestError("the bytes of the row are not base64: change them", row=text) from error
    raise InvalidRequestError(
        """a row in JSON consists of texts, integers and {"$bytes": "…"}: write it as '["user1", 5]'""", row=text
    )


# --- for people -------------------------------------------------------------------------------------------------------
def format_row_key(row: Row) -> str:
    """Format the key of a row for a person: as JSON, except for text that cannot be mistaken for JSON."""
    return row if isinstance(row, str) and parse_row_if_json(row) is None else dump_json_line(row_key_to_json(row))


def parse_row_if_json(text: str) -> Row | None:
    """Return the row key that a text encodes in JSON, or None if it encodes none."""
    try:
        return parse_json_row(text)
    except InvalidRequestError:
        return None


def format_cell_value(value: Value) -> str:
    """Format the value of a cell for a person: bytes in hexadecimal, long arrays by their shape."""
    if isinstance(value, str):
        return value
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, bool | list | dict):
        return dump_json_line(value)
    if isinstance(value, int):
        return str(value) if value.bit_length() <= _LARGEST_DECIMAL_BITS else hex(value)
    if isinstance(value, float):
        return str(value)
    if value.size > _MOST_ELEMENTS:
        return f"{value.dtype} array of {' x '.join(map(str, value.shape))}"
    return f"{value.dtype} {value.tolist()}"


def type_name(value: Value) -> str:
    """Return the name that the command line uses for the type of a cell's value, such as ``int``."""
    if isinstance(value, bool | list | dict):
        return "json"
    names = {bytes: "bytes", str: "text", int: "int", float: "float"}
    return names.get(type(value), "array")


def hint_at_row_of_other_type(database: Database, table: str, row: Row) -> str:
    """Return a hint, for an error about a missing row, that the table has a row of another type with the same text.

    An example is the integer 3 instead of the text "3". The hint is empty if the table has no such row.
    """
    other = parse_row_if_json(row) if isinstance(row, str) else dump_json_line(row_key_to_json(row))
    try:
        if other is None or not database.transact(lambda cells: cells.columns(table, other)):
            return ""
    except InvalidRequestError:  # no row can have the name
        return ""
    kind = "text" if not isinstance(row, str) else "int" if isinstance(other, int) else "json"
    return f"the table has the row {format_row_key(other)} of another type, see --row-type {kind}"


def history_limit(table: Definition) -> int | str:
    """Return how many earlier values of each cell a table keeps: a number, or ``all``."""
    from holdfast.records.tables import ALL_VERSIONS

    return "all" if table.history == ALL_VERSIONS else table.history


def history_text(table: Definition) -> str:
    """Format how many earlier values of each cell a table keeps, for a person."""
    return str(history_limit(table)) if table.history else "none"
