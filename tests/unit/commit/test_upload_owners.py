"""Test which job `find_pending_uploads` names as the owner of a pending upload, and in which state."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from holdfast.commit import TWO_PHASE, CommitContext, JobRecord, SaveMode
from holdfast.commit.layout import job_record_path
from holdfast.commit.leftovers import Leftover, RecoveryAction
from holdfast.commit.upload_owners import UploadState, find_pending_uploads
from holdfast.errors import CorruptDataError, HoldfastError
from tests.servers.minio_like import MinioLike
from tests.simulation.world import HOME, World, start
from tests.unit.commit.committer_jobs import Bucket


def write(ctx: CommitContext) -> JobRecord:
    """Run a job up to the commit of its only task, which writes a file of a chosen name."""
    job = start(ctx, SaveMode.OVERWRITE)
    with TWO_PHASE.setup_task(ctx, job, 0) as attempt:
        attempt.open("chosen").write(b"0123456789")
        attempt.commit()
    return job


@pytest.mark.parametrize("live_first", [True, False])
def test_of_two_jobs_that_announced_a_key_the_live_one_owns_the_upload(live_first: bool) -> None:
    """C7: the job whose record exists may still commit."""
    world = World("upload")
    ctx = world.context(store=MinioLike(world.store))
    first, second = write(ctx), write(ctx)
    live, dead = (first, second) if live_first else (second, first)
    world.store.delete(f"{HOME}{job_record_path(dead.job)}")
    pending, _note = find_pending_uploads(ctx)
    assert {(one.job, one.state) for one in pending} == {(live.job, UploadState.UNFINISHED)}


def test_an_upload_of_jobs_that_have_all_ended_is_over() -> None:
    world = World("upload")
    job = write(world.context())
    world.store.delete(f"{HOME}{job_record_path(job.job)}")
    (pending,), _note = find_pending_uploads(world.context())
    assert (pending.path, pending.job, pending.state) == ("chosen", job.job, UploadState.OVER)


def test_a_record_that_one_committer_cannot_read_hides_no_job_of_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    bucket = Bucket("staging-directory")
    ctx = bucket.context()
    job = bucket.start(ctx)
    bucket.run_task(ctx, job, 0, [b"0"])

    def find(ctx: CommitContext, on_error: Callable[[str, HoldfastError], None]) -> Iterator[Leftover]:
        on_error("magic", CorruptDataError("a record cannot be parsed"))
        yield Leftover(
            committer="staging-directory",
            job=job.job,
            active_at_s=0.0,
            action=RecoveryAction.CLEAN,
            reason="",
            recover=lambda: None,
        )

    monkeypatch.setattr("holdfast.commit.upload_owners.find_leftovers", find)
    (pending,), _note = find_pending_uploads(ctx)
    assert (pending.job, pending.committer, pending.state) == (job.job, "staging-directory", UploadState.OVER)
