"""Define coverage goals for committers: situations, such as a committed job, that some execution must reach."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import cast

from holdfast.commit import Kind, SaveMode
from holdfast.commit.two_phase.records import decode_entry
from holdfast_checker.committers.ledger import LOG_PREFIX, Decision, Ledger, ledger_in
from holdfast_checker.committers.output import DESTINATION, of_job, visible
from holdfast_checker.committers.properties import just_told, told_finished, was_told
from holdfast_checker.committers.sandbox import Sandbox, cluster_of
from holdfast_checker.framework.subject import Goal
from holdfast_checker.kernel.world import View
from holdfast_checker.simulated.memory import MemoryImage

_StepGoal = Callable[[Sandbox, View, View, str], bool]


# --- views ------------------------------------------------------------------------------------------------------------
def _ledger(view: View) -> Ledger:
    return ledger_in(view, DESTINATION)


def _main(view: View) -> Decision | None:
    """Return the log's decision about the driver's job; None if there is none."""
    job = cluster_of(view).job
    return next((one for one in _ledger(view).decisions if job is not None and one.job == job.job), None)


def _committed(view: View) -> Decision | None:
    found = _main(view)
    return found if found is not None and found.commits else None


def _told(outcome: str, *who: str) -> _StepGoal:
    def step(sandbox: Sandbox, before: View, after: View, actor: str) -> bool:
        return any(told.outcome == outcome and (not who or told.who in who) for told in just_told(before, after))

    return step


def _newly_done(before: View, after: View) -> set[int]:
    return set(_ledger(after).done) - set(_ledger(before).done)


# --- goals ------------------------------------------------------------------------------------------------------------
def _commits(sandbox: Sandbox, before: View, after: View, actor: str) -> bool:
    whole = sandbox.setting.tasks * sandbox.setting.files
    return bool(told_finished(before, after)) and len(of_job(visible(after).values())) >= whole


def _leaves_nothing(sandbox: Sandbox, view: View) -> bool:
    job, found = cluster_of(view).job, _committed(view)
    done = job is not None and found is not None and found.seq in _ledger(view).done
    return done and bool(was_told(view, "committed")) and job is not None and not sandbox.copy(view).left(job.job)


def _recovers(action: str) -> _StepGoal:
    def step(sandbox: Sandbox, before: View, after: View, actor: str) -> bool:
        job = cluster_of(after).job
        recovered = [told for told in just_told(before, after) if told.outcome == "recovered"]
        jobs = [one for told in recovered for one in cast("tuple[tuple[str, str], ...]", told.detail)]
        return job is not None and (job.job, action) in jobs

    return step


def _happens_at_once(sandbox: Sandbox, before: View, after: View, actor: str) -> bool:
    found = _committed(after)
    return found is not None and _committed(before) is None and found.seq in _newly_done(before, after)


def _helps(sandbox: Sandbox, before: View, after: View, actor: str) -> bool:
    found = _committed(after)
    return found is not None and found.seq in _newly_done(before, after) and actor in _others(sandbox)


def _others(sandbox: Sandbox) -> Sequence[str]:
    return [one.name for one in sandbox.setting.others]


def _another_commits(sandbox: Sandbox, before: View, after: View, actor: str) -> bool:
    mine = any(told.outcome == "committed" and told.who in _others(sandbox) for told in just_told(before, after))
    return mine and _committed(after) is not None


def _goes_on_after_death(sandbox: Sandbox, before: View, after: View, actor: str) -> bool:
    told = any(told.outcome == "committed" and told.who in _others(sandbox) for told in just_told(before, after))
    return told and cluster_of(after).driver == "dead"


def _replaces(sandbox: Sandbox, before: View, after: View, actor: str) -> bool:
    ledger = _ledger(after)
    done = [one for one in ledger.decisions if one.seq in _newly_done(before, after) and one.commits]
    return any(_mode(one) in _REPLACING and sandbox.old.keys() - visible(after).keys() for one in done)


_REPLACING = (SaveMode.OVERWRITE, SaveMode.OVERWRITE_PARTITIONS)


def _mode(one: Decision) -> SaveMode:
    entry = decode_entry("", one.seq, one.data)
    assert entry.kind is Kind.COMMIT
    return entry.record.mode


def _is_overtaken(sandbox: Sandbox, before: View, after: View, actor: str) -> bool:
    """Check whether another job was decided between the start of the driver's job and its decision."""
    job, found = cluster_of(after).job, _committed(after)
    return job is not None and found is not None and _committed(before) is None and found.seq > job.base_seq + 1


