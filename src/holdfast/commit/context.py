"""What every step gets: the destination and the seams. A step takes a context and values, and returns a value."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from holdfast.commit.records import JobRecord, SaveMode
from holdfast.errors import (
    HoldfastError,
    InvalidRequestError,
    NotFoundError,
    OutcomeUnknownError,
    PreconditionError,
    UnavailableError,
)
from holdfast.runtime import Clock, Ids, Runner, SystemClock, SystemIds, ThreadRunner
from holdfast.stores.base import Create, ObjectStore, Overwrite

__all__ = [
    "CommitContext",
    "CommitSettings",
    "Contract",
    "HadoopSettings",
    "Place",
    "Progress",
    "create_record",
    "files_only",
    "silent",
    "table_in_the_way",
]

Progress = Callable[[str, int, int], None]
"""Told (stage, done, total); total is 0 when it is not known. Called from one thread."""


def silent(stage: str, done: int, total: int) -> None:
    """The default progress: nobody looks."""


Contract = Callable[["CommitContext", JobRecord, Mapping[str, object] | None], Mapping[str, object] | None]
"""Asked in the decision of a job, with the table as the newest decision left it (None: no table): returns the table as
it is once the job is committed. Raises `ConflictError` or `InvalidRequestError` if the job does not fit: it stays
undecided."""


def files_only(ctx: CommitContext, job: JobRecord, table: Mapping[str, object] | None) -> Mapping[str, object] | None:
    """The contract of a job that writes files of any kind: it may replace a table, not add to one.

    Raises:
        InvalidRequestError: it would add to one; readers of the table could not tell its files apart.
    """
    if table is not None and job.mode in (SaveMode.APPEND, SaveMode.OVERWRITE_PARTITIONS):
        raise table_in_the_way(ctx, table)
    return None


def table_in_the_way(ctx: CommitContext, table: Mapping[str, object]) -> InvalidRequestError:
    """The refusal of a job of files that would add to a table."""
    return InvalidRequestError(
        "the destination holds a table, and files of any kind would make it unreadable: write them elsewhere, add rows "
        "with holdfast.write, or replace the table with mode overwrite of committer two_phase",
        url=ctx.url,
        format=table.get("format"),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class HadoopSettings:
    """Options of the committers that follow Hadoop's, named and preset as there unless said.

    Attributes:
        mark_successful_jobs: write ``_SUCCESS``.
        abort_pending_uploads: `magic`, `staging-*`: end a job by aborting every pending upload below the destination,
            also those of other jobs. Off here, on in Hadoop (HADOOP-18797): off, only uploads of the job itself go.
        unique_filenames: `staging-*`: put the job's id into file names that do not hold it.
        etags_as_text: `magic`, `staging-*`: write the etags of pending uploads as Hadoop up to 3.4.1 reads them; off,
            as it does from 3.4.2 on. Holdfast reads both.
        delete_target_files: `manifest`: delete what stands where a file goes; off, such a file fails the job.
        validate_output: `manifest`: look at every file after the renames.
        manifest_save_attempts: `manifest`: how often a task tries to save its manifest.
        cleanup_skipped: `manifest`: leave the job's directory.
        cleanup_failures_ignored: `manifest`: trouble in clean-up does not fail the job.
        cleanup_parallel_delete: `manifest`: delete attempts' directories side by side before the job's.
        cleanup_base_first: `manifest`: try to delete the job's directory in one go before that.
    """

    mark_successful_jobs: bool = True
    abort_pending_uploads: bool = False
    unique_filenames: bool = False
    etags_as_text: bool = False
    delete_target_files: bool = False
    validate_output: bool = False
    manifest_save_attempts: int = 5
    cleanup_skipped: bool = False
    cleanup_failures_ignored: bool = False
    cleanup_parallel_delete: bool = True
    cleanup_base_first: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitSettings:
    """Plain values that tune a commit.

    Attributes:
        part_size_bytes: size of an upload's parts; grows for very large files so that 10,000 parts are enough.
        part_buffer_bytes: parts that wait in all open files of a task together.
        inline_manifest_bytes: manifests up to this size, compressed, travel in the task's message, too.
        manifest_cache_bytes: manifests that a job commit keeps between its two passes; the rest is read again.
        log_retention_entries: decisions kept behind the newest. A job that sees more than this many others
            decided on its destination while it runs is refused (`FencedError`).
        conflict_attempts: how often a decision is tried again after another job came first.
        finish_attempts: how often the work after a decision is tried before it is left to the next job.
        allow_unfenced: accept a store without conditional writes. Two drivers of one job, or two jobs at the same
            moment, may then both believe that they decided.
        check_nesting: look for destinations above and below before a job starts, and before a first job is decided.
            Off only where nothing can be there, as in worlds of the checker, whose histories it would multiply.
        allow_unsafe: run committers that are here for comparison, and classic ones on stores that do not meet their
            needs.
        scratch_dir: directory of each machine where `staging-*` keeps a task's files; empty for the system's own.
        shared_dir: directory or url that all machines share, where `staging-*` hands over its pending sets; empty for
            one on this machine, which will do if all tasks run here.
        report_dir: directory or url that gets each job's report, also that of a job that fails; empty for none.
        hadoop: options of the committers that follow Hadoop's.
    """

    part_size_bytes: int = 8 * 1024 * 1024
    part_buffer_bytes: int = 128 * 1024 * 1024
    inline_manifest_bytes: int = 4096
    manifest_cache_bytes: int = 32 * 1024 * 1024
    log_retention_entries: int = 300
    conflict_attempts: int = 100
    finish_attempts: int = 4
    allow_unfenced: bool = False
    check_nesting: bool = True
    allow_unsafe: bool = False
    scratch_dir: str = ""
    shared_dir: str = ""
    report_dir: str = ""
    hadoop: HadoopSettings = HadoopSettings()


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A directory in a store, beside the destination.

    Attributes:
        prefix: empty, or ending in ``/``.
        url: as a person writes it, without credentials.
    """

    store: ObjectStore
    prefix: str
    url: str

    def __post_init__(self) -> None:
        assert not self.prefix or self.prefix.endswith("/"), self.prefix


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitContext:
    """A destination and the seams.

    Attributes:
        store: where the destination is.
        prefix: key prefix of the destination: empty, or ending in ``/`` so that no neighbour shares it (C7).
        url: the destination as a person writes it, without credentials.
        scratch: directory of this machine alone, for `staging-*`.
        shared: directory that all machines of a job share, for `staging-*`.
        reports: where reports go besides ``_SUCCESS``.
        contract: what the decision asks before a job may change the destination's table.
        partition: the directory in which a job of this kind puts the rows of a directory that is there: others name the
            same partition otherwise, such as ``month=01`` for ``month=1``.
    """

    store: ObjectStore
    prefix: str
    url: str
    scratch: Place | None = None
    shared: Place | None = None
    reports: Place | None = None
    clock: Clock = field(default_factory=SystemClock)
    ids: Ids = field(default_factory=SystemIds)
    runner: Runner = field(default_factory=ThreadRunner)
    settings: CommitSettings = field(default_factory=CommitSettings)
    progress: Progress = silent
    contract: Contract = files_only
    partition: Callable[[str], str] = str

    def __post_init__(self) -> None:
        # C7: "dataset1" must never reach into "dataset10".
        assert not self.prefix or self.prefix.endswith("/"), self.prefix

    def key(self, path: str) -> str:
        """The store's key of a path relative to the destination."""
        return self.prefix + path

    def at(self, place: Place) -> CommitContext:
        """The same seams over another directory, which has no such places of its own."""
        return replace(
            self, store=place.store, prefix=place.prefix, url=place.url, scratch=None, shared=None, reports=None
        )

    def close(self) -> None:
        """Release what the stores hold. Safe to call twice."""
        self.store.close()
        for place in (self.scratch, self.shared, self.reports):
            if place is not None:
                place.store.close()

    def with_settings(self, **changes: object) -> CommitContext:
        return replace(self, settings=replace(self.settings, **changes))  # type: ignore[arg-type]  # names are fields


