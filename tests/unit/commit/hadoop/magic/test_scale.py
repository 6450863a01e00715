"""Test ``magic`` at the size of Hadoop's TestDirectoryCommitterScale: 500 tasks, 10 files each, 101 parts per file."""

from __future__ import annotations

import tracemalloc
from collections.abc import Sequence

import pytest

from holdfast.commit.hadoop.completion import build_pending_record
from holdfast.commit.hadoop.magic.files import pendingset_path
from holdfast.commit.hadoop.pending import PendingSet, encode_pendingset
from holdfast.commit.ids import FileOwner, make_hadoop_attempt_id, new_attempt_id, spark_file_name
from holdfast.commit.records import FileEntry, JobRecord, TaskCommit, Totals
from holdfast.runtime import ThreadRunner
from holdfast.stores.base import ObjectInfo, Part
from holdfast.stores.interceptors import InterceptedStore
from holdfast.stores.memory import MemoryStore
from tests.unit.commit.attempts import HOME
from tests.unit.commit.committer_jobs import Bucket

TASKS, FILES, PARTS = 500, 10, 101


class Uploads(InterceptedStore):
    """A store that accepts every completion without keeping a byte: the test measures the committer, not the store."""

    def __init__(self, store: MemoryStore) -> None:
        super().__init__(store, lambda call, proceed: proceed())
        self.completed: dict[str, ObjectInfo] = {}

    def complete_upload(self, key: str, upload_id: str, parts: Sequence[Part]) -> ObjectInfo:
        assert len(parts) == PARTS
        self.completed[key] = ObjectInfo(key, sum(part.size_bytes for part in parts), "etag", 1.0)
        return self.completed[key]

    def head(self, key: str) -> ObjectInfo:
        return self.completed.get(key) or super().head(key)


def put_set(bucket: Bucket, job: JobRecord, task: int) -> tuple[TaskCommit, int]:
    """Return the pending set that a task of ten large files would have left, and its length."""
    ctx = bucket.context()
    owner = FileOwner(job.job, task, new_attempt_id(bucket.ids))
    commits = []
    for number in range(FILES):
        parts = tuple((f"{task:08x}{number:08x}{part:016x}", 8 << 20) for part in range(PARTS))
        entry = FileEntry(
            path=f"day={number}/{spark_file_name(owner, number, '.parquet')}",
            size_bytes=PARTS * (8 << 20),
            upload_id=f"{task:032x}{number:032x}",
            parts=parts,
        )
        commits.append(build_pending_record(ctx, entry, owner, uri="memory://bucket/x"))
    data = encode_pendingset(PendingSet(job_id=job.job, commits=tuple(commits), attempt=make_hadoop_attempt_id(owner)))
    bucket.store.put(HOME + pendingset_path(job.job, task), data)
    totals = Totals(files=FILES, size_bytes=FILES * PARTS * (8 << 20))
    return TaskCommit(job=job.job, task=task, attempt=owner.attempt, totals=totals), len(data)


@pytest.mark.slow
def test_a_large_job_is_committed_in_bounded_memory() -> None:
    """Scenario 65, HADOOP-16570: 5,000 files with 505,000 parts; memory holds some sets, not all."""
    bucket = Bucket("magic", runner=ThreadRunner(threads=4))
    job = bucket.start(bucket.context())
    commits, sizes = zip(*(put_set(bucket, job, task) for task in range(TASKS)), strict=True)
    store = Uploads(bucket.store)
    ctx = bucket.context(store=store)
    tracemalloc.start()
    try:
        outcome = bucket.commit(ctx, job, list(commits))
        _now, peak_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(store.completed) == outcome.totals.files == TASKS * FILES
    assert outcome.report is not None and len(outcome.report.filenames) == 100
    assert bucket.debris() == []
    # The encoded sets alone take four times as much; all of them decoded, forty times.
    assert peak_bytes < sum(sizes) / 4, f"{peak_bytes} bytes at the peak for {sum(sizes)} bytes of sets"
