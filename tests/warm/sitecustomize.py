"""Import what PySpark's workers need once in their daemon, so that the thousands of forked workers start ready.

Python imports a module of this name when it starts; `tests.integration.spark_session` puts this folder on the path of
the processes that Spark starts. A worker collects all garbage after every job. Frozen, the imported modules are no
part of that: it halves the CPU time of a small job.
"""

from __future__ import annotations

import gc
import importlib
import sys

_COMMAND = ["-m", "pyspark.daemon"]
_ROWS = ("holdfast.spark.writer", "holdfast.spark.reader", "holdfast.formats.parquet")
_UNITS = ("holdfast.spark.units.tasks", "holdfast.transactions.sqlite.backend")
_IMPORTS = {
    "pyspark.worker": (*_ROWS, *_UNITS, "pandas"),
    "pyspark.sql.worker.create_data_source": _ROWS,
    "pyspark.sql.worker.plan_data_source_read": _ROWS,
    "pyspark.sql.worker.write_into_data_source": _ROWS,
}

if sys.orig_argv[1:3] == _COMMAND:
    worker = sys.orig_argv[3]
    for module in (worker, "holdfast.spark.source", *_IMPORTS.get(worker, ())):
        importlib.import_module(module)
    gc.collect()
    gc.freeze()
