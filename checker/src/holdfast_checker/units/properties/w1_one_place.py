"""W1: every key of a work list is at one place."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from holdfast_checker.kernel.world import Property, View
from holdfast_checker.units.contents import Setting, State, state_of


def one_place(setting: Setting) -> Property:
    """Return the property of the worlds of a setting."""

    def step(before: View, after: View, actor: str) -> str | None:
        return "; ".join(_wrong_in(setting, state_of(after))) or None

    return Property(
        name="W1",
        title="one place",
        meaning="Every key that was added to the work list waits, is in one claim, or is done: one of these, once.",
        step=step,
    )


def _wrong_in(setting: Setting, state: State) -> Iterator[str]:
    added = Counter(setting.items)
    for unit, script in setting.scripts.items():
        if unit in state.effects:
            added.update(step[1] for step in script if step[0] == "emit")
    done = [str(effect.unit) for effect in state.done(setting.work)]
    places = {"waits": Counter(state.waiting), "is claimed": Counter(state.claimed), "is done": Counter(done)}
    for key in setting.work:
        at = [place for place, keys in places.items() for _ in range(keys[key])]
        if len(at) > added[key]:
            yield f"{key!r} {' and '.join(at)}, and was added {'once' if added[key] else 'by nobody'}"
        elif len(at) < added[key]:
            yield f"{key!r} was added, and is lost"
