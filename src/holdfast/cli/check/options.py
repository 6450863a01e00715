"""What somebody wants of ``holdfast check``."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

__all__ = ["STATES", "WALK_S", "CheckOptions"]

STATES = 100_000
"""States of a scene that are looked at unless told otherwise: a minute or less, and 500 MB."""

WALK_S = 60.0
"""How long random histories go on unless told otherwise."""


@dataclass(frozen=True, kw_only=True)
class CheckOptions:
    """The options as they were given; None and empty where they were not.

    Attributes:
        seconds: for each scene, or for a whole walk.
        states: for each scene.
        save: a directory.
        html: a file that is not there yet.
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
    coverage: bool
    html: Path | None
    every: bool
    listed: bool
