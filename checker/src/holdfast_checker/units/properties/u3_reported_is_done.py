"""U3: what a task has reported is done, and stays so."""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.records.keys import cell_of
from holdfast_checker.kernel.world import Property, View
from holdfast_checker.units.contents import Setting, image_of, state_of
from holdfast_checker.units.database import DONE


def reported_is_done(setting: Setting) -> Property:
    """Return the property of the worlds of a setting."""

    def step(before: View, after: View, actor: str) -> str | None:
        for end in image_of(after).ends:
            if end.how == DONE and end.missing and end not in image_of(before).ends:
                return f"{end.who} reports success, and these units have not taken effect: {_names(end.missing)}"
        return None

    def finally_(view: View) -> str | None:
        image = image_of(view)
        for end in image.ends:
            lost = [key for key in setting.wanted.get(end.who, ()) if key not in image.records.keys]
            if end.how == DONE and lost and not end.missing:
                return f"{end.who} has reported success, and then the effects of these units were lost: {_names(lost)}"
            if end.how == DONE and end.who in setting.drivers and not setting.forgets:
                unended = [job.name for job in state_of(view).jobs if not job.is_finished]
                if unended:
                    return f"{end.who} has reported success, and then the end of its job was lost: {unended[0]}"
        return None

    return Property(
        name="U3",
        title="reported is done",
        meaning="When a task reports success, all its units have taken effect, and a crash of the database does not "
        "undo them; nor does it undo the end of a job that a driver has reported.",
        step=step,
        end=finally_,
    )


def _names(keys: Sequence[bytes]) -> str:
    return ", ".join(str(cell_of(key)[0]) for key in keys)
