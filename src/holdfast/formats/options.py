"""Option strings, as Spark users write them, into typed options; values that cannot be honoured are refused."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from holdfast.errors import InvalidRequestError
from holdfast.wording import nearest

if TYPE_CHECKING:
    from holdfast.formats.base import FileFormat, FormatOptions, ParsedOptions

__all__ = [
    "OptionParser",
    "boolean",
    "choice",
    "integer",
    "only",
    "parse_format_options",
    "single_character",
    "text",
]

OptionParser = Callable[[str], Mapping[str, Any]]
Opt = TypeVar("Opt", bound="FormatOptions")


def parse_format_options(file_format: FileFormat[Opt], given: Mapping[str, str]) -> ParsedOptions[Opt]:
    """See `FileFormat.parse_options`."""
    from holdfast.formats.base import ParsedOptions

    fields: dict[str, Any] = {}
    set_by: dict[str, str] = {}
    unknown: list[str] = []
    for key, value in given.items():
        parser = file_format.parsers.get(key.lower())
        if parser is None:
            unknown.append(key)
            continue
        try:
            parsed = parser(value)
        except InvalidRequestError as error:
            raise InvalidRequestError(error.message, option=key, value=value, format=file_format.name) from error
        for name, field_value in parsed.items():
            if name in fields and fields[name] != field_value:
                raise InvalidRequestError("two options contradict each other: give one", first=set_by[name], second=key)
            fields[name] = field_value
            set_by[name] = key
    return ParsedOptions(dataclasses.replace(file_format.default_options, **fields), tuple(unknown))


def choice(field: str, choices: Mapping[str, str]) -> OptionParser:
    """One of some words, in any case; the mapping leads from the word to the field's value."""

    def parse(value: str) -> Mapping[str, Any]:
        try:
            return {field: choices[value.strip().lower()]}
        except KeyError:
            raise InvalidRequestError(f"no such choice: {nearest(value, choices)}") from None

    return parse


def boolean(field: str) -> OptionParser:
    """``true`` or ``false``, in any case."""

    def parse(value: str) -> Mapping[str, Any]:
        word = value.strip().lower()
        if word not in ("true", "false"):
            raise InvalidRequestError("not a boolean: write true or false")
        return {field: word == "true"}

    return parse


def integer(field: str, least: int, most: int) -> OptionParser:
    """A whole number within limits."""

    def parse(value: str) -> Mapping[str, Any]:
        try:
            number = int(value.strip())
        except ValueError:
            number = least - 1
        if not least <= number <= most:
            raise InvalidRequestError(f"not a whole number from {least} to {most}: write one")
        return {field: number}

    return parse


def single_character(field: str) -> OptionParser:
    """One ASCII character; ``\\t`` stands for a tab as in Spark."""

    def parse(value: str) -> Mapping[str, Any]:
        character = "\t" if value == "\\t" else value
        if len(character) != 1 or not character.isascii() or character in "\r\n\0":
            raise InvalidRequestError("not a single ASCII character: write one, or \\t for a tab")
        return {field: character}

    return parse


def text(field: str) -> OptionParser:
    """Any string."""
    return lambda value: {field: value}


def only(accepted: Iterable[str], instead: str) -> OptionParser:
    """An option of Spark's that is honoured for some values only; `instead` tells what to do for the others."""
    words = frozenset(word.lower() for word in accepted)

    def parse(value: str) -> Mapping[str, Any]:
        if value.lower() not in words:
            raise InvalidRequestError(f"this value is not supported: {instead}")
        return {}

    return parse
