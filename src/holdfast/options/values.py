"""Parse single option values: names, directories, lists of columns, and the row conditions of a read."""

from __future__ import annotations

import datetime
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal

from holdfast.errors import MALFORMED, InvalidRequestError
from holdfast.stores.provider import make_number_parser


def parse_record_limit(text: str) -> int | None:
    """Parse a number of rows; 0 means no limit, as in Spark."""
    return make_number_parser(0, 2**62)(text) or None


def parse_printable_name(text: str) -> str:
    """Parse a name for records and errors: 1 to 200 printable characters, or `InvalidRequestError` is raised."""
    name = text.strip()
    if not name or len(name) > 200 or not name.isprintable():
        raise InvalidRequestError("not a name: write 1 to 200 printable characters")
    return name


def check_shared_location(text: str) -> str:
    """Reject a blank directory or URL, and ``memory:``, which other processes cannot reach; else return the text."""
    if not text.strip():
        raise InvalidRequestError("expected a directory or URL: give one, or leave the option out")
    if text.strip().lower().startswith("memory:"):
        raise InvalidRequestError(
            "memory:// exists in one process only, and Spark's tasks run in others: use a directory or s3://"
        )
    return text


def check_local_directory(text: str) -> str:
    """Check a path of a local directory, which is a different one on each machine, and return it unchanged."""
    if not text.strip() or "://" in text:
        raise InvalidRequestError("expected a local directory: write a path such as /mnt/scratch")
    return text


def parse_columns(text: str) -> tuple[str, ...]:
    """Parse column names separated by commas.

    A name that contains commas, or spaces at its ends, is quoted with backticks; a backtick inside is doubled.
    """
    names: list[str] = []
    rest = text
    while True:
        match = re.match(r"\s*(?:`((?:[^`]|``)+)`|([^`,]*))\s*(,|\Z)", rest, re.DOTALL)
        name = "" if match is None else match[1].replace("``", "`") if match[1] else match[2].strip()
        if match is None or not name:
            raise InvalidRequestError("not a list of column names: write a,b and put names with commas in backticks")
        if name in names:
            raise InvalidRequestError("a column is named twice: name each once", column=name)
        names.append(name)
        if not match[3]:
            return tuple(names)
        rest = rest[match.end() :]


# --- conditions -------------------------------------------------------------------------------------------------------
OPERATORS = ("=", "!=", "<", "<=", ">", ">=", "in")


@dataclass(frozen=True)
class Condition:
    """The condition ``column operator value``. A null does not meet any condition, and NaN meets only ``!=``.

    `holdfast.spark.filters` applies it.
    """

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
        if not isinstance(triples, list):
            raise TypeError(triples)
        return tuple(_build_condition(*triple) for triple in triples)
    except MALFORMED as error:
        if isinstance(error, InvalidRequestError):
            raise
        raise InvalidRequestError(
            'not a list of conditions: write [["month", "=", 1], ["day", "in", [1, 2]]]'
        ) from error


def _build_condition(column: object, operator: object, value: object) -> Condition:
    if operator not in OPERATORS:
        raise InvalidRequestError(f"no such operator: use one of {' '.join(OPERATORS)}")
    if isinstance(value, list) != (operator == "in"):
        raise InvalidRequestError("the operator in takes a list of values, the other operators take a single value")
    return Condition(str(column), str(operator), tuple(value) if isinstance(value, list) else value)


def encode_conditions(conditions: Sequence[object]) -> str:
    """Encode conditions with Python values as the option ``filters``; dates, timestamps and decimals become text.

    Raises:
        InvalidRequestError: a condition is malformed, or its value has an unsupported type.
    """
    triples = [list(one) if isinstance(one, tuple | list) else [] for one in conditions]
    if not all(triples):
        raise InvalidRequestError('not a list of conditions: write [("month", "=", 1)]')
    return json.dumps(triples, default=_to_plain_value)


def _to_plain_value(value: object) -> object:
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
