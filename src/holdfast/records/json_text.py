"""Read JSON that others have written, exactly or not at all."""

from __future__ import annotations

import json
import math
from decimal import Decimal
from typing import Any

from holdfast.errors import InvalidRequestError


def parse_json(text: str) -> bool | list[Any] | dict[str, Any]:
    """Return the value of a JSON text.

    Guarantee: it says what the text says: Python's own parser rounds numbers, and drops keys that occur twice.

    Raises:
        InvalidRequestError: it is no JSON, a number or a text alone, or no value is equal to it.
    """
    try:
        value: object = json.loads(
            text, parse_float=_exact_float, parse_constant=_refuse_constant, object_pairs_hook=_object
        )
    except InvalidRequestError:
        raise
    except (ValueError, RecursionError) as error:
        raise InvalidRequestError("the value is no JSON: check its quotes and brackets") from error
    if not isinstance(value, bool | list | dict):
        raise InvalidRequestError(
            "a JSON value is a list, an object, true or false: database texts and numbers with types of their own"
        )
    return value


def _exact_float(text: str) -> float:
    number = float(text)
    if not math.isfinite(number) or not _is_equal(number, text):
        raise InvalidRequestError(
            "a number in JSON has more digits than a float keeps: round it, or write it as a text", number=text
        )
    return number


def _is_equal(number: float, text: str) -> bool:
    """Check whether the shortest text of a float is the given number, perhaps with other zeros."""
    try:
        return Decimal(repr(number)) == Decimal(text)
    except ArithmeticError:  # an exponent beyond those of decimals
        return False


def _refuse_constant(name: str) -> None:
    raise InvalidRequestError("JSON has no infinities and no NaN: use null, or another type", number=name)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in pairs:
        if name in found:
            raise InvalidRequestError("an object in JSON has a key twice: leave one of them out", key=name)
        found[name] = value
    return found
