"""A task attempt: writes hidden files, then one manifest that names them. It coordinates with nobody.

Spark runs all of a task's writing before it asks who may commit, and never tells a loser: so a task may make nothing
visible, and only the message that reaches the driver says whose files count (C3).
"""

from __future__ import annotations

import contextlib
import zlib

from holdfast.commit import layout
from holdfast.commit.codec import digest, encode_manifest
from holdfast.commit.context import CommitContext
from holdfast.commit.ids import FileOwner, file_name, file_owner, new_attempt_id
from holdfast.commit.publication import PUBLICATIONS
from holdfast.commit.records import JobRecord, ManifestRef, TaskCommit, TaskManifest, Totals
from holdfast.commit.sinks import FileSink, PartBudget, RenameSink, UploadSink
from holdfast.errors import HoldfastError, InvalidRequestError

__all__ = ["TaskAttempt"]


class TaskAttempt:
    """One attempt at one task, in one process.

    Use it as a context manager: leaving with an error, or without `commit`, drops everything that it wrote.

    Crash: pending uploads or files in the job's folder, all named by job and attempt; never anything visible (C4).
    """

    def __init__(self, ctx: CommitContext, job: JobRecord, task: int) -> None:
        self._ctx = ctx
        self._job = job
        self._owner = FileOwner(job.job, task, new_attempt_id(ctx.ids))
        self._publication = PUBLICATIONS[job.publication]
        self._lane = ctx.runner.lane()
        self._budget = PartBudget(ctx.settings.part_buffer_bytes)
        self._sinks: dict[str, UploadSink | RenameSink] = {}
        self._rows: dict[str, int] = {}
        self._named = 0
        self._committed = False
        self._started_s = ctx.clock.elapsed_s()

    def __enter__(self) -> TaskAttempt:
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        if self._committed:
            self._lane.close()
        else:
            self.abort()

    def file_name(self, extension: str) -> str:
        """A base name that no other file has, e.g. ``part-00003-<job>-<attempt>-00000.snappy.parquet``."""
        name = file_name(self._owner, self._named, extension)
        self._named += 1
        return name

    def open(self, path: str) -> FileSink:
        """A new file of this attempt.

        Args:
            path: target relative to the destination, ending in a name from `file_name`.

        Raises:
            InvalidRequestError: the path leaves the destination, is hidden, or is not named by `file_name`.
        """
        if not layout.is_safe_path(path) or file_owner(path) != self._owner:
            raise InvalidRequestError("a task writes below its destination, under names from file_name", path=path)
        if path in self._sinks:
            raise InvalidRequestError("the attempt has this file already: take a new file_name", path=path)
        sink = self._publication.open_file(self._ctx, self._owner, path, self._lane, self._budget)
        self._sinks[path] = sink
        return sink

    def record_rows(self, path: str, rows: int) -> None:
        """Note how many rows a file holds."""
        self._rows[path] = rows

    def commit(self) -> TaskCommit:
        """Close what is open, wait until all bytes are in the store, write the manifest.

        Guarantee: every file of the attempt is complete and durable, still invisible, and the returned value pins
        the manifest's bytes. Whether it counts is the driver's to say.
        Source: paper 000, VI (task commit) and XIII (hand the list to the driver).
        """
        for sink in self._sinks.values():
            sink.close()
        self._lane.drain()
        files = tuple(sink.entry(self._rows.get(path, 0)) for path, sink in self._sinks.items())
        totals = Totals()
        for file in files:
            totals += Totals(files=1, size_bytes=file.size_bytes, rows=file.rows)
        manifest = TaskManifest(
            job=self._owner.job,
            task=self._owner.task,
            attempt=self._owner.attempt,
            files=files,
            metrics={"duration_s": round(self._ctx.clock.elapsed_s() - self._started_s, 6)},
        )
        data = encode_manifest(manifest)
        key = layout.manifest(manifest.job, manifest.task, manifest.attempt)
        # The name is this attempt's alone: writing it again after a lost reply writes the same bytes.
        self._ctx.store.put(self._ctx.key(key), data)
        self._committed = True
        ref = ManifestRef(key=key, sha256=digest(data), task=manifest.task, totals=totals)
        packed = zlib.compress(data, level=1)  # names repeat: a third to a tenth is left
        inline = packed if len(packed) <= self._ctx.settings.inline_manifest_bytes else None
        return TaskCommit(job=manifest.job, ref=ref, inline=inline)

    def abort(self) -> None:
        """Drop everything that the attempt wrote, as far as the store lets; the rest is swept by the job's name."""
        with contextlib.suppress(HoldfastError):
            self._lane.drain()
        self._lane.close()
        for sink in self._sinks.values():
            with contextlib.suppress(HoldfastError):  # the error that led here is the one to raise
                sink.discard()
        self._sinks.clear()
