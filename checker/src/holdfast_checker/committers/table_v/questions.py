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
from holdfast_checker.committers.cluster import AttemptState, Cluster, ClusterState, JobPhase, name_of_attempt_actor
from holdfast_checker.committers.output import (
    DESTINATION,
    HOME,
    FileOrigin,
    choose_partition_directory,
    files_of_attempt,
    visible_files,
)
from holdfast_checker.committers.properties import (
    RULES,
    files_of_main_job,
    find_driver_finished_in_step,
    find_drivers_with_outcome,
    format_origins,
    visible_attempts,
)
from holdfast_checker.committers.sandbox import StoreSandbox, cluster_state
from holdfast_checker.framework.scene_files import Judges, read_rules
from holdfast_checker.framework.subject import Rule
from holdfast_checker.kernel.calls import Alternative, Call, Fault, Footprint, Reply
from holdfast_checker.kernel.world import View
from holdfast_checker.simulated.memory import StoreSnapshot


@dataclass(frozen=True, slots=True, kw_only=True)
class ObservedState(ClusterState):
    """The state of a simulated cluster, with facts that only the properties of experiments may use.

    Attributes:
        lost: by task, then by attempt, the state in which the attempt died, failed or was cut off; None if none of this
            happened, or if the driver had rejected the attempt before.
        dead: names of the actors that died.
    """

    lost: tuple[tuple[AttemptState | None, ...], ...]
    dead: tuple[str, ...] = ()


def observed_state_of(view: View) -> ObservedState:
    """Return the state of the simulated Spark cluster in a state of an experiment's world."""
    found = cluster_state(view)
    assert isinstance(found, ObservedState)
    return found


class ObservedCluster(Cluster):
    """A simulated Spark cluster that also records in which state each task attempt was lost.

    It has an additional call, ``restart``, for the next attempt at the job, which Hadoop starts after a driver died
    (paper 000, II.B.1). The call returns the job and the numbers of the committed tasks. It is possible after some
    tasks have committed, while no task commit is running, and before the first driver has begun to end the job.
    """

    def initial_state(self) -> ObservedState:
        start = super().initial_state()
        none_lost = tuple((None,) * len(attempts) for attempts in start.attempts)
        return ObservedState(attempts=start.attempts, accepted=start.accepted, lost=none_lost)

    def alternatives(self, state: object, call: Call, actor: str) -> Sequence[Alternative]:
        now = cast("ObservedState", state)
        if call.operation == "restart":
            return _state_after_driver_restart(now)
        ways = super().alternatives(state, call, actor)
        if call.operation not in ("fail", "lose"):
            return ways
        return [replace(way, state=_record_lost_attempts(now, cast("ObservedState", way.state))) for way in ways]

    def footprint(self, call: Call) -> Footprint:
        return super().footprint(replace(call, operation="take_over") if call.operation == "restart" else call)

    def find_unblockers(self, state: object, call: Call) -> tuple[str, frozenset[Fault]] | None:
        if call.operation != "restart":
            return super().find_unblockers(state, call)
        return ("driver", frozenset()) if cast("ObservedState", state).driver == "alive" else None

    def state_after_death(self, state: object, actor: str) -> object:
        now = cast("ObservedState", state)
        after = _record_lost_attempts(now, cast("ObservedState", super().state_after_death(state, actor)))
        return replace(after, dead=tuple(sorted((*after.dead, actor))))


def _state_after_driver_restart(state: ObservedState) -> Sequence[Alternative]:
    committed = tuple(task for task, accepted in enumerate(state.accepted) if accepted is not None)
    busy = any(AttemptState.COMMITTING in attempts for attempts in state.attempts)
    if state.driver != "dead" or state.job is None or state.phase is not JobPhase.RUNNING or busy or not committed:
        return []
    return [Alternative(state=replace(state, second="alive"), reply=Reply((state.job, committed)))]


