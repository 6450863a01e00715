"""Collect record batches until there are enough rows for one row group, stripe or block."""

from __future__ import annotations

import pyarrow as pa

# A partitioned task delivers slivers of a few rows. Encoders have a cost per chunk, so slivers are joined from time
# to time: each row is copied at most once, and most chunks have at least this many rows.
_SLIVER_ROWS = 4096
_SLIVERS = 64


class BatchBuffer:
    """Batches in order of arrival, with their size. Rows are not copied, except those of slivers."""

    def __init__(self, schema: pa.Schema) -> None:
        self._schema = schema
        self._batches: list[pa.RecordBatch] = []
        self._slivers: list[pa.RecordBatch] = []
        self.rows = 0
        self.bytes = 0

    def add(self, batch: pa.RecordBatch) -> None:
        """Append a batch that has the buffer's schema."""
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
        """Return all rows as one table and empty the buffer."""
        self._join_slivers()
        table = pa.Table.from_batches(self._batches, self._schema)
        self._batches.clear()
        self.rows = self.bytes = 0
        return table
