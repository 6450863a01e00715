"""U2: the units could have run one after the other."""

from __future__ import annotations

from collections.abc import Hashable
from typing import cast

from holdfast_checker.histories.history import Operation, Outcome
from holdfast_checker.histories.linearizable import Model, judge_linearizable
from holdfast_checker.kernel.canonical import canonical
from holdfast_checker.kernel.world import Property, View
from holdfast_checker.units.contents import Setting, State, state_of
from holdfast_checker.units.scripts import Script, apply


def serializable(setting: Setting) -> Property:
    """Return the property of the worlds of a setting.

    What each unit had read when it took effect is known from what it wrote. Some order of the units that took effect
    must explain that, and the cells at the end.
    """
    model = Model(initial=setting.start, apply=apply, is_small=False)
    known: dict[Hashable, str | None] = {}

    def end(view: View) -> str | None:
        operations = _operations(setting, state_of(view))
        if setting.drops and state_of(view).table_id != setting.table_id:
            operations.append(_operation("administrator", "empty", (), None))
        key = canonical(operations)
        if key not in known:
            known[key] = judge_linearizable(operations, model).words or None
        return known[key]

    return Property(
        name="U2",
        title="serializable",
        meaning="The units that took effect could have run one after the other: all that they had read, and all cells "
        "in the end, are explained by that order.",
        end=end,
    )


def _operations(setting: Setting, state: State) -> list[Operation]:
    found = [
        _operation(unit, "unit", script, state.effects[unit][1])
        for unit, script in setting.scripts.items()
        if unit in state.effects
    ]
    return [*found, _operation("afterwards", "everything", (), state.cells, position=2)]


def _operation(who: str, name: str, script: Script, value: object, position: int = 0) -> Operation:
    return Operation(
        who=who,
        name=name,
        args=cast("tuple[object, ...]", script),
        invoked=position,
        ended=position + 1,
        outcome=Outcome.OK,
        value=value,
    )
