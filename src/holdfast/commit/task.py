"""Build the parts of a task's report."""

from __future__ import annotations

import contextlib
import logging
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from holdfast.commit import layout
from holdfast.commit.context import CommitContext, Measure
from holdfast.commit.ids import AttemptId, FileOwner, JobId, file_owner, job_in_file_name, new_attempt_id
from holdfast.commit.intents import Intents
from holdfast.commit.layout import is_hidden
from holdfast.commit.records import FileEntry, JobRecord, TaskCommit, Totals
from holdfast.commit.sinks import FileSink, PartBufferBudget, UploadSink
from holdfast.errors import HoldfastError, InvalidRequestError, NotFoundError, OutcomeUnknownError
from holdfast.runtime import BackgroundExecutor
from holdfast.stores.base import Complete, Part, Require, UploadInfo, as_transactional, iter_uploads, multipart
from holdfast.wording import is_unicode


def compress_record(ctx: CommitContext, data: bytes) -> bytes | None:
    """Compress a record of the attempt for its commit message; return None if it is too large."""
    packed = zlib.compress(data, level=1)  # names repeat, so records shrink to a third or less
    return packed if len(packed) <= ctx.settings.inline_manifest_bytes else None


def count_totals(files: tuple[FileEntry, ...]) -> Totals:
    """Count an attempt's files, their bytes and their rows."""
    totals = Totals()
    for file in files:
        totals += Totals(files=1, size_bytes=file.size_bytes, rows=file.rows)
    return totals


def make_totals_commit(owner: FileOwner, files: tuple[FileEntry, ...]) -> TaskCommit:
    """Return an attempt's report with only counts in it, for a committer whose driver finds the files itself."""
    return TaskCommit(job=owner.job, task=owner.task, attempt=owner.attempt, totals=count_totals(files))


def sum_reported_totals(commits: Sequence[TaskCommit]) -> Totals:
    """Return the sum of the totals that tasks reported. Use this sum only for reports, never for a decision."""
    totals = Totals()
    for commit in commits:
        totals += commit.totals
    return totals


_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptContext:
    """The context that every step of an attempt receives.

    Attributes:
        ctx: the destination; calls of its store are measured.
        owner: the ids of the job, the task and the attempt.
        background: runs slow calls in the background.
        budget: limits the buffered parts of all files of the attempt.
        intents: announces uploads to names that do not contain the job's id.
    """

    ctx: CommitContext
    job: JobRecord
    owner: FileOwner
    background: BackgroundExecutor
    budget: PartBufferBudget
    intents: Intents
    measure: Measure


class TaskSteps(Protocol):
    """The steps of a task attempt in which committers differ: see `holdfast.commit.committer.Committer`."""

    @property
    def name_file(self) -> Callable[[FileOwner, int, str], str]: ...
    @property
    def open_file(self) -> Callable[[AttemptContext, str], FileSink]: ...
    @property
    def commit_task(self) -> Callable[[AttemptContext, tuple[FileEntry, ...]], TaskCommit]: ...
    @property
    def abort_task(self) -> Callable[[CommitContext, JobRecord, FileOwner], None]: ...


