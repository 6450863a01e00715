"""Define the context that every step of a protocol receives: the destination, its settings and the environment."""

from __future__ import annotations

import contextlib
import os
import stat
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from holdfast.commit.records import JobRecord, SaveMode
from holdfast.commit.statistics import STORE_STATISTICS, Statistics, StatisticsRecorder
from holdfast.errors import AccessDeniedError, InvalidRequestError
from holdfast.runtime import Clock, Environment, Ids, Runner, ThreadRunner
from holdfast.stores.base import ObjectStore
from holdfast.stores.interceptors import InterceptedStore
from holdfast.stores.local.store import LocalStore
from holdfast.stores.provider import StoreOptions
from holdfast.stores.registry import open_destination
from holdfast.versioned_log import RecordStore

Progress = Callable[[str, int, int], None]
"""Called from one thread with (stage, steps done, steps in total); the total is 0 if it is unknown."""


def ignore_progress(stage: str, done: int, total: int) -> None:
    """Ignore a progress report: the default of `CommitContext.progress`."""


Contract = Callable[["CommitContext", JobRecord, Mapping[str, object] | None], Mapping[str, object] | None]
"""Called while a job is being decided, with the table as the newest decision left it (None if there is no table).
Returns the table as this job will leave it. Raises `ConflictError` or `InvalidRequestError` if the job does not fit
the table; the job then stays undecided.
"""


def refuse_append_to_table(
    ctx: CommitContext, job: JobRecord, table: Mapping[str, object] | None
) -> Mapping[str, object] | None:
    """Check a job that writes arbitrary files, not rows: it may replace a table, but not add to one (a `Contract`).

    Raises:
        InvalidRequestError: the job would add to a table; readers of the table could not distinguish the job's files
            from the table's.
    """
    if table is not None and job.mode in (SaveMode.APPEND, SaveMode.OVERWRITE_PARTITIONS):
        raise table_exists_error(ctx, table)
    return None


