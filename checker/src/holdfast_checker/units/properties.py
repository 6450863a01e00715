"""Say what must hold for computation units, U1 to U7, and for work lists, W1 and W2; and what histories must reach."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from typing import Any, cast

from holdfast.records.keys import cell_of
from holdfast.records.row_keys import encode_row
from holdfast.units.jobs import WORK_LIST
from holdfast_checker.framework.subject import Goal, judges_ends, judges_steps
from holdfast_checker.histories.effects import what_is_repeated, what_strays
from holdfast_checker.histories.history import Operation, Outcome
from holdfast_checker.histories.linearizable import Model, judge_linearizable
from holdfast_checker.kernel.calls import canonical
from holdfast_checker.kernel.world import Property, View
from holdfast_checker.units.contents import Setting, State, image_of, state_of
from holdfast_checker.units.database import DIED, DONE, GIVEN_UP, UNNEEDED, End
from holdfast_checker.units.scripts import Script, apply


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


@judges_steps(
    "U4",
    "progress is true",
    "At every moment, the records of progress name the units that have taken effect, these and no others; and a "
    "job is finished only when all of them have.",
)
def progress_is_true(setting: Setting, before: View, after: View, actor: str) -> str | None:
    """Judge the worlds of a setting."""
    return "; ".join(_wrong_progress(setting, state_of(after))) or None


def _wrong_progress(setting: Setting, state: State) -> Iterator[str]:
    for job in state.jobs:
        if job.kind == WORK_LIST:
            count, done = sum(one.done for one in state.progress[job.name]), len(state.done(setting.work))
            if count != done:
                yield f"the workers have counted {count} units, and {done} took effect"
            continue
        if job.is_finished:
            optional = frozenset[str]().union(*setting.only.values())  # U3 judges those whose inputs have them
            wanted = {unit for shard in setting.jobs[job.name] for unit in shard} - optional
            missing = sorted(wanted - state.effects.keys())
            yield from (f"the job is finished, and unit {unit!r} did not take effect" for unit in missing)
            continue
        for units, progress in zip(setting.jobs[job.name], state.progress[job.name], strict=True):
            deferred = frozenset(progress.deferred)
            ids = {encode_row(unit): unit for unit in units}
            claimed = {unit for one, unit in ids.items() if one <= progress.last and one not in deferred}
            yield from what_strays(claimed, state.done(units))


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


@judges_ends("U6", "no leftovers", "Units that use a table while it is dropped leave no cells behind.")
def no_leftovers(setting: Setting, view: View) -> str | None:
    """Judge the worlds of a setting."""
    count = len(state_of(view).stray_cells)
    return f"{count} cells belong to no table" if count else None


@judges_steps("U7", "ended runs", "Once the end of a run was reported, no unit of its attempts takes effect anymore.")
def ended_runs(setting: Setting, before: View, after: View, actor: str) -> str | None:
    """Judge the worlds of a setting."""
    image = image_of(after)
    for end in image.ends:
        late = [key for key in end.missing if key in image.records.keys] if end.how == GIVEN_UP else []
        if late:
            return f"the run had ended, and {', '.join(str(cell_of(key)[0]) for key in late)} took effect then"
    return None


@judges_steps(
    "W1",
    "one place",
    "Every key that was added to the work list waits, is in one claim, or is done: one of these, once.",
)
def one_place(setting: Setting, before: View, after: View, actor: str) -> str | None:
    """Judge the worlds of a setting."""
    return "; ".join(_wrong_places(setting, state_of(after))) or None


def _wrong_places(setting: Setting, state: State) -> Iterator[str]:
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


PROPERTIES: Mapping[str, Callable[[Setting], Property]] = {
    "U1": exactly_once,
    "U2": serializable,
    "U3": reported_is_done,
    "U4": progress_is_true,
    "U5": true_errors,
    "U6": no_leftovers,
    "U7": ended_runs,
    "W1": one_place,
    "W2": true_end,
}


# --- goals ------------------------------------------------------------------------------------------------------------
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
