"""Encode the values of cells, each with its type, so that every value reads back equal.

| first byte | type | the rest |
|---|---|---|
| ``b`` | bytes | as they are |
| ``t`` | text | UTF-8 |
| ``i`` | integer of any size | two's complement, most significant byte first |
| ``f`` | float | 8 bytes, IEEE 754, most significant byte first |
| ``j`` | JSON: lists and dictionaries of texts, integers, floats, booleans and None; a boolean | UTF-8 |
| ``a`` | numpy array | its header, then the elements in C order |

A cell without any bytes is a counter to which `add` alone has written: the integer 0. The record's number is added to
every integer. The header of an array: the length of its dtype's name (one byte), the name, the number of dimensions
(one byte), their lengths (8 bytes each).
"""

from __future__ import annotations

import json
import math
import re
import struct
import sys
from decimal import Decimal
from typing import TYPE_CHECKING, Any, TypeAlias

from holdfast.errors import MALFORMED, CorruptDataError, InvalidRequestError, UnsupportedError
from holdfast.transactions.base import INTEGER, MAX_VALUE_BYTES, takes_adds

if TYPE_CHECKING:
    import numpy as np


Value: TypeAlias = "bytes | str | int | float | bool | list[Any] | dict[str, Any] | np.ndarray[Any, Any]"

_FLOAT = struct.Struct(">d")
_LENGTH = struct.Struct(">Q")
_DTYPE = re.compile(r"[<>|](b1|[iu][1248]|f[248]|c8|c16|[mM]8(\[\d*[A-Za-z]+\])?|[SU][1-9]\d{0,8})")
"""The names of dtypes that mean the same on every machine. Others, such as long doubles, are refused."""
_MOST_DIMENSIONS = 32
_LAST_CODE_POINT = 0x10FFFF
_DEEPEST = 100
MAX_ENCODED_BYTES = MAX_VALUE_BYTES - 64
"""The longest encoding; a record has room for an update counter besides."""
_TYPES = {b"b": "bytes", b"t": "text", b"i": "int", b"f": "float", b"j": "json", b"a": "array", b"": "int"}


def encode_value(value: object) -> bytes:
    """Encode a value of a cell as bytes, with its type.

    Raises:
        InvalidRequestError: a cell cannot hold this type, or the value is too long: convert or split it.
    """
    encoded = _encode_by_type(value)
    if len(encoded) > MAX_ENCODED_BYTES:
        raise InvalidRequestError(f"a value is limited to {MAX_ENCODED_BYTES} bytes: split it", bytes=len(encoded))
    return encoded


def _encode_by_type(value: object) -> bytes:
    if isinstance(value, str):
        return b"t" + _encode_utf8(value)
    if isinstance(value, bool | list | dict):
        return b"j" + _encode_json(value)
    if isinstance(value, int):
        return encode_integer(int(value))
    if isinstance(value, float):
        return b"f" + _FLOAT.pack(value)
    if isinstance(value, bytes | bytearray | memoryview):
        return b"b" + bytes(value)
    if (numpy := sys.modules.get("numpy")) is not None and isinstance(value, numpy.ndarray | numpy.generic):
        return _encode_numpy(value)
    if value is None:
        raise InvalidRequestError("None is no value of a cell: delete the cell, or put None inside of a list")
    raise InvalidRequestError(
        "a value is bytes, a text, an integer, a float, JSON (lists, dictionaries, booleans) or a numpy array: "
        "convert it",
        type=type(value).__name__,
    )


