"""Run one process of a Spark job without Spark: do what PySpark's worker does, and print the loaded modules.

    python -m tests.tidy.spark_process STEP FOLDER FORMAT       prints the names of modules

What the processes pass to each other is in FOLDER, pickled as PySpark does it.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from pyspark.serializers import CPickleSerializer

WORKERS = {
    "plan": "pyspark.sql.worker.write_into_data_source",
    "task": "pyspark.worker",
    "commit": "pyspark.sql.worker.commit_data_source_write",
    "again": "pyspark.sql.worker.commit_data_source_write",
    "abort": "pyspark.sql.worker.commit_data_source_write",
}
_PICKLE = CPickleSerializer()


def _plan(folder: Path, file_format: str) -> None:
    from pyspark.sql.types import LongType, StringType, StructField, StructType

    from holdfast.spark.source import HoldfastDataSource

    options = {"path": str(folder / "table"), "fileFormat": file_format}
    schema = StructType([StructField("id", LongType()), StructField("name", StringType())])
    writer = HoldfastDataSource(options).writer(schema, False)
    (folder / "writer").write_bytes(_PICKLE.dumps(writer))


def _task(folder: Path, file_format: str) -> None:
    import pyarrow as pa
    from pyspark import TaskContext

    context = TaskContext()
    context._partitionId, context._localProperties = 0, {}
    TaskContext._setTaskContext(context)
    writer = _PICKLE.loads((folder / "writer").read_bytes())
    # Like Spark's batches, without Python values: pyarrow would load pandas to inspect those.
    batch = pa.record_batch([pa.nulls(2, pa.int64()), pa.nulls(2, pa.string())], names=["id", "name"])
    message = writer.write(iter([batch]))
    (folder / "message").write_bytes(_PICKLE.dumps(message))


def _commit(folder: Path, file_format: str) -> None:
    _PICKLE.loads((folder / "writer").read_bytes()).commit([_PICKLE.loads((folder / "message").read_bytes())])


def _abort(folder: Path, file_format: str) -> None:
    _PICKLE.loads((folder / "writer").read_bytes()).abort([None])


STEPS: dict[str, Callable[[Path, str], None]] = {
    "plan": _plan,
    "task": _task,
    "commit": _commit,
    "again": _commit,  # of a second job: the table exists by now
    "abort": _abort,
}


def main(arguments: Sequence[str]) -> None:
    step, folder, file_format = arguments
    importlib.import_module(WORKERS[step])
    STEPS[step](Path(folder), file_format)
    print(*sorted(sys.modules))


if __name__ == "__main__":
    main(sys.argv[1:])
