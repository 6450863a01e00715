"""Bundle the services that code must not get from the system itself: time, tokens, threads and random numbers."""

from __future__ import annotations

from dataclasses import dataclass, field

from holdfast.runtime.chance import SeededRandom
from holdfast.runtime.clock import Clock, SystemClock
from holdfast.runtime.ids import Ids, SystemIds
from holdfast.runtime.runner import Runner, ThreadRunner


@dataclass(frozen=True, slots=True, kw_only=True)
class Environment:
    """The clock, ids, threads and random numbers that code uses, passed as one value.

    The checker and the tests pass a simulated environment; production code uses the defaults.

    Attributes:
        chance: seeded random numbers, for jitter and sampling; never for tokens.
    """

    clock: Clock = field(default_factory=SystemClock)
    ids: Ids = field(default_factory=SystemIds)
    runner: Runner = field(default_factory=ThreadRunner)
    chance: SeededRandom = field(default_factory=lambda: SeededRandom(int(SystemIds().token(), 16)))
