"""Provide the files that a task of `holdfast.job` writes: they stay hidden until the job commits."""

from __future__ import annotations

import io
import os
from typing import Any

from holdfast.commit import TaskAttempt
from holdfast.errors import InvalidRequestError

__all__ = ["Task", "TaskFile"]


class TaskFile(io.BufferedIOBase):
    """A binary file of a task attempt, written from start to end, for code that takes a file object without seeking.

    Guarantee: invisible before the job commits. An exception in its ``with`` block discards it.

    Memory: about one part (`part_size`) per file; larger files are uploaded while they are written.
    """

    def __init__(self, attempt: TaskAttempt, path: str) -> None:
        self._attempt = attempt
        self._sink = attempt.open(path)
        self._size_bytes = 0
        self.name = path
        self.mode = "wb"

    def writable(self) -> bool:
        return True

    def write(self, data: Any, /) -> int:
        """Append all of the bytes."""
        if self.closed:
            raise ValueError("write to a closed file")
        if isinstance(data, str):
            raise TypeError("a job's files take bytes: encode the text, or wrap the file in io.TextIOWrapper")
        written = self._sink.write(data)
        self._size_bytes += written
        return written

    def tell(self) -> int:
        return self._size_bytes

    def close(self) -> None:
        """Complete the file, which then belongs to the attempt. Idempotent."""
        if not self.closed:
            super().close()
            self._sink.close()

    def discard(self) -> None:
        """Discard the file and free its name. No-op after `close`."""
        if not self.closed:
            super().close()
            self._attempt.drop(self.name)

    def __exit__(self, kind: object, *error: object) -> None:
        if kind is None:
            self.close()
        else:
            self.discard()


class Task:
    """A running attempt at one partition.

    Attributes:
        partition: the partition's number, from 0. Good for file names, since a repeated attempt has the same number.
        attempt: random digits, unique to this attempt.
        work_path: URL of a directory for programs that open files themselves, through `holdfast.fs.MagicFileSystem`;
            only with ``committer="magic"``, else empty.
    """

    def __init__(self, attempt: TaskAttempt, partition: int, work_path: str = "") -> None:
        self._attempt: TaskAttempt | None = attempt
        self.partition = partition
        self.attempt = str(attempt.owner.attempt)
        self.work_path = work_path

    def open(self, path: str | os.PathLike[str], mode: str = "wb") -> TaskFile:
        """Open a new file at `path` of the destination; it becomes visible when the job commits.

        Args:
            path: relative to the destination; may contain spaces and any Unicode. No segment may start with ``_`` or
                ``.``, because readers of Hadoop and Spark skip such files.
            mode: ``wb`` or ``xb``, which are equivalent here. For text, wrap the file in `io.TextIOWrapper`.

        Raises:
            InvalidRequestError: the path leaves the destination or is already used by this task, the mode is not
                supported, or the attempt has ended.
        """
        if mode not in ("wb", "xb"):
            raise InvalidRequestError(
                "a job's files are written once, as binary: open with mode wb, and wrap it in TextIOWrapper for text",
                mode=mode,
            )
        if self._attempt is None:
            raise InvalidRequestError("the task has ended: open files while its function runs", path=os.fspath(path))
        return TaskFile(self._attempt, os.fspath(path))

    def end(self) -> None:
        """Refuse to open files from now on."""
        self._attempt = None
