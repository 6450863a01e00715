"""Check the marks of streams, and what a batch's plan refuses before anything is written."""

from __future__ import annotations

import dataclasses
import pickle
from collections.abc import Mapping

import pytest

from holdfast.commit import TWO_PHASE, JobRecord, Kind, SaveMode, StreamBatch
from holdfast.commit.codec import decode_job
from holdfast.commit.layout import job_record_path
from holdfast.commit.two_phase.decision import is_already_committed
from holdfast.commit.two_phase.decision_log import read_log
from holdfast.commit.two_phase.records import (
    LogEntry,
    LogState,
    StreamMark,
    advance_streams,
    dead_batches,
    is_committed_batch,
    is_job_dead,
)
from holdfast.commit.two_phase.streams import announce_stream_batch, plan_batch
from holdfast.errors import ConflictError, InvalidRequestError, UnsupportedError
from holdfast.stores.base import Capabilities, ObjectInfo, Overwrite, PutMode, Support, iter_objects
from holdfast.stores.interceptors import InterceptedStore, StoreOperation
from holdfast.stores.memory import MemoryStore
from tests.interceptors import Recorder
from tests.simulation.world import HOME, World, run_job

MARKS = {"flights": StreamMark(batch=7, checkpoint="c1"), "gates": StreamMark(batch=3, checkpoint="c2")}


def job_of(stream: str, batch: int, checkpoint: str) -> JobRecord:
    plan = plan_batch(World("upload").context(), SaveMode.APPEND, {})
    return dataclasses.replace(plan.job, stream=StreamBatch(stream=stream, checkpoint=checkpoint, batch=batch))


def entry_of(kind: Kind, job: JobRecord) -> LogEntry:
    return LogEntry(seq=9, kind=kind, record=job, token="t", decided_at_s=0.0, state=LogState(streams=MARKS))


def test_a_batch_counts_up_to_the_mark() -> None:
    committed = [is_committed_batch(job_of("flights", batch, "c1"), MARKS) for batch in (0, 6, 7, 8, 100)]
    assert committed == [True, True, True, False, False]
    assert not is_committed_batch(job_of("new", 0, "c9"), MARKS)
    assert not is_committed_batch(dataclasses.replace(job_of("new", 0, "c9"), stream=None), MARKS)


def test_a_batch_whose_decision_a_database_has_lost_is_not_committed() -> None:
    """C8. What was read is searched again once it is durable."""
    world = World("transaction")
    run_job(world.context(), "other")
    ctx = world.context()
    view = read_log(ctx)
    assert not is_already_committed(ctx, job_of("flights", 7, "c1"), LogState(streams=MARKS), view)


def test_a_mark_moves_for_its_stream_alone() -> None:
    moved = advance_streams(job_of("flights", 8, "c1"), MARKS)
    assert moved == {**MARKS, "flights": StreamMark(batch=8, checkpoint="c1")}
    assert advance_streams(dataclasses.replace(job_of("new", 0, "c9"), stream=None), MARKS) == MARKS


def test_another_checkpoint_is_refused_in_one_sentence() -> None:
    with pytest.raises(InvalidRequestError) as caught:
        is_committed_batch(job_of("flights", 8, "c9"), MARKS)
    assert str(caught.value) == (
        "the stream was written here with another checkpoint: continue with that checkpoint; with another streamId, "
        "all of the query's input is written a second time "
        "stream='flights' known='c1' given='c9'"
    )


@pytest.mark.parametrize(
    ("kind", "own", "stream", "batch", "checkpoint", "dead"),
    [
        (Kind.COMMIT, "flights", "flights", 7, "c1", True),
        (Kind.COMMIT, "flights", "flights", 8, "c1", False),
        (Kind.COMMIT, "flights", "flights", 7, "c9", False),
        (Kind.COMMIT, "flights", "gates", 2, "c2", True),
        (Kind.COMMIT, "flights", "gates", 3, "c2", False),
        (Kind.ABORT, "flights", "flights", 7, "c1", False),
        (Kind.ABORT, "flights", "flights", 6, "c1", True),
        (Kind.COMMIT, "flights", "new", 0, "c1", False),
    ],
)
def test_which_jobs_are_dead(kind: Kind, own: str, stream: str, batch: int, checkpoint: str, dead: bool) -> None:
    """C7: the last batch's job may still be unpublished, unless it is the one that is being rolled forward."""
    marks = dead_batches(entry_of(kind, job_of(own, 7, "c1")))
    assert is_job_dead(job_of(stream, batch, checkpoint), marks) is dead
    assert not is_job_dead(dataclasses.replace(job_of("new", 0, "c9"), stream=None), marks)


