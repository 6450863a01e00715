"""Check that nothing is refused after the decision, and that a failure there stops only its own job (C8, C9, C11)."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

import pytest

from holdfast.commit import TWO_PHASE, CommitContext, JobOutcome, SaveMode, read_history, read_snapshot, recover, verify
from holdfast.commit.context import open_context
from holdfast.commit.records import TaskCommit
from holdfast.commit.two_phase.decision_log import read_log
from holdfast.errors import (
    AccessDeniedError,
    ConflictError,
    HoldfastError,
    InvalidRequestError,
    OutcomeUnknownError,
    PreconditionError,
    UnavailableError,
    UnsupportedError,
)
from holdfast.stores.base import iter_uploads
from holdfast.stores.interceptors import InterceptedStore, StoreCall, StoreOperation
from tests.simulation.world import HOME, STEPWISE, World, run_job, run_tasks, start

T = TypeVar("T")


def commit_file(ctx: CommitContext, path: str, mode: SaveMode = SaveMode.APPEND, data: bytes = b"new") -> JobOutcome:
    """Run a job with one task that writes one file under a name of the caller's choice."""
    job = TWO_PHASE.setup_job(ctx, mode)
    assert job is not None
    with TWO_PHASE.setup_task(ctx, job, 0) as attempt:
        sink = attempt.open(path)
        sink.write(data)
        sink.close()
        commit: TaskCommit = attempt.commit()
    return TWO_PHASE.commit_job(ctx, job, [commit], 1)


# --- what can be checked before the decision --------------------------------------------------------------------------
def occupy_directory(root: Path, name: str) -> None:
    (root / name).mkdir(parents=True)


def occupy_hidden(root: Path, name: str) -> None:
    (root / name).mkdir(parents=True)
    (root / name / "_nobody_lists_this").write_bytes(b"1")


def occupy_dangling(root: Path, name: str) -> None:
    (root / name).parent.mkdir(parents=True, exist_ok=True)
    (root / name).symlink_to(root / "nowhere")


@pytest.mark.parametrize("mode", [SaveMode.APPEND, SaveMode.OVERWRITE, SaveMode.OVERWRITE_PARTITIONS])
@pytest.mark.parametrize(
    ("occupy", "occupied", "path"),
    [
        (occupy_directory, "a.bin", "a.bin"),
        (occupy_hidden, "a.bin", "a.bin"),
        (occupy_directory, "_SUCCESS", "a.bin"),
        (occupy_dangling, "hour=1", "hour=1/a.bin"),
        (lambda root, name: (root / name).write_bytes(b"1"), "hour=1", "hour=1/a.bin"),
    ],
    ids=["empty directory", "hidden file in it", "_SUCCESS", "link to nowhere", "file named like a partition"],
)
def test_what_publication_needs_is_checked_before_the_decision(
    tmp_path: Path, occupy: Callable[[Path, str], None], occupied: str, path: str, mode: SaveMode
) -> None:
    """C11. Defect: the decision was made, and then neither that job nor any later one, nor recovery, could complete."""
    ctx = open_context(str(tmp_path / "table"))
    run_job(ctx, "old")
    job = start(ctx, mode)
    with TWO_PHASE.setup_task(ctx, job, 0) as attempt:
        sink = attempt.open(path)
        sink.write(b"new")
        sink.close()
        message = attempt.commit()
    if occupied == "_SUCCESS":
        (tmp_path / "table" / "_SUCCESS").unlink()
    occupy(tmp_path / "table", occupied)
    head = read_log(ctx).head
    with pytest.raises(InvalidRequestError, match=occupied):
        TWO_PHASE.commit_job(ctx, job, [message], 1)
    assert read_log(ctx).head == head, "undecided"
    assert not TWO_PHASE.abort_job(ctx, job).committed
    ctx.close()


def test_a_report_that_cannot_be_written_is_refused_at_the_start(tmp_path: Path) -> None:
    (tmp_path / "_SUCCESS").mkdir()
    with open_context_of(tmp_path) as ctx, pytest.raises(InvalidRequestError, match="_SUCCESS"):
        start(ctx)
    assert os.listdir(tmp_path) == ["_SUCCESS"], "nothing was written"


def test_a_log_that_cannot_be_created_is_refused_at_the_start(tmp_path: Path) -> None:
    """Defect: only the decision noticed it, after all tasks had run."""
    (tmp_path / "_holdfast").mkdir()
    (tmp_path / "_holdfast" / "log").symlink_to(tmp_path / "nowhere")
    with open_context_of(tmp_path) as ctx, pytest.raises(InvalidRequestError, match="_holdfast/log"):
        start(ctx)


