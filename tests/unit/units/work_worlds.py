"""A work list with one item, from which others grow, and workers on it."""

from __future__ import annotations

from typing import Any

from holdfast.records.batches import iter_records
from holdfast.runtime import Alarm, Repeat
from holdfast.transactions.base import Backend
from holdfast.units.execution import UnitExecution
from holdfast.units.jobs import WORK_LIST, begin_job, read_task_progress
from holdfast.units.unit import UnitFunction, UnitSettings
from holdfast.units.work_list import WorkClaim, WorkList, claim_items, find_work_list, open_work_list
from holdfast.units.work_task import WorkTask
from tests.clocks import never
from tests.units_world import Shaky, UnitWorld

__all__ = ["ITEMS", "LEASE_S", "WorkWorld", "grow", "limited"]

ITEMS = 7
LEASE_S = 1.0
_MOST_CALLS = 3000


def grow(txn: Any, key: int, value: object) -> None:
    """Count a key, and emit its two children."""
    txn.put("t", ("seen", key), txn.get("t", ("seen", key), default=0) + 1)
    txn.add("t", "count")
    for child in (2 * key + 1, 2 * key + 2):
        if child < ITEMS:
            txn.emit(child, priority=-child)


class WorkWorld(UnitWorld):
    """A database with a work list that has one item, and a job with workers."""

    def __init__(self, workers: int = 1, inner: Backend | None = None) -> None:
        super().__init__(inner)
        self.job = begin_job(self.inner, "work", kind=WORK_LIST, shards=workers, environment=self.environment)
        self.items = open_work_list(self.db, "list", create=True)
        self.items.add(0)

    @property
    def list(self) -> WorkList:
        return find_work_list(self.inner, "list")

    def worker(
        self,
        slot: int = 0,
        group: int = 3,
        database: Backend | None = None,
        *,
        function: UnitFunction = grow,
        repeat: Repeat = never,
    ) -> WorkTask:
        """Return an attempt at a worker."""
        settings = UnitSettings(group=group, lease_s=LEASE_S)
        database = database or self.inner
        execution = UnitExecution(
            function, database, settings, self.environment, emit_to=self.list, alarm=Alarm(is_on=False)
        )
        return WorkTask(execution, database, self.job, slot, self.list, repeat=repeat)

    def take(self, slot: int, token: str, most: int = 1) -> WorkClaim:
        """Claim some of the items that wait."""
        waiting = list(iter_records(self.inner, *self.list.waiting))[:most]
        claim = claim_items(self.inner, self.list, self.list.claim_key(slot, token), waiting, {})
        assert claim is not None
        return claim

    def judge(self) -> None:
        """Check that each item has run once, and that nothing is left."""
        assert self.cells == {(("seen", key), "value"): 1 for key in range(ITEMS)} | {("count", "value"): ITEMS}
        assert not list(iter_records(self.inner, *self.list.range)), "no item waits, and no claim is left"
        progress = read_task_progress(self.inner, self.job)
        assert sum(one.done for one in progress) == ITEMS


def limited(shaky: Shaky) -> Shaky:
    """Let a worker that never ends fail."""
    before = shaky.before

    def count(number: int, name: str) -> None:
        assert number < _MOST_CALLS, "the worker does not end"
        before(number, name)

    shaky.before = count
    return shaky