def _record_lost_attempts(before: ObservedState, after: ObservedState) -> ObservedState:
    """Return the state `after` a step, and record in it the state in which attempts were lost in this step."""
    lost = tuple(
        tuple(
            was if now is AttemptState.GONE and was in (AttemptState.RUNNING, AttemptState.COMMITTING) else known
            for was, now, known in zip(*attempts, strict=True)
        )
        for attempts in zip(before.attempts, after.attempts, after.lost, strict=True)
    )
    return after if lost == after.lost else replace(after, lost=lost)


_Wrong = Callable[[StoreSandbox, View], str]


# --- what is wrong with a job's output --------------------------------------------------------------------------------
def describe_wrong_output(sandbox: StoreSandbox, view: View) -> str:
    """Describe how the visible output is incomplete or mixes attempts (C1, C2); an empty string if it is right."""
    for winner in visible_attempts(observed_state_of(view), visible_files(view), sandbox.setting.files):
        if winner.attempt is None:
            return f"the destination lacks {format_origins(winner.missing)}"
        if winner.strange:
            more = format_origins(winner.strange)
            return f"beside the files of attempt {winner.attempt} at task {winner.task} the destination shows {more}"
    return ""


def describe_wrong_attempt(sandbox: StoreSandbox, view: View) -> str:
    """Describe how the visible output is not that of the accepted attempts (C1 to C3); empty string if it is."""
    for winner in visible_attempts(observed_state_of(view), visible_files(view), sandbox.setting.files):
        if winner.attempt not in (None, winner.accepted):
            return f"the driver accepted attempt {winner.accepted}, and the files are those of attempt {winner.attempt}"
    return describe_wrong_output(sandbox, view)


def describe_wrong_final_output(
    sandbox: StoreSandbox, view: View, driver: str = "driver", wrong: _Wrong = describe_wrong_output
) -> str:
    """Describe what is wrong at the end of an execution in which the job must be committed; empty if nothing."""
    told = observed_state_of(view).outcome_learned_by(driver)
    if told != "committed":
        return f"{driver} was told that the job is {told or 'not over'}"
    return wrong(sandbox, view)


@dataclass(frozen=True, slots=True)
class ReadResult:
    """The result of a read of a destination by a committer's intended readers.

    Attributes:
        files: the files of accepted attempts that the reader sees.
        over: whether the reader considers the job committed.
    """

    files: frozenset[FileOrigin]
    over: bool


def accepted_files(sandbox: StoreSandbox, view: View) -> frozenset[FileOrigin]:
    """Return the origins of the files of all attempts whose report the driver accepted."""
    return frozenset(
        origin
        for task, one in enumerate(observed_state_of(view).accepted)
        if one is not None
        for origin in files_of_attempt("main", task, one[0], sandbox.setting.files)
    )


def _paths_named_by_success(view: View, job: str) -> frozenset[str] | None:
    """Return the paths in this job's _SUCCESS; None if there is no _SUCCESS of this job."""
    found = cast("StoreSnapshot", view.states[DESTINATION]).objects.get(f"{HOME}{SUCCESS}")
    if found is None:
        return None
    document = json.loads(found.data)
    if document["jobId"] != job:
        return None
    return frozenset(name.removeprefix(f"/{HOME}") for name in document["filenames"])


def read_by_listing(sandbox: StoreSandbox, view: View) -> ReadResult:
    """Read the destination as tools without Holdfast do: list it, and check for a ``_SUCCESS`` of the job."""
    job = observed_state_of(view).job
    over = job is not None and _paths_named_by_success(view, job.job) is not None
    return ReadResult(frozenset(visible_files(view).values()) & accepted_files(sandbox, view), over)


def _read_by_success_names(sandbox: StoreSandbox, view: View) -> ReadResult:
    """Read the destination as readers that trust ``_SUCCESS`` do: only the files that it names."""
    job = observed_state_of(view).job
    names = _paths_named_by_success(view, job.job) if job is not None else None
    found = frozenset(origin for path, origin in visible_files(view).items() if path in (names or ()))
    return ReadResult(found & accepted_files(sandbox, view), names is not None)


