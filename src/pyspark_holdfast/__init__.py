"""Make ``format("holdfast")`` available in PySpark without registration.

PySpark searches top-level packages whose names start with ``pyspark_``, and registers their `DefaultSource`.
"""

from holdfast.spark.source import HoldfastDataSource as DefaultSource

__all__ = ["DefaultSource"]
