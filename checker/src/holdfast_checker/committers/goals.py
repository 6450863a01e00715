"""Define coverage goals for committers: situations, such as a committed job, that some execution must reach."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import cast

from holdfast.commit import Kind, SaveMode
from holdfast.commit.two_phase.records import decode_entry
from holdfast_checker.committers.ledger import LOG_PREFIX, DecisionLedger, LogDecision, ledger_of_store
from holdfast_checker.committers.output import DESTINATION, files_of_job, visible_files
from holdfast_checker.committers.properties import find_driver_finished_in_step, find_drivers_with_outcome, new_outcomes
from holdfast_checker.committers.sandbox import StoreSandbox, cluster_state
from holdfast_checker.framework.subject import Goal
from holdfast_checker.kernel.world import View
from holdfast_checker.simulated.memory import StoreSnapshot

_StepGoal = Callable[[StoreSandbox, View, View, str], bool]


# --- views ------------------------------------------------------------------------------------------------------------
def _get_destination_ledger(view: View) -> DecisionLedger:
    return ledger_of_store(view, DESTINATION)


def _driver_job_decision(view: View) -> LogDecision | None:
    """Return the log's decision about the driver's job; None if there is none."""
    job = cluster_state(view).job
    return next(
        (one for one in _get_destination_ledger(view).decisions if job is not None and one.job == job.job), None
    )


def _driver_job_commit(view: View) -> LogDecision | None:
    found = _driver_job_decision(view)
    return found if found is not None and found.commits else None


def _learned_outcome_goal(outcome: str, *who: str) -> _StepGoal:
    def is_outcome_learned(sandbox: StoreSandbox, before: View, after: View, actor: str) -> bool:
        return any(told.outcome == outcome and (not who or told.who in who) for told in new_outcomes(before, after))

    return is_outcome_learned


def _new_done_marks(before: View, after: View) -> set[int]:
    return set(_get_destination_ledger(after).done) - set(_get_destination_ledger(before).done)


# --- goals ------------------------------------------------------------------------------------------------------------
def _driver_commits(sandbox: StoreSandbox, before: View, after: View, actor: str) -> bool:
    whole = sandbox.setting.tasks * sandbox.setting.files
    return (
        bool(find_driver_finished_in_step(before, after)) and len(files_of_job(visible_files(after).values())) >= whole
    )


def _are_hidden_files_removed(sandbox: StoreSandbox, view: View) -> bool:
    job, found = cluster_state(view).job, _driver_job_commit(view)
    if job is None or found is None or found.seq not in _get_destination_ledger(view).done:
        return False
    return bool(find_drivers_with_outcome(view, "committed")) and not sandbox.copy(view).leftover_keys(job.job)


def _make_recovery_action_goal(action: str) -> _StepGoal:
    def has_recovery_acted(sandbox: StoreSandbox, before: View, after: View, actor: str) -> bool:
        job = cluster_state(after).job
        recovered = [told for told in new_outcomes(before, after) if told.outcome == "recovered"]
        jobs = [one for told in recovered for one in cast("tuple[tuple[str, str], ...]", told.detail)]
        return job is not None and (job.job, action) in jobs

    return has_recovery_acted


def _is_job_decided_and_done(sandbox: StoreSandbox, before: View, after: View, actor: str) -> bool:
    found = _driver_job_commit(after)
    return found is not None and _driver_job_commit(before) is None and found.seq in _new_done_marks(before, after)


def _does_other_job_finish_driver_job(sandbox: StoreSandbox, before: View, after: View, actor: str) -> bool:
    found = _driver_job_commit(after)
    return found is not None and found.seq in _new_done_marks(before, after) and actor in _other_jobs(sandbox)


def _other_jobs(sandbox: StoreSandbox) -> Sequence[str]:
    return [one.name for one in sandbox.setting.others]


def _other_job_commits_too(sandbox: StoreSandbox, before: View, after: View, actor: str) -> bool:
    mine = any(told.outcome == "committed" and told.who in _other_jobs(sandbox) for told in new_outcomes(before, after))
    return mine and _driver_job_commit(after) is not None


def _commits_after_driver_death(sandbox: StoreSandbox, before: View, after: View, actor: str) -> bool:
    told = any(told.outcome == "committed" and told.who in _other_jobs(sandbox) for told in new_outcomes(before, after))
    return told and cluster_state(after).driver == "dead"


def _overwrite_deletes_old_files(sandbox: StoreSandbox, before: View, after: View, actor: str) -> bool:
    ledger = _get_destination_ledger(after)
    done = [one for one in ledger.decisions if one.seq in _new_done_marks(before, after) and one.commits]
    return any(_read_save_mode(one) in _REPLACING and sandbox.old.keys() - visible_files(after).keys() for one in done)


_REPLACING = (SaveMode.OVERWRITE, SaveMode.OVERWRITE_PARTITIONS)


def _read_save_mode(one: LogDecision) -> SaveMode:
    entry = decode_entry("", one.seq, one.data)
    assert entry.kind is Kind.COMMIT
    return entry.record.mode


def _is_other_job_decided_first(sandbox: StoreSandbox, before: View, after: View, actor: str) -> bool:
    """Check whether another job was decided between the start of the driver's job and its decision."""
    job, found = cluster_state(after).job, _driver_job_commit(after)
    return job is not None and found is not None and _driver_job_commit(before) is None and found.seq > job.base_seq + 1


