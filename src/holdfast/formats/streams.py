"""Adapt sinks and sources to pyarrow streams. pyarrow never closes the object that it is given."""

from __future__ import annotations

from typing import Any, BinaryIO

import pyarrow as pa

from holdfast.formats.base import ByteSink

__all__ = ["input_file", "output_stream"]


class _SinkFile:
    """Adapt a sink to the write-only file that `pyarrow.PythonFile` expects. Closing it leaves the sink open."""

    def __init__(self, sink: ByteSink) -> None:
        self._sink = sink
        self.closed = False

    def write(self, data: bytes) -> int:
        return self._sink.write(data)

    def writable(self) -> bool:
        return True

    def flush(self) -> None:
        """Do nothing: this class holds no data."""

    def close(self) -> None:
        self.closed = True


def output_stream(sink: ByteSink, codec: str | None = None) -> Any:
    """Return a pyarrow output stream that writes to the sink, through a whole-stream codec if one is given."""
    stream = pa.PythonFile(_SinkFile(sink), mode="w")
    return pa.CompressedOutputStream(stream, codec) if codec else stream


class _SourceFile:
    """A seekable file that stays open when pyarrow closes its wrapper."""

    def __init__(self, source: BinaryIO) -> None:
        self._source = source
        self.closed = False
        self.read = source.read
        self.seek = source.seek
        self.tell = source.tell

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def close(self) -> None:
        self.closed = True


def input_file(source: BinaryIO, codec: str | None = None) -> Any:
    """Return a pyarrow input over a seekable file, through a whole-stream codec if one is given."""
    file = pa.PythonFile(_SourceFile(source), mode="r")
    return pa.CompressedInputStream(file, codec) if codec else file
