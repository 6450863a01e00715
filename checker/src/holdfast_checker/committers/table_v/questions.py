"""Define the questions of paper 000, Table V, as properties that are violated if the answer for a committer is bad.

A question whose name starts with the name of a row belongs to that row; `answers` says which circumstance the question
is about.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import cast

from holdfast.commit.layout import SUCCESS
from holdfast.commit.two_phase.snapshot import read_snapshot
from holdfast.errors import HoldfastError
from holdfast_checker.committers.actors import write_files
from holdfast_checker.committers.cluster import Attempt, Cluster, ClusterState, Phase, attempt_actor
from holdfast_checker.committers.output import DESTINATION, HOME, Origin, directory, files_of, visible
from holdfast_checker.committers.properties import RULES, in_words, of_main, told_finished, was_told, winners
from holdfast_checker.committers.sandbox import Sandbox, cluster_of
from holdfast_checker.framework.subject import Rule, by_name
from holdfast_checker.kernel.calls import Alternative, Call, Fault, Footprint, Reply
from holdfast_checker.kernel.world import View
from holdfast_checker.simulated.memory import MemoryImage


@dataclass(frozen=True, slots=True, kw_only=True)
class ObservedState(ClusterState):
    """The state of a simulated cluster, with facts that only the properties of experiments may use.

    Attributes:
        lost: by task, then by attempt, the state in which the attempt died, failed or was cut off; None if none of this
            happened, or if the driver had rejected the attempt before.
        dead: names of the actors that died.
    """

    lost: tuple[tuple[Attempt | None, ...], ...]
    dead: tuple[str, ...] = ()


def observed(view: View) -> ObservedState:
    """Return the state of the simulated Spark cluster in a state of an experiment's world."""
    found = cluster_of(view)
    assert isinstance(found, ObservedState)
    return found


class ObservedCluster(Cluster):
    """A simulated Spark cluster that also records in which state each task attempt was lost.

    It has an additional call, ``restart``, for the next attempt at the job, which Hadoop starts after a driver died
    (paper 000, II.B.1). The call returns the job and the numbers of the committed tasks. It is possible after some
    tasks have committed, while no task commit is running, and before the first driver has begun to end the job.
    """

    def initial(self) -> ObservedState:
        start = super().initial()
        none_lost = tuple((None,) * len(attempts) for attempts in start.attempts)
        return ObservedState(attempts=start.attempts, accepted=start.accepted, lost=none_lost)

    def alternatives(self, state: object, call: Call, actor: str) -> Sequence[Alternative]:
        now = cast("ObservedState", state)
        if call.operation == "restart":
            return _restart(now)
        ways = super().alternatives(state, call, actor)
        if call.operation not in ("fail", "lose"):
            return ways
        return [replace(way, state=_noted(now, cast("ObservedState", way.state))) for way in ways]

    def footprint(self, call: Call) -> Footprint:
        return super().footprint(replace(call, operation="take_over") if call.operation == "restart" else call)

    def waits_for(self, state: object, call: Call) -> tuple[str, frozenset[Fault]] | None:
        if call.operation != "restart":
            return super().waits_for(state, call)
        return ("driver", frozenset()) if cast("ObservedState", state).driver == "alive" else None

    def bury(self, state: object, actor: str) -> object:
        now = cast("ObservedState", state)
        after = _noted(now, cast("ObservedState", super().bury(state, actor)))
        return replace(after, dead=tuple(sorted((*after.dead, actor))))


def _restart(state: ObservedState) -> Sequence[Alternative]:
    committed = tuple(task for task, accepted in enumerate(state.accepted) if accepted is not None)
    busy = any(Attempt.COMMITTING in attempts for attempts in state.attempts)
    if state.driver != "dead" or state.job is None or state.phase is not Phase.RUNNING or busy or not committed:
        return []
    return [Alternative(state=replace(state, second="alive"), reply=Reply((state.job, committed)))]


def _noted(before: ObservedState, after: ObservedState) -> ObservedState:
    """Return the state `after` a step, and record in it the state in which attempts were lost in this step."""
    lost = tuple(
        tuple(
            was if now is Attempt.GONE and was in (Attempt.RUNNING, Attempt.COMMITTING) else known
            for was, now, known in zip(*attempts, strict=True)
        )
        for attempts in zip(before.attempts, after.attempts, after.lost, strict=True)
    )
    return after if lost == after.lost else replace(after, lost=lost)


_Wrong = Callable[[Sandbox, View], str]


