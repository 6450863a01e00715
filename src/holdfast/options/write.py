"""Parse the options of a batch write.

Unknown, invalid or contradictory options are refused in one sentence before any work starts: an option that is
silently ignored costs its user a day. Names are Spark's own wherever Spark has one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from holdfast.commit import CommitSettings, SaveMode
from holdfast.errors import InvalidRequestError
from holdfast.formats import format_name
from holdfast.options.commit import COMMIT_KEYS, as_committer, parse_commit_settings
from holdfast.options.file_format import FormatRequest
from holdfast.options.keywords import to_strings
from holdfast.options.location import LOCATION_KEYS, LocationOptions, given_options, parse_location
from holdfast.options.values import as_boolean, as_choice, as_columns, as_name, as_record_limit, as_size
from holdfast.stores.given import GivenOption, GivenOptions, OptionSource

WRITE_KEYS = (
    *LOCATION_KEYS,
    "fileFormat",
    "committer",
    "partitionBy",
    "ifExists",
    "partitionOverwriteMode",
    "maxRecordsPerFile",
    "targetFileSize",
    "writeId",
    "writeToken",
    "mergeSchema",
    "timeZone",
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
        time_zone: the time zone of timestamps in directory names, unless the table already defines one; empty if
            unknown.
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
    time_zone: str = ""


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

    def in_time_zone(self, zone: str) -> WriteRequest:
        """Return the same request with `zone` as its time zone, unless it has one."""
        if self.options.time_zone:
            return self
        options = replace(self.options, time_zone=zone)
        return replace(self, options=options, strings={**self.strings, "timezone": zone})


def parse_write_request(given: Sequence[GivenOption], overwrite: bool) -> WriteRequest:
    """Parse the options of a call, and store the strings for Spark with them.

    Raises:
        InvalidRequestError: see `parse_write_options`.
    """
    options = parse_write_options(given, overwrite)
    return WriteRequest(options=options, overwrite=overwrite, strings=to_strings(given))


def parse_write_options(options: OptionSource, overwrite: bool) -> WriteOptions:
    """Parse the options of a batch write.

    Args:
        options: the options of ``df.write``, with names in any case, or those of a Python call.
        overwrite: whether Spark's save mode is ``overwrite``; the only other mode that Spark allows here is ``append``.

    Raises:
        InvalidRequestError: an option is unknown, invalid or contradicts another; the message says how to fix it.
    """
    return parse_write(given_options(options, WRITE_KEYS), overwrite)


def parse_write(given: GivenOptions, overwrite: bool) -> WriteOptions:
    """Parse the options of a write, in a call that may take other options as well.

    Args:
        overwrite: see `parse_write_options`.

    Raises:
        InvalidRequestError: see `parse_write_options`.
    """
    store = parse_location(given)
    file_format = FormatRequest(given.take("fileFormat", format_name) or "parquet", given.rest).check(given.known)
    partition_by = given.take("partitionBy", as_columns) or ()
    committer = given.take("committer", as_committer) or "two_phase"
    write_id = given.take("writeId", as_name) or ""
    if write_id and committer != "two_phase":
        raise InvalidRequestError(
            "only two_phase records which writes are committed: leave out writeId, or the committer",
            option="writeId",
            committer=committer,
        )
    return WriteOptions(
        store=store,
        format=file_format,
        committer=committer,
        mode=_save_mode(given, overwrite, partition_by),
        partition_by=partition_by,
        max_records_per_file=given.take("maxRecordsPerFile", as_record_limit),
        target_file_size_bytes=given.take("targetFileSize", lambda text: as_size(text, least=1)),
        settings=parse_commit_settings(given),
        write_id=write_id,
        token=given.take("writeToken", str) or "",
        merge_schema=given.take("mergeSchema", as_boolean) or False,
        time_zone=given.take("timeZone", as_name) or "",
    )


def _save_mode(given: GivenOptions, overwrite: bool, partition_by: tuple[str, ...]) -> SaveMode:
    if_exists = given.take("ifExists", lambda text: as_choice(text, ("append", "fail", "ignore")))
    scope = given.take("partitionOverwriteMode", lambda text: as_choice(text, ("static", "dynamic")))
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
