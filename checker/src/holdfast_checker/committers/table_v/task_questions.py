"""Define the questions about task attempts: speculation, abort, task commit, partition.

Each function returns a property that breaks if the answer to its question is bad.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from holdfast.errors import HoldfastError
from holdfast.stores.memory import MemoryImage
from holdfast_checker.committers.actors import write_files
from holdfast_checker.committers.cluster import Attempt, Phase, attempt_actor
from holdfast_checker.committers.output import DESTINATION, Origin, directory, files_of, visible
from holdfast_checker.committers.properties import PROPERTIES
from holdfast_checker.committers.property_support import in_words, of_main, told_finished
from holdfast_checker.committers.sandbox import Sandbox
from holdfast_checker.committers.table_v.observed_cluster import observed
from holdfast_checker.committers.table_v.output_checks import wrong_attempt, wrong_end, wrong_output
from holdfast_checker.kernel.world import Property, View

FIRST_ATTEMPT = f"{2:04x}"
"""Prefix of the ids that the first attempt creates: it is the second actor of every world."""


# --- speculative tasks ------------------------------------------------------------------------------------------------
def side_by_side(sandbox: Sandbox, name: str, wrong: Callable[[Sandbox, View], str]) -> Property:
    """Ask whether the output is right when two attempts at a task ran side by side."""

    def end(view: View) -> str | None:
        found = wrong_end(sandbox, view, wrong=wrong)
        return f"two attempts ran without faults, and when both are over: {found}" if found else None

    return Property(
        name=name,
        title="speculative tasks",
        meaning="when two attempts at a task ran concurrently, the job's output is that of one of them",
        end=end,
    )


def while_one_writes(sandbox: Sandbox) -> Property:
    """Ask whether the output is right when the job commits while another attempt still writes."""

    def step(before: View, after: View, actor: str) -> str | None:
        told = told_finished(before, after)
        found = wrong_attempt(sandbox, after) if told else ""
        return f"{told} was told that the job is committed while another attempt runs: {found}" if found else None

    return Property(
        name="speculative-tasks-early",
        title="speculative tasks",
        meaning="when the job is committed, the output is that of one attempt, even if another one still writes",
        step=step,
    )


# --- attempts that are lost -------------------------------------------------------------------------------------------
def abort_task(sandbox: Sandbox, doing: Attempt, name: str) -> Property:
    """Ask whether an aborted attempt leaves nothing visible or pending, and the output of the next attempt is right."""

    def step(before: View, after: View, actor: str) -> str | None:
        if observed(after).lost[0][0] is not doing or not _asks_next(before, after):
            return None
        there = [origin for origin in of_main(visible(after)).values() if origin.attempt == 0]
        return f"attempt 0 was aborted, and readers see {in_words(there)}" if there else None

    def end(view: View) -> str | None:
        cluster = observed(view)
        if cluster.lost[0][0] is not doing:
            return None
        if found := wrong_end(sandbox, view):
            return f"attempt 0 was aborted, attempt 1 ran, and at the end: {found}"
        left = [key for key, _upload in _uploads(view)]
        return f"attempt 0 was aborted, and when the job is over the upload {left[0]} is pending" if left else None

    return Property(
        name=name,
        title="abortable task",
        meaning="after an attempt's abort nothing of it is left, and the next one's output is right",
        step=step,
        end=end,
    )


def abort_leaves_nothing_pending(sandbox: Sandbox) -> Property:
    """Ask whether an attempt has no pending upload right after its abort."""

    def step(before: View, after: View, actor: str) -> str | None:
        if observed(after).lost[0][0] is not Attempt.RUNNING or not _asks_next(before, after):
            return None
        left = [key for key, upload in _uploads(after) if upload.startswith(FIRST_ATTEMPT)]
        return f"attempt 0 was aborted, attempt 1 has written, and the upload {left[0]} is pending" if left else None

    return Property(
        name="abortable-task-at-once",
        title="abortable task",
        meaning="after its abort no upload of an attempt is pending",
        step=step,
    )


def _asks_next(before: View, after: View) -> bool:
    """Check whether the second attempt, which aborted the first one and wrote its files, gets permission to commit."""
    old, new = observed(before).attempts[0][1], observed(after).attempts[0][1]
    return old is Attempt.RUNNING and new is Attempt.COMMITTING


def _uploads(view: View) -> list[tuple[str, str]]:
    images = (state for state in view.states.values() if isinstance(state, MemoryImage))
    return [(one.info.key, one.info.upload_id) for image in images for one in image.uploads.values()]


def task_commit(sandbox: Sandbox, name: str) -> Property:
    """Ask whether an attempt that dies in its task commit has made all or none of its files visible.

    If the attempt made no file visible, the next attempt and the job commit must produce the right output.
    """

    def step(before: View, after: View, actor: str) -> str | None:
        task, attempt = 0, 0
        now = observed(after)
        just_died = attempt_actor(task, attempt) in now.dead and now.dead != observed(before).dead
        if not just_died or now.lost[task][attempt] is not Attempt.COMMITTING or now.phase is not Phase.RUNNING:
            return None  # from the job commit on, the driver publishes files, too
        mine, found_there = files_of("main", task, attempt, sandbox.setting.files), visible(after)
        there = mine & frozenset(found_there.values())
        if all(origin in there or _is_replaced(origin, found_there) for origin in mine):
            return None
        if there:
            return f"{attempt_actor(task, attempt)} dies in its task commit, and shows only {in_words(there)}"
        found = _finished_on(sandbox, after)
        return f"{attempt_actor(task, attempt)} dies in its task commit, and at the end: {found}" if found else None

    return Property(
        name=name,
        title="atomic task commit",
        meaning="a task commit that dies halfway has done everything or nothing",
        step=step,
    )


def _is_replaced(origin: Origin, found: Mapping[str, Origin]) -> bool:
    """Check whether another attempt's file has taken the place of this file."""
    folder = f"{directory(origin.attempt, origin.number)}/"
    return any(
        path.startswith(folder) and other.task == origin.task and other.number == origin.number and other != origin
        for path, other in found.items()
    )


def _finished_on(sandbox: Sandbox, view: View) -> str:
    """Run a second attempt on a copy, unless one was accepted; commit the job, and describe what is wrong then."""
    copy, cluster = sandbox.copy(view), observed(view)
    job, committer = cluster.job, sandbox.setting.committer
    assert job is not None
    reports = [one[1] for one in cluster.accepted if one is not None]
    try:
        if not reports:
            with committer.setup_task(copy.context(), job, 0) as running:
                write_files(sandbox.setting, running, 0, 1)
                reports = [running.commit()]
        committer.commit_job(copy.context(), job, reports, 1)
    except HoldfastError as error:
        return f"the job cannot be committed: {error.message}"
    return wrong_output(sandbox, View({**view.states, DESTINATION: copy.stores[DESTINATION].image()}))


def cut_off(sandbox: Sandbox, doing: Attempt, name: str, asked: Iterable[str]) -> Property:
    """Ask whether the properties `asked` hold if an attempt was cut off from the driver in the state `doing`."""
    properties = [PROPERTIES[one](sandbox) for one in asked]

    def step(before: View, after: View, actor: str) -> str | None:
        if doing not in (lost for attempts in observed(after).lost for lost in attempts):
            return None
        broke = (one.step(before, after, actor) for one in properties if one.step is not None)
        return next((words for words in broke if words), None)

    return Property(
        name=name,
        title="partitioned executors",
        meaning="; ".join(one.meaning for one in properties),
        step=step,
    )
