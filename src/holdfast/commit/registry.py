"""Find a committer by its name, and find the committers that fit a store."""

from __future__ import annotations

from collections.abc import Mapping

from holdfast.commit.committer import Committer
from holdfast.commit.context import CommitContext
from holdfast.commit.file_output.v1 import FILE_V1
from holdfast.commit.file_output.v2 import FILE_V2
from holdfast.commit.magic.committer import MAGIC
from holdfast.commit.manifest.committer import MANIFEST
from holdfast.commit.save_mode import SaveMode
from holdfast.commit.staging.committer import STAGING_DIRECTORY, STAGING_PARTITIONED
from holdfast.commit.two_phase.committer import TWO_PHASE
from holdfast.commit.unsafe.direct import DIRECT
from holdfast.commit.unsafe.emr import EMR
from holdfast.commit.unsafe.stocator import STOCATOR
from holdfast.errors import InvalidRequestError
from holdfast.stores.base import Capabilities
from holdfast.wording import nearest

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
        DIRECT,
        STOCATOR,
        EMR,
    )
}


def get_committer(name: str) -> Committer:
    """Return the committer with this name; ``-`` and ``_`` are equivalent.

    Raises:
        InvalidRequestError: no committer has this name; the message suggests the most similar name.
    """
    wanted = name.strip().lower().replace("_", "-")
    for known, committer in COMMITTERS.items():
        if known.replace("_", "-") == wanted:
            return committer
    raise InvalidRequestError(f"unknown committer: {nearest(name, COMMITTERS)}", committer=name)


def fitting_committers(capabilities: Capabilities) -> list[Committer]:
    """List the committers that run with default settings on a store with these capabilities; the default one first."""
    return [committer for committer in COMMITTERS.values() if not committer.refusal(capabilities)]


def require_fit(committer: Committer, ctx: CommitContext, mode: SaveMode) -> None:
    """Refuse a store or a mode that the committer does not support, and name alternatives. Sends no request.

    Raises:
        UnsupportedError: the committer does not fit the store; the message says why, and which committers do.
        InvalidRequestError: the committer does not support the mode.
    """
    fitting = fitting_committers(ctx.store.capabilities)
    committer.check_fit(ctx, mode, others=" or ".join(other.name for other in fitting) or "another store")
