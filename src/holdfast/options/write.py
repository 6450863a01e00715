"""Parse the options of a write: of a batch, of a stream's batches, or of `holdfast.job`.

Unknown, invalid or contradictory options are refused in one sentence before any work starts: an option that is
silently ignored costs its user a day. Names are Spark's own wherever Spark has one. To add an option, add a field to
`WriteOptions` and a line to the table above it; an option of the commit is a field of `CommitSettings` and a line of
`_COMMIT`. Then unit/options/test_keywords.py and docs/reference/options.md.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from holdfast.commit import CommitSettings, SaveMode, get_committer
from holdfast.errors import InvalidRequestError
from holdfast.formats import format_name
from holdfast.options.file_format import FormatRequest, refuse_unknown_options
from holdfast.options.keywords import as_spark_options
from holdfast.options.location import LOCATION_KEYS, LocationOptions, collect_options, parse_location
from holdfast.options.values import (
    check_local_directory,
    check_shared_location,
    parse_columns,
    parse_printable_name,
    parse_record_limit,
)
from holdfast.stores.provider import (
    MIB,
    GivenOption,
    GivenOptions,
    OptionSource,
    OptionSpec,
    as_boolean,
    make_number_parser,
    make_size_parser,
    make_word_parser,
)


def _option_names(specs: Sequence[OptionSpec]) -> tuple[str, ...]:
    return tuple(spec.name for spec in specs)


# --- the commit -------------------------------------------------------------------------------------------------------
_COMMIT = (
    OptionSpec("partSize", "part_size_bytes", make_size_parser(5 * MIB)),
    OptionSpec("logRetention", "log_retention_entries", make_number_parser(1, 100_000)),
    OptionSpec("allowUnfenced", "allow_unfenced", as_boolean),
    OptionSpec("scratchDir", "scratch_dir", check_local_directory),
    OptionSpec("sharedDir", "shared_dir", check_shared_location),
    OptionSpec("reportDir", "report_dir", check_shared_location),
)


COMMIT_KEYS = _option_names(_COMMIT)
"""Names of the options of a commit."""


def _parse_commit_settings(given: GivenOptions) -> CommitSettings:
    return CommitSettings(**given.fields(_COMMIT))


def _parse_committer(text: str) -> str:
    return get_committer(text).name


# --- batches ----------------------------------------------------------------------------------------------------------
_WRITE = (
    OptionSpec("committer", "committer", _parse_committer),
    OptionSpec("partitionBy", "partition_by", parse_columns),
    OptionSpec("maxRecordsPerFile", "max_records_per_file", parse_record_limit),
    OptionSpec("targetFileSize", "target_file_size_bytes", make_size_parser(1)),
    OptionSpec("writeId", "write_id", parse_printable_name),
    OptionSpec("writeToken", "token"),
    OptionSpec("mergeSchema", "merge_schema", as_boolean),
)
WRITE_KEYS = (
    *LOCATION_KEYS,
    "fileFormat",
    "ifExists",
    "partitionOverwriteMode",
    *_option_names(_WRITE),
    *COMMIT_KEYS,
)
"""Names of the options that `parse_write_options` takes, except those of the file format."""


@dataclass(frozen=True, kw_only=True)
class WriteOptions:
    """The parsed options of a batch write; any process can carry the write out.

    Attributes:
        store: the destination.
        format: the file format and its options.
        committer: name of the committer.
        mode: what to do with existing data.
        partition_by: columns that become directories, as the user spelled them.
        max_records_per_file: the most rows in one file; None for no limit.
        target_file_size_bytes: approximate size at which a new file is started; None for no limit.
        settings: the settings of the commit.
        write_id: the caller's own id for the write: at most one job is committed under it, however often the write is
            retried. Empty for none.
        token: identifies one call of the write, so that the call can find its job. Empty for none.
        merge_schema: let the rows add columns to the table and widen its types.
    """

    store: LocationOptions
    format: FormatRequest = field(default_factory=FormatRequest)
    committer: str = "two_phase"
    mode: SaveMode = SaveMode.APPEND
    partition_by: tuple[str, ...] = ()
    max_records_per_file: int | None = None
    target_file_size_bytes: int | None = None
    settings: CommitSettings = field(default_factory=CommitSettings)
    write_id: str = ""
    token: str = ""
    merge_schema: bool = False


@dataclass(frozen=True, kw_only=True)
class WriteRequest:
    """The options of a write: parsed, and as the strings that Spark passes to the data source.

    Spark creates the data source in a separate process, to which it passes only strings. The caller's process parses
    the options once, and the process of the data source parses the strings again.

    Attributes:
        options: the parsed options.
        overwrite: whether Spark's save mode is ``overwrite``; the only other mode that Spark allows here is ``append``.
        strings: the options as Spark passes them; not part of the repr, since they may contain secrets.
    """

    options: WriteOptions
    overwrite: bool
    strings: Mapping[str, str] = field(repr=False)


def parse_write_request(given: Sequence[GivenOption], overwrite: bool) -> WriteRequest:
    """Parse the options of a call, and store the strings for Spark with them.

    Raises:
        InvalidRequestError: see `parse_write_options`.
    """
    options = parse_write_options(given, overwrite)
    return WriteRequest(options=options, overwrite=overwrite, strings=as_spark_options(given))


def parse_write_options(options: OptionSource, overwrite: bool) -> WriteOptions:
    """Parse the options of a batch write.

    Args:
        options: the options of ``df.write``, with names in any case, or those of a Python call.
        overwrite: whether Spark's save mode is ``overwrite``; the only other mode that Spark allows here is ``append``.

    Raises:
        InvalidRequestError: an option is unknown, invalid or contradicts another; the message says how to fix it.
    """
    return _parse_batch_write_options(collect_options(options, WRITE_KEYS), overwrite)


def _parse_batch_write_options(given: GivenOptions, overwrite: bool) -> WriteOptions:
    """Parse the options of a write, in a call that may take other options as well.

    Args:
        overwrite: see `parse_write_options`.

    Raises:
        InvalidRequestError: see `parse_write_options`.
    """
    store = parse_location(given)
    file_format = FormatRequest(given.take("fileFormat", format_name) or "parquet", given.rest).check(given.known)
    fields = given.fields(_WRITE)
    mode = _parse_save_mode(given, overwrite, fields.get("partition_by", ()))
    options = WriteOptions(store=store, format=file_format, mode=mode, settings=_parse_commit_settings(given), **fields)
    if options.write_id and options.committer != "two_phase":
        raise InvalidRequestError(
            "only two_phase records which writes are committed: leave out writeId, or the committer",
            option="writeId",
            committer=options.committer,
        )
    return options


def _parse_save_mode(given: GivenOptions, overwrite: bool, partition_by: tuple[str, ...]) -> SaveMode:
    if_exists = given.take("ifExists", make_word_parser("append", "fail", "ignore"))
    scope = given.take("partitionOverwriteMode", make_word_parser("static", "dynamic"))
    if not overwrite:
        if scope == "dynamic":
            raise InvalidRequestError(
                "partitionOverwriteMode selects what an overwrite deletes: choose mode overwrite, or leave it out",
                option="partitionOverwriteMode",
                value=scope,
            )
        return SaveMode(if_exists or "append")
    if if_exists is not None:
        raise InvalidRequestError(
            "ifExists contradicts mode overwrite: leave one of them out", option="ifExists", value=if_exists
        )
    if scope != "dynamic":
        return SaveMode.OVERWRITE
    if not partition_by:
        raise InvalidRequestError(
            "only the partitions that are written would be replaced, but there are no partition columns: name them in "
            "partitionBy, or use mode overwrite with partitionOverwriteMode static, which deletes all that is there"
        )
    return SaveMode.OVERWRITE_PARTITIONS


# --- streams ----------------------------------------------------------------------------------------------------------
_STREAM_KEYS = (*WRITE_KEYS, "streamId", "checkpointLocation", "queryName")


@dataclass(frozen=True, kw_only=True)
class StreamOptions:
    """The parsed options of a stream's writes.

    Attributes:
        write: the options of each batch.
        stream_id: the stream's name at the destination; empty for the query's id, which is stored in its checkpoint.
    """

    write: WriteOptions
    stream_id: str = ""


def parse_stream_options(options: OptionSource, overwrite: bool) -> StreamOptions:
    """Parse the options of a stream's writes.

    Args:
        options: the options of ``df.writeStream``, including Spark's own ``checkpointLocation`` and ``queryName``.
        overwrite: whether the output mode is ``complete``; the only other mode that Spark allows here is ``append``.

    Raises:
        InvalidRequestError: an option is unknown, invalid or not for streams; the message says how to fix it.
    """
    given = collect_options(options, _STREAM_KEYS)
    for option, other in (("ifExists", "append"), ("partitionOverwriteMode", "static")):
        if (value := given.take(option, str.lower)) not in (None, other):
            raise InvalidRequestError(
                "a stream appends its batches, or replaces everything in output mode complete: leave the option out",
                option=option,
                value=value,
            )
    write = _parse_batch_write_options(given, overwrite)
    if write.write_id:
        raise InvalidRequestError(
            "a stream identifies its batches by number, and a write id would let only the first one through: use "
            "streamId",
            option="writeId",
        )
    if write.committer != "two_phase":
        raise InvalidRequestError(
            "only two_phase records which batches are committed, another committer would duplicate a batch that Spark "
            "repeats: leave the option out",
            option="committer",
            value=write.committer,
        )
    return StreamOptions(write=write, stream_id=given.take("streamId", parse_printable_name) or "")


# --- jobs of any files ------------------------------------------------------------------------------------------------
JOB_KEYS = (*LOCATION_KEYS, "committer", *COMMIT_KEYS)
"""Names of the options that `parse_job_options` takes."""


@dataclass(frozen=True, kw_only=True)
class JobOptions:
    """The parsed options of a job whose tasks write files of any kind; any process can carry the job out.

    Attributes:
        store: the destination.
        committer: name of the committer.
        settings: the settings of the commit.
    """

    store: LocationOptions
    committer: str = "two_phase"
    settings: CommitSettings = field(default_factory=CommitSettings)


def parse_job_options(options: OptionSource) -> JobOptions:
    """Parse the options of `holdfast.job`.

    Raises:
        InvalidRequestError: an option is unknown or invalid; the message says how to fix it.
    """
    given = collect_options(options, JOB_KEYS)
    refuse_unknown_options(given.rest, given.known)
    return JobOptions(
        store=parse_location(given),
        committer=given.take("committer", _parse_committer) or "two_phase",
        settings=_parse_commit_settings(given),
    )
