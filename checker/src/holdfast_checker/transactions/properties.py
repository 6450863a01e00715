"""Say what must hold for transactions: T1 strictly serializable, T3 exactly once, T5 no deadlock, and progress.

The names are those of the invariants in ARCHITECTURE.md. T2 (all or nothing) and T4 (alone) follow from T1: a half of a
transaction, or one that fails because of another one of its group, has no place in any order.

All are judged at the end of a history: what was wrong before is wrong then, too.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import replace
from typing import cast

from holdfast_checker.histories.exactly_once import Effect, what_is_missing, what_is_repeated, what_strays
from holdfast_checker.histories.history import Operation, Outcome, operations_in
from holdfast_checker.histories.linearizable import Model
from holdfast_checker.histories.undone import crashes_in, end_of_crashes, judge_with_crashes, of_clients
from holdfast_checker.kernel.canonical import canonical
from holdfast_checker.kernel.world import Property, View
from holdfast_checker.transactions.database import DATABASE, Image
from holdfast_checker.transactions.row_locks import Rows
from holdfast_checker.transactions.scripts import EVERYTHING, FAILED, Content, Contents, Script, apply, to_text
from holdfast_checker.transactions.wording import tell_answer, tell_transaction

UNIT = "unit/"
"""What the key of a unit's counter begins with: its number says how often the unit took effect."""


def contents_of(view: View) -> Contents:
    """Return all records that are committed."""
    records = cast("Image | Rows", view.states[DATABASE]).records
    return tuple((key.decode(), (to_text(record.value), record.number)) for key, record in records.as_dict().items())


def _operations(view: View) -> list[Operation]:
    """Return the attempts that may have had an effect, or claim to have read; their steps become their arguments."""
    return [
        replace(one, args=cast("tuple[object, ...]", one.notes[-1]), notes=())
        for one in of_clients(operations_in(view))
        if one.notes and one.outcome is not Outcome.FAILED
    ]


# --- T1 ---------------------------------------------------------------------------------------------------------------
def _serializable(start: Contents) -> Property:
    model = Model(initial=start, apply=apply, is_small=False, tell=tell_transaction, tell_answer=tell_answer)
    known: dict[Hashable, str | None] = {}

    def end(view: View) -> str | None:
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
        key = canonical((operations, crashes, final.value))
        if key not in known:
            known[key] = judge_with_crashes([*operations, final], crashes, model) or None
        return known[key]

    return Property(
        name="T1",
        title="strictly serializable",
        meaning="The transactions that took effect, and were not undone by a crash of the database, could have run one "
        "after the other, each between its start and its end: all that their callers saw, and all records in the end, "
        "are explained by that order.",
        end=end,
    )


# --- T3, progress -----------------------------------------------------------------------------------------------------
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


def _exactly_once(start: Contents) -> Property:
    def end(view: View) -> str | None:
        effects = _effects(view)
        finished = _finished(view)
        missing = [one for one in what_is_missing(finished, effects) if "did not take effect" in one]
        return "; ".join([*what_is_repeated(effects), *missing]) or None

    return Property(
        name="T3",
        title="exactly once",
        meaning="No unit of work takes effect twice, and each whose caller was told of its success has taken effect, "
        "unless the database has crashed since it began.",
        end=end,
    )


def _progress_is_a_set(start: Contents) -> Property:
    def end(view: View) -> str | None:
        contents: Mapping[str, Content] = dict(contents_of(view))
        reached = {name: number for name, (_value, number) in contents.items() if name.startswith("owner")}
        claimed = {f"{name} {each}" for name, number in reached.items() for each in range(1, number + 1)}
        effects = [one for one in _effects(view) if str(one.unit).startswith("owner")]
        return "; ".join(what_strays(claimed, effects)) or None

    return Property(
        name="progress-is-a-set",
        title="progress is a set",
        meaning="The record of a series says which of its transactions have taken effect: these and no others.",
        end=end,
    )


# --- T5 ---------------------------------------------------------------------------------------------------------------
def _nobody_waits_forever(start: Contents) -> Property:
    def end(view: View) -> str | None:
        state = view.states[DATABASE]
        locks = sorted(state.locks, key=lambda lock: (lock.holder, lock.key)) if isinstance(state, Rows) else []
        if not locks:
            return None
        held = "; ".join(f"{lock.holder} holds {lock.key.decode()}" for lock in locks)
        return f"no transaction can go on: {held}"

    return Property(
        name="T5",
        title="no deadlock",
        meaning="No transactions wait for each other in a circle.",
        end=end,
    )


PROPERTIES: Mapping[str, Callable[[Contents], Property]] = {
    "T1": _serializable,
    "T3": _exactly_once,
    "T5": _nobody_waits_forever,
    "progress-is-a-set": _progress_is_a_set,
}
