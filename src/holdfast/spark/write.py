"""The pleasant way in: `write`."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame
from pyspark.sql.functions import col

from holdfast.commit import SaveMode
from holdfast.commit.log import read_log
from holdfast.commit.records import Written
from holdfast.commit.write_ids import find_write
from holdfast.commit.written import find_files, find_written
from holdfast.errors import HoldfastError, InvalidRequestError
from holdfast.formats import nearest
from holdfast.seams import SystemIds
from holdfast.spark.failures import typed_again
from holdfast.spark.options import WriteOptions, joined_columns, option_strings, parse_write_options
from holdfast.spark.session import register

__all__ = ["WriteResult", "write"]

_log = logging.getLogger(__name__)

# What the caller writes: Spark's mode, and the options that say the rest.
_MODES: Mapping[str, tuple[str, Mapping[str, str]]] = {
    "append": ("append", {}),
    "overwrite": ("overwrite", {}),
    "overwrite-partitions": ("overwrite", {"partitionOverwriteMode": "dynamic"}),
    "fail": ("append", {"ifExists": "fail"}),
    "error": ("append", {"ifExists": "fail"}),
    "errorifexists": ("append", {"ifExists": "fail"}),
    "ignore": ("append", {"ifExists": "ignore"}),
}


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
    mode: str = "append",
    partition_by: str | Sequence[str] | None = None,
    file_format: str = "parquet",
    committer: str = "two_phase",
    repartition: bool = False,
    sort_within_partitions: bool = False,
    **options: object,
) -> WriteResult:
    """Write a DataFrame so that all of it becomes visible at once, exactly once, or nothing of it.

    Guarantee: when this returns, the destination holds every row once, whatever died on the way; when it raises, the
    destination is as it was, except after `OutcomeUnknownError`, where ``holdfast recover`` tells and ends it. Other
    committers than the default guarantee less: docs/committers.md.

    Args:
        df: the rows.
        url: ``s3://bucket/key`` or a directory.
        mode: ``append``, ``overwrite``, ``overwrite-partitions`` (only the partitions that are written), ``fail``
            (alias ``error``, ``errorifexists``) or ``ignore``.
        partition_by: columns that become directories, outermost first.
        file_format: ``parquet``, ``csv``, ``json``, ``orc``, ``avro``, ``text`` or ``arrow``.
        committer: how the output is held and shown.
        repartition: bring the rows of a partition to one task first: few files, one shuffle.
        sort_within_partitions: sort each task's rows by `partition_by` first: a task then has one file open at a time.
        options: those of docs/spark.md, also in snake case: ``compression="zstd"``, ``max_records_per_file=10_000``.

    Raises:
        InvalidRequestError: fix the call; nothing happened.
        DestinationExistsError: mode ``fail`` and the destination holds data.
        HoldfastError: see `holdfast.errors` for what to do next.
        Exception: Spark's own, if the query or Spark failed; nothing was written.

    Crash: undecided jobs are ended by ``holdfast recover``, decided ones also by the next job on the destination.
    """
    columns = (partition_by,) if isinstance(partition_by, str) else tuple(partition_by or ())
    spark_mode, implied = _parse_mode(mode)
    strings = option_strings(options)
    token = next((strings.pop(key) for key in list(strings) if key.lower() == "writetoken"), "") or SystemIds().token()
    if not any(key.lower() == "timezone" for key in strings):
        strings["timeZone"] = str(df.sparkSession.conf.get("spark.sql.session.timeZone"))
    given = {
        **strings,
        **implied,
        "path": url,
        "fileFormat": file_format,
        "committer": committer,
        "writeToken": token,
        **({"partitionBy": joined_columns(columns)} if columns else {}),
    }
    parsed = parse_write_options(given, overwrite=spark_mode == "overwrite")
    rows = _arrange(df, columns, repartition, sort_within_partitions)
    earlier = _find_earlier(parsed, url)
    if earlier is not None:
        return earlier
    register(df.sparkSession)
    try:
        rows.write.format("holdfast").mode(spark_mode).options(**given).save()
    except (PySparkException, Py4JError) as error:  # the second where a Python process of Spark's died
        return _after_failure(error, parsed, url, token)
    return _find_result(parsed, url, token, ended_well=True)


def _find_earlier(options: WriteOptions, url: str) -> WriteResult | None:
    """What an earlier write with the same write id did; None without a write id, or if it is free."""
    if not options.write_id:
        return None
    ctx = options.open()
    try:
        found = find_write(ctx, read_log(ctx), options.write_id)
    finally:
        ctx.close()
    return None if found is None else _result(url, found)


def _result(url: str, found: Written) -> WriteResult:
    totals = found.totals
    return WriteResult(
        url=url,
        job=found.job,
        files=totals.files,
        bytes=totals.size_bytes,
        rows=totals.rows,
        finished=found.finished,
    )


def _after_failure(error: Exception, options: WriteOptions, url: str, token: str) -> WriteResult:
    """Spark reports a failure also where only the process that committed died; the log knows better.

    Raises:
        HoldfastError: what ended the job, if it was an error of ours; else Spark's own error again.
    """
    ours = typed_again(error)
    try:
        result = _find_result(options, url, token, ended_well=False)
    except HoldfastError:
        result = WriteResult(url=url, job=None)  # the log cannot be asked: the first error stands
    if result.job is not None:
        _log.warning("Spark reports a failure, but the job is committed and its data is there: job=%s", result.job)
        return result
    if ours is None:
        raise error
    raise ours from None  # Spark's pages around our sentence say nothing more


def _parse_mode(mode: str) -> tuple[str, Mapping[str, str]]:
    try:
        return _MODES[mode.strip().lower().replace("_", "-")]
    except KeyError:
        raise InvalidRequestError(f"no such mode: {nearest(mode, _MODES)}", mode=mode) from None


def _arrange(df: DataFrame, columns: tuple[str, ...], repartition: bool, sort: bool) -> DataFrame:
    if not (repartition or sort):
        return df
    if not columns:
        raise InvalidRequestError(
            "repartition and sort_within_partitions go by the partition columns: give partition_by"
        )
    keys: list[Column] = [col(f"`{name.replace('`', '``')}`") for name in columns]
    if repartition:
        df = df.repartition(*keys)
    return df.sortWithinPartitions(*keys) if sort else df


def _find_result(options: WriteOptions, url: str, token: str, *, ended_well: bool) -> WriteResult:
    """What the destination says about the write that carried `token`.

    Args:
        ended_well: whether Spark says that the job is committed.
    """
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
    return WriteResult(url=url, job=None) if found is None else _result(url, found)
