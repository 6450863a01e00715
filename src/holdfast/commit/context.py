"""What every step gets: the destination and the seams. A step takes a context and values, and returns a value."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from holdfast.commit.records import JobRecord, SaveMode
from holdfast.errors import InvalidRequestError
from holdfast.runtime import Clock, Environment, Ids, Runner
from holdfast.stores.base import ObjectStore
from holdfast.versioned_log import RecordStore

__all__ = [
    "CommitContext",
    "CommitSettings",
    "Contract",
    "HadoopSettings",
    "Place",
    "Progress",
    "StagingPlaces",
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
class StagingPlaces:
    """The directories that `staging-*` needs.

    Attributes:
        scratch: a directory of this machine alone, for the files of its tasks.
        shared: a directory that all machines of a job share, for the pending sets.
    """

    scratch: Place
    shared: Place


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitContext:
    """A destination, and the environment in which a step runs. Use it in a ``with`` statement, which closes its stores.

    Attributes:
        store: where the destination is.
        prefix: key prefix of the destination: empty, or ending in ``/`` so that no neighbour shares it (C7).
        url: the destination as a person writes it, without credentials.
        staging: the directories that `staging-*` needs; None for every other committer.
        reports: where reports go besides ``_SUCCESS``.
        environment: clock, ids and threads.
        contract: what the decision asks before a job may change the destination's table.
        partition: the directory in which a job of this kind puts the rows of a directory that is there: others name the
            same partition otherwise, such as ``month=01`` for ``month=1``.
    """

    store: ObjectStore
    prefix: str
    url: str
    staging: StagingPlaces | None = None
    reports: Place | None = None
    environment: Environment = field(default_factory=Environment)
    settings: CommitSettings = field(default_factory=CommitSettings)
    progress: Progress = silent
    contract: Contract = files_only
    partition: Callable[[str], str] = str

    def __post_init__(self) -> None:
        # C7: "dataset1" must never reach into "dataset10".
        assert not self.prefix or self.prefix.endswith("/"), self.prefix

    def __enter__(self) -> CommitContext:
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        self.close()

    @property
    def clock(self) -> Clock:
        """Time and waiting."""
        return self.environment.clock

    @property
    def ids(self) -> Ids:
        """Random tokens."""
        return self.environment.ids

    @property
    def runner(self) -> Runner:
        """Threads."""
        return self.environment.runner

    @property
    def records(self) -> RecordStore:
        """The destination as a directory of records that are created once."""
        return RecordStore(
            store=self.store,
            prefix=self.prefix,
            url=self.url,
            clock=self.clock,
            conditional=not self.settings.allow_unfenced,
        )

    def key(self, path: str) -> str:
        """Return the store's key of a path relative to the destination."""
        return self.prefix + path

    def at(self, place: Place) -> CommitContext:
        """The same seams over another directory, which has no such places of its own."""
        return replace(self, store=place.store, prefix=place.prefix, url=place.url, staging=None, reports=None)

    def close(self) -> None:
        """Release what the stores hold. Safe to call twice."""
        self.store.close()
        if self.staging is not None:
            self.staging.scratch.store.close()
            self.staging.shared.store.close()
        if self.reports is not None:
            self.reports.store.close()

    def with_environment(self, **changes: object) -> CommitContext:
        """Return the same context with another clock, ids or runner."""
        return replace(self, environment=replace(self.environment, **changes))  # type: ignore[arg-type]  # names are fields

    def with_settings(self, **changes: object) -> CommitContext:
        return replace(self, settings=replace(self.settings, **changes))  # type: ignore[arg-type]  # names are fields
