"""Define what the table layer needs from a task attempt: new files with names that are never reused."""

from __future__ import annotations

from typing import Protocol

from holdfast.formats.base import ByteSink


class AttemptSink(ByteSink, Protocol):
    """One new file of a task attempt; invisible until the job commits."""

    def close(self) -> None:
        """End the file; it now belongs to the attempt."""
        ...

    def discard(self) -> None:
        """Discard the file. This can also be called after `close` failed, and more than once."""
        ...


class AttemptFiles(Protocol):
    """The files of one task attempt."""

    def file_name(self, extension: str) -> str:
        """Return a base name that is new on each call, e.g. ``part-00003-<job>-<attempt>-00000.snappy.parquet``.

        Args:
            extension: the extension with its leading dot, e.g. ``.snappy.parquet``.
        """
        ...

    def open(self, path: str) -> AttemptSink:
        """Open a new file.

        Args:
            path: the path relative to the destination, e.g. ``month=1/part-….parquet``.
        """
        ...

    def record_rows(self, path: str, rows: int) -> None:
        """Record how many rows a file contains. Called once per file, after its sink was closed."""
        ...
