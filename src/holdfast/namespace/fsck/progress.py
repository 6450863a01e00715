"""Report the progress of long work."""

from __future__ import annotations

from collections.abc import Callable

Progress = Callable[[str, int, int], None]
"""Called from time to time with a stage, how much of it is done, and how much there is; 0 if that is unknown."""


def silent(stage: str, done: int, total: int) -> None:
    """Report nothing."""
