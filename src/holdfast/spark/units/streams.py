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
import threading
from contextlib import closing
from typing import TYPE_CHECKING, Any, NamedTuple

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from holdfast.errors import InvalidRequestError, UnsupportedError
from holdfast.spark.session import is_classic_session
from holdfast.units.jobs import job_key

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_QUERY_ID = "sql.streaming.queryId"
_EXECUTION_ID = "spark.sql.execution.id"
_LONGEST_ID = "0" * 36
_LONGEST_NUMBER = 2**63 - 1
_MADE = re.compile(r'"batchTimestampMs":(\d+)')


class StreamBatchJob(NamedTuple):
    """A batch of a stream, and the name of the job that runs its units.

    Attributes:
        job: the name of its job.
        made: when Spark has made the batch; empty if that is not known.
    """

    job: str
    made: str


_calls: dict[tuple[str, str], tuple[str, ...]] = {}
"""By prefix and query: the call of a `foreachBatch` that has run a job last."""

_lock = threading.Lock()
"""A `foreachBatch` may run its functions in threads."""


def check_job_prefix(prefix: str) -> None:
    """Check that a text can be the prefix of job names.

    Raises:
        InvalidRequestError: the text cannot be a prefix.
    """
    job_key(prefix)
    job_key(_job_name(prefix, _LONGEST_ID, _LONGEST_NUMBER))


def find_current_stream_batch(prefix: str, batch: DataFrame, number: int) -> StreamBatchJob:
    """Return the stream's batch for which Spark is calling the function of `foreachBatch`.

    Raises:
        InvalidRequestError: no stream calls this; or this call of `foreachBatch` has already begun a job with this
            prefix. If another function did so, its work would count as this one's.
        UnsupportedError: the stream runs on Spark Connect.
    """
    spark = batch.sparkSession
    if not is_classic_session(spark):
        raise UnsupportedError(
            "over Spark Connect a batch does not tell its query: call run in foreachBatch, with job=f'name-{number}'; "
            "with a new checkpoint, take another name, and let the source begin behind the rows that have counted"
        )
    context = spark.sparkContext
    query = context.getLocalProperty(_QUERY_ID)
    if not query:
        raise InvalidRequestError(
            "this function is for batches of a stream: pass it to foreachBatch; and if it is, other threads and "
            "PYSPARK_PIN_THREAD=false hide the query from it: call it in the thread of foreachBatch, and unset that"
        )
    call = context.applicationId, context.getLocalProperty(_EXECUTION_ID) or "", str(number)
    with _lock:
        last, _calls[prefix, query] = _calls.get((prefix, query)), call
    if last == call:
        raise InvalidRequestError(
            "the job of this batch has begun already: if a foreachBatch runs several functions, give each a job name "
            "of its own; if it calls one again after an error, let the query fail and start it again",
            job=prefix,
        )
    return StreamBatchJob(_job_name(prefix, query, number), _read_batch_creation_time(spark, query, number))


def _read_batch_creation_time(spark: SparkSession, query: str, number: int) -> str:
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


def _job_name(prefix: str, query: str, number: int) -> str:
    return f"{prefix}-{query}-{number}"