# --- plans ------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("mode", [SaveMode.FAIL, SaveMode.IGNORE, SaveMode.OVERWRITE_PARTITIONS])
def test_a_stream_appends_or_replaces_everything(mode: SaveMode) -> None:
    with pytest.raises(InvalidRequestError, match="a stream appends, or overwrites with every batch"):
        plan_batch(World("upload").context(), mode, {})


def test_a_store_without_conditional_writes_is_refused_with_what_a_stream_can_do() -> None:
    """Defect: the message suggested another committer, which streams do not have, and not the setting that helps."""

    class Unconditional(MemoryStore):
        @property
        def capabilities(self) -> Capabilities:
            return dataclasses.replace(super().capabilities, conditional_put=Support.NO)

    with pytest.raises(UnsupportedError, match="choose another store, or accept that with allow_unfenced"):
        plan_batch(World("upload").context(store=Unconditional()), SaveMode.APPEND, {})


def test_a_plan_writes_nothing_and_travels() -> None:
    world = World("upload")
    run_job(world.context(), "old")
    seen = Recorder()
    plan = plan_batch(world.context(store=InterceptedStore(world.store, seen)), SaveMode.APPEND, {"format": "text"})
    assert {call.operation for call in seen.calls} == {StoreOperation.LIST, StoreOperation.HEAD, StoreOperation.GET}
    assert pickle.loads(pickle.dumps(plan)) == plan
    assert plan.job.base_seq == 1 and plan.job.stream is None


@pytest.mark.parametrize("publication", ["upload", "rename"])
def test_every_task_announces_the_same_job(publication: str) -> None:
    world = World(publication)
    plan = plan_batch(world.context(), SaveMode.APPEND, {"format": "text"})
    batch = StreamBatch(stream="flights", checkpoint="c1", batch=4)
    jobs = [announce_stream_batch(world.context(), pickle.loads(pickle.dumps(plan)), batch) for _task in range(3)]
    assert jobs[0] is not None and jobs[0].stream == batch and jobs.count(jobs[0]) == 3
    assert world.leftovers() == [HOME + job_record_path(jobs[0].job)]
    assert decode_job(world.leftovers()[0], world.store.get(world.leftovers()[0])) == jobs[0]
    assert TWO_PHASE.abort_job(world.context(), jobs[0]).finished and world.leftovers() == []


class Ignoring(InterceptedStore):
    """A store that accepts conditional writes and ignores the condition, as some servers do."""

    @property
    def capabilities(self) -> Capabilities:
        return dataclasses.replace(super().capabilities, conditional_put=Support.UNKNOWN)

    def put(
        self, key: str, data: bytes, mode: PutMode = Overwrite(), metadata: Mapping[str, str] | None = None
    ) -> ObjectInfo:
        return super().put(key, data, Overwrite(), metadata)


def test_a_store_that_ignores_conditions_is_refused_before_the_first_upload() -> None:
    world = World("upload")
    ctx = world.context(store=Ignoring(world.store, Recorder()))
    plan = plan_batch(ctx, SaveMode.APPEND, {})
    with pytest.raises(UnsupportedError, match="ignores conditional writes"):
        announce_stream_batch(ctx, plan, StreamBatch(stream="flights", checkpoint="c1", batch=0))
    assert [info.key for info in iter_objects(world.store, "")] == []


def test_a_plan_is_of_one_batch() -> None:
    """C8: tasks of two batches that shared a job would be decided by whichever batch comes first."""
    world = World("upload")
    plan = plan_batch(world.context(), SaveMode.APPEND, {})
    for batch in (7, 7):
        assert (
            announce_stream_batch(world.context(), plan, StreamBatch(stream="s", checkpoint="c", batch=batch))
            is not None
        )
    with pytest.raises(ConflictError, match="another job has the same id"):
        announce_stream_batch(world.context(), plan, StreamBatch(stream="s", checkpoint="c", batch=8))