class TaskAttempt:
    """One attempt at one task, in one process.

    Use it as a context manager: leaving it with an error, or without `commit`, discards everything that it wrote.

    Crash: leaves pending uploads, or files in the job's folder. Their paths contain the job's id, or, in `two_phase`,
    the uploads are announced.
    """

    def __init__(self, ctx: CommitContext, job: JobRecord, task: int, steps: TaskSteps) -> None:
        measure = Measure(ctx)
        self._steps = steps
        owner, background = FileOwner(job.job, task, new_attempt_id(ctx.ids)), ctx.runner.background()
        self._scope = AttemptContext(
            ctx=measure.ctx,
            job=job,
            owner=owner,
            background=background,
            budget=PartBufferBudget(ctx.settings.part_buffer_bytes),
            intents=Intents(measure.ctx, owner, background),
            measure=measure,
        )
        self._sinks: dict[str, FileSink] = {}
        self._rows: dict[str, int] = {}
        self._named = 0
        self._committed = False
        self._failure: HoldfastError | None = None
        self._left_behind = False

    def __enter__(self) -> TaskAttempt:
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        if self._committed:
            self._scope.background.close()
        else:
            self.abort()

    @property
    def owner(self) -> FileOwner:
        """Return the ids of the job, the task and the attempt."""
        return self._scope.owner

    def file_name(self, extension: str) -> str:
        """Return a new base name for a file of the attempt, such as ``part-00003-<job>-….snappy.parquet``."""
        name = self._steps.name_file(self._scope.owner, self._named, extension)
        self._named += 1
        return name

    def open(self, path: str) -> FileSink:
        """Open a new file of this attempt.

        Args:
            path: target relative to the destination. Its last segment is a name from `file_name`, or a name that the
                caller chose.

        Raises:
            InvalidRequestError: the path is outside the destination, is hidden, is no valid Unicode, or names another
                attempt.
        """
        if not is_unicode(path):
            raise InvalidRequestError("the path of a file must be valid Unicode: change it", path=path)
        if not layout.is_safe_path(path) or file_owner(path) not in (None, self._scope.owner):
            raise InvalidRequestError(
                "a task writes below its destination, to names that do not start with '_' or '.' and do not end in "
                "'._COPYING_', because readers skip those: rename the file, or the value that names the partition",
                path=path,
            )
        if path in self._sinks:
            raise InvalidRequestError("the attempt already has a file with this name: choose another name", path=path)
        sink = self._steps.open_file(self._scope, path)
        self._sinks[path] = sink
        return sink

    def drop(self, path: str) -> None:
        """Discard an open file of the attempt, so that its name can be used again.

        Guarantee: the file is not part of the attempt's output. What the store fails to delete is left for the job's
        cleanup.
        """
        sink = self._sinks.pop(path)
        self._rows.pop(path, None)
        with contextlib.suppress(Exception):  # `commit` raises it again
            self._scope.background.drain()  # a part in flight would not find its upload
        if not discard_sink(sink):
            self._left_behind = True

    def make_commit_fail(self, error: HoldfastError) -> None:
        """Make `commit` raise `error`: the attempt's output is wrong, although every call to the store succeeded."""
        self._failure = self._failure or error

    def record_rows(self, path: str, rows: int) -> None:
        """Record how many rows a file contains."""
        self._rows[path] = rows

    def commit(self) -> TaskCommit:
        """Close all files, wait until their bytes are stored, and report them.

        Guarantee: every file of the attempt is complete and durable. The driver decides whether the attempt counts.

        Raises:
            HoldfastError: the store failed, now or in any earlier call of the attempt, or `fail` was called.

        Source: paper 000, VI (task commit) and XIII (pass the list to the driver).
        """
        if self._failure is not None:
            raise self._failure
        with self._scope.measure.stage("task_stage_commit"):
            for sink in self._sinks.values():
                sink.close()
            self._scope.intents.flush()
            self._scope.background.drain()
            files = tuple(sink.entry(self._rows.get(path, 0)) for path, sink in self._sinks.items())
        recorder = self._scope.measure.recorder
        recorder.count("committer_tasks_completed")
        recorder.count("committer_task_file_count", len(files))
        recorder.count("committer_bytes_uploaded", sum(file.size_bytes for file in files))
        report = self._steps.commit_task(self._scope, files)
        store = self._scope.ctx.store
        if store.capabilities.transactions:
            # Once Spark has been told, it does not run the task again.
            as_transactional(store).make_durable(self._changes_of_job_commit(report, files))
        self._committed = True
        return report

    def _changes_of_job_commit(self, report: TaskCommit, files: Sequence[FileEntry]) -> Sequence[Complete | Require]:
        """Return what the job's transaction needs: the manifest and the pending uploads."""
        if report.ref is None:
            return ()
        key = self._scope.ctx.key
        uploads = [Complete(key(one.path), one.upload_id, one.upload_parts) for one in files if one.upload_id]
        return [Require(key(report.ref.key)), *uploads]

    def abort(self) -> None:
        """Discard everything that the attempt wrote, as far as possible; the job's cleanup deletes the rest.

        Errors of the abort are suppressed, so that they do not hide the error that caused it.
        """
        with contextlib.suppress(Exception):  # `commit` or `write` has already raised it
            self._scope.background.drain()
        self._scope.background.close()
        discarded = [discard_sink(sink) for sink in self._sinks.values()]
        if all(discarded) and not self._left_behind:  # if not, cleanup needs the records to find the rest
            with contextlib.suppress(HoldfastError):
                self._scope.intents.withdraw()
        self._sinks.clear()
        with contextlib.suppress(HoldfastError):
            self._steps.abort_task(self._scope.ctx, self._scope.job, self._scope.owner)


def discard_sink(sink: FileSink) -> bool:
    """Discard a file; return True only if it is certain that nothing of the file is left."""
    in_doubt = isinstance(sink, UploadSink) and sink.in_doubt
    try:
        sink.discard()
    except HoldfastError as error:
        _log.warning("a discarded file could not be deleted and is left for the job's cleanup: %s", error)
        return False
    return not in_doubt


ATTEMPT_METADATA = "holdfast-attempt"
"""Metadata key of an upload, for the attempt that started it. Distinguishes the object from other attempts' objects."""


