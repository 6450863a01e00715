"""Provide the file objects of filesystems: those of the magic one, and what all share, such as text and compression."""

from __future__ import annotations

import abc
import contextlib
import inspect
import io
import sys
from collections.abc import Callable
from opcode import opmap
from types import FrameType
from typing import Any

from fsspec.compression import compr
from fsspec.core import get_compression
from fsspec.spec import AbstractBufferedFile

from holdfast.commit.context import CommitContext
from holdfast.commit.records import FileEntry
from holdfast.commit.sinks import FileSink, PartBudget, UploadSink
from holdfast.commit.task import ATTEMPT_METADATA, complete_upload
from holdfast.commit.text_file import SequentialFile, TextFile
from holdfast.errors import HoldfastError, NotFoundError
from holdfast.runtime import BackgroundExecutor
from holdfast.runtime.process import finalize, finish_finalizers
from holdfast.stores.base import multipart

_LEAVES_WITH_ERROR = opmap.get("WITH_EXCEPT_START")


def is_closed_by_failure() -> bool:
    """Check, in the `close` of a file, whether a ``with`` block that has failed closes it.

    That is so if an ``__exit__`` that was given an error has called `close`, perhaps through other methods `close`; or
    if a ``with`` statement has, through an ``__exit__`` that is not written in Python. Any other call of `close` means
    what it says, even in an ``except`` or ``finally`` clause: to discard a file there would lose one that is complete.
    """
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_code.co_name == "close":
        frame = frame.f_back
    if frame is None:
        return False
    if frame.f_code.co_name == "__exit__":
        return _is_given_an_error(frame)
    return frame.f_code.co_code[frame.f_lasti] == _LEAVES_WITH_ERROR


def _is_given_an_error(frame: FrameType) -> bool:
    code = frame.f_code
    count = code.co_argcount + code.co_kwonlyargcount + bool(code.co_flags & inspect.CO_VARARGS)
    given = [frame.f_locals.get(name) for name in code.co_varnames[:count]]
    return any(
        isinstance(one, BaseException) for value in given for one in (value if isinstance(value, tuple) else (value,))
    )


class PlainSink:
    """A file that becomes visible at its key on close: through one put if it is small, else through an upload."""

    def __init__(self, ctx: CommitContext, key: str, *, background: BackgroundExecutor, budget: PartBudget) -> None:
        self.path = key
        self._ctx = ctx
        self._background = background
        self._budget = budget
        self._buffer = bytearray()
        self._upload: UploadSink | None = None

    def write(self, data: bytes | bytearray | memoryview, /) -> int:
        view = memoryview(data).cast("B")
        if self._upload is not None:
            return self._upload.write(view)
        self._buffer += view
        if len(self._buffer) > self._ctx.settings.part_size_bytes:
            self._upload = self._start_upload()
            self._upload.write(self._buffer)
            self._buffer = bytearray()
        return len(view)

    def close(self) -> None:
        if self._upload is not None:
            self._upload.close()
        else:
            self._ctx.store.put(self.path, bytes(self._buffer))

    def discard(self) -> None:
        self._buffer = bytearray()
        if self._upload is not None:
            self._upload.discard()

    def _start_upload(self) -> UploadSink:
        ctx = self._ctx
        token = ctx.ids.token()  # distinguishes this file from others at the same key

        def complete(file: FileEntry) -> None:
            if not complete_upload(ctx, file, token):  # type: ignore[arg-type]  # any text can serve as an attempt id
                raise NotFoundError("the upload of the file was aborted: write the file again", key=file.path)

        return UploadSink(
            multipart(ctx.store),
            self.path,
            self.path,
            background=self._background,
            budget=self._budget,
            base_part_bytes=ctx.settings.part_size_bytes,
            metadata={ATTEMPT_METADATA: token},
            on_uploaded=complete,
        )


class NewFile(SequentialFile):
    """A file that takes effect only when `close` returns without an error.

    Leaving a ``with`` block with an error discards the file, and so does dropping the last reference to an open file.
    Both hold also if the block, or the last reference, is that of an object around this one, such as `fsspec.OpenFile`
    or a text file, which only calls `close`.
    """

    _is_dropped = False
    """Whether `close` has to discard the file."""

    @abc.abstractmethod
    def discard(self) -> None:
        """Discard the file."""

    def _dealloc_warn(self, _source: object) -> None:
        """Note that the text or the buffer around this file is dropped; Python calls this just before its `close`."""
        self._is_dropped = True

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        if kind is None:
            self.close()
        else:
            self.discard()

    def __del__(self) -> None:
        if vars(self):  # if not, __init__ failed
            finalize(self.discard)


