"""Run a job of units in an application of its own, and perhaps die with it: ``units_driver.py URL MARKS KEY``.

The first unit whose key is at least KEY kills the driver, its JVM and all their workers with SIGKILL.
"""

from __future__ import annotations

import os
import signal
import sys
import warnings
from pathlib import Path
from typing import Any

from holdfast.spark.units import TransactionalMap
from tests.integration.dying_units import add_words, lines_of_words
from tests.integration.spark_session import by_value, spark_session

__all__ = ["JOB", "LINES"]

JOB = "survivor"
LINES = 1000


def main() -> None:
    warnings.simplefilter("ignore")
    url, marks, key = sys.argv[1], Path(sys.argv[2]), int(sys.argv[3])
    group = os.getpgrp()

    def count(txn: Any, number: int, row: Any) -> None:
        if number >= key and not (marks / f"killed-{key}").exists():
            (marks / f"killed-{key}").touch()
            os.killpg(group, signal.SIGKILL)
            os.kill(os.getpid(), signal.SIGKILL)  # PySpark's workers have a group of their own
        add_words(txn, number, row)

    by_value(__name__)
    with spark_session() as spark:
        lines = spark.createDataFrame(lines_of_words(LINES), "number int, line string")
        report = TransactionalMap(count, database=url, group=4).run(lines, key="number", job=JOB, tasks=2)
        print(f"units {report.total.units}", flush=True)


if __name__ == "__main__":
    main()
