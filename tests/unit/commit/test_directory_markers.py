"""Test that empty objects that mark directories are never data, wherever they are (S3 consoles, s3fs, S3A)."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import pytest

from holdfast.commit import COMMITTERS, SaveMode, read_history, read_snapshot, recover, verify
from holdfast.commit.layout import iter_folders_above
from holdfast.commit.recovery import find_leftovers
from holdfast.errors import CorruptDataError
from holdfast.stores.base import MultipartLimits, ObjectStore, is_marker, iter_objects
from holdfast.stores.interceptors import InterceptedStore, StoreCall
from holdfast.stores.memory import MemoryStore
from tests.simulation.world import HOME, World, expected, run_job
from tests.unit.commit.committer_jobs import RENAMING, SAFE, Bucket

T = TypeVar("T")


class Console:
    """An interceptor that marks every folder above a written key, in all common ways; again after deletions."""

    def __init__(self, store: ObjectStore) -> None:
        self._store = store

    def __call__(self, call: StoreCall, proceed: Callable[[], T]) -> T:
        result = proceed()
        if call.operation.writes:
            for key in filter(None, (call.key, call.target)):
                for folder in iter_folders_above(key):
                    if folder:
                        self._store.put(folder, b"")
                        self._store.put(f"{folder[:-1]}_$folder$", b"")
        return result


def marked(committer: str) -> tuple[Bucket, ObjectStore]:
    """Return a bucket that contains markers before a job starts, and more and more of them."""
    bucket = Bucket(committer)
    # A store with directory renames keeps no objects for directories.
    bucket.store = MemoryStore(
        limits=MultipartLimits(min_part_size_bytes=bucket.part_bytes),
        rename=committer in RENAMING,
        rename_dir=False,
        clock=bucket.clock,
        ids=bucket.ids,
    )
    for folder in (HOME, f"{HOME}day=0/", *(f"{HOME}_holdfast/{name}" for name in ("", "log/", "jobs/", "jobs/x/"))):
        bucket.store.put(folder, b"")
    for folder in (
        "_temporary/",
        "_temporary/0/",
        "_temporary/0/_temporary/",
        "_temporary/manifest_x/",
        "__magic_job-x/",
    ):
        bucket.store.put(HOME + folder, b"")
    return bucket, InterceptedStore(bucket.store, Console(bucket.store))


@pytest.mark.parametrize("committer", sorted(set(COMMITTERS) - {"file-v1"}))
def test_jobs_of_every_committer(committer: str) -> None:
    bucket, store = marked(committer)
    ctx = bucket.context(store=store)
    replacing = next(mode for mode in (SaveMode.OVERWRITE, SaveMode.OVERWRITE_PARTITIONS) if mode in bucket.value.modes)
    # In mode fail the tasks of staging-partitioned check themselves: see below.
    first = SaveMode.APPEND if committer == "staging-partitioned" else SaveMode.FAIL
    for mode in (first, SaveMode.APPEND, replacing):
        job = bucket.start(ctx, mode)
        commits = [bucket.run_task(ctx, job, task, bucket.contents(mode.value, task)) for task in range(2)]
        assert bucket.commit(ctx, job, commits).finished
    written = bucket.expected(replacing.value)
    assert sorted(bucket.visible().values()) == written
    dead = bucket.start(ctx)
    bucket.run_task(ctx, dead, 0, [b"dead"])
    bucket.value.abort_job(ctx, dead)
    assert bucket.debris() == []
    assert list(find_leftovers(ctx)) == []
    if committer in SAFE:  # the others show uncommitted data
        assert sorted(bucket.visible().values()) == written
    assert any(is_marker(info) for info in iter_objects(bucket.store, HOME, markers=True))


@pytest.mark.parametrize("committer", ["staging-directory", "staging-partitioned"])
def test_staging_takes_a_marked_partition_for_an_empty_one(committer: str) -> None:
    bucket, store = marked(committer)
    ctx = bucket.context(store=store)
    job = bucket.start(ctx, SaveMode.FAIL)
    bucket.commit(ctx, job, [bucket.run_task(ctx, job, 0, [b"0", b"1"])])
    assert sorted(bucket.visible().values()) == [b"0", b"1"]


@pytest.mark.parametrize("committer", sorted(set(COMMITTERS) - {"file-v1"}))
def test_recovery_of_a_dead_job(committer: str) -> None:
    bucket, store = marked(committer)
    ctx = bucket.context(store=store)
    job = bucket.start(ctx)
    bucket.run_task(ctx, job, 0, [b"dead"])
    report = recover(ctx)
    assert report.damaged == {}
    assert recover(ctx).damaged == {}
    assert bucket.debris() == []


def test_what_looks_at_a_destination() -> None:
    world = World("upload")
    ctx = world.context(store=InterceptedStore(world.store, Console(world.store)))
    assert read_snapshot(ctx).head == 0
    run_job(ctx, "new")
    assert sorted(world.store.get(HOME + file.path) for file in read_snapshot(ctx).files) == expected("new")
    assert len(read_history(ctx).decisions) == 1
    report = verify(ctx)
    assert report.verified and report.notes == [] and report.totals.files == len(expected("new"))


def test_a_directory_marker_with_content() -> None:
    """Hadoop's connector treats it as a directory, so no reader sees it; an overwrite leaves it."""
    world = World("upload")
    ctx = world.context()
    for key in (HOME, f"{HOME}day=0/"):
        world.store.put(key, b"bytes")
    run_job(ctx, "old", SaveMode.FAIL)
    run_job(ctx, "new", SaveMode.OVERWRITE)
    assert sorted(world.store.get(HOME + file.path) for file in read_snapshot(ctx).files) == expected("new")
    assert world.store.get(f"{HOME}day=0/") == b"bytes"
    world.store.put(f"{HOME}_holdfast/log/", b"bytes")
    with pytest.raises(CorruptDataError, match="not a record"):
        read_snapshot(ctx)


def test_what_was_a_marker_of_s3n_and_holds_bytes_is_data() -> None:
    world = World("upload")
    world.store.put(f"{HOME}day=0_$folder$", b"bytes")
    assert [file.path for file in read_snapshot(world.context()).files] == ["day=0_$folder$"]
