"""Hold back everything that a Spark job produces until the job commits; then all of it becomes visible, exactly once.

Importing this package is light: PySpark, pyarrow and boto3 are loaded by the first call that needs them.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from holdfast.errors import HoldfastError, missing_spark_error

if TYPE_CHECKING:
    from holdfast.records.database import open_database
    from holdfast.spark.job import job
    from holdfast.spark.read import count, read
    from holdfast.spark.units.runner import TransactionalMap, TransactionalReduce
    from holdfast.spark.write import write
    from holdfast.units.watch import watch
    from holdfast.units.work_list import open_work_list

__all__ = [
    "HoldfastError",
    "TransactionalMap",
    "TransactionalReduce",
    "__version__",
    "count",
    "job",
    "open_database",
    "open_work_list",
    "read",
    "watch",
    "write",
]

__version__ = "0.1.0"

_MODULES = {
    "TransactionalMap": "holdfast.spark.units.runner",
    "TransactionalReduce": "holdfast.spark.units.runner",
    "count": "holdfast.spark.read",
    "job": "holdfast.spark.job",
    "open_database": "holdfast.records.database",
    "open_work_list": "holdfast.units.work_list",
    "read": "holdfast.spark.read",
    "watch": "holdfast.units.watch",
    "write": "holdfast.spark.write",
}


def __getattr__(name: str) -> object:
    module = _MODULES.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        return getattr(import_module(module), name)
    except ModuleNotFoundError as error:
        missing = missing_spark_error(error)
        if missing is None:
            raise
        raise missing from error


def __dir__() -> list[str]:
    return __all__
