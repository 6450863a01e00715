"""Word the failures of units."""

from __future__ import annotations

import traceback

from holdfast.errors import HoldfastError, InvalidRequestError
from holdfast.records.keys import cell_of
from holdfast.units.unit import Unit

__all__ = ["shown_cell", "unit_failed"]

_MOST_CHARACTERS = 300


def unit_failed(error: Exception, unit: Unit, job: str) -> InvalidRequestError:
    """Return the error that a unit's function has failed with another error."""
    if isinstance(error, HoldfastError):
        told = str(error)
    else:
        told = f"{type(error).__name__}: {error}".rstrip(": ")
    frames = traceback.extract_tb(error.__traceback__)
    place = (
        {"at": f"{frames[-1].filename}:{frames[-1].lineno}"} if frames and not isinstance(error, HoldfastError) else {}
    )
    found = InvalidRequestError(
        "the function of a unit failed, nothing of the unit was written: mend it, then run the job again"
        " with this name",
        unit=unit.key,
        job=job,
        error=told[:_MOST_CHARACTERS],
        **place,
    )
    found.__cause__ = error
    return found


def shown_cell(key: bytes) -> str:
    """Return how a record is shown in a message."""
    if key[:2] == b"Sc":
        row, column = cell_of(key)
        return f"row {row!r}, column {column!r}"
    return repr(key)
