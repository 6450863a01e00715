"""Refuse destinations that are nested in each other.

Readers of the outer destination, such as plain Spark, list everything below it. They would count the inner
destination's rows as rows of the outer one, even rows of running and of aborted jobs, and overwriting the outer
destination would delete them. The files of the two destinations cannot be told apart, so a job that would create a
nested destination is refused. The most common cause is a user who names a partition's directory as the destination.

A destination is a folder whose decision log contains a commit. A destination's first job checks the folders above and
below the destination before it starts, and again right before its decision. The second check also finds jobs that are
announced but not yet decided. If two first jobs run at the same time, each announces itself before its second check, so
at least one of them finds the other.

Readers skip folders such as ``_archive/`` and ``.old/``, so these may contain other destinations.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from holdfast.commit import layout
from holdfast.commit.codec import decode_record, parse_json_object, read_text_field
from holdfast.commit.context import CommitContext
from holdfast.commit.ids import is_job_id
from holdfast.commit.records import Kind
from holdfast.errors import AccessDeniedError, ConflictError, CorruptDataError, InvalidRequestError, NotFoundError
from holdfast.stores.base import iter_objects
from holdfast.versioned_log import LogView, VersionedLog

_FEW = 10  # more than one, because a directory marker may be among the keys


def is_first_commit(ctx: CommitContext, view: LogView) -> bool:
    """Check whether no job has been committed at the destination yet, according to its log.

    Costs no request if a decision is marked ``visible``; if none is, up to one request per log entry.
    """
    return not view.visible and not _has_commit(ctx, view)


def refuse_nested_destination(ctx: CommitContext, *, first: bool, deciding: bool = False) -> None:
    """Refuse a destination that lies inside another one or contains one.

    Costs one listing of a few keys for each folder above the destination. With `first`, everything below the
    destination except its own records is listed too. With `deciding`, there is one more listing for each folder above.

    Args:
        first: whether this may be the destination's first commit. Later commits need no check of the folders below.
        deciding: also check for announced jobs; the calling job must already have announced itself. Without `first`,
            `deciding` makes this function check nothing.

    Raises:
        InvalidRequestError: another destination lies above or below.
        ConflictError: an undecided job is writing above or below.
        CorruptDataError: the log of a folder above or below contains a file that is not a record.
        AccessDeniedError: the store denies listing below the destination. If it denies listing a folder above, that
            folder is not checked.
    """
    if not ctx.settings.check_nesting or (deciding and not first):
        return
    for _done in ctx.runner.map(lambda folder: _check_folder_above(ctx, folder, deciding), _folders_above(ctx)):
        pass
    if first:
        refuse_inner_logs(ctx, layout.iter_data_keys(ctx.store, ctx.prefix), deciding=deciding)


def refuse_inner_logs(ctx: CommitContext, keys: Iterable[str], *, deciding: bool = False) -> None:
    """Raise an error if one of `keys` belongs to another destination inside this one. Iterates over `keys` once.

    Args:
        keys: the store keys below the destination, without the keys in its own folder ``_holdfast/``.
        deciding: also raise for announced jobs.

    Raises: as for `refuse_nested_destination`.
    """
    known: set[str] = set()
    for key in keys:
        if layout.HOME not in key:
            continue
        if deciding and (inner := _folder_containing(ctx, key, layout.JOBS)) is not None:
            raise _make_nested_job_error(ctx, inner)
        inner = _folder_containing(ctx, key, layout.LOG)
        if inner is not None and inner not in known:
            known.add(inner)
            if _is_destination(ctx, inner):
                raise InvalidRequestError(
                    "another destination lies inside this one, and its rows would count for both: choose a directory "
                    "next to it, or move it out first",
                    url=ctx.url,
                    inner=_folder_url(ctx, inner),
                )


def refuse_inner_destination(ctx: CommitContext, folder: str) -> None:
    """Raise the error for listing a destination that contains another one, at `folder`, with a visible commit.

    Such a nested destination was written before nesting was refused, or was copied here.

    Raises:
        InvalidRequestError: always.
    """
    raise InvalidRequestError(
        "another destination lies inside this one, and their rows must not be mixed: run holdfast recover on it, then "
        "move it out and use each by its own url, or delete its folder _holdfast so that its files belong to this "
        "destination",
        url=ctx.url,
        inner=_folder_url(ctx, folder),
    )


def refuse_read_inside_destination(ctx: CommitContext) -> None:
    """Refuse to read a folder inside a destination.

    Its files lack the partition columns, and only the destination's log shows which files are committed.

    Costs one listing of a few keys for each folder above.

    Raises:
        InvalidRequestError: a destination lies above. Folders that the store does not allow listing are skipped.
    """

    def find_destination(folder: str) -> str | None:
        try:
            return folder if _has_commit_log(ctx, folder) and _is_destination(ctx, folder) else None
        except AccessDeniedError:
            return None

    for outer in ctx.runner.map(find_destination, _folders_above(ctx)):
        if outer is not None:
            raise InvalidRequestError(
                "this is a folder inside a destination, and only the destination knows all columns and which files "
                "count: read the destination, with filters on its partition columns",
                url=ctx.url,
                destination=_folder_url(ctx, outer),
            )


# --- above ------------------------------------------------------------------------------------------------------------
def _folders_above(ctx: CommitContext) -> list[str]:
    """List the folders above the destination, except those whose readers skip the destination."""
    above = (folder for folder in layout.iter_folders_above(ctx.prefix) if folder != ctx.prefix)
    return [folder for folder in above if not layout.is_hidden(ctx.prefix[len(folder) :].rstrip("/"))]


def _check_folder_above(ctx: CommitContext, folder: str, deciding: bool) -> None:
    try:
        # List jobs before the log: if a job's record is deleted between the two listings, the job is in the log.
        announced = deciding and _has_announced(ctx, folder)
        if _has_commit_log(ctx, folder) and _is_destination(ctx, folder):
            raise InvalidRequestError(
                "the destination lies inside another one, whose readers would see its rows: write to the outer one, to "
                "a partition of it with mode overwrite-partitions, or choose a directory next to it",
                url=ctx.url,
                outer=_folder_url(ctx, folder),
            )
    except AccessDeniedError:
        return  # the credentials cover only this destination; see `holdfast.commit.two_phase.pending_uploads`
    if announced:
        raise _make_nested_job_error(ctx, folder)


def _has_commit_log(ctx: CommitContext, folder: str) -> bool:
    return next(iter_objects(ctx.store, folder + layout.LOG, page_size=_FEW), None) is not None


def _has_announced(ctx: CommitContext, folder: str) -> bool:
    found = iter_objects(ctx.store, folder + layout.JOBS)
    return any(_is_job_record_path(info.key[len(folder + layout.JOBS) :]) for info in found)


def _is_job_record_path(path: str) -> bool:
    job, _, name = path.partition("/")
    return is_job_id(job) and name == "job.json"


# --- a folder ---------------------------------------------------------------------------------------------------------
def _folder_containing(ctx: CommitContext, key: str, home: str) -> str | None:
    """Return the folder whose `home` (``LOG``, ``JOBS``) contains `key`; None if there is none, or readers skip it."""
    before, found, rest = key[len(ctx.prefix) :].partition(home)
    if not found or not before.endswith("/") or layout.is_hidden(before.rstrip("/")):
        return None
    is_one = _is_job_record_path(rest) if home == layout.JOBS else rest.endswith(".json")
    return ctx.prefix + before if is_one else None


def _is_destination(ctx: CommitContext, folder: str) -> bool:
    other = _context_at(ctx, folder)
    view = _open_log(other).read()
    # A log is trimmed only when it is long: assume that one of the trimmed entries was a commit.
    return view.head > 0 and (bool(view.visible) or view.oldest > 1 or _has_commit(other, view))


def _has_commit(ctx: CommitContext, view: LogView) -> bool:
    for seq in range(view.head, view.oldest - 1, -1):
        try:
            if _open_log(ctx).entry(seq).kind is Kind.COMMIT:
                return True
        except NotFoundError:
            return True  # trimmed just now, so other jobs are being decided here
        except CorruptDataError:
            continue  # commands that use this log report the error
    return False


@dataclass(frozen=True, slots=True, kw_only=True)
class _DecisionOutline:
    """The part of a decision that the check for nested destinations needs; `two_phase` handles whole decisions."""

    seq: int
    token: str
    after: str
    kind: Kind


def _open_log(ctx: CommitContext) -> VersionedLog[_DecisionOutline]:
    return VersionedLog(records=ctx.records, runner=ctx.runner, folder=layout.LOG, decode=_decode_outline)


def _decode_outline(path: str, seq: int, data: bytes) -> _DecisionOutline:
    def decode_fields() -> _DecisionOutline:
        value = parse_json_object(data)
        return _DecisionOutline(
            seq=seq,
            token=read_text_field(value, "token"),
            after=read_text_field(value, "after", empty=True),
            kind=Kind(value["kind"]),
        )

    return decode_record(path, decode_fields)


def _context_at(ctx: CommitContext, folder: str) -> CommitContext:
    return replace(ctx, prefix=folder, url=_folder_url(ctx, folder))


def _folder_url(ctx: CommitContext, folder: str) -> str:
    own = ctx.prefix.rstrip("/")
    base = ctx.url.rstrip("/").removesuffix(own) if own else f"{ctx.url.rstrip('/')}/"
    return base + folder.rstrip("/")


def _make_nested_job_error(ctx: CommitContext, folder: str) -> ConflictError:
    return ConflictError(
        "a job is writing to a destination inside or around this one, and only one of the two can exist: write to "
        "another directory, or if that job is dead, run holdfast recover on its destination and this job again",
        url=ctx.url,
        other=_folder_url(ctx, folder),
    )
