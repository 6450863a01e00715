"""Make ``format("holdfast-database")`` available in PySpark without registration; see `pyspark_holdfast`.

PySpark registers one `DefaultSource` of each such package, so a second format needs a second package.
"""

from holdfast.spark.source import HoldfastDatabaseDataSource as DefaultSource

__all__ = ["DefaultSource"]
