"""Forget what was acknowledged, while clients live on: as in a failover to an asynchronous replica, or in a restore."""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.runtime import Ids
from holdfast.transactions.base import Commit, Committed, Outcome, Record
from holdfast.transactions.memory import MemoryBackend

__all__ = ["ForgetfulDatabase"]


class ForgetfulDatabase(MemoryBackend):
    """A database that can lose its newest commits, though their callers were told that they had taken effect.

    Attributes:
        commits: how many there were, also those that it has lost.
        keeps: whether `make_durable` keeps what was committed before, as after a late flush; else nothing does.
    """

    def __init__(self, ids: Ids | None = None, *, keeps: bool = True) -> None:
        super().__init__(ids)
        self.keeps = keeps
        self.commits = 0
        self._before: list[dict[bytes, Record]] = []

    @property
    def newest(self) -> int:
        """How many commits it can lose."""
        return len(self._before)

    def commit_group(self, commits: Sequence[Commit]) -> list[Outcome]:
        with self._lock:
            before = dict(self._records)
            outcomes = super().commit_group(commits)
            if any(isinstance(outcome, Committed) for outcome in outcomes):
                self._before.append(before)
                self.commits += 1
            return outcomes

    def make_durable(self) -> None:
        if self.keeps:
            self.forget_nothing_before()

    def forget_nothing_before(self) -> None:
        """Keep what was committed so far for good."""
        self._before.clear()

    def forget(self, count: int) -> None:
        """Lose the newest commits."""
        with self._lock:
            if count:
                self._records = self._before[-count]
                self._keys = sorted(self._records)
                del self._before[-count:]
