"""Options as Spark hands them over (strings, names in any case) into frozen values, parsed once, before any work.

Whatever is unknown, wrong or contradictory is refused in one sentence: an option that is silently ignored costs its
user a day. The names are Spark's own wherever Spark has one.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from holdfast.commit import CommitContext, CommitSettings, SaveMode, get_committer, open_context
from holdfast.errors import InvalidRequestError
from holdfast.formats import FORMATS, FormatOptions, format_name, get_format
from holdfast.options.commit import COMMIT_KEYS, parse_commit_settings
from holdfast.options.conditions import Condition, parse_conditions
from holdfast.options.values import (
    MIB,
    Given,
    Options,
    as_boolean,
    as_choice,
    as_columns,
    as_name,
    as_number,
    as_record_limit,
    as_size,
)
from holdfast.stores.provider import OptionSpec, StoreOptions, StoreProvider
from holdfast.stores.registry import BUILT_IN, providers_for, take_store_options
from holdfast.wording import nearest

__all__ = [
    "JobOptions",
    "LocationOptions",
    "ReadOptions",
    "StreamOptions",
    "WriteOptions",
    "parse_job_options",
    "parse_late_format_options",
    "parse_read_options",
    "parse_stream_options",
    "parse_write_options",
]

_STORE_KEYS = ("path", "threads", *(spec.name for provider in BUILT_IN for spec in provider.specs))
_WRITE_KEYS = (
    *_STORE_KEYS,
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
_JOB_KEYS = (*_STORE_KEYS, "committer", *COMMIT_KEYS)
_STREAM_KEYS = (*_WRITE_KEYS, "streamId", "checkpointLocation", "queryName")
_READ_KEYS = (
    *_STORE_KEYS,
    "fileFormat",
    "partitionBy",
    "columns",
    "filters",
    "pushFilters",
    "splitSize",
    "timeZone",
    "reader",
)


# --- values -----------------------------------------------------------------------------------------------------------
@dataclass(frozen=True, kw_only=True)
class LocationOptions:
    """Where data is and how to reach it.

    Attributes:
        url: the destination, as the user wrote it.
        store_options: how to reach the stores; shows no secret.
        threads: calls to the store side by side in the driver; 32 saturate what one Python process can sign.
    """

    url: str
    store_options: tuple[StoreOptions, ...] = ()
    threads: int = 32

    def open(self, settings: CommitSettings | None = None, *, staging: bool = False) -> CommitContext:
        """A context of this process; the caller closes it.

        Args:
            staging: whether a scratch and a shared directory are wanted.
        """
        return open_context(
            self.url, store_options=self.store_options, settings=settings, threads=self.threads, staging=staging
        )


@dataclass(frozen=True, kw_only=True)
class WriteOptions:
    """A write, ready to be carried out by any process.

    Attributes:
        store: destination.
        file_format: name of the format.
        format_strings: the format's options as the user gave them, checked.
        committer: name of the committer.
        mode: what becomes of data that is there.
        partition_by: columns that become directories, as the user spelled them.
        max_records_per_file: exact limit, None for none.
        target_file_size_bytes: a file ends at about this size, None for no limit.
        settings: of the commit.
        write_id: the caller's own name for the write: under it one job is committed, however often it is repeated;
            empty for none.
        token: of the call that the write belongs to, which finds its job by it; empty for none.
        merge_schema: let the rows add columns to the table and widen its types.
        time_zone: in which directories name timestamps, where the table has none yet; empty: unknown.
    """

    store: LocationOptions
    file_format: str = "parquet"
    format_strings: Mapping[str, str] = field(default_factory=dict)
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

    @property
    def format_options(self) -> FormatOptions:
        """The format's options. Made anew: who only carries them, such as a job commit, does not load the format."""
        found: FormatOptions = get_format(self.file_format).parse_options(self.format_strings).options
        return found

    def open(self) -> CommitContext:
        """A context of this process for the write's committer; the caller closes it."""
        return self.store.open(self.settings, staging=get_committer(self.committer).staging)


@dataclass(frozen=True, kw_only=True)
class JobOptions:
    """A job whose tasks write files of any kind, ready to be carried out by any process.

    Attributes:
        store: destination.
        committer: name of the committer.
        settings: of the commit.
    """

    store: LocationOptions
    committer: str = "two_phase"
    settings: CommitSettings = field(default_factory=CommitSettings)

    def open(self) -> CommitContext:
        """A context of this process for the job's committer; the caller closes it."""
        return self.store.open(self.settings, staging=get_committer(self.committer).staging)


