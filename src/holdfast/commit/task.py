"""Run a task attempt: write hidden files, then report them to the driver, without any coordination.

Spark tasks write all their data before Spark decides which attempt may commit, and a losing attempt is not notified. So
a task must not make anything visible; the commit messages that reach the driver determine which attempts' files count
(C3). Committers differ in the four steps of an attempt that `TaskSteps` defines.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from holdfast.commit import layout
from holdfast.commit.context import CommitContext
from holdfast.commit.ids import FileOwner, file_owner, new_attempt_id
from holdfast.commit.intents import Intents
from holdfast.commit.measure import Measure
from holdfast.commit.records import FileEntry, JobRecord, TaskCommit
from holdfast.commit.sinks import FileSink, PartBudget, RenameSink, UploadSink
from holdfast.errors import HoldfastError, InvalidRequestError
from holdfast.runtime import BackgroundExecutor
from holdfast.stores.base import Complete, Require, transactional
from holdfast.wording import is_unicode

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskScope:
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
    budget: PartBudget
    intents: Intents
    measure: Measure


class TaskSteps(Protocol):
    """The steps of a task attempt in which committers differ: see `holdfast.commit.committer.Committer`."""

    @property
    def name_file(self) -> Callable[[FileOwner, int, str], str]: ...
    @property
    def open_file(self) -> Callable[[TaskScope, str], UploadSink | RenameSink]: ...
    @property
    def commit_task(self) -> Callable[[TaskScope, tuple[FileEntry, ...]], TaskCommit]: ...
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
        self._scope = TaskScope(
            ctx=measure.ctx,
            job=job,
            owner=owner,
            background=background,
            budget=PartBudget(ctx.settings.part_buffer_bytes),
            intents=Intents(measure.ctx, owner, background),
            measure=measure,
        )
        self._sinks: dict[str, UploadSink | RenameSink] = {}
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
        if not _discard(sink):
            self._left_behind = True

    def fail(self, error: HoldfastError) -> None:
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
            transactional(store).make_durable(self._written(report, files))
        self._committed = True
        return report

    def _written(self, report: TaskCommit, files: Sequence[FileEntry]) -> Sequence[Complete | Require]:
        """Return what the job's transaction needs: the manifest and the pending uploads."""
        if report.ref is None:
            return ()
        key = self._scope.ctx.key
        uploads = [Complete(key(one.path), one.upload_id, one.upload_parts) for one in files if one.upload_id]
        return [Require(key(report.ref.key)), *uploads]

    def abort(self) -> None:
        """Discard everything that the attempt wrote, as far as possible; the job's cleanup deletes the rest.

        Errors of the abort are suppressed, so that they do not hide the error that caused it (scenario 15).
        """
        with contextlib.suppress(Exception):  # `commit` or `write` has already raised it
            self._scope.background.drain()
        self._scope.background.close()
        discarded = [_discard(sink) for sink in self._sinks.values()]
        if all(discarded) and not self._left_behind:  # if not, cleanup needs the records to find the rest
            with contextlib.suppress(HoldfastError):
                self._scope.intents.withdraw()
        self._sinks.clear()
        with contextlib.suppress(HoldfastError):
            self._steps.abort_task(self._scope.ctx, self._scope.job, self._scope.owner)


def _discard(sink: UploadSink | RenameSink) -> bool:
    """Discard a file; return True only if it is certain that nothing of the file is left."""
    in_doubt = isinstance(sink, UploadSink) and sink.in_doubt
    try:
        sink.discard()
    except HoldfastError as error:
        _log.warning("a discarded file could not be deleted and is left for the job's cleanup: %s", error)
        return False
    return not in_doubt
