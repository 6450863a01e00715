"""Where Hadoop's S3A committers keep the records of a job.

    <destination>/__magic_job-<uuid>/job-<uuid>/00/task_….pendingset                     magic from 3.4 on
    <destination>/__magic_job-<uuid>/job-<uuid>/00/tasks/attempt_…/__base/<path>.pending
    <destination>/__magic/job-<uuid>/00/…                                                magic until 3.3
    <shared>/<user>/<uuid>/staging-uploads/_temporary/0/task_…                           directory, partitioned
    <shared>/<user>/<uuid>/staging-uploads/_temporary/0/_temporary/attempt_…

``<shared>`` is ``fs.s3a.committer.staging.tmp.path``. A staging job says nowhere what its destination is; its pending
sets do. Recorder from 3.4.1 and 3.5.0; the older magic directory as Hadoop's documentation has it.
"""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from holdfast.commit.attempt_names import file_job
from holdfast.commit.context import CommitContext
from holdfast.commit.hadoop.magic_path import MAGIC, MAGIC_JOB_PREFIX, is_pending, is_pendingset
from holdfast.commit.hadoop.pending import MAX_PENDINGSET_BYTES, SinglePending, decode_pending, decode_pendingset
from holdfast.commit.hadoop_jobs.values import HadoopJob
from holdfast.commit.ids import is_job_id
from holdfast.commit.layout import job_of
from holdfast.commit.pending_sets.completion import bucket_name
from holdfast.errors import CorruptDataError, NotFoundError
from holdfast.stores.base import iter_objects

__all__ = ["find_set_jobs", "load_record"]

_MAGIC_DIR = re.compile(rf"({MAGIC_JOB_PREFIX}([^/]+)|{MAGIC}/(?:job-)?([^/]+))/(.*)", re.DOTALL)
_MAGIC_SET = re.compile(r"(?:.*/)?(\d+)/[^/]+")
_STAGED = re.compile(
    r"((?:.*/)?([^/]+))/staging-uploads/_temporary/(\d+)/(?:task_[^/]+|_temporary/(attempt_[^/]+))", re.DOTALL
)
_log = logging.getLogger(__name__)


@dataclass(slots=True)
class _Noted:
    """What a listing shows of one job, as it goes on."""

    job: str
    sets: list[str] = field(default_factory=list)
    attempts: list[str] = field(default_factory=list)
    starts: set[str] = field(default_factory=set)
    active_at_s: float = 0.0

    def finished(self, committer: str, home: CommitContext, directory: str) -> HadoopJob:
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


def find_set_jobs(ctx: CommitContext) -> Iterator[HadoopJob]:
    """Jobs of Hadoop's S3A committers on this destination; live ones are among them.

    Staging jobs are looked for in `CommitContext.shared`, if there is one.
    """
    if ctx.store.capabilities.multipart is None:
        return
    for directory, noted in sorted(_note_magic(ctx).items()):
        yield noted.finished("hadoop-magic", ctx, directory)
    if ctx.shared is None:
        return
    home = ctx.at(ctx.shared)
    for directory, noted in sorted(_note_staging(home).items()):
        found = noted.finished("hadoop-staging", home, directory)
        if any(_is_of(ctx, home, key) for key in (*found.sets, *found.attempts)):
            yield found


def _note_magic(ctx: CommitContext) -> dict[str, _Noted]:
    """By directory. A job with an id of ours is ours, whoever ran its tasks: `magic` finds it."""
    jobs: dict[str, _Noted] = {}
    for info in iter_objects(ctx.store, ctx.key(MAGIC), markers=True):
        match = _MAGIC_DIR.fullmatch(info.key[len(ctx.prefix) :])
        job = "" if match is None else match[2] or match[3]
        if match is None or is_job_id(job):
            continue
        noted = jobs.setdefault(match[1], _Noted(job))
        noted.active_at_s = max(noted.active_at_s, info.modified_at_s)
        in_job = _MAGIC_SET.fullmatch(match[4]) if "/tasks/" not in match[4] else None
        if in_job is not None and is_pendingset(info.key):
            noted.sets.append(info.key)
            noted.starts.add(in_job[1])
        elif in_job is None and is_pending(info.key):
            noted.attempts.append(info.key)
    return jobs


def _note_staging(home: CommitContext) -> dict[str, _Noted]:
    jobs: dict[str, _Noted] = {}
    for info in iter_objects(home.store, home.prefix):
        match = _STAGED.fullmatch(info.key[len(home.prefix) :])
        if match is None:
            continue
        noted = jobs.setdefault(match[1], _Noted(match[2]))
        noted.active_at_s = max(noted.active_at_s, info.modified_at_s)
        if match[4] is None:
            noted.sets.append(info.key)
            noted.starts.add(match[3])
        else:
            noted.attempts.append(info.key)
    return jobs


def _is_of(ctx: CommitContext, home: CommitContext, key: str) -> bool:
    """Whether a staged set names an upload of this destination; no more is checked here."""
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
        _log.warning("a staged set cannot be read, its bytes are kept: %s (%s)", key, error)
        return False


def load_record(ctx: CommitContext, job: HadoopJob, key: str) -> tuple[SinglePending, ...]:
    """The pending uploads of one record, checked: each can only make a file of this destination, and none of ours.

    Raises:
        CorruptDataError: it cannot be read, or is another job's or destination's.
        NotFoundError: it is gone.
    """
    data = job.home.store.get(key)
    bucket = bucket_name(ctx.url)
    if is_pending(key):
        found: tuple[SinglePending, ...] = (
            decode_pending(key, data, bucket=bucket, prefix=ctx.prefix, job_id=job.job),
        )
    else:
        found = decode_pendingset(key, data, bucket=bucket, prefix=ctx.prefix, job_id=job.job).commits
    # A record that somebody has forged must not make us end an upload of a job of ours (C7).
    ours = [one.key for one in found if job_of(one.key) is not None or file_job(one.key) is not None]
    if ours:
        raise CorruptDataError(
            "a stored record cannot be read; its bytes are kept: report them, or restore the record",
            key=key,
            reason=f"it names a file of a job of Holdfast: {ours[0]}",
        )
    return found
