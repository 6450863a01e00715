"""Parse the row conditions of a read from Python values or from text. `holdfast.spark.filters` applies them."""

from __future__ import annotations

import datetime
import json
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal

from holdfast.errors import InvalidRequestError

OPERATORS = ("=", "!=", "<", "<=", ">", ">=", "in")


@dataclass(frozen=True)
class Condition:
    """The condition ``column operator value``. A null does not meet any condition, and NaN meets only ``!=``."""

    column: str
    operator: str
    value: object


def parse_conditions(text: str) -> tuple[Condition, ...]:
    """Parse the option ``filters``: JSON such as ``[["month", "=", 1], ["day", "in", [1, 2]]]``.

    Raises:
        InvalidRequestError: the text is not a list of conditions; the message shows an example.
    """
    try:
        triples = json.loads(text)
        return tuple(_condition(*triple) for triple in triples)
    except (ValueError, TypeError) as error:
        if isinstance(error, InvalidRequestError):
            raise
        raise InvalidRequestError(
            'not a list of conditions: write [["month", "=", 1], ["day", "in", [1, 2]]]'
        ) from error


def _condition(column: object, operator: object, value: object) -> Condition:
    if operator not in OPERATORS:
        raise InvalidRequestError(f"no such operator: use one of {' '.join(OPERATORS)}")
    if isinstance(value, list) != (operator == "in"):
        raise InvalidRequestError("the operator in takes a list of values, the other operators take a single value")
    return Condition(str(column), str(operator), tuple(value) if isinstance(value, list) else value)


def conditions_text(conditions: Sequence[object]) -> str:
    """Encode conditions with Python values as the option ``filters``; dates, timestamps and decimals become text.

    Raises:
        InvalidRequestError: a condition is malformed, or its value has an unsupported type.
    """
    triples = [list(one) if isinstance(one, tuple | list) else [] for one in conditions]
    if not all(triples):
        raise InvalidRequestError('not a list of conditions: write [("month", "=", 1)]')
    return json.dumps(triples, default=_plain)


def _plain(value: object) -> object:
    """Convert a value that JSON cannot express to text; refuse types whose text would be compared as a string."""
    if isinstance(value, set | frozenset):
        return list(value)
    if isinstance(value, datetime.date | datetime.time | Decimal):
        return str(value)
    if callable(item := getattr(value, "item", None)):  # a NumPy number
        return item()
    raise InvalidRequestError(
        "conditions compare with strings, numbers, booleans, dates, times and decimals: use one of those",
        type=type(value).__name__,
    )
