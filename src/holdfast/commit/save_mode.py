"""Define the save modes, which say what a job does with data that its destination already contains."""

from __future__ import annotations

import enum


class SaveMode(str, enum.Enum):
    """What a job does if its destination already contains data."""

    APPEND = "append"
    OVERWRITE = "overwrite"
    OVERWRITE_PARTITIONS = "overwrite-partitions"
    FAIL = "fail"
    IGNORE = "ignore"