@dataclass(frozen=True, kw_only=True)
class StreamOptions:
    """A stream's writes.

    Attributes:
        write: each batch's.
        stream_id: the stream's name on the destination; empty: the id of the query, which its checkpoint keeps.
    """

    write: WriteOptions
    stream_id: str = ""


@dataclass(frozen=True, kw_only=True)
class ReadOptions:
    """A read.

    Attributes:
        store: what to read.
        file_format: None: as the newest decision says, else as the files are named.
        format_options: strings, parsed once the format is known.
        columns: the columns to read, None for all.
        conditions: only rows that meet all of them.
        time_zone: in which partition directories name timestamps: the session's when they were written. None: unknown.
        push_filters: let Spark narrow the scan by a query's own conditions; only for a DataFrame that is used once.
        reader: ``native`` for Spark's own, ``python``, or ``auto`` for Spark's own where that reads the same.
        split_size_bytes: a task reads about this much; 128 MiB is Spark's own ``spark.sql.files.maxPartitionBytes``.
    """

    store: LocationOptions
    file_format: str | None = None
    format_options: Mapping[str, str] = field(default_factory=dict)
    columns: tuple[str, ...] | None = None
    conditions: tuple[Condition, ...] = ()
    time_zone: str | None = None
    push_filters: bool = False
    reader: str = "auto"
    split_size_bytes: int = 128 * MIB


# --- parsing ----------------------------------------------------------------------------------------------------------
def parse_write_options(options: Options, overwrite: bool) -> WriteOptions:
    """The options of a write.

    Args:
        options: of ``df.write``, names in any case; or what a call said.
        overwrite: whether Spark's save mode is ``overwrite``; the only other one that it lets through is ``append``.

    Raises:
        InvalidRequestError: one sentence with the next act.
    """
    given = _given(options, _WRITE_KEYS)
    return _parse_write(given, overwrite)


def parse_stream_options(options: Options, overwrite: bool) -> StreamOptions:
    """The options of a stream's writes.

    Args:
        options: of ``df.writeStream``, Spark's own ``checkpointLocation`` and ``queryName`` among them.
        overwrite: whether the output mode is ``complete``; Spark lets only that and ``append`` through.

    Raises:
        InvalidRequestError: one sentence with the next act.
    """
    given = _given(options, _STREAM_KEYS)
    for option, other in (("ifExists", "append"), ("partitionOverwriteMode", "static")):
        if (value := given.take(option, str.lower)) not in (None, other):
            raise InvalidRequestError(
                "a stream adds its batches, or replaces everything in output mode complete: leave the option out",
                option=option,
                value=value,
            )
    write = _parse_write(given, overwrite)
    if write.write_id:
        raise InvalidRequestError(
            "a stream's batches are told apart by their numbers, a write id would let only the first through: use "
            "streamId",
            option="writeId",
        )
    if write.committer != "two_phase":
        raise InvalidRequestError(
            "only two_phase remembers which batches are committed, with another committer a batch that Spark repeats "
            "would be there twice: leave the option out",
            option="committer",
            value=write.committer,
        )
    return StreamOptions(write=write, stream_id=given.take("streamId", as_name) or "")


