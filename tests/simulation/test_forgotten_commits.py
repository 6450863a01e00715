"""A job on a namespace whose database crashes and loses what was not flushed: what Spark was told is there."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import Any
from unittest.mock import Mock

import pytest

from holdfast.commit import (
    TWO_PHASE,
    CommitContext,
    CommitSettings,
    StreamBatch,
    TaskCommit,
    layout,
    read_snapshot,
    recover,
)
from holdfast.commit.layout import is_hidden
from holdfast.commit.records import JobRecord, SaveMode
from holdfast.commit.two_phase import roll_forward
from holdfast.commit.two_phase.decision_log import WRITE_ID, find_job_by_write_id, read_log
from holdfast.commit.two_phase.streams import announce_stream_batch, plan_batch
from holdfast.commit.writes import TOKEN, find_job_by_file_names, find_job_by_token
from holdfast.errors import HoldfastError, LogRemovedError, NotFoundError, OutcomeUnknownError, UnavailableError
from holdfast.namespace.object_store.store import ChangeSet, NamespaceStore
from holdfast.options.keywords import option_from_text, option_from_url
from holdfast.options.write import parse_write_request
from holdfast.runtime import Environment, SerialRunner
from holdfast.spark import write
from holdfast.stores.base import Change, Complete, Delete, ObjectInfo, iter_objects
from tests.clocks import SimulatedClock
from tests.forgetful_database import ForgetfulDatabase
from tests.interceptors import SimulatedCrash
from tests.namespace_check import problems_of
from tests.namespace_world import HookedDatabase
from tests.namespace_world import World as NamespaceWorld
from tests.simulation.world import HOME, TASKS, expected, run_job, run_task, start


class Crashing:
    """A namespace whose database crashes before one of its calls, and loses everything that it was not asked to keep.

    Attributes:
        at: the number of the call, from 1; 0 for none.
    """

    def __init__(self, at: int = 0, *, keeps: bool = True) -> None:
        self.at = at
        self.calls = 0
        self.database = ForgetfulDatabase(keeps=keeps)
        self.world = NamespaceWorld(database=self.database)
        self.database.forget_nothing_before()
        self.ctx = self.context(self._before)

    def _before(self, _name: str, _argument: object) -> None:
        self.calls += 1
        if self.calls == self.at:
            self.crash()

    def crash(self) -> None:
        self.database.forget(self.database.newest)

    def context(self, before: Callable[[str, object], None] = lambda _name, _argument: None) -> CommitContext:
        """Return the context of a process with a client of its own."""
        store = NamespaceStore(self.world.client(database=HookedDatabase(self.database, before)))
        return CommitContext(
            store=store,
            prefix=HOME,
            url="holdfast://world/home/",
            settings=CommitSettings(part_size_bytes=4),
            environment=Environment(clock=SimulatedClock(), ids=self.world.ids, runner=SerialRunner()),
        )

    def contents(self) -> list[bytes]:
        store = self.context().store
        keys = [one.key for one in iter_objects(store, HOME)]
        return sorted(store.get(key) for key in keys if not is_hidden(key[len(HOME) :]))


def test_what_tasks_and_the_job_have_reported_is_there() -> None:
    crashing = Crashing()
    job = start(crashing.ctx)
    reports = []
    for task in range(TASKS):
        reports.append(run_task(crashing.ctx, job, task, "new"))
        crashing.crash()
    TWO_PHASE.commit_job(crashing.ctx, job, reports, TASKS)
    crashing.crash()
    assert crashing.contents() == expected("new")


def test_a_task_whose_uploads_are_lost_before_its_report_fails() -> None:
    """The database crashes before any call of a task: Spark is told nothing that would make the job fail."""
    quiet = Crashing()
    run_task(quiet.ctx, start(quiet.ctx), 0, "new")
    failed = 0
    for at in range(1, quiet.calls + 1):
        crashing = Crashing(0)
        job = start(crashing.ctx)
        crashing.database.forget_nothing_before()
        crashing.at = crashing.calls + at
        for _ in range(2):
            try:
                reports = [run_task(crashing.ctx, job, 0, "new")]
                break
            except HoldfastError:
                failed += 1
        assert TWO_PHASE.commit_job(crashing.context(), job, reports, 1).committed, at
    assert failed


def test_a_job_whose_uploads_a_failover_has_lost_is_to_be_run_again() -> None:
    """Whatever of them is lost: nobody who has started a job can upload a part."""
    for lost in range(2, 9):
        crashing = Crashing(keeps=False)
        job = start(crashing.ctx)
        crashing.database.forget_nothing_before()
        reports = [run_task(crashing.ctx, job, 0, "new")]
        crashing.database.forget(min(lost, crashing.database.newest))
        with pytest.raises(NotFoundError, match="run the job again"):
            TWO_PHASE.commit_job(crashing.context(), job, reports, 1)


def test_a_part_that_is_lost_is_not_its_predecessor() -> None:
    """A part that was uploaded twice has two etags; the job names the one that its task has reported."""
    crashing = Crashing()
    store = crashing.context().store
    assert isinstance(store, NamespaceStore)
    upload = store.create_upload("home/file")
    store.upload_part("home/file", upload, 1, b"first")
    store.make_durable()
    part = store.upload_part("home/file", upload, 1, b"second")
    crashing.crash()
    with pytest.raises(NotFoundError, match="upload the object again"):
        store.make_durable([Complete("home/file", upload, (part,))])


def test_the_decision_of_another_job_is_not_taken_for_a_lost_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """The database loses a decision before it is flushed, and another driver decides the same number meanwhile."""
    crashing = Crashing()
    ann, bob = crashing.context(), crashing.context()
    job, other = start(ann), start(bob)
    reports = [run_task(ann, job, task, "ann") for task in range(TASKS)]
    others = [run_task(bob, other, task, "bob") for task in range(TASKS)]
    make_durable = crashing.database.make_durable

    def crash() -> None:
        monkeypatch.setattr(crashing.database, "make_durable", make_durable)
        crashing.crash()
        TWO_PHASE.commit_job(bob, other, others, TASKS)
        make_durable()

    monkeypatch.setattr(crashing.database, "make_durable", crash)
    try:
        TWO_PHASE.commit_job(ann, job, reports, TASKS)
        told = {"ann", "bob"}
    except HoldfastError:
        told = {"bob"}
    found = {name for name in ("ann", "bob") if any(name.encode() in one for one in crashing.contents())}
    assert found == told


@pytest.mark.parametrize("event", ["rename", "delete"])
def test_a_destination_that_is_moved_right_after_the_decision_has_lost_nothing(
    event: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    crashing = Crashing()
    job = start(crashing.ctx)
    reports = [run_task(crashing.ctx, job, task, "new") for task in range(TASKS)]
    make_durable = crashing.database.make_durable
    other = crashing.world.client()

    def move() -> None:
        monkeypatch.undo()
        if event == "rename":
            other.rename(f"/{HOME}", "/moved")
        else:
            other.delete(f"/{HOME}", recursive=True)
        make_durable()

    monkeypatch.setattr(crashing.database, "make_durable", move)
    assert TWO_PHASE.commit_job(crashing.ctx, job, reports, TASKS).committed
    assert crashing.contents() == []
    store = crashing.context().store
    found = [one.key for one in iter_objects(store, "moved/") if not is_hidden(one.key.removeprefix("moved/"))]
    assert sorted(map(store.get, found)) == (expected("new") if event == "rename" else [])


def test_after_a_lost_reply_and_a_rename_the_job_is_to_be_looked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether the transaction took effect is unknown then."""
    crashing = Crashing()
    job = start(crashing.ctx)
    reports = [run_task(crashing.ctx, job, task, "new") for task in range(TASKS)]
    settle = NamespaceStore._confirm_changes_durable

    def lose_reply(store: NamespaceStore, made: ChangeSet) -> None:
        monkeypatch.undo()
        settle(store, made)
        crashing.world.client().rename(f"/{HOME}", "/moved")
        raise OutcomeUnknownError("no reply")

    monkeypatch.setattr(NamespaceStore, "_confirm_changes_durable", lose_reply)
    with pytest.raises(LogRemovedError, match="look there for files of the job first"):
        TWO_PHASE.commit_job(crashing.ctx, job, reports, TASKS)


