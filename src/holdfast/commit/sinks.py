"""Write a task's bytes to hidden files: to parts of pending uploads, or to files in an attempt directory.

A sink is one of these files, open for writing by one thread. Slow store calls run in the background, so that encoding
and uploading overlap.
"""

from __future__ import annotations

import threading
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from holdfast.commit.ids import file_owner
from holdfast.commit.intents import Intents
from holdfast.commit.records import FileEntry
from holdfast.errors import InvalidRequestError
from holdfast.runtime import BackgroundExecutor
from holdfast.stores.base import MultipartStore, ObjectInfo, Part, RenameStore, WritableFile


def part_size(number: int, base_bytes: int) -> int:
    """Return the size of part `number`. Sizes double every 1,000 parts, so 10,000 parts hold 8 TB at a base of 8 MiB.

    Parts that are sent early because of the attempt's budget are smaller, which lowers this limit (`PartBufferBudget`).
    """
    return base_bytes << min(number // 1000, 9)


@dataclass(slots=True)
class PartBufferBudget:
    """Limits the bytes buffered in an attempt's open sinks. Above the limit, the fullest sink sends a part early."""

    limit_bytes: int
    sinks: dict[str, UploadSink] = field(default_factory=dict)

    def send_excess_parts(self) -> None:
        """Send parts of the fullest sinks early, until the buffers are within the limit or too small for a part."""
        while sum(sink.waiting_bytes for sink in self.sinks.values()) > self.limit_bytes:
            fullest = max(self.sinks.values(), key=lambda sink: sink.waiting_bytes)
            if not fullest.send_early():
                return


class UploadSink:
    """A pending multipart upload to the file's final name (paper 000, VI): invisible until it is completed.

    Args:
        on_uploaded: called once, in the background, when the file is closed and all its bytes are uploaded. The entry
            that it receives has no row count, which is not known yet.
        guard: announces the upload before it is started, for file names that do not contain the job's id.

    Crash: the upload stays pending. Its key contains the job's id, or the guard has announced it, so cleanup finds it.
    """

    def __init__(
        self,
        store: MultipartStore,
        key: str,
        path: str,
        *,
        background: BackgroundExecutor,
        budget: PartBufferBudget,
        base_part_bytes: int,
        metadata: Mapping[str, str],
        on_uploaded: Callable[[FileEntry], None] | None = None,
        guard: Intents | None = None,
    ) -> None:
        self.path = path
        self._store = store
        self._key = key
        self._background = background
        self._budget = budget
        self._metadata = metadata
        self._on_uploaded = on_uploaded
        self._guard = guard
        self._arrivals = threading.Lock()
        limits = store.capabilities.multipart
        assert limits is not None  # the publication checked it
        self._limits = limits
        self._base_part_bytes = max(base_part_bytes, limits.min_part_size_bytes)
        self._buffer = bytearray()
        self._upload_id = ""
        self._sent = 0
        self._parts: dict[int, Part] = {}
        self._size_bytes = 0
        self._crc32 = 0
        self._begun = False
        self._closed = False
        budget.sinks[path] = self

    @property
    def waiting_bytes(self) -> int:
        """Return the number of bytes in the buffer, which are not part of the upload yet."""
        return len(self._buffer)

    @property
    def in_doubt(self) -> bool:
        """Check whether the store may contain more of the file than this sink recorded: a call failed or never ran."""
        return self._begun and (not self._upload_id or len(self._parts) != self._sent)

    def write(self, data: bytes | bytearray | memoryview, /) -> int:
        if self._closed:
            raise InvalidRequestError("the file was closed, or its attempt has ended: open another", path=self.path)
        view = memoryview(data).cast("B")
        self._buffer += view
        self._size_bytes += len(view)
        self._crc32 = zlib.crc32(view, self._crc32)
        while len(self._buffer) >= (size := part_size(self._sent, self._base_part_bytes)):
            self._send_part(size)
        self._budget.send_excess_parts()
        return len(view)

    def send_early(self) -> bool:
        """Send the buffer as one part if it is large enough; return whether it was sent."""
        if len(self._buffer) < self._limits.min_part_size_bytes:
            return False
        self._send_part(len(self._buffer))
        return True

    def _send_part(self, size: int) -> None:
        if self._sent + 1 >= self._limits.max_parts:
            raise InvalidRequestError(
                "a file needs more parts than the store allows: write smaller files, with maxRecordsPerFile or "
                "targetFileSize",
                path=self.path,
            )
        if not self._upload_id:
            if self._guard is not None:
                self._guard.announce(self.path)
            self._create_upload()
        data = bytes(self._buffer[:size])
        del self._buffer[:size]
        self._sent += 1
        self._background.submit(self._make_part_upload(self._sent, data))

    def _create_upload(self) -> None:
        self._begun = True
        self._upload_id = self._store.create_upload(self._key, self._metadata)

    def _make_part_upload(self, number: int, data: bytes) -> Callable[[], None]:
        def upload_part() -> None:
            self._add_part(self._store.upload_part(self._key, self._upload_id, number, data))

        return upload_part

    def _add_part(self, part: Part) -> None:
        with self._arrivals:
            self._parts[part.number] = part
            complete = self._closed and len(self._parts) == self._sent  # true only for the last part
        if complete:
            self._report_uploaded()

    def _report_uploaded(self) -> None:
        if self._on_uploaded is not None:
            self._on_uploaded(self.entry(0))

    def close(self) -> None:
        """Upload the rest of the file in the background; the upload stays pending until it is completed."""
        if self._closed:
            return
        del self._budget.sinks[self.path]
        data = bytes(self._buffer)
        self._buffer.clear()
        with self._arrivals:
            more = bool(data) or not self._sent
            self._sent += more
            number = self._sent
            complete = len(self._parts) == self._sent
            self._closed = True
        if complete:
            self._background.submit(self._report_uploaded)
        if not more:
            return

        def finish_upload() -> None:
            # A small file is one background task, so dozens of small files are uploaded in parallel.
            if not self._upload_id:
                self._create_upload()
            self._add_part(self._store.upload_part(self._key, self._upload_id, number, data))

        if self._guard is None or self._upload_id:
            self._background.submit(finish_upload)
        else:
            self._guard.wait(self.path, len(data), finish_upload)

    def discard(self) -> None:
        """Abort the upload, so that nothing of the file is left; raise an error if the store does not answer."""
        self._closed = True
        self._on_uploaded = None
        self._budget.sinks.pop(self.path, None)
        self._buffer.clear()
        if self._upload_id:
            self._store.abort_upload(self._key, self._upload_id)

    def entry(self, rows: int) -> FileEntry:
        """Return the file's manifest entry. Requires: the sink is closed and the background executor is drained."""
        assert self._closed and len(self._parts) == self._sent, (
            "C1: every part is uploaded before the manifest is written"
        )
        parts = tuple((self._parts[number].etag, self._parts[number].size_bytes) for number in sorted(self._parts))
        return FileEntry(
            path=self.path,
            size_bytes=self._size_bytes,
            rows=rows,
            upload_id=self._upload_id,
            parts=parts,
            crc32=self._crc32,
        )


class RenameSink:
    """A file in the attempt's directory on a store with atomic rename (paper 002).

    Crash: the file stays in the job's folder, which is deleted as a whole.
    """

    def __init__(self, store: RenameStore, key: str, source: str, path: str, *, background: BackgroundExecutor) -> None:
        self.path = path
        self._store = store
        self._key = key
        self._source = source
        self._background = background
        self._file: WritableFile = store.open_write(key)
        self._written: ObjectInfo | None = None
        self._size_bytes = 0
        self._crc32 = 0
        self._closed = False

    def write(self, data: bytes | bytearray | memoryview, /) -> int:
        view = memoryview(data).cast("B")
        self._file.write(view)
        self._size_bytes += len(view)
        self._crc32 = zlib.crc32(view, self._crc32)
        return len(view)

    def close(self) -> None:
        """Complete the hidden file in the background; it stays in the attempt's directory until it is renamed."""
        if not self._closed:
            self._closed = True
            self._background.submit(self._close_file)  # the fsync overlaps with the next file's encoding

    def _close_file(self) -> None:
        self._written = self._file.close()

    def discard(self) -> None:
        """Delete the hidden file, even if it was closed; raise an error if the store does not answer."""
        if self._closed:
            self._store.delete(self._key)
        else:
            self._closed = True
            self._file.discard()

    def entry(self, rows: int) -> FileEntry:
        """Return the file's manifest entry. Requires: the sink is closed and the background executor is drained."""
        assert self._written is not None, "C1: every file is durable before the manifest is written"
        entry = FileEntry(
            path=self.path, size_bytes=self._size_bytes, rows=rows, source=self._source, crc32=self._crc32
        )
        if file_owner(self.path) is not None:
            return entry
        return replace(entry, etag=self._written.etag, modified_at_s=self._written.modified_at_s)


FileSink: TypeAlias = UploadSink | RenameSink
"""A file of a task attempt, written sequentially.

``write`` appends bytes, and blocks while too many parts are in flight. ``close`` completes the file; store errors may
also be raised later, when the attempt commits. ``discard`` drops the file, so that it is not part of the output.
"""
