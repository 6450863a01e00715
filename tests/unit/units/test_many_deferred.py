"""Units that are deferred run before their group ends if they become too many: others may run the rest meanwhile."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from holdfast.runtime import Alarm
from holdfast.units.execution import UnitExecution
from holdfast.units.jobs import WORK_LIST, begin_job
from holdfast.units.unit import UnitSettings
from holdfast.units.work_list import decode_claim, find_work_list, open_work_list, release_claim
from holdfast.units.work_task import WorkTask
from tests.clocks import never
from tests.units_world import Shaky, UnitWorld, units

_MOST_PUT_OFF = 3
_FEW = UnitSettings(most_deferred=_MOST_PUT_OFF)
_COMMITS_IN_CONFLICT = 1 + _MOST_PUT_OFF
"""That of the group, and those of its first units, one by one."""

_KEYS = range(8)


def count(txn: Any, key: int, value: object) -> None:
    """Count how often a unit has taken effect, and read what others change."""
    txn.get("t", "hot")
    txn.add("t", ("ran", key))


def _disturbed(world: UnitWorld, first: int, meanwhile: Callable[[], object]) -> Shaky:
    """Return a database on which commits conflict, from one on, until units are deferred; then something happens."""
    commits = 0

    def before(_number: int, name: str) -> None:
        nonlocal commits
        if name != "commit":
            return
        commits += 1
        if first <= commits < first + _COMMITS_IN_CONFLICT:
            world.db.put("t", "hot", commits)
        elif commits == first + _COMMITS_IN_CONFLICT:
            meanwhile()

    return Shaky(world.inner, before)


def _ran_once() -> dict[tuple[Any, str], int]:
    return {(("ran", key), "value"): 1 for key in _KEYS}


def test_what_a_twin_has_done_meanwhile_is_not_done_again() -> None:
    world = UnitWorld()
    shaky = _disturbed(world, 1, lambda: world.task(count, _FEW).run(units(_KEYS)))
    world.task(count, _FEW, database=shaky).run(units(_KEYS))
    assert {key: one for key, one in world.cells.items() if key[0] != "hot"} == _ran_once()


def test_what_a_twin_has_put_off_meanwhile_runs_once() -> None:
    world = UnitWorld()

    def defer() -> None:
        twin = _disturbed(world, 1, lambda: None)
        world.task(count, UnitSettings(group=4, most_deferred=_MOST_PUT_OFF), database=twin).run(units(_KEYS))

    world.task(count, _FEW, database=_disturbed(world, 1, defer)).run(units(_KEYS))
    assert {key: one for key, one in world.cells.items() if key[0] != "hot"} == _ran_once()


def test_nothing_of_a_claim_that_was_dissolved_meanwhile_is_done() -> None:
    world = UnitWorld()
    job = begin_job(world.inner, "work", kind=WORK_LIST, shards=1, environment=world.environment)
    items = open_work_list(world.db, "list", create=True)
    items.add_many((key, None) for key in _KEYS)
    work = find_work_list(world.inner, "list")

    def worker(database: Any) -> WorkTask:
        execution = UnitExecution(count, database, _FEW, world.environment, emit_to=work, alarm=Alarm(is_on=False))
        return WorkTask(execution, database, job, 0, work, repeat=never)

    def dissolve_and_run() -> None:
        [(key, record)] = world.inner.scan(*work.claims_range, 2).records
        assert release_claim(world.inner, work, decode_claim(key, record))
        worker(world.inner).run()

    worker(_disturbed(world, 2, dissolve_and_run)).run()  # the first commit is that of the claim
    assert {key: one for key, one in world.cells.items() if key[0] != "hot"} == _ran_once()
