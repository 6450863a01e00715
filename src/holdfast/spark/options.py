"""Options as Spark hands them over (strings, names in any case) into frozen values, parsed once, before any work.

Whatever is unknown, wrong or contradictory is refused in one sentence: an option that is silently ignored costs its
user a day. The names are Spark's own wherever Spark has one.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from holdfast.commit import CommitContext, CommitSettings, SaveMode, get_committer, open_context
from holdfast.errors import InvalidRequestError
from holdfast.formats import FormatOptions, get_format, nearest
from holdfast.spark.filters import Condition, parse_conditions
from holdfast.stores.s3_options import S3Options

__all__ = [
    "ReadOptions",
    "StoreOptions",
    "WriteOptions",
    "joined_columns",
    "option_strings",
    "parse_late_format_options",
    "parse_read_options",
    "parse_write_options",
]

T = TypeVar("T")

_STORE_KEYS = (
    "path",
    "endpoint",
    "region",
    "accessKey",
    "secretKey",
    "sessionToken",
    "pathStyle",
    "threads",
)
_WRITE_KEYS = (
    *_STORE_KEYS,
    "fileFormat",
    "committer",
    "partitionBy",
    "ifExists",
    "partitionOverwriteMode",
    "maxRecordsPerFile",
    "targetFileSize",
    "partSize",
    "allowUnfenced",
    "logRetention",
    "writeId",
)
_READ_KEYS = (*_STORE_KEYS, "fileFormat", "columns", "filters", "pushFilters", "splitSize", "timeZone")

_MIB = 1024 * 1024
_SIZE = re.compile(r"(\d+)\s*([kmgt]?)(?:i?b)?")
_UNITS = {"": 1, "k": 1024, "m": _MIB, "g": 1024 * _MIB, "t": 1024 * 1024 * _MIB}


# --- values -----------------------------------------------------------------------------------------------------------
@dataclass(frozen=True, kw_only=True)
class StoreOptions:
    """Where data are and how to get there.

    Attributes:
        url: the destination, as the user wrote it.
        s3: endpoint and credentials; shows no secret.
        threads: calls to the store side by side in the driver; 32 saturate what one Python process can sign.
    """

    url: str
    s3: S3Options = field(default_factory=S3Options)
    threads: int = 32

    def open(self, settings: CommitSettings | None = None) -> CommitContext:
        """A context of this process; the caller closes it."""
        return open_context(self.url, s3=self.s3, settings=settings, threads=self.threads)


@dataclass(frozen=True, kw_only=True)
class WriteOptions:
    """A write, ready to be carried out by any process.

    Attributes:
        store: destination.
        file_format: name of the format.
        format_options: its options.
        format_strings: the same as the user gave them: readers want some of them too (``header``, ``sep``).
        committer: name of the committer.
        mode: what becomes of data that is there.
        partition_by: columns that become directories, as the user spelled them.
        max_records_per_file: exact limit, None for none.
        target_file_size_bytes: a file ends at about this size, None for no limit.
        settings: of the commit.
        write_id: the caller's own name for the write, kept with the decision; empty for none.
    """

    store: StoreOptions
    file_format: str = "parquet"
    format_options: FormatOptions
    format_strings: Mapping[str, str] = field(default_factory=dict)
    committer: str = "two_phase"
    mode: SaveMode = SaveMode.APPEND
    partition_by: tuple[str, ...] = ()
    max_records_per_file: int | None = None
    target_file_size_bytes: int | None = None
    settings: CommitSettings = field(default_factory=CommitSettings)
    write_id: str = ""


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
        split_size_bytes: a task reads about this much; 128 MiB is Spark's own ``spark.sql.files.maxPartitionBytes``.
    """

    store: StoreOptions
    file_format: str | None = None
    format_options: Mapping[str, str] = field(default_factory=dict)
    columns: tuple[str, ...] | None = None
    conditions: tuple[Condition, ...] = ()
    time_zone: str | None = None
    push_filters: bool = False
    split_size_bytes: int = 128 * _MIB


