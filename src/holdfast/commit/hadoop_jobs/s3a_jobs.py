"""Find the records of jobs of Hadoop's S3A committers.

    <destination>/__magic_job-<uuid>/job-<uuid>/00/task_….pendingset                     magic from 3.4 on
    <destination>/__magic_job-<uuid>/job-<uuid>/00/tasks/attempt_…/__base/<path>.pending
    <destination>/__magic/job-<uuid>/00/…                                                magic until 3.3
    <shared>/<user>/<uuid>/staging-uploads/_temporary/0/task_…                           directory, partitioned
    <shared>/<user>/<uuid>/staging-uploads/_temporary/0/_temporary/attempt_…

``<shared>`` is ``fs.s3a.committer.staging.tmp.path``. The directory of a staging job does not say which destination the
job writes to; its pending sets do. The layouts were recorded from runs of Hadoop 3.4.1 and 3.5.0, except for the older
magic directory, which follows Hadoop's documentation.
"""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from holdfast.commit.context import CommitContext
from holdfast.commit.hadoop.magic_path import MAGIC, MAGIC_JOB_PREFIX, is_pending, is_pendingset
from holdfast.commit.hadoop.pending import MAX_PENDINGSET_BYTES, SinglePending, decode_pending, decode_pendingset
from holdfast.commit.hadoop_jobs.hadoop_job import HadoopJob
from holdfast.commit.hadoop_names import file_job
from holdfast.commit.ids import is_job_id
from holdfast.commit.json_fields import guarded, require
from holdfast.commit.layout import job_of
from holdfast.commit.pending_sets.completion import bucket_name
from holdfast.errors import NotFoundError
from holdfast.stores.base import iter_objects

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
