"""Units of a job over the toy store: exactly once with a marker in the same commit, and caught without it."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import cast

import pytest

from holdfast.errors import OutcomeUnknownError
from holdfast_checker.histories.exactly_once import exactly_once_property, progress_property
from holdfast_checker.kernel.calls import Access, Alternative, Call, Fault, Footprint
from holdfast_checker.kernel.explore import Exploration, explore
from holdfast_checker.kernel.process import Actor, Port
from holdfast_checker.kernel.world import Property, View, World
from tests.checker.histories.toy_store import (
    START,
    STORE,
    Commit,
    Committed,
    OptimisticStore,
    Transaction,
    commit,
    effects_of,
    image_of,
    is_commit,
)

UNITS = ("a", "b", "c")
Program = Callable[[Port], None]


def _is_success(view: View) -> bool:
    return image_of(view).log("success")[-1][0] != START


ONCE = exactly_once_property(units=UNITS, effects_of=effects_of, is_success=_is_success)


def _tell_success(port: Port) -> None:
    commit(port, Commit(version=port.name, puts=(("success", True),)))


def _explore(
    programs: dict[str, Program],
    faults: dict[Fault, int],
    properties: tuple[Property, ...] = (ONCE,),
    progress: object = (),
) -> Exploration:
    world = World(
        name="units",
        summary="",
        actors=tuple(Actor(name, program) for name, program in programs.items()),
        resources={STORE: OptimisticStore({"x": 0, "progress": progress}), "turns": _Turns()},
        properties=properties,
        budgets=faults,
        observed=is_commit,
    )
    return explore(world, until=lambda found: len(found.findings) == len(properties))


# --- markers ----------------------------------------------------------------------------------------------------------
def _attempt(*, marker: bool, units: tuple[str, ...] = UNITS) -> Program:
    """Commit every unit separately; retry one whose outcome is unknown."""

    def commit_unit(port: Port, unit: str) -> None:
        asked = Commit(version=f"{port.name} {unit}", inserts=(f"done/{unit}",) if marker else (), unit=unit)
        while True:
            try:
                commit(port, asked)
                return
            except OutcomeUnknownError:
                continue

    def run(port: Port) -> None:
        for unit in units:
            commit_unit(port, unit)
        try:
            _tell_success(port)
        except OutcomeUnknownError:
            return

    return run


def test_two_attempts_with_markers() -> None:
    """A speculative attempt or a zombie runs the same units."""
    programs = {"attempt 0": _attempt(marker=True), "attempt 1": _attempt(marker=True)}
    found = _explore(programs, {Fault.CRASH: 1, Fault.LOST_REPLY: 1})
    assert found.complete and not found.findings


def test_two_attempts_without_markers() -> None:
    found = _explore({"attempt 0": _attempt(marker=False), "attempt 1": _attempt(marker=False)}, {})
    assert found.findings["T2"].broke == "unit 'a' took effect 2 times: by attempt 0, then attempt 1"


def test_a_unit_is_left_out() -> None:
    found = _explore({"attempt 0": _attempt(marker=True, units=UNITS[:2])}, {})
    assert found.findings["T2"].broke == "unit 'c' did not take effect"


@pytest.mark.parametrize("marker", [True, False])
def test_the_reply_of_a_commit_is_lost(marker: bool) -> None:
    """The commit is retried; the marker shows that it was done."""
    found = _explore({"attempt 0": _attempt(marker=marker)}, {Fault.LOST_REPLY: 1})
    assert found.faults[Fault.LOST_REPLY]
    if marker:
        assert found.complete and not found.findings
    else:
        assert found.findings["T2"].broke == "unit 'a' took effect 2 times: by attempt 0, then attempt 0"


# --- progress ---------------------------------------------------------------------------------------------------------
def _units(record: object) -> tuple[str, ...]:
    """Return what a retry skips: the units in a set, or the first ones of a count."""
    return UNITS[:record] if isinstance(record, int) else cast("tuple[str, ...]", record)


PROGRESS = progress_property(
    claimed_of=lambda view: frozenset(_units(image_of(view).log("progress")[-1][1])), effects_of=effects_of
)


def _task(port: Port) -> None:
    """Run a task whose first unit reads x; a unit that meets a conflict is deferred to the end.

    Its record of progress is in the commit of the unit: the set of those done, or their count, as it was at the start.
    """

    def commit_unit(unit: str) -> bool:
        transaction = Transaction(port, f"{port.name} {unit}")
        record = transaction.get("progress")
        if isinstance(record, tuple) and unit in record:
            return True
        if unit == UNITS[0]:
            transaction.get("x")
        reads = tuple((key, version) for key, (version, _value) in transaction.reads.items())
        after = record + 1 if isinstance(record, int) else (*_units(record), unit)
        asked = Commit(version=transaction.version, reads=reads, puts=(("progress", after),), unit=unit)
        return commit(port, asked) is Committed.DONE

    done = _units(Transaction(port, port.name).get("progress"))
    queue = [unit for unit in UNITS if unit not in done]
    for _round in range(2):
        queue = [unit for unit in queue if not commit_unit(unit)]
    if not queue:
        _tell_success(port)


def _disturb(port: Port) -> None:
    commit(port, Commit(version="disturber", puts=(("x", 1),)))


_TASKS: dict[str, Program] = {"attempt 0": _task, "attempt 1": _task, "disturber": _disturb}


def test_progress_is_a_set() -> None:
    found = _explore(_TASKS, {Fault.CRASH: 1}, (ONCE, PROGRESS))
    assert found.complete and not found.findings


def test_progress_is_no_count() -> None:
    """A unit was deferred, later ones are done, and the task dies: the retry starts after the count."""
    found = _explore(_TASKS, {Fault.CRASH: 1}, (ONCE, PROGRESS), progress=0)
    assert found.findings["T9"].broke == (
        "progress says that unit 'a' is done, and it did not take effect; "
        "unit 'b' took effect, and progress does not show it"
    )
    assert "took effect 2 times" in found.findings["T2"].broke


def test_a_count_goes_wrong_one_attempt_after_the_other() -> None:
    """Even without concurrency: the second attempt runs after the first one died, and skips the deferred unit."""

    def retried(port: Port) -> None:
        port.call(Call("turns", "wait"))
        _task(port)

    found = _explore({**_TASKS, "attempt 1": retried}, {Fault.CRASH: 1}, (ONCE,), progress=0)
    assert found.findings["T2"].broke == "unit 'b' took effect 2 times: by attempt 0, then attempt 1"


class _Turns:
    """Lets the second attempt start after the first one died."""

    def initial(self) -> bool:
        return False

    def key(self, state: object) -> Hashable:
        return bool(state)

    def alternatives(self, state: object, call: Call, actor: str) -> Sequence[Alternative]:
        return [Alternative(state=state)] if state else []

    def footprint(self, call: Call) -> Footprint:
        return frozenset({Access("turns", "")})

    def waits_for(self, state: object, call: Call) -> tuple[str, frozenset[Fault]]:
        return "attempt 0", frozenset()

    def bury(self, state: object, actor: str) -> bool:
        return bool(state) or actor == "attempt 0"