def _is_decision_trimmed(sandbox: StoreSandbox, before: View, after: View, actor: str) -> bool:
    kept = cast("StoreSnapshot", after.states[DESTINATION]).objects
    return any(f"{LOG_PREFIX}{one.seq:020d}.json" not in kept for one in _get_destination_ledger(after).decisions)


def _is_driver_job_aborted_elsewhere(sandbox: StoreSandbox, before: View, after: View, actor: str) -> bool:
    found = _driver_job_decision(after)
    return (
        found is not None
        and not found.commits
        and _learned_outcome_goal("aborted", "driver")(sandbox, before, after, actor)
    )


def _is_write_after_decision(sandbox: StoreSandbox, before: View, after: View, actor: str) -> bool:
    """Check whether an attempt starts an upload or writes a file after its job is decided."""
    if not actor.startswith("task ") or _driver_job_decision(before) is None:
        return False
    was, now = (cast("StoreSnapshot", view.states[DESTINATION]) for view in (before, after))
    return len(now.uploads) > len(was.uploads) or len(now.objects) > len(was.objects)


def _make_read_goal(*, shows_job: bool) -> _StepGoal:
    def is_such_read(sandbox: StoreSandbox, before: View, after: View, actor: str) -> bool:
        job = cluster_state(after).job
        read = [told for told in new_outcomes(before, after) if told.outcome == "read"]
        seen = [path for told in read for path in cast("tuple[int, int, tuple[str, ...]]", told.detail)[2]]
        mine = job is not None and any(job.job in path for path in seen)
        return bool(read) and (mine if shows_job else not mine)

    return is_such_read


def _is_read_before_visible_mark(sandbox: StoreSandbox, before: View, after: View, actor: str) -> bool:
    found = _driver_job_commit(after)
    read = any(told.outcome == "read" for told in new_outcomes(before, after))
    return read and found is not None and found.seq not in _get_destination_ledger(after).visible


GOALS: Mapping[str, Goal] = {
    "committed": Goal(
        "the driver is told that its job is committed, and all its files are visible", step=_driver_commits
    ),
    "aborted": Goal("a driver is told that the job is aborted", step=_learned_outcome_goal("aborted")),
    "cleaned-up": Goal(
        "a job is committed, and nothing hidden of it is left, without recovery", end=_are_hidden_files_removed
    ),
    "at-once": Goal(
        "one step decides the driver's job, and leaves nothing to roll forward", step=_is_job_decided_and_done
    ),
    "rolled-forward": Goal("recovery rolls a decided job forward", step=_make_recovery_action_goal("roll forward")),
    "rolled-back": Goal("recovery aborts an undecided job", step=_make_recovery_action_goal("roll back")),
    "helped": Goal(
        "another job finishes a decision that its driver left unfinished", step=_does_other_job_finish_driver_job
    ),
    "second-job": Goal("another job is committed as well as the driver's", step=_other_job_commits_too),
    "after-a-death": Goal("another job is committed after the driver has died", step=_commits_after_driver_death),
    "overtaken": Goal(
        "another job is decided while the driver's runs, and both are committed", step=_is_other_job_decided_first
    ),
    "replaced": Goal("an overwrite is done, and the replaced files are deleted", step=_overwrite_deletes_old_files),
    "trimmed": Goal("the log trims a decision", step=_is_decision_trimmed),
    "fenced": Goal(
        "a driver is told that its job was aborted by another process", step=_is_driver_job_aborted_elsewhere
    ),
    "late-attempt": Goal("an attempt writes after its job is decided", step=_is_write_after_decision),
    "refused": Goal("a job is refused because the destination holds data", step=_learned_outcome_goal("refused")),
    "skipped": Goal("a job has nothing to do", step=_learned_outcome_goal("skipped")),
    "read-without": Goal("a reader sees nothing of the job", step=_make_read_goal(shows_job=False)),
    "read-with": Goal("a reader sees the job", step=_make_read_goal(shows_job=True)),
    "read-between": Goal("a read ends when the job is decided and not yet visible", step=_is_read_before_visible_mark),
}
"""All coverage goals for committers, by name."""

WITHOUT_LOG = ("committed",)
"""The names of the goals that a committer without a decision log can reach."""
