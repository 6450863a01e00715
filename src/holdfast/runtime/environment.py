"""Bundle everything that code takes from its surroundings: time, random tokens, threads and seeded chance."""

from __future__ import annotations

from dataclasses import dataclass, field

from holdfast.runtime.chance import SeededRandom
from holdfast.runtime.clock import Clock, SystemClock
from holdfast.runtime.ids import Ids, SystemIds
from holdfast.runtime.runner import Runner, ThreadRunner

__all__ = ["Environment"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Environment:
    """The clock, ids, threads and chance that code runs with, handed in as one value.

    The checker and tests replace it by a simulated one; production code uses the defaults.

    Attributes:
        chance: seeded random draws, for jitter and sampling; never for tokens.
    """

    clock: Clock = field(default_factory=SystemClock)
    ids: Ids = field(default_factory=SystemIds)
    runner: Runner = field(default_factory=ThreadRunner)
    chance: SeededRandom = field(default_factory=lambda: SeededRandom(int(SystemIds().token(), 16)))
