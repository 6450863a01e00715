"""Implement `holdfast.write`: write a DataFrame in one call, and return what was committed."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame

from holdfast.commit import CommitContext, JobOutcome, SaveMode
from holdfast.commit.destination import is_job_to_be_skipped
from holdfast.commit.two_phase.decision_log import find_job_by_write_id, read_log
from holdfast.commit.writes import find_job_by_file_names, find_job_by_token
from holdfast.errors import HoldfastError, InvalidRequestError, OutcomeUnknownError
from holdfast.options.keywords import (
    make_option_paths_absolute,
    option_from_columns,
    option_from_text,
    option_from_url,
    options_from_mode,
    options_from_values,
)
from holdfast.options.write import WriteOptions, WriteRequest, parse_write_request
from holdfast.runtime import SystemIds
from holdfast.spark.failures import find_holdfast_error
from holdfast.spark.session import (
    is_classic_session,
    refuse_relative_path_over_connect,
    register_during_call,
    require_dataframe,
)

_log = logging.getLogger(__name__)

_OVERWRITE_MODE = "spark.sql.sources.partitionOverwriteMode"


def write(
    df: DataFrame,
    url: str,
    *,
    mode: str | None = None,
    partition_by: str | Sequence[str] | None = None,
    file_format: str | None = None,
    committer: str | None = None,
    **options: object,
) -> JobResult:
    """Write a DataFrame so that all of it becomes visible at once and exactly once, or nothing at all.

    Guarantee: when this function returns, the destination contains every row exactly once, whatever failed in between.
    When it raises, the destination is unchanged, except after `OutcomeUnknownError`: in that case, ``holdfast recover``
    reports the outcome and completes or aborts the job. Committers other than the default guarantee less:
    docs/reference/committers.md.

    Args:
        df: the rows.
        url: ``s3://bucket/key`` or a directory.
        mode: ``append`` (the default), ``overwrite``, ``overwrite-partitions`` (replace only the partitions that are
            written), ``fail`` (alias ``error``, ``errorifexists``) or ``ignore``.
        partition_by: columns that become directories, outermost first.
        file_format: ``parquet`` (the default), ``csv``, ``json``, ``orc``, ``avro``, ``text`` or ``arrow``.
        committer: the commit protocol; ``two_phase`` by default.
        options: those of docs/reference/options.md, also in snake case: ``compression="zstd"``,
            ``max_records_per_file=10_000``.

    Raises:
        InvalidRequestError: fix the call; nothing happened.
        DestinationExistsError: the mode is ``fail`` and the destination holds data.
        HoldfastError: see `holdfast.errors` for what to do next.
        Exception: Spark's own error, if the query or Spark failed; nothing was written.

    Crash: ``holdfast recover`` aborts an undecided job and rolls a decided job forward; the next job at the destination
    also rolls a decided job forward.
    """
    require_dataframe(df)
    overwrite, given = options_from_mode(mode)
    given += [
        *option_from_url(url),
        *option_from_columns("partitionBy", partition_by, "partition_by"),
        *option_from_text("fileFormat", file_format, "file_format"),
        *option_from_text("committer", committer, "committer"),
        *options_from_values(options),
    ]
    if not any(one.name == "writetoken" for one in given):
        given += option_from_text("writeToken", SystemIds().token(), "writeToken")
    if is_classic_session(df.sparkSession):
        given = make_option_paths_absolute(given)
    return run_write(df, parse_write_request(given, overwrite))


def run_write(df: DataFrame, request: WriteRequest) -> JobResult:
    """Run a write whose options are parsed; see `write`.

    Raises:
        HoldfastError: see `write`.
    """
    options = request.options
    refuse_relative_path_over_connect(df.sparkSession, options.store.url)
    _refuse_dynamic_overwrite_setting(df, request)
    earlier = _find_earlier(options)
    if earlier is not None:
        return earlier
    try:
        with register_during_call(df.sparkSession):
            writer = df.write.format("holdfast").mode("overwrite" if request.overwrite else "append")
            writer.options(**request.strings).save()
    except (PySparkException, Py4JError) as error:  # Py4JError: a Python process of Spark's died
        return _find_result_despite_spark_error(error, options)
    return _find_result(options, succeeded=True)


def _open_context(options: WriteOptions) -> CommitContext:
    return options.store.open(options.settings, committer=options.committer)


def _find_earlier(options: WriteOptions) -> JobResult | None:
    """Return the result of an earlier write with the same write id; None if there is none, or no write id."""
    if not options.write_id:
        return None
    with _open_context(options) as ctx:
        found = find_job_by_write_id(ctx, read_log(ctx), options.write_id)
    return None if found is None else JobResult.of(options.store.url, found)


def _find_result_despite_spark_error(error: Exception, options: WriteOptions) -> JobResult:
    """Return the committed job, if there is one.

    Spark reports a failure even if a process died after the commit.

    Raises:
        HoldfastError: a Holdfast error ended the job. If another error did, Spark's own error is raised.
    """
    cause = find_holdfast_error(error)
    try:
        result = _find_result(options, succeeded=False)
    except HoldfastError:
        result = JobResult(url=options.store.url, job=None)  # the log cannot be read: report the first error
    if result.job is not None:
        _log.warning("Spark reports a failure, but the job is committed and its data is visible: job=%s", result.job)
        return result
    if cause is None:
        raise error
    raise cause from None  # Spark's pages of stack traces add nothing


def _refuse_dynamic_overwrite_setting(df: DataFrame, request: WriteRequest) -> None:
    """Refuse a full overwrite if Spark's own writers would keep other partitions because of a session setting.

    Raises:
        InvalidRequestError: the session's setting and the call contradict each other.
    """
    options = request.options
    if options.mode is not SaveMode.OVERWRITE or not options.partition_by:
        return
    if "partitionoverwritemode" in request.strings:
        return
    if str(df.sparkSession.conf.get(_OVERWRITE_MODE)).lower() == "dynamic":
        raise InvalidRequestError(
            "the session's overwrite mode is dynamic, but mode overwrite replaces everything: choose mode "
            "overwrite-partitions, or pass partition_overwrite_mode='static'",
            setting=_OVERWRITE_MODE,
        )


def _find_result(options: WriteOptions, *, succeeded: bool) -> JobResult:
    """Look up the outcome of the write with `options.token` at the destination.

    Args:
        succeeded: whether Spark reports that the job is committed.
    """
    url, token = options.store.url, options.token
    with _open_context(options) as ctx:
        found = find_job_by_token(ctx, token)
        if found is None and succeeded and options.write_id:
            # Another write with the same id was committed while this one ran.
            found = find_job_by_write_id(ctx, read_log(ctx), options.write_id)
        is_missing = found is None and succeeded
        # In mode ignore, nothing was written if there are data; if there are none, the job has run, and is lost.
        if is_missing and options.mode is SaveMode.IGNORE and is_job_to_be_skipped(ctx, options.mode):
            return JobResult(url=url, job=None)
        if is_missing:
            # The option that switches _SUCCESS off is set, or another job has replaced the file.
            found = find_job_by_file_names(ctx, token)
            _log.warning("the number of rows is unknown: there is no _SUCCESS file of this job any more")
            if found is None:
                raise OutcomeUnknownError(
                    "Spark reports that the rows are committed, but this machine does not see them: check the "
                    "destination from one of Spark's machines before writing them again",
                    url=ctx.url,
                )
    return JobResult(url=url, job=None) if found is None else JobResult.of(url, found)


@dataclass(frozen=True, kw_only=True)
class JobResult:
    """The result of a write or a job.

    Attributes:
        url: the destination.
        job: the job's id; None if mode ``ignore`` found data and nothing was written.
        files, bytes: number and total size of the committed files.
        rows: number of the committed rows; 0 if it is unknown: for files of `holdfast.job`, and for a committer without
            a log if its ``_SUCCESS`` is missing or was replaced.
        finished: False if work after the commit is pending. The data is safe; ``holdfast recover`` finishes the work.
    """

    url: str
    job: str | None
    files: int = 0
    bytes: int = 0
    rows: int = 0
    finished: bool = True

    @classmethod
    def of(cls, url: str, committed: JobOutcome) -> JobResult:
        """Build the result of a committed job."""
        totals = committed.totals
        return cls(
            url=url,
            job=committed.job,
            files=totals.files,
            bytes=totals.size_bytes,
            rows=totals.rows,
            finished=committed.finished,
        )
