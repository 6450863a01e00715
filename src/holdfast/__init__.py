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
    from holdfast.spark.write import write

__all__ = ["HoldfastError", "__version__", "count", "job", "read", "write"]

__version__ = "0.1.0"


def __getattr__(name: str) -> object:
    if name == "count":
        from holdfast.spark.count import count

        return count
    if name == "job":
        from holdfast.spark.job import job

        return job
    if name == "read":
        from holdfast.spark.read import read

        return read
    if name == "write":
        from holdfast.spark.write import write

        return write
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
