"""W2: a work list is at its end when nothing is left."""

from __future__ import annotations

from holdfast_checker.kernel.world import Property, View
from holdfast_checker.units.contents import Setting, image_of, state_of
from holdfast_checker.units.database import DONE


def true_end(setting: Setting) -> Property:
    """Return the property of the worlds of a setting."""

    def step(before: View, after: View, actor: str) -> str | None:
        for end in image_of(after).ends:
            if end.left and end not in image_of(before).ends:
                return f"{end.who} reports that the list is at its end, and it has {len(end.left)} records"
        return None

    def finally_(view: View) -> str | None:
        image, state = image_of(view), state_of(view)
        waits = sorted(who for who in setting.workers if image.end_of(who) is None)
        if waits:
            return f"{' and '.join(waits)} never ends"
        if any(one.who in setting.workers and one.how == DONE for one in image.ends):
            left = [*state.waiting, *state.claimed]
            return f"a worker has reported the end, and there are still: {', '.join(left)}" if left else None
        return None

    return Property(
        name="W2",
        title="true end",
        meaning="A worker reports success only when nothing waits and nothing is claimed, and that stays so; and every "
        "worker that lives comes to an end.",
        step=step,
        end=finally_,
    )
