"""Record batches collected until there are enough rows for one row group, stripe or block."""

from __future__ import annotations

import pyarrow as pa

__all__ = ["BatchBuffer"]

# A partitioned task hands over slivers of a few rows. Encoders pay per chunk, so slivers are joined now and then:
# each row is copied once at most, and a chunk has at least this many rows.
_SLIVER_ROWS = 4096
_SLIVERS = 64


class BatchBuffer:
    """Batches in order of arrival, with their size; rows are not copied but for slivers."""

    def __init__(self, schema: pa.Schema) -> None:
        self._schema = schema
        self._batches: list[pa.RecordBatch] = []
        self._slivers: list[pa.RecordBatch] = []
        self.rows = 0
        self.bytes = 0

    def add(self, batch: pa.RecordBatch) -> None:
        """Keep a batch that has the buffer's schema."""
        self.rows += batch.num_rows
        self.bytes += batch.nbytes
        if batch.num_rows >= _SLIVER_ROWS:
            self._join_slivers()
            self._batches.append(batch)
            return
        self._slivers.append(batch)
        if len(self._slivers) >= _SLIVERS:
            self._join_slivers()

    def _join_slivers(self) -> None:
        if len(self._slivers) > 1:
            self._batches.extend(pa.Table.from_batches(self._slivers).combine_chunks().to_batches())
        else:
            self._batches.extend(self._slivers)
        self._slivers.clear()

    def take(self) -> pa.Table:
        """All rows as one table; the buffer is empty afterwards."""
        self._join_slivers()
        table = pa.Table.from_batches(self._batches, self._schema)
        self._batches.clear()
        self.rows = self.bytes = 0
        return table
