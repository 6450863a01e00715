"""Define units and the functions that they call."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import date, time, timedelta
from decimal import Decimal
from typing import Any, TypeAlias

from holdfast.errors import InvalidRequestError
from holdfast.records.row_keys import Row, encode_row

UnitFunction: TypeAlias = "Callable[..., object]"
"""Takes a `UnitTransaction`, a key and a value."""

Cell: TypeAlias = "tuple[str, Row] | tuple[str, Row, str]"
"""Table, row and perhaps column."""

UnitReads: TypeAlias = "Callable[[Any, Any], Iterable[Cell]]"
"""Takes a key and a value, and names cells that the unit will read."""

MAX_ID_BYTES = 32 * 1024
"""The ids of all units that are put off are part of one record."""

_MOST_SHOWN, _MOST_PARTS = 100, 8
"""Of a key in a message: characters or bytes of a part, and parts."""

_IMMUTABLE = (str, bytes, int, float, bool, complex, type(None), Decimal, date, time, timedelta)


@dataclass(frozen=True, slots=True)
class Unit:
    """One call of a function.

    Attributes:
        key: identifies the unit in its job.
        id: the key as bytes, which sort as the keys do.
    """

    key: Row
    id: bytes
    _value: object = field(repr=False)
    _pickled: bytes | None = field(default=None, repr=False)

    @staticmethod
    def of(key: Row, value: object, unit_id: bytes | None = None) -> Unit:
        """Return a unit.

        Args:
            unit_id: what identifies it in its task, if the key alone does not.

        Raises:
            InvalidRequestError: the key is no text, integer, bytes or tuple of these, it is too long, or the value
                cannot be copied.
        """
        if unit_id is None:
            unit_id = id_of(key)
        if _is_immutable(value):
            return Unit(key, unit_id, value)
        try:
            return Unit(key, unit_id, None, pickle.dumps(value, 5))
        except Exception as error:
            raise InvalidRequestError(
                "the value of a unit cannot be copied for each run: pass plain values, such as lists or dictionaries",
                unit=shown_key(key),
                type=type(value).__name__,
            ) from error

    @property
    def value(self) -> object:
        """The value: a copy each time, if a function could change it. Every run of the unit gets the same."""
        return self._value if self._pickled is None else pickle.loads(self._pickled)


def id_of(key: Row) -> bytes:
    """Return the key of a unit as bytes, which sort as keys do.

    Raises:
        InvalidRequestError: the key is no text, integer, bytes or tuple of these, or it is too long.
    """
    unit_id = encode_row(key)
    if len(unit_id) > MAX_ID_BYTES:
        raise InvalidRequestError(
            f"the key of a unit is limited to {MAX_ID_BYTES} bytes: use a digest of it", bytes=len(unit_id)
        )
    return unit_id


def shown_key(key: Row) -> Row:
    """Return a key for a message: without the ends of long texts, which would hide the rest of it."""
    if isinstance(key, tuple):
        shown: tuple[Any, ...] = tuple(map(shown_key, key[:_MOST_PARTS]))
        return shown if len(key) <= _MOST_PARTS else (*shown, "…")
    if isinstance(key, str) and len(key) > _MOST_SHOWN:
        return f"{key[:_MOST_SHOWN]}…"
    if isinstance(key, bytes) and len(key) > _MOST_SHOWN:
        return key[:_MOST_SHOWN] + b"..."
    return key


def _is_immutable(value: object) -> bool:
    if isinstance(value, tuple):
        return all(map(_is_immutable, value))
    return isinstance(value, _IMMUTABLE)
