"""What the experiments on paper 000, Table V, ask: each question is a property, which breaks if the answer is bad.

`ASKED` has them by name. A name that starts like a row of the table is a question of that row; which circumstance it is
about, `attributes` says.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial

from holdfast.checker.committers.actors import write_files
from holdfast.checker.committers.cluster import Attempt, Phase, attempt_actor
from holdfast.checker.committers.observed_cluster import watched
from holdfast.checker.committers.output import DESTINATION, Origin, directory, files_of, visible
from holdfast.checker.committers.properties import PROPERTIES
from holdfast.checker.committers.property_support import in_words, of_main, told_finished, was_told, winners
from holdfast.checker.committers.readers import READERS, Reading, accepted, listed
from holdfast.checker.committers.sandbox import Bench
from holdfast.checker.kernel.world import Property, View
from holdfast.errors import HoldfastError
from holdfast.stores.memory.store import MemoryImage

__all__ = ["ASKED", "FIRST_ATTEMPT"]

FIRST_ATTEMPT = f"{2:04x}"
"""What the ids of the first attempt, and of what it makes, start with: it is the second actor of every world."""


# --- what is wrong with a job's output --------------------------------------------------------------------------------
def _wrong(bench: Bench, view: View) -> str:
    """C1 and C2, in words; empty if they hold."""
    for winner in winners(watched(view), visible(view), bench.setting.files):
        if winner.attempt is None:
            return f"the destination lacks {in_words(winner.missing)}"
        if winner.strange:
            more = in_words(winner.strange)
            return f"beside the files of attempt {winner.attempt} at task {winner.task} there is {more}"
    return ""


def _wrong_attempt(bench: Bench, view: View) -> str:
    """C1 to C3, in words; empty if they hold."""
    for winner in winners(watched(view), visible(view), bench.setting.files):
        if winner.attempt not in (None, winner.accepted):
            return f"the driver accepted attempt {winner.accepted}, and there are the files of attempt {winner.attempt}"
    return _wrong(bench, view)


def _wrong_end(bench: Bench, view: View, driver: str = "driver", wrong: Callable[[Bench, View], str] = _wrong) -> str:
    """The same of a job that has to be committed when its history is over."""
    told = watched(view).outcome_of(driver)
    if told != "committed":
        return f"{driver} was told that the job is {told or 'not over'}"
    return wrong(bench, view)


# --- speculative tasks ------------------------------------------------------------------------------------------------
def _side_by_side(bench: Bench, name: str, wrong: Callable[[Bench, View], str]) -> Property:
    def end(view: View) -> str | None:
        found = _wrong_end(bench, view, wrong=wrong)
        return f"two attempts ran, nothing went wrong, and when both are over: {found}" if found else None

    return Property(
        name=name,
        title="speculative tasks",
        meaning="when two attempts at a task ran side by side, the job's output is that of one of them",
        end=end,
    )


def _while_one_writes(bench: Bench) -> Property:
    def step(before: View, after: View, actor: str) -> str | None:
        told = told_finished(before, after)
        found = _wrong_attempt(bench, after) if told else ""
        return f"{told} was told that the job is committed while another attempt is at work: {found}" if found else None

    return Property(
        name="speculative-tasks-early",
        title="speculative tasks",
        meaning="when the job is committed, the output is that of one attempt, also if another one still writes",
        step=step,
    )


# --- what readers see -------------------------------------------------------------------------------------------------
def _seen(bench: Bench, doing: Attempt, name: str, meaning: str) -> Property:
    """Breaks when a file appears whose attempt is at `doing`."""

    def step(before: View, after: View, actor: str) -> str | None:
        old, cluster = visible(before), watched(after)
        for path, origin in of_main(visible(after)).items():
            if origin != old.get(path) and cluster.attempts[origin.task][origin.attempt] is doing:
                return f"{attempt_actor(origin.task, origin.attempt)} {doing.value}, and readers see {origin}"
        return None

    return Property(name=name, title="uncommitted output seen", meaning=meaning, step=step)


def _committed_seen(bench: Bench) -> Property:
    def step(before: View, after: View, actor: str) -> str | None:
        cluster = watched(after)
        if cluster.phase is not Phase.RUNNING:
            return None
        for origin in of_main(visible(after)).values():
            if cluster.attempts[origin.task][origin.attempt] is Attempt.ENDED:
                who = attempt_actor(origin.task, origin.attempt)
                return f"{who} has committed, the driver has not begun to commit the job, and readers see {origin}"
        return None

    return Property(
        name="committed-output-observable",
        title="committed output seen",
        meaning="no reader meets the output of committed tasks before the job commit",
        step=step,
    )


# --- the job commit ---------------------------------------------------------------------------------------------------
def _job_commit(bench: Bench, read: Callable[[Bench, View], Reading], name: str, readers: str) -> Property:
    """Readers see one change at most: the one after which they know that the job is over."""

    def step(before: View, after: View, actor: str) -> str | None:
        if actor != "driver" or watched(before).phase is not Phase.COMMITTING:
            return None
        old, new = read(bench, before), read(bench, after)
        if old == new:
            return None
        shown = in_words(new.files)
        if old.over:
            return f"the job was over for {readers}, and the driver changes what they see to {shown}"
        if not new.over:
            return f"the job commit is under way, and {readers} see {shown}"
        if old.files != new.files and (old.files or new.files != accepted(bench, after)):
            return f"{readers} see {in_words(old.files)}, and then {shown}"
        return None

    return Property(
        name=name,
        title="atomic job commit",
        meaning=f"a job commit changes what {readers} see in one step",
        step=step,
    )


def _own_job_commit(bench: Bench) -> Property:
    read = READERS.get(bench.setting.committer.name, listed)
    return _job_commit(bench, read, "atomic-job-commit", "readers")


# --- attempts that are lost -------------------------------------------------------------------------------------------
def _abort_task(bench: Bench, doing: Attempt, name: str) -> Property:
    """After the abort nothing of the first attempt is visible; the second one's output is right; nothing is left."""

    def step(before: View, after: View, actor: str) -> str | None:
        if watched(after).lost[0][0] is not doing or not _asks_next(before, after):
            return None
        there = [origin for origin in of_main(visible(after)).values() if origin.attempt == 0]
        return f"attempt 0 was aborted, and readers see {in_words(there)}" if there else None

    def end(view: View) -> str | None:
        cluster = watched(view)
        if cluster.lost[0][0] is not doing:
            return None
        if found := _wrong_end(bench, view):
            return f"attempt 0 was aborted, attempt 1 has run, and at the end: {found}"
        left = [key for key, _upload in _uploads(view)]
        return f"attempt 0 was aborted, and when the job is over the upload {left[0]} is pending" if left else None

    return Property(
        name=name,
        title="abortable task",
        meaning="after its abort nothing of an attempt is left, and the next one's output is right",
        step=step,
        end=end,
    )


