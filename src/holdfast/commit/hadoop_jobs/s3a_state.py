"""Inspect a job of Hadoop's S3A committers: which of its files are visible, pending or missing.

Hadoop does not mark files as its own. A visible file counts as the job's if its size matches the record and, in
addition, either its name carries the job's id, or its etag is the one that completing this upload yields: the MD5 sum
of the parts' MD5 sums.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from holdfast.commit import layout
from holdfast.commit.context import CommitContext
from holdfast.commit.hadoop.pending import SinglePending
from holdfast.commit.hadoop_jobs.hadoop_job import HadoopJob, carries, ids_in
from holdfast.commit.hadoop_jobs.s3a_jobs import load_record
from holdfast.commit.job_success import names_job
from holdfast.commit.pending_sets.completion import Upload, has_unlisted_upload
from holdfast.commit.success_file import SuccessReport, read_success
from holdfast.errors import CorruptDataError, NotFoundError
from holdfast.stores.base import ObjectInfo, iter_uploads, multipart


@dataclass(frozen=True, slots=True, kw_only=True)
class JobState:
    """The state of a job's files and uploads.

    Attributes:
        active_at_s: when the job last wrote a record or started one of its pending uploads, in seconds since the epoch.
        succeeded: whether ``_SUCCESS`` names this job.
        marked: whether a ``_SUCCESS`` exists, even one that names no job.
        damaged: the key of one unreadable record, and the reason; empty if all are readable. The uploads that the
            unreadable record names are unknown.
        commits: the uploads that the job's tasks have committed, in the order of the sets.
        pending, visible, missing: the uploads in `commits` that are still pending, those whose files are visible, and
            those for which neither is true.
        orphans: visible files that no set names, but whose names carry the job's id.
        uncommitted: uploads of attempts that have not committed, and uploads that no record names, but whose names
            carry the job's id.
    """

    active_at_s: float
    succeeded: bool = False
    marked: bool = False
    damaged: str = ""
    commits: tuple[SinglePending, ...] = field(default=(), repr=False)
    pending: tuple[SinglePending, ...] = field(default=(), repr=False)
    visible: tuple[SinglePending, ...] = field(default=(), repr=False)
    missing: tuple[SinglePending, ...] = field(default=(), repr=False)
    orphans: frozenset[str] = frozenset()
    uncommitted: frozenset[Upload] = field(default=frozenset(), repr=False)

    @property
    def uploads(self) -> frozenset[Upload]:
        """Return all pending uploads of the job."""
        return self.uncommitted | {(one.key, one.upload_id) for one in self.pending}

    @property
    def is_over(self) -> bool:
        """Check whether the job has ended: nothing is pending, and visible files, if there are any, are complete.

        Visible files are complete if ``_SUCCESS`` names the job, or if any ``_SUCCESS`` exists and no file is missing.
        """
        if self.damaged or self.pending or self.uncommitted:
            return False
        return self.succeeded or not self.visible or (self.marked and not self.missing)


def inspect_jobs(ctx: CommitContext, jobs: Sequence[HadoopJob]) -> list[JobState]:
    """Return the current state of each job.

    This only reads: the jobs' records, one listing of files and one listing of uploads.

    Raises:
        HoldfastError: a store call failed.
    """
    if not jobs:
        return []
    records = [_read(ctx, job) for job in jobs]
    paths = {one.key for found in records for one in found.committed}
    names = {job.job for job in jobs}
    listing = _Listing(
        marker=_marker(ctx),
        uploads={
            (one.key, one.upload_id): one.initiated_at_s for one in iter_uploads(multipart(ctx.store), ctx.prefix)
        },
        visible={
            info.key: info
            for path, info in layout.iter_visible(ctx.store, ctx.prefix)
            if info.key in paths or not names.isdisjoint(ids_in(path))
        },
    )
    return [_state_of(ctx, job, found, listing) for job, found in zip(jobs, records, strict=True)]


@dataclass(frozen=True, slots=True)
class _Records:
    """The uploads that a job's readable records name, and one unreadable record (empty if all are readable)."""

    committed: tuple[SinglePending, ...] = ()
    attempts: tuple[SinglePending, ...] = ()
    damaged: str = ""


@dataclass(frozen=True, slots=True)
class _Listing:
    """The state of the destination: ``_SUCCESS``, uploads and their start times, and files that may be a job's."""

    marker: SuccessReport | None
    uploads: dict[Upload, float]
    visible: dict[str, ObjectInfo]


def _read(ctx: CommitContext, job: HadoopJob) -> _Records:
    damaged: list[str] = []

    def load(key: str) -> tuple[SinglePending, ...]:
        try:
            return load_record(ctx, job, key)
        except NotFoundError:
            return ()  # the job is running, or another process is ending it
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
        return {}  # it exists and names no job


def _state_of(ctx: CommitContext, job: HadoopJob, records: _Records, listing: _Listing) -> JobState:
    pending, visible, missing = [], [], []
    for one in records.committed:
        if (one.key, one.upload_id) in listing.uploads:
            pending.append(one)
        elif _is_visible(job, one, listing.visible.get(one.key)):
            visible.append(one)
        elif has_unlisted_upload(ctx, one):
            pending.append(one)
        else:
            missing.append(one)
    committed = {(one.key, one.upload_id) for one in records.committed}
    uncommitted = {upload for upload in listing.uploads if carries(job.job, upload[0])} - committed
    uncommitted |= {(one.key, one.upload_id) for one in records.attempts if _is_pending(ctx, one, listing)}
    started = [listing.uploads.get(upload, 0.0) for upload in uncommitted | committed]
    paths = {one.key for one in records.committed}
    return JobState(
        active_at_s=max(job.active_at_s, *started) if started else job.active_at_s,
        succeeded=names_job(listing.marker, job.job),
        marked=listing.marker is not None,
        damaged=records.damaged,
        commits=records.committed,
        pending=tuple(pending),
        visible=tuple(visible),
        missing=tuple(missing),
        orphans=frozenset(key for key in listing.visible if carries(job.job, key) and key not in paths),
        uncommitted=frozenset(uncommitted),
    )


def recorded_uploads(ctx: CommitContext, job: HadoopJob) -> set[Upload]:
    """Return the uploads that the job's readable records name, whether or not they are still pending."""

    def load(key: str) -> tuple[SinglePending, ...]:
        try:
            return load_record(ctx, job, key)
        except (CorruptDataError, NotFoundError):
            return ()  # the uploads that it named are unknown

    found = ctx.runner.map(load, (*job.sets, *job.attempts))
    return {(one.key, one.upload_id) for pendings in found for one in pendings}


def _is_visible(job: HadoopJob, pending: SinglePending, info: ObjectInfo | None) -> bool:
    if info is None or info.size_bytes != pending.size_bytes:
        return False
    return carries(job.job, pending.key) or info.etag == pending.completed_etag


def _is_pending(ctx: CommitContext, pending: SinglePending, listing: _Listing) -> bool:
    return (pending.key, pending.upload_id) in listing.uploads or has_unlisted_upload(ctx, pending)