def table_exists_error(ctx: CommitContext, table: Mapping[str, object]) -> InvalidRequestError:
    """Return the error for a job that would add arbitrary files to a table."""
    return InvalidRequestError(
        "the destination contains a table, and other files would make it unreadable: write them elsewhere, add rows "
        "with holdfast.write, or use mode overwrite of committer two_phase, which deletes the table",
        url=ctx.url,
        format=table.get("format"),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitSettings:
    """Settings of a commit, as plain values.

    Attributes:
        part_size_bytes: size of an upload's parts. Very large files use larger parts, because an upload has at most
            10,000.
        part_buffer_bytes: limit for buffered parts, summed over all open files of a task.
        inline_manifest_bytes: a manifest up to this size, compressed, is also sent in the task's commit message.
        manifest_cache_bytes: how many bytes of manifests a job commit caches between its two passes; it reads the other
            manifests twice.
        log_retention_entries: how many decisions the log retains. A job is refused (`FencedError`) if more decisions
            than this are made on the destination while the job runs.
        conflict_attempts: how often a decision is retried after another job was decided first.
        roll_forward_attempts: how often rolling a decision forward is tried before it is left to the next job.
        allow_unfenced: accept a store without conditional writes. Two drivers of one job, or two jobs at the same
            moment, may then both believe that they decided.
        check_nesting: check that no other destination lies above or below this one, before a job starts and again
            before a destination's first job is decided. Switch this off only if there can be no such destination. The
            checker switches it off, because the check would multiply the number of histories to explore.
        scratch_dir: directory on each machine where `staging-*` stores a task's files; empty for the system's default.
        shared_dir: directory or url that all machines share, where `staging-*` stores its pending sets; empty for a
            directory on this machine, which is enough if all tasks run here.
        report_dir: directory or url where a report of each job is saved, even if the job fails; empty for no reports.
    """

    part_size_bytes: int = 8 * 1024 * 1024
    part_buffer_bytes: int = 128 * 1024 * 1024
    inline_manifest_bytes: int = 4096
    manifest_cache_bytes: int = 32 * 1024 * 1024
    log_retention_entries: int = 300
    conflict_attempts: int = 100
    roll_forward_attempts: int = 4
    allow_unfenced: bool = False
    check_nesting: bool = True
    scratch_dir: str = ""
    shared_dir: str = ""
    report_dir: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A directory in a store, other than the destination.

    Attributes:
        prefix: key prefix of the directory: empty, or ending in ``/``.
        url: the directory as a user writes it, without credentials.
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
        store: the store of the destination.
        prefix: key prefix of the destination: empty, or ending in ``/`` so that no other destination matches it (C7).
        url: the destination as a user writes it, without credentials.
        staging: the directories that `staging-*` needs; None for every other committer.
        reports: directory where job reports are saved in addition to ``_SUCCESS``; None for no reports.
        environment: clock, ids and threads.
        settings: limits and retries of the commit.
        progress: called with the progress of long steps.
        contract: called before a job is decided; checks and returns the destination's table (see `Contract`).
        partition: maps an existing directory to the directory that this job uses for the same partition: other jobs may
            have written ``month=01`` for ``month=1``.
    """

    store: ObjectStore
    prefix: str
    url: str
    staging: StagingPlaces | None = None
    reports: Place | None = None
    environment: Environment = field(default_factory=Environment)
    settings: CommitSettings = field(default_factory=CommitSettings)
    progress: Progress = ignore_progress
    contract: Contract = refuse_append_to_table
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
        """Return the environment's clock, which tells the time and sleeps."""
        return self.environment.clock

    @property
    def ids(self) -> Ids:
        """Return the environment's source of random tokens."""
        return self.environment.ids

    @property
    def runner(self) -> Runner:
        """Return the environment's runner, which makes store calls in parallel."""
        return self.environment.runner

    @property
    def records(self) -> RecordStore:
        """Return the destination as a directory of records that are never overwritten."""
        return RecordStore(
            store=self.store,
            prefix=self.prefix,
            url=self.url,
            clock=self.clock,
            conditional=not self.settings.allow_unfenced,
        )

    def key(self, path: str) -> str:
        """Return the store's key for a path relative to the destination."""
        return self.prefix + path

    def at(self, place: Place) -> CommitContext:
        """Return this context with another directory as its destination, and without staging and report directories."""
        return replace(self, store=place.store, prefix=place.prefix, url=place.url, staging=None, reports=None)

    def close(self) -> None:
        """Close the stores. Idempotent."""
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


_NO_REQUESTS = ("file.write", "file.discard", "check_targets")
_REQUESTS = {name for call, name in STORE_STATISTICS.items() if call not in _NO_REQUESTS}
_STAGES = ("job_stage_", "task_stage_", "committer_commit_job")


class Measure:
    """Counts and times the store calls and stages of one task attempt, job commit or job abort.

    Args:
        ctx: the context whose store calls are to be measured. From then on, use the attribute `ctx` instead.

    Attributes:
        ctx: the same context, with a store whose calls are timed.
        recorder: records counts and times that callers add themselves.
        stage_name: the last stage that was entered.
    """

    def __init__(self, ctx: CommitContext) -> None:
        self.recorder = StatisticsRecorder(ctx.clock)
        self.stage_name = ""
        self.ctx = replace(ctx, store=InterceptedStore(ctx.store, self.recorder.observed))
        self._store = ctx.store
        self._retries_before = ctx.store.retries

    @contextlib.contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Time a stage, named as in Hadoop: ``job_stage_…``, ``task_stage_…``. Times under the same name add up."""
        self.stage_name = name
        with self.recorder.time_block(name):
            yield

    def statistics(self) -> Statistics:
        """Return the statistics measured so far."""
        return self.recorder.snapshot()

    def metrics(self) -> dict[str, int]:
        """Return the measurements as Hadoop's metrics: a mapping from names to integers."""
        durations = self.recorder.snapshot().durations
        stages = {name: spent for name, spent in durations.items() if name.startswith(_STAGES)}
        return {
            **{f"{name.removeprefix('job_')}_ms": spent.total_ms for name, spent in stages.items()},
            "requests": sum(durations[name].count for name in _REQUESTS if name in durations),
            "requests_repeated": self._store.retries - self._retries_before,
        }


def open_context(
    url: str,
    *,
    store_options: Sequence[StoreOptions] = (),
    settings: CommitSettings | None = None,
    threads: int = 32,
    progress: Progress = ignore_progress,
    staging: bool = False,
    leave_no_trace: bool = False,
) -> CommitContext:
    """Return a context for the destination at `url`. Opens no connection yet; the caller closes the context.

    Args:
        store_options: options for the stores of the destination and of the other directories; a store without options
            here uses its defaults.
        threads: how many store calls run in parallel during job commit.
        staging: whether the context needs a scratch and a shared directory.
        leave_no_trace: do not create staging directories; for callers that only read existing ones.

    Raises:
        InvalidRequestError: the url is invalid (the message says why), or `scratch_dir` is not a directory on this
            machine.
        AccessDeniedError: another user can access the default staging directory.
    """
    settings = settings or CommitSettings()
    destination = _open_place(url, store_options)
    return CommitContext(
        store=destination.store,
        prefix=destination.prefix,
        url=destination.url,
        staging=_open_staging_places(settings, store_options, leave_no_trace) if staging else None,
        reports=_open_place(settings.report_dir, store_options) if settings.report_dir else None,
        environment=Environment(runner=ThreadRunner(threads)),
        settings=settings,
        progress=progress,
    )


def _open_place(url: str, store_options: Sequence[StoreOptions]) -> Place:
    found = open_destination(url, store_options)
    return Place(store=found.store, prefix=f"{found.prefix}/" if found.prefix else "", url=found.url)


def _open_staging_places(
    settings: CommitSettings, store_options: Sequence[StoreOptions], leave_no_trace: bool
) -> StagingPlaces:
    return StagingPlaces(
        scratch=_open_scratch_place(settings.scratch_dir or _private_directory("scratch", leave_no_trace)),
        shared=_open_place(settings.shared_dir or _private_directory("shared", leave_no_trace), store_options),
    )


def _open_scratch_place(directory: str) -> Place:
    scheme, found, _rest = directory.partition("://")
    if found and scheme.lower() != "file":
        raise InvalidRequestError(
            "a task stages its files on its own machine: name a local directory with scratch_dir", scratch_dir=directory
        )
    url = open_destination(directory).url
    # Staged files are uploaded before the task reports: a power failure only fails the task, so fsync is not needed.
    return Place(store=LocalStore(url.removeprefix("file://"), durable=False), prefix="", url=url)


def _private_directory(name: str, leave_no_trace: bool) -> str:
    """Return the path of `name` in a directory that only this user can read and write (paper 001, Security)."""
    path = os.path.join(tempfile.gettempdir(), f"holdfast-{os.getuid()}")
    if leave_no_trace and not os.path.lexists(path):
        return os.path.join(path, name)
    os.makedirs(path, mode=0o700, exist_ok=True)
    found = os.lstat(path)
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid() or stat.S_IMODE(found.st_mode) & 0o077:
        raise AccessDeniedError(
            "other users can access the directory for staged files: remove it, or name others with scratch_dir and "
            "shared_dir",
            path=path,
        )
    return os.path.join(path, name)