# --- what is wrong with a job's output --------------------------------------------------------------------------------
def wrong_output(sandbox: Sandbox, view: View) -> str:
    """Describe how the visible output is incomplete or mixes attempts (C1, C2); an empty string if it is right."""
    for winner in winners(observed(view), visible(view), sandbox.setting.files):
        if winner.attempt is None:
            return f"the destination lacks {in_words(winner.missing)}"
        if winner.strange:
            more = in_words(winner.strange)
            return f"beside the files of attempt {winner.attempt} at task {winner.task} the destination shows {more}"
    return ""


def wrong_attempt(sandbox: Sandbox, view: View) -> str:
    """Describe how the visible output is not that of the accepted attempts (C1 to C3); empty string if it is."""
    for winner in winners(observed(view), visible(view), sandbox.setting.files):
        if winner.attempt not in (None, winner.accepted):
            return f"the driver accepted attempt {winner.accepted}, and the files are those of attempt {winner.attempt}"
    return wrong_output(sandbox, view)


def wrong_end(sandbox: Sandbox, view: View, driver: str = "driver", wrong: _Wrong = wrong_output) -> str:
    """Describe what is wrong at the end of an execution in which the job must be committed; empty if nothing."""
    told = observed(view).outcome_of(driver)
    if told != "committed":
        return f"{driver} was told that the job is {told or 'not over'}"
    return wrong(sandbox, view)


@dataclass(frozen=True, slots=True)
class Reading:
    """The result of a read of a destination by a committer's intended readers.

    Attributes:
        files: the files of accepted attempts that the reader sees.
        over: whether the reader considers the job committed.
    """

    files: frozenset[Origin]
    over: bool


def accepted(sandbox: Sandbox, view: View) -> frozenset[Origin]:
    """Return the origins of the files of all attempts whose report the driver accepted."""
    return frozenset(
        origin
        for task, one in enumerate(observed(view).accepted)
        if one is not None
        for origin in files_of("main", task, one[0], sandbox.setting.files)
    )


def _success_names(view: View, job: str) -> frozenset[str] | None:
    """Return the paths in this job's _SUCCESS; None if there is no _SUCCESS of this job."""
    found = cast("MemoryImage", view.states[DESTINATION]).objects.get(f"{HOME}{SUCCESS}")
    if found is None:
        return None
    document = json.loads(found.data)
    if document["jobId"] != job:
        return None
    return frozenset(name.removeprefix(f"/{HOME}") for name in document["filenames"])


def listed(sandbox: Sandbox, view: View) -> Reading:
    """Read the destination as tools without Holdfast do: list it, and check for a ``_SUCCESS`` of the job."""
    job = observed(view).job
    over = job is not None and _success_names(view, job.job) is not None
    return Reading(frozenset(visible(view).values()) & accepted(sandbox, view), over)


def _named(sandbox: Sandbox, view: View) -> Reading:
    """Read the files that _SUCCESS names."""
    job = observed(view).job
    names = _success_names(view, job.job) if job is not None else None
    found = frozenset(origin for path, origin in visible(view).items() if path in (names or ()))
    return Reading(found & accepted(sandbox, view), names is not None)


def _whole(sandbox: Sandbox, view: View) -> Reading:
    """Read through Holdfast."""
    there = visible(view)
    snapshot = read_snapshot(sandbox.copy(view).context())
    found = frozenset(there[file.path] for file in snapshot.files if file.path in there) & accepted(sandbox, view)
    return Reading(found, bool(found))


_Read = Callable[[Sandbox, View], Reading]

READERS: Mapping[str, _Read] = {"two_phase": _whole, "stocator": _named}
"""How to read the output of these committers; the output of all others is read by listing."""


FIRST_ATTEMPT = f"{2:04x}"
"""Prefix of the ids that the first attempt creates: it is the second actor of every world."""


# --- speculative tasks ------------------------------------------------------------------------------------------------
def _side_by_side(wrong: _Wrong, sandbox: Sandbox, view: View) -> str | None:
    """Ask whether the output is right when two attempts at a task ran side by side."""
    found = wrong_end(sandbox, view, wrong=wrong)
    return f"two attempts ran without faults, and when both are over: {found}" if found else None


def _while_one_writes(sandbox: Sandbox, before: View, after: View, actor: str) -> str | None:
    """Ask whether the output is right when the job commits while another attempt still writes."""
    told = told_finished(before, after)
    found = wrong_attempt(sandbox, after) if told else ""
    return f"{told} was told that the job is committed while another attempt runs: {found}" if found else None


# --- attempts that are lost -------------------------------------------------------------------------------------------
def _shown_after_abort(doing: Attempt, sandbox: Sandbox, before: View, after: View, actor: str) -> str | None:
    """Ask whether an aborted attempt leaves nothing visible."""
    if observed(after).lost[0][0] is not doing or not _asks_next(before, after):
        return None
    there = [origin for origin in of_main(visible(after)).values() if origin.attempt == 0]
    return f"attempt 0 was aborted, and readers see {in_words(there)}" if there else None