def is_file_published(ctx: CommitContext, file: FileEntry, written_by: AttemptId | None = None) -> bool:
    """Check whether a file is at its target, by size and, if the store supports metadata, by the attempt's id.

    For a renamed file whose name the caller chose, also check that the file at the target is the one from the source.

    Args:
        written_by: the attempt that wrote the file; None to parse it from a generated name.
    """
    try:
        found = ctx.store.head(ctx.key(file.path))
    except NotFoundError:
        return False
    owner = file_owner(file.path)
    if written_by is None and owner is not None:
        written_by = owner.attempt
    if found.size_bytes != file.size_bytes:
        return False
    if file.etag:
        # A rename preserves etag and modification time; a copy to another file system preserves only the time.
        return found.etag == file.etag or found.modified_at_s == file.modified_at_s
    # Generated names are used only once, so an existing file is the job's own; size and metadata are checked in case
    # another tool has changed the file. Names that the caller chose may be used again, so only the attempt in the
    # metadata identifies the object.
    has_metadata = owner is None and bool(file.upload_id) and ctx.store.capabilities.metadata
    allowed = (written_by,) if has_metadata else (written_by, None)
    return written_by is None or found.metadata.get(ATTEMPT_METADATA) in allowed


def ensure_file_moved(
    ctx: CommitContext, path: str, move: Callable[[], object], is_there: Callable[[bool], bool]
) -> bool:
    """Publish or move a file, again if the store's reply was lost, and return whether it is at its target.

    If a reply was lost, or another process has moved the file, the next call of `move` raises `NotFoundError`, and
    `is_there` then shows the outcome. The response to a repeated completion does not show it: servers respond with 200,
    404 or 500.

    Args:
        path: the target, for the error.
        move: tries to publish or move the file.
        is_there: checks the target; called with True if this function has called `move` before.

    Raises:
        OutcomeUnknownError: the reply was lost three times.
    """
    for attempt in range(3):
        if attempt:
            ctx.clock.sleep(0.2 * 2**attempt)
        try:
            move()
            return True
        except NotFoundError:
            return is_there(attempt > 0)
        except OutcomeUnknownError:
            continue  # if the lost call succeeded, the next one raises NotFoundError and `is_there` decides
    raise OutcomeUnknownError(
        "it is unknown whether a file is at its target: run holdfast recover, or the task again if it failed",
        url=ctx.url,
        path=path,
    )


def open_upload(
    scope: AttemptContext,
    path: str,
    *,
    at: str = "",
    guard: Intents | None = None,
    on_uploaded: Callable[[FileEntry], None] | None = None,
) -> UploadSink:
    """Open an upload of an attempt, with the attempt's id in its metadata.

    Args:
        path: the file's target, relative to the destination.
        at: the path to upload to, if it is not the target.
        guard, on_uploaded: see `UploadSink`.
    """
    ctx = scope.ctx
    return UploadSink(
        multipart(ctx.store),
        ctx.key(at or path),
        path,
        background=scope.background,
        budget=scope.budget,
        base_part_bytes=ctx.settings.part_size_bytes,
        metadata={ATTEMPT_METADATA: scope.owner.attempt},
        on_uploaded=on_uploaded,
        guard=guard,
    )


def complete_upload(
    ctx: CommitContext,
    file: FileEntry,
    written_by: AttemptId | None = None,
    parts: Sequence[Part] = (),
    is_there: Callable[[], bool] | None = None,
) -> bool:
    """Make a pending upload visible; return False if it is neither pending nor visible.

    An upload can be completed only once. So a late caller finds no upload, and never replaces a newer object at the
    key.

    Args:
        written_by: see `is_file_published`.
        parts: the parts of the upload, if they have checksums.
        is_there: if the upload is missing, called instead of `is_file_published` to check whether the file is visible.

    Raises:
        OutcomeUnknownError: the reply was lost three times.
    """
    store = multipart(ctx.store)
    return ensure_file_moved(
        ctx,
        file.path,
        lambda: store.complete_upload(ctx.key(file.path), file.upload_id, parts or file.upload_parts),
        lambda is_retry: is_there() if is_there is not None else is_file_published(ctx, file, written_by),
    )


# --- uploads that only their names identify ---------------------------------------------------------------------------
def group_uploads_by_job_id(ctx: CommitContext) -> dict[JobId, list[UploadInfo]]:
    """Return pending uploads to visible paths, grouped by the job ids in Hadoop's file names.

    Uploads to hidden directories are left out: they belong to committers that later move the files.
    """
    jobs: dict[JobId, list[UploadInfo]] = {}
    for upload in iter_uploads(multipart(ctx.store), ctx.prefix):
        job = job_in_file_name(upload.key)
        if job is not None and not is_hidden(upload.key[len(ctx.prefix) :]):
            jobs.setdefault(job, []).append(upload)
    return jobs


def abort_uploads_with_job_id(ctx: CommitContext, job: JobId) -> None:
    """Abort the pending uploads whose file names contain the job's id. Idempotent."""
    store = multipart(ctx.store)
    pending = group_uploads_by_job_id(ctx).get(job, [])
    for _done in ctx.runner.map(lambda upload: store.abort_upload(upload.key, upload.upload_id), pending):
        pass