def _parse_write(given: Given, overwrite: bool) -> WriteOptions:
    store = _parse_store(given)
    file_format = get_format(given.take("fileFormat", _format_name) or "parquet")
    parsed = file_format.parse_options(given.rest)
    _refuse_unknown(parsed.unknown, (*given.known, *file_format.parsers))
    partition_by = given.take("partitionBy", as_columns) or ()
    committer = given.take("committer", _committer_name) or "two_phase"
    write_id = given.take("writeId", as_name) or ""
    if write_id and committer != "two_phase":
        raise InvalidRequestError(
            "only two_phase remembers which writes are committed: leave writeId out, or the committer",
            option="writeId",
            committer=committer,
        )
    return WriteOptions(
        store=store,
        file_format=file_format.name,
        format_strings=given.rest,
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


def parse_job_options(options: Options) -> JobOptions:
    """The options of `holdfast.job`.

    Raises:
        InvalidRequestError: one sentence with the next act.
    """
    given = _given(options, _JOB_KEYS)
    _refuse_unknown(given.rest, given.known)
    return JobOptions(
        store=_parse_store(given),
        committer=given.take("committer", _committer_name) or "two_phase",
        settings=parse_commit_settings(given),
    )


def parse_read_options(options: Options) -> ReadOptions:
    """The options of a read.

    Raises:
        InvalidRequestError: one sentence with the next act.
    """
    given = _given(options, _READ_KEYS)
    store = _parse_store(given)
    file_format = given.take("fileFormat", _format_name)
    if "schema" in given.rest:
        raise InvalidRequestError(
            "a schema is no option: give it to spark.read.format('holdfast').schema(…).load(url)", option="schema"
        )
    given.take("partitionBy", as_columns)  # a view is read with the options that writing to it needs
    if file_format is not None:
        parse_late_format_options(given.rest, file_format)
    return ReadOptions(
        store=store,
        file_format=file_format,
        format_options=given.rest,
        columns=given.take("columns", as_columns),
        conditions=given.take("filters", parse_conditions) or (),
        push_filters=given.take("pushFilters", as_boolean) or False,
        time_zone=given.take("timeZone", str),
        reader=given.take("reader", lambda text: as_choice(text, ("auto", "native", "python"))) or "auto",
        split_size_bytes=given.take("splitSize", lambda text: as_size(text, least=1)) or 128 * MIB,
    )


def parse_late_format_options(given: Mapping[str, str], file_format: str) -> FormatOptions:
    """Format options of a read whose format came to light only now.

    Raises:
        InvalidRequestError: unknown or wrong.
    """
    chosen = get_format(file_format)
    parsed = chosen.parse_options(given)
    _refuse_unknown(parsed.unknown, (*_READ_KEYS, *chosen.parsers))
    found: FormatOptions = parsed.options
    return found


def _format_name(text: str) -> str:
    return format_name(text)


def _committer_name(text: str) -> str:
    return get_committer(text).name


def _given(options: Options, known: Sequence[str]) -> Given:
    """Return what was given, where the options of the stores that its URLs name are known, too."""
    given = Given(options, known)
    given.learn(spec.name for provider in _providers(given) for spec in provider.specs)
    return given


def _providers(given: Given) -> tuple[StoreProvider, ...]:
    return providers_for(given.texts("path", "sharedDir", "reportDir"))


def _parse_store(given: Given) -> LocationOptions:
    if "paths" in {key.lower() for key in given.rest}:
        raise InvalidRequestError("one read has one path: read each path on its own and unite the results")
    url = given.take("path", str)
    if url is None or not url.strip():
        raise InvalidRequestError("no destination was given: pass it to save() or load(), or as the option path")
    if url.strip().lower().startswith("memory:"):
        raise InvalidRequestError(
            "memory:// lives in one process and Spark's tasks run in others: use a directory or s3://", url=url
        )

    def take(spec: OptionSpec) -> object | None:
        return given.take(spec.name, spec.parse, secret=spec.secret)

    return LocationOptions(
        url=url,
        store_options=take_store_options(_providers(given), take),
        threads=given.take("threads", lambda text: as_number(text, 1, 256)) or 32,
    )


def _refuse_unknown(unknown: Iterable[str], known: Iterable[str]) -> None:
    unknown = tuple(unknown)
    if not unknown:
        return
    canonical = {name.lower(): name for name in known}
    elsewhere = {name for one in FORMATS.values() for name in one.parsers} - set(canonical)
    for key in unknown:
        near = difflib.get_close_matches(key.lower(), [*canonical, *sorted(elsewhere)], n=1, cutoff=0.5)
        if near and near[0] in elsewhere:
            owners = [one.name for one in FORMATS.values() if near[0] in one.parsers]
            raise InvalidRequestError(
                f"unknown option: {near[0]} is one of {' and '.join(owners)} files: leave it out, or name that format",
                option=key,
            )
        # Spark lower-cases what the user wrote; show the names as the documentation spells them.
        clause = re.sub(r"[\w.]+", lambda word: canonical.get(word.group(), word.group()), nearest(key, canonical))
        raise InvalidRequestError(f"unknown option: {clause}", option=key)


def _save_mode(given: Given, overwrite: bool, partition_by: tuple[str, ...]) -> SaveMode:
    if_exists = given.take("ifExists", lambda text: as_choice(text, ("append", "fail", "ignore")))
    scope = given.take("partitionOverwriteMode", lambda text: as_choice(text, ("static", "dynamic")))
    if not overwrite:
        if scope == "dynamic":
            raise InvalidRequestError(
                "partitionOverwriteMode says what an overwrite replaces: choose mode overwrite, or leave it out",
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
            "partitionOverwriteMode dynamic replaces the partitions that are written: name their columns in "
            "partitionBy, or use static"
        )
    return SaveMode.OVERWRITE_PARTITIONS
