"""Define Spark data sources that stop halfway, to see where a write spends its time."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceArrowWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from holdfast.formats.parquet import PARQUET

__all__ = ["ArrowOnly", "EncodeOnly"]


class _Counted:
    """A sink that counts bytes and discards them."""

    def __init__(self) -> None:
        self.bytes = 0

    def write(self, data: bytes | memoryview, /) -> int:
        self.bytes += len(data)
        return len(data)


class _ArrowOnlyWriter(DataSourceArrowWriter):
    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        for _ in iterator:
            pass
        return WriterCommitMessage()


class _EncodeOnlyWriter(DataSourceArrowWriter):
    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        first = next(iterator)
        writer = PARQUET.open_writer(_Counted(), first.schema, PARQUET.default_options)
        writer.write(first)
        for batch in iterator:
            writer.write(batch)
        writer.close()
        return WriterCommitMessage()


class ArrowOnly(DataSource):
    """A data source that passes rows to Python and discards them."""

    @classmethod
    def name(cls) -> str:
        return "holdfast_bench_arrow"

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceArrowWriter:
        return _ArrowOnlyWriter()


class EncodeOnly(DataSource):
    """A data source that passes rows to Python, encodes them as Parquet, and discards them."""

    @classmethod
    def name(cls) -> str:
        return "holdfast_bench_encode"

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceArrowWriter:
        return _EncodeOnlyWriter()
