"""Parse single option values: booleans, numbers, sizes, names, directories and lists of columns."""

from __future__ import annotations

import re

from holdfast.errors import InvalidRequestError
from holdfast.wording import nearest

MIB = 1024 * 1024
_SIZE = re.compile(r"(\d+)\s*([kmgt]?)(?:i?b)?")
_UNITS = {"": 1, "k": 1024, "m": MIB, "g": 1024 * MIB, "t": 1024 * 1024 * MIB}


def as_choice(text: str, choices: tuple[str, ...]) -> str:
    """Parse one of a few words, in any case."""
    word = text.strip().lower()
    if word not in choices:
        raise InvalidRequestError(f"no such choice: {nearest(word, choices)}")
    return word


def as_boolean(text: str) -> bool:
    """Parse ``true`` or ``false``, in any case."""
    return as_choice(text, ("true", "false")) == "true"


def as_number(text: str, least: int, most: int) -> int:
    """Parse a whole number from `least` to `most`, both included."""
    word = text.strip()
    if not (word.isascii() and word.isdigit() and least <= int(word) <= most):
        raise InvalidRequestError(f"not a whole number from {least} to {most}: write one")
    return int(word)


def as_record_limit(text: str) -> int | None:
    """Parse a number of rows; 0 means no limit, as in Spark."""
    return as_number(text, 0, 2**62) or None


def as_size(text: str, least: int) -> int:
    """Parse a number of bytes, with or without a unit: ``134217728``, ``128m``, ``1 GiB``."""
    match = _SIZE.fullmatch(text.strip().lower())
    size_bytes = int(match[1]) * _UNITS[match[2]] if match else -1
    if not least <= size_bytes < 2**50:
        at_least = f" of at least {least} bytes" if least > 1 else ""
        raise InvalidRequestError(f"not a size{at_least}: write bytes, or a number with k, m or g such as 128m")
    return size_bytes


def as_name(text: str) -> str:
    """Parse a name that will appear in records and errors."""
    name = text.strip()
    if not name or len(name) > 200 or not name.isprintable():
        raise InvalidRequestError("not a name: write 1 to 200 printable characters")
    return name


def as_place(text: str) -> str:
    """Check a directory or URL that every process of the job must be able to reach."""
    if not text.strip():
        raise InvalidRequestError("expected a directory or URL: give one, or leave the option out")
    if text.strip().lower().startswith("memory:"):
        raise InvalidRequestError(
            "memory:// exists in one process only, and Spark's tasks run in others: use a directory or s3://"
        )
    return text


def as_directory(text: str) -> str:
    """Check a local directory, which is a different one on each machine."""
    if not text.strip() or "://" in text:
        raise InvalidRequestError("expected a local directory: write a path such as /mnt/scratch")
    return text


def as_columns(text: str) -> tuple[str, ...]:
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
        names.append(name)
        if not match[3]:
            return tuple(names)
        rest = rest[match.end() :]
