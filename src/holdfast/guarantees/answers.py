"""Define answers and rows of the table of guarantees."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

__all__ = ["OR", "Answer", "Guarantee", "no", "yes"]

OR = "; or "
"""Separates circumstances each of which is enough."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """A committer's answer to a row.

    Attributes:
        holds: the answer.
        unless: the circumstances in which the opposite is true; empty if there are none.
        why: the reason, in one line.
    """

    holds: bool
    unless: str = ""
    why: str

    @property
    def circumstances(self) -> tuple[str, ...]:
        """Split `unless` into circumstances, each of which is enough."""
        return tuple(self.unless.split(OR)) if self.unless else ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Guarantee:
    """A row of the table.

    Attributes:
        name: short and constant, for programs.
        title: for tables.
        meaning: one sentence.
        wanted: the answer that users want.
        answers: by name of the committer.
    """

    name: str
    title: str
    meaning: str
    wanted: bool
    answers: Mapping[str, Answer]


def yes(why: str, unless: str = "") -> Answer:
    """Answer that the row holds."""
    return Answer(holds=True, unless=unless, why=why)


def no(why: str, unless: str = "") -> Answer:
    """Answer that the row does not hold."""
    return Answer(holds=False, unless=unless, why=why)
