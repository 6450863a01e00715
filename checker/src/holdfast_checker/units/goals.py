"""Say what some history of a world must reach: a world in which nothing happens violates nothing."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from holdfast_checker.framework.subject import Goal
from holdfast_checker.kernel.world import View
from holdfast_checker.units.contents import image_of
from holdfast_checker.units.database import DIED, DONE, GIVEN_UP, UNNEEDED


def _ends(holds: Callable[[list[str]], bool]) -> Callable[[Any, View], bool]:
    """Return whether the ends of the attempts show something."""
    return lambda context, view: holds([one.how for one in image_of(view).ends])


GOALS: Mapping[str, Goal] = {
    "all": Goal("every attempt reports success", _ends(lambda hows: all(how in (DONE, UNNEEDED) for how in hows))),
    "second": Goal(
        "an attempt dies, and another one reports success", _ends(lambda hows: DIED in hows and DONE in hows)
    ),
    "failed": Goal("a unit fails", _ends(lambda hows: any(how.startswith("InvalidRequestError ") for how in hows))),
    "fenced": Goal("an attempt finds its job forgotten", _ends(lambda hows: "FencedError" in hows)),
    "refused": Goal(
        "a driver is refused, because the job has another input", _ends(lambda hows: "InputChangedError" in hows)
    ),
    "given-up": Goal(
        "a run is ended while an attempt goes on", _ends(lambda hows: {"FencedError", GIVEN_UP} <= set(hows))
    ),
    "lost": Goal("an attempt finds that the database has lost commits", _ends(lambda hows: "ConflictError" in hows)),
    "conflicts": Goal("a commit conflicts"),
    "deferred": Goal("a unit is put off"),
    "locked": Goal("a unit locks what it reads, as a last resort"),
    "skipped": Goal("an attempt leaves out a unit that another one has done"),
    "stale": Goal("a unit fails because of a stale read, and is repeated"),
    "ahead": Goal("a commit reads what the next units are known to read"),
    "unknown": Goal("the reply of a commit is lost"),
    "unavailable": Goal("a call is repeated, because it failed"),
}
"""By name. What the end of a history does not show, attempts note: see `actors.Surroundings.note`."""
