"""Present sinks and sources as pyarrow streams. pyarrow never closes the sink or source itself."""

from __future__ import annotations

from typing import Any, BinaryIO

import pyarrow as pa

from holdfast.formats.base import ByteSink


class _SinkFile:
    """Present a sink as the write-only file that `pyarrow.PythonFile` expects; the sink stays open."""

    def __init__(self, sink: ByteSink) -> None:
        self._sink = sink
        self.closed = False

    def write(self, data: bytes) -> int:
        return self._sink.write(data)

    def writable(self) -> bool:
        return True

    def flush(self) -> None:
        """Do nothing: this class buffers no data."""

    def close(self) -> None:
        self.closed = True


def output_stream(sink: ByteSink, codec: str | None = None) -> Any:
    """Return a pyarrow output stream that writes to the sink; with a codec, the whole stream is compressed."""
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
    """Return a pyarrow input that reads a seekable file; with a codec, the whole file is decompressed."""
    file = pa.PythonFile(_SourceFile(source), mode="r")
    return pa.CompressedInputStream(file, codec) if codec else file
