"""Parse JSON lines into columns like Spark's reader.

Each line contains one value and ends in a line feed, a carriage return or both. A value that does not match its
column's type is rejected, whereas Spark's reader would replace it with null. Also rejected is what only Spark's parser
accepts: strings in single quotes and ``+Infinity``.
"""

from __future__ import annotations

import base64
import decimal
import json
import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.types as pat

from holdfast.errors import CorruptDataError, InvalidRequestError
from holdfast.formats.columns.nesting import children, is_string
from holdfast.formats.lines.blocks import after_last_line, decode_lines, read_blocks
from holdfast.formats.lines.values import (
    date_days,
    decimal_value,
    fit_decimal,
    parse_texts,
    text_parser,
    timestamp_micros,
)


class Whole(str):
    """A number without a fraction or an exponent, as its text."""

    __slots__ = ()


class Fraction(str):
    """A number with a fraction or an exponent, as its text."""

    __slots__ = ()


class Constant(str):
    """NaN or an infinity that is not in quotes."""

    __slots__ = ()


class RepeatedKeys(dict[str, Any]):
    """An object with a key that occurs several times, together with all its pairs."""

    pairs: list[tuple[str, Any]] = []  # noqa: RUF012  # replaced, never changed


# --- lines ------------------------------------------------------------------------------------------------------------
def read_lines(source: BinaryIO, codec: str) -> Iterator[list[str]]:
    """Yield the non-blank lines of a file, in blocks.

    Raises:
        CorruptDataError: the file cannot be decompressed or is not UTF-8.
    """
    for block in read_blocks(source, codec, after_last_line):
        lines = (line.lstrip("\ufeff") for line in decode_lines(block, "JSON"))
        yield [line for line in lines if line and not line.isspace()]


def json_rows(line: str, decoder: json.JSONDecoder) -> list[dict[str, Any]]:
    """Return the objects in a line, which contains either one object or an array of objects.

    Raises:
        CorruptDataError: the line contains anything else.
    """
    try:
        value = decoder.decode(line)
    except (ValueError, RecursionError) as error:
        raise CorruptDataError("a line is not JSON: correct it, or read it with spark.read", line=line[:80]) from error
    rows = value if isinstance(value, list) else [value]
    if not all(isinstance(row, dict) for row in rows):
        raise CorruptDataError("a line is not a JSON object: check the file", line=line[:80])
    return rows


def decoder() -> json.JSONDecoder:
    """Return Python's parser, configured to keep numbers as text."""
    return json.JSONDecoder(parse_int=Whole, parse_float=Fraction, parse_constant=Constant)


def repeated_keys() -> json.JSONDecoder:
    """Return a parser like `decoder` that does not merge repeated keys of an object, because maps preserve them."""
    return json.JSONDecoder(
        parse_int=Whole, parse_float=Fraction, parse_constant=Constant, object_pairs_hook=_with_pairs
    )


def _with_pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) == len(pairs):
        return found
    kept = RepeatedKeys(found)
    kept.pairs = pairs
    return kept


def speller(names: Sequence[str]) -> Callable[[dict[str, Any]], dict[str, Any]]:
    """Return a function that renames the keys of an object to the names of the fields that they match.

    A key that equals a field's name belongs to that field, whatever other keys there are. If no key equals the name,
    which happens if the user's schema spells a field with different case, the key that differs only in case belongs to
    the field. Fields whose names differ from each other only in case match only their exact keys.

    The function raises ValueError if several keys of an object differ from a field's name only in case, because the
    match is ambiguous.
    """
    known = frozenset(names)
    many = Counter(name.lower() for name in names)
    folded = {name.lower(): name for name in names if many[name.lower()] == 1}

    def spelled(found: dict[str, Any]) -> dict[str, Any]:
        if known.issuperset(found) or found.keys() >= known:
            return found  # the usual case: nothing to rename
        others: dict[str, Any] = {}
        for key in found:
            name = folded.get(key.lower())
            if name is None or name in found:
                continue
            if name in others:
                raise ValueError(f"an object has several keys that differ from {name} only by case")
            others[name] = found[key]
        return {**found, **others} if others else found

    return spelled


_Decode = Callable[[Any], Any]

_WORDS = {
    "NaN": math.nan,
    "Infinity": math.inf,
    "+Infinity": math.inf,
    "+INF": math.inf,
    "-Infinity": -math.inf,
    "-INF": -math.inf,
}
_MICROS = 1_000_000


def has_map(kind: pa.DataType) -> bool:
    """Check whether the type contains a map."""
    return bool(pat.is_map(kind)) or any(has_map(child.type) for child in children(kind))


