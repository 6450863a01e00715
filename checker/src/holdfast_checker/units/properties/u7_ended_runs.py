"""U7: when a run has ended, nothing of it takes effect anymore."""

from __future__ import annotations

from holdfast.records.keys import cell_of
from holdfast_checker.kernel.world import Property, View
from holdfast_checker.units.contents import Setting, image_of
from holdfast_checker.units.database import GIVEN_UP


def ended_runs(setting: Setting) -> Property:
    """Return the property of the worlds of a setting."""

    def step(before: View, after: View, actor: str) -> str | None:
        image = image_of(after)
        for end in image.ends:
            late = [key for key in end.missing if key in image.records.keys] if end.how == GIVEN_UP else []
            if late:
                return f"the run had ended, and {', '.join(str(cell_of(key)[0]) for key in late)} took effect then"
        return None

    return Property(
        name="U7",
        title="ended runs",
        meaning="Once the end of a run was reported, no unit of its attempts takes effect anymore.",
        step=step,
    )
