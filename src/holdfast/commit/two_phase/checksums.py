"""The checksum of each file of a job: recorded when the job becomes visible, and compared when files are verified.

A task computes the CRC-32 of a file while it writes the file. The mark ``visible`` of the job's decision lists them, so
they cost no request, are there as long as the log retains the decision, and name each file: bytes that have changed
are found, and so are files that were exchanged.
"""

from __future__ import annotations

import gzip
import io
import zlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from holdfast.commit import layout
from holdfast.commit.context import CommitContext
from holdfast.commit.json_fields import crc_field, guarded, json_line, json_object, text_field
from holdfast.commit.records import FileEntry
from holdfast.commit.two_phase.snapshot import VisibleFile
from holdfast.errors import CorruptDataError, NotFoundError, PreconditionError

_GZIP = 31  # zlib's code for the gzip format; it stores no timestamp, so equal lists have equal bytes
_RANGE_BYTES = 4 * 1024 * 1024  # 32 threads hold 128 MiB


@dataclass(slots=True)
class ChecksumList:
    """A list of checksums, compressed as it grows, because a job may have a million files."""

    _packer: Any = field(default_factory=lambda: zlib.compressobj(level=1, wbits=_GZIP))
    _packed: bytearray = field(default_factory=bytearray)

    def add(self, file: FileEntry) -> None:
        """Append the checksum of a file."""
        self._packed += self._packer.compress(json_line({"path": file.path, "crc32": file.crc32}))

    def encode(self) -> bytes:
        """Return the list so far, one line per file, compressed."""
        return bytes(self._packed) + bytes(self._packer.copy().flush())


def read_checksums(ctx: CommitContext, seq: int) -> Iterator[tuple[str, int]]:
    """Iterate over the paths of a visible decision's files and their checksums; empty if the decision is trimmed.

    Raises:
        CorruptDataError: the list is damaged.
    """
    key = layout.log_mark(seq, "visible")
    try:
        data = ctx.records.read(key)
    except NotFoundError:
        return
    lines = gzip.GzipFile(fileobj=io.BytesIO(data))
    while found := guarded(key, lambda: _next_checksum(lines)):
        yield found


def _next_checksum(lines: gzip.GzipFile) -> tuple[str, int] | None:
    try:
        line = lines.readline()
    except (EOFError, OSError, zlib.error) as error:
        raise ValueError("it cannot be decompressed") from error
    if not line:
        return None
    value = json_object(line)
    return text_field(value, "path"), crc_field(value)


def find_changed(
    ctx: CommitContext, files: Iterable[VisibleFile], checksums: Mapping[str, int]
) -> Iterator[VisibleFile]:
    """Read files, and yield those whose bytes are not the ones that `checksums` was made from, or cannot be read.

    A file that a job replaces meanwhile is among them.
    """

    def is_changed(file: VisibleFile) -> tuple[VisibleFile, bool]:
        return file, _crc32_of(ctx, file) != checksums[file.path]

    for done, (file, changed) in enumerate(ctx.runner.map(is_changed, files), start=1):
        ctx.progress("read", done, len(checksums))
        if changed:
            yield file


def _crc32_of(ctx: CommitContext, file: VisibleFile) -> int | None:
    """Return the CRC-32 of a file; None if it is no longer the file that was listed, or the store finds it damaged."""
    crc32 = 0
    try:
        for start in range(0, file.size_bytes, _RANGE_BYTES):
            length = min(_RANGE_BYTES, file.size_bytes - start)
            crc32 = zlib.crc32(ctx.store.get(ctx.key(file.path), start, length, file.etag), crc32)
    except (NotFoundError, PreconditionError, CorruptDataError):
        return None
    return crc32
