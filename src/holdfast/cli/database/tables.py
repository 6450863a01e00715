"""Show what is known about tables."""

from __future__ import annotations

from holdfast.records import Table
from holdfast.records.tables import ALL_VERSIONS


def history_form(table: Table) -> int | str:
    """Return how many values of each cell are kept: a number, or ``all``."""
    return "all" if table.history == ALL_VERSIONS else table.history


def history_text(table: Table) -> str:
    """Return the same for a person."""
    return str(history_form(table)) if table.history else "none"
