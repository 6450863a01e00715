"""What a task of `holdfast.job` writes with: files that are held until the job commits."""

from __future__ import annotations

import io
import os
from typing import Any

from holdfast.commit import TaskAttempt
from holdfast.errors import InvalidRequestError

__all__ = ["Task", "TaskFile"]


class TaskFile(io.BufferedIOBase):
    """A binary file of a task attempt, written from start to end: for whatever takes a file object that cannot seek.

    Guarantee: nobody sees it before the job commits. Leaving its ``with`` with an error drops it.

    Memory: about a part (`part_size`) a file; larger ones go up while they are written.
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
        """Append bytes, all of them."""
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
        """The file is complete and belongs to the attempt. Again does nothing."""
        if not self.closed:
            super().close()
            self._sink.close()

    def discard(self) -> None:
        """Drop the file; its name is free again. Nothing after `close`."""
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
        partition: number of the partition, from 0: good in names, since a repeated attempt has the same.
        attempt: random digits that no other attempt has.
        work_path: url of the directory through which a program that opens its files by itself writes, with
            `holdfast.fs.MagicFileSystem`; only with ``committer="magic"``, else empty.
    """

    def __init__(self, attempt: TaskAttempt, partition: int, work_path: str = "") -> None:
        self._attempt: TaskAttempt | None = attempt
        self.partition = partition
        self.attempt = str(attempt.owner.attempt)
        self.work_path = work_path

    def open(self, path: str | os.PathLike[str], mode: str = "wb") -> TaskFile:
        """A new file at `path` of the destination, visible when the job commits.

        Args:
            path: relative to the destination; spaces and all of unicode are fine. No part of it starts with ``_`` or
                ``.``, because readers of Hadoop and Spark skip such files.
            mode: ``wb`` or ``xb``, which are the same here. For text, wrap the file in `io.TextIOWrapper`.

        Raises:
            InvalidRequestError: the path leaves the destination or is taken by this task, the mode is another, or the
                attempt is over.
        """
        if mode not in ("wb", "xb"):
            raise InvalidRequestError(
                "a job's files are written once and in binary: open with mode wb, for text wrap it in io.TextIOWrapper",
                mode=mode,
            )
        if self._attempt is None:
            raise InvalidRequestError("the task is over: open files while its function runs", path=os.fspath(path))
        return TaskFile(self._attempt, os.fspath(path))

    def end(self) -> None:
        """No file may be opened from now on."""
        self._attempt = None
