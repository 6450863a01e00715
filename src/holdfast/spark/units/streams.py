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
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from holdfast.errors import InvalidRequestError, UnsupportedError
from holdfast.spark.session import is_classic
from holdfast.transactions.base import SnapshotReader
from holdfast.units.jobs import Job, job_key

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_QUERY_ID = "sql.streaming.queryId"
_EXECUTION_ID = "spark.sql.execution.id"
_LONGEST_ID = "0" * 36
_LONGEST_NUMBER = 2**63 - 1
_MADE = re.compile(r'"batchTimestampMs":(\d+)')


class _Turn(NamedTuple):
    """One call of the function of a `foreachBatch`."""

    application: str
    execution: str
    number: int


_ENDED = object()
"""Stands for the function of a job that has ended: not even the same one has anything to do."""

_begun: dict[tuple[str, str], tuple[_Turn, Mapping[int, object]]] = {}
"""By prefix and query: the batch that was last, and the functions that have begun its jobs in this process, by job id.

An id tells whether two functions share a job; the URL does not, since a database has many.
"""

_lock = threading.Lock()
"""A `foreachBatch` may run its functions in threads."""


@dataclass(slots=True)
class Batch:
    """A batch of a stream, and its job.

    Attributes:
        job: the name of the job.
        made: when Spark has made the batch; empty if that is not known.
        job_id: which job has the name, as soon as it has begun.
    """

    job: str
    made: str
    _place: tuple[str, str]
    _turn: _Turn
    _function: object
    job_id: int | None = None

    def require_own(self, database: SnapshotReader) -> None:
        """Check that the function has something to do in this turn, and that no other one has begun the job.

        Raises:
            InvalidRequestError: it has ended the job, or another one has begun it: that one's work would count as this
                one's.
        """
        jobs = self._jobs()
        key = job_key(self.job)
        record = database.get_many([key]).get(key) if jobs else None
        if record is not None:
            self._require_own(jobs, Job.of(key, record).id)

    def begin(self, job_id: int) -> None:
        """Note that the function has begun the job, before any unit runs.

        Raises:
            InvalidRequestError: see `require_own`.
        """
        with _lock:
            jobs = self._jobs()
            self._require_own(jobs, job_id)
            _begun[self._place] = self._turn, {**jobs, job_id: self._function}
        self.job_id = job_id

    def end(self) -> None:
        """Note that the job has ended."""
        assert self.job_id is not None, "it has begun"
        with _lock:
            _begun[self._place] = self._turn, {**self._jobs(), self.job_id: _ENDED}

    def _jobs(self) -> Mapping[int, object]:
        turn, jobs = _begun.get(self._place, (self._turn, {}))
        return jobs if turn == self._turn else {}

    def _require_own(self, jobs: Mapping[int, object], job_id: int) -> None:
        if jobs.get(job_id, self._function) is not self._function:
            raise InvalidRequestError(
                "the job of this batch has begun already: if a foreachBatch runs several functions, give each a job "
                "name of its own; if it calls one again, after an error of something else, let the query fail and "
                "start it again",
                job=self._place[0],
            )


def check_prefix(prefix: str) -> None:
    """Check that jobs can have names that begin with a text.

    Raises:
        InvalidRequestError: they cannot.
    """
    job_key(prefix)
    job_key(_name(prefix, _LONGEST_ID, _LONGEST_NUMBER))


def batch_of_query(prefix: str, batch: DataFrame, number: int, function: object) -> Batch:
    """Return the batch with which Spark calls the function of `foreachBatch`.

    Args:
        function: what its units run.

    Raises:
        InvalidRequestError: no stream calls this.
        UnsupportedError: the stream is one of Spark Connect.
    """
    spark = batch.sparkSession
    if not is_classic(spark):
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
    turn = _Turn(context.applicationId, context.getLocalProperty(_EXECUTION_ID) or "", number)
    return Batch(_name(prefix, query, number), _made(spark, query, number), (prefix, query), turn, function)


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
