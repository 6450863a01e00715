"""List the files that a job replaces before the decision, and delete the files after it or with it.

The list is made after all earlier jobs have been rolled forward, and made again if another job is decided first. So
jobs on one destination have the same result as if they had run one after another, in the order of the log.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

from holdfast.commit import layout
from holdfast.commit.codec import sha256_hex
from holdfast.commit.context import CommitContext
from holdfast.commit.ids import file_owner
from holdfast.commit.nested_destinations import refuse_inner_destination
from holdfast.commit.records import JobRecord, SaveMode
from holdfast.commit.two_phase.manifests import PreparedOutput
from holdfast.commit.two_phase.records import (
    ListRef,
    LogEntry,
    ReplacedFile,
    decode_replaced_files,
    encode_replaced_files,
)
from holdfast.errors import CorruptDataError, DestinationExistsError, InvalidRequestError, NotFoundError
from holdfast.stores.base import Delete, batched_keys
from holdfast.wording import OR_OVERWRITE


def _make_scope_test(ctx: CommitContext, job: JobRecord, prepared: PreparedOutput) -> Callable[[str], bool]:
    if job.mode is SaveMode.OVERWRITE:
        return lambda path: True
    if job.mode is SaveMode.OVERWRITE_PARTITIONS:
        return lambda path: ctx.partition(path.rpartition("/")[0]) in prepared.partitions
    return lambda path: False


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplacementPlan:
    """The files that a job replaces if it is decided now.

    Attributes:
        ref: reference to the list for the decision; None if nothing is replaced.
        data: the list as bytes, compressed because a job may replace a million files.
        by_job: maps each job to the number and bytes of its files that are replaced (partition overwrites only).
        places: one replaced file from each directory.
    """

    ref: ListRef | None = None
    data: bytes = field(default=b"", repr=False)
    by_job: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    places: Sequence[str] = ()

    def files(self) -> Iterator[ReplacedFile]:
        """Iterate over the files that are replaced."""
        return iter(()) if self.ref is None else decode_replaced_files(self.ref, self.data)


def plan_replaced_files(
    ctx: CommitContext, job: JobRecord, prepared: PreparedOutput, token: str, deleting: Sequence[LogEntry] = ()
) -> ReplacementPlan:
    """List the files that `job` replaces if it is decided now.

    If a replaced file has the same name as one of the job's own files, it is not listed, because publication overwrites
    it.

    Args:
        deleting: visible decisions that may not yet have deleted all files that they replaced. `by_job` leaves these
            files out, because those decisions have already counted them.

    Raises:
        DestinationExistsError: the job adds a file under a name that is taken.
        InvalidRequestError: a name would be a file and a directory at once, or another destination lies inside this
            one.
        CorruptDataError: the list of a decision in `deleting` cannot be read.
    """
    if job.mode not in (SaveMode.OVERWRITE, SaveMode.OVERWRITE_PARTITIONS) and not prepared.chosen:
        return ReplacementPlan()
    in_scope = _make_scope_test(ctx, job, prepared)
    by_partition = job.mode is SaveMode.OVERWRITE_PARTITIONS
    counted = {file.path for entry in deleting for file in load_replaced_files(ctx, entry)} if by_partition else set()
    directories = _needed_directories(prepared)
    by_job: dict[str, tuple[int, int]] = {}
    places: dict[str, str] = {}

    def iter_replaced_files() -> Iterator[ReplacedFile]:
        for path, info in layout.iter_visible(ctx.store, ctx.prefix, partial(refuse_inner_destination, ctx)):
            owner = file_owner(path)
            _refuse_file_directory_clash(path, prepared, directories)
            if path in prepared.chosen:
                if not in_scope(path):
                    raise DestinationExistsError(
                        f"a file with this name already exists: write under another name, {OR_OVERWRITE}",
                        url=ctx.url,
                        path=path,
                    )
                continue
            if not in_scope(path) or (owner is not None and owner.job == job.job):
                continue
            places.setdefault(path.rpartition("/")[0], path)
            if owner is not None and by_partition and path not in counted:
                count, size = by_job.get(owner.job, (0, 0))
                by_job[owner.job] = (count + 1, size + info.size_bytes)
            yield ReplacedFile(path=path, size_bytes=info.size_bytes, etag="" if owner else info.etag)

    data, count = encode_replaced_files(iter_replaced_files())
    if not count:
        return ReplacementPlan()
    ref = ListRef(key=layout.replaced_files_list_path(job.job, token), sha256=sha256_hex(data), count=count)
    return ReplacementPlan(ref=ref, data=data, by_job=by_job, places=list(places.values()))


def _directories_above(path: str) -> Iterator[str]:
    """Iterate over the directories that contain the file at `path`, innermost first."""
    while path := path.rpartition("/")[0]:
        yield path


def _needed_directories(prepared: PreparedOutput) -> frozenset[str]:
    """Return the directories that the job needs; empty if all its file names are generated, because those never clash.

    Raises:
        InvalidRequestError: a file of the job has the name of a directory. A file system would refuse it only after the
            decision.
    """
    if not prepared.chosen:
        return frozenset()
    found = {
        above for directory in prepared.partitions for above in (directory, *_directories_above(directory)) if above
    }
    for path in found & prepared.chosen.keys():
        raise InvalidRequestError("a file and a directory of the job have the same name: rename the file", path=path)
    return frozenset(found)


def _refuse_file_directory_clash(path: str, prepared: PreparedOutput, directories: frozenset[str]) -> None:
    """Check that no name changes between file and directory: old files are deleted only after the job is visible.

    Raises:
        InvalidRequestError: the existing file at `path` has the name of a directory of the job, or is below the name of
            a file of the job.
    """
    if prepared.chosen and (path in directories or any(above in prepared.chosen for above in _directories_above(path))):
        raise InvalidRequestError("a name would be a file and a directory at once: rename the file", path=path)


def load_replaced_files(ctx: CommitContext, entry: LogEntry) -> Iterator[ReplacedFile]:
    """Return the files that a decision replaces.

    If the list is missing, return no files: the list is deleted only after all files in it have been deleted.
    """
    if entry.replaced is None:
        return iter(())
    try:
        data = ctx.store.get(ctx.key(entry.replaced.key))
    except NotFoundError:
        return iter(())
    return decode_replaced_files(entry.replaced, data)


def iter_deletions(ctx: CommitContext, entry: LogEntry, files: Iterator[ReplacedFile]) -> Iterator[Delete]:
    """Yield a `Delete` for each file that a decision replaces.

    Generated names are used only once, and any other file is deleted only if it still has the listed etag.
    """
    for file in files:
        # C2: a corrupt or forged list must not delete the files of the job itself.
        owner = file_owner(file.path)
        if owner is not None and owner.job == entry.job:
            raise CorruptDataError("a decision replaces its own output", key=entry.replaced and entry.replaced.key)
        yield Delete(ctx.key(file.path), "" if owner is not None else file.etag)


def delete_replaced_files(ctx: CommitContext, entry: LogEntry) -> int:
    """Delete the files that a visible decision replaces, and return their number.

    Requires: the decision is visible, so the replacement is complete (C9).

    Guarantee: idempotent (see `iter_deletions`).
    """

    def iter_keys() -> Iterator[str]:
        for one in iter_deletions(ctx, entry, load_replaced_files(ctx, entry)):
            if file_owner(one.key) is not None or _is_object_unchanged(ctx, one):
                yield one.key

    def delete_batch(batch: list[str]) -> int:
        ctx.store.delete_many(batch)
        return len(batch)

    deleted = 0
    for count in ctx.runner.map(delete_batch, batched_keys(iter_keys())):
        deleted += count
        ctx.progress("replaced", deleted, entry.replaced.count if entry.replaced else 0)
    return deleted


def _is_object_unchanged(ctx: CommitContext, one: Delete) -> bool:
    try:
        return ctx.store.head(one.key).etag == one.etag
    except NotFoundError:
        return False