# --- parsing ----------------------------------------------------------------------------------------------------------
class _Given:
    """What the user gave, by canonical name; remembers what nobody has asked for."""

    def __init__(self, options: Mapping[str, str], known: Iterable[str]) -> None:
        canonical = {name.lower(): name for name in known}
        self.rest = {key: value for key, value in options.items() if key.lower() not in canonical}
        self._values = {canonical[key.lower()]: value for key, value in options.items() if key.lower() in canonical}

    def __contains__(self, name: str) -> bool:
        return name in self._values

    def take(self, name: str, parse: Callable[[str], T]) -> T | None:
        """The parsed value, None if the option was not given.

        Raises:
            InvalidRequestError: names the option; the value is repeated only where it cannot be a secret.
        """
        if name not in self._values:
            return None
        value = self._values[name]
        try:
            return parse(value)
        except InvalidRequestError as error:
            raise InvalidRequestError(error.message, option=name, value=value) from error


def parse_write_options(options: Mapping[str, str], overwrite: bool) -> WriteOptions:
    """The options of a write.

    Args:
        options: of ``df.write``; names in any case.
        overwrite: whether Spark's save mode is ``overwrite``; the only other one that it lets through is ``append``.

    Raises:
        InvalidRequestError: one sentence with the next act.
    """
    given = _Given(options, _WRITE_KEYS)
    store = _parse_store(given)
    file_format = get_format(given.take("fileFormat", str) or "parquet")
    parsed = file_format.parse_options(given.rest)
    _refuse_unknown(parsed.unknown, (*_WRITE_KEYS, *file_format.parsers))
    partition_by = given.take("partitionBy", _columns) or ()
    part_size = given.take("partSize", lambda text: _size(text, least=5 * _MIB))
    retention = given.take("logRetention", lambda text: _number(text, 1, 100_000))
    defaults = CommitSettings()
    return WriteOptions(
        store=store,
        file_format=file_format.name,
        format_options=parsed.options,
        format_strings={key.lower(): value for key, value in given.rest.items()},
        committer=get_committer(given.take("committer", str) or "two_phase").name,
        mode=_save_mode(given, overwrite, partition_by),
        partition_by=partition_by,
        max_records_per_file=given.take("maxRecordsPerFile", _record_limit),
        target_file_size_bytes=given.take("targetFileSize", lambda text: _size(text, least=1)),
        settings=CommitSettings(
            part_size_bytes=part_size or defaults.part_size_bytes,
            log_retention_entries=retention or defaults.log_retention_entries,
            allow_unfenced=given.take("allowUnfenced", _boolean) or False,
        ),
        write_id=given.take("writeId", str) or "",
    )


