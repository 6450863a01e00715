"""Store the content of a blob in frames, each with a checksum.

A frame is 64 KiB of content, the last one what is left, and then the CRC-32 of the blob's name, the number of the
frame and its content. So a flipped bit, the bytes of another blob or of another place in the same one, and a blob
that was cut or refilled are noticed where they are read; and to check a range, nothing but its frames is read. The
checksums need no record: the name of the blob is in the extent, and names are never used twice.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator

from holdfast.errors import CorruptDataError

_CONTENT = 64 * 1024
_SUM = 4
_FRAME = _CONTENT + _SUM


def stored_bytes(length: int) -> int:
    """Return how many bytes a blob has whose content has `length` bytes."""
    return length + -(-length // _CONTENT) * _SUM


def content_bytes(stored: int) -> int:
    """Return how many bytes of content a blob of so many stored bytes has."""
    frames, rest = divmod(stored, _FRAME)
    return frames * _CONTENT + max(rest - _SUM, 0)


def stored_range(start: int, length: int) -> tuple[int, int]:
    """Return start and length of the frames that contain a range of content; the last frame may be shorter."""
    first, end = start // _CONTENT, -(-(start + length) // _CONTENT)
    return first * _FRAME, (end - first) * _FRAME


class Framer:
    """Frames the content of a blob as it comes in."""

    def __init__(self, blob: str) -> None:
        self._blob = blob
        self._number = 0
        self._filled = 0
        self._crc: int  # of what the frame has so far

    def add(self, data: bytes | bytearray | memoryview) -> bytes:
        """Return what is to be stored after what was returned before."""
        view = memoryview(data)
        pieces: list[bytes | memoryview] = []
        while view:
            if not self._filled:
                self._crc = _seed(self._blob, self._number)
            piece, view = view[: _CONTENT - self._filled], view[_CONTENT - self._filled :]
            self._crc = zlib.crc32(piece, self._crc)
            self._filled += len(piece)
            pieces.append(piece)
            if self._filled == _CONTENT:
                pieces.append(self.end())
        return b"".join(pieces)

    def end(self) -> bytes:
        """Return the end of the last frame; empty if it has ended."""
        if not self._filled:
            return b""
        self._number += 1
        self._filled = 0
        return self._crc.to_bytes(_SUM, "big")


def framed(blob: str, content: bytes | bytearray) -> bytes:
    """Return the stored bytes of a whole blob."""
    framer = Framer(blob)
    return framer.add(content) + framer.end()


def content_of(blob: str, start: int, length: int, stored: bytes) -> bytes:
    """Return a range of content.

    Args:
        stored: what the blob has in `stored_range` of this range.

    Raises:
        CorruptDataError: the bytes are not those that were written; ``offset`` is where the damaged frame begins in the
            content of the blob.
    """
    number, skipped = divmod(start, _CONTENT)
    pieces = []
    left = length
    for is_good, content in _frames(blob, number, memoryview(stored)):
        if not is_good:
            raise CorruptDataError(
                "bytes of the file are damaged: restore the blob from a backup, or the file; holdfast namespace fsck "
                "--read finds all damaged files",
                blob=blob,
                offset=number * _CONTENT,
            )
        piece = content[skipped : skipped + left]
        pieces.append(piece)
        left -= len(piece)
        skipped = 0
        number += 1
    if left:
        raise CorruptDataError(
            "a blob of the file is too short: restore it from a backup, or the file; holdfast namespace fsck finds all "
            "of them",
            blob=blob,
            offset=start + length - left,
        )
    return bytes(pieces[0]) if len(pieces) == 1 else b"".join(pieces)


def find_damage(blob: str, start: int, stored: bytes) -> int | None:
    """Return where the first damaged frame begins in the content of a blob; None if there is none.

    Args:
        start: where the first frame of `stored` begins in the content.
    """
    for number, (is_good, _) in enumerate(_frames(blob, start // _CONTENT, memoryview(stored)), start // _CONTENT):
        if not is_good:
            return number * _CONTENT
    return None


def _frames(blob: str, number: int, stored: memoryview) -> Iterator[tuple[bool, memoryview]]:
    """Yield the content of each frame, and whether it is what was written."""
    for at in range(0, len(stored), _FRAME):
        frame = stored[at : at + _FRAME]
        content, crc = frame[:-_SUM], frame[-_SUM:]
        yield zlib.crc32(content, _seed(blob, number)) == int.from_bytes(crc, "big") and bool(content), content
        number += 1


def _seed(blob: str, number: int) -> int:
    return zlib.crc32(f"{blob} {number} ".encode())
