"""Define the rows of the table of guarantees, and the answers that a row can have."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

OR = "; or "
"""Separates circumstances in `Answer.unless`, each of which alone reverses the answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """A statement of whether a committer gives one of the guarantees.

    Attributes:
        holds: whether the committer gives the guarantee in general.
        unless: the circumstances in which the opposite is true, as text; empty if there are none.
        why: the reason, in one line.
    """

    holds: bool
    unless: str = ""
    why: str

    @property
    def circumstances(self) -> tuple[str, ...]:
        """Split `unless` into its parts; each circumstance alone reverses the answer."""
        return tuple(self.unless.split(OR)) if self.unless else ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Guarantee:
    """A guarantee: one row of the table.

    Attributes:
        name: a short name that does not change, for programs.
        title: the heading of the row.
        meaning: a definition in one sentence.
        wanted: the answer that users want.
        answers: the answer of each committer, by its name.
    """

    name: str
    title: str
    meaning: str
    wanted: bool
    answers: Mapping[str, Answer]


def yes(why: str, unless: str = "") -> Answer:
    """Answer that the guarantee holds."""
    return Answer(holds=True, unless=unless, why=why)


def no(why: str, unless: str = "") -> Answer:
    """Answer that the guarantee does not hold."""
    return Answer(holds=False, unless=unless, why=why)