def test_a_decision_after_a_lost_one_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """A failover loses the newest decision, on which another one is being based, and another driver decides again."""
    crashing = Crashing(keeps=False)
    ann, bob = crashing.context(), crashing.context()
    job, other = start(ann), start(bob)
    reports = [run_task(ann, job, task, "ann") for task in range(TASKS)]
    others = [run_task(bob, other, task, "bob") for task in range(TASKS)]
    crashing.database.forget_nothing_before()
    run_job(crashing.context(), "lost")
    lost, apply = crashing.database.newest, NamespaceStore.apply

    def fail_over(store: NamespaceStore, changes: Sequence[Change]) -> None:
        monkeypatch.undo()
        crashing.database.forget(lost)
        TWO_PHASE.commit_job(bob, other, others, TASKS)
        apply(store, changes)

    monkeypatch.setattr(NamespaceStore, "apply", fail_over)
    with pytest.raises(LogRemovedError, match="run the job again"):
        TWO_PHASE.commit_job(ann, job, reports, TASKS)
    TWO_PHASE.abort_job(ann, job)
    assert crashing.contents() == expected("bob")
    run_job(ann, "ann")
    assert crashing.contents() == sorted(expected("bob") + expected("ann"))


@pytest.mark.parametrize("by", [TWO_PHASE.abort_job, lambda ctx, job: recover(ctx)])
def test_the_abort_of_a_first_job_that_is_lost_leaves_nothing_in_the_way(
    by: Callable[[CommitContext, JobRecord], object], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A failover loses the entry of the abort, before it is marked done."""
    crashing = Crashing(keeps=False)
    job = start(crashing.ctx)
    crashing.database.forget_nothing_before()
    shipped = roll_forward.write_decision_mark

    def fail_over(*args: Any) -> None:
        crashing.crash()
        shipped(*args)

    with monkeypatch.context() as failing:
        failing.setattr(roll_forward, "write_decision_mark", fail_over)
        by(crashing.ctx, job)
    recover(crashing.context())
    run_job(crashing.context(), "next")
    assert crashing.contents() == expected("next")
    with pytest.raises(HoldfastError):
        TWO_PHASE.commit_job(crashing.context(), job, [None] * TASKS, TASKS)


_FOUND: dict[str, Callable[[CommitContext, JobRecord], object]] = {
    "write id": lambda ctx, _job: find_job_by_write_id(ctx, read_log(ctx), "daily"),
    "token of the call": lambda ctx, _job: find_job_by_token(ctx, "call"),
    "names of its files": lambda ctx, job: find_job_by_file_names(ctx, job.job.rpartition("-")[2]),
    "mode ignore": lambda ctx, _job: TWO_PHASE.setup_job(ctx, SaveMode.IGNORE) is None,
}


@pytest.mark.parametrize("by", ["job", *_FOUND])
def test_a_decision_of_another_driver_is_durable_before_it_is_reported(
    by: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It dies as soon as its transaction has taken effect; then somebody commits the job, or runs the write, again."""
    crashing = Crashing()
    job = TWO_PHASE.setup_job(crashing.ctx, SaveMode.APPEND, {WRITE_ID: "daily", TOKEN: "call"})
    assert job is not None
    reports = [run_task(crashing.ctx, job, task, "new") for task in range(TASKS)]
    _decide_and_die(crashing, job, reports, monkeypatch)
    ctx = crashing.context()
    if by == "job":
        assert TWO_PHASE.commit_job(ctx, job, reports, TASKS).committed
    else:
        assert _FOUND[by](ctx, job)
    crashing.crash()
    assert crashing.contents() == expected("new")


def _decide_and_die(
    crashing: Crashing, job: JobRecord, reports: list[TaskCommit], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Commit a job in a process that dies before it has made the decision durable."""
    with monkeypatch.context() as dying:
        dying.setattr(NamespaceStore, "_confirm_changes_durable", Mock(side_effect=SimulatedCrash))
        with pytest.raises(SimulatedCrash):
            TWO_PHASE.commit_job(crashing.context(), job, reports, TASKS)


def test_a_batch_of_another_driver_that_is_lost_is_not_taken_for_committed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Both had planned it, one has decided it and died; the database crashes before any call of the other's commit."""
    outcomes = set()
    calls = 1
    at = 0
    while at <= calls:
        crashing = Crashing()
        plans = [plan_batch(crashing.ctx, SaveMode.APPEND, {}) for _ in range(2)]
        jobs = [
            announce_stream_batch(crashing.ctx, plan, StreamBatch(stream="s", checkpoint="c", batch=1))
            for plan in plans
        ]
        dead, live = (one for one in jobs if one is not None)
        others = [run_task(crashing.ctx, dead, task, "dead") for task in range(TASKS)]
        reports = [run_task(crashing.ctx, live, task, "live") for task in range(TASKS)]
        _decide_and_die(crashing, dead, others, monkeypatch)
        before = crashing.calls
        crashing.at = before + at if at else 0
        try:
            TWO_PHASE.commit_job(crashing.ctx, live, reports, TASKS)
            told = [expected("dead"), expected("live")]
        except HoldfastError:
            told = [[], expected("dead")]
        calls = calls if at else crashing.calls - before
        crashing.at = 0
        crashing.crash()
        outcomes.add(len(crashing.contents()))
        assert crashing.contents() in told, at
        at += 1
    assert outcomes == {0, len(expected("live"))}, "it was reported, and refused"


def test_a_batch_that_its_tasks_leave_out_is_durable(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its driver dies as soon as it is decided, and Spark repeats it: nothing is written, and nothing is committed."""
    crashing = Crashing()
    batch = StreamBatch(stream="s", checkpoint="c", batch=1)
    job = announce_stream_batch(crashing.ctx, plan_batch(crashing.ctx, SaveMode.APPEND, {}), batch)
    assert job is not None
    reports = [run_task(crashing.ctx, job, task, "new") for task in range(TASKS)]
    _decide_and_die(crashing, job, reports, monkeypatch)
    ctx = crashing.context()
    assert announce_stream_batch(ctx, plan_batch(ctx, SaveMode.APPEND, {}), batch) is None
    crashing.crash()
    assert crashing.contents() == expected("new")


@pytest.mark.parametrize("others", [False, True])
def test_a_write_in_mode_ignore_that_is_lost_is_not_reported_as_ignored(
    others: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A failover loses the job after Spark was told that it is committed; or others' data were there before."""
    crashing = Crashing(keeps=False)
    if others:
        run_job(crashing.context(), "other")
    crashing.database.forget_nothing_before()
    given = {"ifExists": "ignore", "writeToken": "0123456789ab"}
    texts = [one for name, text in given.items() for one in option_from_text(name, text, name)]
    options = parse_write_request([*option_from_url("holdfast://world/home"), *texts], overwrite=False).options
    job = TWO_PHASE.setup_job(crashing.ctx, SaveMode.IGNORE, {TOKEN: options.token})
    assert (job is None) is others
    if job is not None:
        reports = [run_task(crashing.ctx, job, task, "new") for task in range(TASKS)]
        assert TWO_PHASE.commit_job(crashing.ctx, job, reports, TASKS).committed
    crashing.crash()
    monkeypatch.setattr(write, "_open_context", lambda _options: crashing.context())
    if others:
        assert write._find_result(options, succeeded=True).job is None
    else:
        with pytest.raises(OutcomeUnknownError):
            write._find_result(options, succeeded=True)


def test_a_reader_sees_no_mixture_of_two_histories(monkeypatch: pytest.MonkeyPatch) -> None:
    """A failover loses the newest decision while the files are listed, and another job gets its number."""
    crashing = Crashing(keeps=False)
    crashing.database.forget_nothing_before()
    run_job(crashing.context(), "lost")
    lost, iter_visible = crashing.database.newest, layout.iter_visible

    def fail_over(*args: Any) -> Iterator[tuple[str, ObjectInfo]]:
        monkeypatch.undo()
        listed = list(iter_visible(*args))
        crashing.database.forget(lost)
        run_job(crashing.context(), "bob")
        return iter(listed)

    monkeypatch.setattr(layout, "iter_visible", fail_over)
    ctx = crashing.context()
    snapshot = read_snapshot(ctx)
    assert snapshot.head == 1
    assert sorted(ctx.store.get(ctx.key(file.path)) for file in snapshot.files) == expected("bob")


def test_a_certain_deletion_that_is_lost_is_no_success(monkeypatch: pytest.MonkeyPatch) -> None:
    crashing = Crashing()
    store = crashing.context().store
    assert isinstance(store, NamespaceStore)
    etag = store.put("kept/a", b"1").etag
    store.make_durable()
    make_durable = crashing.database.make_durable

    def crash() -> None:
        crashing.crash()
        make_durable()

    monkeypatch.setattr(crashing.database, "make_durable", crash)
    with pytest.raises(UnavailableError, match="has lost what it had committed"):
        store.apply([Delete("kept/a", etag)])
    assert store.get("kept/a") == b"1"
    monkeypatch.undo()
    store.apply([Delete("kept/a", etag)])
    assert list(iter_objects(store, "kept/")) == []


def test_a_crash_before_any_call_makes_no_report_of_success_untrue() -> None:
    quiet = Crashing()
    run_job(quiet.ctx, "new")
    committed = 0
    for at in range(1, quiet.calls + 1):
        crashing = Crashing(at)
        is_committed = False
        with suppress(HoldfastError):
            run_job(crashing.ctx, "new")
            is_committed = True
        crashing.crash()
        committed += is_committed
        assert crashing.contents() in ([expected("new")] if is_committed else [[], expected("new")]), at
        recover(crashing.context())
        before = crashing.contents()
        run_job(crashing.context(), "next")
        assert crashing.contents() == sorted(before + expected("next")), at
        assert problems_of(crashing.database, crashing.world.store, "data/", strays=True) == []
    assert committed > TASKS, "most crashes lose nothing that cannot be done again"


@pytest.mark.parametrize("lost", [True, False])
def test_a_step_that_a_crash_undoes_is_made_again(lost: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """The database crashes between the commit and the call that would have kept it."""
    crashing = Crashing()
    make_durable = crashing.database.make_durable
    crashes = [lost]

    def crash_first() -> None:
        if crashes.pop() if crashes else False:
            crashing.crash()
        make_durable()

    monkeypatch.setattr(crashing.database, "make_durable", crash_first)
    records = crashing.ctx.records
    assert records.create_with_changes("log", b"entry", []) == b"entry"
    crashing.crash()
    assert records.read("log") == b"entry"
