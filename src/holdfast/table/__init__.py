"""Record batches into partitioned files through a task attempt, and back."""

from holdfast.table.attempt import AttemptFiles, AttemptSink
from holdfast.table.writer import TableWriter, WriteCounts, WriteSettings

__all__ = ["AttemptFiles", "AttemptSink", "TableWriter", "WriteCounts", "WriteSettings"]
