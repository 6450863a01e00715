"""Stored JSON: written in one way, and checked when read, for what comes from a store is data.

A check that fails raises `BadFieldError`; `guarded` turns it, and whatever else goes wrong while reading, into one
`CorruptDataError` with the record's key and the reason. Nobody deletes or overwrites the bytes of such a record.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from holdfast.errors import CorruptDataError

__all__ = [
    "BadFieldError",
    "count_field",
    "guarded",
    "json_line",
    "json_object",
    "optional_text",
    "require",
    "text_field",
    "texts_field",
]

T = TypeVar("T")


class BadFieldError(Exception):
    """A check failed; the sentence says which. Never leaves `guarded`."""


def require(condition: bool, what: str) -> None:
    """Go on only if `condition` holds; `what` says what is wrong otherwise."""
    if not condition:
        raise BadFieldError(what)


def guarded(key: str, decode: Callable[[], T]) -> T:
    """The result of `decode`, which reads the record at `key`.

    Raises:
        CorruptDataError: the record cannot be read; its bytes are kept.
    """
    try:
        return decode()
    except (BadFieldError, ValueError, TypeError, KeyError, RecursionError) as error:
        raise CorruptDataError(
            "a stored record cannot be read; its bytes are kept: report them, or restore the record",
            key=key,
            reason=str(error) or type(error).__name__,
        ) from error


def json_line(value: Mapping[str, object]) -> bytes:
    """`value` as JSON in one line."""
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False, allow_nan=False).encode() + b"\n"


def json_object(line: bytes) -> dict[str, Any]:
    """The JSON object in `line`."""
    value = json.loads(line)
    require(isinstance(value, dict), "not an object")
    return value  # type: ignore[no-any-return]  # checked in the line above


def text_field(value: dict[str, Any], name: str, *, empty: bool = False) -> str:
    """The text in field `name`; not the empty one unless `empty`."""
    found = value[name]
    require(isinstance(found, str) and (empty or bool(found)), f"{name} is not a text")
    return str(found)


def optional_text(value: dict[str, Any], name: str) -> str:
    """The text in field `name`; empty if the field is missing or null."""
    return "" if value.get(name) is None else text_field(value, name, empty=True)


def texts_field(value: dict[str, Any], name: str) -> dict[str, str]:
    """The object of texts in field `name`; empty if the field is missing or null."""
    found = {} if value.get(name) is None else value[name]
    require(isinstance(found, dict), f"{name} is not an object")
    require(all(isinstance(text, str) for text in found.values()), f"{name} holds something else than texts")
    return dict(found)


def count_field(value: dict[str, Any], name: str) -> int:
    """The count in field `name`: a whole number from 0 that fits 63 bits."""
    found = value[name]
    require(type(found) is int and 0 <= found < 2**63, f"{name} is not a count")
    return int(found)
