"""Hold back everything that a Spark job produces until the job commits; then all of it becomes visible, exactly once.

Importing this package is light: PySpark, pyarrow and boto3 are loaded by the first call that needs them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.errors import HoldfastError

if TYPE_CHECKING:
    from holdfast.spark.count import count
    from holdfast.spark.job import job
    from holdfast.spark.read import read
    from holdfast.spark.units.runner import TransactionalMap, TransactionalReduce
    from holdfast.spark.write import write
    from holdfast.units.open_work_list import open_work_list

__all__ = [
    "HoldfastError",
    "TransactionalMap",
    "TransactionalReduce",
    "__version__",
    "count",
    "job",
    "open_work_list",
    "read",
    "write",
]

__version__ = "0.1.0"


def __getattr__(name: str) -> object:
    if name == "count":
        from holdfast.spark.count import count

        return count
    if name == "job":
        from holdfast.spark.job import job

        return job
    if name == "open_work_list":
        from holdfast.units.open_work_list import open_work_list

        return open_work_list
    if name == "read":
        from holdfast.spark.read import read

        return read
    if name == "TransactionalMap":
        from holdfast.spark.units.runner import TransactionalMap

        return TransactionalMap
    if name == "TransactionalReduce":
        from holdfast.spark.units.runner import TransactionalReduce

        return TransactionalReduce
    if name == "write":
        from holdfast.spark.write import write

        return write
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