def _read_through_holdfast(sandbox: StoreSandbox, view: View) -> ReadResult:
    """Read the destination through Holdfast's `read_snapshot`."""
    there = visible_files(view)
    snapshot = read_snapshot(sandbox.copy(view).context())
    found = frozenset(there[file.path] for file in snapshot.files if file.path in there) & accepted_files(sandbox, view)
    return ReadResult(found, bool(found))


_Read = Callable[[StoreSandbox, View], ReadResult]

READERS: Mapping[str, _Read] = {"two_phase": _read_through_holdfast, "stocator": _read_by_success_names}
"""How to read the output of these committers; the output of all others is read by listing."""


FIRST_ATTEMPT = f"{2:04x}"
"""Prefix of the ids that the first attempt creates: it is the second actor of every world."""


# --- speculative tasks ------------------------------------------------------------------------------------------------
def _judge_concurrent_attempts(wrong: _Wrong, sandbox: StoreSandbox, view: View) -> str | None:
    """Ask whether the output is right when two attempts at a task ran side by side."""
    found = describe_wrong_final_output(sandbox, view, wrong=wrong)
    return f"two attempts ran without faults, and when both are over: {found}" if found else None


def _judge_commit_while_attempt_writes(sandbox: StoreSandbox, before: View, after: View, actor: str) -> str | None:
    """Ask whether the output is right when the job commits while another attempt still writes."""
    told = find_driver_finished_in_step(before, after)
    found = describe_wrong_attempt(sandbox, after) if told else ""
    return f"{told} was told that the job is committed while another attempt runs: {found}" if found else None


# --- attempts that are lost -------------------------------------------------------------------------------------------
def _judge_view_after_abort(
    doing: AttemptState, sandbox: StoreSandbox, before: View, after: View, actor: str
) -> str | None:
    """Ask whether an aborted attempt leaves nothing visible."""
    if observed_state_of(after).lost[0][0] is not doing or not _starts_second_commit(before, after):
        return None
    there = [origin for origin in files_of_main_job(visible_files(after)).values() if origin.attempt == 0]
    return f"attempt 0 was aborted, and readers see {format_origins(there)}" if there else None


def _judge_end_after_task_abort(doing: AttemptState, sandbox: StoreSandbox, view: View) -> str | None:
    """Ask whether an aborted attempt leaves nothing pending, and the output of the next attempt is right."""
    if observed_state_of(view).lost[0][0] is not doing:
        return None
    if found := describe_wrong_final_output(sandbox, view):
        return f"attempt 0 was aborted, attempt 1 ran, and at the end: {found}"
    left = [key for key, _upload in _pending_uploads(view)]
    return f"attempt 0 was aborted, and when the job is over the upload {left[0]} is pending" if left else None


def _judge_uploads_after_task_abort(sandbox: StoreSandbox, before: View, after: View, actor: str) -> str | None:
    """Ask whether an attempt has no pending upload right after its abort."""
    if observed_state_of(after).lost[0][0] is not AttemptState.RUNNING or not _starts_second_commit(before, after):
        return None
    left = [key for key, upload in _pending_uploads(after) if upload.startswith(FIRST_ATTEMPT)]
    return f"attempt 0 was aborted, attempt 1 has written, and the upload {left[0]} is pending" if left else None


def _starts_second_commit(before: View, after: View) -> bool:
    """Check whether the second attempt gets permission to commit in this step."""
    old, new = observed_state_of(before).attempts[0][1], observed_state_of(after).attempts[0][1]
    return old is AttemptState.RUNNING and new is AttemptState.COMMITTING


def _pending_uploads(view: View) -> list[tuple[str, str]]:
    images = (state for state in view.states.values() if isinstance(state, StoreSnapshot))
    return [(one.info.key, one.info.upload_id) for image in images for one in image.uploads.values()]