def encode_integer(number: int) -> bytes:
    """Encode an integer as the value of a cell."""
    return INTEGER + int(number).to_bytes(number.bit_length() // 8 + 1, "big", signed=True)


def encoded_type_name(encoded: bytes) -> str:
    """Return the name of the type of an encoded value: bytes, text, int, float, json or array."""
    return _TYPES.get(encoded[:1], "unknown")


def _encode_utf8(text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise InvalidRequestError("a text with lone surrogates cannot be stored: store its bytes") from error


def _encode_json(value: object) -> bytes:
    """Encode a JSON value that comes back as it is: JSON would turn tuples into lists and all keys into texts."""
    try:
        text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
        is_kept = _nesting_depth(value) <= _DEEPEST and json.loads(text) == value
    except (TypeError, ValueError, RecursionError):
        is_kept = False
    if not is_kept:
        raise InvalidRequestError(
            "a JSON value consists of lists, dictionaries with texts as keys, texts, integers of at most 4,000 digits, "
            f"finite floats, booleans and None, at most {_DEEPEST} levels deep: convert it"
        )
    return _encode_utf8(text)


def _nesting_depth(value: object) -> int:
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return 1 + max(map(_nesting_depth, inner), default=0)


def _encode_numpy(value: Any) -> bytes:
    import numpy as np

    if isinstance(value, np.generic):
        if (
            isinstance(value, np.bool_ | np.integer | np.floating | np.str_ | np.bytes_)
            and value.dtype != np.longdouble
            and value.dtype.kind != "m"  # numpy takes durations for integers
        ):
            return _encode_by_type(value.item())
        raise InvalidRequestError("a numpy scalar of this type cannot be stored: store an array", dtype=value.dtype.str)
    dtype = value.dtype
    if isinstance(value, np.ma.MaskedArray):
        raise InvalidRequestError("a masked array cannot be stored: fill it, or store its data and its mask")
    if not _DTYPE.fullmatch(dtype.str):
        raise InvalidRequestError("an array of this type cannot be stored: convert it with astype", dtype=dtype.str)
    dimensions: int = value.ndim
    if dimensions > _MOST_DIMENSIONS:
        raise InvalidRequestError(
            f"an array has at most {_MOST_DIMENSIONS} dimensions: reshape it", dimensions=dimensions
        )
    name: bytes = dtype.str.encode()
    shape = b"".join(_LENGTH.pack(length) for length in value.shape)
    data: bytes = value.tobytes()
    header: bytes = bytes([len(name)]) + name + bytes([dimensions]) + shape
    return b"a" + header + data


def decode_value(encoded: bytes, number: int = 0) -> Value:
    """Decode the value of a cell, and add `number`, the sum of all adds since the value was written.

    Guarantee: what is not a valid encoding is refused; nothing in it is executed.

    Raises:
        CorruptDataError: the bytes are no valid encoding, or something was added to a value that is no integer.
        UnsupportedError: the value is an array, and numpy is not installed.
    """
    if number and not takes_adds(encoded):
        raise CorruptDataError("a number was added to what is no integer: keep the database and report it")
    if not encoded:
        return number
    kind, rest = encoded[:1], encoded[1:]
    try:
        if kind == b"b":
            return rest
        if kind == b"t":
            return rest.decode()
        if kind == b"i" and rest:
            return int.from_bytes(rest, "big", signed=True) + number
        if kind == b"f":
            return float(_FLOAT.unpack(rest)[0])
        if kind == b"j":
            return _decode_json(rest)
        if kind == b"a":
            return _decode_array(rest)
    except (*MALFORMED, struct.error, IndexError) as error:
        raise CorruptDataError("a stored value cannot be read: keep the database and report it") from error
    raise CorruptDataError("a stored value has an unknown type: keep the database and report it", type=kind)


def _decode_json(rest: bytes) -> Value:
    value: object = json.loads(rest.decode(), parse_constant=_refuse_constant)
    if not isinstance(value, bool | list | dict):
        raise ValueError(type(value))
    return value


def _refuse_constant(name: str) -> None:
    raise ValueError(name)


def _decode_array(rest: bytes) -> Value:
    try:
        import numpy as np
    except ImportError as error:
        raise UnsupportedError("the value is a numpy array: pip install numpy") from error
    end = 1 + rest[0]
    name = rest[1:end].decode("ascii")
    dimensions = rest[end]
    if not _DTYPE.fullmatch(name) or dimensions > _MOST_DIMENSIONS:
        raise ValueError(name, dimensions)
    dtype = np.dtype(name)
    start = end + 1 + _LENGTH.size * dimensions
    shape = tuple(_LENGTH.unpack_from(rest, end + 1 + _LENGTH.size * index)[0] for index in range(dimensions))
    if dtype.itemsize * math.prod(shape) != len(rest) - start:
        raise ValueError(shape)
    found: np.ndarray[Any, Any] = np.frombuffer(rest[start:], dtype)
    if dtype.kind == "U" and (found.view(f"{dtype.byteorder}u4") > _LAST_CODE_POINT).any():
        raise ValueError("no text")
    array: np.ndarray[Any, Any] = found.reshape(shape).copy()  # callers may change it
    return array


# --- JSON that others have written ------------------------------------------------------------------------------------
def parse_json(text: str) -> bool | list[Any] | dict[str, Any]:
    """Parse a JSON list, object or boolean as the value of a cell, without rounding numbers or dropping keys.

    Python's own parser rounds numbers, and drops keys that occur twice.

    Raises:
        InvalidRequestError: the text is no JSON, is a number or a string, or cannot be represented exactly.
    """
    try:
        value: object = json.loads(
            text,
            parse_float=_parse_exact_float,
            parse_constant=_refuse_infinity,
            object_pairs_hook=_refuse_duplicate_json_names,
        )
    except InvalidRequestError:
        raise
    except (ValueError, RecursionError) as error:
        raise InvalidRequestError("the value is no JSON: check its quotes and brackets") from error
    if not isinstance(value, bool | list | dict):
        raise InvalidRequestError(
            "a JSON value is a list, an object, true or false: store texts and numbers with types of their own"
        )
    return value


def _parse_exact_float(text: str) -> float:
    number = float(text)
    if not math.isfinite(number) or not _is_float_equal_to_text(number, text):
        raise InvalidRequestError(
            "a number in JSON has more digits than a float keeps: round it, or write it as a text", number=text
        )
    return number


def _is_float_equal_to_text(number: float, text: str) -> bool:
    """Check whether the shortest text of a float is the given number, perhaps with other zeros."""
    try:
        return Decimal(repr(number)) == Decimal(text)
    except ArithmeticError:  # an exponent beyond those of decimals
        return False


def _refuse_infinity(name: str) -> None:
    raise InvalidRequestError("JSON has no infinities and no NaN: use null, or another type", number=name)


def _refuse_duplicate_json_names(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in pairs:
        if name in found:
            raise InvalidRequestError("an object in JSON has a key twice: leave one of them out", key=name)
        found[name] = value
    return found
