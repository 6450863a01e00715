"""Parse option strings, as Spark users write them, into typed fields, and reject unsupported values."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from holdfast.errors import InvalidRequestError
from holdfast.wording import nearest

OptionParser = Callable[[str], Mapping[str, Any]]


def choice(field: str, choices: Mapping[str, str]) -> OptionParser:
    """Return a parser for a fixed set of words, in any case; `choices` maps each word to a value of the field."""

    def parse(value: str) -> Mapping[str, Any]:
        try:
            return {field: choices[value.strip().lower()]}
        except KeyError:
            raise InvalidRequestError(f"no such choice: {nearest(value, choices)}") from None

    return parse


def boolean(field: str) -> OptionParser:
    """Return a parser for ``true`` and ``false``, in upper or lower case."""

    def parse(value: str) -> Mapping[str, Any]:
        word = value.strip().lower()
        if word not in ("true", "false"):
            raise InvalidRequestError("not a boolean: use true or false")
        return {field: word == "true"}

    return parse


def integer(field: str, least: int, most: int) -> OptionParser:
    """Return a parser for whole numbers from `least` to `most`."""

    def parse(value: str) -> Mapping[str, Any]:
        try:
            number = int(value.strip())
        except ValueError:
            number = least - 1
        if not least <= number <= most:
            raise InvalidRequestError(f"not a whole number from {least} to {most}: enter one")
        return {field: number}

    return parse


def single_character(field: str) -> OptionParser:
    """Return a parser for one ASCII character; ``\\t`` stands for a tab, as in Spark."""

    def parse(value: str) -> Mapping[str, Any]:
        character = "\t" if value == "\\t" else value
        if len(character) != 1 or not character.isascii() or character in "\r\n\0":
            raise InvalidRequestError("not a single ASCII character: enter one, or \\t for a tab")
        return {field: character}

    return parse


def text(field: str) -> OptionParser:
    """Return a parser that accepts any string."""
    return lambda value: {field: value}


def only(accepted: Iterable[str], instead: str) -> OptionParser:
    """Return a parser for a Spark option that is supported only with some values.

    Args:
        accepted: the supported values.
        instead: what to do about any other value, for the error message.
    """
    words = frozenset(word.lower() for word in accepted)

    def parse(value: str) -> Mapping[str, Any]:
        if value.lower() not in words:
            raise InvalidRequestError(f"this value is not supported: {instead}")
        return {}

    return parse
