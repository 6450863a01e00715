"""Where `staging-*` keeps its work: a task's files on its machine, pending sets in a directory that all machines share.

    <scratch>/<job>/<attempt>/<path>                                         a task's files until it commits
    <shared>/holdfast-staging/<job>/job.json                                 written first; deleted with all the rest
    <shared>/holdfast-staging/<job>/_temporary/0/_temporary/<attempt>/…      an attempt's pending set
    <shared>/holdfast-staging/<job>/_temporary/0/<task>/uploads.pendingset   committed, by the algorithm of `file-v1`

Sources: paper 000, VI.1 and Table II; XIV.C.2: the job's own id keeps two jobs of one second apart (SPARK-33402).
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import replace

from holdfast.commit.attempt_names import attempt_name
from holdfast.commit.codec import decode_job, encode_job
from holdfast.commit.context import CommitContext, Place
from holdfast.commit.file_output.layout import attempt_dir
from holdfast.commit.file_output.v1 import list_v1_tasks
from holdfast.commit.hadoop.pending import PendingSet, decode_pendingset
from holdfast.commit.ids import FileOwner, JobId, is_job_id
from holdfast.commit.measure import Measure
from holdfast.commit.pending_sets.completion import bucket_name
from holdfast.commit.records import JobRecord
from holdfast.errors import CorruptDataError, InvalidRequestError, NotFoundError
from holdfast.stores.base import iter_objects

__all__ = [
    "announce_job",
    "find_jobs",
    "list_ended_jobs",
    "list_pendingsets",
    "list_saved_pendingsets",
    "load_pendingset",
    "pendingset_path",
    "require_job",
    "scratch_context",
    "scratch_dir",
    "shared_context",
    "shared_place",
    "staged_jobs",
    "staging_context",
]

_STAGING = "holdfast-staging/"
_RECORD = "job.json"
_PENDINGSET = "uploads.pendingset"
_DESTINATION = "destination"
_log = logging.getLogger(__name__)


# --- places -----------------------------------------------------------------------------------------------------------
def scratch_context(ctx: CommitContext) -> CommitContext:
    """This machine's own directory.

    Raises:
        InvalidRequestError: the context was opened without one.
    """
    if ctx.scratch is None:
        raise InvalidRequestError("staging needs a directory on each machine: open the context with staging=True")
    return ctx.at(ctx.scratch)


def scratch_dir(job: JobId, owner: FileOwner | None = None) -> str:
    """Where a job, or one of its attempts, keeps files on a machine."""
    return job if owner is None else f"{job}/{attempt_name(owner)}"


def shared_place(ctx: CommitContext) -> Place:
    """The directory that all machines share.

    Raises:
        InvalidRequestError: the context was opened without one.
    """
    if ctx.shared is None:
        raise InvalidRequestError(
            "staging needs a directory that all machines share: open the context with staging=True"
        )
    return ctx.shared


def staging_context(ctx: CommitContext) -> CommitContext:
    """The part of the shared directory in which each job has a directory, named by its id."""
    place = shared_place(ctx)
    return ctx.at(replace(place, prefix=place.prefix + _STAGING))


def shared_context(ctx: CommitContext, job: JobId) -> CommitContext:
    """The job's own part of the shared directory, in which `file-v1` works as if it were a destination."""
    staging = staging_context(ctx)
    return replace(staging, prefix=staging.key(f"{job}/"))


# --- the job's record -------------------------------------------------------------------------------------------------
def announce_job(ctx: CommitContext, job: JobRecord) -> None:
    """Write the job's record into the shared directory; tasks look for it there (`require_job`)."""
    shared = shared_context(ctx, job.job)
    record = replace(job, details={_DESTINATION: ctx.url})
    shared.store.put(shared.key(_RECORD), encode_job(record))


