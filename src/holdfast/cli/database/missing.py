"""Say why a row is missing: perhaps the table has one of another type that looks the same."""

from __future__ import annotations

from holdfast.cli.database.forms import json_row, json_text, row_in_text, row_text
from holdfast.records import Database, Row


def look_alike(database: Database, table: str, row: Row) -> str:
    """Return a clause that names the row with the same characters and another type, such as the integer 3 for the text.

    It is empty if the table has no such row.
    """
    other = row_in_text(row) if isinstance(row, str) else json_text(json_row(row))
    if other is None or not database.transact(lambda cells: cells.columns(table, other)):
        return ""
    kind = "text" if not isinstance(row, str) else "int" if isinstance(other, int) else "json"
    return f"the table has the row {row_text(other)} of another type, see --row-type {kind}"
