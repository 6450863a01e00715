"""Reproduce the defects that an adversarial review found in the commit layer."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import pytest

from holdfast.commit import TWO_PHASE, CommitContext, JobRecord, SaveMode, read_snapshot, recover, verify
from holdfast.commit.context import open_context
from holdfast.commit.records import StreamBatch
from holdfast.commit.two_phase.decision_log import WRITE_ID, read_log
from holdfast.commit.two_phase.streams import announce_stream_batch, plan_batch
from holdfast.errors import AccessDeniedError, ConflictError, CorruptDataError, InvalidRequestError
from holdfast.stores.base import iter_objects
from holdfast.stores.interceptors import InterceptedStore, StoreCall, StoreOperation
from holdfast.stores.local.tree import LocalTree
from tests.interceptors import SimulatedCrash
from tests.servers.minio_like import MinioLike
from tests.simulation.test_stuck import ERRORS, commit_file, refusing
from tests.simulation.world import HOME, PUBLICATIONS, STEPWISE, TASKS, At, World, expected, run_job, run_tasks, start

T = TypeVar("T")


def refusing_deletes(world: World, path: str) -> CommitContext:
    def refuse(call: StoreCall, proceed: Callable[[], T]) -> T:
        if call.operation is StoreOperation.DELETE_MANY and any(path in key for key in call.keys):
            raise AccessDeniedError("the policy forbids deleting", key=call.key)
        return proceed()

    return world.context(store=InterceptedStore(world.store, refuse))


# --- cleanup ----------------------------------------------------------------------------------------------------------
def test_a_job_that_announces_itself_is_not_swept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """C7. Defect: the record was first written to a hidden file that looked like an upload without a job record."""
    ctx, other = open_context(str(tmp_path)), open_context(str(tmp_path))
    run_job(ctx, "old")
    ending = start(other)
    messages = run_tasks(other, ending, "other")
    publish, fired = LocalTree.publish, []

    def interrupted(tree: LocalTree, source: str, key: str, mode: object) -> os.stat_result:
        if key.endswith("job.json") and not fired:
            fired.append(key)
            assert TWO_PHASE.commit_job(other, ending, messages, TASKS).finished
        return publish(tree, source, key, mode)  # type: ignore[arg-type]  # a put's mode

    monkeypatch.setattr(LocalTree, "publish", interrupted)
    run_job(ctx, "new")
    assert fired and verify(ctx).verified
    for each in (ctx, other):
        each.close()


@pytest.mark.parametrize("wrap", [lambda store: store, MinioLike], ids=["listing", "minio"])
def test_a_damaged_record_of_a_dead_job_blocks_no_other_job(wrap: Callable[..., object]) -> None:
    """Defect: every commit raised an error after its decision, and so did `recover` and `verify`."""
    world = World("upload")
    run_job(world.context(), "old")
    record = "jobs/20260101000000000-0123456789ab/attempts/00000-0123456789ab.intents-0.jsonl"
    world.store.put(f"{HOME}_holdfast/{record}", b'{"format":"holdfast-intents/2"}\n')
    theirs = world.store.create_upload(f"{HOME}another tool's")
    ctx = world.context(store=wrap(world.store))  # type: ignore[arg-type]  # a store
    assert run_job(ctx, "new").finished
    assert recover(ctx, older_than_s=3600).clean and verify(ctx).verified
    world.store.abort_upload(f"{HOME}another tool's", theirs)


def test_a_failed_cleanup_is_reported_with_what_recovery_did() -> None:
    world = World("upload")
    dead = start(world.context())

    def refuse(call: StoreCall, proceed: Callable[[], T]) -> T:
        if call.operation is StoreOperation.LIST_UPLOADS and call.key == HOME:
            raise AccessDeniedError("the policy forbids listing uploads")
        return proceed()

    report = recover(world.context(store=InterceptedStore(world.store, refuse)))
    assert report.rolled_back == [dead.job] and "forbids listing" in report.pending["cleanup"] and not report.damaged


def test_a_probe_that_died_is_swept() -> None:
    world = World("upload")
    run_job(world.context(), "old")
    for nth in range(1, 20):
        stop = At(nth, _die)
        with pytest.raises(SimulatedCrash):
            start(world.context(store=MinioLike(InterceptedStore(world.store, stop))))
        if world.pending():
            break
    assert len(world.pending()) == 1 and "probe" in world.pending()[0]
    recover(world.context(store=MinioLike(world.store)))
    assert world.pending() == []


def _die() -> None:
    raise SimulatedCrash


# --- stuck decisions --------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("publication", STEPWISE)
def test_the_table_after_a_stuck_append_is_the_newest(publication: str) -> None:
    """C12. Defect: columns that a later job added were hidden until the stuck job was finished."""
    _world, ctx, _refuse = refusing(publication, ERRORS[0])

    def job(column: str, path: str) -> None:
        def contract(_ctx: object, _job: object, table: dict[str, object] | None) -> dict[str, object]:
            return {"columns": [*(table or {"columns": []})["columns"], column]}  # type: ignore[misc]  # a list

        commit_file(dataclasses.replace(ctx, contract=contract), path)  # type: ignore[arg-type]  # as far as it is used

    job("a", "p/1")
    job("b", "stuck")
    job("c", "p/2")
    snapshot = read_snapshot(ctx)
    assert [file.path for file in snapshot.files] == ["p/1", "p/2"]
    assert snapshot.table == {"columns": ["a", "b", "c"]}


@pytest.mark.parametrize("lost", ["attempts/", "committed-"])
@pytest.mark.parametrize("publication", STEPWISE)
def test_lost_records_of_a_stuck_decision_have_a_way_out(publication: str, lost: str) -> None:
    """Defect: neither recovery nor readers completed, and no message said that the damage can be accepted."""
    world, ctx, refuse = refusing(publication, ERRORS[0])
    run_job(ctx, "old")
    stuck = commit_file(ctx, "stuck")
    refuse.active = False
    for info in list(iter_objects(world.store, f"{HOME}_holdfast/jobs/")):
        if lost in info.key and info.key.endswith(".jsonl"):
            world.store.delete(info.key)
    with pytest.raises(CorruptDataError, match="accept-damage"):
        read_snapshot(ctx)
    assert "accept-damage" in recover(ctx).damaged[stuck.job]
    assert recover(ctx, accept_damage=True).rolled_forward == [stuck.job]
    assert run_job(ctx, "next", SaveMode.OVERWRITE).finished and len(read_snapshot(ctx).files) == 4


@pytest.mark.parametrize("publication", STEPWISE)
def test_a_decision_that_others_complete_and_trim_is_not_damage(publication: str) -> None:
    """Defect: `recover` raised "no such object" wherever other processes ran in between."""
    world, ctx, refuse = refusing(publication, ERRORS[0])
    few = ctx.with_settings(log_retention_entries=2)
    commit_file(few, "stuck")
    for number in range(4):
        run_job(few, f"other{number}")
    refuse.active = False
    image = world.store.take_snapshot()
    for nth in range(1, 200):
        world.store.restore(image)
        others = At(nth, lambda: [run_job(few, f"later{number}") for number in range(2)])
        report = recover(dataclasses.replace(few, store=InterceptedStore(world.store, others)))
        assert report.clean, (nth, report.damaged)
        if not others.fired:
            break


def test_files_that_a_stuck_job_still_has_to_delete_are_counted_once() -> None:
    """Defect: `verify` said that a job should have -4 files."""
    world = World("upload")
    run_job(world.context(), "old")
    ctx = refusing_deletes(world, "day=")
    assert not run_job(ctx, "one", SaveMode.OVERWRITE_PARTITIONS).finished
    assert not run_job(ctx, "two", SaveMode.OVERWRITE_PARTITIONS).finished
    recover(world.context())
    report = verify(world.context())
    assert report.verified and world.contents() == expected("two"), report.problems


def test_only_a_name_that_a_stuck_overwrite_still_has_to_delete_waits() -> None:
    """C11. Otherwise the overwrite, once it can be finished, would delete the new job's file."""
    world = World("upload")
    commit_file(world.context(), "old")
    ctx = refusing_deletes(world, "old")
    assert not commit_file(ctx, "one", SaveMode.OVERWRITE).finished
    with pytest.raises(ConflictError, match="touches"):
        commit_file(ctx, "old")
    assert commit_file(ctx, "another").committed
    assert recover(world.context()).clean
    assert world.listing() == {"one": b"new", "another": b"new"}