def build_column(values: list[Any], field: pa.Field, decode: _Decode, time_zone: str) -> Any:
    """Return the values of a column as an array; None stands for null and for a missing value.

    Raises:
        InvalidRequestError: a value does not match the type.
    """
    kind = field.type
    in_time = pat.is_timestamp(kind) or pat.is_date(kind)
    if in_time and all(value is None or (type(value) is str and value) for value in values):
        # Convert common strings all at once, without a call per value; the decoder handles the empty ones.
        return parse_texts(pa.array(values, pa.string()), kind, field.name, time_zone)
    try:
        return pa.array([decode(value) for value in values], kind)
    except (pa.ArrowException, ValueError, OverflowError) as error:
        raise InvalidRequestError(
            "a JSON value does not match the column's type: correct the file or use another schema",
            column=field.name,
            type=str(kind),
            reason=str(error)[:120],
        ) from error


def _value_decoder(kind: pa.DataType, time_zone: str) -> _Decode:
    """Return a function that converts a non-null value for `pa.array`, or raises ValueError with a reason."""
    if is_string(kind):
        return _text
    if pat.is_boolean(kind):
        return _boolean
    if pat.is_integer(kind):
        return _whole
    if pat.is_floating(kind):
        return _number
    if pat.is_decimal(kind):
        return lambda value: _decimal(value, kind)
    if pat.is_binary(kind) or pat.is_large_binary(kind):
        return lambda value: base64.b64decode("".join(_string(value).split()), validate=True)
    if pat.is_timestamp(kind):
        zone = None if kind.tz is None else time_zone
        return lambda value: _timestamp(value, zone)
    if pat.is_date(kind):
        return lambda value: date_days(_string(value))
    if pat.is_nested(kind):
        return _nested(kind, time_zone)
    return _unknown


def _nested(kind: pa.DataType, time_zone: str) -> _Decode:
    if pat.is_map(kind):
        key, item = _map_key(kind.key_type, time_zone), _nullable(_value_decoder(kind.item_type, time_zone))
        return lambda value: [(key(name), item(one)) for name, one in _pairs(value)]
    if pat.is_struct(kind):
        fields = [(field.name, field_decoder(field.type, time_zone)) for field in children(kind)]
        spelled = speller([name for name, _ in fields])
        return lambda value: _fields_of(spelled(_object(value)), fields)
    element = _nullable(_value_decoder(kind.value_type, time_zone))
    return lambda value: [element(one) for one in _array(value)]


def _fields_of(found: dict[str, Any], fields: list[tuple[str, _Decode]]) -> dict[str, Any]:
    return {name: decode(found.get(name)) for name, decode in fields}


def _map_key(kind: pa.DataType, time_zone: str) -> _Decode:
    """Return a decoder for map keys, which are strings in JSON whatever their type."""
    if pat.is_binary(kind) or pat.is_large_binary(kind):
        return _value_decoder(kind, time_zone)
    return text_parser(kind, time_zone)


def _nullable(decode: _Decode) -> _Decode:
    return lambda value: None if value is None else decode(value)


def field_decoder(kind: pa.DataType, time_zone: str) -> _Decode:
    """Return a decoder for a nullable field of an object.

    Many writers use an empty string for a missing number; as in Spark, such a string becomes null.

    Args:
        kind: the type of the field.
        time_zone: the zone of timestamps that do not contain one.
    """
    decode = _value_decoder(kind, time_zone)
    if is_string(kind) or pat.is_binary(kind) or pat.is_large_binary(kind):
        return _nullable(decode)
    return lambda value: None if value is None or value == "" else decode(value)


# --- values -----------------------------------------------------------------------------------------------------------
def _text(value: Any) -> str:
    if isinstance(value, str):
        return str(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    raise ValueError("an object or array stands where the type is string: give it a type, or use spark.read")


def _string(value: Any) -> str:
    if type(value) is not str:
        raise ValueError("not a string")
    return value


def _boolean(value: Any) -> bool:
    if not isinstance(value, bool):
        raise ValueError("not true or false")
    return value


def _whole(value: Any) -> int:
    if not isinstance(value, Whole):
        raise ValueError("not a whole number")
    return int(value)


def _number(value: Any) -> float:
    if isinstance(value, Whole):
        return _as_float(int(value))
    if isinstance(value, Fraction):
        return float(value)
    if isinstance(value, str) and value in _WORDS:
        return _WORDS[value]
    raise ValueError("not a number")


def _as_float(number: int) -> float:
    try:
        return float(number)
    except OverflowError:
        return math.inf if number > 0 else -math.inf


def _decimal(value: Any, kind: pa.DataType) -> decimal.Decimal:
    if isinstance(value, Whole | Fraction):
        return fit_decimal(decimal.Decimal(value), kind)
    if isinstance(value, Constant):
        raise ValueError("not a decimal number")
    return decimal_value(_string(value), kind)


def _timestamp(value: Any, time_zone: str | None) -> int:
    if isinstance(value, Whole) and time_zone is not None:
        return int(value) * _MICROS
    return timestamp_micros(_string(value), time_zone)


def _object(value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise ValueError("not an object")
    return value


def _array(value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise ValueError("not an array")
    return value


def _pairs(value: Any) -> Any:
    found = _object(value)
    return found.pairs if isinstance(found, RepeatedKeys) else found.items()


def _unknown(value: Any) -> Any:
    raise ValueError("the column's type has no values")
