"""Makes ``format("holdfast")`` known to PySpark without registration.

PySpark looks through the top-level packages whose name starts with ``pyspark_`` and registers the `DefaultSource` of each.
"""

from holdfast.spark.source import HoldfastDataSource as DefaultSource

__all__ = ["DefaultSource"]
