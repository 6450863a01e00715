"""Write record batches into the partitioned files of one task attempt, with bounded memory.

Each row is buffered in only one place at a time. In a partitioned table, rows are buffered first until there are enough
to split, because splitting costs time per batch and partition. Then the rows of each partition are buffered until
opening its file is worthwhile: an open file costs a sink, a format writer and a compressor, and there may be thousands
of partitions. From then on, the format's writer buffers the rows until a row group is full.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from typing import Any, Protocol

import pyarrow as pa

from holdfast.errors import InvalidRequestError
from holdfast.formats import BatchWriter, FileFormat, FormatOptions
from holdfast.formats.base import ByteSink
from holdfast.formats.columns.conversion import BatchBuffer, convert_batch
from holdfast.table.partition import PartitionSplitter, resolve_partition_columns


class AttemptSink(ByteSink, Protocol):
    """Receives the bytes of one new file of a task attempt, which is invisible until the job commits."""

    def close(self) -> None:
        """End the file; it now belongs to the attempt."""
        ...

    def discard(self) -> None:
        """Discard the file. This can also be called after `close` failed, and more than once."""
        ...


class AttemptFiles(Protocol):
    """Names and opens the files of one task attempt."""

    def file_name(self, extension: str) -> str:
        """Return a base name that is new on each call, e.g. ``part-00003-<job>-<attempt>-00000.snappy.parquet``.

        Args:
            extension: the extension with its leading dot, e.g. ``.snappy.parquet``.
        """
        ...

    def open(self, path: str) -> AttemptSink:
        """Open a new file.

        Args:
            path: the path relative to the destination, e.g. ``month=1/part-….parquet``.
        """
        ...

    def record_rows(self, path: str, rows: int) -> None:
        """Record how many rows a file contains. Called once per file, after its sink was closed."""
        ...


_MIB = 1024 * 1024
_GATHER_ROWS = 128 * 1024
_GATHER_BYTES = 32 * _MIB
_OPEN_AT_BYTES = 8 * _MIB


@dataclass(frozen=True, kw_only=True)
class WriteSettings:
    """The layout of a task's rows in files.

    Attributes:
        file_format: format of the files.
        format_options: the format's options; None for its defaults.
        partition_by: columns that become directories, outermost first.
        max_records_per_file: exact limit of rows in a file; None for no limit.
        target_file_size_bytes: about the size at which a file is ended and the next one begun; None for no limit.
        buffer_bytes: memory for buffered rows; when it is exceeded, the writer ends the file with the most buffered
            bytes.
        max_open_files: limit of open sinks; when it is reached, the writer ends the file with the most buffered bytes.
            Each sink has its own buffers. A partition opens its sink only when 8 MiB of its rows are buffered or when
            its file ends, so many small partitions do not make the writer end files too early.
        write_empty_file: whether to write one file without rows if there are no rows, so that the schema can be read
            back.
    """

    file_format: FileFormat[Any]
    format_options: FormatOptions | None = None
    partition_by: tuple[str, ...] = ()
    max_records_per_file: int | None = None
    target_file_size_bytes: int | None = None
    buffer_bytes: int = 256 * _MIB
    max_open_files: int = 64
    write_empty_file: bool = False

    @property
    def options(self) -> FormatOptions:
        """The format's options, or its defaults."""
        default: FormatOptions = self.file_format.default_options
        return default if self.format_options is None else self.format_options

    def check_schema(self, schema: pa.Schema) -> tuple[str, ...]:
        """Check that rows of a schema can be written, and return the partition columns as the schema spells them.

        Raises:
            InvalidRequestError: a partition column is invalid, or the format does not support a column.
        """
        partition_by = resolve_partition_columns(schema, self.partition_by)
        self.file_format.check_schema(PartitionSplitter(schema, partition_by).data_schema)
        return partition_by


@dataclass(frozen=True, slots=True)
class WriteCounts:
    """The numbers of rows, files and bytes that a task attempt wrote."""

    files: int
    rows: int
    bytes: int