class WritingFile(NewFile, io.RawIOBase):
    """A file that is written sequentially.

    Guarantee: the file takes effect only when `close` returns without an error. Leaving a ``with`` block with an error
    discards the file, and so does dropping the last reference to an open file.

    Args:
        background: the executor in which the sink uploads parts; it is closed with the file.
        drop_records: called after a failed `close`, to delete the records of the upload that `close` may have written.
    """

    def __init__(
        self, sink: FileSink, background: BackgroundExecutor, drop_records: Callable[[], None] | None = None
    ) -> None:
        super().__init__()
        self._sink = sink
        self._background = background
        self._drop_records = drop_records
        self._closing = False
        self._size_bytes = 0

    def writable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._size_bytes

    def write(self, data: Any, /) -> int:
        if self.closed:
            raise ValueError("the file is closed")
        written = self._sink.write(data)
        self._size_bytes += written
        return written

    def close(self) -> None:
        if self.closed:
            return
        if self._is_dropped or is_closed_by_failure():
            finalize(self.discard)
            return
        self._closing = True
        try:
            self._sink.close()
            self._background.drain()
        except BaseException:
            self.discard()
            raise
        self._background.close()
        super().close()

    def discard(self) -> None:
        """Discard the file. Errors of the store are suppressed: the error that caused the discard matters more."""
        if self.closed:
            return
        with contextlib.suppress(Exception):  # `write` or `close` has already raised it
            self._background.drain()
        self._background.close()
        if self._closing and self._drop_records is not None:
            with contextlib.suppress(HoldfastError):
                self._drop_records()
        with contextlib.suppress(HoldfastError):
            self._sink.discard()
        super().close()


class CompressedFile(NewFile, io.BufferedIOBase):
    """A file that is compressed while it is written. It gives the same guarantee as the file below it.

    Args:
        packer: a file object that compresses data and writes it to `file`.
    """

    def __init__(self, packer: Any, file: NewFile) -> None:
        super().__init__()
        self._packer = packer
        self._file = file

    def writable(self) -> bool:
        return True

    def tell(self) -> int:
        return int(self._packer.tell())

    def write(self, data: Any, /) -> int:
        return int(self._packer.write(data))

    def close(self) -> None:
        """Complete the file and close the underlying file, which most compressors leave open."""
        if self.closed:
            return
        if self._is_dropped or is_closed_by_failure():
            finalize(self.discard)
            return
        try:
            self._packer.close()
        except BaseException:
            self.discard()
            raise
        super().close()
        self._file.close()

    def discard(self) -> None:
        """Discard the file."""
        if self.closed:
            return
        super().close()
        self._file.discard()
        with contextlib.suppress(Exception):  # the compressor cannot write its end to a closed file
            self._packer.close()


class WritingText(TextFile):
    """Text written to a `NewFile`; dropping its last reference discards the file."""

    def __del__(self) -> None:
        if not self.closed and isinstance(self.buffer, NewFile):
            finalize(self.buffer.discard)


class ReadingFile(AbstractBufferedFile):  # type: ignore[misc]  # fsspec ships no types
    """A file that is read in ranges, with read-ahead."""

    def _fetch_range(self, start: int, end: int) -> bytes:
        return bytes(self.fs.cat_file(self.path, start, end))


def open_layers(open_binary: Callable[..., Any], path: str, mode: str, options: dict[str, Any]) -> Any:
    """Open a file, binary or text, compressed or not, so that no layer publishes a file whose block failed.

    Args:
        open_binary: fsspec's own `open`, which knows nothing about discarding.
        options: what the caller gave besides the mode; ``compression`` is a name that fsspec knows, or ``infer``.
    """
    finish_finalizers()
    text = {name: options.pop(name) for name in ("encoding", "errors", "newline") if name in options}
    compression = get_compression(path, options.pop("compression", None))
    file = open_binary(path, mode if "b" in mode else mode.replace("t", "") + "b", **options)
    if compression is not None:
        packer = compr[compression](file, mode="w" if isinstance(file, NewFile) else "r")
        file = CompressedFile(packer, file) if isinstance(file, NewFile) else packer
    return file if "b" in mode else WritingText(file, **text)
