"""What there is of a job of Hadoop's S3A committers: which of its files are visible, wait, or are neither.

Hadoop puts no mark of its own on a file. A visible one is taken for the job's if it has the size that the record tells,
and either its name carries the job, or its etag is the one that completing this very upload gives: the MD5 sum of the
sums of its parts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from holdfast.commit import layout
from holdfast.commit.context import CommitContext
from holdfast.commit.hadoop.pending import SinglePending
from holdfast.commit.hadoop_jobs.set_jobs import load_record
from holdfast.commit.hadoop_jobs.values import HadoopJob, carries, ids_in
from holdfast.commit.pending_sets.completion import waits_unlisted
from holdfast.commit.success_file import SuccessReport, read_success
from holdfast.errors import CorruptDataError, NotFoundError
from holdfast.stores.base import ObjectInfo, iter_uploads, multipart

__all__ = ["Found", "Upload", "look_at_sets", "recorded_uploads"]

Upload = tuple[str, str]
"""Key and upload id."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What there is of a job.

    Attributes:
        active_at_s: when it last wrote a record, or started one of the uploads that wait.
        succeeded: ``_SUCCESS`` is this job's.
        marked: there is a ``_SUCCESS``, whosever it is.
        damaged: a record that cannot be read and why, or empty; nobody can say what it names.
        commits: what its tasks have committed, in the order of the sets.
        waiting, written, missing: which of these wait, are visible, are neither.
        strangers: visible files whose names carry the job and which no set names.
        late: uploads of attempts that have not committed, and those whose names carry the job and no record names.
    """

    active_at_s: float
    succeeded: bool = False
    marked: bool = False
    damaged: str = ""
    commits: tuple[SinglePending, ...] = field(default=(), repr=False)
    waiting: tuple[SinglePending, ...] = field(default=(), repr=False)
    written: tuple[SinglePending, ...] = field(default=(), repr=False)
    missing: tuple[SinglePending, ...] = field(default=(), repr=False)
    strangers: frozenset[str] = frozenset()
    late: frozenset[Upload] = field(default=frozenset(), repr=False)

    @property
    def uploads(self) -> frozenset[Upload]:
        """All pending uploads of the job."""
        return self.late | {(one.key, one.upload_id) for one in self.waiting}

    @property
    def is_over(self) -> bool:
        """Whether it is through, as far as it ever will be: nothing waits, and nobody misses its marker."""
        if self.damaged or self.waiting or self.late:
            return False
        return self.succeeded or not self.written or (self.marked and not self.missing)


def look_at_sets(ctx: CommitContext, jobs: Sequence[HadoopJob]) -> list[Found]:
    """What there is of each job now. Reads only: its records, and one listing of files and of uploads for all jobs.

    Raises:
        HoldfastError: of the store.
    """
    if not jobs:
        return []
    records = [_read(ctx, job) for job in jobs]
    paths = {one.key for found in records for one in found.committed}
    names = {job.job for job in jobs}
    sight = _Sight(
        marker=_marker(ctx),
        outstanding={
            (one.key, one.upload_id): one.initiated_at_s for one in iter_uploads(multipart(ctx.store), ctx.prefix)
        },
        visible={
            info.key: info
            for path, info in layout.iter_visible(ctx.store, ctx.prefix)
            if info.key in paths or not names.isdisjoint(ids_in(path))
        },
    )
    return [_look(ctx, job, found, sight) for job, found in zip(jobs, records, strict=True)]


@dataclass(frozen=True, slots=True)
class _Records:
    """What a job's readable records name; and one that cannot be read, or empty."""

    committed: tuple[SinglePending, ...] = ()
    attempts: tuple[SinglePending, ...] = ()
    damaged: str = ""


@dataclass(frozen=True, slots=True)
class _Sight:
    """What is at the destination: ``_SUCCESS``, uploads and when they were started, files that may be of the jobs."""

    marker: SuccessReport | None
    outstanding: dict[Upload, float]
    visible: dict[str, ObjectInfo]


def _read(ctx: CommitContext, job: HadoopJob) -> _Records:
    damaged: list[str] = []

    def load(key: str) -> tuple[SinglePending, ...]:
        try:
            return load_record(ctx, job, key)
        except NotFoundError:
            return ()  # the job goes on, or is being ended
        except CorruptDataError as error:
            damaged.append(f"{key}: {error.variables.get('reason', error.message)}")
            return ()

    committed = [one for found in ctx.runner.map(load, job.sets) for one in found]
    attempts = [one for found in ctx.runner.map(load, job.attempts) for one in found]
    return _Records(tuple(committed), tuple(attempts), min(damaged, default=""))


def _marker(ctx: CommitContext) -> SuccessReport | None:
    try:
        return read_success(ctx)
    except CorruptDataError:
        return {}  # there is one, and it names no job


def _look(ctx: CommitContext, job: HadoopJob, records: _Records, sight: _Sight) -> Found:
    waiting, written, missing = [], [], []
    for one in records.committed:
        if (one.key, one.upload_id) in sight.outstanding:
            waiting.append(one)
        elif _is_written(job, one, sight.visible.get(one.key)):
            written.append(one)
        elif waits_unlisted(ctx, one):
            waiting.append(one)
        else:
            missing.append(one)
    committed = {(one.key, one.upload_id) for one in records.committed}
    late = {upload for upload in sight.outstanding if carries(job.job, upload[0])} - committed
    late |= {(one.key, one.upload_id) for one in records.attempts if _waits(ctx, one, sight)}
    started = [sight.outstanding.get(upload, 0.0) for upload in late | committed]
    paths = {one.key for one in records.committed}
    return Found(
        active_at_s=max(job.active_at_s, *started) if started else job.active_at_s,
        succeeded=sight.marker is not None and sight.marker.get("jobId") == job.job,
        marked=sight.marker is not None,
        damaged=records.damaged,
        commits=records.committed,
        waiting=tuple(waiting),
        written=tuple(written),
        missing=tuple(missing),
        strangers=frozenset(key for key in sight.visible if carries(job.job, key) and key not in paths),
        late=frozenset(late),
    )


def recorded_uploads(ctx: CommitContext, job: HadoopJob) -> set[Upload]:
    """What the job's readable records name, whether it waits or not."""

    def load(key: str) -> tuple[SinglePending, ...]:
        try:
            return load_record(ctx, job, key)
        except (CorruptDataError, NotFoundError):
            return ()  # nobody can say what it named

    found = ctx.runner.map(load, (*job.sets, *job.attempts))
    return {(one.key, one.upload_id) for pendings in found for one in pendings}


def _is_written(job: HadoopJob, pending: SinglePending, info: ObjectInfo | None) -> bool:
    if info is None or info.size_bytes != pending.size_bytes:
        return False
    return carries(job.job, pending.key) or info.etag == pending.completed_etag


def _waits(ctx: CommitContext, pending: SinglePending, sight: _Sight) -> bool:
    return (pending.key, pending.upload_id) in sight.outstanding or waits_unlisted(ctx, pending)
