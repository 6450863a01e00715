"""Name and access the data of `staging-*`: files on each task's machine, and pending sets in a shared directory.

    <scratch>/<job>/<attempt>/<path>                                         a task's files until it commits
    <shared>/holdfast-staging/<job>/job.json                                 written first; deleted with all the rest
    <shared>/holdfast-staging/<job>/_temporary/0/_temporary/<attempt>/…      an attempt's pending set
    <shared>/holdfast-staging/<job>/_temporary/0/<task>/uploads.pendingset   committed, by the algorithm of `file-v1`

Sources: paper 000, VI.1 and Table II; XIV.C.2 for the job id, which distinguishes two jobs that started in the same
second (SPARK-33402).
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import replace

from holdfast.commit.codec import decode_job, encode_job
from holdfast.commit.context import CommitContext, Measure, Place, StagingPlaces
from holdfast.commit.hadoop.completion import bucket_name
from holdfast.commit.hadoop.file_output.committers import list_v1_tasks
from holdfast.commit.hadoop.file_output.directories import attempt_dir
from holdfast.commit.hadoop.files import read_listed_file
from holdfast.commit.hadoop.pending import PendingSet, decode_pendingset
from holdfast.commit.ids import FileOwner, JobId, is_job_id, make_hadoop_attempt_id
from holdfast.commit.records import JobRecord
from holdfast.errors import CorruptDataError, InvalidRequestError, NotFoundError
from holdfast.stores.base import iter_objects

_STAGING = "holdfast-staging/"
_RECORD = "job.json"
_PENDINGSET = "uploads.pendingset"
_DESTINATION = "destination"
_log = logging.getLogger(__name__)


# --- places -----------------------------------------------------------------------------------------------------------
def _require_staging_places(ctx: CommitContext) -> StagingPlaces:
    if ctx.staging is None:
        raise InvalidRequestError(
            "staging needs a directory on each machine and one that all machines share: open the context with "
            "staging=True"
        )
    return ctx.staging


def scratch_context(ctx: CommitContext) -> CommitContext:
    """Return the context of this machine's scratch directory.

    Raises:
        InvalidRequestError: The context was opened without staging directories.
    """
    return ctx.at(_require_staging_places(ctx).scratch)


def scratch_dir(job: JobId, owner: FileOwner | None = None) -> str:
    """Return the scratch directory of a job, or of one of its attempts."""
    return job if owner is None else f"{job}/{make_hadoop_attempt_id(owner)}"


def shared_place(ctx: CommitContext) -> Place:
    """Return the directory that all machines share.

    Raises:
        InvalidRequestError: The context was opened without staging directories.
    """
    return _require_staging_places(ctx).shared


def staging_context(ctx: CommitContext) -> CommitContext:
    """Return the context of ``<shared>/holdfast-staging/``, which contains one directory per job."""
    place = shared_place(ctx)
    return ctx.at(replace(place, prefix=place.prefix + _STAGING))


def staged_job_context(ctx: CommitContext, job: JobId) -> CommitContext:
    """Return the context of ``<shared>/holdfast-staging/<job>/``, which `file-v1` treats as a destination."""
    staging = staging_context(ctx)
    return replace(staging, prefix=staging.key(f"{job}/"))


# --- the job's record -------------------------------------------------------------------------------------------------
def announce_job(ctx: CommitContext, job: JobRecord) -> None:
    """Write the job's record to the shared directory, where tasks check for it (`require_job_record`)."""
    shared = staged_job_context(ctx, job.job)
    record = replace(job, details={_DESTINATION: ctx.url})
    shared.store.put(shared.key(_RECORD), encode_job(record))


def require_job_record(ctx: CommitContext, job: JobId) -> None:
    """Check that this machine sees the job's record in the shared directory, where the driver wrote it.

    Raises:
        NotFoundError: the job has ended, or this machine's directory is not the driver's, so that the driver would
            never find the pending sets of its tasks.
    """
    shared = staged_job_context(ctx, job)
    try:
        shared.store.head(shared.key(_RECORD))
    except NotFoundError as error:
        raise NotFoundError(
            "the job is not in the shared directory: it has ended, or not all machines share this directory; "
            "then set shared_dir to one that they share",
            directory=shared_place(ctx).url,
            job=job,
        ) from error


def list_staged_jobs(ctx: CommitContext) -> Iterator[tuple[JobId, float, JobRecord | None]]:
    """List the jobs in the shared directory, for any destination, each with the time of its last write there, and its
    record.

    A job's record is deleted last: a job without one (None) is over, and one of its attempts continued to write. A job
    whose record is damaged is logged and left out.
    """
    if ctx.staging is None:
        return
    staging = staging_context(ctx)
    active: dict[JobId, float] = {}
    for info in iter_objects(staging.store, staging.prefix):
        name = info.key[len(staging.prefix) :].partition("/")[0]
        if is_job_id(name):
            active[JobId(name)] = max(active.get(JobId(name), 0.0), info.modified_at_s)
    for job, at_s in sorted(active.items()):
        key = staging.key(f"{job}/{_RECORD}")
        try:
            yield job, at_s, decode_job(key, staging.store.get(key))
        except NotFoundError:
            yield job, at_s, None
        except CorruptDataError as error:
            _log.warning(
                "the record of a job in the shared directory cannot be parsed and is left as it is (%s)", error
            )


def job_destination(ctx: CommitContext, job: JobRecord) -> CommitContext | None:
    """Return the context of a staged job's destination; None if it lies outside the destination of `ctx`."""
    return _context_below(ctx, str(job.details.get(_DESTINATION, "")))


def _context_below(ctx: CommitContext, url: str) -> CommitContext | None:
    own, url = ctx.url.rstrip("/"), url.rstrip("/")
    if url == own:
        return ctx
    if not url.startswith(f"{own}/"):
        return None
    return replace(ctx, prefix=ctx.key(f"{url[len(own) + 1 :]}/"), url=url)


# --- pending sets -----------------------------------------------------------------------------------------------------
def pendingset_path(job: JobRecord, owner: FileOwner) -> str:
    """Return the path of an attempt's pending set, relative to the job's part of the shared directory."""
    return f"{attempt_dir(job, owner)}/{_PENDINGSET}"


def list_pendingsets(ctx: CommitContext, job: JobRecord) -> list[str]:
    """Return the paths of the pending sets of committed tasks, in the job's part of the shared directory."""
    return [f"{directory}/{_PENDINGSET}" for directory in list_v1_tasks(staged_job_context(ctx, job.job), job)]


def list_saved_pendingsets(ctx: CommitContext, job: JobId) -> list[str]:
    """Return the paths of all pending sets of a job, including those of uncommitted attempts."""
    shared = staged_job_context(ctx, job)
    found = (info.key[len(shared.prefix) :] for info in iter_objects(shared.store, shared.prefix))
    return [path for path in found if path.endswith(f"/{_PENDINGSET}")]


def load_pendingset(measure: Measure, job: JobId, path: str) -> PendingSet:
    """Load and check one pending set.

    Raises:
        CorruptDataError: the set cannot be parsed, or belongs to another job or destination.
        NotFoundError: the set does not exist.
    """
    ctx = measure.ctx
    shared = staged_job_context(ctx, job)
    with measure.recorder.time_block("op_load_manifest"):
        data = read_listed_file(shared, path, "pending set")
        return decode_pendingset(path, data, bucket=bucket_name(ctx.url), prefix=ctx.prefix, job_id=job)