class _OutputFile:
    """An open file. The format's writer writes to it as its sink; writes after `discard` are ignored.

    pyarrow's writers write a footer when they are garbage-collected.
    """

    writer: BatchWriter

    def __init__(self, path: str, sink: AttemptSink) -> None:
        self.path = path
        self.bytes = 0
        self._sink: AttemptSink | None = sink

    def write(self, data: bytes | memoryview) -> int:
        if self._sink is not None:
            self.bytes += self._sink.write(data)
        return len(data)

    def close(self) -> None:
        """Write the footer and end the file."""
        self.writer.close()
        assert self._sink is not None, "files that were discarded are not ended"
        self._sink.close()

    def discard(self) -> None:
        """Discard the file. Safe to call twice."""
        sink, self._sink = self._sink, None
        if sink is not None:
            sink.discard()


@dataclass(slots=True)
class _UnfinishedFile:
    """An unfinished file. Its rows wait in `pending` until its output is opened, and then in the format's writer."""

    pending: BatchBuffer
    output: _OutputFile | None = None
    rows: int = 0
    received_bytes: int = 0
    buffered_bytes: int = 0

    @property
    def written_bytes(self) -> int:
        return 0 if self.output is None else self.output.bytes


class TableWriter:
    """Writes record batches to the partitioned files of one task attempt, with bounded memory.

    Guarantee: `max_records_per_file` is exact; rows of a partition keep their order within and across its files; at
    most `buffer_bytes` plus one batch are buffered in memory. Nothing becomes visible here.

    Args:
        schema: the schema of the rows.
        settings: the layout.
        attempt: creates the files.

    Raises:
        InvalidRequestError: see `WriteSettings.check_schema`; no file was opened.

    Crash: files that were opened remain as hidden data of the attempt; cleanup finds them by their names.
    """

    def __init__(self, schema: pa.Schema, settings: WriteSettings, attempt: AttemptFiles) -> None:
        partition_by = settings.check_schema(schema)
        self._schema = schema
        self._settings = settings
        self._attempt = attempt
        self._splitter = PartitionSplitter(schema, partition_by)
        self._extension = settings.file_format.extension(settings.options)
        self._gathered = BatchBuffer(schema)
        self._gather_bytes = min(_GATHER_BYTES, settings.buffer_bytes // 8)
        self._open_at_bytes = min(_OPEN_AT_BYTES, settings.buffer_bytes // 8) if partition_by else 0
        self._unfinished: dict[str, _UnfinishedFile] = {}
        self._buffered_bytes = 0
        self._files = self._rows = self._bytes = 0
        # Together with the bytes of ended files, this count gives the ratio that predicts the size of buffered rows in
        # a file.
        self._ended_received_bytes = 0

    def write(self, batch: pa.RecordBatch) -> None:
        """Append the rows of a batch, converted to the table's schema: columns match by name in any case.

        Missing columns are null.

        Raises:
            InvalidRequestError: the batch has a column that the table lacks, a value does not fit its column's type, or
                a partition value is too long for a directory name.
        """
        if batch.schema.names != self._schema.names:
            known = {name.lower() for name in self._schema.names}
            for name in batch.schema.names:
                if name.lower() not in known:  # its values would be dropped
                    raise InvalidRequestError(
                        "the rows have different columns than the table: rename the column", column=name
                    )
        batch = convert_batch(batch, self._schema)
        if not self._splitter.columns:
            self._write_rows("", batch)
            return
        self._gathered.add(batch)
        if self._gathered.bytes >= self._gather_bytes or self._gathered.rows >= _GATHER_ROWS:
            self._write_gathered_rows()

    def close(self) -> WriteCounts:
        """Write all buffered rows, and end all files.

        Returns:
            Counts of what was written. The row count of each file was passed to the attempt.
        """
        self._write_gathered_rows()
        if self._files == 0 and not self._unfinished and self._settings.write_empty_file:
            self._unfinished[""] = _UnfinishedFile(BatchBuffer(self._splitter.data_schema))
        for directory in list(self._unfinished):
            self._end_file(directory)
        return WriteCounts(self._files, self._rows, self._bytes)

    def abort(self) -> None:
        """Discard the open files; the attempt itself discards files that have ended. Safe to call twice.

        Raises:
            HoldfastError: a sink could not be discarded; all other sinks were discarded.
        """
        making, self._unfinished = list(self._unfinished.values()), {}
        with contextlib.ExitStack() as stack:  # runs every discard, then raises what one of them raised
            for file in making:
                if file.output is not None:
                    stack.callback(file.output.discard)

    def _write_gathered_rows(self) -> None:
        if self._gathered.rows:
            for batch in self._gathered.take().combine_chunks().to_batches():
                for directory, rows in self._splitter.split(batch):
                    self._write_rows(directory, rows)

    def _write_rows(self, directory: str, rows: pa.RecordBatch) -> None:
        most = self._settings.max_records_per_file
        while rows.num_rows:
            file = self._unfinished.get(directory)
            if file is None:
                file = self._unfinished[directory] = _UnfinishedFile(BatchBuffer(self._splitter.data_schema))
            part = rows if most is None else rows.slice(0, most - file.rows)
            file.rows += part.num_rows
            file.received_bytes += part.nbytes
            if file.output is not None:
                file.output.writer.write(part)
            else:
                file.pending.add(part)
                if file.pending.bytes >= self._open_at_bytes:
                    self._open_output(directory, file)
            now = file.pending.bytes if file.output is None else file.output.writer.buffered_bytes
            self._buffered_bytes += now - file.buffered_bytes
            file.buffered_bytes = now
            if file.rows == most or self._has_reached_target_size(file):
                self._end_file(directory)
            while self._buffered_bytes > self._settings.buffer_bytes:
                self._close_largest_file(list(self._unfinished))
            rows = rows.slice(part.num_rows)

    def _has_reached_target_size(self, file: _UnfinishedFile) -> bool:
        target = self._settings.target_file_size_bytes
        if target is None:
            return False
        written = self._bytes + file.written_bytes
        received = self._ended_received_bytes + file.received_bytes - file.buffered_bytes
        ratio = written / received if written and received > 0 else 1.0
        return file.written_bytes + file.buffered_bytes * ratio >= target

    def _open_output(self, directory: str, file: _UnfinishedFile) -> _OutputFile:
        opened = [name for name, other in self._unfinished.items() if other.output is not None]
        if len(opened) >= self._settings.max_open_files:
            self._close_largest_file(opened)
        name = self._attempt.file_name(self._extension)
        path = f"{directory}/{name}" if directory else name
        output = _OutputFile(path, self._attempt.open(path))
        try:
            options, schema = self._settings.options, self._splitter.data_schema
            output.writer = self._settings.file_format.open_writer(output, schema, options)
        except BaseException:
            output.discard()
            raise
        file.output = output
        for batch in file.pending.take().to_batches() if file.pending.rows else ():
            output.writer.write(batch)
        return output

    def _close_largest_file(self, among: list[str]) -> None:
        # If several files have the same bytes (formats that buffer nothing), end the one with the most rows, because
        # small files may still grow.
        self._end_file(
            max(among, key=lambda name: (self._unfinished[name].buffered_bytes, self._unfinished[name].rows))
        )

    def _end_file(self, directory: str) -> None:
        file = self._unfinished[directory]
        output = file.output or self._open_output(directory, file)
        output.close()
        self._attempt.record_rows(output.path, file.rows)
        # Delete it only now, because `abort` must find a file that failed to end.
        del self._unfinished[directory]
        self._buffered_bytes -= file.buffered_bytes
        self._ended_received_bytes += file.received_bytes
        self._files += 1
        self._rows += file.rows
        self._bytes += output.bytes
