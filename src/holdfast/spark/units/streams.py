"""Name the job of a stream's batch: after the query, which its checkpoint names, and the number of the batch.

A checkpoint that is new begins with batch 0 again, and has another query id. One that is used again has the same id, so
a batch that Spark repeats is the same job.

Source: StreamExecution of Spark 4 sets the local property when it begins to run a query.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.errors import InvalidRequestError, UnsupportedError
from holdfast.spark.session import is_classic
from holdfast.units.jobs import job_key

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["check_prefix", "job_of_batch"]

_QUERY_ID = "sql.streaming.queryId"
_LONGEST_ID = "0" * 36
_LONGEST_NUMBER = 2**63 - 1


def check_prefix(prefix: str) -> None:
    """Check that jobs can have names that begin with a text.

    Raises:
        InvalidRequestError: they cannot.
    """
    job_key(prefix)
    job_key(_name(prefix, _LONGEST_ID, _LONGEST_NUMBER))


def job_of_batch(prefix: str, batch: DataFrame, number: int) -> str:
    """Return the name of the job of a batch, in the function that `foreachBatch` calls.

    Raises:
        InvalidRequestError: no stream calls this.
        UnsupportedError: the stream is one of Spark Connect.
    """
    spark = batch.sparkSession
    if not is_classic(spark):
        raise UnsupportedError(
            "over Spark Connect a batch does not tell its query: call run in foreachBatch, with job=f'name-{number}', "
            "and take another name with each new checkpoint"
        )
    query = spark.sparkContext.getLocalProperty(_QUERY_ID)
    if not query:
        raise InvalidRequestError(
            "this function is for batches of a stream: pass it to foreachBatch; and if it is, PYSPARK_PIN_THREAD=false "
            "hides the query from it: unset it"
        )
    return _name(prefix, query, number)


def _name(prefix: str, query: str, number: int) -> str:
    return f"{prefix}-{query}-{number}"
