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

from holdfast_checker.framework.scene_files import Judges, read_rules
from holdfast_checker.framework.subject import Goal, Rule, VerdictCache
from holdfast_checker.histories.effects import Effect, describe_repeated_units, describe_unmatched_units
from holdfast_checker.histories.history import Operation, Outcome, recorded_operations
from holdfast_checker.histories.linearizable import (
    Model,
    client_operations,
    judge_with_crashes,
    last_crash_position,
    lossy_crashes,
)
from holdfast_checker.kernel.calls import canonical_key
from holdfast_checker.kernel.world import View
from holdfast_checker.simulated.database import DATABASE, DatabaseState
from holdfast_checker.simulated.locks import LockableState
from holdfast_checker.transactions.narration import describe_answer, describe_transaction
from holdfast_checker.transactions.scripts import EVERYTHING, FAILED, Contents, Script, apply_to_model, decode_text

UNIT = "unit/"
"""Key prefix of the counter of each unit of work, whose number says how often the unit took effect."""


@dataclass(frozen=True)
class TransactionPropertyContext(VerdictCache):
    """The context of the properties of a transactions world: the records at the start, and cached verdicts."""

    start: Contents


def committed_contents(view: View) -> Contents:
    """Return the committed records of the database in a state of the world, decoded."""
    records = cast("DatabaseState", view.states[DATABASE]).records
    return tuple((key.decode(), (decode_text(one.value), one.number)) for key, one in records.as_dict().items())


def _select_attempts_to_judge(view: View) -> list[Operation]:
    """Return the attempts that may have had an effect, or claim to have read; their steps become their arguments."""
    return [
        replace(one, args=cast("tuple[object, ...]", one.notes[-1]), notes=())
        for one in client_operations(recorded_operations(view))
        if one.notes and one.outcome is not Outcome.FAILED
    ]


# --- T1 ---------------------------------------------------------------------------------------------------------------
def _judge_serializability(setting: TransactionPropertyContext, view: View) -> str | None:
    operations, crashes = _select_attempts_to_judge(view), lossy_crashes(recorded_operations(view))
    last = max((one.ended or one.invoked for one in operations), default=0)
    final = Operation(
        who="the last reader",
        name="transaction",
        args=(EVERYTHING,),
        invoked=last + 1,
        ended=last + 2,
        outcome=Outcome.OK,
        value=("saw", (committed_contents(view),)),
    )
    model = Model(initial=setting.start, apply=apply_to_model, tell=describe_transaction, tell_answer=describe_answer)
    key = canonical_key((operations, crashes, final.value))
    return setting.get_cached_verdict(key, lambda: judge_with_crashes([*operations, final], crashes, model) or None)


# --- T3 ---------------------------------------------------------------------------------------------------------------
def _committed_effects(view: View) -> list[Effect]:
    counted = ((name, content[1]) for name, content in committed_contents(view) if name.startswith(UNIT))
    return [Effect(name.removeprefix(UNIT), f"commit {each}") for name, number in counted for each in range(number)]


def _committed_units(view: View) -> list[str]:
    """Return the units whose commit was reported as successful, now or before, and cannot be undone by a crash."""
    found: set[str] = set()
    crashed = last_crash_position(recorded_operations(view))
    for one in (one for one in _select_attempts_to_judge(view) if one.invoked > crashed):
        steps = cast("Script", one.args)
        if one.outcome is Outcome.OK and FAILED not in steps:
            found |= {str(step[1]) for step in steps if step[0] == "add"}
    return sorted(name.removeprefix(UNIT) for name in found if name.startswith(UNIT))


def _judge_exactly_once(setting: TransactionPropertyContext, view: View) -> str | None:
    effects = _committed_effects(view)
    missing = [one for one in describe_unmatched_units(_committed_units(view), effects) if "did not take effect" in one]
    return "; ".join([*describe_repeated_units(effects), *missing]) or None


# --- T5 ---------------------------------------------------------------------------------------------------------------
def _judge_endless_waiting(setting: TransactionPropertyContext, view: View) -> str | None:
    state = view.states[DATABASE]
    locks = sorted(state.locks, key=lambda lock: (lock.holder, lock.key)) if isinstance(state, LockableState) else []
    if not locks:
        return None
    held = "; ".join(f"{lock.holder} holds {lock.key.decode()}" for lock in locks)
    return f"no transaction can go on: {held}"


_JUDGES: Mapping[str, Judges] = {
    "T1": (None, _judge_serializability),
    "T3": (None, _judge_exactly_once),
    "T5": (None, _judge_endless_waiting),
}
"""The functions that judge a step and the end of a history, by the name of the property."""

RULES: Mapping[str, Rule] = read_rules("holdfast_checker.transactions", _JUDGES)


# --- goals ------------------------------------------------------------------------------------------------------------
def goal_for_operations(meaning: str, holds: Callable[[Sequence[Operation]], bool]) -> Goal:
    """Return a coverage goal that is reached if `holds` is true for the recorded client operations of an execution."""
    return Goal(meaning, end=lambda context, view: holds(client_operations(recorded_operations(view))))


def _has_operation_after_crash(context: object, view: View) -> bool:
    operations = recorded_operations(view)
    return any(one.invoked > last_crash_position(operations) > 0 for one in client_operations(operations))


CRASHED = Goal("a crash undoes what had an answer, and a client goes on", end=_has_operation_after_crash)


def _get_answer(operation: Operation) -> tuple[object, ...]:
    return cast("tuple[object, ...]", operation.value) if operation.outcome is Outcome.OK else ("",)


def _get_steps(operation: Operation) -> tuple[object, ...]:
    return cast("tuple[object, ...]", operation.notes[-1]) if operation.notes else ()


GOALS: Mapping[str, Goal] = {
    "all": goal_for_operations(
        "every transaction takes effect",
        lambda operations: all(
            any(one.who == who and _get_answer(one)[0] == "saw" and FAILED not in _get_steps(one) for one in operations)
            for who in {one.who for one in operations}
        ),
    ),
    "conflict": goal_for_operations(
        "an attempt conflicts, and a later one of the same transaction takes effect",
        lambda operations: any(
            one.outcome is Outcome.FAILED and one.notes and any(_get_answer(it)[0] == "saw" for it in operations[at:])
            for at, one in enumerate(operations)
        ),
    ),
    "unknown": goal_for_operations(
        "the outcome of a transaction stays unknown to its caller",
        lambda operations: any(one.outcome is Outcome.UNKNOWN for one in operations),
    ),
    "crashed": CRASHED,
    "error": goal_for_operations(
        "the error of a function reaches its caller",
        lambda operations: any(_get_answer(one)[0] == "saw" and FAILED in _get_steps(one) for one in operations),
    ),
    "given-up": goal_for_operations(
        "a transaction is given up after its last attempt",
        lambda operations: any(
            one.outcome is Outcome.FAILED and not any(it.who == one.who for it in operations[at + 1 :])
            for at, one in enumerate(operations)
        ),
    ),
}
"""By name."""
