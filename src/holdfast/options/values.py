"""Option strings one by one: what was given under which names, and the values that strings stand for."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from holdfast.errors import InvalidRequestError
from holdfast.wording import nearest

__all__ = [
    "MIB",
    "Given",
    "Options",
    "Saying",
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


@dataclass(frozen=True, slots=True)
class Saying:
    """One thing that a caller said.

    Attributes:
        name: of the option, in lower case and without underscores.
        text: its value; not shown, for it may be a secret.
        spelled: the name as the caller wrote it, also a keyword's.
    """

    name: str
    text: str = field(repr=False)
    spelled: str

    @classmethod
    def of(cls, name: str, text: str, spelled: str) -> Saying:
        """Names are the same in any case, and in snake case."""
        return cls(name.replace("_", "").lower(), text, spelled)


Options = Mapping[str, str] | Sequence[Saying]
"""Options as Spark hands them over, or as a Python call said them."""


class Given:
    """What the user gave, by canonical name; remembers what nobody has asked for.

    Raises:
        InvalidRequestError: an option that is not among the known ones was given twice with different values.
    """

    def __init__(self, options: Options, known: Iterable[str]) -> None:
        if isinstance(options, Mapping):
            options = [Saying.of(key, value, key) for key, value in options.items()]
        self.known = tuple(known)
        canonical = {name.lower(): name for name in self.known}
        self._said: dict[str, list[Saying]] = {}
        rest: dict[str, Saying] = {}
        for one in options:
            if one.name in canonical:
                self._said.setdefault(canonical[one.name], []).append(one)
            elif not _same_text(rest.setdefault(one.name, one).text, one.text):
                raise _contradiction(rest[one.name], one)
        self._unknown = rest

    @property
    def rest(self) -> dict[str, str]:
        """The options that are not known."""
        return {name: one.text for name, one in self._unknown.items()}

    def learn(self, names: Iterable[str]) -> None:
        """Add names that became known from the value of another option."""
        for name in names:
            if name not in self.known:
                self.known = (*self.known, name)
                if (one := self._unknown.pop(name.lower(), None)) is not None:
                    self._said[name] = [one]

    def texts(self, *names: str) -> list[str]:
        """Return what was given under these names, not parsed."""
        return [one.text for name in names for one in self._said.get(name, [])]

    def __contains__(self, name: str) -> bool:
        return name in self._said

    def take(self, name: str, parse: Callable[[str], T], *, secret: bool = False) -> T | None:
        """Return the parsed value, None if the option was not given.

        Args:
            secret: whether no error may repeat the value.

        Raises:
            InvalidRequestError: names the option, and its value unless it is secret. Or the option was given twice with
                different values.
        """
        said = self._said.get(name, [])
        values = [_parsed(name, one.text, parse, secret) for one in said]
        for one, value in zip(said, values, strict=True):
            if value != values[0]:
                raise _contradiction(said[0], one)
        return values[0] if values else None


def _parsed(name: str, value: str, parse: Callable[[str], T], secret: bool) -> T:
    try:
        return parse(value)
    except InvalidRequestError as error:
        if secret:
            raise InvalidRequestError(error.message, option=name) from None
        raise InvalidRequestError(error.message, option=name, value=value) from error


def _same_text(one: str, other: str) -> bool:
    """Whether two values of an option whose format is not known yet are the same for every format."""
    return one == other or one.lower() == other.lower() in ("true", "false")


def _contradiction(one: Saying, other: Saying) -> InvalidRequestError:
    return InvalidRequestError(
        "the same thing is said twice and differently: leave one of the two out",
        first=one.spelled,
        second=other.spelled,
    )


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
