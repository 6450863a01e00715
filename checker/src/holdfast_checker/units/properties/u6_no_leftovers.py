"""U6: nothing is left of a dropped table."""

from __future__ import annotations

from holdfast_checker.kernel.world import Property, View
from holdfast_checker.units.contents import Setting, state_of


def no_leftovers(setting: Setting) -> Property:
    """Return the property of the worlds of a setting."""

    def end(view: View) -> str | None:
        count = len(state_of(view).stray_cells)
        return f"{count} cells belong to no table" if count else None

    return Property(
        name="U6",
        title="no leftovers",
        meaning="Units that use a table while it is dropped leave no cells behind.",
        end=end,
    )
