"""Delay drivers at their decision while others decide more jobs than the log retains (C8, C11).

Each delayed driver finds its number free again, because the decision that had it was trimmed. Its entry does not count.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace
from typing import TypeVar

import pytest

from holdfast.commit import TWO_PHASE, CommitContext, JobOutcome, SaveMode, read_history, recover, verify
from holdfast.commit.records import JobRecord, StreamBatch
from holdfast.commit.two_phase.decision_log import WRITE_ID
from holdfast.commit.two_phase.streams import BatchPlan, announce_stream_batch, plan_batch
from holdfast.errors import FencedError, HoldfastError, OutcomeUnknownError
from holdfast.stores.base import ObjectPage
from holdfast.stores.interceptors import InterceptedStore, StoreCall, StoreOperation
from holdfast.stores.memory import MemoryStore
from tests.patience import PATIENCE_S
from tests.simulation.world import HOME, PUBLICATIONS, TASKS, World, expected, run_job, run_tasks, start

T = TypeVar("T")


def short(ctx: CommitContext) -> CommitContext:
    return ctx.with_settings(log_retention_entries=1)


def held(world: World, matches: Callable[[StoreCall], bool], meanwhile: Callable[[], object]) -> CommitContext:
    """Return a context whose first matching call waits until `meanwhile` has run."""
    fired: list[StoreCall] = []

    def hold(call: StoreCall, proceed: Callable[[], T]) -> T:
        if not fired and matches(call):
            fired.append(call)
            meanwhile()
        return proceed()

    return short(world.context(store=InterceptedStore(world.store, hold)))


def others_decide(ctx: CommitContext) -> None:
    """Decide more jobs than the log retains."""
    for name in "bcd":
        run_job(ctx, name)


def decides(number: int) -> Callable[[StoreCall], bool]:
    entry = f"log/{number:020d}.json"
    return lambda call: call.operation in (StoreOperation.PUT, StoreOperation.APPLY) and call.key.endswith(entry)


def publishes(call: StoreCall) -> bool:
    return call.operation in (StoreOperation.COMPLETE_UPLOAD, StoreOperation.RENAME)


def of(world: World, name: str) -> list[bytes]:
    return [content for content in world.contents() if content.startswith(f"{name}/".encode())]


def settled(world: World) -> None:
    """Check that the late drivers left nothing that disturbs the next job."""
    run_job(short(world.context()), "next")
    assert verify(world.context()).verified, verify(world.context()).problems
    assert recover(world.context()).clean and world.pending() == []


@pytest.mark.parametrize("publication", PUBLICATIONS)
def test_a_job_that_recovery_has_aborted_is_not_reported_as_committed(publication: str) -> None:
    world = World(publication)
    ctx = short(world.context())
    run_job(ctx, "zero")
    job = start(ctx)
    messages = run_tasks(ctx, job, "slow")

    def meanwhile() -> None:
        assert recover(ctx).rolled_back == [job.job]
        others_decide(ctx)

    with pytest.raises(OutcomeUnknownError, match="none of its files is visible"):
        TWO_PHASE.commit_job(held(world, decides(2), meanwhile), job, messages, TASKS)
    assert of(world, "slow") == []
    settled(world)


@pytest.mark.parametrize("publication", PUBLICATIONS)
def test_an_abort_does_not_deny_a_commit_of_its_driver(publication: str) -> None:
    world = World(publication)
    ctx = short(world.context())
    run_job(ctx, "zero")
    job = start(ctx)
    messages = run_tasks(ctx, job, "mine")

    def meanwhile() -> None:
        assert TWO_PHASE.commit_job(ctx, job, messages, TASKS).finished
        others_decide(ctx)

    assert TWO_PHASE.abort_job(held(world, decides(2), meanwhile), job).committed
    assert of(world, "mine") == expected("mine")
    settled(world)


@pytest.mark.parametrize("publication", PUBLICATIONS)
def test_a_repeated_commit_is_still_a_commit(publication: str) -> None:
    """The decision was trimmed. Defect: the error said that another process had aborted the job."""
    world = World(publication)
    ctx = short(world.context())
    job = start(ctx)
    messages = run_tasks(ctx, job, "mine")
    TWO_PHASE.commit_job(ctx, job, messages, TASKS)
    others_decide(ctx)
    again = TWO_PHASE.commit_job(ctx, job, messages, TASKS)
    assert again.committed and again.totals.files == len(expected("mine"))
    settled(world)


def two_late(world: World, first: JobRecord, second: JobRecord) -> list[JobOutcome | HoldfastError]:
    """Hold two drivers at numbers 2 and 3 until the log retains only 6; continue the first, and then the second."""
    ctx = short(world.context())
    told: list[JobOutcome | HoldfastError] = []
    waits, goes_on = threading.Event(), threading.Event()

    def commit(slow: CommitContext, job: JobRecord, name: str) -> None:
        try:
            told.append(TWO_PHASE.commit_job(slow, job, messages[name], TASKS))
        except HoldfastError as error:
            told.append(error)

    def wait() -> None:
        waits.set()
        assert goes_on.wait(PATIENCE_S)

    messages = {"first": run_tasks(ctx, first, "first"), "second": run_tasks(ctx, second, "second")}
    thread = threading.Thread(target=commit, args=(held(world, decides(2), wait), first, "first"))
    thread.start()
    assert waits.wait(PATIENCE_S)
    run_job(ctx, "x2")

    def meanwhile() -> None:
        for name in ("x3", "x4", "x5", "x6"):
            run_job(ctx, name)
        goes_on.set()
        thread.join(PATIENCE_S)

    commit(held(world, decides(3), meanwhile), second, "second")
    return told


@pytest.mark.parametrize("mode", [SaveMode.APPEND, SaveMode.OVERWRITE])
@pytest.mark.parametrize("publication", ["upload", "transaction"])
def test_a_late_entry_does_not_count_because_another_late_one_is_before_it(publication: str, mode: SaveMode) -> None:
    """Defect: the second was reported as committed, and an overwrite deleted files that it had not listed."""
    world = World(publication)
    run_job(short(world.context()), "zero")
    told = two_late(world, start(world.context()), start(world.context(), mode))
    assert [type(one) for one in told] == [FencedError, FencedError]
    names = {content.partition(b"/")[0].decode() for content in world.contents()}
    assert names == {"zero", "x2", "x3", "x4", "x5", "x6"}
    settled(world)
    assert read_history(world.context()).decisions[0].entry.seq > 3


@pytest.mark.parametrize("publication", ["upload", "transaction"])
def test_a_late_write_does_not_count_next_to_its_repetition(publication: str) -> None:
    world = World(publication)
    ctx = short(world.context())
    run_job(ctx, "zero")
    first = start(ctx)
    second = TWO_PHASE.setup_job(ctx, SaveMode.APPEND, {WRITE_ID: "daily"})
    assert second is not None
    told = two_late(world, first, second)
    assert isinstance(told[1], FencedError)
    assert of(world, "second") == []


BATCH = StreamBatch(stream="s", checkpoint="c", batch=0)


def announced(ctx: CommitContext, plan: BatchPlan) -> JobRecord:
    job = announce_stream_batch(ctx, plan, BATCH)
    assert job is not None
    return job


@pytest.mark.parametrize("publication", ["upload", "transaction"])
def test_a_late_task_that_announces_a_batch_again_does_not_undo_it(publication: str) -> None:
    """Defect: recovery reported that it had rolled the batch back, although its rows were visible."""
    world = World(publication)
    ctx = short(world.context())
    plan = plan_batch(ctx, SaveMode.APPEND, {})
    job = announced(ctx, plan)
    messages = run_tasks(ctx, job, "batch")
    TWO_PHASE.commit_job(ctx, job, messages, TASKS)
    others_decide(ctx)
    announced(ctx, plan)
    report = recover(ctx)
    assert (report.rolled_forward, report.rolled_back) == ([job.job], [])
    assert of(world, "batch") == expected("batch")
    settled(world)


@pytest.mark.parametrize("publication", ["upload", "transaction"])
def test_a_batch_that_another_driver_has_committed_is_skipped_without_its_records(publication: str) -> None:
    """Defect: the error said that somebody had removed a manifest and that the job must be run again."""
    world = World(publication)
    ctx = world.context().with_settings(inline_manifest_bytes=0)
    plans = [plan_batch(ctx, SaveMode.APPEND, {}) for _ in range(2)]
    job, twin = (announced(ctx, plan) for plan in plans)
    messages = {one.job: run_tasks(ctx, one, name) for one, name in ((job, "first"), (twin, "second"))}
    assert TWO_PHASE.commit_job(ctx, twin, messages[twin.job], TASKS).committed
    assert not TWO_PHASE.commit_job(ctx, job, messages[job.job], TASKS).committed
    assert world.contents() == expected("second")


class _Lags(MemoryStore):
    """A store whose listings of the log are stale until some moment, as in a directory that NFS caches for a second."""

    now_s: Callable[[], float] = staticmethod(lambda: 0.0)
    until_s = 0.0
    old = ObjectPage([], None)

    def list_page(
        self, prefix: str, start_after: str = "", max_keys: int = 1000, token: str | None = None
    ) -> ObjectPage:
        page = super().list_page(prefix, start_after, max_keys, token)
        return self.old if prefix.endswith("_holdfast/log/") and self.now_s() < self.until_s else page


def test_a_listing_that_lags_is_waited_for() -> None:
    world = World("upload")
    store = _Lags(clock=world.clock)
    ctx = replace(world.context(), store=store)
    run_job(ctx, "zero")
    job = start(ctx)
    messages = run_tasks(ctx, job, "mine")
    store.old = store.list_page(f"{HOME}_holdfast/log/")
    run_job(ctx, "other")
    store.now_s = lambda: world.clock.at_s
    store.until_s = world.clock.at_s + 1.0
    assert TWO_PHASE.commit_job(ctx, job, messages, TASKS).committed