class open_context_of:  # used like a function
    """A context that closes at the end of the block."""

    def __init__(self, path: Path) -> None:
        self._ctx = open_context(str(path))

    def __enter__(self) -> CommitContext:
        return self._ctx

    def __exit__(self, *_error: object) -> None:
        self._ctx.close()


def test_a_directory_that_may_not_be_written_to(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The test replaces the system's answer, because the superuser may write anywhere."""
    (tmp_path / "day=1").mkdir()
    with open_context_of(tmp_path) as ctx:
        monkeypatch.setattr(os, "access", lambda path, mode: not str(path).endswith("day=1"))
        with pytest.raises(AccessDeniedError, match="check owner"):
            commit_file(ctx, "day=1/a.bin")
        assert read_log(ctx).head == 0


# --- failures after the decision --------------------------------------------------------------------------------------
class Refusing:
    """An interceptor that makes it impossible to publish one name while it is active."""

    def __init__(self, name: str, error: HoldfastError) -> None:
        self.name = name
        self.error = error
        self.active = True

    def __call__(self, call: StoreCall, proceed: Callable[[], T]) -> T:
        publishes = call.operation in (StoreOperation.COMPLETE_UPLOAD, StoreOperation.RENAME)
        if self.active and publishes and (call.target or call.key).endswith(self.name):
            raise self.error
        return proceed()


ERRORS = [
    UnsupportedError("source and target lie on different file systems"),
    PreconditionError("the target exists"),
    InvalidRequestError("a directory stands where a file is needed"),
    AccessDeniedError("the policy forbids it"),
    UnavailableError("the disk is bad there"),
    OutcomeUnknownError("the store does not answer"),
]


def refusing(publication: str, error: HoldfastError) -> tuple[World, CommitContext, Refusing]:
    world = World(publication)
    refuse = Refusing("stuck", error)
    return world, world.context(store=InterceptedStore(world.store, refuse)), refuse


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
@pytest.mark.parametrize("publication", STEPWISE)
def test_a_failure_after_the_decision_is_pending_work_of_that_job_alone(publication: str, error: HoldfastError) -> None:
    world, ctx, refuse = refusing(publication, error)
    run_job(ctx, "old")
    outcome = commit_file(ctx, "a/stuck")
    assert outcome.committed and not outcome.finished and "pending" in outcome.pending_reason
    assert run_job(ctx, "later").finished, "a later job that touches other names goes on"
    assert read_history(ctx).decisions[-1].state == "done"
    seen = {file.path for file in read_snapshot(ctx).files}
    assert len(seen) == 8 and "a/stuck" not in seen
    report = recover(ctx)
    assert not report.clean and list(report.pending) == [outcome.job], "recovery says which, and goes on"
    refuse.active = False
    assert recover(ctx).rolled_forward == [outcome.job]
    assert world.listing()["a/stuck"] == b"new" and len(world.listing()) == 9
    assert verify(ctx).verified, verify(ctx).problems
    assert world.pending() == [] and world.leftovers() == []


def test_a_dry_run_reports_what_cannot_be_rolled_forward(tmp_path: Path) -> None:
    refuse = Refusing("stuck", ERRORS[0])
    with open_context_of(tmp_path) as opened:
        ctx = replace(opened, store=InterceptedStore(opened.store, refuse))
        outcome = commit_file(ctx, "stuck")
        refuse.active = False
        assert recover(ctx, dry_run=True).rolled_forward == [outcome.job]
        (tmp_path / "stuck").mkdir()
        report = recover(ctx, dry_run=True)
        assert report.rolled_forward == [] and "remove it" in report.pending[outcome.job]
        (tmp_path / "stuck").rmdir()
        assert recover(ctx).rolled_forward == [outcome.job]


@pytest.mark.parametrize("publication", STEPWISE)
def test_recovery_continues_with_the_other_jobs(publication: str) -> None:
    world, ctx, refuse = refusing(publication, ERRORS[0])
    stuck = commit_file(ctx, "stuck")
    dead = start(ctx)
    run_tasks(ctx, dead, "dead")
    report = recover(ctx)
    assert list(report.pending) == [stuck.job] and report.rolled_back == [dead.job]
    assert world.contents() == []
    refuse.active = False
    assert recover(ctx).clean


@pytest.mark.parametrize("publication", STEPWISE)
@pytest.mark.parametrize(
    ("mode", "path"),
    [
        (SaveMode.OVERWRITE, "other"),
        (SaveMode.FAIL, "other"),
        (SaveMode.OVERWRITE_PARTITIONS, "a/other"),
        (SaveMode.APPEND, "a/stuck"),
        (SaveMode.APPEND, "a/stuck/below"),
        (SaveMode.APPEND, "a"),
    ],
)
def test_a_job_that_writes_the_same_names_waits(publication: str, mode: SaveMode, path: str) -> None:
    """Otherwise the stuck job's files would appear after those of a job that is later in the log."""
    world, ctx, refuse = refusing(publication, ERRORS[0])
    stuck = commit_file(ctx, "a/stuck")
    with pytest.raises(ConflictError, match="holdfast recover") as refused:
        commit_file(ctx, path, mode)
    assert refused.value.variables["earlier"] == stuck.job
    assert read_log(ctx).head == 1, "undecided"
    refuse.active = False
    assert recover(ctx).clean
    assert world.listing() == {"a/stuck": b"new"} and world.pending() == []


@pytest.mark.parametrize("publication", STEPWISE)
def test_partitions_next_to_a_stuck_one_are_overwritten(publication: str) -> None:
    world, ctx, refuse = refusing(publication, ERRORS[0])
    commit_file(ctx, "a/stuck")
    assert commit_file(ctx, "b/file", SaveMode.OVERWRITE_PARTITIONS).finished
    refuse.active = False
    recover(ctx)
    assert world.listing() == {"a/stuck": b"new", "b/file": b"new"}


@pytest.mark.parametrize("publication", STEPWISE)
def test_an_overwrite_that_is_stuck_keeps_appends_waiting(publication: str) -> None:
    """Otherwise readers would see the old files together with the new job's, which matches no order of the jobs."""
    world, ctx, refuse = refusing(publication, ERRORS[0])
    run_job(ctx, "old")
    old = world.listing()
    commit_file(ctx, "stuck", SaveMode.OVERWRITE)
    with pytest.raises(ConflictError, match="touches"):
        run_job(ctx, "later")
    assert {file.path for file in read_snapshot(ctx).files} == set(old)
    refuse.active = False
    recover(ctx)
    assert world.listing() == {"stuck": b"new"}


def test_replaced_files_that_cannot_be_deleted_block_no_other_job() -> None:
    """The job is visible: its remaining work changes nothing on which a later job depends."""
    world = World("upload")

    def refuse(call: StoreCall, proceed: Callable[[], T]) -> T:
        if call.operation is StoreOperation.DELETE_MANY and "part-" in call.key and "attempts" not in call.key:
            raise AccessDeniedError("the policy forbids deleting", key=call.key)
        return proceed()

    run_job(world.context(), "old")
    ctx = world.context(store=InterceptedStore(world.store, refuse))
    outcome = run_job(ctx, "new", SaveMode.OVERWRITE)
    assert outcome.committed and not outcome.finished
    assert run_job(ctx, "appended").finished
    assert len(read_snapshot(ctx).files) == 8
    assert recover(world.context()).clean and len(world.listing()) == 8


def test_a_name_that_a_stuck_job_may_still_delete_is_not_used_again() -> None:
    """S3's etags are derived from contents: the delete would also remove a newer file with the same bytes."""
    world = World("upload")
    commit_file(world.context(), "kept", data=b"old")
    commit_file(world.context(), "again", data=b"old")

    def refuse(call: StoreCall, proceed: Callable[[], T]) -> T:
        if call.operation is StoreOperation.DELETE_MANY and any(key.endswith("kept") for key in call.keys):
            world.store.delete(f"{HOME}again")
            raise AccessDeniedError("the policy forbids deleting", key=call.key)
        return proceed()

    ctx = world.context(store=InterceptedStore(world.store, refuse))
    assert not commit_file(ctx, "other", SaveMode.OVERWRITE).finished
    assert {file.path for file in read_snapshot(ctx).files} == {"other"}
    for mode in (SaveMode.APPEND, SaveMode.OVERWRITE, SaveMode.OVERWRITE_PARTITIONS):
        for name in ("again", "kept"):
            with pytest.raises(ConflictError, match="touches the same files"):
                commit_file(ctx, name, mode, data=b"old")
    world.store.put(f"{HOME}again", b"another tool's")
    assert {file.path for file in read_snapshot(ctx).files} == {"other", "again"}
    assert recover(world.context()).clean
    assert world.listing() == {"other": b"new", "again": b"another tool's"}


def test_a_job_whose_uploads_expired_is_damage_of_that_job_alone() -> None:
    """MinIO discards idle uploads after a day. This is reported, and blocks neither the next append nor recovery."""
    world = World("upload")
    ctx = world.context()
    job = start(ctx)
    messages = run_tasks(ctx, job, "lost", 1)
    upload = next(iter_uploads(world.store, ""))
    world.store.abort_upload(upload.key, upload.upload_id)
    with pytest.raises(HoldfastError, match="lost"):
        TWO_PHASE.commit_job(ctx, job, messages, 1)
    assert run_job(ctx, "later").finished
    assert list(recover(ctx).damaged) == [job.job]
    accepted = recover(ctx, accept_damage=True)
    assert accepted.rolled_forward == [job.job] and [one.lost for one in accepted.jobs] == [1]
    assert recover(ctx).clean
