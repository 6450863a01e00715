"""Write stored JSON in one format, and validate every field that is read.

A failed check raises `BadFieldError`. `guarded` turns this and every other error during decoding into a
`CorruptDataError` with the record's key and the reason. The bytes of such a record are neither deleted nor overwritten.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from holdfast.errors import CorruptDataError

T = TypeVar("T")


class BadFieldError(Exception):
    """A field is missing or invalid; the message says which. `guarded` converts this error to `CorruptDataError`."""


def require(condition: bool, what: str) -> None:
    """Raise `BadFieldError` with the message `what` unless `condition` holds."""
    if not condition:
        raise BadFieldError(what)


def guarded(key: str, decode: Callable[[], T]) -> T:
    """Return the result of `decode`, which decodes the record at `key`.

    Raises:
        CorruptDataError: the record is invalid; its bytes are not changed.
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
    """Encode `value` as one line of JSON."""
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False, allow_nan=False).encode() + b"\n"


def json_object(line: bytes) -> dict[str, Any]:
    """Parse the JSON object in `line`."""
    value = json.loads(line)
    require(isinstance(value, dict), "not an object")
    return value  # type: ignore[no-any-return]  # checked in the line above


def text_field(value: dict[str, Any], name: str, *, empty: bool = False) -> str:
    """Return the string in field `name`; an empty string is an error unless `empty` is True."""
    found = value[name]
    require(isinstance(found, str) and (empty or bool(found)), f"{name} is not a text")
    return str(found)


def optional_text(value: dict[str, Any], name: str) -> str:
    """Return the string in field `name`; an empty string if the field is missing or null."""
    return "" if value.get(name) is None else text_field(value, name, empty=True)


def texts_field(value: dict[str, Any], name: str) -> dict[str, str]:
    """Return the object in field `name`, whose values must be strings; empty if the field is missing or null."""
    found = {} if value.get(name) is None else value[name]
    require(isinstance(found, dict), f"{name} is not an object")
    require(all(isinstance(text, str) for text in found.values()), f"{name} contains values that are not texts")
    return dict(found)


def count_field(value: dict[str, Any], name: str) -> int:
    """Return the count in field `name`: an integer from 0 to 2**63 - 1."""
    found = value[name]
    require(type(found) is int and 0 <= found < 2**63, f"{name} is not a count")
    return int(found)


def crc_field(value: dict[str, Any]) -> int:
    """Return the CRC-32 in field ``crc32``: an integer of 32 bits."""
    found = count_field(value, "crc32")
    require(found < 2**32, "crc32 is not a checksum")
    return found
