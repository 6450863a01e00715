"""The pleasant way in: `write`."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame

from holdfast.commit import SaveMode
from holdfast.commit.records import JobOutcome
from holdfast.commit.two_phase.decision_log import read_log
from holdfast.commit.two_phase.write_ids import find_write
from holdfast.commit.write_lookup import find_files, find_written
from holdfast.errors import HoldfastError, InvalidRequestError, OutcomeUnknownError
from holdfast.options.parsing import WriteOptions, parse_write_options
from holdfast.options.said import flag, rooted, say, say_columns, say_mode, say_options, say_url, settled
from holdfast.options.values import Saying
from holdfast.runtime import SystemIds
from holdfast.spark.failures import typed_again
from holdfast.spark.session import is_classic, registered, require_reachable, require_rows

__all__ = ["WriteResult", "write"]

_log = logging.getLogger(__name__)

_SCOPE = "spark.sql.sources.partitionOverwriteMode"


@dataclass(frozen=True, kw_only=True)
class WriteResult:
    """What a write did.

    Attributes:
        url: the destination.
        job: the job's id, None if mode ``ignore`` found data and nothing was written.
        files, bytes, rows: what the job committed. A job of a committer without a log whose ``_SUCCESS`` is not there
            (any more) has files, if any, but no rows.
        finished: False if work after the commit is pending (the data is safe; ``holdfast recover`` finishes it).
    """

    url: str
    job: str | None
    files: int = 0
    bytes: int = 0
    rows: int = 0
    finished: bool = True


def write(
    df: DataFrame,
    url: str,
    *,
    mode: str | None = None,
    partition_by: str | Sequence[str] | None = None,
    file_format: str | None = None,
    committer: str | None = None,
    repartition: bool = False,
    sort_within_partitions: bool = False,
    **options: object,
) -> WriteResult:
    """Write a DataFrame so that all of it becomes visible at once, exactly once, or nothing of it.

    Guarantee: when this returns, the destination holds every row once, whatever died on the way; when it raises, the
    destination is as it was, except after `OutcomeUnknownError`, where ``holdfast recover`` tells and ends it. Other
    committers than the default guarantee less: docs/reference/committers.md.

    Args:
        df: the rows.
        url: ``s3://bucket/key`` or a directory.
        mode: ``append`` (if nothing is said), ``overwrite``, ``overwrite-partitions`` (only the partitions that are
            written), ``fail`` (alias ``error``, ``errorifexists``) or ``ignore``.
        partition_by: columns that become directories, outermost first.
        file_format: ``parquet`` (if nothing is said), ``csv``, ``json``, ``orc``, ``avro``, ``text`` or ``arrow``.
        committer: how the output is held and shown; ``two_phase`` if nothing is said.
        repartition: bring the rows of a partition to one task first: few files, one shuffle.
        sort_within_partitions: sort each task's rows by `partition_by` first: a task then has one file open at a time.
        options: those of docs/reference/options.md, also in snake case: ``compression="zstd"``,
            ``max_records_per_file=10_000``.

    Raises:
        InvalidRequestError: fix the call; nothing happened.
        DestinationExistsError: mode ``fail`` and the destination holds data.
        HoldfastError: see `holdfast.errors` for what to do next.
        Exception: Spark's own, if the query or Spark failed; nothing was written.

    Crash: undecided jobs are ended by ``holdfast recover``, decided ones also by the next job on the destination.
    """
    require_rows(df)
    overwrite, said = say_mode(mode)
    said += [
        *say_url(url),
        *say_columns("partitionBy", partition_by, "partition_by"),
        *say("fileFormat", file_format, "file_format"),
        *say("committer", committer, "committer"),
        *say_options(options),
    ]
    if not any(one.name == "writetoken" for one in said):
        said += say("writeToken", SystemIds().token(), "writeToken")
    if not any(one.name == "timezone" for one in said):
        said += say("timeZone", df.sparkSession.conf.get("spark.sql.session.timeZone"), "timeZone")
    if is_classic(df.sparkSession):
        said = rooted(said)
    parsed = parse_write_options(said, overwrite)
    require_reachable(df.sparkSession, parsed.store.url)
    _require_same_scope(df, parsed, said)
    sort = flag(sort_within_partitions, "sort_within_partitions")
    rows = _arrange(df, parsed.partition_by, flag(repartition, "repartition"), sort)
    earlier = _find_earlier(parsed)
    if earlier is not None:
        return earlier
    try:
        with registered(df.sparkSession):
            writer = rows.write.format("holdfast").mode("overwrite" if overwrite else "append")
            writer.options(**settled(said)).save()
    except (PySparkException, Py4JError) as error:  # the second where a Python process of Spark's died
        return _after_failure(error, parsed)
    return _find_result(parsed, ended_well=True)


def _find_earlier(options: WriteOptions) -> WriteResult | None:
    """What an earlier write with the same write id did; None without a write id, or if it is free."""
    if not options.write_id:
        return None
    ctx = options.open()
    try:
        found = find_write(ctx, read_log(ctx), options.write_id)
    finally:
        ctx.close()
    return None if found is None else _result(options.store.url, found)


def _result(url: str, found: JobOutcome) -> WriteResult:
    totals = found.totals
    return WriteResult(
        url=url,
        job=found.job,
        files=totals.files,
        bytes=totals.size_bytes,
        rows=totals.rows,
        finished=found.finished,
    )


def _after_failure(error: Exception, options: WriteOptions) -> WriteResult:
    """Spark reports a failure also where only the process that committed died; the log knows better.

    Raises:
        HoldfastError: what ended the job, if it was an error of ours; else Spark's own error again.
    """
    ours = typed_again(error)
    try:
        result = _find_result(options, ended_well=False)
    except HoldfastError:
        result = WriteResult(url=options.store.url, job=None)  # the log cannot be asked: the first error stands
    if result.job is not None:
        _log.warning("Spark reports a failure, but the job is committed and its data is there: job=%s", result.job)
        return result
    if ours is None:
        raise error
    raise ours from None  # Spark's pages around our sentence say nothing more


def _require_same_scope(df: DataFrame, options: WriteOptions, said: Sequence[Saying]) -> None:
    """Spark's own writers go by the session's setting, and keep partitions that this overwrite would remove.

    Raises:
        InvalidRequestError: the session says one thing and the call another.
    """
    if options.mode is not SaveMode.OVERWRITE or not options.partition_by:
        return
    if any(one.name == "partitionoverwritemode" for one in said):
        return
    if str(df.sparkSession.conf.get(_SCOPE)).lower() == "dynamic":
        raise InvalidRequestError(
            "the session says dynamic and mode overwrite replaces everything: choose mode overwrite-partitions, or "
            "give partition_overwrite_mode='static'",
            setting=_SCOPE,
        )


def _arrange(df: DataFrame, columns: tuple[str, ...], repartition: bool, sort: bool) -> DataFrame:
    if not (repartition or sort):
        return df
    if not columns:
        raise InvalidRequestError(
            "repartition and sort_within_partitions go by the partition columns: give partition_by"
        )
    keys = [f"`{name.replace('`', '``')}`" for name in columns]  # text, for Spark Connect has columns of its own
    if repartition:
        df = df.repartition(*keys)
    return df.sortWithinPartitions(*keys) if sort else df


def _find_result(options: WriteOptions, *, ended_well: bool) -> WriteResult:
    """What the destination says about the write that carried `options.token`.

    Args:
        ended_well: whether Spark says that the job is committed.
    """
    url, token = options.store.url, options.token
    ctx = options.open()
    try:
        found = find_written(ctx, token)
        if found is None and ended_well and options.write_id:
            # Another write with the same id was decided while this one ran.
            found = find_write(ctx, read_log(ctx), options.write_id)
        if found is None and ended_well and options.mode is not SaveMode.IGNORE:
            # No _SUCCESS was wanted, or another job has put its own there.
            found = find_files(ctx, token)
            _log.warning("nobody can say how many rows were written: there is no _SUCCESS of this job any more")
    finally:
        ctx.close()
    if found is None and ended_well and options.mode is not SaveMode.IGNORE:
        raise OutcomeUnknownError(
            "Spark says that the rows are committed, but they cannot be seen from here: look at the destination from a "
            "machine of Spark's before writing them again",
            url=ctx.url,
        )
    return WriteResult(url=url, job=None) if found is None else _result(url, found)
