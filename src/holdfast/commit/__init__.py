"""Commit the output of jobs with one of several protocols, called committers.

ARCHITECTURE.md describes the folders; start reading at `two_phase.committer`. Each name is imported when it is first
used, so that one module of this package can be imported without all the others. Scenario numbers in docstrings refer to
tests/scenarios.md.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from holdfast.commit.committer import Committer
    from holdfast.commit.context import CommitContext, CommitSettings, Place, Progress, open_context
    from holdfast.commit.records import JobOutcome, JobRecord, Kind, SaveMode, StreamBatch, TaskCommit
    from holdfast.commit.recovery import recover
    from holdfast.commit.registry import COMMITTERS, get_committer, require_fit
    from holdfast.commit.task import TaskAttempt
    from holdfast.commit.two_phase.committer import TWO_PHASE
    from holdfast.commit.two_phase.recovery import read_history
    from holdfast.commit.two_phase.snapshot import Snapshot, VisibleFile, read_instant, read_snapshot
    from holdfast.commit.verification import verify

__all__ = [
    "COMMITTERS",
    "TWO_PHASE",
    "CommitContext",
    "CommitSettings",
    "Committer",
    "JobOutcome",
    "JobRecord",
    "Kind",
    "Place",
    "Progress",
    "SaveMode",
    "Snapshot",
    "StreamBatch",
    "TaskAttempt",
    "TaskCommit",
    "VisibleFile",
    "get_committer",
    "open_context",
    "read_history",
    "read_instant",
    "read_snapshot",
    "recover",
    "require_fit",
    "verify",
]

_MODULES = {
    "committer": ("Committer",),
    "context": ("CommitContext", "CommitSettings", "Place", "Progress", "open_context"),
    "records": ("JobOutcome", "JobRecord", "Kind", "SaveMode", "StreamBatch", "TaskCommit"),
    "recovery": ("recover",),
    "registry": ("COMMITTERS", "get_committer", "require_fit"),
    "task": ("TaskAttempt",),
    "two_phase.committer": ("TWO_PHASE",),
    "two_phase.recovery": ("read_history",),
    "two_phase.snapshot": ("Snapshot", "VisibleFile", "read_instant", "read_snapshot"),
    "verification": ("verify",),
}
"""The public names of this package, by the modules that define them."""
_DEFINED_IN = {name: module for module, names in _MODULES.items() for name in names}


def __getattr__(name: str) -> object:
    if name not in _DEFINED_IN:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found: object = getattr(importlib.import_module(f"{__name__}.{_DEFINED_IN[name]}"), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return __all__