def _wrong_after_abort(doing: Attempt, sandbox: Sandbox, view: View) -> str | None:
    """Ask whether an aborted attempt leaves nothing pending, and the output of the next attempt is right."""
    if observed(view).lost[0][0] is not doing:
        return None
    if found := wrong_end(sandbox, view):
        return f"attempt 0 was aborted, attempt 1 ran, and at the end: {found}"
    left = [key for key, _upload in _uploads(view)]
    return f"attempt 0 was aborted, and when the job is over the upload {left[0]} is pending" if left else None


def _pending_after_abort(sandbox: Sandbox, before: View, after: View, actor: str) -> str | None:
    """Ask whether an attempt has no pending upload right after its abort."""
    if observed(after).lost[0][0] is not Attempt.RUNNING or not _asks_next(before, after):
        return None
    left = [key for key, upload in _uploads(after) if upload.startswith(FIRST_ATTEMPT)]
    return f"attempt 0 was aborted, attempt 1 has written, and the upload {left[0]} is pending" if left else None


def _asks_next(before: View, after: View) -> bool:
    """Check whether the second attempt, which aborted the first one and wrote its files, gets permission to commit."""
    old, new = observed(before).attempts[0][1], observed(after).attempts[0][1]
    return old is Attempt.RUNNING and new is Attempt.COMMITTING


def _uploads(view: View) -> list[tuple[str, str]]:
    images = (state for state in view.states.values() if isinstance(state, MemoryImage))
    return [(one.info.key, one.info.upload_id) for image in images for one in image.uploads.values()]


def _half_task_commit(sandbox: Sandbox, before: View, after: View, actor: str) -> str | None:
    """Ask whether an attempt that dies in its task commit has made all or none of its files visible.

    If the attempt made no file visible, the next attempt and the job commit must produce the right output.
    """
    who, now = attempt_actor(0, 0), observed(after)
    just_died = who in now.dead and now.dead != observed(before).dead
    if not just_died or now.lost[0][0] is not Attempt.COMMITTING or now.phase is not Phase.RUNNING:
        return None  # from the job commit on, the driver publishes files, too
    mine, found_there = files_of("main", 0, 0, sandbox.setting.files), visible(after)
    there = mine & frozenset(found_there.values())
    if all(origin in there or _is_replaced(origin, found_there) for origin in mine):
        return None
    if there:
        return f"{who} dies in its task commit, and shows only {in_words(there)}"
    found = _finished_on(sandbox, after)
    return f"{who} dies in its task commit, and at the end: {found}" if found else None


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


def _cut_off(
    doing: Attempt, rules: Sequence[Rule], sandbox: Sandbox, before: View, after: View, actor: str
) -> str | None:
    """Ask whether rules hold if an attempt was cut off from the driver in the state `doing`."""
    if doing not in (lost for attempts in observed(after).lost for lost in attempts):
        return None
    broke = (rule.step(sandbox, before, after, actor) for rule in rules if rule.step is not None)
    return next((words for words in broke if words), None)


# --- what readers see -------------------------------------------------------------------------------------------------
def _seen(doing: Attempt, sandbox: Sandbox, before: View, after: View, actor: str) -> str | None:
    """Ask whether readers see a file while its attempt is in the state `doing`."""
    old, cluster = visible(before), observed(after)
    for path, origin in of_main(visible(after)).items():
        if origin != old.get(path) and cluster.attempts[origin.task][origin.attempt] is doing:
            return f"{attempt_actor(origin.task, origin.attempt)} {doing.value}, and readers see {origin}"
    return None


def _committed_seen(sandbox: Sandbox, before: View, after: View, actor: str) -> str | None:
    """Ask whether readers see the output of committed tasks before the job commit."""
    cluster = observed(after)
    if cluster.phase is not Phase.RUNNING:
        return None
    for origin in of_main(visible(after)).values():
        if cluster.attempts[origin.task][origin.attempt] is Attempt.ENDED:
            who = attempt_actor(origin.task, origin.attempt)
            return f"{who} has committed, the driver has not started to commit the job, and readers see {origin}"
    return None


# --- the job commit ---------------------------------------------------------------------------------------------------
def _half_job_commit(
    readers: str, read: _Read | None, sandbox: Sandbox, before: View, after: View, actor: str
) -> str | None:
    """Ask whether readers see at most one change, after which they know that the job is over.

    Args:
        read: how they read; None for the committer's intended readers.
    """
    if actor != "driver" or observed(before).phase is not Phase.COMMITTING:
        return None
    read = read or READERS.get(sandbox.setting.committer.name, listed)
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


