"""Define the properties of computation units (U1 to U7) and of work lists (W1, W2), and their coverage goals."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, cast

from holdfast.records.keys import parse_cell_key
from holdfast.records.row_keys import encode_row
from holdfast.units.jobs import WORK_LIST
from holdfast_checker.framework.scene_files import Judges, read_rules
from holdfast_checker.framework.subject import Goal, Rule
from holdfast_checker.histories.effects import describe_false_progress, describe_repeated_units
from holdfast_checker.histories.history import Operation, Outcome
from holdfast_checker.histories.linearizable import Model, judge_linearizable
from holdfast_checker.kernel.calls import canonical_key
from holdfast_checker.kernel.world import View
from holdfast_checker.units.contents import DecodedUnitsState, UnitsWorldContext, decode_units_state, units_image_of
from holdfast_checker.units.database import DIED, DONE, GIVEN_UP, UNNEEDED, AttemptEnd
from holdfast_checker.units.scripts import Script, apply_to_model


def _attempts_ended_in_step(before: View, after: View) -> list[AttemptEnd]:
    """Return the ends of task attempts that were reported in the step between two states."""
    return [end for end in units_image_of(after).ends if end not in units_image_of(before).ends]


# --- U1, U2 -----------------------------------------------------------------------------------------------------------
def _judge_repeated_units(setting: UnitsWorldContext, before: View, after: View, actor: str) -> str | None:
    return "; ".join(describe_repeated_units(decode_units_state(after).effects_of_units(setting.scripts))) or None


def _judge_serializability(setting: UnitsWorldContext, view: View) -> str | None:
    """Judge U2: what each unit had read when it took effect is known from what it wrote.

    Some order of the units that took effect must explain that, and the cells at the end.
    """
    operations = _operations_of_units(setting, decode_units_state(view))
    if setting.scene.drops and decode_units_state(view).table_id != setting.table_id:
        operations.append(_make_operation("administrator", "empty", (), None))
    model = Model(initial=tuple(sorted(setting.scene.start.items())), apply=apply_to_model)
    return setting.get_cached_verdict(
        canonical_key(operations), lambda: judge_linearizable(operations, model).words or None
    )


def _operations_of_units(setting: UnitsWorldContext, state: DecodedUnitsState) -> list[Operation]:
    done = [unit for unit in setting.scripts if unit in state.effects]
    found = [_make_operation(unit, "unit", setting.scripts[unit], state.effects[unit][1]) for unit in done]
    return [*found, _make_operation("afterwards", "everything", (), state.cells, position=2)]


def _make_operation(who: str, name: str, script: Script, value: object, position: int = 0) -> Operation:
    args = cast("tuple[object, ...]", script)
    return Operation(who, name, args, position, position + 1, Outcome.OK, value)


# --- U3 ---------------------------------------------------------------------------------------------------------------
def _judge_early_success_report(setting: UnitsWorldContext, before: View, after: View, actor: str) -> str | None:
    for end in _attempts_ended_in_step(before, after):
        if end.how == DONE and end.missing:
            return f"{end.who} reports success, and these units have not taken effect: {_join_keys(end.missing)}"
    return None


def _judge_lost_effects(setting: UnitsWorldContext, view: View) -> str | None:
    image = units_image_of(view)
    for end in image.ends:
        lost = [key for key in setting.required_effects.get(end.who, ()) if key not in image.records.keys]
        if end.how == DONE and lost and not end.missing:
            return f"{end.who} has reported success, and then the effects of these units were lost: {_join_keys(lost)}"
        if end.how == DONE and end.who in setting.drivers and not setting.scene.forgets:
            unended = [job.name for job in decode_units_state(view).jobs if not job.is_finished]
            if unended:
                return f"{end.who} has reported success, and then the end of its job was lost: {unended[0]}"
    return None


def _join_keys(keys: Sequence[bytes]) -> str:
    return ", ".join(str(parse_cell_key(key)[0]) for key in keys)


# --- U4, U5 -----------------------------------------------------------------------------------------------------------
def _describe_wrong_progress(setting: UnitsWorldContext, state: DecodedUnitsState) -> Iterator[str]:
    for job in state.jobs:
        if job.kind == WORK_LIST:
            count = sum(one.done for one in state.progress[job.name])
            done = len(state.effects_of_units(setting.scene.work))
            if count != done:
                yield f"the workers have counted {count} units, and {done} took effect"
            continue
        if job.is_finished:
            optional = frozenset[str]().union(
                *setting.exclusive_units.values()
            )  # U3 judges those whose inputs have them
            wanted = {unit for shard in setting.scene.jobs[job.name] for unit in shard} - optional
            missing = sorted(wanted - state.effects.keys())
            yield from (f"the job is finished, and unit {unit!r} did not take effect" for unit in missing)
            continue
        for units, progress in zip(setting.scene.jobs[job.name], state.progress[job.name], strict=True):
            deferred = frozenset(progress.deferred)
            ids = {encode_row(unit): unit for unit in units}
            claimed = {unit for one, unit in ids.items() if one <= progress.last and one not in deferred}
            yield from describe_false_progress(claimed, state.effects_of_units(units))


def _is_reported_error_justified(setting: UnitsWorldContext, end: AttemptEnd) -> bool:
    """Check whether a scene gives a task attempt a reason to end with the reported error."""
    kind, _space, unit = end.how.partition(" ")
    return (
        end.how in (DONE, DIED, UNNEEDED, GIVEN_UP)
        or (kind == "InvalidRequestError" and (unit in setting.scene.fails or (setting.scene.drops and bool(unit))))
        or (kind == "InputChangedError" and not unit and bool(setting.exclusive_units) and end.who in setting.drivers)
        or (kind == "FencedError" and bool(setting.scene.forgets or setting.scene.ends or setting.drivers - {end.who}))
        or (kind == "ConflictError" and setting.scene.crashes > 0)
        or (kind == "UnavailableError" and end.who in setting.drivers)
    )


def _judge_false_errors(setting: UnitsWorldContext, before: View, after: View, actor: str) -> str | None:
    for end in _attempts_ended_in_step(before, after):
        ran = setting.exclusive_units.get(end.who, frozenset()) & decode_units_state(after).effects.keys()
        if end.how == "InputChangedError" and ran:
            return f"{end.who} is refused, because the job has another input, and has run {', '.join(sorted(ran))}"
        if not _is_reported_error_justified(setting, end):
            kind, _space, unit = end.how.partition(" ")
            return f"{end.who} ends with {kind}{f' because of unit {unit!r}' * bool(unit)}, for no reason"
    return None


# --- U6, U7 -----------------------------------------------------------------------------------------------------------
def _judge_cells_outside_tables(setting: UnitsWorldContext, view: View) -> str | None:
    count = len(decode_units_state(view).cells_outside_tables)
    return f"{count} cells belong to no table" if count else None


def _judge_late_effects(setting: UnitsWorldContext, before: View, after: View, actor: str) -> str | None:
    image = units_image_of(after)
    for end in image.ends:
        late = [key for key in end.missing if key in image.records.keys] if end.how == GIVEN_UP else []
        if late:
            return f"the run had ended, and {_join_keys(late)} took effect then"
    return None


# --- work lists -------------------------------------------------------------------------------------------------------
def _describe_misplaced_work_units(setting: UnitsWorldContext, state: DecodedUnitsState) -> Iterator[str]:
    added = Counter(setting.scene.items)
    for unit, script in setting.scripts.items():
        if unit in state.effects:
            added.update(step[1] for step in script if step[0] == "emit")
    done = [str(effect.unit) for effect in state.effects_of_units(setting.scene.work)]
    places = {
        "waits": Counter(state.waiting_units),
        "is claimed": Counter(state.claimed_units),
        "is done": Counter(done),
    }
    for key in setting.scene.work:
        at = [place for place, keys in places.items() for _ in range(keys[key])]
        if len(at) > added[key]:
            yield f"{key!r} {' and '.join(at)}, and was added {'once' if added[key] else 'by nobody'}"
        elif len(at) < added[key]:
            yield f"{key!r} was added, and is lost"


def _judge_early_work_list_end(setting: UnitsWorldContext, before: View, after: View, actor: str) -> str | None:
    for end in _attempts_ended_in_step(before, after):
        if end.left:
            return f"{end.who} reports that the list is at its end, and it has {len(end.left)} records"
    return None


def _judge_endless_work_list(setting: UnitsWorldContext, view: View) -> str | None:
    image, state = units_image_of(view), decode_units_state(view)
    waits = sorted(who for who in setting.workers if image.end_of(who) is None)
    if waits:
        return f"{' and '.join(waits)} never ends"
    left = [*state.waiting_units, *state.claimed_units]
    if left and any(one.who in setting.workers and one.how == DONE for one in image.ends):
        return f"a worker has reported the end, and there are still: {', '.join(left)}"
    return None


def _after_every_step(
    judge: Callable[[UnitsWorldContext, DecodedUnitsState], Iterator[str]],
) -> Callable[..., str | None]:
    """Turn a function that finds errors in one state into a rule that is checked after every step."""
    return lambda setting, before, after, actor: "; ".join(judge(setting, decode_units_state(after))) or None


_JUDGES: Mapping[str, Judges] = {
    "U1": (_judge_repeated_units, None),
    "U2": (None, _judge_serializability),
    "U3": (_judge_early_success_report, _judge_lost_effects),
    "U4": (_after_every_step(_describe_wrong_progress), None),
    "U5": (_judge_false_errors, None),
    "U6": (None, _judge_cells_outside_tables),
    "U7": (_judge_late_effects, None),
    "W1": (_after_every_step(_describe_misplaced_work_units), None),
    "W2": (_judge_early_work_list_end, _judge_endless_work_list),
}
"""The functions that judge a step and the end of a history, by the name of the property."""

RULES: Mapping[str, Rule] = read_rules("holdfast_checker.units", _JUDGES)


# --- goals ------------------------------------------------------------------------------------------------------------
def _ends_satisfy(holds: Callable[[list[str]], bool]) -> Callable[[Any, View], bool]:
    """Return a goal's function that applies a condition to how all attempts of an execution have ended."""
    return lambda context, view: holds([one.how for one in units_image_of(view).ends])


