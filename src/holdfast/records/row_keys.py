"""Encode the names of rows as bytes that sort as the names do.

A row is a text, an integer of 64 bits, bytes, or a tuple of at least two of these. Bytes come before texts, texts
before integers; texts sort by code points, tuples part by part. No encoding is the beginning of another one, so the
cells of a row are one range of keys.

Source: the tuple layer of FoundationDB, "Data Modeling: Tuples", for the idea and the type codes.
"""

from __future__ import annotations

from collections.abc import Hashable
from operator import index
from typing import Any, SupportsIndex, TypeAlias

from holdfast.errors import CorruptDataError, InvalidRequestError

Part: TypeAlias = "str | int | bytes"
Row: TypeAlias = "Part | tuple[Part, ...]"

_BYTES, _TEXT, _ZERO = 0x01, 0x02, 0x20
_CODES = [bytes([code]) for code in range(256)]
_WIDTH = 8
_END = b"\0"
_ESCAPED_ZERO = b"\0\xff"
_LAST = b"\xff"
"""Greater than every type code; a zero that it follows is part of a text."""


def encode_row(row: Row) -> bytes:
    """Encode the name of a row as bytes that sort as the names do.

    Raises:
        InvalidRequestError: the name has another type than `Row` allows, or cannot be encoded: convert it to a `str`.
    """
    if isinstance(row, tuple):
        if len(row) < 2:
            raise InvalidRequestError("a row that is a tuple has at least two parts: pass the part itself", row=row)
        return b"".join(map(_encode_key_part, row)) + _END
    return _encode_key_part(row) + _END


def prefix_range(prefix: Row) -> tuple[bytes, bytes]:
    """Return the range of the encodings of all rows that begin with a text, bytes, or the parts of a tuple."""
    if isinstance(prefix, tuple):
        start = b"".join(map(_encode_key_part, prefix))
        return start, start + _LAST
    encoded = _encode_key_part(prefix)
    start = encoded[: -len(_END)] if isinstance(prefix, str | bytes) else encoded
    return start, end_of_prefix(start)


def end_of_prefix(prefix: bytes) -> bytes:
    """Return the end (excluded) of the range of all byte strings that begin with `prefix`."""
    stripped = prefix.rstrip(b"\xff")
    return stripped[:-1] + bytes([stripped[-1] + 1]) if stripped else _LAST * (len(prefix) + 1)


def _encode_key_part(part: Any) -> bytes:
    if type(part) is int:
        return _encode_integer(part)
    if isinstance(part, str):
        try:
            return _CODES[_TEXT] + part.encode().replace(b"\0", _ESCAPED_ZERO) + _END
        except UnicodeEncodeError as error:
            raise InvalidRequestError("a row is a text without lone surrogates: change it", row=part) from error
    if isinstance(part, bytes):
        return _CODES[_BYTES] + part.replace(b"\0", _ESCAPED_ZERO) + _END
    number = to_python_integer(part) if isinstance(part, Hashable) else None
    if number is None:
        raise InvalidRequestError(
            "a row is a text, an integer, bytes or a tuple of these: convert it to a text", type=type(part).__name__
        )
    return _encode_integer(number)


def _encode_integer(number: int) -> bytes:
    """Encode the sign and the length in the type code, so that the bytes sort as the numbers do."""
    width = (abs(number).bit_length() + 7) // 8
    if width > _WIDTH:
        raise InvalidRequestError(
            "a row that is an integer has 64 bits: convert it to a text", bits=number.bit_length()
        )
    if number >= 0:
        return _CODES[_ZERO + width] + number.to_bytes(width, "big")
    return _CODES[_ZERO - width] + (number + (1 << 8 * width) - 1).to_bytes(width, "big")


def find_key_between_rows(low: bytes, high: bytes, start: int) -> bytes | None:
    """Return a key that divides a range of rows: where the type of the names changes, or halfway between two integers.

    None if there is no such key. Halfway refers to the numbers, not to their bytes, whose type code depends on the
    length.

    Args:
        low: a key with a row.
        high: a greater key, or the end of a range, which may be truncated or hold an integer in more bytes than needed.
        start: the position in the keys at which the row begins.
    """
    if low[:start] != high[:start]:
        high = low[:start] + _LAST
    at = start
    while at < len(low) and low[at] and at < len(high):
        part, after = _decode_key_part(low, at)
        if low[at:after] != high[at:after]:
            if isinstance(part, int):
                middle = _find_middle_integer_key(part, high[at:], low[:at])
                return middle if middle is not None and middle < high else None
            next_type = low[:at] + bytes([low[at] + 1])
            return next_type if next_type < high else None
        at = after
    return None


def _find_middle_integer_key(low: int, high: bytes, before: bytes) -> bytes | None:
    width = abs(high[0] - _ZERO)
    end = 1 << 8 * _WIDTH
    if width <= _WIDTH:
        decoded, _end = _decode_key_part(high[: 1 + width].ljust(2 + width, _END), 0)
        assert isinstance(decoded, int), "the type code is that of an integer"
        end = decoded
    middle = (low + end) // 2
    return before + _encode_integer(middle) if middle > low else None


def decode_row(key: bytes, start: int = 0) -> tuple[Row, int]:
    """Decode the name of a row, whose encoding begins at `start`; return the name and the position after it.

    Raises:
        CorruptDataError: the bytes are no valid encoding.
    """
    parts: list[Part] = []
    at = start
    while at < len(key) and key[at]:
        part, at = _decode_key_part(key, at)
        parts.append(part)
    if at >= len(key) or not parts:
        raise CorruptDataError("a stored key names no row: keep the database and report it", key=key)
    return (parts[0] if len(parts) == 1 else tuple(parts)), at + 1


def _decode_key_part(key: bytes, at: int) -> tuple[Part, int]:
    code = key[at]
    if code in (_BYTES, _TEXT):
        end = key.find(_END, at + 1)
        while end >= 0 and key[end : end + 2] == _ESCAPED_ZERO:
            end = key.find(_END, end + 2)
        if end >= 0:
            raw = key[at + 1 : end].replace(_ESCAPED_ZERO, b"\0")
            return (raw if code == _BYTES else _decode_text(raw, key)), end + 1
    width = abs(code - _ZERO)
    if width <= _WIDTH and at + width < len(key):
        number = int.from_bytes(key[at + 1 : at + 1 + width], "big")
        return (number if code >= _ZERO else number - (1 << 8 * width) + 1), at + 1 + width
    raise CorruptDataError("a stored key names no row: keep the database and report it", key=key)


def _decode_text(raw: bytes, key: bytes) -> str:
    try:
        return raw.decode()
    except UnicodeDecodeError as error:
        raise CorruptDataError("a stored key names no row: keep the database and report it", key=key) from error


def to_python_integer(given: object) -> int | None:
    """Convert an integer of any library, such as numpy, to Python's; return None for a bool or anything else."""
    try:
        if not isinstance(given, bool) and isinstance(given, SupportsIndex):
            return index(given)
    except TypeError:  # an array of several numbers, or of floats
        pass
    return None
