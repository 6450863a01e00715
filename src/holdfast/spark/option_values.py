"""Option strings one by one: what was given under which name, and the values that strings stand for."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import TypeVar

from holdfast.errors import InvalidRequestError
from holdfast.formats import nearest

__all__ = [
    "MIB",
    "Given",
    "as_boolean",
    "as_choice",
    "as_columns",
    "as_directory",
    "as_name",
    "as_number",
    "as_place",
    "as_record_limit",
    "as_size",
]

T = TypeVar("T")

MIB = 1024 * 1024
_SIZE = re.compile(r"(\d+)\s*([kmgt]?)(?:i?b)?")
_UNITS = {"": 1, "k": 1024, "m": MIB, "g": 1024 * MIB, "t": 1024 * 1024 * MIB}


class Given:
    """What the user gave, by canonical name; remembers what nobody has asked for."""

    def __init__(self, options: Mapping[str, str], known: Iterable[str]) -> None:
        canonical = {name.lower(): name for name in known}
        self.rest = {key: value for key, value in options.items() if key.lower() not in canonical}
        self._values = {canonical[key.lower()]: value for key, value in options.items() if key.lower() in canonical}

    def __contains__(self, name: str) -> bool:
        return name in self._values

    def take(self, name: str, parse: Callable[[str], T]) -> T | None:
        """The parsed value, None if the option was not given.

        Raises:
            InvalidRequestError: names the option; the value is repeated only where it cannot be a secret.
        """
        if name not in self._values:
            return None
        value = self._values[name]
        try:
            return parse(value)
        except InvalidRequestError as error:
            raise InvalidRequestError(error.message, option=name, value=value) from error


def as_choice(text: str, choices: tuple[str, ...]) -> str:
    """One of a few words, in any case."""
    word = text.strip().lower()
    if word not in choices:
        raise InvalidRequestError(f"no such choice: {nearest(word, choices)}")
    return word


def as_boolean(text: str) -> bool:
    """``true`` or ``false``, in any case."""
    return as_choice(text, ("true", "false")) == "true"


def as_number(text: str, least: int, most: int) -> int:
    """A whole number between two others, both allowed."""
    word = text.strip()
    if not (word.isascii() and word.isdigit() and least <= int(word) <= most):
        raise InvalidRequestError(f"not a whole number from {least} to {most}: write one")
    return int(word)


def as_record_limit(text: str) -> int | None:
    """A number of rows; 0 means no limit, as in Spark."""
    return as_number(text, 0, 2**62) or None


def as_size(text: str, least: int) -> int:
    """Bytes, also in words such as ``128m`` or ``1 GiB``."""
    match = _SIZE.fullmatch(text.strip().lower())
    size_bytes = int(match[1]) * _UNITS[match[2]] if match else -1
    if not least <= size_bytes < 2**50:
        at_least = f" of at least {least}" if least > 1 else ""
        raise InvalidRequestError(f"not a size{at_least}: write bytes, or a number with k, m or g such as 128m")
    return size_bytes


def as_name(text: str) -> str:
    """A name that people read in records and errors."""
    name = text.strip()
    if not name or len(name) > 200 or not name.isprintable():
        raise InvalidRequestError("not a name: write 1 to 200 printable characters")
    return name


def as_place(text: str) -> str:
    """A directory or url that every process of the job reaches."""
    if not text.strip():
        raise InvalidRequestError("this names no place: give a directory or a url, or leave the option out")
    if text.strip().lower().startswith("memory:"):
        raise InvalidRequestError(
            "memory:// lives in one process and Spark's tasks run in others: use a directory or s3://"
        )
    return text


def as_directory(text: str) -> str:
    """A directory of each machine."""
    if not text.strip() or "://" in text:
        raise InvalidRequestError("this is no directory of the machine: write a path such as /mnt/scratch")
    return text


def as_columns(text: str) -> tuple[str, ...]:
    """Names between commas; a name that holds commas or spaces at its ends stands in backticks, doubled inside."""
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
