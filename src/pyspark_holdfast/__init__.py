"""Makes ``format("holdfast")`` known to PySpark without registration.

PySpark looks into the top-level packages whose name starts with ``pyspark_`` and registers each `DefaultSource`.
"""

from holdfast.spark.source import HoldfastDataSource as DefaultSource

__all__ = ["DefaultSource"]
