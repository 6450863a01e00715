"""PySpark's daemons begin with the imports of their workers, which each of thousands of short-lived ones would repeat.

Every Python looks for a module of this name at its start: `tests.integration.spark_session` puts this folder on the
path of the processes that Spark starts.
"""

from __future__ import annotations

import importlib
import sys

_COMMAND = ["-m", "pyspark.daemon"]

if sys.orig_argv[1:3] == _COMMAND:
    workers = sys.orig_argv[3]
    for module in (workers, "holdfast.spark.source", *(["pandas"] if workers == "pyspark.worker" else [])):
        importlib.import_module(module)
