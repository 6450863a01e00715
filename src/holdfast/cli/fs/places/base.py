"""Define what a place can do, so that a copy does not depend on where it leads from and to."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Protocol

from holdfast.errors import HoldfastError
from holdfast.runtime import Runner, SerialRunner, ThreadRunner

PIECE_BYTES = 8 * 1024 * 1024
"""How many bytes are read and written at a time."""

Failed = Callable[[str, HoldfastError], None]
"""Called with the URL of a path that cannot be copied, and the reason; the others are copied."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A file or a directory at a place.

    Attributes:
        path: as the place names it.
        relative: the path below the directory that was listed, with ``/`` between its components; empty for what was
            looked up by itself.
        size: of a file, bytes; None if it is unknown, as that of a pipe.
        mode: permission bits; None if the place has none.
        mtime_ms: the last modification, milliseconds since the epoch; None if it is unknown.
        etag: names the version of an object; empty if the place has no versions.
    """

    path: str
    is_directory: bool
    relative: str = ""
    size: int | None = None
    mode: int | None = None
    mtime_ms: int | None = None
    etag: str = ""


def read_pieces(read: Callable[[int, int], bytes], size: int, readers: int) -> Iterator[bytes]:
    """Yield the pieces of a file in order.

    Args:
        read: returns the bytes of a piece, given its start and its length.
        size: of the file, bytes.
        readers: see `Place.read`.
    """
    starts = range(0, size, PIECE_BYTES)
    runner: Runner = ThreadRunner(threads=readers) if readers > 1 and len(starts) > 1 else SerialRunner()
    yield from runner.map(lambda start: read(start, min(PIECE_BYTES, size - start)), starts)


class Sink(Protocol):
    """A new file, invisible until it is closed."""

    def write(self, data: bytes, /) -> object:
        """Append bytes."""
        ...

    def close(self) -> object:
        """Publish the file.

        Raises:
            ConflictError: a file has the path by now, and may not be replaced.
        """
        ...

    def discard(self) -> object:
        """Give the file up. Does nothing after `close`."""
        ...


class Place(Protocol):
    """Somewhere files can be copied from and to. Threads may share a place."""

    @property
    def has_directories(self) -> bool:
        """Whether a file needs a directory, and a directory can be empty. False for object stores."""
        ...

    def url(self, path: str) -> str:
        """Return what to call a path in messages."""
        ...

    def name(self, path: str) -> str:
        """Return the name that a file or directory keeps when it is copied into a directory; empty if it has none."""
        ...

    def join(self, directory: str, relative: str) -> str:
        """Return the path of something in a directory.

        Raises:
            InvalidRequestError: no file at this place can have the path.
        """
        ...

    def parent(self, path: str) -> str:
        """Return the path of the directory that a path lies in."""
        ...

    def find(self, path: str) -> Entry | None:
        """Describe what has a path; None if nothing has."""
        ...

    def below(self, path: str, failed: Failed) -> Iterator[Entry]:
        """Yield everything below a directory, and call `failed` for what cannot be read."""
        ...

    def read(self, entry: Entry, readers: int = 1) -> Iterator[bytes]:
        """Yield the content of a file.

        Args:
            readers: how many pieces may be read at the same time, where each of them is a request; memory holds twice
                as many.
        """
        ...

    def create(self, path: str, source: Entry, *, overwrite: bool, preserve: bool) -> Sink:
        """Open a new file.

        Args:
            source: what is copied.
            overwrite: whether a file may be replaced.
            preserve: whether the new file gets the mode and the time of the source, as far as both places have them.
        """
        ...

    def make_directory(self, path: str) -> None:
        """Make a directory, whose parent exists; accept one that exists."""
        ...
