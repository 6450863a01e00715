"""Define how units run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from holdfast.errors import InvalidRequestError
from holdfast.wording import nearest

CLIENT, SERVER = "client", "server"

_BUFFERING = (CLIENT, SERVER)
MOST_DEFERRED = 100
"""So many ids of the longest kind fit into the record of a task's progress."""

_NUMBERS = {"group": 1024, "max_reads": 10**9, "rounds": 1000, "most_deferred": MOST_DEFERRED}
"""The most that a setting may be."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UnitSettings:
    """How the units of a job run.

    Attributes:
        group: the most units that share one commit; 1 commits each by itself. Groups shrink while they conflict.
            More units in a commit need fewer round trips, and become visible later.
        buffering: where the read list of a unit is (paper 003, 4.3): ``client`` keeps what was read in the memory of
            the task, and validates it at the commit; ``server`` keeps it as locks in the database, for units that read
            too much for the memory of a task: each read is a round trip then, and each unit has a commit of its own.
        max_reads: how many cells a unit may read.
        timeout_s: how long one run of a unit's function may take, seconds.
        patience_s: how long a task waits for a database that is not available, seconds.
        lease_s: how long a worker of a work list may give no sign of life, seconds, until others take over its items.
            A call into C that keeps Python's lock for longer makes others run the unit again and again.
        rounds: how often a unit that conflicts is tried again at the end of its task; then it locks what it reads.
        most_deferred: how many units may be put off because they conflict, before they are tried again at once: their
            keys are part of every commit, and the units stay in memory.
    """

    group: int = 32
    buffering: str = CLIENT
    max_reads: int = 100_000
    timeout_s: float = 60.0
    patience_s: float = 120.0
    lease_s: float = 30.0
    rounds: int = 7
    most_deferred: int = MOST_DEFERRED

    @staticmethod
    def of(given: Mapping[str, Any]) -> UnitSettings:
        """Return settings from keyword arguments.

        Raises:
            InvalidRequestError: there is no such setting, or a value is out of range.
        """
        known = [one.name for one in fields(UnitSettings)]
        for name in given:
            if name not in known:
                raise InvalidRequestError(f"there is no such setting for units: {nearest(name, known)}", setting=name)
        return UnitSettings(**given)

    def __post_init__(self) -> None:
        if self.buffering not in _BUFFERING:
            raise InvalidRequestError(
                f"no such buffering: {nearest(str(self.buffering), _BUFFERING)}", buffering=self.buffering
            )
        for name, most in _NUMBERS.items():
            given = getattr(self, name)
            if isinstance(given, bool) or not isinstance(given, int) or not 1 <= given <= most:
                raise InvalidRequestError(f"{name} is a number from 1 to {most}: change it", given=given)
        for name in ("timeout_s", "patience_s", "lease_s"):
            given = getattr(self, name)
            if isinstance(given, bool) or not isinstance(given, int | float) or not 0 < given < 10**7:
                raise InvalidRequestError(f"{name} is a number of seconds greater than 0: change it", given=given)
