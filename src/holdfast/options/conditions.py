"""Conditions of a read as the caller writes them: values and text. `holdfast.spark.filters` applies them."""

from __future__ import annotations

import datetime
import json
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal

from holdfast.errors import InvalidRequestError

__all__ = ["OPERATORS", "Condition", "conditions_text", "parse_conditions"]

OPERATORS = ("=", "!=", "<", "<=", ">", ">=", "in")


@dataclass(frozen=True)
class Condition:
    """``column operator value``; a row with null in the column does not meet it, nor does NaN except for ``!=``."""

    column: str
    operator: str
    value: object


def parse_conditions(text: str) -> tuple[Condition, ...]:
    """Conditions from the option ``filters``: JSON such as ``[["month", "=", 1], ["day", "in", [1, 2]]]``.

    Raises:
        InvalidRequestError: it is not that; says what to write.
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
        raise InvalidRequestError("a list of values goes with the operator in, a single value with the others")
    return Condition(str(column), str(operator), tuple(value) if isinstance(value, list) else value)


def conditions_text(conditions: Sequence[object]) -> str:
    """Conditions in Python values as the option ``filters``; dates, timestamps and decimals become text.

    Raises:
        InvalidRequestError: a condition or value is none.
    """
    triples = [list(one) if isinstance(one, tuple | list) else [] for one in conditions]
    if not all(triples):
        raise InvalidRequestError('not a list of conditions: write [("month", "=", 1)]')
    return json.dumps(triples, default=_plain)


def _plain(value: object) -> object:
    """A value that JSON has no word for; the text of anything else would be compared as if it were one."""
    if isinstance(value, set | frozenset):
        return list(value)
    if isinstance(value, datetime.date | datetime.time | Decimal):
        return str(value)
    if callable(item := getattr(value, "item", None)):  # a number of numpy's
        return item()
    raise InvalidRequestError(
        "conditions compare with strings, numbers, booleans, dates, times and decimals: write one of those",
        type=type(value).__name__,
    )
