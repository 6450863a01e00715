"""Find the records of jobs of Hadoop's S3A committers, and which of their files are visible, pending or missing.

    <destination>/__magic_job-<uuid>/job-<uuid>/00/task_….pendingset                     magic from 3.4 on
    <destination>/__magic_job-<uuid>/job-<uuid>/00/tasks/attempt_…/__base/<path>.pending
    <destination>/__magic/job-<uuid>/00/…                                                magic until 3.3
    <shared>/<user>/<uuid>/staging-uploads/_temporary/0/task_…                           directory, partitioned
    <shared>/<user>/<uuid>/staging-uploads/_temporary/0/_temporary/attempt_…

``<shared>`` is ``fs.s3a.committer.staging.tmp.path``. The directory of a staging job does not say which destination the
job writes to; its pending sets do. The layouts were recorded from runs of Hadoop 3.4.1 and 3.5.0, except for the older
magic directory, which follows Hadoop's documentation.

Hadoop does not mark files as its own. A visible file counts as the job's if its size matches the record and, in
addition, either its name carries the job's id, or its etag is the one that completing this upload yields: the MD5 sum
of the parts' MD5 sums."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from holdfast.commit import layout
from holdfast.commit.codec import guarded, require
from holdfast.commit.context import CommitContext
from holdfast.commit.hadoop.completion import Upload, bucket_name, has_unlisted_upload
from holdfast.commit.hadoop.dead_jobs.hadoop_job import HadoopJob, carries, ids_in
from holdfast.commit.hadoop.pending import (
    MAGIC,
    MAGIC_JOB_PREFIX,
    MAX_PENDINGSET_BYTES,
    SinglePending,
    decode_pending,
    decode_pendingset,
    is_pending,
    is_pendingset,
)
from holdfast.commit.ids import file_job, is_job_id
from holdfast.commit.layout import job_of
from holdfast.commit.success_file import SuccessReport, names_job, read_success
from holdfast.errors import CorruptDataError, NotFoundError
from holdfast.stores.base import ObjectInfo, iter_objects, iter_uploads, multipart

_MAGIC_DIR = re.compile(rf"({MAGIC_JOB_PREFIX}([^/]+)|{MAGIC}/(?:job-)?([^/]+))/(.*)", re.DOTALL)
_MAGIC_SET = re.compile(r"(?:.*/)?(\d+)/[^/]+")
_STAGED = re.compile(
    r"((?:.*/)?([^/]+))/staging-uploads/_temporary/(\d+)/(?:task_[^/]+|_temporary/(attempt_[^/]+))", re.DOTALL
)
_log = logging.getLogger(__name__)


@dataclass(slots=True)
class _JobListing:
    """The facts about a job that the keys in a listing show; added key by key."""

    job: str
    sets: list[str] = field(default_factory=list)
    attempts: list[str] = field(default_factory=list)
    starts: set[str] = field(default_factory=set)
    active_at_s: float = 0.0

    def to_job(self, committer: str, home: CommitContext, directory: str) -> HadoopJob:
        return HadoopJob(
            committer=committer,
            job=self.job,
            home=home,
            directory=directory,
            sets=tuple(sorted(self.sets)),
            attempts=tuple(sorted(self.attempts)),
            starts=len(self.starts),
            active_at_s=self.active_at_s,
        )


def find_s3a_jobs(ctx: CommitContext) -> Iterator[HadoopJob]:
    """List the jobs of Hadoop's S3A committers on this destination, including live jobs.

    Staging jobs are found in the shared directory of `CommitContext.staging`, if the context has one.
    """
    if ctx.store.capabilities.multipart is None:
        return
    for directory, noted in sorted(_list_magic(ctx).items()):
        yield noted.to_job("hadoop-magic", ctx, directory)
    if ctx.staging is None:
        return
    home = ctx.at(ctx.staging.shared)
    for directory, noted in sorted(_list_staging(home).items()):
        found = noted.to_job("hadoop-staging", home, directory)
        if any(_is_of(ctx, home, key) for key in (*found.sets, *found.attempts)):
            yield found


def _list_magic(ctx: CommitContext) -> dict[str, _JobListing]:
    """List jobs by directory.

    Skip jobs whose ids Holdfast generated: Holdfast's own committer `magic` recovers them, even if Hadoop ran their
    tasks.
    """
    jobs: dict[str, _JobListing] = {}
    for info in iter_objects(ctx.store, ctx.key(MAGIC), markers=True):
        match = _MAGIC_DIR.fullmatch(info.key[len(ctx.prefix) :])
        job = "" if match is None else match[2] or match[3]
        if match is None or is_job_id(job):
            continue
        noted = jobs.setdefault(match[1], _JobListing(job))
        noted.active_at_s = max(noted.active_at_s, info.modified_at_s)
        in_job = _MAGIC_SET.fullmatch(match[4]) if "/tasks/" not in match[4] else None
        if in_job is not None and is_pendingset(info.key):
            noted.sets.append(info.key)
            noted.starts.add(in_job[1])
        elif in_job is None and is_pending(info.key):
            noted.attempts.append(info.key)
    return jobs


def _list_staging(home: CommitContext) -> dict[str, _JobListing]:
    jobs: dict[str, _JobListing] = {}
    for info in iter_objects(home.store, home.prefix):
        match = _STAGED.fullmatch(info.key[len(home.prefix) :])
        if match is None:
            continue
        noted = jobs.setdefault(match[1], _JobListing(match[2]))
        noted.active_at_s = max(noted.active_at_s, info.modified_at_s)
        if match[4] is None:
            noted.sets.append(info.key)
            noted.starts.add(match[3])
        else:
            noted.attempts.append(info.key)
    return jobs


def _is_of(ctx: CommitContext, home: CommitContext, key: str) -> bool:
    """Check whether a staging job's pending set names an upload to this destination; validate nothing else."""
    try:
        data = home.store.get(key)
        commits = json.loads(data)["commits"] if len(data) <= MAX_PENDINGSET_BYTES else ()
        bucket = bucket_name(ctx.url)
        return any(
            one.get("bucket") == bucket and str(one.get("destinationKey", "")).startswith(ctx.prefix) for one in commits
        )
    except NotFoundError:
        return False  # the job has just ended
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        _log.warning("a staged pending set cannot be parsed and is left as it is: %s (%s)", key, error)
        return False


def load_record(ctx: CommitContext, job: HadoopJob, key: str) -> tuple[SinglePending, ...]:
    """Load one record's uploads, and check that each belongs to this destination and to no Holdfast job.

    Raises:
        CorruptDataError: the record cannot be parsed, or belongs to another job or destination.
        NotFoundError: the record does not exist.
    """
    data = job.home.store.get(key)
    bucket = bucket_name(ctx.url)
    if is_pending(key):
        found: tuple[SinglePending, ...] = (
            decode_pending(key, data, bucket=bucket, prefix=ctx.prefix, job_id=job.job),
        )
    else:
        found = decode_pendingset(key, data, bucket=bucket, prefix=ctx.prefix, job_id=job.job).commits

    def check_owners() -> None:
        # A forged record must not make recovery end an upload of a Holdfast job (C7).
        own = [one.key for one in found if job_of(one.key) is not None or file_job(one.key) is not None]
        require(not own, f"it names a file of a Holdfast job: {own[:1]}")

    guarded(key, check_owners)
    return found


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
