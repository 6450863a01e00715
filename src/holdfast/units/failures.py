"""Word the failures of units."""

from __future__ import annotations

import os
import traceback
from pathlib import Path

from holdfast.errors import HoldfastError, InvalidRequestError, NotFoundError
from holdfast.records.keys import cell_of, table_name_of, tables_range
from holdfast.records.kinds import CELL
from holdfast.units.unit import Unit, shown_key

_MOST_CHARACTERS = 300
_PACKAGE = f"{Path(__file__).parents[1]}{os.sep}"


def unit_failed(error: BaseException, unit: Unit) -> InvalidRequestError:
    """Return the error that a unit's function has failed with another error."""
    found = InvalidRequestError(
        f"the function of a unit failed, nothing of the unit was written: {_advice(error)}",
        error=_told(error)[:_MOST_CHARACTERS],
        **_place_of(error),
        unit=shown_key(unit.key),
    )
    found.__cause__ = error
    return found


def _advice(error: BaseException) -> str:
    if isinstance(error, NotFoundError) and "table" in error.variables:  # nobody knows whether it was there before
        return (
            "mend it, or create the table; if it was dropped since the job began, write again what units that are done "
            "had put there, since they do not run again"
        )
    return "mend it"


def _told(error: BaseException) -> str:
    if isinstance(error, HoldfastError):
        return str(error)
    kind = type(error).__name__
    try:
        return f"{kind}: {error}".rstrip(": ")
    except Exception:  # noqa: BLE001 # an error whose text cannot be made must not hide which unit has failed
        return kind


def _place_of(error: BaseException) -> dict[str, str]:
    """Return the line of the function's file in which the error occurred; what it called elsewhere does not help."""
    frames = [(frame.f_code, line) for frame, line in traceback.walk_tb(error.__traceback__)]
    theirs = [one for one in frames if not one[0].co_filename.startswith(_PACKAGE)]
    # An alarm may ring at an instruction that the compiler has added, which is on no line.
    own = [
        f"{code.co_filename}:{line or code.co_firstlineno}"
        for code, line in theirs
        if code.co_filename == theirs[0][0].co_filename
    ]
    return {"at": own[-1]} if own else {}


def shown_cell(key: bytes) -> str:
    """Return how a record is shown in a message."""
    first, last = tables_range()
    if key.startswith(CELL):
        row, column = cell_of(key)
        return f"row {row!r}, column {column!r}"
    if first <= key < last:
        return f"rows of table {table_name_of(key)!r}"
    return repr(key)
