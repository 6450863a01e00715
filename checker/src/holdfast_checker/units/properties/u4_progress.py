"""U4: the record of progress is what has taken effect."""

from __future__ import annotations

from collections.abc import Iterator

from holdfast.records.row_keys import encode_row
from holdfast.units.jobs import WORK_LIST
from holdfast_checker.histories.exactly_once import what_strays
from holdfast_checker.kernel.world import Property, View
from holdfast_checker.units.contents import Setting, State, state_of


def progress_is_true(setting: Setting) -> Property:
    """Return the property of the worlds of a setting."""

    def step(before: View, after: View, actor: str) -> str | None:
        return "; ".join(_wrong_in(setting, state_of(after))) or None

    return Property(
        name="U4",
        title="progress is true",
        meaning="At every moment, the records of progress name the units that have taken effect, these and no others; "
        "and a job is finished only when all of them have.",
        step=step,
    )


def _wrong_in(setting: Setting, state: State) -> Iterator[str]:
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