def _abort_leaves_nothing_pending(bench: Bench) -> Property:
    def step(before: View, after: View, actor: str) -> str | None:
        if watched(after).lost[0][0] is not Attempt.RUNNING or not _asks_next(before, after):
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
    """Whether the second attempt, which has aborted the first one, has written and is told to commit."""
    old, new = watched(before).attempts[0][1], watched(after).attempts[0][1]
    return old is Attempt.RUNNING and new is Attempt.COMMITTING


def _uploads(view: View) -> list[tuple[str, str]]:
    images = (state for state in view.states.values() if isinstance(state, MemoryImage))
    return [(one.info.key, one.info.upload_id) for image in images for one in image.uploads.values()]


def _task_commit(bench: Bench, name: str) -> Property:
    """Whatever a task commit that dies has shown, it is none or all of its files; where it is none, the next attempt
    and the job commit make a right job of what there is."""

    def step(before: View, after: View, actor: str) -> str | None:
        task, attempt = 0, 0
        now = watched(after)
        just_died = attempt_actor(task, attempt) in now.dead and now.dead != watched(before).dead
        if not just_died or now.lost[task][attempt] is not Attempt.COMMITTING or now.phase is not Phase.RUNNING:
            return None  # from the job commit on, the driver shows files, too
        mine, found_there = files_of("main", task, attempt, bench.setting.files), visible(after)
        there = mine & frozenset(found_there.values())
        if all(origin in there or _is_replaced(origin, found_there) for origin in mine):
            return None
        if there:
            return (
                f"{attempt_actor(task, attempt)} dies in its task commit, and of its files there is {in_words(there)}"
            )
        found = _finished_on(bench, after)
        return f"{attempt_actor(task, attempt)} dies in its task commit, and in the end: {found}" if found else None

    return Property(
        name=name,
        title="atomic task commit",
        meaning="a task commit that dies half way has done all or nothing",
        step=step,
    )


def _is_replaced(origin: Origin, found: Mapping[str, Origin]) -> bool:
    """Whether another attempt's file lies where this one has to have been."""
    folder = f"{directory(origin.attempt, origin.number)}/"
    return any(
        path.startswith(folder) and other.task == origin.task and other.number == origin.number and other != origin
        for path, other in found.items()
    )