def parse_read_options(options: Mapping[str, str]) -> ReadOptions:
    """The options of a read.

    Raises:
        InvalidRequestError: one sentence with the next act.
    """
    given = _Given(options, _READ_KEYS)
    store = _parse_store(given)
    name = given.take("fileFormat", str)
    file_format = None if name is None else get_format(name).name
    if file_format is not None:
        parse_late_format_options(given.rest, file_format)
    return ReadOptions(
        store=store,
        file_format=file_format,
        format_options=given.rest,
        columns=given.take("columns", _columns),
        conditions=given.take("filters", parse_conditions) or (),
        push_filters=given.take("pushFilters", _boolean) or False,
        time_zone=given.take("timeZone", str),
        split_size_bytes=given.take("splitSize", lambda text: _size(text, least=1)) or 128 * _MIB,
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


def _parse_store(given: _Given) -> StoreOptions:
    if "paths" in {key.lower() for key in given.rest}:
        raise InvalidRequestError("one read has one path: read each path on its own and unite the results")
    url = given.take("path", str)
    if url is None or not url.strip():
        raise InvalidRequestError("no destination was given: pass it to save() or load(), or as the option path")
    if url.strip().lower().startswith("memory:"):
        raise InvalidRequestError(
            "memory:// lives in one process and Spark's tasks run in others: use a directory or s3://", url=url
        )
    path_style = given.take("pathStyle", _boolean)
    s3 = S3Options(
        endpoint_url=given.take("endpoint", str),
        region=given.take("region", str),
        access_key=given.take("accessKey", str),
        secret_key=given.take("secretKey", str),
        session_token=given.take("sessionToken", str),
        addressing_style="auto" if path_style is None else "path" if path_style else "virtual",
    )
    return StoreOptions(url=url, s3=s3, threads=given.take("threads", lambda text: _number(text, 1, 256)) or 32)


def _refuse_unknown(unknown: Iterable[str], known: Iterable[str]) -> None:
    canonical = {name.lower(): name for name in known}
    for key in unknown:
        # Spark lower-cases what the user wrote; show the names as the documentation spells them.
        clause = re.sub(r"[\w.]+", lambda word: canonical.get(word.group(), word.group()), nearest(key, canonical))
        raise InvalidRequestError(f"unknown option: {clause}", option=key)


def _save_mode(given: _Given, overwrite: bool, partition_by: tuple[str, ...]) -> SaveMode:
    if_exists = given.take("ifExists", lambda text: _choice(text, ("append", "fail", "ignore")))
    scope = given.take("partitionOverwriteMode", lambda text: _choice(text, ("static", "dynamic")))
    if not overwrite:
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


def _choice(text: str, choices: tuple[str, ...]) -> str:
    word = text.strip().lower()
    if word not in choices:
        raise InvalidRequestError(f"no such choice: {nearest(word, choices)}")
    return word


def _boolean(text: str) -> bool:
    return _choice(text, ("true", "false")) == "true"


def _number(text: str, least: int, most: int) -> int:
    word = text.strip()
    if not (word.isascii() and word.isdigit() and least <= int(word) <= most):
        raise InvalidRequestError(f"not a whole number from {least} to {most}: write one")
    return int(word)


def _record_limit(text: str) -> int | None:
    return _number(text, 0, 2**62) or None  # 0 means no limit, as in Spark


def _size(text: str, least: int) -> int:
    match = _SIZE.fullmatch(text.strip().lower())
    size_bytes = int(match[1]) * _UNITS[match[2]] if match else -1
    if not least <= size_bytes < 2**50:
        at_least = f" of at least {least}" if least > 1 else ""
        raise InvalidRequestError(f"not a size{at_least}: write bytes, or a number with k, m or g such as 128m")
    return size_bytes


def _columns(text: str) -> tuple[str, ...]:
    """Names between commas; a name that holds commas or spaces at its ends stands in backticks, doubled inside."""
    names: list[str] = []
    rest = text
    while True:
        match = re.match(r"\s*(?:`((?:[^`]|``)+)`|([^`,]*))\s*(,|\Z)", rest, re.DOTALL)
        name = "" if match is None else match[1].replace("``", "`") if match[1] else match[2].strip()
        if match is None or not name:
            raise InvalidRequestError("not a list of column names: write a,b and put names with commas in backticks")
        names.append(name)
        if not match[3]:
            return tuple(names)
        rest = rest[match.end() :]


# --- writing ----------------------------------------------------------------------------------------------------------
def joined_columns(names: Sequence[str]) -> str:
    """Column names as the options ``partitionBy`` and ``columns`` take them, whatever the names hold."""
    return ",".join("`" + name.replace("`", "``") + "`" for name in names)


def option_strings(options: Mapping[str, object]) -> dict[str, str]:
    """Python values as option strings: True is ``true``, None is left out, ``access_key`` is ``accesskey``."""
    return {
        name.replace("_", ""): str(value).lower() if isinstance(value, bool) else str(value)
        for name, value in options.items()
        if value is not None
    }
