"""U5: a task fails only for a reason."""

from __future__ import annotations

from holdfast_checker.kernel.world import Property, View
from holdfast_checker.units.contents import Setting, image_of, state_of
from holdfast_checker.units.database import DIED, DONE, GIVEN_UP, UNNEEDED, End


def true_errors(setting: Setting) -> Property:
    """Return the property of the worlds of a setting."""

    def is_true(end: End) -> bool:
        kind, _space, unit = end.how.partition(" ")
        return (
            end.how in (DONE, DIED, UNNEEDED, GIVEN_UP)
            or (kind == "InvalidRequestError" and (unit in setting.fails or (setting.drops and bool(unit))))
            or (kind == "InputChangedError" and not unit and bool(setting.only) and end.who in setting.drivers)
            or (kind == "FencedError" and (setting.forgets or setting.ends or bool(setting.drivers - {end.who})))
            or (kind == "ConflictError" and setting.loses)
            or (kind == "UnavailableError" and end.who in setting.drivers)
        )

    def step(before: View, after: View, actor: str) -> str | None:
        for end in image_of(after).ends:
            if end in image_of(before).ends:
                continue
            ran = setting.only.get(end.who, frozenset()) & state_of(after).effects.keys()
            if end.how == "InputChangedError" and ran:
                return f"{end.who} is refused, because the job has another input, and has run {', '.join(sorted(ran))}"
            if not is_true(end):
                kind, _space, unit = end.how.partition(" ")
                return f"{end.who} ends with {kind}{f' because of unit {unit!r}' * bool(unit)}, for no reason"
        return None

    return Property(
        name="U5",
        title="true errors",
        meaning="A task ends with an error only if a unit would fail alone, too, its job was forgotten or ended, or "
        "the database has lost commits: conflicts, stale reads, lost replies and failed calls are no reasons. Only "
        "drivers report failed calls, and inputs that are not the job's, of which nothing has run then.",
        step=step,
    )
