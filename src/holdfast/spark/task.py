"""Run a function of `holdfast.job` in Spark's tasks, and provide files that stay hidden until the job commits.

Each call of the function for a partition is one task attempt. Its report is the result of Spark's task, so only
attempts count that Spark has accepted, one for each partition (C1, C3).
"""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from pyspark import TaskContext, cloudpickle

from holdfast.commit import JobRecord, TaskAttempt, TaskCommit, get_committer
from holdfast.commit.text_file import SequentialFile, TextFile
from holdfast.errors import InvalidRequestError
from holdfast.options.write import JobOptions
from holdfast.spark.failures import errors_without_traceback

if TYPE_CHECKING:
    import pyarrow as pa
    from fsspec import AbstractFileSystem

PARTITIONS = 1_000_000
"""How many task numbers each run of a function reserves."""

RUNS = 1000
"""How many functions a job can run: a task number has at most nine digits."""


class TaskFile(SequentialFile, io.BufferedIOBase):
    """A binary file of a task attempt, written from start to end, for code that takes a file object without seeking.

    Guarantee: the file is invisible before the job commits. An exception in its ``with`` block discards it; if that
    exception made a wrapper such as `io.TextIOWrapper` close the file first, the attempt can no longer commit. A file
    that was opened without a ``with`` block counts as complete when the task ends, even if it was never closed.

    Memory: about one part (`part_size`) per file; larger files are uploaded while they are written.
    """

    def __init__(self, attempt: TaskAttempt, path: str) -> None:
        self._attempt = attempt
        self._sink = attempt.open(path)
        self._size_bytes = 0
        self._broken = False
        self.is_complete = False
        self._closed_during: BaseException | None = None
        self.name = path
        self.mode = "wb"

    def writable(self) -> bool:
        return True

    def write(self, data: Any, /) -> int:
        """Append all of the bytes."""
        if self.closed:
            raise ValueError("write to a closed file")
        if isinstance(data, str):
            raise TypeError("a job's files take bytes: encode the text, or open the file with mode 'w'")
        try:
            written = self._sink.write(data)
        except BaseException:
            self._broken = True
            raise
        self._size_bytes += written
        return written

    def tell(self) -> int:
        return self._size_bytes

    def close(self) -> None:
        """Complete the file, which then belongs to the attempt. Idempotent.

        Raises:
            InvalidRequestError: a write has failed before, so the file is discarded.
        """
        if self._broken and not self.closed:
            self.discard()
            raise InvalidRequestError(
                "an earlier write to this file failed, so the file is discarded: write it again from the start",
                path=self.name,
            )
        if not self.closed:
            self._closed_during = sys.exc_info()[1]
            super().close()
            self._sink.close()
            self.is_complete = True

    def discard(self) -> None:
        """Discard the file and free its name. After `close`, this does nothing."""
        if not self.closed:
            super().close()
            self._attempt.drop(self.name)

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        if error is None:
            self.close()
        elif not self.closed:
            self.discard()
        elif self._closed_during is error:
            self._attempt.make_commit_fail(
                InvalidRequestError(
                    "an exception closed a file instead of discarding it, so it is incomplete: open text files with "
                    "task.open(path, 'w'), or do not catch the exception",
                    path=self.name,
                )
            )


class Task:
    """A running attempt at one partition of a job's data, which opens files that stay hidden until the job commits.

    Attributes:
        partition: the partition's number, from 0. Use it in file names, since a repeated attempt has the same number.
        attempt: random digits, unique to this attempt.
    """

    def __init__(self, attempt: TaskAttempt, partition: int) -> None:
        self._attempt: TaskAttempt | None = attempt
        self.partition = partition
        self.attempt = str(attempt.owner.attempt)

    @cached_property
    def filesystem(self) -> AbstractFileSystem:
        """An fsspec filesystem that writes files of this task, for libraries that take a filesystem and a path.

        Paths are relative to the destination. If an exception makes a library close a file, let it leave the job's
        function, since the file looks complete.
        """
        from holdfast.spark.task_filesystem import TaskFileSystem  # deferred: few tasks need fsspec

        return TaskFileSystem(self.open)

    def open(
        self,
        path: str | os.PathLike[str],
        mode: str = "wb",
        *,
        encoding: str = "utf-8",
        errors: str = "strict",
        newline: str | None = None,
    ) -> Any:
        """Open a new file at `path` of the destination; it becomes visible when the job commits.

        Args:
            path: the path relative to the destination; may contain spaces and any Unicode. No segment may start with
                ``_`` or ``.``, because readers of Hadoop and Spark skip such files.
            mode: ``wb``, or ``w`` for text; ``xb`` and ``x`` mean the same here.
            encoding, errors, newline: for text, as in Python's own `open`.

        Returns:
            A `TaskFile`, or for text an `io.TextIOWrapper` of one.

        Raises:
            InvalidRequestError: the path leaves the destination or is already used by this task, the mode is not
                supported, or the attempt has ended.
        """
        if mode not in ("wb", "xb", "w", "x", "wt", "xt"):
            raise InvalidRequestError(
                "a job's files are written once, from start to end: open with mode 'wb', or 'w' for text", mode=mode
            )
        if self._attempt is None:
            raise InvalidRequestError("the task has ended: open files while its function runs", path=os.fspath(path))
        file = TaskFile(self._attempt, os.fspath(path))
        if "b" in mode:
            return file
        return TextFile(file, encoding=encoding, errors=errors, newline=newline)

    def end(self) -> None:
        """End the task: refuse to open further files through it."""
        self._attempt = None


@dataclass(frozen=True)
class TaskFunction:
    """A user's ``function(task, rows)`` in the form in which Spark pickles it, and calls it in its tasks.

    Attributes:
        number: the number of this call of `Job.run` within the job.
    """

    function: Callable[..., Any]
    options: JobOptions
    record: JobRecord
    number: int

    def call_with_rows(self, rows: Iterable[Any]) -> Iterator[tuple[TaskCommit, list[Any]]]:
        """Call the function with a partition of an RDD; yield the attempt's commit data and the function's results."""
        with errors_without_traceback():
            yield self._run_task(rows)

    def call_with_batches(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Call the function with a partition of a DataFrame; yield what `call_with_rows` does, in Arrow batches."""
        import pyarrow as pa

        with errors_without_traceback():
            yield pa.RecordBatch.from_pydict({"report": [cloudpickle.dumps(self._run_task(batches))]})  # type: ignore[no-untyped-call] # PySpark's copy of cloudpickle has no types

    def _run_task(self, rows: Iterable[Any]) -> tuple[TaskCommit, list[Any]]:
        context = TaskContext.get()
        assert context is not None, "Spark calls this in tasks only"
        partition = context.partitionId()
        if partition >= PARTITIONS:
            raise InvalidRequestError(f"a job has at most {PARTITIONS} partitions: coalesce them", partition=partition)
        committer = get_committer(self.options.committer)
        with (
            self.options.store.open(self.options.settings, committer=committer.name) as ctx,
            committer.setup_task(ctx, self.record, self.number * PARTITIONS + partition) as attempt,
        ):
            task = Task(attempt, partition)
            results = self.function(task, rows)
            found = [] if results is None else list(results)
            task.end()
            return attempt.commit(), found
