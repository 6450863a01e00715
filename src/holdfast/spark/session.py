"""Make a Spark session know Holdfast and fit for it."""

from __future__ import annotations

import logging

from pyspark.sql import SparkSession

from holdfast.spark.source import HoldfastDataSource

__all__ = ["register"]

_log = logging.getLogger(__name__)

# Any other value makes Spark's Arrow writer add up the size of the whole batch after every row: the way from the JVM to
# Python then takes three times as long (4.7 s instead of 1.6 s for 10 M rows of 6 columns).
_BATCH_BYTES = "spark.sql.execution.arrow.maxBytesPerBatch"
_UNCHECKED = "2147483647"


def register(spark: SparkSession) -> None:
    """Make ``format("holdfast")`` known to a session and tune the session for it; again does nothing.

    A setting that the user has set, for the session or for the application, is left as it is.

    Memory: Arrow batches are then bounded by ``spark.sql.execution.arrow.maxRecordsPerBatch`` (10,000 rows) alone; for
    rows of more than some 100 KB set that lower.
    """
    # Spark looks formats up in the thread's active session, whatever session a DataFrame is of; PySpark does the same
    # in createDataFrame.
    SparkSession._get_j_spark_session_class(spark._jvm).setActiveSession(spark._jsparkSession)
    spark.dataSource.register(HoldfastDataSource)
    if spark.conf.get(_BATCH_BYTES, None) is None:  # with a default given, Spark's own default does not come back
        spark.conf.set(_BATCH_BYTES, _UNCHECKED)
        _log.info("set for this session: %s=%s", _BATCH_BYTES, _UNCHECKED)
