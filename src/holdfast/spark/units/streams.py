"""Name the job of a stream's batch: after the query, which its checkpoint names, and the number of the batch.

A checkpoint that is new begins with batch 0 again, and has another query id. One that is used again has the same id, so
a batch that Spark repeats is the same job.

An older copy of a checkpoint has the id of the query, too, but not the newest batches: Spark makes others of what has
come since, and gives them the same numbers. What tells them apart is when they were made, which the checkpoint has.

Source: Spark 4's StreamExecution sets the id of the query when it begins to run it, and MicroBatchExecution passes each
batch to its sink as one SQL execution, whose id no other one of the application has. Before that, it writes the time
of the batch into the log of offsets, from which a batch that is repeated gets it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from holdfast.errors import InvalidRequestError, UnsupportedError
from holdfast.spark.session import is_classic
from holdfast.units.jobs import job_key

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["Batch", "check_prefix", "job_of_batch"]

_QUERY_ID = "sql.streaming.queryId"
_EXECUTION_ID = "spark.sql.execution.id"
_LONGEST_ID = "0" * 36
_LONGEST_NUMBER = 2**63 - 1
_MADE = re.compile(r'"batchTimestampMs":(\d+)')

_ended: dict[tuple[str, str, str], tuple[str, str, int]] = {}
"""By store, prefix and query: the last batch whose job has ended in this process: application, execution and number."""


class Batch(NamedTuple):
    """A batch of a stream: the name of its job, and when Spark has made it; empty if that is not known."""

    job: str
    made: str


def check_prefix(prefix: str) -> None:
    """Check that jobs can have names that begin with a text.

    Raises:
        InvalidRequestError: they cannot.
    """
    job_key(prefix)
    job_key(_name(prefix, _LONGEST_ID, _LONGEST_NUMBER))


@contextmanager
def job_of_batch(prefix: str, batch: DataFrame, number: int, store: str) -> Iterator[Batch]:
    """Run the job of a batch, in the function that `foreachBatch` calls.

    Args:
        store: its URL.

    Raises:
        InvalidRequestError: no stream calls this, or a job of this batch has had the name already.
        UnsupportedError: the stream is one of Spark Connect.
    """
    spark = batch.sparkSession
    if not is_classic(spark):
        raise UnsupportedError(
            "over Spark Connect a batch does not tell its query: call run in foreachBatch, with job=f'name-{number}', "
            "and take another name with each new checkpoint"
        )
    context = spark.sparkContext
    query = context.getLocalProperty(_QUERY_ID)
    if not query:
        raise InvalidRequestError(
            "this function is for batches of a stream: pass it to foreachBatch; and if it is, other threads and "
            "PYSPARK_PIN_THREAD=false hide the query from it: call it in the thread of foreachBatch, and unset that"
        )
    place = store, prefix, query
    turn = context.applicationId, context.getLocalProperty(_EXECUTION_ID) or "", number
    if _ended.get(place) == turn:
        # The second of two functions would find the job finished, and do nothing.
        raise InvalidRequestError(
            "the job of this batch has run already: if a foreachBatch runs several functions, give each a job name of "
            "its own; if it calls one again, after an error of something else, let the query fail and start it again",
            job=prefix,
        )
    yield Batch(_name(prefix, query, number), _made(spark, query, number))
    _ended[place] = turn


def _made(spark: SparkSession, query: str, number: int) -> str:
    context = spark.sparkContext
    java: Any = context._jvm
    try:
        running = spark._jsparkSession.sharedState().activeStreamingQueries().get(java.java.util.UUID.fromString(query))
        path = java.org.apache.hadoop.fs.Path(f"{running.resolvedCheckpointRoot()}/offsets/{number}")
        with closing(path.getFileSystem(context._jsc.hadoopConfiguration()).open(path)) as file:
            found = _MADE.search(java.org.apache.commons.io.IOUtils.toString(file, "UTF-8"))
    except (Py4JError, PySparkException, AttributeError, TypeError):  # private to Spark, perhaps gone one day
        return ""
    return "" if found is None else found[1]


def _name(prefix: str, query: str, number: int) -> str:
    return f"{prefix}-{query}-{number}"
