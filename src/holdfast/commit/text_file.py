"""Write files that are discarded if an error occurs, and that are written from start to end."""

from __future__ import annotations

import codecs
import io
from typing import Any, NoReturn, Protocol, runtime_checkable


class SequentialFile(io.IOBase):
    """A file that can only be appended to, because its first bytes may already be uploaded."""

    def seek(self, *_args: Any) -> NoReturn:
        raise io.UnsupportedOperation(
            "this file is written from start to end and cannot seek: write to a local file or io.BytesIO, then copy it"
        )

    def read(self, *_args: Any) -> NoReturn:
        raise io.UnsupportedOperation("this file is only written: read it after the job has committed")

    def readinto(self, *_args: Any) -> NoReturn:
        self.read()


@runtime_checkable
class Discardable(Protocol):
    """A file that can be discarded instead of published, so that no reader ever sees it."""

    def discard(self) -> None:
        """Discard the file and close it. No-op after `close`."""
        ...


_BYTE_ORDER_MARKS = {"utf-16": codecs.BOM_UTF16, "utf-32": codecs.BOM_UTF32}


class TextFile(io.TextIOWrapper):
    """A text file that wraps a binary file; leaving a ``with`` block with an error discards the file.

    In that case, `io.TextIOWrapper` alone would close the binary file, and the incomplete file could be published.
    """

    def __init__(self, binary: Any, encoding: str | None = None, *args: Any, **options: Any) -> None:
        if encoding is not None and codecs.lookup(encoding).name == "utf-8-sig" and _does_append_to_content(binary):
            encoding = "utf-8"  # the mark is at the start of the file already
        super().__init__(binary, encoding, *args, **options)
        mark = _BYTE_ORDER_MARKS.get(codecs.lookup(self.encoding).name)
        if mark is not None and self.writable() and not self.seekable() and not _does_append_to_content(binary):
            binary.write(mark)  # `io.TextIOWrapper` writes it only to files that can seek

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        if kind is not None and isinstance(self.buffer, Discardable):
            self.buffer.discard()
        super().__exit__(kind, error, trace)


def _does_append_to_content(binary: Any) -> bool:
    """Check whether a file that cannot seek has content already, after which its new text goes."""
    if not binary.writable() or binary.seekable():
        return False
    try:
        return bool(binary.tell())
    except io.UnsupportedOperation:  # a member of an archive, for example: it begins here
        return False