def test_a_stream_waits_for_its_own_stuck_batch() -> None:
    """The next batch's cleanup deletes the data of all earlier ones, including the list of files still to delete."""
    world = World("upload")
    run_job(world.context(), "old")
    ctx = refusing_deletes(world, "day=")
    first = batch(ctx, 0, SaveMode.OVERWRITE)
    assert not TWO_PHASE.commit_job(ctx, first, run_tasks(ctx, first, "b0"), TASKS).finished
    second = batch(ctx, 1)
    with pytest.raises(ConflictError, match="cannot be rolled forward"):
        TWO_PHASE.commit_job(ctx, second, run_tasks(ctx, second, "b1"), TASKS)
    TWO_PHASE.abort_job(world.context(), second)
    assert recover(world.context()).clean and world.contents() == expected("b0")


def batch(ctx: CommitContext, number: int, mode: SaveMode = SaveMode.APPEND) -> JobRecord:
    job = announce_stream_batch(ctx, plan_batch(ctx, mode, {}), StreamBatch(stream="s", checkpoint="c", batch=number))
    assert job is not None
    return job


def test_a_file_named_like_a_stuck_jobs_directory_waits() -> None:
    """Otherwise the stuck job could never be finished."""
    world, ctx, refuse = refusing("rename", ERRORS[0])
    refuse.name = ".txt"
    stuck = run_job(ctx, "stuck")
    assert stuck.committed and not stuck.finished
    with pytest.raises(ConflictError, match="touches"):
        commit_file(ctx, "day=1")
    refuse.active = False
    assert recover(ctx).clean and world.contents() == expected("stuck")


