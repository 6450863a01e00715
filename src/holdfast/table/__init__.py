"""Write record batches as partitioned files through a task attempt, and read them back.

Names are imported on first use: a process that uses only `holdfast.table.contract` handles no rows, so it need not
import pyarrow.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from holdfast.table.attempt import AttemptFiles, AttemptSink
    from holdfast.table.reader import (
        OpenFile,
        ReadSettings,
        ReadSplit,
        TableSchema,
        first_with_bytes,
        given_schema,
        plan_splits,
        read_schema,
        read_split,
        read_splits,
    )
    from holdfast.table.store_file import StoreFile
    from holdfast.table.writer import TableWriter, WriteCounts, WriteSettings

__all__ = [
    "AttemptFiles",
    "AttemptSink",
    "OpenFile",
    "ReadSettings",
    "ReadSplit",
    "StoreFile",
    "TableSchema",
    "TableWriter",
    "WriteCounts",
    "WriteSettings",
    "first_with_bytes",
    "given_schema",
    "plan_splits",
    "read_schema",
    "read_split",
    "read_splits",
]

_PLACES = {
    "AttemptFiles": "attempt",
    "AttemptSink": "attempt",
    "StoreFile": "store_file",
    "TableWriter": "writer",
    "WriteCounts": "writer",
    "WriteSettings": "writer",
}


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_PLACES.get(name, 'reader')}"), name)
