"""Let one worker of the default suite run all modules with Spark: each JVM costs 15 CPU seconds before it is warm."""

from __future__ import annotations

import functools
import os
from pathlib import Path

from xdist.scheduler import LoadFileScheduling

__all__ = ["OthersStepBack", "SparkOnOneWorker"]

_ROOT = Path(__file__).parents[1]
_STEP = 5


class SparkOnOneWorker(LoadFileScheduling):
    """Gives workers whole modules, and all modules with Spark to the same worker, in the order of collection."""

    def _split_scope(self, nodeid: str) -> str:
        module = super()._split_scope(nodeid)
        return "modules with Spark" if _has_spark(module) else module


class OthersStepBack:
    """A plugin of a worker: lowers its priority, unless it runs the modules with Spark. They take longest."""

    def __init__(self) -> None:
        self._has_begun = False

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        """Decide at the first test: a worker that begins without Spark never gets it."""
        if not self._has_begun and not _has_spark(nodeid.partition("::")[0]):
            os.nice(_STEP)
        self._has_begun = True


@functools.cache
def _has_spark(module: str) -> bool:
    return "pytest.mark.spark" in (_ROOT / module).read_text(encoding="utf-8")