def _judge_death_in_task_commit(sandbox: StoreSandbox, before: View, after: View, actor: str) -> str | None:
    """Ask whether an attempt that dies in its task commit has made all or none of its files visible.

    If the attempt made no file visible, the next attempt and the job commit must produce the right output.
    """
    who, now = name_of_attempt_actor(0, 0), observed_state_of(after)
    just_died = who in now.dead and now.dead != observed_state_of(before).dead
    if not just_died or now.lost[0][0] is not AttemptState.COMMITTING or now.phase is not JobPhase.RUNNING:
        return None  # from the job commit on, the driver publishes files, too
    mine, found_there = files_of_attempt("main", 0, 0, sandbox.setting.files), visible_files(after)
    there = mine & frozenset(found_there.values())
    if all(origin in there or _is_file_replaced(origin, found_there) for origin in mine):
        return None
    if there:
        return f"{who} dies in its task commit, and shows only {format_origins(there)}"
    found = _finish_job_on_copy(sandbox, after)
    return f"{who} dies in its task commit, and at the end: {found}" if found else None


def _is_file_replaced(origin: FileOrigin, found: Mapping[str, FileOrigin]) -> bool:
    """Check whether another attempt's file has taken the place of this file."""
    folder = f"{choose_partition_directory(origin.attempt, origin.number)}/"
    return any(
        path.startswith(folder) and other.task == origin.task and other.number == origin.number and other != origin
        for path, other in found.items()
    )


def _finish_job_on_copy(sandbox: StoreSandbox, view: View) -> str:
    """On copied stores, run a second attempt unless one was accepted, commit the job, and describe wrong output."""
    copy, cluster = sandbox.copy(view), observed_state_of(view)
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
    return describe_wrong_output(sandbox, View({**view.states, DESTINATION: copy.stores[DESTINATION].take_snapshot()}))


def _judge_rules_after_partition(
    doing: AttemptState, rules: Sequence[Rule], sandbox: StoreSandbox, before: View, after: View, actor: str
) -> str | None:
    """Ask whether rules hold if an attempt was cut off from the driver in the state `doing`."""
    if doing not in (lost for attempts in observed_state_of(after).lost for lost in attempts):
        return None
    broke = (rule.step(sandbox, before, after, actor) for rule in rules if rule.step is not None)
    return next((words for words in broke if words), None)


# --- what readers see -------------------------------------------------------------------------------------------------
def _judge_early_reads(doing: AttemptState, sandbox: StoreSandbox, before: View, after: View, actor: str) -> str | None:
    """Ask whether readers see a file while its attempt is in the state `doing`."""
    old, cluster = visible_files(before), observed_state_of(after)
    for path, origin in files_of_main_job(visible_files(after)).items():
        if origin != old.get(path) and cluster.attempts[origin.task][origin.attempt] is doing:
            return f"{name_of_attempt_actor(origin.task, origin.attempt)} {doing.value}, and readers see {origin}"
    return None


def _judge_reads_of_committed_tasks(sandbox: StoreSandbox, before: View, after: View, actor: str) -> str | None:
    """Ask whether readers see the output of committed tasks before the job commit."""
    cluster = observed_state_of(after)
    if cluster.phase is not JobPhase.RUNNING:
        return None
    for origin in files_of_main_job(visible_files(after)).values():
        if cluster.attempts[origin.task][origin.attempt] is AttemptState.ENDED:
            who = name_of_attempt_actor(origin.task, origin.attempt)
            return f"{who} has committed, the driver has not started to commit the job, and readers see {origin}"
    return None


# --- the job commit ---------------------------------------------------------------------------------------------------
def _judge_atomic_job_commit(
    readers: str, read: _Read | None, sandbox: StoreSandbox, before: View, after: View, actor: str
) -> str | None:
    """Ask whether readers see at most one change, after which they know that the job is over.

    Args:
        read: how they read; None for the committer's intended readers.
    """
    if actor != "driver" or observed_state_of(before).phase is not JobPhase.COMMITTING:
        return None
    read = read or READERS.get(sandbox.setting.committer.name, read_by_listing)
    old, new = read(sandbox, before), read(sandbox, after)
    if old == new:
        return None
    shown = format_origins(new.files)
    if old.over:
        return f"the job was over for {readers}, and the driver changes what they see to {shown}"
    if not new.over:
        return f"the job commit is in progress, and {readers} see {shown}"
    if old.files != new.files and (old.files or new.files != accepted_files(sandbox, after)):
        return f"{readers} see {format_origins(old.files)}, and then {shown}"
    return None