GOALS: Mapping[str, Goal] = {
    "all": Goal(
        "every attempt reports success", _ends_satisfy(lambda hows: all(how in (DONE, UNNEEDED) for how in hows))
    ),
    "second": Goal(
        "an attempt dies, and another one reports success", _ends_satisfy(lambda hows: DIED in hows and DONE in hows)
    ),
    "failed": Goal(
        "a unit fails", _ends_satisfy(lambda hows: any(how.startswith("InvalidRequestError ") for how in hows))
    ),
    "fenced": Goal("an attempt finds its job forgotten", _ends_satisfy(lambda hows: "FencedError" in hows)),
    "refused": Goal(
        "a driver is refused, because the job has another input",
        _ends_satisfy(lambda hows: "InputChangedError" in hows),
    ),
    "given-up": Goal(
        "a run is ended while an attempt goes on", _ends_satisfy(lambda hows: {"FencedError", GIVEN_UP} <= set(hows))
    ),
    "lost": Goal(
        "an attempt finds that the database has lost commits", _ends_satisfy(lambda hows: "ConflictError" in hows)
    ),
    "conflicts": Goal("a commit conflicts"),
    "deferred": Goal("a unit is deferred"),
    "locked": Goal("a unit locks what it reads, as a last resort"),
    "skipped": Goal("an attempt leaves out a unit that another one has done"),
    "stale": Goal("a unit fails because of a stale read, and is repeated"),
    "ahead": Goal("a commit reads what the next units are known to read"),
    "unknown": Goal("the reply of a commit is lost"),
    "unavailable": Goal("a call is repeated, because it failed"),
}
"""By name. What the end of a history does not show, attempts note: see `actors.Surroundings.note`."""
