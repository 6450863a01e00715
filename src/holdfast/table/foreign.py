"""Refuse tables of other table formats, such as Delta: only their own metadata says which files are valid."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from holdfast.commit import CommitContext
from holdfast.commit.layout import is_hidden, iter_folders_above
from holdfast.errors import AccessDeniedError, InvalidRequestError
from holdfast.stores.base import iter_objects


def _is_iceberg(name: str) -> bool:
    return name == "version-hint.text" or name.endswith((".metadata.json", ".metadata.json.gz"))


@dataclass(frozen=True, slots=True)
class _ForeignTableKind:
    what: str
    whose: str
    home: str
    is_record: Callable[[str], bool] = lambda name: True


_STREAM = _ForeignTableKind("the output of a Spark file stream", "Spark", "_spark_metadata/")
_KINDS = (
    _ForeignTableKind("a Delta table", "Delta", "_delta_log/"),
    _ForeignTableKind("a Hudi table", "Hudi", ".hoodie/"),
    _ForeignTableKind(
        "an Iceberg table", "Iceberg", "metadata/", _is_iceberg
    ),  # other software also uses this folder name
    _STREAM,
)


def refuse_foreign_write(ctx: CommitContext) -> None:
    """Refuse to write into a table of another format, or into a directory of such a table.

    The other table format would not know about added files, and would miss replaced ones. For each
    known format, this check lists its metadata folder in the destination, and in each folder above it.

    Raises:
        InvalidRequestError: there is such a table; the error names its kind. A folder above the destination is
            skipped if listing it is not permitted.
    """

    def find_table_kind(folder: str) -> tuple[_ForeignTableKind, str] | None:
        if folder != ctx.prefix and is_hidden(ctx.prefix[len(folder) :].rstrip("/")):
            return None  # the other format's tools do not look there
        try:
            kind = _detect_kind(ctx, folder)
        except AccessDeniedError:
            if folder == ctx.prefix:
                raise
            return None
        return None if kind is None else (kind, folder)

    for found in ctx.runner.map(find_table_kind, iter_folders_above(ctx.prefix)):
        if found is not None:
            kind, folder = found
            raise InvalidRequestError(
                f"the destination is or lies in {kind.what}, which would not know of added files and would miss "
                f"replaced ones: write to another place, or with {kind.whose}'s own writer",
                url=ctx.url,
                records=folder + kind.home,
            )


def refuse_foreign_read(ctx: CommitContext, *, by_spark: bool = False) -> None:
    """Refuse to read a table of another format, because its directory also contains deleted and outdated rows.

    Args:
        by_spark: whether the table is read by Spark's own reader, which understands the metadata of Spark's streams.

    Raises:
        InvalidRequestError: it is such a table; the error names its kind.
    """
    kind = _detect_kind(ctx, ctx.prefix)
    if kind is not None and not (by_spark and kind is _STREAM):
        raise InvalidRequestError(
            f"this is {kind.what}, whose directory may also hold obsolete files: read it with {kind.whose}'s "
            "own reader",
            url=ctx.url,
            records=ctx.prefix + kind.home,
        )


def _detect_kind(ctx: CommitContext, folder: str) -> _ForeignTableKind | None:
    for kind in _KINDS:
        start = folder + kind.home
        if any(kind.is_record(info.key[len(start) :]) for info in iter_objects(ctx.store, start)):
            return kind
    return None
