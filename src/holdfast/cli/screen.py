"""Text on its way to a person: nothing in it can steer the terminal, and without one lines are never broken."""

from __future__ import annotations

import re
import sys
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from typing import TextIO

__all__ = ["ENDLESS", "in_one_line", "is_terminal", "plain_table", "shown"]

ENDLESS = 1_000_000
"""Width of a line where there is no screen."""

_MOST_PADDED = 100
"""A column is not made wider than this for the sake of one long cell, which would fill every other row with blanks."""

# C0 but the line feed, DEL, C1 (a terminal may obey those, too), what changes the direction of text or breaks lines in
# some programs, and halves of characters, which no encoding can write.
_UNSAFE = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


def shown(text: str, spell: Callable[[str], str] | None = None) -> str:
    """The text with control characters spelled out, as in ``\\x1b[2J``; line feeds stay.

    Args:
        spell: how a character is spelled; None for a person's eyes.
    """
    return _UNSAFE.sub(lambda found: (spell or _spelled)(found[0]), text)


def in_one_line(text: str) -> str:
    """As `shown`, with line feeds spelled out as well: a cell, a value."""
    return shown(text).replace("\n", "\\n")


def _spelled(letter: str) -> str:
    if letter in _WORDS:
        return _WORDS[letter]
    return f"\\x{ord(letter):02x}" if letter < "\u0100" else f"\\u{ord(letter):04x}"


_WORDS = {"\t": "\\t", "\r": "\\r"}


def is_terminal(stream: TextIO | None = None) -> bool:
    """Whether a stream, stdout if none is named, goes to a screen."""
    chosen = sys.stdout if stream is None else stream
    try:
        return chosen is not None and chosen.isatty()  # None: it was closed when this process began
    except ValueError:  # closed since
        return False


def plain_table(columns: Sequence[str], rows: Iterable[Sequence[str]], right: Sequence[str]) -> list[str]:
    """A line for the names, and one for each row; columns are two blanks apart and aligned."""
    lines = [[in_one_line(cell) for cell in row] for row in [list(map(_unbroken, columns)), *rows]]
    widths = [
        max((wide for wide in map(_width, cells) if wide <= _MOST_PADDED), default=0)
        for cells in zip(*lines, strict=True)
    ]
    aligned = [name in right for name in columns]
    return [
        "  ".join(
            _padded(cell, width, to_right) for cell, width, to_right in zip(line, widths, aligned, strict=True)
        ).rstrip()
        for line in lines
    ]


def _unbroken(name: str) -> str:
    """A name that is broken for a screen, in one line: between words, or behind a hyphen within one."""
    return re.sub(r"(?<=[-_])\n", "", name).replace("\n", " ")


def _padded(cell: str, width: int, to_right: bool) -> str:
    blanks = " " * max(width - _width(cell), 0)
    return blanks + cell if to_right else cell + blanks


def _width(text: str) -> int:
    """Columns of a screen that the text takes."""
    if text.isascii():
        return len(text)
    return sum(
        0 if unicodedata.combining(letter) else 2 if unicodedata.east_asian_width(letter) in "WF" else 1
        for letter in text
    )
