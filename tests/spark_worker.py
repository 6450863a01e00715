"""Let one worker of the default suite run all modules with Spark: each JVM costs 15 CPU seconds before it is warm."""

from __future__ import annotations

import functools
from pathlib import Path

from xdist.scheduler import LoadFileScheduling

__all__ = ["SparkOnOneWorker"]

_ROOT = Path(__file__).parents[1]


class SparkOnOneWorker(LoadFileScheduling):
    """Gives workers whole modules, and all modules with Spark to the same worker, in the order of collection."""

    def _split_scope(self, nodeid: str) -> str:
        module = super()._split_scope(nodeid)
        return "modules with Spark" if _has_spark(module) else module


@functools.cache
def _has_spark(module: str) -> bool:
    return "pytest.mark.spark" in (_ROOT / module).read_text(encoding="utf-8")
