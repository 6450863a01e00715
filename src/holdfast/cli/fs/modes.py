"""Parse modes as ``chmod`` takes them: octal numbers, and changes such as ``u+rwX,go-w``."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from holdfast.errors import InvalidRequestError

ModeChange = Callable[[int, bool], int]
"""Returns the new mode for an old one; the second argument says whether it is a directory's."""

_OCTAL = re.compile(r"[0-7]{1,4}")
_CLAUSE = re.compile(r"([ugoa]*)((?:[-+=](?:[ugo]|[rwxXt]*))+)")
_ACTION = re.compile(r"([-+=])([ugo]|[rwxXt]*)")
_SHIFT = {"u": 6, "g": 3, "o": 0}
_BITS = {"r": 4, "w": 2, "x": 1}
_STICKY = 0o1000


def parse_mode(text: str) -> ModeChange:
    """Return what a mode does to the modes of files and directories. If a change names nobody, it means everybody.

    Raises:
        InvalidRequestError: it is no mode.
    """
    if _OCTAL.fullmatch(text) and int(text, 8) <= 0o1777:
        return lambda mode, is_directory: int(text, 8)
    clauses = [_CLAUSE.fullmatch(clause) for clause in text.split(",")]
    if not all(clauses):
        raise InvalidRequestError("this is no mode: write an octal number up to 1777, or u+rwX,go-w", mode=text)
    actions = [
        _Action(found[1].replace("a", "ugo") or "ugo", operator, letters)
        for found in clauses
        if found is not None
        for operator, letters in _ACTION.findall(found[2])
    ]

    def change(mode: int, is_directory: bool) -> int:
        for action in actions:
            mode = action.apply(mode, is_directory)
        return mode

    return change


@dataclass(frozen=True, slots=True)
class _Action:
    """One change.

    Attributes:
        who: for whom: letters of ``ugo``.
        letters: permissions, or one of ``ugo`` whose permissions are copied.
    """

    who: str
    operator: str
    letters: str

    def apply(self, mode: int, is_directory: bool) -> int:
        bits = self._bits(mode, is_directory)
        chosen = sum(bits << _SHIFT[one] for one in set(self.who))
        affected = sum(7 << _SHIFT[one] for one in set(self.who))
        if "o" in self.who:  # as in GNU's chmod
            affected |= _STICKY
            chosen |= _STICKY if "t" in self.letters else 0
        if self.operator == "+":
            return mode | chosen
        return mode & ~chosen if self.operator == "-" else mode & ~affected | chosen

    def _bits(self, mode: int, is_directory: bool) -> int:
        if self.letters and self.letters in _SHIFT:
            return mode >> _SHIFT[self.letters] & 7
        bits = sum(_BITS[one] for one in set(self.letters) & _BITS.keys())
        return bits | 1 if "X" in self.letters and (is_directory or mode & 0o111) else bits
