"""Parse single option values: booleans, words, whole numbers and sizes. Each error is one sentence."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import TypeVar

from holdfast.errors import InvalidRequestError
from holdfast.wording import nearest

T = TypeVar("T")

MIB = 1024 * 1024
_SIZE = re.compile(r"(\d+)\s*([kmgt]?)(?:i?b)?")
_UNITS = {"": 1, "k": 1024, "m": MIB, "g": 1024 * MIB, "t": 1024 * 1024 * MIB}


def choice(choices: Mapping[str, T]) -> Callable[[str], T]:
    """Return a parser for a fixed set of words, in any case; `choices` maps each word to its value."""

    def parse(text: str) -> T:
        word = text.strip().lower()
        if word not in choices:
            raise InvalidRequestError(f"no such choice: {nearest(word, choices)}")
        return choices[word]

    return parse


def one_of(*words: str) -> Callable[[str], str]:
    """Return a parser for some words, in any case."""
    return choice({word: word for word in words})


def as_boolean(text: str) -> bool:
    """Parse ``true`` or ``false``, in any case."""
    word = text.strip().lower()
    if word not in ("true", "false"):
        raise InvalidRequestError("not a boolean: use true or false")
    return word == "true"


def number(least: int, most: int) -> Callable[[str], int]:
    """Return a parser for whole numbers from `least` to `most`, both included."""

    def parse(text: str) -> int:
        word = text.strip()
        if not (word.isascii() and word.isdigit() and least <= int(word) <= most):
            raise InvalidRequestError(f"not a whole number from {least} to {most}: write one")
        return int(word)

    return parse


def size(least: int) -> Callable[[str], int]:
    """Return a parser for a number of bytes, with or without a unit: ``134217728``, ``128m``, ``1 GiB``."""

    def parse(text: str) -> int:
        match = _SIZE.fullmatch(text.strip().lower())
        size_bytes = int(match[1]) * _UNITS[match[2]] if match else -1
        if not least <= size_bytes < 2**50:
            at_least = f" of at least {least} bytes" if least > 1 else ""
            raise InvalidRequestError(f"not a size{at_least}: write bytes, or a number with k, m or g such as 128m")
        return size_bytes

    return parse
