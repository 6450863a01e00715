"""Simulate a Spark cluster: it starts task attempts, accepts their reports, and records the outcomes of jobs.

The simulation guarantees what Spark guarantees, and no more. An attempt that the driver has lost keeps running: nothing
stops it. The driver accepts one attempt per task. There are two orders. Attempts ask the driver for permission before
they commit (`Order.ASK_FIRST`, Hadoop's protocol, which the papers assume). Or they commit as soon as they have
written, and the driver accepts the first attempt that reports (`Order.REPORT`, what Spark does for data sources in
Python: ``write`` runs to its end before Spark asks its coordinator).
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace
from typing import cast

from holdfast.commit.records import JobRecord, TaskCommit
from holdfast_checker.committers.ledger import PlannedCommit
from holdfast_checker.kernel.calls import Access, Alternative, Call, Fault, Footprint, Reply, canonical_key

CLUSTER = "cluster"


class TaskCommitTiming(enum.Enum):
    """When a task attempt commits: after the driver permits it, or as soon as its files are written."""

    ASK_FIRST = "asks the driver, then commits"
    REPORT = "commits, then reports"


class AttemptState(enum.Enum):
    """The state of a task attempt, as the driver knows it."""

    WAITING = "has not started"
    RUNNING = "runs"
    COMMITTING = "may commit"
    ENDED = "has reported"
    GONE = "is lost or has failed"


class JobPhase(enum.Enum):
    """The phase of a simulated job, from start to commit or abort; with two drivers, the more advanced phase."""

    STARTING = "starts"
    RUNNING = "waits for its tasks"
    COMMITTING = "commits"
    ENDING = "aborts"


@dataclass(frozen=True, slots=True)
class LearnedOutcome:
    """The outcome of a job as a process learned it at its end, such as ``committed``, ``aborted`` or ``unknown``.

    `detail` holds more for properties, such as whether the job's clean-up is finished.
    """

    who: str
    outcome: str
    detail: object = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterState:
    """The state of a simulated Spark cluster: attempts, accepted reports, drivers, and learned outcomes.

    Attributes:
        attempts: what the driver knows about each attempt, by task, then by attempt.
        accepted: for each task, the number of the accepted attempt and its report; None before a report is accepted.
        driver: ``alive``, ``dead``, or ``cut off`` (still running, but others presume it dead).
        second: the second driver: empty if it has not started, ``alive``, or ``dead``.
        given_up: whether recovery has started. Recovery presumes that the drivers are dead.
        unnoticed: tasks with a dead attempt that had permission to commit. With speculation, another attempt may ask
            for permission before the driver notices the death.
        planned: commits that jobs other than the driver's are about to make; only properties read them.
    """

    attempts: tuple[tuple[AttemptState, ...], ...]
    accepted: tuple[tuple[int, TaskCommit] | None, ...]
    job: JobRecord | None = None
    phase: JobPhase = JobPhase.STARTING
    driver: str = "alive"
    second: str = ""
    given_up: bool = False
    cancelled: bool = False
    told: tuple[LearnedOutcome, ...] = ()
    unnoticed: tuple[int, ...] = ()
    planned: tuple[PlannedCommit, ...] = ()

    def outcome_learned_by(self, actor: str) -> str:
        """Return the job outcome that an actor has learned; an empty string if the actor has not learned any."""
        return next((told.outcome for told in self.told if told.who == actor), "")


def name_of_attempt_actor(task: int, attempt: int) -> str:
    """Return the name of the actor that runs a task attempt: ``task 0 attempt 1``."""
    return f"task {task} attempt {attempt}"


class Cluster:
    """A simulated Spark cluster, as a shared resource: drivers, task attempts, and the messages between them.

    Args:
        speculation: whether a second attempt may start while the first one runs.
    """

    def __init__(self, *, tasks: int, attempts: int, speculation: bool) -> None:
        self._tasks = tasks
        self._attempts = attempts
        self._speculation = speculation
        self._actors = {name_of_attempt_actor(t, a): (t, a) for t in range(tasks) for a in range(attempts)}

    def initial_state(self) -> ClusterState:
        return ClusterState(
            attempts=((AttemptState.WAITING,) * self._attempts,) * self._tasks, accepted=(None,) * self._tasks
        )

    def state_key(self, state: object) -> Hashable:
        return canonical_key(state)

    def alternatives(self, state: object, call: Call, actor: str) -> Sequence[Alternative]:
        way: Callable[[ClusterState, Call, str], Sequence[Alternative]] = getattr(self, f"_{call.operation}")
        return way(cast("ClusterState", state), call, actor)

    def footprint(self, call: Call) -> Footprint:
        """Return the accesses of a call, for partial-order reduction: calls about different tasks are independent."""

        def make_access(key: str, *, writes: bool = False) -> Access:
            return Access(CLUSTER, key, writes=writes)

        tasks = [f"task {task}" for task in range(self._tasks)]
        operation = call.operation
        if operation in ("begin", "may_commit", "report", "fail"):
            return frozenset({make_access(f"task {call.args[0]}", writes=True), make_access("job")})
        if operation in ("post_job", "cancel"):
            return frozenset({make_access("job", writes=True)})
        if operation == "await_tasks":
            return frozenset({make_access("job", writes=True), *(make_access(task) for task in tasks)})
        if operation == "lose":
            return frozenset(make_access(task, writes=True) for task in tasks)
        if operation in ("take_over", "take_for_dead"):  # a second driver and recovery block each other
            takes_over = operation == "take_over"  # a second driver also begins to commit
            return frozenset(
                {
                    make_access("job", writes=takes_over),
                    make_access("driver", writes=True),
                    *(make_access(task) for task in tasks),
                }
            )
        if operation == "await_end":
            return frozenset({make_access("job"), make_access("driver"), make_access("told")})
        if operation == "plan_commit":
            return frozenset({make_access(f"plan_commit {cast('PlannedCommit', call.args[0]).job}", writes=True)})
        return frozenset({make_access("told", writes=True)})

    def find_unblockers(self, state: object, call: Call) -> tuple[str, frozenset[Fault]] | None:
        now = cast("ClusterState", state)
        if call.operation not in ("take_over", "take_for_dead") or now.job is None:
            return None
        if now.driver == "alive":
            return "driver", frozenset({Fault.PARTITION, Fault.CLOCK})
        return ("second driver", frozenset({Fault.CLOCK})) if now.second == "alive" else None

    def state_after_death(self, state: object, actor: str) -> object:
        now = cast("ClusterState", state)
        if actor == "driver":
            return replace(now, driver="dead")
        if actor == "second driver":
            return replace(now, second="dead")
        found = self._actors.get(actor)
        if found is None or now.attempts[found[0]][found[1]] in (AttemptState.ENDED, AttemptState.GONE):
            return now
        # A death must not remove answers that others could have got before it: see `Resource.state_after_death`.
        if self._speculation and now.attempts[found[0]][found[1]] is AttemptState.COMMITTING:
            now = replace(now, unnoticed=tuple(sorted({*now.unnoticed, found[0]})))
        return _set_attempt(now, *found, AttemptState.GONE)

    # --- the driver ---------------------------------------------------------------------------------------------------
    def _post_job(self, state: ClusterState, call: Call, actor: str) -> Sequence[Alternative]:
        job = cast("JobRecord", call.args[0])
        return [Alternative(state=replace(state, job=job, phase=JobPhase.RUNNING))]

    def _await_tasks(self, state: ClusterState, call: Call, actor: str) -> Sequence[Alternative]:
        """Reply with the reports of all tasks once they are accepted; None if the job cannot succeed."""
        if state.cancelled or any(
            accepted is None and all(attempt is AttemptState.GONE for attempt in attempts)
            for attempts, accepted in zip(state.attempts, state.accepted, strict=True)
        ):
            begun = state.phase is JobPhase.COMMITTING  # by a second driver
            return [Alternative(state=state if begun else replace(state, phase=JobPhase.ENDING))]
        reports = [accepted[1] for accepted in state.accepted if accepted is not None]
        if len(reports) < self._tasks:
            return []
        return [Alternative(state=replace(state, phase=JobPhase.COMMITTING), reply=Reply(tuple(reports)))]

    def _tell(self, state: ClusterState, call: Call, actor: str) -> Sequence[Alternative]:
        told = LearnedOutcome(actor, str(call.args[0]), call.args[1])
        return [Alternative(state=replace(state, told=tuple(sorted((*state.told, told), key=lambda one: one.who))))]

    # --- other jobs ---------------------------------------------------------------------------------------------------
    def _plan_commit(self, state: ClusterState, call: Call, actor: str) -> Sequence[Alternative]:
        added = cast("PlannedCommit", call.args[0])
        planned = tuple(sorted((*state.planned, added), key=lambda one: one.job))
        return [Alternative(state=replace(state, planned=planned))]

    def _await_end(self, state: ClusterState, call: Call, actor: str) -> Sequence[Alternative]:
        """Let a later job start once the driver has ended, or is gone from the cluster."""
        over = state.driver != "alive" or state.outcome_learned_by("driver")
        return [Alternative(state=state)] if over else []

    # --- tasks --------------------------------------------------------------------------------------------------------
    def _begin(self, state: ClusterState, call: Call, actor: str) -> Sequence[Alternative]:
        """Block until the driver starts the attempt, and return the job. None starts at a task that is done."""
        task, attempt = cast("tuple[int, int]", call.args)
        if state.job is None or state.phase is not JobPhase.RUNNING or state.driver == "dead":
            return []
        if state.accepted[task] is not None or state.attempts[task][attempt] is not AttemptState.WAITING:
            return []
        earlier = state.attempts[task][:attempt]
        if not all(
            one is AttemptState.GONE or (self._speculation and one is not AttemptState.WAITING) for one in earlier
        ):
            return []
        return [Alternative(state=_set_attempt(state, task, attempt, AttemptState.RUNNING), reply=Reply(state.job))]

    def _may_commit(self, state: ClusterState, call: Call, actor: str) -> Sequence[Alternative]:
        """Answer whether the attempt may commit. An attempt that is cut off gets no permission, and gives up."""
        task, attempt = cast("tuple[int, int]", call.args)
        attempts = state.attempts[task]
        taken = AttemptState.COMMITTING in attempts or state.accepted[task] is not None
        open_ = state.phase is JobPhase.RUNNING and state.driver != "dead"
        denied = Alternative(state=_set_attempt(state, task, attempt, AttemptState.GONE), reply=Reply(value=False))
        if attempts[attempt] is not AttemptState.RUNNING or taken or not open_:
            return [denied]
        allowed = Alternative(
            state=_set_attempt(state, task, attempt, AttemptState.COMMITTING), reply=Reply(value=True)
        )
        return [allowed, replace(denied, label="too early")] if task in state.unnoticed else [allowed]

    def _report(self, state: ClusterState, call: Call, actor: str) -> Sequence[Alternative]:
        """Accept the first report about a task; drop later reports, and reports from lost attempts."""
        task, attempt, commit = cast("tuple[int, int, TaskCommit]", call.args)
        if state.attempts[task][attempt] is AttemptState.GONE:
            return [Alternative(state=state)]
        after = _set_attempt(state, task, attempt, AttemptState.ENDED)
        if state.accepted[task] is None and state.phase is JobPhase.RUNNING:
            accepted = (*state.accepted[:task], (attempt, commit), *state.accepted[task + 1 :])
            after = replace(after, accepted=accepted)
        return [Alternative(state=after)]

    def _fail(self, state: ClusterState, call: Call, actor: str) -> Sequence[Alternative]:
        task, attempt = cast("tuple[int, int]", call.args)
        return [Alternative(state=_set_attempt(state, task, attempt, AttemptState.GONE))]

    # --- events from outside ------------------------------------------------------------------------------------------
    def _lose(self, state: ClusterState, call: Call, actor: str) -> Sequence[Alternative]:
        """Cut an executor off from the driver. The executor keeps running, and the driver presumes it dead."""
        return [
            Alternative(
                state=_set_attempt(state, task, number, AttemptState.GONE),
                label=f"cuts off {name_of_attempt_actor(task, number)}",
                fault=Fault.PARTITION,
            )
            for task, attempts in enumerate(state.attempts)
            for number, attempt in enumerate(attempts)
            if attempt in (AttemptState.RUNNING, AttemptState.COMMITTING)
        ]

    def _cancel(self, state: ClusterState, call: Call, actor: str) -> Sequence[Alternative]:
        return [] if state.phase is not JobPhase.RUNNING else [Alternative(state=replace(state, cancelled=True))]

    def _take_over(self, state: ClusterState, call: Call, actor: str) -> Sequence[Alternative]:
        """Start a second driver for the same job: it aborts, or, if the first driver had all reports, it commits."""
        if state.job is None or state.given_up:
            return []
        reports = tuple(accepted[1] for accepted in state.accepted if accepted is not None)
        fault = Fault.PARTITION if state.driver == "alive" else None
        cut = replace(state, second="alive", driver="cut off" if fault else state.driver)
        ways = [Alternative(state=cut, reply=Reply((state.job, None)), label="to abort", fault=fault)]
        if len(reports) == self._tasks:
            begun = replace(cut, phase=JobPhase.COMMITTING)
            commits = Alternative(state=begun, reply=Reply((state.job, reports)), label="to commit", fault=fault)
            ways.insert(0, commits)
        return ways

    def _take_for_dead(self, state: ClusterState, call: Call, actor: str) -> Sequence[Alternative]:
        """Start recovery when the drivers are dead, or have been silent for so long that they are presumed dead.

        It is unknown whether a driver that is cut off from the cluster is alive. No driver starts afterwards.
        """
        after = replace(state, given_up=True)
        if state.driver != "alive" and state.second != "alive":
            return [Alternative(state=after)]
        if state.job is None:
            return []
        slow = "cut off" if state.driver == "alive" else state.driver
        return [Alternative(state=replace(after, driver=slow), label="although it is alive", fault=Fault.CLOCK)]


def _set_attempt(state: ClusterState, task: int, attempt: int, now: AttemptState) -> ClusterState:
    attempts = state.attempts[task]
    changed = (*attempts[:attempt], now, *attempts[attempt + 1 :])
    return replace(state, attempts=(*state.attempts[:task], changed, *state.attempts[task + 1 :]))