@pytest.mark.parametrize("mode", [SaveMode.APPEND, SaveMode.FAIL, SaveMode.IGNORE, SaveMode.OVERWRITE])
@pytest.mark.parametrize("publication", PUBLICATIONS)
def test_another_driver_of_the_job_that_has_committed_it_is_no_obstacle(publication: str, mode: SaveMode) -> None:
    """Defect: the slower of two drivers of one job found its own files and reported that the job was not committed."""
    for nth in range(1, 200):
        world = World(publication)
        job = start(world.context(), mode)
        with TWO_PHASE.setup_task(world.context(), job, 0) as attempt:
            attempt.open("chosen").write(b"1")
            message = attempt.commit()
        twin = At(nth, lambda: TWO_PHASE.commit_job(world.context(), job, [message], 1))  # noqa: B023  # fires at once
        outcome = TWO_PHASE.commit_job(world.context(store=InterceptedStore(world.store, twin)), job, [message], 1)
        assert outcome.committed, nth
        assert world.listing() == {"chosen": b"1"}
        if not twin.fired:
            break


# --- clocks, other files, links ---------------------------------------------------------------------------------------
def test_a_job_that_has_started_long_ago_and_reports_is_alive() -> None:
    world = World("upload")
    ctx = world.context()
    job = start(ctx)
    world.clock.at_s += 7200
    reports = run_tasks(ctx, job, "new")
    assert recover(world.context(), older_than_s=3600).rolled_back == []
    assert TWO_PHASE.commit_job(ctx, job, reports, TASKS).committed
    assert verify(ctx).verified


