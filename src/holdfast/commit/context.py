"""What every step gets: the destination and the seams. A step takes a context and values, and returns a value."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from holdfast.errors import HoldfastError, NotFoundError, OutcomeUnknownError, PreconditionError, UnavailableError
from holdfast.seams import Clock, Ids, Runner, SystemClock, SystemIds, ThreadRunner
from holdfast.stores.base import Create, ObjectStore, Overwrite

__all__ = ["CommitContext", "CommitSettings", "Progress", "create_record", "silent"]

Progress = Callable[[str, int, int], None]
"""Told (stage, done, total); total is 0 when it is not known. Called from one thread."""


def silent(stage: str, done: int, total: int) -> None:
    """The default progress: nobody looks."""


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
    """

    part_size_bytes: int = 8 * 1024 * 1024
    part_buffer_bytes: int = 128 * 1024 * 1024
    inline_manifest_bytes: int = 4096
    manifest_cache_bytes: int = 32 * 1024 * 1024
    log_retention_entries: int = 300
    conflict_attempts: int = 100
    finish_attempts: int = 4
    allow_unfenced: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitContext:
    """A destination and the seams.

    Attributes:
        store: where the destination is.
        prefix: key prefix of the destination: empty, or ending in ``/`` so that no neighbour shares it (C7).
        url: the destination as a person writes it, without credentials.
    """

    store: ObjectStore
    prefix: str
    url: str
    clock: Clock = field(default_factory=SystemClock)
    ids: Ids = field(default_factory=SystemIds)
    runner: Runner = field(default_factory=ThreadRunner)
    settings: CommitSettings = field(default_factory=CommitSettings)
    progress: Progress = silent

    def __post_init__(self) -> None:
        # C7: "dataset1" must never reach into "dataset10".
        assert not self.prefix or self.prefix.endswith("/"), self.prefix

    def key(self, path: str) -> str:
        """The store's key of a path relative to the destination."""
        return self.prefix + path

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
