"""All committers, by name."""

from __future__ import annotations

import difflib
from collections.abc import Mapping

from holdfast.commit.committer import CONDITIONAL_WRITES, HIDDEN_WRITES, Committer
from holdfast.commit.file_output.v1 import FILE_V1
from holdfast.commit.file_output.v2 import FILE_V2
from holdfast.commit.magic.committer import MAGIC
from holdfast.commit.manifest.committer import MANIFEST
from holdfast.commit.records import SaveMode
from holdfast.commit.staging.committer import STAGING_DIRECTORY, STAGING_PARTITIONED
from holdfast.commit.two_phase.job import abort_job, commit_job, start_job
from holdfast.commit.two_phase.task import TWO_PHASE_TASK
from holdfast.commit.unsafe.direct import DIRECT
from holdfast.commit.unsafe.emr import EMR
from holdfast.commit.unsafe.stocator import STOCATOR
from holdfast.errors import InvalidRequestError
from holdfast.stores.base import Capabilities

__all__ = ["COMMITTERS", "TWO_PHASE", "fitting_committers", "get_committer"]

TWO_PHASE = Committer(
    name="two_phase",
    summary="hidden files, one decision record, then all of them visible",
    source="ours; papers 000 (VI, VIII, XI, XIII) and 002",
    needs=(HIDDEN_WRITES, CONDITIONAL_WRITES),
    modes=frozenset(SaveMode),
    start=start_job,
    task=TWO_PHASE_TASK,
    commit=commit_job,
    abort=abort_job,
)

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
    """The committer of that name; ``-`` and ``_`` are one.

    Raises:
        InvalidRequestError: unknown; offers the nearest name.
    """
    wanted = name.strip().lower().replace("_", "-")
    for known, committer in COMMITTERS.items():
        if known.replace("_", "-") == wanted:
            return committer
    near = difflib.get_close_matches(name, COMMITTERS, n=1, cutoff=0.5)
    offer = f"did you mean {near[0]!r}?" if near else f"use one of {', '.join(COMMITTERS)}"
    raise InvalidRequestError(f"unknown committer: {offer}", committer=name)


def fitting_committers(capabilities: Capabilities) -> list[Committer]:
    """The committers that run on such a store without ``allow_unsafe``, the default first."""
    return [committer for committer in COMMITTERS.values() if not committer.refusal(capabilities)]