def test_a_clock_that_was_set_back_keeps_nothing_alive() -> None:
    world = World("upload")
    dead = start(world.context())
    world.clock.at_s -= 3600
    assert recover(world.context(), older_than_s=0).rolled_back == [dead.job]


def test_dot_files_in_the_log_are_ignored(tmp_path: Path) -> None:
    """NFS keeps a ``.nfs…`` file when an open file is deleted; macOS leaves ``.DS_Store``."""
    ctx = open_context(str(tmp_path))
    run_job(ctx, "old")
    for name in (".nfs0000000000000001", ".DS_Store"):
        (tmp_path / "_holdfast" / "log" / name).write_bytes(b"1")
    assert run_job(ctx, "new").finished and recover(ctx).clean and read_log(ctx).head == 2
    ctx.close()


def test_a_listing_that_only_saves_requests_may_fail() -> None:
    world = World("upload")
    job = start(world.context())
    messages = run_tasks(world.context(), job, "new")

    def refuse(call: StoreCall, proceed: Callable[[], T]) -> T:
        if call.operation is StoreOperation.COMPLETE_UPLOAD:
            raise AccessDeniedError("not now")
        return proceed()

    def unreadable(call: StoreCall, proceed: Callable[[], T]) -> T:
        if call.operation is StoreOperation.LIST and call.key == HOME:
            raise AccessDeniedError("lost+found may not be read")
        return proceed()

    assert not TWO_PHASE.commit_job(
        world.context(store=InterceptedStore(world.store, refuse)), job, messages, TASKS
    ).finished
    report = recover(world.context(store=InterceptedStore(world.store, unreadable)))
    assert report.rolled_forward == [job.job] and world.contents() == expected("new")


def test_a_destination_below_a_folder_named_attempts(caplog: pytest.LogCaptureFixture) -> None:
    world = World("upload")
    ctx = world.context(home="attempts/table/")
    run_job(ctx, "old")
    run_job(ctx, "new", SaveMode.OVERWRITE)
    assert caplog.records == []


@pytest.mark.parametrize("name", ["link back", "_SUCCESS", "writes"])
def test_what_else_publication_needs(tmp_path: Path, name: str) -> None:
    ctx = open_context(str(tmp_path))
    details: dict[str, object] = {}
    job = TWO_PHASE.setup_job(ctx, SaveMode.APPEND, {WRITE_ID: "w"} if name == "writes" else details)
    assert job is not None
    with TWO_PHASE.setup_task(ctx, job, 0) as attempt:
        attempt.open("day=9/f" if name == "link back" else "f").write(b"1")
        message = attempt.commit()
    if name == "link back":
        (tmp_path / "day=9").symlink_to(tmp_path)
    elif name == "_SUCCESS":
        (tmp_path / "_SUCCESS").symlink_to(tmp_path / "nowhere")
    else:
        (tmp_path / "_holdfast" / "writes").write_bytes(b"1")
    with pytest.raises(InvalidRequestError):
        TWO_PHASE.commit_job(ctx, job, [message], 1)
    assert read_log(ctx).head == 0
    ctx.close()


def test_a_directory_with_replaced_files_must_be_writable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The test replaces the system's answer, because the superuser may write anywhere."""
    ctx = open_context(str(tmp_path))
    run_job(ctx, "old")
    access = os.access
    monkeypatch.setattr(os, "access", lambda path, mode: not str(path).endswith("day=1") and access(path, mode))
    with pytest.raises(AccessDeniedError, match="check owner"):
        commit_file(ctx, "day=0/new", SaveMode.OVERWRITE)
    assert read_log(ctx).head == 1
    monkeypatch.undo()
    assert commit_file(ctx, "day=0/new", SaveMode.OVERWRITE).finished
    ctx.close()