# --- jobs that are given up -------------------------------------------------------------------------------------------
def _not_undone(by_hand: bool, sandbox: Sandbox, view: View) -> str | None:
    """Ask whether an aborted job leaves nothing behind.

    Args:
        by_hand: whether to ignore files and uploads that a person can find and delete, because their names contain the
            job's id.
    """
    cluster = observed(view)
    if not was_told(view, "aborted") or cluster.job is None:
        return None
    job = cluster.job.job
    left = {path: origin for path, origin in of_main(visible(view)).items() if not (by_hand and job in path)}
    if left:
        return f"the job was aborted, and readers see {in_words(left.values())}"
    waiting = [key for key, _upload in _uploads(view) if not (by_hand and job in key)]
    return f"the job was aborted, and the upload {waiting[0]} is pending" if waiting else None


def _not_recovered(sandbox: Sandbox, view: View) -> str | None:
    """Ask whether a new driver completes the job of a dead one."""
    if observed(view).second != "alive":
        return None
    found = wrong_end(sandbox, view, "second driver")
    return f"a second driver has continued the job: {found}" if found else None


# --- all of them ------------------------------------------------------------------------------------------------------
def _abort_task(name: str, doing: Attempt) -> Rule:
    meaning = "after an attempt's abort nothing of it is left, and the next one's output is right"
    step, end = partial(_shown_after_abort, doing), partial(_wrong_after_abort, doing)
    return Rule(name, "abortable task", meaning, step=step, end=end)


def _task_commit(name: str) -> Rule:
    meaning = "a task commit that dies halfway has done everything or nothing"
    return Rule(name, "atomic task commit", meaning, step=_half_task_commit)


def _job_commit(name: str, readers: str, read: _Read | None = None) -> Rule:
    meaning = f"a job commit changes what {readers} see in one step"
    return Rule(name, "atomic job commit", meaning, step=partial(_half_job_commit, readers, read))


def _partitioned(name: str, doing: Attempt, *asked: str) -> Rule:
    rules = [RULES[one] for one in asked]
    meaning = "; ".join(one.meaning for one in rules)
    return Rule(name, "partitioned executors", meaning, step=partial(_cut_off, doing, rules))


_ONE_OF_TWO = "when two attempts at a task ran concurrently, the job's output is that of one of them"
_UNSEEN = "no reader sees what an attempt writes before"

ASKED: Mapping[str, Rule] = by_name(
    Rule("speculative-tasks", "speculative tasks", _ONE_OF_TWO, end=partial(_side_by_side, wrong_attempt)),
    Rule(
        "speculative-tasks-early",
        "speculative tasks",
        "when the job is committed, the output is that of one attempt, even if another one still writes",
        step=_while_one_writes,
    ),
    Rule("speculative-tasks-two-commits", "speculative tasks", _ONE_OF_TWO, end=partial(_side_by_side, wrong_output)),
    Rule(
        "recoverable-job",
        "recoverable job",
        "a new driver reuses the tasks that a dead driver had committed",
        end=_not_recovered,
    ),
    _abort_task("abortable-task", Attempt.RUNNING),
    _abort_task("abortable-task-in-commit", Attempt.COMMITTING),
    Rule(
        "abortable-task-at-once",
        "abortable task",
        "after its abort no upload of an attempt is pending",
        step=_pending_after_abort,
    ),
    Rule(
        "abortable-job",
        "abortable job",
        "a job that is abandoned can be undone by its abort, or by hand using file names",
        end=partial(_not_undone, True),
    ),
    Rule(
        "abortable-job-by-itself",
        "abortable job",
        "a job that is abandoned can be undone by its abort alone",
        end=partial(_not_undone, False),
    ),
    Rule(
        "uncommitted-output-observable",
        "uncommitted output seen",
        f"{_UNSEEN} it is told to commit",
        step=partial(_seen, Attempt.RUNNING),
    ),
    Rule(
        "uncommitted-output-observable-in-commit",
        "uncommitted output seen",
        f"{_UNSEEN} its task commit has finished",
        step=partial(_seen, Attempt.COMMITTING),
    ),
    Rule(
        "committed-output-observable",
        "committed output seen",
        "no reader sees the output of committed tasks before the job commit",
        step=_committed_seen,
    ),
    _task_commit("atomic-task-commit"),
    _task_commit("atomic-task-commit-two-commits"),
    _job_commit("atomic-job-commit", "readers"),
    _job_commit("atomic-job-commit-listed", "readers that list the destination", listed),
    _partitioned("partitioned-executor", Attempt.RUNNING, "C1", "C2", "C6"),
    _partitioned("partitioned-executor-in-commit", Attempt.COMMITTING, "C1", "C2", "C6"),
    _partitioned("partitioned-executor-C3", Attempt.COMMITTING, "C3"),
)
"""The questions of Table V, as rules (properties), by name."""
