"""Define the questions about jobs: the job commit, what readers see, abort, recovery.

Each function returns a property that breaks if the answer to its question is bad.
"""

from __future__ import annotations

from collections.abc import Callable

from holdfast_checker.committers.cluster import Attempt, Phase, attempt_actor
from holdfast_checker.committers.output import visible
from holdfast_checker.committers.property_support import in_words, of_main, was_told
from holdfast_checker.committers.sandbox import Sandbox
from holdfast_checker.committers.table_v.observed_cluster import observed
from holdfast_checker.committers.table_v.output_checks import wrong_end
from holdfast_checker.committers.table_v.readers import READERS, Reading, accepted, listed
from holdfast_checker.committers.table_v.task_questions import _uploads
from holdfast_checker.kernel.world import Property, View


# --- what readers see -------------------------------------------------------------------------------------------------
def seen(sandbox: Sandbox, doing: Attempt, name: str, meaning: str) -> Property:
    """Ask whether readers see a file while its attempt is in the state `doing`."""

    def step(before: View, after: View, actor: str) -> str | None:
        old, cluster = visible(before), observed(after)
        for path, origin in of_main(visible(after)).items():
            if origin != old.get(path) and cluster.attempts[origin.task][origin.attempt] is doing:
                return f"{attempt_actor(origin.task, origin.attempt)} {doing.value}, and readers see {origin}"
        return None

    return Property(name=name, title="uncommitted output seen", meaning=meaning, step=step)


def committed_seen(sandbox: Sandbox) -> Property:
    """Ask whether readers see the output of committed tasks before the job commit."""

    def step(before: View, after: View, actor: str) -> str | None:
        cluster = observed(after)
        if cluster.phase is not Phase.RUNNING:
            return None
        for origin in of_main(visible(after)).values():
            if cluster.attempts[origin.task][origin.attempt] is Attempt.ENDED:
                who = attempt_actor(origin.task, origin.attempt)
                return f"{who} has committed, the driver has not started to commit the job, and readers see {origin}"
        return None

    return Property(
        name="committed-output-observable",
        title="committed output seen",
        meaning="no reader sees the output of committed tasks before the job commit",
        step=step,
    )


# --- the job commit ---------------------------------------------------------------------------------------------------
def job_commit(sandbox: Sandbox, read: Callable[[Sandbox, View], Reading], name: str, readers: str) -> Property:
    """Ask whether readers see at most one change, after which they know that the job is over."""

    def step(before: View, after: View, actor: str) -> str | None:
        if actor != "driver" or observed(before).phase is not Phase.COMMITTING:
            return None
        old, new = read(sandbox, before), read(sandbox, after)
        if old == new:
            return None
        shown = in_words(new.files)
        if old.over:
            return f"the job was over for {readers}, and the driver changes what they see to {shown}"
        if not new.over:
            return f"the job commit is in progress, and {readers} see {shown}"
        if old.files != new.files and (old.files or new.files != accepted(sandbox, after)):
            return f"{readers} see {in_words(old.files)}, and then {shown}"
        return None

    return Property(
        name=name,
        title="atomic job commit",
        meaning=f"a job commit changes what {readers} see in one step",
        step=step,
    )


def own_job_commit(sandbox: Sandbox) -> Property:
    """Ask the question of `job_commit` for the committer's intended readers."""
    read = READERS.get(sandbox.setting.committer.name, listed)
    return job_commit(sandbox, read, "atomic-job-commit", "readers")


# --- jobs that are given up -------------------------------------------------------------------------------------------
def undone(sandbox: Sandbox, name: str, *, by_hand: bool) -> Property:
    """Ask whether an aborted job leaves nothing behind.

    Args:
        by_hand: whether to ignore files and uploads that a person can find and delete, because their names contain the
            job's id.
    """

    def end(view: View) -> str | None:
        cluster = observed(view)
        if not was_told(view, "aborted") or cluster.job is None:
            return None
        job = cluster.job.job
        left = {path: origin for path, origin in of_main(visible(view)).items() if not (by_hand and job in path)}
        if left:
            return f"the job was aborted, and readers see {in_words(left.values())}"
        waiting = [key for key, _upload in _uploads(view) if not (by_hand and job in key)]
        return f"the job was aborted, and the upload {waiting[0]} is pending" if waiting else None

    how = "by its abort, or by hand using file names" if by_hand else "by its abort alone"
    return Property(name=name, title="abortable job", meaning=f"a job that is abandoned can be undone {how}", end=end)


def recovered(sandbox: Sandbox) -> Property:
    """Ask whether a new driver completes the job of a dead one."""

    def end(view: View) -> str | None:
        if observed(view).second != "alive":
            return None
        found = wrong_end(sandbox, view, "second driver")
        return f"a second driver has continued the job: {found}" if found else None

    return Property(
        name="recoverable-job",
        title="recoverable job",
        meaning="a new driver reuses the tasks that a dead driver had committed",
        end=end,
    )
