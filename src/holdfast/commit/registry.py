"""Find a committer by its name, and find the committers that fit a store.

Other packages add a committer by registering its `Committer` as an entry point of its name::

    [project.entry-points."holdfast.committers"]
    direct = "holdfast_checker.specimens:DIRECT"

Entry points are searched only for names that no built-in committer has, and to list all committers.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING

from holdfast.commit.committer import Committer
from holdfast.commit.context import CommitContext
from holdfast.commit.hadoop.dead_jobs.recovery import HADOOP_JOBS
from holdfast.commit.hadoop.file_output.committers import FILE_V1, FILE_V2
from holdfast.commit.hadoop.magic.committer import MAGIC
from holdfast.commit.hadoop.manifest.committer import MANIFEST
from holdfast.commit.hadoop.staging.committer import STAGING_DIRECTORY, STAGING_PARTITIONED
from holdfast.commit.leftovers import ForeignJobSupport
from holdfast.commit.records import SaveMode
from holdfast.commit.two_phase.committer import TWO_PHASE
from holdfast.errors import InvalidRequestError, UnsupportedError
from holdfast.stores.base import Capabilities
from holdfast.wording import suggest_nearest

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

ENTRY_POINT_GROUP = "holdfast.committers"

COMMITTERS: Mapping[str, Committer] = {
    committer.name: committer
    for committer in (
        TWO_PHASE,
        MAGIC,
        STAGING_DIRECTORY,
        STAGING_PARTITIONED,
        MANIFEST,
        FILE_V1,
        FILE_V2,
    )
}
"""The built-in committers; the default one first."""

FOREIGN: tuple[ForeignJobSupport, ...] = (HADOOP_JOBS,)
"""The systems whose dead jobs recovery knows."""


def get_committer(name: str) -> Committer:
    """Return the committer with this name; ``-`` and ``_`` are equivalent.

    Raises:
        InvalidRequestError: no committer has this name; the message suggests the most similar name.
        UnsupportedError: an installed package registers the name, but its committer cannot be used.
    """
    wanted = _fold_committer_name(name)
    for known, committer in COMMITTERS.items():
        if _fold_committer_name(known) == wanted:
            return committer
    entries = _find_entry_points()
    for entry in entries:
        if _fold_committer_name(entry.name) == wanted:
            return _load_committer(entry)
    names = [*COMMITTERS, *(entry.name for entry in entries)]
    raise InvalidRequestError(f"unknown committer: {suggest_nearest(name, names)}", committer=name)


def installed_committers() -> Mapping[str, Committer]:
    """Return the built-in committers and those of every installed package.

    Raises:
        UnsupportedError: a package registers a committer that cannot be used.
    """
    return {**COMMITTERS, **{entry.name: _load_committer(entry) for entry in _find_entry_points()}}


def _fold_committer_name(name: str) -> str:
    return name.strip().lower().replace("_", "-")


@cache  # the search reads the metadata of every installed package, and each recovery asks for all committers
def _find_entry_points() -> tuple[EntryPoint, ...]:
    from importlib.metadata import entry_points  # deferred: it takes 7 ms, and the built-in committers never need it

    return tuple(entry for entry in entry_points(group=ENTRY_POINT_GROUP) if entry.name not in COMMITTERS)


def _load_committer(entry: EntryPoint) -> Committer:
    try:
        committer = entry.load()
    except Exception as error:  # importing another package's module may raise anything
        raise UnsupportedError(
            "the package that provides this committer cannot be imported: reinstall it",
            committer=entry.name,
            provider=entry.value,
        ) from error
    if not isinstance(committer, Committer) or committer.name != entry.name:
        raise UnsupportedError(
            "the entry point names no committer of this name: correct it in the package that registers it",
            committer=entry.name,
            provider=entry.value,
        )
    return committer


def fitting_committers(capabilities: Capabilities) -> list[Committer]:
    """List the built-in committers that run with default settings on a store with these capabilities."""
    return [committer for committer in COMMITTERS.values() if not committer.explain_misfit(capabilities)]


def require_fit(committer: Committer, ctx: CommitContext, mode: SaveMode) -> None:
    """Refuse a store or a mode that the committer does not support, and name alternatives. Sends no request.

    Raises:
        UnsupportedError: the committer does not fit the store; the message says why, and which committers do.
        InvalidRequestError: the committer does not support the mode.
    """
    fitting = fitting_committers(ctx.store.capabilities)
    committer.check_fit(ctx, mode, others=" or ".join(other.name for other in fitting) or "another store")
