"""A destination does not lie inside another one.

Readers of the outer one, stock Spark above all, list everything below it: they would take the inner one's rows for its
own, while their jobs run and after they were aborted, and an overwrite would delete them. Nothing can keep the two
apart, so a job that would make them is refused; most often a partition's directory was taken for a destination.

A destination is a folder whose decision log holds a commit. A first job looks above and below before it starts, and
again when it is about to decide: then also for jobs that have announced themselves and are undecided. Each of two first
jobs has announced itself before it looks, so at least one of them sees the other.

What lies in a folder that readers skip (``_archive/``, ``.old/``) is not seen by them, and may be a destination.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from holdfast.commit import layout
from holdfast.commit.context import CommitContext
from holdfast.commit.ids import is_job_id
from holdfast.commit.json_fields import guarded, json_line, json_object, text_field
from holdfast.commit.records import Kind
from holdfast.errors import AccessDeniedError, ConflictError, CorruptDataError, InvalidRequestError, NotFoundError
from holdfast.stores.base import iter_objects
from holdfast.versioned_log import LogView, VersionedLog

__all__ = ["is_first", "refuse_inner", "refuse_inner_logs", "refuse_nested", "refuse_part"]

_FEW = 10  # a directory marker may be among them


def is_first(ctx: CommitContext, view: LogView) -> bool:
    """Whether no job has been committed to the destination yet, as far as its log tells.

    Costs nothing where a decision is visible; else a request for each entry: aborts, and what is being finished.
    """
    return not view.visible and not _has_commit(ctx, view)


def refuse_nested(ctx: CommitContext, *, first: bool, deciding: bool = False) -> None:
    """Refuse a destination inside another one, or around one.

    Costs one listing of a few keys for each folder above; with `first` a listing of all that is below the destination,
    its own records aside; `deciding` adds one for each folder above.

    Args:
        first: whether this may be the destination's first commit. One that has others was looked at with its first.
        deciding: look for announced jobs, too. Requires: the job has announced itself. Without `first` nothing is left
            to look for.

    Raises:
        InvalidRequestError: there is a destination above or below.
        ConflictError: an undecided job is writing above or below.
        CorruptDataError: something is in the log of a folder above or below that is no record.
        AccessDeniedError: what is below the destination cannot be listed. What is above may be out of bounds: then
            nobody can tell, and the job goes on.
    """
    if not ctx.settings.check_nesting or (deciding and not first):
        return
    for _done in ctx.runner.map(lambda folder: _look_above(ctx, folder, deciding), _above(ctx)):
        pass
    if first:
        refuse_inner_logs(ctx, layout.iter_keys_below(ctx.store, ctx.prefix), deciding=deciding)


def refuse_inner_logs(ctx: CommitContext, keys: Iterable[str], *, deciding: bool = False) -> None:
    """Refuse to go on if `keys` show that another destination lies inside; goes through them in one pass.

    Args:
        keys: of the store, below the destination, its own folder ``_holdfast/`` aside.
        deciding: refuse announced jobs, too.

    Raises: as `refuse_nested` does.
    """
    known: set[str] = set()
    for key in keys:
        if layout.HOME not in key:
            continue
        if deciding and (inner := _folder_of(ctx, key, layout.JOBS)) is not None:
            raise _in_progress(ctx, inner)
        inner = _folder_of(ctx, key, layout.LOG)
        if inner is not None and inner not in known:
            known.add(inner)
            if _is_destination(ctx, inner):
                raise InvalidRequestError(
                    "another destination lies inside this one, and its rows would count as rows of both: choose a "
                    "place beside it, or move it out first",
                    url=ctx.url,
                    inner=_url(ctx, inner),
                )


def refuse_inner(ctx: CommitContext, folder: str) -> None:
    """What whoever goes through the files of a destination does on meeting the visible commit of one inside it.

    Such data are from before this was refused, or were copied here.

    Raises:
        InvalidRequestError: always.
    """
    raise InvalidRequestError(
        "another destination lies inside this one, and its rows are not to be mixed up with others: move it out and "
        "use each by its own url, or delete its folder _holdfast so that its files are this one's",
        url=ctx.url,
        inner=_url(ctx, folder),
    )


def refuse_part(ctx: CommitContext) -> None:
    """Refuse to read a folder of a destination by itself: its files do not hold all columns, nor tell what counts.

    Costs one listing of a few keys for each folder above.

    Raises:
        InvalidRequestError: there is a destination above. It may be out of bounds: then nobody can tell.
    """

    def look(folder: str) -> str | None:
        try:
            return folder if _has_log(ctx, folder) and _is_destination(ctx, folder) else None
        except AccessDeniedError:
            return None

    for outer in ctx.runner.map(look, _above(ctx)):
        if outer is not None:
            raise InvalidRequestError(
                "this is a folder of a destination, which knows all of its columns and which files count: read the "
                "destination, with filters on its partition columns",
                url=ctx.url,
                destination=_url(ctx, outer),
            )


# --- above ------------------------------------------------------------------------------------------------------------
def _above(ctx: CommitContext) -> list[str]:
    """The folders above whose readers see the destination."""
    above = (folder for folder in layout.folders(ctx.prefix) if folder != ctx.prefix)
    return [folder for folder in above if not layout.is_hidden(ctx.prefix[len(folder) :].rstrip("/"))]


def _look_above(ctx: CommitContext, folder: str, deciding: bool) -> None:
    try:
        # Jobs before the log: one that was undecided by then, and is not announced any more, is in the log.
        announced = deciding and _has_announced(ctx, folder)
        if _has_log(ctx, folder) and _is_destination(ctx, folder):
            raise InvalidRequestError(
                "the destination lies inside another one, whose readers would see its rows: write to the outer one, to "
                "a partition of it with mode overwrite-partitions, or choose a place beside it",
                url=ctx.url,
                outer=_url(ctx, folder),
            )
    except AccessDeniedError:
        return  # credentials for this destination alone, as in `holdfast.commit.two_phase.live_jobs`
    if announced:
        raise _in_progress(ctx, folder)


def _has_log(ctx: CommitContext, folder: str) -> bool:
    return next(iter_objects(ctx.store, folder + layout.LOG, page_size=_FEW), None) is not None


def _has_announced(ctx: CommitContext, folder: str) -> bool:
    found = iter_objects(ctx.store, folder + layout.JOBS)
    return any(_is_record(info.key[len(folder + layout.JOBS) :]) for info in found)


def _is_record(path: str) -> bool:
    job, _, name = path.partition("/")
    return is_job_id(job) and name == "job.json"


# --- a folder ---------------------------------------------------------------------------------------------------------
def _folder_of(ctx: CommitContext, key: str, home: str) -> str | None:
    """The folder below the destination that readers do not skip and in whose `home` (``LOG``, ``JOBS``) `key` lies."""
    before, found, rest = key[len(ctx.prefix) :].partition(home)
    if not found or not before.endswith("/") or layout.is_hidden(before.rstrip("/")):
        return None
    is_one = _is_record(rest) if home == layout.JOBS else rest.endswith(".json")
    return ctx.prefix + before if is_one else None


def _is_destination(ctx: CommitContext, folder: str) -> bool:
    there = _at(ctx, folder)
    view = _log(there).read()
    # A log that was trimmed is a long one: whoever lost its last hundreds of jobs has committed some before.
    return view.head > 0 and (bool(view.visible) or view.oldest > 1 or _has_commit(there, view))


def _has_commit(ctx: CommitContext, view: LogView) -> bool:
    for seq in range(view.head, view.oldest - 1, -1):
        try:
            if _log(ctx).entry(seq).kind is Kind.COMMIT:
                return True
        except NotFoundError:
            return True  # trimmed meanwhile: others are busy here
        except CorruptDataError:
            continue  # whoever works on this log will say so
    return False


@dataclass(frozen=True, slots=True, kw_only=True)
class _Outline:
    """The part of a decision that is read here; `two_phase` reads and writes whole ones."""

    seq: int
    token: str
    after: str
    kind: Kind


def _log(ctx: CommitContext) -> VersionedLog[_Outline]:
    return VersionedLog(records=ctx.records, runner=ctx.runner, folder=layout.LOG, encode=_encode, decode=_decode)


def _encode(outline: _Outline) -> bytes:
    return json_line({"seq": outline.seq, "token": outline.token, "after": outline.after, "kind": outline.kind.value})


def _decode(path: str, seq: int, data: bytes) -> _Outline:
    def decode() -> _Outline:
        value = json_object(data)
        return _Outline(
            seq=seq,
            token=text_field(value, "token"),
            after=text_field(value, "after", empty=True),
            kind=Kind(value["kind"]),
        )

    return guarded(path, decode)


def _at(ctx: CommitContext, folder: str) -> CommitContext:
    return replace(ctx, prefix=folder, url=_url(ctx, folder))


def _url(ctx: CommitContext, folder: str) -> str:
    own = ctx.prefix.rstrip("/")
    base = ctx.url.rstrip("/").removesuffix(own) if own else f"{ctx.url.rstrip('/')}/"
    return base + folder.rstrip("/")


def _in_progress(ctx: CommitContext, folder: str) -> ConflictError:
    return ConflictError(
        "a job is being written to a destination inside or around this one, and only one of them can be: let it end "
        "and write elsewhere, or run holdfast recover on the other one if that job is dead, then run this one again",
        url=ctx.url,
        other=_url(ctx, folder),
    )