def create_record(ctx: CommitContext, path: str, data: bytes) -> bytes:
    """Create a record if nobody has, and say what is there now.

    Guarantee: returns the bytes of the record at `path`: `data` if this call (or one whose reply was lost) wrote it,
    else the winner's. A lost reply is settled by writing again under the same condition and comparing contents, so
    `data` must be unlike anybody else's (it carries a random token).

    Raises:
        OutcomeUnknownError: the store did not answer; read the record before anything else.
        UnavailableError: nothing was written.
    """
    key = ctx.key(path)
    last: HoldfastError | None = None
    unknown = False
    for attempt in range(6):
        if attempt:
            ctx.clock.sleep(min(0.1 * 2**attempt, 5.0))
        try:
            if ctx.settings.allow_unfenced:
                return _create_unfenced(ctx, key, data)
            ctx.store.put(key, data, Create())
            return data
        except PreconditionError as error:
            last = error
            try:
                return ctx.store.get(key)
            except NotFoundError:
                continue  # S3 answers 409 while another write of the key is under way: ask again
        except (OutcomeUnknownError, UnavailableError) as error:
            last = error
            unknown = unknown or isinstance(error, OutcomeUnknownError)
    kind = OutcomeUnknownError if unknown else UnavailableError
    raise kind("a record could not be written: run the same command again", url=ctx.url, record=path) from last


def _create_unfenced(ctx: CommitContext, key: str, data: bytes) -> bytes:
    """Look, then write: all that a store without conditional writes allows."""
    try:
        return ctx.store.get(key)
    except NotFoundError:
        ctx.store.put(key, data, Overwrite())
        return ctx.store.get(key)
