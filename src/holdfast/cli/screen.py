"""Lay out text for a terminal or a pipe, with control characters escaped; do not wrap lines in a pipe."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from typing import TextIO

ENDLESS = 1_000_000
"""The line width if there is no terminal."""

_MOST_PADDED = 100
"""Pad a column to at most this width: one long cell must not fill every other row with blanks."""

# The characters to escape: C0 except the line feed, DEL, C1 (which some terminals obey), characters that change the
# direction of text or break lines in some programs, and lone surrogates, which no encoding can write.
_UNSAFE = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


def escape_controls(text: str, escape: Callable[[str], str] | None = None) -> str:
    """Escape the control characters in a string, as in ``\\x1b[2J``; line feeds stay.

    Args:
        escape: returns the replacement for one character; None for the default, a form for people.
    """
    return _UNSAFE.sub(lambda found: (escape or _escape_character)(found[0]), text)


def escape_to_one_line(text: str) -> str:
    """Escape the control characters in a string, including line feeds."""
    return escape_controls(text).replace("\n", "\\n")


def _escape_character(character: str) -> str:
    if character in _SHORT:
        return _SHORT[character]
    return f"\\x{ord(character):02x}" if character < "\u0100" else f"\\u{ord(character):04x}"


_SHORT = {"\t": "\\t", "\r": "\\r"}


def is_terminal(stream: TextIO | None) -> bool:
    """Check whether a stream is a terminal. None is one that was closed when this process started."""
    try:
        return stream is not None and stream.isatty()
    except ValueError:  # the stream was closed later
        return False


def plain_table(columns: Sequence[str], rows: Iterable[Sequence[str]], right: Sequence[str]) -> list[str]:
    """Format a table as one line of column names and one line for each row, with aligned columns two blanks apart."""
    from rich.cells import cell_len

    lines = [[escape_to_one_line(cell) for cell in row] for row in [list(map(_join_heading_lines, columns)), *rows]]
    widths = [
        max((wide for wide in map(cell_len, cells) if wide <= _MOST_PADDED), default=0)
        for cells in zip(*lines, strict=True)
    ]
    texts = []
    for line in lines:
        blanks = [" " * max(width - cell_len(cell), 0) for cell, width in zip(line, widths, strict=True)]
        cells = zip(columns, line, blanks, strict=True)
        texts.append("  ".join(blank + cell if name in right else cell + blank for name, cell, blank in cells).rstrip())
    return texts


def _join_heading_lines(name: str) -> str:
    """Join the lines of a column's name that is broken for narrow screens, between words or within a word."""
    return re.sub(r"(?<=[-_])\n", "", name).replace("\n", " ")