def require_job(ctx: CommitContext, job: JobId) -> None:
    """Go on only if the job's record is where the driver wrote it.

    Raises:
        NotFoundError: the job has ended; or this machine sees another directory than the driver does, so that whatever
            it put there would never be found.
    """
    shared = shared_context(ctx, job)
    try:
        shared.store.head(shared.key(_RECORD))
    except NotFoundError as error:
        raise NotFoundError(
            "the job is not in the shared directory: either it has ended, or not all machines share this directory; "
            "then name one that they share with shared_dir",
            directory=shared_place(ctx).url,
            job=job,
        ) from error


def staged_jobs(ctx: CommitContext) -> dict[JobId, float]:
    """Jobs in the shared directory, if there is one, whatever their destination, and when each last wrote there."""
    active: dict[JobId, float] = {}
    if ctx.shared is not None:
        staging = staging_context(ctx)
        for info in iter_objects(staging.store, staging.prefix):
            name = info.key[len(staging.prefix) :].partition("/")[0]
            if is_job_id(name):
                active[JobId(name)] = max(active.get(JobId(name), 0.0), info.modified_at_s)
    return active


def find_jobs(ctx: CommitContext) -> Iterator[tuple[CommitContext, JobRecord, float]]:
    """Jobs in the shared directory whose destination is this one or lies below it.

    Yields:
        The context of the job's own destination, its record, and when it last wrote there.
    """
    for job, at_s in sorted(staged_jobs(ctx).items()):
        staging = staging_context(ctx)
        key = staging.key(f"{job}/{_RECORD}")
        try:
            record = decode_job(key, staging.store.get(key))
        except NotFoundError:
            continue  # it ended meanwhile
        except CorruptDataError as error:
            _log.warning("a job in the shared directory cannot be read, its bytes are kept (%s)", error)
            continue
        below = _below(ctx, str(record.details.get(_DESTINATION, "")))
        if below is not None:
            yield below, record, at_s


def list_ended_jobs(ctx: CommitContext) -> Iterator[tuple[JobId, float]]:
    """Jobs of any destination that are in the shared directory without a record, and when each last wrote there.

    The record goes last, so such a job is over, and an attempt of it went on.
    """
    for job, at_s in sorted(staged_jobs(ctx).items()):
        staging = staging_context(ctx)
        try:
            staging.store.head(staging.key(f"{job}/{_RECORD}"))
        except NotFoundError:
            yield job, at_s


def _below(ctx: CommitContext, url: str) -> CommitContext | None:
    own, url = ctx.url.rstrip("/"), url.rstrip("/")
    if url == own:
        return ctx
    if not url.startswith(f"{own}/"):
        return None
    return replace(ctx, prefix=ctx.key(f"{url[len(own) + 1 :]}/"), url=url)


# --- pending sets -----------------------------------------------------------------------------------------------------
def pendingset_path(job: JobRecord, owner: FileOwner) -> str:
    """Where an attempt saves its pending set, relative to the job's part of the shared directory."""
    return f"{attempt_dir(job, owner)}/{_PENDINGSET}"


def list_pendingsets(ctx: CommitContext, job: JobRecord) -> list[str]:
    """The pending sets of committed tasks, relative to the job's part of the shared directory, by task."""
    return [f"{directory}/{_PENDINGSET}" for directory in list_v1_tasks(shared_context(ctx, job.job), job)]


def list_saved_pendingsets(ctx: CommitContext, job: JobId) -> list[str]:
    """All pending sets of a job, also those of attempts that have not committed."""
    shared = shared_context(ctx, job)
    found = (info.key[len(shared.prefix) :] for info in iter_objects(shared.store, shared.prefix))
    return [path for path in found if path.endswith(f"/{_PENDINGSET}")]


def load_pendingset(measure: Measure, job: JobId, path: str) -> PendingSet:
    """One pending set, checked.

    Raises:
        CorruptDataError: it cannot be read, or is another job's or destination's.
        NotFoundError: it is gone.
    """
    ctx = measure.ctx
    shared = shared_context(ctx, job)
    with measure.recorder.timed("op_load_manifest"):
        data = shared.store.get(shared.key(path))
        return decode_pendingset(path, data, bucket=bucket_name(ctx.url), prefix=ctx.prefix, job_id=job)
