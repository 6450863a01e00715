"""U1: no unit takes effect twice."""

from __future__ import annotations

from holdfast_checker.histories.exactly_once import what_is_repeated
from holdfast_checker.kernel.world import Property, View
from holdfast_checker.units.contents import Setting, state_of


def exactly_once(setting: Setting) -> Property:
    """Return the property of the worlds of a setting."""
    units = tuple(setting.scripts)

    def step(before: View, after: View, actor: str) -> str | None:
        return "; ".join(what_is_repeated(state_of(after).done(units))) or None

    return Property(
        name="U1",
        title="exactly once",
        meaning="No unit takes effect twice, whatever is retried, runs twice, or arrives late.",
        step=step,
    )
