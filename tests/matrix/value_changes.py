"""Change canonical values as readers do, to declare what they return instead of what was written."""

from __future__ import annotations

import base64
from collections.abc import Callable
from typing import Any

from pyspark.sql.types import VariantVal

__all__ = [
    "add_second_before_epoch",
    "drop_prefix",
    "drop_small_sign",
    "empty_to_null",
    "encode_base64",
    "join_variant",
    "join_vector",
    "nested_variant_null_to_null",
    "skip_lost_days",
    "spark_hex",
    "trim",
    "trim_or_null",
    "truncate_to_millis",
    "variant_null_to_null",
]


def drop_prefix(text: str) -> str:
    """Return the number of an interval or a time."""
    word, _, number = text.partition(":")
    return number if word in ("i", "m", "n", "time") else text


def join_variant(value: Any) -> Any:
    """Join the two parts of a VARIANT."""
    if isinstance(value, dict) and set(value) == {"value", "metadata"} and None not in value.values():
        value, metadata = (bytes.fromhex(value[name][2:]) for name in ("value", "metadata"))
        return f"v:{VariantVal(value, metadata).toJson()}"
    return value


def join_vector(value: Any) -> Any:
    """Convert the struct of a vector."""
    if isinstance(value, dict) and set(value) == {"type", "size", "indices", "values"}:
        return f"u:[{','.join(value['values'])}]"
    return value


def empty_to_null(text: str) -> str | None:
    """Replace an empty string by null."""
    return None if text == "s:" else text


def trim(text: str) -> str:
    """Trim strings as java.lang.String.trim does: all characters up to the blank."""
    return "s:" + text[2:].strip("".join(map(chr, range(0x21)))) if text.startswith("s:") else text


def trim_or_null(text: str) -> str | None:
    """Trim strings and replace empty ones by null."""
    return empty_to_null(trim(text))


def spark_hex(text: str) -> str:
    """Return binary as the text that Spark's CSV writer produces."""
    parts = [text[at : at + 2].upper() for at in range(2, len(text), 2)]
    return "x:" + f"[{' '.join(parts)}]".encode().hex()


def encode_base64(text: str) -> str:
    """Return binary as base64 text."""
    return "x:" + base64.b64encode(bytes.fromhex(text[2:])).hex() if text.startswith("x:") else text


def _move(text: str, move: Callable[[int], int]) -> str:
    word, _, number = text.partition(":")
    return f"{word}:{move(int(number))}" if word in ("t", "n", "d", "i") else text


def truncate_to_millis(text: str) -> str:
    """Truncate timestamps to milliseconds."""
    return _move(text, lambda number: number // 1000 * 1000)


def drop_small_sign(text: str) -> str:
    """Drop the sign of intervals shorter than a second."""
    return _move(text, lambda number: -number if -1_000_000 < number < 0 else number)


def add_second_before_epoch(text: str) -> str:
    """Add a second to timestamps in the last second before 1970."""
    return _move(text, lambda number: number + 1_000_000 if -1_000_000 < number < 0 else number)


def skip_lost_days(text: str) -> str:
    """Move the days that Java's calendar skips to 1582-10-15."""
    return _move(text, lambda day: -141_427 if -141_437 <= day < -141_427 else day)


def variant_null_to_null(text: str) -> str | None:
    """Replace VARIANT's null by null."""
    return None if text == "v:null" else text


def nested_variant_null_to_null(value: Any) -> Any:
    """Replace VARIANT's null below a list or a map by null; the pairs of a map are tuples."""
    if isinstance(value, dict):
        return {name: nested_variant_null_to_null(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(nested_variant_null_to_null(one) for one in value)
    return None if value == "v:null" else value
