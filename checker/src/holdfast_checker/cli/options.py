"""Define the options of ``holdfast check``, and their default limits."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

STATES = 100_000
"""Default limit of states in a scene; exploring them takes a minute or less, and 500 MB."""

WALK_S = 60.0
"""Default time limit of a random walk."""


@dataclass(frozen=True, kw_only=True)
class CheckOptions:
    """The parsed options of ``holdfast check``; None or empty if not given.

    Attributes:
        seconds: time limit of each scene, or of the whole walk through random histories.
        states: limit of states in each scene.
        save: directory for counterexamples.
    """

    name: str | None
    scenes: tuple[str, ...]
    properties: tuple[str, ...]
    small: bool
    walk: bool
    seed: int | None
    first: int | None
    histories: int | None
    seconds: float | None
    states: int | None
    save: Path | None
    replay: Path | None
    details: bool
    every: bool
    listed: bool