def _finished_on(bench: Bench, view: View) -> str:
    """What is wrong if a second attempt runs, unless one was accepted, and the driver commits; on a copy."""
    copy, cluster = bench.copy(view), watched(view)
    job, committer = cluster.job, bench.setting.committer
    assert job is not None
    reports = [one[1] for one in cluster.accepted if one is not None]
    try:
        if not reports:
            with committer.setup_task(copy.context(), job, 0) as running:
                write_files(bench.setting, running, 0, 1)
                reports = [running.commit()]
        committer.commit_job(copy.context(), job, reports, 1)
    except HoldfastError as error:
        return f"the job cannot be committed: {error.message}"
    return _wrong(bench, View({**view.states, DESTINATION: copy.stores[DESTINATION].image()}))


def _cut_off(bench: Bench, doing: Attempt, name: str, asked: Iterable[str]) -> Property:
    """C1 and the like, if an attempt was cut off while it was at `doing`."""
    properties = [PROPERTIES[one](bench) for one in asked]

    def step(before: View, after: View, actor: str) -> str | None:
        if doing not in (lost for attempts in watched(after).lost for lost in attempts):
            return None
        broke = (one.step(before, after, actor) for one in properties if one.step is not None)
        return next((words for words in broke if words), None)

    return Property(
        name=name,
        title="partitioned executors",
        meaning="; ".join(one.meaning for one in properties),
        step=step,
    )


# --- jobs that are given up -------------------------------------------------------------------------------------------
def _undone(bench: Bench, name: str, *, by_hand: bool) -> Property:
    def end(view: View) -> str | None:
        cluster = watched(view)
        if not was_told(view, "aborted") or cluster.job is None:
            return None
        job = cluster.job.job
        left = {path: origin for path, origin in of_main(visible(view)).items() if not (by_hand and job in path)}
        if left:
            return f"the job was aborted, and there is {in_words(left.values())}"
        waiting = [key for key, _upload in _uploads(view) if not (by_hand and job in key)]
        return f"the job was aborted, and the upload {waiting[0]} is pending" if waiting else None

    how = "by its abort, or by hand, by the names of what is left" if by_hand else "by its abort alone"
    return Property(name=name, title="abortable job", meaning=f"a job that is given up can be undone {how}", end=end)


def _recovered(bench: Bench) -> Property:
    def end(view: View) -> str | None:
        if watched(view).second != "alive":
            return None
        found = _wrong_end(bench, view, "second driver")
        return f"a second driver has gone on with the job: {found}" if found else None

    return Property(
        name="recoverable-job",
        title="recoverable job",
        meaning="a new driver goes on with the tasks that a dead one had committed",
        end=end,
    )


# --- all of them ------------------------------------------------------------------------------------------------------
_HARMLESS = ("C1", "C2", "C6")

ASKED: Mapping[str, Callable[[Bench], Property]] = {
    "speculative-tasks": partial(_side_by_side, name="speculative-tasks", wrong=_wrong_attempt),
    "speculative-tasks-early": _while_one_writes,
    "speculative-tasks-two-commits": partial(_side_by_side, name="speculative-tasks-two-commits", wrong=_wrong),
    "recoverable-job": _recovered,
    "abortable-task": partial(_abort_task, doing=Attempt.RUNNING, name="abortable-task"),
    "abortable-task-in-commit": partial(_abort_task, doing=Attempt.COMMITTING, name="abortable-task-in-commit"),
    "abortable-task-at-once": _abort_leaves_nothing_pending,
    "abortable-job": partial(_undone, name="abortable-job", by_hand=True),
    "abortable-job-by-itself": partial(_undone, name="abortable-job-by-itself", by_hand=False),
    "uncommitted-output-observable": partial(
        _seen,
        doing=Attempt.RUNNING,
        name="uncommitted-output-observable",
        meaning="no reader meets what an attempt writes before it is told to commit",
    ),
    "uncommitted-output-observable-in-commit": partial(
        _seen,
        doing=Attempt.COMMITTING,
        name="uncommitted-output-observable-in-commit",
        meaning="no reader meets what an attempt writes before its task commit has ended",
    ),
    "committed-output-observable": _committed_seen,
    "atomic-task-commit": partial(_task_commit, name="atomic-task-commit"),
    "atomic-task-commit-two-commits": partial(_task_commit, name="atomic-task-commit-two-commits"),
    "atomic-job-commit": _own_job_commit,
    "atomic-job-commit-listed": partial(
        _job_commit, read=listed, name="atomic-job-commit-listed", readers="readers who list the destination"
    ),
    "partitioned-executor": partial(_cut_off, doing=Attempt.RUNNING, name="partitioned-executor", asked=_HARMLESS),
    "partitioned-executor-in-commit": partial(
        _cut_off, doing=Attempt.COMMITTING, name="partitioned-executor-in-commit", asked=_HARMLESS
    ),
    "partitioned-executor-C3": partial(
        _cut_off, doing=Attempt.COMMITTING, name="partitioned-executor-C3", asked=("C3",)
    ),
}
"""By name: what makes the property for a world."""