def _is_trimmed(sandbox: Sandbox, before: View, after: View, actor: str) -> bool:
    kept = cast("MemoryImage", after.states[DESTINATION]).objects
    return any(f"{LOG_PREFIX}{one.seq:020d}.json" not in kept for one in _ledger(after).decisions)


def _fences(sandbox: Sandbox, before: View, after: View, actor: str) -> bool:
    found = _main(after)
    return found is not None and not found.commits and _told("aborted", "driver")(sandbox, before, after, actor)


def _is_late(sandbox: Sandbox, before: View, after: View, actor: str) -> bool:
    """Check whether an attempt starts an upload or writes a file after its job is decided."""
    if not actor.startswith("task ") or _main(before) is None:
        return False
    was, now = (cast("MemoryImage", view.states[DESTINATION]) for view in (before, after))
    return len(now.uploads) > len(was.uploads) or len(now.objects) > len(was.objects)


def _reads(*, new: bool) -> _StepGoal:
    def step(sandbox: Sandbox, before: View, after: View, actor: str) -> bool:
        job = cluster_of(after).job
        read = [told for told in just_told(before, after) if told.outcome == "read"]
        seen = [path for told in read for path in cast("tuple[int, int, tuple[str, ...]]", told.detail)[2]]
        mine = job is not None and any(job.job in path for path in seen)
        return bool(read) and (mine if new else not mine)

    return step


def _reads_before_the_mark(sandbox: Sandbox, before: View, after: View, actor: str) -> bool:
    found = _committed(after)
    read = any(told.outcome == "read" for told in just_told(before, after))
    return read and found is not None and found.seq not in _ledger(after).visible


GOALS: Mapping[str, Goal] = {
    "committed": Goal("the driver is told that its job is committed, and all its files are visible", step=_commits),
    "aborted": Goal("a driver is told that the job is aborted", step=_told("aborted")),
    "cleaned-up": Goal(
        "a job is committed, and nothing hidden of it is left, without recovery",
        end=_leaves_nothing,
    ),
    "at-once": Goal("one step decides the driver's job, and leaves nothing to roll forward", step=_happens_at_once),
    "rolled-forward": Goal("recovery rolls a decided job forward", step=_recovers("roll forward")),
    "rolled-back": Goal("recovery aborts an undecided job", step=_recovers("roll back")),
    "helped": Goal("another job finishes a decision that its driver left unfinished", step=_helps),
    "second-job": Goal("another job is committed as well as the driver's", step=_another_commits),
    "after-a-death": Goal("another job is committed after the driver has died", step=_goes_on_after_death),
    "overtaken": Goal(
        "another job is decided while the driver's runs, and both are committed",
        step=_is_overtaken,
    ),
    "replaced": Goal("an overwrite is done, and the replaced files are deleted", step=_replaces),
    "trimmed": Goal("the log trims a decision", step=_is_trimmed),
    "fenced": Goal("a driver is told that its job was aborted by another process", step=_fences),
    "late-attempt": Goal("an attempt writes after its job is decided", step=_is_late),
    "refused": Goal("a job is refused because the destination holds data", step=_told("refused")),
    "skipped": Goal("a job has nothing to do", step=_told("skipped")),
    "read-without": Goal("a reader sees nothing of the job", step=_reads(new=False)),
    "read-with": Goal("a reader sees the job", step=_reads(new=True)),
    "read-between": Goal("a read ends when the job is decided and not yet visible", step=_reads_before_the_mark),
}
"""All coverage goals for committers, by name."""

WITHOUT_LOG = ("committed",)
"""The names of the goals that a committer without a decision log can reach."""
