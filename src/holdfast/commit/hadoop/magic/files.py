"""Name, write and read the records of a `magic` job.

    __magic_job-<job>/job-<job>/00/task_<job>_m_000003.pendingset     what a task committed
    __magic_job-<job>/job-<job>/00/tasks/attempt_<job>_m_000003_<attempt>/__base/<path>
                                                                      an attempt's marker, with its .pending next to it

Hadoop's magic committer has used the same paths since 3.4, under the UUID of the job. So Hadoop's job commit finds the
pending sets of Holdfast's tasks, and Holdfast's job commit finds those of Hadoop's tasks. ``00`` is the number of the
job attempt; a job has only one attempt. The records exist until the job ends.

Sources: paper 000, VI.A and XIV.C; paper 001, "Magic Committer", "A new/modified output stream for delayed PUT commits"
and "Job Commit"; HADOOP-17414; HADOOP-18797 for the name with the job in it; observed behavior of Hadoop 3.5.0."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator

from holdfast.commit import layout
from holdfast.commit.context import CommitContext, Measure
from holdfast.commit.hadoop.completion import Upload, abort_selected_uploads, bucket_name, build_pending_record
from holdfast.commit.hadoop.files import delete_dir
from holdfast.commit.hadoop.pending import (
    BASE,
    MARKER_LENGTH,
    PENDINGSET,
    PendingSet,
    SinglePending,
    decode_pending,
    decode_pendingset,
    encode_pending,
    final_path,
    is_magic_path,
    is_pending_path,
    is_pendingset_path,
    magic_dir,
    pending_path,
)
from holdfast.commit.hadoop.uri import encode_uri
from holdfast.commit.ids import (
    FileOwner,
    JobId,
    job_in_file_name,
    make_hadoop_attempt_id,
    make_hadoop_task_id,
    parse_hadoop_attempt_id,
)
from holdfast.commit.records import FileEntry
from holdfast.commit.sinks import PartBufferBudget, UploadSink
from holdfast.commit.task import ATTEMPT_METADATA
from holdfast.errors import CorruptDataError, InvalidRequestError, NotFoundError
from holdfast.runtime import BackgroundExecutor
from holdfast.stores.base import Support, iter_objects, multipart


def _job_attempt_dir(job: JobId) -> str:
    return f"{magic_dir(job)}/job-{job}/00"


def attempts_dir(job: JobId) -> str:
    """Return the directory of all attempts that have not committed."""
    return f"{_job_attempt_dir(job)}/tasks"


def attempt_dir(owner: FileOwner) -> str:
    """Return the directory of one attempt. It is deleted when the attempt has committed."""
    return f"{attempts_dir(owner.job)}/{make_hadoop_attempt_id(owner)}"


def magic_work_path(owner: FileOwner) -> str:
    """Return the directory in which a running attempt writes, relative to the destination.

    A file ``a/b`` below this directory becomes ``a/b`` of the destination when the job commits.
    """
    return f"{attempt_dir(owner)}/{BASE}"


def parse_attempt_in_path(path: str) -> FileOwner | None:
    """Return the attempt whose directory contains `path`, or None."""
    directory, _, rest = path.partition("/tasks/")
    owner = parse_hadoop_attempt_id(rest.partition("/")[0])
    return owner if owner is not None and directory == _job_attempt_dir(owner.job) else None


def pendingset_prefix(job: JobId) -> str:
    """Return the prefix of the paths of all of a job's pending sets. Nothing else has a path with this prefix."""
    return f"{_job_attempt_dir(job)}/task_"


def pendingset_path(job: JobId, task: int) -> str:
    """Return the path of a task's pending set. The task's attempts share it; the last writer wins (HADOOP-17258)."""
    return f"{_job_attempt_dir(job)}/{make_hadoop_task_id(job, task)}{PENDINGSET}"


def open_magic_file(
    measure: Measure, path: str, *, background: BackgroundExecutor, budget: PartBufferBudget
) -> UploadSink:
    """Open a sink for the file whose final path the magic `path` encodes.

    Guarantee: nothing becomes visible. When the sink is closed and all parts are uploaded, exactly two objects are put:
    an empty marker at `path`, for programs that check the file they have written, and then the upload's record next to
    it. No other request is made.

    Args:
        path: a magic path, relative to the destination.

    Raises:
        InvalidRequestError: the path is not magic, or its final path is hidden or outside the destination.

    Crash: if the record was not written yet, the upload is pending without a record. It is aborted with its job if the
    file's name carries the job's id; if not, ``holdfast uploads abort`` aborts it.
    """
    final = final_path(path)
    if not is_magic_path(path) or is_pending_path(path) or final == path or not layout.is_safe_path(final):
        raise InvalidRequestError(
            "a magic path stands for a file of the destination whose name does not start with '_' or '.': rename it",
            path=path,
        )
    ctx, owner = measure.ctx, parse_attempt_in_path(path)

    def save_pending_file(file: FileEntry) -> None:
        length = {MARKER_LENGTH: str(file.size_bytes)} if ctx.store.capabilities.metadata else None
        ctx.store.put(ctx.key(path), b"", metadata=length)
        measure.recorder.count("committer_magic_marker_put")
        pending = build_pending_record(ctx, file, owner, uri=encode_uri(ctx.url, path))
        ctx.store.put(ctx.key(pending_path(path)), encode_pending(pending))
        measure.recorder.count("committer_commits_created")

    measure.recorder.count("committer_magic_files_created")
    return UploadSink(
        multipart(ctx.store),
        ctx.key(final),
        final,
        background=background,
        budget=budget,
        base_part_bytes=ctx.settings.part_size_bytes,
        metadata={} if owner is None else {ATTEMPT_METADATA: owner.attempt},
        on_uploaded=save_pending_file,
    )