# --- jobs that are given up -------------------------------------------------------------------------------------------
def _judge_job_abort(by_hand: bool, sandbox: StoreSandbox, view: View) -> str | None:
    """Ask whether an aborted job leaves nothing behind.

    Args:
        by_hand: whether to ignore files and uploads that a person can find and delete, because their names contain the
            job's id.
    """
    cluster = observed_state_of(view)
    if not find_drivers_with_outcome(view, "aborted") or cluster.job is None:
        return None
    job = cluster.job.job
    files = files_of_main_job(visible_files(view))
    left = [origin for path, origin in files.items() if not (by_hand and job in path)]
    if left:
        return f"the job was aborted, and readers see {format_origins(left)}"
    waiting = [key for key, _upload in _pending_uploads(view) if not (by_hand and job in key)]
    return f"the job was aborted, and the upload {waiting[0]} is pending" if waiting else None


def _judge_job_recovery(sandbox: StoreSandbox, view: View) -> str | None:
    """Ask whether a new driver completes the job of a dead one."""
    if observed_state_of(view).second != "alive":
        return None
    found = describe_wrong_final_output(sandbox, view, "second driver")
    return f"a second driver has continued the job: {found}" if found else None


# --- all of them ------------------------------------------------------------------------------------------------------
_LISTING_READERS = "readers that list the destination"


def _judges_of_task_abort(doing: AttemptState) -> Judges:
    return partial(_judge_view_after_abort, doing), partial(_judge_end_after_task_abort, doing)


def _judges_of_partitioned_attempt(doing: AttemptState, *rules: str) -> Judges:
    return partial(_judge_rules_after_partition, doing, [RULES[one] for one in rules]), None


_JUDGES: Mapping[str, Judges] = {
    "speculative-tasks": (None, partial(_judge_concurrent_attempts, describe_wrong_attempt)),
    "speculative-tasks-early": (_judge_commit_while_attempt_writes, None),
    "speculative-tasks-two-commits": (None, partial(_judge_concurrent_attempts, describe_wrong_output)),
    "recoverable-job": (None, _judge_job_recovery),
    "abortable-task": _judges_of_task_abort(AttemptState.RUNNING),
    "abortable-task-in-commit": _judges_of_task_abort(AttemptState.COMMITTING),
    "abortable-task-at-once": (_judge_uploads_after_task_abort, None),
    "abortable-job": (None, partial(_judge_job_abort, True)),
    "abortable-job-by-itself": (None, partial(_judge_job_abort, False)),
    "uncommitted-output-observable": (partial(_judge_early_reads, AttemptState.RUNNING), None),
    "uncommitted-output-observable-in-commit": (partial(_judge_early_reads, AttemptState.COMMITTING), None),
    "committed-output-observable": (_judge_reads_of_committed_tasks, None),
    "atomic-task-commit": (_judge_death_in_task_commit, None),
    "atomic-task-commit-two-commits": (_judge_death_in_task_commit, None),
    "atomic-job-commit": (partial(_judge_atomic_job_commit, "readers", None), None),
    "atomic-job-commit-listed": (
        partial(_judge_atomic_job_commit, "readers that list the destination", read_by_listing),
        None,
    ),
    "partitioned-executor": _judges_of_partitioned_attempt(AttemptState.RUNNING, "C1", "C2", "C6"),
    "partitioned-executor-in-commit": _judges_of_partitioned_attempt(AttemptState.COMMITTING, "C1", "C2", "C6"),
    "partitioned-executor-C3": _judges_of_partitioned_attempt(AttemptState.COMMITTING, "C3"),
}
"""The functions that judge a step and the end of a history, by the name of the question."""

ASKED: Mapping[str, Rule] = read_rules("holdfast_checker.committers.table_v", _JUDGES, "questions.ini")
"""The questions of Table V, as rules (properties), by name."""
