"""Open the files of a table in their store."""

from __future__ import annotations

import contextlib
import io
import struct
from collections.abc import Callable, Iterator
from typing import BinaryIO, Protocol, cast

from holdfast.commit import CommitContext
from holdfast.errors import MALFORMED, CorruptDataError, InvalidRequestError, UnsupportedError
from holdfast.stores.base import ObjectStore


class StoreFile(io.RawIOBase):
    """A read-only file over `ObjectStore.get`.

    Guarantee: at most `read_ahead_bytes` are buffered. A read of less than this fills the buffer with one request, and
    the following reads are served from the buffer; a file that fits in the buffer is fetched whole. A larger read is
    one request for exactly the bytes wanted, so a column chunk costs one round trip.

    Args:
        store: the store; closing the file leaves it open.
        key: the object's key.
        size_bytes: the object's size as a listing reported it, which saves a request for the size.
        etag: the object's etag from the same listing, so that all ranges are from the same version of the object. Empty
            only for objects that cannot be replaced.
        read_ahead_bytes: the size of the buffer.

    Raises:
        NotFoundError: on reading, the object was deleted: list again.
        PreconditionError: on reading, the object was replaced: list again.
        CorruptDataError: on reading, the object is shorter than the listing reported.
    """

    def __init__(
        self, store: ObjectStore, key: str, size_bytes: int, etag: str = "", read_ahead_bytes: int = 1024 * 1024
    ) -> None:
        super().__init__()
        self._store = store
        self._key = key
        self._size = size_bytes
        self._etag = etag
        self._read_ahead = read_ahead_bytes
        self._position = 0
        self._window = b""
        self._window_start = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._position

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self._size}[whence]
        if base + offset < 0:
            raise InvalidRequestError("cannot seek before the start of a file: check the offset", offset=offset)
        self._position = base + offset
        return self._position

    def read(self, size: int | None = -1, /) -> bytes:
        left = max(0, self._size - self._position)
        wanted = left if size is None or size < 0 else min(size, left)
        if wanted == 0:
            return b""
        data = self._read_range(self._position, wanted)
        self._position += wanted
        return data

    def readall(self) -> bytes:
        return self.read()

    def readinto(self, buffer: memoryview, /) -> int:  # type: ignore[override]  # typeshed wants collections.abc.Buffer of 3.12
        data = self.read(len(buffer))
        buffer[: len(data)] = data
        return len(data)

    def _read_range(self, start: int, length: int) -> bytes:
        offset = start - self._window_start
        if offset >= 0 and offset + length <= len(self._window):
            return self._window[offset : offset + length]
        if length >= self._read_ahead:
            return self._get_range(start, length)
        # Readers ask for the footer first. If the file is small, fetch all of it with that request.
        window_start = 0 if self._size <= self._read_ahead else start
        self._window = self._get_range(window_start, min(self._read_ahead, self._size - window_start))
        self._window_start = window_start  # only now: a read that fails leaves the old bytes at their old place
        offset = start - window_start
        return self._window[offset : offset + length]

    def _get_range(self, start: int, length: int) -> bytes:
        data = self._store.get(self._key, start, length, self._etag)
        if len(data) != length:
            raise CorruptDataError(
                "an object is shorter than the listing reported: find out who replaced it",
                key=self._key,
                start=start,
                wanted=length,
                got=len(data),
            )
        return data


class ListedFile(Protocol):
    """A listed file of a table: path, size and etag."""

    @property
    def path(self) -> str: ...
    @property
    def size_bytes(self) -> int: ...
    @property
    def etag(self) -> str: ...


def file_opener(ctx: CommitContext) -> Callable[[ListedFile], BinaryIO]:
    """Return a function that opens a listed file of a table; reads fail if the object was replaced since."""

    def open_listed_file(file: ListedFile) -> BinaryIO:
        return cast(BinaryIO, StoreFile(ctx.store, ctx.key(file.path), file.size_bytes, file.etag))

    return open_listed_file


@contextlib.contextmanager
def add_path_to_errors(path: str) -> Iterator[None]:
    """Name a file in the errors that the block raises about its content.

    Raises:
        CorruptDataError: a decoder failed on the content.
    """
    try:
        yield
    except (CorruptDataError, InvalidRequestError, UnsupportedError) as error:
        if "file" not in error.variables:
            raise type(error)(error.message, **error.variables, file=path) from error
        raise
    except (*MALFORMED, LookupError, ArithmeticError, EOFError, NotImplementedError, struct.error, OSError) as error:
        if getattr(error, "errno", None) is not None:
            raise  # not of a decoder: pyarrow's errors have no number
        reason = f"{type(error).__name__}: {error}"[:200]
        raise CorruptDataError(
            "a file cannot be read: check what wrote or changed it", file=path, reason=reason
        ) from error