def iter_pending_paths(ctx: CommitContext, directory: str) -> Iterator[str]:
    """List the paths of the upload records below `directory`, relative to the destination."""
    for info in iter_objects(ctx.store, ctx.key(f"{directory}/")):
        if is_pending_path(info.key):
            yield info.key[len(ctx.prefix) :]


def load_upload_record(measure: Measure, job: JobId, path: str) -> SinglePending:
    """Load one upload record and check that its file lies in this destination. Sends one request.

    Raises:
        CorruptDataError: the record cannot be parsed, or belongs to another job.
        NotFoundError: the record does not exist.
    """
    ctx = measure.ctx
    with measure.recorder.time_block("committer_load_single_pending_file"):
        data = ctx.store.get(ctx.key(path))
        return decode_pending(path, data, bucket=bucket_name(ctx.url), prefix=ctx.prefix, job_id=job)


_log = logging.getLogger(__name__)


def find_pendingset_etags(ctx: CommitContext, job: JobId) -> dict[str, str]:
    """Return the etags of the job's pending sets by path relative to the destination, in the order of tasks."""
    found = iter_objects(ctx.store, ctx.key(pendingset_prefix(job)))
    return dict(sorted((info.key[len(ctx.prefix) :], info.etag) for info in found if is_pendingset_path(info.key)))


def list_pendingsets(ctx: CommitContext, job: JobId) -> list[str]:
    """Return the paths of the job's pending sets, relative to the destination, in the order of tasks."""
    return list(find_pendingset_etags(ctx, job))


def load_pendingset(measure: Measure, job: JobId, path: str, data: bytes | None = None) -> PendingSet:
    """Load and check one pending set.

    Args:
        data: the set's bytes, if the caller has them; None to read them from the store.

    Raises:
        CorruptDataError: the set cannot be parsed, or belongs to another job.
        NotFoundError: the set does not exist.
    """
    ctx = measure.ctx
    with measure.recorder.time_block("op_load_manifest"):
        if data is None:
            data = ctx.store.get(ctx.key(path))
        return decode_pendingset(path, data, bucket=bucket_name(ctx.url), prefix=ctx.prefix, job_id=job)


def clean_up_magic_job(measure: Measure, job: JobId, *, with_sets: bool = True) -> None:
    """Abort the job's pending uploads, then delete its magic directory. Idempotent (C10).

    The job's uploads are the uploads that its records name, and those whose file names carry its id. An upload is not
    found if the caller chose its file name and its record was never written.

    Args:
        with_sets: whether to abort even the uploads that tasks have committed; False after a job commit, which has
            completed all of them.

    Crash: some uploads are aborted, or some records deleted; run it again.
    """
    ctx = measure.ctx
    # MinIO does not list uploads by directory, so only the records name those of a file whose name the caller chose.
    lists = ctx.store.capabilities.lists_uploads is Support.YES
    recorded: set[Upload] | None = None

    def select_uploads(pending: set[Upload]) -> set[Upload]:
        nonlocal recorded
        own = {upload for upload in pending if job_in_file_name(upload[0]) == job}
        if recorded is not None:
            return own | (recorded & pending)
        recorded = _recorded_uploads(measure, job, with_sets) if pending != own or not lists else set()
        return own | (recorded & pending if lists else recorded)

    abort_selected_uploads(measure, select_uploads)
    delete_dir(ctx, magic_dir(job), unfinished=False)


def _recorded_uploads(measure: Measure, job: JobId, with_sets: bool) -> set[Upload]:
    """Return the uploads that the job's records name, apart from unreadable ones."""
    ctx = measure.ctx
    paths = [*iter_pending_paths(ctx, attempts_dir(job)), *(list_pendingsets(ctx, job) if with_sets else ())]
    return {(one.key, one.upload_id) for one in load_readable_uploads(measure, job, paths)}


def load_readable_uploads(measure: Measure, job: JobId, paths: Iterable[str]) -> list[SinglePending]:
    """Load the uploads that records name; skip records that are unreadable (paper 001, "Malicious …") or gone."""

    def load_uploads(path: str) -> tuple[SinglePending, ...]:
        try:
            if is_pendingset_path(path):
                return load_pendingset(measure, job, path).commits
            return (load_upload_record(measure, job, path),)
        except (CorruptDataError, NotFoundError) as error:
            _log.warning("a record of job %s could not be loaded, so its uploads are not aborted (%s)", job, error)
            return ()

    return [one for found in measure.ctx.runner.map(load_uploads, list(paths)) for one in found]
