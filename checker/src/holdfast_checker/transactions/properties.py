"""Define the properties of transactions: T1 strict serializability, T3 exactly-once effects, T5 no deadlock.

The names are those of the invariants in ARCHITECTURE.md. T2 (all or nothing) and T4 (alone) follow from T1: a half of a
transaction, or one that fails because of another one of its group, has no place in any order.

All are judged at the end of a history: what was wrong before is wrong then, too. Goals say what some history must
reach.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import cast

from holdfast_checker.framework.subject import Goal, Judged, Rule, by_name
from holdfast_checker.histories.effects import Effect, what_is_missing, what_is_repeated
from holdfast_checker.histories.history import Operation, Outcome, operations_in
from holdfast_checker.histories.linearizable import Model, crashes_in, end_of_crashes, judge_with_crashes, of_clients
from holdfast_checker.kernel.calls import canonical
from holdfast_checker.kernel.world import View
from holdfast_checker.simulated.database import DATABASE, Image
from holdfast_checker.simulated.locks import LockedImage
from holdfast_checker.transactions.narration import tell_answer, tell_transaction
from holdfast_checker.transactions.scripts import EVERYTHING, FAILED, Contents, Script, apply, to_text

UNIT = "unit/"
"""Key prefix of the counter of each unit of work, whose number says how often the unit took effect."""


@dataclass(frozen=True)
class Setting(Judged):
    """The context of the properties of a transactions world: the records at the start, and cached verdicts."""

    start: Contents


def contents_of(view: View) -> Contents:
    """Return the committed records of the database in a state of the world, decoded."""
    records = cast("Image", view.states[DATABASE]).records
    return tuple((key.decode(), (to_text(record.value), record.number)) for key, record in records.as_dict().items())


def _operations(view: View) -> list[Operation]:
    """Return the attempts that may have had an effect, or claim to have read; their steps become their arguments."""
    return [
        replace(one, args=cast("tuple[object, ...]", one.notes[-1]), notes=())
        for one in of_clients(operations_in(view))
        if one.notes and one.outcome is not Outcome.FAILED
    ]


# --- T1 ---------------------------------------------------------------------------------------------------------------
def _serializable(setting: Setting, view: View) -> str | None:
    operations, crashes = _operations(view), crashes_in(operations_in(view))
    last = max((one.ended or one.invoked for one in operations), default=0)
    final = Operation(
        who="the last reader",
        name="transaction",
        args=(EVERYTHING,),
        invoked=last + 1,
        ended=last + 2,
        outcome=Outcome.OK,
        value=("saw", (contents_of(view),)),
    )
    model = Model(initial=setting.start, apply=apply, tell=tell_transaction, tell_answer=tell_answer)
    key = canonical((operations, crashes, final.value))
    return setting.once(key, lambda: judge_with_crashes([*operations, final], crashes, model) or None)


# --- T3 ---------------------------------------------------------------------------------------------------------------
def _effects(view: View) -> list[Effect]:
    counted = ((name, content[1]) for name, content in contents_of(view) if name.startswith(UNIT))
    return [Effect(name.removeprefix(UNIT), f"commit {each}") for name, number in counted for each in range(number)]


def _finished(view: View) -> list[str]:
    """Return the units whose commit was reported as successful, now or before, and cannot be undone by a crash."""
    found: set[str] = set()
    crashed = end_of_crashes(operations_in(view))
    for one in (one for one in _operations(view) if one.invoked > crashed):
        steps = cast("Script", one.args)
        if one.outcome is Outcome.OK and FAILED not in steps:
            found |= {str(step[1]) for step in steps if step[0] == "add"}
    return sorted(name.removeprefix(UNIT) for name in found if name.startswith(UNIT))


def _exactly_once(setting: Setting, view: View) -> str | None:
    effects = _effects(view)
    missing = [one for one in what_is_missing(_finished(view), effects) if "did not take effect" in one]
    return "; ".join([*what_is_repeated(effects), *missing]) or None


# --- T5 ---------------------------------------------------------------------------------------------------------------
def _waits_forever(setting: Setting, view: View) -> str | None:
    state = view.states[DATABASE]
    locks = sorted(state.locks, key=lambda lock: (lock.holder, lock.key)) if isinstance(state, LockedImage) else []
    if not locks:
        return None
    held = "; ".join(f"{lock.holder} holds {lock.key.decode()}" for lock in locks)
    return f"no transaction can go on: {held}"


RULES: Mapping[str, Rule] = by_name(
    Rule(
        "T1",
        "strictly serializable",
        "The transactions that took effect, and were not undone by a crash of the database, could have run one after "
        "the other, each between its start and its end: all that their callers saw, and all records in the end, are "
        "explained by that order.",
        end=_serializable,
    ),
    Rule(
        "T3",
        "exactly once",
        "No unit of work takes effect twice, and each whose caller was told of its success has taken effect, "
        "unless the database has crashed since it began.",
        end=_exactly_once,
    ),
    Rule("T5", "no deadlock", "No transactions wait for each other in a circle.", end=_waits_forever),
)


# --- goals ------------------------------------------------------------------------------------------------------------
def of_operations(meaning: str, holds: Callable[[Sequence[Operation]], bool]) -> Goal:
    """Return a coverage goal that is reached if `holds` is true for the recorded client operations of an execution."""
    return Goal(meaning, end=lambda context, view: holds(of_clients(operations_in(view))))


def _goes_on_after_a_crash(context: object, view: View) -> bool:
    operations = operations_in(view)
    return any(one.invoked > end_of_crashes(operations) > 0 for one in of_clients(operations))


CRASHED = Goal("a crash undoes what had an answer, and a client goes on", end=_goes_on_after_a_crash)


def _value(operation: Operation) -> tuple[object, ...]:
    return cast("tuple[object, ...]", operation.value) if operation.outcome is Outcome.OK else ("",)


def _steps(operation: Operation) -> tuple[object, ...]:
    return cast("tuple[object, ...]", operation.notes[-1]) if operation.notes else ()


GOALS: Mapping[str, Goal] = {
    "all": of_operations(
        "every transaction takes effect",
        lambda operations: all(
            any(one.who == who and _value(one)[0] == "saw" and FAILED not in _steps(one) for one in operations)
            for who in {one.who for one in operations}
        ),
    ),
    "conflict": of_operations(
        "an attempt conflicts, and a later one of the same transaction takes effect",
        lambda operations: any(
            one.outcome is Outcome.FAILED and one.notes and any(_value(it)[0] == "saw" for it in operations[at:])
            for at, one in enumerate(operations)
        ),
    ),
    "unknown": of_operations(
        "the outcome of a transaction stays unknown to its caller",
        lambda operations: any(one.outcome is Outcome.UNKNOWN for one in operations),
    ),
    "crashed": CRASHED,
    "error": of_operations(
        "the error of a function reaches its caller",
        lambda operations: any(_value(one)[0] == "saw" and FAILED in _steps(one) for one in operations),
    ),
    "given-up": of_operations(
        "a transaction is given up after its last attempt",
        lambda operations: any(
            one.outcome is Outcome.FAILED and not any(it.who == one.who for it in operations[at + 1 :])
            for at, one in enumerate(operations)
        ),
    ),
}
"""By name."""
