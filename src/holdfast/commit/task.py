"""A task attempt: writes hidden files, then says what it wrote. It coordinates with nobody.

Spark runs all of a task's writing before it asks who may commit, and never tells a loser: so a task may make nothing
visible, and only the message that reaches the driver says whose files count (C3). Committers differ in four steps of
an attempt, which are a value: `TaskSteps`.
"""

from __future__ import annotations

import contextlib
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

__all__ = ["TaskAttempt", "TaskScope", "TaskSteps"]


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskScope:
    """What the steps of an attempt get.

    Attributes:
        ctx: the destination; its store is measured.
        owner: job, task and attempt.
        background: runs slow calls beside the caller.
        budget: parts that wait in all files of the attempt.
        intents: announces uploads under names that do not hold the job.
    """

    ctx: CommitContext
    job: JobRecord
    owner: FileOwner
    background: BackgroundExecutor
    budget: PartBudget
    intents: Intents
    measure: Measure


class TaskSteps(Protocol):
    """The steps of a task attempt in which committers differ; every `Committer` has them."""

    def name_file(self, owner: FileOwner, number: int, extension: str) -> str:
        """Return the base name of the attempt's file `number`, counted from 0."""
        ...

    def open_file(self, scope: TaskScope, path: str) -> UploadSink | RenameSink:
        """Open a sink for the target `path`, relative to the destination."""
        ...

    def commit_task(self, scope: TaskScope, files: tuple[FileEntry, ...]) -> TaskCommit:
        """Report the attempt's files, which are complete and durable."""
        ...

    def abort_task(self, ctx: CommitContext, job: JobRecord, owner: FileOwner) -> None:
        """Discard what the attempt left behind. Runs in any process, also long after the attempt died."""
        ...


class TaskAttempt:
    """One attempt at one task, in one process.

    Use it as a context manager: leaving with an error, or without `commit`, drops everything that it wrote.

    Crash: what the committer's steps leave: pending uploads or files in the job's folder, named by job and attempt.
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

    def __enter__(self) -> TaskAttempt:
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        if self._committed:
            self._scope.background.close()
        else:
            self.abort()

    @property
    def owner(self) -> FileOwner:
        """Job, task and attempt."""
        return self._scope.owner

    def file_name(self, extension: str) -> str:
        """A base name that no other file of the attempt has, e.g. ``part-00003-<job>-….snappy.parquet``."""
        name = self._steps.name_file(self._scope.owner, self._named, extension)
        self._named += 1
        return name

    def open(self, path: str) -> FileSink:
        """A new file of this attempt.

        Args:
            path: target relative to the destination; ends in a name from `file_name`, or in one of the caller's choice.

        Raises:
            InvalidRequestError: the path leaves the destination, is hidden, or is named like another attempt's.
        """
        if not layout.is_safe_path(path) or file_owner(path) not in (None, self._scope.owner):
            raise InvalidRequestError(
                "a task writes below its destination, under names that do not start with '_' or '.' and do not end in "
                "'._COPYING_', for readers skip those: rename the file, or what the partition is named by",
                path=path,
            )
        if path in self._sinks:
            raise InvalidRequestError("the attempt has this file already: take another name", path=path)
        sink = self._steps.open_file(self._scope, path)
        self._sinks[path] = sink
        return sink

    def drop(self, path: str) -> None:
        """Give up one file of the attempt that is not closed; its name is free again.

        Raises:
            HoldfastError: the store did not drop it. The attempt cannot commit; what is left goes with the job's.
        """
        self._scope.background.drain()  # parts on their way would meet an upload that is gone
        self._sinks[path].discard()
        del self._sinks[path]
        self._rows.pop(path, None)

    def record_rows(self, path: str, rows: int) -> None:
        """Note how many rows a file holds."""
        self._rows[path] = rows

    def commit(self) -> TaskCommit:
        """Close what is open, wait until all bytes are in the store, report.

        Guarantee: every file of the attempt is complete and durable. Whether it counts is the driver's to say.
        Source: paper 000, VI (task commit) and XIII (hand the list to the driver).
        """
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
        self._committed = True
        return report

    def abort(self) -> None:
        """Drop everything that the attempt wrote, as far as the store lets; the rest is swept with the job's.

        An error here is swallowed: the one that led here is the one to raise (scenario 15).
        """
        with contextlib.suppress(Exception):  # whatever it is, `commit` or `write` has raised it already
            self._scope.background.drain()
        self._scope.background.close()
        gone = [_is_gone(sink) for sink in self._sinks.values()]
        if all(gone):  # else the records lead the sweep to the rest
            with contextlib.suppress(HoldfastError):
                self._scope.intents.withdraw()
        self._sinks.clear()
        with contextlib.suppress(HoldfastError):
            self._steps.abort_task(self._scope.ctx, self._scope.job, self._scope.owner)


def _is_gone(sink: UploadSink | RenameSink) -> bool:
    """Drop a file; whether nothing of it can be left."""
    in_doubt = isinstance(sink, UploadSink) and sink.in_doubt
    try:
        sink.discard()
    except HoldfastError:
        return False
    return not in_doubt
